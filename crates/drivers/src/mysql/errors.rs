//! Kinds of server error numbers (MySQL manual, "Server Error Message Reference"; MariaDB uses the same numbers).

use kurabe_core::{Error, ErrorKind};

/// Converts an ERR packet to an error with a hint.
pub(crate) fn server(number: u16, message: &str) -> Error {
    let (kind, hint) = kind(number);
    Error::new(kind, format!("the server answered: {message}")).code(number).hint(hint)
}

fn kind(number: u16) -> (ErrorKind, &'static str) {
    match number {
        1045 | 1698 => (ErrorKind::Denied, "check the user and the password"),
        1129 => (ErrorKind::Denied, "the server blocks this host after failed connections (FLUSH HOSTS)"),
        1130 => (ErrorKind::Denied, "the server allows no connections from this host"),
        1251 | 1275 | 1524 => (ErrorKind::Denied, "the account's authentication method is not supported"),
        1820 | 1862 => (ErrorKind::Denied, "the password has expired"),
        3159 => (ErrorKind::Denied, "the server requires TLS: add tls=require or tls=verify"),
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
        let error = server(1153, "Got a packet bigger than 'max_allowed_packet' bytes");
        assert_eq!((error.kind(), error.server_code()), (ErrorKind::Limit, Some("1153")));
        assert!(error.to_string().contains("raise max_allowed_packet"), "{error}");
        assert_eq!(server(1064, "syntax").kind(), ErrorKind::Server);
    }
}
