//! Random tables with indexes, statements that write to them, and queries that may use an index.

mod kinds;

use kinds::{KINDS, Kind};

/// Numbers from a seed (splitmix64).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or(0) % bound.max(1)
    }

    /// Whether something happens that happens so often of a hundred times.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of some.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A column of an index.
#[derive(Clone)]
struct Part {
    column: usize,
    order: &'static str,
}

/// Rows of a large table: rows are read and written 256 at a time.
const MANY: usize = 300;

const ORDERS: &[&str] =
    &["", "", " desc", " nulls first", " desc nulls last", " asc nulls last", " desc nulls first"];

/// An index of the table `x`.
#[derive(Clone)]
struct Index {
    name: String,
    unique: bool,
    parts: Vec<Part>,
}

/// A table, which is called `x` with indexes and `p` without. The column 0 is `id`.
pub struct Table {
    kinds: Vec<usize>,
    primary: Vec<usize>,
    indexes: Vec<Index>,
    made: usize,
}

/// How rows of a query are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// In any order.
    Any,
    /// In the order in which they come.
    Given,
}

fn order(random: &mut Random) -> &'static str {
    ORDERS[random.below(ORDERS.len())]
}

fn column(place: usize) -> String {
    if place == 0 { "id".to_owned() } else { format!("c{place}") }
}

impl Table {
    /// A table of some columns.
    pub fn new(random: &mut Random) -> Table {
        let mut kinds = vec![1];
        kinds.extend((0..3 + random.below(3)).map(|_| random.below(KINDS.len())));
        let mut table = Table { kinds, primary: vec![0], indexes: Vec::new(), made: 0 };
        if random.percent(40) {
            table.primary.insert(random.below(2), 1 + random.below(table.kinds.len() - 1));
        }
        if random.percent(10) {
            table.primary.clear();
        }
        for _ in 0..1 + random.below(4) {
            table.add_index(random);
        }
        table
    }

    fn add_index(&mut self, random: &mut Random) {
        let mut parts: Vec<Part> = Vec::new();
        for _ in 0..1 + random.below(3) {
            let column = random.below(self.kinds.len());
            if parts.iter().all(|part| part.column != column) {
                parts.push(Part { column, order: order(random) });
            }
        }
        self.made += 1;
        self.indexes.push(Index { name: format!("x{}", self.made), unique: random.percent(35), parts });
    }

    fn columns(&self, places: &[usize]) -> String {
        places.iter().map(|place| column(*place)).collect::<Vec<_>>().join(", ")
    }

    /// The statements that make both.
    pub fn create(&self, random: &mut Random) -> Vec<String> {
        let columns: Vec<String> = (self.kinds.iter().enumerate())
            .map(|(place, kind)| {
                let not_null = if place > 0 && random.percent(15) { " not null" } else { "" };
                format!("{} {}{not_null}", column(place), KINDS[*kind].name)
            })
            .collect();
        let columns = columns.join(", ");
        let mut all = vec!["drop table if exists x".to_owned(), "drop table if exists p".to_owned()];
        all.push(match self.primary.is_empty() {
            true => format!("create table x ({columns})"),
            false => format!("create table x ({columns}, primary key ({}))", self.columns(&self.primary)),
        });
        all.push(format!("create table p ({})", columns.replace(" not null", "")));
        let (before, after): (Vec<&Index>, Vec<&Index>) = self.indexes.iter().partition(|it| it.unique);
        all.extend(before.into_iter().map(create_index));
        if random.percent(20) {
            all.push(self.many());
        }
        all.extend(after.into_iter().map(create_index));
        all
    }

    /// A statement that makes more rows than are read or written at a time.
    fn many(&self) -> String {
        let values = self.kinds.iter().enumerate().map(|(place, kind)| {
            let Kind { name, values, .. } = &KINDS[*kind];
            match place {
                0 => "g".to_owned(),
                _ if name.ends_with(']') => format!("'{}'::{name}", values[0]),
                _ => {
                    let list: Vec<String> = values.iter().map(|value| format!("'{value}'")).collect();
                    let (list, count) = (list.join(", "), values.len() + 1);
                    format!("(array[{list}]::{name}[])[1 + (g * {place} + g / 7) % {count}]")
                }
            }
        });
        let values = values.collect::<Vec<_>>().join(", ");
        format!("insert into x select {values} from generate_series(1, {MANY}) g on conflict do nothing")
    }

