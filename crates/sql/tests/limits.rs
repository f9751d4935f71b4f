//! What a client can ask for without end is refused in the end, and never ends the program: nesting
//! (a shard's stack has 2 MiB), memory, and what a single function would do.

mod beside;

use pg_query::NodeEnum;
use pg_query::protobuf::{
    AConst, AExpr, AExprKind, CaseExpr, CaseWhen, Integer, Node, ResTarget, RowExpr, SelectStmt,
    SetOperation, SubLink, SubLinkType, a_const,
};

use plimsoll_sql::analyze::{Catalog, Query, analyze};
use plimsoll_sql::catalog::Relation;
use plimsoll_sql::execute::fuel::Fuel;
use plimsoll_sql::execute::{Context, Run, Step};
use plimsoll_sql::types::{Datum, Style};
use plimsoll_sql::{SqlError, SqlState};

struct Nothing;

impl Catalog for Nothing {
    fn setting(&self, _name: &str) -> Option<String> {
        None
    }

    fn set(&self, _name: &str, value: &str, _local: bool) -> Result<String, SqlError> {
        Ok(value.to_owned())
    }

    fn user(&self) -> &str {
        ""
    }

    fn database(&self) -> &str {
        ""
    }

    fn relation(&self, _schema: &str, _name: &str) -> Result<Option<Relation>, SqlError> {
        Ok(None)
    }
}

/// How many rows a statement has, or the error.
fn count(tree: &Node) -> Result<usize, SqlError> {
    let query = analyze(tree, "", &[], &Nothing)?;
    let (style, fuel) = (Style::default(), Fuel::new(1 << 10));
    let context = Context {
        catalog: &Nothing,
        style: &style,
        transaction_us: 0,
        statement_us: 0,
        clock: &|| 0,
        random: &|| 0,
        backend: 0,
        fuel: &fuel,
        volatile: &std::cell::Cell::new(false),
    };
    let mut run = query.start(Vec::<Datum>::new());
    let mut rows = 0;
    loop {
        match run.next(&query, &context)? {
            Step::Row(_) => rows += 1,
            Step::Pause => fuel.refill(),
            Step::Fetch(_) | Step::Reserve(_) | Step::Ask(_) => {
                unreachable!("there are no tables and sequences")
            }
            Step::End => return Ok(rows),
        }
    }
}

fn node(node: NodeEnum) -> Node {
    Node { node: Some(node) }
}

fn one() -> Node {
    node(NodeEnum::AConst(AConst { val: Some(a_const::Val::Ival(Integer { ival: 1 })), ..AConst::default() }))
}

fn select(expr: Node) -> SelectStmt {
    let target = ResTarget { val: Some(Box::new(expr)), ..ResTarget::default() };
    SelectStmt { target_list: vec![node(NodeEnum::ResTarget(Box::new(target)))], ..SelectStmt::default() }
}

/// `1 - (1 - ...)` is made without the grammar, which has a limit of its own.
fn operator(inner: Node) -> Node {
    let name = pg_query::protobuf::String { sval: "-".to_owned() };
    node(NodeEnum::AExpr(Box::new(AExpr {
        kind: AExprKind::AexprOp.into(),
        name: vec![node(NodeEnum::String(name))],
        lexpr: Some(Box::new(one())),
        rexpr: Some(Box::new(inner)),
        ..AExpr::default()
    })))
}

fn subquery(inner: Node) -> Node {
    node(NodeEnum::SubLink(Box::new(SubLink {
        sub_link_type: SubLinkType::ExprSublink.into(),
        subselect: Some(Box::new(node(NodeEnum::SelectStmt(Box::new(select(inner)))))),
        ..SubLink::default()
    })))
}

fn case(inner: Node) -> Node {
    let when = CaseWhen {
        expr: Some(Box::new(node(NodeEnum::AConst(AConst { isnull: true, ..AConst::default() })))),
        result: Some(Box::new(one())),
        ..CaseWhen::default()
    };
    node(NodeEnum::CaseExpr(Box::new(CaseExpr {
        args: vec![node(NodeEnum::CaseWhen(Box::new(when)))],
        defresult: Some(Box::new(inner)),
        ..CaseExpr::default()
    })))
}

/// `NULL BETWEEN SYMMETRIC inner AND NULL`, in which the bounds occur twice.
fn between(inner: Node) -> Node {
    let null = node(NodeEnum::AConst(AConst { isnull: true, ..AConst::default() }));
    let list = pg_query::protobuf::List { items: vec![inner, null] };
    let name = pg_query::protobuf::String { sval: "BETWEEN SYMMETRIC".to_owned() };
    node(NodeEnum::AExpr(Box::new(AExpr {
        kind: AExprKind::AexprBetweenSym.into(),
        name: vec![node(NodeEnum::String(name))],
        lexpr: Some(Box::new(node(NodeEnum::AConst(AConst { isnull: true, ..AConst::default() })))),
        rexpr: Some(Box::new(node(NodeEnum::List(list)))),
        ..AExpr::default()
    })))
}

