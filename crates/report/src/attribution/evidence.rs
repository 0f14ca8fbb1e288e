//! What an attribution rests on, in one line.

use super::Bound;
use super::facts::{Facts, Side};
use super::rules::{FULL, MOSTLY_OURS, PARTLY, nearly_alone};
use crate::format::micros;

/// The evidence for this bound, as a clause without its full stop.
pub(super) fn line(facts: &Facts, bound: Bound) -> String {
    let client = format!("the client {}", of_one(facts.client.cpu));
    let server = facts.server.unwrap_or_default();
    match bound {
        Bound::ServerCpu => format!("{}; {}", server_full(facts, &server), client_side(facts)),
        Bound::ClientCpu => {
            let other = if facts.server.is_some() {
                format!("; the server used {}", cpus(server.cpu))
            } else {
                String::new()
            };
            format!("{}{other}", client_full(facts))
        }
        Bound::ProcessCpu => {
            let own = facts.own_share.map_or_else(String::new, |own| {
                format!(", of which the tool's own work is {}", percent(own))
            });
            format!("the process that holds client and database used {}{own}", cpus(facts.client.cpu))
        }
        Bound::Disk => disk(facts, &client, &server),
        Bound::Network if facts.interface >= 0.85 => {
            format!("the network interface carried {} of what it can", percent(facts.interface))
        }
        Bound::Network => {
            let wire = facts.wire.unwrap_or_default();
            let told = if wire.rtt_us >= facts.round_trip_us / 2.0 {
                format!("the wire alone takes {}", micros(wire.rtt_us))
            } else {
                format!("the server had a request in {} of {} looks", percent(wire.at_server), wire.told)
            };
            format!(
                "of a round trip of {} {told}; {client}, the server {}",
                micros(facts.round_trip_us),
                of_one(server.cpu)
            )
        }
        Bound::Locks => {
            let told = match (&facts.said, facts.wire) {
                (Some(said), _) if said.locks >= PARTLY => {
                    let lock = said.lock.as_ref().map_or_else(String::new, |lock| format!(" ({lock})"));
                    format!(
                        "the engine says that its sessions waited for a lock in {} of {} looks{lock}",
                        percent(said.locks),
                        said.looks
                    )
                }
                (_, Some(wire)) => {
                    format!(
                        "the server held requests in {} of {} looks, and used little CPU and no storage",
                        percent(wire.at_server),
                        wire.told
                    )
                }
                _ => format!("clients slept for {} of the time, and not for storage", percent(facts.idle())),
            };
            let server =
                if facts.in_process { String::new() } else { format!(", the server {}", of_one(server.cpu)) };
            format!("{told}; {client}{server}")
        }
        Bound::Latency if facts.in_process => format!(
            "nothing was full: of an operation of {} its CPU took {}, waiting for a processor {}; the rest is waking up and waits",
            micros(facts.round_trip_us),
            percent(facts.client.cpu / facts.clients),
            percent(facts.client.queue / facts.clients),
        ),
        Bound::Latency => format!(
            "nothing was full: of a round trip of {} the client's CPU took {}, the server's {}, waiting for a processor {}; the rest is waking up, the way and waits{}",
            micros(facts.round_trip_us),
            percent(facts.client.cpu / facts.clients),
            percent(server.cpu / facts.clients),
            percent((facts.client.queue + server.queue) / facts.clients),
            engine_wait(facts),
        ),
        Bound::Load => {
            let server = facts
                .server
                .map_or_else(String::new, |server| format!(", the server {}", of_one(server.cpu)));
            format!("the load that was asked for was served; {client}{server}")
        }
        Bound::NotKnown => match &facts.unseen {
            Some(why) => format!("the server was not observed: {why}; {client}"),
            None => format!(
                "the processors were {} busy, {} of them with other processes' work, so that what else bound it cannot be seen",
                percent(facts.cores_busy),
                percent(facts.others / facts.machine.max(1.0))
            ),
        },
    }
}

