//! Statements as trees that know how they may be made smaller.

use std::fmt;

/// A piece of a statement.
#[derive(Clone)]
pub enum Part {
    /// Text as it is.
    Word(String),
    /// Pieces, one after the other.
    All(Vec<Part>),
    /// A piece that a statement can do without.
    Maybe(Box<Part>),
    /// Items with a separator, of which one has to stay.
    List(&'static str, Vec<Part>),
    /// An expression of a kind, for which any expression of that kind within it can stand.
    Of(char, Box<Part>),
    /// An `ORDER BY` that leaves no two rows in either order, unless they are the same.
    Total(Box<Part>),
}

/// Text as it is.
pub fn word(text: impl Into<String>) -> Part {
    Part::Word(text.into())
}

/// A piece that a statement can do without, if it is there.
pub fn maybe(part: Option<Part>) -> Part {
    part.map_or(Part::All(Vec::new()), |part| Part::Maybe(Box::new(part)))
}

/// Pieces, one after the other.
#[macro_export]
macro_rules! parts {
    ($($part:expr),* $(,)?) => { $crate::part::Part::All(vec![$($crate::part::Part::from($part)),*]) };
}

impl From<&str> for Part {
    fn from(text: &str) -> Part {
        word(text)
    }
}

impl From<String> for Part {
    fn from(text: String) -> Part {
        Part::Word(text)
    }
}

impl From<&String> for Part {
    fn from(text: &String) -> Part {
        Part::Word(text.clone())
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Word(text) => f.write_str(text),
            Part::All(parts) => parts.iter().try_for_each(|part| part.fmt(f)),
            Part::Maybe(part) | Part::Of(_, part) | Part::Total(part) => part.fmt(f),
            Part::List(separator, parts) => parts.iter().enumerate().try_for_each(|(place, part)| {
                f.write_str(if place == 0 { "" } else { separator })?;
                part.fmt(f)
            }),
        }
    }
}

impl Part {
    /// Whether the order of the statement's rows is determined.
    pub fn is_total(&self) -> bool {
        match self {
            Part::Total(_) => true,
            Part::All(parts) => parts.iter().any(Part::is_total),
            Part::Maybe(part) => part.is_total(),
            Part::Word(_) | Part::List(..) | Part::Of(..) => false,
        }
    }

    /// All trees that are smaller in one place, large steps first.
    pub fn smaller(&self) -> Vec<Part> {
        let wrapped = |part: &Part, wrap: &dyn Fn(Box<Part>) -> Part| -> Vec<Part> {
            part.smaller().into_iter().map(|part| wrap(Box::new(part))).collect()
        };
        match self {
            Part::Word(_) => Vec::new(),
            Part::All(parts) => each(parts, &Part::All),
            Part::Maybe(part) => {
                let mut all = vec![Part::All(Vec::new())];
                all.extend(wrapped(part, &Part::Maybe));
                all
            }
            Part::Total(part) => wrapped(part, &Part::Total),
            Part::List(separator, parts) => {
                let mut all = Vec::new();
                if parts.len() > 1 {
                    for place in 0..parts.len() {
                        let mut fewer = parts.clone();
                        fewer.remove(place);
                        all.push(Part::List(separator, fewer));
                    }
                }
                all.extend(each(parts, &|parts| Part::List(separator, parts)));
                all
            }
            Part::Of(kind, part) => {
                let mut all = Vec::new();
                part.nearest(*kind, &mut all);
                all.extend(wrapped(part, &|part| Part::Of(*kind, part)));
                all
            }
        }
    }

    /// The outermost expressions of a kind.
    fn nearest(&self, kind: char, all: &mut Vec<Part>) {
        match self {
            Part::Of(found, _) if *found == kind => all.push(self.clone()),
            Part::Maybe(part) | Part::Of(_, part) | Part::Total(part) => part.nearest(kind, all),
            Part::All(parts) | Part::List(_, parts) => {
                parts.iter().for_each(|part| part.nearest(kind, all));
            }
            Part::Word(_) => {}
        }
    }
}

/// All lists of which one element is smaller.
fn each(parts: &[Part], wrap: &dyn Fn(Vec<Part>) -> Part) -> Vec<Part> {
    let mut all = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        for smaller in part.smaller() {
            let mut parts = parts.to_vec();
            parts[place] = smaller;
            all.push(wrap(parts));
        }
    }
    all
}
