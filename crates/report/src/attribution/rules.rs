//! Which resource bound a trial: rules over its facts, the most certain first.
//!
//! A resource is named in two cases: it was full, so that no more could have been done with it; or the clients spent
//! most of their time waiting for it. Else nothing was full, and what bounds the trial is the time that one round trip
//! takes: more clients would get more done.
//!
//! On processors that client and server share, both are bound by the same thing. Named is the side that used the
//! greater part of it: with the client out of the way, a server that used a third could have done three times as much,
//! and its figure is a lower bound.

use super::facts::{Facts, Said, Side};
use super::{Bound, Confidence};
use kurabe_core::run::LEAST_TRIAL;

/// From this share on a processor, or what a side may use of it, is full: what is missing is lost in switching and in
/// waking up.
pub(super) const FULL: f64 = 0.9;
/// From here on it is nearly full, which is said with less confidence where nothing else explains the trial.
const NEARLY: f64 = 0.8;
/// A control group that was kept from running for so much of the time has used up what it may use, …
const THROTTLED: f64 = 0.2;
/// … where it used so much of it (the limit is enforced for each period apart).
const USED: f64 = 0.7;
/// One side used the greater part for certain.
const MAJORITY: f64 = 0.67;
/// Processors that are full are full with client's and server's work where it is this part of it.
pub(super) const MOSTLY_OURS: f64 = 0.7;
/// So much of the machine's CPU in other hands makes a trial suspect.
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
/// Fewer looks at sessions than these say nothing.
const FEW_LOOKS: u64 = 4;
/// Sessions that waited for the same for so much of the clients' time were bound by it; …
const LOCKED: f64 = 0.5;
/// … for so much they most likely were, where nothing else took more; …
pub(super) const PARTLY: f64 = 0.3;
/// … for less than this they were not.
const UNLOCKED: f64 = 0.2;

/// Names what bound a trial, and how certain that is.
pub(crate) fn judge(facts: &Facts) -> (Bound, Confidence) {
    let (bound, confidence) = full(facts)
        .or_else(|| waiting(facts))
        .or_else(|| nearly(facts))
        .or_else(|| ready(facts))
        .unwrap_or_else(|| neither(facts));
    let unsure = suspect(facts).is_some() || facts.seconds < SHORT;
    let confidence = if unsure { Confidence::Low } else { confidence };
    (bound, confidence)
}

/// Why a trial should not be relied on, as a clause: the machine worked for others.
pub(crate) fn suspect(facts: &Facts) -> Option<String> {
    // What a server does that runs here and could not be seen would pass for somebody else's work.
    let others = facts.others / facts.machine.max(1.0);
    if facts.steal >= STEAL {
        return Some(format!(
            "the machine below gave {:.0} % of its CPU time to others",
            facts.steal * 100.0
        ));
    }
    (others >= OTHERS && facts.unseen.is_none())
        .then(|| format!("other processes used {:.0} % of the machine's CPU", others * 100.0))
}

fn full(facts: &Facts) -> Option<(Bound, Confidence)> {
    let (client, server) = (client_fullness(facts), facts.server.map_or(0.0, |s| server_fullness(facts, &s)));
    if client.max(server) >= FULL {
        let confidence = if (client - server).abs() >= 0.05 { Confidence::High } else { Confidence::Low };
        return Some(if server >= client {
            (Bound::ServerCpu, confidence)
        } else {
            (client_cpu(facts), confidence)
        });
    }
    if facts.cores_busy < FULL {
        return None;
    }
    // The processors that they may use are full: with whose work?
    let server = facts.server.map_or(0.0, |server| server.cpu);
    let ours = facts.client.cpu + server;
    if ours < facts.cores * facts.cores_busy * MOSTLY_OURS || facts.unseen.is_some() {
        return None;
    }
    let part = server.max(facts.client.cpu) / ours.max(f64::MIN_POSITIVE);
    let confidence = if part >= MAJORITY || facts.in_process { Confidence::High } else { Confidence::Low };
    Some(if server >= facts.client.cpu {
        (Bound::ServerCpu, confidence)
    } else {
        (client_cpu(facts), confidence)
    })
}

/// How full what the client may use was. Each of its threads serves one client: all at work all the time are full too,
/// however many processors there are.
fn client_fullness(facts: &Facts) -> f64 {
    let threads = facts.client.cpu / facts.clients;
    let processors = if facts.shared && facts.client.quota.is_none() {
        0.0
    } else {
        limited(&facts.client, facts.client.cpu / facts.client.capacity)
    };
    threads.max(processors)
}

/// How full what the server may use was; or its busiest thread, where the work hangs on that.
fn server_fullness(facts: &Facts, server: &Side) -> f64 {
    let processors = if facts.shared && server.quota.is_none() {
        0.0
    } else {
        limited(server, server.cpu / server.capacity)
    };
    let hangs_on_one = server.thread >= server.cpu * 0.4;
    let each_is_full = server.cpu / facts.clients;
    let thread = if hangs_on_one { server.thread } else { 0.0 };
    processors.max(thread.min(1.0)).max(each_is_full.min(1.0))
}

