//! Differences between two runs besides their results: versions, settings, machine, spec.

use crate::catalogue::translated;
use crate::messages::Language;
use crate::summary::Summary;
use crate::target::TargetSummary;
use crate::wording::class_name;
use kurabe_core::custom::{CustomFile, CustomWorkload};
use kurabe_core::run::Setup;
use kurabe_core::target::{SETUP, TargetUrl};
use kurabe_core::{sort, units};
use serde::Serialize;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What: "version of SQLite", "processor".
    pub what: String,
    /// The value in the first run.
    pub first: String,
    /// The value in the second run.
    pub second: String,
    /// The setting's name, if it is one of a server.
    #[serde(skip)]
    pub(crate) setting: Option<String>,
    /// Whether results of two runs that differ in it say nothing of a change: they are not judged.
    #[serde(skip)]
    pub(crate) is_obstacle: bool,
}

/// The scripts of a workload, or its files, with weights: `browse.sql@3, order.sql`.
fn scripts(run: &Summary) -> String {
    run.spec.custom.as_ref().map_or_else(String::new, |custom| list(custom.files.iter().map(name_of)))
}

fn name_of(file: &CustomFile) -> String {
    match file.weight {
        1 => file.name.clone(),
        weight => format!("{}@{weight}", file.name),
    }
}

fn list(all: impl Iterator<Item = String>) -> String {
    all.collect::<Vec<_>>().join(", ")
}

/// The names of the scripts that the other run has with another text.
fn changed_texts(run: &Summary, other: &Summary, word: &str) -> String {
    let files = |run: &Summary| run.spec.custom.as_ref().map_or_else(Vec::new, |custom| custom.files.clone());
    let others = files(other);
    let differs =
        |file: &CustomFile| others.iter().any(|other| other.name == file.name && other.text != file.text);
    list(files(run).into_iter().filter(differs).map(|file| format!("{} {word}", name_of(&file))))
}

impl Difference {
    /// What differs, in a language.
    pub(super) fn shown(&self, language: Language) -> String {
        let of_setting = || {
            let setting = self.setting.as_deref().filter(|_| language == Language::Japanese)?;
            let target = self.what.strip_prefix(setting)?.strip_prefix(" of ")?;
            Some(format!("{target} の {setting}"))
        };
        of_setting().unwrap_or_else(|| translated(&self.what, language))
    }

    /// A difference of two values; an empty text is none.
    fn new(what: String, values: [String; 2], is_obstacle: bool) -> Self {
        let [first, second] =
            values.map(|value| if value.is_empty() { "not given".to_owned() } else { value });
        Self { what, first, second, setting: None, is_obstacle }
    }
}

