//! When additional rounds change nothing: the end of `--until conclusive`, and its sentence in the report.

use crate::common::{INFO, Pattern, Scenario, measurements, observed};
use kurabe_core::run::{Run, Until};
use kurabe_report::summary::{Decision, Verdict};
use kurabe_report::{Summary, analyse};

/// Two targets that are equal except for noise, the second one slower by `slower`; `full`: whose clients are
/// saturated.
fn run(full: [bool; 2], noise: f64, slower: f64) -> Run {
    let mut run = Scenario {
        targets: vec!["postgres", "postgres"],
        payloads: vec![1_000],
        layouts: vec!["blob"],
        compress: vec!["none"],
        operations: vec!["read"],
        rounds: 4,
        noise,
        ..Scenario::default()
    }
    .run();
    run.header.spec.until = Some(Until { margin: 0.05, max_rounds: 100, budget_ns: None });
    for (trial, measured) in measurements(&mut run) {
        let target = trial.record.target;
        if target == 1 {
            measured.elapsed_ns = (measured.elapsed_ns as f64 * slower) as u64;
        }
        let pattern = if full[target] { Pattern::ClientFull } else { Pattern::ServerThreadFull };
        measured.observed = Some(Box::new(observed(pattern, measured)));
    }
    run
}

fn of_targets(summary: &Summary) -> Verdict {
    let mut verdicts = summary.verdicts.iter().filter(|verdict| verdict.primary && verdict.target.is_none());
    verdicts.next().unwrap().clone()
}

#[test]
fn comparison_stays_undecided_while_the_saturated_side_may_still_win() {
    for full in [[true, false], [false, true]] {
        let summary = analyse(&run(full, 0.2, 1.0), Some(&INFO));
        let verdict = of_targets(&summary);
        // Neither ranked nor conclusive: the lower bound may still win.
        assert_eq!((verdict.result, verdict.conclusive), (Decision::NotTestable, false), "{verdict:?}");
        let (low, high) = verdict.ratio.unwrap().ends().unwrap();
        assert!(low < 1.0 && high > 1.0, "{verdict:?}");
        assert!(
            !summary
                .findings
                .iter()
                .any(|said| summary.sentence(said).contains("every comparison is conclusive"))
        );
    }
    // The saturated side wins, and the difference is significant.
    let won = of_targets(&analyse(&run([true, false], 0.01, 2.0), Some(&INFO)));
    assert_eq!((won.result, won.conclusive, won.lower_bound), (Decision::Above, true, true), "{won:?}");
    // It loses, possibly because of its client: more rounds cannot decide that.
    let lost = of_targets(&analyse(&run([false, true], 0.01, 2.0), Some(&INFO)));
    assert_eq!((lost.result, lost.conclusive), (Decision::NotTestable, true), "{lost:?}");
}

#[test]
fn comparison_of_two_saturated_clients_is_conclusive_but_neither_called_nor_equal() {
    let summary = analyse(&run([true, true], 0.2, 1.0), Some(&INFO));
    let verdict = of_targets(&summary);
    assert_eq!((verdict.result, verdict.conclusive), (Decision::NotTestable, true), "{verdict:?}");
    let said: Vec<String> = summary.findings.iter().map(|said| summary.sentence(said)).collect();
    assert!(said.iter().any(|said| said.contains("cannot be made with any number of rounds")), "{said:?}");
    assert!(!said.iter().any(|said| said.contains("every comparison is conclusive")), "{said:?}");
}

#[test]
fn equivalence_within_the_margin_is_conclusive() {
    let summary = analyse(&run([false, false], 0.002, 1.0), Some(&INFO));
    let verdict = of_targets(&summary);
    assert_eq!((verdict.result, verdict.conclusive), (Decision::Within, true), "{verdict:?}");
    let said: Vec<String> = summary.findings.iter().map(|said| summary.sentence(said)).collect();
    assert!(said.iter().any(|said| said.starts_with("Every comparison is conclusive")), "{said:?}");
}
