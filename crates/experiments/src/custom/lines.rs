//! Splits pgbench's scripts into statements and meta-commands.

use super::expression::word;
use super::sql;
use crate::prelude::*;
use kurabe_core::custom::CustomFile;

/// A line of a script before its variables have slots.
pub(super) enum Line<'a> {
    Sql(&'a str),
    /// The name and the arguments of a meta-command.
    Meta(&'a str, String),
}

/// Splits a script into statements, which end at `;` or before a meta-command, and meta-commands, which end at the
/// end of the line. Each has the number of its first line.
pub(super) fn lines(file: &CustomFile) -> Result<Vec<(usize, Line<'_>)>> {
    let text = file.text.as_str();
    let line_of = |at: usize| text[..at].matches('\n').count() + 1;
    let mut out = Vec::new();
    let (mut begin, mut at) = (0, 0);
    while let Some(first) = text[at..].chars().next() {
        let skipped = sql::opaque(&text[at..]);
        if skipped > 0 {
            at += skipped;
        } else if first == ';' {
            push(text, begin, at, &mut out);
            at += 1;
            begin = at;
        } else if first == '\\' {
            push(text, begin, at, &mut out);
            let line = line_of(at);
            let mut end = at + text[at..].find('\n').unwrap_or(text.len() - at);
            // A backslash at the end of a line continues it on the next.
            while text[..end].trim_end_matches('\r').ends_with('\\') && end < text.len() {
                end += 1 + text[end + 1..].find('\n').unwrap_or(text.len() - end - 1);
            }
            let command = &text[at + 1..end];
            let name = word(command);
            let rest = command[name.len()..].replace("\\\r\n", " ").replace("\\\n", " ");
            if name.is_empty() {
                return Err(Error::usage("a backslash without a meta-command").context(place(file, line)));
            }
            out.push((line, Line::Meta(name, rest.trim().to_owned())));
            at = end;
            begin = end;
        } else {
            // A name is skipped whole: its last letter is no prefix of a text.
            at += word(&text[at..]).len().max(first.len_utf8());
        }
    }
    push(text, begin, text.len(), &mut out);
    Ok(out)
}

/// Adds a statement, unless it is blank.
fn push<'a>(text: &'a str, from: usize, to: usize, out: &mut Vec<(usize, Line<'a>)>) {
    let statement = strip(&text[from..to]);
    if !statement.is_empty() {
        let begins = from + text[from..to].rfind(statement).unwrap_or(0);
        out.push((text[..begins].matches('\n').count() + 1, Line::Sql(statement)));
    }
}

/// A statement without leading blanks and comments and without trailing blanks.
fn strip(mut text: &str) -> &str {
    loop {
        text = text.trim();
        if !text.starts_with("--") && !text.starts_with("/*") {
            return text;
        }
        text = &text[sql::opaque(text)..];
    }
}

pub(super) fn place(file: &CustomFile, line: usize) -> String {
    format!("{}: line {line}", file.name)
}