    /// Orders that read all entries of each index.
    pub fn readings(&self) -> Vec<(String, Order)> {
        let all = (0..self.kinds.len()).collect::<Vec<_>>();
        let mut readings = Vec::new();
        for index in &self.indexes {
            let keys: Vec<usize> = index.parts.iter().map(|part| part.column).collect();
            let order = order_by(&index.parts);
            readings.push((format!("select {} from x {order} limit 9999", self.columns(&all)), Order::Any));
            readings
                .push((format!("select {} from x {order} limit 9999", self.columns(&keys)), Order::Given));
        }
        readings
    }

    /// A value for a column as a statement has it.
    fn literal(&self, place: usize, random: &mut Random) -> String {
        if random.percent(10) {
            return "null".to_owned();
        }
        let kind = &KINDS[self.kinds[place]];
        let value = match place {
            0 => (1 + random.below(40)).to_string(),
            _ => (*random.one(kind.values)).to_owned(),
        };
        let cast = match () {
            () if random.percent(30) => return format!("'{value}'"),
            () if random.percent(25) && !kind.alike.is_empty() => *random.one(kind.alike),
            () => kind.name,
        };
        format!("'{value}'::{cast}")
    }

    /// What a column of the table of this name is tested for.
    fn condition(&self, table: &str, depth: usize, random: &mut Random) -> String {
        if depth > 0 && random.percent(60) {
            let (left, right) =
                (self.condition(table, depth - 1, random), self.condition(table, depth - 1, random));
            return match random.below(10) {
                0..6 => format!("{left} and {right}"),
                6..9 => format!("({left} or {right})"),
                _ => format!("not ({left} and {right})"),
            };
        }
        let place = self.likely(random);
        let name = format!("{table}{}", column(place));
        let mut value = || self.literal(place, random);
        let [one, two, three] = [value(), value(), value()];
        match random.below(16) {
            0..4 => format!("{name} = {one}"),
            4 => format!("{two} {} {name}", random.one(&["<", "<=", "=", ">=", ">"])),
            5..8 => format!("{name} {} {one}", random.one(&["<", "<=", ">=", ">", "<>"])),
            8 => format!("{name} > {one} and {name} <= {two}"),
            9 => format!("{name} between {one} and {two}"),
            10 => format!("{name} in ({one}, {two}, {three})"),
            11 => format!("({name} = {one} or {name} = {two})"),
            12 => format!("{name} {}", random.one(&["is null", "is not null"])),
            13 if place == 0 => {
                let ids: Vec<String> = (0..MANY + 20).map(|_| random.below(MANY + 50).to_string()).collect();
                format!("{name} = any ('{{{}}}')", ids.join(","))
            }
            13 if !KINDS[self.kinds[place]].name.ends_with(']') => {
                let kind = KINDS[self.kinds[place]].name;
                format!("{name} = any (array[{one}, {two}, {three}, {one}]::{kind}[])")
            }
            14 => {
                let other = self.likely(random);
                let (second, value) = (column(other), self.literal(other, random));
                let sign = random.one(&["=", "<", ">=", ">"]);
                format!("({name}, {table}{second}) {sign} ({one}, {value})")
            }
            _ => format!("{name} is not distinct from {one}"),
        }
    }

    /// A column, one of an index more often than not.
    fn likely(&self, random: &mut Random) -> usize {
        if random.percent(75) && !self.indexes.is_empty() {
            let index = random.one(&self.indexes);
            return random.one(&index.parts).column;
        }
        random.below(self.kinds.len())
    }

    /// Columns to sort by, those of an index more often than not.
    fn sorting(&self, random: &mut Random) -> Vec<Part> {
        let mut parts: Vec<Part> = match random.percent(70) && !self.indexes.is_empty() {
            true => random.one(&self.indexes).parts.clone(),
            false => vec![Part { column: self.likely(random), order: order(random) }],
        };
        parts.truncate(1 + random.below(3));
        match random.below(4) {
            0 => parts.iter_mut().for_each(|part| part.order = order(random)),
            1 => parts.iter_mut().for_each(|part| part.order = turned(part.order)),
            2 => parts.push(Part { column: random.below(self.kinds.len()), order: "" }),
            _ => {}
        }
        parts
    }

