//! The facts for attribution: the counters of one trial as rates and shares.

use kurabe_core::metric::QUEUE;
use kurabe_core::observation::{Observation, ProcessUse, ServerUse, TierUse};
use kurabe_core::run::{Measurement, OpenLoop};
use kurabe_core::sort;
use kurabe_core::stats_probe::{EngineWaits, WaitState};

/// A control group that was throttled for this share of the time has exhausted its limit, …
const THROTTLED: f64 = 0.2;
/// … if it used this share of it (the limit is enforced per period).
const USED: f64 = 0.7;

/// Rates and shares of one trial. CPU usage is in processors: 0.5 is half of one for the whole time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Facts {
    pub seconds: f64,
    /// The number of clients. Each waits for one reply at a time.
    pub clients: f64,
    /// The number of threads that serve them.
    pub threads: f64,
    /// Clients of a shared thread whose answer had arrived and that waited for their turn.
    pub turn: f64,
    /// Whether a given rate was served and the load generator was on time; `None` in a closed loop.
    pub kept_rate: Option<bool>,
    /// The time of a transaction in microseconds; in a closed loop, including the client's part.
    pub round_trip_us: f64,
    pub client: Side,
    /// `None` if the database is embedded or was not observed.
    pub server: Option<Side>,
    /// The CPU usage of each tier, if the server has several.
    pub tiers: Vec<(String, Option<f64>)>,
    /// Whether the database is embedded in the client.
    pub in_process: bool,
    /// Why the server was not observed.
    pub unseen: Option<String>,
    /// The share of time in which the processors available to client or server were busy.
    pub cores_busy: f64,
    /// The number of these processors.
    pub cores: f64,
    /// Whether client and server may run on the same processors.
    pub shared: bool,
    /// CPU usage of other processes, in processors.
    pub others: f64,
    /// The number of the machine's processors.
    pub machine: f64,
    pub steal: f64,
    pub disk: Disk,
    pub wire: Option<Wire>,
    /// The highest utilisation of any network interface.
    pub interface: f64,
    /// Wait states of the clients' sessions, as reported by the server.
    pub reported: Option<Reported>,
    /// The share of the client's CPU time that is the tool's own overhead; only known for embedded databases.
    pub own_share: Option<f64>,
    /// The agent that was nearest to its limit, if clients were divided among agents.
    pub agent: Option<AgentFacts>,
    /// The time in nanoseconds by which agents started too far apart for the trial; `None`: they did not.
    pub apart_ns: Option<u64>,
}

/// One of the agents that ran the clients.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentFacts {
    pub name: String,
    pub side: Side,
    /// The share of time that one of its clients' threads was running: their mean.
    pub thread: f64,
}

impl AgentFacts {
    /// The agent that was nearest to its limit.
    fn fullest(measured: &Measurement) -> Option<Self> {
        let agents = measured.fleet.iter().flat_map(|fleet| &fleet.agents);
        let facts = agents.filter_map(|agent| {
            let side = side(agent.client.as_ref()?, (agent.wall_ns as f64).max(1.0));
            let busiest = if side.thread > 0.0 { side.thread } else { 1.0 };
            let thread = (side.cpu / (agent.threads as f64).max(1.0)).min(busiest);
            Some(Self { name: agent.name.clone(), side, thread })
        });
        let fullness = |agent: &Self| agent.side.utilisation().max(agent.thread);
        facts.max_by(|a, b| fullness(a).total_cmp(&fullness(b)))
    }
}

/// Client or server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Side {
    pub cpu: f64,
    /// Threads that were runnable and waited for a processor.
    pub queue: f64,
    /// Available processors, or the limit of its control group.
    pub capacity: f64,
    /// Its busiest thread.
    pub thread: f64,
    /// How long that thread was runnable and waited for a processor.
    pub thread_queue: f64,
    /// The limit of its control group.
    pub quota: Option<f64>,
    /// The share of time in which its control group was throttled.
    pub throttled: f64,
    /// The share of samples with a stopped thread.
    pub stopped: f64,
}