fn limited(side: &Side, used: f64) -> f64 {
    if side.quota.is_some() && side.throttled >= THROTTLED && used >= USED {
        used.max(0.97)
    } else {
        used.min(1.0)
    }
}

/// A database in the client: the client's CPU is its own, unless most of it is the tool's work.
fn client_cpu(facts: &Facts) -> Bound {
    if facts.in_process && facts.own_share.is_none_or(|own| own < 0.5) {
        Bound::ProcessCpu
    } else {
        Bound::ClientCpu
    }
}

fn waiting(facts: &Facts) -> Option<(Bound, Confidence)> {
    if facts.served {
        return None;
    }
    if facts.interface >= 0.85 {
        return Some((Bound::Network, Confidence::High));
    }
    // Where sessions waited for locks and for the log, what they waited for more is the likelier.
    let lock = |said: &&Said| said.locks >= LOCKED || said.locks >= PARTLY && said.locks > said.logs;
    if let Some(said) = facts.said.as_ref().filter(lock) {
        let sure = said.locks >= LOCKED && said.looks >= FEW;
        return Some((Bound::Locks, if sure { Confidence::High } else { Confidence::Low }));
    }
    let idle = facts.idle();
    if let Some(confidence) = disk(facts, idle) {
        return Some((Bound::Disk, confidence));
    }
    if idle < IDLE || facts.disk.waiting >= 0.4 {
        return None;
    }
    // Of many clients most sleep whatever their database does: one that used half of the processors was at work.
    let database = if facts.in_process { Some(&facts.client) } else { facts.server.as_ref() };
    let rests = database.is_none_or(|side| side.cpu < BUSY * side.capacity);
    if facts.in_process {
        // What sleeps within one process, and not for storage, waits for its own kind.
        let sleeps = facts.disk.samples >= FEW && idle >= 0.6 && rests;
        return sleeps.then_some((Bound::Locks, Confidence::Low));
    }
    let wire = facts.wire.as_ref()?;
    if wire.rtt_us >= facts.round_trip_us / 2.0 {
        return Some((Bound::Network, Confidence::High));
    }
    facts.server?;
    if wire.told < FEW {
        return None;
    }
    // The server held the requests, and used neither CPU nor storage meanwhile: it waited within itself. That it was for
    // a lock only the engine itself could say.
    if wire.at_server >= 0.6 {
        // It worked; or it was asked, and says that it was not.
        if !rests || facts.said.as_ref().is_some_and(|said| said.looks >= FEW_LOOKS && said.locks < UNLOCKED)
        {
            return None;
        }
        return Some((Bound::Locks, Confidence::Low));
    }
    let clear = wire.at_server <= 0.1 && wire.told >= 2 * FEW && idle >= 0.7;
    let confidence = if clear { Confidence::High } else { Confidence::Low };
    (wire.at_server <= 0.3).then_some((Bound::Network, confidence))
}

fn disk(facts: &Facts, idle: f64) -> Option<Confidence> {
    let disk = &facts.disk;
    if idle < 0.3 || disk.touched == Some(false) {
        return None;
    }
    // The engine's own word is as good as samples of threads; with them it is certain.
    let said = facts.said.as_ref().filter(|said| said.logs >= LOCKED && said.looks >= FEW_LOOKS);
    if let Some(said) = said.filter(|_| idle >= IDLE) {
        let seen = disk.waiting >= 0.3 || disk.busy >= 0.6;
        let sure = seen && said.looks >= FEW && disk.touched == Some(true);
        return Some(if sure { Confidence::High } else { Confidence::Low });
    }
    if disk.samples < 4 {
        // Too short to look: the disk's own counter says whether it was at work all the time.
        return (disk.busy >= 0.6 && disk.touched == Some(true)).then_some(Confidence::Low);
    }
    let sure = disk.waiting >= 0.6 && disk.samples >= FEW && disk.touched == Some(true);
    (disk.waiting >= 0.5).then_some(if sure { Confidence::High } else { Confidence::Low })
}

fn nearly(facts: &Facts) -> Option<(Bound, Confidence)> {
    if facts.served {
        return None;
    }
    let (client, server) = (client_fullness(facts), facts.server.map_or(0.0, |s| server_fullness(facts, &s)));
    if client.max(server) >= NEARLY {
        return Some((if server >= client { Bound::ServerCpu } else { client_cpu(facts) }, Confidence::Low));
    }
    nearly_alone(facts).then_some((Bound::ServerCpu, Confidence::Low))
}

/// Whether processors that both sides share were nearly full, and most of it was the server's work.
pub(super) fn nearly_alone(facts: &Facts) -> bool {
    let server = facts.server.map_or(0.0, |server| server.cpu);
    facts.shared && facts.cores_busy >= NEARLY && server >= facts.cores * facts.cores_busy * MAJORITY
}

