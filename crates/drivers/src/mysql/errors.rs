//! Kinds of server error numbers (MySQL manual, "Server Error Message Reference"; MariaDB uses the same numbers).

use crate::sql::sqlstate;
use kurabe_core::{Error, ErrorKind};

/// Converts an ERR packet to an error with a hint. Its SQLSTATE is empty before the handshake.
pub(crate) fn server(number: u16, state: &str, message: &str) -> Error {
    let (kind, hint) = kind(number);
    let name = format!("{state} {}", sqlstate::name(state));
    let error = Error::new(kind, format!("the server answered: {message}"));
    error.code(number).code_name(name.trim()).hint(hint)
}

/// Shows the line of a statement in which the server found a syntax error: its message ends with the rest of the
/// statement from there, up to 80 bytes, and the line.
pub(crate) fn located(error: Error, statement: &[u8]) -> Error {
    let (text, statement) = (error.to_string(), String::from_utf8_lossy(statement));
    let Some((near, line)) = near(&text) else { return error };
    let lines = statement.split_inclusive('\n').map(str::len);
    let start: usize = lines.take(line.saturating_sub(1)).sum();
    let found = statement.get(start..).and_then(|rest| rest.find(near)).map(|at| start + at);
    // At the end of the statement there is no rest.
    let at = if near.is_empty() { Some(statement.trim_end().len()) } else { found };
    match at.and_then(|at| statement.get(..at)) {
        Some(before) => error.position(before.chars().count() + 1).in_statement(&statement),
        None => error,
    }
}

/// The rest of the statement, up to what is escaped in messages, and the number of the line in
/// `… near 'REST' at line N`.
fn near(message: &str) -> Option<(&str, usize)> {
    let (_, rest) = message.split_once(" near '")?;
    let (near, after) = rest.rsplit_once("' at line ")?;
    let line = after.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((near.split('\\').next()?, line.parse().ok()?))
}

fn kind(number: u16) -> (ErrorKind, &'static str) {
    match number {
        1045 | 1698 => (ErrorKind::Denied, "check the user and the password"),
        1129 => (ErrorKind::Denied, "the server blocks this host after failed connections (FLUSH HOSTS)"),
        1130 => (ErrorKind::Denied, "the server allows no connections from this host"),
        1251 | 1275 | 1524 => (ErrorKind::Denied, "the account's authentication method is not supported"),
        1820 | 1862 => (ErrorKind::Denied, "the password has expired"),
        3159 => (
            ErrorKind::Denied,
            "the server requires TLS: add tls=verify, or tls=require, which checks no certificate",
        ),
        3955 | 4151 => (ErrorKind::Denied, "the account is locked"),
        1049 => (ErrorKind::NotFound, "create the database first, or name another"),
        1146 | 1051 => (ErrorKind::NotFound, ""),
        1044 | 1142 | 1143 | 1227 | 1370 => (
            ErrorKind::NotPermitted,
            "the user needs CREATE, DROP, INDEX, SELECT, INSERT, UPDATE, DELETE there",
        ),
        // 1290 is of any option: --read-only, but also --secure-file-priv.
        1290 | 1836 => (ErrorKind::ReadOnly, "the server is read-only"),
        1792 => (ErrorKind::ReadOnly, ""),
        1040 => (ErrorKind::Limit, "raise max_connections, or use fewer clients"),
        1203 | 1226 => {
            (ErrorKind::Limit, "raise the user's limit (max_user_connections), or use fewer clients")
        }
        1153 => (ErrorKind::Limit, "raise max_allowed_packet, or use a smaller payload"),
        1461 => (ErrorKind::Limit, "raise max_prepared_stmt_count"),
        1390 => (ErrorKind::Limit, "a statement takes at most 65,535 parameters"),
        1114 => (
            ErrorKind::Limit,
            "the server's table space is full, or a table of MEMORY has reached max_heap_table_size",
        ),
        1021 | 3675 => (ErrorKind::Limit, "the server's disk or table space is full"),
        1041 | 1037 | 1038 => (ErrorKind::Limit, "the server is out of memory"),
        1286 => (ErrorKind::NotFound, "name a storage engine that the server has (SHOW ENGINES)"),
        1053 | 1077 | 1317 | 1927 | 3169 | 4031 => (ErrorKind::ConnectionLost, ""),
        _ => (ErrorKind::Server, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_has_number_and_hint() {
        let error = server(1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes");
        assert_eq!((error.kind(), error.server_code()), (ErrorKind::Limit, Some("1153")));
        assert!(error.to_string().contains("raise max_allowed_packet"), "{error}");
        assert_eq!(server(1064, "", "syntax").kind(), ErrorKind::Server);
        let duplicate = server(1062, "23000", "Duplicate entry").to_string();
        assert!(duplicate.ends_with("[1062 23000 integrity_constraint_violation]"), "{duplicate}");
    }

    #[test]
    fn syntax_error_is_shown_in_its_line() {
        let shown = |near: &str, line: usize, statement: &str| {
            let message = format!("You have an error; the right syntax to use near '{near}' at line {line}");
            located(server(1064, "42000", &message), statement.as_bytes()).to_string()
        };
        let statement = "SELECT é FRM t,\n  'it''s' FRM t\n";
        let mark = |spaces: usize| format!("\n{}^", " ".repeat(spaces + 2));
        let first = shown("FRM t,\n  'it''s' FRM t", 1, statement);
        assert!(first.ends_with(&format!("LINE 1: SELECT é FRM t,{}", mark(17))), "{first}");
        let second = shown("FRM t", 2, statement);
        assert!(second.ends_with(&format!("LINE 2:   'it''s' FRM t{}", mark(18))), "{second}");
        let end = shown("", 1, "SELECT ");
        assert!(end.ends_with(&format!("LINE 1: SELECT {}", mark(14))), "{end}");
        // What is not in the statement, such as that of a procedure, is not shown.
        assert!(!shown("elsewhere", 1, "CALL p()").contains("LINE"));
    }
}
