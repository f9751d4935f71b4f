//! Casts: whether there is one, and what does it; types that stand for others; types in common.

use super::Analyzer;
use super::expression::leftmost;
use super::plan::{Expr, Typed};
use crate::functions::{self, CastContext, CastMethod};
use crate::types::{Datum, Oid, scalar};
use crate::{SqlError, SqlState};

/// What a cast does.
enum Path {
    /// Nothing.
    Same,
    /// Makes a string one of `char` without a length, with all its characters.
    Kept,
    /// Calls a function.
    Function(u32),
    /// Goes through the text form.
    Text,
    /// Does something to each element.
    Each(Oid, Oid),
}

/// How a type becomes another, if it may in this context.
fn path(from: Oid, to: Oid, context: CastContext) -> Option<Path> {
    if from == to {
        return Some(Path::Same);
    }
    if let Some(cast) = functions::cast(from, to) {
        if cast.context > context {
            return None;
        }
        return Some(match cast.method {
            CastMethod::Same if to == Oid::BPCHAR => Path::Kept,
            CastMethod::Same => Path::Same,
            CastMethod::Function(oid) => Path::Function(oid),
            CastMethod::Text => Path::Text,
        });
    }
    if let (Some(from), Some(to)) = (from.element(), to.element().filter(|_| !to.is_vector())) {
        return path(from, to, context).map(|inner| match inner {
            Path::Same => Path::Same,
            _ => Path::Each(from, to),
        });
    }
    let by_text = match context {
        CastContext::Implicit => false,
        CastContext::Assignment => to.category() == b'S',
        CastContext::Explicit => to.category() == b'S' || from.category() == b'S',
    };
    let pseudo = |oid: Oid| oid.category() == b'P' && oid != Oid::RECORD;
    (by_text && !pseudo(from) && !pseudo(to)).then_some(Path::Text)
}

/// Whether there is a cast that calls no function, which may be written like one.
pub fn is_plain_cast(from: Oid, to: Oid) -> bool {
    matches!(path(from, to, CastContext::Explicit), Some(Path::Same | Path::Kept | Path::Text))
}

/// Whether arguments of these types may be given for those.
pub fn can_coerce(from: &[Oid], to: &[Oid], context: CastContext) -> bool {
    let mut polymorphic = false;
    for (from, to) in from.iter().zip(to) {
        if from == to || *to == Oid::ANY || *from == Oid::UNKNOWN && !to.is_polymorphic() {
            continue;
        }
        if to.is_polymorphic() {
            polymorphic = true;
            continue;
        }
        if path(*from, *to, context).is_none() {
            return false;
        }
    }
    // If nothing is known, the function may be meant, and its types cannot be told.
    let open = from.iter().zip(to).all(|(from, to)| *from == Oid::UNKNOWN || !to.is_polymorphic());
    !polymorphic || open || resolve_polymorphic(from, to, Oid::VOID).is_ok()
}

