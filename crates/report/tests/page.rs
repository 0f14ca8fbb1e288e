//! Properties of the HTML page for all names from servers and users.

use crate::common::{INFO, Pattern, Scenario, measurements, observed, open_loop, troubled};
use kurabe_core::observation::Sample;
use kurabe_core::run::{Run, TailCourse};
use kurabe_core::stats_probe::{EngineWaits, WaitPoint, WaitState};
use kurabe_report::finding::Section;
use kurabe_report::{analyse, html};
use serde_json::Value;

fn page(run: &Run) -> String {
    html::render(&analyse(run, Some(&INFO)), &html::Options { published: true })
}

#[test]
fn names_never_become_markup() {
    let mut run = troubled();
    let evil = "</title></script><script>alert('x')</script>\"'><img src=x onerror=alert(1)>";
    run.header.run = evil.into();
    run.header.kurabe = evil.into();
    run.header.machine.cpu = evil.into();
    run.header.machine.system = evil.into();
    for target in &mut run.header.targets {
        target.name = evil.into();
        target.url = evil.into();
        target.facts.engine = evil.into();
        target.facts.version = evil.into();
        target.facts.client = evil.into();
        target.facts.notes = vec![evil.into()];
        target.facts.settings.push(kurabe_core::facts::Setting::new(evil, evil));
        target.facts.durability_settings.push(kurabe_core::facts::Setting::new(evil, evil));
    }
    let page = page(&run);
    assert_eq!(page.matches("<script").count(), 1, "the page's own script only");
    assert_eq!(page.matches("</script").count(), 1);
    assert!(!page.contains("<img"));
    assert!(!page.contains(evil) && page.contains("&lt;script&gt;alert('x')"));
}

