//! Functions and operators, as the registry has them.

use super::builtin::{FORM_FUNCTIONS, FormFunction};
use super::definitions::OPERATOR_CLASSES;
use super::{NULL, Row, Sight, char, int2, int4, none, numbers, oid, oid_vector, relations, text, yes};
use crate::functions::operators::OPERATORS;
use crate::functions::{self, Body, Function, Operator, Volatility, list};
use crate::types::{Datum, Oid};

#[rustfmt::skip]
relations! { PG_CATALOG:
    2600 10027 b'r' "pg_aggregate" aggregates (Nothing):
        aggfnoid! REGPROC, aggkind! CHAR, aggnumdirectargs! INT2, aggtransfn! REGPROC,
        aggfinalfn! REGPROC, aggcombinefn! REGPROC, aggserialfn! REGPROC, aggdeserialfn! REGPROC,
        aggmtransfn! REGPROC, aggminvtransfn! REGPROC, aggmfinalfn! REGPROC, aggfinalextra! BOOL,
        aggmfinalextra! BOOL, aggfinalmodify! CHAR, aggmfinalmodify! CHAR, aggsortop! OID,
        aggtranstype! OID, aggtransspace! INT4, aggmtranstype! OID, aggmtransspace! INT4,
        agginitval TEXT, aggminitval TEXT;
    2601 10015 b'r' "pg_am" access_methods (Nothing):
        oid! OID, amname! NAME, amhandler! REGPROC, amtype! CHAR;
    2602 10017 b'r' "pg_amop" none:
        oid! OID, amopfamily! OID, amoplefttype! OID, amoprighttype! OID, amopstrategy! INT2,
        amoppurpose! CHAR, amopopr! OID, amopmethod! OID, amopsortfamily! OID;
    2603 10019 b'r' "pg_amproc" none:
        oid! OID, amprocfamily! OID, amproclefttype! OID, amprocrighttype! OID, amprocnum! INT2,
        amproc! REGPROC;
    2612 10021 b'r' "pg_language" languages (Nothing):
        oid! OID, lanname! NAME, lanowner! OID, lanispl! BOOL, lanpltrusted! BOOL,
        lanplcallfoid! OID, laninline! OID, lanvalidator! OID, lanacl ACLITEM_ARRAY;
    2616 10013 b'r' "pg_opclass" operator_classes (Nothing):
        oid! OID, opcmethod! OID, opcname! NAME, opcnamespace! OID, opcowner! OID, opcfamily! OID,
        opcintype! OID, opcdefault! BOOL, opckeytype! OID;
    2617 10009 b'r' "pg_operator" operators (Nothing):
        oid! OID, oprname! NAME, oprnamespace! OID, oprowner! OID, oprkind! CHAR,
        oprcanmerge! BOOL, oprcanhash! BOOL, oprleft! OID, oprright! OID, oprresult! OID,
        oprcom! OID, oprnegate! OID, oprcode! REGPROC, oprrest! REGPROC, oprjoin! REGPROC;
    2753 10011 b'r' "pg_opfamily" operator_families (Nothing):
        oid! OID, opfmethod! OID, opfname! NAME, opfnamespace! OID, opfowner! OID;
    1255 81 b'r' "pg_proc" procedures (Nothing):
        oid! OID, proname! NAME, pronamespace! OID, proowner! OID, prolang! OID, procost! FLOAT4,
        prorows! FLOAT4, provariadic! OID, prosupport! REGPROC, prokind! CHAR, prosecdef! BOOL,
        proleakproof! BOOL, proisstrict! BOOL, proretset! BOOL, provolatile! CHAR,
        proparallel! CHAR, pronargs! INT2, pronargdefaults! INT2, prorettype! OID,
        proargtypes! OIDVECTOR, proallargtypes OID_ARRAY, proargmodes CHAR_ARRAY,
        proargnames TEXT_ARRAY, proargdefaults PG_NODE_TREE, protrftypes OID_ARRAY, prosrc! TEXT,
        probin TEXT, prosqlbody PG_NODE_TREE, proconfig TEXT_ARRAY, proacl ACLITEM_ARRAY;
}

