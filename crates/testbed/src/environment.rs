//! The environment of started programs.

use std::process::Command;

/// Removes variables that may contain a password from a program's environment. Users set `PGPASSWORD` or a variable
/// with a URL for Kurabe; started programs do not need them, and every process of that user can read an environment.
pub(crate) fn without_secrets(command: &mut Command) -> &mut Command {
    for (name, value) in std::env::vars_os() {
        if is_secret(&name.to_string_lossy(), &value.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    command
}

fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let named =
        ["PASSWORD", "PASSWD", "SECRET", "TOKEN", "_PWD", "AUTH"].iter().any(|part| name.contains(part));
    // Variables with paths of password files (`PGPASSFILE`, `SSH_AUTH_SOCK`) are removed too: none is needed.
    let url = value.split_once("://").is_some_and(|(_, rest)| rest.contains('@'));
    named || url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_detected_by_name_or_value() {
        for (name, value) in [
            ("PGPASSWORD", "x"),
            ("MYSQL_PWD", "x"),
            ("REDISCLI_AUTH", "x"),
            ("KURABE_ORACLE", "oracle://scott:tiger@db/orcl"),
        ] {
            assert!(is_secret(name, value), "{name}");
        }
        for (name, value) in
            [("PATH", "/bin"), ("PWD", "/home/me@work"), ("KURABE_CACHE", "/x"), ("TZ", "UTC")]
        {
            assert!(!is_secret(name, value), "{name}");
        }
    }
}
