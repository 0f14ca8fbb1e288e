//! States from cells and trials, and the table's formats.

use super::*;
use crate::terminal::Options;
use kurabe_core::ErrorKind;
use kurabe_core::axis::Cell;

fn cell(target: usize) -> CellRecord {
    CellRecord {
        target,
        axes: Cell::new([]),
        aa_control: false,
        second_instance: false,
        unavailable: None,
        unavailable_operations: BTreeMap::new(),
        stored_bytes: None,
    }
}

fn refused(target: usize, why: &str) -> CellRecord {
    CellRecord { unavailable: Some(why.to_owned()), ..cell(target) }
}

fn trial(cell: usize, operation: &str, failed: Option<&str>) -> TrialRecord {
    let outcome = match failed {
        None => Outcome::Measured(Box::default()),
        Some(reason) => Outcome::Failed { kind: ErrorKind::Server, reason: reason.to_owned(), mismatches: 0 },
    };
    TrialRecord { round: 0, cell, operation: operation.to_owned(), at_ms: 0, outcome, rerun_reason: None }
}

fn operations() -> Vec<String> {
    ["read", "write"].map(str::to_owned).to_vec()
}

fn of(cells: &[CellRecord], trials: &[TrialRecord], ending: Ending<'_>) -> (State, Vec<String>) {
    let entry = Entry::of(5, 1, cells, &operations(), trials, ending);
    assert_eq!(entry.target, 5);
    (entry.state, entry.reasons)
}

#[test]
fn state_follows_from_cells_and_trials() {
    let made = [trial(1, "read", None), trial(1, "write", None)];
    assert_eq!(of(&[cell(0), cell(1)], &made, Ending::Complete), (State::Measured, vec![]));
    let why = || vec!["no such type".to_owned()];
    let some = [cell(0), cell(1), refused(1, "no such type")];
    assert_eq!(of(&some, &made, Ending::Complete), (State::Partly, why()));
    let none = [cell(0), refused(1, "no such type"), refused(1, "no such type")];
    assert_eq!(of(&none, &[trial(0, "read", None)], Ending::Complete), (State::NotAvailable, why()));
    // An error of the run is not the reason of what was not available before it.
    assert_eq!(of(&none, &[], Ending::Error("nothing can be measured")), (State::NotAvailable, why()));
    assert_eq!(
        of(&[cell(0), cell(1)], &[], Ending::Error("lost\n  log")),
        (State::Failed, vec!["lost".to_owned()])
    );
    assert_eq!(of(&[], &[], Ending::Error("lost")).0, State::Failed);
    assert_eq!(of(&[cell(0), cell(1)], &made[..1], Ending::Stopped).0, State::Stopped);
    assert_eq!(of(&some, &[], Ending::Planned), (State::Planned, why()));
    assert_eq!(of(&[cell(0), cell(1)], &[trial(0, "read", None)], Ending::Complete).0, State::Failed);
}

#[test]
fn one_operation_that_is_not_available_is_a_part() {
    let refusal = BTreeMap::from([("write".to_owned(), "read only".to_owned())]);
    let cells = [cell(0), CellRecord { unavailable_operations: refusal, ..cell(1) }];
    let (state, reasons) = of(&cells, &[trial(1, "read", None)], Ending::Complete);
    assert_eq!((state, reasons), (State::Partly, vec!["read only".to_owned()]));
}

#[test]
fn failed_trial_fails_its_target_only() {
    let cells = [cell(0), cell(1)];
    let trials =
        [trial(0, "read", None), trial(1, "read", None), trial(1, "write", Some("disk full\n  more"))];
    let (state, reasons) = of(&cells, &trials, Ending::Complete);
    assert_eq!((state, reasons), (State::Failed, vec!["write: disk full".to_owned()]));
    let other = Entry::of(0, 0, &cells, &operations(), &trials, Ending::Complete);
    assert_eq!((other.state, other.measured, other.failed), (State::Measured, 1, 0));
}

#[test]
fn rerun_replaces_the_failed_trial_before_it() {
    let again = TrialRecord { rerun_reason: Some("stood still".to_owned()), ..trial(1, "read", None) };
    let trials = [trial(1, "read", Some("no answer")), again];
    assert_eq!(of(&[cell(0), cell(1)], &trials, Ending::Complete).0, State::Measured);
}

