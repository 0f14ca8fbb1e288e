//! Connection settings, from the URL. The variables `COUCHDB_USER` and `COUCHDB_PASSWORD`, which CouchDB's container
//! image uses too, supply what the URL omits.

use crate::environment::Environment;
use crate::http::Server;
use crate::prelude::*;
use crate::wire::{Place, UNRESERVED, tls};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::utf8_percent_encode;
use std::sync::Arc;

const PORT: u16 = 5984;
const PORT_TLS: u16 = 6984;

/// Connection settings. The `Debug` output contains no password.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) server: Arc<Server>,
    /// The rest of the request line, and the header fields that every request has.
    pub(super) fields: String,
    pub(super) user: Option<String>,
    /// The value of the `Authorization` header, if there is a user.
    pub(super) authorization: Option<Secret>,
    /// Prefix of the database names, before `kurabe_`.
    pub(super) prefix: String,
}

impl Config {
    pub(super) fn from_url(url: &TargetUrl) -> Result<Self> {
        let environment = Environment::for_url(url);
        environment.check(Self::new(url, &|name| environment.get(name).filter(|value| !value.is_empty())))
    }

    fn new(url: &TargetUrl, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let tls = tls(url)?;
        let place = place(url, &tls)?;
        // `couchdb://:@host` connects without a user, even if the environment names one.
        let anonymous =
            url.user.is_none() && url.password.as_ref().is_some_and(|text| text.expose().is_empty());
        let variable = |name: &str| variable(name).filter(|_| !anonymous);
        let user = url.user.clone().or_else(|| variable("COUCHDB_USER"));
        let password = url.password.clone().or_else(|| variable("COUCHDB_PASSWORD").map(Secret::new));
        let authorization = match (&user, password.filter(|_| !anonymous)) {
            (None, None) => None,
            (None, Some(_)) if url.password.is_none() => None,
            (None, Some(_)) => {
                return Err(url
                    .wrong("a password without a user")
                    .hint("write couchdb://user:password@host"));
            }
            (Some(user), _) if user.contains(':') => {
                return Err(url.wrong("HTTP allows no ':' in a user's name"));
            }
            (Some(user), password) => {
                let both = format!("{user}:{}", password.as_ref().map_or("", Secret::expose));
                Some(Secret::new(format!("Basic {}", STANDARD.encode(both))))
            }
        };
        Ok(Self {
            fields: format!(
                " HTTP/1.1\r\nHost: {place}\r\nUser-Agent: kurabe/{}\r\n",
                env!("CARGO_PKG_VERSION")
            ),
            server: Arc::new(Server { place, tls }),
            user,
            authorization,
            prefix: prefix(url)?,
        })
    }

    /// The path of a collection's database: `/prefix%2Fkurabe_a`.
    pub(super) fn path(&self, collection: &str) -> String {
        let mut path = "/".to_owned();
        escape(&mut path, &self.prefix);
        escape(&mut path, collection);
        path
    }
}

/// Appends percent-encoded text: all characters except letters, digits and `-._~` are escaped (RFC 3986, section 2.3).
pub(super) fn escape(out: &mut String, text: &str) {
    out.extend(utf8_percent_encode(text, UNRESERVED));
}

/// The prefix of the database names: characters that CouchDB allows, with a letter first.
fn prefix(url: &TargetUrl) -> Result<String> {
    let prefix = url.path.clone();
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_$()+-/".contains(&b);
    let begins = prefix.is_empty() || prefix.starts_with(|c: char| c.is_ascii_lowercase());
    if begins && prefix.bytes().all(plain) && prefix.len() <= 100 {
        return Ok(prefix);
    }
    Err(url.wrong(format!("'{prefix}' cannot be a prefix of database names")).hint(
        "CouchDB allows lower case letters, digits and _$()+-/, a letter first; without a prefix names are kurabe_…",
    ))
}

/// Where the server listens.
pub(super) fn place(url: &TargetUrl, tls: &tls::Mode) -> Result<Place> {
    let host = url.host.clone().unwrap_or_else(|| "127.0.0.1".to_owned());
    if host.contains(['/', '\\', '?', '#', '@', ' ']) || host.contains(char::is_control) {
        return Err(url.wrong(format!("'{host}' is not a host name")));
    }
    let port = url.port.unwrap_or(if tls.is_off() { PORT } else { PORT_TLS });
    Ok(Place::Tcp { host, port })
}

/// TLS settings. `couchdbs:` verifies the server's certificate unless `?tls=` changes this.
pub(super) fn tls(url: &TargetUrl) -> Result<tls::Mode> {
    let mode = tls::Mode::from_url(url, url.scheme == "couchdbs")?;
    if mode.is_off() && url.scheme == "couchdbs" {
        return Err(Error::usage("couchdbs: is CouchDB over TLS, and tls=off is not").hint("write couchdb:"));
    }
    Ok(mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> Result<Config> {
        let variable = |name: &str| match name {
            "COUCHDB_USER" => Some("env".to_owned()),
            "COUCHDB_PASSWORD" => Some("from-env".to_owned()),
            _ => None,
        };
        Config::new(&TargetUrl::parse(url)?, &variable)
    }

    #[test]
    fn url_sets_host_prefix_and_user() {
        let one = config("couchdb://al:p%3Aw@db:1234/shop%2Fa_").unwrap();
        assert_eq!(one.server.place.to_string(), "db:1234");
        assert_eq!(one.path("kurabe_a"), "/shop%2Fa_kurabe_a");
        assert_eq!(one.authorization.as_ref().map(Secret::expose), Some("Basic YWw6cDp3"));
        assert!(!format!("{one:?}").contains("YWw6cDp3"), "{one:?}");
        let two = config("couchdbs://[::1]").unwrap();
        assert_eq!(two.server.place.to_string(), "[::1]:6984");
        assert!(two.server.tls.checks_host());
        assert_eq!(two.user.as_deref(), Some("env"));
        let three = config("couchdb:").unwrap().server;
        assert!(three.place.to_string() == "127.0.0.1:5984" && three.tls.is_off());
        let four = config("couchdb://h?tls=require").unwrap().server;
        assert!(!four.tls.is_off() && !four.tls.checks_host());
    }

    #[test]
    fn user_is_optional() {
        let url = TargetUrl::parse("couchdb://h").unwrap();
        assert!(Config::new(&url, &|_| None).unwrap().authorization.is_none());
        let anonymous = config("couchdb://:@h").unwrap();
        assert!(anonymous.user.is_none() && anonymous.authorization.is_none());
    }

    #[test]
    fn invalid_urls_are_refused() {
        for (url, part) in [
            ("couchdb://h/Shop", "prefix of database names"),
            ("couchdb://h/1a", "prefix of database names"),
            ("couchdb://h/a?tls=prefer", "tls=prefer"),
            ("couchdbs://h?tls=off", "write couchdb:"),
            ("couchdb://a%3Ab:secret@h", "no ':'"),
            ("couchdbs://h?ca=/nonexistent/ca.pem", "/nonexistent/ca.pem"),
        ] {
            let error = config(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{url}: {error}");
            assert!(
                error.to_string().contains(part) && !error.to_string().contains("secret"),
                "{url}: {error}"
            );
        }
    }
}
