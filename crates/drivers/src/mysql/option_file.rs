//! The `[client]` sections of the option files (MySQL manual, "Using Option Files").

use crate::environment::{Environment, bytes, text};
use crate::prelude::*;
use crate::wire::tls;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Sections that the client programs of MySQL and MariaDB read.
const SECTIONS: &[&str] = &["client", "client-server", "client-mariadb"];

/// Files for all users, as the clients of Debian's and of most other packages read them; the user's own comes last.
const SYSTEM: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];

/// The user's own file, as messages name it.
const OWN: &str = "~/.my.cnf";

/// Options that are on or off, which may have `skip-`, `disable-` or `enable-` before their name.
const SWITCHES: [&str; 3] = ["ssl", "ssl-verify-server-cert", "get-server-public-key"];

/// The options of TLS.
const TLS: [&str; 7] =
    ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "ssl", "ssl-crl", "ssl-verify-server-cert"];

/// How deep files include others.
const DEPTH: usize = 10;

/// Options from files. It has no `Debug` because it may contain a password.
#[derive(Clone, Default)]
pub(crate) struct OptionFile {
    options: BTreeMap<String, OptionLine>,
    /// The first option that was needed and whose value could not be read.
    unreadable: OnceCell<Error>,
    /// Files that are ignored, with the reasons.
    ignored: Vec<String>,
}

/// The value of an option.
#[derive(Clone)]
struct OptionLine {
    value: Vec<u8>,
    /// The file with the line, or the scheme of the URL that has the option.
    place: String,
}

impl OptionFile {
    /// Reads the files for all users and the current user's. Those that do not exist are skipped, and those that may not be
    /// read or that everybody can write, as by the client programs.
    pub(crate) fn read_for(environment: &Environment) -> Self {
        let mut all = Self::default();
        if environment.is_empty() {
            return all;
        }
        let own = |name: &str| std::env::var_os("HOME").map(|home| Path::new(&home).join(name));
        for path in SYSTEM.iter().map(PathBuf::from) {
            all.read(&path, &path.display().to_string(), 0);
        }
        if let Some(path) = own(".my.cnf") {
            all.read(&path, OWN, 0);
        }
        if own(".mylogin.cnf").is_some_and(|path| path.exists()) {
            let shows = "MySQL's 'my_print_defaults client' shows what it has";
            all.ignored.push(format!("~/.mylogin.cnf is not read; {shows}"));
        }
        all
    }

    fn read(&mut self, path: &Path, name: &str, depth: usize) {
        let Ok(about) = fs::metadata(path) else { return };
        if !about.is_file() || depth > DEPTH {
            return;
        }
        if about.permissions().mode() & 0o002 != 0 {
            self.ignored.push(format!("{name} is ignored, because everybody can write to it (chmod o-w)"));
            return;
        }
        match bytes(path) {
            Ok(bytes) => self.add(&bytes.unwrap_or_default(), name, depth),
            Err(error) => self.ignored.push(format!("{name} is ignored: {error}")),
        }
    }

    #[cfg(test)]
    pub(crate) fn parse(text: &str) -> Self {
        Self::parse_bytes(text.as_bytes())
    }

    #[cfg(test)]
    pub(crate) fn parse_bytes(bytes: &[u8]) -> Self {
        let mut all = Self::default();
        all.add(bytes, OWN, 0);
        all
    }

