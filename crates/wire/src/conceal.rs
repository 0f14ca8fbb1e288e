//! Passwords in statements.

use std::sync::LazyLock;

/// Parts of words by which statements name secrets, in lower case.
const SIGNS: [&str; 14] = [
    "identified", "password", "passwd", "passphrase", "secret", "credential", "authentication",
    "auth_string", "api_key", "apikey", "access_key", "private_key", "access_token", "refresh_token",
];
/// A sign so short that one in a thousand random texts of 64 letters and digits has it: it begins or ends a word of a name.
const SHORT_SIGN: &str = "pwd";
/// The longest name in which it is looked for, in bytes.
const LONGEST_NAME: usize = 32;

/// A statement's text; only its first words if it may contain a password.
pub(crate) fn sql(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    // `ALTER USER … AUTH '…'`; a table may be named `authors`.
    let auth = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == "auth");
    if !auth && !SIGNS.iter().any(|sign| lower.contains(sign)) && !has_short_sign(text) {
        return text.trim().to_owned();
    }
    let words = text.split_whitespace().take(2);
    // A name or a value in them could be the password.
    let plain = words.take_while(|word| word.chars().all(|c| c.is_ascii_alphabetic()));
    let shown: Vec<&str> = plain.take_while(|word| is_keyword(word)).collect();
    let shown = if shown.is_empty() { "a statement".to_owned() } else { shown.join(" ") };
    format!("{shown} … (not shown: it may contain a password)")
}

/// Ends of names of which the rest says whose it is. Others go on: `token_count`.
const ENDS: [&str; 5] = ["token", "passcode", "signingkey", "encryptionkey", "authkey"];

/// Whether a part of a text may be what `names_secret` finds.
pub fn may_name_secret(text: &str) -> bool {
    let one = flat(&text.to_ascii_lowercase());
    FLAT.iter().any(|sign| one.contains(sign)) || NAMES.iter().chain(&ENDS).any(|name| one.contains(name))
}

/// [`SIGNS`] without what divides their words.
static FLAT: LazyLock<Vec<String>> = LazyLock::new(|| SIGNS.map(flat).to_vec());

/// A name without what divides its words.
fn flat(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).collect()
}

/// Whether the name of a field, a column or a key says that a secret is in it: `user:7:password`, `apiKey`, `auth_token`.
pub fn names_secret(word: impl AsRef<[u8]>) -> bool {
    const LONGEST: usize = 64;
    let Some(word) = std::str::from_utf8(word.as_ref()).ok().filter(|word| word.len() <= LONGEST) else {
        return false;
    };
    let lower = word.to_ascii_lowercase();
    let last = lower.rsplit([':', '.', '/']).next().unwrap_or_default();
    let one = flat(&lower);
    FLAT.iter().any(|sign| one.contains(sign))
        || has_short_sign(word)
        || NAMES.contains(&last)
        || ENDS.iter().any(|end| one.ends_with(end))
}

/// Whether a name in a text has a word that begins or ends with [`SHORT_SIGN`], or has it anywhere among letters of one case:
/// `userPwd`, `pwd_hash`, `userpwdhash`.
fn has_short_sign(text: &str) -> bool {
    let names = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|name| name.len() <= LONGEST_NAME);
    let unnumbered = names.map(|name| name.trim_end_matches(|c: char| c.is_ascii_digit()));
    unnumbered.filter(|name| name.to_ascii_lowercase().contains(SHORT_SIGN)).any(|name| {
        let is = |case: fn(&u8) -> bool| name.as_bytes().iter().all(case);
        if is(u8::is_ascii_lowercase) || is(u8::is_ascii_uppercase) {
            return true;
        }
        let starts = |at: &usize| {
            let around = &name.as_bytes()[at - 1..=*at];
            around[0].is_ascii_lowercase() && around[1].is_ascii_uppercase()
        };
        let ends: Vec<usize> = (1..name.len()).filter(starts).chain([name.len()]).collect();
        let mut from = 0;
        ends.into_iter().any(|end| {
            let word = name[std::mem::replace(&mut from, end)..end].to_ascii_lowercase();
            word.starts_with(SHORT_SIGN) || word.ends_with(SHORT_SIGN)
        })
    })
}

