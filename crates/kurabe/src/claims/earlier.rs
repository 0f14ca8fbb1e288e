//! Earlier runs of a claim.

use super::Resolved;
use crate::exit::OfRunFile;
use anyhow::Result;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::run::Run;
use kurabe_record::{Entry, RunState, Store};
use kurabe_report::analyse;
use kurabe_report::claim::{Held, Judgement};
use kurabe_stats::Decision;

/// The complete runs of a claim, the newest first.
pub(crate) struct Earlier {
    paths: Vec<kurabe_record::RunPath>,
}

impl Earlier {
    pub(crate) fn find(store: &Store, suite: &str, label: &str, experiment: &str) -> Result<Self> {
        let is_one = |entry: Entry| match entry {
            Entry::Run(run)
                if run.state == RunState::Complete
                    && run.header.spec.experiment == experiment
                    && run.header.origin.suite.as_deref() == Some(suite)
                    && run.header.origin.labels.iter().any(|known| known == label) =>
            {
                Some(run.path)
            }
            _ => None,
        };
        let paths = store.list().map_err(OfRunFile)?.into_iter().filter_map(is_one).collect();
        Ok(Self { paths })
    }

    /// A run by its position; `None` if there is none, or it cannot be read.
    pub(crate) fn run(&self, at: usize) -> Option<Run> {
        kurabe_record::read(self.paths.get(at)?).ok().map(|recorded| recorded.run)
    }

    /// The newest run on these targets, after the one at `skip`, that decided the claim, if it held there. It is judged by
    /// the tests of today.
    pub(crate) fn held(
        &self,
        skip: Option<usize>,
        made: &[String],
        info: &'static ExperimentInfo,
        resolved: &Resolved,
    ) -> Option<Held> {
        let first = skip.map_or(0, |at| at + 1);
        let runs = (first..self.paths.len()).filter_map(|at| self.run(at));
        let answers = runs.filter(|run| run.header.spec.targets == made).map(|run| {
            let answer = Judgement::of(&run, &analyse(&run, Some(info)), &resolved.tests, Vec::new()).answer;
            (answer, run.header.run)
        });
        let mut decided = answers.filter(|(answer, _)| *answer == Decision::Within || answer.is_outside());
        decided
            .next()
            .filter(|(answer, _)| *answer == Decision::Within)
            .map(|(_, run)| Held { run: Some(run) })
    }
}
