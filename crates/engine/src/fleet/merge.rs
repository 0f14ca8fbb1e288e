//! Adds up the results of several processes, as those of the threads of one, and combines what the coordinator and the agents
//! observed of one trial.
//!
//! A fleet is observed as one machine that has the processors of all its machines: each machine counts once, however many agents
//! it has, and the clients' process is the sum of all agents'. So `host − client − server` is what others used, as on one
//! machine. The numbers of processors are made unique. Whether a single agent was at its limit is not visible in a sum:
//! [`FleetUse`] has each.

use crate::fleet::AgentResult;
use crate::trial::recorded::ShareResult;
use kurabe_core::experiment::{Client, ClientSummary};
use kurabe_core::fleet::{AgentUse, FleetUse};
use kurabe_core::observation::{
    BUSIEST, CpuUse, HostUse, Observation, ProcessUse, Sample, ServerUse, WireUse,
};
use kurabe_core::{Error, ErrorKind, Result, sort};
use kurabe_stats::rng::mix;

/// What all clients of a trial of so many recorded, with this seed and number, and what each did.
///
/// # Errors
/// [`Protocol`](ErrorKind::Protocol) if a client's result is missing, or comes twice.
pub(crate) fn sum(
    results: Vec<AgentResult>,
    clients: usize,
    seed: u64,
    number: u64,
) -> Result<(ShareResult, Vec<ClientSummary>)> {
    let (mut sum, mut summaries) = (ShareResult::default(), Vec::with_capacity(clients));
    let mut returned = vec![false; clients];
    for AgentResult { name, part, .. } in results {
        let wrong = |why: &str| Error::new(ErrorKind::Protocol, format!("agent {name}: {why}"));
        for client in &part.recorded.clients {
            let known =
                returned.get_mut(client.index).ok_or_else(|| wrong("it returned an unknown client"))?;
            if std::mem::replace(known, true) {
                return Err(wrong("it returned a client twice"));
            }
            let seed = mix(seed, client.index as u64);
            summaries.push(ClientSummary {
                client: Client { index: client.index, count: clients, seed, trial: number },
                completed: client.completed,
                rows_written: client.rows_written,
                notes: None,
            });
        }
        sum.merge(part);
    }
    if let Some(missing) = returned.iter().position(|returned| !returned) {
        return Err(Error::new(ErrorKind::Protocol, format!("no agent returned client {missing}")));
    }
    sort::by_key(&mut summaries, |done| done.client.index);
    Ok((sum, summaries))
}

/// What each agent did.
pub(crate) fn used(results: &[AgentResult]) -> FleetUse {
    let first = results.iter().map(|result| result.start_ns).min().unwrap_or(0);
    let after = |result: &AgentResult| (result.start_ns - first).unsigned_abs();
    let agent = |result: &AgentResult| {
        let (part, clients) = (&result.part, result.part.recorded.clients.len() as u64);
        AgentUse {
            name: result.name.clone(),
            clients,
            threads: part.client_threads() as u64,
            completed: part.recorded.completed,
            start_ns: after(result),
            clock_error_ns: result.clock_error_ns,
            wall_ns: part.observed.as_ref().map_or(0, |observed| observed.wall_ns),
            client: part.observed.as_ref().map(|observed| observed.client.clone()),
        }
    };
    FleetUse {
        start_spread_ns: results.iter().map(after).max().unwrap_or(0),
        agents: results.iter().map(agent).collect(),
    }
}

/// The numbers of a machine's processors begin at a multiple of this.
const MACHINE: u32 = 10_000;

