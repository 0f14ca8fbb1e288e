//! One trial under watch, from the opening of the gate to the end of the last client.

use crate::find::listeners;
use crate::group::CpuLimit;
use crate::host;
use crate::process::{Counters, Pid, family};
use crate::sampler::{Sampler, Seen};
use crate::wire::Wire;
use kurabe_core::observation::{Endpoint, Observation, Observer, ProcessUse, ServerUse, Watch};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Looks at this machine.
#[derive(Debug, Default)]
pub struct Watcher {
    /// The processes that listen at an endpoint, once they were found: looking for them takes milliseconds.
    known: Arc<Mutex<HashMap<String, Vec<Pid>>>>,
    /// Servers that are reached through something else.
    behind: Vec<(Endpoint, Endpoint)>,
}

impl Watcher {
    /// Looks at this machine.
    pub fn new() -> Self {
        Self::default()
    }

    /// Clients that connect to `given` reach, through a relay, the server that listens at `real`: that one is looked at.
    pub fn behind(&mut self, given: Endpoint, real: Endpoint) {
        self.behind.push((given, real));
    }

    fn roots(&self, endpoint: &Endpoint) -> Result<Vec<Pid>, String> {
        let key = format!("{endpoint:?}");
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(roots) = known.get(&key)
            && roots.iter().all(|pid| pid.lives())
        {
            return Ok(roots.clone());
        }
        let found = listeners(endpoint)?;
        known.insert(key, found.clone());
        Ok(found)
    }
}

impl Observer for Watcher {
    fn begin(&self, endpoint: &Endpoint) -> Box<dyn Watch> {
        let real = self.behind.iter().find(|(given, _)| given == endpoint).map_or(endpoint, |(_, real)| real);
        let own: Vec<Pid> = Pid::of(std::process::id()).into_iter().collect();
        let roots = if *real == Endpoint::InProcess { Ok(None) } else { self.roots(real).map(Some) };
        let server = roots.map(|roots| roots.map(|roots| Group::now(roots, true)));
        let wire = Wire::new(endpoint, real);
        let looked_at = match &server {
            Ok(Some(server)) => server.members.clone(),
            Ok(None) => own.clone(),
            Err(_) => Vec::new(),
        };
        let sampler = Sampler::start(&looked_at, matches!(server, Ok(Some(_))), wire);
        let (client, host) = (Group::now(own, false), host::Counters::now());
        Box::new(Trial { server, client, host, sampler, began: Instant::now() })
    }
}

/// Processes that are looked at together, with their counters at the beginning.
struct Group {
    roots: Vec<Pid>,
    /// The roots alone, or all that descend from them.
    whole: bool,
    members: Vec<Pid>,
    before: Counters,
    limit: Option<CpuLimit>,
    throttled_ns: Option<u64>,
}

impl Group {
    fn now(roots: Vec<Pid>, whole: bool) -> Self {
        let members = if whole { family(&roots) } else { roots.clone() };
        let limit = roots.first().and_then(|root| CpuLimit::of(root.number));
        let throttled_ns = limit.as_ref().and_then(CpuLimit::throttled_ns);
        let before = Counters::of(&members, roots.first().copied());
        Self { roots, whole, members, before, limit, throttled_ns }
    }

    fn end(&self) -> ProcessUse {
        let members = if self.whole { family(&self.roots) } else { self.roots.clone() };
        let now = Counters::of(&members, self.roots.first().copied());
        let throttled = self.limit.as_ref().and_then(CpuLimit::throttled_ns);
        ProcessUse {
            quota_cpus: self.limit.as_ref().map(|limit| limit.cpus),
            throttled_ns: throttled.zip(self.throttled_ns).map(|(now, then)| now.saturating_sub(then)),
            ..now.since(&self.before)
        }
    }
}

struct Trial {
    /// None where the database is in the client.
    server: Result<Option<Group>, String>,
    client: Group,
    host: host::Counters,
    sampler: Option<Sampler>,
    began: Instant,
}

impl Watch for Trial {
    fn end(self: Box<Self>) -> Observation {
        let wall_ns = self.began.elapsed().as_nanos() as u64;
        let mut client = self.client.end();
        let host = host::Counters::now().since(&self.host);
        let seen = self.sampler.map(Sampler::end).unwrap_or_default();
        let (disk_wait, stopped) = shares(&seen);
        let server = match &self.server {
            Ok(None) => {
                (client.disk_wait, client.stopped) = (disk_wait, stopped);
                ServerUse::InClient
            }
            Ok(Some(group)) => ServerUse::Seen(Box::new(ProcessUse { disk_wait, stopped, ..group.end() })),
            Err(why) => ServerUse::NotObserved(why.clone()),
        };
        let wire = seen.wire.and_then(Wire::end);
        Observation {
            wall_ns,
            client,
            server,
            host,
            wire,
            waits: None,
            samples: seen.samples,
            samples_taken: seen.taken,
            cost_ns: seen.cost_ns,
        }
    }
}

fn shares(seen: &Seen) -> (Option<f64>, Option<f64>) {
    let share = |count: u64| (seen.taken > 0).then(|| count as f64 / seen.taken as f64);
    (share(seen.disk), share(seen.stopped))
}
