//! What is said of runs: their analyses, and the first sentences of their verdicts.

use crate::follow::lock;
use kurabe_core::run::Run;
use kurabe_experiments::registry;
use kurabe_record::{Entry, RunState};
use kurabe_report::finding::Section;
use kurabe_report::{Language, Summary};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The analysis of a run.
pub(crate) fn analyse(run: &Run) -> Summary {
    kurabe_report::analyse(run, registry::of(&run.header.spec).ok().map(|experiment| experiment.info))
}

/// The first sentence of each run's verdict, in each language. A complete run has the same one for ever.
#[derive(Default)]
pub(crate) struct Verdicts(Mutex<HashMap<(String, &'static str), String>>);

impl Verdicts {
    /// How long a list waits for verdicts that it does not have yet. The next look at the list has more.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// The first sentence of each of these; empty where there is none yet.
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
                let sentence = read.map(|read| first_sentence(&read.run, language)).unwrap_or_default();
                known.insert(name.clone(), sentence);
            }
            known.get(&name).cloned().unwrap_or_default()
        };
        entries.map(first).collect()
    }
}

fn first_sentence(run: &Run, language: Language) -> String {
    analyse(run)
        .in_language(language)
        .sentences(Section::Verdict)
        .first()
        .map(|sentence| (*sentence).to_owned())
        .unwrap_or_default()
}
