//! Splits a value into pieces for several rows, and joins them again.

/// Bytes of a piece: the longest `varchar` that all databases of the original experiment supported.
pub const PIECE: usize = 4_000;

/// The number of pieces of a value of `length` bytes. An empty value has one empty piece: a record without rows could
/// not be distinguished from a missing record.
pub fn count(length: usize) -> usize {
    length.div_ceil(PIECE).max(1)
}

/// The pieces of a value, each with its number from 0. The last one may be shorter.
pub fn split(value: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    (0..count(value.len())).map(|n| (n, &value[n * PIECE..value.len().min((n + 1) * PIECE)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_value_is_one_piece() {
        assert_eq!(split(b"short").collect::<Vec<_>>(), vec![(0, &b"short"[..])]);
        assert_eq!(split(b"").count(), 1);
    }

    proptest! {
        #[test]
        fn pieces_joined_are_the_value(value in prop::collection::vec(any::<u8>(), 0..20_000)) {
            let pieces: Vec<_> = split(&value).collect();
            prop_assert_eq!(pieces.len(), count(value.len()));
            prop_assert!(pieces.iter().all(|(_, piece)| piece.len() <= PIECE));
            prop_assert!(pieces.iter().enumerate().all(|(i, (n, _))| i == *n));
            let joined: Vec<u8> = pieces.iter().flat_map(|(_, piece)| piece.iter().copied()).collect();
            prop_assert_eq!(joined, value);
        }
    }
}
