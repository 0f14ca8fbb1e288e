//! Passwords in statements.

/// Parts of words by which statements name secrets, in lower case.
const SIGNS: [&str; 9] = [
    "identified", "password", "passwd", "passphrase", "secret", "credential", "authentication",
    "auth_string", "pwd",
];

/// A statement's text; only its first words if it may contain a password.
pub(crate) fn sql(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    // `ALTER USER … AUTH '…'`; a table may be named `authors`.
    let auth = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == "auth");
    if !auth && !SIGNS.iter().any(|sign| lower.contains(sign)) {
        return text.trim().to_owned();
    }
    let words = text.split_whitespace().take(2);
    // A name or a value in them could be the password.
    let plain = words.take_while(|word| word.chars().all(|c| c.is_ascii_alphabetic()));
    let named = |word: &str| SIGNS.iter().any(|sign| word.to_ascii_lowercase().contains(sign));
    let shown: Vec<&str> = plain.take_while(|word| !named(word) && is_keyword(word)).collect();
    let shown = if shown.is_empty() { "a statement".to_owned() } else { shown.join(" ") };
    format!("{shown} … (not shown: it may contain a password)")
}

/// Words that begin statements or name kinds of objects.
fn is_keyword(word: &str) -> bool {
    const KNOWN: [&str; 24] = [
        "ALTER", "CALL", "CHANGE", "COPY", "CREATE", "DELETE", "DO", "DROP", "EXECUTE", "GRANT", "INSERT",
        "INTO", "MASTER", "PREPARE", "REPLACE", "ROLE", "SELECT", "SERVER", "SET", "SHOW", "UPDATE", "USER",
        "WITH", "TABLE",
    ];
    KNOWN.iter().any(|known| known.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_with_passwords_are_shown_without_them() {
        for (text, shown) in [
            ("CREATE USER bob IDENTIFIED BY 'hunter2'", "CREATE USER …"),
            ("alter role bob with encrypted PassWord 'hunter2'", "alter role …"),
            ("SET PASSWORD = 'hunter2'", "SET …"),
            ("CHANGE MASTER TO MASTER_PASSWORD='hunter2'", "CHANGE MASTER …"),
            ("SELECT 'hunter2' = password FROM users", "SELECT …"),
            ("hunter2 password", "a statement …"),
            ("ALTER USER bob AUTH 'hunter2'", "ALTER USER …"),
            ("SELECT dblink('host=x passwd=hunter2')", "SELECT …"),
        ] {
            let found = sql(text);
            assert!(found.starts_with(shown) && !found.contains("hunter2"), "{found}");
        }
        assert_eq!(sql(" SELECT author FROM books "), "SELECT author FROM books");
    }
}