#[test]
fn the_page_needs_no_network() {
    for run in [Scenario::default().run(), troubled()] {
        let page = page(&run);
        for part in ["http://", "https://", "src=\"", "@import", "url("] {
            assert!(!page.contains(part), "{part}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}

#[test]
fn every_tag_is_closed() {
    for run in [
        Scenario::default().run(),
        troubled(),
        Scenario { payloads: vec![1_000], ..Scenario::default() }.run(),
    ] {
        let page = page(&run);
        for tag in [
            "section", "ul", "li", "p", "table", "tr", "td", "th", "dl", "figure", "svg", "g", "text", "div",
            "h2", "h3",
        ] {
            let opened =
                page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}

#[test]
fn published_figures_stand_beside_their_faults() {
    let page = page(&Scenario::default().run());
    assert!(page.contains("class=\"reference\"") && page.contains("mysql longblob"));
    for part in
        ["about 2007", "every read size read the same rows", "at 1\u{a0}kB it stored nothing", "one run"]
    {
        assert!(page.contains(part), "{part}");
    }
    let without = html::render(&analyse(&Scenario::default().run(), Some(&INFO)), &html::Options::default());
    assert!(!without.contains("longblob"));
}

/// The data of the page's script.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script>\"use strict\";const DATA=").unwrap();
    let (text, _) = rest.split_once(";(function").unwrap();
    serde_json::from_str(text).unwrap()
}

/// A run with four sizes, two layouts, two ways of compression, with observations and windows.
fn usual() -> Run {
    let scenario = Scenario {
        targets: vec!["sqlite"],
        payloads: vec![1_000, 10_000, 100_000, 1_000_000],
        layouts: vec!["blob", "rows"],
        compress: vec!["none", "zstd"],
        noise: 0.02,
        rounds: 6,
        ..Scenario::default()
    };
    observed_over_time(scenario.run())
}

/// All cells of the default experiment, with the most rounds that a run has by default.
fn whole() -> Run {
    let scenario = Scenario {
        targets: vec!["sqlite"],
        payloads: vec![1_000, 4_000, 10_000, 100_000, 1_000_000],
        layouts: vec!["blob", "rows"],
        compress: vec!["none", "gzip", "zstd", "lz4"],
        noise: 0.02,
        rounds: 16,
        ..Scenario::default()
    };
    observed_over_time(scenario.run())
}

/// The run with everything that a trial may have over its time.
fn observed_over_time(mut run: Run) -> Run {
    for (_, measured) in measurements(&mut run) {
        measured.windows = (0..20).map(|n| 500 + n % 3).collect();
        let mut seen = observed(Pattern::RoundTrip, measured);
        let sample = |n: u64| Sample {
            at_ms: n * 25,
            client_cpu: 0.612_345,
            server_cpu: Some(0.323_456),
            host_cpu: 1.123_456,
            disk_waits: n % 2,
            disk_busy: Some(0.123_456),
            network: Some(1_234_567),
        };
        seen.samples = (1..=20).map(sample).collect();
        let point = |at_ms, locks, background: &[&str]| WaitPoint {
            at_ms,
            samples: 1,
            states: [(WaitState::Lock, locks)].into(),
            background: background.iter().map(|work| (*work).to_owned()).collect(),
        };
        let course = vec![point(105, 2, &[]), point(210, 1, &["checkpointer"])];
        seen.waits = Some(EngineWaits { course, ..EngineWaits::default() });
        measured.tail =
            Some(TailCourse { part_ns: 1 << 24, p99_ns: (0..20).map(|n| Some(123_456 + n)).collect() });
        measured.observed = Some(Box::new(seen));
    }
    run
}

#[test]
fn page_of_a_usual_run_is_small() {
    let page = page(&usual());
    assert!(page.len() < 200_000, "{} bytes", page.len());
}

/// The budget of the page holds for the default experiment without a limit of time too.
#[test]
fn page_of_all_cells_of_the_default_experiment_is_within_its_budget() {
    let page = page(&whole());
    assert!(page.len() <= 300_000, "{} bytes", page.len());
    let cells = data(&page)["cells"].as_object().unwrap().len();
    assert_eq!(cells, 2 * 5 * 2 * 4, "each cell can be shown on demand");
}

#[test]
fn every_result_can_be_drawn_on_demand() {
    let summary = analyse(&usual(), Some(&INFO));
    let page = html::render(&summary, &html::Options::default());
    let data = data(&page);
    let shown = summary.cells.iter().filter(|cell| !cell.aa_control).count();
    let cells = data["cells"].as_object().unwrap();
    assert_eq!(cells.len(), shown);
    for (id, cell) in cells {
        let result = &summary.cells[id.parse::<usize>().unwrap()];
        assert!(cell["n"].as_str().unwrap().starts_with(&result.operation), "{cell}");
        // The number of the first one precedes them.
        assert_eq!(cell["r"].as_array().unwrap().len() as u32, result.rounds + 1);
        let bars = cell["h"].as_array().unwrap();
        let counted: u64 = bars[2..].iter().map(|bar| bar.as_u64().unwrap()).sum();
        assert_eq!(Some(counted), cell["o"].as_u64());
        assert_eq!(cell["w"][1].as_array().unwrap().len(), 20);
        assert_eq!(cell["t"][1].as_array().unwrap().len(), 20);
        for series in cell["s"].as_array().unwrap() {
            assert_eq!(series.as_array().unwrap().len(), 20);
        }
        assert_eq!(cell["a"][1], serde_json::json!([["lock", [2, 1]]]));
        assert_eq!(cell["e"], serde_json::json!([["checkpointer", 105, 210]]));
        // Each dimension of the filter has the cell's value.
        for (level, dimension) in cell["d"].as_array().unwrap().iter().zip(data["dims"].as_array().unwrap()) {
            let level = usize::try_from(level.as_i64().unwrap()).unwrap();
            assert!(dimension[1][level].is_string(), "{cell}");
        }
        // The row of the table, and its points.
        assert!(page.contains(&format!("<tr data-c=\"{id}\">")), "{id}");
        assert!(page.contains(&format!("<g class=\"pt\" data-c=\"{id}\"")), "{id}");
    }
}

#[test]
fn facts_of_a_cell_are_written_once_in_the_charts_of_rates_and_times() {
    let summary = analyse(&usual(), Some(&INFO));
    let page = html::render(&summary, &html::Options::default());
    let shown = summary.cells.iter().filter(|cell| !cell.aa_control).count();
    assert_eq!(page.matches("<g class=\"pt\"").count(), 2 * shown);
    let (charts, _) = page.split_once("<h2>Results</h2>").unwrap();
    assert_eq!(charts.matches("ops/s (").count(), shown);
}

#[test]
fn ranking_comes_first_with_figures_and_a_plot_of_every_ratio_without_a_script() {
    for run in [usual(), Scenario::default().run(), troubled()] {
        let summary = analyse(&run, Some(&INFO));
        let page = html::render(&summary, &html::Options::default());
        let (without, _) = page.split_once("<script").unwrap();
        let from = without.find("<table class=\"ranking plotted\"").unwrap();
        assert!(from < without.find("class=\"charts\"").unwrap(), "the ranking comes first");
        let ranking = &without[from..without.find("class=\"charts\"").unwrap()];
        let head = &ranking[..ranking.find("</thead>").unwrap()];
        for part in ["ops/s", "p50", "p95", "p99", "log scale", "ratio (interval)"] {
            assert!(head.contains(part), "{part} is not in {head}");
        }
        // Each result that is compared with the first of its group, as in the terminal; and the first itself.
        let compared = ranking.matches(" data-b=\"").count();
        let groups = ranking.matches("scope=\"rowgroup\"").count();
        assert!(compared > 1 && groups > 0);
        assert!(ranking.matches("class=\"dot\"").count() <= compared + groups);
        assert_eq!(ranking.matches("× (").count(), ranking.matches("class=\"bar\" d=\"M").count());
        assert!(!without.contains(">0.00") && !without.contains(" 0.00 "), "a ratio is never shown as zero");
        for statement in summary.findings.iter().filter(|one| one.section == Section::Verdict) {
            let sentence = summary.sentence(statement);
            let words: Vec<&str> = sentence.split(' ').take(4).collect();
            assert!(without.contains(&words.join(" ")), "{sentence}");
        }
    }
}

#[test]
fn limit_of_response_times_passes_or_fails_on_top() {
    let page_of = |slo_ns: Option<u64>| {
        let mut run = Scenario::default().run();
        run.header.spec.slo_ns = slo_ns;
        html::render(&analyse(&run, Some(&INFO)), &html::Options::default())
    };
    let (lax, strict) = (page_of(Some(3_600_000_000_000)), page_of(Some(1)));
    assert!(lax.contains(">Pass</b>: p99 of at most 1 h in ") && !lax.contains("✗ Fail"), "{lax}");
    assert!(strict.contains(">Fail</b>: p99 of at most 1 ns in 0 of ") && !strict.contains("✓ Pass"));
    assert!(strict.find("✗ Fail") < strict.find("<table class=\"ranking"));
    assert!(!page_of(None).contains("class=\"thresholds\""));
    // A rate that was not served fails, however short its times are.
    let mut run = open_loop();
    run.header.spec.slo_ns = Some(3_600_000_000_000);
    let page = html::render(&analyse(&run, Some(&INFO)), &html::Options::default());
    assert!(page.contains("the load was not served") && page.contains(">Fail</b>"), "overload fails");
}

#[test]
fn missing_results_precede_the_verdict_and_other_caveats_are_folded() {
    let page = page(&troubled());
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("no {part}"));
    assert!(at("<p class=\"note\">") < at("<table class=\"ranking"));
    assert!(at("<details class=\"sentences\">") > at("<table class=\"ranking"));
}

#[test]
fn overload_and_bend_are_marked_over_the_load() {
    let page = html::render(&analyse(&open_loop(), Some(&INFO)), &html::Options::default());
    assert!(page.contains("class=\"knee over\""), "an overloaded rate of the scenario is marked");
}
