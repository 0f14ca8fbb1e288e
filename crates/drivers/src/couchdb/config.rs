//! Connection settings, from the URL. The variables `COUCHDB_USER` and `COUCHDB_PASSWORD`, which CouchDB's container
//! image uses too, supply what the URL omits.

use crate::prelude::*;
use crate::wire::{Place, UNRESERVED, tls};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::utf8_percent_encode;
use std::path::Path;
use std::sync::Arc;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};

const PORT: u16 = 5984;
const PORT_TLS: u16 = 6984;

/// Connection settings. The `Debug` output contains no password.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) place: Place,
    /// `http://host:port`
    pub(super) base: String,
    pub(super) user: Option<String>,
    /// The value of the `Authorization` header, if there is a user.
    pub(super) authorization: Option<Secret>,
    /// Prefix of the database names, before `kurabe_`.
    pub(super) prefix: String,
    /// `None` for plain HTTP.
    pub(super) tls: Option<TlsConfig>,
}

impl Config {
    pub(super) fn from_url(url: &TargetUrl) -> Result<Self> {
        Self::new(url, &|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn new(url: &TargetUrl, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let tls = tls(url)?;
        let host = url.host.clone().unwrap_or_else(|| "127.0.0.1".to_owned());
        if host.contains(['/', '\\', '?', '#', '@', ' ']) {
            return Err(url.wrong(format!("'{host}' is not a host name")));
        }
        let port = url.port.unwrap_or(if tls.is_some() { PORT_TLS } else { PORT });
        let place = Place::Tcp { host, port };
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
            base: format!("{}://{place}", if tls.is_some() { "https" } else { "http" }),
            place,
            user,
            authorization,
            prefix: prefix(url)?,
            tls,
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

/// TLS settings. `couchdbs:` verifies the server's certificate unless `?tls=` changes this.
fn tls(url: &TargetUrl) -> Result<Option<TlsConfig>> {
    match (tls::Mode::from_url(url, url.scheme == "couchdbs")?, url.scheme.as_str()) {
        (tls::Mode::Off, "couchdbs") => {
            Err(Error::usage("couchdbs: is CouchDB over TLS, and tls=off is not").hint("write couchdb:"))
        }
        (tls::Mode::Off, _) => Ok(None),
        (tls::Mode::On { wanted, .. }, _) if wanted.check == tls::Check::Nothing => {
            Ok(Some(TlsConfig::builder().disable_verification(true).build()))
        }
        (tls::Mode::On { wanted, .. }, _) => {
            let roots = wanted.ca.map_or(Ok(RootCerts::WebPki), |ca| roots(&ca))?;
            Ok(Some(TlsConfig::builder().root_certs(roots).build()))
        }
    }
}

fn roots(ca: &Path) -> Result<RootCerts> {
    let bad = |why: String| Error::new(ErrorKind::Usage, format!("ca={}: {why}", ca.display()));
    let text = std::fs::read(ca).map_err(|error| bad(error.to_string()))?;
    let mut certificates: Vec<Certificate<'static>> = Vec::new();
    for item in ureq::tls::parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| bad(error.to_string()))? {
            certificates.push(certificate);
        }
    }
    Ok(RootCerts::Specific(Arc::new(certificates)))
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
        assert_eq!(one.base, "http://db:1234");
        assert_eq!(one.path("kurabe_a"), "/shop%2Fa_kurabe_a");
        assert_eq!(one.authorization.as_ref().map(Secret::expose), Some("Basic YWw6cDp3"));
        assert!(!format!("{one:?}").contains("YWw6cDp3"), "{one:?}");
        let two = config("couchdbs://[::1]").unwrap();
        assert_eq!((two.base.as_str(), two.tls.is_some()), ("https://[::1]:6984", true));
        assert_eq!(two.user.as_deref(), Some("env"));
        assert_eq!(config("couchdb:").unwrap().base, "http://127.0.0.1:5984");
        assert!(config("couchdb://h?tls=require").unwrap().tls.unwrap().disable_verification());
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
