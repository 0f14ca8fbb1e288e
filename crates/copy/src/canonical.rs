//! The canonical form of values, in which they are written to a target.
//!
//! Whole numbers are numbers; decimal numbers have no zeros at their ends; floating-point numbers are their shortest
//! text; dates and times are ISO 8601 with a space, without zeros at the end of a fraction, instants in UTC; documents,
//! text and bytes are as they are. Verification reads and compares values in its own way.

use crate::issue::{Becomes, IssueKind};
use crate::page::{Cell, Page};
use crate::types::Class;
use kurabe_core::text::cut;
use kurabe_core::value::Value;
use kurabe_core::{Error, Result};
use kurabe_driver_common::datetime::DateTime;
use kurabe_driver_common::wire::unhex;
use std::borrow::Cow;

/// How a side's values are read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The class of the source's column.
    pub class: Class,
    /// Whether bytes come as `\x` and hexadecimal digits.
    pub hex: bool,
    /// Whether both sides are servers of one kind, and values are carried as the source writes them.
    pub exact: bool,
}

impl Reading {
    /// Values as they come.
    pub const RAW: Self = Self { class: Class::Native, hex: false, exact: true };
}

/// Appends the canonical form of a field, after the values that the target cannot hold have become what was accepted.
pub fn push_mended(reading: Reading, mended: Option<&Mend>, value: Value<'_>, out: &mut Page) -> Result<()> {
    push(reading, value, out)?;
    if let (Some(mended), Cell::Bytes(bytes)) = (mended, out.last()) {
        let becomes = mend(mended, bytes);
        out.replace_last(becomes.as_deref().map_or(Cell::Null, Cell::Bytes));
    }
    Ok(())
}

/// Appends the canonical form of a field of a reply.
pub fn push(reading: Reading, value: Value<'_>, out: &mut Page) -> Result<()> {
    let class = reading.class;
    let wrong = |text: &str| wrong(class, text);
    let mut put = |cell: Cell<'_>| {
        out.push(cell);
        Ok(())
    };
    let text: Cow<'_, [u8]> = match value {
        Value::Null => return put(Cell::Null),
        Value::Int(number) => match class {
            class if reading.exact || class.is_whole() => return put(Cell::Int(number)),
            Class::Bool => return put(Cell::Int(i64::from(number != 0))),
            Class::Float32 | Class::Float64 if number as f64 as i128 != i128::from(number) => {
                return Err(wrong(&number.to_string()));
            }
            _ => Cow::Owned(number.to_string().into_bytes()),
        },
        Value::Bool(truth) => return put(Cell::Int(i64::from(truth))),
        Value::Time(micros) => Cow::Owned(DateTime::from_micros(micros)?.to_string().into_bytes()),
        Value::Text(text) => Cow::Borrowed(text.as_bytes()),
        Value::Bytes(bytes) => Cow::Borrowed(bytes),
    };
    if class.is_bytes() && reading.hex {
        return put(Cell::Bytes(&from_hex(text.strip_prefix(b"\\x").unwrap_or(&text))?));
    }
    if reading.exact
        || class.is_bytes()
        || matches!(class, Class::Varchar | Class::Text | Class::Enum | Class::Native)
    {
        return put(Cell::Bytes(&text));
    }
    let text = match std::str::from_utf8(&text) {
        Ok(text) => text,
        // The target decides, and a row that it refuses has a name.
        Err(_) if matches!(class, Class::Char | Class::Json) => return put(Cell::Bytes(&text)),
        Err(_) => return Err(wrong("is not UTF-8")),
    };
    let mut put_text = |text: &str| put(Cell::Bytes(text.as_bytes()));
    match class {
        Class::Bool => match text {
            "t" | "true" | "1" | "TRUE" => put(Cell::Int(1)),
            "f" | "false" | "0" | "FALSE" => put(Cell::Int(0)),
            _ => Err(wrong(text)),
        },
        class if class.is_whole() => {
            // A boolean of the target, by the user's word.
            if let "t" | "true" | "f" | "false" = text {
                return put(Cell::Int(i64::from(text.starts_with('t'))));
            }
            let digits = decimal(text).ok_or_else(|| wrong(text))?;
            put(digits.parse().map_or(Cell::Bytes(digits.as_bytes()), Cell::Int))
        }
        Class::Decimal => put_text(&decimal(text).ok_or_else(|| wrong(text))?),
        Class::Float32 | Class::Float64 => {
            let short = |number: &str| match class {
                Class::Float32 => number.parse::<f32>().map(|number| format!("{number:?}")),
                _ => number.parse::<f64>().map(|number| format!("{number:?}")),
            };
            put_text(&short(text.trim()).map_err(|_| wrong(text))?.replace("inf", "Infinity"))
        }
        Class::Char => put_text(text.trim_end_matches(' ')),
        Class::Date => put_text(text.strip_suffix(" 00:00:00").unwrap_or(text)),
        Class::Time => put_text(without_zeros(text)),
        Class::Timestamp | Class::TimestampTz => put_text(&timestamp(text)),
        Class::Uuid => put_text(&text.to_ascii_lowercase()),
        Class::Json => {
            let _: serde::de::IgnoredAny =
                serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
            put_text(text)
        }
        _ => put_text(text),
    }
}

