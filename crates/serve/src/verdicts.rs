//! What is said of runs: their analyses and verdicts.

use crate::follow::lock;
use kurabe_core::run::Run;
use kurabe_experiments::registry;
use kurabe_record::{Entry, RunState};
use kurabe_report::{Language, Summary};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The analysis of a run.
pub(crate) fn analyse(run: &Run) -> Summary {
    kurabe_report::analyse(run, registry::of(&run.header.spec).ok().map(|experiment| experiment.info))
}

/// The verdict of each run, in each language. A complete run has the same one for ever.
#[derive(Default)]
pub(crate) struct Verdicts(Mutex<HashMap<(String, &'static str), String>>);

impl Verdicts {
    /// How long a list waits for verdicts that it does not have yet. The next look at the list has more.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// The verdict of each of these; empty where there is none yet.
    pub(crate) fn of<'a>(&self, entries: impl Iterator<Item = &'a Entry>, language: Language) -> Vec<String> {
        let began = Instant::now();
        let mut known = lock(&self.0);
        let first = |entry: &Entry| {
            let Entry::Run(run) = entry else { return String::new() };
            if run.state != RunState::Complete {
                return String::new();
            }
            let name = (entry.path().name.clone(), language.name());
            if !known.contains_key(&name) && began.elapsed() < Self::PATIENCE {
                let read = kurabe_record::read(entry.path());
                let verdict = read
                    .ok()
                    .and_then(|read| analyse(&read.run).in_language(language).verdict())
                    .unwrap_or_default();
                known.insert(name.clone(), verdict);
            }
            known.get(&name).cloned().unwrap_or_default()
        };
        entries.map(first).collect()
    }
}
