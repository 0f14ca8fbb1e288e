//! Claims: statements about databases, each with the suite that tests it. Some ship with the program; users write theirs.

mod read;
mod targets;

pub(crate) use targets::{Resolved, on_this_machine, resolve};

use crate::exit::OfRunFile;
use crate::run_options::WorkloadOptions;
use crate::suite::Request;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::run::Run;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_record::{Entry, RunState, Store};
use kurabe_report::analyse;
use kurabe_report::claim::{About, Held, Judgement, Test};
use kurabe_stats::Decision;
use std::path::Path;

/// The files that ship, by name.
static FILES: &[(&str, &str)] = &[
    ("session", include_str!("../../claims/session.toml")),
    ("web", include_str!("../../claims/web.toml")),
    ("connect", include_str!("../../claims/connect.toml")),
    ("webapp", include_str!("../../claims/webapp.toml")),
    ("bulk", include_str!("../../claims/bulk.toml")),
    ("link", include_str!("../../claims/link.toml")),
    ("net", include_str!("../../claims/net.toml")),
    ("engine", include_str!("../../claims/engine.toml")),
];

/// The name of the suite that runs of claims have which ship.
const SHIPPED: &str = "claims";

/// The claims that ship.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) if one of the files is wrong: a test reads all of them.
pub(crate) fn shipped(workload: &WorkloadOptions) -> Result<Vec<Definition>> {
    let mut all = Vec::new();
    for (name, text) in FILES {
        let found = read::claims(text, SHIPPED, Path::new("."), workload)
            .map_err(|error| Error::new(ErrorKind::Internal, error.context(name).to_string()))?;
        all.extend(found);
    }
    Ok(all)
}

/// The claims of a file.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) with file and line if it cannot be read, or a claim in it is wrong.
pub(crate) fn of_file(path: &Path, workload: &WorkloadOptions) -> Result<Vec<Definition>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::usage(format!("the claims file {} cannot be read: {error}", path.display()))
    })?;
    let stem =
        path.file_stem().map_or_else(|| SHIPPED.to_owned(), |stem| stem.to_string_lossy().into_owned());
    let folder = path.parent().unwrap_or(Path::new("."));
    read::claims(&text, &stem, folder, workload).map_err(|error| error.context(path.display()))
}

/// A claim of a file.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) about: About,
    /// The name of the file without its extension: the suite of its runs.
    pub(crate) suite: String,
    /// Whether the file says that it held.
    pub(crate) held: bool,
    /// What tests it, or why nothing does.
    pub(crate) work: std::result::Result<Work, String>,
}

/// What tests a claim.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) request: Request,
    /// Its targets, to which the sides of tests refer by position.
    pub(crate) targets: Vec<String>,
    /// Servers of the claim's time, in the same order; empty if it names none.
    pub(crate) then: Vec<String>,
    pub(crate) tests: Vec<Test>,
}

impl Definition {
    /// The label of its runs; `then`: of those on servers of its time.
    pub(crate) fn label(&self, then: bool) -> String {
        format!("claim/{}{}", self.about.id, if then { "/then" } else { "" })
    }
}

/// The complete runs of a claim, the newest first.
pub(crate) struct Earlier {
    paths: Vec<kurabe_record::RunPath>,
}

impl Earlier {
    pub(crate) fn find(store: &Store, suite: &str, label: &str, experiment: &str) -> anyhow::Result<Self> {
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
