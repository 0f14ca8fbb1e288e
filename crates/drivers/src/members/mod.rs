//! Servers of a target beside its own, to which Kurabe's client connects too: caches and remotes.
//!
//! Some collections are on such a member. An experiment prepares operations on all collections through one session, so
//! neither its transactions nor the engine handle several connections.

mod namespace;
mod session;

use crate::prelude::*;
use kurabe_core::facts::Setting;
use kurabe_core::memory::LimitedServer;
pub(crate) use namespace::PairNamespace;
pub(crate) use session::PairSession;
use std::sync::Arc;

/// A server of a target beside its own.
pub struct Member {
    /// Its name, to which collections refer.
    pub name: String,
    /// What it is to the target, for messages: "the cache".
    pub role: &'static str,
    pub driver: Box<dyn Driver>,
    pub facts: ServerFacts,
    /// Whether it is a throwaway server without other users, which needs no claim and no cleanup.
    pub ours: bool,
    /// Whether this target claims the member's namespace: if several targets share a member, only the first does.
    pub claims: bool,
}

/// The members of a target.
pub(crate) type Members = Arc<Vec<Member>>;

/// Finds the index of the member that a collection is on; `None` if it is on the target's own server.
pub(crate) type Place = fn(&[Member], &Collection) -> Option<Result<usize>>;

/// What a target supports with its members: clients share a thread only if none of their connections blocks it.
pub(crate) fn capabilities(own: &dyn Driver, members: &[Member]) -> Capabilities {
    let mut all = own.capabilities();
    for member in members {
        if let refusal @ Support::No(_) = member.driver.capabilities().shared_threads {
            all.shared_threads = refusal;
        }
    }
    all
}

/// Whether all connections of a session can compress: to the target, and to members in other processes.
pub(crate) fn supports_compression(
    own: &dyn Driver,
    members: &[Member],
    compression: Compression,
) -> Support {
    let elsewhere = members.iter().map(|member| &*member.driver);
    let elsewhere = elsewhere.filter(|driver| driver.endpoint() != Endpoint::InProcess);
    let all = [own].into_iter().chain(elsewhere);
    Support::unless(all.map(|driver| driver.supports_compression(compression)).find_map(|support| {
        match support {
            Support::No(why) => Some(why),
            Support::Native => None,
        }
    }))
}

/// The servers with limited memory of a target and its members that may have other users.
pub(crate) fn limited_servers(
    own: &dyn Driver,
    members: &[Member],
    options: &ConnectOptions,
) -> Result<Vec<LimitedServer>> {
    let mut all = own.limited_servers(options)?;
    for member in members.iter().filter(|member| !member.ours) {
        let found = member.driver.limited_servers(options).map_err(|error| error.context(member.role))?;
        all.extend(found.into_iter().map(|found| LimitedServer { role: member.role, ..found }));
    }
    Ok(all)
}

/// Adds the engines and settings of members to a target's facts. `kind` precedes their names; `about` says what they
/// are to the target, as in "the cache in front of it".
pub(crate) fn add_facts(facts: &mut ServerFacts, members: &[Member], kind: &str, about: &str) {
    for member in members {
        let of = &member.facts;
        let settings: Vec<String> =
            of.settings.iter().map(|setting| format!("{} = {}", setting.name, setting.value)).collect();
        let value = format!("{} {} ({})", of.engine, of.version, settings.join("; "));
        facts.settings.push(Setting::new(format!("{kind} {}", member.name), value));
        let note = format!("{about} is {} {}", of.engine, of.version);
        if !facts.notes.contains(&note) {
            facts.notes.push(note);
        }
    }
}
