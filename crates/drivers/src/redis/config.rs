//! Settings of a target's URL: server, user, database and expiry of rows.

use crate::environment::Environment;
use crate::prelude::*;
use crate::ttl;
use crate::wire::{Place, tls};

const PORT: u16 = 6379;

/// The maximum `ttl`, in seconds. A larger value is probably a mistake: the server counts in milliseconds.
const LONGEST: u32 = 10 * 365 * 24 * 3600;

/// Connection settings. The `Debug` output contains no password.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) place: Place,
    /// The user's name; `None` means the server's `default` user.
    pub(super) user: Option<String>,
    /// The password of `AUTH`; `None`: no authentication. It is empty for a user without a password (`nopass`).
    pub(super) password: Option<Secret>,
    pub(super) database: u32,
    /// Seconds after which a written row expires; `None`: never.
    pub(super) ttl: Option<u32>,
    pub(super) tls: tls::Mode,
}

impl Config {
    /// Reads a URL. The default password is that of `redis-cli`: the variable `REDISCLI_AUTH` (or `VALKEYCLI_AUTH`).
    pub(super) fn from_url(url: &TargetUrl) -> Result<Self> {
        let environment = Environment::for_url(url);
        environment.check(Self::new(url, &|name| environment.get(name)))
    }

    fn new(url: &TargetUrl, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let tls = tls(url)?;
        let place = place(url);
        tls.check(&place, url)?;
        let database = match url.path.as_str() {
            "" => 0,
            path => path.parse().map_err(|_| {
                url.wrong("the path after the host must be a database number")
                    .hint(format!("write {}://host:port/0", url.scheme))
            })?,
        };
        let ttl = ttl::from_url(url, LONGEST)?;
        let named = |name: &str| variable(name).map(Secret::new);
        let password =
            url.password.clone().or_else(|| named("REDISCLI_AUTH")).or_else(|| named("VALKEYCLI_AUTH"));
        let password = match url.user {
            Some(_) => Some(password.unwrap_or_default()),
            None => password.filter(|password| !password.expose().is_empty()),
        };
        Ok(Self { place, user: url.user.clone(), password, database, ttl, tls })
    }

    /// The host that a certificate must be for.
    pub(super) fn host(&self) -> &str {
        match &self.place {
            Place::Tcp { host, .. } => host,
            Place::Unix(_) => "localhost",
        }
    }
}

/// Where the server listens.
pub(super) fn place(url: &TargetUrl) -> Place {
    Place::from_url(url, PORT)
}

/// TLS settings. `rediss:` and `valkeys:` verify the server's certificate unless `?tls=` changes this.
pub(super) fn tls(url: &TargetUrl) -> Result<tls::Mode> {
    tls::Mode::from_url(url, matches!(url.scheme.as_str(), "rediss" | "valkeys"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, auth: Option<&str>) -> Result<Config> {
        let variable = |name: &str| auth.filter(|_| name == "REDISCLI_AUTH").map(ToOwned::to_owned);
        Config::new(&TargetUrl::parse(url)?, &variable)
    }

    #[test]
    fn url_sets_server_user_database_and_ttl() {
        let all = config("redis://bob:hunter2@db:1/3?ttl=60", Some("other")).unwrap();
        assert_eq!(all.place, Place::Tcp { host: "db".into(), port: 1 });
        assert_eq!((all.user.as_deref(), all.database, all.ttl), (Some("bob"), 3, Some(60)));
        assert_eq!(all.password.as_ref().map(Secret::expose), Some("hunter2"));
        assert!(!format!("{all:?}").contains("hunter2"));
        let least = config("redis:", None).unwrap();
        assert_eq!(least.place, Place::Tcp { host: "127.0.0.1".into(), port: 6379 });
        assert!(least.password.is_none() && least.ttl.is_none() && least.tls.is_off());
        let socket = config("valkey://localhost?socket=/run/v.sock", Some("pw")).unwrap();
        assert_eq!(socket.place, Place::Unix("/run/v.sock".into()));
        assert_eq!(socket.password.as_ref().map(Secret::expose), Some("pw"));
        assert!(!config("rediss://h", None).unwrap().tls.is_off());
        // A user without a password.
        for (url, auth, password) in [
            ("redis://bob@h", None, ""),
            ("redis://bob:@h", Some("pw"), ""),
            ("redis://bob@h", Some("pw"), "pw"),
        ] {
            let config = config(url, auth).unwrap();
            assert_eq!(config.password.as_ref().map(Secret::expose), Some(password), "{url}");
        }
        // redis://:@h names no password.
        assert!(config("redis://:@h", Some("pw")).unwrap().password.is_none());
    }

    #[test]
    fn invalid_urls_are_refused() {
        for (url, part) in [
            ("redis://h/shop", "database number"),
            ("redis://h/-1", "database number"),
            ("redis://h?ttl=0", "ttl=0"),
            ("redis://h?ttl=1h", "ttl=1h"),
            ("rediss://h?socket=/s", "Unix socket"),
            ("redis://h?tls=prefer", "tls=prefer"),
        ] {
            let error = config(url, None).unwrap_err().to_string();
            assert!(error.contains(part), "{url}: {error}");
        }
    }
}
