//! Rows are those of their cells: values that would be rounded to one text stay apart, and no two rows of a table have one name.

use crate::common::{At, INFO, Scenario};
use kurabe_core::axis::AxisValue;
use kurabe_core::question::Question;
use kurabe_core::run::Run;
use kurabe_report::finding::{Comparison, Finding};
use kurabe_report::summary::{CellResult, TargetId};
use kurabe_report::{Language, Summary, analyse, csv, html, json, markdown, terminal};
use kurabe_stats::Rng;

fn asked(mut run: Run, compare: &[&str], within: &[&str]) -> Summary {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    run.header.spec.question = Some(Question { compare: owned(compare), within: owned(within) });
    analyse(&run, Some(&INFO))
}

/// Targets, operations and the number of ratios of each difference that a report says.
fn differences(summary: &Summary) -> Vec<(Vec<usize>, Vec<String>, usize)> {
    let found = summary.findings.iter().filter_map(|statement| match &statement.finding {
        Finding::Comparison(Comparison::Better { scope, measured, .. }) => {
            let targets = scope.targets.iter().map(TargetId::at).collect();
            Some((targets, scope.operations.clone(), measured.len()))
        }
        _ => None,
    });
    found.collect()
}

#[test]
fn targets_of_one_name_stay_apart_in_findings() {
    let mut run = Scenario { targets: vec!["sqlite", "postgres"], ..Scenario::default() }.run();
    let apart = differences(&asked(run.clone(), &["compress"], &["payload"]));
    for target in &mut run.header.targets {
        target.name = "shop".to_owned();
    }
    assert!(apart.iter().any(|(targets, ..)| targets == &[1]), "{apart:?}");
    assert_eq!(differences(&asked(run, &["compress"], &["payload"])), apart);
}

const PAYLOADS: [u64; 4] = [2_000, 2_004, 2_049, 100_000];
const LAYOUTS: [&str; 2] = ["blob", "rows"];
const COMPRESS: [&str; 3] = ["none", "zstd", "gzip"];
/// The last one is of the first one's engine.
const TARGETS: [&str; 4] = ["sqlite", "postgres", "memcached", "sqlite-b"];

/// A rate that no other cell has.
fn own_rate(at: At<'_>) -> f64 {
    let payload = PAYLOADS.iter().position(|known| *known == at.payload).unwrap();
    let word = |words: &[&str], word: &str| words.iter().position(|known| *known == word).unwrap();
    let layout = word(&LAYOUTS, at.layout);
    let compress = word(&COMPRESS, at.compress);
    let target = word(&TARGETS, at.target);
    let operation = word(&["write", "read"], at.operation);
    let number = (((payload * 2 + layout) * 3 + compress) * 4 + target) * 2 + operation;
    // Neighbours differ by 1.15 %, which three digits show.
    100.0 * 1.0115_f64.powi(number as i32)
}

/// A value of an axis, or a target, whose text in a report is this one.
fn meant<'a, T: Copy>(all: &[T], text: &str, texts: impl Fn(T) -> Vec<String> + 'a) -> T {
    *all.iter().find(|one| texts(**one).iter().any(|known| known == text)).unwrap_or_else(|| panic!("{text}"))
}

/// The rate of the cell that a row of text names. Axes that do not vary have no column.
fn rate_of_row(summary: &Summary, operation: &str, columns: &[String], row: &[String]) -> f64 {
    let find = |name: &str| Some(row[columns.iter().position(|column| column == name)?].as_str());
    let held = |axis: &str| summary.spec.axes[axis][0].to_string();
    let word = |axis: &str| find(axis).map_or_else(|| held(axis), str::to_owned);
    let sizes = |bytes: u64| {
        let exact = kurabe_core::units::count(bytes);
        vec![kurabe_core::units::size(bytes), format!("{exact} B"), exact, bytes.to_string()]
    };
    let is_alone = |engine: &str| summary.targets.iter().filter(|other| other.engine == engine).count() == 1;
    let names = |name: &str| {
        let engine = summary.targets.iter().find(|target| target.name == name).map(|found| &found.engine);
        let engine = engine.filter(|engine| is_alone(engine)).cloned();
        engine.into_iter().chain([name.to_owned()]).collect()
    };
    let payload = meant(&PAYLOADS, &word("payload"), sizes);
    let target = find("target").map_or(TARGETS[0], |text| meant(&TARGETS, text, names));
    let (layout, compress) = (word("layout"), word("compress"));
    own_rate(At { target, operation, payload, layout: &layout, compress: &compress })
}

