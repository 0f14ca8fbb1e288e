//! Which resource was the bottleneck of a trial: rules over its facts, the most certain first.
//!
//! A resource is named in two cases: it was full, so that no more could have been done with it; or the clients spent
//! most of their time waiting for it. Else nothing was full, and what limits the trial is the time that one round trip
//! takes: more clients would get more done.
//!
//! On processors that client and server share, both are limited by the same thing. Named is the side that used the
//! greater part of it: with the client out of the way, a server that used a third could have done three times as much,
//! and its figure is a lower bound.

use super::facts::{Facts, Side};
use super::{Bottleneck, Confidence, Sides};
use kurabe_core::run::LEAST_TRIAL;
use serde::Serialize;

/// From this share on a processor, or what a side may use of it, is full: what is missing is lost in switching and in
/// waking up.
const FULL: f64 = 0.9;
/// From here on it is nearly full, which is reported with less confidence where nothing else explains the trial.
const NEARLY: f64 = 0.8;
/// A control group that was kept from running for so much of the time has used up what it may use, …
const THROTTLED: f64 = 0.2;
/// … where it used so much of it (the limit is enforced for each period apart).
const USED: f64 = 0.7;
/// One side used the greater part for certain.
const MAJORITY: f64 = 0.67;
/// Processors that are full are full with client's and server's work where it is this part of it.
const MOSTLY_OURS: f64 = 0.7;
/// So much of the machine's CPU in other hands makes a trial disturbed.
const OTHERS: f64 = 0.1;
/// So much of its processors' time given to somebody else by the machine below does too.
const STEAL: f64 = 0.05;
/// Most of the clients' time went by without either side's CPU.
const IDLE: f64 = 0.5;
/// A database that used so much of the processors that it may use did not only wait.
const BUSY: f64 = 0.5;
/// Shorter trials, in seconds, are too short for counters that tick a hundred times a second.
pub(super) const SHORT: f64 = LEAST_TRIAL.as_secs_f64();
/// Fewer samples than these say little.
const FEW: u64 = 10;
/// Fewer samples of sessions than these say nothing.
const FEW_SAMPLES: u64 = 4;
/// From this share on an interface is full.
const INTERFACE: f64 = 0.85;
/// A database that is in the client slept for so much of the time.
const SLEPT: f64 = 0.6;
/// The wire's part of a round trip that makes it the bottleneck.
const WIRE: f64 = 0.5;
/// The server held requests in so many samples.
const HELD: f64 = 0.6;
/// Requests and answers were in transit in so many samples.
const TRANSIT: f64 = 0.7;
/// A thread waited for storage in so many samples.
const WAITED: f64 = 0.5;
/// The disk was busy for so much of the time.
const DISK_BUSY: f64 = 0.6;
/// Sessions that waited for the same for so much of the clients' time were limited by it; …
const LOCKED: f64 = 0.5;
/// … for so much they most likely were, where nothing else took more; …
const PARTLY: f64 = 0.3;
/// … for less than this they were not.
const UNLOCKED: f64 = 0.2;

/// A part of the work that is at hand: the least share of the time that a side whose threads also waited for a processor
/// must have worked.
const AT_WORK: f64 = 0.4;

/// What a rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The busiest thread of the server, or the mean of the client's threads, at work.
    Thread(Sides),
    /// The server's work for each client, who waits for it.
    PerClient,
    /// What a side used of the processors that it may use.
    Capacity(Sides),
    /// The processors that client and server share were busy, mostly with their work.
    SharedCpus,
    /// The threads of a side were at work or waited for a processor.
    Ready(Sides),
    /// A network interface's capacity.
    Interface,
    /// The wire's part of a round trip.
    WireTime,
    /// Samples in which the request or its answer was in transit.
    InTransit,
    /// Samples in which the engine reports a wait for a lock.
    LocksReported,
    /// Samples in which the server held a request and did not work.
    HeldRequests,
    /// The time for which clients of an embedded database slept.
    Slept,
    /// Samples in which the engine reports a wait for its log.
    LogReported,
    /// Samples in which a thread waited for storage.
    StorageSamples,
    /// The time for which the disk was busy.
    DiskBusy,
}

