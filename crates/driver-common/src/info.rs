//! Static information about drivers.

pub use crate::options::{ForeignOption, Meaning, OptionInfo};
pub use crate::wire::Place;

use crate::prelude::*;
use crate::wire::tls;
use kurabe_core::run::PublishingClause;

/// An authentication method, or a pooler, and whether it works: the reason if not.
pub type Method = (&'static str, &'static str);

/// A server that a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPlace {
    pub place: Place,
    /// The host that its certificate must be for; `None`: that of `place`.
    pub certified: Option<String>,
}

impl From<Place> for ServerPlace {
    fn from(place: Place) -> Self {
        Self { place, certified: None }
    }
}

/// What a driver knows of connections besides its options, for `docs/connections.md`.
#[derive(Debug)]
pub struct Connections {
    /// Options of other clients and of providers' URLs.
    pub foreign: &'static [ForeignOption],
    /// Environment variables, with what they are for.
    pub variables: &'static [(&'static str, &'static str)],
    /// Files, with what is read from them.
    pub files: &'static [(&'static str, &'static str)],
    pub authentication: &'static [Method],
    /// TLS: an option here, the equivalent of the engine's own client, and the decision.
    pub tls: &'static [[&'static str; 3]],
    /// What a URL, and the variables and files that the driver reads besides it, say of TLS over TCP.
    pub mode: fn(&TargetUrl) -> Result<tls::Mode>,
    /// The servers that a URL, and the variables and files that the driver reads besides it, name. None if the database runs in
    /// this process, or if no other part of the program connects to it.
    pub servers: fn(&TargetUrl) -> Result<Vec<ServerPlace>>,
    /// Poolers, proxies and clusters.
    pub proxies: &'static [Method],
}

impl Connections {
    /// Nothing besides options.
    pub const NONE: Self = Self {
        foreign: &[],
        variables: &[],
        files: &[],
        authentication: &[],
        tls: &[],
        mode: |url| tls::Mode::from_url(url, false),
        servers: |_| Ok(Vec::new()),
        proxies: &[],
    };
}

/// The modes of TLS of engines whose clients have the option `tls` only.
pub const TLS: &[[&str; 3]] = &[
    ["tls=off", "", "plain text"],
    ["tls=require", "", "encrypted; any certificate is accepted"],
    [
        "tls=verify",
        "",
        "encrypted; the certificate is of an authority in ca= or the system's store, and for the host",
    ],
];

/// A clause of an engine's licence that restricts publishing results of benchmarks.
#[derive(Clone, Copy, Debug)]
pub struct BenchmarkClause {
    /// The licence, and the clause's name in it.
    pub name: &'static str,
    /// What it restricts, one sentence.
    pub says: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// Whether it applies to the server with these facts: editions of an engine may have different licences.
    pub holds_for: fn(&ServerFacts) -> bool,
}

/// Static information about a driver.
#[derive(Debug)]
pub struct DriverInfo {
    /// The URL schemes that name it; the first is the usual one.
    pub schemes: &'static [&'static str],
    /// The engine's name.
    pub engine: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The format of its URL: `postgres://[user[:password]@]host[:port]/database`.
    pub url: &'static str,
    /// Its options; others are refused before [`DriverInfo::open`] is called.
    pub options: &'static [OptionInfo],
    /// The licence clause that restricts publishing results, if there is one.
    pub benchmark_clause: Option<BenchmarkClause>,
    /// What else it knows of connections.
    pub connections: Connections,
    /// Creates the driver, without network access: `connect` and `describe` are the first to contact the server.
    pub open: fn(&TargetUrl) -> Result<Box<dyn Driver>>,
}

impl DriverInfo {
    /// The URL with Kurabe's own options instead of those of other clients and providers.
    ///
    /// # Errors
    /// Usage, for one that cannot be obeyed.
    pub fn own_options(&self, url: &TargetUrl) -> Result<TargetUrl> {
        let mut own = url.clone();
        for (name, value) in &url.options {
            let Some(meaning) = ForeignOption::find(self.connections.foreign, name, value) else {
                let rows = self.connections.foreign.iter().filter(|row| row.name == name);
                let known: Vec<_> = rows.filter_map(|row| row.value).collect();
                if known.is_empty() || self.options.iter().any(|option| option.name == name) {
                    continue;
                }
                let hint = format!("one of: {}", known.join(", "));
                return Err(url.wrong(format!("{name}={value} is unknown")).hint(hint));
            };
            own.options.remove(name);
            match meaning {
                Meaning::Nothing(_) => {}
                Meaning::Refused(hint) => {
                    return Err(url.wrong(format!("has no option '{name}'")).hint(hint));
                }
                Meaning::Is(option, meant) => {
                    let meant = meant.unwrap_or(value);
                    match url.option(option) {
                        Some(given) if given != meant && option != name => {
                            let what = format!("{name}={value} and {option}={given} contradict each other");
                            return Err(url.wrong(what).hint("remove one"));
                        }
                        _ => own.options.insert(option.to_owned(), meant.to_owned()),
                    };
                }
            }
        }
        Ok(own)
    }

    /// The clause that restricts publishing results of this server, as a run records it.
    pub fn clause(&self, facts: &ServerFacts) -> Option<PublishingClause> {
        let clause = self.benchmark_clause.filter(|clause| (clause.holds_for)(facts))?;
        Some(PublishingClause {
            name: clause.name.to_owned(),
            says: clause.says.to_owned(),
            source: clause.source.to_owned(),
        })
    }
}
