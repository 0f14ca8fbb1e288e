//! Conversion of Oracle's error numbers and of the crate's errors (Oracle Database Error Messages).

use kurabe_core::{Error, ErrorKind};
use kurabe_driver_common::clients::ORACLEDB as CLIENT;
use oracledb::ErrorKind as Crate;

/// A row with this key already exists.
pub(crate) const DUPLICATE: &str = "ORA-00001";
/// Another session holds the lock that was requested with NOWAIT.
pub(crate) const BUSY: &str = "ORA-00054";
/// An object with this name already exists.
pub(crate) const NAME_TAKEN: &str = "ORA-00955";

/// Converts an error of the crate while connecting to `place`.
pub(crate) fn connecting(error: &oracledb::Error, place: &str) -> Error {
    let text = error.to_string();
    match error.kind() {
        Crate::InvalidServiceName(_, service, ..) => {
            Error::new(ErrorKind::NotFound, format!("the listener at {place} has no service '{service}'"))
                .code("ORA-12514")
                .hint("list its services with lsnrctl services; a pluggable database has its own service, such as FREEPDB1")
        }
        Crate::InvalidSid(_, sid, ..) => {
            Error::new(ErrorKind::NotFound, format!("the listener at {place} has no SID '{sid}'"))
                .code("ORA-12505")
                .hint("if it is a service name, use oracle://user@host/service")
        }
        Crate::ListenerRefusedConnection(_, _, _, number) => refused(*number, place),
        Crate::UnexpectedRefuse(_) => {
            Error::new(ErrorKind::Unreachable, format!("the listener at {place} refused the connection without a reason"))
                .hint("see its log for the reason (lsnrctl status shows the file)")
        }
        Crate::CallTimeoutExceeded => {
            Error::new(ErrorKind::Timeout, format!("{place} does not answer within the time allowed"))
        }
        Crate::StreamOperation | Crate::TlsOperation => stream(&text, place),
        Crate::DeadConnection | Crate::NotConnected | Crate::UnableToRecover => closed(place),
        Crate::InvalidConnectString(..)
        | Crate::InvalidDescriptorNode(..)
        | Crate::ParseError(..)
        | Crate::NoConnectString
        | Crate::InvalidNetworkName(_) => Error::usage("Oracle's driver cannot parse the descriptor")
            .hint("descriptor=(DESCRIPTION=…), descriptor=host:port/service, or a name in tnsnames.ora"),
        Crate::NoConfigDir | Crate::TnsAliasNotFound(..) | Crate::IfileCycleDetected(..) => {
            Error::usage(format!("oracle: {text}")).hint("set TNS_ADMIN to the folder of tnsnames.ora")
        }
        Crate::WalletUnreadable(_) => Error::new(ErrorKind::NotFound, format!("oracle: {text}"))
            .hint("set wallet= to the folder of ewallet.pem"),
        Crate::WalletPasswordMissingOrInvalid(..) | Crate::WalletPrivateKeyInvalid(_) | Crate::PemFileOperation => {
            Error::new(ErrorKind::Denied, format!("oracle: {text}"))
                .hint("set KURABE_ORACLE_WALLET_PASSWORD to the wallet's password")
        }
        Crate::ServerVersionNotSupported => {
            Error::unsupported(format!("the server at {place} is older than Oracle Database 12.1"))
                .hint("use Oracle Database 12.2 or later")
        }
        Crate::InvalidRedirect(_) => {
            Error::new(ErrorKind::Protocol, format!("the listener at {place} sent an invalid redirect"))
        }
        _ => executing(error).context(place),
    }
}

