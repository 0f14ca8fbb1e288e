//! Not a database but an application that serves the experiments' transactions over HTTP/1.1, as
//! `docs/app.openapi.yaml` describes (`kurabe up app` or another application), through a native client.
//!
//! Its sessions only request pages. The application keeps its own data, so nothing is created or removed.

pub(crate) mod facts;
mod session;
mod several;

use crate::http::Server;
use crate::info::{Connections, DriverInfo, OptionInfo};
use crate::nothing::Nothing;
use crate::prelude::*;
use crate::wire::{Place, tls};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kurabe_core::observation::{Member, Tier};
use session::{Address, ApplicationSession};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The driver's entry in the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["http", "https"],
    engine: facts::ENGINE,
    about: "an application that serves kv, connect or webapp, such as kurabe up app; or several in front of one database",
    url: "http[s]://[user:password@]host[:port][,host:port][/prefix]",
    options: &[
        OptionInfo::new("tls", "with https: verify (default: certificate checked) or require (encrypted)"),
        tls::CA,
        tls::CERT,
        tls::KEY,
    ],
    benchmark_clause: None,
    connections: Connections {
        tls: crate::info::TLS,
        mode: |url| tls::Mode::from_url(url, url.scheme == "https"),
        servers: |url| Ok(places(url)?.into_iter().map(ServerPlace::from).collect()),
        ..Connections::NONE
    },
    open,
};

const PORT: u16 = 80;
const PORT_TLS: u16 = 443;

/// Where the applications listen.
fn places(url: &TargetUrl) -> Result<Vec<Place>> {
    let host = url
        .host
        .as_deref()
        .ok_or_else(|| Error::usage("http: names no host").hint("write http://127.0.0.1:8080"))?;
    if !is_plain(&host.replace(',', "")) || host.contains('/') {
        return Err(Error::usage("http: the host contains characters that are invalid in a URL"));
    }
    several::places(host, url.port, if url.scheme == "https" { PORT_TLS } else { PORT })
}

/// Whether a text can be a part of a URL as it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#%,\"<>\\".contains(&byte))
}

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    let places = places(url)?;
    if !is_plain(&url.path) {
        return Err(Error::usage("http: the path contains characters that are invalid in a URL"));
    }
    let prefix = url.path.trim_matches('/');
    let prefix = if prefix.is_empty() { String::new() } else { format!("/{prefix}") };
    let secure = url.scheme == "https";
    let tls = tls::Mode::from_url(url, secure)?;
    if tls.is_off() == secure {
        let what = if secure { "requires TLS, so tls=off is invalid" } else { "is HTTP without TLS" };
        return Err(url.wrong(what).hint("write https:// for TLS, and http:// for none"));
    }
    let authorization = authorization(url)?;
    let address = |place: Place| {
        let (host, prefix, tls) = (place.to_string(), prefix.clone(), tls.clone());
        let authorization = authorization.clone();
        Arc::new(Address { server: Arc::new(Server { place, tls }), host, prefix, authorization })
    };
    let addresses = places.into_iter().map(address).collect();
    Ok(Box::new(Application {
        addresses,
        next: AtomicUsize::new(0),
        database: OnceLock::new(),
        backends: OnceLock::new(),
    }))
}

/// The header field with the URL's user and password (RFC 7617), with the end of its line; empty without a user.
fn authorization(url: &TargetUrl) -> Result<Secret> {
    let (user, password) = match (&url.user, &url.password) {
        (None, None) => return Ok(Secret::new(String::new())),
        (Some(user), Some(password)) if !user.contains(':') => (user, password),
        (Some(user), _) if user.contains(':') => {
            return Err(url.wrong("HTTP allows no ':' in a user's name"));
        }
        _ => {
            return Err(url
                .wrong("a user without a password, or a password without a user")
                .hint("write http://user:password@host:port"));
        }
    };
    let login = STANDARD.encode(format!("{user}:{}", password.expose()));
    Ok(Secret::new(format!("Authorization: Basic {login}\r\n")))
}

