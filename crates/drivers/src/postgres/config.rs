//! How a PostgreSQL server is reached, and as whom: from the URL, libpq's environment variables and password file.

use super::passfile;
use crate::account;
use crate::charset::Charset;
use crate::prelude::*;
use crate::wire::{Place, tls};
use std::path::{Path, PathBuf};

/// Everything that a connection needs. Its `Debug` holds no password.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) place: Place,
    pub(crate) user: String,
    pub(crate) password: Option<Secret>,
    pub(crate) database: String,
    pub(crate) tls: tls::Mode,
    /// The wrapped crate instead of the lean client.
    pub(crate) wrapped: bool,
    pub(crate) charset: Charset,
    /// The session's `synchronous_commit`; `None`: as the server, the database or the role has it.
    pub(crate) synchronous_commit: Option<&'static str>,
    /// What to say where a password is missing: a password file that may not be used.
    pub(crate) password_hint: Option<String>,
}

impl Config {
    /// Reads the URL; what it leaves open comes from `PGUSER`, `PGPASSWORD`, `PGHOST`, `PGPORT`, `PGDATABASE`, the
    /// password file and the name of whoever runs this, as it does for the engine's own programs.
    pub(crate) fn from_url(url: &TargetUrl) -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let mut config = Self::new(url, &variable, || account::name(&variable))?;
        if config.password.is_none() {
            let (password, hint) = passfile::of_this_user(&config, &variable);
            config.password = password;
            config.password_hint = hint;
        }
        Ok(config)
    }

    fn new(
        url: &TargetUrl,
        variable: &dyn Fn(&str) -> Option<String>,
        account: impl FnOnce() -> Option<String>,
    ) -> Result<Self> {
        let tls = tls::Mode::from_url(url, false)?;
        let wrapped = url.choice("client", &[("lean", false), ("driver", true)])?;
        let charset = Charset::from_url(url, wrapped)?;
        let user = url
            .user
            .clone()
            .or_else(|| variable("PGUSER"))
            .or_else(account)
            .ok_or_else(|| url.wrong("no user is named").hint("postgres://user@host/database"))?;
        let database = Some(url.path.clone())
            .filter(|path| !path.is_empty())
            .or_else(|| variable("PGDATABASE"))
            .unwrap_or_else(|| user.clone());
        if [&user, &database].into_iter().any(|text| text.contains('\0')) {
            return Err(url.wrong("a name holds a zero byte"));
        }
        let password = url.password.clone().or_else(|| variable("PGPASSWORD").map(Secret::new));
        let place = place(url, variable)?;
        tls.check(&place, url)?;
        Ok(Self {
            place,
            user,
            password,
            database,
            tls,
            wrapped,
            charset,
            synchronous_commit: None,
            password_hint: None,
        })
    }
}

fn place(url: &TargetUrl, variable: &dyn Fn(&str) -> Option<String>) -> Result<Place> {
    let port = match (url.port, variable("PGPORT")) {
        (Some(port), _) => port,
        (None, None) => 5432,
        (None, Some(text)) => {
            text.parse().map_err(|_| Error::usage("PGPORT is not a number from 1 to 65535"))?
        }
    };
    let host = url
        .option("socket")
        .map(ToOwned::to_owned)
        .or_else(|| url.option("host").map(ToOwned::to_owned))
        .or_else(|| url.host.clone())
        .or_else(|| variable("PGHOST"))
        .unwrap_or_else(|| "localhost".to_owned());
    if !host.starts_with('/') {
        if url.option("socket").is_some() {
            return Err(url.wrong("socket= takes an absolute path"));
        }
        return Ok(Place::Tcp { host, port });
    }
    // libpq names the folder; a path of the socket itself is taken too.
    let path = PathBuf::from(host);
    let is_socket = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".s.PGSQL."));
    Ok(Place::Unix(if is_socket { path } else { path.join(format!(".s.PGSQL.{port}")) }))
}

/// The folder and the port that a socket's path is made of.
pub(crate) fn folder_and_port(socket: &Path) -> Option<(&Path, u16)> {
    let port = socket.file_name()?.to_str()?.strip_prefix(".s.PGSQL.")?.parse().ok()?;
    Some((socket.parent()?, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, variables: &[(&str, &str)]) -> Result<Config> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Config::new(&TargetUrl::parse(url)?, &variable, || variable("the account"))
    }

    #[test]
    fn the_url_wins_over_the_environment() {
        let all = [
            ("PGUSER", "eu"),
            ("PGPASSWORD", "from-env"),
            ("PGHOST", "eh"),
            ("PGPORT", "1"),
            ("PGDATABASE", "ed"),
        ];
        let one = config("postgres://u:from-url@h:2/d", &all).unwrap();
        assert_eq!((one.user.as_str(), one.database.as_str()), ("u", "d"));
        assert_eq!(one.place, Place::Tcp { host: "h".into(), port: 2 });
        assert_eq!(one.password.as_ref().map(Secret::expose), Some("from-url"));
        assert!(!format!("{one:?}").contains("from-url"));
        let two = config("postgres://", &all).unwrap();
        assert_eq!((two.user.as_str(), two.database.as_str()), ("eu", "ed"));
        assert_eq!(two.place, Place::Tcp { host: "eh".into(), port: 1 });
        assert_eq!(two.password.as_ref().map(Secret::expose), Some("from-env"));
        let three = config("postgres://", &[("the account", "me")]).unwrap();
        assert_eq!((three.user.as_str(), three.database.as_str()), ("me", "me"));
    }

    #[test]
    fn a_socket_is_named_as_libpq_names_it_or_by_its_path() {
        let path = Place::Unix("/run/pg/.s.PGSQL.5433".into());
        for url in [
            "postgres://u@:5433/d?host=/run/pg",
            "postgres://u@:5433/d?socket=/run/pg",
            "postgres://u@/d?socket=/run/pg/.s.PGSQL.5433",
            "postgres://u@%2Frun%2Fpg:5433/d",
        ] {
            assert_eq!(config(url, &[]).unwrap().place, path, "{url}");
        }
        assert_eq!(folder_and_port(Path::new("/run/pg/.s.PGSQL.5433")), Some((Path::new("/run/pg"), 5433)));
        assert_eq!(
            config("postgres://u@x/d?host=h", &[]).unwrap().place,
            Place::Tcp { host: "h".into(), port: 5432 }
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (url, part) in [
            ("postgres://u@h/d?client=fast", "client=fast"),
            ("postgres://u@h/d?charset=latin1", "charset=latin1"),
            ("postgres://u@h/d?client=driver&charset=statement", "its own way"),
            ("postgres://u@h/d?tls=prefer", "tls=prefer"),
            ("postgres://u@h/d?socket=relative", "absolute"),
            ("postgres://u@/d?socket=/run/pg&tls=require", "Unix socket"),
            ("postgres://h/d", "no user"),
        ] {
            let error = config(url, &[]).unwrap_err().to_string();
            assert!(error.contains(part), "{url}: {error}");
        }
    }
}
