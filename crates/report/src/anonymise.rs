//! Anonymisation: a run without anything that reveals the engines, for reports that may not name them.
//!
//! Results stay: times, rates, counts, the machine, the experiment with its axes, and the durability class, without
//! which write rates mean nothing. Everything specific to an engine is removed: names, versions, URLs, clients,
//! transports, settings, limits, notes, error texts, unsupported features, and the command line. Experts may still
//! guess an engine from its results.

use crate::group::{distinct, grouped};
use kurabe_core::error::ErrorKind;
use kurabe_core::facts::{Limits, ServerFacts};
use kurabe_core::origin::Origin;
use kurabe_core::run::{Outcome, Run, TargetRecord};

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
                client: String::new(),
                transport: String::new(),
                durability: target.facts.durability,
                durability_settings: Vec::new(),
                settings: Vec::new(),
                limits: Limits::default(),
                notes: Vec::new(),
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
