//! The search for the highest rate that meets an objective: the 99th percentile of response times is below it,
//! nothing is dropped, and the requested load is served.
//!
//! A closed loop estimates capacity. Short probes bisect the rate. Long probes confirm it, or lower it until one
//! succeeds. A final trial at the confirmed rate is measured. Its results always count: selecting a trial
//! with a good p99 would bias the p99.
//!
//! - A failed probe is repeated once, with other keys and arrivals. Only two failures in a row lower the rate: a
//!   disturbance of the machine hits one of them, a lack of capacity both.
//! - A probe succeeds if so few of its requests were too slow that fewer than 1 % of all are, with 95 % confidence after
//!   both tries ([`ERROR`]): at most 1 of 600, or 3 of 1,000. Requests count as independent ones; a stall makes several
//!   slow together, so that the confidence is lower where stalls are the cause.
//! - The rate that is found is therefore biased downwards: at a rate at which 0.5 % are too slow, a short probe succeeds
//!   in 36 % of searches, at one with 0.3 % in 70 %. Where the 99th percentile rises steeply, that is little.
//! - A search without enough time for such probes is not started; the error says how much time it needs.

use crate::trial::{Failure, LoadModel};
use kurabe_core::load::Arrivals;
use kurabe_core::run::Measurement;
use kurabe_core::{Error, ErrorKind, units};
use kurabe_stats::distribution::binomial_at_most;
use std::time::Duration;

/// A probe takes this part of the total time, …
const PROBE_PART: u32 = 20;
/// … a long probe and the measured trial this part.
const LONG_PART: u32 = 5;
/// The minimum time of a probe. Shorter ones may see only one scheduler time slice.
const MIN_PROBE: Duration = Duration::from_millis(100);
/// The share of requests that may be too slow: the 99th percentile meets the objective.
const TOO_SLOW: f64 = 0.01;
/// The probability with which one probe succeeds although more are too slow: a rate has two tries, and 5 % in all.
const ERROR: f64 = 0.025;
/// The minimum number of requests of a probe. Fewer than 368 cannot succeed (0.99³⁶⁷ > 0.025).
const MIN_REQUESTS: f64 = 600.0;
/// The minimum number of requests of a long probe and of the measured trial.
const MIN_MEASURED: f64 = 1_000.0;
/// A search may exceed its time by this factor to reach [`MIN_REQUESTS`] and [`MIN_MEASURED`].
const MAX_TIME: f64 = 2.0;
/// The number of bisections: 2⁻⁶ of capacity is 1.6 %.
const HALVINGS: u32 = 6;
/// The first rate as a share of the closed loop's.
const FIRST: f64 = 0.7;
/// Factors for the rate before each long probe: first as found, then lower after each failure. Short probes
/// overestimate if capacity has changed, as on a shared machine. After two small steps the steps are large, so that
/// six long probes reach less than half of the rate.
const STEPS: [f64; 6] = [1.0, 0.95, 0.9, 0.8, 0.8, 0.8];

/// The parameters of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateSearch {
    pub(crate) slo: Duration,
    pub(crate) arrivals: Arrivals,
    /// The approximate time of the search.
    pub(crate) time: Duration,
}

impl RateSearch {
    /// Finds the rate and measures it; `trial` runs a trial with a load for a time.
    pub(crate) fn find(
        &self,
        trial: impl FnMut(LoadModel, Duration) -> Result<Measurement, Failure>,
    ) -> Result<Measurement, Failure> {
        let mut probes = Probes { search: self, trial, made: 0 };
        let short = (self.time / PROBE_PART).max(MIN_PROBE);
        let capacity = probes.measure(LoadModel::Closed, short)?.ops_per_second();
        self.check_time(capacity)?;
        let (mut low, mut high) = (None, capacity * 1.05);
        for halving in 0..HALVINGS {
            let rate = match low {
                None if halving == 0 => capacity * FIRST,
                None => high / 2.0,
                Some(low) => f64::midpoint(low, high),
            };
            match probes.keep(rate, lasting(short, MIN_REQUESTS, rate))? {
                Ok(()) => low = Some(rate),
                Err(_) => high = rate,
            }
        }
        let long = (self.time / LONG_PART).max(short);
        let mut rate = low.unwrap_or(high / 2.0);
        let mut why = String::new();
        for step in STEPS {
            rate *= step;
            let time = lasting(long, MIN_MEASURED, rate);
            match probes.keep(rate, time)? {
                Ok(()) => {
                    let mut measured = probes.measure(self.load_model(rate), time)?;
                    if let Some(open) = &mut measured.open {
                        open.probes = probes.made;
                    }
                    return Ok(measured);
                }
                Err(reason) => why = reason,
            }
        }
        let slo = units::time(self.slo);
        Err(Error::new(ErrorKind::Limit, format!("no rate was found whose p99 stays under {slo}: {why}"))
            .hint("allow more with --slo, or give the trial more time with --duration")
            .into())
    }

