//! Random queries over random tables.

use crate::generate::Generator;
use crate::part::{Part, maybe, word};
use crate::parts;
use crate::tables::Table;
use crate::terms::{AGGREGATES, Relation};

/// What makes queries.
pub struct Queries<'a> {
    /// Chance.
    pub random: &'a mut Generator,
    /// The tables that there are.
    pub tables: &'a [Table],
    /// Names of `WITH` in sight.
    pub with: Vec<Relation>,
    /// Names that were given.
    names: usize,
}

/// A query without its order, and the kinds of its columns.
struct Core {
    text: Part,
    kinds: Vec<char>,
}

/// Kinds that a query's columns have if nobody asks for others, by how often.
const KINDS: &[u8] = b"iiiiittttnnnbdszfvau";

impl<'a> Queries<'a> {
    /// A maker of queries.
    pub fn new(random: &'a mut Generator, tables: &'a [Table]) -> Queries<'a> {
        Queries { random, tables, with: Vec::new(), names: 0 }
    }

    /// Returns true once in `times` draws, so that a clause is generated that often.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.random.below(times) == 0
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn kinds(&mut self, count: usize) -> Vec<char> {
        (0..count).map(|_| char::from(KINDS[self.random.below(KINDS.len())])).collect()
    }

    /// A statement that reads: perhaps with `WITH`, mostly in an order that is total.
    pub fn statement(&mut self) -> Part {
        self.with.clear();
        let mut with = Vec::new();
        while self.once_in(8) {
            let count = 1 + self.random.below(3);
            let kinds = self.kinds(count);
            let query = self.core(&[], Some(kinds.clone()), 1).text;
            let name = self.name("w");
            let columns: Vec<(String, char)> =
                kinds.iter().enumerate().map(|(place, kind)| (format!("{kind}{place}"), *kind)).collect();
            let list = columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let kept = ["", "", "materialized "][self.random.below(3)];
            with.push(parts![format!("{name} ({list}) as {kept}("), query, ")"]);
            self.with.push(Relation { name, columns });
        }
        let core = self.core(&[], None, 2);
        let order = if self.once_in(3) { None } else { Some(self.total(core.kinds.len())) };
        let with = match with.is_empty() {
            true => word(""),
            false => parts!["with ", Part::List(", ", with), " "],
        };
        parts![with, core.text, maybe(order)]
    }

    /// A query for values of kinds, in a total order, as what is inserted.
    pub fn source(&mut self, kinds: &[char]) -> Part {
        self.with.clear();
        let core = self.core(&[], Some(kinds.to_vec()), 1);
        let places: Vec<String> = (1..=kinds.len()).map(|place| place.to_string()).collect();
        let few = 1 + self.random.below(5);
        parts![core.text, format!(" order by {} limit {few}", places.join(", "))]
    }

    /// `ORDER BY` all columns, perhaps with a limit.
    fn total(&mut self, count: usize) -> Part {
        let mut places: Vec<usize> = (1..=count).collect();
        for place in (1..count).rev() {
            places.swap(place, self.random.below(place + 1));
        }
        let items: Vec<String> = places
            .iter()
            .map(|place| {
                let how = ["", "", "", " desc", " nulls first", " desc nulls last"][self.random.below(6)];
                format!("{place}{how}")
            })
            .collect();
        let limit = self.once_in(4).then(|| {
            let count = self.random.below(6);
            match self.random.below(4) {
                0 => word(format!(" offset {count}")),
                1 => word(format!(" limit {count} offset {}", self.random.below(4))),
                2 => word(format!(" fetch first {} rows only", count + 1)),
                _ => word(format!(" limit {count}")),
            }
        });
        Part::Total(Box::new(parts![format!(" order by {}", items.join(", ")), maybe(limit)]))
    }

    /// A query: a select, or several that are combined.
    fn core(&mut self, outer: &[Vec<Relation>], kinds: Option<Vec<char>>, depth: usize) -> Core {
        if depth == 0 || !self.once_in(7) {
            return self.select(outer, kinds, depth);
        }
        let one = self.select(outer, kinds, depth - 1);
        let operator = ["union", "union all", "intersect", "except", "except all", "intersect all"]
            [self.random.below(6)];
        let two = match self.once_in(6) {
            true => self.values(outer, &one.kinds),
            false => self.core(outer, Some(one.kinds.clone()), depth - 1),
        };
        let text = parts!["(", one.text, format!(") {operator} ("), two.text, ")"];
        Core { text, kinds: one.kinds }
    }

    fn values(&mut self, outer: &[Vec<Relation>], kinds: &[char]) -> Core {
        let rows = 1 + self.random.below(3);
        let row = |this: &mut Self| {
            let values = kinds.iter().map(|kind| this.term(outer, *kind, 1)).collect();
            parts!["(", Part::List(", ", values), ")"]
        };
        let rows = (0..rows).map(|_| row(self)).collect();
        Core { text: parts!["values ", Part::List(", ", rows)], kinds: kinds.to_vec() }
    }

    /// A table or a name of `WITH`, under a name of its own; or a query in its place.
    fn relation(&mut self, outer: &[Vec<Relation>], depth: usize) -> (Part, Relation) {
        let name = self.name("t");
        if depth > 0 && self.once_in(6) {
            let count = 1 + self.random.below(3);
            let kinds = self.kinds(count);
            let lateral = self.once_in(3);
            let scope = if lateral { outer } else { &outer[..outer.len().saturating_sub(1)] };
            let query = self.core(scope, Some(kinds.clone()), depth - 1);
            let columns: Vec<(String, char)> =
                kinds.iter().enumerate().map(|(place, kind)| (format!("{kind}{place}"), *kind)).collect();
            let list = columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let head = if lateral { "lateral (" } else { "(" };
            return (parts![head, query.text, format!(") as {name} ({list})")], Relation { name, columns });
        }
        if !self.with.is_empty() && self.once_in(2) {
            let with = &self.with[self.random.below(self.with.len())];
            let relation = Relation { name: name.clone(), columns: with.columns.clone() };
            return (word(format!("{} as {name}", with.name)), relation);
        }
        let table = &self.tables[self.random.below(self.tables.len())];
        let columns = table.columns.iter().map(|column| (column.name.clone(), column.kind)).collect();
        (word(format!("{} {name}", table.name)), Relation { name, columns })
    }

    /// `FROM` with joins, which adds a level of relations to those in sight.
    fn from(&mut self, scope: &mut Vec<Vec<Relation>>, depth: usize) -> Part {
        scope.push(Vec::new());
        let (first, relation) = self.relation(scope, depth);
        scope.last_mut().expect("a level").push(relation);
        let mut parts = vec![word(" from "), first];
        for _ in 0..[0, 0, 0, 0, 1, 1, 2][self.random.below(7)] {
            let (next, relation) = self.relation(scope, depth);
            let alone = scope[..scope.len() - 1].to_vec();
            scope.last_mut().expect("a level").push(relation.clone());
            let join = ["join", "left join", "left join", "inner join"][self.random.below(4)];
            parts.push(match self.random.below(12) {
                0 => Part::Maybe(Box::new(parts![" cross join ", next])),
                _ => {
                    let kind = ['i', 'i', 'i', 't', 'd', 'n'][self.random.below(6)];
                    let mut new = alone;
                    new.push(vec![relation]);
                    let (one, two) = (self.column(scope, kind), self.column(&new, kind));
                    let condition = match (one, two) {
                        (Some(one), Some(two)) => parts![one, " = ", two],
                        _ => self.term(scope, 'b', 1),
                    };
                    let more = self.once_in(4).then(|| parts![" and ", self.term(scope, 'b', 1)]);
                    Part::Maybe(Box::new(parts![format!(" {join} "), next, " on ", condition, maybe(more)]))
                }
            });
        }
        Part::All(parts)
    }

    fn select(&mut self, outer: &[Vec<Relation>], kinds: Option<Vec<char>>, depth: usize) -> Core {
        let mut scope = outer.to_vec();
        let from = self.from(&mut scope, depth);
        let filter = (!self.once_in(3)).then(|| parts![" where ", self.term(&scope, 'b', 2 + depth)]);
        let asked = kinds.is_some();
        let kinds = kinds.unwrap_or_else(|| {
            let count = 1 + self.random.below(4);
            self.kinds(count)
        });
        if self.once_in(4) {
            return self.grouped(&scope, parts![from, maybe(filter)], kinds);
        }
        let mut items = Vec::new();
        for kind in &kinds {
            let term = self.term(&scope, *kind, 2);
            let name = if self.once_in(6) { format!(" as {}", self.name("c")) } else { String::new() };
            items.push(parts![term, name]);
        }
        if !asked && self.once_in(10) {
            let all: Vec<char> = scope
                .last()
                .into_iter()
                .flatten()
                .flat_map(|one| &one.columns)
                .map(|(_, kind)| *kind)
                .collect();
            return Core { text: parts!["select *", from, maybe(filter)], kinds: all };
        }
        let distinct = self.once_in(6).then(|| word("distinct "));
        let text = parts!["select ", maybe(distinct), Part::List(", ", items), from, maybe(filter)];
        Core { text, kinds }
    }

    /// A query with groups: some columns that the rows are grouped by, the others aggregates.
    fn grouped(&mut self, scope: &[Vec<Relation>], from: Part, kinds: Vec<char>) -> Core {
        let (mut items, mut groups) = (Vec::new(), Vec::new());
        let only_aggregates = self.once_in(3);
        for (place, kind) in kinds.iter().enumerate() {
            let group = self.column(&scope[scope.len() - 1..], *kind);
            match group {
                Some(group) if !only_aggregates && place < 2 && !self.once_in(3) => {
                    groups.push(group.clone());
                    items.push(group);
                }
                _ => items.push(self.aggregate(scope, *kind)),
            }
        }
        let having = self.once_in(4).then(|| {
            let aggregate = self.aggregate(scope, 'i');
            parts![" having ", aggregate, format!(" > {}", self.random.below(4))]
        });
        let groups = (!groups.is_empty()).then(|| parts![" group by ", Part::List(", ", groups)]);
        let text = parts!["select ", Part::List(", ", items), from, maybe(groups), maybe(having)];
        Core { text, kinds }
    }

    fn aggregate(&mut self, scope: &[Vec<Relation>], kind: char) -> Part {
        // Now and then it is one of a query around.
        let scope = if self.once_in(12) { scope } else { &scope[scope.len() - 1..] };
        let all: Vec<_> = AGGREGATES.iter().filter(|(known, ..)| *known == kind).collect();
        if all.is_empty() {
            return crate::terms::literal(self.random, kind);
        }
        let (_, hole, template) = all[self.random.below(all.len())];
        self.filled(scope, kind, hole.encode_utf8(&mut [0; 4]), template, 1)
    }

    /// A query within an expression.
    pub fn sublink(&mut self, scope: &[Vec<Relation>], kind: char, depth: usize) -> Option<Part> {
        let simple = self.tables.iter().filter(|table| table.single().is_some()).count() > 0;
        match (kind, self.random.below(5)) {
            ('b', 0) => {
                let query = self.core(scope, Some(vec!['i']), depth.min(1));
                Some(parts!["exists (", query.text, ")"])
            }
            ('b', 1) => {
                let kind = ['i', 'i', 't', 'n', 'd'][self.random.below(5)];
                let not = if self.once_in(3) { " not" } else { "" };
                let value = self.term(scope, kind, 1);
                let query = self.core(scope, Some(vec![kind]), depth.min(1));
                Some(parts!["(", value, format!("){not} in ("), query.text, ")"])
            }
            ('b', 2) => {
                let how = ["= any", "> all", "<> all", "< any", "<= all"][self.random.below(5)];
                let (value, query) = (self.term(scope, 'i', 1), self.core(scope, Some(vec!['i']), 0));
                Some(parts!["(", value, format!(") {how} ("), query.text, ")"])
            }
            ('b', 3) => {
                let how = ["=", "<>", "<", ">="][self.random.below(4)];
                let (one, other) = (self.term(scope, 'i', 1), self.term(scope, 't', 1));
                let mut inner = scope.to_vec();
                let from = self.from(&mut inner, 0);
                let (first, second) = (self.aggregate(&inner, 'i'), self.aggregate(&inner, 't'));
                let query = parts!["(select ", first, ", ", second, from, ")"];
                Some(parts!["(", one, ", ", other, format!(") {how} "), query])
            }
            (_, 0..3) => {
                let mut inner = scope.to_vec();
                let from = self.from(&mut inner, 0);
                let filter = self.term(&inner, 'b', 1);
                let aggregate = self.aggregate(&inner, kind);
                Some(parts!["(select ", aggregate, from, maybe(Some(parts![" where ", filter])), ")"])
            }
            _ if simple => {
                let table = &self.tables[self.random.below(self.tables.len())];
                let key = table.single()?.clone();
                let name = self.name("s");
                let columns = table.columns.iter().map(|column| (column.name.clone(), column.kind)).collect();
                let relation = vec![Relation { name: name.clone(), columns }];
                let value = self.column(&[relation], kind)?;
                let by = self.term(scope, key.kind, 1);
                let text = format!(" from {} {name} where {name}.{} = ", table.name, key.name);
                Some(parts!["(select ", value, text, by, ")"])
            }
            _ => None,
        }
    }
}
