//! Passwords that cannot be printed by accident.

use std::fmt;

/// A secret text. `Debug` and `Display` print `***`. Only [`Secret::expose`] returns the text, so that all uses can
/// be found by that name.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret text: for authentication, never for output.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Whether an option of this name has a secret as its value, in the URLs and connection strings of any client.
pub fn is_secret_name(name: &str) -> bool {
    let name: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    // `passfile`, `password_file` and `pwfile` name files.
    let parts =
        ["password", "passwd", "passphrase", "requirepass", "pwd", "secret", "token", "apikey", "accesskey"];
    let words = ["pass", "auth", "masterauth", "authmechanismproperties", "credentials", "pw"];
    let is_file = name.ends_with("file") || name.ends_with("path");
    !is_file && (words.contains(&&*name) || parts.iter().any(|part| name.contains(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_in_any_spelling() {
        for name in
            ["password", "sslPassword", "PWD", "pass", "authToken", "api_key", "requirepass", "secret"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["passfile", "sslkey", "key", "authSource", "user", "server_public_key_path", "tls"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_secret_is_never_printed() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
        assert_eq!(secret.expose(), "hunter2");
    }
}
