//! All functions: identifier, name, argument types, result, and what stands behind them.
//!
//! The lines are `pg_proc` as PostgreSQL 15 has it. A line says `strict` if a NULL among the
//! arguments makes the result NULL, `variadic` if the last argument may come as many, and ends with
//! the values of arguments that may be left out.

macro_rules! functions {
    ($group:ident: $($oid:literal $name:literal ($($argument:ident)*) $result:ident,
        $strict:ident $volatility:ident $($variadic:ident)?, $body:expr $(, $optional:expr)?;)*) => {
        pub(super) static $group: &[Function] = &[$(Function {
            oid: $oid,
            name: $name,
            arguments: &[$(Oid::$argument),*],
            result: Oid::$result,
            strict: functions!(@is $strict),
            volatility: functions!(@is $volatility),
            variadic: false $(|| functions!(@is $variadic))?,
            optional: functions!(@optional $($optional)?),
            body: $body,
        }),*];
    };
    (@optional) => { &[] };
    (@optional $values:expr) => { &$values };
    (@is strict) => { true };
    (@is nullable) => { false };
    (@is variadic) => { true };
    (@is immutable) => { Volatility::Immutable };
    (@is stable) => { Volatility::Stable };
    (@is volatile) => { Volatility::Volatile };
}

mod aggregates;
mod catalog;
mod comparisons;
mod moments;
mod numbers;
mod others;
mod strings;

use super::Function;

/// All functions, in no order.
pub fn all() -> impl Iterator<Item = &'static Function> {
    [
        comparisons::ORDER,
        numbers::INTEGERS,
        numbers::FLOATS,
        numbers::NUMERICS,
        numbers::CONVERT,
        strings::STRINGS,
        strings::BYTES,
        strings::PATTERNS,
        moments::DATES,
        moments::FORMATS,
        others::ARRAYS,
        others::SETS,
        others::SEQUENCES,
        others::SYSTEM,
        aggregates::AGGREGATES,
        catalog::CATALOG,
    ]
    .into_iter()
    .flatten()
}

/// Whether a function looks at the catalog.
pub fn reads_catalog(function: &Function) -> bool {
    catalog::CATALOG.iter().any(|known| known.oid == function.oid)
}
