//! A gated comparison as `JUnit` XML, which CI servers show beside tests: a case for each primary result.

use super::render::change;
use super::{Compared, Judgement, Row};
use kurabe_core::{Error, ErrorKind, Result};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

/// The comparison as `JUnit` XML. Results that are slower are failures. Results that are inconclusive or not judged are
/// skipped, because `JUnit` has no third outcome.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) if it cannot be serialised.
pub fn junit(compared: &Compared, experiment: &str) -> Result<String> {
    let mut suite = TestSuite::new(format!("kurabe {experiment}"));
    for row in &compared.rows {
        let Some(judgement) = row.gate else { continue };
        let mut case = TestCase::new(name(row), status(row, judgement, compared));
        case.set_classname(format!("kurabe.{experiment}.{}", row.target));
        suite.add_test_case(case);
    }
    let mut report = Report::new("kurabe");
    report.add_test_suite(suite);
    report
        .to_string()
        .map_err(|error| Error::new(ErrorKind::Internal, format!("JUnit XML cannot be written: {error}")))
}

/// `read, payload 10 kB, layout blob: throughput on sqlite`.
fn name(row: &Row) -> String {
    let axes = row.shown.iter().map(|(axis, value)| format!(", {axis} {value}"));
    format!("{}{}: {} on {}", row.operation, axes.collect::<String>(), row.metric, row.target)
}

fn status(row: &Row, judgement: Judgement, compared: &Compared) -> TestCaseStatus {
    let margin = compared.gate.as_ref().map_or(0.0, |gate| gate.margin * 100.0);
    let interval = match (row.ratio, row.low, row.high) {
        (Some(ratio), Some(low), Some(high)) => {
            format!("second ÷ first is {ratio:.3} ({low:.3} to {high:.3})")
        }
        (Some(ratio), ..) => format!("second ÷ first is {ratio:.3}, without an interval"),
        _ => "the runs cannot be compared here".to_owned(),
    };
    let mut status = match judgement {
        Judgement::Passed => return TestCaseStatus::success(),
        Judgement::Slower => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type("slower").set_message(format!("{}, beyond {margin} %", change(row)));
            status
        }
        Judgement::Inconclusive | Judgement::NotJudged => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("{}: {interval}; margin {margin} %", judgement.words()));
            return status;
        }
    };
    status.set_description(interval);
    status
}
