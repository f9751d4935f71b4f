//! Protocols and timestamp schemes as values of flags.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use plimsoll_page::{help, svg};
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

/// The colours of series, each named by a pair of protocol and scheme (`occ/dst`) or by a scheme. A
/// scheme has the same colour on every page. A further pair with the same scheme, and a name
/// without a scheme, get a colour that no scheme has.
pub fn series<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
    /// Grey.
    const YARDSTICK: usize = 7;
    let colour = |scheme: Scheme| match scheme {
        Scheme::Rc => YARDSTICK,
        scheme => scheme as usize,
    };
    let mut others = (0..svg::COLOURS)
        .filter(|&series| Scheme::ALL.iter().all(|&scheme| colour(scheme) != series))
        .cycle();
    let mut series = Vec::new();
    for name in names {
        let named = Scheme::ALL.into_iter().find(|scheme| name.rsplit('/').next() == Some(scheme.name()));
        let own = named.map(colour).filter(|own| !series.contains(own));
        series.extend(own.or_else(|| others.next()));
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_has_one_colour_wherever_it_stands() {
        assert_eq!(series(["occ/rc", "occ/dst"]), [7, 0]);
        assert_eq!(series(["dst", "gts", "rc"]), [0, 1, 7]);
        let several = series(["occ/dst", "two_pl/dst", "rococo/dst", "occ/vts", "other"]);
        assert_eq!((several[0], several[3]), (0, 2));
        let mut different = several.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), several.len(), "{several:?}");
    }
}
