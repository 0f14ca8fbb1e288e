//! The rules of attribution, in order of certainty.
//!
//! A resource is named in two cases: it was saturated; or the clients spent most of their time waiting for it.
//! Otherwise nothing was saturated, and round-trip time limits the trial: more clients would achieve more.

use crate::attribution::facts::{Facts, Side};
use crate::attribution::{Bottleneck, Confidence, Judged, Rule, Sides};
use kurabe_core::run::MIN_TRIAL;

/// The share of the machine's CPU used by other processes that disturbs a trial.
const OTHERS: f64 = 0.1;
/// The share of steal time that disturbs a trial.
const STEAL: f64 = 0.05;
/// The minimum time of a trial, in seconds, for counters with a resolution of 10 ms.
pub(super) const SHORT: f64 = MIN_TRIAL.as_secs_f64();

/// Attributes a trial.
pub(crate) fn judge(facts: &Facts) -> Judged {
    let judged = full(facts).or_else(|| waiting(facts)).or_else(|| nearly(facts)).or_else(|| ready(facts));
    let judged = judged.unwrap_or_else(|| neither(facts));
    let unsure = disturbed(facts).is_some() || facts.seconds < SHORT;
    if unsure { Judged { confidence: Confidence::Low, ..judged } } else { judged }
}

/// The interference during a trial, as a clause.
pub(crate) fn disturbed(facts: &Facts) -> Option<String> {
    // The CPU usage of an unobserved local server would count as interference.
    let others = facts.others / facts.machine.max(1.0);
    if let Some(ns) = facts.apart_ns {
        return Some(started_apart(ns));
    }
    if facts.steal >= STEAL {
        return Some(format!("the hypervisor gave {:.0} % of its CPU time to others", facts.steal * 100.0));
    }
    (others >= OTHERS && facts.unseen.is_none())
        .then(|| format!("other processes used {:.0} % of the machine's CPU", others * 100.0))
}

/// That agents started too far apart.
pub(super) fn started_apart(ns: u64) -> String {
    format!("the agents started {:.1} ms apart, more than 1 % of its time", ns as f64 / 1e6)
}

fn neither(facts: &Facts) -> Judged {
    if facts.served() {
        return Judged::new(Bottleneck::Load, Confidence::High);
    }
    // The processors were full with the work of others, or threads waited for them most of the time: the bottleneck cannot
    // be seen. A given rate is not a sequence of round trips.
    let queue = facts.client.queue + facts.server.map_or(0.0, |server| server.queue);
    let crowded = facts.cores_busy >= FULL || queue / facts.clients >= NEARLY;
    let stopped = facts.server.is_some_and(|server| server.stopped >= 0.2);
    if facts.unseen.is_some() || crowded || stopped || facts.kept_rate.is_some() {
        return Judged::new(Bottleneck::Unknown, Confidence::Low);
    }
    // Most of the round trip is unexplained: it may be any unrecognised wait.
    let confidence = if facts.idle() <= 0.6 { Confidence::High } else { Confidence::Low };
    Judged::new(Bottleneck::Latency, confidence)
}

/// From this share on, a processor or a limit counts as saturated. The rest is lost to switching and wake-ups.
const FULL: f64 = 0.9;
/// From this share on, it is nearly saturated, which is reported with low confidence if nothing else explains the
/// trial.
const NEARLY: f64 = 0.8;
/// The share above which one side certainly used the greater part.
const MAJORITY: f64 = 0.67;
/// The share of client and server in saturated processors above which these count as saturated by them.
const MOSTLY_OURS: f64 = 0.7;
/// The minimum share of time that a side must have run if its threads also waited for a processor.
const AT_WORK: f64 = 0.4;

/// The side with the higher utilisation, if it reaches the threshold.
fn fuller(facts: &Facts, threshold: f64, sure: bool) -> Option<Judged> {
    let (client_rule, client) = client_fullness(facts);
    let (server_rule, server) =
        facts.server.map_or((Rule::PerClient, 0.0), |side| server_fullness(facts, &side));
    let high = sure && (client - server).abs() >= 0.05;
    let confidence = if high { Confidence::High } else { Confidence::Low };
    if server >= client {
        Judged::by(Bottleneck::ServerCpu, confidence, server_rule, server, threshold)
    } else {
        Judged::by(client_cpu(facts), confidence, client_rule, client, threshold)
    }
}