/// Converts an error of the crate on an open connection.
pub(crate) fn executing(error: &oracledb::Error) -> Error {
    let text = error.to_string();
    match error.kind() {
        Crate::DbError(server_error) => server(server_error.code(), server_error.message()),
        Crate::CallTimeoutExceeded => {
            Error::new(ErrorKind::Timeout, "the server did not answer within the time allowed")
        }
        Crate::DeadConnection => {
            Error::new(ErrorKind::ConnectionLost, "the server or the network closed the connection")
        }
        Crate::StreamOperation | Crate::NotConnected | Crate::UnableToRecover | Crate::LockPoisoned => {
            Error::new(ErrorKind::ConnectionLost, format!("the connection is lost ({text})"))
        }
        Crate::NotImplemented(_) | Crate::UnsupportedDbType(_) => {
            Error::unsupported(format!("{CLIENT}: {text}"))
        }
        Crate::WrongNumPositionalBinds(..) | Crate::DifferentTypes(..) | Crate::UnsupportedConversion(..) => {
            Error::new(ErrorKind::Internal, format!("{CLIENT}: {text}"))
        }
        _ => Error::new(ErrorKind::Protocol, format!("{CLIENT}: {text}")),
    }
}

/// Converts a failure of the network or of TLS. The crate exposes the cause only as text.
fn stream(text: &str, place: &str) -> Error {
    let cause = text.split_once(": ").map_or(text, |(_, cause)| cause);
    let has = |part: &str| cause.contains(part);
    if has("onnection refused") {
        return Error::new(ErrorKind::Unreachable, format!("nothing listens at {place}"))
            .hint("check that the listener is running (lsnrctl status), and the host and port");
    }
    if has("ertificate") {
        return Error::new(ErrorKind::Denied, format!("{place}: no TLS connection: {cause}"))
            .hint("set the folder of a wallet (ewallet.pem) with the certificate authority: wallet=FOLDER");
    }
    if has("corrupt message") || has("InvalidContentType") || text.starts_with("TLS operation") {
        return Error::new(ErrorKind::Protocol, format!("{place}: no TLS connection: {cause}"))
            .hint("check that the port is one of TLS (TCPS in the listener's configuration)");
    }
    if has("reset by peer")
        || has("roken pipe")
        || has("unexpected end of file")
        || has("close_notify")
        || has("UnexpectedEof")
    {
        return closed(place);
    }
    if has("os error 24") || has("os error 23") {
        return Error::new(ErrorKind::Limit, format!("no more connections from this machine: {cause}"))
            .hint("raise the limit of open files (ulimit -n)");
    }
    Error::new(ErrorKind::Unreachable, format!("cannot reach {place}: {cause}"))
        .hint("check the host and port")
}

fn closed(place: &str) -> Error {
    let message = format!("{place} closed the connection during connection set-up");
    Error::new(ErrorKind::ConnectionLost, message)
        .hint("check that this is the port of an Oracle listener, and whether it requires TLS (tls=verify)")
}

fn refused(number: usize, place: &str) -> Error {
    let (kind, what, hint) = match number {
        12_516 | 12_518 | 12_519 | 12_520 | 12_564 => (
            ErrorKind::Limit,
            "has no server process left for this connection",
            "raise processes and sessions, or use fewer clients",
        ),
        12_526..=12_528 => (
            ErrorKind::Unreachable,
            "accepts no connections: the instance is restricted, starting or stopping",
            "try again when the database is open",
        ),
        12_521 => (ErrorKind::NotFound, "has no such instance", "check the name of the instance"),
        12_523 => (ErrorKind::NotFound, "has no server of this type", "remove server="),
        _ => (
            ErrorKind::Unreachable,
            "refused the connection",
            "see its log for the reason (lsnrctl status shows the file)",
        ),
    };
    Error::new(kind, format!("the listener at {place} {what}")).code(format!("ORA-{number:05}")).hint(hint)
}

pub(crate) fn server(number: usize, message: &str) -> Error {
    let code = format!("ORA-{number:05}");
    // "ORA-00001: unique constraint (…) violated", which lines of help may follow.
    let line = message.lines().next().unwrap_or_default();
    let line = line.strip_prefix(&code).map_or(line, |rest| rest.trim_start_matches([':', ' ']));
    let (kind, hint) = kind(number);
    Error::new(kind, format!("the server answered: {line}")).code(code).hint(hint)
}

