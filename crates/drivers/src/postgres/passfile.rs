//! libpq's password file (PostgreSQL manual, "The Password File").

use super::service::Variable;
use crate::environment::{bytes, text};
use kurabe_core::Result;
use kurabe_core::secret::Secret;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Reads the password for this host, port, database and user from the file that the URL names, or from the current user's;
/// and the reason, if the file must not be used.
///
/// # Errors
/// If the password is not UTF-8, with the file and the line.
pub(crate) fn of_this_user(
    server: &[String; 4],
    named: Option<String>,
    variable: Variable<'_>,
) -> Result<(Option<Secret>, Option<String>)> {
    let path = match (named.or_else(|| variable("PGPASSFILE")), variable("HOME")) {
        (Some(path), _) => PathBuf::from(path),
        (None, Some(home)) => PathBuf::from(home).join(".pgpass"),
        (None, None) => return Ok((None, None)),
    };
    let Ok(about) = fs::metadata(&path) else {
        return Ok((None, None));
    };
    if !about.is_file() {
        return Ok((None, None));
    }
    // Like libpq, ignore a file that others can read. The hint appears if the password is missing.
    if about.permissions().mode() & 0o077 != 0 {
        let hint = format!("{} is ignored because others can read it (chmod 600)", path.display());
        return Ok((None, Some(hint)));
    }
    match bytes(&path) {
        Ok(bytes) => {
            let bytes = bytes.unwrap_or_default();
            Ok((find(&bytes, &path.display().to_string(), server.each_ref().map(String::as_str))?, None))
        }
        Err(error) => Ok((None, Some(format!("{} cannot be read: {error}", path.display())))),
    }
}

/// The password of the first matching line `host:port:database:user:password`; `*` matches everything, and a backslash
/// escapes a `:` or `\`. Lines of other servers may be in any encoding.
fn find(bytes: &[u8], file: &str, wanted: [&str; 4]) -> Result<Option<Secret>> {
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let matching = if line.starts_with(b"#") { None } else { password(line, wanted) };
        if let Some(password) = matching.filter(|password| !password.is_empty()) {
            return text(&password, format_args!("{file}, line {}", number + 1))
                .map(|password| Some(Secret::new(password)));
        }
    }
    Ok(None)
}

/// The password of a line, if it is of this server.
fn password(line: &[u8], wanted: [&str; 4]) -> Option<Vec<u8>> {
    let mut rest = line;
    for want in wanted {
        let (field, escaped, after) = field(rest);
        if !((field == b"*" && !escaped) || field == want.as_bytes()) {
            return None;
        }
        rest = after?;
    }
    Some(field(rest).0)
}

/// The next field, whether it had an escape, and what follows its `:`.
fn field(line: &[u8]) -> (Vec<u8>, bool, Option<&[u8]>) {
    let (mut out, mut escaped) = (Vec::new(), false);
    let mut bytes = line.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b':' => return (out, escaped, line.get(at + 1..)),
            b'\\' => {
                escaped = true;
                out.extend(bytes.next().map(|(_, byte)| *byte));
            }
            byte => out.push(*byte),
        }
    }
    (out, escaped, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn first_matching_line_gives_password() {
        let text = "# note\nh:5432:d:other:no\nh:5432:*:u:p\\:w\\\\d:ignored\n*:*:*:*:last\n";
        let find = |text: &str, wanted| find(text.as_bytes(), "f", wanted).unwrap();
        let password = |wanted| find(text, wanted).map(|secret| secret.expose().to_owned());
        assert_eq!(password(["h", "5432", "d", "u"]).as_deref(), Some("p:w\\d"));
        assert_eq!(password(["x", "1", "y", "z"]).as_deref(), Some("last"));
        assert!(find("h:5432:d\n", ["h", "5432", "d", "u"]).is_none());
        assert!(find("\\*:1:d:u:p\n", ["h", "1", "d", "u"]).is_none());
        assert_eq!(find("a\\:b:1:d:u:p\n", ["a:b", "1", "d", "u"]).map(|s| s.expose().len()), Some(1));
    }

    #[test]
    fn file_readable_by_others_is_ignored_with_hint() {
        let path = std::env::temp_dir().join(format!("kurabe-pgpass-{}", std::process::id()));
        fs::write(&path, "*:*:*:*:secret\n").unwrap();
        let variable = |name: &str| (name == "PGPASSFILE").then(|| path.to_string_lossy().into_owned());
        let server = ["h", "5432", "d", "u"].map(ToOwned::to_owned);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let (password, hint) = of_this_user(&server, None, &variable).unwrap();
        assert!(password.is_none() && hint.unwrap().contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(
            of_this_user(&server, None, &variable).unwrap().0.map(|s| s.expose().to_owned()).as_deref(),
            Some("secret")
        );
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn bytes_of_other_encodings_hide_no_password() {
        let file = b"# s\xe9curit\xe9\nother:1:d:u:\xe9\nh:1:d:u:secret\nlatin:1:d:u:s\xe9cret\n";
        let found = find(file, "f", ["h", "1", "d", "u"]).unwrap();
        assert_eq!(found.as_ref().map(Secret::expose), Some("secret"));
        let error = find(file, "f", ["latin", "1", "d", "u"]).unwrap_err().to_string();
        assert!(error.contains("f, line 4") && !error.contains("cret"), "{error}");
    }

    proptest! {
        #[test]
        fn parser_accepts_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = find(&bytes, "f", ["h", "1", "d", "u"]);
        }
    }
}