/// A side that was saturated, or the processors that both sides share.
pub(super) fn full(facts: &Facts) -> Option<Judged> {
    if let Some(judged) = fuller(facts, FULL, true) {
        return Some(judged);
    }
    // The available processors are saturated: by which side?
    let server = facts.server.map_or(0.0, |server| server.cpu);
    let ours = facts.client.cpu + server;
    if ours < facts.cores * facts.cores_busy * MOSTLY_OURS || facts.unseen.is_some() {
        return None;
    }
    let part = server.max(facts.client.cpu) / ours.max(f64::MIN_POSITIVE);
    let confidence = if part >= MAJORITY || facts.in_process { Confidence::High } else { Confidence::Low };
    let bottleneck = if server >= facts.client.cpu { Bottleneck::ServerCpu } else { client_cpu(facts) };
    Judged::by(bottleneck, confidence, Rule::SharedCpus, facts.cores_busy, FULL)
}

/// The client's utilisation. If all of the threads that serve clients run all the time, it is saturated, however many
/// processors there are.
fn client_fullness(facts: &Facts) -> (Rule, f64) {
    // One saturated agent of several makes a lower bound of the whole.
    let agent = facts.agent.as_ref().map(|agent| (agent.thread, &agent.side));
    let (threads, side) = agent.unwrap_or_else(|| (facts.client_thread(), &facts.client));
    let processors = side.utilisation();
    if threads >= processors {
        (Rule::Thread(Sides::Client), threads)
    } else {
        (Rule::Capacity(Sides::Client), processors)
    }
}

/// The server's utilisation, or that of its busiest thread if that is higher.
fn server_fullness(facts: &Facts, server: &Side) -> (Rule, f64) {
    let processors = server.utilisation();
    let hangs_on_one = server.thread >= server.cpu * 0.4;
    let thread = if hangs_on_one { server.thread.min(1.0) } else { 0.0 };
    let found = [
        (Rule::Capacity(Sides::Server), processors),
        (Rule::Thread(Sides::Server), thread),
        (Rule::PerClient, (server.cpu / facts.clients).min(1.0)),
    ];
    // The first one, if equal.
    found.into_iter().rev().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(found[0])
}

/// For an embedded database: the client's CPU is the database's, unless most of it is the tool's overhead.
fn client_cpu(facts: &Facts) -> Bottleneck {
    if facts.in_process && facts.own_share.is_none_or(|own| own < 0.5) {
        Bottleneck::ProcessCpu
    } else {
        Bottleneck::ClientCpu
    }
}

/// A side that was nearly saturated, or the processors that both sides share.
fn nearly(facts: &Facts) -> Option<Judged> {
    if facts.served() {
        return None;
    }
    let server = facts.server.unwrap_or_default().cpu;
    let mostly = facts.shared && server >= facts.cores * facts.cores_busy * MAJORITY;
    let shared =
        || Judged::by(Bottleneck::ServerCpu, Confidence::Low, Rule::SharedCpus, facts.cores_busy, NEARLY);
    fuller(facts, NEARLY, false).or_else(|| shared().filter(|_| mostly))
}

/// A side whose threads were running or runnable all the time wanted more CPU than it got, on processors used by
/// others. A side that hardly ran was only delayed; its bottleneck is unknown.
fn ready(facts: &Facts) -> Option<Judged> {
    let (client_work, client_queue) = (facts.client_thread(), facts.client_thread_queue());
    let client = client_work + client_queue;
    let server_work = facts.server.map_or(0.0, |server| server.thread);
    let server = (server_work + facts.server.map_or(0.0, |server| server.thread_queue)).min(1.0);
    let (bottleneck, side, work) = if server > client {
        (Bottleneck::ServerCpu, Sides::Server, server_work)
    } else {
        (client_cpu(facts), Sides::Client, client_work)
    };
    // A thread that was not put back to sleep is runnable without work, so that only one side may be.
    let clear = client.min(server) <= 0.3 && work >= AT_WORK;
    Judged::by(bottleneck, Confidence::Low, Rule::Ready(side), client.max(server), NEARLY)
        .filter(|_| clear && !facts.served())
}