/// What names a resource: the rule, what it saw, and from where on it holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ground {
    /// The rule.
    pub rule: Rule,
    /// The share that was measured.
    pub share: f64,
    /// The least share at which the rule names the resource.
    pub threshold: f64,
}

/// What a trial is attributed to; a resource has a ground.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Judged {
    pub bottleneck: Bottleneck,
    pub confidence: Confidence,
    pub ground: Option<Ground>,
}

impl Judged {
    fn new(bottleneck: Bottleneck, confidence: Confidence) -> Self {
        Self { bottleneck, confidence, ground: None }
    }

    /// Where the share is at least the threshold.
    fn by(
        bottleneck: Bottleneck,
        confidence: Confidence,
        rule: Rule,
        share: f64,
        threshold: f64,
    ) -> Option<Self> {
        let ground = Some(Ground { rule, share, threshold });
        (share >= threshold).then_some(Self { bottleneck, confidence, ground })
    }
}

/// Names the bottleneck of a trial, and how certain that is.
pub(crate) fn judge(facts: &Facts) -> Judged {
    let judged = full(facts)
        .or_else(|| waiting(facts))
        .or_else(|| nearly(facts))
        .or_else(|| ready(facts))
        .unwrap_or_else(|| neither(facts));
    let unsure = disturbed(facts).is_some() || facts.seconds < SHORT;
    if unsure { Judged { confidence: Confidence::Low, ..judged } } else { judged }
}

/// Why a trial should not be relied on, as a clause: other work used the machine.
pub(crate) fn disturbed(facts: &Facts) -> Option<String> {
    // What a server does that runs here and could not be seen would pass for somebody else's work.
    let others = facts.others / facts.machine.max(1.0);
    if facts.steal >= STEAL {
        return Some(format!("the hypervisor gave {:.0} % of its CPU time to others", facts.steal * 100.0));
    }
    (others >= OTHERS && facts.unseen.is_none())
        .then(|| format!("other processes used {:.0} % of the machine's CPU", others * 100.0))
}

/// The side that is fuller, where it is so full.
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

