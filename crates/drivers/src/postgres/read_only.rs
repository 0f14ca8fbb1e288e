//! Sessions whose transactions only read (manual, "SET TRANSACTION" and `default_transaction_read_only`).

use crate::prelude::*;
use crate::wire::link::{Query, value};

/// The setting that makes every new transaction of a session read-only.
pub(super) const SETTING: &str = "default_transaction_read_only";

/// What a `ParameterStatus` message says of the setting; `None` if it is of another one.
pub(super) fn reported(message: &[u8]) -> Option<bool> {
    let value = message.strip_prefix(SETTING.as_bytes())?.strip_prefix(b"\0")?;
    Some(value == b"on\0")
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

/// The error of a statement that made the transactions after it writable.
pub(super) fn switched_off() -> Error {
    let what = "the statement lets later transactions of a read-only session write";
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
}
