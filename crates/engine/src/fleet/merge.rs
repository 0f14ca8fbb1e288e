//! Adds up the results of several processes, as those of the threads of one.

use crate::fleet::AgentResult;
use crate::trial::recorded::ShareResult;
use kurabe_core::experiment::{Client, ClientSummary};
use kurabe_core::fleet::{AgentUse, FleetUse};
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::ClientResult;
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
}
