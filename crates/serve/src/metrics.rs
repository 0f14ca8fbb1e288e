//! `/metrics`: running runs and the newest ended ones, in the text format of `OpenMetrics`, which Prometheus reads.

use crate::answer::{Response, of_type};
use crate::call::Call;
use kurabe_core::Result;
use kurabe_core::run::Run;
use kurabe_record::{Entry, RunState};
use kurabe_report::openmetrics;

/// How many ended runs a page has: each is read at each request.
const ENDED: usize = 20;

pub(crate) fn page(Call { shared, .. }: &Call) -> Result<Response> {
    let mut runs: Vec<(Run, bool)> = Vec::new();
    let mut ended = 0;
    // The newest come first.
    for entry in shared.store.list()? {
        let Entry::Run(summary) = entry else { continue };
        let running = summary.state == RunState::Running;
        if !running && ended == ENDED {
            continue;
        }
        if let Ok(recorded) = kurabe_record::read(&summary.path) {
            ended += usize::from(!running);
            runs.push((recorded.run, running));
        }
    }
    let runs: Vec<(&Run, bool)> = runs.iter().map(|(run, running)| (run, *running)).collect();
    Ok(of_type(openmetrics::CONTENT_TYPE, openmetrics::render(&runs)))
}
