//! The evidence for an attribution, in one line.

use crate::attribution::facts::{Facts, Side};
use crate::attribution::{Bottleneck, Ground, Rule, Sides};
use crate::format::{list, micros};
use kurabe_core::observation::TierUse;

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
    let (share, round_trip) = (percent(ground.share), micros(facts.round_trip_us));
    let (wire, reported) = (facts.wire.unwrap_or_default(), facts.reported.clone().unwrap_or_default());
    match ground.rule {
        Rule::Thread(Sides::Server) => format!("one thread of the server used {share} of a CPU"),
        Rule::Thread(Sides::Client) if bottleneck == Bottleneck::ProcessCpu => process(facts),
        Rule::Thread(Sides::Client) if facts.agent.is_some() => {
            format!("the clients' threads{} were running for {share} of the time", of_agent(facts))
        }
        Rule::Capacity(Sides::Client) if facts.agent.is_some() => {
            format!("the client{} used {share} of its processors", of_agent(facts))
        }
        Rule::Thread(Sides::Client) => {
            let who =
                if facts.threads > 1.0 { "the clients' threads were" } else { "the client's thread was" };
            format!("{who} running for {share} of the time")
        }
        Rule::PerClient => format!("the server was busy with each client's requests for {share} of the time"),
        Rule::Capacity(side) => capacity(facts, side),
        Rule::SharedCpus => shared(facts, ground.share),
        Rule::Ready(side) => {
            let server = facts.server.unwrap_or_default();
            let (who, work, queue) = match side {
                Sides::Client => {
                    let (work, queue) = (facts.client_thread(), facts.client_thread_queue());
                    ("the client", percent(work), percent(queue))
                }
                Sides::Server => {
                    ("a thread of the server", percent(server.thread), percent(server.thread_queue))
                }
            };
            format!(
                "{who} was running for {work} of the time, and runnable but waiting for a processor for {queue}"
            )
        }
        Rule::Interface => format!("the network interface used {share} of its capacity"),
        Rule::WireTime => {
            format!("of a round trip of {round_trip}, the network takes {}", micros(wire.rtt_us))
        }
        Rule::InTransit => {
            let (held, samples) = (percent(wire.at_server), wire.classified);
            format!(
                "in a round trip of {round_trip}, the server had a request in {held} of {samples} samples"
            )
        }
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

/// The agent that was nearest to its limit.
fn of_agent(facts: &Facts) -> String {
    facts.agent.as_ref().map_or_else(String::new, |agent| format!(" of agent {}", agent.name))
}

/// The evidence if no resource is named.
fn without_ground(facts: &Facts, bottleneck: Bottleneck, client: &str) -> String {
    let server = facts.server.unwrap_or_default();
    let (round_trip, of_client) = (micros(facts.round_trip_us), |used: f64| percent(used / facts.clients));
    let cpu = of_client(facts.client.cpu);
    match bottleneck {
        Bottleneck::Load => {
            let server = facts.server.map_or_else(String::new, |s| format!(", the server {}", of_one(s.cpu)));
            format!("the rate was served without delay; {client}{server}")
        }
        Bottleneck::Latency if facts.in_process => {
            let queue = of_client(facts.client.queue);
            format!(
                "of an operation of {round_trip}, CPU took {cpu} and waiting for a processor {queue}; the \
                 rest is wake-ups and other waits"
            )
        }
        Bottleneck::Latency => {
            let (server, queue) =
                (of_client(server.cpu), of_client(facts.client.queue + facts.turn + server.queue));
            let wait = engine_wait(facts);
            format!(
                "of a round trip of {round_trip}, the client's CPU took {cpu}, the server's {server}, and \
                 waiting for a processor {queue}; the rest is wake-ups, network and other waits{wait}"
            )
        }
        _ => {
            if let Some(why) = &facts.unseen {
                return format!("the server was not observed: {why}; {client}");
            }
            let (busy, others) = (percent(facts.cores_busy), others(facts));
            let queue = percent((facts.client.queue / facts.clients).min(1.0));
            format!(
                "the processors were {busy} busy, {others} with other processes; the client waited for a \
                 processor for {queue} of the time"
            )
        }
    }
}

/// The most frequent wait other than for locks that the server reports, if it is frequent enough.
fn engine_wait(facts: &Facts) -> String {
    let other = facts.reported.as_ref().and_then(|reported| reported.other.as_ref());
    other.filter(|(_, share)| *share >= 0.3).map_or_else(String::new, |(event, share)| {
        let share = percent(*share);
        format!("; the server reports waits for \u{201c}{event}\u{201d} in {share} of the session samples")
    })
}

/// The process that contains client and database.
fn process(facts: &Facts) -> String {
    let own = facts.own_share.map(|own| format!(", {} of that by the tool itself", percent(own)));
    let own = own.unwrap_or_default();
    format!("the process with client and database used {}{own}", cpus(facts.client.cpu))
}

/// The CPU usage of a side, relative to its limit.
fn capacity(facts: &Facts, side: Sides) -> String {
    let (who, one): (_, Side) = match side {
        Sides::Client => ("the client", facts.client),
        Sides::Server => ("the server", facts.server.unwrap_or_default()),
    };
    match one.quota {
        Some(quota) => {
            let (used, quota) = (number(one.cpu), number(quota));
            format!("{who} used {used} of the {quota} CPUs allowed by its control group")
        }
        None => format!("{who} used {} of its {}", number(one.cpu), plural(one.capacity)),
    }
}

fn shared(facts: &Facts, busy: f64) -> String {
    if facts.in_process {
        return process(facts);
    }
    let of_all = |cpu: f64| percent(cpu / facts.cores.max(1.0));
    let (server, client) = (of_all(facts.server.unwrap_or_default().cpu), of_all(facts.client.cpu));
    let (shared, busy, others) = (plural(facts.cores), percent(busy), others(facts));
    format!(
        "the {shared} shared by client and server were {busy} busy: server {server}, client {client}, others {others}"
    )
}

/// The share of the machine's CPU that other processes used.
fn others(facts: &Facts) -> String {
    percent(facts.others / facts.machine.max(1.0))
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

/// The share of the server side's CPU above which it counts as one tier's.
const MAX: f64 = 0.6;

/// The addition to the evidence, as a clause; empty for a single tier.
pub(super) fn tiers(facts: &Facts, bottleneck: Bottleneck) -> String {
    if facts.tiers.is_empty() {
        return String::new();
    }
    let tiers: Vec<String> = facts
        .tiers
        .iter()
        .map(|(name, cpu)| match cpu {
            Some(cpu) => format!("{name} {cpu:.2} CPUs"),
            None => format!("{name} not observed"),
        })
        .collect();
    let full = if bottleneck == Bottleneck::ServerCpu { fullest(facts) } else { None };
    let full = full.map_or_else(String::new, |tier| format!("; the {tier} is the bottleneck"));
    format!("; behind the client, {}{full}", list(&tiers))
}

/// The tier with most of the server side's CPU, if there is one and all were observed.
fn fullest(facts: &Facts) -> Option<&'static str> {
    let mut sums = [(TierUse::APPLICATION, 0.0), (TierUse::DATABASE, 0.0), (TierUse::REMOTE, 0.0)];
    for (name, cpu) in &facts.tiers {
        // Applications may be numbered.
        let kind = sums.iter().position(|(known, _)| known == name).unwrap_or(0);
        sums[kind].1 += (*cpu)?;
    }
    let whole: f64 = sums.iter().map(|(_, cpu)| cpu).sum();
    sums.into_iter().find(|(_, cpu)| *cpu >= MAX * whole).map(|(name, _)| name)
}
