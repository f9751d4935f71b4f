//! Functions of arrays.

use std::sync::Arc;

use super::{Call, Outcome, refuse};
use crate::execute::rows::bulk;
use crate::types::array::{DIMENSIONS_MAX, ELEMENTS_MAX, too_large};
use crate::types::{Array, Datum, compare};
use crate::{SqlError, SqlState};

fn same(a: &Datum, b: &Datum) -> bool {
    compare::compare(a, b).is_eq()
}

fn dimension(call: &Call<'_>) -> Result<Option<(i32, i32)>, SqlError> {
    let array = call.array(0)?;
    let place = usize::try_from(call.integer(1)? - 1).ok();
    Ok(place.and_then(|place| array.dimensions.get(place)).copied())
}

/// `array_length()`
pub fn length(call: &Call<'_>) -> Outcome {
    Ok(dimension(call)?.map_or(Datum::Null, |(length, _)| Datum::Int4(length)))
}

/// `array_lower()`
pub fn lower(call: &Call<'_>) -> Outcome {
    Ok(dimension(call)?.map_or(Datum::Null, |(_, lower)| Datum::Int4(lower)))
}

/// `array_upper()`
pub fn upper(call: &Call<'_>) -> Outcome {
    Ok(dimension(call)?.map_or(Datum::Null, |(length, lower)| Datum::Int4(lower + (length - 1))))
}

/// `array_ndims()`
pub fn dimensions(call: &Call<'_>) -> Outcome {
    match i32::try_from(call.array(0)?.dimensions.len()) {
        Ok(0) | Err(_) => Ok(Datum::Null),
        Ok(count) => Ok(Datum::Int4(count)),
    }
}

/// `array_dims()`
pub fn bounds(call: &Call<'_>) -> Outcome {
    let array = call.array(0)?;
    if array.dimensions.is_empty() {
        return Ok(Datum::Null);
    }
    let shown = array.dimensions.iter().map(|(length, lower)| format!("[{lower}:{}]", lower + (length - 1)));
    Ok(Datum::text(shown.collect::<String>()))
}

/// `cardinality()`
pub fn cardinality(call: &Call<'_>) -> Outcome {
    i32::try_from(call.array(0)?.elements.len()).map(Datum::Int4).map_err(|_| too_large())
}

/// An argument that is an array or NULL, which is then empty.
fn or_empty(call: &Call<'_>, place: usize) -> Result<Arc<Array>, SqlError> {
    if call.at(place).is_null() {
        let element = call.result.element().unwrap_or(call.result);
        return Ok(Arc::new(Array { element, dimensions: Vec::new(), elements: Vec::new() }));
    }
    call.array(place).cloned()
}

fn one_dimension(array: &Array) -> Result<(i32, i32), SqlError> {
    match array.dimensions.as_slice() {
        [] => Ok((0, 1)),
        [only] => Ok(*only),
        _ => refuse(SqlState::DATA_EXCEPTION, "argument must be empty or one-dimensional array"),
    }
}

fn with_elements(array: &Array, lower: i32, elements: Vec<Datum>) -> Outcome {
    if elements.len() > ELEMENTS_MAX {
        return Err(too_large());
    }
    let length = i32::try_from(elements.len()).map_err(|_| too_large())?;
    if lower.checked_add(length).is_none() {
        return refuse(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
    }
    Ok(Datum::Array(Arc::new(Array { element: array.element, dimensions: vec![(length, lower)], elements })))
}

/// `array_append()`
pub fn append(call: &Call<'_>) -> Outcome {
    let array = or_empty(call, 0)?;
    let (_, lower) = one_dimension(&array)?;
    let mut elements = array.elements.clone();
    elements.push(call.at(1).clone());
    with_elements(&array, lower, elements)
}

/// `array_prepend()`
pub fn prepend(call: &Call<'_>) -> Outcome {
    let array = or_empty(call, 1)?;
    let (_, lower) = one_dimension(&array)?;
    let mut elements = vec![call.at(0).clone()];
    elements.extend(array.elements.iter().cloned());
    with_elements(&array, lower, elements)
}

/// `array_cat()`, `||`
pub fn concat(call: &Call<'_>) -> Outcome {
    match (call.at(0).is_null(), call.at(1).is_null()) {
        (true, _) => return Ok(call.at(1).clone()),
        (_, true) => return Ok(call.at(0).clone()),
        _ => {}
    }
    let (a, b) = (call.array(0)?, call.array(1)?);
    if a.dimensions.is_empty() {
        return Ok(call.at(1).clone());
    }
    if b.dimensions.is_empty() {
        return Ok(call.at(0).clone());
    }
    let incompatible = |detail: &str| {
        Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "cannot concatenate incompatible arrays")
            .detail(detail))
    };
    let (la, lb) = (a.dimensions.as_slice(), b.dimensions.as_slice());
    let tail = |dimensions: &[(i32, i32)]| dimensions.get(1..).map(<[_]>::to_vec).unwrap_or_default();
    let first = |dimensions: &[(i32, i32)]| dimensions.first().map_or(0, |(length, _)| *length);
    let mut dimensions = if la.len() == lb.len() {
        if tail(la) != tail(lb) {
            return incompatible(
                "Arrays with differing element dimensions are not compatible for concatenation.",
            );
        }
        let mut dimensions = a.dimensions.clone();
        if let Some((length, _)) = dimensions.first_mut() {
            *length = length.checked_add(first(lb)).ok_or_else(too_large)?;
        }
        dimensions
    } else if la.len() + 1 == lb.len() {
        if la != tail(lb) {
            return incompatible("Arrays with differing dimensions are not compatible for concatenation.");
        }
        let mut dimensions = b.dimensions.clone();
        if let Some((length, _)) = dimensions.first_mut() {
            *length = length.checked_add(1).ok_or_else(too_large)?;
        }
        dimensions
    } else if la.len() == lb.len() + 1 {
        if lb != tail(la) {
            return incompatible("Arrays with differing dimensions are not compatible for concatenation.");
        }
        let mut dimensions = a.dimensions.clone();
        if let Some((length, _)) = dimensions.first_mut() {
            *length = length.checked_add(1).ok_or_else(too_large)?;
        }
        dimensions
    } else {
        return incompatible(&format!(
            "Arrays of {} and {} dimensions are not compatible for concatenation.",
            la.len(),
            lb.len()
        ));
    };
    dimensions.truncate(DIMENSIONS_MAX);
    let elements: Vec<Datum> = a.elements.iter().chain(&b.elements).cloned().collect();
    if elements.len() > ELEMENTS_MAX {
        return Err(too_large());
    }
    Ok(Datum::Array(Arc::new(Array { element: a.element, dimensions, elements })))
}