/// Parts of words that speak for a secret wherever HTTP has them, in lower case.
const WEB_SIGNS: [&str; 12] = [
    "password", "passwd", "passphrase", "secret", "credential", "auth_string", "access_token",
    "refresh_token", "api_key", "api-key", "apikey", "authorization",
];
/// Words that do so only as names of values: they are parts of others, or of encoded bytes, too.
const NAMES: [&str; 4] = ["pwd", "auth", "token", "passcode"];

/// Whether a part of a request of HTTP, such as its path or its body, may contain a password or a key.
pub(crate) fn http(bytes: &[u8]) -> bool {
    let text = decoded(bytes);
    let has = |sign: &&str| text.contains(*sign);
    let names = |name: &&str| text.match_indices(*name).any(|(at, _)| is_name(&text[at + name.len()..]));
    WEB_SIGNS.iter().any(has) || NAMES.iter().any(names) || has_user(&text)
}

/// Whether a value follows a name: of JSON, of a form, or of one in several parts.
fn is_name(rest: &str) -> bool {
    let rest = rest.trim_start_matches([' ', '"', '\'', '\\', ']']);
    rest.starts_with([':', '=', '\r', '\n', ';'])
}

/// Whether a URL in it has a user with a password.
fn has_user(text: &str) -> bool {
    let mut urls = text.split("://").skip(1);
    urls.any(|rest| {
        let end = rest.find(|c: char| "/?#\"' \r\n".contains(c)).unwrap_or(rest.len());
        rest[..end].split_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

/// A text in lower case, without the encodings of URLs and of JSON: `p%61ss` and `p\u0061ss` are words as well.
fn decoded(bytes: &[u8]) -> String {
    let mut found = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let digits = match rest {
            [b'%', one, two, ..] => Some((*one, *two, 3)),
            [b'\\', b'u', b'0', b'0', one, two, ..] => Some((*one, *two, 6)),
            _ => None,
        };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let byte = digits.and_then(|(one, two, length)| Some((digit(one)? * 16 + digit(two)?, length)));
        let (byte, length) = byte.unwrap_or((u32::from(*first), 1));
        found.push((byte as u8).to_ascii_lowercase());
        rest = if length == 1 { after } else { rest.get(length..).unwrap_or_default() };
    }
    String::from_utf8_lossy(&found).into_owned()
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

    #[test]
    fn names_of_secrets_are_known_in_each_way_of_writing_and_others_are_not_taken_for_them() {
        for name in [
            "password", "user:7:passwd", "apiKey", "API-KEY", "accessToken", "auth_token", "token",
            "signing_key", "userPwd", "user_pwd_hash", "userPwdHash", "userpwdhash", "userpwd1", "PWD2",
        ] {
            assert!(names_secret(name) && may_name_secret(name), "{name}");
        }
        for name in ["token_count", "tokens", "author", "keyboard", "session", "primary_key", "hauth"] {
            assert!(!names_secret(name), "{name}");
        }
        // Random texts, such as keys of sessions.
        for value in ["hK2xpwdq81", "sess:Zq0pwdXk3vT9yUe4LmBf7cRw1aNs8DgHj2Pi5oQx6KtJzYbVnWdFlCrMhGs"] {
            assert!(!names_secret(value), "{value}");
            let statement = format!("INSERT INTO s (k) VALUES ('{value}')");
            assert_eq!(sql(&statement), statement);
        }
    }

    #[test]
    fn bodies_and_paths_with_secrets_are_found() {
        for text in [
            r#"{"name":"bob","password":"x"}"#,
            r#"{"p\u0061ssword":"x"}"#,
            r#"{"userPwd" : "x"}"#,
            "user=bob&token=x",
            "Content-Disposition: form-data; name=\"auth\"\r\n\r\nx",
            "{\"source\":\"http://bob:x@db/shop\"}",
            "/a?api%5Fkey=x",
        ] {
            assert!(http(text.as_bytes()), "{text}");
        }
        for text in [
            r#"{"author":"bob","text":"a token of thanks at 10:30, see http://example.org/a@b:c"}"#,
            "zPwdQ9authXX==",
            "/shop/tokens/17",
        ] {
            assert!(!http(text.as_bytes()), "{text}");
        }
    }
}
