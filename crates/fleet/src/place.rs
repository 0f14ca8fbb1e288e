//! Where a fleet is: the value of `--fleet`, and what this process knows of its own machine.

use crate::build::Build;
use crate::message::{About, Roles};
use kurabe_core::fleet::AgentRecord;
use kurabe_core::name::Name;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, Result};
use kurabe_observe::{PROTOCOL, boot};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Where the agents of a fleet are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetUrl {
    /// On a NATS broker: its URL, with its password.
    Nats(String),
    /// On these hosts, where `ssh` or the command in `KURABE_RSH` starts them.
    Ssh(Vec<String>),
}

impl FleetUrl {
    /// Parses `nats://HOST`, `tls://HOST` or `ssh:HOST,HOST`.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) for anything else.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::usage(format!("--fleet: {why}")).hint("write nats://HOST:4222, or ssh:HOST,HOST")
        };
        if let Some(hosts) = text.strip_prefix("ssh:") {
            let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
            // ssh would take it for an option, which may name a command.
            let is_wrong = |host: &String| {
                host.is_empty()
                    || host.starts_with('-')
                    || host.contains(|c: char| c.is_whitespace() || c.is_control())
            };
            return if hosts.iter().any(is_wrong) {
                Err(wrong("a host is missing or invalid"))
            } else {
                Ok(Self::Ssh(hosts))
            };
        }
        let url = TargetUrl::parse(text).map_err(|_| wrong("this is no address of a broker"))?;
        if !["nats", "tls"].contains(&url.scheme.as_str()) || url.host.is_none() {
            return Err(wrong("this is no address of a broker"));
        }
        Ok(Self::Nats(text.to_owned()))
    }

    /// The same without a password or a token, which is a user without a password.
    pub fn shown(&self) -> String {
        match self {
            Self::Nats(url) => {
                let url = TargetUrl::parse(url).unwrap_or_default();
                TargetUrl { user: url.user.filter(|_| url.password.is_some()), ..url }.to_string()
            }
            Self::Ssh(hosts) => format!("ssh:{}", hosts.join(",")),
        }
    }
}

/// A random name, as a token of a NATS subject.
pub(crate) fn token() -> Name {
    // The standard library has the operating system's random numbers as keys of its hash maps.
    let random = || RandomState::new().build_hasher().finish();
    named(&format!("{:016x}{:016x}", random(), random()))
}

/// The host's name.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The name of an agent: what the user gave, or that of its host. Other characters than letters, digits and `-`
/// are replaced.
fn own_name(given: Option<&str>) -> Name {
    given.and_then(Name::nearest).unwrap_or_else(|| named(&host()))
}

/// A text as a name, whatever it is.
pub(crate) fn named(text: &str) -> Name {
    let nearest = Name::nearest(text).or_else(|| Name::nearest("agent"));
    nearest.unwrap_or_else(|| unreachable!("'agent' is a name"))
}

/// The network namespace of this process; empty if the kernel does not tell.
pub(crate) fn network() -> String {
    let link = std::fs::read_link("/proc/self/ns/net");
    link.map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
}

impl About {
    /// This process, with this name or that of its host.
    pub(crate) fn this(name: Option<&str>, labels: BTreeMap<String, String>) -> Self {
        let facts = kurabe_observe::machine_facts();
        let (pid, boot) = (std::process::id(), boot().unwrap_or_default());
        let host = host();
        let agent = AgentRecord {
            name: own_name(name).to_string(),
            host,
            cpus: facts.cpus,
            system: facts.system,
            labels,
        };
        Self {
            id: token(),
            agent,
            kurabe: env!("CARGO_PKG_VERSION").to_owned(),
            build: Build::this(),
            protocol: PROTOCOL,
            boot,
            network: network(),
            pid,
            roles: Roles::default(),
            busy: None,
        }
    }

    /// Why a coordinator of this version cannot use it, as a clause; `None` if it can.
    pub(crate) fn refusal(&self) -> Option<String> {
        let (kurabe, ours) = (&self.kurabe, env!("CARGO_PKG_VERSION"));
        if kurabe != ours {
            return Some(format!("it is version {kurabe} of kurabe, this program is version {ours}"));
        }
        if self.protocol != PROTOCOL {
            let theirs = self.protocol;
            return Some(format!(
                "it uses version {theirs} of the protocol, this program version {PROTOCOL}"
            ));
        }
        let own = Build::this();
        if !self.build.is_same(&own) {
            let (theirs, own) = (self.build.shown(), own.shown());
            return Some(format!(
                "it is another build of version {kurabe} of kurabe ({theirs}), this program is {own}"
            ));
        }
        Name::parse(&self.agent.name).is_err().then(|| "its name is not valid".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fleet_is_a_broker_or_a_list_of_hosts() {
        let shown =
            |text: &str| FleetUrl::parse(text).map(|url| url.shown()).map_err(|error| error.to_string());
        assert_eq!(shown("nats://me:hunter2@broker:4222"), Ok("nats://me@broker:4222".to_owned()));
        assert_eq!(shown("tls://hunter2@broker:4222"), Ok("tls://broker:4222".to_owned()));
        assert_eq!(shown("ssh:a,me@b"), Ok("ssh:a,me@b".to_owned()));
        for wrong in ["", "nats:", "redis://h", "ssh:", "ssh:a,,b", "ssh:-oProxyCommand=x", "ssh:a b"] {
            let error = shown(wrong).unwrap_err();
            assert!(error.starts_with("--fleet: ") && error.contains("nats://HOST"), "{wrong}: {error}");
        }
        assert!(!shown("http://me:hunter2@h").unwrap_err().contains("hunter2"));
    }

    #[test]
    fn agent_of_another_version_is_refused() {
        let own = About::this(None, BTreeMap::new());
        assert_eq!(own.refusal(), None);
        let other = About { kurabe: "0.0.1".to_owned(), ..own.clone() };
        assert!(other.refusal().unwrap().contains("version 0.0.1 of kurabe"));
        let commit = |commit: &str| Build { commit: Some(commit.to_owned()), file: None };
        let other = About { build: commit("0123456789abcdef"), ..own.clone() };
        let why = other.refusal().unwrap();
        assert!(why.contains("another build") && why.contains("commit 0123456789abcdef"), "{why}");
        // An agent of a version that did not say it.
        let mut old = serde_json::to_value(&own).unwrap();
        old.as_object_mut().unwrap().remove("build");
        let old: About = serde_json::from_value(old).unwrap();
        assert!(old.refusal().unwrap().contains("another build"));
        let mut named = own.clone();
        named.agent.name = "../x".to_owned();
        assert!(named.refusal().unwrap().contains("its name is not valid"));
        assert!(About { protocol: 1, ..own }.refusal().unwrap().contains("version 1 of the protocol"));
    }
}