pub(super) fn differences(first: &Summary, second: &Summary, targets: &[(usize, usize)]) -> Vec<Difference> {
    let both = |of: &dyn Fn(&Summary) -> String| [first, second].map(of);
    let longest = |nanos: u64| units::time(Duration::from_nanos(nanos));
    let custom = |of: &dyn Fn(&CustomWorkload) -> String| {
        both(&|run| run.spec.custom.as_ref().map_or_else(String::new, of))
    };
    let count = |value: Option<u64>| value.map_or_else(|| "unknown".to_owned(), units::count);
    let texts = [changed_texts(first, second, "as it was"), changed_texts(second, first, "changed")];
    // Another workload or machine is an obstacle.
    let mut all: Vec<Difference> = [
        ("experiment", both(&|run| run.experiment.clone()), true),
        ("version of Kurabe", both(&|run| run.kurabe.clone()), false),
        ("processor", both(&|run| run.machine.cpu.clone()), true),
        ("CPUs", both(&|run| run.machine.cpus.to_string()), true),
        ("memory", both(&|run| units::size(run.machine.memory_bytes)), false),
        ("system", both(&|run| run.machine.system.clone()), false),
        ("rounds", both(&|run| run.rounds.to_string()), false),
        ("seed", both(&|run| run.seed.to_string()), false),
        ("records", both(&|run| run.spec.records.map_or_else(|| "the rule".to_owned(), units::count)), true),
        (
            "longest measured phase",
            both(&|run| run.spec.duration_ns.map_or_else(|| "no limit".to_owned(), longest)),
            false,
        ),
        ("scripts", both(&scripts), true),
        ("text of scripts", texts, true),
        (
            "variables",
            custom(&|custom| list(custom.define.iter().map(|(name, value)| format!("{name}={value}")))),
            true,
        ),
        ("scale", custom(&|custom| count(custom.scale)), true),
        (
            "statements that may write",
            custom(&|custom| if custom.write { "there are some" } else { "there is none" }.to_owned()),
            true,
        ),
        ("schema and data", both(&setup), false),
    ]
    .map(|(what, values, is_obstacle)| Difference::new(what.to_owned(), values, is_obstacle))
    .into();
    for operation in sort::distinct(first.spec.requests.keys().chain(second.spec.requests.keys())) {
        let requests = |run: &Summary| run.spec.requests.get(operation).copied();
        let values = both(&|run| requests(run).map_or_else(|| "not given".to_owned(), units::count));
        all.push(Difference::new(format!("requests per {operation}"), values, false));
    }
    for name in sort::distinct(first.spec.axes.keys().chain(second.spec.axes.keys())) {
        let values = both(&|run| {
            let axis = run.labels.axis(name);
            axis.map_or_else(String::new, |axis| list(axis.values.iter().map(|value| axis.show(value))))
        });
        all.push(Difference::new(format!("values of {name}"), values, false));
    }
    let (mut settings, mut databases) = (Vec::new(), Vec::new());
    for (a, b) in targets {
        let name = &first.labels.targets[*a];
        let pair = [&first.targets[*a], &second.targets[*b]];
        let both = |what: &str, of: fn(&TargetSummary) -> String, is_obstacle| {
            Difference::new(format!("{what} {name}"), pair.map(of), is_obstacle)
        };
        databases.extend([both("database of", database, true), both("options of", options, true)]);
        all.extend([
            both("version of", |target| target.version.clone(), false),
            both("client of", |target| target.client.clone(), false),
            both("transport to", |target| target.transport.clone(), false),
            both("durability of", |target| class_name(target.durability).to_owned(), false),
        ]);
        let names = pair.iter().flat_map(|one| one.durability_settings.keys().chain(one.settings.keys()));
        for setting in sort::distinct(names) {
            let value = |target: &TargetSummary| {
                target.setting(setting).cloned().unwrap_or_else(|| "not reported".to_owned())
            };
            let difference = Difference::new(format!("{setting} of {name}"), pair.map(value), false);
            settings.push(Difference { setting: Some(setting.clone()), ..difference });
        }
    }
    databases.into_iter().chain(all).chain(settings).filter(|one| one.first != one.second).collect()
}

/// The schema and data of throwaway servers.
fn setup(run: &Summary) -> String {
    let all = run.spec.setup.iter().chain(&run.spec.target_setups);
    let shown = |setup: &Setup| match &setup.digest {
        Some(digest) => format!("{} ({})", setup.from, digest.chars().take(8).collect::<String>()),
        None => setup.from.clone(),
    };
    list(all.map(shown))
}

/// The database that a target's URL names.
fn database(target: &TargetSummary) -> String {
    TargetUrl::parse(&target.url).map_or_else(|_| target.url.clone(), |url| url.path)
}

/// The options of a target's URL, without those that say what it is loaded with.
fn options(target: &TargetSummary) -> String {
    let Ok(url) = TargetUrl::parse(&target.url) else { return String::new() };
    list(
        url.options
            .iter()
            .filter(|(name, _)| *name != SETUP)
            .map(|(name, value)| format!("{name}={}", url.shown_option(name, value))),
    )
}