/// Takes the time before the start out of an observation, in which the clients waited for the others. Whatever client and
/// server did, they did in the rest; other processes are taken to have been as busy in both parts.
pub(crate) fn without_wait(seen: &mut Observation, wait_ns: u64) {
    let (busy, others) = (seen.host.busy_ns() as f64, seen.others_cpu_ns() as f64);
    let rest_ns = seen.wall_ns.saturating_sub(wait_ns).max(1);
    let rest = rest_ns as f64 / (seen.wall_ns as f64).max(1.0);
    let kept = if busy > 0.0 { 1.0 - others * (1.0 - rest) / busy } else { 1.0 };
    for cpu in &mut seen.host.cpus {
        cpu.busy_ns = (cpu.busy_ns as f64 * kept) as u64;
        cpu.steal_ns = (cpu.steal_ns as f64 * rest) as u64;
    }
    let shift_ms = wait_ns / 1_000_000;
    seen.samples.retain(|sample| sample.at_ms >= shift_ms);
    for sample in &mut seen.samples {
        sample.at_ms -= shift_ms;
    }
    seen.wall_ns = rest_ns;
}

/// What happened in a trial. `own` is what the coordinator observed: the server, if it is on the coordinator's machine or
/// has an observer on its own, and what the server reports.
pub(crate) fn combined(mut own: Observation, results: &[AgentResult]) -> Observation {
    let seen: Vec<(&AgentResult, &Observation)> =
        results.iter().filter_map(|result| Some((result, result.part.observed.as_deref()?))).collect();
    if seen.len() < results.len() {
        return own;
    }
    // The coordinator began before the order to start, and ended after the last agent had told its end.
    let longest = seen.iter().map(|(_, observed)| observed.wall_ns).max().unwrap_or(0);
    let wait_ns = own.wall_ns.saturating_sub(longest);
    without_wait(&mut own, wait_ns);
    let is_needed = seen.iter().any(|(result, _)| result.here)
        || own.server_host.is_none() && matches!(own.server, ServerUse::Seen(_));
    // The first machine keeps its numbers, because the server's processors have them.
    let mut machines: Vec<&str> = vec![""];
    let mut host = if is_needed { own.host.clone() } else { HostUse::default() };
    let mut client = ProcessUse::default();
    let mut wire: Option<WireUse> = None;
    for (result, observed) in &seen {
        let known = machines.iter().position(|machine| *machine == result.machine);
        let number = if result.here { Some(0) } else { known };
        let number = number.unwrap_or_else(|| {
            let number = machines.len();
            machines.push(&result.machine);
            add_host(&mut host, &observed.host, number);
            number
        });
        add_process(&mut client, &observed.client, number as u32 * MACHINE, &result.name);
        if let Some(other) = &observed.wire {
            add_wire(wire.get_or_insert_default(), other);
        }
    }
    sort::by_key(&mut client.busiest, |thread| std::cmp::Reverse(thread.cpu_ns));
    client.busiest.truncate(BUSIEST);
    let samples = own.samples.iter().map(|sample| Sample {
        // The coordinator itself has no clients.
        client_cpu: seen.iter().map(|(_, observed)| client_cpu(observed, sample.at_ms)).sum(),
        ..*sample
    });
    Observation { samples: samples.collect(), client, host, wire, ..own }
}

/// The CPU usage of an agent at this time, as last sampled.
fn client_cpu(observed: &Observation, at_ms: u64) -> f64 {
    let before = observed.samples.iter().rev().find(|sample| sample.at_ms <= at_ms);
    before.or(observed.samples.first()).map_or(0.0, |sample| sample.client_cpu)
}

fn add_host(host: &mut HostUse, other: &HostUse, number: usize) {
    let first = number as u32 * MACHINE;
    host.cpus.extend(other.cpus.iter().map(|cpu| CpuUse { cpu: cpu.cpu + first, ..*cpu }));
    host.disks.extend(other.disks.iter().cloned());
    host.interfaces.extend(other.interfaces.iter().cloned());
    host.io_stall_ns = host.io_stall_ns.into_iter().chain(other.io_stall_ns).max();
}

