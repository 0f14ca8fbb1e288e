//! SQL that is written for a server to read: names and literals, comments, and statements of which only the text is known.
//!
//! Everything that this crate writes between quotes or after a comment's sign is written here, by the rules of the engine that
//! reads it.

use crate::engines::engine::Engine;
use kurabe_core::text::cut;
use kurabe_core::{Error, Result};
use kurabe_protocol::sql::{Dialect, Kind, tokens};

/// What stands in a file for an engine's own client.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
pub enum Entry {
    /// Lines that the client skips.
    Comment(String),
    Statement(String),
    /// A statement by which others mean something else: it precedes all of them.
    First(String),
    /// A statement after which who executes the file may have fewer rights: it follows all others.
    Last(String),
}

impl Entry {
    pub fn text(&self) -> &str {
        match self {
            Self::Comment(text) | Self::Statement(text) | Self::First(text) | Self::Last(text) => text,
        }
    }

    pub fn comment(text: &str) -> Self {
        Self::Comment(comment(text))
    }

    /// The entry as a comment, after the reason why it is no statement.
    #[must_use]
    pub fn commented(&self, why: &str) -> Self {
        Self::comment(&format!("{why}\n{}", self.text()))
    }

    /// A statement with what `change` makes of it.
    #[must_use]
    pub fn map(self, change: impl FnOnce(String) -> Self) -> Self {
        if let Self::Statement(sql) = self { change(sql) } else { self }
    }
}

/// Stands for a byte of a definition that is not UTF-8, before the character of its number.
const NOT_UTF8: &str = "\0\u{fffd}";

/// Appends bytes of a definition that are not UTF-8.
pub fn push_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str(NOT_UTF8);
        text.push(char::from(*byte));
    }
}

/// The text with `other` for each byte that is not UTF-8.
pub fn without_bytes(text: &str, other: &str) -> String {
    replaced(text, |_| other.to_owned())
}

/// The text with what `other` gives for each byte that is not UTF-8.
fn replaced(text: &str, other: impl Fn(char) -> String) -> String {
    let mut parts = text.split(NOT_UTF8);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let mut rest = part.chars();
        text + &other(rest.next().unwrap_or_default()) + rest.as_str()
    })
}

/// A statement for a server of PostgreSQL without an encoding: one with bytes that are not UTF-8 is executed as a literal with the
/// escapes of these.
pub fn executed(sql: &str) -> String {
    if !sql.contains(NOT_UTF8) {
        return sql.to_owned();
    }
    let literal = |text: &str| format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
    let all = literal(&format!("BEGIN EXECUTE {}; END", literal(sql)));
    format!("DO {}", replaced(&all, |byte| format!("\\x{:02x}", u32::from(byte))))
}

/// A name in an engine's quotes.
pub fn quoted(engine: &Engine, name: &str) -> String {
    let quote = engine.quote;
    format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
}

/// A name without its quotes, of any engine.
pub fn unquoted(word: &str) -> String {
    let mut inner = word.chars();
    match (inner.next(), inner.next_back()) {
        (Some(a @ ('"' | '`' | '\'')), Some(b)) if a == b => {
            inner.as_str().replace(&format!("{a}{a}"), &a.to_string())
        }
        (Some('['), Some(']')) => inner.as_str().to_owned(),
        _ => word.to_owned(),
    }
}

/// A text literal, of a text that a statement can have. No setting of the server ends it early: a quote is two, and a backslash has a partner.
pub fn literal(engine: &Engine, text: &str) -> Result<String> {
    if engine.syntax != Dialect::MYSQL || text.contains(NOT_UTF8) {
        check(text)?;
    }
    Ok(unchecked_literal(engine, text))
}

/// A text literal of a statement that is checked as a whole.
pub fn unchecked_literal(engine: &Engine, text: &str) -> String {
    let doubled = text.replace('\'', "''");
    match engine.syntax {
        Dialect::MYSQL => {
            format!("'{}'", doubled.replace('\\', "\\\\").replace('\0', "\\0").replace('\r', "\\r"))
        }
        // A backslash escapes in a literal that is marked.
        Dialect::POSTGRES if text.contains('\\') => format!("E'{}'", doubled.replace('\\', "\\\\")),
        _ => format!("'{doubled}'"),
    }
}

/// Refuses a text of the source that no statement can have: one that is not UTF-8, or has a zero character.
pub fn check(text: &str) -> Result<()> {
    if !text.contains('\0') {
        return Ok(());
    }
    let shown = without_bytes(text, "\u{fffd}").replace('\0', "\u{fffd}");
    Err(Error::unsupported(format!("'{}' is not UTF-8, or has a zero character", cut(&shown, 160)))
        .hint("correct it on the source, or leave it out with --exclude"))
}