    /// A query over `{t}`, and how its rows are compared.
    pub fn query(&self, random: &mut Random) -> (String, Order) {
        let depth = random.below(3);
        let condition = self.condition("", depth, random);
        let filter = if random.percent(75) { format!("where {condition}") } else { String::new() };
        let all = (0..self.kinds.len()).collect::<Vec<_>>();
        let parts = self.sorting(random);
        let (sorting, order) = (parts.iter().map(|part| part.column).collect::<Vec<_>>(), order_by(&parts));
        let sorting = self.columns(&sorting);
        let (n, m) = (1 + random.below(12), random.below(4));
        match random.below(14) {
            0..3 => (format!("select {} from {{t}} {filter}", self.columns(&all)), Order::Any),
            3..5 => {
                (format!("select {sorting} from {{t}} {filter} {order} limit {n} offset {m}"), Order::Given)
            }
            5 => (format!("select {sorting} from {{t}} {filter} {order}"), Order::Given),
            6 => {
                let ties = format!("offset {m} fetch first {n} rows with ties");
                (format!("select {sorting} from {{t}} {filter} {order} {ties}"), Order::Given)
            }
            7 => {
                let query = format!("select distinct on ({sorting}) {sorting} from {{t}} {filter} {order}");
                (format!("{query} limit {n}"), Order::Given)
            }
            8 => {
                let (one, two) = (column(self.comparable(random)), column(self.comparable(random)));
                let kind = random.one(&["min", "max"]);
                (
                    format!(
                        "select {kind}({one}), count(*), (select max({two}) from {{t}}) from {{t}} {filter}"
                    ),
                    Order::Any,
                )
            }
            9 => {
                let kind = random.one(&["min", "max"]);
                (
                    format!("select {kind}({}) from {{t}} {filter}", column(self.comparable(random))),
                    Order::Any,
                )
            }
            10..12 => self.join(random),
            _ => self.nested(random),
        }
    }

    /// A column that has a least value.
    fn comparable(&self, random: &mut Random) -> usize {
        let refused = ["bytea", "bool", "uuid", "name"];
        let place = self.likely(random);
        if refused.contains(&KINDS[self.kinds[place]].name) { 0 } else { place }
    }

    fn join(&self, random: &mut Random) -> (String, Order) {
        let kind = *random.one(&["join", "join", "left join", "left join", "right join", "full join"]);
        let key = self.likely(random);
        let same = column(key);
        let (of_a, of_b) = (self.condition("a.", 0, random), self.condition("b.", 0, random));
        let mut on = format!("b.{same} = a.{same}");
        if random.percent(40) && kind != "full join" {
            on = format!("{on} and {}", if random.percent(70) { &of_b } else { &of_a });
        }
        let filter = match random.below(4) {
            0 => format!("where {of_a}"),
            1 => format!("where {of_b}"),
            2 => format!("where {of_a} and {of_b}"),
            _ => String::new(),
        };
        let third = match random.percent(25) {
            true => format!("left join {{t}} c on c.{same} = b.{same} and c.id < a.id"),
            false => String::new(),
        };
        let ids = if third.is_empty() { "a.id, b.id" } else { "a.id, b.id, c.id" };
        (format!("select {ids}, a.{same} from {{t}} a {kind} {{t}} b on {on} {third} {filter}"), Order::Any)
    }

    fn nested(&self, random: &mut Random) -> (String, Order) {
        let (same, other) = (column(self.likely(random)), column(self.comparable(random)));
        let (of_a, of_b) = (self.condition("a.", 1, random), self.condition("b.", 1, random));
        let query = match random.below(6) {
            0 => format!(
                "select id from {{t}} a where exists (select from {{t}} b where b.{same} = a.{same} and {of_b})"
            ),
            1 => format!(
                "select id, (select max(b.{other}) from {{t}} b where b.{same} = a.{same}) from {{t}} a where {of_a}"
            ),
            2 => format!(
                "select id from {{t}} a where {same} in (select b.{same} from {{t}} b where {of_b}) and {of_a}"
            ),
            3 => format!(
                "select a.id, l.id from {{t}} a, lateral (select b.id from {{t}} b where b.{same} = a.{same} and {of_b}) l"
            ),
            4 => format!(
                "select id, (select count(*) from {{t}} b join {{t}} c on c.id = b.id where b.{same} = a.{same}) from {{t}} a where {of_a}"
            ),
            _ => format!("select {same}, count(*) from {{t}} a where {of_a} group by {same}"),
        };
        (query, Order::Any)
    }

