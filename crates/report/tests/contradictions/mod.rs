//! No finding contradicts the results of its own run. Random runs: several targets and axes, closed loops and given
//! rates, saturated clients, overload, a late generator, failed and unavailable cells.

mod check;
mod figures;
mod random;

use crate::common::INFO as SESSION;
use check::check;
use figures::Figures;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::load::RATE;
use kurabe_core::metric::{Better, Metric, Source, THROUGHPUT, Unit};
use kurabe_core::run::{Outcome, Run};
use kurabe_report::attribution::Bottleneck;
use kurabe_report::finding::{Estimate, Section};
use kurabe_report::summary::{CellResult, Decision, Summary};
use kurabe_report::{analyse, compare, csv, html, json, markdown, terminal};
use proptest::prelude::*;
use random::random;

/// The session experiment with additional metrics: with either direction, primary or not, and a slope.
static INFO: ExperimentInfo = ExperimentInfo {
    metrics: &[
        Metric::new("hit ratio", Unit::Share, Better::Higher, "answered").primary(),
        Metric::new("memory", Unit::Bytes, Better::Lower, "held"),
        Metric::new("lost", Unit::Count, Better::Lower, "often none"),
        Metric::new("memory per byte", Unit::Bytes, Better::Lower, "a slope")
            .primary()
            .from(Source::Slope("memory")),
    ],
    ..SESSION
};

fn hold(run: &Run) {
    let summary = analyse(run, Some(&INFO));
    let figures = Figures(&summary);
    let verdict = summary.statements(Section::Verdict).count();
    assert!(verdict > 0, "there is always an answer");
    for statement in &summary.findings {
        check(&figures, &statement.finding);
        let text = &summary.sentence(statement);
        assert!(!text.contains("fastest"), "{text}");
        assert!(text.ends_with('.') && !text.contains("NaN") && !text.contains("inf"), "{text}");
    }
    for cell in &summary.cells {
        let Some(found) = &cell.attribution else { continue };
        let none = [Bottleneck::Latency, Bottleneck::Load, Bottleneck::Unknown].contains(&found.bottleneck);
        assert_eq!(found.ground.is_none(), none, "{found:?}");
        assert!(found.ground.is_none_or(|ground| ground.share >= ground.threshold), "{found:?}");
    }
}

/// Each case takes half a second in debug builds; `PROPTEST_CASES` sets the number.
fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: cases.unwrap_or(32), failure_persistence: None, ..ProptestConfig::default() }
}

/// Marks its trials as interleaved, after a first round of continuous ones, which are faster or slower.
fn interleave(run: &mut Run, factor: u64) {
    run.header.spec.slice_ns = Some(10_000_000);
    for trial in &mut run.trials {
        let Outcome::Measured(measured) = &mut trial.outcome else { continue };
        match trial.round {
            0 => measured.elapsed_ns *= factor,
            _ => measured.slices = 10,
        }
    }
}

#[test]
fn quotient_of_two_rates_lies_within_the_interval_of_their_ratio() {
    let (mut compared, mut of_slices) = (0, 0);
    for seed in 0..200 {
        let mut run = random(seed);
        let is_interleaved =
            run.header.spec.rounds > 2 && !run.header.spec.axes.contains_key(RATE.name) && seed % 2 == 0;
        if is_interleaved {
            interleave(&mut run, 1 + seed % 5);
        }
        let summary = analyse(&run, Some(&INFO));
        for verdict in summary.verdicts.iter().filter(|verdict| verdict.pair.metric == THROUGHPUT.name) {
            let ends = verdict.ratio.and_then(Estimate::ends);
            let (Some((low, high)), [Some(a), Some(b)]) = (ends, verdict.cells) else { continue };
            let [a, b] = [a, b].map(|at| summary.cells[at].ops_per_second.unwrap().value);
            let quotient = a / b;
            let holds = low * (1.0 - 1e-9) <= quotient && quotient <= high * (1.0 + 1e-9);
            assert!(holds, "seed {seed}: {quotient}: {verdict:?}");
            compared += 1;
            of_slices += u64::from(is_interleaved);
        }
    }
    assert!(compared > 1_000 && of_slices > 300, "{compared}, {of_slices} of slices");
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_finding_follows_from_results(seed in any::<u64>()) {
        hold(&random(seed));
    }

    #[test]
    fn only_comparable_cells_of_two_runs_are_compared(seed in any::<u64>()) {
        let (first, mut second) = (random(seed), random(seed));
        let factor = [1, 1, 2, 5][seed as usize % 4];
        for trial in &mut second.trials {
            if let Outcome::Measured(measured) = &mut trial.outcome {
                measured.elapsed_ns *= factor;
            }
        }
        let [a, b] = [&first, &second].map(|run| analyse(run, Some(&INFO)));
        let compared = compare::compare(&a, &b, &[]);
        for row in &compared.rows {
            let of = |summary: &Summary| {
                let same = |cell: &&CellResult| {
                    Some(&cell.target) == row.target.as_ref() && cell.axes == row.at && cell.operation == row.operation && !cell.aa_control
                };
                summary.cells.iter().find(same).cloned().unwrap()
            };
            let (one, other) = (of(&a), of(&b));
            let loser = match row.result {
                Decision::Above => one,
                Decision::Below => other,
                _ => continue,
            };
            let timed = !INFO.metrics.iter().any(|metric| metric.name == row.pair.metric);
            prop_assert!(!timed || !loser.is_lower_bound() && !loser.is_overloaded() && !loser.is_generator_late());
        }
    }
}

#[test]
fn every_rendering_shows_the_findings_and_decides_nothing() {
    for seed in 0..4 {
        let summary = analyse(&random(seed), Some(&INFO));
        let options = terminal::Options { width: 200, details: true, ..terminal::Options::default() };
        let flat =
            |text: String| text.replace('\u{a0}', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        let (text, page) =
            (flat(terminal::render(&summary, &options)), html::render(&summary, &html::Options::default()));
        let (page, markdown) =
            (flat(page.replace("&#39;", "'").replace("&amp;", "&")), flat(markdown::render(&summary)));
        let json: serde_json::Value = serde_json::from_str(&json::render(&summary)).unwrap();
        assert!(csv::render(&summary).lines().count() > summary.cells.len());
        for (at, statement) in summary.findings.iter().enumerate() {
            let sentence = &summary.sentence(statement);
            assert_eq!(json["findings"][at]["sentence"], **sentence);
            // Without markup and line breaks.
            let has = |text: &str| text.replace("• ", "").contains(sentence.as_str().trim());
            let plain = !sentence.contains(['<', '"', '\'', '_', '#', '|', '—', '“']);
            if plain {
                assert!(has(&text), "the terminal lacks: {sentence}");
                assert!(has(&page), "the page lacks: {sentence}");
                assert!(has(&markdown), "Markdown lacks: {sentence}");
            }
        }
    }
}
