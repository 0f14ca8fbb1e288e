//! Servers that are too old are rejected by their version, before any request that they do not support.

use super::server::*;
use kurabe_core::ErrorKind;

/// Serves logins and the query of the version.
fn mysql(version: &str) -> u16 {
    let definition = b"\x03def\0\0\0\0\0\x0c\x2d\0\xff\xff\0\0\xfd\0\0\0\0\0";
    let row = [&[u8::try_from(version.len()).unwrap()][..], version.as_bytes()].concat();
    let eof = b"\xfe\0\0\x02\0";
    let answer = [packet(1, b"\x01"), packet(2, definition), packet(3, eof), packet(4, &row), packet(5, eof)];
    until_goodbye([mysql_login(), answer.concat()].concat(), b"\x01\0\0\0\x01")
}

#[test]
fn old_mysql_is_rejected_with_reason() {
    let _alone = alone();
    for version in ["5.6.51-log", "5.7.4-m14", "10.1.48-MariaDB"] {
        let error = describe(MYSQL, mysql(version));
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{version}: {error}");
        let text = error.to_string();
        assert!(text.contains(version) && text.contains("needs MySQL 5.7.7 or newer"), "{text}");
    }
}
