//! What to run, from options or a suite file. Every key of a suite file is checked.

pub(crate) mod custom;
mod several;
mod spec;

use crate::document;
use crate::options::Sourced;
use crate::run_options::{RunOptions, Settings, TargetOptions, axes_of};
use crate::settings::parsed;
use crate::suite::custom::PGBENCH_KEYS;
use crate::words::{
    agent_labels, arrivals, known, parse_requests, percentage, split_targets, time, word, words,
};
use kurabe_core::axis::AxisInfo;
use kurabe_core::custom::{CustomWorkload, Language};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::{Experiment, ExperimentInfo};
use kurabe_core::fleet::OnLostAgent;
use kurabe_core::load::Arrivals;
use kurabe_core::run::MIN_INTERLEAVED_ROUNDS;
use kurabe_core::target::{SETUP, TargetUrl, is_throwaway};
use kurabe_core::threads::ClientThreads;
use kurabe_core::{Error, Result, units};
use kurabe_engine::plan::budget::Free;
use kurabe_experiments::registry;
pub(crate) use several::{Several, SuiteRun};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;
use toml::{Table, Value};

/// The default number of rounds. With fewer rounds intervals widen fast: with five, a 20 % difference at 3 % noise
/// often stays undecided among forty comparisons; with six it is detected.
pub(crate) const ROUNDS: u32 = 6;
/// The default duration of a run per target.
pub(crate) const BUDGET: Duration = Duration::from_secs(20);

/// The keys of a run in a suite, which a claim has too.
pub(crate) const KEYS: [&str; 28] = [
    "experiment", "targets", "axes", "operations", "requests", "duration", "budget", "rounds", "seed",
    "records", "arrivals", "slo", "timeout", "durability", "until", "margin", "max-rounds", "interleave",
    "restarts", "threads", "compare", "cache", "remote", "setup", "fleet", "agents", "agent-label",
    "on-lost-agent",
];

/// What a run has beside its targets, as given, with passwords: for opening it, not for display.
#[derive(Clone, Debug, Default)]
pub(crate) struct Companions {
    /// The cache in front of the targets.
    pub(crate) cache: Option<String>,
    /// The second server.
    pub(crate) remote: Option<String>,
    /// The schema and data of throwaway servers.
    pub(crate) setup: Option<String>,
    /// Where the fleet is.
    pub(crate) fleet: Option<String>,
}

/// The user's options; `None` if not given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    experiment: Option<String>,
    custom: Option<CustomWorkload>,
    targets: Vec<String>,
    axes: BTreeMap<String, Vec<String>>,
    operations: Vec<String>,
    requests: BTreeMap<String, u64>,
    duration: Option<Duration>,
    /// The time of the whole run.
    pub(crate) budget: Option<Duration>,
    rounds: Option<u64>,
    pub(crate) seed: Option<u64>,
    records: Option<u64>,
    arrivals: Option<Arrivals>,
    slo: Option<Duration>,
    timeout: Option<Duration>,
    durability: Option<DurabilityClass>,
    allow_eviction: bool,
    until: Option<String>,
    margin: Option<f64>,
    max_rounds: Option<u64>,
    /// What a run has beside its targets.
    pub(crate) companions: Companions,
    agents: Option<u64>,
    labels: BTreeMap<String, String>,
    on_lost_agent: Option<OnLostAgent>,
    interleave: Option<Interleave>,
    restarts: Option<u64>,
    threads: Option<ClientThreads>,
    /// What is compared, if the user says it.
    compare: Option<String>,
}

impl Companions {
    /// Finds the setup that a suite file names: a file is relative to the suite's folder.
    fn place_setup(&mut self, suite: &Path) {
        if let Some(file) = self.setup.as_mut().filter(|setup| !setup.starts_with("copy:")) {
            *file = placed(file, suite);
        }
    }
}

/// A file that a suite names, which is relative to the suite's folder.
fn placed(file: &str, suite: &Path) -> String {
    suite.parent().unwrap_or(Path::new(".")).join(file).display().to_string()
}