/// Each row of the files names the cell whose figures it has.
fn files_have_the_figures_of_the_cells_that_their_rows_name(summary: &Summary, seed: u64) {
    let is_near = |shown: &str, wanted: f64| {
        let shown: f64 = shown.replace(',', "").parse().unwrap();
        // Figures have three digits at least.
        (shown / wanted - 1.0).abs() < 0.005
    };
    let lines = csv::render(summary);
    let mut lines = ::csv::Reader::from_reader(lines.as_bytes());
    let columns: Vec<String> = lines.headers().unwrap().iter().map(str::to_owned).collect();
    let at = |name: &str| columns.iter().position(|column| column == name).unwrap();
    for row in lines.records() {
        let row: Vec<String> = row.unwrap().iter().map(str::to_owned).collect();
        let wanted = rate_of_row(summary, &row[at("operation")], &columns, &row);
        assert!(is_near(&row[at("ops_per_second")], wanted), "seed {seed}: {wanted} in {row:?}");
    }
    let report: serde_json::Value = serde_json::from_str(&json::render(summary)).unwrap();
    for cell in report["cells"].as_array().unwrap() {
        let text =
            |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let names = ["payload", "layout", "compress"];
        let row = names.iter().map(|name| text(&cell["axes"][name])).chain([text(&cell["target"])]);
        let columns: Vec<String> = names.iter().chain(&["target"]).map(|name| (*name).to_owned()).collect();
        let wanted =
            rate_of_row(summary, cell["operation"].as_str().unwrap(), &columns, &row.collect::<Vec<_>>());
        assert!(is_near(&cell["ops_per_second"]["mean"].to_string(), wanted), "seed {seed}: {cell}");
    }
    let text = markdown::render(summary);
    let mut rows = 0;
    for operation in &summary.spec.operations {
        let begin = format!("## {}s", capital(operation));
        // Rankings precede it, which do not name the rounds: their rows have names in place of columns.
        let is_heading = |line: &str| line.starts_with(&begin) && line.contains(" round");
        let table = text.lines().skip_while(|line| !is_heading(line));
        let table = table.skip_while(|line| !line.starts_with('|'));
        let table = table.take_while(|line| line.starts_with('|'));
        let cells = |line: &str| -> Vec<String> {
            line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()
        };
        let mut table = table.map(cells);
        let columns = table.next().unwrap();
        let rate = columns.iter().position(|column| column == "ops/s").unwrap();
        for row in table.skip(1) {
            let wanted = rate_of_row(summary, operation, &columns, &row);
            assert!(is_near(&row[rate], wanted), "seed {seed}: {wanted} in {row:?} of {text}");
            rows += 1;
        }
    }
    let measured = summary.cells.iter().filter(|cell| !cell.aa_control).count();
    assert_eq!(rows, measured, "seed {seed}: {text}");
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
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

/// The cell with this rate, as reports show it.
fn cell_of<'a>(summary: &'a Summary, rate: &str) -> &'a CellResult {
    let has = |cell: &&CellResult| {
        !cell.aa_control && cell.ops_per_second.is_some_and(|shown| format!("{:.0}", shown.value) == rate)
    };
    summary.cells.iter().find(has).unwrap_or_else(|| panic!("no cell has {rate}/s"))
}

/// Whether a name or heading says this value of an axis of a cell, or its target, and nothing else of the axis.
fn says(cell: &CellResult, part: &str) -> bool {
    let values = cell.axes.values().iter().map(|(axis, value)| {
        let AxisValue::Number(bytes) = value else { return (axis, vec![value.to_string()]) };
        let exact = kurabe_core::units::count(*bytes);
        (axis, vec![kurabe_core::units::size(*bytes), format!("{exact} B"), exact])
    });
    let mut words = vec![cell.target.to_string(), cell.engine.clone()];
    words.extend(values.flat_map(|(axis, texts)| {
        let named: Vec<String> = texts.iter().map(|text| format!("{axis} {text}")).collect();
        [texts, named].concat()
    }));
    words.iter().any(|word| word == part)
}

