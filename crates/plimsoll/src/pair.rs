//! Protocols and timestamp schemes by name, and which go together.
//!
//! Everything else is generic over the type of a shard's node; here names become types. A new protocol or scheme is a
//! variant, a line of [`LEGAL_PAIRS`] and an arm of [`with_node`](crate::with_node) for each pair.

use std::fmt;

use clap::ValueEnum;
use plimsoll_txn::timestamp::{ReadOnly, Scheme as _};

/// The concurrency-control protocols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Protocol {
    /// Optimistic: read freely, lock what is written at commit, validate what was read.
    #[default]
    Occ,
    /// Two-phase locking: lock everything before touching it.
    TwoPl,
    /// Client-driven two-phase commit: check, lock and vote in one message to each shard (dst and none only).
    #[value(name = "client_2pc")]
    Client2pc,
    /// Reorder instead of abort: pieces start, and execute in the order in which they met (dst and none only).
    Rococo,
}

/// The timestamp schemes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Scheme {
    /// Decentralized scalar timestamps: snapshots without an oracle; readers never abort.
    #[default]
    Dst,
    /// A global counter: an oracle numbers every commit; readers see its stable prefix.
    Gts,
    /// A vector of counters, kept by an oracle; readers see its stable part.
    Vts,
    /// Read committed, NOT serializable: the yardstick, readers for whom nothing is done.
    Rc,
    /// No timestamps: readers are validated or locked like all other transactions.
    None,
}

/// A protocol with a timestamp scheme: [`Pair::default`] is `occ/dst`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// The protocol.
    pub protocol: Protocol,
    /// The scheme.
    pub scheme: Scheme,
}

/// The protocols and the timestamp schemes that each can run with. Their order is that of the help.
pub const LEGAL_PAIRS: [Pair; 14] = {
    use Protocol::{Client2pc, Occ, Rococo, TwoPl};
    use Scheme::{Dst, Gts, None, Rc, Vts};
    [
        Pair { protocol: Occ, scheme: Dst },
        Pair { protocol: Occ, scheme: Gts },
        Pair { protocol: Occ, scheme: Vts },
        Pair { protocol: Occ, scheme: Rc },
        Pair { protocol: Occ, scheme: None },
        Pair { protocol: TwoPl, scheme: Dst },
        Pair { protocol: TwoPl, scheme: Gts },
        Pair { protocol: TwoPl, scheme: Vts },
        Pair { protocol: TwoPl, scheme: Rc },
        Pair { protocol: TwoPl, scheme: None },
        Pair { protocol: Client2pc, scheme: Dst },
        Pair { protocol: Client2pc, scheme: None },
        Pair { protocol: Rococo, scheme: Dst },
        Pair { protocol: Rococo, scheme: None },
    ]
};

/// An expression in which a name stands for the type that a shard runs under a legal pair.
///
/// ```
/// use plimsoll::{Pair, with_node};
/// use plimsoll_txn::protocol::Protocol;
///
/// assert_eq!(with_node!(Pair::default(), Node => <Node as Protocol>::NAME), "occ");
/// ```
#[macro_export]
macro_rules! with_node {
    ($pair:expr, $Node:ident => $body:expr) => {{
        use ::plimsoll_txn::protocols::{Client2pc, Occ, Rococo, TwoPl};
        use ::plimsoll_txn::timestamps::{Dst, Gts, NoTimestamps, Rc, Vts};
        use $crate::{Protocol as ByName, Scheme};
        macro_rules! with {
            ($type:ty) => {{
                type $Node = $type;
                $body
            }};
        }
        let pair: $crate::Pair = $pair;
        match (pair.protocol, pair.scheme) {
            (ByName::Occ, Scheme::Dst) => with!(Occ<Dst>),
            (ByName::Occ, Scheme::Gts) => with!(Occ<Gts>),
            (ByName::Occ, Scheme::Vts) => with!(Occ<Vts>),
            (ByName::Occ, Scheme::Rc) => with!(Occ<Rc>),
            (ByName::Occ, Scheme::None) => with!(Occ<NoTimestamps>),
            (ByName::TwoPl, Scheme::Dst) => with!(TwoPl<Dst>),
            (ByName::TwoPl, Scheme::Gts) => with!(TwoPl<Gts>),
            (ByName::TwoPl, Scheme::Vts) => with!(TwoPl<Vts>),
            (ByName::TwoPl, Scheme::Rc) => with!(TwoPl<Rc>),
            (ByName::TwoPl, Scheme::None) => with!(TwoPl<NoTimestamps>),
            (ByName::Client2pc, Scheme::Dst) => with!(Client2pc<Dst>),
            (ByName::Client2pc, Scheme::None) => with!(Client2pc<NoTimestamps>),
            (ByName::Rococo, Scheme::Dst) => with!(Rococo<Dst>),
            (ByName::Rococo, Scheme::None) => with!(Rococo<NoTimestamps>),
            (ByName::Client2pc | ByName::Rococo, Scheme::Gts | Scheme::Vts | Scheme::Rc) => {
                unreachable!("{pair} was refused when it was named")
            }
        }
    }};
}

