//! Conversion of binary values to the server's text format. The `postgres` crate requests the binary format for all
//! types, including those of custom tables. Layouts: the types' `…_send` functions in PostgreSQL's source.

use super::values::Form;
use crate::prelude::*;
use crate::wire::{hex, malformed};
use std::fmt::Write as _;

/// Days from 1970-01-01 to 2000-01-01, PostgreSQL's epoch.
const EPOCH: i64 = 10_957;
const DAY: i64 = 86_400_000_000;

pub(super) fn is_read(type_number: u32) -> bool {
    Form::of(type_number).is_binary()
        || matches!(type_number, 16 | 26 | 700 | 701 | 1082 | 1700 | 2950 | 3802)
}

pub(super) fn push(type_number: u32, bytes: &[u8], out: &mut Reply) -> Result<()> {
    let form = Form::of(type_number);
    if form.is_binary() {
        return form.push(bytes, out);
    }
    let wrong = || malformed(format!("a value of type {type_number} of {} bytes", bytes.len()));
    if type_number == 3802 {
        // The format version, and the text.
        let [1, text @ ..] = bytes else { return Err(wrong()) };
        out.push_bytes(text);
        return Ok(());
    }
    let text = match (type_number, bytes) {
        (16, [0]) => "f".to_owned(),
        (16, [1]) => "t".to_owned(),
        (26, _) => u32::from_be_bytes(array(bytes).ok_or_else(wrong)?).to_string(),
        (700, _) => f32::from_be_bytes(array(bytes).ok_or_else(wrong)?).to_string(),
        (701, _) => f64::from_be_bytes(array(bytes).ok_or_else(wrong)?).to_string(),
        (1082, _) => date(i32::from_be_bytes(array(bytes).ok_or_else(wrong)?))?,
        (1700, _) => numeric(bytes).ok_or_else(wrong)?,
        (2950, _) => uuid(bytes).ok_or_else(wrong)?,
        _ => return Err(wrong()),
    };
    out.push_bytes(text.as_bytes());
    Ok(())
}

fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// `2024-02-29`, from days since 2000.
fn date(days: i32) -> Result<String> {
    Ok(match days {
        i32::MAX => "infinity".to_owned(),
        i32::MIN => "-infinity".to_owned(),
        days => {
            let mut text = DateTime::from_micros((i64::from(days) + EPOCH).saturating_mul(DAY))?.to_string();
            text.truncate("2024-02-29".len());
            text
        }
    })
}

fn uuid(bytes: &[u8]) -> Option<String> {
    let bytes: [u8; 16] = array(bytes)?;
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.extend(hex(*byte).map(char::from));
    }
    Some(text)
}

