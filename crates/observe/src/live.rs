//! What client, servers and machine use while a run goes on, whatever is measured at the time.
//!
//! Interleaved trials are not observed one by one, and loading not at all. What is read here is only shown.

use crate::find::listeners;
use crate::process::{Pid, process_tree};
use crate::sampler::{COST, Counters, thread_cpu};
use kurabe_core::observation::{Endpoint, Sample};
use std::time::{Duration, Instant};

/// The pause before servers that were not found are looked for again: finding them takes milliseconds.
const AGAIN: Duration = Duration::from_secs(5);

/// Samples this machine, this process and the servers of a run.
#[derive(Debug)]
pub struct Live {
    endpoints: Vec<Endpoint>,
    began: Instant,
    /// The servers' first processes, of all endpoints at which some were found.
    roots: Vec<Pid>,
    /// When servers were looked for and not all were found.
    missed: Option<Instant>,
    before: Option<(Instant, Counters)>,
    /// The first time at which the next sample is not too costly.
    due: Instant,
}

impl Live {
    /// A sampler for the servers at these endpoints.
    pub fn new(endpoints: Vec<Endpoint>) -> Self {
        let now = Instant::now();
        Self { endpoints, began: now, roots: Vec::new(), missed: None, before: None, due: now }
    }

    /// What was used since the last sample. `None` at the first call, after the servers have changed, and as long as
    /// sampling would take a hundredth of a processor.
    pub fn sample(&mut self) -> Option<Sample> {
        let at = Instant::now();
        if at < self.due {
            return None;
        }
        let cost = thread_cpu();
        self.find(at);
        let members: Vec<u32> = if self.roots.is_empty() {
            vec![std::process::id()]
        } else {
            process_tree(&self.roots).into_iter().map(|pid| pid.number).collect()
        };
        let now = Counters::now(&members, !self.roots.is_empty());
        let at_ms = at.duration_since(self.began).as_millis() as u64;
        let sample =
            self.before.as_ref().map(|(then, before)| now.since(before, at.duration_since(*then), at_ms));
        self.before = Some((at, now));
        self.due = at + Duration::from_nanos(thread_cpu().saturating_sub(cost)) * COST;
        sample
    }

    /// Finds the servers, at first and after one has ended.
    fn find(&mut self, at: Instant) {
        let first = self.roots.is_empty() && self.missed.is_none();
        let lost = self.roots.iter().any(|root| !root.lives());
        let again = self.missed.is_some_and(|missed| at.duration_since(missed) >= AGAIN);
        if !(first || lost || again) {
            return;
        }
        self.missed = None;
        let mut found: Vec<Pid> = Vec::new();
        for endpoint in self.endpoints.iter().filter(|endpoint| **endpoint != Endpoint::InProcess) {
            match listeners(endpoint) {
                Ok(new) => found.extend(new),
                Err(_) => self.missed = Some(at),
            }
        }
        if found != self.roots {
            // Counters of other processes are no basis for a difference.
            (self.roots, self.before) = (found, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread::sleep;

    #[test]
    fn database_in_process_has_no_server_and_the_machine_is_sampled() {
        let mut live = Live::new(vec![Endpoint::InProcess]);
        assert_eq!(live.sample(), None);
        sleep(Duration::from_millis(300));
        let sample = live.sample().unwrap();
        assert_eq!(sample.server_cpu, None);
        assert!(sample.at_ms >= 300 && sample.host_cpu >= 0.0 && sample.network.is_some(), "{sample:?}");
    }

    #[test]
    fn sample_that_would_cost_too_much_is_left_out() {
        let mut live = Live::new(Vec::new());
        live.sample();
        live.due = Instant::now() + Duration::from_secs(60);
        assert_eq!(live.sample(), None);
    }

    #[test]
    fn server_that_is_not_found_is_not_looked_for_at_each_sample() {
        // This process itself listens there, which is no server.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut live = Live::new(vec![Endpoint::Tcp { host: "127.0.0.1".into(), port }]);
        live.find(Instant::now());
        let missed = live.missed;
        live.find(Instant::now());
        assert!(missed.is_some() && live.missed == missed && live.roots.is_empty());
    }
}