#[test]
fn trials_of_controls_are_no_results() {
    let control = CellRecord { aa_control: true, ..cell(1) };
    let cells = [cell(0), cell(1), control];
    let trials = [trial(1, "read", None), trial(2, "read", None)];
    let entry = Entry::of(0, 1, &cells, &operations(), &trials, Ending::Complete);
    assert_eq!((entry.measured, entry.state), (1, State::Measured));
    // A control that fails is a failure nevertheless.
    let trials = [trial(1, "read", None), trial(2, "read", Some("lost"))];
    assert_eq!(of(&cells, &trials, Ending::Complete).0, State::Failed);
}

fn table() -> SuiteTable {
    let machine = MachineFacts {
        cpu: "C".to_owned(),
        cpus: 2,
        memory_bytes: 2_000_000_000,
        system: "Linux".to_owned(),
    };
    let targets = ["sqlite", "redis", "tcp"].map(str::to_owned).to_vec();
    let mut table = SuiteTable::new("small".to_owned(), 1_795_169_864, machine, targets);
    table.kurabe = "0.1.0".to_owned();
    table.seconds = 83.0;
    table.command = ["kurabe", "run", "-f", "small.toml"].map(str::to_owned).to_vec();
    let entry = |target, state, reasons: &[&str]| Entry {
        target,
        state,
        measured: 1,
        failed: 0,
        reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
    };
    let row = |name: &str, cells| Row {
        name: name.to_owned(),
        experiment: name.to_owned(),
        run: Some(format!("20261120-101744-{name}")),
        seconds: 2.5,
        cells,
    };
    let no_sql = "no SQL | here";
    table.runs = vec![
        row("kv", vec![entry(0, State::Measured, &[]), entry(1, State::Partly, &["no rows", "few"])]),
        row("link", vec![entry(0, State::Measured, &[]), entry(1, State::NotAvailable, &[no_sql])]),
        row("bind", vec![entry(0, State::Failed, &["read: lost"]), entry(1, State::NotAvailable, &[no_sql])]),
    ];
    table
}

#[test]
fn each_reason_has_one_note_with_its_places() {
    let text = terminal(&table(), &Options::default());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "small · 3 runs on 3 targets: 3 measured, 2 not available, 1 failed");
    assert_eq!(lines[2], "run   sqlite      redis     tcp   time");
    assert_eq!(lines[3], "kv    measured    part [1]  –    2.5 s");
    assert_eq!(lines[5], "bind  FAILED [3]  n/a [2]   –    2.5 s");
    assert!(text.contains("\n[1] kv on redis: no rows; few\n"), "{text}");
    assert!(text.contains("\n[2] link on redis, bind on redis: no SQL | here\n"), "{text}");
    assert!(text.contains("FAILED: a trial failed") && !text.contains("stopped"), "{text}");
}

#[test]
fn wide_table_is_divided_and_no_target_is_left_out() {
    let mut table = table();
    table.targets = (0..12).map(|at| format!("a target of number {at}")).collect();
    let options = Options { width: 60, ..Options::default() };
    let text = terminal(&table, &options);
    for target in &table.targets {
        assert!(text.contains(target.as_str()), "{text}");
    }
    let grids: Vec<&str> = text.lines().filter(|line| line.starts_with("run ")).collect();
    assert!(grids.len() > 4 && grids.iter().all(|line| line.chars().count() <= 60), "{text}");
}

#[test]
fn markdown_has_table_notes_machine_and_command() {
    let text = markdown(&table());
    assert!(text.contains("| kv | measured | part \\[1\\] | – | 2.5 s |"), "{text}");
    assert!(text.contains("\n2. link on redis, bind on redis: no SQL \\| here\n"), "{text}");
    assert!(text.contains("2026-11-20 10:17 UTC") && text.contains("C, 2 CPUs, 2 GB, Linux"), "{text}");
    assert!(text.contains("`kurabe run -f small.toml`"), "{text}");
}

#[test]
fn json_has_states_and_reasons() {
    let value: serde_json::Value = serde_json::from_str(&json(&table())).unwrap();
    assert_eq!(value["kurabe-suite"], 1);
    assert_eq!(value["runs"][1]["cells"][1]["state"], "not-available");
    assert_eq!(value["runs"][2]["cells"][0]["reasons"][0], "read: lost");
    assert_eq!(value["targets"][2], "tcp");
}

#[test]
fn failures_are_failed_cells_and_runs_without_any_result() {
    let mut table = table();
    assert!(table.has_failures());
    table.runs.pop();
    assert!(!table.has_failures());
    table.runs[1].cells.remove(0);
    assert!(table.has_failures());
}