/// The share of the clients' time without CPU usage of either side that counts as waiting.
const IDLE: f64 = 0.5;
/// The share of available processors above which a database did not only wait.
const BUSY: f64 = 0.5;
/// The minimum number of samples for a reliable statement.
const FEW: u64 = 10;
/// The minimum number of session samples.
const FEW_SAMPLES: u64 = 4;
/// The utilisation above which an interface counts as saturated.
const INTERFACE: f64 = 0.85;
/// The share of time that clients of an embedded database sleep if it waits.
const SLEPT: f64 = 0.6;
/// The network's share of a round trip that makes it the bottleneck.
const WIRE: f64 = 0.5;
/// The share of samples with unanswered requests at the server.
const HELD: f64 = 0.6;
/// The share of samples with requests or replies in transit.
const TRANSIT: f64 = 0.7;
/// The share of samples with a thread waiting for storage.
const WAITED: f64 = 0.5;
/// The share of time with a busy disk.
const DISK_BUSY: f64 = 0.6;
/// The share of the clients' time for which a common wait is the bottleneck, …
const LOCKED: f64 = 0.5;
/// … most likely is the bottleneck, unless another wait is longer, …
const PARTLY: f64 = 0.3;
/// … and below which it is not.
const UNLOCKED: f64 = 0.2;

/// The resource that the clients waited for.
pub(super) fn waiting(facts: &Facts) -> Option<Judged> {
    if facts.served() {
        return None;
    }
    let (locks, network) = (Bottleneck::Locks, Bottleneck::Network);
    if let Some(judged) = Judged::by(network, Confidence::High, Rule::Interface, facts.interface, INTERFACE) {
        return Some(judged);
    }
    // Of waits for locks and for the log, the more frequent one is more likely.
    if let Some(reported) = &facts.reported
        && (reported.locks >= LOCKED || reported.locks > reported.logs)
    {
        let sure = reported.locks >= LOCKED && reported.samples >= FEW;
        let confidence = if sure { Confidence::High } else { Confidence::Low };
        let judged = Judged::by(locks, confidence, Rule::LocksReported, reported.locks, PARTLY);
        if judged.is_some() {
            return judged;
        }
    }
    let idle = facts.idle();
    let disk = disk(facts, idle);
    if disk.is_some() {
        return disk;
    }
    if idle < IDLE || facts.disk.waiting >= 0.4 {
        return None;
    }
    // With many clients most sleep in any case. A database that used half of the processors did not only wait.
    let database = if facts.in_process { Some(&facts.client) } else { facts.server.as_ref() };
    let rests = database.is_none_or(|side| side.cpu < BUSY * side.capacity);
    if facts.in_process {
        // Sleep within one process that is not for storage is for a lock.
        let slept = Judged::by(locks, Confidence::Low, Rule::Slept, idle, SLEPT);
        return slept.filter(|_| facts.disk.samples >= FEW && rests);
    }
    let wire = facts.wire.as_ref()?;
    let wire_share = wire.rtt_us / facts.round_trip_us.max(f64::MIN_POSITIVE);
    if let Some(judged) = Judged::by(network, Confidence::High, Rule::WireTime, wire_share, WIRE) {
        return Some(judged);
    }
    facts.server?;
    if wire.classified < FEW {
        return None;
    }
    // The server had the requests and used neither CPU nor storage, so it waited internally. Only the server could
    // report that it was for a lock.
    if let Some(judged) = Judged::by(locks, Confidence::Low, Rule::HeldRequests, wire.at_server, HELD) {
        // Either it worked, or it reports that it did not wait for locks. One sample is enough to doubt: what holds the
        // requests may be a tunnel to a far server, which is sampled as slowly as it answers.
        let denied = facts.reported.as_ref().is_some_and(|reported| reported.locks < UNLOCKED);
        // A server that wrote may as well have waited for its log, which a fast disk shows in few samples.
        if rests && !denied && facts.disk.touched == Some(true) {
            return Some(Judged::new(Bottleneck::Unknown, Confidence::Low));
        }
        return Some(judged).filter(|_| rests && !denied);
    }
    // An answer that waits for its turn at a thread that clients share has left the server, as one in transit has.
    let at_work = (facts.client.cpu + facts.client.queue) / facts.threads;
    if facts.threads < facts.clients && at_work >= AT_WORK {
        return None;
    }
    let clear = wire.at_server <= 0.1 && wire.classified >= 2 * FEW && idle >= 0.7;
    let confidence = if clear { Confidence::High } else { Confidence::Low };
    Judged::by(network, confidence, Rule::InTransit, 1.0 - wire.at_server, TRANSIT)
}

/// Whether requests were at the server in most samples.
fn is_held(facts: &Facts) -> bool {
    facts.wire.is_some_and(|wire| wire.classified >= FEW && wire.at_server >= HELD)
}

