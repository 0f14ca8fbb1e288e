//! The form of JSON documents, and of the numbers in them.

use std::collections::BTreeMap;

/// A number as its significant digits and an exponent; a truth as 1 or 0.
pub fn number(text: &str) -> Option<String> {
    if text.ends_with(|last: char| last.is_ascii_alphabetic()) {
        let form = match text.to_ascii_lowercase().as_str() {
            "t" | "true" => "1e0",
            "f" | "false" => "0",
            "nan" => "nan",
            "inf" | "infinity" => "inf",
            "-inf" | "-infinity" => "-inf",
            _ => return None,
        };
        return Some(form.to_owned());
    }
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    let (digits, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all = [whole, part].concat();
    if all.is_empty() || !all.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let significant = all.trim_end_matches('0');
    let zeros = all.len() - significant.len();
    let exponent = exponent.parse::<i64>().ok()? + zeros as i64 - part.len() as i64;
    let significant = significant.trim_start_matches('0');
    Some(if significant.is_empty() { "0".to_owned() } else { format!("{sign}{significant}e{exponent}") })
}

/// An array or an object of a document whose end has not been read: the object with the key of the next value.
enum Open {
    Array(Vec<String>),
    Object(BTreeMap<String, String>, Option<String>),
}

/// The form of a JSON document, which is known to be one: without spaces, by sorted keys of which the last of each name
/// counts, with numbers as decimal numbers. Documents may be nested deeper than a stack is.
pub(super) fn document(text: &str, rounded: bool) -> String {
    let (mut rest, mut open) = (text, Vec::new());
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',' || c == ':');
        let (token, after) = rest.split_at(token(rest));
        rest = after;
        let value = match token.bytes().next() {
            Some(b'[') => {
                open.push(Open::Array(Vec::new()));
                continue;
            }
            Some(b'{') => {
                open.push(Open::Object(BTreeMap::new(), None));
                continue;
            }
            Some(b']' | b'}') | None => match open.pop() {
                None => return String::new(),
                Some(Open::Array(list)) => format!("[{}]", list.join(",")),
                Some(Open::Object(members, _)) => {
                    let members: Vec<String> =
                        members.iter().map(|(key, value)| format!("{key}:{value}")).collect();
                    format!("{{{}}}", members.join(","))
                }
            },
            // The same character may be written in several ways.
            Some(b'"') => serde_json::from_str(token)
                .map_or_else(|_| token.to_owned(), |text: serde_json::Value| text.to_string()),
            Some(_) => scalar(token, rounded),
        };
        match open.last_mut() {
            None => return value,
            Some(Open::Array(list)) => list.push(value),
            Some(Open::Object(members, key)) => match key.take() {
                None => *key = Some(value),
                Some(key) => drop(members.insert(key, value)),
            },
        }
    }
}

/// The length of the first token of a document: a string, a word or a number, or a sign.
pub(crate) fn token(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    match bytes.first() {
        Some(b'"') => {
            let mut end = 1;
            while bytes.get(end).is_some_and(|byte| *byte != b'"') {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            (end + 1).min(bytes.len())
        }
        Some(byte) if is_of_word(byte) => bytes.iter().take_while(|byte| is_of_word(byte)).count(),
        _ => text.chars().next().map_or(0, char::len_utf8),
    }
}

/// A number, a truth or null of a document.
fn scalar(word: &str, rounded: bool) -> String {
    let is_whole = word.parse::<i64>().is_ok() || word.parse::<u64>().is_ok();
    match word.parse::<f64>() {
        Ok(float) if rounded && !is_whole => number(&format!("{float:e}")),
        Ok(_) => number(word),
        Err(_) => None,
    }
    .unwrap_or_else(|| word.to_owned())
}