/// What tells the rows of `pg_proc` from each other.
struct Procedure<'a> {
    oid: u32,
    name: &'a str,
    kind: u8,
    variadic: u32,
    strict: bool,
    is_set: bool,
    volatility: u8,
    optional: usize,
    result: u32,
    arguments: Vec<u32>,
}

/// `pg_proc`
fn procedures(_: &Sight<'_>) -> Vec<Row> {
    let own = list::all().map(of_registry);
    let forms = FORM_FUNCTIONS.iter().filter(|form| functions::function(form.oid).is_none()).map(of_form);
    own.chain(forms).map(|procedure| procedure_row(&procedure)).collect()
}

fn of_registry(function: &Function) -> Procedure<'_> {
    let variadic = match (function.variadic, function.arguments.last()) {
        (true, Some(&Oid::ANY)) => Oid::ANY.0,
        (true, Some(&Oid::ANY_ARRAY)) => Oid::ANY_ELEMENT.0,
        (true, Some(last)) => last.element().map_or(0, |element| element.0),
        _ => 0,
    };
    Procedure {
        oid: function.oid,
        name: function.name,
        kind: if matches!(function.body, Body::Aggregate(_)) { b'a' } else { b'f' },
        variadic,
        strict: function.strict,
        is_set: matches!(function.body, Body::Set(_)),
        volatility: match function.volatility {
            Volatility::Immutable => b'i',
            Volatility::Stable => b's',
            Volatility::Volatile => b'v',
        },
        optional: function.optional.len(),
        result: function.result.shown().0,
        arguments: function.arguments.iter().map(|oid| oid.0).collect(),
    }
}

fn of_form(form: &FormFunction) -> Procedure<'_> {
    Procedure {
        oid: form.oid,
        name: form.name,
        kind: b'f',
        variadic: 0,
        strict: form.strict,
        is_set: false,
        volatility: form.volatility,
        optional: 0,
        result: form.result,
        arguments: form.arguments.to_vec(),
    }
}

fn procedure_row(of: &Procedure<'_>) -> Row {
    vec![
        oid(of.oid),
        text(of.name),
        oid(numbers::PG_CATALOG),
        oid(numbers::OWNER),
        oid(numbers::INTERNAL),
        Datum::Float4(1.0),
        Datum::Float4(if of.is_set { 1000.0 } else { 0.0 }),
        oid(of.variadic),
        oid(0),
        char(of.kind),
        yes(false),
        yes(false),
        yes(of.strict),
        yes(of.is_set),
        char(of.volatility),
        char(b's'),
        int2(of.arguments.len()),
        int2(of.optional),
        oid(of.result),
        oid_vector(of.arguments.iter().copied()),
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
        text(if of.kind == b'a' { "aggregate_dummy" } else { of.name }),
        NULL,
        NULL,
        NULL,
        NULL,
    ]
}

/// The operator of a name between two types.
fn operator_of(name: &str, left: Oid, right: Oid) -> u32 {
    let same = |other: &&Operator| other.name == name && other.left == left && other.right == right;
    OPERATORS.iter().find(same).map_or(0, |found| found.oid)
}

/// The operator that says the same with its sides exchanged.
fn commutator(operator: &Operator) -> u32 {
    let name = match operator.name {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        "@>" => "<@",
        "<@" => "@>",
        name @ ("=" | "<>" | "+" | "*" | "&" | "|" | "#" | "&&") => name,
        _ => return 0,
    };
    if operator.left == Oid::NONE { 0 } else { operator_of(name, operator.right, operator.left) }
}

