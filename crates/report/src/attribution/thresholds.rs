//! Each rule names its resource from its threshold on, and not below it.

use super::facts::{Disk, Facts, Reported, Side, Wire};
use super::rules::{SHORT, disturbed, judge};
use super::{Bottleneck, Confidence, client_busy, split};
use Bottleneck::{ClientCpu, Disk as Storage, Latency, Load, Locks, Network, ProcessCpu, ServerCpu, Unknown};
use Confidence::{High, Low};

/// A trial in which nothing is saturated, and the clients wait for four fifths of their time.
pub(super) fn quiet() -> Facts {
    let side = Side { cpu: 0.4, capacity: 2.0, thread: 0.1, ..Side::default() };
    Facts {
        seconds: 10.0,
        clients: 4.0,
        threads: 4.0,
        turn: 0.0,
        kept_rate: None,
        round_trip_us: 1_000.0,
        client: side,
        server: Some(side),
        tiers: Vec::new(),
        in_process: false,
        unseen: None,
        cores_busy: 0.4,
        cores: 2.0,
        shared: false,
        others: 0.0,
        machine: 4.0,
        steal: 0.0,
        disk: Disk { samples: 20, waiting: 0.0, busy: 0.0, touched: Some(false) },
        wire: Some(Wire { rtt_us: 10.0, classified: 100, at_server: 0.5 }),
        interface: 0.0,
        reported: None,
        own_share: None,
        agent: None,
        apart_ns: None,
    }
}

/// What is changed, and what the trial is attributed to then.
type Case = (fn(&mut Facts), Bottleneck, Confidence);

fn assert_all(what: &str, cases: &[Case]) {
    for (at, (change, bottleneck, confidence)) in cases.iter().enumerate() {
        let mut facts = quiet();
        change(&mut facts);
        let judged = judge(&facts);
        assert_eq!(
            (judged.bottleneck, judged.confidence),
            (*bottleneck, *confidence),
            "{what}, case {at}: {facts:?}"
        );
    }
}

fn cpu(facts: &mut Facts, client: f64, server: f64) {
    facts.client.cpu = client;
    facts.server.as_mut().unwrap().cpu = server;
}

fn server(facts: &mut Facts) -> &mut Side {
    facts.server.as_mut().unwrap()
}

fn wire(facts: &mut Facts, classified: u64, at_server: f64) {
    facts.wire = Some(Wire { rtt_us: 10.0, classified, at_server });
}

fn reported(facts: &mut Facts, samples: u64, locks: f64, logs: f64) {
    facts.reported = Some(Reported { samples, locks, logs, ..Reported::default() });
}

fn disk(facts: &mut Facts, samples: u64, waiting: f64, busy: f64, touched: Option<bool>) {
    facts.disk = Disk { samples, waiting, busy, touched };
}

/// A database within the client.
fn embedded(facts: &mut Facts) {
    (facts.server, facts.in_process) = (None, true);
}

#[test]
fn trial_without_a_saturated_resource_is_limited_by_its_round_trips_or_unknown() {
    assert_all(
        "neither",
        &[
            (|_| (), Latency, Low),
            (|f| cpu(f, 0.8, 0.8), Latency, High),
            (|f| cpu(f, 0.8, 0.79), Latency, Low),
            (|f| f.turn = 0.8, Latency, High),
            (|f| f.kept_rate = Some(true), Load, High),
            (|f| f.kept_rate = Some(false), Unknown, Low),
            (|f| (f.server, f.unseen) = (None, Some("hidden".into())), Unknown, Low),
            (|f| f.client.queue = 3.2, Unknown, Low),
            (|f| f.client.queue = 3.1, Latency, High),
            (|f| server(f).queue = 3.2, Unknown, Low),
            (|f| f.cores_busy = 0.9, Unknown, Low),
            (|f| f.cores_busy = 0.89, Latency, Low),
            (|f| server(f).stopped = 0.2, Unknown, Low),
            (|f| server(f).stopped = 0.19, Latency, Low),
        ],
    );
}

