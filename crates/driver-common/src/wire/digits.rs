//! Text encodings of numbers and bytes.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// Characters to escape in a part of a URL: all except letters, digits and `-._~` (RFC 3986, section 2.3).
pub const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The two hexadecimal digits of a byte, in lower case.
#[inline]
pub fn hex(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

/// A byte as `%2F`.
#[inline]
pub fn percent(byte: u8) -> [u8; 3] {
    let [high, low] = hex(byte);
    [b'%', high.to_ascii_uppercase(), low.to_ascii_uppercase()]
}

/// The byte of two hexadecimal digits.
pub fn unhex([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

/// Appends a number in decimal digits, without `std::fmt`.
#[inline]
pub fn push_number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The first three numbers of a version: `8.0.36-0ubuntu` is 8, 0 and 36. Missing ones are 0.
pub fn version(text: &str) -> [u64; 3] {
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    [(); 3].map(|()| parts.next().unwrap_or(0))
}