fn full(facts: &Facts) -> Option<Judged> {
    if let Some(judged) = fuller(facts, FULL, true) {
        return Some(judged);
    }
    // The processors that they may use are full: with whose work?
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

/// How full what the client may use was. Each of its threads serves one client: all at work all the time are full too,
/// however many processors there are.
fn client_fullness(facts: &Facts) -> (Rule, f64) {
    let threads = facts.client.cpu / facts.clients;
    let processors = if facts.shared && facts.client.quota.is_none() {
        0.0
    } else {
        limited(&facts.client, facts.client.cpu / facts.client.capacity)
    };
    if threads >= processors {
        (Rule::Thread(Sides::Client), threads)
    } else {
        (Rule::Capacity(Sides::Client), processors)
    }
}

/// How full what the server may use was; or its busiest thread, where the work hangs on that.
fn server_fullness(facts: &Facts, server: &Side) -> (Rule, f64) {
    let processors = if facts.shared && server.quota.is_none() {
        0.0
    } else {
        limited(server, server.cpu / server.capacity)
    };
    let hangs_on_one = server.thread >= server.cpu * 0.4;
    let thread = if hangs_on_one { server.thread.min(1.0) } else { 0.0 };
    let found = [
        (Rule::Capacity(Sides::Server), processors),
        (Rule::Thread(Sides::Server), thread),
        (Rule::PerClient, (server.cpu / facts.clients).min(1.0)),
    ];
    // Of equals the first.
    found.into_iter().rev().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(found[0])
}

fn limited(side: &Side, used: f64) -> f64 {
    if side.quota.is_some() && side.throttled >= THROTTLED && used >= USED {
        used.max(0.97)
    } else {
        used.min(1.0)
    }
}

/// A database in the client: the client's CPU is its own, unless most of it is the tool's work.
fn client_cpu(facts: &Facts) -> Bottleneck {
    if facts.in_process && facts.own_share.is_none_or(|own| own < 0.5) {
        Bottleneck::ProcessCpu
    } else {
        Bottleneck::ClientCpu
    }
}

fn waiting(facts: &Facts) -> Option<Judged> {
    if facts.served() {
        return None;
    }
    let (locks, network) = (Bottleneck::Locks, Bottleneck::Network);
    if let Some(judged) = Judged::by(network, Confidence::High, Rule::Interface, facts.interface, INTERFACE) {
        return Some(judged);
    }
    // Where sessions waited for locks and for the log, what they waited for more is the likelier.
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
    // Of many clients most sleep whatever their database does: one that used half of the processors was at work.
    let database = if facts.in_process { Some(&facts.client) } else { facts.server.as_ref() };
    let rests = database.is_none_or(|side| side.cpu < BUSY * side.capacity);
    if facts.in_process {
        // What sleeps within one process, and not for storage, waits for its own kind.
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
    // The server held the requests, and used neither CPU nor storage meanwhile: it waited within itself. That it was for
    // a lock only the engine itself could say.
    if let Some(judged) = Judged::by(locks, Confidence::Low, Rule::HeldRequests, wire.at_server, HELD) {
        // It worked; or it was asked, and reports that it was not.
        let denied = facts
            .reported
            .as_ref()
            .is_some_and(|reported| reported.samples >= FEW_SAMPLES && reported.locks < UNLOCKED);
        return Some(judged).filter(|_| rests && !denied);
    }
    let clear = wire.at_server <= 0.1 && wire.classified >= 2 * FEW && idle >= 0.7;
    let confidence = if clear { Confidence::High } else { Confidence::Low };
    Judged::by(network, confidence, Rule::InTransit, 1.0 - wire.at_server, TRANSIT)
}

fn disk(facts: &Facts, idle: f64) -> Option<Judged> {
    let disk = &facts.disk;
    if disk.touched == Some(false) {
        return None;
    }
    let sure = |sure: bool| if sure { Confidence::High } else { Confidence::Low };
    // The engine's own word is as good as samples of threads; with them, and clients that waited, it is certain.
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
        // Too short to look: the disk's own counter says whether it was at work all the time.
        let busy = Judged::by(Bottleneck::Disk, Confidence::Low, Rule::DiskBusy, disk.busy, DISK_BUSY);
        return busy.filter(|_| disk.touched == Some(true));
    }
    let sure = sure(disk.waiting >= 0.6 && disk.samples >= FEW && disk.touched == Some(true));
    Judged::by(Bottleneck::Disk, sure, Rule::StorageSamples, disk.waiting, WAITED)
}

fn nearly(facts: &Facts) -> Option<Judged> {
    if facts.served() {
        return None;
    }
    let fuller = fuller(facts, NEARLY, false);
    if fuller.is_some() {
        return fuller;
    }
    let server = facts.server.map_or(0.0, |server| server.cpu);
    let mostly = facts.shared && server >= facts.cores * facts.cores_busy * MAJORITY;
    let nearly =
        Judged::by(Bottleneck::ServerCpu, Confidence::Low, Rule::SharedCpus, facts.cores_busy, NEARLY);
    nearly.filter(|_| mostly)
}

/// A side whose threads were at work or ready to be all the time wanted more than it got, on processors that others had.
/// One that hardly worked was only kept from it: then what it lacked is not known.
fn ready(facts: &Facts) -> Option<Judged> {
    let client_work = facts.client.cpu / facts.clients;
    let client = client_work + facts.client.queue / facts.clients;
    let server_work = facts.server.map_or(0.0, |server| server.thread);
    let server = server_work + facts.server.map_or(0.0, |server| server.thread_queue);
    let (bottleneck, side, work) = if server > client {
        (Bottleneck::ServerCpu, Sides::Server, server_work)
    } else {
        (client_cpu(facts), Sides::Client, client_work)
    };
    // A thread that was not let go back to sleep is ready too, with nothing to do: only one side may be.
    let clear = client.min(server) <= 0.3 && work >= AT_WORK;
    Judged::by(bottleneck, Confidence::Low, Rule::Ready(side), client.max(server), NEARLY)
        .filter(|_| clear && !facts.served())
}

fn neither(facts: &Facts) -> Judged {
    if facts.served() {
        return Judged::new(Bottleneck::Load, Confidence::High);
    }
    // Others had the processors, or threads waited for them most of the time: what else was the bottleneck is not to
    // be seen. A given rate is no round trip after the other.
    let queue = facts.client.queue + facts.server.map_or(0.0, |server| server.queue);
    let crowded = queue / facts.clients >= 0.3 && facts.cores_busy >= FULL || queue / facts.clients >= NEARLY;
    let stopped = facts.server.is_some_and(|server| server.stopped >= 0.2);
    if facts.unseen.is_some() || crowded || stopped || facts.kept_rate.is_some() {
        return Judged::new(Bottleneck::Unknown, Confidence::Low);
    }
    // Where most of a round trip went is not known: it may be any wait that was not recognised.
    let confidence = if facts.idle() <= 0.6 { Confidence::High } else { Confidence::Low };
    Judged::new(Bottleneck::Latency, confidence)
}

#[cfg(test)]
mod tests {
    use super::super::facts::{Disk, Reported, Wire};
    use super::*;
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
        prop::option::of(wire.prop_map(|(rtt_us, classified, at_server)| Wire { rtt_us, classified, at_server }))
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
        ) -> Facts {
            let server = server.filter(|_| !in_process);
            Facts {
                tiers: Vec::new(), seconds, clients: f64::from(clients), kept_rate, round_trip_us, client, server, in_process,
                unseen: (server.is_none() && !in_process).then(|| "hidden".to_owned()),
                cores_busy, cores: 4.0, shared: shared && server.is_some(), others, machine: 4.0, steal, disk, wire,
                interface, own_share,
                reported: reported.map(|(samples, locks, logs)| Reported { samples, locks, logs, ..Reported::default() }),
            }
        }
    }

    proptest! {
        #[test]
        fn what_was_not_seen_is_not_named(facts in facts()) {
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
                prop_assert!(facts.disk.touched != Some(false) && seen >= 0.5);
            }
            // What was at work did not only wait, unless the engine says that it did.
            if bottleneck == Bottleneck::Locks && facts.reported.as_ref().is_none_or(|reported| reported.locks < PARTLY) {
                let database = if facts.in_process { Some(facts.client) } else { facts.server };
                prop_assert!(database.is_none_or(|side| side.cpu < 0.5 * side.capacity));
            }
            // No machine that worked for others, and no trial too short to be measured, is certain of anything.
            if confidence == Confidence::High {
                prop_assert!(disturbed(&facts).is_none() && facts.seconds >= SHORT);
            }
            prop_assert!(!super::super::evidence::line(&facts, bottleneck, ground).is_empty());
        }

        #[test]
        fn a_client_that_is_full_beside_a_server_that_is_not_is_named_whatever_else_is_seen(facts in facts()) {
            let mut facts = facts;
            facts.client.cpu = facts.clients * 0.97;
            facts.client.quota = None;
            let idle = Side { cpu: 0.3, capacity: 4.0, thread: 0.3, ..Side::default() };
            facts.server = facts.server.map(|_| idle);
            prop_assert!(matches!(judge(&facts).bottleneck, Bottleneck::ClientCpu | Bottleneck::ProcessCpu));
        }

        #[test]
        fn a_load_that_was_served_is_never_blamed_on_a_wait(facts in facts()) {
            let facts = Facts { kept_rate: Some(true), ..facts };
            prop_assert!(!matches!(judge(&facts).bottleneck, Bottleneck::Disk | Bottleneck::Locks | Bottleneck::Network | Bottleneck::Latency));
        }
    }
}