impl Side {
    /// The utilisation of its limit, or of the processors that it may use, by this side alone. They may be fewer than
    /// the machine has, and the other side may use them too.
    pub fn utilisation(&self) -> f64 {
        let used = self.cpu / self.capacity;
        match self.quota {
            Some(_) if self.throttled >= THROTTLED && used >= USED => used.clamp(0.97, 1.0),
            _ => used.min(1.0),
        }
    }
}

/// Waits for storage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Disk {
    pub samples: u64,
    /// The share of samples in which a thread of the database waited for storage.
    pub waiting: f64,
    /// The share of time in which the busiest disk had requests.
    pub busy: f64,
    /// Whether the database accessed storage; `None` if unknown.
    pub touched: Option<bool>,
}

/// The connections.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Wire {
    pub rtt_us: f64,
    /// Samples in which it was clear whether client or server had to act next.
    pub classified: u64,
    /// The share of these in which it was the server.
    pub at_server: f64,
}

/// Wait states of the clients' sessions, as reported by the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reported {
    /// The number of sessions over all samples.
    pub samples: u64,
    /// The share of these that waited for a lock, …
    pub locks: f64,
    /// … and for a write or sync of the log.
    pub logs: f64,
    /// The most frequent wait for a lock: the event and the statement.
    pub lock: Option<String>,
    /// The most frequent other wait, and its share.
    pub other: Option<(String, f64)>,
}

impl Reported {
    /// `None` without samples, or if the server does not report whether its active sessions wait.
    fn of(waits: &EngineWaits) -> Option<Self> {
        if waits.groups.iter().any(|group| group.wait_state == WaitState::Active) {
            return None;
        }
        // Older runs do not count idle sessions.
        let samples = waits.sessions.max(waits.active);
        let share = |count: u64| count as f64 / samples as f64;
        let named = |wanted: fn(WaitState) -> bool| {
            waits.groups.iter().find(|group| wanted(group.wait_state) && !group.event.is_empty())
        };
        let lock = named(|wait_state| wait_state == WaitState::Lock).map(|group| {
            let mut statement: String = group.statement.chars().take(60).collect();
            if statement.len() < group.statement.len() {
                statement.push('…');
            }
            let at = if statement.is_empty() { String::new() } else { format!(", at “{statement}”") };
            format!("{}{at}", group.event)
        });
        let other =
            named(|wait_state| matches!(wait_state, WaitState::Log | WaitState::File | WaitState::Other));
        (samples > 0).then(|| Self {
            samples,
            locks: share(waits.locks),
            logs: share(waits.logs),
            lock,
            other: other.map(|group| (group.event.clone(), share(group.seen))),
        })
    }
}

