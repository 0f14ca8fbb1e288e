//! Connection parameters of MySQL and MariaDB, from the URL, the environment and the option file.

use super::option_file::OptionFile;
use crate::account;
use crate::charset::Charset;
use crate::environment::Environment;
use crate::prelude::*;
use crate::url::{own_tls_option, truth};
use crate::wire::{Place, tls};
use std::path::PathBuf;

/// Connection parameters. Its `Debug` omits the password.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) place: Place,
    pub(crate) user: String,
    pub(crate) password: Secret,
    pub(crate) database: String,
    pub(crate) tls: tls::Mode,
    /// Whether the password may be sent in plain text (`mysql_clear_password`); requires a verified certificate.
    pub(crate) cleartext: bool,
    /// The server's RSA key, which encrypts the password on a connection without TLS.
    pub(crate) server_key: ServerKey,
    pub(crate) charset: Charset,
    /// The storage engine of our tables; `None`: the server's default.
    pub(crate) engine: Option<String>,
    /// What the reader should know of the option files.
    pub(crate) notes: Vec<String>,
}

/// The options of MySQL's client for TLS, which a URL may have too.
const SSL: [&str; 5] = ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "ssl-crl"];

impl Config {
    /// Reads the URL. Missing values come from the `[client]` sections of the option files and from `MYSQL_PWD`, as in
    /// MySQL's own programs. The last default of the user is the operating system's user name.
    pub(crate) fn from_url(url: &TargetUrl) -> Result<Self> {
        let environment = Environment::for_url(url);
        let variable = |name: &str| environment.get(name);
        let file = OptionFile::read_for(&environment);
        environment.check(Self::new(url, &variable, &file, || account::name(&variable)))
    }

    fn new(
        url: &TargetUrl,
        variable: &dyn Fn(&str) -> Option<String>,
        file: &OptionFile,
        account: impl FnOnce() -> Option<String>,
    ) -> Result<Self> {
        file.check(Self::read(url, variable, file, account))
    }

