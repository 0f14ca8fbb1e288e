//! libpq's password file (PostgreSQL manual, "The Password File").

use super::service::Variable;
use kurabe_core::secret::Secret;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Reads the password for this host, port, database and user from the current user's file; and the reason, if the file
/// must not be used.
pub(crate) fn of_this_user(server: &[String; 4], variable: Variable<'_>) -> (Option<Secret>, Option<String>) {
    let path = match (variable("PGPASSFILE"), variable("HOME")) {
        (Some(path), _) => PathBuf::from(path),
        (None, Some(home)) => PathBuf::from(home).join(".pgpass"),
        (None, None) => return (None, None),
    };
    let Ok(about) = fs::metadata(&path) else {
        return (None, None);
    };
    if !about.is_file() {
        return (None, None);
    }
    // Like libpq, ignore a file that others can read. The hint appears if the password is missing.
    if about.permissions().mode() & 0o077 != 0 {
        let hint = format!("{} is ignored because others can read it (chmod 600)", path.display());
        return (None, Some(hint));
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    (find(&text, server.each_ref().map(String::as_str)), None)
}

/// The password of the first matching line `host:port:database:user:password`; `*` matches everything, and a backslash
/// escapes a `:` or `\`.
fn find(text: &str, wanted: [&str; 4]) -> Option<Secret> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut rest = line.trim_end_matches('\r');
        for want in wanted {
            let (field, escaped, after) = field(rest);
            if !((field == "*" && !escaped) || field == want) {
                return None;
            }
            rest = after?;
        }
        Some(Secret::new(field(rest).0)).filter(|password| !password.expose().is_empty())
    })
}

/// The next field, whether it had an escape, and the text after its `:`.
fn field(text: &str) -> (String, bool, Option<&str>) {
    let (mut out, mut escaped) = (String::new(), false);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            ':' => return (out, escaped, text.get(at + 1..)),
            '\\' => {
                escaped = true;
                out.extend(chars.next().map(|(_, c)| c));
            }
            c => out.push(c),
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
        let password = |wanted| find(text, wanted).map(|secret| secret.expose().to_owned());
        assert_eq!(password(["h", "5432", "d", "u"]).as_deref(), Some("p:w\\d"));
        assert_eq!(password(["x", "1", "y", "z"]).as_deref(), Some("last"));
        assert_eq!(find("h:5432:d\n", ["h", "5432", "d", "u"]), None);
        assert_eq!(find("\\*:1:d:u:p\n", ["h", "1", "d", "u"]), None);
        assert_eq!(find("a\\:b:1:d:u:p\n", ["a:b", "1", "d", "u"]).map(|s| s.expose().len()), Some(1));
    }

    #[test]
    fn file_readable_by_others_is_ignored_with_hint() {
        let path = std::env::temp_dir().join(format!("kurabe-pgpass-{}", std::process::id()));
        fs::write(&path, "*:*:*:*:secret\n").unwrap();
        let variable = |name: &str| (name == "PGPASSFILE").then(|| path.to_string_lossy().into_owned());
        let server = ["h", "5432", "d", "u"].map(ToOwned::to_owned);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let (password, hint) = of_this_user(&server, &variable);
        assert!(password.is_none() && hint.unwrap().contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(
            of_this_user(&server, &variable).0.map(|s| s.expose().to_owned()).as_deref(),
            Some("secret")
        );
        fs::remove_file(&path).unwrap();
    }

    proptest! {
        #[test]
        fn parser_accepts_any_text(text in "\\PC{0,60}") {
            let _ = find(&text, ["h", "1", "d", "u"]);
        }
    }
}
