//! The form in which verification compares values: from the texts that `Dialect::check` has
//! each server write of a value, by a parser that the copying does not use.
//!
//! Between servers of one kind the texts themselves are compared. Otherwise numbers are compared by their digits without
//! zeros at the ends, floating-point numbers by their bits, dates and times by the numbers of which they consist, documents
//! by sorted keys, and text and bytes byte by byte.

use super::document::document;
pub use super::document::number;
use crate::types::Class;
use kurabe_core::text::cut;
use kurabe_core::{Error, ErrorKind, Result};
use std::borrow::Cow;

/// How a server writes a value for verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As it is: text of a number or of a time, or bytes.
    Plain,
    /// The hexadecimal digits of its bytes.
    Hex,
    /// The hexadecimal digits of a floating-point number of IEEE 754, the sign first.
    Bits,
    /// By its storage class on SQLite: an integer after a `#`, hexadecimal digits of text after a `t` and of bytes after a `b`;
    /// a real number is as it is.
    Tagged,
}

/// A column, as verification reads it.
pub struct Field<'t> {
    pub shape: Shape,
    pub class: Class,
    /// Whether the server's text is compared as it is.
    pub exact: bool,
    /// Whether the target's numbers in documents have 64 bits.
    pub rounds: bool,
    /// What zero characters become.
    pub no_nul: Option<&'t str>,
}

/// A value without its shape.
#[derive(Debug, PartialEq)]
pub enum Bare<'v> {
    /// Text or bytes.
    Bytes(Cow<'v, [u8]>),
    /// A floating-point number.
    Float(f64),
}

/// A value without its shape; `None` if the text is not of the shape.
pub fn bare(shape: Shape, text: &[u8]) -> Option<Bare<'_>> {
    let word = || std::str::from_utf8(text).ok();
    Some(match shape {
        Shape::Plain => Bare::Bytes(Cow::Borrowed(text)),
        Shape::Hex => Bare::Bytes(Cow::Owned(unhex(text)?)),
        Shape::Bits if text.len() == 8 => {
            Bare::Float(f32::from_bits(u32::from_str_radix(word()?, 16).ok()?).into())
        }
        Shape::Bits => Bare::Float(f64::from_bits(u64::from_str_radix(word()?, 16).ok()?)),
        Shape::Tagged => {
            let (tag, rest) = text.split_first()?;
            match tag {
                b'#' => Bare::Bytes(Cow::Borrowed(rest)),
                b't' | b'b' => Bare::Bytes(Cow::Owned(unhex(rest)?)),
                _ => Bare::Float(word()?.parse().ok()?),
            }
        }
    })
}

/// The value of each hexadecimal digit; 16 for all other bytes.
const DIGITS: [u8; 256] = {
    let mut digits = [16; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value] as usize] = value as u8;
        digits[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let (mut bytes, mut seen) = (Vec::with_capacity(pairs.len()), 0);
    bytes.extend(pairs.iter().map(|[high, low]| {
        let (high, low) = (DIGITS[usize::from(*high)], DIGITS[usize::from(*low)]);
        seen |= high | low;
        high << 4 | low
    }));
    (rest.is_empty() && seen < 16).then_some(bytes)
}

/// Appends the form of a value, so that different values never give the same bytes.
pub fn push(field: &Field<'_>, text: Option<&[u8]>, out: &mut Vec<u8>) -> Result<()> {
    let Some(text) = text else {
        out.push(0);
        return Ok(());
    };
    let form = if field.exact { Some(Cow::Borrowed(text)) } else { form(field, text) };
    let form = form.ok_or_else(|| {
        let text = String::from_utf8_lossy(text);
        let what = format!("a value of class {:?} is not one: {}", field.class, cut(&text, 60));
        Error::new(ErrorKind::Mismatch, what)
    })?;
    out.push(1);
    out.extend((form.len() as u64).to_le_bytes());
    out.extend_from_slice(&form);
    Ok(())
}

fn form<'v>(field: &Field<'_>, text: &'v [u8]) -> Option<Cow<'v, [u8]>> {
    let bytes = match (bare(field.shape, text)?, field.class) {
        (Bare::Float(number), Class::Float32) => return Some(bits(f64::from(number as f32))),
        (Bare::Float(number), Class::Float64) => return Some(bits(number)),
        (Bare::Float(number), _) => Cow::Owned(number.to_string().into_bytes()),
        (Bare::Bytes(bytes), _) => bytes,
    };
    let owned = |text: String| Some(Cow::Owned(text.into_bytes()));
    let word = || std::str::from_utf8(&bytes).ok().map(str::trim);
    match field.class {
        class if class.is_whole() || matches!(class, Class::Bool | Class::Decimal) => owned(number(word()?)?),
        Class::Float32 => Some(bits(word()?.parse::<f32>().ok()?.into())),
        Class::Float64 => Some(bits(word()?.parse().ok()?)),
        Class::Date | Class::Time | Class::Timestamp | Class::TimestampTz => owned(time(field, word()?)),
        Class::Uuid => owned(word()?.replace('-', "").to_ascii_lowercase()),
        Class::Json => {
            let Some(text) = word() else { return Some(bytes) };
            let _: serde::de::IgnoredAny = serde_json::from_str(text).ok()?;
            owned(document(text, field.rounds))
        }
        _ => {
            let mut bytes = bytes;
            if let Some(other) = field.no_nul {
                bytes = Cow::Owned(bytes.split(|byte| *byte == 0).collect::<Vec<_>>().join(other.as_bytes()));
            }
            if field.class == Class::Char {
                let spaces = bytes.iter().rev().take_while(|byte| **byte == b' ').count();
                bytes = Cow::Owned(bytes[..bytes.len() - spaces].to_vec());
            }
            Some(bytes)
        }
    }
}

/// The bits of a number. A zero has no sign, and all that are no number are one.
fn bits(number: f64) -> Cow<'static, [u8]> {
    let number = if number.is_nan() { f64::NAN } else { number + 0.0 };
    Cow::Owned(number.to_bits().to_be_bytes().to_vec())
}

/// A date, a time or both: the numbers of which it consists. What is no such text stays as it is.
fn time(field: &Field<'_>, text: &str) -> String {
    let (text, before_christ) = text.strip_suffix(" BC").map_or((text, ""), |text| (text, " BC"));
    let text = ["+00:00", "+00", "Z", " UTC"].iter().find_map(|zone| text.strip_suffix(zone)).unwrap_or(text);
    let (text, sign) = text.strip_prefix('-').map_or((text, ""), |text| (text, "-"));
    let (clock, part) = text.split_once('.').unwrap_or((text, ""));
    let mut numbers: Vec<&str> = clock.split(['-', ':', ' ', 'T']).collect();
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let all = if field.class == Class::Time { 3 } else { 6 };
    if numbers.len() > all || !numbers.iter().all(is_number) || !(part.is_empty() || is_number(&part)) {
        return format!("{sign}{text}{before_christ}");
    }
    numbers.resize(all, "0");
    for number in &mut numbers {
        *number = number.trim_start_matches('0');
    }
    format!("{sign}{}.{}{before_christ}", numbers.join(":"), part.trim_end_matches('0'))
}
