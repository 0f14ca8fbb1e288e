//! Differences between two runs besides their results: versions, settings, machine, spec.

use crate::summary::Summary;
use crate::target::TargetSummary;
use crate::wording::class_name;
use kurabe_core::custom::{CustomFile, CustomWorkload};
use kurabe_core::run::Setup;
use kurabe_core::target::{SETUP, TargetUrl};
use kurabe_core::{sort, units};
use serde::Serialize;
use std::collections::BTreeMap;
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

/// What is measured, and where: results of runs that differ in it are not judged.
const CONDITIONS: [&str; 9] = [
    "experiment", "processor", "CPUs", "records", "scripts", "text of scripts", "variables", "scale",
    "statements that may write",
];

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

pub(super) fn differences(first: &Summary, second: &Summary, targets: &[(usize, usize)]) -> Vec<Difference> {
    let both = |what: &str, of: &dyn Fn(&Summary) -> String| (what.to_owned(), of(first), of(second));
    let longest = |nanos: u64| units::time(Duration::from_nanos(nanos));
    let mut all = vec![
        both("experiment", &|run| run.experiment.clone()),
        both("version of Kurabe", &|run| run.kurabe.clone()),
        both("processor", &|run| run.machine.cpu.clone()),
        both("CPUs", &|run| run.machine.cpus.to_string()),
        both("memory", &|run| units::size(run.machine.memory_bytes)),
        both("system", &|run| run.machine.system.clone()),
        both("rounds", &|run| run.rounds.to_string()),
        both("seed", &|run| run.seed.to_string()),
        both("records", &|run| run.spec.records.map_or_else(|| "the rule".to_owned(), units::count)),
        both("longest measured phase", &|run| {
            run.spec.duration_ns.map_or_else(|| "no limit".to_owned(), longest)
        }),
    ];
    let custom = |of: &dyn Fn(&CustomWorkload) -> String| {
        let of = |run: &Summary| run.spec.custom.as_ref().map_or_else(String::new, of);
        (of(first), of(second))
    };
    let count = |value: Option<u64>| value.map_or_else(|| "unknown".to_owned(), units::count);
    for (what, (first, second)) in [
        ("scripts", (scripts(first), scripts(second))),
        (
            "text of scripts",
            (changed_texts(first, second, "as it was"), changed_texts(second, first, "changed")),
        ),
        (
            "variables",
            custom(&|custom| list(custom.define.iter().map(|(name, value)| format!("{name}={value}")))),
        ),
        ("scale", custom(&|custom| count(custom.scale))),
        ("statements that may write", custom(&|custom| if custom.write { "yes" } else { "no" }.to_owned())),
        ("schema and data", (setup(first), setup(second))),
    ] {
        all.push((what.to_owned(), first, second));
    }
    for operation in sort::distinct(first.spec.requests.keys().chain(second.spec.requests.keys())) {
        let requests = |run: &Summary| run.spec.requests.get(operation).copied();
        all.push(both(&format!("requests per {operation}"), &|run| {
            requests(run).map_or_else(|| "none".to_owned(), units::count)
        }));
    }
    for name in sort::distinct(first.spec.axes.keys().chain(second.spec.axes.keys())) {
        all.push(both(&format!("values of {name}"), &|run| {
            let axis = run.labels.axis(name);
            let values =
                axis.map(|axis| axis.values.iter().map(|value| axis.show(value)).collect::<Vec<_>>());
            values.unwrap_or_default().join(", ")
        }));
    }
    let (mut settings, mut databases) = (Vec::new(), Vec::new());
    for (a, b) in targets {
        let name = &first.labels.targets[*a];
        let (a, b) = (&first.targets[*a], &second.targets[*b]);
        let both = |what: &str, of: fn(&TargetSummary) -> String| (format!("{what} {name}"), of(a), of(b));
        databases.extend(
            [("database of", database as fn(&TargetSummary) -> String), ("options of", options)]
                .map(|(what, of)| (format!("{what} {name}"), of(a), of(b))),
        );
        all.push(both("version of", |target| target.version.clone()));
        all.push(both("client of", |target| target.client.clone()));
        all.push(both("transport to", |target| target.transport.clone()));
        all.push(both("durability of", |target| class_name(target.durability).to_owned()));
        let [a, b] = [a, b].map(|target| {
            let mut all = target.settings.clone();
            all.extend(target.durability_settings.clone());
            all
        });
        for setting in sort::distinct(a.keys().chain(b.keys())) {
            let value = |of: &BTreeMap<String, String>| {
                of.get(setting).cloned().unwrap_or_else(|| "not reported".to_owned())
            };
            settings.push((setting.clone(), format!("{setting} of {name}"), value(&a), value(&b)));
        }
    }
    let is_condition = |what: &str| CONDITIONS.contains(&what);
    let named = |value: String| if value.is_empty() { "none".to_owned() } else { value };
    let of = |(what, first, second): (String, String, String), is_obstacle, setting| Difference {
        what,
        first: named(first),
        second: named(second),
        setting,
        is_obstacle,
    };
    let databases = databases.into_iter().map(|one| of(one, true, None));
    let all = all.into_iter().map(|one| {
        let is_obstacle = is_condition(&one.0);
        of(one, is_obstacle, None)
    });
    let settings = settings.into_iter().map(|(name, what, a, b)| of((what, a, b), false, Some(name)));
    databases.chain(all).chain(settings).filter(|one| one.first != one.second).collect()
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