fn searchable(array: &Array) -> Result<i32, SqlError> {
    match array.dimensions.as_slice() {
        [] => Ok(1),
        [(_, lower)] => Ok(*lower),
        _ => refuse(
            SqlState::FEATURE_NOT_SUPPORTED,
            "searching for elements in multidimensional arrays is not supported",
        ),
    }
}

/// `array_position()`
pub fn position(call: &Call<'_>) -> Outcome {
    if call.at(0).is_null() {
        return Ok(Datum::Null);
    }
    let array = call.array(0)?;
    let lower = searchable(array)?;
    let from = if call.count() > 2 {
        if call.at(2).is_null() {
            return refuse(SqlState::NULL_VALUE_NOT_ALLOWED, "initial position must not be null");
        }
        call.int4(2)?
    } else {
        lower
    };
    let places = (lower..).zip(&array.elements);
    let found = places.into_iter().find(|(place, element)| *place >= from && same(element, call.at(1)));
    Ok(found.map_or(Datum::Null, |(place, _)| Datum::Int4(place)))
}

/// `array_positions()`
pub fn positions(call: &Call<'_>) -> Outcome {
    if call.at(0).is_null() {
        return Ok(Datum::Null);
    }
    let array = call.array(0)?;
    let lower = searchable(array)?;
    let places = (lower..).zip(&array.elements).filter(|(_, element)| same(element, call.at(1)));
    Ok(Array::flat(crate::types::Oid::INT4, places.map(|(place, _)| Datum::Int4(place)).collect()))
}

/// `array_remove()`
pub fn remove(call: &Call<'_>) -> Outcome {
    if call.at(0).is_null() {
        return Ok(Datum::Null);
    }
    let array = call.array(0)?;
    if array.dimensions.len() > 1 {
        return refuse(
            SqlState::FEATURE_NOT_SUPPORTED,
            "removing elements from multidimensional arrays is not supported",
        );
    }
    let kept: Vec<Datum> =
        array.elements.iter().filter(|element| !same(element, call.at(1))).cloned().collect();
    if kept.len() == array.elements.len() {
        return Ok(call.at(0).clone());
    }
    if kept.is_empty() {
        return Ok(Array::flat(array.element, kept));
    }
    let lower = array.dimensions.first().map_or(1, |(_, lower)| *lower);
    with_elements(array, lower, kept)
}

/// `array_replace()`
pub fn replace(call: &Call<'_>) -> Outcome {
    if call.at(0).is_null() {
        return Ok(Datum::Null);
    }
    let mut array = Array::clone(call.array(0)?);
    for element in &mut array.elements {
        if same(element, call.at(1)) {
            *element = call.at(2).clone();
        }
    }
    Ok(Datum::Array(Arc::new(array)))
}

/// The elements of an array that are not NULL, in order.
struct Sorted<'a>(Vec<&'a Datum>);

impl Sorted<'_> {
    fn of(array: &Array) -> Sorted<'_> {
        let mut elements: Vec<&Datum> = array.elements.iter().filter(|element| !element.is_null()).collect();
        elements.sort_by(|a, b| compare::compare(a, b));
        Sorted(elements)
    }

    fn has(&self, wanted: &Datum) -> bool {
        !wanted.is_null() && self.0.binary_search_by(|element| compare::compare(element, wanted)).is_ok()
    }
}

