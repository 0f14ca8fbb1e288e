//! Splits pgbench's scripts into statements and meta-commands.

use super::expression::word;
use super::sql;
use crate::prelude::*;
use kurabe_core::custom::CustomFile;
use std::borrow::Cow;

/// A line of a script before its variables have slots.
pub(super) enum Line<'a> {
    Sql(Sql<'a>),
    /// The name and the arguments of a meta-command.
    Meta(&'a str, String),
}

/// A request in SQL.
pub(super) struct Sql<'a> {
    pub(super) text: Cow<'a, str>,
    /// Whether it is several statements, joined by `\;`.
    pub(super) is_several: bool,
}

/// Splits a script into statements, which end at `;` or before a meta-command, and meta-commands, which end at the
/// end of the line. Each has the number of its first line. As in psql, `;` within parentheses and within the body of a
/// function (`BEGIN ATOMIC`) is of the statement, and `\;` joins two statements in one request.
pub(super) fn lines(file: &CustomFile) -> Result<Vec<(usize, Line<'_>)>> {
    let text = file.text.as_str();
    let line_of = |at: usize| text[..at].matches('\n').count() + 1;
    let mut out = Vec::new();
    let (mut begin, mut at) = (0, 0);
    let mut seen = Seen::default();
    while let Some(first) = text[at..].chars().next() {
        let skipped = sql::opaque(&text[at..]);
        if skipped > 0 {
            at += skipped;
        } else if first == ';' && seen.is_outside() {
            push(text, begin, at, &mut seen, &mut out);
            at += 1;
            begin = at;
        } else if first == '\\' && text[at + 1..].starts_with([';', ':']) {
            seen.escapes.push(at);
            at += 2;
        } else if first == '\\' {
            push(text, begin, at, &mut seen, &mut out);
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
            let name = word(&text[at..]);
            seen.note(first, name);
            at += name.len().max(first.len_utf8());
        }
    }
    push(text, begin, text.len(), &mut seen, &mut out);
    Ok(out)
}

/// What was seen of a statement before its end.
#[derive(Default)]
struct Seen {
    parentheses: usize,
    /// The initial letters of its first words: those of `CREATE OR REPLACE FUNCTION`.
    initials: String,
    /// Blocks of a function's body that are open.
    blocks: usize,
    /// Backslashes before `;` and `:`, which are no part of the request.
    escapes: Vec<usize>,
}

impl Seen {
    fn is_outside(&self) -> bool {
        (self.parentheses, self.blocks) == (0, 0)
    }

    /// Notes a word, or a character that is in none.
    fn note(&mut self, first: char, name: &str) {
        match first {
            '(' => self.parentheses += 1,
            ')' => self.parentheses = self.parentheses.saturating_sub(1),
            _ if name.is_empty() => {}
            _ => {
                let name = name.to_ascii_lowercase();
                let is_body = self.parentheses == 0
                    && ["cf", "cp", "corf", "corp"].iter().any(|known| self.initials.starts_with(known));
                match name.as_str() {
                    "begin" if is_body => self.blocks += 1,
                    "case" if is_body && self.blocks > 0 => self.blocks += 1,
                    "end" if is_body => self.blocks = self.blocks.saturating_sub(1),
                    _ => {}
                }
                if self.initials.len() < 4 {
                    let known = BEFORE_BODY.contains(&name.as_str());
                    self.initials.push(name.chars().next().filter(|_| known).unwrap_or('-'));
                }
            }
        }
    }
}

/// The words with which a statement begins that may have a body (`CREATE OR REPLACE FUNCTION`).
const BEFORE_BODY: [&str; 5] = ["create", "or", "replace", "function", "procedure"];

/// Adds a statement, unless it is blank, and begins the next.
fn push<'a>(text: &'a str, from: usize, to: usize, seen: &mut Seen, out: &mut Vec<(usize, Line<'a>)>) {
    let escapes = std::mem::take(seen).escapes;
    let statement = strip(&text[from..to]);
    if statement.is_empty() {
        return;
    }
    let begins = from + text[from..to].rfind(statement).unwrap_or(0);
    let within = begins..begins + statement.len();
    let escapes: Vec<usize> = escapes.into_iter().filter(|at| within.contains(at)).collect();
    let is_several = escapes.iter().any(|at| text[at + 1..].starts_with(';'));
    let mut whole = Cow::Borrowed(statement);
    for at in escapes.iter().rev() {
        whole.to_mut().remove(at - begins);
    }
    out.push((text[..begins].matches('\n').count() + 1, Line::Sql(Sql { text: whole, is_several })));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(usize, String, bool)> {
        let file = CustomFile { name: "a.sql".to_owned(), text: text.to_owned(), weight: 1 };
        let shown = |(line, what): (usize, Line<'_>)| match what {
            Line::Sql(sql) => (line, sql.text.into_owned(), sql.is_several),
            Line::Meta(name, rest) => (line, format!("\\{name} {rest}"), false),
        };
        lines(&file).unwrap().into_iter().map(shown).collect()
    }

    #[test]
    fn statements_end_where_psql_ends_them() {
        let one = |text: &str| vec![(1, text.to_owned(), false)];
        for body in [
            "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 2 END; END",
            "create or replace procedure p() begin insert into a values (1); end",
            "CREATE RULE r AS ON INSERT TO a DO (DELETE FROM b; DELETE FROM c)",
            "SELECT 'a;b', \"c;d\", $$e;f$$ /* g;h */",
        ] {
            assert_eq!(split(&format!("{body};")), one(body));
        }
        // The words of other statements open no block.
        let two = split("BEGIN; SELECT begin FROM t;\nEND;");
        assert_eq!(two.iter().map(|(line, ..)| *line).collect::<Vec<_>>(), [1, 1, 2]);
        let joined =
            split("-- a \\; b\nSELECT 1\\; SELECT ':x\\;' \\:: int\\;\nSELECT 3;\\set a 1\nSELECT 4");
        let expected = [
            (2, "SELECT 1; SELECT ':x\\;' :: int;\nSELECT 3".to_owned(), true),
            (3, "\\set a 1".to_owned(), false),
            (4, "SELECT 4".to_owned(), false),
        ];
        assert_eq!(joined, expected);
    }
}
