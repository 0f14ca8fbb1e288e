//! Sessions that change nothing (manual, "SET TRANSACTION" and `default_transaction_read_only`).
//!
//! A read-only transaction still lets some changes through, such as large objects before PostgreSQL 16, and a function can make
//! the session write again. So a *check* follows each query, within the query's own transaction and round trip: it fails, and
//! undoes what the query did, if the session is not read-only any more or the transaction has written.

use crate::prelude::*;
use crate::wire::link::{Query, value};

/// The setting that makes every new transaction of a session read-only.
pub(super) const SETTING: &str = "default_transaction_read_only";

/// The name of the check as a prepared statement.
pub(super) const CHECK: &str = "kurabe_only_reads";

/// The one value that the check returns. Its error has this text too.
pub(super) const PASSED: &str = "kurabe: only reads";

/// The check. A transaction that has written has a number, which some products that speak PostgreSQL's protocol do not tell.
/// Operators are qualified: the session may have another `search_path`.
pub(super) fn check_text(has_numbers: bool) -> String {
    let number = if has_numbers { " AND pg_catalog.txid_current_if_assigned() IS NULL" } else { "" };
    let on = |name: &str| {
        format!("pg_catalog.current_setting('{name}') OPERATOR(pg_catalog.=) 'on'::pg_catalog.text")
    };
    format!(
        "SELECT CASE WHEN {} AND {}{number} THEN '{PASSED}'::pg_catalog.text \
         ELSE ('{PASSED} no more, '::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.current_setting('transaction_read_only'))\
         ::pg_catalog.int4::pg_catalog.text END",
        on(SETTING),
        on("transaction_read_only")
    )
}

/// Whether a server has code of its own, which only the server sees: a function, or what calls one without naming it. Without
/// any, the text of a statement says what it calls.
const HAS_CODE: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_proc WHERE oid >= 16384) \
     OR EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE oid >= 16384) \
     OR EXISTS (SELECT FROM pg_catalog.pg_operator WHERE oid >= 16384) \
     OR EXISTS (SELECT FROM pg_catalog.pg_cast WHERE oid >= 16384) \
     OR EXISTS (SELECT FROM pg_catalog.pg_policy) \
     OR EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE contypid <> 0 AND oid >= 16384)";

/// Whether there is code, as [`HAS_CODE`] says, and the first thing that the session does not hold back. Nobody else's functions and
/// operators are found by these queries.
pub(super) fn ask(link: &mut dyn Query) -> Result<(bool, Option<String>)> {
    link.query("BEGIN", &mut Reply::new())?;
    link.query("SET LOCAL search_path TO pg_catalog", &mut Reply::new())?;
    let has_code = value(link, HAS_CODE)?.as_deref() != Some("f");
    let found = match value(link, include_str!("not_held.sql")) {
        // Another product, without these tables.
        Err(error) if error.server_code().is_some_and(|code| code.starts_with("42")) => None,
        found => found?,
    };
    link.query("ROLLBACK", &mut Reply::new())?;
    Ok((has_code, found))
}

/// Whether a text may need the check: all but what begins, ends or sets something, after which a query would be too early for
/// settings of the transaction.
pub(super) fn is_checked(sql: &str) -> bool {
    const PLAIN: [&str; 14] = [
        "", "abort", "begin", "commit", "deallocate", "discard", "end", "release", "reset", "rollback",
        "savepoint", "set", "show", "start",
    ];
    let text = sql.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '(' || c == ';');
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    // What begins with a comment or a quote is no control of a transaction for sure.
    let (word, rest) = text.split_at(end);
    !PLAIN.iter().any(|plain| word.eq_ignore_ascii_case(plain)) || word.is_empty() && !rest.is_empty()
}

/// What a `ParameterStatus` message says of the setting; `None` if it is of another one.
pub(super) fn reported(message: &[u8]) -> Option<bool> {
    let value = message.strip_prefix(SETTING.as_bytes())?.strip_prefix(b"\0")?;
    Some(value == b"on\0")
}

/// Whether an error's message is that of the check.
pub(super) fn has_failed(message: &[u8]) -> bool {
    message.windows(PASSED.len()).any(|part| part == PASSED.as_bytes())
}

/// Checks that the server has taken the setting: a pooler may have left it out.
pub(super) fn check(link: &mut dyn Query) -> Result<()> {
    if value(link, "SHOW transaction_read_only")?.as_deref() == Some("on") {
        return Ok(());
    }
    let what = "the server opened a session that may write, although a read-only one was asked for";
    Err(Error::unsupported(what)
        .hint("connect to the server itself and not to a pooler, or allow writes with --write"))
}

/// The error of a statement that made the transactions after it writable, or that wrote.
pub(super) fn switched_off() -> Error {
    let what = "the statement writes, or lets later transactions of a read-only session write";
    Error::new(ErrorKind::ReadOnly, what).code("25006")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_setting_is_taken_from_a_message() {
        for (message, expected) in [
            (&b"default_transaction_read_only\0on\0"[..], Some(true)),
            (b"default_transaction_read_only\0off\0", Some(false)),
            (b"default_transaction_read_only\0", Some(false)),
            (b"TimeZone\0on\0", None),
            (b"", None),
        ] {
            assert_eq!(reported(message), expected, "{}", message.escape_ascii());
        }
    }

    #[test]
    fn check_follows_every_text_that_does_not_control_a_transaction_or_a_session() {
        for (sql, expected) in [
            ("SELECT 1", true),
            (" (select 1)", true),
            ("/* BEGIN */ SELECT f()", true),
            ("explain analyze select f()", true),
            ("\"x\"", true),
            ("", false),
            (" ;", false),
            ("begin", false),
            ("START TRANSACTION", false),
            ("Set x = 1", false),
            ("SHOW x", false),
        ] {
            assert_eq!(is_checked(sql), expected, "{sql}");
        }
    }
}