struct Application {
    /// One application, or several in front of one database.
    addresses: Vec<Arc<Address>>,
    /// Counter that assigns sessions to the addresses in turn.
    next: AtomicUsize,
    /// The endpoint of their database, once queried; `None` if it runs within the application.
    database: OnceLock<Option<Endpoint>>,
    /// The further endpoints of each application, once queried.
    backends: OnceLock<Vec<Vec<Endpoint>>>,
}

impl Application {
    fn session(&self, options: &ConnectOptions) -> Result<ApplicationSession> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.addresses.len();
        ApplicationSession::open(&self.addresses[turn], options)
    }
}

impl Driver for Application {
    fn describe(&self) -> Result<ServerFacts> {
        let options = ConnectOptions::default();
        let ask = |address: &Arc<Address>| facts::ask(&mut ApplicationSession::open(address, &options)?);
        let reported = self.addresses.iter().map(ask).collect::<Result<Vec<_>>>()?;
        several::agree(&reported)?;
        let _ = self.database.set(several::database(&reported[0]));
        let _ = self.backends.set(reported.iter().map(several::backends).collect());
        let mut facts = facts::read(&reported[0], reported.len());
        self.addresses[0].server.transport().clone_into(&mut facts.transport);
        Ok(facts)
    }

    fn endpoint(&self) -> Endpoint {
        let backends = self.backends.get().map(Vec::as_slice).unwrap_or_default();
        let application = |(number, address): (usize, &Arc<Address>)| {
            let behind = backends.get(number).map(Vec::as_slice).unwrap_or_default();
            (several::whole(address.server.place.endpoint(), behind), Tier::Application)
        };
        let applications = self.addresses.iter().enumerate().map(application);
        let database = self.database.get().cloned().flatten().map(|place| (place, Tier::Database));
        let all = applications.chain(database);
        Endpoint::Composite(all.map(|(place, tier)| Member { endpoint: place, tier: Some(tier) }).collect())
    }

    fn supports(&self, operation: &Operation) -> Support {
        match operation {
            Operation::Page { .. } => Support::Native,
            other => Support::No(format!("an application has only pages, no {}", other.name())),
        }
    }

    fn capabilities(&self) -> Capabilities {
        let pipelining = Support::no("HTTP clients do not use pipelining: they await each answer");
        Capabilities {
            is_application: true,
            is_temporary: false,
            ..Capabilities::without_statements("an application", pipelining).sharing_threads()
        }
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        Ok(Box::new(self.session(options)?))
    }

    fn stats_probe(&self, _: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        Err(Error::unsupported("an application does not report statistics of its database"))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        Ok(Box::new(Nothing))
    }

    without!(transfers, compression, other_durability, limited_memory, links, dump_tool);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(url: &str) -> String {
        open(&TargetUrl::parse(url).unwrap()).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn url_names_hosts_and_an_optional_prefix() {
        for url in [
            "http://a",
            "http://127.0.0.1:8080",
            "http://127.0.0.1:80,[::1]:81/x",
            "http://a,b:2",
            "http://[::1]:8080/",
            "http://a/shop/v1/",
            "https://a",
            "https://a:8443,b/shop?tls=require",
        ] {
            assert_eq!(error(url), "", "{url}");
        }
        assert!(error("http:").contains("names no host"));
        for url in ["https://a?tls=off", "http://a?tls=require"] {
            assert!(error(url).contains("http"), "{url}: {}", error(url));
        }
        for url in ["http://a,", "http://a:1,b:x", "http://a:0,b:1", "http://a:1,b:1,a:1"] {
            assert!(error(url).starts_with("http: "), "{url}: {}", error(url));
        }
        assert!(error("http://a/b%0d%0aX:%20y").contains("invalid in a URL"));
        assert_eq!(error("http://bob:hunter2@a"), "");
        for url in ["http://bob@a", "http://:hunter2@a", "http://b%3Ab:hunter2@a"] {
            let message = error(url);
            assert!(!message.is_empty() && !message.contains("hunter2"), "{url}: {message}");
        }
    }
}