#[test]
fn disturbed_or_short_trial_is_attributed_with_low_confidence() {
    let served = |change: fn(&mut Facts)| {
        let mut facts = Facts { kept_rate: Some(true), ..quiet() };
        change(&mut facts);
        assert_eq!(judge(&facts).bottleneck, Load);
        (judge(&facts).confidence, disturbed(&facts))
    };
    assert_eq!(served(|f| f.seconds = SHORT), (High, None));
    assert_eq!(served(|f| f.seconds = SHORT * 0.99), (Low, None));
    assert_eq!(served(|f| f.steal = 0.049), (High, None));
    let given = "the hypervisor gave 5 % of its CPU time to others".to_owned();
    assert_eq!(served(|f| f.steal = 0.05), (Low, Some(given)));
    assert_eq!(served(|f| f.others = 0.39), (High, None));
    let used = "other processes used 10 % of the machine's CPU".to_owned();
    assert_eq!(served(|f| f.others = 0.4), (Low, Some(used)));
    assert_eq!(served(|f| (f.others, f.unseen) = (0.4, Some("hidden".into()))), (High, None));
    let apart = "the agents started 2.5 ms apart, more than 1 % of its time".to_owned();
    assert_eq!(served(|f| f.apart_ns = Some(2_500_000)), (Low, Some(apart)));
}

#[test]
fn side_that_fills_its_processors_or_a_thread_is_named() {
    assert_all(
        "full",
        &[
            (|f| cpu(f, 0.4, 1.8), ServerCpu, High),
            (|f| cpu(f, 0.4, 1.79), ServerCpu, Low),
            (|f| cpu(f, 0.4, 1.6), ServerCpu, Low),
            (|f| cpu(f, 0.4, 1.59), Latency, High),
            (|f| cpu(f, 1.8, 0.4), ClientCpu, High),
            (|f| cpu(f, 1.59, 0.4), Latency, High),
            (|f| cpu(f, 1.84, 1.7), ClientCpu, High),
            (|f| cpu(f, 1.84, 1.76), ClientCpu, Low),
            (|f| cpu(f, 1.8, 1.8), ServerCpu, Low),
            // A thread of the client, of the server, and the server's work for each client.
            (
                |f| (f.clients, f.threads, f.client.cpu, f.client.thread) = (1.0, 1.0, 0.95, 0.95),
                ClientCpu,
                High,
            ),
            (|f| (server(f).thread, server(f).cpu) = (0.95, 1.0), ServerCpu, High),
            (|f| (server(f).thread, server(f).cpu, server(f).capacity) = (0.95, 2.4, 4.0), ServerCpu, Low),
            (|f| (f.clients, f.threads, server(f).cpu) = (1.0, 1.0, 0.95), ServerCpu, High),
            (|f| (f.kept_rate, server(f).cpu) = (Some(true), 1.7), Load, High),
        ],
    );
}

#[test]
fn shared_processors_are_attributed_to_who_used_more_of_them() {
    fn busy(facts: &mut Facts, share: f64, client: f64, server: f64) {
        facts.cores_busy = share;
        cpu(facts, client, server);
    }
    assert_all(
        "shared",
        &[
            (|f| busy(f, 0.95, 0.9, 0.9), ServerCpu, Low),
            (|f| busy(f, 0.95, 0.7, 0.7), ServerCpu, Low),
            (|f| busy(f, 0.95, 1.0, 0.9), ClientCpu, Low),
            (|f| busy(f, 0.95, 1.3, 0.5), ClientCpu, High),
            (|f| busy(f, 0.95, 0.5, 1.3), ServerCpu, High),
            (|f| busy(f, 0.95, 0.5, 0.5), Unknown, Low),
            (|f| (busy(f, 0.95, 0.9, 0.9), f.unseen = Some("hidden".into())).0, Unknown, Low),
            (|f| (embedded(f), f.client.cpu = 1.5, f.cores_busy = 0.95).0, ProcessCpu, High),
            (
                |f| (embedded(f), f.client.cpu = 1.5, f.cores_busy = 0.95, f.own_share = Some(0.49)).0,
                ProcessCpu,
                High,
            ),
            (
                |f| (embedded(f), f.client.cpu = 1.5, f.cores_busy = 0.95, f.own_share = Some(0.5)).0,
                ClientCpu,
                High,
            ),
            // Nearly, by the server alone.
            (|f| (busy(f, 0.85, 0.2, 1.2), f.shared = true).0, ServerCpu, Low),
            (|f| (busy(f, 0.85, 0.2, 1.1), f.shared = true).0, Latency, Low),
            (|f| (busy(f, 0.79, 0.2, 1.2), f.shared = true).0, Latency, Low),
            (|f| busy(f, 0.85, 0.2, 1.2), Latency, Low),
        ],
    );
}

