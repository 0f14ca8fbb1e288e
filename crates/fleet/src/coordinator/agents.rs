//! The agents of a run, from joining to leaving.

use super::clocks;
use super::find::{Found, Wanted, find};
use super::member::Member;
use super::shared::{Shared, lost};
use super::trial::TrialOfAgents;
use crate::message::ToAgent;
use crate::place::{named, network};
use kurabe_core::fleet::{AgentRecord, OnLostAgent};
use kurabe_core::observation::Endpoint;
use kurabe_core::secret::Secret;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::fleet::{Fleet, Order, Started};
use kurabe_engine::trial::Failure;
use kurabe_observe::boot;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time limit of joining. A login may be slow.
const JOIN: Duration = Duration::from_secs(20);

/// Where agents find a server.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// Its URL, without a password.
    pub(super) url: String,
    /// The password of a throwaway server.
    pub(super) password: Option<Secret>,
}

/// A server of a run.
#[derive(Clone, Debug)]
pub struct ReachedServer {
    /// The URL by which it is reached.
    pub url: TargetUrl,
    /// Whether the run started it, and removes it with its data.
    pub is_throwaway: bool,
}

impl ReachedServer {
    /// What is sent to agents.
    fn address(&self) -> Address {
        let password = self.url.password.clone().filter(|_| self.is_throwaway);
        Address { url: self.url.to_string(), password }
    }
}

/// The agents of a run. They leave it when this is dropped.
pub struct Agents {
    pub(super) shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Each target's server, and its second instance.
    addresses: Vec<(Address, Option<Address>)>,
    /// Whether the run goes on without lost agents.
    on_lost: OnLostAgent,
}

impl Agents {
    /// Finds agents and has them join a run.
    ///
    /// # Errors
    /// If there are too few, or one of them cannot be used; with the reasons.
    pub fn join(wanted: &Wanted, run: &str) -> Result<Self> {
        let Found { members, events } = find(wanted)?;
        let shared = Arc::new(Shared::new(members));
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name("fleet".to_owned()).spawn(move || own.look_after(&events));
        let thread = thread.map_err(|why| Error::no_thread("the fleet", why))?;
        let agents = Self { shared, thread: Some(thread), addresses: Vec::new(), on_lost: wanted.on_lost };
        for member in &mut agents.shared.lock().members {
            member.send(ToAgent::Join { run: named(run) });
        }
        let joined = agents.shared.wait(Instant::now() + JOIN, |state| {
            let lost =
                state.members.iter().find_map(|member| Some((member.name.clone(), member.lost.clone()?)));
            let all = state.members.iter().all(|member| member.about.is_some());
            lost.map(Err).or_else(|| all.then_some(Ok(())))
        });
        match joined {
            Some(Ok(())) => Ok(agents),
            Some(Err((name, why))) => Err(lost(&name, &why)),
            None => {
                let silent = agents
                    .shared
                    .lock()
                    .members
                    .iter()
                    .find(|member| member.about.is_none())
                    .map(|m| m.name.clone());
                Err(lost(&silent.unwrap_or_default(), "it did not join in time"))
            }
        }
    }

    /// Tells the agents of each target's server, and of its second instance, in the order of the run. Passwords are left
    /// out, except those of throwaway servers.
    pub fn reach(&mut self, targets: &[(ReachedServer, Option<ReachedServer>)]) {
        let addresses = |(first, second): &(ReachedServer, Option<ReachedServer>)| {
            (first.address(), second.as_ref().map(ReachedServer::address))
        };
        self.addresses = targets.iter().map(addresses).collect();
    }

    /// Why the agents cannot measure a target, as a clause; `None` if they may.
    pub fn refusal(&self, url: &TargetUrl, endpoint: &Endpoint) -> Option<String> {
        if let Some(option) = url.options.keys().find(|option| option.contains("password")) {
            return Some(format!(
                "passwords are not sent to agents, and the URL has one in the option {option}; leave it out, and give it to each agent"
            ));
        }
        if let Some(file) = kurabe_drivers::registry::named_file(url) {
            return Some(format!(
                "agents read no files that a URL names, such as {file}; leave it out: tls=verify trusts the authorities of each \
                 machine, and of the file that SSL_CERT_FILE names there"
            ));
        }
        let is_tcp = matches!(endpoint, Endpoint::Tcp { .. });
        if !is_tcp || !endpoint.is_here() {
            return None;
        }
        let state = self.shared.lock();
        let is_here = |member: &&Member| {
            member
                .about
                .as_ref()
                .is_some_and(|about| about.boot == boot().unwrap_or_default() && about.network == network())
        };
        let far = state.loaders().find(|member| !is_here(member))?;
        Some(format!(
            "the server is reached by the coordinator's loopback interface, and agent {} is elsewhere; use an address that all agents reach",
            far.name
        ))
    }

    /// The agents that run clients, for the run file.
    pub fn records(&self) -> Vec<AgentRecord> {
        let state = self.shared.lock();
        let record = |member: &Member| {
            let about = member.about.as_ref()?;
            Some(AgentRecord { name: member.name.clone(), ..about.agent.clone() })
        };
        state.loaders().filter_map(record).collect()
    }

    /// The server on which an order's cell is measured.
    fn address(&self, order: &Order) -> Result<Address> {
        let found = self.addresses.get(order.cell.target).and_then(|(first, second)| {
            if order.cell.second_instance { second.clone() } else { Some(first.clone()) }
        });
        found.ok_or_else(|| Error::new(ErrorKind::Internal, "the fleet does not know the target's address"))
    }
}

/// Lists the first few of many.
fn some_of(all: &[String]) -> String {
    const SHOWN: usize = 8;
    let rest = all.len().saturating_sub(SHOWN);
    let shown = all.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if rest == 0 { shown } else { format!("{shown} and {rest} more") }
}

impl Fleet for Agents {
    fn begin(&self, order: &Order, cancel: &AtomicBool) -> Result<Box<dyn Started + '_>, Failure> {
        let agents: Vec<usize> = {
            let state = self.shared.lock();
            let all = state.members.iter().enumerate().filter(|(_, member)| member.runs_clients());
            all.map(|(agent, _)| agent).take(order.clients as usize).collect()
        };
        clocks::compare(&self.shared, &agents, cancel);
        let mut trial = TrialOfAgents::new(&self.shared, agents);
        trial.prepare(order, &self.address(order)?, cancel)?;
        Ok(Box::new(trial))
    }

    fn go_on_without_lost(&self) -> Option<String> {
        if self.on_lost == OnLostAgent::Fail {
            return None;
        }
        let mut state = self.shared.lock();
        let remaining: Vec<String> = state
            .loaders()
            .filter(|member| member.lost.is_none())
            .map(|member| member.name.clone())
            .collect();
        if remaining.is_empty() {
            return None;
        }
        let mut reasons = Vec::new();
        for member in state.members.iter_mut().filter(|member| member.runs_clients()) {
            if let Some(why) = member.lost.clone() {
                member.left_out = true;
                reasons.push(format!("agent {}: {why}", member.name));
            }
        }
        let on = format!("the run goes on with {}", some_of(&remaining));
        (!reasons.is_empty()).then(|| format!("{}; {on}", some_of(&reasons)))
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        for member in &mut self.shared.lock().members {
            if member.lost.is_none() {
                member.send(ToAgent::Leave);
            }
        }
        self.shared.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
