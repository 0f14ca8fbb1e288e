//! The hosts that an agent connects to with its own passwords, password files and client certificates.
//!
//! Whoever may publish on the broker chooses the hosts of orders, so that the agent's own configuration names those that
//! get its credentials. Others are refused, except servers on the loopback interface, as throwaway servers are: there it
//! logs in with what the order says, and with nothing of its own.

use kurabe_core::driver::Driver;
use kurabe_core::observation::Endpoint;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_drivers::registry;
use std::net::Ipv6Addr;

/// The word for an empty list.
const NONE: &str = "none";

/// A server: its host, and its port if that is known.
type Server = (String, Option<u16>);

/// The hosts that an agent connects to with its own credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed(Option<Vec<Server>>);

impl Allowed {
    /// All hosts: the run itself started the agent, by an account of this host whose credentials these are.
    pub const ANY: Self = Self(None);

    /// Reads hosts as in `db.example`, `db.example:5432` or `[2001:db8::7]:5432`. No host, and the word `none`, allow none.
    ///
    /// # Errors
    /// [`Usage`](ErrorKind::Usage) for anything else.
    pub fn parse<'a>(hosts: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let hosts = hosts.into_iter().map(str::trim).filter(|host| *host != NONE);
        hosts.map(server).collect::<Result<_>>().map(|hosts| Self(Some(hosts)))
    }

    /// The arguments of an agent to which the same hosts are allowed.
    pub(super) fn arguments(&self) -> Vec<String> {
        let Some(hosts) = &self.0 else { return Vec::new() };
        let shown = hosts.iter().map(shown);
        let none = hosts.is_empty().then(|| NONE.to_owned());
        shown.chain(none).flat_map(|host| ["--allow".to_owned(), host]).collect()
    }

    /// The driver of an order's target. It has the agent's credentials if the target's hosts are allowed.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) with the host that is not allowed; otherwise as [`registry::open`].
    pub(super) fn open(&self, url: &TargetUrl) -> Result<Box<dyn Driver>> {
        let Some(allowed) = &self.0 else {
            let driver = registry::open(url)?;
            return add(&driver.endpoint(), &mut Vec::new()).map(|()| driver);
        };
        let is_allowed = |(host, port): &Server| {
            let same = |(known, of_port): &Server| {
                name(known).eq_ignore_ascii_case(name(host)) && (of_port.is_none() || of_port == port)
            };
            allowed.iter().any(same)
        };
        // No driver contacts a server when it is opened.
        if let Ok(driver) = registry::open(url)
            && servers(url, &driver.endpoint())?.iter().all(is_allowed)
        {
            return Ok(driver);
        }
        let url = &TargetUrl { ignores_environment: true, ..url.clone() };
        let driver = registry::open(url)?;
        let is_here = |(host, _): &Server| Endpoint::Tcp { host: host.clone(), port: 0 }.is_here();
        let servers = servers(url, &driver.endpoint())?;
        let far = || servers.iter().filter(|server| !is_here(server));
        // Of several servers the one that is not allowed is named.
        match far().find(|server| !is_allowed(server)).or_else(|| far().next()) {
            None => Ok(driver),
            Some(other) => Err(refused(&format!(
                "it may not connect to {}, which its --allow does not name",
                shown(other)
            ))
            .hint(format!("if it may, start it with: kurabe agent --allow {}", shown(other)))),
        }
    }
}