fn disk(facts: &Facts, idle: f64) -> Option<Judged> {
    let disk = &facts.disk;
    if disk.touched == Some(false) {
        return None;
    }
    let sure = |sure: bool| if sure { Confidence::High } else { Confidence::Low };
    // The server's report is as good as samples of threads. With both, and waiting clients, confidence is high.
    if let Some(reported) = facts.reported.as_ref().filter(|reported| reported.samples >= FEW_SAMPLES) {
        let seen = disk.waiting >= 0.3 || disk.busy >= DISK_BUSY;
        let sure = sure(seen && idle >= IDLE && reported.samples >= FEW && disk.touched == Some(true));
        let judged = Judged::by(Bottleneck::Disk, sure, Rule::LogReported, reported.logs, LOCKED);
        if judged.is_some() {
            return judged;
        }
    }
    if idle < 0.3 {
        return None;
    }
    if disk.samples < 4 {
        // Too short for samples: the disk's own counter shows whether it was busy all the time.
        let busy = Judged::by(Bottleneck::Disk, Confidence::Low, Rule::DiskBusy, disk.busy, DISK_BUSY);
        return busy.filter(|_| disk.touched == Some(true));
    }
    let sure = sure(disk.waiting >= 0.6 && disk.samples >= FEW && disk.touched == Some(true));
    Judged::by(Bottleneck::Disk, sure, Rule::StorageSamples, disk.waiting, WAITED).or_else(|| {
        // The server had the requests all the time, and waited for storage in a part of it.
        let partly =
            Judged::by(Bottleneck::Disk, Confidence::Low, Rule::StorageSamples, disk.waiting, PARTLY);
        partly.filter(|_| disk.touched == Some(true) && is_held(facts))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::facts::{Disk, Reported, Side, Wire};
    use crate::attribution::rules::PARTLY;
    use crate::attribution::{Evidence, Rule};
    use crate::messages::Language;
    use proptest::prelude::*;

    fn side() -> impl Strategy<Value = Side> {
        let share = || 0.0..1.0_f64;
        (0.0..4.0_f64, 0.0..4.0_f64, 1_u32..5, share(), prop::option::of(0.05..4.0_f64), share(), share())
            .prop_map(|(cpu, queue, processors, thread, quota, throttled, stopped)| {
                let capacity = quota.unwrap_or(f64::MAX).min(f64::from(processors));
                let cpu = cpu.min(capacity);
                Side {
                    cpu,
                    queue,
                    capacity,
                    thread: thread.min(cpu),
                    thread_queue: queue / 2.0,
                    quota,
                    throttled,
                    stopped,
                }
            })
    }

    fn disk() -> impl Strategy<Value = Disk> {
        (0_u64..40, 0.0..1.0_f64, 0.0..1.0_f64, prop::option::of(any::<bool>()))
            .prop_map(|(samples, waiting, busy, touched)| Disk { samples, waiting, busy, touched })
    }

    fn wire() -> impl Strategy<Value = Option<Wire>> {
        let wire = (0.0..1e4_f64, 0_u64..200, 0.0..1.0_f64);
        prop::option::of(wire.prop_map(|(rtt_us, classified, at_server)| Wire {
            rtt_us,
            classified,
            at_server,
        }))
    }

    prop_compose! {
        fn facts()(
            client in side(),
            server in prop::option::of(side()),
            disk in disk(),
            wire in wire(),
            (clients, seconds, round_trip_us, cores_busy) in (1_u32..64, 0.01..30.0_f64, 1.0..1e6_f64, 0.0..1.0_f64),
            (others, steal, interface) in (0.0..4.0_f64, 0.0..0.3_f64, 0.0..1.0_f64),
            (kept_rate, in_process, shared) in (prop::option::of(any::<bool>()), any::<bool>(), any::<bool>()),
            reported in prop::option::of((0_u64..99, 0.0..1.0_f64, 0.0..1.0_f64)),
            own_share in prop::option::of(0.0..1.0_f64),
            (shared_threads, turn) in (prop::option::of(1_u32..8), 0.0..0.9_f64),
        ) -> Facts {
            let server = server.filter(|_| !in_process);
            Facts {
                tiers: Vec::new(), seconds, clients: f64::from(clients),
                threads: f64::from(shared_threads.map_or(clients, |threads| threads.min(clients))),
                turn: shared_threads.map_or(0.0, |_| turn * f64::from(clients)), kept_rate, round_trip_us, client, server, in_process,
                unseen: (server.is_none() && !in_process).then(|| "hidden".to_owned()),
                cores_busy, cores: 4.0, shared: shared && server.is_some(), others, machine: 4.0, steal, disk, wire,
                interface, own_share, agent: None, apart_ns: None,
                reported: reported.map(|(samples, locks, logs)| Reported { samples, locks, logs, ..Reported::default() }),
            }
        }
    }

    proptest! {
        #[test]
        fn unobserved_resource_is_not_named(facts in facts()) {
            let Judged { bottleneck, confidence, ground } = judge(&facts);
            let resource = !matches!(bottleneck, Bottleneck::Latency | Bottleneck::Load | Bottleneck::Unknown);
            prop_assert_eq!(ground.is_some(), resource);
            prop_assert!(ground.is_none_or(|ground| ground.share >= ground.threshold && ground.threshold >= PARTLY));
            if facts.unseen.is_some() {
                prop_assert!(bottleneck != Bottleneck::ServerCpu && bottleneck != Bottleneck::ProcessCpu);
            }
            if bottleneck == Bottleneck::ServerCpu {
                prop_assert!(facts.server.is_some());
            }
            prop_assert!(bottleneck != Bottleneck::ProcessCpu || facts.in_process);
            if bottleneck == Bottleneck::Disk {
                let reported = facts.reported.as_ref().map_or(0.0, |reported| reported.logs);
                let seen = facts.disk.waiting.max(facts.disk.busy).max(reported);
                let held = facts.wire.is_some_and(|wire| wire.at_server >= 0.6) && facts.disk.touched == Some(true);
                let least = if held { PARTLY } else { 0.5 };
                prop_assert!(facts.disk.touched != Some(false) && seen >= least);
            }
            // A busy side did not only wait, unless the server says so.
            if bottleneck == Bottleneck::Locks && facts.reported.as_ref().is_none_or(|reported| reported.locks < PARTLY) {
                let database = if facts.in_process { Some(facts.client) } else { facts.server };
                prop_assert!(database.is_none_or(|side| side.cpu < 0.5 * side.capacity));
            }
            // A disturbed or too short trial never has high confidence.
            if confidence == Confidence::High {
                prop_assert!(disturbed(&facts).is_none() && facts.seconds >= SHORT);
            }
            for language in [Language::English, Language::Japanese] {
                let evidence = Evidence { facts: Box::new(facts.clone()), bottleneck, ground };
                prop_assert!(!evidence.line(language).is_empty());
            }
        }

        #[test]
        fn saturated_client_with_unsaturated_server_is_always_named(facts in facts()) {
            let mut facts = facts;
            (facts.client.cpu, facts.client.thread) = (facts.threads * 0.97, 0.97);
            facts.client.quota = None;
            let idle = Side { cpu: 0.3, capacity: 4.0, thread: 0.3, ..Side::default() };
            facts.server = facts.server.map(|_| idle);
            prop_assert!(matches!(judge(&facts).bottleneck, Bottleneck::ClientCpu | Bottleneck::ProcessCpu));
        }

        #[test]
        fn server_that_fills_its_processors_is_named_even_if_clients_may_use_them(facts in facts(), shared in any::<bool>()) {
            prop_assume!(!facts.in_process && facts.server.is_some());
            let mut facts = Facts { clients: 16.0, shared, kept_rate: None, ..facts };
            facts.client = Side { cpu: 0.5, capacity: 2.0, thread: 0.04, ..Side::default() };
            facts.server = facts.server.map(|server| Side { cpu: 0.92 * server.capacity, thread: 0.1, quota: None, ..server });
            prop_assert_eq!(judge(&facts).bottleneck, Bottleneck::ServerCpu);
        }

        #[test]
        fn nothing_runs_for_more_than_the_whole_time(facts in facts()) {
            let share = judge(&facts).ground.filter(|ground| {
                matches!(ground.rule, Rule::Thread(_) | Rule::PerClient | Rule::Capacity(_) | Rule::Ready(_) | Rule::SharedCpus)
            });
            prop_assert!(share.is_none_or(|ground| ground.share <= 1.0), "{share:?}");
        }

        #[test]
        fn server_that_wrote_and_reports_no_waits_has_no_locks_for_a_bottleneck(facts in facts()) {
            prop_assume!(!facts.in_process);
            let mut facts = Facts { reported: None, ..facts };
            facts.disk.touched = Some(true);
            prop_assert!(judge(&facts).bottleneck != Bottleneck::Locks);
        }

        #[test]
        fn served_load_is_not_attributed_to_waits(facts in facts()) {
            let facts = Facts { kept_rate: Some(true), ..facts };
            prop_assert!(!matches!(judge(&facts).bottleneck, Bottleneck::Disk | Bottleneck::Locks | Bottleneck::Network | Bottleneck::Latency));
        }
    }
}