/// The operator that is true where one is false.
fn negator(operator: &Operator) -> u32 {
    let name = match operator.name {
        "=" => "<>",
        "<>" => "=",
        "<" => ">=",
        "<=" => ">",
        ">" => "<=",
        ">=" => "<",
        "~" => "!~",
        "!~" => "~",
        "~*" => "!~*",
        "!~*" => "~*",
        "~~" => "!~~",
        "!~~" => "~~",
        "~~*" => "!~~*",
        "!~~*" => "~~*",
        _ => return 0,
    };
    if operator.left == Oid::NONE { 0 } else { operator_of(name, operator.left, operator.right) }
}

/// `pg_operator`
fn operators(_: &Sight<'_>) -> Vec<Row> {
    let row = |operator: &Operator| {
        let result = functions::function(operator.function).map_or(0, |function| function.result.0);
        let is_equality = operator.name == "=";
        vec![
            oid(operator.oid),
            text(operator.name),
            oid(numbers::PG_CATALOG),
            oid(numbers::OWNER),
            char(if operator.left == Oid::NONE { b'l' } else { b'b' }),
            yes(is_equality),
            yes(is_equality),
            oid(operator.left.0),
            oid(operator.right.0),
            oid(result),
            oid(commutator(operator)),
            oid(negator(operator)),
            oid(operator.function),
            oid(0),
            oid(0),
        ]
    };
    OPERATORS.iter().map(row).collect()
}

/// `pg_aggregate`
fn aggregates(_: &Sight<'_>) -> Vec<Row> {
    let all = list::all().filter(|function| matches!(function.body, Body::Aggregate(_)));
    let row = |function: &Function| {
        let mut row = vec![oid(function.oid), char(b'n'), int2(0)];
        row.extend((0..8).map(|_| oid(0)));
        row.extend([yes(false), yes(false), char(b'r'), char(b'r'), oid(0), oid(0), int4(0), oid(0)]);
        row.extend([int4(0), NULL, NULL]);
        row
    };
    all.map(row).collect()
}

/// `pg_language`
fn languages(_: &Sight<'_>) -> Vec<Row> {
    let all = [(numbers::INTERNAL, "internal", false), (numbers::SQL, "sql", true)];
    let row = |(number, name, trusted): (u32, &'static str, bool)| {
        let owner = oid(numbers::OWNER);
        vec![oid(number), text(name), owner, yes(false), yes(trusted), oid(0), oid(0), oid(0), NULL]
    };
    all.into_iter().map(row).collect()
}

/// `pg_am`
fn access_methods(_: &Sight<'_>) -> Vec<Row> {
    // heap_tableam_handler(), bthandler()
    vec![
        vec![oid(numbers::HEAP), text("heap"), oid(3), char(b't')],
        vec![oid(numbers::BTREE), text("btree"), oid(330), char(b'i')],
    ]
}

/// `pg_opclass`
fn operator_classes(_: &Sight<'_>) -> Vec<Row> {
    let row = |(number, name, family, _, of): &(u32, &'static str, u32, &'static str, u32)| {
        vec![
            oid(*number),
            oid(numbers::BTREE),
            text(*name),
            oid(numbers::PG_CATALOG),
            oid(numbers::OWNER),
            oid(*family),
            oid(*of),
            yes(true),
            oid(0),
        ]
    };
    OPERATOR_CLASSES.iter().map(row).collect()
}

/// `pg_opfamily`
fn operator_families(_: &Sight<'_>) -> Vec<Row> {
    let mut families: Vec<(u32, &'static str)> =
        OPERATOR_CLASSES.iter().map(|(_, _, family, name, _)| (*family, *name)).collect();
    families.sort_unstable();
    families.dedup();
    let row = |(family, name): (u32, &'static str)| {
        vec![oid(family), oid(numbers::BTREE), text(name), oid(numbers::PG_CATALOG), oid(numbers::OWNER)]
    };
    families.into_iter().map(row).collect()
}