fn add_process(sum: &mut ProcessUse, other: &ProcessUse, first: u32, agent: &str) {
    if sum.name.is_empty() {
        sum.name.clone_from(&other.name);
    }
    sum.processes += other.processes;
    sum.threads += other.threads;
    sum.cpu_ns += other.cpu_ns;
    sum.queue_ns = Some(sum.queue_ns.unwrap_or(0) + other.queue_ns.unwrap_or(0));
    sum.busiest.extend(other.busiest.iter().map(|thread| {
        let mut thread = thread.clone();
        thread.name = format!("{agent}: {}", thread.name);
        thread
    }));
    sum.voluntary_switches += other.voluntary_switches;
    sum.involuntary_switches += other.involuntary_switches;
    let add = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).reduce(|a, b| a + b);
    sum.read_bytes = add(sum.read_bytes, other.read_bytes);
    sum.written_bytes = add(sum.written_bytes, other.written_bytes);
    sum.throttled_ns = sum.throttled_ns.into_iter().chain(other.throttled_ns).max();
    sum.memory_bytes += other.memory_bytes;
    let cpus = other.cpus.iter().map(|cpu| cpu + first);
    let new: Vec<u32> = cpus.filter(|cpu| !sum.cpus.contains(cpu)).collect();
    sum.cpus.extend(new);
}