fn wrong(class: Class, text: &str) -> Error {
    let what = format!("a value of class {class:?} is not one: {}", cut(text, 60));
    Error::new(kurabe_core::ErrorKind::Mismatch, what)
}

/// A decimal number without zeros at its ends; `None` if it is not one. An exponent is resolved.
pub fn decimal(text: &str) -> Option<String> {
    let text = text.trim();
    match text {
        "NaN" | "Infinity" | "-Infinity" => return Some(text.to_owned()),
        // As SQLite and its driver write them.
        "Inf" | "inf" => return Some("Infinity".to_owned()),
        "-Inf" | "-inf" => return Some("-Infinity".to_owned()),
        _ => {}
    }
    let minus = if text.starts_with('-') { "-" } else { "" };
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (digits, exponent) = match digits.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() + fraction.len() == 0 || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let all = format!("{whole}{fraction}");
    let point = i32::try_from(whole.len()).ok()?.checked_add(exponent)?;
    // No engine has numbers of more digits.
    if !(-200_000..=200_000).contains(&point) {
        return None;
    }
    let (whole, fraction) = if point <= 0 {
        (String::new(), format!("{}{all}", "0".repeat(point.unsigned_abs() as usize)))
    } else if point as usize >= all.len() {
        (format!("{all}{}", "0".repeat(point as usize - all.len())), String::new())
    } else {
        let (whole, fraction) = all.split_at(point as usize);
        (whole.to_owned(), fraction.to_owned())
    };
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    if whole.is_empty() && fraction.is_empty() {
        return Some("0".to_owned());
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{minus}{whole}{point}{fraction}"))
}

/// A time without zeros at the end of its fraction.
fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// A date and time with a space between, in UTC.
fn timestamp(text: &str) -> String {
    let text = text.trim();
    let text = ["+00:00", "+00", "Z", " UTC"].iter().find_map(|zone| text.strip_suffix(zone)).unwrap_or(text);
    let text = match text.split_once('T') {
        Some((date, time)) if date.len() == 10 => format!("{date} {time}"),
        _ => text.to_owned(),
    };
    if text.len() == 10 && text.as_bytes().get(4) == Some(&b'-') {
        return format!("{text} 00:00:00");
    }
    without_zeros(&text).to_owned()
}

/// The bytes of hexadecimal digits.
pub fn from_hex(digits: &[u8]) -> Result<Vec<u8>> {
    let malformed = || wrong(Class::Blob, "is not hexadecimal");
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(malformed());
    }
    pairs.iter().map(|pair| unhex(*pair).ok_or_else(malformed)).collect()
}

/// A kind of values that the target cannot hold, and what the user has accepted that they become.
pub type Mend = (IssueKind, Becomes);

/// A value after those that the target cannot hold have become what the user accepted. `None` is null.
pub fn mend((kind, becomes): &Mend, bytes: &[u8]) -> Option<Vec<u8>> {
    let other = if let Becomes::Text(other) = becomes { Some(other.as_bytes()) } else { None };
    let text = String::from_utf8_lossy(bytes);
    let is_unfit = match kind {
        IssueKind::ZeroDate => has_zero_part(&text),
        IssueKind::DateRange => !is_in_years(&text),
        IssueKind::TimeRange => !is_time_of_day(&text),
        IssueKind::NotANumber => text == "NaN" || text.ends_with("Infinity"),
        _ => return Some(bytes.split(|byte| *byte == 0).collect::<Vec<_>>().join(other.unwrap_or_default())),
    };
    if is_unfit { other.map(<[u8]>::to_vec) } else { Some(bytes.to_vec()) }
}

fn has_zero_part(text: &str) -> bool {
    text.starts_with("0000") || text.get(5..7) == Some("00") || text.get(8..10) == Some("00")
}

fn is_in_years(text: &str) -> bool {
    let year = text.split('-').next().unwrap_or_default();
    year.len() == 4 && year != "0000" && year.bytes().all(|b| b.is_ascii_digit()) && !text.ends_with("BC")
}

fn is_time_of_day(text: &str) -> bool {
    let hours = text.split(':').next().unwrap_or_default();
    hours.len() == 2 && hours.parse::<u8>().is_ok_and(|hours| hours < 24)
}
