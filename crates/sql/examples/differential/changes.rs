//! Random statements that write, and blocks of them.

use crate::part::{Part, maybe, word};
use crate::parts;
use crate::queries::Queries;
use crate::tables::Table;
use crate::terms::{Relation, literal};

/// What a table's rows are in sight as.
fn relation(table: &Table, name: &str) -> Relation {
    let columns = table.columns.iter().map(|column| (column.name.clone(), column.kind)).collect();
    Relation { name: name.to_owned(), columns }
}

impl Queries<'_> {
    /// A table by chance.
    fn table(&mut self) -> Table {
        self.tables[self.random.below(self.tables.len())].clone()
    }

    /// The first rows of a table.
    pub fn fill(&mut self, table: &Table) -> Part {
        let rows = (0..4 + self.random.below(6)).map(|number| self.row(table, number + 1, 0)).collect();
        parts![
            format!("insert into {} values ", table.name),
            Part::List(", ", rows),
            " on conflict do nothing"
        ]
    }

    /// A row of values for all columns.
    fn row(&mut self, table: &Table, number: usize, depth: usize) -> Part {
        let mut values = Vec::new();
        for (place, column) in table.columns.iter().enumerate() {
            values.push(match place {
                0 if !self.once_in(12) => word(number.to_string()),
                _ if self.once_in(20) => word("default"),
                _ if depth == 0 => literal(self.random, column.kind),
                _ => self.term(&[], column.kind, 1),
            });
        }
        parts!["(", Part::List(", ", values), ")"]
    }

    /// `RETURNING`, perhaps.
    fn returning(&mut self, scope: &[Vec<Relation>]) -> Part {
        let part = match self.random.below(6) {
            0 => Some(word(" returning *")),
            1 => {
                let kinds = ['i', 't', 'n'];
                let kind = kinds[self.random.below(kinds.len())];
                let term = self.term(scope, kind, 2);
                Some(parts![" returning ", term])
            }
            _ => None,
        };
        maybe(part)
    }

    /// `SET` of some columns.
    fn assignments(&mut self, table: &Table, scope: &[Vec<Relation>], keys: bool) -> Part {
        let mut items = Vec::new();
        for _ in 0..1 + self.random.below(2) {
            let place = self.random.below(table.columns.len());
            if !keys && table.is_key(place) {
                continue;
            }
            let column = &table.columns[place];
            let value = if self.once_in(15) { word("default") } else { self.term(scope, column.kind, 2) };
            items.push(parts![format!("{} = ", column.name), value]);
        }
        if items.is_empty() {
            let place = table.columns.len() - 1;
            let column = &table.columns[place];
            items.push(parts![format!("{0} = {0}", column.name)]);
        }
        Part::List(", ", items)
    }

    fn insert(&mut self) -> Part {
        let table = self.table();
        let name = table.name.clone();
        let mut head = format!("insert into {name} ");
        let from = 1 + self.random.below(24);
        let source = match self.random.below(5) {
            0 => {
                let kinds: Vec<char> = table.columns.iter().map(|column| column.kind).collect();
                self.source(&kinds)
            }
            1 => {
                let count = 1 + self.random.below(table.columns.len());
                let mut places: Vec<usize> = (0..table.columns.len()).collect();
                places.rotate_left(self.random.below(count));
                places.truncate(count);
                let names: Vec<&str> =
                    places.iter().map(|place| table.columns[*place].name.as_str()).collect();
                head += &format!("({}) ", names.join(", "));
                let mut values = Vec::new();
                for place in &places {
                    values.push(self.term(&[], table.columns[*place].kind, 1));
                }
                parts!["values (", Part::List(", ", values), ")"]
            }
            _ => {
                let count = [1, 1, 2, 3][self.random.below(4)];
                let rows = (0..count).map(|number| self.row(&table, from + number, 1)).collect();
                parts!["values ", Part::List(", ", rows)]
            }
        };
        let conflict = self.once_in(3).then(|| {
            if table.keys.is_empty() || self.once_in(4) {
                return word(" on conflict do nothing");
            }
            let key = &table.keys[self.random.below(table.keys.len())];
            let names: Vec<&str> = key.iter().map(|place| table.columns[*place].name.as_str()).collect();
            let target = format!(" on conflict ({}) do ", names.join(", "));
            if self.once_in(3) {
                return word(target + "nothing");
            }
            let scope = [vec![relation(&table, &name), relation(&table, "excluded")]];
            let set = self.assignments(&table, &scope, false);
            let filter = self.once_in(4).then(|| parts![" where ", self.term(&scope, 'b', 1)]);
            parts![target, "update set ", set, maybe(filter)]
        });
        let returning = self.returning(&[vec![relation(&table, &name)]]);
        parts![head, source, maybe(conflict), returning]
    }

    fn update(&mut self) -> Part {
        let table = self.table();
        let name = table.name.clone();
        let target = relation(&table, &name);
        let only = vec![vec![target.clone()]];
        // A key is given to a single row, so that no order of rows matters.
        if self.once_in(4)
            && let Some(key) = table.single().cloned()
        {
            let set = self.assignments(&table, &only, true);
            let value = literal(self.random, key.kind);
            let returning = self.returning(&only);
            return parts![
                format!("update {name} set "),
                set,
                format!(" where {} = ", key.name),
                value,
                returning
            ];
        }
        let other = self.table();
        let joined = other.single().cloned().filter(|_| self.once_in(4));
        let mut scope = only.clone();
        let mut condition = Vec::new();
        let mut from = String::new();
        if let Some(key) = joined
            && let Some(column) = self.column(&only, key.kind)
        {
            from = format!(" from {} o", other.name);
            condition.push(parts![format!("o.{} = ", key.name), column]);
            scope[0].push(relation(&other, "o"));
        }
        let set = self.assignments(&table, &scope, false);
        if !self.once_in(5) {
            condition.push(self.term(&scope, 'b', 2));
        }
        let filter = (!condition.is_empty()).then(|| parts![" where ", Part::List(" and ", condition)]);
        let returning = self.returning(&only);
        parts![format!("update {name} set "), set, from, filter.unwrap_or_else(|| word("")), returning]
    }

    fn delete(&mut self) -> Part {
        let table = self.table();
        let name = table.name.clone();
        let mut scope = vec![vec![relation(&table, &name)]];
        let only = scope.clone();
        let mut using = String::new();
        let mut conditions = Vec::new();
        if self.once_in(4) {
            let other = self.table();
            using = format!(" using {} o", other.name);
            let (one, two) = (self.column(&scope, 'i'), self.column(&[vec![relation(&other, "o")]], 'i'));
            scope[0].push(relation(&other, "o"));
            if let (Some(one), Some(two)) = (one, two) {
                // `two` may be bare, which then is one of two columns: an error, as any other.
                conditions.push(parts![one, " = ", two]);
            }
        } else if self.once_in(2)
            && let Some(key) = table.single().cloned()
        {
            conditions.push(parts![format!("{} = ", key.name), literal(self.random, key.kind)]);
        }
        if conditions.is_empty() || self.once_in(3) {
            conditions.push(self.term(&scope, 'b', 2));
        }
        let returning = self.returning(&only);
        parts![format!("delete from {name}{using} where "), Part::List(" and ", conditions), returning]
    }

    /// What is done to a table or an index.
    fn definition(&mut self) -> Part {
        let table = self.table();
        let name = &table.name;
        let column = table.columns[self.random.below(table.columns.len())].name.clone();
        let number = self.random.below(3);
        let text = match self.random.below(14) {
            0 => format!("create index {name}_x{number} on {name} ({column})"),
            1 => format!("create unique index {name}_x{number} on {name} ({column}, id)"),
            2 => format!("drop index if exists {name}_x{number}"),
            3 => format!("truncate {name}"),
            4 => format!("truncate {name} cascade"),
            5 => format!("alter table {name} add column x{number} integer default 3"),
            6 => format!("alter table {name} drop column x{number}"),
            7 => format!("alter table {name} alter column {column} set not null"),
            8 => format!("alter table {name} alter column {column} drop not null"),
            9 => format!("alter table {name} alter column {column} drop default"),
            10 => format!("alter table {name} add constraint {name}_k{number} check ({column} is not null)"),
            11 => format!("alter table {name} drop constraint if exists {name}_k{number}"),
            12 => format!("create unique index {name}_u{number} on {name} ({column})"),
            _ => format!("drop index if exists {name}_u{number}"),
        };
        word(text)
    }

    /// A statement that changes something.
    fn change(&mut self) -> Part {
        match self.random.below(20) {
            0..9 => self.insert(),
            9..15 => self.update(),
            15..19 => self.delete(),
            _ => self.definition(),
        }
    }

    /// A statement of any sort.
    fn any(&mut self) -> Part {
        self.with.clear();
        if self.random.below(5) < 2 { self.change() } else { self.statement() }
    }

    /// One statement, or a block of several.
    pub fn step(&mut self, statements: &mut Vec<Part>) {
        if !self.once_in(12) {
            statements.push(self.any());
            return;
        }
        let begin = ["begin", "begin", "start transaction", "begin isolation level serializable"];
        statements.push(word(begin[self.random.below(begin.len())]));
        for _ in 0..2 + self.random.below(6) {
            match self.random.below(8) {
                0 => statements.push(word(format!("savepoint p{}", self.random.below(2)))),
                1 => statements.push(word(format!("rollback to savepoint p{}", self.random.below(2)))),
                2 if self.once_in(3) => {
                    statements.push(word(format!("release savepoint p{}", self.random.below(2))));
                }
                _ => statements.push(self.any()),
            }
        }
        statements.push(word(["commit", "commit", "rollback"][self.random.below(3)]));
    }
}
