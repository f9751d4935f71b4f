//! Names: of types as statements write them, and of results as PostgreSQL calls them.

use pg_query::NodeEnum;
use pg_query::protobuf::{Node, SubLinkType, TypeName, a_const};

use super::{Analyzer, unsupported};
use crate::types::time::span::range;
use crate::types::{Oid, numeric};
use crate::{SqlError, SqlState};

/// The strings of a list of names.
pub fn strings(nodes: &[Node]) -> Vec<&str> {
    nodes.iter().filter_map(string_of).collect()
}

/// A name as a text has it, with its schema, which is empty if there is none.
pub fn qualified(text: &str) -> Result<(String, String), SqlError> {
    let invalid = || SqlError::new(SqlState::INVALID_NAME, "invalid name syntax");
    let mut names = Vec::new();
    let mut rest = text.trim();
    loop {
        let (name, after) = match rest.strip_prefix('"') {
            Some(mut inner) => {
                let mut name = String::new();
                loop {
                    let (part, after) = inner.split_once('"').ok_or_else(invalid)?;
                    name.push_str(part);
                    match after.strip_prefix('"') {
                        Some(more) => {
                            name.push('"');
                            inner = more;
                        }
                        None => break (name, after),
                    }
                }
            }
            None => {
                let is_end = |it: char| !(it.is_alphanumeric() || it == '_' || it == '$');
                let end = rest.find(is_end).unwrap_or(rest.len());
                let (name, after) = rest.split_at_checked(end).ok_or_else(invalid)?;
                (name.to_lowercase(), after)
            }
        };
        if name.is_empty() {
            return Err(invalid());
        }
        names.push(name);
        match after.trim_start() {
            "" => break,
            after => rest = after.strip_prefix('.').ok_or_else(invalid)?.trim_start(),
        }
    }
    let name = names.pop().ok_or_else(invalid)?;
    Ok((names.pop().unwrap_or_default(), name))
}

fn string_of(node: &Node) -> Option<&str> {
    match &node.node {
        Some(NodeEnum::String(string)) => Some(&string.sval),
        _ => None,
    }
}

/// The text of an option's value.
pub fn text_of(node: &Node) -> Option<String> {
    match &node.node {
        Some(NodeEnum::String(string)) => Some(string.sval.clone()),
        Some(NodeEnum::Boolean(value)) => Some(value.boolval.to_string()),
        Some(NodeEnum::Integer(value)) => Some(value.ival.to_string()),
        _ => None,
    }
}

/// The number of an integer constant.
fn integer_of(node: &Node) -> Option<i32> {
    match &node.node {
        Some(NodeEnum::AConst(constant)) => match &constant.val {
            Some(a_const::Val::Ival(value)) => Some(value.ival),
            // 0 is what is left out on the way.
            None if !constant.isnull => Some(0),
            _ => None,
        },
        Some(NodeEnum::Integer(value)) => Some(value.ival),
        _ => None,
    }
}