/// Finds the files with which the targets that a suite names are loaded.
fn place_targets(targets: &mut [String], suite: &Path) {
    for target in targets.iter_mut().filter(|target| is_throwaway(target)) {
        // As text: a parsed URL is shown without its password.
        let Some((url, options)) = target.split_once('?') else { continue };
        let option = |option: &str| match option.split_once('=') {
            Some((SETUP, file)) => format!("{SETUP}={}", placed(file, suite)),
            _ => option.to_owned(),
        };
        *target = format!("{url}?{}", options.split('&').map(option).collect::<Vec<_>>().join("&"));
    }
}

impl Request {
    /// Reads the options of `run EXPERIMENT …`.
    pub(crate) fn of_experiment(info: &ExperimentInfo, options: &RunOptions) -> Result<Self> {
        Self { experiment: Some(info.name.to_owned()), ..Self::default() }.with_options(options)
    }

    fn with_options(mut self, options: &RunOptions) -> Result<Self> {
        let info = self.find()?.info;
        for axis in axes_of(info) {
            if let Some(given) = options.axes.iter().find(|given| given.axis.name == axis.name) {
                self.axes.insert(axis.name.to_owned(), given.values(axis));
            }
        }
        self.operations.clone_from(&options.main.operation);
        self.targets(&options.targets, true)?;
        self.allow_eviction = options.main.allow_eviction;
        self.settings(info, "--", options.settings.clone())?;
        Ok(self)
    }

    /// Reads the targets. Those of the command line replace those of environment and settings file, which are read if
    /// `defaults` is set or no others are known.
    fn targets(&mut self, options: &TargetOptions, defaults: bool) -> Result<()> {
        let all = [&options.target, &options.more_targets, &options.via];
        let given = all.into_iter().any(Sourced::is_given);
        let counts = |some: &&Sourced<Vec<String>>| {
            let allowed = defaults || self.targets.is_empty() || !some.is_default();
            if given { some.is_given() } else { allowed }
        };
        let mut slice = None;
        let targets: Vec<Vec<String>> = all
            .into_iter()
            .filter(counts)
            .flat_map(|some| &some.value)
            .inspect(|text| {
                slice = slice.take().or_else(|| Interleave::parse(text).ok().map(|_| (*text).clone()));
            })
            .map(|text| split_targets(text))
            .collect::<Result<_>>()?;
        if let Some(slice) = slice.filter(|_| options.interleave.is_given()) {
            return Err(Error::usage(format!("'{slice}' is not a target"))
                .hint(format!("the value of --interleave follows '=': write --interleave={slice}")));
        }
        if !targets.is_empty() {
            self.targets = targets.concat();
        }
        if let Some(database) = &options.db {
            self.add_database(database)?;
        }
        Ok(())
    }

    /// Adds the database of `--db` to the application stacks among the targets.
    fn add_database(&mut self, database: &str) -> Result<()> {
        let with = |url: &String| kurabe_targets::with_database(url, database);
        let targets = self.targets.iter().map(with).collect::<Result<Vec<_>>>()?;
        let is_stack =
            |url: &String| TargetUrl::parse(url).is_ok_and(|url| url.scheme == kurabe_targets::STACK);
        if !targets.iter().any(is_stack) {
            return Err(Error::usage("--db: no target is an application stack")
                .hint("add one: --via stack:php/mysqli"));
        }
        self.targets = targets;
        Ok(())
    }

