//! Runs whose targets have different bottlenecks: what their results, verdicts and reports say of these.

use crate::common::{INFO, Pattern, Scenario, bottlenecks, measurements, observed, of_any_start};
use kurabe_core::observation::ServerUse;
use kurabe_core::run::{Outcome, Run};
use kurabe_report::attribution::{Bottleneck, Confidence};
use kurabe_report::finding::{Section, Side, Why};
use kurabe_report::summary::Decision;
use kurabe_report::{View, analyse, compare, csv, html, json, markdown, terminal};

#[test]
fn server_cpu_per_operation_uses_observed_rounds() {
    let mut run = bottlenecks();
    // PostgreSQL was not observed in one round.
    let postgres = run.header.cells.iter().position(|cell| cell.target == 1).unwrap();
    let (mut cpu_ns, mut completed) = (0, 0);
    for trial in run.trials.iter_mut().filter(|trial| trial.cell == postgres && trial.operation == "read") {
        let Outcome::Measured(measured) = &mut trial.outcome else { continue };
        let seen = measured.observed.as_deref_mut().unwrap();
        if trial.round == 2 {
            seen.server = ServerUse::NotObserved("no observer ran".to_owned());
        } else {
            cpu_ns += seen.server_seen().unwrap().cpu_ns;
            completed += measured.completed;
        }
    }
    let summary = analyse(&run, Some(&INFO));
    let of = |target: &str| {
        let cell = summary.cells.iter().find(|cell| cell.target.name() == target && cell.operation == "read");
        cell.unwrap().server_cpu_us_per_op
    };
    assert_eq!(of("sqlite"), None, "it is in the client");
    assert_eq!(of("postgres"), Some(cpu_ns as f64 / 1e3 / completed as f64));
    assert!(of("memcached").is_some());
    // Without an observed server there is no such column.
    let unseen = analyse(&Scenario::default().run(), Some(&INFO));
    assert!(!markdown::render(&unseen).contains("server CPU/op"));
}

#[test]
fn verdicts_name_bottleneck_and_saturated_client_is_never_slower() {
    let summary = analyse(&bottlenecks(), Some(&INFO));
    let all: Vec<String> =
        [Section::Verdict, Section::Detail].into_iter().flat_map(|s| summary.sentences(s)).collect();
    let has = |text: &str| assert!(all.iter().any(|sentence| sentence.contains(text)), "{text}: {all:#?}");
    has("PostgreSQL's bottleneck is the server's CPU");
    has("PostgreSQL's bottleneck is storage");
    has("Writes on memcached are at least 2.7 times as fast as on SQLite at every payload tested");
    has("Reads on memcached are at least");
    has("the client was saturated on memcached, so its result is a lower bound");
    let memcached = summary.targets.iter().position(|target| target.name == "memcached").unwrap();
    for verdict in &summary.verdicts {
        let is_memcached = |side: &Side| *side == Side::Target(memcached);
        let loser_is_memcached = is_memcached(&verdict.pair.b) && verdict.result == Decision::Above
            || is_memcached(&verdict.pair.a) && verdict.result == Decision::Below;
        assert!(!loser_is_memcached, "{verdict:?}");
    }
}

#[test]
fn runs_with_saturated_clients_are_not_compared() {
    let first = of_any_start(bottlenecks());
    let mut second = first.clone();
    for (_, measured) in measurements(&mut second) {
        measured.elapsed_ns *= 2;
    }
    let [a, b] = [&first, &second].map(|run| analyse(run, Some(&INFO)));
    let compared = compare::compare(&a, &b, &[]);
    for row in compared.rows.iter().filter(|row| row.primary) {
        let full = row.target.as_ref().unwrap().name() == "memcached";
        let expected = if full { Decision::NotTestable } else { Decision::Below };
        assert_eq!(
            (row.result, matches!(row.why, Some(Why::ClientBound { .. }))),
            (expected, full),
            "{row:?}"
        );
    }
}

#[test]
fn every_rendering_marks_lower_bounds_with_evidence() {
    let summary = analyse(&bottlenecks(), Some(&INFO));
    let options = terminal::Options { width: 200, details: true, ..terminal::Options::default() };
    for text in [terminal::render(&summary, &options), markdown::render(&summary)] {
        assert!(text.contains("≥ ") && text.contains("limited by") && text.contains("client CPU"), "{text}");
        assert!(text.contains("Bottlenecks") && text.contains("lower bound"), "{text}");
    }
    let page = html::render(&summary, &html::Options::default());
    assert!(page.contains("a lower bound") && page.contains("class=\"bar least\""));
    assert!(csv::render(&summary).contains(",client-cpu,"));
    assert!(json::render(&summary).contains("\"bottleneck\": \"disk\""));
}

#[test]
fn anonymous_report_omits_program_names() {
    let view = View { anonymise: true, ..View::default() };
    let summary = view.analyse(&bottlenecks(), Some(&INFO)).unwrap();
    let page = html::render(&summary, &html::Options::default());
    for text in [json::render(&summary), markdown::render(&summary), csv::render(&summary), page] {
        assert!(!text.to_ascii_lowercase().contains("secretserver"), "{text}");
    }
    assert!(json::render(&analyse(&bottlenecks(), Some(&INFO))).contains("secretserver"));
}

#[test]
fn attribution_of_cell_is_majority_of_trials() {
    let mut run: Run = bottlenecks();
    let mut changed = 0;
    for trial in &mut run.trials {
        if trial.cell == 0 && trial.operation == "read" && trial.round < 2 {
            let Outcome::Measured(measured) = &mut trial.outcome else { continue };
            measured.observed = Some(Box::new(observed(Pattern::Disk, &measured.clone())));
            changed += 1;
        }
    }
    assert_eq!(changed, 2);
    let summary = analyse(&run, Some(&INFO));
    let cell =
        summary.cells.iter().find(|cell| cell.target.name() == "sqlite" && cell.operation == "read").unwrap();
    let found = cell.attribution.as_ref().unwrap();
    assert_eq!((found.bottleneck, found.trials, found.of_trials), (Bottleneck::ProcessCpu, 3, 5));
    assert_eq!(found.confidence, Confidence::Low);
}