impl Analyzer<'_> {
    /// The type of a name, and its modifier.
    pub fn type_name(&self, name: &TypeName) -> Result<(Oid, i32), SqlError> {
        let parts = strings(&name.names);
        let (schema, base) = match parts.as_slice() {
            [base] => ("pg_catalog", *base),
            [schema, base] => (*schema, *base),
            _ => return Err(unsupported("a type of another database")),
        };
        if schema != "pg_catalog" {
            return self.refuse(
                name.location,
                SqlState::UNDEFINED_OBJECT,
                format!("type \"{schema}.{base}\" does not exist"),
            );
        }
        let Some(oid) = Oid::named(base)
            .filter(|oid| !matches!(*oid, Oid::INET | Oid::ACLITEM))
            .filter(|oid| oid.category() != b'P' || matches!(*oid, Oid::RECORD | Oid::VOID))
        else {
            if KNOWN_ELSEWHERE.contains(&base) {
                return Err(self.at(name.location, unsupported(&format!("type {base}"))));
            }
            return self.refuse(
                name.location,
                SqlState::UNDEFINED_OBJECT,
                format!("type \"{base}\" does not exist"),
            );
        };
        let modifier = self.modifier(oid, name)?;
        if name.array_bounds.is_empty() {
            return Ok((oid, modifier));
        }
        let array = oid.array().ok_or_else(|| {
            self.at(
                name.location,
                SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{base}[]\" does not exist")),
            )
        })?;
        Ok((array, modifier))
    }

    fn modifier(&self, oid: Oid, name: &TypeName) -> Result<i32, SqlError> {
        let numbers: Option<Vec<i32>> = name.typmods.iter().map(integer_of).collect();
        let invalid =
            |message: String| self.refuse(name.location, SqlState::INVALID_PARAMETER_VALUE, message);
        let Some(numbers) = numbers else {
            return invalid("type modifiers must be simple constants or identifiers".to_owned());
        };
        if numbers.is_empty() {
            return Ok(-1);
        }
        match (oid, numbers.as_slice()) {
            (Oid::VARCHAR | Oid::BPCHAR, [length]) => {
                let shown = if oid == Oid::VARCHAR { "varchar" } else { "char" };
                if *length < 1 {
                    return invalid(format!("length for type {shown} must be at least 1"));
                }
                if *length > 10_485_760 {
                    return invalid(format!("length for type {shown} cannot exceed 10485760"));
                }
                Ok(length + 4)
            }
            (Oid::NUMERIC, [precision]) => self.numeric_modifier(*precision, 0, name),
            (Oid::NUMERIC, [precision, scale]) => self.numeric_modifier(*precision, *scale, name),
            (Oid::TIME | Oid::TIMETZ | Oid::TIMESTAMP | Oid::TIMESTAMPTZ, [digits]) => {
                let word = if matches!(oid, Oid::TIME | Oid::TIMETZ) { "TIME" } else { "TIMESTAMP" };
                let zone = if matches!(oid, Oid::TIMETZ | Oid::TIMESTAMPTZ) { " WITH TIME ZONE" } else { "" };
                if *digits < 0 {
                    return invalid(format!("{word}({digits}){zone} precision must not be negative"));
                }
                Ok((*digits).min(6))
            }
            (Oid::INTERVAL, [kept]) => Ok(kept << 16 | 0xffff),
            (Oid::INTERVAL, [kept, digits]) => {
                if *digits < 0 {
                    return invalid(format!("INTERVAL({digits}) precision must not be negative"));
                }
                Ok((kept & range::FULL) << 16 | (*digits).min(6))
            }
            (Oid::VARCHAR | Oid::BPCHAR | Oid::NUMERIC | Oid::INTERVAL, _) => {
                let shown = if oid == Oid::NUMERIC {
                    "invalid NUMERIC type modifier"
                } else {
                    "invalid type modifier"
                };
                invalid(shown.to_owned())
            }
            _ => self.refuse(
                name.location,
                SqlState::SYNTAX_ERROR,
                format!("type modifier is not allowed for type \"{}\"", oid.catalog_name()),
            ),
        }
    }

    fn numeric_modifier(&self, precision: i32, scale: i32, name: &TypeName) -> Result<i32, SqlError> {
        let max = numeric::DISPLAY_SCALE_MAX;
        if !(1..=max).contains(&precision) {
            return self.refuse(
                name.location,
                SqlState::INVALID_PARAMETER_VALUE,
                format!("NUMERIC precision {precision} must be between 1 and {max}"),
            );
        }
        if !(-max..=max).contains(&scale) {
            return self.refuse(
                name.location,
                SqlState::INVALID_PARAMETER_VALUE,
                format!("NUMERIC scale {scale} must be between -{max} and {max}"),
            );
        }
        Ok((precision << 16 | scale & 0x7ff) + 4)
    }
}

/// Types of PostgreSQL that are not here yet: their use is refused otherwise than a misspelt name.
const KNOWN_ELSEWHERE: &[&str] = &[
    "bit",
    "varbit",
    "inet",
    "cidr",
    "aclitem",
    "macaddr",
    "macaddr8",
    "money",
    "xml",
    "point",
    "line",
    "lseg",
    "box",
    "path",
    "polygon",
    "circle",
    "tsvector",
    "tsquery",
    "int4range",
    "int8range",
    "numrange",
    "tsrange",
    "tstzrange",
    "daterange",
    "jsonpath",
    "pg_lsn",
    "xid8",
    "tid",
    "txid_snapshot",
    "refcursor",
];