fn disk(facts: &Facts, client: &str, server: &Side) -> String {
    let who = if facts.in_process { "a client waited" } else { "the server waited" };
    let server =
        if facts.in_process { String::new() } else { format!(", the server {}", of_one(server.cpu)) };
    if facts.disk.samples < 4 {
        return format!(
            "the disk was at work for {} of the time; {client}{server}",
            percent(facts.disk.busy)
        );
    }
    format!(
        "{who} for storage in {} of {} samples{}; {client}{server}",
        percent(facts.disk.waiting),
        facts.disk.samples,
        engine_wait(facts)
    )
}

/// The wait, other than for a lock, that the engine named most, where it took a good part of the time.
fn engine_wait(facts: &Facts) -> String {
    let other = facts.said.as_ref().and_then(|said| said.other.as_ref()).filter(|(_, share)| *share >= 0.3);
    other.map_or_else(String::new, |(event, share)| {
        format!(
            "; the engine says that its sessions waited for \u{201c}{event}\u{201d} in {} of the looks",
            percent(*share)
        )
    })
}

fn server_full(facts: &Facts, server: &Side) -> String {
    if let Some(quota) = server.quota.filter(|quota| server.cpu >= quota * 0.7) {
        return format!(
            "the server used {} of the {} CPUs that its control group may use",
            number(server.cpu),
            number(quota)
        );
    }
    if server.thread >= 0.8 && server.thread >= server.cpu * 0.4 {
        return format!("one thread of the server used {} of a CPU", percent(server.thread));
    }
    let ours = facts.client.cpu + server.cpu;
    let full = facts.cores_busy >= FULL && ours >= facts.cores * facts.cores_busy * MOSTLY_OURS;
    if facts.shared && !full && !nearly_alone(facts) {
        return ready("a thread of the server", server.thread, server.thread_queue);
    }
    if facts.shared {
        full_together(facts)
    } else {
        format!("the server used {} of its {}", number(server.cpu), plural(server.capacity))
    }
}

fn client_full(facts: &Facts) -> String {
    let threads = facts.client.cpu / facts.clients;
    if threads >= 0.8 {
        let who = if facts.clients > 1.0 { "the clients' threads were" } else { "the client's thread was" };
        return format!("{who} at work for {} of the time", percent(threads));
    }
    let ours = facts.client.cpu + facts.server.map_or(0.0, |server| server.cpu);
    if facts.cores_busy < FULL || ours < facts.cores * facts.cores_busy * MOSTLY_OURS {
        return ready("the client", threads, facts.client.queue / facts.clients);
    }
    if facts.shared {
        full_together(facts)
    } else {
        format!("the client used {} of its {}", number(facts.client.cpu), plural(facts.client.capacity))
    }
}

/// What wanted a processor and did not always have one.
fn ready(who: &str, work: f64, queue: f64) -> String {
    format!(
        "{who} was at work for {} of the time, and ready and without a processor for {}",
        percent(work),
        percent(queue)
    )
}

fn client_side(facts: &Facts) -> String {
    if facts.shared && facts.cores_busy >= 0.9 && facts.client.cpu > 0.5 {
        format!("the client used {}", cpus(facts.client.cpu))
    } else {
        format!("the client {}", of_one(facts.client.cpu))
    }
}

fn full_together(facts: &Facts) -> String {
    let all = facts.cores.max(1.0);
    let server = facts.server.unwrap_or_default();
    format!(
        "the {} that client and server share were {} busy: the server {}, the client {}, others {}",
        plural(facts.cores),
        percent(facts.cores_busy),
        percent(server.cpu / all),
        percent(facts.client.cpu / all),
        percent(facts.others / facts.machine.max(1.0)),
    )
}

fn plural(count: f64) -> String {
    if (count - 1.0).abs() < 1e-9 { "1 CPU".to_owned() } else { format!("{} CPUs", number(count)) }
}

/// `was at 30 % of a CPU`.
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
