//! The observation of one trial, from the opening of the gate to the end of the last client.

use crate::find::listeners;
use crate::group::CpuLimit;
use crate::host;
use crate::memory;
use crate::process::{Counters, Pid, process_tree};
use crate::remote::{Remote, RemoteMonitor, RemoteSample};
use crate::sampler::{SampleSeries, Sampler};
use crate::tiers;
use crate::wire::Wire;
use kurabe_core::observation::{
    Endpoint, Member, MemoryUsage, MonitorGuard, Observation, Observer, ProcessUse, Sample, ServerUse,
    TierUse, WireUse,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Observes this machine.
#[derive(Debug, Default)]
pub struct Monitor {
    /// The processes that listen at an endpoint, cached because finding them takes milliseconds.
    known: Arc<Mutex<HashMap<String, Vec<Pid>>>>,
    /// Servers that are reached through a relay.
    behind: Vec<(Endpoint, Endpoint)>,
    /// Servers that an agent on their own host observes.
    elsewhere: Vec<(Endpoint, Remote)>,
    /// Whether servers are not observed.
    clients_only: bool,
}

impl Monitor {
    /// Observes this machine.
    pub fn new() -> Self {
        Self::default()
    }

    /// Observes the clients of this process and their machine, but no server: another process does that.
    pub fn of_clients() -> Self {
        Self { clients_only: true, ..Self::default() }
    }

    /// Clients that connect to `given` reach, through a relay, the server that listens at `real`: that server is
    /// observed.
    pub fn behind(&mut self, given: Endpoint, real: Endpoint) {
        self.behind.push((given, real));
    }

    /// An agent on the server's own host observes the server at this endpoint.
    pub fn use_agent(&mut self, server: Endpoint, observer: Remote) {
        self.elsewhere.push((server, observer));
    }

    /// The endpoint at which a server really listens that is reached through a relay.
    fn real(&self, endpoint: &Endpoint) -> Endpoint {
        match self.behind.iter().find(|(given, _)| given == endpoint) {
            Some((_, real)) => real.clone(),
            None => match endpoint {
                Endpoint::Composite(members) => {
                    let real = |one: &Member| Member { endpoint: self.real(&one.endpoint), tier: one.tier };
                    Endpoint::Composite(members.iter().map(real).collect())
                }
                other => other.clone(),
            },
        }
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

impl Observer for Monitor {
    fn begin(&self, endpoint: &Endpoint, probe_port: Option<u16>) -> Box<dyn MonitorGuard> {
        let real = &self.real(endpoint);
        // First, so that the CPU time of the request is not counted here.
        let far = self.elsewhere.iter().find(|(server, _)| server == endpoint).map(|(_, observer)| {
            let Endpoint::Tcp { host, port } = real else {
                return Err("an agent can observe only servers that are reached by TCP".to_owned());
            };
            observer.begin(host, *port).map(|guard| (observer.name().to_owned(), guard))
        });
        let own: Vec<Pid> = Pid::of(std::process::id()).into_iter().collect();
        let roots = match (real, &far) {
            (Endpoint::InProcess, _) => Ok(None),
            _ if self.clients_only => Err("another process observes it".to_owned()),
            (_, Some(far)) => Err(far.as_ref().err().cloned().unwrap_or_default()),
            _ => self.roots(real).map(Some),
        };
        let server = roots.map(|roots| roots.map(|roots| Group::now(roots, true)));
        let wire = Wire::new(tiers::front(endpoint), tiers::front(real), probe_port);
        let tiers = tiers::of(real)
            .into_iter()
            .filter(|_| !self.clients_only)
            .map(|(name, place)| (name, self.roots(&place).map(|roots| Group::now(roots, true))))
            .collect();
        let observed = match &server {
            Ok(Some(server)) => server.members.clone(),
            Ok(None) => own.clone(),
            Err(_) => Vec::new(),
        };
        let sampler = Sampler::start(&observed, matches!(server, Ok(Some(_))), wire);
        let (client, host) = (Group::now(own, false), host::Counters::now());
        let far = far.and_then(Result::ok);
        Box::new(Trial { server, far, tiers, client, host, sampler, began: Instant::now() })
    }

    fn memory_usage(&self, endpoint: &Endpoint) -> Result<MemoryUsage, String> {
        let real = &self.real(endpoint);
        if *real == Endpoint::InProcess {
            return memory::of(Pid::of(std::process::id()).as_slice());
        }
        memory::of(&process_tree(&self.roots(real)?))
    }
}

/// Processes that are observed together, with their counters at the beginning.
struct Group {
    roots: Vec<Pid>,
    /// The roots alone, or with all descendants.
    whole: bool,
    members: Vec<Pid>,
    before: Counters,
    limit: Option<CpuLimit>,
    throttled_ns: Option<u64>,
}

impl Group {
    fn now(roots: Vec<Pid>, whole: bool) -> Self {
        let (members, before) = counted(&roots, whole);
        let limit = roots.first().and_then(|root| CpuLimit::of(root.number));
        let throttled_ns = limit.as_ref().and_then(CpuLimit::throttled_ns);
        Self { roots, whole, members, before, limit, throttled_ns }
    }

    fn end(&self) -> ProcessUse {
        let (_, now) = counted(&self.roots, self.whole);
        let throttled = self.limit.as_ref().and_then(CpuLimit::throttled_ns);
        ProcessUse {
            quota_cpus: self.limit.as_ref().map(|limit| limit.cpus),
            throttled_ns: throttled.zip(self.throttled_ns).map(|(now, then)| now.saturating_sub(then)),
            ..now.since(&self.before)
        }
    }
}

/// The processes of a group, and their counters now.
fn counted(roots: &[Pid], whole: bool) -> (Vec<Pid>, Counters) {
    let members = if whole { process_tree(roots) } else { roots.to_vec() };
    let counters = Counters::of(&members, roots.first().copied(), whole);
    (members, counters)
}

struct Trial {
    /// `None` if the database runs in the client.
    server: Result<Option<Group>, String>,
    /// If an agent observes the server: its command, and its observation.
    far: Option<(String, RemoteMonitor)>,
    /// The server's tiers, each separately.
    tiers: Vec<(String, Result<Group, String>)>,
    client: Group,
    host: host::Counters,
    sampler: Option<Sampler>,
    began: Instant,
}

impl MonitorGuard for Trial {
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
        let tier = |(name, group): (String, Result<Group, String>)| TierUse {
            name,
            used: group.map_or_else(ServerUse::NotObserved, |group| ServerUse::Seen(Box::new(group.end()))),
        };
        let tiers = self.tiers.into_iter().map(tier).collect();
        let wire = seen.wire.and_then(Wire::end);
        let observation = Observation {
            wall_ns,
            client,
            server,
            tiers,
            host,
            wire,
            samples: seen.samples,
            samples_taken: seen.taken,
            cost_ns: seen.cost_ns,
            ..Observation::default()
        };
        match self.far {
            None => observation,
            Some((command, guard)) => {
                let here = guard.here;
                match guard.end() {
                    Ok(remote) => joined(observation, remote, here),
                    Err(why) => Observation {
                        server: ServerUse::NotObserved(format!("the agent of '{command}': {why}")),
                        ..observation
                    },
                }
            }
        }
    }
}

/// Combines the observations of both hosts; `here` if both are the same host.
fn joined(seen: Observation, far: RemoteSample, here: bool) -> Observation {
    let far_at = |ms: u64| far.samples.iter().rev().find(|sample| sample.at_ms <= ms);
    // The samples of each host are relative to its own begin, because their clocks may differ.
    let samples = seen.samples.iter().map(|sample| Sample {
        server_cpu: far_at(sample.at_ms).and_then(|s| s.server_cpu),
        disk_waits: far_at(sample.at_ms).map_or(0, |s| s.disk_waits),
        disk_busy: far_at(sample.at_ms).and_then(|s| s.disk_busy),
        ..*sample
    });
    let wire = seen.wire.map(|wire| match wire.classified {
        0 => WireUse { classified: far.classified, at_server: far.at_server, ..wire },
        _ => wire,
    });
    Observation {
        samples: samples.collect(),
        wire,
        server: ServerUse::Seen(Box::new(far.server)),
        server_host: (!here).then_some(far.host),
        ..seen
    }
}

fn shares(seen: &SampleSeries) -> (Option<f64>, Option<f64>) {
    let share = |count: u64| (seen.taken > 0).then(|| count as f64 / seen.taken as f64);
    (share(seen.disk), share(seen.stopped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::observation::{CpuUse, HostUse};

    fn sample(at_ms: u64, server_cpu: Option<f64>) -> Sample {
        Sample { at_ms, server_cpu, client_cpu: 0.5, ..Sample::default() }
    }

    #[test]
    fn observations_of_two_hosts_are_combined() {
        let host =
            |busy_ns| HostUse { cpus: vec![CpuUse { cpu: 0, busy_ns, steal_ns: 0 }], ..HostUse::default() };
        let seen = Observation {
            host: host(5),
            wire: Some(WireUse { sent_bytes: 7, ..WireUse::default() }),
            samples: vec![sample(10, None), sample(40, None)],
            ..Observation::default()
        };
        let remote = || RemoteSample {
            server: ProcessUse { name: "far".to_owned(), cpu_ns: 9, ..ProcessUse::default() },
            host: host(6),
            samples: vec![sample(12, Some(0.25)), sample(30, Some(0.75))],
            classified: 4,
            at_server: 3,
        };
        let far = joined(seen.clone(), remote(), false);
        assert_eq!(far.server_seen().map(|server| server.cpu_ns), Some(9));
        assert_eq!((far.host.clone(), far.server_host.clone()), (host(5), Some(host(6))));
        let server_cpu: Vec<_> = far.samples.iter().map(|sample| sample.server_cpu).collect();
        assert_eq!(server_cpu, [None, Some(0.75)]);
        assert_eq!(far.wire.map(|wire| (wire.sent_bytes, wire.classified, wire.at_server)), Some((7, 4, 3)));
        // One machine in two network namespaces is observed once.
        assert_eq!(joined(seen, remote(), true).server_host, None);
    }
}
