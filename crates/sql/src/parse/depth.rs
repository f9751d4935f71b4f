//! How deeply bytes of protobuf nest, counted without recursion.
//!
//! The encoding does not tell a message from a string: both are a length and bytes. So every such
//! field is taken for a message until its bytes turn out not to be one. A message always is one,
//! so the count is never too low, which is what the stack of the decoder depends on. A string may
//! happen to look like a message, and then the count may be too high: by one for a string of a few
//! characters, by much only for one that was made for it, whose author gets a larger stack or an
//! error that nesting is too deep.
//!
//! Each byte is looked at once, since a field that turned out to be a string is skipped whole.

/// How many messages stand in one another at most.
pub(super) fn levels(bytes: &[u8]) -> usize {
    // Where the fields end that are open, the outermost first.
    let mut open = vec![bytes.len()];
    let mut deepest = 0;
    let mut at = 0;
    while let Some(&end) = open.last() {
        if at == end {
            deepest = deepest.max(open.len());
            open.pop();
            continue;
        }
        match field(bytes, at, end) {
            Some(Field::Scalar { after }) => at = after,
            Some(Field::Nested { begin, end }) => {
                open.push(end);
                at = begin;
            }
            // No message: the field is a string, and what follows it comes next.
            None => {
                at = end;
                open.pop();
            }
        }
    }
    deepest
}

/// What stands at a place.
enum Field {
    /// A number.
    Scalar { after: usize },
    /// Something with a length.
    Nested { begin: usize, end: usize },
}

/// The field that begins here and ends before `limit`, if there is one.
fn field(bytes: &[u8], at: usize, limit: usize) -> Option<Field> {
    let (tag, at) = varint(bytes, at, limit)?;
    if tag >> 3 == 0 {
        return None;
    }
    let after = match tag & 7 {
        0 => varint(bytes, at, limit)?.1,
        1 => at.checked_add(8)?,
        5 => at.checked_add(4)?,
        2 => {
            let (length, begin) = varint(bytes, at, limit)?;
            let end = begin.checked_add(usize::try_from(length).ok()?)?;
            return (end <= limit).then_some(Field::Nested { begin, end });
        }
        _ => return None,
    };
    (after <= limit).then_some(Field::Scalar { after })
}

/// A number of up to ten bytes, and where it ends.
fn varint(bytes: &[u8], mut at: usize, limit: usize) -> Option<(u64, usize)> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        if at >= limit {
            return None;
        }
        let byte = *bytes.get(at)?;
        at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((value, at));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message whose field 1 is the one before, so many times.
    fn nested(levels: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 1..levels {
            let mut outer = vec![0x0a];
            let mut length = bytes.len();
            while length >= 0x80 {
                outer.push(u8::try_from(length & 0x7f).expect("seven bits") | 0x80);
                length >>= 7;
            }
            outer.push(u8::try_from(length).expect("seven bits"));
            outer.extend(bytes);
            bytes = outer;
        }
        bytes
    }

    #[test]
    fn levels_are_counted() {
        for levels_there in [1, 2, 3, 100, 5_000] {
            assert_eq!(levels(&nested(levels_there)), levels_there);
        }
        // A string beside a deep message hides nothing.
        let mut bytes = b"\x12\x03xyz".to_vec();
        bytes.extend(nested(40));
        bytes.extend(b"\x12\x03xyz");
        assert_eq!(levels(&bytes), 40);
    }

    proptest! {
        #[test]
        fn no_bytes_are_more_than_they_can_hold(bytes: Vec<u8>) {
            // A level has at least two bytes of its own.
            prop_assert!(levels(&bytes) <= bytes.len() / 2 + 1);
        }
    }
}
