//! The evidence for an attribution, in one line.

use super::facts::{Facts, Side};
use super::rules::{Ground, Rule};
use super::{Bottleneck, Sides};
use crate::format::micros;

/// The evidence for this bottleneck, as a clause without a full stop.
pub(super) fn line(facts: &Facts, bottleneck: Bottleneck, ground: Option<Ground>) -> String {
    let client = format!("the client {}", of_one(facts.client.cpu));
    let Some(ground) = ground else { return without_ground(facts, bottleneck, &client) };
    let found = found(facts, bottleneck, ground);
    let server = facts.server;
    match (bottleneck, server) {
        (Bottleneck::ServerCpu, _) => format!("{found}; {client}"),
        (Bottleneck::ClientCpu, Some(server)) => format!("{found}; the server used {}", cpus(server.cpu)),
        (Bottleneck::ProcessCpu, _) | (Bottleneck::ClientCpu, None) => found,
        (_, Some(server)) => format!("{found}; {client}, the server {}", of_one(server.cpu)),
        (_, None) => format!("{found}; {client}"),
    }
}

/// What the rule measured.
fn found(facts: &Facts, bottleneck: Bottleneck, ground: Ground) -> String {
    let share = percent(ground.share);
    let (wire, reported) = (facts.wire.unwrap_or_default(), facts.reported.clone().unwrap_or_default());
    match ground.rule {
        Rule::Thread(Sides::Server) => format!("one thread of the server used {share} of a CPU"),
        Rule::Thread(Sides::Client) if bottleneck == Bottleneck::ProcessCpu => process(facts),
        Rule::Thread(Sides::Client) => {
            let who =
                if facts.clients > 1.0 { "the clients' threads were" } else { "the client's thread was" };
            format!("{who} running for {share} of the time")
        }
        Rule::PerClient => format!("the server was busy with each client's requests for {share} of the time"),
        Rule::Capacity(side) => capacity(facts, side),
        Rule::SharedCpus => shared(facts, ground.share),
        Rule::Ready(side) => {
            let server = facts.server.unwrap_or_default();
            let (who, work, queue) = match side {
                Sides::Client => {
                    ("the client", facts.client.cpu / facts.clients, facts.client.queue / facts.clients)
                }
                Sides::Server => ("a thread of the server", server.thread, server.thread_queue),
            };
            let (work, queue) = (percent(work), percent(queue));
            format!(
                "{who} was running for {work} of the time, and runnable but waiting for a processor for {queue}"
            )
        }
        Rule::Interface => format!("the network interface used {share} of its capacity"),
        Rule::WireTime => format!(
            "of a round trip of {}, the network takes {}",
            micros(facts.round_trip_us),
            micros(wire.rtt_us)
        ),
        Rule::InTransit => format!(
            "in a round trip of {}, the server had a request in {} of {} samples",
            micros(facts.round_trip_us),
            percent(wire.at_server),
            wire.classified
        ),
        Rule::LocksReported => {
            let lock = reported.lock.map_or_else(String::new, |lock| format!(" ({lock})"));
            let samples = reported.samples;
            format!("the server reports waits for locks in {share} of {samples} session samples{lock}")
        }
        Rule::HeldRequests => format!(
            "the server had unanswered requests in {share} of {} samples, and used little CPU and no storage",
            wire.classified
        ),
        Rule::Slept => format!("clients slept for {share} of the time, but not for storage"),
        Rule::LogReported => {
            let event =
                reported.other.map_or_else(String::new, |(event, _)| format!(" (\u{201c}{event}\u{201d})"));
            let samples = reported.samples;
            format!("the server reports waits for the log in {share} of {samples} session samples{event}")
        }
        Rule::StorageSamples => {
            let who = if facts.in_process { "a client waited" } else { "the server waited" };
            format!("{who} for storage in {share} of {} samples{}", facts.disk.samples, engine_wait(facts))
        }
        Rule::DiskBusy => format!("the disk was busy for {share} of the time"),
    }
}

