//! Adds up the results of several processes, as those of the threads of one.

use super::AgentResult;
use crate::trial::timeline::Timeline;
use crate::trial::totals::Totals;
use kurabe_core::experiment::{Client, ClientSummary};
use kurabe_core::fleet::{AgentUse, FleetUse};
use kurabe_core::metric::Metric;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::rng::mix;

/// The trial whose parts are added up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    pub(crate) clients: usize,
    pub(crate) seed: u64,
    pub(crate) number: u64,
    /// The experiment's metrics, by whose names spans are known.
    pub(crate) spans: &'static [Metric],
}

/// The totals over all clients.
///
/// # Errors
/// [`Protocol`](ErrorKind::Protocol) if a client's result is missing, or comes twice.
pub(crate) fn totals(results: &[AgentResult], whole: Whole) -> Result<Totals> {
    let mut sum = Totals::default();
    let mut seen = vec![false; whole.clients];
    for AgentResult { name, part, .. } in results {
        let wrong = |why: &str| Error::new(ErrorKind::Protocol, format!("agent {name}: {why}"));
        let tally = part.sums.tally(whole.spans).map_err(|error| error.context(format!("agent {name}")))?;
        sum.tally.merge(&tally);
        let open_loop = part.sums.open_loop();
        for client in &part.clients {
            let seen = seen.get_mut(client.index).ok_or_else(|| wrong("it returned an unknown client"))?;
            if std::mem::replace(seen, true) {
                return Err(wrong("it returned a client twice"));
            }
            if open_loop.is_none() {
                let end = (client.elapsed_ns, client.measured);
                sum.clients.push((Timeline::of_points(client.timeline.clone()), end));
            }
            sum.clients_done.push(ClientSummary {
                client: Client {
                    index: client.index,
                    count: whole.clients,
                    seed: mix(whole.seed, client.index as u64),
                    trial: whole.number,
                },
                completed: client.completed,
                rows_written: client.rows_written,
                notes: None,
            });
        }
        if let Some(open_loop) = open_loop {
            sum.is_open = true;
            sum.open_loop.merge(&open_loop);
        }
    }
    if let Some(missing) = seen.iter().position(|seen| !seen) {
        return Err(Error::new(ErrorKind::Protocol, format!("no agent returned client {missing}")));
    }
    sum.clients_done.sort_by_key(|done| done.client.index);
    Ok(sum)
}

/// What each agent did.
pub(crate) fn used(results: &[AgentResult]) -> FleetUse {
    let first = results.iter().map(|result| result.start_ns).min().unwrap_or(0);
    let after = |result: &AgentResult| (result.start_ns - first).unsigned_abs();
    let agent = |result: &AgentResult| {
        let (sums, clients) = (&result.part.sums, result.part.clients.len() as u64);
        AgentUse {
            name: result.name.clone(),
            clients,
            threads: sums.threads.map_or(clients, |threads| threads as u64),
            completed: sums.completed,
            start_ns: after(result),
            clock_error_ns: result.clock_error_ns,
            wall_ns: sums.observed.as_ref().map_or(0, |observed| observed.wall_ns),
            client: sums.observed.as_ref().map(|observed| observed.client.clone()),
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
    use crate::fleet::{ClientResult, PartResult, Sums};
    use kurabe_stats::Histogram;

    fn whole(clients: usize) -> Whole {
        Whole { clients, seed: 7, number: 3, spans: &[] }
    }

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
            timeline: vec![(5, 1)],
        };
        let sums = Sums {
            service,
            completed: clients.len() as u64,
            connections: vec![(0, 0); 7],
            ..Sums::default()
        };
        AgentResult {
            name: name.to_owned(),
            machine: "m".to_owned(),
            here: true,
            start_ns,
            clock_error_ns: 4,
            part: PartResult { clients: clients.iter().map(client).collect(), sums },
        }
    }

    #[test]
    fn histogram_of_all_agents_is_that_of_all_requests() {
        let (a, b): (Vec<u64>, Vec<u64>) = ((1..500).collect(), (3_000..90_000).step_by(17).collect());
        let mut all = Histogram::new();
        for ns in a.iter().chain(&b) {
            all.record(*ns);
        }
        let found = totals(&[result("a", 0, &[0, 2], &a), result("b", 9, &[1], &b)], whole(3)).unwrap();
        assert_eq!(found.tally.times.unwrap().service, all);
        assert_eq!((found.tally.completed, found.clients.len()), (3, 3));
        let indices: Vec<usize> = found.clients_done.iter().map(|done| done.client.index).collect();
        assert_eq!(indices, [0, 1, 2]);
        assert_eq!(found.clients_done[1].client.seed, mix(7, 1));
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
            assert_eq!(totals(&agents, whole(2)).err().unwrap().to_string(), why);
        }
    }

    #[test]
    fn spread_is_the_time_between_first_and_last_start() {
        let used = used(&[result("a", -3_000, &[0], &[1]), result("b", 1_000, &[1], &[1])]);
        assert_eq!(used.start_spread_ns, 4_000);
        assert_eq!(used.agents.iter().map(|agent| agent.start_ns).collect::<Vec<_>>(), [0, 4_000]);
    }
}
