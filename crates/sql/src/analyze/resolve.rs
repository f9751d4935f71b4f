//! Which function or operator a name and argument types mean (PostgreSQL's manual, chapter 10).
//!
//! 1. An entry that takes just these types is taken.
//! 2. Otherwise the candidates are those that all arguments reach by implicit casts; an argument of
//!    unknown type, a literal, reaches every type.
//! 3. Of these the ones stay that match most arguments exactly, then those that take most of the
//!    others by their category's preferred type.
//! 4. Unknown arguments: if a candidate takes a string there, those that do stay; otherwise the
//!    category must be the same for all. Of a category the preferred type is chosen.
//! 5. If the known arguments are of one type, the unknown ones are taken to be as well.
//!
//! What is not one candidate in the end is ambiguous.

use super::coerce::{can_coerce, resolve_polymorphic};
use crate::functions::{self, CastContext, Function, Operator, operators};
use crate::types::Oid;
use crate::{SqlError, SqlState};

/// Arguments of a function at most.
pub const ARGUMENTS_MAX: usize = 100;

/// A function that was found.
pub struct Found {
    /// It.
    pub function: &'static Function,
    /// The types that its arguments are to have; as many as there are, defaults included.
    pub arguments: Vec<Oid>,
    /// The type of its result.
    pub result: Oid,
}

struct Candidate<T> {
    what: T,
    types: Vec<Oid>,
}

enum Choice<T> {
    One(T, Vec<Oid>),
    Many,
    None,
}

/// Steps 2 to 5.
fn choose<T: Copy>(candidates: Vec<Candidate<T>>, arguments: &[Oid]) -> Choice<T> {
    let mut left: Vec<Candidate<T>> = candidates
        .into_iter()
        .filter(|candidate| can_coerce(arguments, &candidate.types, CastContext::Implicit))
        .collect();
    let single = |left: &mut Vec<Candidate<T>>| if left.len() == 1 { left.pop() } else { None };
    let done = |candidate: Candidate<T>| Choice::One(candidate.what, candidate.types);
    if left.is_empty() {
        return Choice::None;
    }
    if let Some(only) = single(&mut left) {
        return done(only);
    }
    let unknown = |oid: Oid| oid == Oid::UNKNOWN;
    let unknowns = arguments.iter().filter(|oid| unknown(**oid)).count();
    if unknowns < arguments.len() {
        keep_best(&mut left, |candidate| {
            let exact = |(actual, wanted): &(&Oid, &Oid)| !unknown(**actual) && actual == wanted;
            arguments.iter().zip(&candidate.types).filter(exact).count()
        });
        if let Some(only) = single(&mut left) {
            return done(only);
        }
    }
    keep_best(&mut left, |candidate| {
        let fits = |(actual, wanted): &(&Oid, &Oid)| {
            !unknown(**actual)
                && (actual == wanted || wanted.is_preferred() && wanted.category() == actual.category())
        };
        arguments.iter().zip(&candidate.types).filter(fits).count()
    });
    if let Some(only) = single(&mut left) {
        return done(only);
    }
    if unknowns == 0 {
        return Choice::Many;
    }
    if let Some(narrowed) = by_categories(&left, arguments) {
        left.retain({
            let mut keep = narrowed.into_iter();
            move |_| keep.next().unwrap_or(true)
        });
        if let Some(only) = single(&mut left) {
            return done(only);
        }
    }
    let mut known = arguments.iter().copied().filter(|oid| !unknown(*oid));
    let Some(first) = known.next() else { return Choice::Many };
    if known.any(|oid| oid != first) {
        return Choice::Many;
    }
    let assumed = vec![first; arguments.len()];
    left.retain(|candidate| can_coerce(&assumed, &candidate.types, CastContext::Implicit));
    single(&mut left).map_or(Choice::Many, done)
}

fn keep_best<T>(left: &mut Vec<Candidate<T>>, score: impl Fn(&Candidate<T>) -> usize) {
    let best = left.iter().map(&score).max().unwrap_or(0);
    left.retain(|candidate| score(candidate) == best);
}

/// Step 4: which candidates stay, or none if categories do not tell.
fn by_categories<T>(left: &[Candidate<T>], arguments: &[Oid]) -> Option<Vec<bool>> {
    let mut keep = vec![true; left.len()];
    let mut slots: Vec<(usize, u8, bool)> = Vec::new();
    for (place, _) in arguments.iter().enumerate().filter(|(_, oid)| **oid == Oid::UNKNOWN) {
        let types: Vec<Oid> =
            left.iter().filter_map(|candidate| candidate.types.get(place).copied()).collect();
        let strings = types.iter().any(|oid| oid.category() == b'S');
        let category = if strings {
            b'S'
        } else {
            let first = types.first()?.category();
            if types.iter().any(|oid| oid.category() != first) {
                return None;
            }
            first
        };
        let preferred = types.iter().any(|oid| oid.category() == category && oid.is_preferred());
        slots.push((place, category, preferred));
    }
    for (candidate, keep) in left.iter().zip(&mut keep) {
        for (place, category, preferred) in &slots {
            let oid = candidate.types.get(*place).copied().unwrap_or(Oid::NONE);
            *keep &= oid.category() == *category && (!preferred || oid.is_preferred());
        }
    }
    keep.contains(&true).then_some(keep)
}

