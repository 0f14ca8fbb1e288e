//! The `[client]` sections of the option files (MySQL manual, "Using Option Files").

use crate::environment;
use crate::prelude::*;
use crate::wire::tls;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Sections that the client programs of MySQL and MariaDB read.
const SECTIONS: &[&str] = &["client", "client-server", "client-mariadb"];

/// Files for all users, as the clients of Debian's and of most other packages read them; the user's own comes last.
const SYSTEM: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];

/// How deep files include others.
const DEPTH: usize = 10;

/// Options from files, each with the file that it is from. It has no `Debug` because it may contain a password.
#[derive(Clone, Default)]
pub(crate) struct OptionFile(BTreeMap<String, (String, String)>);

impl OptionFile {
    /// Reads the files for all users and the current user's. Those that do not exist or cannot be read are skipped.
    pub(crate) fn of_this_user() -> Self {
        let mut all = Self::default();
        if environment::is_hidden() {
            return all;
        }
        let own = std::env::var_os("HOME").map(|home| Path::new(&home).join(".my.cnf"));
        for path in SYSTEM.iter().map(PathBuf::from) {
            all.read(&path, &path.display().to_string(), 0);
        }
        if let Some(path) = own {
            all.read(&path, "~/.my.cnf", 0);
        }
        all
    }

    /// Reads a file, unless it is world-writable: MySQL's own programs ignore such a file too.
    fn read(&mut self, path: &Path, name: &str, depth: usize) {
        let writable_by_all = fs::metadata(path)
            .map_or(true, |about| !about.is_file() || about.permissions().mode() & 0o002 != 0);
        if writable_by_all || depth > DEPTH {
            return;
        }
        let text = fs::read_to_string(path).unwrap_or_default();
        self.add(&text, name, depth);
    }

    #[cfg(test)]
    pub(crate) fn parse(text: &str) -> Self {
        let mut all = Self::default();
        all.add(text, "~/.my.cnf", 0);
        all
    }

    /// Adds the lines of a file. Later lines win; underscores and dashes in names are equivalent.
    fn add(&mut self, text: &str, name: &str, depth: usize) {
        let mut ours = false;
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[') {
                ours = section.split(']').next().is_some_and(|name| SECTIONS.contains(&name.trim()));
            } else if let Some(folder) = line.strip_prefix("!includedir") {
                let files = fs::read_dir(folder.trim()).into_iter().flatten().flatten();
                let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
                files.retain(|path| path.extension().is_some_and(|ending| ending == "cnf"));
                files.sort();
                for path in files {
                    self.read(&path, &path.display().to_string(), depth + 1);
                }
            } else if let Some(path) = line.strip_prefix("!include") {
                self.read(Path::new(path.trim()), path.trim(), depth + 1);
            } else if ours && !line.is_empty() && !line.starts_with(['#', ';', '!']) {
                let (option, value) = line.split_once('=').unwrap_or((line, ""));
                let value = (unquoted(value.trim()), name.to_owned());
                self.0.insert(option.trim().replace('_', "-"), value);
            }
        }
    }

    /// The same with these options of the URL, which win.
    pub(crate) fn with(&self, url: &TargetUrl, names: &[&str]) -> Self {
        let mut all = self.clone();
        for (name, value) in names.iter().filter_map(|name| Some((*name, url.option(name)?))) {
            all.0.insert(name.to_owned(), (value.to_owned(), url.scheme.clone()));
        }
        all
    }

    /// Where the first of these options that is set comes from.
    fn origin(&self, names: &[&str]) -> &str {
        names.iter().find_map(|name| self.0.get(*name)).map_or("~/.my.cnf", |(_, origin)| origin)
    }

    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|(value, _)| value).filter(|value| !value.is_empty()).cloned()
    }
}

impl OptionFile {
    /// The value of a switch; without `=` it is on.
    fn switch(&self, name: &str) -> Option<bool> {
        self.0
            .get(name)
            .map(|(value, _)| !matches!(&*value.to_ascii_lowercase(), "0" | "off" | "false" | "no"))
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
fn unquoted(value: &str) -> String {
    let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let mut out = String::with_capacity(value.len());
    let mut rest = value.chars().skip(usize::from(quote.is_some())).peekable();
    while let Some(c) = rest.next() {
        match c {
            _ if Some(c) == quote => break,
            // A comment may follow an unquoted value.
            '#' if quote.is_none() => break,
            '\\' => match rest.next() {
                Some('b') => out.push('\u{8}'),
                Some('t') => out.push('\t'),
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('s') => out.push(' '),
                Some(c @ ('\\' | '\'' | '"')) => out.push(c),
                Some(c) => out.extend(['\\', c]),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    if quote.is_none() { out.trim_end().to_owned() } else { out }
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
            file.get("user")
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read().as_deref(), Some("bob"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(read(), None);
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

    proptest! {
        #[test]
        fn parser_accepts_any_text(text in "(\\[client\\]\n)?\\PC{0,60}") {
            let _ = OptionFile::parse(&text);
        }
    }
}