/// `(inner, true) IN ((true, true), (true, true))`
fn row(inner: Node) -> Node {
    let value = || {
        let val = Some(a_const::Val::Boolval(pg_query::protobuf::Boolean { boolval: true }));
        node(NodeEnum::AConst(AConst { val, ..AConst::default() }))
    };
    let row = |first: Node| {
        let args = vec![first, value()];
        node(NodeEnum::RowExpr(Box::new(RowExpr { args, ..RowExpr::default() })))
    };
    let list = pg_query::protobuf::List { items: vec![row(value()), row(value())] };
    let name = pg_query::protobuf::String { sval: "=".to_owned() };
    node(NodeEnum::AExpr(Box::new(AExpr {
        kind: AExprKind::AexprIn.into(),
        name: vec![node(NodeEnum::String(name))],
        lexpr: Some(Box::new(row(inner))),
        rexpr: Some(Box::new(node(NodeEnum::List(list)))),
        ..AExpr::default()
    })))
}

fn nested(levels: usize, around: fn(Node) -> Node) -> Node {
    let expr = (0..levels).fold(one(), |inner, _| around(inner));
    node(NodeEnum::SelectStmt(Box::new(select(expr))))
}

fn unions(levels: usize) -> Node {
    let mut all = select(one());
    for _ in 0..levels {
        all = SelectStmt {
            op: SetOperation::SetopUnion.into(),
            larg: Some(Box::new(all)),
            rarg: Some(Box::new(select(one()))),
            ..SelectStmt::default()
        };
    }
    node(NodeEnum::SelectStmt(Box::new(all)))
}

fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(test).expect("a thread");
    thread.join().expect("the test");
}

#[test]
fn nesting_is_evaluated_up_to_a_level_and_refused_beyond() {
    on_a_small_stack(|| {
        type Shape = fn(usize) -> Node;
        let shapes: [(&str, Shape); 4] = [
            ("operators", |levels| nested(levels, operator)),
            ("cases", |levels| nested(levels, case)),
            ("subqueries", |levels| nested(levels, subquery)),
            ("unions", unions),
        ];
        for (name, shape) in shapes {
            let mut refused = false;
            for levels in (1..=1200).step_by(13) {
                match count(&shape(levels)) {
                    Ok(rows) => assert!(rows == 1 && !refused, "{levels} {name}"),
                    Err(error) => {
                        assert_eq!(error.state, SqlState::STATEMENT_TOO_COMPLEX, "{levels} {name}");
                        refused = true;
                    }
                }
            }
            assert!(refused, "{name}");
            assert_eq!(count(&shape(60)).ok(), Some(1), "{name}");
        }
    });
}

#[test]
fn what_doubles_at_every_level_is_refused() {
    on_a_small_stack(|| {
        let null = || node(NodeEnum::AConst(AConst { isnull: true, ..AConst::default() }));
        let of = |levels: usize, around: fn(Node) -> Node| {
            let expr = (0..levels).fold(around(null()), |inner, _| around(inner));
            count(&node(NodeEnum::SelectStmt(Box::new(select(expr)))))
        };
        for around in [between, row] {
            assert_eq!(of(4, around).ok(), Some(1));
            assert_eq!(of(60, around).expect_err("too much").state, SqlState::STATEMENT_TOO_COMPLEX);
        }
    });
}

#[test]
fn memory_is_refused_beyond_a_limit() {
    let text = "select x, repeat('x', 100) from generate_series(1, 10000000) x order by x desc";
    let parsed = pg_query::parse(text, pg_query::ParserOptions::default()).expect("a tree");
    let statement = parsed.protobuf.stmts[0].stmt.as_deref().expect("a statement");
    assert_eq!(count(statement).expect_err("too much").state, SqlState::OUT_OF_MEMORY);
}

#[test]
fn queries_and_their_runs_move_between_threads() {
    fn moves<T: Send>() {}
    moves::<Query>();
    moves::<Run>();
}

