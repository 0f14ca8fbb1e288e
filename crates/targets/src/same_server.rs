//! Targets that turn out to be one server, by what the server says of itself.
//!
//! The same URL twice is a run against itself, on purpose. Different databases of one server, other options, another
//! transport or a proxy are comparisons too: they are said. Two names of one address are refused: such a run would compare
//! a database with itself, and tell two.

use crate::opened::Opened;
use crate::reporter::Reporter;
use kurabe_core::observation::Endpoint;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, Result};
use std::net::{SocketAddr, ToSocketAddrs as _};

/// Options that name a server, a user or a database, as parts of a URL do.
const NAMES: [&str; 7] = ["host", "hostaddr", "port", "socket", "user", "dbname", "service"];

impl Opened {
    /// Compares each target with those before it.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) if two differ in nothing but the name of their server.
    pub(crate) fn check_servers(&mut self, reporter: &dyn Reporter) -> Result<()> {
        for at in 1..self.targets.len() {
            for before in 0..at {
                if let Some(note) = self.shared_server(before, at)? {
                    let [first, second] = [before, at].map(|at| self.targets[at].name.clone());
                    reporter.note(&format!("{second}: {note} {first}"));
                    let note = format!("{note} {first}");
                    self.targets[at].facts.notes.push(note);
                }
            }
        }
        Ok(())
    }

    /// What two targets share, as the beginning of a sentence that ends with the name of the first; `None`: nothing, or what
    /// their URLs say.
    fn shared_server(&self, before: usize, at: usize) -> Result<Option<&'static str>> {
        let [first, second] = [&self.targets[before], &self.targets[at]];
        let [Some(one), Some(other)] = [&first.facts.identity, &second.facts.identity] else {
            return Ok(None);
        };
        let [a, b] = [&self.reached[before], &self.reached[at]];
        if one.server != other.server || a == b {
            return Ok(None);
        }
        if one.database != other.database {
            return Ok(Some("this database is on the same server as that of"));
        }
        if a.scheme == b.scheme && place(a) == place(b) {
            return Ok(None);
        }
        let [from, to] = [first.driver.endpoint(), second.driver.endpoint()];
        let encrypted = |url| Ok::<_, Error>(kurabe_drivers::registry::tls(url)?.is_some());
        if only_names_differ(a, b) && is_same_place(&from, &to) && encrypted(a)? == encrypted(b)? {
            let [a, b] = [before, at].map(|at| &self.targets[at].url);
            let what = format!("{a} and {b} are one database of one server ({})", one.server);
            return Err(Error::usage(what).hint(
                "name two servers; the same URL twice measures one server against itself; other options, such as tls=, compare \
                 ways to use it",
            ));
        }
        Ok(Some("this is the same server, reached in another way, as"))
    }
}

/// Where a URL says that its server is.
fn place(url: &TargetUrl) -> [Option<String>; 6] {
    let option = |name: &str| url.option(name).map(str::to_owned);
    let path = url.host.is_none().then(|| url.path.clone());
    let port = url.port.map(|port| port.to_string());
    [url.host.clone(), port, option("host"), option("hostaddr"), option("socket"), path]
}

/// Whether two URLs of one database differ in nothing but names of the server, the database and the user.
fn only_names_differ(a: &TargetUrl, b: &TargetUrl) -> bool {
    let others = |url: &TargetUrl| {
        let mut options = url.options.clone();
        options.retain(|name, _| !NAMES.contains(&name.as_str()));
        options
    };
    let user = |url: &TargetUrl| url.user.clone().or_else(|| url.option("user").map(str::to_owned));
    let is_one_user = match (user(a), user(b)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    is_one_user && others(a) == others(b)
}

/// Whether connections to both lead to one address.
fn is_same_place(a: &Endpoint, b: &Endpoint) -> bool {
    let addresses = |host: &str, port: u16| -> Vec<SocketAddr> {
        (host, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default()
    };
    match (a, b) {
        (Endpoint::InProcess, Endpoint::InProcess) => true,
        (Endpoint::Unix(a), Endpoint::Unix(b)) => {
            a == b || a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
        }
        (Endpoint::Tcp { host: a, port: of_a }, Endpoint::Tcp { host: b, port: of_b }) => {
            let others = addresses(b, *of_b);
            addresses(a, *of_a).iter().any(|address| others.contains(address))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_differ_in_names_only_or_in_more() {
        let url = |text: &str| TargetUrl::parse(text).unwrap();
        for (a, b, only_names) in [
            ("postgres://u@one/d", "postgres://u:x@two/d", true),
            ("postgres://u@one/d", "postgres://two/d?user=u", true),
            ("postgres://u@one/d", "postgres://v@one/d", false),
            ("postgres://u@one/d", "postgres://u@two/d?tls=require", false),
            ("sqlite:a.db", "sqlite:./a.db", true),
            ("sqlite:a.db", "sqlite:./a.db?synchronous=off", false),
        ] {
            assert_eq!(only_names_differ(&url(a), &url(b)), only_names, "{a} {b}");
        }
        let tcp = |host: &str, port| Endpoint::Tcp { host: host.to_owned(), port };
        assert!(is_same_place(&tcp("localhost", 5), &tcp("127.0.0.1", 5)));
        assert!(!is_same_place(&tcp("localhost", 5), &tcp("127.0.0.1", 6)));
        assert!(!is_same_place(&tcp("127.0.0.1", 5), &Endpoint::Unix("/run/x".into())));
    }
}
