//! The noise floor of each target, and which one applies to a comparison.

use crate::common::{INFO, Scenario};
use kurabe_core::run::{Outcome, Run};
use kurabe_report::finding::Section;
use kurabe_report::summary::TargetId;
use kurabe_report::{Summary, analyse};

/// Two targets; the second one's A/A control differs by up to a tenth.
fn run() -> Run {
    let mut run = Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() }.run();
    for trial in &mut run.trials {
        let cell = &run.header.cells[trial.cell];
        if let (Outcome::Measured(measured), true, 1) = (&mut trial.outcome, cell.aa_control, cell.target) {
            measured.elapsed_ns = measured.elapsed_ns * (100 + u64::from(trial.round % 2) * 10) / 100;
        }
    }
    run
}

fn floor_of(summary: &Summary, target: &str, operation: &str) -> f64 {
    let mut cells = summary.cells.iter().filter(|cell| cell.operation == operation);
    cells.find(|cell| cell.target.name() == target).unwrap().noise_floor.unwrap()
}

#[test]
fn comparisons_of_two_targets_name_the_noise_of_both_and_those_of_one_target_its_own() {
    let summary = analyse(&run(), Some(&INFO));
    let (small, large) = (floor_of(&summary, "sqlite", "write"), floor_of(&summary, "postgres", "write"));
    assert!(small < 0.5 * large, "{small} {large}");
    let mut floors = [const { Vec::new() }; 3];
    for verdict in summary.verdicts.iter().filter(|verdict| verdict.primary && verdict.operation == "write") {
        let kind = match verdict.target.as_ref().map(TargetId::name) {
            Some("sqlite") => 0,
            None => 1,
            Some(_) => 2,
        };
        let floor = verdict.noise_floor.unwrap();
        floors[kind].push(floor);
    }
    let [sqlite, both, postgres] = floors.map(|floors| {
        assert!(!floors.is_empty());
        floors.iter().sum::<f64>() / floors.len() as f64
    });
    assert!(sqlite < both && both < postgres, "{sqlite} {both} {postgres}");
}

#[test]
fn floor_does_not_grow_with_the_number_of_other_targets() {
    let alone = Scenario { targets: vec!["sqlite"], ..Scenario::default() }.run();
    let mut others = Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() }.run();
    // The same trials of the first target.
    others.trials.retain(|trial| trial.cell >= alone.header.cells.len());
    others.trials.extend(alone.trials.iter().cloned());
    let floor = |run: &Run| floor_of(&analyse(run, Some(&INFO)), "sqlite", "write");
    assert!((floor(&alone) - floor(&others)).abs() < 1e-12);
}

#[test]
fn report_names_instance_of_aa_control() {
    let summary = analyse(&run(), Some(&INFO));
    let basis = summary.sentences(Section::Basis).join(" ");
    assert!(basis.contains("SQLite on a second instance: writes"), "{basis}");
    assert!(basis.contains("PostgreSQL on the same server: writes"), "{basis}");
}
