//! Views of a run: complete, without some targets, or anonymous.

use crate::finding::{Note, Section, Statement};
use crate::group::{distinct, grouped};
use crate::summary::{Summary, analyse};
use kurabe_core::error::ErrorKind;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::facts::ServerFacts;
use kurabe_core::origin::Origin;
use kurabe_core::run::{Outcome, Run, TargetRecord};
use kurabe_core::{Error, Result, sort, units};
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

/// Whether the user's word refers to this target: a name or URL refers to one target, an engine or scheme to all of
/// its targets.
pub(crate) fn means(word: &str, target: &TargetRecord, all: &[TargetRecord]) -> bool {
    let same = |text: &str| text.eq_ignore_ascii_case(word);
    let own = |target: &TargetRecord| same(&target.name) || target.url == word;
    if all.iter().any(own) {
        return own(target);
    }
    same(&target.facts.engine) || same(&target.scheme)
}

/// The run without the targets for which `keep` is false: their cells, trials and names are removed.
pub(crate) fn without(run: &Run, keep: &[bool]) -> Run {
    let kept = |target: usize| keep.get(target).copied().unwrap_or(true);
    let mut less = run.clone();
    let header = &mut less.header;
    header.command = command(run, keep);
    header.targets = chosen(&run.header.targets, keep);
    header.spec.targets = chosen(&run.header.spec.targets, keep);
    let gone = run.header.targets.iter().zip(keep).filter(|(_, kept)| !**kept);
    let gone: Vec<String> = gone.map(|(target, _)| format!("{}:", target.name)).collect();
    header.warnings.retain(|warning| !gone.iter().any(|name| warning.starts_with(name)));
    for resumption in &mut less.resumptions {
        resumption.targets = chosen(&resumption.targets, keep);
    }
    let moved = |old: usize| (0..old).filter(|position| kept(*position)).count();
    // The new position of each cell.
    let mut places = Vec::with_capacity(run.header.cells.len());
    header.cells.clear();
    for cell in &run.header.cells {
        places.push(kept(cell.target).then_some(header.cells.len()));
        if kept(cell.target) {
            let mut cell = cell.clone();
            cell.target = moved(cell.target);
            header.cells.push(cell);
        }
    }
    less.trials.retain_mut(|trial| match places.get(trial.cell) {
        Some(Some(place)) => {
            trial.cell = *place;
            true
        }
        _ => false,
    });
    less
}

fn chosen<T: Clone>(all: &[T], keep: &[bool]) -> Vec<T> {
    let kept = |at: usize| keep.get(at).copied().unwrap_or(true);
    all.iter().enumerate().filter(|(at, _)| kept(*at)).map(|(_, one)| one.clone()).collect()
}

/// The command line without the arguments of removed targets. If it still contains one of them, it is withheld.
fn command(run: &Run, keep: &[bool]) -> Vec<String> {
    let header = &run.header;
    let gone = |at: &usize| keep.get(*at) == Some(&false);
    let urls: Vec<&str> = (0..header.spec.targets.len())
        .filter(gone)
        .filter_map(|at| header.spec.targets.get(at).map(String::as_str))
        .collect();
    let mut words: Vec<String> = Vec::new();
    for word in &header.command {
        let bare = ["--target=", "-t"].iter().find_map(|option| word.strip_prefix(option)).unwrap_or(word);
        if !urls.contains(&word.as_str()) && !urls.contains(&bare) {
            words.push(word.clone());
        } else if words.last().is_some_and(|before| before == "-t" || before == "--target") {
            words.pop();
        }
    }
    let telling = header.targets.iter().enumerate().filter(|(at, _)| gone(at)).flat_map(|(_, target)| {
        let names = [target.scheme.as_str(), target.facts.engine.as_str(), target.name.as_str()];
        names.into_iter().filter(|name| !name.is_empty()).map(str::to_lowercase)
    });
    // The name of a remaining target may contain it, such as "mysql" of two.
    let telling: Vec<String> = telling.collect();
    let tells = |word: &String| telling.iter().any(|name| word.to_lowercase().contains(name.as_str()));
    let stays: Vec<&String> =
        header.spec.targets.iter().enumerate().filter(|(at, _)| !gone(at)).map(|(_, url)| url).collect();
    if words.iter().any(|word| tells(word) && !stays.contains(&word)) {
        return vec!["withheld".to_owned()];
    }
    words
}

/// Replaces removed text.
const WITHHELD: &str = "withheld";

/// The replacement names for the engines of one or more runs.
pub(crate) struct Anonymiser {
    /// The targets, identified across runs by their engine and their position among that engine's targets; with their
    /// versions in these runs, in order of appearance.
    known: Vec<((String, usize), Vec<String>)>,
}