impl Facts {
    /// The facts of a trial. `own_ns_per_op` is the tool's own overhead per operation.
    pub fn of(observed: &Observation, measured: &Measurement, own_ns_per_op: Option<f64>) -> Self {
        let wall = (observed.wall_ns as f64).max(1.0);
        let clients = (measured.clients as f64).max(1.0);
        let completed = (measured.completed as f64).max(1.0);
        let threads = if measured.threads == 0 { clients } else { measured.threads as f64 };
        let turn = measured.metrics.iter().find(|metric| metric.name == QUEUE.name);
        let turn = turn.map_or(0.0, |metric| metric.value * completed / wall);
        let client = side(&observed.client, wall);
        let seen = observed.server_seen();
        let server = seen.map(|seen| side(seen, wall));
        let in_process = observed.server == ServerUse::InClient;
        let database = if in_process { Some(&observed.client) } else { seen };
        let server_cores = seen.into_iter().flat_map(|seen| &seen.cpus);
        let cores: Vec<u32> = sort::distinct(observed.client.cpus.iter().chain(server_cores).copied());
        // Processor numbers of different machines are unrelated.
        let apart = observed.server_host.as_ref();
        let shared = apart.is_none()
            && seen.is_some_and(|seen| seen.cpus.iter().any(|cpu| observed.client.cpus.contains(cpu)));
        let busy = observed.host.cpus.iter().filter(|cpu| cores.contains(&cpu.cpu));
        // A share of the time without steal.
        let (busy, given): (f64, f64) = busy.fold((0.0, 0.0), |(busy, given), cpu| {
            (busy + cpu.busy_ns as f64, given + (wall - cpu.steal_ns as f64).max(1.0))
        });
        // Processors of two machines are not a shared resource.
        let cores_busy = if given > 0.0 && apart.is_none() { (busy / given).min(1.0) } else { 0.0 };
        let own = (observed.others_cpu_ns() as f64 / wall, observed.host.cpus.len() as f64);
        let theirs = apart.zip(seen).map(|(host, server)| {
            (host.busy_ns().saturating_sub(server.cpu_ns) as f64 / wall, host.cpus.len() as f64)
        });
        let share = |(others, machine): &(f64, f64)| others / machine.max(1.0);
        // The machine with more other load.
        let (others, machine) = theirs.filter(|theirs| share(theirs) > share(&own)).unwrap_or(own);
        // The kernel counts the machine's time in steps of 10 ms, which may be longer than the trial.
        let others = others.min(machine);
        let mean_service = measured.service.mean().filter(|_| measured.open.is_some()).map(|ns| ns / 1e3);
        let disks = apart.unwrap_or(&observed.host).disks.iter();
        let interfaces = [&observed.host].into_iter().chain(apart).flat_map(|host| &host.interfaces);
        let utilisations = interfaces.filter_map(|one| {
            Some(one.received_bytes.max(one.sent_bytes) as f64 * 8e9 / wall / one.speed? as f64)
        });
        Self {
            seconds: wall / 1e9,
            clients,
            threads,
            turn,
            kept_rate: measured.open.as_ref().map(|open| measured.kept_up() && in_time(open)),
            round_trip_us: mean_service.unwrap_or(clients * wall / completed / 1e3),
            client,
            server,
            tiers: tiers(observed, wall),
            in_process,
            unseen: match &observed.server {
                ServerUse::NotObserved(why) => Some(why.clone()),
                ServerUse::InClient | ServerUse::Seen(_) => None,
            },
            cores_busy,
            cores: cores.len() as f64,
            shared,
            others,
            machine,
            steal: observed.steal(),
            disk: Disk {
                samples: observed.samples_taken,
                waiting: database.and_then(|database| database.disk_wait).unwrap_or(0.0),
                busy: disks.map(|disk| disk.busy_ns as f64 / wall).fold(0.0, f64::max).min(1.0),
                touched: database.and_then(|d| Some(d.read_bytes? + d.written_bytes? > 0)),
            },
            wire: observed.wire.map(|wire| Wire {
                rtt_us: wire.rtt_us,
                classified: wire.classified,
                at_server: wire.at_server as f64 / (wire.classified as f64).max(1.0),
            }),
            interface: utilisations.fold(0.0, f64::max),
            reported: observed.waits.as_ref().and_then(Reported::of),
            own_share: own_ns_per_op
                .filter(|_| in_process && observed.client.cpu_ns > 0)
                .map(|own| (own * completed / observed.client.cpu_ns as f64).min(1.0)),
            agent: AgentFacts::fullest(measured),
            apart_ns: apart_ns(measured),
        }
    }

    /// Whether a given rate was served.
    pub fn served(&self) -> bool {
        self.kept_rate == Some(true)
    }

    /// The share of time that a client's thread was running: their mean. The client has other threads, such as that of the
    /// stats probe, so that it is at most the share of its busiest thread.
    pub fn client_thread(&self) -> f64 {
        let busiest = if self.client.thread > 0.0 { self.client.thread } else { 1.0 };
        (self.client.cpu / self.threads).min(busiest)
    }

    /// The share of time that a client's thread was runnable and waited for a processor: their mean.
    pub fn client_thread_queue(&self) -> f64 {
        (self.client.queue / self.threads).min(1.0 - self.client_thread())
    }

    /// The part of the clients' time that is neither CPU time of either side nor waiting for a processor or a turn.
    pub fn idle(&self) -> f64 {
        let used = |side: &Side| side.cpu + side.queue;
        let server = self.server.as_ref().map_or(0.0, used);
        (1.0 - (used(&self.client) + self.turn + server) / self.clients).clamp(0.0, 1.0)
    }