/// What polymorphic types are for these arguments: the types that the arguments are to have, and
/// that of the result.
pub fn resolve_polymorphic(
    actual: &[Oid],
    declared: &[Oid],
    result: Oid,
) -> Result<(Vec<Oid>, Oid), SqlError> {
    let mut element: Option<Oid> = None;
    let mut array: Option<Oid> = None;
    let mut compatible: Vec<Oid> = Vec::new();
    let mut nonarray = false;
    let mut is_compatible = false;
    let mismatch = |what: &str| SqlError::new(SqlState::DATATYPE_MISMATCH, what);
    for (actual, declared) in actual.iter().zip(declared) {
        match *declared {
            Oid::ANY_ELEMENT | Oid::ANY_NONARRAY => {
                nonarray |= *declared == Oid::ANY_NONARRAY;
                if *actual == Oid::UNKNOWN {
                    continue;
                }
                if element.is_some_and(|element| element != *actual) {
                    return Err(mismatch("arguments declared \"anyelement\" are not all alike").detail(
                        format!("{} versus {}", element.unwrap_or(Oid::NONE).display(), actual.display()),
                    ));
                }
                element = Some(*actual);
            }
            Oid::ANY_ARRAY => {
                if *actual == Oid::UNKNOWN {
                    continue;
                }
                if array.is_some_and(|array| array != *actual) {
                    return Err(mismatch("arguments declared \"anyarray\" are not all alike").detail(
                        format!("{} versus {}", array.unwrap_or(Oid::NONE).display(), actual.display()),
                    ));
                }
                if !actual.is_array() {
                    return Err(mismatch(&format!(
                        "argument declared {} is not an array but type {}",
                        "anyarray",
                        actual.display()
                    )));
                }
                array = Some(*actual);
            }
            Oid::ANY_COMPATIBLE | Oid::ANY_COMPATIBLE_NONARRAY => {
                is_compatible = true;
                nonarray |= *declared == Oid::ANY_COMPATIBLE_NONARRAY;
                if *actual != Oid::UNKNOWN {
                    compatible.push(*actual);
                }
            }
            Oid::ANY_COMPATIBLE_ARRAY => {
                is_compatible = true;
                if *actual != Oid::UNKNOWN {
                    let element = actual.element().ok_or_else(|| {
                        mismatch(&format!(
                            "argument declared anycompatiblearray is not an array but type {}",
                            actual.display()
                        ))
                    })?;
                    compatible.push(element);
                }
            }
            _ => {}
        }
    }
    if let Some(array_element) = array.and_then(Oid::element) {
        if element.is_some_and(|element| element != array_element) {
            return Err(mismatch(
                "argument declared anyarray is not consistent with argument declared anyelement",
            )
            .detail(format!(
                "{} versus {}",
                array.unwrap_or(Oid::NONE).display(),
                element.unwrap_or(Oid::NONE).display()
            )));
        }
        element = Some(array_element);
    }
    let wanted = |oid: &Oid| matches!(*oid, Oid::ANY_ELEMENT | Oid::ANY_NONARRAY | Oid::ANY_ARRAY);
    if element.is_none() && declared.iter().any(wanted) {
        return Err(mismatch("could not determine polymorphic type because input has type unknown"));
    }
    let common = match compatible.as_slice() {
        [] => Oid::TEXT,
        types => common_type(types)
            .ok_or_else(|| mismatch("arguments of anycompatible family cannot be cast to a common type"))?,
    };
    let the_element = if is_compatible { common } else { element.unwrap_or(Oid::TEXT) };
    if nonarray && the_element.is_array() {
        let shown = if is_compatible { "anycompatiblenonarray" } else { "anynonarray" };
        return Err(mismatch(&format!(
            "type matched to {shown} is an array type: {}",
            the_element.display()
        )));
    }
    let concrete = |oid: Oid| match oid {
        Oid::ANY_ELEMENT | Oid::ANY_NONARRAY => element.unwrap_or(Oid::TEXT),
        Oid::ANY_ARRAY => array.or_else(|| element.and_then(Oid::array)).unwrap_or(Oid::TEXT_ARRAY),
        Oid::ANY_COMPATIBLE | Oid::ANY_COMPATIBLE_NONARRAY => common,
        Oid::EXPANDED => Oid::numbered(element.unwrap_or(Oid::TEXT)),
        Oid::ANY_COMPATIBLE_ARRAY => common.array().unwrap_or(Oid::TEXT_ARRAY),
        other => other,
    };
    if array.is_none() && declared.contains(&Oid::ANY_ARRAY) && element.and_then(Oid::array).is_none() {
        return Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("could not find array type for data type {}", element.unwrap_or(Oid::NONE).display()),
        ));
    }
    let arguments = actual.iter().zip(declared).map(|(actual, declared)| match *declared {
        Oid::ANY => *actual,
        other => concrete(other),
    });
    Ok((arguments.collect(), concrete(result)))
}

/// The type that values of these types have in common, none if they have none.
fn common_type(types: &[Oid]) -> Option<Oid> {
    let mut common = Oid::UNKNOWN;
    for &oid in types.iter().filter(|oid| **oid != Oid::UNKNOWN) {
        if common == Oid::UNKNOWN {
            common = oid;
        } else if oid != common {
            if oid.category() != common.category() {
                return None;
            }
            let there = path(common, oid, CastContext::Implicit).is_some();
            let back = path(oid, common, CastContext::Implicit).is_some();
            if !common.is_preferred() && there && !back {
                common = oid;
            }
        }
    }
    let common = if common == Oid::UNKNOWN { Oid::TEXT } else { common };
    let all =
        types.iter().all(|oid| *oid == Oid::UNKNOWN || path(*oid, common, CastContext::Implicit).is_some());
    all.then_some(common)
}