/// `@>`
pub fn contains(call: &Call<'_>) -> Outcome {
    let (a, b) = (Sorted::of(call.array(0)?), call.array(1)?);
    Ok(Datum::Bool(b.elements.iter().all(|element| a.has(element))))
}

/// `<@`
pub fn contained(call: &Call<'_>) -> Outcome {
    let (a, b) = (call.array(0)?, Sorted::of(call.array(1)?));
    Ok(Datum::Bool(a.elements.iter().all(|element| b.has(element))))
}

/// `&&`
pub fn overlaps(call: &Call<'_>) -> Outcome {
    let (a, b) = (Sorted::of(call.array(0)?), call.array(1)?);
    Ok(Datum::Bool(b.elements.iter().any(|element| a.has(element))))
}

/// `array_fill()`
pub fn fill(call: &Call<'_>) -> Outcome {
    if call.at(1).is_null() || call.count() > 2 && call.at(2).is_null() {
        return refuse(SqlState::NULL_VALUE_NOT_ALLOWED, "dimension array or low bound array cannot be null");
    }
    let element = call.type_of(0);
    let lengths = &call.array(1)?.elements;
    let lowers = if call.count() > 2 { Some(&call.array(2)?.elements) } else { None };
    if lengths.len() > DIMENSIONS_MAX {
        return Err(crate::types::array::too_many_dimensions(lengths.len()));
    }
    if lowers.is_some_and(|lowers| lowers.len() != lengths.len()) {
        return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts")
            .detail("Low bound array has different size than dimensions array."));
    }
    let mut dimensions = Vec::new();
    let mut total = 1usize;
    for (place, length) in lengths.iter().enumerate() {
        let lower = lowers.and_then(|lowers| lowers.get(place)).cloned().unwrap_or(Datum::Int4(1));
        let (Datum::Int4(length), Datum::Int4(lower)) = (length, lower) else {
            return refuse(SqlState::NULL_VALUE_NOT_ALLOWED, "dimension values cannot be null");
        };
        total = usize::try_from(*length)
            .ok()
            .and_then(|length| total.checked_mul(length))
            .ok_or_else(too_large)?;
        dimensions.push((*length, lower));
    }
    if total == 0 || dimensions.is_empty() {
        return Ok(Array::flat(element, Vec::new()));
    }
    if total > ELEMENTS_MAX {
        return Err(too_large());
    }
    super::bounded(total.saturating_mul(bulk(call.at(0))))?;
    Ok(Datum::Array(Arc::new(Array { element, dimensions, elements: vec![call.at(0).clone(); total] })))
}

/// `trim_array()`
pub fn trim(call: &Call<'_>) -> Outcome {
    let (array, n) = (call.array(0)?, call.integer(1)?);
    let length = array.dimensions.first().map_or(0, |(length, _)| *length);
    if n < 0 || n > i64::from(length) {
        return refuse(
            SqlState::ARRAY_ELEMENT_ERROR,
            format!("number of elements to trim must be between 0 and {length}"),
        );
    }
    let rest = usize::try_from(i64::from(length) - n).unwrap_or(0);
    let row = array.elements.len() / usize::try_from(length.max(1)).unwrap_or(1);
    let elements: Vec<Datum> = array.elements.iter().take(rest * row).cloned().collect();
    if elements.is_empty() {
        return Ok(Array::flat(array.element, elements));
    }
    let mut dimensions = array.dimensions.clone();
    for (place, dimension) in dimensions.iter_mut().enumerate() {
        *dimension = (if place == 0 { i32::try_from(rest).unwrap_or(0) } else { dimension.0 }, 1);
    }
    Ok(Datum::Array(Arc::new(Array { element: array.element, dimensions, elements })))
}

/// An array of arrays of one shape, with a dimension more than they have.
pub fn stacked(element: crate::types::Oid, arrays: &[Datum]) -> Outcome {
    let mismatch = || {
        SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "multidimensional arrays must have array expressions with matching dimensions",
        )
    };
    let mut shape: Option<&[(i32, i32)]> = None;
    let mut elements = Vec::new();
    for array in arrays {
        let Datum::Array(array) = array else { return Err(mismatch()) };
        let here = array.dimensions.as_slice();
        if shape.is_some_and(|shape| shape != here) {
            return Err(mismatch());
        }
        shape = Some(here);
        elements.extend(array.elements.iter().cloned());
        if elements.len() > ELEMENTS_MAX {
            return Err(too_large());
        }
    }
    let inner = shape.unwrap_or_default();
    if inner.is_empty() {
        return Ok(Array::flat(element, Vec::new()));
    }
    if inner.len() >= DIMENSIONS_MAX {
        return Err(crate::types::array::too_many_dimensions(inner.len() + 1));
    }
    let count = i32::try_from(arrays.len()).map_err(|_| too_large())?;
    let dimensions = std::iter::once((count, 1)).chain(inner.iter().copied()).collect();
    Ok(Datum::Array(Arc::new(Array { element, dimensions, elements })))
}
