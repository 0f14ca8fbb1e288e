//! Views of a run: complete, without some targets, or anonymous.

use crate::anonymise::Anonymiser;
use crate::finding::{Note, Section, Statement};
use crate::leave_out::{means, without};
use crate::summary::{Summary, analyse};
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::run::{Run, TargetRecord};
use kurabe_core::sort;
use kurabe_core::{Error, Result, units};
use std::borrow::Cow;

/// A view of a run. The default shows everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Targets to leave out, by name, or all targets of an engine by its name; case-insensitive.
    pub leave_out: Vec<String>,
    /// Whether the engines are called "database A", "database B" and everything that reveals them is removed.
    pub anonymise: bool,
}

impl View {
    /// Whether the view is complete.
    pub fn is_whole(&self) -> bool {
        *self == Self::default()
    }

    /// Analyses the run in this view. Results, verdicts and corrections are those of a run without the targets that
    /// are left out.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) if a target to leave out is not in the run, or no target would
    /// remain.
    pub fn analyse(&self, run: &Run, info: Option<&ExperimentInfo>) -> Result<Summary> {
        Ok(self.analyse_all(&[(run, info)])?.remove(0))
    }

    /// The run in this view, for formats of what was recorded.
    ///
    /// # Errors
    /// As for [`View::analyse`].
    pub fn run<'a>(&self, run: &'a Run) -> Result<Cow<'a, Run>> {
        Ok(self.shown(&[run])?.remove(0).0)
    }

    /// The same for runs that are compared, each with its experiment: a database has the same name in all.
    ///
    /// # Errors
    /// As for [`View::analyse`]; a target may be in any of the runs.
    pub fn analyse_all(&self, runs: &[(&Run, Option<&ExperimentInfo>)]) -> Result<Vec<Summary>> {
        let all: Vec<&Run> = runs.iter().map(|(run, _)| *run).collect();
        let shown = self.shown(&all)?;
        let each = runs.iter().zip(&shown);
        Ok(each.map(|((whole, info), (run, gone))| summary(whole, run, *gone, *info)).collect())
    }

    /// The runs in this view, each with the number of its targets that are left out.
    fn shown<'a>(&self, runs: &[&'a Run]) -> Result<Vec<(Cow<'a, Run>, usize)>> {
        self.known(runs)?;
        let mut shown = runs.iter().map(|run| self.fewer(run)).collect::<Result<Vec<_>>>()?;
        if self.anonymise {
            let anonymiser = Anonymiser::of(shown.iter().map(|(run, _)| &**run));
            for (run, _) in &mut shown {
                *run = Cow::Owned(anonymiser.run(run));
            }
        }
        Ok(shown)
    }

    /// The shown targets whose licence restricts publishing.
    pub fn restricted<'a>(&self, run: &'a Run) -> Vec<&'a TargetRecord> {
        let all = &run.header.targets;
        let out = |target| self.leave_out.iter().any(|word| means(word, target, all));
        all.iter().filter(|target| target.publishing.is_some() && !out(target)).collect()
    }

    /// Rejects words that refer to no target of any run.
    fn known(&self, runs: &[&Run]) -> Result<()> {
        for word in &self.leave_out {
            let targets = || runs.iter().map(|run| &run.header.targets);
            if targets().any(|all| all.iter().any(|target| means(word, target, all))) {
                continue;
            }
            let names = sort::distinct(targets().flatten().map(|target| target.name.as_str()));
            let list = format!("there are: {}", names.join(", "));
            let hint = units::nearest(&word.to_lowercase(), &names)
                .map_or_else(|| list.clone(), |near| format!("did you mean '{near}'? ({list})"));
            return Err(Error::usage(format!("--leave-out: '{word}' is not a target of this run")).hint(hint));
        }
        Ok(())
    }

    /// The run without the targets that are left out, and the number of these.
    fn fewer<'a>(&self, run: &'a Run) -> Result<(Cow<'a, Run>, usize)> {
        let all = &run.header.targets;
        let out = |target| self.leave_out.iter().any(|word| means(word, target, all));
        let keep: Vec<bool> = all.iter().map(|target| !out(target)).collect();
        let gone = keep.iter().filter(|kept| !**kept).count();
        if gone == 0 {
            return Ok((Cow::Borrowed(run), 0));
        }
        if gone == all.len() {
            return Err(Error::usage(format!("--leave-out: {} would have no targets left", run.header.run)));
        }
        Ok((Cow::Owned(without(run, &keep)), gone))
    }
}

/// The summary, with a note if the view is partial.
fn summary(whole: &Run, shown: &Run, gone: usize, info: Option<&ExperimentInfo>) -> Summary {
    let mut summary = analyse(shown, info);
    if gone > 0 {
        let has_floor = |run: &Run| run.header.cells.iter().any(|cell| cell.aa_control);
        let noise_floor_lost = has_floor(whole) && !has_floor(shown);
        let left_out = Note::LeftOut { targets: gone as u32, noise_floor_lost };
        // First among the warnings.
        let warning = |statement: &Statement| {
            matches!(statement.section, Section::Warning | Section::NotReported | Section::Basis)
        };
        let at = summary.findings.iter().position(warning).unwrap_or(summary.findings.len());
        summary.findings.insert(at, Statement { section: Section::Warning, finding: left_out.into() });
    }
    summary
}