/// A host without the dot that ends a complete name.
fn name(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

fn server(text: &str) -> Result<Server> {
    if text.parse::<Ipv6Addr>().is_ok() {
        return Ok((text.to_owned(), None));
    }
    let wrong = || {
        Error::usage(format!("--allow: '{text}' is not a host"))
            .hint("write HOST, HOST:PORT, or none; several hosts are separated by commas")
    };
    let is_wrong = |c: char| c.is_whitespace() || c.is_control() || "/?#@,*%".contains(c);
    if text.is_empty() || text.contains(is_wrong) {
        return Err(wrong());
    }
    let url = TargetUrl::parse(&format!("tcp://{text}")).map_err(|_| wrong())?;
    Ok((url.host.ok_or_else(wrong)?, url.port))
}

fn shown((host, port): &Server) -> String {
    match port {
        Some(port) if host.contains(':') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
        None => host.clone(),
    }
}

/// All servers that a target's driver may connect to: those that its URL names, and its endpoint.
fn servers(url: &TargetUrl, endpoint: &Endpoint) -> Result<Vec<Server>> {
    let own =
        registry::find(&url.scheme).map_or_else(|| Ok(url.clone()), |driver| driver.own_options(url))?;
    let mut reached = Vec::new();
    add(endpoint, &mut reached)?;
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    let lists = [own.host.as_deref(), own.option("host"), own.option("hostaddr")];
    for text in lists.into_iter().flatten().flat_map(|list| list.split(',')).map(str::trim) {
        // A single host of a URL has no brackets and no port any more.
        let (host, port) = match server(text) {
            _ if !own.host.as_deref().unwrap_or_default().contains(',') => (text.to_owned(), None),
            Ok(server) => server,
            Err(_) => return Err(refused(&format!("'{text}' is no host that an agent connects to"))),
        };
        hosts.push(host);
        ports.extend(port);
    }
    ports.extend(own.port.into_iter().chain(reached.iter().filter_map(|(_, port)| *port)));
    for text in own.option("port").into_iter().flat_map(|list| list.split(',')) {
        ports.push(text.trim().parse().map_err(|_| refused(&format!("'{text}' is no port")))?);
    }
    // Each host with each port: which ones belong together is the driver's to know.
    let ports: Vec<Option<u16>> =
        if ports.is_empty() { vec![None] } else { ports.into_iter().map(Some).collect() };
    let named = hosts.iter().flat_map(|host| ports.iter().map(|port| (host.clone(), *port)));
    reached.extend(named);
    // Such a text names hosts in a language of its own.
    if reached.is_empty() || own.option("descriptor").is_some() {
        return Err(refused("agents connect to hosts that the URL names only"));
    }
    Ok(reached)
}

fn add(endpoint: &Endpoint, to: &mut Vec<Server>) -> Result<()> {
    match endpoint {
        Endpoint::InProcess | Endpoint::Unix(_) => Err(refused("agents connect to servers over TCP only")),
        Endpoint::Tcp { host, port } => {
            to.push((host.clone(), Some(*port)));
            Ok(())
        }
        Endpoint::Elsewhere(_) => Ok(()),
        Endpoint::Composite(members) => members.iter().try_for_each(|member| add(&member.endpoint, to)),
    }
}

/// The error of an order that this agent refuses.
pub(super) fn refused(why: &str) -> Error {
    Error::new(ErrorKind::Unsupported, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opens(allowed: &str, url: &str) -> Result<()> {
        let allowed = Allowed::parse(allowed.split(' ').filter(|host| !host.is_empty()))?;
        allowed.open(&TargetUrl::parse(url)?).map(drop)
    }

    #[test]
    fn only_hosts_that_are_named_are_allowed() {
        for (allowed, url) in [
            ("db.example", "postgres://u@db.example/d"),
            ("db.example", "postgres://u@DB.example.:7/d"),
            ("db.example:5432", "postgres://u@db.example/d"),
            ("x db.example:7", "redis://db.example:7"),
            ("2001:db8::7", "memcached://[2001:db8::7]"),
            ("[2001:db8::7]:1", "memcached://[2001:db8::7]:1"),
            ("a b", "postgres://u@a,b/d"),
            ("a:1 a:2 b:1 b:2", "postgres://u@a:1,b:2/d"),
            ("a b", "mongodb://a,b/?replicaSet=r"),
            ("a 192.0.2.1", "postgres://u@a/d?hostaddr=192.0.2.1"),
            ("a:80 b:80", "http://a:80,b:80"),
            ("127.0.0.1", "postgres://u@127.0.0.1/d"),
        ] {
            opens(allowed, url).unwrap_or_else(|error| panic!("{allowed} {url}: {error}"));
        }
        for (allowed, url, named) in [
            ("", "postgres://u@db.example/d", "db.example:5432"),
            ("none", "mysql://u@db.example/d", "db.example:3306"),
            ("db.example:5433", "postgres://u@db.example/d", "db.example:5432"),
            ("db.example", "postgres://u@db.example.evil/d", "db.example.evil:5432"),
            ("a", "postgres://u@a,evil/d", "evil"),
            ("a", "postgres://u@a/d?hostaddr=192.0.2.1", "192.0.2.1"),
            ("a", "postgres://u@/d?host=a,evil", "evil"),
            ("a:1", "postgres://u@a:1,a:2/d", "a:2"),
            ("a", "mongodb://a,evil", "evil"),
            ("a:1", "mongodb://a", "a"),
            ("a", "http://a:80,evil:80", "evil:80"),
            ("a", "postgres://u@127.0.0.1,evil/d", "evil"),
            ("a", "tcp://192.0.2.1:1", "192.0.2.1:1"),
        ] {
            let error = opens(allowed, url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{allowed} {url}: {error}");
            let text = error.to_string();
            assert!(text.contains(named) && text.contains("kurabe agent --allow"), "{allowed} {url}: {text}");
        }
        assert!(opens("a", "sqlite:/x").unwrap_err().to_string().contains("over TCP only"));
    }

    #[test]
    fn loopback_is_reached_without_being_named_and_what_a_run_started_goes_anywhere() {
        for url in ["redis://localhost:1", "postgres://u@127.0.0.1:1/d", "mysql://u@[::1]/d"] {
            opens("", url).unwrap();
        }
        let opens = |url: &str| Allowed::ANY.open(&TargetUrl::parse(url).unwrap()).map(drop);
        assert!(opens("redis://db.example").is_ok() && opens("sqlite:/x").is_err());
    }

    #[test]
    fn arguments_allow_the_same() {
        for hosts in [&["db.example:1", "::1", "[::1]:2"][..], &[]] {
            let allowed = Allowed::parse(hosts.iter().copied()).unwrap();
            let words = allowed.arguments();
            let (options, values): (Vec<&String>, Vec<&String>) =
                words.iter().partition(|word| *word == "--allow");
            assert_eq!(options.len(), hosts.len().max(1));
            assert_eq!(Allowed::parse(values.into_iter().map(String::as_str)).unwrap(), allowed);
        }
        assert!(Allowed::ANY.arguments().is_empty());
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for wrong in ["", "*", "a/b", "postgres://u@h/d", "a b", "me@h", "h:x", "h:99999", "h:1,i"] {
            let error = Allowed::parse([wrong]).unwrap_err();
            assert!(error.to_string().contains("--allow"), "{wrong}: {error}");
        }
    }
}
