//! Throughput by the number of the server's processors: efficiency and the Universal Scalability Law.

use crate::common::{INFO, Pattern, Scenario, by_cpus, observed};
use kurabe_core::axis::AxisValue;
use kurabe_core::cpus::CPUS;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::metric::{COHERENCY, CONTENTION, EFFICIENCY};
use kurabe_core::run::{Outcome, Run};
use kurabe_report::finding::Section;
use kurabe_report::summary::{CellResult, Summary};
use kurabe_report::{analyse, html};
use kurabe_stats::Usl;

const LAW: Usl = Usl { rate: 10_000.0, contention: 0.05, coherency: 0.002 };

static INFO_OF_CPUS: ExperimentInfo =
    ExperimentInfo { metrics: &[EFFICIENCY.primary(), CONTENTION.primary(), COHERENCY.primary()], ..INFO };

/// Reads on these numbers of processors, by the law.
fn run(cpus: &[u64]) -> Run {
    let run = Scenario {
        payloads: cpus.to_vec(),
        layouts: vec!["blob"],
        compress: vec!["none"],
        operations: vec!["read"],
        noise: 0.002,
        rate: |at| LAW.throughput(at.payload as f64),
        ..Scenario::default()
    }
    .run();
    by_cpus(run)
}

fn cell(summary: &Summary, cpus: u64) -> &CellResult {
    let is =
        |cell: &&CellResult| cell.axes.get(CPUS.name) == Some(&AxisValue::Number(cpus)) && !cell.aa_control;
    summary.cells.iter().find(is).unwrap()
}

fn value(summary: &Summary, cpus: u64, name: &str) -> Option<f64> {
    cell(summary, cpus).metric(name).map(|metric| metric.figure.value)
}

#[test]
fn efficiency_and_law_follow_from_rates() {
    let summary = analyse(&run(&[1, 2, 4, 8]), Some(&INFO_OF_CPUS));
    for n in [1, 2, 4, 8] {
        let expected = LAW.throughput(n as f64) / n as f64 / LAW.rate;
        let found = value(&summary, n, "efficiency").unwrap();
        assert!((found / expected - 1.0).abs() < 0.02, "{n}: {found} {expected}");
    }
    let contention = cell(&summary, 4).metric("contention").unwrap().figure;
    assert!((contention.value - LAW.contention).abs() < 0.02, "{contention:?}");
    assert!(contention.low.unwrap() < contention.value && contention.value < contention.high.unwrap());
    assert!((value(&summary, 8, "coherency").unwrap() - LAW.coherency).abs() < 0.002);
    let told = summary.sentences(Section::Verdict).join("\n");
    assert!(!told.contains("stopped scaling"), "{told}");
    assert!(told.contains("Efficiency of reads") && told.contains("Contention of reads"), "{told}");
    let page = html::render(&summary, &html::Options::default());
    assert!(page.contains("<h2>Efficiency by cpus</h2>"));
}

#[test]
fn law_needs_four_numbers_of_processors() {
    let summary = analyse(&run(&[1, 2, 4]), Some(&INFO_OF_CPUS));
    assert!(value(&summary, 4, "efficiency").is_some());
    assert_eq!(value(&summary, 4, "contention"), None);
}

#[test]
fn cells_in_which_client_stopped_scaling_are_left_out() {
    let mut run = run(&[1, 2, 4, 8]);
    let last =
        run.header.cells.iter().position(|cell| cell.axes.get(CPUS.name) == Some(&AxisValue::Number(8)));
    for trial in run.trials.iter_mut().filter(|trial| Some(trial.cell) == last) {
        if let Outcome::Measured(measured) = &mut trial.outcome {
            measured.observed = Some(Box::new(observed(Pattern::ClientFull, measured)));
        }
    }
    let summary = analyse(&run, Some(&INFO_OF_CPUS));
    assert!(cell(&summary, 8).is_lower_bound());
    assert_eq!(value(&summary, 8, "efficiency"), None);
    assert_eq!(value(&summary, 4, "contention"), None, "three numbers remain");
    let bottlenecks = summary.sentences(Section::Bottleneck).join("\n");
    assert!(bottlenecks.contains("client") && bottlenecks.contains("8 cpus"), "{bottlenecks}");
    let told = summary.sentences(Section::Verdict).join("\n");
    let part = "from 8 processors of the server on, the client stopped scaling and not the server";
    assert!(told.contains(part) && told.contains("beyond 4 processors is unknown"), "{told}");
}