/// A side whose threads were at work or ready to be all the time wanted more than it got, on processors that others had.
fn ready(facts: &Facts) -> Option<(Bound, Confidence)> {
    let client = (facts.client.cpu + facts.client.queue) / facts.clients;
    let server = facts.server.map_or(0.0, |server| server.thread + server.thread_queue);
    // A thread that was not let go back to sleep is ready too, with nothing to do: only one side may be.
    let clear = client.max(server) >= NEARLY && client.min(server) <= 0.3;
    (clear && !facts.served)
        .then(|| (if server > client { Bound::ServerCpu } else { client_cpu(facts) }, Confidence::Low))
}

fn neither(facts: &Facts) -> (Bound, Confidence) {
    if facts.served {
        return (Bound::Load, Confidence::High);
    }
    if facts.unseen.is_some() {
        return (Bound::NotKnown, Confidence::Low);
    }
    // Others had the processors, or threads waited for them most of the time: what else would have bound it is not to
    // be seen.
    let queue = facts.client.queue + facts.server.map_or(0.0, |server| server.queue);
    if facts.cores_busy >= FULL && queue / facts.clients >= 0.3 {
        return (Bound::NotKnown, Confidence::Low);
    }
    let waited = facts.server.is_some_and(|server| server.stopped >= 0.2);
    if waited {
        return (Bound::NotKnown, Confidence::Low);
    }
    // Where most of a round trip went is not known: it may be any wait that was not recognised.
    let confidence = if facts.idle() <= 0.6 { Confidence::High } else { Confidence::Low };
    (Bound::Latency, confidence)
}

#[cfg(test)]
mod tests {
    use super::super::facts::{Disk, Wire};
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
        prop::option::of(wire.prop_map(|(rtt_us, told, at_server)| Wire { rtt_us, told, at_server }))
    }

    prop_compose! {
        fn facts()(
            client in side(),
            server in prop::option::of(side()),
            disk in disk(),
            wire in wire(),
            (clients, seconds, round_trip_us, cores_busy) in (1_u32..64, 0.01..30.0_f64, 1.0..1e6_f64, 0.0..1.0_f64),
            (others, steal, interface) in (0.0..4.0_f64, 0.0..0.3_f64, 0.0..1.0_f64),
            (served, in_process, shared) in (any::<bool>(), any::<bool>(), any::<bool>()),
            said in prop::option::of((0_u64..99, 0.0..1.0_f64, 0.0..1.0_f64)),
            own_share in prop::option::of(0.0..1.0_f64),
        ) -> Facts {
            let server = server.filter(|_| !in_process);
            Facts {
                tiers: Vec::new(), seconds, clients: f64::from(clients), served, round_trip_us, client, server, in_process,
                unseen: (server.is_none() && !in_process).then(|| "hidden".to_owned()),
                cores_busy, cores: 4.0, shared: shared && server.is_some(), others, machine: 4.0, steal, disk, wire,
                interface, own_share,
                said: said.map(|(looks, locks, logs)| Said { looks, locks, logs, ..Said::default() }),
            }
        }
    }

    proptest! {
        #[test]
        fn what_was_not_seen_is_not_named(facts in facts()) {
            let (bound, confidence) = judge(&facts);
            if facts.unseen.is_some() {
                prop_assert!(bound != Bound::ServerCpu && bound != Bound::ProcessCpu);
            }
            if bound == Bound::ServerCpu {
                prop_assert!(facts.server.is_some());
            }
            prop_assert!(bound != Bound::ProcessCpu || facts.in_process);
            if bound == Bound::Disk {
                let said = facts.said.as_ref().map_or(0.0, |said| said.logs);
                let seen = facts.disk.waiting.max(facts.disk.busy).max(said);
                prop_assert!(facts.disk.touched != Some(false) && seen >= 0.5);
            }
            // What was at work did not only wait, unless the engine says that it did.
            if bound == Bound::Locks && facts.said.as_ref().is_none_or(|said| said.locks < PARTLY) {
                let database = if facts.in_process { Some(facts.client) } else { facts.server };
                prop_assert!(database.is_none_or(|side| side.cpu < 0.5 * side.capacity));
            }
            // No machine that worked for others, and no trial too short to be measured, is certain of anything.
            if confidence == Confidence::High {
                prop_assert!(suspect(&facts).is_none() && facts.seconds >= SHORT);
            }
            prop_assert!(!super::super::evidence::line(&facts, bound).is_empty());
        }

        #[test]
        fn a_client_that_is_full_beside_a_server_that_is_not_is_named_whatever_else_is_seen(facts in facts()) {
            let mut facts = facts;
            facts.client.cpu = facts.clients * 0.97;
            facts.client.quota = None;
            let idle = Side { cpu: 0.3, capacity: 4.0, thread: 0.3, ..Side::default() };
            facts.server = facts.server.map(|_| idle);
            prop_assert!(matches!(judge(&facts).0, Bound::ClientCpu | Bound::ProcessCpu));
        }

        #[test]
        fn a_load_that_was_served_is_never_blamed_on_a_wait(facts in facts()) {
            let facts = Facts { served: true, ..facts };
            prop_assert!(!matches!(judge(&facts).0, Bound::Disk | Bound::Locks | Bound::Network | Bound::Latency));
        }
    }
}