/// The name of a result, and how much it says: nothing (0), something that a type's name would say
/// better than (1), or just that (2).
fn result_name(node: &Node) -> (Option<String>, u8) {
    let last = |nodes: &[Node]| strings(nodes).last().map(|name| (*name).to_owned());
    let fixed = |name: &str| (Some(name.to_owned()), 2);
    match &node.node {
        Some(NodeEnum::ColumnRef(column)) => match last(&column.fields) {
            Some(name) => (Some(name), 2),
            None => (None, 0),
        },
        Some(NodeEnum::AIndirection(indirection)) => match last(&indirection.indirection) {
            Some(name) => (Some(name), 2),
            None => indirection.arg.as_deref().map_or((None, 0), result_name),
        },
        Some(NodeEnum::FuncCall(call)) => (last(&call.funcname), 2),
        Some(NodeEnum::AExpr(expr)) if expr.kind() == pg_query::protobuf::AExprKind::AexprNullif => {
            fixed("nullif")
        }
        Some(NodeEnum::TypeCast(cast)) => {
            let inner = cast.arg.as_deref().map_or((None, 0), result_name);
            if inner.1 > 1 {
                return inner;
            }
            match cast.type_name.as_ref().and_then(|name| last(&name.names)) {
                Some(name) => (Some(name), 1),
                None => inner,
            }
        }
        Some(NodeEnum::CollateClause(collate)) => collate.arg.as_deref().map_or((None, 0), result_name),
        Some(NodeEnum::GroupingFunc(_)) => fixed("grouping"),
        Some(NodeEnum::SubLink(link)) => match link.sub_link_type() {
            SubLinkType::ExistsSublink => fixed("exists"),
            SubLinkType::ArraySublink => fixed("array"),
            SubLinkType::ExprSublink => {
                let target = match link.subselect.as_ref().and_then(|node| node.node.as_ref()) {
                    Some(NodeEnum::SelectStmt(select)) => first_target(select),
                    _ => None,
                };
                match target {
                    Some(name) => (Some(name), 2),
                    None => (None, 0),
                }
            }
            _ => (None, 0),
        },
        Some(NodeEnum::CaseExpr(case)) => {
            let inner = case.defresult.as_deref().map_or((None, 0), result_name);
            if inner.1 > 1 { inner } else { (Some("case".to_owned()), 1) }
        }
        Some(NodeEnum::AArrayExpr(_)) => fixed("array"),
        Some(NodeEnum::RowExpr(_)) => fixed("row"),
        Some(NodeEnum::CoalesceExpr(_)) => fixed("coalesce"),
        Some(NodeEnum::MinMaxExpr(extreme)) => match extreme.op() {
            pg_query::protobuf::MinMaxOp::IsLeast => fixed("least"),
            _ => fixed("greatest"),
        },
        Some(NodeEnum::SqlvalueFunction(value)) => {
            use pg_query::protobuf::SqlValueFunctionOp as Op;
            fixed(match value.op() {
                Op::SvfopCurrentDate => "current_date",
                Op::SvfopCurrentTime | Op::SvfopCurrentTimeN => "current_time",
                Op::SvfopCurrentTimestamp | Op::SvfopCurrentTimestampN => "current_timestamp",
                Op::SvfopLocaltime | Op::SvfopLocaltimeN => "localtime",
                Op::SvfopLocaltimestamp | Op::SvfopLocaltimestampN => "localtimestamp",
                Op::SvfopCurrentRole => "current_role",
                Op::SvfopCurrentUser => "current_user",
                Op::SvfopUser => "user",
                Op::SvfopSessionUser => "session_user",
                Op::SvfopCurrentCatalog => "current_catalog",
                Op::SvfopCurrentSchema => "current_schema",
                Op::SqlvalueFunctionOpUndefined => "?column?",
            })
        }
        _ => (None, 0),
    }
}

/// The name of a query's first result.
fn first_target(select: &pg_query::protobuf::SelectStmt) -> Option<String> {
    let mut select = select;
    while let Some(left) = &select.larg {
        select = left;
    }
    if !select.values_lists.is_empty() {
        return Some("column1".to_owned());
    }
    match &select.target_list.first()?.node {
        Some(NodeEnum::ResTarget(target)) if !target.name.is_empty() => Some(target.name.clone()),
        Some(NodeEnum::ResTarget(target)) => target.val.as_deref().and_then(|value| result_name(value).0),
        _ => None,
    }
}

/// The name of a result that has none of its own.
pub fn column_name(node: &Node) -> String {
    result_name(node).0.unwrap_or_else(|| "?column?".to_owned())
}

/// The name of a function in `FROM`, if it is to be named after it.
pub fn function_name(node: &Node) -> Option<String> {
    result_name(node).0
}
