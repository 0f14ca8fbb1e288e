//! Differences between two runs besides their results: versions, settings, machine, spec.

use crate::summary::Summary;
use kurabe_core::units;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What: "version of SQLite", "processor".
    pub what: String,
    /// The value in the first run.
    pub first: String,
    /// The value in the second run.
    pub second: String,
}

pub(super) fn differences(first: &Summary, second: &Summary, targets: &[(usize, usize)]) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut note = |what: String, a: String, b: String| {
        if a != b {
            all.push(Difference { what, first: a, second: b });
        }
    };
    note("experiment".into(), first.experiment.clone(), second.experiment.clone());
    note("version of Kurabe".into(), first.kurabe.clone(), second.kurabe.clone());
    let (m, n) = (&first.machine, &second.machine);
    note("processor".into(), m.cpu.clone(), n.cpu.clone());
    note("CPUs".into(), m.cpus.to_string(), n.cpus.to_string());
    note("memory".into(), units::size(m.memory_bytes), units::size(n.memory_bytes));
    note("system".into(), m.system.clone(), n.system.clone());
    note("rounds".into(), first.rounds.to_string(), second.rounds.to_string());
    note("seed".into(), first.seed.to_string(), second.seed.to_string());
    let records =
        |summary: &Summary| summary.spec.records.map_or_else(|| "the rule".to_owned(), units::count);
    note("records".into(), records(first), records(second));
    let longest = |summary: &Summary| {
        let nanos = summary.spec.duration_ns;
        nanos.map_or_else(|| "no limit".to_owned(), |ns| units::time(std::time::Duration::from_nanos(ns)))
    };
    note("longest measured phase".into(), longest(first), longest(second));
    let requests = |summary: &Summary, operation: &str| {
        summary.spec.requests.get(operation).map_or_else(|| "none".to_owned(), |n| units::count(*n))
    };
    let operations: BTreeSet<&String> =
        first.spec.requests.keys().chain(second.spec.requests.keys()).collect();
    for operation in operations {
        note(format!("requests per {operation}"), requests(first, operation), requests(second, operation));
    }
    let shown = |summary: &Summary, name: &str| {
        let axis = summary.labels.axes.iter().find(|axis| axis.name == name);
        axis.map_or_else(String::new, |axis| {
            let values: Vec<String> = axis.values.iter().map(|value| axis.show(value)).collect();
            values.join(", ")
        })
    };
    let axes: BTreeSet<&String> = first.spec.axes.keys().chain(second.spec.axes.keys()).collect();
    for axis in axes {
        note(format!("values of {axis}"), shown(first, axis), shown(second, axis));
    }
    for (a, b) in targets {
        let name = &first.labels.targets[*a];
        let (a, b) = (&first.targets[*a], &second.targets[*b]);
        note(format!("version of {name}"), a.version.clone(), b.version.clone());
        note(format!("client of {name}"), a.client.clone(), b.client.clone());
        note(format!("transport to {name}"), a.transport.clone(), b.transport.clone());
        let class = |class| crate::template::class_name(class).to_owned();
        note(format!("durability of {name}"), class(a.durability), class(b.durability));
        let merged = |target: &crate::summary::TargetSummary| {
            let mut all: BTreeMap<String, String> = target.settings.clone();
            all.extend(target.durability_settings.clone());
            all
        };
        let (a, b) = (merged(a), merged(b));
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for setting in names {
            let value = |of: &BTreeMap<String, String>| {
                of.get(setting).cloned().unwrap_or_else(|| "not reported".to_owned())
            };
            note(format!("{setting} of {name}"), value(&a), value(&b));
        }
    }
    all
}
