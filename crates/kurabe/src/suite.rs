//! What to run, from options or a suite file. Every key of a suite file is checked.

use crate::output::Output;
use crate::settings::{is_default, is_given};
use clap::ArgMatches;
use file::{parse, text_of};
use kurabe_core::axis::{AxisInfo, AxisValue};
use kurabe_core::compression::COMPRESSION;
use kurabe_core::cpus::{CPU_PLACEMENT, CPUS};
use kurabe_core::custom::CustomWorkload;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::{Experiment, ExperimentInfo};
use kurabe_core::fleet::OnLostAgent;
use kurabe_core::load::{Arrivals, DEFAULT_SLO_NS, OPEN_CLIENTS, RATE};
use kurabe_core::metric::Source;
use kurabe_core::question::{Question, Varying};
use kurabe_core::run::{RunSpec, Setup};
use kurabe_core::target::{TargetUrl, UP};
use kurabe_core::threads::ClientThreads;
use kurabe_core::{Error, Result, units};
use kurabe_engine::plan::budget::Free;
use kurabe_experiments::{custom, registry};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use until::percentage;
pub(crate) use words::split_targets;
use words::{arrivals, known, parse_requests, time};
pub(crate) use words::{word, words};

mod claim;
mod file;
pub(crate) mod fleet;
mod interleave;
mod pgbench;
mod restarts;
mod several;

pub(crate) use interleave::Interleave;
pub(crate) use several::{Several, SuiteRun};
pub(crate) mod until;
mod words;

/// The default number of rounds. With fewer rounds intervals widen fast: with five, a 20 % difference at 3 % noise
/// often stays undecided among forty comparisons; with six it is detected.
pub(crate) const ROUNDS: u32 = 6;
/// The default duration of a run per target.
pub(crate) const BUDGET: Duration = Duration::from_secs(20);

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
    budget: Option<Duration>,
    rounds: Option<u64>,
    seed: Option<u64>,
    records: Option<u64>,
    arrivals: Option<Arrivals>,
    slo: Option<Duration>,
    timeout: Option<Duration>,
    durability: Option<DurabilityClass>,
    allow_eviction: bool,
    until: Option<String>,
    margin: Option<f64>,
    max_rounds: Option<u64>,
    /// The cache URL as given, with its password: for opening it, not for display.
    pub(crate) cache: Option<String>,
    /// The second server's URL, likewise.
    pub(crate) remote: Option<String>,
    /// The schema and data of throwaway servers, likewise.
    pub(crate) setup: Option<String>,
    /// Where the fleet is, likewise.
    pub(crate) fleet: Option<String>,
    agents: Option<u64>,
    labels: BTreeMap<String, String>,
    on_lost_agent: Option<OnLostAgent>,
    interleave: Option<Interleave>,
    restarts: Option<u64>,
    threads: Option<ClientThreads>,
    /// What is compared, if the user says it.
    compare: Option<String>,
}

/// The axes of an experiment, and the common ones.
pub(crate) fn axes_of(info: &ExperimentInfo) -> impl Iterator<Item = &'static AxisInfo> + use<> {
    info.axes.iter().chain(common_axes(info.axes))
}

