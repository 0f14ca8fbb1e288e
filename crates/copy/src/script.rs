//! SQL that is written for a server to read: names and literals, comments, and statements of which only the text is known.
//!
//! Everything that this crate writes between quotes or after a comment's sign is written here, by the rules of the engine that
//! reads it.

use crate::engines::engine::{Backslash, Engine};
use kurabe_core::{Error, Result};

/// Stands for bytes of a definition that are not UTF-8.
pub const NOT_UTF8: &str = "\0\u{fffd}";

/// A name in an engine's quotes.
pub fn quoted(engine: &Engine, name: &str) -> String {
    let quote = engine.quote;
    format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
}

/// A text literal. No setting of the server ends it early: a quote is two, and a backslash has a partner.
///
/// # Errors
/// [`Unsupported`](kurabe_core::ErrorKind::Unsupported) for text that has [`NOT_UTF8`], or a zero character that ends a statement.
pub fn literal(engine: &Engine, text: &str) -> Result<String> {
    if engine.backslash != Backslash::Escape || text.contains(NOT_UTF8) {
        check(text)?;
    }
    let doubled = text.replace('\'', "''");
    Ok(match engine.backslash {
        Backslash::Escape => format!("'{}'", doubled.replace('\\', "\\\\").replace('\0', "\\0")),
        Backslash::Marked if text.contains('\\') => format!("E'{}'", doubled.replace('\\', "\\\\")),
        Backslash::Marked | Backslash::Plain => format!("'{doubled}'"),
    })
}

/// Refuses a text of the source that no statement can have.
///
/// # Errors
/// [`Unsupported`](kurabe_core::ErrorKind::Unsupported) if it has [`NOT_UTF8`], or a zero character.
pub fn check(text: &str) -> Result<()> {
    if !text.contains('\0') {
        return Ok(());
    }
    let shown = text.replace(NOT_UTF8, "\u{fffd}").replace('\0', "\u{fffd}");
    let shown: String = shown.chars().take(160).collect();
    Err(Error::unsupported(format!("'{shown}' is not UTF-8, or has a zero character"))
        .hint("correct it on the source, or leave it out with --exclude"))
}

/// A comment of one or more lines. What ends a line for any engine or its client begins another line of the comment.
pub fn comment(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
    let line = |line: &str| format!("-- {}", line.chars().map(shown).collect::<String>());
    text.replace(NOT_UTF8, "\0")
        .replace("\r\n", "\n")
        .split(['\n', '\r'])
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

/// A statement as it stands in a file for the engine's own client, with what ends it; a comment if it does not end, such as
/// within quotes.
pub fn statement(engine: &Engine, sql: &str) -> String {
    let (masked, is_whole) = mask(engine, sql);
    let ends = |c: char| c.is_ascii_whitespace() || c == ';';
    let length = masked.trim_end_matches(ends).len();
    let (sql, masked) = (&sql[..length], &masked[..length]);
    if !is_whole || sql.is_empty() || sql.contains('\0') {
        return comment(sql);
    }
    match engine.delimiter.filter(|_| masked.contains(';')) {
        None => format!("{sql};"),
        Some(set) => {
            // One that the text does not have.
            let mut other = "//".to_owned();
            while sql.contains(&other) {
                other.push('/');
            }
            let [begin, end] = [set(&other, ";"), set(";", &other)];
            format!("{begin}\n{sql}\n{other}\n{end}")
        }
    }
}

/// A statement's text with what is in quotes and comments overwritten, byte by byte, by `_` and spaces: words in them are no
/// words of the statement. And whether all quotes and comments end.
pub fn mask(engine: &Engine, sql: &str) -> (String, bool) {
    let bytes = sql.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let is_escape = engine.backslash == Backslash::Escape;
    let marks_versions = |rest: &[u8]| is_escape && (rest.starts_with(b"/*!") || rest.starts_with(b"/*M!"));
    let mut is_whole = true;
    while out.len() < bytes.len() {
        let at = out.len();
        let rest = &bytes[at..];
        let before = at.checked_sub(1).map_or(b' ', |before| bytes[before]);
        // The length of what is overwritten, whether it ends, and by what it is overwritten.
        let (length, ended, by) = match rest[0] {
            quote @ (b'\'' | b'"' | b'`') => {
                let is_marked = engine.backslash == Backslash::Marked && matches!(before, b'e' | b'E');
                let escapes = quote != b'`' && is_escape || quote == b'\'' && is_marked;
                let mut end = 1;
                let is_pair = |at: usize| rest[at] == quote && rest.get(at + 1) == Some(&quote);
                while end < rest.len() && (rest[end] != quote || is_pair(end)) {
                    end += if is_pair(end) || escapes && rest[end] == b'\\' { 2 } else { 1 };
                }
                (end + 1, end < rest.len(), b'_')
            }
            b'[' if engine.has_brackets => length_to(rest, b"]", 1, b'_'),
            b'$' if engine.backslash == Backslash::Marked && !is_word(before) => {
                let tag = rest[1..].iter().position(|byte| !is_word(*byte)).unwrap_or(0) + 1;
                match rest.get(tag) {
                    Some(b'$') if !rest[1].is_ascii_digit() => {
                        let (tag, body) = rest.split_at(tag + 1);
                        let (length, ended, by) = length_to(body, tag, 0, b'_');
                        (tag.len() + length, ended, by)
                    }
                    _ => (0, true, b' '),
                }
            }
            b'-' if rest.starts_with(b"--")
                && (!is_escape || rest.get(2).is_none_or(u8::is_ascii_whitespace)) =>
            {
                (length_to(rest, b"\n", 2, b' ').0, true, b' ')
            }
            b'#' if is_escape => (length_to(rest, b"\n", 1, b' ').0, true, b' '),
            b'/' if rest.starts_with(b"/*") && !marks_versions(rest) => nested(rest, engine),
            _ => (0, true, b' '),
        };
        is_whole &= ended;
        if length == 0 {
            out.push(rest[0]);
            continue;
        }
        let length = length.min(rest.len());
        let is_quoted = by == b'_' && ended && length > 1;
        out.extend(rest[..length].iter().enumerate().map(|(at, byte)| match at {
            0 if is_quoted => *byte,
            at if is_quoted && at == length - 1 => *byte,
            _ if *byte == b'\n' && by == b' ' => *byte,
            _ => by,
        }));
    }
    (String::from_utf8(out).unwrap_or_default(), is_whole)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 128
}

/// The length up to the end of this sign, whether it is there, and what overwrites it.
fn length_to(rest: &[u8], end: &[u8], from: usize, by: u8) -> (usize, bool, u8) {
    let found = rest.windows(end.len()).skip(from).position(|part| part == end);
    found.map_or((rest.len(), false, by), |at| (from + at + end.len(), true, by))
}

/// A comment in signs, which PostgreSQL nests.
fn nested(rest: &[u8], engine: &Engine) -> (usize, bool, u8) {
    let (mut depth, mut at) = (1, 2);
    while depth > 0 && at < rest.len() {
        let (change, length) = match &rest[at..] {
            [b'*', b'/', ..] => (-1, 2),
            [b'/', b'*', ..] if engine.backslash == Backslash::Marked => (1, 2),
            _ => (0, 1),
        };
        depth += change;
        at += length;
    }
    // One that does not end is the end of the statement.
    (at, true, b' ')
}