impl Analyzer<'_> {
    /// The type that expressions have in common; `what` is what messages call them.
    pub fn common_type(&self, items: &[Typed], what: &str) -> Result<Oid, SqlError> {
        let mut common = Oid::UNKNOWN;
        for item in items.iter().filter(|item| item.oid != Oid::UNKNOWN) {
            if common == Oid::UNKNOWN {
                common = item.oid;
            } else if item.oid != common {
                if item.oid.category() != common.category() {
                    return Err(self.at(
                        item.location,
                        SqlError::new(
                            SqlState::DATATYPE_MISMATCH,
                            format!(
                                "{what} types {} and {} cannot be matched",
                                common.display(),
                                item.oid.display()
                            ),
                        ),
                    ));
                }
                let there = path(common, item.oid, CastContext::Implicit).is_some();
                let back = path(item.oid, common, CastContext::Implicit).is_some();
                if !common.is_preferred() && there && !back {
                    common = item.oid;
                }
            }
        }
        Ok(if common == Oid::UNKNOWN { Oid::TEXT } else { common })
    }

    /// Makes an expression one of the common type; `what` is what messages call it.
    pub fn to_common_type(&mut self, item: Typed, oid: Oid, what: &str) -> Result<Typed, SqlError> {
        self.check_common_type(&item, oid, what)?;
        self.coerce(item, oid, -1, CastContext::Implicit)
    }

    /// Refuses an expression that cannot be made one of the common type.
    pub fn check_common_type(&self, item: &Typed, oid: Oid, what: &str) -> Result<(), SqlError> {
        if fits_common_type(item, oid) {
            return Ok(());
        }
        let error = format!("{what} could not convert type {} to {}", item.oid.display(), oid.display());
        self.refuse(item.location, SqlState::CANNOT_COERCE, error)
    }

    /// Makes an expression one of a type, or says that there is no cast.
    pub fn cast(&mut self, item: Typed, oid: Oid, modifier: i32, location: i32) -> Result<Typed, SqlError> {
        let from = item.oid;
        // What a literal becomes at once stands where the literal does.
        let is_literal = from == Oid::UNKNOWN && matches!(item.expr, Expr::Constant(_));
        let place = match is_literal && (modifier < 0 || oid == Oid::INTERVAL) {
            true => item.location,
            false => leftmost([location, item.location]),
        };
        let fine = from == Oid::UNKNOWN || path(from, oid, CastContext::Explicit).is_some();
        if !fine || oid.category() == b'P' && oid != from && oid != Oid::VOID && from != Oid::UNKNOWN {
            return Err(self.at(
                location,
                SqlError::new(
                    SqlState::CANNOT_COERCE,
                    format!("cannot cast type {} to {}", from.display(), oid.display()),
                ),
            ));
        }
        let mut cast = self.coerce(item, oid, modifier, CastContext::Explicit)?;
        // Without a modifier the type has none, also if the value had one before.
        (cast.location, cast.modifier) = (place, modifier);
        Ok(cast)
    }

    /// Makes an expression one of a type to which there is a cast in this context.
    pub fn coerce(
        &mut self,
        item: Typed,
        oid: Oid,
        modifier: i32,
        context: CastContext,
    ) -> Result<Typed, SqlError> {
        let explicit = context == CastContext::Explicit;
        let location = item.location;
        if item.oid == Oid::UNKNOWN {
            if matches!(oid, Oid::ANY | Oid::UNKNOWN) {
                return Ok(item);
            }
            let coerced = self.coerce_unknown(item, oid, modifier)?;
            return Ok(self.fitted(coerced, modifier, explicit));
        }
        if item.oid == oid || oid == Oid::ANY {
            return Ok(if modifier >= 0 && modifier != item.modifier {
                self.fitted(item, modifier, explicit)
            } else {
                item
            });
        }
        let expr = converted(item.expr, item.oid, oid, context).ok_or_else(|| {
            self.at(
                location,
                SqlError::new(
                    SqlState::CANNOT_COERCE,
                    format!("cannot cast type {} to {}", item.oid.display(), oid.display()),
                ),
            )
        })?;
        Ok(self.fitted(Typed { expr, oid, modifier: -1, location }, modifier, explicit))
    }

    /// A literal is read now, so that an error has its place; what it means may depend on the time,
    /// and then it is read when the statement runs. An open parameter gets the type.
    fn coerce_unknown(&mut self, item: Typed, oid: Oid, modifier: i32) -> Result<Typed, SqlError> {
        let location = item.location;
        // A type's modifier is a matter of its own but for intervals, which are read by it.
        let read_modifier = if oid == Oid::INTERVAL { modifier } else { -1 };
        let expr = match item.expr {
            Expr::Constant(Datum::Text(text)) => {
                if is_of_the_moment(&text, oid) {
                    let text = Box::new(Expr::Constant(Datum::Text(text)));
                    Expr::Read { text, oid, modifier: read_modifier }
                } else {
                    let value = scalar::parse_modified(oid, read_modifier, &text, &self.style);
                    Expr::Constant(value.map_err(|error| self.at(location, error))?)
                }
            }
            Expr::Parameter(place) => {
                self.infer(place, oid, location)?;
                Expr::Parameter(place)
            }
            Expr::Constant(Datum::Null) => Expr::Constant(Datum::Null),
            other => Expr::Read { text: Box::new(other), oid, modifier: read_modifier },
        };
        Ok(Typed { expr, oid, modifier: -1, location })
    }

    /// With what a modifier keeps.
    fn fitted(&self, item: Typed, modifier: i32, explicit: bool) -> Typed {
        if modifier < 0 {
            return item;
        }
        let oid = item.oid;
        let expr = Expr::Fit { value: Box::new(item.expr), oid, modifier, explicit };
        Typed { expr, modifier, ..item }
    }

    /// The argument of `WHERE`, `AND` and so on.
    pub fn boolean(&mut self, item: Typed, what: &str) -> Result<Expr, SqlError> {
        let fine = item.oid == Oid::UNKNOWN || item.oid == Oid::BOOL;
        if !fine {
            return Err(self.at(
                item.location,
                SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!("argument of {what} must be type boolean, not type {}", item.oid.display()),
                ),
            ));
        }
        if item.expr.any(&|part| matches!(part, Expr::Set(_))) {
            let message = format!("argument of {what} must not return a set");
            return self.refuse(item.location, SqlState::DATATYPE_MISMATCH, message);
        }
        Ok(self.coerce(item, Oid::BOOL, -1, CastContext::Assignment)?.expr)
    }

    /// What is left of unknown type in a result is text.
    pub fn settled(&mut self, item: Typed) -> Result<Typed, SqlError> {
        if item.oid == Oid::UNKNOWN {
            self.coerce(item, Oid::TEXT, -1, CastContext::Implicit)
        } else {
            Ok(item)
        }
    }
}

