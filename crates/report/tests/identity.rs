//! Rows are those of their cells: values that would be rounded to one text stay apart, and no two rows of a table have one name.

use crate::common::{At, INFO, Scenario};
use kurabe_core::axis::AxisValue;
use kurabe_core::question::Question;
use kurabe_core::run::Run;
use kurabe_report::{Language, Summary, analyse, csv, json, markdown, terminal};
use kurabe_stats::Rng;

fn asked(mut run: Run, compare: &[&str], within: &[&str]) -> Summary {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    run.header.spec.question = Some(Question { compare: owned(compare), within: owned(within) });
    analyse(&run, Some(&INFO))
}

/// A rate that no other cell has.
fn own_rate(at: At<'_>) -> f64 {
    let payload = [2_000, 2_004, 2_049, 100_000].iter().position(|known| *known == at.payload).unwrap();
    let word = |words: &[&str], word: &str| words.iter().position(|known| *known == word).unwrap();
    let layout = word(&["blob", "rows"], at.layout);
    let compress = word(&["none", "zstd", "gzip"], at.compress);
    let target = word(&["sqlite", "postgres", "memcached"], at.target);
    let operation = word(&["write", "read"], at.operation);
    let number = (((payload * 2 + layout) * 3 + compress) * 3 + target) * 2 + operation;
    // Neighbours differ by 2 %, which three digits show.
    100.0 * 1.02_f64.powi(number as i32)
}

/// The rows of an answer: each block's heading, and the cells of each row's line.
fn blocks(text: &str) -> Vec<(String, Vec<Vec<String>>)> {
    let mut blocks: Vec<(String, Vec<Vec<String>>)> = Vec::new();
    for line in text.lines() {
        if let Some(row) = line.strip_prefix("  ").filter(|row| !row.starts_with(' ')) {
            let cells = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
            if let Some((_, rows)) = blocks.last_mut() {
                rows.push(cells.map(str::to_owned).collect());
            }
        } else {
            blocks.push((line.to_owned(), Vec::new()));
        }
    }
    blocks.retain(|(_, rows)| !rows.is_empty());
    blocks
}

/// A question compares payloads here: no heading names one.
#[test]
fn values_that_round_to_one_text_have_rows_figures_and_ratios_of_their_own() {
    let scenario = Scenario {
        payloads: vec![2_000, 2_004],
        layouts: vec!["blob"],
        compress: vec!["none"],
        noise: 0.0,
        rate: own_rate,
        ..Scenario::default()
    };
    let summary = asked(scenario.run(), &["payload"], &[]);
    let report: serde_json::Value = serde_json::from_str(&json::render(&summary)).unwrap();
    let rate = |operation: &str, payload: u64| {
        let at = At { target: "sqlite", operation, payload, layout: "blob", compress: "none" };
        own_rate(at)
    };
    for language in [Language::English, Language::Japanese] {
        let text = terminal::render(&summary.clone().in_language(language), &terminal::Options::default());
        for row in ["2,000 B", "2,004 B"] {
            assert_eq!(text.lines().filter(|line| line.trim_start().starts_with(row)).count(), 2, "{text}");
        }
        assert!(!text.contains("2 kB"), "{text}");
    }
    let text = terminal::render(&summary, &terminal::Options::default());
    for (heading, rows) in blocks(&text) {
        assert!(!heading.contains(" B"), "{heading}");
        let operation = if heading.starts_with("Writes") { "write" } else { "read" };
        for row in rows {
            let payload = if row[0] == "2,000 B" { 2_000 } else { 2_004 };
            assert_eq!(row[1], format!("{:.0}", rate(operation, payload)), "{text}");
            let ratio = rate(operation, payload) / rate(operation, 2_000);
            assert!(payload == 2_000 || row[5].starts_with(&format!("{ratio:.1}×")), "{ratio} in {text}");
        }
    }
    let verdicts = report["verdicts"].as_array().unwrap();
    assert_eq!(verdicts.iter().filter(|verdict| verdict["primary"] == true).count(), 2);
    for verdict in verdicts {
        assert_eq!(verdict["a"], serde_json::json!({ "value": 2_004 }));
        assert_eq!(verdict["b"], serde_json::json!({ "value": 2_000 }));
        for (side, payload) in [(0, 2_004), (1, 2_000)] {
            let cell = &report["cells"][verdict["cells"][side].as_u64().unwrap() as usize];
            assert_eq!(
                (&cell["axes"]["payload"], &cell["operation"]),
                (&payload.into(), &verdict["operation"])
            );
        }
    }
}

#[test]
fn every_verdict_is_of_the_cells_that_it_names_and_no_table_has_two_rows_of_one_name() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let mut few = |most: u64| rng.below(most) as usize;
        let scenario = Scenario {
            targets: ["sqlite", "postgres", "memcached"][..=few(3)].to_vec(),
            payloads: [2_000, 2_004, 2_049, 100_000][..=few(4)].to_vec(),
            layouts: ["blob", "rows"][..=few(2)].to_vec(),
            compress: ["none", "zstd", "gzip"][..=few(3)].to_vec(),
            operations: ["write", "read"][few(2)..].to_vec(),
            noise: 0.0,
            rate: own_rate,
            ..Scenario::default()
        };
        let compare: &[&str] =
            [&["targets"][..], &["payload"], &["layout", "compress"], &["targets", "payload", "compress"]]
                [few(4)];
        let within: &[&str] = [&[][..], &["payload"], &["payload", "layout"]][few(3)];
        let within: Vec<&str> = within.iter().copied().filter(|axis| !compare.contains(axis)).collect();
        let summary = asked(scenario.run(), compare, &within);
        let rate = |at: Option<usize>| summary.cells[at.unwrap()].ops_per_second.unwrap().value;
        for verdict in summary.verdicts.iter().filter(|verdict| verdict.primary) {
            let quotient = rate(verdict.cells[0]) / rate(verdict.cells[1]);
            assert!((verdict.ratio.unwrap().value / quotient - 1.0).abs() < 0.01, "seed {seed}: {verdict:?}");
        }
        for language in [Language::English, Language::Japanese] {
            let summary = summary.clone().in_language(language);
            let options = terminal::Options { width: 200, details: true, ..terminal::Options::default() };
            let brief = terminal::Options { details: false, ..options };
            for text in [terminal::render(&summary, &options), terminal::render(&summary, &brief)] {
                for (heading, rows) in blocks(&text) {
                    let mut rows: Vec<&Vec<String>> = rows.iter().collect();
                    let all = rows.len();
                    rows.sort();
                    rows.dedup();
                    assert_eq!(rows.len(), all, "seed {seed}, {heading}:\n{text}");
                }
            }
        }
        // Each cell has a line of its own, with its exact values.
        let lines = csv::render(&summary);
        let payloads: Vec<&AxisValue> =
            summary.cells.iter().filter_map(|cell| cell.axes.get("payload")).collect();
        assert_eq!(lines.lines().count(), payloads.len() + 1);
        let text = markdown::render(&summary);
        assert!(!text.contains("\n| 2 kB |") || scenario.payloads.len() == 1, "{text}");
    }
}