    /// Takes the settings that options and suite files share. `prefix` precedes the name of one in messages.
    fn settings(&mut self, info: &ExperimentInfo, prefix: &str, given: Settings) -> Result<()> {
        let count = |name: &str, text| parsed(prefix, name, text, units::parse_count);
        let time = |name: &str, text| parsed(prefix, name, text, |text| time(name, text));
        let requests = parsed(prefix, "requests", given.requests, |requests| parse_requests(info, requests))?;
        let (duration, budget) = (time("duration", given.duration)?, time("budget", given.budget)?);
        // One of them on the command line replaces the other in the suite.
        if self.until.is_none() && given.until.is_none() {
            if budget.is_some() && duration.is_none() && requests.is_none() {
                self.duration = None;
                self.requests.clear();
            } else if budget.is_none() && (duration.is_some() || requests.is_some()) {
                self.budget = None;
            }
        }
        if let Some(requests) = requests {
            self.requests = requests;
        }
        self.duration = duration.or(self.duration);
        self.budget = budget.or(self.budget);
        self.rounds = count("rounds", given.rounds)?.or(self.rounds);
        self.until = given.until.or(self.until.take());
        self.margin = parsed(prefix, "margin", given.margin, percentage)?.or(self.margin);
        self.max_rounds = count("max-rounds", given.max_rounds)?.or(self.max_rounds);
        let interleave = parsed(prefix, "interleave", given.interleave, Interleave::parse)?;
        self.interleave = interleave.or(self.interleave);
        self.restarts = count("restarts", given.restarts)?.or(self.restarts);
        let threads = parsed(prefix, "threads", given.threads, ClientThreads::parse)?;
        self.threads = threads.or(self.threads);
        self.compare = given.compare.or(self.compare.take());
        self.seed = count("seed", given.seed)?.or(self.seed);
        self.records = count("records", given.records)?.or(self.records);
        self.slo = time("slo", given.slo)?.or(self.slo);
        self.timeout =
            given.timeout.map(|text| crate::time::parse_timeout(&text)).transpose()?.or(self.timeout);
        self.arrivals = given.arrivals.map(|name| arrivals(&name)).transpose()?.or(self.arrivals);
        let Companions { cache, remote, setup, fleet } = &mut self.companions;
        for (text, value) in
            [(given.cache, cache), (given.remote, remote), (given.setup, setup), (given.fleet, fleet)]
        {
            *value = text.or(value.take());
        }
        self.agents = count("agents", given.agents)?.or(self.agents);
        if let Some(labels) = parsed(prefix, "agent-label", given.agent_label, agent_labels)? {
            self.labels = labels;
        }
        let on_lost = parsed(prefix, "on-lost-agent", given.on_lost_agent, OnLostAgent::parse)?;
        self.on_lost_agent = on_lost.or(self.on_lost_agent);
        let durability = parsed(prefix, "durability", given.durability, DurabilityClass::parse)?;
        self.durability = durability.or(self.durability);
        Ok(())
    }

    /// The requested experiment.
    pub(crate) fn find(&self) -> Result<&'static Experiment> {
        match &self.custom {
            Some(custom) => kurabe_experiments::custom::experiment(custom),
            None => registry::find(self.experiment.as_deref().unwrap_or_default()),
        }
    }

    /// The target URLs as given, with passwords: for opening them, not for display.
    pub(crate) fn target_urls(&self) -> Vec<String> {
        if self.targets.is_empty() { vec!["sqlite:".to_owned()] } else { self.targets.clone() }
    }

    /// The axes, rounds and restarts that the user did not set. The budget may change them.
    ///
    /// # Errors
    /// If there is no such experiment.
    pub(crate) fn free(&self) -> Result<Free> {
        let named = |axis: &&AxisInfo| self.axes.contains_key(axis.name);
        let info = self.find()?.info;
        let axes = info.axes.iter().filter(|axis| !named(axis)).map(|axis| axis.name.to_owned()).collect();
        Ok(Free { axes, rounds: self.rounds.is_none(), restarts: self.restarts.is_none() })
    }
}

/// The default time limit of a claim's run.
const CLAIM_BUDGET: &str = "60s";