/// A comment of one or more lines. What ends a line for any engine or its client begins another line of the comment.
pub fn comment(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
    let line = |line: &str| format!("-- {}", line.chars().map(shown).collect::<String>());
    without_bytes(text, "\0")
        .replace("\r\n", "\n")
        .split(['\n', '\r'])
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

/// A statement as it stands in a file for the engine's own client, with what ends it; a comment if it does not end, such as
/// within quotes, or if the client may find a command of its own in it.
pub fn statement(engine: &Engine, sql: &str) -> Entry {
    let (masked, is_whole) = mask(engine, sql);
    let ends = |c: char| c.is_ascii_whitespace() || c == ';';
    let length = masked.trim_end_matches(ends).len();
    let (sql, masked) = (&sql[..length], &masked[..length]);
    // Which of these are comments, the clients of MySQL and MariaDB do not agree on, nor what is in quotes then.
    let has_executed = tokens(sql, engine.syntax).any(|token| token.kind == Kind::Executed);
    // The client of SQLite ends a statement at such a line.
    let is_command = has_executed && sql.contains('\\')
        || engine.syntax == Dialect::SQLITE
            && masked.lines().any(|line| matches!(line.trim(), "/" | "go" | "GO" | "Go" | "gO"));
    let sql = match for_client(engine, sql, has_executed) {
        Some(sql) if is_whole && !is_command && !sql.is_empty() && !sql.contains('\0') => sql,
        _ => return Entry::comment(sql),
    };
    Entry::Statement(
        match engine.delimiter.filter(|_| masked.contains(';') || has_executed && sql.contains(';')) {
            None => format!("{sql};"),
            Some(set) => {
                // One that the text does not have.
                let mut other = "//".to_owned();
                while sql.contains(&other) {
                    other.push('/');
                }
                let [begin, end] = [set(&other), set(";")];
                format!("{begin}\n{sql}\n{other}\n{end}")
            }
        },
    )
}

/// The statement, in which the engine's client finds what its server does; `None` if the client finds a command or the end of a
/// quote elsewhere.
fn for_client(engine: &Engine, sql: &str, has_executed: bool) -> Option<String> {
    let (mut text, mut all) = (String::with_capacity(sql.len()), tokens(sql, engine.syntax).peekable());
    let (is_mysql, is_postgres) = (engine.syntax.is_mysql(), engine.syntax.is_postgres());
    while let Some(token) = all.next() {
        let next = all.peek();
        let is_other = match (token.kind, token.text.as_bytes()) {
            // Their clients take the first of these two away.
            (Kind::Name | Kind::Text, _) if !is_postgres && token.text.contains("\r\n") => true,
            // The server's null is the only one of these that is no command.
            (Kind::Mark, [b'\\', ..]) => {
                is_postgres || is_mysql && !next.is_some_and(|next| next.text.starts_with('N'))
            }
            // The server reads a comment, and its client the signs in it.
            (Kind::Comment, [b'-', b'-', first, ..]) => {
                is_mysql && first.is_ascii_control() && !first.is_ascii_whitespace()
            }
            // For the client a comment within a comment ends at another place than for the server, which may be in quotes of a later
            // statement.
            (Kind::Comment, [b'/', b'*', ..]) => is_mysql && (has_executed || token.text[2..].contains("/*")),
            // A backslash escapes in quotes for the client, whatever the mode is, and brackets are none.
            (Kind::Name, [b'"', ..]) => is_mysql && token.text.contains('\\'),
            (Kind::Name, [b'[', ..]) => {
                is_mysql && token.text.contains(['\'', '"', '`', '\\', '#', '-', '/', ';'])
            }
            _ => false,
        };
        if is_other {
            return None;
        }
        // Within the words of a function, psql takes one for the beginning of a block, which the server writes in capitals.
        let is_begin = is_postgres && token.text == "begin";
        text.push_str(if is_begin { "\"begin\"" } else { token.text });
        // What follows the sign of a slice would be a variable of psql.
        let is_slice = is_postgres && token.is_mark(':') && !text.ends_with("::");
        if is_slice && next.is_some_and(|next| !matches!(next.kind, Kind::Mark | Kind::Space)) {
            text.push(' ');
        }
    }
    Some(text)
}

/// A statement's text with what is in quotes and comments overwritten, byte by byte, by `_` and spaces: words in them are no
/// words of the statement. And whether all quotes end; a comment that does not is the end of the statement.
pub fn mask(engine: &Engine, sql: &str) -> (String, bool) {
    // A quote or a comment that does not end has these signs too.
    let text = format!("{sql}\n;");
    let (mut masked, mut is_whole) = (String::with_capacity(text.len()), true);
    for token in tokens(&text, engine.syntax) {
        match token.kind {
            Kind::Text | Kind::Name => {
                // A text may have a prefix.
                let begin = token.text.find(['\'', '"', '`', '[', '$']).unwrap_or(0) + 1;
                let end = token.text.len() - 1;
                masked.push_str(&token.text[..begin]);
                masked.extend(std::iter::repeat_n('_', end - begin));
                masked.push_str(&token.text[end..]);
                is_whole &= masked.len() < text.len();
            }
            Kind::Comment => masked.extend(token.text.bytes().map(|b| if b == b'\n' { '\n' } else { ' ' })),
            _ => {
                is_whole &= engine.syntax != Dialect::SQLITE || !token.is_mark('[');
                masked.push_str(token.text);
            }
        }
    }
    masked.truncate(sql.len());
    (masked, is_whole)
}