    /// Adds the lines of a file, which may be in any encoding. Later lines win. Names of groups and options are the same in
    /// upper and lower case, with dashes and with underscores. A line that stops the client programs is reported by
    /// [`check`](Self::check).
    fn add(&mut self, bytes: &[u8], name: &str, depth: usize) {
        let mut ours = None;
        for (number, line) in bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).enumerate() {
            let number = number + 1;
            let wrong = |what: &str| {
                let error = Error::usage(format!("{name}, line {number}: {what}"));
                let _ =
                    self.unreadable.set(error.hint("correct the line: MySQL's own programs stop at it too"));
            };
            match (line.first(), ours) {
                (None | Some(b'#' | b';'), _) => {}
                (Some(b'['), _) => match line.iter().position(|byte| *byte == b']') {
                    Some(end) => ours = Some(is_ours(line[1..end].trim_ascii_end())),
                    None => return wrong("the name of a group has no ']'"),
                },
                (Some(b'!'), _) => match included(line) {
                    Ok(files) => {
                        for path in files {
                            self.read(&path, &path.display().to_string(), depth + 1);
                        }
                    }
                    Err(what) => return wrong(&what),
                },
                (_, None) => return wrong("an option stands before the first [group]"),
                (_, Some(true)) => self.set(without_comment(line), format!("{name}, line {number}")),
                (_, Some(false)) => {}
            }
        }
    }

    /// Sets an option by its line.
    fn set(&mut self, line: &[u8], place: String) {
        let at = line.iter().position(|byte| *byte == b'=');
        let (option, value) =
            at.map_or((line, None), |at| (&line[..at], Some(unquoted(line[at + 1..].trim_ascii()))));
        let option = String::from_utf8_lossy(option.trim_ascii()).to_ascii_lowercase().replace('_', "-");
        // Programs that do not know such an option go on.
        let option = option.strip_prefix("loose-").unwrap_or(&option);
        let is_switch = |name: &&str| SWITCHES.contains(name);
        let negated =
            ["skip-", "disable-"].iter().find_map(|prefix| option.strip_prefix(prefix)).filter(is_switch);
        let (option, value) = match (negated, option.strip_prefix("enable-").filter(is_switch)) {
            (Some(name), _) if value.as_deref() == Some(b"0") => (name, b"1".to_vec()),
            (Some(name), _) => (name, b"0".to_vec()),
            (None, Some(name)) => (name, b"1".to_vec()),
            (None, None) if value.is_none() && is_switch(&option) => (option, b"1".to_vec()),
            (None, None) => (option, value.unwrap_or_default()),
        };
        self.options.insert(option.to_owned(), OptionLine { value, place });
    }

    /// The same with these options of the URL, which win.
    pub(crate) fn with(&self, url: &TargetUrl, names: &[&str]) -> Self {
        let mut all = self.clone();
        for (name, value) in names.iter().filter_map(|name| Some((*name, url.option(name)?))) {
            let line = OptionLine { value: value.as_bytes().to_vec(), place: url.scheme.clone() };
            all.options.insert(name.to_owned(), line);
        }
        all
    }

    /// The place of the first of these options that is set.
    fn place(&self, names: &[&str]) -> &str {
        names.iter().find_map(|name| self.options.get(*name)).map_or(OWN, |line| &line.place)
    }

    /// The value of an option, unless it is empty. One that is not UTF-8 is reported by [`check`](Self::check).
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let OptionLine { value, place } = self.options.get(name)?;
        match text(value, place) {
            Ok(value) => Some(value.to_owned()).filter(|value| !value.is_empty()),
            Err(error) => {
                let _ = self.unreadable.set(error.context(name));
                None
            }
        }
    }

    /// The error of an option whose value is not what it must be.
    pub(crate) fn wrong(&self, name: &str, what: &str) -> Error {
        Error::usage(format!("{}: {name} is {what}", self.place(&[name])))
    }

    /// The result of reading a configuration, unless an option that it needed could not be read.
    pub(crate) fn check<T>(&self, read: Result<T>) -> Result<T> {
        self.unreadable.get().map_or(read, |error| Err(error.clone()))
    }

    /// The files that are ignored, with the reasons.
    pub(crate) fn ignored(&self) -> &[String] {
        &self.ignored
    }
}

