//! Plans as lines of text: what `EXPLAIN` shows.

use super::Query;
use super::plan::{Combine, Direction, Equal, Expr, Plan, Question, Reading, Scan};
use super::write::Kind;
use crate::functions::operators;
use crate::types::{self, Datum, Oid, Style};

/// A plan as lines of text. They have no numbers of rows, because plans are made without estimates.
pub fn lines(query: &Query, style: &Style) -> Vec<String> {
    let mut text = Text { lines: Vec::new(), style };
    match &query.write {
        None => drop(text.plan(&query.plan, 0, &[])),
        Some(write) => {
            let verb = match write.kind {
                Kind::Insert(_) => "Insert",
                Kind::Update => "Update",
                Kind::Delete => "Delete",
            };
            text.head(0, &format!("{verb} on {}", write.table.name));
            text.plan(&query.plan, 1, &[]);
        }
    }
    text.lines
}

/// How deep queries in expressions are shown.
const INDENT: usize = 6;

struct Text<'a> {
    lines: Vec<String>,
    style: &'a Style,
}

/// Names of the columns of rows: those of a plan, and of rows around it from the inside out.
type Names<'a> = &'a [Vec<String>];

impl Text<'_> {
    fn head(&mut self, depth: usize, what: &str) {
        let line = match depth {
            0 => what.to_owned(),
            depth => format!("{}->  {what}", " ".repeat(INDENT * (depth - 1) + 2)),
        };
        self.lines.push(line);
    }

    fn detail(&mut self, depth: usize, label: &str, what: &str) {
        let indent = " ".repeat(INDENT * depth + 2);
        self.lines.push(format!("{indent}{label}: {what}"));
    }

    /// Writes a plan. Returns the names of its columns.
    fn plan(&mut self, plan: &Plan, depth: usize, around: Names<'_>) -> Vec<String> {
        match plan {
            Plan::Scan(scan) => self.scan(scan, depth, around, None),
            Plan::Filter { input, condition } => match &**input {
                Plan::Scan(scan) => self.scan(scan, depth, around, Some(condition)),
                input => {
                    let at = self.lines.len();
                    let columns = self.plan(input, depth, around);
                    let shown = self.within(&columns, around, condition);
                    // Behind the head of what it filters, and before what that is made of.
                    let below = at + 1;
                    let indent = " ".repeat(INDENT * depth + 2);
                    self.lines.insert(below.min(self.lines.len()), format!("{indent}Filter: {shown}"));
                    columns
                }
            },
            Plan::Values(rows) => {
                let width = rows.first().map_or(0, Vec::len);
                self.head(depth, if rows.len() > 1 { "Values Scan" } else { "Result" });
                (1..=width).map(|number| format!("column{number}")).collect()
            }
            Plan::Catalog(reading) => self.reading(reading, depth, around),
            Plan::Function { call, ordinality, fields } => {
                let name = match call {
                    Expr::Call { function, .. } => function.name,
                    _ => "expression",
                };
                self.head(depth, &format!("Function Scan on {name}"));
                let ordinal = ordinality.then(|| "ordinality".to_owned());
                let columns = std::iter::repeat_n(name.to_owned(), fields.unwrap_or(1));
                columns.chain(ordinal).collect()
            }
            Plan::Recursive { base, step, .. } => {
                self.head(depth, "Recursive Union");
                let names = self.plan(base, depth + 1, around);
                self.plan(step, depth + 1, around);
                names
            }
            Plan::Working { width, .. } => {
                self.head(depth, "WorkTable Scan");
                (1..=*width).map(|number| format!("column{number}")).collect()
            }
            Plan::Numbered { input, .. } => {
                self.head(depth, "WindowAgg");
                let mut names = self.plan(input, depth + 1, around);
                names.push("row_number()".to_owned());
                names
            }
            Plan::Project { input, columns } => {
                let names = self.plan(input, depth, around);
                columns.iter().map(|column| self.within(&names, around, column)).collect()
            }
            Plan::Sets { input, sets } => {
                self.head(depth, "ProjectSet");
                let mut names = self.plan(input, depth + 1, around);
                let sets: Vec<String> = sets.iter().map(|set| self.within(&names, around, set)).collect();
                names.extend(sets);
                names
            }
            Plan::Join { left, right, condition, outer, keys, .. } => {
                self.head(
                    depth,
                    match (keys.is_empty(), outer) {
                        (true, false) => "Nested Loop",
                        (true, true) => "Nested Loop Left Join",
                        (false, false) => "Hash Join",
                        (false, true) => "Hash Left Join",
                    },
                );
                let at = self.lines.len();
                let mut names = self.plan(left, depth + 1, around);
                let seen = [&[names.clone()], around].concat();
                let of_right = self.plan(right, depth + 1, &seen);
                let indent = " ".repeat(INDENT * depth + 2);
                let equal = keys.iter().map(|(outer, inner)| {
                    let outer = self.within(&names, around, outer);
                    format!("({outer} = {})", self.within(&of_right, around, inner))
                });
                let equal: Vec<String> = equal.collect();
                names.extend(of_right);
                if !equal.is_empty() {
                    self.lines.insert(at, format!("{indent}Hash Cond: {}", equal.join(" AND ")));
                }
                if let Some(condition) = condition {
                    let shown = self.within(&names, around, condition);
                    self.lines.insert(at, format!("{indent}Join Filter: {shown}"));
                }
                names
            }
            Plan::Group { input, keys, aggregates } => {
                self.head(depth, if keys.is_empty() { "Aggregate" } else { "HashAggregate" });
                let at = self.lines.len();
                let names = self.plan(input, depth + 1, around);
                let keys: Vec<String> = keys.iter().map(|key| self.within(&names, around, key)).collect();
                if !keys.is_empty() {
                    let indent = " ".repeat(INDENT * depth + 2);
                    self.lines.insert(at, format!("{indent}Group Key: {}", keys.join(", ")));
                }
                let made = aggregates.iter().map(|aggregate| {
                    let of: Vec<String> = aggregate
                        .arguments
                        .iter()
                        .map(|argument| self.within(&names, around, argument))
                        .collect();
                    let of = if of.is_empty() { "*".to_owned() } else { of.join(", ") };
                    format!("{}({of})", aggregate.function.name)
                });
                let made: Vec<String> = made.collect();
                keys.into_iter().chain(made).collect()
            }
            Plan::Sort { input, keys } => {
                self.head(depth, "Sort");
                let at = self.lines.len();
                let names = self.plan(input, depth + 1, around);
                let keys: Vec<String> = keys.iter().map(|key| order(key, &names)).collect();
                let indent = " ".repeat(INDENT * depth + 2);
                self.lines.insert(at, format!("{indent}Sort Key: {}", keys.join(", ")));
                names
            }
            Plan::Distinct { input, .. } => {
                self.head(depth, "Unique");
                self.plan(input, depth + 1, around)
            }
            Plan::Lock { input, .. } => {
                self.head(depth, "LockRows");
                self.plan(input, depth + 1, around)
            }
            Plan::Limit { input, .. } => {
                self.head(depth, "Limit");
                self.plan(input, depth + 1, around)
            }
            Plan::Combined { left, right, how, all } => {
                let how = match how {
                    Combine::Union => "Append",
                    Combine::Intersect => "SetOp Intersect",
                    Combine::Except => "SetOp Except",
                };
                self.head(depth, &format!("{how}{}", if *all && how != "Append" { " All" } else { "" }));
                let names = self.plan(left, depth + 1, around);
                self.plan(right, depth + 1, around);
                names
            }
        }
    }

    fn reading(&mut self, reading: &Reading, depth: usize, around: Names<'_>) -> Vec<String> {
        let relation = reading.relation;
        self.head(depth, &format!("Seq Scan on {}", relation.name));
        let names: Vec<String> = relation.fields.iter().map(|field| field.name.to_owned()).collect();
        if let Some((column, value)) = &reading.equal {
            let shown = self.within(&[], around, value);
            let name = names.get(*column).map_or("", String::as_str);
            self.detail(depth, "Cond", &format!("({name} = {shown})"));
        }
        names
    }

    fn scan(&mut self, scan: &Scan, depth: usize, around: Names<'_>, filter: Option<&Expr>) -> Vec<String> {
        let (table, access) = (&scan.table, &scan.access);
        let mut names: Vec<String> = table.live().map(|(_, column)| column.name.clone()).collect();
        if scan.with_key {
            names.push("ctid".to_owned());
        }
        let index = access.index.and_then(|place| table.indexes.get(place));
        let is_all = access.equal.is_empty() && access.low.is_none() && access.high.is_none();
        let backward = if scan.reverse { " Backward" } else { "" };
        match index {
            None if is_all && !scan.reverse => self.head(depth, &format!("Seq Scan on {}", table.name)),
            index => {
                let name = index.map_or(&table.primary_name, |index| &index.name);
                self.head(depth, &format!("Index Scan{backward} using {name} on {}", table.name));
            }
        }
        if !is_all {
            let columns: Vec<u16> = match index {
                None => table.primary.clone(),
                Some(index) => index.parts.iter().map(|part| part.column).collect(),
            };
            let name = |at: usize| {
                let column = columns.get(at).and_then(|position| table.columns.get(usize::from(*position)));
                column.map_or("?", |column| column.name.as_str())
            };
            let value = |expr: &Expr| self.within(&[], around, expr);
            let mut conditions = Vec::new();
            for (at, equal) in access.equal.iter().enumerate() {
                conditions.push(match equal {
                    Equal::One(expr) => format!("({} = {})", name(at), value(expr)),
                    Equal::Of(array) => format!("({} = ANY ({}))", name(at), value(array)),
                    Equal::Any(exprs) => {
                        let exprs: Vec<String> = exprs.iter().map(value).collect();
                        format!("({} = ANY ({}))", name(at), exprs.join(", "))
                    }
                });
            }
            for (bound, strict, inclusive) in [(&access.low, ">", ">="), (&access.high, "<", "<=")] {
                if let Some((expr, is_inclusive)) = bound {
                    let operator = if *is_inclusive { inclusive } else { strict };
                    conditions.push(format!("({} {operator} {})", name(access.equal.len()), value(expr)));
                }
            }
            self.detail(depth, "Index Cond", &conditions.join(" AND "));
        }
        if let Some(filter) = filter {
            let shown = self.within(&names, around, filter);
            self.detail(depth, "Filter", &shown);
        }
        names
    }

    /// An expression over a row with these columns.
    fn within(&self, columns: &[String], around: Names<'_>, expr: &Expr) -> String {
        let levels = [&[columns.to_vec()], around].concat();
        self.expr(expr, &levels)
    }

    fn expr(&self, expr: &Expr, levels: Names<'_>) -> String {
        let shown = |expr: &Expr| self.expr(expr, levels);
        let list = |exprs: &[Expr]| exprs.iter().map(shown).collect::<Vec<_>>();
        match expr {
            Expr::Constant(value) => self.constant(value),
            Expr::Parameter(place) => format!("${}", place + 1),
            Expr::Column { level, place } => {
                let name = levels.get(*level).and_then(|names| names.get(*place));
                name.cloned().unwrap_or_else(|| format!("column {}", place + 1))
            }
            Expr::Call { function, arguments, .. } => {
                let arguments = list(arguments);
                match (operators::symbol(function.oid), arguments.as_slice()) {
                    (Some(symbol), [left, right]) => format!("({left} {symbol} {right})"),
                    (Some(symbol), [only]) => format!("({symbol} {only})"),
                    _ => format!("{}({})", function.name, arguments.join(", ")),
                }
            }
            Expr::And(items) => format!("({})", list(items).join(" AND ")),
            Expr::Or(items) => format!("({})", list(items).join(" OR ")),
            Expr::Not(value) => format!("(NOT {})", shown(value)),
            Expr::IsNull(value) => format!("({} IS NULL)", shown(value)),
            Expr::IsNotNull(value) => format!("({} IS NOT NULL)", shown(value)),
            Expr::Coalesce(items) => format!("COALESCE({})", list(items).join(", ")),
            Expr::Array { items, .. } => format!("ARRAY[{}]", list(items).join(", ")),
            Expr::Row(items) => {
                format!("ROW({})", items.iter().map(|(_, item)| shown(item)).collect::<Vec<_>>().join(", "))
            }
            Expr::Ordered(tests) => {
                let side = |place: usize| {
                    let field = |(test, _): &(Expr, _)| test.parts().get(place).copied().map(shown);
                    tests.iter().filter_map(field).collect::<Vec<_>>().join(", ")
                };
                let symbol = match tests.first() {
                    Some((Expr::Call { function, .. }, _)) => operators::symbol(function.oid),
                    _ => None,
                };
                format!("(ROW({}) {} ROW({}))", side(0), symbol.unwrap_or("?"), side(1))
            }
            Expr::Quantified { test, array, all } => {
                let (left, symbol) = match &**test {
                    Expr::Call { function, arguments, .. } => (
                        arguments.first().map(shown).unwrap_or_default(),
                        operators::symbol(function.oid).unwrap_or("?"),
                    ),
                    _ => (shown(test), "?"),
                };
                format!("({left} {symbol} {} ({}))", if *all { "ALL" } else { "ANY" }, shown(array))
            }
            Expr::Read { text: value, oid, .. } | Expr::Fit { value, oid, .. } => {
                format!("({})::{}", shown(value), oid.display())
            }
            Expr::Print { value, .. } => format!("({})::text", shown(value)),
            Expr::Subquery(subquery) => match subquery.question {
                Question::Exists => "EXISTS(SubPlan)".to_owned(),
                Question::Value => "(SubPlan)".to_owned(),
                Question::Array(_) => "ARRAY(SubPlan)".to_owned(),
                Question::Test { .. } => "(hashed SubPlan)".to_owned(),
            },
            Expr::With { test, .. } => shown(test),
            Expr::CaseValue => "value".to_owned(),
            Expr::Case { .. } => "CASE".to_owned(),
            Expr::Clock { oid, .. } => format!("now()::{}", oid.display()),
            Expr::Aggregate { .. }
            | Expr::Set(_)
            | Expr::Window(_)
            | Expr::Field { .. }
            | Expr::IsTruth { .. }
            | Expr::Distinct { .. }
            | Expr::NullIf(_)
            | Expr::Extreme { .. }
            | Expr::Subscript { .. }
            | Expr::Each { .. } => {
                let parts: Vec<String> = expr.parts().into_iter().map(shown).collect();
                format!("({})", parts.join(", "))
            }
        }
    }

    fn constant(&self, value: &Datum) -> String {
        let oid = match value {
            Datum::Null => return "NULL".to_owned(),
            Datum::Bool(_) => Oid::BOOL,
            Datum::Int2(_) => Oid::INT2,
            Datum::Int4(_) => Oid::INT4,
            Datum::Int8(_) => Oid::INT8,
            Datum::Float8(_) => Oid::FLOAT8,
            Datum::Numeric(_) => Oid::NUMERIC,
            Datum::Text(_) => Oid::TEXT,
            Datum::Bpchar(_) => Oid::BPCHAR,
            Datum::Date(_) => Oid::DATE,
            Datum::Timestamp(_) => Oid::TIMESTAMP,
            Datum::TimestampTz(_) => Oid::TIMESTAMPTZ,
            Datum::Uuid(_) => Oid::UUID,
            _ => return "'...'".to_owned(),
        };
        let mut text = String::new();
        if types::print(value, oid, self.style, &mut text).is_err() {
            return "'...'".to_owned();
        }
        match oid {
            Oid::BOOL => (if text == "t" { "true" } else { "false" }).to_owned(),
            Oid::INT2 | Oid::INT4 | Oid::INT8 | Oid::FLOAT8 | Oid::NUMERIC if !text.starts_with('-') => text,
            // With its name `character` it would have a length of one.
            Oid::BPCHAR => format!("'{}'::bpchar", text.replace('\'', "''")),
            _ => format!("'{}'::{}", text.replace('\'', "''"), oid.display()),
        }
    }
}

fn order((place, direction): &(usize, Direction), names: &[String]) -> String {
    let name = names.get(*place).map_or("?", String::as_str);
    let down = if direction.descending { " DESC" } else { "" };
    let nulls = match (direction.descending, direction.nulls_first) {
        (false, true) => " NULLS FIRST",
        (true, false) => " NULLS LAST",
        _ => "",
    };
    format!("{name}{down}{nulls}")
}
