//! What the programs that are started here get of our environment.

use std::process::Command;

/// Keeps from a program what in our environment may hold a password: a user sets `PGPASSWORD` or a variable with a URL
/// for us, and whatever we start needs none of them, while every program of that user can read a process's environment.
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
    // A variable that is a file's or a folder's path (`PGPASSFILE`, `SSH_AUTH_SOCK`) goes with the others: none is
    // needed.
    let url = value.split_once("://").is_some_and(|(_, rest)| rest.contains('@'));
    named || url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_may_hold_a_password_are_known_by_name_or_by_content() {
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