fn kind(number: usize) -> (ErrorKind, &'static str) {
    match number {
        1_017 | 1_005 => (ErrorKind::Denied, "check the user and the password"),
        28_000 => (ErrorKind::Denied, "the account is locked"),
        28_001 => (ErrorKind::Denied, "the password has expired"),
        28_040 => (ErrorKind::Denied, "this client does not support the account's old password verifier"),
        1_045 => (ErrorKind::NotPermitted, "grant the user CREATE SESSION"),
        1_031 | 1_720 => (ErrorKind::NotPermitted, "the user needs CREATE TABLE"),
        1_536 | 1_950 => {
            (ErrorKind::NotPermitted, "give the user a quota on the tablespace (ALTER USER … QUOTA … ON …)")
        }
        1_456 | 16_000 => (ErrorKind::NotPermitted, "the database is open read-only"),
        942 => (ErrorKind::NotFound, ""),
        12_514 | 12_505 => (ErrorKind::NotFound, "use a service of the listener"),
        18 | 20 => (ErrorKind::Limit, "raise sessions and processes, or use fewer clients"),
        2_391 => (ErrorKind::Limit, "raise SESSIONS_PER_USER in the user's profile, or use fewer clients"),
        1_000 => (ErrorKind::Limit, "raise open_cursors, or lower statement_cache="),
        4_030 | 4_031 => (ErrorKind::Limit, "the server is out of memory"),
        257 | 16_038 => (ErrorKind::Limit, "the server's archive destination is full"),
        1_652..=1_654 | 1_658 | 1_659 | 1_688 | 1_691 | 1_692 | 12_954 => {
            (ErrorKind::Limit, "the server's tablespace is full")
        }
        972 => {
            (ErrorKind::Limit, "before 12.2 a name has at most 30 bytes; use Oracle Database 12.2 or later")
        }
        1_450 => (ErrorKind::Limit, "the key is longer than an index block allows"),
        54 => (ErrorKind::Server, "another session holds the lock"),
        1_461 | 24_816 => (ErrorKind::Server, "the server accepts no long value at this bind"),
        1_013 | 51 | 30_006 => (ErrorKind::Timeout, ""),
        1_033 | 1_034 | 1_089 | 1_090 | 27_101 => {
            (ErrorKind::Unreachable, "the database is starting or stopping; try again in a moment")
        }
        28 | 1_012 | 1_092 | 2_396 | 2_399 | 3_113 | 3_114 | 3_135 | 12_537 | 12_547 | 12_570 => {
            (ErrorKind::ConnectionLost, "")
        }
        _ => (ErrorKind::Server, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_has_number_and_hint() {
        let error =
            server(1_017, "ORA-01017: invalid credential or not authorized; logon denied\nHelp: https://…");
        assert_eq!((error.kind(), error.server_code()), (ErrorKind::Denied, Some("ORA-01017")));
        assert_eq!(
            error.to_string(),
            "the server answered: invalid credential or not authorized; logon denied [ORA-01017]; check the user and the password"
        );
        assert_eq!(server(1, "ORA-00001: unique constraint violated").server_code(), Some(DUPLICATE));
        for (number, kind) in [
            (1, ErrorKind::Server),
            (54, ErrorKind::Server),
            (942, ErrorKind::NotFound),
            (1_031, ErrorKind::NotPermitted),
            (1_950, ErrorKind::NotPermitted),
            (20, ErrorKind::Limit),
            (2_391, ErrorKind::Limit),
            (1_653, ErrorKind::Limit),
            (3_113, ErrorKind::ConnectionLost),
            (1_033, ErrorKind::Unreachable),
            (900, ErrorKind::Server),
        ] {
            assert_eq!(server(number, "").kind(), kind, "ORA-{number:05}");
        }
    }

    #[test]
    fn full_listener_is_limit_and_closed_listener_is_not() {
        assert_eq!(refused(12_519, "db:1521").kind(), ErrorKind::Limit);
        assert_eq!(refused(12_528, "db:1521").kind(), ErrorKind::Unreachable);
        let odd = refused(12_999, "db:1521");
        assert!(odd.to_string().contains("db:1521") && odd.to_string().contains("ORA-12999"), "{odd}");
    }
}
