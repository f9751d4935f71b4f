//! Protocols and timestamp schemes as values of flags.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use plimsoll_page::help;
use plimsoll_txn::pairs::{Protocol, Scheme};

/// Reads the name of a protocol.
pub fn protocol() -> impl TypedValueParser<Value = Protocol> {
    one_of(&Protocol::ALL, Protocol::name, Protocol::about)
}

/// Reads the name of a timestamp scheme.
pub fn scheme() -> impl TypedValueParser<Value = Scheme> {
    one_of(&Scheme::ALL, Scheme::name, Scheme::about)
}

/// Reads the name of one of `all`; the help has what each is about.
fn one_of<T: Copy + Send + Sync>(
    all: &'static [T],
    name: fn(T) -> &'static str,
    about: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let values = all.iter().map(|&value| PossibleValue::new(name(value)).help(about(value)));
    PossibleValuesParser::new(values).map(move |chosen| {
        let value = all.iter().find(|&&value| name(value) == chosen);
        *value.expect("the parser lets known names pass")
    })
}

/// One line for each scheme, with what it does.
pub fn schemes_explained() -> String {
    help::meanings(Scheme::ALL.map(|scheme| (scheme.name(), scheme.about())), 10)
}
