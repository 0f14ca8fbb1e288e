//! Golden files: every format of fixed runs. `KURABE_BLESS=1 cargo test -p kurabe-report` accepts changes.

use crate::common::others::{CACHE_ASIDE, FOOTPRINT, WEBAPP, cache_aside, footprint, webapp};
use crate::common::{INFO, Scenario, bottlenecks, open_loop, troubled};
use kurabe_core::question::{Question, TARGETS};
use kurabe_core::run::Run;
use kurabe_report::{Summary, analyse, compare, csv, hgrm, html, json, markdown, terminal};
use std::fs;
use std::path::Path;

/// The page without its style sheet and the code of its script, which are the same in all pages, and with a line for each
/// tag.
fn without_style(page: &str) -> String {
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    let (rest, code) = rest.split_once(";(function").unwrap();
    let (_, end) = code.split_once("</script>").unwrap();
    let (before, hash) = head.split_once("'sha256-").unwrap();
    let (_, after) = hash.split_once('\'').unwrap();
    let head = format!("{before}'sha256-…'{after}");
    format!("{head}<style></style>{rest};</script>{end}\n").replace("><", ">\n<")
}

/// Compares a text with the golden file of this name.
pub(crate) fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("KURABE_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        return;
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    if wanted != text {
        let line = wanted
            .lines()
            .zip(text.lines())
            .position(|(a, b)| a != b)
            .unwrap_or_else(|| wanted.lines().count().min(text.lines().count()));
        panic!(
            "{name} changed at line {}:\n  was: {}\n  is:  {}\nlook at it, then accept it with KURABE_BLESS=1",
            line + 1,
            wanted.lines().nth(line).unwrap_or("(end)"),
            text.lines().nth(line).unwrap_or("(end)")
        );
    }
}

fn summary(run: &Run) -> Summary {
    analyse(run, Some(&INFO))
}

fn runs() -> Vec<(&'static str, Run)> {
    let mut all = vec![
        ("one-target", Scenario::default().run()),
        (
            "two-targets",
            Scenario { targets: vec!["sqlite", "postgres"], compress: vec!["none"], ..Scenario::default() }
                .run(),
        ),
        ("open-loop", open_loop()),
        ("troubled", troubled()),
        ("bottlenecks", bottlenecks()),
        (
            "one-size",
            Scenario {
                payloads: vec![1_000],
                targets: vec!["sqlite", "postgres", "memcached"],
                ..Scenario::default()
            }
            .run(),
        ),
        ("one-round", Scenario { rounds: 1, ..Scenario::default() }.run()),
    ];
    for (_, run) in all.iter_mut().filter(|(_, run)| run.header.targets.len() > 1) {
        let (compare, within) = (vec![TARGETS.to_owned()], vec!["payload".to_owned()]);
        run.header.spec.question = Some(Question { compare, within });
    }
    all
}

#[test]
fn comparison_of_two_runs_matches_golden_files() {
    let first = Scenario::default().run();
    let mut second = Scenario { noise: 0.02, ..Scenario::default() }.run();
    second.header.run = "2026-03-02-0900-session".into();
    second.header.targets[0].facts.version = "3.51.0".into();
    second.header.spec.rounds = 9;
    let compared = compare::compare(&summary(&first), &summary(&second), &[]);
    golden("compared.txt", &compare::terminal(&compared, &terminal::Options::default()));
    golden("compared.md", &compare::pull_request(&compared));
}

#[test]
fn named_metrics_match_golden_files() {
    for (info, run) in [(&WEBAPP, webapp()), (&FOOTPRINT, footprint()), (&CACHE_ASIDE, cache_aside())] {
        let summary = analyse(&run, Some(info));
        let wide = terminal::Options { width: 110, details: true, ..terminal::Options::default() };
        golden(&format!("{}.110.txt", info.name), &terminal::render(&summary, &wide));
    }
}

#[test]
fn renderings_match_golden_files() {
    for (name, run) in runs() {
        let summary = summary(&run);
        let wide = terminal::Options { width: 110, details: true, ..terminal::Options::default() };
        golden(&format!("{name}.110.txt"), &terminal::render(&summary, &wide));
        // Each other format is the same for all runs: the runs with most of its features.
        match name {
            "bottlenecks" => {
                let narrow = terminal::Options { width: 80, color: true, details: true };
                golden("bottlenecks.80.ansi", &terminal::render(&summary, &narrow));
                let answer = terminal::Options { width: 80, ..terminal::Options::default() };
                golden("bottlenecks.80.txt", &terminal::render(&summary, &answer));
            }
            "troubled" => {
                golden("troubled.md", &markdown::render(&summary));
                golden("troubled.hgrm", &hgrm::render(&summary));
                golden("troubled.csv", &csv::render(&summary));
            }
            "open-loop" => golden("open-loop.json", &json::render(&summary)),
            // Lines with published ones, and dots.
            "two-targets" | "one-size" => {
                let published = html::Options { published: name == "two-targets" };
                golden(&format!("{name}.html"), &without_style(&html::render(&summary, &published)));
            }
            _ => {}
        }
    }
}
