//! Oldest supported versions of MySQL and MariaDB.

use crate::prelude::*;
use crate::wire::version;

/// From these versions on, InnoDB's index entries hold 3,072 bytes by default, not 767 (`innodb_default_row_format`).
/// Sources: MySQL Reference Manual 5.7, "Changes in MySQL 5.7.7"; MariaDB Knowledge Base, "InnoDB Row Formats".
const OLDEST_MYSQL: [u64; 3] = [5, 7, 7];
const OLDEST_MARIADB: [u64; 3] = [10, 2, 2];

/// MySQL 5.5 is supported with restrictions, as the server of published figures. 5.6 never was one.
const ERA: std::ops::Range<[u64; 3]> = [5, 5, 8]..[5, 6, 0];

pub(super) const NEEDED: &str = "Kurabe needs MySQL 5.7.7 or newer, MySQL 5.5, or MariaDB 10.2.2 or newer";

/// What a server can do by its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    Current,
    /// MySQL 5.5. A session's named lock is released when it takes a second one. Times have no microseconds. InnoDB's
    /// index entries hold 767 bytes. Without TLS, `SHA2()` returns NULL. Source: MySQL 5.5 Reference Manual.
    Mysql55,
}

pub(super) fn is_mariadb(version: &str) -> bool {
    version.to_ascii_lowercase().contains("mariadb")
}

/// The era of a version, or why it is not supported.
pub(super) fn check(text: &str) -> Result<Era> {
    let (name, oldest) = if is_mariadb(text) { ("MariaDB", OLDEST_MARIADB) } else { ("MySQL", OLDEST_MYSQL) };
    // MariaDB once named itself `5.5.5-10.1.48-MariaDB` to old replicas.
    let found = version(text.strip_prefix("5.5.5-").unwrap_or(text));
    if found >= oldest || found == [0; 3] {
        return Ok(Era::Current);
    }
    if name == "MySQL" && ERA.contains(&found) {
        return Ok(Era::Mysql55);
    }
    let why = "a session can hold only one named lock, or an index entry only 767 bytes";
    Err(Error::unsupported(format!("{name} {text} is too old: {why}")).hint(NEEDED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_version_is_rejected_with_reason() {
        for new in [
            "9.7.4", "8.0.36-0ubuntu0.20.04.1-log", "5.7.7", "5.7.44-log", "8.0.11-TiDB-v7.5.1",
            "10.2.2-MariaDB", "10.11.14-MariaDB-0+deb12u2", "5.5.5-10.6.12-MariaDB", "unknown",
        ] {
            assert_eq!(check(new), Ok(Era::Current), "{new}");
        }
        assert_eq!(check("5.5.9-log"), Ok(Era::Mysql55));
        for old in
            ["5.5.7-rc", "5.6.51", "5.7.6-m16", "5.5.68-MariaDB", "10.1.48-MariaDB", "5.5.5-10.1.48-MariaDB"]
        {
            let error = check(old).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{old}");
            let text = error.to_string();
            assert!(text.contains(old) && text.contains("named lock") && text.contains("5.7.7"), "{text}");
        }
    }
}
