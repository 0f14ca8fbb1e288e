//! The Distinguished Encoding Rules (X.690), as far as keys and certificates need them.

/// The content of the first DER element, which has this tag, and what follows it.
pub(crate) fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match usize::from(first) {
        short @ 0..0x80 => (short, rest),
        // Longer lengths have their number of bytes first.
        long => {
            let (bytes, rest) = rest.split_at_checked(long - 0x80)?;
            (
                bytes
                    .iter()
                    .try_fold(0usize, |sum, byte| sum.checked_mul(256)?.checked_add((*byte).into()))?,
                rest,
            )
        }
    };
    if found == tag { rest.split_at_checked(length) } else { None }
}