/// Whether a text means something else tomorrow, or in another zone.
fn is_of_the_moment(text: &str, oid: Oid) -> bool {
    let base = oid.element().unwrap_or(oid);
    if !matches!(base, Oid::DATE | Oid::TIME | Oid::TIMETZ | Oid::TIMESTAMP | Oid::TIMESTAMPTZ) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    base == Oid::TIMETZ || ["now", "today", "tomorrow", "yesterday"].iter().any(|word| lower.contains(word))
}

/// The expression of a cast.
fn converted(expr: Expr, from: Oid, to: Oid, context: CastContext) -> Option<Expr> {
    let kept = |text| Expr::Fit { value: Box::new(text), oid: Oid::BPCHAR, modifier: -1, explicit: true };
    Some(match path(from, to, context)? {
        Path::Same => expr,
        Path::Kept => kept(expr),
        Path::Function(oid) => {
            let function = functions::function(oid)?;
            Expr::Call { function, arguments: vec![expr], types: vec![from], result: to, spread: false }
        }
        Path::Text => {
            let text = if from.category() == b'S' && from != Oid::CHAR {
                expr
            } else {
                Expr::Print { value: Box::new(expr), oid: from }
            };
            if to == Oid::BPCHAR {
                kept(text)
            } else if to.category() == b'S' && !matches!(to, Oid::CHAR | Oid::NAME) {
                text
            } else {
                Expr::Read { text: Box::new(text), oid: to, modifier: -1 }
            }
        }
        Path::Each(from, to) => {
            let change = Box::new(converted(Expr::CaseValue, from, to, context)?);
            Expr::Each { array: Box::new(expr), change, element: to }
        }
    })
}

/// Whether an expression can be made one of the type that it is to have in common with others.
pub fn fits_common_type(item: &Typed, oid: Oid) -> bool {
    item.oid == Oid::UNKNOWN || path(item.oid, oid, CastContext::Implicit).is_some()
}