    fn read(
        url: &TargetUrl,
        variable: &dyn Fn(&str) -> Option<String>,
        file: &OptionFile,
        account: impl FnOnce() -> Option<String>,
    ) -> Result<Self> {
        let place = place(url, file)?;
        let tls = tls_of(url, file, &place)?;
        let cleartext = truth(url, "enable_cleartext_plugin")?.unwrap_or(false);
        if cleartext && !tls.checks_host() {
            let what = "enable_cleartext_plugin=true requires a verified certificate";
            return Err(url.wrong(what).hint("add tls=verify"));
        }
        let engine = url.option("engine").map(ToOwned::to_owned);
        if let Some(name) = &engine
            && (name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
        {
            return Err(url.wrong(format!("engine={name} is not a valid name of a storage engine")));
        }
        let charset = Charset::from_url(url)?;
        let user = url.user.clone().or_else(|| file.get("user")).or_else(account);
        let user = user.ok_or_else(|| url.wrong("no user is given").hint("mysql://user@host/database"))?;
        let of_environment = || variable("MYSQL_PWD").map(Secret::new);
        let of_file = || file.get("password").map(Secret::new);
        let password = url.password.clone().or_else(of_file).or_else(of_environment).unwrap_or_default();
        let database = Some(url.path.clone())
            .filter(|path| !path.is_empty())
            .or_else(|| file.get("database"))
            .ok_or_else(|| url.wrong("no database is given").hint("mysql://user@host/database"))?;
        tls.check(&place, url)?;
        let server_key = server_key(url, file)?;
        let notes = file.ignored().to_vec();
        Ok(Self { place, user, password, database, tls, cleartext, server_key, charset, engine, notes })
    }
}

/// What the URL and the option files say of TLS over TCP.
pub(super) fn tls(url: &TargetUrl) -> Result<tls::Mode> {
    let file = OptionFile::read_for(&Environment::for_url(url));
    file.check(tls_of(url, &file, &Place::Tcp { host: String::new(), port: 0 }))
}

/// The server that the URL and the option files name.
pub(super) fn servers(url: &TargetUrl) -> Result<Vec<ServerPlace>> {
    Ok(vec![place(url, &OptionFile::read_for(&Environment::for_url(url)))?.into()])
}

fn tls_of(url: &TargetUrl, file: &OptionFile, place: &Place) -> Result<tls::Mode> {
    let own = own_tls_option(url, SSL.into_iter().find(|name| url.option(name).is_some()))?;
    // A Unix socket needs no encryption.
    let of_file = match place {
        Place::Tcp { .. } if own.is_none() => {
            let file = file.with(url, &SSL);
            file.check(file.tls())?
        }
        _ => None,
    };
    of_file.map_or_else(|| tls::Mode::from_url(url, false), Ok)
}

/// Where the server's RSA key comes from (manual, "Caching SHA-2 Pluggable Authentication").
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerKey {
    /// None is used: a false server that answers a request for it could read the password.
    Refused,
    /// The server is asked for it, as the user allows.
    Asked,
    /// A file that the user trusts (PEM).
    Known(Vec<u8>),
}

/// Reads `server_public_key_path` and `get_server_public_key`, from the URL, else from the option file.
fn server_key(url: &TargetUrl, file: &OptionFile) -> Result<ServerKey> {
    let asked = truth(url, "get_server_public_key")?;
    let asked =
        asked.map_or_else(|| file.switch("get-server-public-key"), |asked| Ok(Some(asked)))? == Some(true);
    let path = url.option("server_public_key_path").map(str::to_owned);
    match path.or_else(|| file.get("server-public-key-path")) {
        Some(path) => std::fs::read(&path)
            .map(ServerKey::Known)
            .map_err(|error| url.wrong(format!("server_public_key_path={path}: {error}"))),
        None if asked => Ok(ServerKey::Asked),
        None => Ok(ServerKey::Refused),
    }
}

fn place(url: &TargetUrl, file: &OptionFile) -> Result<Place> {
    if let Some(path) = url.option("socket") {
        return Ok(Place::Unix(PathBuf::from(path)));
    }
    // A host or a port in the URL means TCP.
    if url.host.is_none()
        && url.port.is_none()
        && may_be_socket(file)?
        && let Some(path) = file.get("socket")
    {
        return Ok(Place::Unix(PathBuf::from(path)));
    }
    let host = url.host.clone().or_else(|| file.get("host")).unwrap_or_else(|| "localhost".to_owned());
    // The default is 0 there.
    let port = match (url.port, file.get("port").filter(|port| port != "0")) {
        (Some(port), _) => port,
        (None, None) => 3306,
        (None, Some(text)) => text.parse().map_err(|_| file.wrong("port", "not a number from 0 to 65535"))?,
    };
    Ok(Place::Tcp { host, port })
}

/// Whether the option files name a server of this machine, which `localhost` is, and do not say that TCP is used.
fn may_be_socket(file: &OptionFile) -> Result<bool> {
    let is_local = file.get("host").is_none_or(|host| host == "localhost");
    match file.get("protocol").map(|protocol| protocol.to_ascii_lowercase()).as_deref() {
        None | Some("socket") => Ok(is_local),
        Some("tcp") => Ok(false),
        Some(_) => Err(file.wrong("protocol", "neither tcp nor socket")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::AUTHORITY;

    fn config(url: &str, password: Option<&str>, file: &str) -> Result<Config> {
        let variable = |name: &str| password.filter(|_| name == "MYSQL_PWD").map(ToOwned::to_owned);
        let account = || Some("me".to_owned());
        Config::new(&TargetUrl::parse(url)?, &variable, &OptionFile::parse(file), account)
    }

    #[test]
    fn url_overrides_file_and_file_overrides_environment() {
        let file = "[client]\nuser=f\npassword=from-file\nhost=h\nport=1\n";
        let one = config("mysql://u:from-url@db:2/d", Some("from-env"), file).unwrap();
        assert_eq!((one.user.as_str(), one.password.expose()), ("u", "from-url"));
        assert_eq!(one.place, Place::Tcp { host: "db".into(), port: 2 });
        let two = config("mysql:///d", Some("from-env"), file).unwrap();
        assert_eq!((two.user.as_str(), two.password.expose()), ("f", "from-file"));
        assert_eq!(two.place, Place::Tcp { host: "h".into(), port: 1 });
        let three = config("mysql://db/d", None, file).unwrap();
        assert_eq!(three.password.expose(), "from-file");
        assert_eq!(config("mysql://db/d", Some("from-env"), "").unwrap().password.expose(), "from-env");
        assert!(!format!("{three:?}").contains("from-file"));
    }

    #[test]
    fn named_socket_is_used() {
        let by_url = config("mysql://u@localhost/d?socket=/run/m.sock", None, "").unwrap();
        assert_eq!(by_url.place, Place::Unix("/run/m.sock".into()));
        let tcp = |host: &str, port| Place::Tcp { host: host.to_owned(), port };
        for (url, lines, place) in [
            ("mysql:///d", "", Place::Unix("/run/f.sock".into())),
            ("mysql:///d", "host=localhost\nport=7", Place::Unix("/run/f.sock".into())),
            ("mysql:///d", "protocol=SOCKET", Place::Unix("/run/f.sock".into())),
            ("mysql:///d", "protocol=tcp", tcp("localhost", 3306)),
            ("mysql:///d", "host=127.0.0.1\nport=0", tcp("127.0.0.1", 3306)),
            ("mysql://localhost/d", "", tcp("localhost", 3306)),
            ("mysql://:9/d", "", tcp("localhost", 9)),
        ] {
            let file = format!("[client]\nsocket=/run/f.sock\n{lines}");
            assert_eq!(config(url, None, &file).unwrap().place, place, "{url}: {lines}");
        }
        let error = config("mysql:///d", None, "[client]\nprotocol=pipe").unwrap_err().to_string();
        assert!(error.contains("~/.my.cnf, line 2: protocol"), "{error}");
    }

    #[test]
    fn option_file_decides_on_encryption_as_in_the_clients() {
        use crate::wire::tls::Check::{Authority, Host, Nothing};
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca.pem");
        std::fs::write(&ca, AUTHORITY).unwrap();
        let ca = format!("ssl-ca={}\n", ca.display());
        let tls = |url: &str, lines: &str| {
            config(url, None, &format!("[client]\n{lines}")).map(|config| match config.tls {
                tls::Mode::Off => None,
                tls::Mode::On { wanted, .. } => Some((wanted.check, wanted.ca.is_some())),
            })
        };
        for (lines, expected) in [
            (String::new(), None),
            ("ssl-mode=DISABLED".to_owned(), None),
            ("ssl_mode=required".to_owned(), Some((Nothing, false))),
            (format!("ssl-mode=REQUIRED\n{ca}"), Some((Nothing, false))),
            (format!("ssl-mode=VERIFY_CA\n{ca}"), Some((Authority, true))),
            (format!("ssl-mode=VERIFY_IDENTITY\n{ca}"), Some((Host, true))),
            (ca.clone(), Some((Authority, true))),
            (format!("{ca}ssl-verify-server-cert"), Some((Host, true))),
            (format!("{ca}ssl-verify-server-cert=0"), Some((Authority, true))),
            ("ssl".to_owned(), Some((Nothing, false))),
            ("ssl=0".to_owned(), None),
            (format!("{ca}skip-ssl"), None),
            ("skip-ssl\nLOOSE_SSL=on".to_owned(), Some((Nothing, false))),
            ("tls-version=TLSv1.2, TLSv1.3".to_owned(), None),
            ("disable-ssl=0".to_owned(), Some((Nothing, false))),
            (format!("{ca}skip-ssl-verify-server-cert"), Some((Authority, true))),
        ] {
            assert_eq!(tls("mysql://u@h/d", &lines).unwrap(), expected, "{lines}");
            // The URL overrides the file, and a socket needs no encryption.
            assert_eq!(tls("mysql://u@h/d?ssl-mode=disabled", &lines).unwrap(), None, "{lines}");
            assert_eq!(tls("mysql://u@h/d?tls=require", &lines).unwrap(), Some((Nothing, false)), "{lines}");
            assert_eq!(tls("mysql://u@h/d?socket=/s", &lines).unwrap(), None, "{lines}");
        }
        for (lines, part) in [
            ("ssl-mode=PREFERRED", "two runs could differ"),
            ("ssl-mode=VERIFY_CA", "needs ssl-ca"),
            ("ssl-mode=VERIFY_IDENTITY", "needs ssl-ca"),
            ("ssl-mode=maybe", "unknown"),
            ("ssl-ca=/nonexistent/ca.pem", "/nonexistent/ca.pem"),
            ("ssl-crlpath=/c", "not supported"),
            ("tls-version=TLSv1.3", "not supported"),
            ("ssl-moed=REQUIRED", "line 2: ssl-moed is not supported; there are ssl-mode"),
            ("ssl=yes", "neither 1 nor 0"),
            ("ssl-key=/k.pem\nssl", "ssl-key is without ssl-cert"),
        ] {
            let error = tls("mysql://u@h/d", lines).unwrap_err().to_string();
            assert!(error.contains("~/.my.cnf") && error.contains(part), "{lines}: {error}");
        }
    }

    #[test]
    fn server_key_is_used_only_if_the_user_says_so() {
        let key = |url: &str, lines: &str| {
            config(url, None, &format!("[client]\n{lines}")).map(|config| config.server_key)
        };
        assert_eq!(key("mysql://u@h/d", ""), Ok(ServerKey::Refused));
        assert_eq!(key("mysql://u@h/d?get_server_public_key=true", ""), Ok(ServerKey::Asked));
        assert_eq!(key("mysql://u@h/d", "get-server-public-key"), Ok(ServerKey::Asked));
        let off = "mysql://u@h/d?get_server_public_key=false";
        assert_eq!(key(off, "get-server-public-key"), Ok(ServerKey::Refused));
        let missing = key("mysql://u@h/d?server_public_key_path=/nonexistent/k", "").unwrap_err();
        assert!(missing.to_string().contains("/nonexistent/k"), "{missing}");
    }

    #[test]
    fn invalid_options_are_rejected() {
        for (url, part) in [
            ("mysql://u@h", "no database"),
            ("mysql://u@h/d?charset=latin1", "charset=latin1"),
            ("mysql://u@h/d?engine=a;b", "storage engine"),
            ("mysql://u@h/d?tls=prefer", "tls=prefer"),
            ("mysql://u@h/d?tls=require&socket=/s", "Unix socket"),
            ("mysql://u@h/d?enable_cleartext_plugin=true", "verified certificate"),
            ("mysql://u@h/d?enable_cleartext_plugin=true&tls=require", "verified certificate"),
            ("mysql://u@h/d?enable_cleartext_plugin=true&socket=/s", "verified certificate"),
            ("mysql://u@h/d?enable_cleartext_plugin=1", "enable_cleartext_plugin=1"),
            ("mysql://u@h/d?ssl-mode=PREFERRED", "mysql: ssl-mode=PREFERRED does not specify"),
            ("mysql://u@h/d?ssl-mode=VERIFY_CA", "needs ssl-ca"),
            ("mysql://u@h/d?ssl-mode=REQUIRED&tls=verify", "tls= and ssl-mode="),
        ] {
            let error = config(url, None, "").unwrap_err().to_string();
            assert!(error.contains(part), "{url}: {error}");
        }
    }
}