    /// A statement that writes to `x`.
    pub fn write(&mut self, random: &mut Random) -> String {
        match random.below(20) {
            0..9 => self.insert(random),
            9..14 => {
                let place = random.below(self.kinds.len());
                let condition = match place {
                    0 => format!("id = {}", 1 + random.below(40)),
                    _ => self.condition("", 1, random),
                };
                let value = match place {
                    0 => format!("id + {}", random.below(30)),
                    _ => self.literal(place, random),
                };
                format!("update x set {} = {value} where {condition} returning *", column(place))
            }
            14..17 => format!("delete from x where {} returning *", self.condition("", 1, random)),
            17 => {
                let (place, same) = (1 + random.below(self.kinds.len() - 1), column(self.likely(random)));
                let value = self.literal(place, random);
                let condition = self.condition("b.", 0, random);
                format!(
                    "update x a set {} = {value} from x b where b.{same} = a.{same} and {condition}",
                    column(place)
                )
            }
            18 => {
                let (same, condition) = (column(self.likely(random)), self.condition("b.", 0, random));
                format!("delete from x a using x b where b.{same} = a.{same} and a.id < b.id and {condition}")
            }
            _ if random.percent(50) && self.indexes.len() > 1 => {
                let index = self.indexes.swap_remove(random.below(self.indexes.len()));
                format!("drop index {}", index.name)
            }
            _ => {
                self.add_index(random);
                self.indexes.last().map(create_index).unwrap_or_default()
            }
        }
    }

    fn insert(&self, random: &mut Random) -> String {
        let rows: Vec<String> = (0..1 + random.below(6))
            .map(|_| {
                let values = (0..self.kinds.len()).map(|place| match place {
                    0 => (1 + random.below(40)).to_string(),
                    _ => self.literal(place, random),
                });
                format!("({})", values.collect::<Vec<_>>().join(", "))
            })
            .collect();
        let mut unique: Vec<Vec<usize>> = vec![self.primary.clone()];
        let indexes = self.indexes.iter().filter(|index| index.unique);
        unique.extend(indexes.map(|index| index.parts.iter().map(|part| part.column).collect()));
        let target = self.columns(random.one::<Vec<usize>>(&unique));
        let place = random.below(self.kinds.len());
        let (name, value) = (column(place), self.literal(place, random));
        let conflict = match random.below(8) {
            0..3 => "on conflict do nothing".to_owned(),
            3 if !target.is_empty() => format!("on conflict ({target}) do nothing"),
            4 if !target.is_empty() => {
                format!("on conflict ({target}) do update set {name} = excluded.{name}")
            }
            5 if !target.is_empty() => {
                format!("on conflict ({target}) do update set {name} = {value} where x.id > excluded.id - 10")
            }
            _ => String::new(),
        };
        format!("insert into x values {} {conflict} returning *", rows.join(", "))
    }

    /// Takes back that an index was made or dropped.
    pub fn reset_indexes(&mut self, other: &Table) {
        self.indexes.clone_from(&other.indexes);
    }

    /// The same table, to come back to.
    pub fn remembered(&self) -> Table {
        Table {
            kinds: self.kinds.clone(),
            primary: self.primary.clone(),
            indexes: self.indexes.clone(),
            made: self.made,
        }
    }
}

fn create_index(index: &Index) -> String {
    let parts: Vec<String> =
        index.parts.iter().map(|part| format!("{}{}", column(part.column), part.order)).collect();
    let unique = if index.unique { "unique " } else { "" };
    format!("create {unique}index {} on x ({})", index.name, parts.join(", "))
}

fn order_by(parts: &[Part]) -> String {
    let parts: Vec<String> =
        parts.iter().map(|part| format!("{}{}", column(part.column), part.order)).collect();
    format!("order by {}", parts.join(", "))
}

/// The opposite order.
fn turned(order: &str) -> &'static str {
    match order {
        " desc" | " desc nulls first" => "",
        " nulls first" => " desc nulls last",
        " desc nulls last" => " nulls first",
        _ => " desc",
    }
}