#[test]
fn side_whose_threads_wanted_the_processors_all_the_time_is_named() {
    fn ready(facts: &mut Facts, thread: f64, queue: f64) {
        let server = server(facts);
        (server.cpu, server.thread, server.thread_queue) = (thread, thread, queue);
    }
    fn ready_client(facts: &mut Facts, work: f64, queue: f64) {
        let client = &mut facts.client;
        (client.cpu, client.capacity, client.thread, client.queue) = (4.0 * work, 8.0, work, 4.0 * queue);
    }
    assert_all(
        "ready",
        &[
            (|f| ready(f, 0.5, 0.35), ServerCpu, Low),
            (|f| ready(f, 0.5, 0.29), Latency, Low),
            (|f| ready(f, 0.39, 0.45), Latency, Low),
            (|f| (ready(f, 0.5, 0.35), f.kept_rate = Some(true)).0, Load, High),
            (|f| ready_client(f, 0.5, 0.35), ClientCpu, Low),
            (|f| ready_client(f, 0.5, 0.29), Latency, High),
            (|f| (ready_client(f, 0.5, 0.25), server(f).thread = 0.31).0, Latency, High),
        ],
    );
}

#[test]
fn wait_that_the_server_reports_is_named() {
    assert_all(
        "reported",
        &[
            (|f| reported(f, 10, 0.5, 0.1), Locks, High),
            (|f| reported(f, 9, 0.5, 0.1), Locks, Low),
            (|f| reported(f, 10, 0.5, 0.6), Locks, High),
            (|f| reported(f, 10, 0.3, 0.1), Locks, Low),
            (|f| reported(f, 10, 0.29, 0.1), Latency, Low),
            (|f| reported(f, 10, 0.3, 0.3), Latency, Low),
            (|f| (reported(f, 10, 0.5, 0.1), f.kept_rate = Some(true)).0, Load, High),
            // Of the log.
            (|f| (reported(f, 4, 0.0, 0.5), f.disk.touched = None).0, Storage, Low),
            (|f| (reported(f, 3, 0.0, 0.5), f.disk.touched = None).0, Latency, Low),
            (|f| (reported(f, 4, 0.0, 0.49), f.disk.touched = None).0, Latency, Low),
            (|f| (reported(f, 10, 0.0, 0.5), disk(f, 20, 0.3, 0.0, Some(true))).0, Storage, High),
            (|f| (reported(f, 10, 0.0, 0.5), disk(f, 20, 0.0, 0.6, Some(true))).0, Storage, High),
            (|f| (reported(f, 10, 0.0, 0.5), disk(f, 20, 0.29, 0.59, Some(true))).0, Storage, Low),
            (|f| (reported(f, 9, 0.0, 0.5), disk(f, 20, 0.3, 0.0, Some(true))).0, Storage, Low),
            (|f| (reported(f, 10, 0.0, 0.5), disk(f, 20, 0.3, 0.0, None)).0, Storage, Low),
            (
                |f| (reported(f, 10, 0.0, 0.5), disk(f, 20, 0.3, 0.0, Some(true)), cpu(f, 1.0, 1.01)).0,
                Storage,
                Low,
            ),
        ],
    );
}

#[test]
fn storage_is_named_if_threads_waited_for_it() {
    assert_all(
        "storage",
        &[
            (|f| disk(f, 10, 0.6, 0.0, Some(true)), Storage, High),
            (|f| disk(f, 10, 0.59, 0.0, Some(true)), Storage, Low),
            (|f| disk(f, 9, 0.6, 0.0, Some(true)), Storage, Low),
            (|f| disk(f, 10, 0.6, 0.0, None), Storage, Low),
            (|f| disk(f, 10, 0.6, 0.0, Some(false)), Latency, Low),
            (|f| disk(f, 10, 0.5, 0.0, Some(true)), Storage, Low),
            (|f| disk(f, 10, 0.49, 0.0, Some(true)), Latency, Low),
            // The clients did not wait.
            (|f| (disk(f, 10, 0.9, 0.0, Some(true)), cpu(f, 1.42, 1.42)).0, Latency, High),
            (|f| (disk(f, 10, 0.9, 0.0, Some(true)), cpu(f, 1.38, 1.38)).0, Storage, High),
            // Few samples: the disk's own counter.
            (|f| disk(f, 3, 0.9, 0.6, Some(true)), Storage, Low),
            (|f| disk(f, 3, 0.9, 0.59, Some(true)), Latency, Low),
            (|f| disk(f, 3, 0.9, 0.6, None), Latency, Low),
            // Requests that were at the server all the time.
            (|f| (disk(f, 4, 0.3, 0.0, Some(true)), wire(f, 10, 0.6)).0, Storage, Low),
            (|f| (disk(f, 4, 0.29, 0.0, Some(true)), wire(f, 10, 0.6)).0, Unknown, Low),
            (|f| (disk(f, 4, 0.3, 0.0, Some(true)), wire(f, 10, 0.59)).0, Latency, Low),
            (|f| (disk(f, 4, 0.3, 0.0, Some(true)), wire(f, 9, 0.6)).0, Latency, Low),
            (|f| (disk(f, 4, 0.3, 0.0, None), wire(f, 10, 0.6)).0, Locks, Low),
        ],
    );
}