/// Each row of a ranking names values of the cell whose figures it shows, no two rows or headings are called the same, and
/// each measured cell of the question's places has a row.
fn rows_are_of_their_cells(summary: &Summary, seed: u64) {
    let options = terminal::Options { width: 200, details: true, ..terminal::Options::default() };
    let text = terminal::render(summary, &options);
    let rankings = text.split("\n\n").nth(1).unwrap();
    let mut headings = Vec::new();
    let mut shown = Vec::new();
    for (heading, rows) in blocks(rankings) {
        let mut names: Vec<&String> = rows.iter().map(|row| &row[0]).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), rows.len(), "seed {seed}, {heading}:\n{rankings}");
        for row in &rows {
            let cell = cell_of(summary, &row[1]);
            let operation = format!("{}s", cell.operation);
            assert!(heading.to_lowercase().starts_with(&operation), "seed {seed}: {heading}: {row:?}");
            for part in row[0].split(", ") {
                assert!(says(cell, part), "seed {seed}: '{part}' in {row:?} of {cell:?}");
            }
            shown.push((cell.target.clone(), cell.operation.clone(), cell.axes.clone()));
        }
        headings.push(heading);
    }
    let all = headings.len();
    headings.sort();
    headings.dedup();
    assert_eq!(headings.len(), all, "seed {seed}:\n{rankings}");
    let question = summary.spec.question.as_ref().unwrap();
    let is_asked = |cell: &&CellResult| {
        let first = |(axis, value): (&String, &AxisValue)| {
            question.compares(axis)
                || question.is_within(axis)
                || summary.spec.axes[axis].first() == Some(value)
        };
        !cell.aa_control && cell.axes.values().iter().all(first)
    };
    // Targets are compared at one value of the other compared axes, which are compared on each target.
    for cell in summary.cells.iter().filter(is_asked).filter(|_| !all_targets_only(question)) {
        let here = (cell.target.clone(), cell.operation.clone(), cell.axes.clone());
        assert!(shown.contains(&here), "seed {seed}: {here:?} is not in\n{rankings}");
    }
    if !seed.is_multiple_of(8) {
        return;
    }
    let page = html::render(summary, &html::Options::default());
    let lines = page.split("<tr data-c=\"").skip(1);
    let mut rows_of_page = 0;
    for line in lines {
        let (id, row) = line.split_once('"').unwrap();
        let row = row.split("</tr>").next().unwrap();
        let rate =
            format!(">{:.0}<", summary.cells[id.parse::<usize>().unwrap()].ops_per_second.unwrap().value);
        assert!(row.contains(&rate), "seed {seed}: {id}: {rate} is not in {row}");
        rows_of_page += 1;
    }
    assert!(rows_of_page >= shown.len(), "seed {seed}: {rows_of_page} rows of the page");
}

/// Whether only targets are compared: then other values of axes are in no place.
fn all_targets_only(question: &Question) -> bool {
    question.compare.iter().all(|name| name == "targets")
}

#[test]
fn every_verdict_is_of_the_cells_that_it_names_and_no_table_has_two_rows_of_one_name() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let mut few = |most: u64| rng.below(most) as usize;
        let scenario = Scenario {
            targets: TARGETS[..=few(4)].to_vec(),
            payloads: PAYLOADS[..=few(4)].to_vec(),
            layouts: LAYOUTS[..=few(2)].to_vec(),
            compress: COMPRESS[..=few(3)].to_vec(),
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
        rows_are_of_their_cells(&summary, seed);
        files_have_the_figures_of_the_cells_that_their_rows_name(&summary, seed);
        // Each cell has a line of its own, with its exact values.
        let lines = csv::render(&summary);
        let payloads: Vec<&AxisValue> =
            summary.cells.iter().filter_map(|cell| cell.axes.get("payload")).collect();
        assert_eq!(lines.lines().count(), payloads.len() + 1);
        let text = markdown::render(&summary);
        assert!(!text.contains("\n| 2 kB |") || scenario.payloads.len() == 1, "{text}");
    }
}
