//! Parses the texts of statements into text, variables and tables.

use super::expression::word;
use super::request::Piece;
use crate::prelude::*;
use kurabe_protocol::sql::{Dialect, Kind, Statement, Token, tokens};

/// How tables are named in a text.
pub(super) enum Naming<'a> {
    /// As `{accounts}`, one of these names.
    Braces(&'a dyn Fn(&str) -> Result<usize>),
    /// By its plain name, if it is one of pgbench's own tables.
    Plain(&'a dyn Fn(&str) -> Option<usize>),
}

/// Parses a statement. `:name` outside of quotes and comments is a variable, and within quotes if it is one of
/// `in_quotes`; `::` is a cast.
pub(super) fn pieces(sql: &str, naming: &Naming<'_>, in_quotes: &dyn Fn(&str) -> bool) -> Result<Vec<Piece>> {
    let mut out = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let skipped = opaque(rest);
        if skipped > 0 {
            match named(&rest[..skipped], naming) {
                Some(relation) => push_table(&mut out, relation),
                None => quoted(&rest[..skipped], in_quotes, &mut out),
            }
            rest = &rest[skipped..];
            continue;
        }
        let after = &rest[first.len_utf8()..];
        let name = word(after);
        match first {
            ':' if after.starts_with(':') => {
                push_text(&mut out, "::");
                rest = &after[1..];
            }
            ':' if name.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                out.push(Piece::Variable(name.to_owned()));
                rest = &after[name.len()..];
            }
            '{' if matches!(naming, Naming::Braces(_)) && after[name.len()..].starts_with('}') => {
                if let Naming::Braces(find) = naming {
                    out.push(Piece::Table(find(name)?));
                }
                rest = &after[name.len() + 1..];
            }
            c if c.is_alphanumeric() || c == '_' => {
                let name = word(rest);
                let relation = if let Naming::Plain(find) = naming { find(name) } else { None };
                match relation {
                    Some(relation) => push_table(&mut out, relation),
                    None => push_text(&mut out, name),
                }
                rest = &rest[name.len()..];
            }
            c => {
                push_text(&mut out, c.encode_utf8(&mut [0; 4]));
                rest = after;
            }
        }
    }
    let blank = |piece: &Piece| matches!(piece, Piece::Text(text) if text.trim().is_empty());
    if out.iter().all(blank) {
        return Err(Error::usage("the statement is empty"));
    }
    Ok(out)
}

/// The table that a quoted name means: quotes keep the case of its letters.
fn named(quoted: &str, naming: &Naming<'_>) -> Option<usize> {
    let Naming::Plain(find) = naming else { return None };
    let quote = quoted.chars().next().filter(|quote| matches!(quote, '"' | '`'))?;
    let name = quoted.strip_prefix(quote)?.strip_suffix(quote)?;
    find(name).filter(|_| !name.contains(|c: char| c.is_uppercase()))
}

/// Adds a table of the run, without the schema in which `pgbench -i` would have made it.
fn push_table(pieces: &mut Vec<Piece>, relation: usize) {
    if let Some(Piece::Text(before)) = pieces.last_mut() {
        let length = ["public.", "\"public\"."].iter().find_map(|schema| {
            let rest = before.len().checked_sub(schema.len()).filter(|at| before.is_char_boundary(*at))?;
            let is_whole = !before[..rest].ends_with(|c: char| c.is_alphanumeric() || "_.\"".contains(c));
            (before[rest..].eq_ignore_ascii_case(schema) && is_whole).then_some(rest)
        });
        before.truncate(length.unwrap_or(before.len()));
    }
    pieces.push(Piece::Table(relation));
}

/// Adds a quoted text or a comment, with the variables in it.
fn quoted(text: &str, is_variable: &dyn Fn(&str) -> bool, out: &mut Vec<Piece>) {
    let mut rest = text;
    while let Some(at) = variable_in(rest, is_variable) {
        let name = word(&rest[at + 1..]);
        push_text(out, &rest[..at]);
        out.push(Piece::Variable(name.to_owned()));
        rest = &rest[at + 1 + name.len()..];
    }
    push_text(out, rest);
}

/// The place of the first `:name` in a quoted text, where that is a variable. Comments have none.
fn variable_in(text: &str, is_variable: &dyn Fn(&str) -> bool) -> Option<usize> {
    let is_comment = text.starts_with("--") || text.starts_with("/*");
    let mut colons = text.match_indices(':').filter(|_| !is_comment).map(|(at, _)| at);
    colons.find(|at| !text[..*at].ends_with(':') && is_variable(word(&text[at + 1..])))
}

/// The first variable within quotes of a statement.
pub(super) fn quoted_variable<'a>(sql: &'a str, is_variable: &dyn Fn(&str) -> bool) -> Option<&'a str> {
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let skipped = opaque(rest);
        if let Some(at) = variable_in(&rest[..skipped], is_variable) {
            return Some(word(&rest[at + 1..]));
        }
        rest = &rest[skipped.max(word(rest).len()).max(first.len_utf8())..];
    }
    None
}

/// Adds a text to the last piece if that is one too.
fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        Some(Piece::Text(last)) => last.push_str(text),
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

/// The length in bytes of a quoted text, quoted name or comment at the beginning of a text, whatever the engine; 0 if there is none.
/// An unterminated one extends to the end.
pub(super) fn opaque(text: &str) -> usize {
    let first = tokens(text, Dialect::ANY).next();
    let is_opaque = |token: &Token<'_>| matches!(token.kind, Kind::Comment | Kind::Name | Kind::Text);
    first.filter(is_opaque).map_or(0, |token| token.text.len())
}

