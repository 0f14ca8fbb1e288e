//! Error answers: a code in capitals and a message. Source of the codes: `src/server.c`, `createSharedObjects`, and
//! <https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors>.

use kurabe_core::{Error, ErrorKind};

/// Parses an error answer, without its leading `-`.
pub(super) fn of(line: &[u8]) -> Error {
    let text = String::from_utf8_lossy(line);
    let (code, words) = match text.split_once(' ') {
        Some((code, words)) if is_code(code) => (code, words),
        _ => ("ERR", &*text),
    };
    let words: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words = words.trim_end_matches(['.', ' ']);
    let error = |kind, words: &str| Error::new(kind, words).code(code);
    match code {
        "WRONGPASS" => error(ErrorKind::Denied, "the server refused the user or the password")
            .hint("check them, and REDISCLI_AUTH; the default user is 'default'"),
        "NOAUTH" => error(ErrorKind::Denied, "the server requires a password")
            .hint("redis://[user]:password@host, or REDISCLI_AUTH"),
        "DENIED" => error(
            ErrorKind::Denied,
            "the server is in protected mode: without a password it accepts connections from its own machine only",
        )
        .hint("set a password, or connect over its loopback interface or its Unix socket"),
        "NOPERM" => error(ErrorKind::NotPermitted, words).hint("the user's ACL on the server must allow it"),
        "OOM" => error(ErrorKind::Limit, "the server's memory is full").hint("its limit is maxmemory"),
        "LOADING" => error(ErrorKind::Server, "the server is still loading its data")
            .hint("wait until it has finished"),
        "READONLY" => error(ErrorKind::NotPermitted, "the server is a replica, which accepts no writes")
            .hint("name its master"),
        "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" | "TRYAGAIN" => {
            error(ErrorKind::Unsupported, "the server is a node of a cluster, and clusters are not supported")
                .hint("name a standalone server")
        }
        "NOPROTO" => too_old().code(code),
        "ERR" if words.contains("max number of clients") => {
            error(ErrorKind::Limit, "the server accepts no more connections").hint("its limit is maxclients")
        }
        "ERR" if words.contains("invalid bulk length") => {
            error(ErrorKind::Limit, "a value is longer than the server allows")
                .hint("its limit is proto-max-bulk-len")
        }
        "ERR" if words.contains("DB index is out of range") => {
            error(ErrorKind::NotFound, "the server has no database with this number")
                .hint("its setting 'databases' is the number of databases; the first is 0")
        }
        _ => error(ErrorKind::Server, words),
    }
}

/// The error of a server without RESP3.
pub(super) fn too_old() -> Error {
    Error::unsupported("the server does not support RESP3").hint("use Redis 6 or newer, or Valkey")
}

fn is_code(word: &str) -> bool {
    !word.is_empty() && word.len() < 32 && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_its_kind() {
        for (line, kind, code) in [
            ("WRONGPASS invalid username-password pair or user is disabled.", ErrorKind::Denied, "WRONGPASS"),
            ("NOAUTH Authentication required.", ErrorKind::Denied, "NOAUTH"),
            ("DENIED Redis is running in protected mode because …", ErrorKind::Denied, "DENIED"),
            (
                "NOPERM this user has no permissions to run the 'set' command",
                ErrorKind::NotPermitted,
                "NOPERM",
            ),
            ("OOM command not allowed when used memory > 'maxmemory'.", ErrorKind::Limit, "OOM"),
            ("LOADING Redis is loading the dataset in memory", ErrorKind::Server, "LOADING"),
            ("READONLY You can't write against a read only replica.", ErrorKind::NotPermitted, "READONLY"),
            ("MOVED 866 127.0.0.1:7001", ErrorKind::Unsupported, "MOVED"),
            ("CROSSSLOT Keys in request don't hash to the same slot", ErrorKind::Unsupported, "CROSSSLOT"),
            ("NOPROTO unsupported protocol version", ErrorKind::Unsupported, "NOPROTO"),
            ("ERR max number of clients reached", ErrorKind::Limit, "ERR"),
            ("ERR Protocol error: invalid bulk length", ErrorKind::Limit, "ERR"),
            ("ERR DB index is out of range", ErrorKind::NotFound, "ERR"),
            (
                "WRONGTYPE Operation against a key holding the wrong kind of value",
                ErrorKind::Server,
                "WRONGTYPE",
            ),
            ("nonsense without a code", ErrorKind::Server, "ERR"),
            ("", ErrorKind::Server, "ERR"),
        ] {
            let error = of(line.as_bytes());
            assert_eq!((error.kind(), error.server_code()), (kind, Some(code)), "{line}");
        }
        assert!(!of(b"ERR a\x1b[31mb\r").to_string().contains('\x1b'));
    }
}