    /// The mean of several trials' facts, for the evidence; other values are the first trial's.
    pub fn mean(all: &[&Self]) -> Option<Self> {
        let first = (*all.first()?).clone();
        let of =
            |get: &dyn Fn(&Self) -> f64| all.iter().map(|facts| get(facts)).sum::<f64>() / all.len() as f64;
        let side = |get: &dyn Fn(&Self) -> Option<Side>, base: Side| {
            let number = |field: &dyn Fn(Side) -> f64| of(&|facts| get(facts).map_or(0.0, field));
            Side {
                cpu: number(&|side| side.cpu),
                queue: number(&|side| side.queue),
                thread: number(&|side| side.thread),
                thread_queue: number(&|side| side.thread_queue),
                throttled: number(&|side| side.throttled),
                stopped: number(&|side| side.stopped),
                ..base
            }
        };
        Some(Self {
            round_trip_us: of(&|facts| facts.round_trip_us),
            turn: of(&|facts| facts.turn),
            client: side(&|facts| Some(facts.client), first.client),
            tiers: mean_of_tiers(all),
            server: first.server.map(|base| side(&|facts| facts.server, base)),
            cores_busy: of(&|facts| facts.cores_busy),
            others: of(&|facts| facts.others),
            steal: of(&|facts| facts.steal),
            disk: Disk {
                samples: all.iter().map(|facts| facts.disk.samples).sum(),
                waiting: of(&|facts| facts.disk.waiting),
                busy: of(&|facts| facts.disk.busy),
                touched: first.disk.touched,
            },
            wire: first.wire.map(|_| Wire {
                rtt_us: of(&|facts| facts.wire.map_or(0.0, |wire| wire.rtt_us)),
                classified: all.iter().filter_map(|facts| facts.wire).map(|wire| wire.classified).sum(),
                at_server: of(&|facts| facts.wire.map_or(0.0, |wire| wire.at_server)),
            }),
            interface: of(&|facts| facts.interface),
            reported: first.reported.clone().map(|reported| Reported {
                samples: all.iter().filter_map(|facts| Some(facts.reported.as_ref()?.samples)).sum(),
                locks: of(&|facts| facts.reported.as_ref().map_or(0.0, |reported| reported.locks)),
                logs: of(&|facts| facts.reported.as_ref().map_or(0.0, |reported| reported.logs)),
                ..reported
            }),
            own_share: first.own_share.map(|_| of(&|facts| facts.own_share.unwrap_or(0.0))),
            ..first
        })
    }
}

/// The CPU usage of each tier, in processors; `None` if it was not observed.
fn tiers(observed: &Observation, wall: f64) -> Vec<(String, Option<f64>)> {
    let cpu = |tier: &TierUse| match &tier.used {
        ServerUse::Seen(seen) => Some(seen.cpu_ns as f64 / wall),
        ServerUse::InClient | ServerUse::NotObserved(_) => None,
    };
    observed.tiers.iter().map(|tier| (tier.name.clone(), cpu(tier))).collect()
}

/// The means over several trials.
fn mean_of_tiers(all: &[&Facts]) -> Vec<(String, Option<f64>)> {
    let first = all.first().map(|facts| facts.tiers.clone()).unwrap_or_default();
    let of = |at: usize| {
        let seen: Option<Vec<f64>> = all.iter().map(|facts| facts.tiers.get(at)?.1).collect();
        seen.map(|seen| seen.iter().sum::<f64>() / seen.len() as f64)
    };
    first.into_iter().enumerate().map(|(at, (name, _))| (name, of(at))).collect()
}

/// The time by which agents started too far apart; `None` if they did not.
pub(super) fn apart_ns(measured: &Measurement) -> Option<u64> {
    let fleet = measured.fleet.as_ref().filter(|fleet| fleet.started_apart(measured.elapsed_ns))?;
    Some(fleet.start_spread_ns)
}

/// Whether the load generator was late by at most a tenth of the response time.
fn in_time(open: &OpenLoop) -> bool {
    let (lag, response) = (open.lag.quantile(0.99), open.response.quantile(0.99));
    lag.zip(response).is_none_or(|(lag, response)| lag <= response / 10)
}