/// The step that does the same as a statement that only begins or ends a transaction, which engines spell differently.
pub(super) fn control(sql: &str) -> Option<&'static str> {
    let statement = Statement::read(sql, Dialect::ANY);
    let said = statement.tokens().iter().filter(|token| !token.is_mark(';'));
    let words: Vec<String> = said.map(|token| token.text.to_ascii_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["begin"] | ["begin" | "start", "transaction"] | ["begin", "work"] => Some("begin"),
        ["end" | "commit"] | ["end" | "commit", "transaction" | "work"] => Some("commit"),
        ["rollback" | "abort"] | ["rollback" | "abort", "transaction" | "work"] => Some("rollback"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> Result<Vec<Piece>> {
        let find = |name: &str| if name == "users" { Ok(0) } else { Err(Error::usage(format!("no {name}"))) };
        pieces(sql, &Naming::Braces(&find), &|_| false)
    }

    #[test]
    fn variables_and_tables_are_found_outside_of_quotes_and_comments() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let variable = |name: &str| Piece::Variable(name.to_owned());
        assert_eq!(
            read("SELECT ':no' FROM {users} WHERE id = :id::int -- :no\nAND x[1:2] = $$:no$$ /* :no */ AND \":no\"=:b")
                .unwrap(),
            [
                text("SELECT ':no' FROM "),
                Piece::Table(0),
                text(" WHERE id = "),
                variable("id"),
                text("::int -- :no\nAND x[1:2] = $$:no$$ /* :no */ AND \":no\"="),
                variable("b"),
            ]
        );
        for (opaque, after) in [
            (r"E'it\'s; :no'", " :b"),
            (r"e'a''b\\'", " :b"),
            ("/* a /* :no */ ; :no */", " :b"),
            ("/* MySQL's /* :no */", " :b"),
        ] {
            let sql = format!("{opaque}{after}");
            let expected = [text(&format!("{opaque} ")), variable("b")];
            assert_eq!(pieces(&sql, &Naming::Braces(&|_| Ok(0)), &|_| false).unwrap(), expected, "{sql}");
        }
        // The end of a name is no prefix.
        assert_eq!(read(r"date'\' :b").unwrap(), [text(r"date'\' "), variable("b")]);
        assert!(read("  ").is_err());
        assert!(read("SELECT {nobody}").is_err());
        let plain = |name: &str| (name == "pgbench_tellers").then_some(2);
        let named =
            pieces("UPDATE pgbench_tellers SET a = 'pgbench_tellers'", &Naming::Plain(&plain), &|_| false)
                .unwrap();
        assert_eq!(named, [text("UPDATE "), Piece::Table(2), text(" SET a = 'pgbench_tellers'")]);
        for (name, left) in [
            ("\"pgbench_tellers\"", ""),
            ("`pgbench_tellers`", ""),
            ("public.pgbench_tellers", ""),
            ("Public.\"pgbench_tellers\"", ""),
            ("\"public\".pgbench_tellers", ""),
            ("a.public.pgbench_tellers", "a.public."),
            ("republic.pgbench_tellers", "republic."),
        ] {
            let read = pieces(&format!("TABLE {name}"), &Naming::Plain(&plain), &|_| false).unwrap();
            assert_eq!(read, [text(&format!("TABLE {left}")), Piece::Table(2)], "{name}");
        }
        let other = "TABLE \"Pgbench_tellers\"";
        assert_eq!(
            pieces(other, &Naming::Plain(&|_| Some(2)), &|_| false).unwrap(),
            [Piece::Table(2), text(" \"Pgbench_tellers\"")]
        );
    }

    #[test]
    fn known_variables_within_quotes_are_found_and_those_of_comments_are_not() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let a = || Piece::Variable("a".to_owned());
        let known = |name: &str| name == "a";
        let sql = "SELECT 'x:a' || $$:a::a:b$$ -- :a\n, E'\\':a', \":ab\", /* :a */ '12:30'";
        let expected = [
            text("SELECT 'x"),
            a(),
            text("' || $$"),
            a(),
            text("::a:b$$ -- :a\n, E'\\'"),
            a(),
            text("', \":ab\", /* :a */ '12:30'"),
        ];
        assert_eq!(pieces(sql, &Naming::Plain(&|_| None), &known).unwrap(), expected);
        assert_eq!(quoted_variable(sql, &known), Some("a"));
        assert_eq!(quoted_variable("SELECT :a, ':b' -- ':a'", &known), None);
    }

    #[test]
    fn transaction_control_statements_are_detected() {
        assert_eq!(control("BEGIN"), Some("begin"));
        assert_eq!(control(" end "), Some("commit"));
        assert_eq!(control("rollback to savepoint a"), None);
    }

    mod fuzz {
        use super::*;
        use crate::custom::reads;

        #[test]
        fn any_text_is_read_or_refused_and_nothing_is_lost() {
            bolero::check!(name = "statements").for_each(|input: &[u8]| {
                let sql = String::from_utf8_lossy(input);
                let _ = (control(&sql), read(&sql));
                if let Ok(pieces) = pieces(&sql, &Naming::Plain(&|_| None), &|name| name.len() == 1) {
                    let _ = (reads::asks_for_write(&pieces, None), reads::may_change(&pieces, None));
                    let text = |piece: &Piece| match piece {
                        Piece::Text(text) => text.clone(),
                        Piece::Variable(name) => format!(":{name}"),
                        Piece::Table(_) => String::new(),
                    };
                    assert_eq!(pieces.iter().map(text).collect::<String>(), sql);
                }
            });
        }
    }
}