/// Reads a `numeric`: the number of digits, the weight of the first, the sign and the number of decimals, 16 bits each;
/// then the digits in base 10,000.
fn numeric(bytes: &[u8]) -> Option<String> {
    let (words, rest) = bytes.as_chunks::<2>();
    let (head, digits) = words.split_first_chunk::<4>()?;
    let [count, weight, sign, decimals] = head.map(u16::from_be_bytes);
    if usize::from(count) != digits.len() || !rest.is_empty() {
        return None;
    }
    let mut text = match sign {
        0 => String::new(),
        0x4000 => "-".to_owned(),
        0xc000 => return Some("NaN".to_owned()),
        0xd000 => return Some("Infinity".to_owned()),
        0xf000 => return Some("-Infinity".to_owned()),
        _ => return None,
    };
    let weight = i32::from(weight as i16);
    let digit = |power: i32| {
        let at = usize::try_from(weight - power).ok();
        at.and_then(|at| digits.get(at)).map_or(0, |digit| u16::from_be_bytes(*digit))
    };
    // Writing to a String cannot fail.
    let _ = write!(text, "{}", digit(weight.max(0)));
    for power in (0..weight).rev() {
        let _ = write!(text, "{:04}", digit(power));
    }
    if decimals > 0 {
        let point = text.len();
        for power in 1..=i32::from(decimals.div_ceil(4)) {
            let _ = write!(text, "{:04}", digit(-power));
        }
        text.truncate(point + usize::from(decimals));
        text.insert(point, '.');
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(type_number: u32, bytes: &[u8]) -> Result<String> {
        let mut reply = Reply::new();
        push(type_number, bytes, &mut reply)?;
        reply.end_row();
        Ok(String::from_utf8_lossy(reply.field_bytes(0, 0).unwrap()).into_owned())
    }

    fn words(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn values_match_text_format_of_server() {
        let minus = u16::MAX;
        for (number, expected) in [
            (&[0, 0, 0, 0][..], "0"),
            (&[0, 0, 0, 2], "0.00"),
            (&[2, 0, 0, 2, 12, 5_000], "12.50"),
            (&[3, 1, 0x4000, 5, 1, 2_345, 6_789], "-12345.67890"),
            (&[1, 2, 0, 0, 7], "700000000"),
            (&[1, minus, 0, 4, 12], "0.0012"),
            (&[1, minus - 1, 0, 6, 3_400], "0.000034"),
            (&[0, 0, 0xc000, 0], "NaN"),
            (&[0, 0, 0xf000, 0], "-Infinity"),
        ] {
            assert_eq!(read(1700, &words(number)).unwrap(), expected);
        }
        for (kind, bytes, expected) in [
            (16, &[1][..], "t"),
            (16, &[0], "f"),
            (26, &[255, 255, 255, 255], "4294967295"),
            (701, &0.1_f64.to_be_bytes(), "0.1"),
            (1082, &8_825_i32.to_be_bytes(), "2024-02-29"),
            (1082, &(-10_958_i32).to_be_bytes(), "1969-12-31"),
            (1082, &i32::MAX.to_be_bytes(), "infinity"),
            (3802, b"\x01{\"a\": 1}", "{\"a\": 1}"),
            (25, b"text", "text"),
            (
                2950,
                &[0xa0, 0xee, 0xbc, 0x99, 0x9c, 11, 0x4e, 0xf8, 0xbb, 0x6d, 0x6b, 0xb9, 0xbd, 0x38, 10, 17],
                "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            ),
        ] {
            assert_eq!(read(kind, bytes).unwrap(), expected);
        }
        for (kind, bytes) in
            [(16, &[2][..]), (1700, &[0; 7]), (2950, &[0; 15]), (3802, b"\x02{}"), (600, &[0; 16])]
        {
            assert_eq!(read(kind, bytes).unwrap_err().kind(), ErrorKind::Protocol, "{kind}");
        }
        // These days have more microseconds than an i64.
        for days in [i32::MAX - 1, i32::MIN + 1] {
            assert_eq!(read(1082, &days.to_be_bytes()).unwrap_err().kind(), ErrorKind::Usage, "{days}");
        }
        assert!(is_read(1700) && is_read(20) && !is_read(600));
    }

    mod fuzz {
        use super::*;
        use crate::wire::script::Parts;

        /// The types whose binary format is read, here or by the lean client.
        const TYPES: [u16; 13] = [16, 20, 21, 23, 25, 26, 700, 701, 1082, 1184, 1700, 2950, 3802];

        /// The input is a type's number in two bytes, then the value.
        #[test]
        fn any_value_of_any_type_is_text_or_an_error() {
            bolero::check!(name = "postgres-values").for_each(|input: &[u8]| {
                let mut parts = Parts::new(input);
                let number = parts.number();
                let known = TYPES.contains(&number);
                let kind = if known { number } else { TYPES[usize::from(number) % TYPES.len()] };
                let (kind, bytes) = (kind.into(), parts.rest());
                let _ = push(kind, bytes, &mut Reply::new());
                let _ = Form::of(kind).push(bytes, &mut Reply::new());
                let _ = Form::of(kind).as_text().push(bytes, &mut Reply::new());
            });
        }
    }
}