#[test]
fn wait_is_attributed_by_where_the_requests_are() {
    fn rtt(facts: &mut Facts, rtt_us: f64) {
        facts.wire.as_mut().unwrap().rtt_us = rtt_us;
    }
    assert_all(
        "wire",
        &[
            (|f| f.interface = 0.85, Network, High),
            (|f| f.interface = 0.84, Latency, Low),
            (|f| rtt(f, 500.0), Network, High),
            (|f| rtt(f, 499.0), Latency, Low),
            (|f| (rtt(f, 500.0), cpu(f, 1.0, 1.0)).0, Network, High),
            (|f| (rtt(f, 500.0), cpu(f, 1.0, 1.01)).0, Latency, High),
            (|f| (rtt(f, 500.0), disk(f, 20, 0.39, 0.0, Some(true))).0, Network, High),
            (|f| (rtt(f, 500.0), disk(f, 20, 0.4, 0.0, Some(true))).0, Latency, Low),
            (|f| wire(f, 10, 0.6), Locks, Low),
            (|f| wire(f, 10, 0.59), Latency, Low),
            (|f| wire(f, 9, 0.6), Latency, Low),
            (|f| (wire(f, 10, 0.6), f.disk.touched = Some(true)).0, Unknown, Low),
            (|f| (wire(f, 10, 0.6), cpu(f, 0.4, 0.99)).0, Locks, Low),
            (|f| (wire(f, 10, 0.6), cpu(f, 0.4, 1.0)).0, Latency, Low),
            (|f| (wire(f, 10, 0.6), reported(f, 10, 0.2, 0.2)).0, Locks, Low),
            (|f| (wire(f, 10, 0.6), reported(f, 10, 0.19, 0.2)).0, Latency, Low),
            // In transit.
            (|f| wire(f, 20, 0.1), Network, High),
            (|f| wire(f, 19, 0.1), Network, Low),
            (|f| wire(f, 20, 0.11), Network, Low),
            (|f| (wire(f, 20, 0.1), cpu(f, 0.8, 0.41)).0, Network, Low),
            (|f| wire(f, 20, 0.3), Network, Low),
            (|f| wire(f, 20, 0.31), Latency, Low),
            (|f| (wire(f, 20, 0.3), f.threads = 2.0, f.client.cpu = 0.79).0, Network, Low),
            (|f| (wire(f, 20, 0.3), f.threads = 2.0, f.client.cpu = 0.8).0, Latency, Low),
            (|f| (wire(f, 20, 0.3), f.client.cpu = 1.6).0, Network, Low),
        ],
    );
}

#[test]
fn embedded_database_whose_clients_sleep_waits_for_a_lock() {
    assert_all(
        "embedded",
        &[
            (|f| (embedded(f), f.disk.samples = 10).0, Locks, Low),
            (|f| (embedded(f), f.disk.samples = 9).0, Latency, Low),
            (|f| (embedded(f), f.client.cpu = 1.0).0, Latency, Low),
            (|f| (embedded(f), f.clients = 1.0, f.threads = 1.0).0, Locks, Low),
            (|f| (embedded(f), f.clients = 1.0, f.threads = 1.0, f.client.cpu = 0.41).0, Latency, High),
        ],
    );
}

#[test]
fn client_is_busy_by_the_part_of_its_processors_or_threads_that_it_used() {
    let busy = |change: fn(&mut Facts)| {
        let mut facts = quiet();
        change(&mut facts);
        client_busy(&facts)
    };
    assert!((busy(|_| ()) - 0.4 / 2.0).abs() < 1e-12);
    assert!((busy(|f| f.threads = 1.0) - 0.4).abs() < 1e-12);
    assert!((busy(|f| f.client.cpu = 2.2) - 1.0).abs() < 1e-12);
}

#[test]
fn time_of_a_client_is_divided_among_what_it_was_spent_on() {
    let mut facts = quiet();
    (facts.client.queue, facts.turn, facts.server.as_mut().unwrap().queue) = (0.1, 0.2, 0.5);
    let parts = split(&facts).unwrap();
    let shares = [parts.client_cpu, parts.server_cpu, parts.queue, parts.rest];
    for (share, wanted) in shares.into_iter().zip([0.1, 0.1, 0.2, 0.6]) {
        assert!((share - wanted).abs() < 1e-12, "{parts:?}");
    }
    facts.unseen = Some("hidden".into());
    assert_eq!(split(&facts), None);
}