    /// Rejects a search whose probes need far more time than given.
    fn check_time(&self, capacity: f64) -> Result<(), Failure> {
        // Six short probes, three of them repeated, a long one, and the measured trial.
        let rate = capacity * FIRST;
        let needed = (1.5 * f64::from(HALVINGS) * MIN_REQUESTS + 2.0 * MIN_MEASURED) / rate;
        if needed <= self.time.as_secs_f64() * MAX_TIME {
            return Ok(());
        }
        let asked = units::time(self.time);
        let needed = units::time(Duration::from_secs_f64(needed.min(1e9)));
        let why = format!(
            "the rate search needs about {needed} at {capacity:.0} requests/s, and has {asked}: each probe \
             needs at least {MIN_REQUESTS:.0} requests for a p99"
        );
        Err(Error::new(ErrorKind::Limit, why).hint(format!("use --duration {needed}")).into())
    }

    fn load_model(&self, rate: f64) -> LoadModel {
        LoadModel::Open { rate, arrivals: self.arrivals }
    }

    /// Why this trial does not meet the objective; `None` if it does.
    fn why_not(&self, rate: f64, measured: &Measurement) -> Option<String> {
        let Some(open) = measured.open.as_ref().filter(|_| measured.kept_up()) else {
            return Some(format!("{rate:.0}/s were not served as they came"));
        };
        let slow = open.response.count_from(u64::try_from(self.slo.as_nanos()).unwrap_or(u64::MAX));
        let all = open.response.count();
        (binomial_at_most(slow, all, TOO_SLOW) > ERROR)
            .then(|| format!("at {rate:.0}/s {slow} of {} took longer", units::count(all)))
    }
}

/// The time of a trial with at least that many requests.
fn lasting(time: Duration, requests: f64, rate: f64) -> Duration {
    time.max(Duration::from_secs_f64(requests / rate))
}

/// The trials of a search.
struct Probes<'a, T> {
    search: &'a RateSearch,
    trial: T,
    made: u32,
}