impl OptionFile {
    /// The value of a switch.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) for a value that the client programs do not know either.
    pub(crate) fn switch(&self, name: &str) -> Result<Option<bool>> {
        let Some(OptionLine { value, .. }) = self.options.get(name) else { return Ok(None) };
        let is = |words: &[&str]| words.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()));
        match (is(&["1", "on", "true"]), is(&["0", "off", "false"])) {
            (true, _) => Ok(Some(true)),
            (_, true) => Ok(Some(false)),
            _ => Err(self.wrong(name, "neither 1 nor 0")),
        }
    }

    /// Whether `tls-version` allows the versions that Kurabe speaks, and so asks for nothing.
    fn allows_all_versions(&self) -> bool {
        let versions = self.get("tls-version").unwrap_or_default();
        ["TLSv1.2", "TLSv1.3"].iter().all(|version| versions.split(',').any(|one| one.trim() == *version))
    }

    /// How the file says that connections over TCP are encrypted; `None` if it does not.
    ///
    /// `ssl-mode` is that of MySQL's client: `ssl-ca` alone makes it `VERIFY_CA`. `ssl`, `skip-ssl` and
    /// `ssl-verify-server-cert` are those of MariaDB's. Sources: "Command Options for Encrypted Connections" of the MySQL
    /// manual; `client/sslopt-case.h` of both.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) for values that Kurabe cannot obey.
    pub(crate) fn tls(&self) -> Result<Option<tls::Mode>> {
        let place = self.place(&TLS);
        let wrong =
            |what: &str, hint: &str| Err(Error::usage(format!("{place}: {what}")).hint(hint.to_owned()));
        // An option that is left unread could ask for more than is done.
        let is_of_tls = |name: &str| ["ssl", "tls"].iter().any(|start| name.starts_with(start));
        let mut names = self.options.keys().filter(|name| is_of_tls(name) && !TLS.contains(&name.as_str()));
        if let Some(name) = names.find(|name| *name != "tls-version" || !self.allows_all_versions()) {
            let hint = format!("there are {}; or use tls= and ca= in the URL", TLS.join(", "));
            return Err(self.wrong(name, "not supported").hint(hint));
        }
        let file = |name: &str| self.get(name).map(PathBuf::from);
        let (ca, certificate, key) = (file("ssl-ca"), file("ssl-cert"), file("ssl-key"));
        let crl = file("ssl-crl");
        let mode = self.get("ssl-mode").map(|mode| mode.to_ascii_uppercase());
        let (ssl, verifies) = (self.switch("ssl")?, self.switch("ssl-verify-server-cert")?);
        let check = match mode.as_deref() {
            Some("DISABLED") => return Ok(Some(tls::Mode::Off)),
            Some("REQUIRED") => tls::Check::Nothing,
            Some("VERIFY_CA") => tls::Check::Authority,
            Some("VERIFY_IDENTITY") => tls::Check::Host,
            Some("PREFERRED") => {
                return wrong(
                    "ssl-mode=PREFERRED does not specify encryption, so two runs could differ in it",
                    "set ssl-mode to DISABLED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY, or use tls= in the URL",
                );
            }
            Some(other) => {
                return wrong(
                    &format!("ssl-mode={other} is unknown"),
                    "one of: DISABLED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY",
                );
            }
            None if ssl == Some(false) => return Ok(Some(tls::Mode::Off)),
            None if verifies == Some(true) => tls::Check::Host,
            None if ca.is_some() => tls::Check::Authority,
            None if ssl == Some(true) || certificate.is_some() || key.is_some() => tls::Check::Nothing,
            None => return Ok(None),
        };
        if mode.is_some() && check != tls::Check::Nothing && ca.is_none() {
            return wrong(
                &format!("ssl-mode={} needs ssl-ca, the authority", mode.unwrap_or_default()),
                "name its file with ssl-ca, or use tls=verify in the URL, which takes the system's authorities",
            );
        }
        if certificate.is_none() && key.is_some() {
            return Err(self.wrong("ssl-key", "without ssl-cert, the certificate").hint("add ssl-cert"));
        }
        let identity = certificate.map(|certificate| tls::Identity::new(certificate, key));
        // With `REQUIRED` MySQL's client does not use the authority, nor its list of revoked certificates.
        let checks = check != tls::Check::Nothing;
        let (ca, crl) = (ca.filter(|_| checks), crl.filter(|_| checks));
        let mode = tls::Mode::on(tls::Wanted { check, ca, crl, identity });
        mode.map(Some).map_err(|error| error.context(place))
    }
}

