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

/// How deep files include others.
const DEPTH: usize = 10;

/// Options from files. It has no `Debug` because it may contain a password.
#[derive(Clone, Default)]
pub(crate) struct OptionFile {
    options: BTreeMap<String, OptionLine>,
    /// The first option that was needed and whose value could not be read.
    unreadable: OnceCell<Error>,
    /// Files that the clients ignore too, with the reasons.
    ignored: Vec<String>,
}

/// The value of an option, with the file that it is from, and its line there.
#[derive(Clone)]
struct OptionLine {
    value: Vec<u8>,
    file: String,
    line: usize,
}

impl OptionFile {
    /// Reads the files for all users and the current user's. Those that do not exist are skipped, and those that may not be
    /// read or that everybody can write, as by the client programs.
    pub(crate) fn read_for(environment: &Environment) -> Self {
        let mut all = Self::default();
        if environment.is_empty() {
            return all;
        }
        let own = std::env::var_os("HOME").map(|home| Path::new(&home).join(".my.cnf"));
        for path in SYSTEM.iter().map(PathBuf::from) {
            all.read(&path, &path.display().to_string(), 0);
        }
        if let Some(path) = own {
            all.read(&path, OWN, 0);
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

    /// Adds the lines of a file, which may be in any encoding. Later lines win; underscores and dashes in names are
    /// equivalent.
    fn add(&mut self, bytes: &[u8], name: &str, depth: usize) {
        let mut ours = false;
        for (number, line) in bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).enumerate() {
            let path = |rest: &[u8]| PathBuf::from(OsStr::from_bytes(rest.trim_ascii()));
            if let Some(section) = line.strip_prefix(b"[") {
                let section = section.split(|byte| *byte == b']').next().map(<[u8]>::trim_ascii);
                ours = SECTIONS.iter().any(|known| section == Some(known.as_bytes()));
            } else if let Some(folder) = line.strip_prefix(b"!includedir") {
                let files = fs::read_dir(path(folder)).into_iter().flatten().flatten();
                let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
                files.retain(|path| path.extension().is_some_and(|ending| ending == "cnf"));
                files.sort();
                for path in files {
                    self.read(&path, &path.display().to_string(), depth + 1);
                }
            } else if let Some(included) = line.strip_prefix(b"!include") {
                let path = path(included);
                self.read(&path, &path.display().to_string(), depth + 1);
            } else if ours && !matches!(line.first(), None | Some(b'#' | b';' | b'!')) {
                let at = line.iter().position(|byte| *byte == b'=').unwrap_or(line.len());
                let (option, value) = (&line[..at], line.get(at + 1..).unwrap_or_default());
                let option = String::from_utf8_lossy(option.trim_ascii()).replace('_', "-");
                let value = unquoted(value.trim_ascii());
                self.options.insert(option, OptionLine { value, file: name.to_owned(), line: number + 1 });
            }
        }
    }

    /// The same with these options of the URL, which win.
    pub(crate) fn with(&self, url: &TargetUrl, names: &[&str]) -> Self {
        let mut all = self.clone();
        for (name, value) in names.iter().filter_map(|name| Some((*name, url.option(name)?))) {
            let line = OptionLine { value: value.as_bytes().to_vec(), file: url.scheme.clone(), line: 0 };
            all.options.insert(name.to_owned(), line);
        }
        all
    }

    /// Where the first of these options that is set comes from.
    fn origin(&self, names: &[&str]) -> &str {
        names.iter().find_map(|name| self.options.get(*name)).map_or(OWN, |line| &line.file)
    }

    /// The value of an option, unless it is empty. One that is not UTF-8 is reported by [`check`](Self::check).
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let OptionLine { value, file, line } = self.options.get(name)?;
        match text(value, file, *line) {
            Ok(value) => Some(value.to_owned()).filter(|value| !value.is_empty()),
            Err(error) => {
                let _ = self.unreadable.set(error.context(name));
                None
            }
        }
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
    /// The value of a switch; without `=` it is on.
    fn switch(&self, name: &str) -> Option<bool> {
        let line = self.options.get(name)?;
        let is_off =
            ["0", "off", "false", "no"].iter().any(|off| line.value.eq_ignore_ascii_case(off.as_bytes()));
        Some(!is_off)
    }

    /// Whether a switch is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.switch(name) == Some(true)
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
        let origin =
            self.origin(&["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "ssl", "ssl-crl", "ssl-capath"]);
        let wrong =
            |what: &str, hint: &str| Err(Error::usage(format!("{origin}: {what}")).hint(hint.to_owned()));
        for name in ["ssl-capath", "ssl-crlpath", "tls-fp", "ssl-fp", "tls-fplist", "ssl-fplist"] {
            if self.get(name).is_some() {
                return wrong(&format!("{name} is not supported"), "use ssl-ca, or tls= and ca= in the URL");
            }
        }
        let file = |name: &str| self.get(name).map(PathBuf::from);
        let (ca, certificate, key) = (file("ssl-ca"), file("ssl-cert"), file("ssl-key"));
        let crl = file("ssl-crl");
        let mode = self.get("ssl-mode").map(|mode| mode.to_ascii_uppercase());
        let on = |name: &str| self.switch(name);
        let is_off =
            on("ssl") == Some(false) || on("skip-ssl") == Some(true) || on("disable-ssl") == Some(true);
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
            None if is_off => return Ok(Some(tls::Mode::Off)),
            None if on("ssl-verify-server-cert") == Some(true) => tls::Check::Host,
            None if ca.is_some() => tls::Check::Authority,
            None if on("ssl") == Some(true) || certificate.is_some() || key.is_some() => tls::Check::Nothing,
            None => return Ok(None),
        };
        if mode.is_some() && check != tls::Check::Nothing && ca.is_none() {
            return wrong(
                &format!("ssl-mode={} needs ssl-ca, the authority", mode.unwrap_or_default()),
                "name its file with ssl-ca, or use tls=verify in the URL, which takes the system's authorities",
            );
        }
        if certificate.is_none() && key.is_some() {
            return wrong("ssl-key goes with ssl-cert, the certificate", "add ssl-cert");
        }
        let identity = certificate.map(|certificate| tls::Identity::new(certificate, key));
        // With `REQUIRED` MySQL's client does not use the authority, nor its list of revoked certificates.
        let checks = check != tls::Check::Nothing;
        let (ca, crl) = (ca.filter(|_| checks), crl.filter(|_| checks));
        let mode = tls::Mode::on(tls::Wanted { check, ca, crl, identity });
        mode.map(Some).map_err(|error| error.context(origin))
    }
}

/// Removes a value's quotes and comment, and decodes its escapes.
fn unquoted(value: &[u8]) -> Vec<u8> {
    let quote = value.first().copied().filter(|byte| matches!(byte, b'\'' | b'"'));
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value.iter().copied().skip(usize::from(quote.is_some()));
    while let Some(byte) = rest.next() {
        match byte {
            _ if Some(byte) == quote => break,
            // A comment may follow an unquoted value.
            b'#' if quote.is_none() => break,
            b'\\' => match rest.next() {
                Some(b'b') => out.push(8),
                Some(b't') => out.push(b'\t'),
                Some(b'n') => out.push(b'\n'),
                Some(b'r') => out.push(b'\r'),
                Some(b's') => out.push(b' '),
                Some(byte @ (b'\\' | b'\'' | b'"')) => out.push(byte),
                Some(byte) => out.extend([b'\\', byte]),
                None => out.push(b'\\'),
            },
            byte => out.push(byte),
        }
    }
    if quote.is_none() { out.trim_ascii_end().to_vec() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_parsed_like_mysql_clients_do() {
        let file = OptionFile::parse(
            "user=outside\n[mysqld]\nuser=server\n[client]\n# note\nuser = bob # who\n\
             password=\"a#b\\\"c\\\\\"\nmax_allowed_packet=1M\n[mysqldump]\npassword=x\n[client-mariadb]\nport=1\n",
        );
        assert_eq!(file.get("user").as_deref(), Some("bob"));
        assert_eq!(file.get("password").as_deref(), Some("a#b\"c\\"));
        assert_eq!(file.get("max-allowed-packet").as_deref(), Some("1M"));
        assert_eq!(file.get("port").as_deref(), Some("1"));
        assert_eq!(file.get("host"), None);
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
