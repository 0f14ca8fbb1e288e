//! The highest rate that keeps an objective: the 99th percentile of response times stays under it, nothing is dropped,
//! and the load that was asked for is the load that was served.
//!
//! A closed loop says where capacity lies; halving finds the rate in short trials; a longer trial confirms it, and is the
//! one whose figures count. A rate that is not confirmed is lowered until one is.

use crate::trial::{Failure, Pace};
use kurabe_core::load::Arrivals;
use kurabe_core::run::Measurement;
use kurabe_core::{Error, ErrorKind, units};
use std::time::Duration;

/// Each short trial takes this part of the time given …
const PROBE_PART: u32 = 12;
/// … and at least so long, or its 99th percentile would rest on a handful of transactions.
const LEAST_PROBE: Duration = Duration::from_millis(100);
/// How often the interval is halved: 2⁻⁶ of capacity is 1.6 %.
const HALVINGS: u32 = 6;
/// The part of the closed loop's rate that is tried first.
const FIRST: f64 = 0.7;
/// What a rate is multiplied by before it is tried for longer: as it was found, and lower each time that it is not confirmed.
/// Short trials find a rate too high where capacity changed since, as it does on a machine that others use; after two small
/// steps the steps are large, so that six longer trials reach down to less than half of it.
const TRIES: [f64; 6] = [1.0, 0.95, 0.9, 0.8, 0.8, 0.8];

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Objective {
    pub(crate) slo: Duration,
    pub(crate) arrivals: Arrivals,
    /// About how long the search may take.
    pub(crate) time: Duration,
}

impl Objective {
    /// Finds the rate; `trial` makes a trial of a pace that lasts for a time.
    pub(crate) fn find(
        &self,
        mut trial: impl FnMut(Pace, Duration) -> Result<Measurement, Failure>,
    ) -> Result<Measurement, Failure> {
        let short = (self.time / PROBE_PART).max(LEAST_PROBE);
        let mut probes = 1;
        let capacity = trial(Pace::Closed, short)?.ops_per_second();
        let (mut low, mut high) = (None, capacity * 1.05);
        for halving in 0..HALVINGS {
            let rate = match low {
                None if halving == 0 => capacity * FIRST,
                None => high / 2.0,
                Some(low) => f64::midpoint(low, high),
            };
            probes += 1;
            let measured = trial(self.pace(rate), short)?;
            if self.kept(&measured) { low = Some(rate) } else { high = rate }
        }
        let mut rate = low.unwrap_or(high / 2.0);
        let long = self.time.saturating_sub(short * (HALVINGS + 1)).max(short);
        let mut why = String::new();
        for factor in TRIES {
            rate *= factor;
            probes += 1;
            let mut measured = trial(self.pace(rate), long)?;
            if self.kept(&measured) {
                if let Some(open) = &mut measured.open {
                    open.probes = probes;
                }
                return Ok(measured);
            }
            why = self.why(rate, &measured);
        }
        let slo = units::time(self.slo);
        Err(Error::new(ErrorKind::Limit, format!("no rate was found whose p99 stays under {slo}: {why}"))
            .hint("allow more with --slo, or give the trial more time with --duration")
            .into())
    }

    fn pace(&self, rate: f64) -> Pace {
        Pace::Open { rate, arrivals: self.arrivals }
    }

    /// Why this trial does not keep the objective.
    fn why(&self, rate: f64, measured: &Measurement) -> String {
        match measured.open.as_ref().and_then(|open| open.response.quantile(0.99)) {
            Some(p99) if u128::from(p99) >= self.slo.as_nanos() => {
                format!("at {rate:.0}/s it was {}", units::time(Duration::from_nanos(p99)))
            }
            _ => format!("{rate:.0}/s were not served as they came"),
        }
    }

    fn kept(&self, measured: &Measurement) -> bool {
        let Some(open) = &measured.open else { return false };
        let p99 = open.response.quantile(0.99).unwrap_or(u64::MAX);
        measured.kept_up() && u128::from(p99) < self.slo.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::run::OpenLoop;
    use kurabe_stats::Histogram;

    /// A server that answers in a millisecond up to a rate, and in a second above it.
    fn server(capacity: f64) -> impl FnMut(Pace, Duration) -> Result<Measurement, Failure> {
        move |pace, time| {
            let rate = match pace {
                Pace::Closed => capacity * 1.3,
                Pace::Open { rate, .. } => rate,
            };
            let mut response = Histogram::new();
            for _ in 0..100 {
                response.record(if rate <= capacity { 1_000_000 } else { 1_000_000_000 });
            }
            let lag = Histogram::new();
            Ok(Measurement {
                clients: 1,
                offered: 100,
                completed: (rate * time.as_secs_f64()) as u64,
                failed: 0,
                dropped: 0,
                retries: 0,
                warmup: 0,
                elapsed_ns: time.as_nanos() as u64,
                client_cpu_ns: 1,
                service: response.clone(),
                open: Some(OpenLoop {
                    rate,
                    response,
                    lag,
                    due_ns: time.as_nanos() as u64,
                    backlog: 0,
                    probes: 0,
                }),
                verify_ns_per_op: 0.0,
                reads_verified: 0,
                writes_verified: 0,
                around_ns: 0,
                observed: None,
                figures: Vec::new(),
                windows: Vec::new(),
                turns: 0,
            })
        }
    }

    fn objective(slo_ms: u64) -> Objective {
        let (slo, time) = (Duration::from_millis(slo_ms), Duration::from_secs(6));
        Objective { slo, arrivals: Arrivals::Even, time }
    }

    #[test]
    fn the_highest_rate_is_found_within_a_few_percent_and_not_above() {
        for capacity in [900.0, 10_000.0, 123_456.0] {
            let found = objective(10).find(server(capacity)).unwrap().open.unwrap();
            assert!(found.rate <= capacity && found.rate > capacity * 0.95, "{} of {capacity}", found.rate);
            assert!(found.probes >= 8);
        }
    }

    #[test]
    fn an_objective_that_no_rate_keeps_is_said() {
        let failure = objective(1).find(server(1_000.0)).unwrap_err();
        let text = failure.error.to_string();
        assert!(
            text.contains("no rate") && text.contains("/s it was 1 ms") && text.contains("--slo"),
            "{text}"
        );
    }

    #[test]
    fn a_capacity_that_goes_to_half_meanwhile_is_followed_down() {
        let mut trials = 0;
        let found = objective(10).find(|pace, time| {
            trials += 1;
            server(if trials > 7 { 5_000.0 } else { 10_000.0 })(pace, time)
        });
        let rate = found.unwrap().open.unwrap().rate;
        assert!((4_000.0..=5_000.0).contains(&rate), "{rate}");
    }

    #[test]
    fn a_load_that_is_not_served_as_it_comes_is_told_from_one_that_waits_too_long() {
        let late = |pace: Pace, time: Duration| {
            let mut measured = server(f64::INFINITY)(pace, time)?;
            measured.elapsed_ns *= 2;
            Ok(measured)
        };
        // Ten thousand a second, whatever is asked for.
        let failure = objective(10).find(|pace, time| match pace {
            Pace::Closed => server(10_000.0)(pace, time),
            Pace::Open { .. } => late(pace, time),
        });
        let text = failure.unwrap_err().error.to_string();
        assert!(text.contains("under 10 ms: ") && text.contains("/s were not served as they came"), "{text}");
    }
}