/// Statements beyond a bound, each with the state and the beginning of the message that it is
/// refused with, and statements that come near it and are answered.
const BOUNDS: &[(&str, &str, &str)] = &[
    (
        "select repeat('ab', 4194305)",
        "54000 requested length too large",
        "select length(repeat('a', 8388608))",
    ),
    ("select lpad('a', 8388609)", "54000 requested length too large", "select length(lpad('a', 8388608))"),
    (
        "select lpad('a', 3000000, '€')",
        "54000 requested length too large",
        "select length(lpad('a', 2500000, '€'))",
    ),
    (
        "select upper(a || a) from (select repeat('a', 5000000) a) s",
        "54000 requested length too large",
        "select length(upper(a || a)) from (select repeat('a', 2000000) a) s",
    ),
    (
        "select length(string_agg(repeat('x', 1000000), '')) from generate_series(1, 9)",
        "54000 requested length too large",
        "select length(string_agg(repeat('x', 1000000), '')) from generate_series(1, 8)",
    ),
    (
        "select array_fill(1, array[1048577])",
        "54000 array size exceeds the maximum allowed (1048576)",
        "select array_length(array_fill(1, array[500000]), 1)",
    ),
    (
        "select array_fill(repeat('x', 1000), array[100000])",
        "54000 requested length too large",
        "select cardinality(array_fill(repeat('x', 1000), array[5000]))",
    ),
    (
        "select string_to_array(repeat(',', 1048576), ',')",
        "54000 array size exceeds the maximum allowed (1048576)",
        "select cardinality(string_to_array(repeat(',', 100000), ','))",
    ),
    (
        "select ('{' || repeat('1,', 1048576) || '1}')::int[]",
        "54000 array size exceeds the maximum allowed (1048576)",
        "select cardinality(('{' || repeat('1,', 100000) || '1}')::int[])",
    ),
    (
        "select to_char(1, repeat('9', 8193))",
        "54000 format template is too long",
        "select length(to_char(1, repeat('9', 8192)))",
    ),
    (
        "select repeat('a', 20000) like '%' || repeat('a', 10000) || 'b'",
        "54000 LIKE would take too long",
        "select repeat('a', 2000) like '%' || repeat('a', 1000) || 'b'",
    ),
    (
        "select div(repeat('9', 131000)::numeric, repeat('7', 65000)::numeric)",
        "54000 numeric computation would take too long",
        "select length(div(repeat('9', 20000)::numeric, repeat('7', 10000)::numeric)::text)",
    ),
    (
        "select sqrt(repeat('9', 40000)::numeric)",
        "54000 numeric computation would take too long",
        "select length(sqrt(repeat('9', 4000)::numeric)::text)",
    ),
    (
        "select exp(5000::numeric)",
        "54000 numeric computation would take too long",
        "select length(exp(1000::numeric)::text)",
    ),
    (
        "select power(1.5, 700000)",
        "54000 numeric computation would take too long",
        "select length(power(1.5, 70000)::text)",
    ),
    (
        "select gcd(repeat('9', 6000)::numeric, repeat('7', 6000)::numeric)",
        "54000 numeric computation would take too long",
        "select gcd(repeat('9', 600)::numeric, repeat('7', 600)::numeric)",
    ),
    (
        "select repeat('9', 100000)::numeric * repeat('9', 100000)::numeric",
        "22003 value overflows numeric format",
        "select length((repeat('9', 60000)::numeric * repeat('9', 60000)::numeric)::text)",
    ),
    (
        "select factorial(32178)",
        "22003 value overflows numeric format",
        "select length(factorial(32177)::text)",
    ),
    (
        "select repeat('a', 40) ~ '(a*)*\\1b'",
        "2201B regular expression failed",
        "select repeat('a', 4) ~ '(a*)*\\1b'",
    ),
    (
        "select repeat('a', 1000000) ~ 'a{200}b'",
        "2201B regular expression failed",
        "select repeat('a', 10000) ~ 'a{200}b'",
    ),
];

#[test]
fn what_a_function_would_take_long_for_is_refused() {
    for (beyond, refusal, within) in BOUNDS {
        let (refused, answered) = (beside::ours(beyond).to_string(), beside::ours(within));
        assert!(refused.starts_with(refusal), "{beyond}: {refused}");
        assert!(matches!(answered, beside::Outcome::Rows(..)), "{within}: {answered}");
    }
}

#[test]
fn functions_of_a_row_that_owe_too_much_are_refused() {
    let lengths = |count: usize| {
        let lengths = vec!["length(repeat('x', 8000000 + x))"; count].join(", ");
        beside::paused(&format!("select {lengths} from generate_series(1, 1) x"), 256).0
    };
    assert!(matches!(lengths(3), beside::Outcome::Rows(..)));
    let refused = lengths(100).to_string();
    assert!(refused.starts_with("54001 statement too complex at None DETAIL The functions"), "{refused}");
}

#[test]
fn constants_that_take_long_are_left_to_the_run() {
    let text = format!("select {}", vec!["length(factorial(20000)::text)"; 60].join(", "));
    let (outcome, _) = beside::paused(&text, 256);
    assert!(matches!(outcome, beside::Outcome::Rows(..)), "{outcome}");
}
