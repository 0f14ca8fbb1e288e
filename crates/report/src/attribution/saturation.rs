//! Processors: which side had no more of them.
//!
//! Processors shared by client and server limit both. The rule names the side that used more of them: if the server
//! used a third, it could have done three times as much without the client, and the result is a lower bound.

use super::bottleneck::{Bottleneck, Confidence, Judged, Rule, Sides};
use super::facts::{Facts, Side};

/// From this share on, a processor or a limit counts as saturated. The rest is lost to switching and wake-ups.
pub(super) const FULL: f64 = 0.9;
/// From this share on, it is nearly saturated, which is reported with low confidence if nothing else explains the
/// trial.
pub(super) const NEARLY: f64 = 0.8;
/// The share above which one side certainly used the greater part.
const MAJORITY: f64 = 0.67;
/// The share of client and server in saturated processors above which these count as saturated by them.
const MOSTLY_OURS: f64 = 0.7;
/// The minimum share of time that a side must have run if its threads also waited for a processor.
pub(super) const AT_WORK: f64 = 0.4;

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
    fullness(threads, side)
}

fn fullness(threads: f64, side: &Side) -> (Rule, f64) {
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
pub(super) fn nearly(facts: &Facts) -> Option<Judged> {
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
pub(super) fn ready(facts: &Facts) -> Option<Judged> {
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
