//! The raw windows of trials as CSV.

use crate::common::{Scenario, measurements};
use kurabe_core::run::Run;
use kurabe_report::{View, csv};

fn run() -> Run {
    let mut run = Scenario::default().run();
    for (_, measured) in measurements(&mut run) {
        measured.windows = vec![100, 300];
        // The first client ended after two thirds of the trial.
        (measured.windows_ns, measured.elapsed_ns) = (600_000_000, 900_000_000);
    }
    run
}

#[test]
fn every_window_of_every_trial_is_a_row_whose_counts_add_up() {
    let run = run();
    let text = csv::windows(&run);
    let mut lines = text.split("\r\n");
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |name: &str| head.iter().position(|one| *one == name).unwrap();
    let rows: Vec<Vec<&str>> =
        lines.filter(|line| !line.is_empty()).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), run.trials.len() * 2);
    let sum: u64 = rows.iter().map(|row| row[at("completed")].parse::<u64>().unwrap()).sum();
    assert_eq!(sum, run.trials.len() as u64 * 400);
    for row in &rows {
        let number = |name: &str| row[at(name)].parse::<f64>().unwrap();
        let rate = number("completed") / (number("to_s") - number("from_s"));
        assert!((rate / number("ops_per_second") - 1.0).abs() < 1e-3, "{row:?}");
        let ends = [number("from_s"), number("to_s")].map(|end| (end * 10.0).round() as u64);
        assert!(ends == [0, 3] || ends == [3, 6], "{row:?}");
    }
}

#[test]
fn anonymous_windows_name_no_engine() {
    let view = View { anonymise: true, ..View::default() };
    let text = csv::windows(&view.run(&run()).unwrap());
    assert!(text.contains("database A") && !text.to_lowercase().contains("sqlite"), "{text}");
}
