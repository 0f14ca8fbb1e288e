//! Connection parameters of MySQL and MariaDB, from the URL, the environment and the option file.

use super::option_file::OptionFile;
use crate::account;
use crate::charset::Charset;
use crate::prelude::*;
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
    pub(crate) charset: Charset,
    /// The storage engine of our tables; `None`: the server's default.
    pub(crate) engine: Option<String>,
}

impl Config {
    /// Reads the URL. Missing values come from `MYSQL_PWD` and the `[client]` section of `~/.my.cnf`, as in MySQL's own
    /// programs. The last default of the user is the operating system's user name.
    pub(crate) fn from_url(url: &TargetUrl) -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        Self::new(url, &variable, &OptionFile::of_this_user(), || account::name(&variable))
    }

    fn new(
        url: &TargetUrl,
        variable: &dyn Fn(&str) -> Option<String>,
        file: &OptionFile,
        account: impl FnOnce() -> Option<String>,
    ) -> Result<Self> {
        let tls = tls::Mode::from_url(url, false)?;
        let cleartext = url.choice("enable_cleartext_plugin", &[("false", false), ("true", true)])?;
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
        let password = url.password.clone().or_else(of_environment).or_else(of_file).unwrap_or_default();
        let database = Some(url.path.clone())
            .filter(|path| !path.is_empty())
            .or_else(|| file.get("database"))
            .ok_or_else(|| url.wrong("no database is given").hint("mysql://user@host/database"))?;
        let place = place(url, file)?;
        tls.check(&place, url)?;
        Ok(Self { place, user, password, database, tls, cleartext, charset, engine })
    }
}

fn place(url: &TargetUrl, file: &OptionFile) -> Result<Place> {
    if let Some(path) = url.option("socket") {
        return Ok(Place::Unix(PathBuf::from(path)));
    }
    // The option file's socket applies only if no host is given: a host in the URL means TCP.
    if url.host.is_none()
        && url.port.is_none()
        && file.get("host").is_none()
        && let Some(path) = file.get("socket")
    {
        return Ok(Place::Unix(PathBuf::from(path)));
    }
    let host = url.host.clone().or_else(|| file.get("host")).unwrap_or_else(|| "localhost".to_owned());
    let port = match (url.port, file.get("port")) {
        (Some(port), _) => port,
        (None, None) => 3306,
        (None, Some(text)) => {
            text.parse().map_err(|_| Error::usage("~/.my.cnf: port is not a number from 1 to 65535"))?
        }
    };
    Ok(Place::Tcp { host, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, password: Option<&str>, file: &str) -> Result<Config> {
        let variable = |name: &str| password.filter(|_| name == "MYSQL_PWD").map(ToOwned::to_owned);
        let account = || Some("me".to_owned());
        Config::new(&TargetUrl::parse(url)?, &variable, &OptionFile::parse(file), account)
    }

    #[test]
    fn url_overrides_environment_and_environment_overrides_file() {
        let file = "[client]\nuser=f\npassword=from-file\nhost=h\nport=1\n";
        let one = config("mysql://u:from-url@db:2/d", Some("from-env"), file).unwrap();
        assert_eq!((one.user.as_str(), one.password.expose()), ("u", "from-url"));
        assert_eq!(one.place, Place::Tcp { host: "db".into(), port: 2 });
        let two = config("mysql:///d", Some("from-env"), file).unwrap();
        assert_eq!((two.user.as_str(), two.password.expose()), ("f", "from-env"));
        assert_eq!(two.place, Place::Tcp { host: "h".into(), port: 1 });
        let three = config("mysql://db/d", None, file).unwrap();
        assert_eq!(three.password.expose(), "from-file");
        assert!(!format!("{three:?}").contains("from-file"));
    }

    #[test]
    fn named_socket_is_used() {
        let by_url = config("mysql://u@localhost/d?socket=/run/m.sock", None, "").unwrap();
        assert_eq!(by_url.place, Place::Unix("/run/m.sock".into()));
        let by_file = config("mysql:///d", None, "[client]\nsocket=/run/f.sock").unwrap();
        assert_eq!(by_file.place, Place::Unix("/run/f.sock".into()));
        let tcp = config("mysql://localhost/d", None, "[client]\nsocket=/run/f.sock").unwrap();
        assert_eq!(tcp.place, Place::Tcp { host: "localhost".into(), port: 3306 });
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
        ] {
            let error = config(url, None, "").unwrap_err().to_string();
            assert!(error.contains(part), "{url}: {error}");
        }
    }
}
