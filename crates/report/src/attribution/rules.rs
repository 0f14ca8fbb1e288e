//! The rules of attribution, in order of certainty.
//!
//! A resource is named in two cases: it was saturated; or the clients spent most of their time waiting for it.
//! Otherwise nothing was saturated, and round-trip time limits the trial: more clients would achieve more.

use super::bottleneck::{Bottleneck, Confidence, Judged};
use super::facts::Facts;
use super::saturation::{FULL, NEARLY, full, nearly, ready};
use super::waits::waiting;
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

#[cfg(test)]
mod tests {
    use super::super::Evidence;
    use super::super::bottleneck::Rule;
    use super::super::facts::{Disk, Reported, Side, Wire};
    use super::super::waits::PARTLY;
    use super::*;
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
                let evidence = Evidence { facts: facts.clone(), bottleneck, ground };
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
