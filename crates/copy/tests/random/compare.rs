//! Compares the rows of two tables without the code under test.

use super::Table;
use super::draw::{Form, hex};
use super::dump::Cells;
use kurabe_copy::plan::Plan;
use std::collections::BTreeSet;

/// Whether two texts are one value.
fn same(form: Form, from: &[u8], to: &[u8]) -> bool {
    if from == to {
        return true;
    }
    let (Ok(a), Ok(b)) = (std::str::from_utf8(from), std::str::from_utf8(to)) else { return false };
    let float = |text: &str| match text.trim() {
        "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        text => text.parse::<f64>().ok(),
    };
    let floats = || {
        let (Some(a), Some(b)) = (float(a), float(b)) else { return false };
        (a + 0.0).to_bits() == (b + 0.0).to_bits() || a.is_nan() && b.is_nan()
    };
    let number = |text: &str| -> Option<(bool, String, String)> {
        let text = text.trim();
        let (minus, digits) =
            text.strip_prefix('-').map_or((false, text.trim_start_matches('+')), |rest| (true, rest));
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let right = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let (whole, part) = (whole.trim_start_matches('0'), right(part).then(|| part.trim_end_matches('0'))?);
        let zero = whole.is_empty() && part.is_empty();
        (right(whole) && !digits.is_empty()).then(|| (minus && !zero, whole.to_owned(), part.to_owned()))
    };
    let time = |text: &str| {
        let text = text.replace('T', " ");
        let text = text.trim_end_matches("+00");
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
        text.trim_end_matches(" 00:00:00").to_owned()
    };
    let truth = |text: &str| match text.trim() {
        "t" | "true" | "TRUE" | "1" => Some(true),
        "f" | "false" | "FALSE" | "0" => Some(false),
        _ => None,
    };
    let truths = || truth(a).is_some() && truth(a) == truth(b);
    let numbers = || number(a).is_some() && number(a) == number(b);
    match form {
        Form::Number => numbers(),
        Form::Float64 => floats(),
        Form::Float32 => {
            let (Some(x), Some(y)) = (float(a), float(b)) else { return false };
            (x as f32 + 0.0).to_bits() == (y as f32 + 0.0).to_bits() || floats()
        }
        Form::Bool => truths(),
        Form::Bytes => false,
        Form::Padded => a.trim_end_matches(' ') == b.trim_end_matches(' '),
        Form::Time => time(a) == time(b),
        Form::Uuid => a.trim().eq_ignore_ascii_case(b.trim()),
        Form::Json => json(a) == json(b),
        Form::Any => {
            numbers()
                || floats()
                || truths()
                || time(a) == time(b)
                || a.trim().eq_ignore_ascii_case(b.trim()) && a.len() == 36
                || a.starts_with(['{', '[', '"']) && json(a) == json(b)
        }
    }
}

/// A document without spaces, its keys sorted, and its numbers as decimal numbers.
fn json(text: &str) -> String {
    fn value(rest: &mut &str) -> String {
        *rest = rest.trim_start();
        let first = rest.chars().next().unwrap_or(' ');
        match first {
            '[' | '{' => {
                *rest = &rest[1..];
                let mut parts = Vec::new();
                loop {
                    *rest = rest.trim_start_matches([' ', ',', '\n', '\t']);
                    if rest.is_empty() || rest.starts_with([']', '}']) {
                        *rest = rest.get(1..).unwrap_or("");
                        break;
                    }
                    let mut part = value(rest);
                    *rest = rest.trim_start();
                    if first == '{' {
                        *rest = rest.strip_prefix(':').unwrap_or(rest);
                        part = format!("{part}:{}", value(rest));
                    }
                    parts.push(part);
                }
                if first == '{' {
                    parts.sort();
                }
                format!("{first}{}", parts.join(","))
            }
            '"' => {
                let mut end = 1;
                while !rest[end..].starts_with('"') {
                    end += if rest[end..].starts_with('\\') {
                        2
                    } else {
                        rest[end..].chars().next().map_or(1, char::len_utf8)
                    };
                }
                let (word, after) = rest.split_at(end + 1);
                *rest = after;
                format!("{:?}", serde_json::from_str::<String>(word).unwrap_or_default())
            }
            _ => {
                let end = rest.find([',', ']', '}', ' ', '\n']).unwrap_or(rest.len()).max(1);
                let (word, after) = rest.split_at(end.min(rest.len()));
                *rest = after;
                word.parse::<f64>().map_or(word.to_owned(), |number| {
                    let whole = word.trim_end_matches('0').trim_end_matches('.');
                    if word.contains(['e', 'E']) {
                        format!("{number:?}")
                    } else if word.contains('.') {
                        whole.to_owned()
                    } else {
                        word.to_owned()
                    }
                })
            }
        }
    }
    value(&mut &*text)
}

/// Whether the plan listed that this value becomes another one.
fn listed(kinds: &BTreeSet<&str>, from: &[u8], to: Option<&[u8]>) -> bool {
    let text = String::from_utf8_lossy(from).to_lowercase();
    let has = |kind: &str| kinds.contains(kind);
    let Some(to) = to else {
        let zero = text.starts_with("0000") || text.get(5..7) == Some("00") || text.get(8..10) == Some("00");
        let far = text.contains("bc")
            || text.contains("infinity")
            || text.split('-').next().is_some_and(|year| year.len() > 4);
        let clock = text.starts_with('-')
            || text.split(':').next().is_some_and(|hours| hours.parse::<u32>().is_ok_and(|h| h > 23));
        let number = matches!(text.trim(), "nan" | "infinity" | "-infinity" | "inf" | "-inf");
        return has("zero-date") && zero
            || has("date-range") && (far || zero)
            || has("time-range") && clock
            || has("not-a-number") && number;
    };
    let bytes: Vec<u8> = from.iter().copied().filter(|byte| *byte != 0).collect();
    let target = String::from_utf8_lossy(to);
    has("nul-character") && bytes == to
        || has("fraction")
            && text.split_once('.').is_some_and(|(clock, part)| {
                let cut = format!("{clock}.{}", &part[..part.len().min(4)]);
                same(Form::Time, cut.as_bytes(), target.as_bytes())
            })
}

/// Compares a table of both sides. `None` if it is the same, or what differs was listed.
pub fn compare(from: &[Cells], to: &[Cells], table: &Table, plan: &Plan) -> Option<String> {
    if from.len() != to.len() {
        return Some(format!("{} rows became {}", from.len(), to.len()));
    }
    for (at, (name, declared, form)) in table.columns.iter().enumerate() {
        let object = format!("{}.{name}", table.name).to_lowercase();
        let kinds: BTreeSet<&str> = plan
            .issues
            .iter()
            .filter(|issue| issue.object.to_lowercase() == object)
            .map(|issue| issue.kind.name())
            .collect();
        for (from, to) in from.iter().zip(to) {
            let (Some(from), Some(to)) = (from.get(at), to.get(at)) else {
                return Some(format!("{name} is missing"));
            };
            let right = match (from, to) {
                (None, None) => true,
                (Some(from), Some(to)) => same(*form, from, to) || listed(&kinds, from, Some(to)),
                (Some(from), None) => listed(&kinds, from, None),
                (None, Some(_)) => false,
            };
            if !right {
                let shown = |cell: &Option<Vec<u8>>| {
                    cell.as_ref().map(|bytes| format!("{:?} {}", String::from_utf8_lossy(bytes), hex(bytes)))
                };
                return Some(format!(
                    "{name} {declared}: {:?} became {:?}; listed {kinds:?}",
                    shown(from),
                    shown(to)
                ));
            }
        }
    }
    None
}