/// The axes that every experiment has beside these, its own.
pub(crate) fn common_axes(own: &'static [AxisInfo]) -> impl Iterator<Item = &'static AxisInfo> {
    let common: [&'static AxisInfo; 4] = [&RATE, &CPUS, &CPU_PLACEMENT, &COMPRESSION];
    common.into_iter().filter(|axis| !own.iter().any(|known| known.name == axis.name))
}

impl Request {
    /// Reads the options of `run pgbench …`.
    pub(crate) fn of_pgbench(matches: &ArgMatches) -> Result<Self> {
        let custom = Some(crate::custom::of_pgbench(matches)?);
        Self { custom, ..Self::default() }.with_options(matches)?.with_pgbench(matches)
    }

    /// Reads the options of `run replay …`.
    pub(crate) fn of_replay(matches: &ArgMatches, output: &Output) -> Result<Self> {
        let custom = crate::custom::of_replay(matches)?;
        if !kurabe_experiments::replay::is_complete(&custom)? {
            output.warning(
                "the recorder of the capture did not end in order: what it recorded last is missing",
            );
        }
        let schemes = kurabe_experiments::replay::schemes(&custom)?;
        let request = Self { custom: Some(custom), ..Self::default() }.with_options(matches)?;
        for target in request.target_urls() {
            let url = TargetUrl::parse(&target)?;
            let engine =
                if url.scheme == UP { url.path.split('@').next().unwrap_or_default() } else { &url.scheme };
            if !schemes.contains(&engine) {
                return Err(Error::usage(format!(
                    "{url} speaks another protocol than the server that was captured ({})",
                    schemes[0]
                ))
                .hint(format!("name a target such as up:{}", schemes[0])));
            }
        }
        Ok(request)
    }

    /// Reads the options of `run EXPERIMENT …`.
    pub(crate) fn of_experiment(info: &ExperimentInfo, matches: &ArgMatches) -> Result<Self> {
        Self { experiment: Some(info.name.to_owned()), ..Self::default() }.with_options(matches)
    }

    fn with_options(mut self, matches: &ArgMatches) -> Result<Self> {
        let request = &mut self;
        let info = request.find()?.info;
        for axis in axes_of(info) {
            if let Some(values) = matches.get_many::<String>(axis.name) {
                let values = values.flat_map(|text| axis.list(text)).map(str::to_owned);
                request.axes.insert(axis.name.to_owned(), values.collect());
            }
        }
        if let Ok(Some(names)) = matches.try_get_many::<String>("operation") {
            request.operations = names.cloned().collect();
        }
        request.options(info, matches)?;
        Ok(self)
    }

    /// Reads a suite file. Options on the command line override it.
    pub(crate) fn of_suite(path: &Path, matches: &ArgMatches) -> Result<Self> {
        let text = text_of(path)?;
        let custom = crate::custom::of_suite(path, &text, matches)?;
        let is_custom = custom.is_some();
        let default = |name: &str| option(matches, name).filter(|_| is_default(matches, name));
        let mut request = parse(&text, custom, &default).map_err(|error| error.context(path.display()))?;
        request.setup = request.setup.map(|setup| beside(path, setup));
        let info = request.find()?.info;
        if !is_custom && matches.contains_id("define") {
            return Err(Error::usage(format!("--define: {} has no variables", path.display()))
                .hint("only custom workloads have variables"));
        }
        request.override_axes(info, matches)?;
        request.targets(matches, false)?;
        request.allow_eviction = may_evict(matches);
        // The suite file takes precedence over the settings file.
        request
            .settings(info, "--", &|name| Ok(option(matches, name).filter(|_| !is_default(matches, name))))?;
        Ok(request)
    }

    /// Replaces the values of the axes that are options too.
    fn override_axes(&mut self, info: &ExperimentInfo, matches: &ArgMatches) -> Result<()> {
        let names: Vec<&str> = axes_of(info).map(|axis| axis.name).collect();
        for (axis, values) in axis_options(matches) {
            known(axis, &names, "axis").map_err(|error| error.context(info.name))?;
            self.axes.insert(axis.to_owned(), values);
        }
        Ok(())
    }

    fn options(&mut self, info: &ExperimentInfo, matches: &ArgMatches) -> Result<()> {
        self.targets(matches, true)?;
        self.allow_eviction = may_evict(matches);
        self.settings(info, "--", &|name| Ok(option(matches, name)))
    }

    /// Reads the targets. Those of the command line replace those of environment and settings file, which are read if
    /// `defaults` is set or no others are known.
    fn targets(&mut self, matches: &ArgMatches, defaults: bool) -> Result<()> {
        let names = || ["target", "more-targets", "via"].into_iter();
        let given = names().any(|name| is_given(matches, name));
        let counts = |name: &&str| {
            let allowed = defaults || self.targets.is_empty() || !is_default(matches, name);
            if given { is_given(matches, name) } else { allowed }
        };
        let mut slice = None;
        let targets: Vec<Vec<String>> = names()
            .filter(counts)
            .filter_map(|name| matches.get_many::<String>(name))
            .flatten()
            .inspect(|text| {
                slice = slice.take().or_else(|| Interleave::parse(text).ok().map(|_| (*text).clone()));
            })
            .map(|text| split_targets(text))
            .collect::<Result<_>>()?;
        if let Some(slice) = slice.filter(|_| is_given(matches, "interleave")) {
            return Err(Error::usage(format!("'{slice}' is not a target"))
                .hint(format!("the value of --interleave follows '=': write --interleave={slice}")));
        }
        if !targets.is_empty() {
            self.targets = targets.concat();
        }
        if let Some(database) = option(matches, "db") {
            self.add_database(&database)?;
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

    /// Reads the settings that options and suite files share. `text` returns the text of one; `prefix` precedes its
    /// name in messages.
    fn settings(
        &mut self,
        info: &ExperimentInfo,
        prefix: &str,
        text: &dyn Fn(&str) -> Result<Option<String>>,
    ) -> Result<()> {
        let count = |name: &str| parsed(prefix, name, text(name)?, units::parse_count);
        let time = |name: &str| parsed(prefix, name, text(name)?, |text| time(name, text));
        let requests =
            parsed(prefix, "requests", text("requests")?, |requests| parse_requests(info, requests))?;
        let (duration, budget) = (time("duration")?, time("budget")?);
        // One of them on the command line replaces the other in the suite.
        if self.until.is_none() && text("until")?.is_none() {
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
        self.rounds = count("rounds")?.or(self.rounds);
        self.until = text("until")?.or(self.until.take());
        self.margin = parsed(prefix, "margin", text("margin")?, percentage)?.or(self.margin);
        self.max_rounds = count("max-rounds")?.or(self.max_rounds);
        let interleave = parsed(prefix, "interleave", text("interleave")?, Interleave::parse)?;
        self.interleave = interleave.or(self.interleave);
        self.restarts = count("restarts")?.or(self.restarts);
        let threads = parsed(prefix, "threads", text("threads")?, ClientThreads::parse)?;
        self.threads = threads.or(self.threads);
        self.compare = text("compare")?.or(self.compare.take());
        self.seed = count("seed")?.or(self.seed);
        self.records = count("records")?.or(self.records);
        self.slo = time("slo")?.or(self.slo);
        self.timeout =
            text("timeout")?.map(|text| crate::timeout::parse(&text)).transpose()?.or(self.timeout);
        self.arrivals = text("arrivals")?.map(|name| arrivals(&name)).transpose()?.or(self.arrivals);
        self.cache = text("cache")?.or(self.cache.take());
        self.remote = text("remote")?.or(self.remote.take());
        self.setup = text("setup")?.or(self.setup.take());
        self.fleet = text("fleet")?.or(self.fleet.take());
        self.agents = count("agents")?.or(self.agents);
        if let Some(labels) = parsed(prefix, "agent-label", text("agent-label")?, fleet::labels)? {
            self.labels = labels;
        }
        let on_lost = parsed(prefix, "on-lost-agent", text("on-lost-agent")?, OnLostAgent::parse)?;
        self.on_lost_agent = on_lost.or(self.on_lost_agent);
        let durability = parsed(prefix, "durability", text("durability")?, DurabilityClass::parse)?;
        self.durability = durability.or(self.durability);
        Ok(())
    }

    /// The requested experiment.
    pub(crate) fn find(&self) -> Result<&'static Experiment> {
        match &self.custom {
            Some(custom) => custom::experiment(custom),
            None => registry::find(self.experiment.as_deref().unwrap_or_default()),
        }
    }

    /// The target URLs as given, with passwords: for opening them, not for display.
    pub(crate) fn target_urls(&self) -> Vec<String> {
        if self.targets.is_empty() { vec!["sqlite:".to_owned()] } else { self.targets.clone() }
    }

    /// Whether the user named the time of the whole run.
    pub(crate) fn names_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// Whether the user named a seed.
    pub(crate) fn names_seed(&self) -> bool {
        self.seed.is_some()
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

    /// The values of every axis, including the rate in an open loop.
    fn axis_values(&self, info: &ExperimentInfo, open: bool) -> Result<BTreeMap<String, Vec<AxisValue>>> {
        let mut axes: BTreeMap<String, Vec<AxisValue>> = BTreeMap::new();
        let scaled = self.axes.contains_key(CPUS.name) || info.axes.iter().any(|axis| axis.name == CPUS.name);
        if self.axes.contains_key(CPU_PLACEMENT.name) && !scaled {
            return Err(Error::usage("--cpu-placement requires --cpus").hint("add processors: --cpus 1,2,4"));
        }
        let is_used = |axis: &&AxisInfo| match axis.name {
            name if name == RATE.name => open,
            name if name == CPUS.name || name == CPU_PLACEMENT.name => scaled,
            name if name == COMPRESSION.name => !axis.default.is_empty() || self.axes.contains_key(name),
            _ => true,
        };
        for axis in axes_of(info).filter(is_used) {
            let texts = self.axes.get(axis.name);
            let default = if open && axis.name == "clients" { &[OPEN_CLIENTS] } else { axis.default };
            let texts =
                texts.map_or_else(|| default.to_vec(), |texts| texts.iter().map(String::as_str).collect());
            let mut values: Vec<AxisValue> = Vec::new();
            for text in texts {
                let value = axis.parse(text.trim())?;
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            axes.insert(axis.name.to_owned(), values);
        }
        Ok(axes)
    }

    /// The spec with all defaults. Its target URLs have no passwords.
    ///
    /// # Errors
    /// If a value is invalid.
    pub(crate) fn spec(&self) -> Result<RunSpec> {
        let experiment = self.find()?;
        let info = experiment.info;
        let open = self.axes.contains_key(RATE.name);
        let axes = self.axis_values(info, open)?;
        let urls = self.target_urls();
        let asked = !self.requests.is_empty() || self.duration.is_some();
        let until = self.until()?;
        if asked && self.budget.is_some() && until.is_none() {
            return Err(Error::usage("--budget cannot be combined with --requests or --duration"));
        }
        for (name, value) in [("--duration", self.duration), ("--budget", self.budget)] {
            if value.is_some_and(|time| time.is_zero() || time > Duration::from_secs(7 * 86_400)) {
                return Err(Error::usage(format!("{name} is out of range")).hint("from 1ns to a week"));
            }
        }
        let highest = axes
            .get(RATE.name)
            .is_some_and(|rates| rates.iter().any(|rate| matches!(rate, AxisValue::Word(_))));
        if self.arrivals.is_some() && !open {
            return Err(Error::usage("--arrivals requires --rate").hint("add a rate: --rate 5k"));
        }
        if self.slo.is_some_and(|slo| slo.is_zero()) {
            return Err(Error::usage("--slo 0 is out of range"));
        }
        let rounds = self.rounds.unwrap_or(u64::from(ROUNDS));
        if !(1..=10_000).contains(&rounds) {
            return Err(Error::usage(format!("--rounds {rounds} is out of range")).hint("from 1 to 10,000"));
        }
        if until.is_some_and(|until| u64::from(until.max_rounds) < rounds.max(2)) {
            return Err(Error::usage(format!(
                "--max-rounds is less than the initial {} rounds",
                rounds.max(2)
            ))
            .hint("increase it, or use fewer --rounds"));
        }
        if self.records == Some(0) {
            return Err(Error::usage("--records 0 is out of range").hint("use at least 1"));
        }
        let slice = self.slice(rounds, open)?;
        let question = Some(self.question(info, &axes, urls.len())?);
        let operations: Vec<String> = info
            .operations
            .iter()
            .filter(|operation| {
                self.operations.is_empty() || self.operations.iter().any(|name| name == operation.name)
            })
            .map(|operation| operation.name.to_owned())
            .collect();
        let mut requests = self.requests.clone();
        if self.duration.is_none() {
            for operation in info.operations {
                requests.entry(operation.name.to_owned()).or_insert(operation.requests);
            }
        }
        self.check_other_targets(experiment)?;
        let shown = |url: &Option<String>| -> Result<Option<String>> {
            url.as_deref().map(|url| Ok(TargetUrl::parse(url)?.to_string())).transpose()
        };
        let (cache, remote) = (shown(&self.cache)?, shown(&self.remote)?);
        // With more rounds to follow, the budget ends the run, and the first rounds leave time for them.
        let usual = experiment.budget.unwrap_or(BUDGET) * urls.len() as u32;
        let budget = self
            .budget
            .map_or(usual, |budget| if until.is_some() { (budget / 4).min(usual) } else { budget });
        let budget = (!asked).then_some(budget);
        let spec = RunSpec {
            experiment: info.name.to_owned(),
            targets: urls.iter().map(|url| Ok(TargetUrl::parse(url)?.to_string())).collect::<Result<_>>()?,
            axes,
            operations,
            requests,
            duration_ns: self.duration.map(|duration| duration.as_nanos() as u64),
            budget_ns: budget.map(|budget| budget.as_nanos() as u64),
            rounds: rounds as u32,
            seed: self.seed.unwrap_or_else(seed_of_the_clock),
            records: self.records,
            arrivals: open.then(|| self.arrivals.unwrap_or_default()),
            slo_ns: self.slo.map(|slo| slo.as_nanos() as u64).or_else(|| highest.then_some(DEFAULT_SLO_NS)),
            timeout_ns: Some(self.timeout.unwrap_or(crate::timeout::DEFAULT).as_nanos() as u64),
            durability: self.durability,
            allow_eviction: self.allow_eviction,
            cache,
            remote,
            setup: self.setup.as_deref().map(Setup::of).transpose()?,
            custom: self.custom.clone(),
            until,
            slice_ns: slice.map(|slice| slice.as_nanos() as u64),
            restarts: 0,
            full_blocks: true,
            threads: self.threads,
            fleet: self.fleet_spec()?,
            question,
        };
        self.with_restarts(spec, &urls)
    }

    /// What the run compares.
    fn question(
        &self,
        info: &ExperimentInfo,
        axes: &BTreeMap<String, Vec<AxisValue>>,
        targets: usize,
    ) -> Result<Question> {
        let varies = |name: &str| axes.get(name).is_some_and(|values| values.len() > 1);
        let chart = [RATE.name, CPUS.name].into_iter().find(|name| varies(name)).unwrap_or(info.chart_axis);
        let varying = |name: &'static str| Varying {
            name,
            named: self.axes.contains_key(name),
            chart: name == chart,
            own: info.metrics.iter().any(|metric| metric.source == Source::Cost(name)),
        };
        let axes: Vec<Varying<'_>> =
            axes_of(info).map(|axis| axis.name).filter(|name| varies(name)).map(varying).collect();
        let question = Question::of(targets, &axes);
        match &self.compare {
            None => Ok(question),
            Some(names) => {
                question.comparing(&names.split(',').map(str::trim).collect::<Vec<_>>(), targets, &axes)
            }
        }
    }

    /// Checks that the experiment uses the cache and the second server, if there are any.
    fn check_other_targets(&self, experiment: &Experiment) -> Result<()> {
        let refuse = |option: &str, what: &str, takes: fn(&Experiment) -> bool| {
            let all = registry::EXPERIMENTS.iter().filter(|experiment| takes(experiment));
            let names: Vec<&str> = all.map(|experiment| experiment.info.name).collect();
            Err(Error::usage(format!("{} does not use {what}", experiment.info.name))
                .hint(format!("--{option} is available for {}", names.join(", "))))
        };
        if self.cache.is_some() && !experiment.takes_cache {
            return refuse("cache", "a cache", |experiment| experiment.takes_cache);
        }
        if self.remote.is_some() && !experiment.takes_remote {
            return refuse("remote", "a second server", |experiment| experiment.takes_remote);
        }
        Ok(())
    }
}

/// What a suite file names as a setup: a file is relative to the suite's folder.
fn beside(suite: &Path, setup: String) -> String {
    if setup.starts_with("copy:") {
        return setup;
    }
    suite.parent().unwrap_or(Path::new(".")).join(setup).display().to_string()
}

/// Whether the run may have servers evict values of others.
fn may_evict(matches: &ArgMatches) -> bool {
    matches.try_get_one::<bool>("allow-eviction").ok().flatten().copied().unwrap_or(false)
}

/// A seed from the clock, short enough to type.
fn seed_of_the_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    kurabe_stats::mix(now.as_nanos() as u64, u64::from(std::process::id())) % 1_000_000_000
}

/// The axes that options set, with their values.
fn axis_options(matches: &ArgMatches) -> impl Iterator<Item = (&'static str, Vec<String>)> {
    crate::cli::suite_axes().into_iter().filter_map(|axis| {
        let values = matches.get_many::<String>(axis.name)?;
        Some((axis.name, values.flat_map(|text| axis.list(text)).map(str::to_owned).collect()))
    })
}

/// The text of an option. Not every command has every option.
fn option(matches: &ArgMatches, name: &str) -> Option<String> {
    matches.try_get_one::<String>(name).ok().flatten().cloned()
}

/// The value of a setting, if it is set; an error names the setting.
pub(crate) fn parsed<T>(
    prefix: &str,
    name: &str,
    text: Option<String>,
    parse: impl Fn(&str) -> Result<T>,
) -> Result<Option<T>> {
    text.map(|text| parse(&text).map_err(|error| error.context(format!("{prefix}{name}")))).transpose()
}

#[cfg(test)]
mod tests;
