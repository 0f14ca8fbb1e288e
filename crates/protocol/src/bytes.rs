//! Parts of messages that many protocols have.

/// Two bytes as a number, the lowest first; 0 if they are missing.
pub fn short(bytes: &[u8], at: usize) -> u16 {
    chunk(bytes, at).map_or(0, u16::from_le_bytes)
}

/// Four bytes as a number, the lowest first; 0 if they are missing.
#[inline]
pub fn word(bytes: &[u8], at: usize) -> u32 {
    chunk(bytes, at).map_or(0, u32::from_le_bytes)
}

/// Four bytes as a number, the highest first; 0 if they are missing.
pub(crate) fn word_be(bytes: &[u8], at: usize) -> u32 {
    chunk(bytes, at).map_or(0, u32::from_be_bytes)
}

/// Two bytes as a number, the highest first.
pub fn short_be(bytes: &[u8], at: usize) -> Option<u16> {
    chunk(bytes, at).map(u16::from_be_bytes)
}

/// Up to eight bytes as a number with a sign.
pub fn integer(bytes: &[u8], is_little: bool) -> Option<i64> {
    let highest = if is_little { bytes.last() } else { bytes.first() };
    let sign = if *highest? < 0x80 { 0 } else { -1 };
    let add = |number: i64, byte: &u8| number << 8 | i64::from(*byte);
    let number = if is_little { bytes.iter().rfold(sign, add) } else { bytes.iter().fold(sign, add) };
    (bytes.len() <= 8).then_some(number)
}

/// The bytes from `at` on, if all of them are there.
#[inline]
pub(crate) fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The bytes before the first zero from `at` on, and the position after it.
pub fn until_zero(bytes: &[u8], at: usize) -> (&[u8], usize) {
    let rest = bytes.get(at..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    (rest.get(..end).unwrap_or_default(), at.saturating_add(end).saturating_add(1))
}