impl Request {
    /// Reads the suite of a claim. An axis that it does not name has only its first default value, and rounds are added
    /// until the claim is decided.
    pub(crate) fn of_claim(table: &Table, custom: Option<CustomWorkload>) -> Result<Self> {
        let defaults = Settings {
            until: Some("conclusive".to_owned()),
            budget: Some(CLAIM_BUDGET.to_owned()),
            ..Settings::default()
        };
        let mut request = parse_table(table, custom, defaults)?;
        for axis in request.find()?.info.axes {
            if let Some(first) = axis.default.first() {
                request.axes.entry(axis.name.to_owned()).or_insert_with(|| vec![(*first).to_owned()]);
            }
        }
        // Values out of range are refused here.
        request.spec()?;
        Ok(request)
    }

    /// The same on these targets. `write`: whether a custom workload may change existing tables.
    #[must_use]
    pub(crate) fn on(mut self, targets: Vec<String>, write: bool) -> Self {
        self.targets = targets;
        if let Some(custom) = &mut self.custom {
            custom.write = write;
        }
        self
    }

    /// The same with this time limit.
    #[must_use]
    pub(crate) fn within(mut self, budget: Option<Duration>) -> Self {
        self.budget = budget.or(self.budget);
        self
    }
}

/// The allowed slice lengths.
const SLICE_LENGTHS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);
/// The default slice length.
pub(crate) const DEFAULT_SLICE: Duration = Duration::from_millis(10);

/// The value of the option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Interleave {
    /// Separate trials only.
    Off,
    /// Slices of this length.
    Slices(Duration),
}

impl Interleave {
    /// Reads `off`, or the length of a slice.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let slice =
            units::parse_duration(text).map_err(|error| error.hint("or 'off' for separate trials"))?;
        if SLICE_LENGTHS.contains(&slice) {
            return Ok(Self::Slices(slice));
        }
        Err(Error::usage("the slice length is out of range").hint("from 1ms to 10s; 10ms is recommended"))
    }
}

/// The slice length; `None` if trials are not interleaved. `open`: whether the loop is open; `fleet`: whether agents run the
/// clients.
fn slice(asked: Option<Interleave>, rounds: u64, open: bool, fleet: bool) -> Result<Option<Duration>> {
    let enough = rounds >= u64::from(MIN_INTERLEAVED_ROUNDS);
    let slice = match asked {
        Some(Interleave::Off) => return Ok(None),
        None if open || !enough || fleet => return Ok(None),
        None => return Ok(Some(DEFAULT_SLICE)),
        Some(Interleave::Slices(slice)) => slice,
    };
    if fleet {
        return Err(Error::usage("--interleave cannot be combined with --fleet")
            .hint("agents do not take turns in slices of a few milliseconds"));
    }
    if open {
        return Err(Error::usage("--interleave cannot be combined with --rate")
            .hint("in an open loop transactions are due at any time, not only in a trial's slices"));
    }
    if !enough {
        return Err(Error::usage(format!(
            "--interleave needs at least {MIN_INTERLEAVED_ROUNDS} rounds, not {rounds}"
        ))
        .hint("the first round consists of continuous trials, which are observed"));
    }
    Ok(Some(slice))
}

/// Reads a suite; `custom` is the custom workload in it, if any. `defaults` are for what the suite does not say.
fn parse(text: &str, custom: Option<CustomWorkload>, defaults: Settings) -> Result<Request> {
    parse_table(&document::table(text)?, custom, defaults)
}

/// The same for a table.
fn parse_table(table: &Table, custom: Option<CustomWorkload>, defaults: Settings) -> Result<Request> {
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
    fn overlay(&mut self, info: &ExperimentInfo, table: &Table) -> Result<()> {
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
fn text_of(path: &Path) -> Result<String> {
    if path.extension().is_some_and(|extension| extension == "sql") {
        let path = path.display();
        return Err(Error::usage(format!("{path} has statements of SQL, and is no suite"))
            .hint(format!("write 'kurabe run pgbench -f {path} TARGET'")));
    }
    std::fs::read_to_string(path)
        .map_err(|e| Error::usage(format!("the suite {} cannot be read: {e}", path.display())))
}

#[cfg(test)]
mod tests;
