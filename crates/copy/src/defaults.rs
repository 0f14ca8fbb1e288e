//! Defaults of columns: carried over if the literal is a value that the target's type holds.

use crate::canonical::{Reading, decimal, push};
use crate::catalog::DefaultValue;
use crate::engines::engine::Engine;
use crate::issue::IssueKind;
use crate::page::{Cell, Page};
use crate::script::literal;
use crate::types::{Class, Kind, Mapped, UNLIMITED};
use kurabe_core::value::Value;
use kurabe_driver_common::datetime::DateTime;

/// The clause of a default, with a leading space, or why the target cannot have it; empty without one. `kind` is the source's type,
/// `same` whether the target has it too.
pub fn clause(
    same: bool,
    to: &Engine,
    value: &DefaultValue,
    kind: &Kind,
    mapped: &Mapped,
) -> Result<String, String> {
    let class = mapped.stored.class;
    let text = match value {
        DefaultValue::Null => return Ok(String::new()),
        // Where instants are stored in UTC without a zone, the session's time is another one.
        DefaultValue::Now if kind.class == Class::TimestampTz && class == Class::Timestamp => {
            return Err(format!("the current time in UTC, for {}", mapped.sql));
        }
        DefaultValue::Now => {
            let is_time =
                matches!(class, Class::Timestamp | Class::TimestampTz) || class == Class::Text && to.is_loose;
            let now = || format!(" DEFAULT {}", (to.now)(&mapped.stored));
            return is_time.then(now).ok_or_else(|| format!("the current time, for {}", mapped.sql));
        }
        DefaultValue::Expression(text) if same => return Ok(format!(" DEFAULT ({text})")),
        DefaultValue::Expression(text) => return Err(text.clone()),
        DefaultValue::Literal(text) => text,
    };
    // Literals of bytes differ between engines.
    let name = mapped.sql.to_ascii_lowercase();
    if class.is_bytes() || to.without_default.iter().any(|part| name.contains(part)) {
        return Err(text.clone());
    }
    let carried = if same { Some(text.clone()) } else { canonical(kind, text) };
    let held = carried.filter(|text| is_held(same, to, &mapped.stored, text)).ok_or_else(|| text.clone())?;
    let is_number = class.is_whole() || matches!(class, Class::Decimal | Class::Float32 | Class::Float64);
    Ok(match (class, held.as_str()) {
        (Class::Bool, "1" | "t") => " DEFAULT TRUE".to_owned(),
        (Class::Bool, _) => " DEFAULT FALSE".to_owned(),
        (_, held) if is_number => format!(" DEFAULT {held}"),
        (_, held) => format!(" DEFAULT {}", literal(to, held).map_err(|_| text.clone())?),
    })
}

/// A literal as a copy writes such a value; `None` if it is none of the source's type.
fn canonical(kind: &Kind, text: &str) -> Option<String> {
    let mut page = Page::new(1);
    let reading = Reading { class: kind.class, hex: false, exact: kind.class.is_bytes() };
    push(reading, Value::Text(text), &mut page).ok()?;
    match page.last() {
        Cell::Int(number) => Some(number.to_string()),
        Cell::Bytes(bytes) => String::from_utf8(bytes.to_vec()).ok(),
        Cell::Null => None,
    }
}

/// Whether a type holds a literal.
fn is_held(same: bool, to: &Engine, stored: &Kind, text: &str) -> bool {
    let cannot = |kind: IssueKind| to.dialect.cannot_hold(stored) == Some(kind);
    let finite = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let within = |least: i128, most: i128| {
        let whole = decimal(text).and_then(|digits| digits.parse::<i128>().ok());
        whole.is_some_and(|number| (least..=most).contains(&number))
    };
    match stored.class {
        Class::Bool => matches!(text, "0" | "1" | "t" | "f"),
        Class::Int8 => within(i8::MIN.into(), i8::MAX.into()),
        Class::Int16 => within(i16::MIN.into(), i16::MAX.into()),
        Class::Int32 => within(i32::MIN.into(), i32::MAX.into()),
        Class::Int64 => within(i64::MIN.into(), i64::MAX.into()),
        Class::UInt64 => within(0, u64::MAX.into()),
        Class::Float32 => finite(text).is_some_and(|number| (number as f32).is_finite()),
        Class::Decimal | Class::Float64 | Class::Bits if finite(text).is_none() => false,
        _ if same => true,
        Class::Decimal => {
            let digits = decimal(text).unwrap_or_default();
            let (whole, part) = digits.split_once('.').unwrap_or((&digits, ""));
            let whole = whole.trim_start_matches(['-', '0']).len() as u32;
            stored.n == UNLIMITED || whole + stored.s <= stored.n && part.len() as u32 <= stored.s
        }
        Class::Char | Class::Varchar => text.chars().count() as u64 <= u64::from(stored.n),
        Class::Date => is_date(text, !cannot(IssueKind::ZeroDate)),
        Class::Timestamp | Class::TimestampTz => text.split_once(' ').is_some_and(|(date, time)| {
            is_date(date, !cannot(IssueKind::ZeroDate)) && is_time(time, 24, stored.n)
        }),
        // Those of MySQL are differences too.
        Class::Time if !cannot(IssueKind::TimeRange) => {
            is_time(text.strip_prefix('-').unwrap_or(text), 839, stored.n)
        }
        Class::Time => is_time(text, 24, stored.n),
        Class::Uuid => text.len() == 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-'),
        Class::Json => serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok(),
        _ => true,
    }
}

/// Whether it is a day, `2024-01-31`; `zero`: or one of which a part is zero.
fn is_date(text: &str, zero: bool) -> bool {
    let is_day = |at: DateTime| match (at.year, at.month, at.day) {
        (0, ..) | (_, 0, _) | (.., 0) => zero && at.month <= 12 && at.day <= 31,
        _ => at.micros().is_some(),
    };
    text.len() == 10 && DateTime::parse(&format!("{text} 00:00:00")).is_some_and(is_day)
}

/// Whether it is a time of so many hours, with at most so many decimal digits of a second.
fn is_time(text: &str, hours: u32, digits: u32) -> bool {
    let (time, part) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_part = part.len() as u64 <= u64::from(digits) && are_digits(part);
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| are_digits(text));
    let parts: Option<Vec<u32>> = time.split(':').map(number).collect();
    matches!(parts.as_deref(), Some(&[hour, minute, second]) if hour < hours && minute < 60 && second < 60)
        && is_part
}
