//! Sentences on verification; and which trials ended because they had changed every record.

use crate::finding::{Scope, Trials};
use kurabe_core::run::{Measurement, Outcome, Run};
use kurabe_core::units;
use kurabe_core::verification::{Proof, Verification};

/// How writes were verified, as a clause: "9 writes counted on the server, not read back".
pub fn writes(all: &Verification) -> String {
    let count = units::count(all.writes);
    let counted = match all.counted {
        0 => String::new(),
        all_of_them if all_of_them >= all.writes => ", all counted on the server".to_owned(),
        some => format!(", {} of them counted on the server", units::count(some)),
    };
    let read_back = units::count(all.read_back);
    match all.how() {
        Proof::ReadBackAll => {
            format!("{count} writes, the record of each read back and compared{counted}")
        }
        Proof::ReadBackLast => format!(
            "{count} writes to {} records, the last version of each record read back and compared{counted}",
            units::count(all.records)
        ),
        Proof::Counted if all.read_back == 0 => {
            format!("{count} writes counted on the server, not read back")
        }
        Proof::Counted | Proof::Sample => format!(
            "{count} writes acknowledged by the server{counted}, {read_back} records read back and compared"
        ),
        _ => format!("{count} writes acknowledged by the server{counted}, not read back"),
    }
}

/// The verification of a cell over all its trials; `None` if any trial did not record it.
pub(crate) fn sum<'a>(trials: impl Iterator<Item = &'a Option<Verification>>) -> Option<Verification> {
    let mut sum = Verification::default();
    for verified in trials {
        sum += (*verified)?;
    }
    Some(sum)
}

/// Trials that ended early because each record is changed at most once, and how to make them longer.
pub(crate) fn exhausted(run: &Run) -> Vec<Trials> {
    let mut findings = Vec::new();
    for operation in &run.header.spec.operations {
        let (mut all, mut ended, mut most, mut needed) = (0_u64, 0_u64, 0, 0.0_f64);
        for trial in run.trials.iter().filter(|trial| trial.operation == *operation) {
            let Outcome::Measured(measured) = &trial.outcome else { continue };
            all += 1;
            let Some(records) = measured.exhausted else { continue };
            ended += 1;
            most = most.max(records);
            needed = needed.max(records as f64 * longer(run, trial.operation.as_str(), measured));
        }
        if ended > 0 {
            let scope = Scope { operations: vec![operation.clone()], ..Scope::default() };
            let needed = rounded_up(needed);
            findings.push(Trials::RecordsExhausted { scope, trials: ended, of: all, records: most, needed });
        }
    }
    findings
}

/// The factor by which the trial would have been longer, with a margin.
fn longer(run: &Run, operation: &str, measured: &Measurement) -> f64 {
    /// The margin, since the next trial may be faster.
    const ROOM: f64 = 1.3;
    let took = measured.open.as_ref().map_or(measured.elapsed_ns, |open| open.due_ns).max(1);
    let by_time = run.header.spec.duration_ns.map(|time| time as f64 / took as f64);
    let by_requests =
        run.header.spec.requests.get(operation).map(|n| *n as f64 / measured.offered.max(1) as f64);
    let times = match (by_time, by_requests) {
        (Some(time), Some(requests)) => time.min(requests),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => 1.0,
    };
    times.max(1.0) * ROOM
}

/// Rounds up to a number with two significant digits.
fn rounded_up(number: f64) -> u64 {
    let unit = 10_f64.powf((number.max(10.0).log10().floor() - 1.0).max(0.0));
    ((number / unit).ceil() * unit) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clause(writes: u64, records: u64, counted: u64, read_back: u64) -> String {
        super::writes(&Verification { answers: 0, writes, records, counted, read_back })
    }

    #[test]
    fn server_count_is_claimed_only_if_counted() {
        for text in [clause(9, 9, 0, 9), clause(9, 5, 0, 5), clause(9, 9, 0, 4), clause(9, 9, 0, 0)] {
            assert!(!text.contains("counted"), "{text}");
        }
        assert_eq!(
            clause(9, 9, 9, 9),
            "9 writes, the record of each read back and compared, all counted on the server"
        );
        assert_eq!(clause(9, 9, 9, 0), "9 writes counted on the server, not read back");
        assert_eq!(
            clause(9, 9, 4, 0),
            "9 writes acknowledged by the server, 4 of them counted on the server, not read back"
        );
    }

    #[test]
    fn a_hint_is_a_round_number_and_enough() {
        assert_eq!(rounded_up(7.0), 7);
        assert_eq!(rounded_up(123_456.0), 130_000);
        assert_eq!(rounded_up(2_000_000.0), 2_000_000);
        assert_eq!(rounded_up(2_000_001.0), 2_100_000);
    }
}