fn add_wire(sum: &mut WireUse, other: &WireUse) {
    let all = (sum.connections + other.connections).max(1) as f64;
    sum.rtt_us = (sum.rtt_us * sum.connections as f64 + other.rtt_us * other.connections as f64) / all;
    sum.connections += other.connections;
    sum.sent_bytes += other.sent_bytes;
    sum.received_bytes += other.received_bytes;
    sum.segments_out += other.segments_out;
    sum.segments_in += other.segments_in;
    sum.retransmits += other.retransmits;
    sum.classified += other.classified;
    sum.at_server += other.at_server;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{ClientResult, ShareResult};
    use crate::trial::recorded::{Recorded, Times};
    use kurabe_stats::Histogram;

    fn result(name: &str, start_ns: i64, clients: &[usize], times: &[u64]) -> AgentResult {
        let mut service = Histogram::new();
        for ns in times {
            service.record(*ns);
        }
        let client = |index: &usize| ClientResult {
            index: *index,
            completed: 2,
            rows_written: 1,
            elapsed_ns: 10,
            measured: 1,
        };
        let recorded = Recorded {
            times: Some(Box::new(Times { service, ..Times::default() })),
            completed: clients.len() as u64,
            clients: clients.iter().map(client).collect(),
            ..Recorded::default()
        };
        AgentResult {
            name: name.to_owned(),
            machine: "m".to_owned(),
            here: true,
            start_ns,
            clock_error_ns: 4,
            part: ShareResult { recorded, ..ShareResult::default() },
        }
    }

    #[test]
    fn histogram_of_all_agents_is_that_of_all_requests() {
        let (a, b): (Vec<u64>, Vec<u64>) = ((1..500).collect(), (3_000..90_000).step_by(17).collect());
        let mut all = Histogram::new();
        for ns in a.iter().chain(&b) {
            all.record(*ns);
        }
        let both = vec![result("a", 0, &[0, 2], &a), result("b", 9, &[1], &b)];
        let (found, summaries) = sum(both, 3, 7, 3).unwrap();
        assert_eq!(found.recorded.times.unwrap().service, all);
        assert_eq!((found.recorded.completed, found.recorded.clients.len()), (3, 3));
        let indices: Vec<usize> = summaries.iter().map(|done| done.client.index).collect();
        assert_eq!(indices, [0, 1, 2]);
        assert_eq!(summaries[1].client.seed, mix(7, 1));
    }

    #[test]
    fn missing_or_repeated_client_is_an_error() {
        for (agents, why) in [
            (vec![result("a", 0, &[0], &[1])], "no agent returned client 1"),
            (
                vec![result("a", 0, &[0, 1], &[1]), result("b", 0, &[1], &[1])],
                "agent b: it returned a client twice",
            ),
            (vec![result("a", 0, &[0, 1, 2], &[1])], "agent a: it returned an unknown client"),
        ] {
            assert_eq!(sum(agents, 2, 7, 3).err().unwrap().to_string(), why);
        }
    }

    #[test]
    fn spread_is_the_time_between_first_and_last_start() {
        let used = used(&[result("a", -3_000, &[0], &[1]), result("b", 1_000, &[1], &[1])]);
        assert_eq!(used.start_spread_ns, 4_000);
        assert_eq!(used.agents.iter().map(|agent| agent.start_ns).collect::<Vec<_>>(), [0, 4_000]);
    }

    fn host(busy: &[u64]) -> HostUse {
        let cpu = |(cpu, busy_ns): (usize, &u64)| CpuUse { cpu: cpu as u32, busy_ns: *busy_ns, steal_ns: 0 };
        HostUse { cpus: busy.iter().enumerate().map(cpu).collect(), ..HostUse::default() }
    }

    fn agent(machine: &str, here: bool, cpu_ns: u64, busy: &[u64]) -> AgentResult {
        let client = ProcessUse { cpu_ns, cpus: vec![0, 1], processes: 1, ..ProcessUse::default() };
        let wire =
            Some(WireUse { connections: 1, sent_bytes: 10, rtt_us: cpu_ns as f64, ..WireUse::default() });
        let observed = Observation { client, host: host(busy), wire, ..Observation::default() };
        let part = ShareResult { observed: Some(Box::new(observed)), ..ShareResult::default() };
        let (name, machine) = (machine.to_owned(), machine.to_owned());
        AgentResult { name, machine, here, start_ns: 0, clock_error_ns: 0, part }
    }

    fn own() -> Observation {
        let server = ProcessUse { cpu_ns: 40, cpus: vec![0, 1], ..ProcessUse::default() };
        Observation {
            host: host(&[60, 40]),
            server: ServerUse::Seen(Box::new(server)),
            ..Observation::default()
        }
    }

    #[test]
    fn agents_of_one_machine_count_its_processors_once() {
        let seen = combined(own(), &[agent("a", true, 20, &[60, 40]), agent("a", true, 30, &[60, 40])]);
        assert_eq!((seen.client.cpu_ns, seen.client.processes), (50, 2));
        assert_eq!((seen.host.busy_ns(), seen.host.cpus.len(), seen.client.cpus.len()), (100, 2, 2));
        assert_eq!(seen.others_cpu_ns(), 10);
        let wire = seen.wire.unwrap();
        assert_eq!((wire.connections, wire.sent_bytes), (2, 20));
        assert!((wire.rtt_us - 25.0).abs() < 1e-9);
    }

    #[test]
    fn other_machines_add_their_processors() {
        let far = || agent("b", false, 30, &[35, 5]);
        let seen = combined(own(), &[agent("a", true, 20, &[60, 40]), far(), far()]);
        assert_eq!((seen.host.busy_ns(), seen.host.cpus.len()), (140, 4));
        assert_eq!(seen.client.cpus, [0, 1, 10_000, 10_001]);
        // Without the server of the coordinator's machine, that machine does not matter.
        let unseen = Observation { server: ServerUse::NotObserved(String::new()), ..own() };
        assert_eq!(combined(unseen, &[far()]).host.busy_ns(), 40);
    }

    #[test]
    fn wait_before_the_start_is_not_part_of_the_trial() {
        // A second of two was waiting; others were busy for 30 of 100 all the time, client and server for 70.
        let client = ProcessUse { cpu_ns: 30, ..ProcessUse::default() };
        let mut seen = Observation { wall_ns: 2_000_000_000, client, ..own() };
        seen.samples = [200, 1_500].map(|at_ms| Sample { at_ms, ..Sample::default() }).to_vec();
        assert_eq!(seen.others_cpu_ns(), 30);
        without_wait(&mut seen, 1_000_000_000);
        assert_eq!((seen.wall_ns, seen.others_cpu_ns()), (1_000_000_000, 15));
        assert_eq!(seen.samples.iter().map(|sample| sample.at_ms).collect::<Vec<_>>(), [500]);
    }

    #[test]
    fn unobserved_agent_leaves_what_the_coordinator_saw() {
        let mut blind = agent("b", false, 1, &[1]);
        blind.part.observed = None;
        assert_eq!(combined(own(), &[blind]), own());
    }
}
