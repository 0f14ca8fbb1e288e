//! What to run, from options or a suite file. Every key of a suite file is checked.

mod claim;
mod file;
mod fleet;
mod interleave;
mod pgbench;
mod several;
mod spec;

pub(crate) use interleave::Interleave;
pub(crate) use several::{Several, SuiteRun};

use crate::axes::axes_of;
use crate::output::Output;
use crate::settings::{is_default, is_given, option, parsed};
use crate::words::{agent_labels, arrivals, parse_requests, percentage, split_targets, time};
use clap::ArgMatches;
use kurabe_core::axis::AxisInfo;
use kurabe_core::custom::CustomWorkload;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::{Experiment, ExperimentInfo};
use kurabe_core::fleet::OnLostAgent;
use kurabe_core::load::Arrivals;
use kurabe_core::target::{TargetUrl, UP};
use kurabe_core::threads::ClientThreads;
use kurabe_core::{Error, Result, units};
use kurabe_engine::plan::budget::Free;
use kurabe_experiments::{custom, registry};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The default number of rounds. With fewer rounds intervals widen fast: with five, a 20 % difference at 3 % noise
/// often stays undecided among forty comparisons; with six it is detected.
pub(crate) const ROUNDS: u32 = 6;
/// The default duration of a run per target.
pub(crate) const BUDGET: Duration = Duration::from_secs(20);

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
        let file = self.setup.as_mut().filter(|setup| !setup.starts_with("copy:"));
        if let Some(file) = file {
            *file = suite.parent().unwrap_or(Path::new(".")).join(&*file).display().to_string();
        }
    }
}

impl Request {
    /// Reads the options of `run pgbench …`.
    pub(crate) fn of_pgbench(matches: &ArgMatches) -> Result<Self> {
        let custom = Some(crate::custom::of_pgbench(matches)?);
        Self { custom, ..Self::default() }.with_options(matches)?.with_pgbench(matches)
    }

    /// Reads the options of `run replay …`.
    pub(crate) fn of_replay(matches: &ArgMatches, output: &Output) -> Result<Self> {
        if let Some(capture) = matches.get_one::<std::path::PathBuf>("capture") {
            crate::exposed::warn_of_file(capture, output);
        }
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
        let Companions { cache, remote, setup, fleet } = &mut self.companions;
        for (name, value) in [("cache", cache), ("remote", remote), ("setup", setup), ("fleet", fleet)] {
            *value = text(name)?.or(value.take());
        }
        self.agents = count("agents")?.or(self.agents);
        if let Some(labels) = parsed(prefix, "agent-label", text("agent-label")?, agent_labels)? {
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
}

/// Whether the run may have servers evict values of others.
fn may_evict(matches: &ArgMatches) -> bool {
    matches.try_get_one::<bool>("allow-eviction").ok().flatten().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests;
