//! Suite files of one run.

use super::{Request, place_targets};
use crate::document;
use crate::run_options::{RunOptions, Settings, axes_of};
use crate::suite::custom::{self, PGBENCH_KEYS};
use crate::words::{known, word, words};
use kurabe_core::custom::{CustomWorkload, Language};
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::{Error, Result};
use std::path::Path;
use toml::{Table, Value};

/// The keys of a run in a suite, which a claim has too.
pub(crate) const KEYS: [&str; 28] = [
    "experiment", "targets", "axes", "operations", "requests", "duration", "budget", "rounds", "seed",
    "records", "arrivals", "slo", "timeout", "durability", "until", "margin", "max-rounds", "interleave",
    "restarts", "threads", "compare", "cache", "remote", "setup", "fleet", "agents", "agent-label",
    "on-lost-agent",
];

/// Reads a suite; `custom` is the custom workload in it, if any. `defaults` are for what the suite does not say.
pub(super) fn parse(text: &str, custom: Option<CustomWorkload>, defaults: Settings) -> Result<Request> {
    parse_table(&document::table(text)?, custom, defaults)
}

/// The same for a table.
pub(super) fn parse_table(
    table: &Table,
    custom: Option<CustomWorkload>,
    defaults: Settings,
) -> Result<Request> {
    // A custom workload's own keys replace the experiment's name.
    let more = match &custom {
        Some(custom) if custom.language == Language::Pgbench => &PGBENCH_KEYS[..],
        Some(_) => kurabe_experiments::custom::KEYS,
        None => &KEYS[..1],
    };
    let keys: Vec<&str> = KEYS[1..].iter().chain(more).copied().collect();
    for key in table.keys() {
        known(key, &keys, "key")?;
    }
    let experiment = match (&custom, table.get("experiment")) {
        (Some(_), _) => None,
        (None, Some(name)) => Some(word(name, "experiment")?),
        (None, None) => {
            return Err(Error::usage("the suite has no experiment")
                .hint("write experiment = \"session\", pgbench = [\"browse.sql\"], or [transaction.NAME] for a custom workload"));
        }
    };
    let mut request = Request { experiment, custom, ..Request::default() };
    let info = request.find()?.info;
    request.settings(info, "--", defaults)?;
    request.overlay(info, table)?;
    Ok(request)
}

impl Request {
    /// Reads a suite file. Options on the command line override it.
    pub(crate) fn of_suite(path: &Path, options: &RunOptions) -> Result<Self> {
        let text = text_of(path)?;
        let custom = custom::of_suite(path, &text, &options.workload)?;
        let is_custom = custom.is_some();
        let parsed = parse(&text, custom, options.defaults.clone());
        let mut request = parsed.map_err(|error| error.context(path.display()))?;
        request.companions.place_setup(path);
        place_targets(&mut request.targets, path);
        let info = request.find()?.info;
        if !is_custom && !options.workload.define.is_empty() {
            return Err(Error::usage(format!("--define: {} has no variables", path.display()))
                .hint("only custom workloads have variables"));
        }
        // The values of the axes that are options too.
        let names: Vec<&str> = axes_of(info).map(|axis| axis.name).collect();
        for given in &options.axes {
            known(given.axis.name, &names, "axis").map_err(|error| error.context(info.name))?;
            request.axes.insert(given.axis.name.to_owned(), given.values(given.axis));
        }
        request.targets(&options.targets, false)?;
        request.allow_eviction = options.main.allow_eviction;
        // The suite file takes precedence over the settings file.
        request.settings(info, "--", options.chosen.clone())?;
        Ok(request)
    }

    /// Adds what a table of a suite says, which precedes what is known.
    pub(super) fn overlay(&mut self, info: &ExperimentInfo, table: &Table) -> Result<()> {
        let operations: Vec<&str> = info.operations.iter().map(|operation| operation.name).collect();
        if let Some(targets) = table.get("targets") {
            self.targets = words(targets, "targets")?;
        }
        if let Some(axes) = table.get("axes") {
            let axes = axes.as_table().ok_or_else(|| Error::usage("'axes' is not a table"))?;
            let names: Vec<&str> = axes_of(info).map(|axis| axis.name).collect();
            for (axis, values) in axes {
                known(axis, &names, "axis")?;
                self.axes.insert(axis.clone(), words(values, axis)?);
            }
        }
        if let Some(names) = table.get("operations") {
            self.operations = words(names, "operations")?;
            for name in &self.operations {
                known(name, &operations, "operation")?;
            }
        }
        let given = Settings::read(|key| match table.get(key) {
            Some(Value::Table(parts)) if key == "requests" => {
                let parts = parts.iter().map(|(name, n)| Ok(format!("{name}={}", word(n, name)?)));
                Ok(Some(parts.collect::<Result<Vec<_>>>()?.join(",")))
            }
            value => value.map(|value| word(value, key)).transpose(),
        })?;
        self.settings(info, "", given)
    }
}

/// The text of a suite file.
pub(super) fn text_of(path: &Path) -> Result<String> {
    if path.extension().is_some_and(|extension| extension == "sql") {
        let path = path.display();
        return Err(Error::usage(format!("{path} has statements of SQL, and is no suite"))
            .hint(format!("write 'kurabe run pgbench -f {path} TARGET'")));
    }
    std::fs::read_to_string(path)
        .map_err(|e| Error::usage(format!("the suite {} cannot be read: {e}", path.display())))
}
