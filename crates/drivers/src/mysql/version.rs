//! Oldest supported versions of MySQL and MariaDB.

use crate::prelude::*;
use crate::wire::version;

/// From these versions on, InnoDB's index entries hold 3,072 bytes by default, not 767 (`innodb_default_row_format`).
/// MySQL before 5.7.5 and MariaDB before 10.0.2 release a session's named lock when it takes a second one; two runs
/// could then share a database. MySQL before 5.6.4 has no microseconds. A 5.5 built without TLS returns NULL for
/// `SHA2()`. Sources: MySQL Reference Manual 5.7, "Changes in MySQL 5.7.5" and "5.7.7"; MariaDB Knowledge Base,
/// "`GET_LOCK`".
const OLDEST_MYSQL: [u64; 3] = [5, 7, 7];
const OLDEST_MARIADB: [u64; 3] = [10, 2, 2];

pub(super) const NEEDED: &str = "Kurabe needs MySQL 5.7.7 or newer, or MariaDB 10.2.2 or newer";

pub(super) fn is_mariadb(version: &str) -> bool {
    version.to_ascii_lowercase().contains("mariadb")
}

pub(super) fn check(text: &str) -> Result<()> {
    let (name, oldest) = if is_mariadb(text) { ("MariaDB", OLDEST_MARIADB) } else { ("MySQL", OLDEST_MYSQL) };
    // MariaDB once named itself `5.5.5-10.1.48-MariaDB` to old replicas.
    let found = version(text.strip_prefix("5.5.5-").unwrap_or(text));
    if found >= oldest || found == [0; 3] {
        return Ok(());
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
            "9.7.4",
            "8.0.36-0ubuntu0.20.04.1-log",
            "5.7.7",
            "5.7.44-log",
            "8.0.11-TiDB-v7.5.1",
            "10.2.2-MariaDB",
            "10.11.14-MariaDB-0+deb12u2",
            "5.5.5-10.6.12-MariaDB",
            "unknown",
        ] {
            assert_eq!(check(new), Ok(()), "{new}");
        }
        for old in
            ["5.5.9-log", "5.6.51", "5.7.6-m16", "5.5.68-MariaDB", "10.1.48-MariaDB", "5.5.5-10.1.48-MariaDB"]
        {
            let error = check(old).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{old}");
            let text = error.to_string();
            assert!(text.contains(old) && text.contains("named lock") && text.contains("5.7.7"), "{text}");
        }
    }
}