/// Whether a group is one that client programs read.
fn is_ours(group: &[u8]) -> bool {
    SECTIONS.iter().any(|known| group.eq_ignore_ascii_case(known.as_bytes()))
}

/// The files that a line with `!` includes. Client programs pass over other words there.
fn included(line: &[u8]) -> std::result::Result<Vec<PathBuf>, String> {
    let line = line[1..].trim_ascii_start();
    let at = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let path = PathBuf::from(OsStr::from_bytes(line[at..].trim_ascii()));
    match &line[..at] {
        b"include" => Ok(vec![path]),
        b"includedir" => files_of(&path).map_err(|error| format!("!includedir {}: {error}", path.display())),
        _ => Ok(Vec::new()),
    }
}

/// The option files of a folder, in the order of their names.
fn files_of(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let files: std::io::Result<Vec<PathBuf>> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    let mut files = files?;
    files.retain(|path| path.extension().is_some_and(|ending| ending == "cnf"));
    files.sort();
    Ok(files)
}

/// A line without its comment: `#` outside of quotes begins one. Quotes may begin anywhere, and a backslash escapes only within them.
fn without_comment(line: &[u8]) -> &[u8] {
    let (mut quote, mut is_escaped) = (None, false);
    for (at, byte) in line.iter().enumerate() {
        match (byte, quote) {
            (b'#', None) => return line[..at].trim_ascii_end(),
            (b'\'' | b'"', None) => quote = Some(byte),
            (byte, Some(open)) if byte == open && !is_escaped => quote = None,
            _ => {}
        }
        is_escaped = quote.is_some() && *byte == b'\\' && !is_escaped;
    }
    line
}