impl<T: FnMut(LoadModel, Duration) -> Result<Measurement, Failure>> Probes<'_, T> {
    fn measure(&mut self, load_model: LoadModel, time: Duration) -> Result<Measurement, Failure> {
        self.made += 1;
        (self.trial)(load_model, time)
    }

    /// Whether a rate meets the objective in one of two probes; the reason if it does not.
    fn keep(&mut self, rate: f64, time: Duration) -> Result<Result<(), String>, Failure> {
        let mut why = String::new();
        for _ in 0..2 {
            let measured = self.measure(self.search.load_model(rate), time)?;
            match self.search.why_not(rate, &measured) {
                None => return Ok(Ok(())),
                Some(reason) => why = reason,
            }
        }
        Ok(Err(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::run::OpenLoop;
    use kurabe_stats::{Histogram, Rng};

    /// A server that answers in a millisecond up to a rate, and in a second above it.
    fn server(capacity: f64) -> impl FnMut(LoadModel, Duration) -> Result<Measurement, Failure> {
        move |load_model, time| {
            let rate = match load_model {
                LoadModel::Closed => capacity * 1.3,
                LoadModel::Open { rate, .. } => rate,
            };
            let mut response = Histogram::new();
            let answers = (rate * time.as_secs_f64()) as u64;
            response.record_many(if rate <= capacity { 1_000_000 } else { 1_000_000_000 }, answers);
            let lag = Histogram::new();
            Ok(Measurement {
                clients: 1,
                offered: 100,
                completed: (rate * time.as_secs_f64()) as u64,
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
                ..Measurement::default()
            })
        }
    }

    fn search(slo_ms: u64) -> RateSearch {
        let (slo, time) = (Duration::from_millis(slo_ms), Duration::from_secs(6));
        RateSearch { slo, arrivals: Arrivals::Even, time }
    }

    #[test]
    fn highest_rate_is_found_within_a_few_percent_and_not_above() {
        for capacity in [900.0, 10_000.0, 123_456.0] {
            let found = search(10).find(server(capacity)).unwrap().open.unwrap();
            assert!(found.rate <= capacity && found.rate > capacity * 0.95, "{} of {capacity}", found.rate);
            assert!(found.probes >= 8);
        }
    }

    #[test]
    fn unreachable_objective_is_reported() {
        let failure = search(1).find(server(1_000.0)).unwrap_err();
        let text = failure.error.to_string();
        assert!(text.contains("no rate") && text.contains("took longer") && text.contains("--slo"), "{text}");
    }

    #[test]
    fn single_disturbed_probe_does_not_cap_the_rate() {
        let mut trials = 0;
        let found = search(10).find(|load_model, time| {
            trials += 1;
            // Another process takes nearly all of the machine during the first probe of a rate.
            server(if trials == 2 { 10.0 } else { 10_000.0 })(load_model, time)
        });
        let rate = found.unwrap().open.unwrap().rate;
        assert!(rate > 9_500.0, "{rate}");
    }

    #[test]
    fn measured_trial_counts_with_any_p99() {
        // Each trial at the confirmed rate meets the objective except the last one, which is the measured one.
        let all = {
            let mut trials = 0;
            let found = search(10).find(|load_model, time| {
                trials += 1;
                server(10_000.0)(load_model, time)
            });
            assert_eq!(found.unwrap().open.unwrap().probes, trials);
            trials
        };
        let mut trials = 0;
        let found = search(10).find(|load_model, time| {
            trials += 1;
            let mut measured = server(10_000.0)(load_model, time)?;
            if let (true, Some(open)) = (trials == all, &mut measured.open) {
                open.response.record_many(20_000_000, 500);
            }
            Ok(measured)
        });
        let found = found.unwrap();
        assert_eq!(trials, all, "no further trial took its place");
        assert!(found.open.unwrap().response.quantile(0.99).unwrap() > 10_000_000);
    }

    #[test]
    fn probe_has_enough_requests_for_its_percentile() {
        // At 700 requests per second, a twentieth of six seconds has 210.
        let mut rates = Vec::new();
        let found = search(10).find(|load_model, time| {
            if let LoadModel::Open { rate, .. } = load_model {
                rates.push(rate * time.as_secs_f64());
            }
            server(700.0)(load_model, time)
        });
        found.unwrap();
        assert!(rates.iter().all(|requests| *requests >= MIN_REQUESTS - 1.0), "{rates:?}");
        assert!(*rates.last().unwrap() >= MIN_MEASURED - 1.0);
    }

    #[test]
    fn search_without_enough_time_reports_needed_time() {
        let mut trials = 0;
        let failure = search(10).find(|load_model, time| {
            trials += 1;
            server(20.0)(load_model, time)
        });
        let error = failure.unwrap_err().error.to_string();
        assert!(error.contains("600 requests") && error.contains("--duration"), "{error}");
        assert_eq!(trials, 1);
    }

    /// The share of searches in which a rate succeeds at which this share of requests is too slow.
    fn succeeding(too_slow: f64, requests: f64) -> f64 {
        const SEARCHES: u64 = 1_000;
        let search = search(10);
        let mut rng = Rng::new(requests as u64);
        let succeeded = (0..SEARCHES).filter(|_| {
            let trial = |load_model: LoadModel, time| {
                let mut measured = server(f64::INFINITY)(load_model, time)?;
                if let Some(open) = &mut measured.open {
                    let slow =
                        (0..open.response.count()).filter(|_| rng.unit_f64() < too_slow).count() as u64;
                    let rest = open.response.count() - slow;
                    open.response.clear();
                    open.response.record_many(1_000_000, rest);
                    open.response.record_many(20_000_000, slow);
                }
                Ok(measured)
            };
            let mut probes = Probes { search: &search, trial, made: 0 };
            probes.keep(1_000.0, Duration::from_secs_f64(requests / 1_000.0)).unwrap().is_ok()
        });
        succeeded.count() as f64 / SEARCHES as f64
    }

    #[test]
    fn rate_at_which_too_many_are_slow_is_accepted_in_at_most_5_percent_of_searches() {
        for requests in [MIN_REQUESTS, MIN_MEASURED, 2_000.0] {
            // 5 %, and three standard errors.
            assert!(succeeding(0.01, requests) <= 0.05 + 0.021, "{requests} requests");
            assert!(succeeding(0.02, requests) < 0.01, "{requests} requests");
        }
        // The bias that the first lines state.
        assert!((succeeding(0.005, MIN_REQUESTS) - 0.36).abs() < 0.05);
        assert!((succeeding(0.003, MIN_REQUESTS) - 0.70).abs() < 0.05);
    }

    #[test]
    fn search_follows_capacity_that_halves() {
        let mut trials = 0;
        let found = search(10).find(|load_model, time| {
            trials += 1;
            server(if trials > 10 { 5_000.0 } else { 10_000.0 })(load_model, time)
        });
        let rate = found.unwrap().open.unwrap().rate;
        assert!((4_000.0..=5_000.0).contains(&rate), "{rate}");
    }

    #[test]
    fn unserved_load_differs_from_slow_load() {
        let late = |load_model: LoadModel, time: Duration| {
            let mut measured = server(f64::INFINITY)(load_model, time)?;
            measured.elapsed_ns *= 2;
            Ok(measured)
        };
        // Ten thousand per second at any requested rate.
        let failure = search(10).find(|load_model, time| match load_model {
            LoadModel::Closed => server(10_000.0)(load_model, time),
            LoadModel::Open { .. } => late(load_model, time),
        });
        let text = failure.unwrap_err().error.to_string();
        assert!(text.contains("under 10 ms: ") && text.contains("/s were not served as they came"), "{text}");
    }
}
