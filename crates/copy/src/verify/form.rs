//! The form in which verification compares values: from the texts that `Dialect::check` has
//! each server write of a value, by a parser that the copying does not use.
//!
//! Between servers of one kind the texts themselves are compared. Otherwise numbers are compared by their digits without
//! zeros at the ends, floating-point numbers by their bits, dates and times by the numbers of which they consist, documents
//! by sorted keys, and text and bytes byte by byte.

use super::document::{document, number};
use crate::types::Class;
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
    pub(super) shape: Shape,
    pub(super) class: Class,
    /// Whether the server's text is compared as it is.
    pub(super) exact: bool,
    /// Whether the target's numbers in documents have 64 bits.
    pub(super) rounds: bool,
    /// What zero characters become.
    pub(super) no_nul: Option<&'t str>,
    /// The digits of a second that the target keeps.
    pub(super) digits: usize,
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
///
/// # Errors
/// [`Mismatch`](ErrorKind::Mismatch) for a text that is no value of the class.
pub fn push(field: &Field<'_>, text: Option<&[u8]>, out: &mut Vec<u8>) -> Result<()> {
    let Some(text) = text else {
        out.push(0);
        return Ok(());
    };
    let form = if field.exact { Some(Cow::Borrowed(text)) } else { form(field, text) };
    let form = form.ok_or_else(|| {
        let shown: String = String::from_utf8_lossy(text).chars().take(60).collect();
        Error::new(ErrorKind::Mismatch, format!("a value of class {:?} is not one: {shown}", field.class))
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
            let text = word()?;
            let _: serde::de::IgnoredAny = serde_json::from_str(text).ok()?;
            owned(document(&mut &*text, field.rounds))
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
    let part = part.get(..field.digits.min(part.len())).unwrap_or(part).trim_end_matches('0');
    format!("{sign}{}.{part}{before_christ}", numbers.join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn field(class: Class, shape: Shape) -> Field<'static> {
        Field { shape, class, exact: false, rounds: false, no_nul: None, digits: usize::MAX }
    }

    fn of(field: &Field<'_>, text: &str) -> Result<Vec<u8>> {
        let mut form = Vec::new();
        push(field, Some(text.as_bytes()), &mut form).map(|()| form)
    }

    #[test]
    fn texts_of_one_value_have_one_form() {
        for (class, texts) in [
            (Class::Decimal, &["1.5", "1.50", "01.5", "+1.5", "15e-1"][..]),
            (Class::Decimal, &["0", "-0.00", "0e5", ".0"]),
            (Class::Decimal, &["-Infinity", "-Inf", "-inf"]),
            (Class::Decimal, &["-12000", "-12000.0", "-1.2e4"]),
            (Class::Float64, &["0.1", "0.10000000000000001", "1e-1"]),
            (Class::Float64, &["0", "-0.0"]),
            (Class::Float32, &["0.1", "0.10000000149011612"]),
            (Class::Char, &["a", "a  "]),
            (Class::Date, &["2024-02-29", "2024-02-29 00:00:00", "2024-2-29"]),
            (Class::Time, &["01:02:03.5", "01:02:03.500000", "1:2:3.5"]),
            (Class::Timestamp, &["2024-02-29 01:02:03", "2024-02-29T01:02:03.000"]),
            (Class::TimestampTz, &["2024-02-29 00:00:00+00", "2024-02-29", "2024-02-29T00:00:00Z"]),
            (Class::TimestampTz, &["0044-03-15 01:02:03+00 BC", "0044-03-15 01:02:03.000000 BC"]),
            (Class::Json, &["{\"a\":1,\"b\":[]}", "{ \"b\": [], \"a\": 1 }", "{\"a\":2,\"b\":[],\"a\":1.0}"]),
            (Class::Json, &["[\"\\u00e9,}\", 1e2, null]", "[\"é,}\",100.0,null ]"]),
            (Class::Bool, &["t", "true", "1"]),
            (Class::UInt64, &["18446744073709551615", "18446744073709551615.0"]),
            (Class::Uuid, &["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc999c0b4ef8bb6d6bb9bd380a11"]),
        ] {
            let field = field(class, Shape::Plain);
            for text in texts {
                assert_eq!(of(&field, text).unwrap(), of(&field, texts[0]).unwrap(), "{class:?} {text}");
            }
        }
    }

    #[test]
    fn document_may_be_nested_deeper_than_a_stack_is() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(20_000), "]".repeat(20_000));
        let of = |text: &str| of(&field(Class::Json, Shape::Plain), text).unwrap();
        assert_eq!(of(&deep("{\"a\": 1.0}")), of(&deep("{\"a\":1}")));
        assert_ne!(of(&deep("1")), of(&deep("[1]")));
    }

    #[test]
    fn different_values_have_different_forms() {
        for (class, a, b) in [
            (Class::Int64, "1", "10"),
            (Class::Decimal, "1.5", "-1.5"),
            (Class::Decimal, "0.1", "0.10000000000000000000001"),
            (Class::Float64, "0.1", "0.10000000000000002"),
            (Class::Varchar, "a", "a "),
            (Class::Date, "2024-02-29", "2024-02-28"),
            (Class::Time, "01:02:03", "-01:02:03"),
            (Class::Timestamp, "2024-02-29 01:02:03", "2024-02-29 01:02:03.000001"),
            (Class::Timestamp, "2024-02-29 10:00:00", "2024-02-29 10:00:00-05:00"),
            (Class::Timestamp, "0044-03-15 01:02:03", "0044-03-15 01:02:03 BC"),
            (Class::Timestamp, "infinity", "-infinity"),
            (Class::Json, "{\"a\":1}", "{\"a\":\"1\"}"),
            (Class::Json, "[0.1]", "[0.10000000000000000001]"),
            (Class::Json, "12345678901234567890123", "12345678901234567890124"),
            (Class::Json, "[[1],2]", "[[1,2]]"),
            (Class::Json, "\"a\\\\\"", "\"a\\\"\""),
        ] {
            let field = field(class, Shape::Plain);
            assert_ne!(of(&field, a).unwrap(), of(&field, b).unwrap(), "{class:?}");
        }
        for (class, text) in
            [(Class::Bool, "yes"), (Class::Int32, "x"), (Class::Decimal, "1.2.3"), (Class::Json, "{")]
        {
            assert!(of(&field(class, Shape::Plain), text).is_err(), "{class:?} {text}");
        }
        let rounded = Field { rounds: true, ..field(Class::Json, Shape::Plain) };
        let [a, b, c] = ["[12345678901234567890123]", "[12345678901234567890124]", "[18446744073709551615]"];
        assert_eq!(of(&rounded, a).unwrap(), of(&rounded, b).unwrap());
        assert_ne!(of(&rounded, c).unwrap(), of(&rounded, "[18446744073709551614]").unwrap());
    }

    #[test]
    fn shapes_hold_one_value_in_several_ways() {
        let same = |class: Class, texts: &[(Shape, &str)]| {
            for (shape, text) in texts {
                let first = of(&field(class, texts[0].0), texts[0].1).unwrap();
                assert_eq!(of(&field(class, *shape), text).unwrap(), first, "{class:?} {shape:?} {text}");
            }
        };
        same(
            Class::Float64,
            &[(Shape::Bits, "3fb999999999999a"), (Shape::Plain, "0.1"), (Shape::Tagged, "0.1")],
        );
        same(Class::Float32, &[(Shape::Bits, "3dcccccd"), (Shape::Tagged, "0.10000000149011612")]);
        same(Class::Float64, &[(Shape::Bits, "fff0000000000000"), (Shape::Tagged, "-inf")]);
        same(Class::Text, &[(Shape::Hex, "610062"), (Shape::Tagged, "t610062"), (Shape::Plain, "a\0b")]);
        same(Class::Blob, &[(Shape::Hex, "6100FF"), (Shape::Tagged, "b6100ff")]);
        same(Class::Int64, &[(Shape::Plain, "-70"), (Shape::Tagged, "#-70"), (Shape::Tagged, "t2D3730")]);
        for (shape, text) in [(Shape::Hex, "abc"), (Shape::Hex, "0g"), (Shape::Tagged, "")] {
            assert_eq!(bare(shape, text.as_bytes()), None, "{shape:?} {text}");
        }
    }

    proptest! {
        #[test]
        fn numbers_keep_all_digits(whole in "[1-9][0-9]{0,40}", part in "[0-9]{0,40}[1-9]") {
            let places = part.len();
            prop_assert_eq!(number(&format!("00{whole}.{part}000")), Some(format!("{whole}{part}e-{places}")));
        }
    }
}