/// Removes the quotes that enclose a value, and decodes its escapes.
fn unquoted(value: &[u8]) -> Vec<u8> {
    let value = match value {
        [open @ (b'\'' | b'"'), inner @ .., close] if open == close => inner,
        other => other,
    };
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value.iter().copied();
    while let Some(byte) = rest.next() {
        let escaped = if byte == b'\\' { rest.next() } else { None };
        match escaped {
            None => out.push(byte),
            Some(b'b') => out.push(8),
            Some(b't') => out.push(b'\t'),
            Some(b'n') => out.push(b'\n'),
            Some(b'r') => out.push(b'\r'),
            Some(b's') => out.push(b' '),
            Some(byte @ (b'\\' | b'\'' | b'"')) => out.push(byte),
            Some(byte) => out.extend([b'\\', byte]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As `mariadb --help` and `my_print_defaults client` of MariaDB 10.11 and 11.8 show them.
    #[test]
    fn lines_are_read_as_the_client_programs_do() {
        for (line, user) in [
            ("user = bob # who", "bob"),
            ("USER=bob", "bob"),
            ("loose_user=bob", "bob"),
            ("user=it's#1", "it's#1"),
            ("user=\"a#b\\\"c\\\\\"", "a#b\"c\\"),
            ("user=\"a\"b\"", "a\"b"),
            ("user=\"abc", "\"abc"),
            ("user=abc\"d#e\"f#g", "abc\"d#e\"f"),
            ("user=a\\\"b#c", "a\"b#c"),
            ("user='x\\'y'#z", "x'y"),
            ("user='", "'"),
            ("user=x\\", "x\\"),
            ("user=a=b;c\r", "a=b;c"),
            ("user=''", ""),
            ("user: bob", ""),
            ("\"user\"=bob", ""),
            ("[ client ]\nuser=bob", ""),
            ("[client ] rest\nuser=bob", "bob"),
            ("[x]\nuser=bob\n[Client-MariaDB]\nport=1", ""),
            ("[mysqldump]\nuser=no\n[CLIENT]\nuser=bob", "bob"),
            ("!\n!includes /x\n! include /nonexistent\nuser=bob", "bob"),
        ] {
            let file = OptionFile::parse(&format!(";\n[mysqld]\nuser=server\n[client]\n{line}\n"));
            assert_eq!(file.get("user").unwrap_or_default(), user, "{line}");
            assert_eq!(file.check(Ok(())), Ok(()), "{line}");
        }
        for (text, part) in [
            ("user=x\n[client]\n", "line 1: an option stands before the first [group]"),
            ("\n[client\nuser=x\n", "line 2: the name of a group has no ']'"),
            ("[client]\n!includedir /nonexistent\n", "line 2: !includedir /nonexistent"),
        ] {
            let error = OptionFile::parse(text).check(Ok(())).unwrap_err().to_string();
            assert!(error.contains("~/.my.cnf") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn world_writable_file_is_ignored() {
        let path = std::env::temp_dir().join(format!("kurabe-my-cnf-{}", std::process::id()));
        fs::write(&path, "[client]\nuser=bob\n").unwrap();
        let read = || {
            let mut file = OptionFile::default();
            file.read(&path, "f", 0);
            (file.get("user"), file.ignored().len())
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(), (Some("bob".to_owned()), 0));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(read(), (None, 1));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn included_files_take_their_place_among_the_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let put = |name: &str, text: &str| {
            fs::write(path(name), text).unwrap();
            path(name).display().to_string()
        };
        fs::create_dir(path("d")).unwrap();
        put("d/b.cnf", "[client]\nuser=of-b\nport=3\n");
        put("d/a.cnf", "[client]\nuser=of-a\nhost=ha\n");
        put("d/ignored.txt", "[client]\nuser=ignored\n");
        let one = put("one.inc", "[client]\nport=1\ndatabase=one\nssl-mode=PREFERRED\n");
        let endless = path("loop.cnf").display().to_string();
        put("loop.cnf", &format!("!include {endless}\n[client]\nsocket=/s\n"));
        let text = format!(
            "[client]\nport=0\ndatabase=zero\n!include {one}\nport=2\n!includedir {}\n!include {endless}\n!include /nonexistent\n",
            path("d").display()
        );
        let file = OptionFile::parse(&text);
        let got =
            ["user", "host", "port", "database", "socket"].map(|name| file.get(name).unwrap_or_default());
        assert_eq!(got, ["of-b", "ha", "3", "one", "/s"]);
        let error = file.tls().unwrap_err().to_string();
        assert!(error.starts_with(&one) && error.contains("PREFERRED"), "{error}");
    }

    #[test]
    fn bytes_of_other_encodings_hide_no_option() {
        let mark = b"\xef\xbb\xbf[client]\nssl-mode=REQUIRED\n";
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("marked.cnf"), mark).unwrap();
        let include = format!("!include {}\n", folder.path().join("marked.cnf").display());
        for file in [
            b"# s\xe9curit\xe9\n[client]\nssl-mode=REQUIRED\n".to_vec(),
            b"[mysql]\nprompt=\xe9\n[client]\nssl_mode=REQUIRED # \xe9\nunknown=\xe9\n\xe9=1\n".to_vec(),
            include.into_bytes(),
        ] {
            let file = OptionFile::parse_bytes(&file);
            assert_eq!(file.get("ssl-mode").as_deref(), Some("REQUIRED"));
            assert!(file.check(Ok(())).is_ok());
        }
        let file = OptionFile::parse_bytes(b"[client]\n\npassword=s\xe9cret\n");
        assert!(file.check(Ok(())).is_ok(), "nobody needed it");
        assert_eq!(file.get("password"), None);
        let error = file.check(Ok(())).unwrap_err().to_string();
        assert!(error.contains("~/.my.cnf, line 3") && !error.contains("cret"), "{error}");
    }

    proptest! {
        #[test]
        fn parser_accepts_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = OptionFile::parse_bytes(&[b"[client]\n", &bytes[..]].concat());
        }
    }
}