/// The evidence if no resource is named.
fn without_ground(facts: &Facts, bottleneck: Bottleneck, client: &str) -> String {
    let server = facts.server.unwrap_or_default();
    match bottleneck {
        Bottleneck::Load => {
            let server = facts.server.map_or_else(String::new, |s| format!(", the server {}", of_one(s.cpu)));
            format!("the rate was served without delay; {client}{server}")
        }
        Bottleneck::Latency if facts.in_process => format!(
            "of an operation of {}, CPU took {} and waiting for a processor {}; the rest is wake-ups and \
             other waits",
            micros(facts.round_trip_us),
            percent(facts.client.cpu / facts.clients),
            percent(facts.client.queue / facts.clients),
        ),
        Bottleneck::Latency => format!(
            "of a round trip of {}, the client's CPU took {}, the server's {}, and waiting for a processor \
             {}; the rest is wake-ups, network and other waits{}",
            micros(facts.round_trip_us),
            percent(facts.client.cpu / facts.clients),
            percent(server.cpu / facts.clients),
            percent((facts.client.queue + server.queue) / facts.clients),
            engine_wait(facts),
        ),
        _ => match &facts.unseen {
            Some(why) => format!("the server was not observed: {why}; {client}"),
            None => format!(
                "the processors were {} busy, {} with other processes; the client waited for a processor \
                 for {} of the time",
                percent(facts.cores_busy),
                percent(facts.others / facts.machine.max(1.0)),
                percent((facts.client.queue / facts.clients).min(1.0)),
            ),
        },
    }
}

/// The most frequent wait other than for locks that the server reports, if it is frequent enough.
fn engine_wait(facts: &Facts) -> String {
    let other = facts
        .reported
        .as_ref()
        .and_then(|reported| reported.other.as_ref())
        .filter(|(_, share)| *share >= 0.3);
    other.map_or_else(String::new, |(event, share)| {
        format!(
            "; the server reports waits for \u{201c}{event}\u{201d} in {} of the session samples",
            percent(*share)
        )
    })
}

/// The process that contains client and database.
fn process(facts: &Facts) -> String {
    let own = facts
        .own_share
        .map_or_else(String::new, |own| format!(", {} of that by the tool itself", percent(own)));
    format!("the process with client and database used {}{own}", cpus(facts.client.cpu))
}

/// The CPU usage of a side, relative to its limit.
fn capacity(facts: &Facts, side: Sides) -> String {
    let (who, one): (_, Side) = match side {
        Sides::Client => ("the client", facts.client),
        Sides::Server => ("the server", facts.server.unwrap_or_default()),
    };
    match one.quota {
        Some(quota) => format!(
            "{who} used {} of the {} CPUs allowed by its control group",
            number(one.cpu),
            number(quota)
        ),
        None => format!("{who} used {} of its {}", number(one.cpu), plural(one.capacity)),
    }
}

fn shared(facts: &Facts, busy: f64) -> String {
    if facts.in_process {
        return process(facts);
    }
    let all = facts.cores.max(1.0);
    let server = facts.server.unwrap_or_default();
    format!(
        "the {} shared by client and server were {} busy: server {}, client {}, others {}",
        plural(facts.cores),
        percent(busy),
        percent(server.cpu / all),
        percent(facts.client.cpu / all),
        percent(facts.others / facts.machine.max(1.0)),
    )
}

fn plural(count: f64) -> String {
    if (count - 1.0).abs() < 1e-9 { "1 CPU".to_owned() } else { format!("{} CPUs", number(count)) }
}

/// `at 30 % of a CPU`.
fn of_one(cpus: f64) -> String {
    format!("at {} of a CPU", percent(cpus))
}

fn cpus(used: f64) -> String {
    format!("{} CPUs", number(used))
}

fn number(value: f64) -> String {
    if (value - value.round()).abs() < 1e-9 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