/// Why there is no such pair: a sentence with those that there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PairError(String);

impl fmt::Display for PairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PairError {}

impl Protocol {
    /// Its name, wherever it is named.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Occ => "occ",
            Protocol::TwoPl => "two_pl",
            Protocol::Client2pc => "client_2pc",
            Protocol::Rococo => "rococo",
        }
    }

    /// The protocol of this name.
    pub fn named(text: &str) -> Result<Protocol, PairError> {
        let unknown = |_| format!("there is no protocol `{text}`: the protocols are {}", all::<Protocol>());
        Protocol::from_str(text, false).map_err(unknown).map_err(PairError)
    }
}

impl Scheme {
    /// Its name, wherever it is named.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Dst => "dst",
            Scheme::Gts => "gts",
            Scheme::Vts => "vts",
            Scheme::Rc => "rc",
            Scheme::None => "none",
        }
    }

    /// The scheme of this name.
    pub fn named(text: &str) -> Result<Scheme, PairError> {
        let unknown = |_| format!("there is no scheme `{text}`: the schemes are {}", all::<Scheme>());
        Scheme::from_str(text, false).map_err(unknown).map_err(PairError)
    }
}

impl Pair {
    /// The pair itself if it is on the list, and runs transactions whose operations come one by one.
    pub fn interactive(self) -> Result<Pair, PairError> {
        let pair = self.legal(&LEGAL_PAIRS)?;
        if !with_node!(pair, Node => <Node as plimsoll_txn::protocol::Protocol>::INTERACTIVE) {
            return Err(PairError(format!(
                "{self} runs whole procedures, whose pieces are known before they execute, and not transactions whose \
                 operations come one by one: choose occ, two_pl or client_2pc"
            )));
        }
        Ok(pair)
    }

    /// Reads `occ/dst`.
    pub fn parse(text: &str) -> Result<Pair, PairError> {
        let Some((protocol, scheme)) = text.split_once('/') else {
            let what = format!("`{text}` is not a pair: write protocol/scheme, such as occ/dst");
            return Err(PairError(what));
        };
        Ok(Pair { protocol: Protocol::named(protocol)?, scheme: Scheme::named(scheme)? })
    }

    /// The pair itself if it is on the list.
    pub fn legal(self, legal: &[Pair]) -> Result<Pair, PairError> {
        if legal.contains(&self) {
            return Ok(self);
        }
        let pairs: Vec<String> = legal.iter().map(Pair::to_string).collect();
        Err(PairError(format!("{self} is not a legal pair: choose one of {}", pairs.join(", "))))
    }

    /// Whether all its transactions are serializable.
    pub fn serializable(self) -> bool {
        with_node!(self, Node => <Node as plimsoll_txn::protocol::Protocol>::Scheme::SERIALIZABLE)
    }

    /// Whether it needs a timestamp oracle.
    pub fn has_oracle(self) -> bool {
        with_node!(self, Node => <Node as plimsoll_txn::protocol::Protocol>::Scheme::ORACLE)
    }

    /// Whether there are snapshots that do not change while they are read.
    pub fn has_snapshots(self) -> bool {
        let read_only =
            with_node!(self, Node => <Node as plimsoll_txn::protocol::Protocol>::Scheme::READ_ONLY);
        read_only == ReadOnly::Snapshot && self.serializable()
    }

    /// Whether a snapshot may begin in the past: its timestamps are times.
    pub fn has_staleness(self) -> bool {
        with_node!(self, Node => <Node as plimsoll_txn::protocol::Protocol>::Scheme::WAITS)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.protocol, self.scheme)
    }
}

/// `a, b and c`.
fn all<T: ValueEnum>() -> String {
    let values = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_types_are_the_same_list() {
        for pair in LEGAL_PAIRS {
            let (protocol, scheme) = with_node!(pair, Node => {
                (<Node as plimsoll_txn::protocol::Protocol>::NAME, <Node as plimsoll_txn::protocol::Protocol>::Scheme::NAME)
            });
            assert_eq!(pair.to_string(), format!("{protocol}/{scheme}"));
            assert_eq!(Pair::parse(&pair.to_string()), Ok(pair));
        }
    }

    #[test]
    fn what_a_scheme_can_do_is_known_by_its_name() {
        let with = |property: fn(Pair) -> bool| -> Vec<&str> {
            let occ = LEGAL_PAIRS.into_iter().filter(|pair| pair.protocol == Protocol::Occ);
            occ.filter(|&pair| property(pair)).map(|pair| pair.scheme.name()).collect()
        };
        assert_eq!(with(Pair::serializable), ["dst", "gts", "vts", "none"]);
        assert_eq!(with(Pair::has_oracle), ["gts", "vts"]);
        assert_eq!(with(Pair::has_snapshots), ["dst", "gts", "vts"]);
        assert_eq!(with(Pair::has_staleness), ["dst"]);
    }
}