impl Anonymiser {
    /// Assigns names to the targets of these runs, in order of appearance.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Self {
        let targets = runs.into_iter().flat_map(|run| {
            let later = run.resumptions.iter().map(|resumption| &resumption.targets);
            [&run.header.targets].into_iter().chain(later).flat_map(|all| keys(all))
        });
        let versions =
            targets.map(|(engine, nth, target)| ((engine.to_owned(), nth), target.facts.version.clone()));
        let known = grouped(versions).into_iter().map(|(target, all)| (target, distinct(all)));
        Self { known: known.collect() }
    }

    /// The run with these names.
    pub fn run(&self, run: &Run) -> Run {
        let mut hidden = run.clone();
        let header = &mut hidden.header;
        header.command = vec![WITHHELD.to_owned()];
        header.targets = keys(&run.header.targets).map(|key| self.target(key)).collect();
        header.warnings.clear();
        // Names of suites, labels and branches may contain those of engines.
        header.origin = Origin::default();
        header.spec.custom = None;
        header.spec.cache = header.spec.cache.take().map(|_| WITHHELD.to_owned());
        header.spec.remote = header.spec.remote.take().map(|_| WITHHELD.to_owned());
        // Names of agents are those of machines.
        if let Some(fleet) = &mut header.spec.fleet {
            WITHHELD.clone_into(&mut fleet.url);
            fleet.labels.clear();
        }
        let agents: Vec<String> = header.agents.iter().map(|agent| agent.name.clone()).collect();
        for (at, agent) in header.agents.iter_mut().enumerate() {
            agent.name = format!("{}", at + 1);
            agent.host.clear();
            agent.labels.clear();
        }
        header.spec.targets = header.targets.iter().map(|target| target.name.clone()).collect();
        for (hidden, resumption) in hidden.resumptions.iter_mut().zip(&run.resumptions) {
            hidden.targets = keys(&resumption.targets).map(|key| self.target(key)).collect();
        }
        for cell in &mut header.cells {
            for reason in cell.unavailable.iter_mut().chain(cell.unavailable_operations.values_mut()) {
                "this target does not support it".clone_into(reason);
            }
        }
        for trial in &mut hidden.trials {
            match &mut trial.outcome {
                Outcome::Failed { kind, reason, .. } => neutral(*kind).clone_into(reason),
                // Names of programs and threads reveal the engine.
                Outcome::Measured(measured) => {
                    if let Some(observed) = &mut measured.observed {
                        observed.without_names();
                    }
                    for agent in measured.fleet.iter_mut().flat_map(|fleet| &mut fleet.agents) {
                        let known = agents.iter().position(|name| *name == agent.name);
                        agent.name = known.map_or_else(String::new, |at| (at + 1).to_string());
                        agent.client = None;
                    }
                }
            }
        }
        hidden
    }

    fn target(&self, (engine, nth, target): (&str, usize, &TargetRecord)) -> TargetRecord {
        let position = self.known.iter().position(|((name, at), _)| name == engine && *at == nth);
        let position = position.unwrap_or(self.known.len());
        let name = format!("database {}", letters(position));
        // Versions are numbered only if they differ.
        let versions = self.known.get(position).map_or(&[][..], |(_, versions)| versions);
        let version = match versions.iter().position(|version| *version == target.facts.version) {
            Some(at) if versions.len() > 1 => format!("version {}", at + 1),
            _ => String::new(),
        };
        TargetRecord {
            name: name.clone(),
            url: String::new(),
            scheme: String::new(),
            publishing: None,
            facts: ServerFacts {
                engine: name,
                version,
                durability: target.facts.durability,
                ..ServerFacts::default()
            },
        }
    }
}

/// Each target with its engine and its position among that engine's targets.
fn keys(targets: &[TargetRecord]) -> impl Iterator<Item = (&str, usize, &TargetRecord)> {
    targets.iter().enumerate().map(|(at, target)| {
        let engine = target.facts.engine.as_str();
        let before = targets[..at].iter().filter(|other| other.facts.engine == engine).count();
        (engine, before, target)
    })
}

/// `A` to `Z`, then `AA`, `AB`, …
fn letters(position: usize) -> String {
    let last = char::from(b'A' + (position % 26) as u8);
    if position < 26 { last.to_string() } else { letters(position / 26 - 1) + &last.to_string() }
}

/// Why a trial failed, in terms common to all engines.
fn neutral(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Usage => "the request was invalid",
        ErrorKind::Unreachable => "the server could not be reached",
        ErrorKind::Denied => "the server refused the user",
        ErrorKind::NotFound => "a required object did not exist",
        ErrorKind::NotPermitted => "the user lacked a required permission",
        ErrorKind::ReadOnly => "the server or the session only reads",
        ErrorKind::NotOurs => "a foreign object had the same name",
        ErrorKind::InUse => "another run was using it",
        ErrorKind::Limit => "a limit was reached",
        ErrorKind::Unsupported => "this target does not support it",
        ErrorKind::Server => "the server answered with an error",
        ErrorKind::ConnectionLost => "the connection was lost",
        ErrorKind::Timeout => "there was no reply in time",
        ErrorKind::Mismatch => "a reply was wrong",
        ErrorKind::Protocol => "the reply violated the protocol",
        ErrorKind::Damaged => "a file was damaged",
        ErrorKind::Interrupted => "it was interrupted",
        ErrorKind::Environment => "the machine lacked a resource",
        ErrorKind::Internal => "a defect of the tool",
    }
}

#[cfg(test)]
mod tests {
    use super::letters;

    #[test]
    fn there_are_letters_for_any_number_of_targets() {
        let found: Vec<String> = [0, 25, 26, 51, 52, 701, 702].map(letters).into();
        assert_eq!(found, ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]);
    }
}