fn side(process: &ProcessUse, wall: f64) -> Side {
    let processors = (process.cpus.len() as f64).max(1.0);
    // Counters are read a moment before and after the clock. Nothing runs for longer than the trial.
    let most = if process.cpus.is_empty() { f64::MAX } else { processors };
    Side {
        cpu: (process.cpu_ns as f64 / wall).min(most),
        queue: process.queue_ns.unwrap_or(0) as f64 / wall,
        capacity: process.quota_cpus.map_or(processors, |quota| quota.min(processors)),
        thread: process.busiest.first().map_or(0.0, |thread| (thread.cpu_ns as f64 / wall).min(1.0)),
        thread_queue: process.busiest.first().map_or(0.0, |thread| (thread.queue_ns as f64 / wall).min(1.0)),
        quota: process.quota_cpus.filter(|quota| *quota < processors),
        throttled: process.throttled_ns.map_or(0.0, |ns| (ns as f64 / wall).min(1.0)),
        stopped: process.stopped.unwrap_or(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::metric::MetricValue;
    use kurabe_core::observation::{CpuUse, DiskUse, HostUse, InterfaceUse, ThreadUse, WireUse};

    const SECOND: u64 = 1_000_000_000;

    fn process(cpu: f64, queue: f64, cpus: &[u32]) -> ProcessUse {
        let ns = |seconds: f64| (seconds * SECOND as f64) as u64;
        ProcessUse {
            cpu_ns: ns(cpu),
            queue_ns: Some(ns(queue)),
            busiest: vec![ThreadUse {
                cpu_ns: ns(cpu / 2.0),
                queue_ns: ns(queue / 4.0),
                ..ThreadUse::default()
            }],
            cpus: cpus.to_vec(),
            ..ProcessUse::default()
        }
    }

    fn processors(busy: &[u64], steal: u64) -> Vec<CpuUse> {
        let of =
            |(cpu, percent): (u32, &u64)| CpuUse { cpu, busy_ns: SECOND / 50 * percent, steal_ns: steal };
        (0..).zip(busy).map(of).collect()
    }

    /// Two seconds of eight clients on four threads, which did 1,000 transactions. Client and server have a processor each of four.
    fn trial() -> (Observation, Measurement) {
        let observed = Observation {
            wall_ns: 2 * SECOND,
            client: process(0.8, 0.4, &[0]),
            server: ServerUse::Seen(Box::new(ProcessUse {
                disk_wait: Some(0.25),
                read_bytes: Some(0),
                written_bytes: Some(1),
                ..process(1.2, 0.2, &[1])
            })),
            host: HostUse {
                cpus: processors(&[50, 70, 10, 30], 0),
                disks: [200, 500].map(|ms| DiskUse { busy_ns: ms * 1_000_000, ..DiskUse::default() }).into(),
                interfaces: vec![InterfaceUse {
                    received_bytes: 1_000_000,
                    sent_bytes: 50_000_000,
                    speed: Some(1_000_000_000),
                    ..InterfaceUse::default()
                }],
                io_stall_ns: None,
            },
            wire: Some(WireUse { rtt_us: 12.0, classified: 80, at_server: 20, ..WireUse::default() }),
            samples_taken: 40,
            ..Observation::default()
        };
        let queue = MetricValue { name: QUEUE.name.to_owned(), unit: QUEUE.unit, value: 400_000.0 };
        let measured = Measurement {
            clients: 8,
            threads: 4,
            completed: 1_000,
            elapsed_ns: 2 * SECOND,
            metrics: vec![queue],
            ..Measurement::default()
        };
        (observed, measured)
    }

    fn close(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() < 1e-6
    }

    fn assert_close(found: &[f64], wanted: &[f64]) {
        assert!(
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| close(*a, *b)),
            "{found:?}, not {wanted:?}"
        );
    }

    #[test]
    fn counters_of_a_trial_become_shares_of_its_time() {
        let (observed, measured) = trial();
        let facts = Facts::of(&observed, &measured, Some(1e6));
        let server = facts.server.unwrap();
        assert_close(
            &[facts.seconds, facts.clients, facts.threads, facts.cores, facts.machine],
            &[2.0, 8.0, 4.0, 2.0, 4.0],
        );
        // 1,000 transactions waited for 0.4 ms each; eight clients did 1,000 in two seconds.
        assert_close(&[facts.turn, facts.round_trip_us], &[0.2, 16_000.0]);
        assert_close(
            &[
                facts.client.cpu, facts.client.queue, facts.client.thread, facts.client.thread_queue,
                facts.client.capacity,
            ],
            &[0.4, 0.2, 0.2, 0.05, 1.0],
        );
        assert_close(
            &[server.cpu, server.queue, server.thread, server.thread_queue],
            &[0.6, 0.1, 0.3, 0.025],
        );
        // Processors 0 and 1 were busy for 50 and 70 %; of all four 1.6, of which client and server used one.
        assert_close(&[facts.cores_busy, facts.others, facts.steal], &[0.6, 0.6, 0.0]);
        assert!(!facts.shared && !facts.in_process && facts.kept_rate.is_none() && facts.unseen.is_none());
        assert_close(&[facts.disk.waiting, facts.disk.busy, facts.interface], &[0.25, 0.25, 0.2]);
        assert_eq!((facts.disk.samples, facts.disk.touched), (40, Some(true)));
        assert_eq!(facts.wire, Some(Wire { rtt_us: 12.0, classified: 80, at_server: 0.25 }));
        assert!(facts.own_share.is_none() && facts.apart_ns.is_none() && facts.agent.is_none());
    }

    #[test]
    fn stolen_time_is_not_given_and_shared_processors_are_known() {
        let (mut observed, measured) = trial();
        observed.host.cpus = processors(&[50, 70, 0, 0], SECOND / 2);
        let facts = Facts::of(&observed, &measured, None);
        // 2.4 of 3 seconds that the hypervisor left them.
        assert_close(&[facts.cores_busy, facts.steal], &[0.8, 0.25]);
        let ServerUse::Seen(server) = &mut observed.server else { unreachable!() };
        server.cpus = vec![1, 0];
        assert!(Facts::of(&observed, &measured, None).shared);
    }

    #[test]
    fn processors_of_the_servers_machine_are_its_own() {
        let (mut observed, measured) = trial();
        let host = |busy: &[u64]| HostUse { cpus: processors(busy, 0), ..HostUse::default() };
        // The server used 1.2 of 2.8 seconds of two processors: others 0.8 of two. Here: 0.6 and 0.8 of four seconds.
        observed.server_host = Some(host(&[80, 60]));
        observed.host = host(&[60, 0]);
        let facts = Facts::of(&observed, &measured, None);
        assert_close(&[facts.others, facts.machine, facts.cores_busy], &[0.8, 2.0, 0.0]);
        assert!(!facts.shared);
        // A quarter of a larger machine is less than two fifths of a smaller one.
        observed.host = host(&[90, 50, 0, 0]);
        let facts = Facts::of(&observed, &measured, None);
        assert_close(&[facts.others, facts.machine], &[0.8, 2.0]);
        observed.host = host(&[100, 60, 20]);
        let facts = Facts::of(&observed, &measured, None);
        assert_close(&[facts.others, facts.machine], &[1.4, 3.0]);
    }

    #[test]
    fn embedded_database_is_the_client_and_its_own_cost_is_a_share_of_the_clients() {
        let (mut observed, measured) = trial();
        observed.server = ServerUse::InClient;
        (observed.client.disk_wait, observed.client.cpu_ns) = (Some(0.5), SECOND);
        let facts = Facts::of(&observed, &measured, Some(250_000.0));
        assert!(facts.in_process && facts.server.is_none() && facts.unseen.is_none());
        assert_close(&[facts.own_share.unwrap(), facts.disk.waiting], &[0.25, 0.5]);
        assert!(close(Facts::of(&observed, &measured, Some(5e6)).own_share.unwrap(), 1.0));
    }

    #[test]
    fn agent_nearest_to_its_limit_is_told() {
        use kurabe_core::fleet::{AgentUse, FleetUse};
        let agent = |name: &str, cpu: f64, threads: u64, cpus: &[u32]| AgentUse {
            name: name.to_owned(),
            threads,
            wall_ns: 2 * SECOND,
            client: Some(process(cpu, 0.0, cpus)),
            ..AgentUse::default()
        };
        let (observed, mut measured) = trial();
        let mut of = |agents: Vec<AgentUse>| {
            measured.fleet = Some(Box::new(FleetUse { agents, ..FleetUse::default() }));
            Facts::of(&observed, &measured, None).agent.unwrap()
        };
        // 0.5 of one processor; 0.8 of four, on two threads of which the busiest ran for 40 % of the time.
        let found = of(vec![agent("a", 1.0, 8, &[0]), agent("b", 1.6, 2, &[0, 1, 2, 3])]);
        assert_eq!(found.name, "a");
        assert_close(&[found.side.cpu, found.thread], &[0.5, 0.0625]);
        let found = of(vec![agent("a", 1.0, 8, &[0, 1, 2, 3]), agent("b", 1.6, 2, &[0, 1, 2, 3])]);
        assert_eq!(found.name, "b");
        assert_close(&[found.side.cpu, found.thread], &[0.8, 0.4]);
    }

    #[test]
    fn agent_without_a_busiest_thread_is_judged_by_the_mean_of_its_threads() {
        let mut process = process(1.0, 0.0, &[0]);
        process.busiest.clear();
        let agent = kurabe_core::fleet::AgentUse {
            threads: 2,
            wall_ns: 2 * SECOND,
            client: Some(process),
            ..Default::default()
        };
        let fleet = kurabe_core::fleet::FleetUse { agents: vec![agent], ..Default::default() };
        let measured = Measurement { fleet: Some(Box::new(fleet)), ..Measurement::default() };
        assert_close(&[AgentFacts::fullest(&measured).unwrap().thread], &[0.25]);
    }

    #[test]
    fn limit_of_a_control_group_counts_where_it_is_below_the_processors() {
        let of =
            |quota: f64| side(&ProcessUse { quota_cpus: Some(quota), ..process(1.0, 0.0, &[0, 1]) }, 2e9);
        assert_eq!((of(0.5).quota, of(2.0).quota, of(3.0).quota), (Some(0.5), None, None));
        assert_close(&[of(0.5).capacity, of(3.0).capacity], &[0.5, 2.0]);
        // Nothing runs for longer than the trial on the processors that it has; without their number nothing is known.
        assert_close(
            &[side(&process(5.0, 0.0, &[0, 1]), 2e9).cpu, side(&process(5.0, 0.0, &[]), 2e9).cpu],
            &[2.0, 2.5],
        );
    }

    #[test]
    fn group_that_was_throttled_and_used_most_of_its_limit_has_exhausted_it() {
        let of = |quota, throttled, cpu| {
            Side { cpu, capacity: 1.0, quota, throttled, ..Side::default() }.utilisation()
        };
        assert_close(&[of(Some(1.0), 0.2, 0.7), of(Some(1.0), 0.2, 0.98)], &[0.97, 0.98]);
        assert_close(
            &[of(Some(1.0), 0.19, 0.7), of(Some(1.0), 0.2, 0.69), of(None, 0.2, 0.7)],
            &[0.7, 0.69, 0.7],
        );
    }

    #[test]
    fn most_frequent_waits_that_a_server_reports_are_named() {
        use kurabe_core::stats_probe::WaitGroup;
        let group = |wait_state, event: &str, statement: &str, seen| WaitGroup {
            wait_state,
            state: String::new(),
            event: event.to_owned(),
            statement: statement.to_owned(),
            seen,
        };
        let waits = |groups: Vec<WaitGroup>| EngineWaits {
            active: 30,
            locks: 10,
            logs: 5,
            samples: 10,
            sessions: 40,
            groups,
            course: Vec::new(),
            cost_ns: 1,
        };
        let long = "x".repeat(61);
        let found = Reported::of(&waits(vec![
            group(WaitState::Lock, "", "unnamed", 9),
            group(WaitState::Log, "WALSync", "", 8),
            group(WaitState::Lock, "tuple", &long, 7),
            group(WaitState::Other, "later", "", 1),
        ]));
        let found = found.unwrap();
        assert_eq!((found.samples, found.lock), (40, Some(format!("tuple, at “{}…”", "x".repeat(60)))));
        assert_close(&[found.locks, found.logs], &[0.25, 0.125]);
        assert_eq!(found.other, Some(("WALSync".to_owned(), 0.2)));
        let short = Reported::of(&waits(vec![group(WaitState::Lock, "row", &"y".repeat(60), 1)])).unwrap();
        assert_eq!(short.lock, Some(format!("row, at “{}”", "y".repeat(60))));
        let bare = Reported::of(&waits(vec![group(WaitState::Lock, "row", "", 1)])).unwrap();
        assert_eq!((bare.lock.as_deref(), bare.other), (Some("row"), None));
        // A server that does not say whether its active sessions wait says nothing.
        assert_eq!(Reported::of(&waits(vec![group(WaitState::Active, "", "", 1)])), None);
        assert_eq!(Reported::of(&EngineWaits { active: 0, sessions: 0, ..waits(Vec::new()) }), None);
    }

    #[test]
    fn load_generator_is_on_time_up_to_a_tenth_of_the_response_time() {
        let open = |times: &[[u64; 2]]| {
            let of = |at: usize| {
                let mut all = kurabe_stats::Histogram::new();
                for one in times {
                    all.record(one[at]);
                }
                all
            };
            in_time(&OpenLoop { rate: 1.0, lag: of(0), response: of(1), due_ns: 0, backlog: 0, probes: 0 })
        };
        assert!(open(&[[100, 1_000]]) && !open(&[[120, 1_000]]) && open(&[]));
    }

    #[test]
    fn trial_at_a_given_rate_has_the_time_of_its_requests_and_was_served_if_it_kept_up_and_was_on_time() {
        let (observed, mut measured) = trial();
        let mut of = |lag: u64, dropped: u64| {
            let one = |value: u64| {
                let mut times = kurabe_stats::Histogram::new();
                times.record(value);
                times
            };
            measured.service = one(3_000_000);
            let (lag, response) = (one(lag), one(4_000_000));
            measured.open =
                Some(OpenLoop { rate: 500.0, lag, response, due_ns: 2 * SECOND, backlog: 0, probes: 0 });
            measured.dropped = dropped;
            Facts::of(&observed, &measured, None)
        };
        let facts = of(1_000, 0);
        assert!((facts.round_trip_us - 3_000.0).abs() < 60.0 && facts.served(), "{facts:?}");
        assert_eq!(of(2_000_000, 0).kept_rate, Some(false), "the load generator was late");
        assert_eq!(of(1_000, 1).kept_rate, Some(false), "it did not keep up");
    }

    #[test]
    fn means_of_several_trials_are_those_of_each_value() {
        let (observed, measured) = trial();
        let mut tiers = observed.clone();
        let tier = |cpu: f64| TierUse {
            name: TierUse::DATABASE.to_owned(),
            used: ServerUse::Seen(Box::new(process(cpu, 0.0, &[1]))),
        };
        tiers.tiers = vec![tier(1.0)];
        let one = Facts::of(&tiers, &measured, None);
        tiers.tiers = vec![tier(0.4)];
        (tiers.client, tiers.samples_taken) = (process(0.4, 0.8, &[0]), 20);
        let other = Facts::of(&tiers, &Measurement { completed: 2_000, ..measured }, None);
        assert_eq!(one.tiers, [(TierUse::DATABASE.to_owned(), Some(0.5))]);
        let mean = Facts::mean(&[&one, &other]).unwrap();
        assert_close(&[mean.client.cpu, mean.client.queue, mean.server.unwrap().cpu], &[0.3, 0.3, 0.6]);
        assert_close(&[mean.round_trip_us, mean.turn], &[12_000.0, 0.3]);
        assert_close(&[mean.tiers[0].1.unwrap()], &[0.35]);
        assert_eq!((mean.disk.samples, mean.wire.unwrap().classified), (60, 160));
        tiers.tiers[0].used = ServerUse::InClient;
        let unseen = Facts::of(&tiers, &Measurement::default(), None);
        assert_eq!(Facts::mean(&[&one, &unseen]).unwrap().tiers, [(TierUse::DATABASE.to_owned(), None)]);
        assert_eq!(Facts::mean(&[]), None);
    }
}
