//! Differences between two runs besides their results: versions, settings, machine, spec.

use crate::summary::Summary;
use crate::target::TargetSummary;
use crate::wording::class_name;
use kurabe_core::sort;
use kurabe_core::units;
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
    let mut settings = Vec::new();
    for (a, b) in targets {
        let name = &first.labels.targets[*a];
        let (a, b) = (&first.targets[*a], &second.targets[*b]);
        let both = |what: &str, of: fn(&TargetSummary) -> String| (format!("{what} {name}"), of(a), of(b));
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
    let all = all.into_iter().map(|(what, first, second)| Difference { what, first, second, setting: None });
    let settings = settings.into_iter().map(|(name, what, first, second)| Difference {
        what,
        first,
        second,
        setting: Some(name),
    });
    all.chain(settings).filter(|one| one.first != one.second).collect()
}