/// The types that a function takes for so many arguments; none if it does not take so many.
fn expanded(function: &Function, count: usize, spread: bool) -> Option<(Vec<Oid>, bool)> {
    let declared = function.arguments;
    if function.variadic && !spread && count >= declared.len() {
        let (last, fixed) = declared.split_last()?;
        let element = match *last {
            Oid::ANY => Oid::ANY,
            Oid::ANY_ARRAY => Oid::ANY_ELEMENT,
            other => other.element()?,
        };
        let mut types = fixed.to_vec();
        types.resize(count, element);
        return Some((types, true));
    }
    let least = declared.len().saturating_sub(function.optional.len());
    (least..=declared.len())
        .contains(&count)
        .then(|| (declared.get(..count).unwrap_or_default().to_vec(), false))
}

fn list(arguments: &[Oid]) -> String {
    arguments.iter().map(|oid| oid.display()).collect::<Vec<String>>().join(", ")
}

/// The function of a name for these arguments. None if there is none: the caller may try the name
/// as that of a type. `shown` is the name as it was written.
pub fn function(name: &str, shown: &str, arguments: &[Oid], spread: bool) -> Result<Option<Found>, SqlError> {
    if arguments.len() > ARGUMENTS_MAX {
        return Err(SqlError::new(
            SqlState::TOO_MANY_ARGUMENTS,
            format!("cannot pass more than {ARGUMENTS_MAX} arguments to a function"),
        ));
    }
    let mut candidates: Vec<Candidate<(&'static Function, bool)>> = functions::named(name)
        .iter()
        .filter_map(|function| {
            let (types, variadic) = expanded(function, arguments.len(), spread)?;
            Some(Candidate { what: (*function, variadic), types })
        })
        .collect();
    // The same types with and without many arguments: without.
    let plain: Vec<Vec<Oid>> =
        candidates.iter().filter(|c| !c.what.1).map(|candidate| candidate.types.clone()).collect();
    candidates.retain(|candidate| !candidate.what.1 || !plain.contains(&candidate.types));
    let exact = candidates.iter().position(|candidate| candidate.types == arguments);
    let (what, types) = match exact {
        Some(place) => {
            let candidate = candidates.swap_remove(place);
            (candidate.what, candidate.types)
        }
        None => {
            match choose(candidates, arguments) {
                Choice::One(what, types) => (what, types),
                Choice::None => return Ok(None),
                Choice::Many => {
                    return Err(SqlError::new(
                    SqlState::AMBIGUOUS_FUNCTION,
                    format!("function {shown}({}) is not unique", list(arguments)),
                )
                .hint("Could not choose a best candidate function. You might need to add explicit type casts."));
                }
            }
        }
    };
    let (types, result) = resolve_polymorphic(arguments, &types, what.0.result)?;
    Ok(Some(Found { function: what.0, arguments: types, result }))
}

/// The error of a function that is not there.
pub fn no_function(name: &str, arguments: &[Oid]) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("function {name}({}) does not exist", list(arguments)),
    )
    .hint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

/// The operator of a name for these operands.
pub fn operator(name: &str, left: Option<Oid>, right: Oid) -> Result<Found, SqlError> {
    let arguments: Vec<Oid> = left.into_iter().chain([right]).collect();
    let operands = |operator: &Operator| -> Vec<Oid> {
        if left.is_some() { vec![operator.left, operator.right] } else { vec![operator.right] }
    };
    let named = || operators::named(name, left.is_none());
    // An unknown operand is first taken to be of the other's type.
    let assumed: Vec<Oid> = match arguments.as_slice() {
        [Oid::UNKNOWN, other] | [other, Oid::UNKNOWN] => vec![*other, *other],
        _ => arguments.clone(),
    };
    let exact = named().find(|operator| operands(operator) == assumed);
    let (operator, types) = match exact {
        Some(operator) => (operator, operands(operator)),
        None => {
            let candidates =
                named().map(|operator| Candidate { what: operator, types: operands(operator) }).collect();
            match choose(candidates, &arguments) {
                Choice::One(operator, types) => (operator, types),
                Choice::None => return Err(operator_error(name, left, right, false)),
                Choice::Many => return Err(operator_error(name, left, right, true)),
            }
        }
    };
    let function = functions::function(operator.function).ok_or_else(functions::confused)?;
    // Operators of arrays are those of other types, too, in PostgreSQL.
    if arguments.iter().all(|oid| *oid == Oid::UNKNOWN) && types.contains(&Oid::ANY_ARRAY) {
        return Err(operator_error(name, left, right, true));
    }
    let (types, result) = resolve_polymorphic(&arguments, &types, function.result)?;
    Ok(Found { function, arguments: types, result })
}

fn operator_error(name: &str, left: Option<Oid>, right: Oid, ambiguous: bool) -> SqlError {
    let shown = match left {
        Some(left) => format!("{} {name} {}", left.display(), right.display()),
        None => format!("{name} {}", right.display()),
    };
    if ambiguous {
        SqlError::new(SqlState::AMBIGUOUS_FUNCTION, format!("operator is not unique: {shown}"))
            .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
    } else {
        let advice = if left.is_some() {
            "types. You might need to add explicit type casts."
        } else {
            "type. You might need to add an explicit type cast."
        };
        SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {shown}"))
            .hint(format!("No operator matches the given name and argument {advice}"))
    }
}
