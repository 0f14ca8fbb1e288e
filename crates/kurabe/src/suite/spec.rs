//! The spec of a run: what was asked for, with all defaults.

use super::{BUDGET, ROUNDS, Request};
use crate::run_options::axes_of;
use crate::suite::slice;
use kurabe_core::axis::{AxisInfo, AxisValue};
use kurabe_core::compression::COMPRESSION;
use kurabe_core::cpus::{CPU_PLACEMENT, CPUS};
use kurabe_core::experiment::{Experiment, ExperimentInfo};
use kurabe_core::fleet::FleetSpec;
use kurabe_core::load::{DEFAULT_SLO_NS, OPEN_CLIENTS, RATE};
use kurabe_core::metric::Source;
use kurabe_core::question::{Question, Varying};
use kurabe_core::run::{DEFAULT_MARGIN, RunSpec, Setup, Until};
use kurabe_core::target::{TargetUrl, is_throwaway};
use kurabe_core::{Error, Result};
use kurabe_experiments::registry;
use std::collections::BTreeMap;
use std::time::Duration;

/// The default maximum number of rounds of `--until conclusive`.
const MAX_ROUNDS: u32 = 100;
const MAX_RESTARTS: u64 = 1_000;

impl Request {
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
        let slice = slice(self.interleave, rounds, open, self.companions.fleet.is_some())?;
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
        self.check_tries()?;
        let shown = |url: &Option<String>| -> Result<Option<String>> {
            url.as_deref().map(|url| Ok(TargetUrl::parse(url)?.to_string())).transpose()
        };
        let (cache, remote) = (shown(&self.companions.cache)?, shown(&self.companions.remote)?);
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
            seed: self.seed.unwrap_or_else(|| {
                // Short enough to type.
                let now = crate::time::since_1970().as_nanos() as u64;
                kurabe_stats::mix(now, u64::from(std::process::id())) % 1_000_000_000
            }),
            records: self.records,
            arrivals: open.then(|| self.arrivals.unwrap_or_default()),
            slo_ns: self.slo.map(|slo| slo.as_nanos() as u64).or_else(|| highest.then_some(DEFAULT_SLO_NS)),
            timeout_ns: Some(self.timeout.unwrap_or(crate::time::DEFAULT_TIMEOUT).as_nanos() as u64),
            durability: self.durability,
            allow_eviction: self.allow_eviction,
            cache,
            remote,
            setup: self.companions.setup.as_deref().map(Setup::of).transpose()?,
            target_setups: Setup::of_targets(&urls)?,
            custom: self.custom.clone(),
            until,
            slice_ns: slice.map(|slice| slice.as_nanos() as u64),
            restarts: 0,
            full_blocks: true,
            control_distance: None,
            threads: self.threads,
            fleet: self.fleet_spec()?,
            question,
        };
        self.with_restarts(spec, &urls)
    }

    /// Until when rounds are added, if that was requested.
    fn until(&self) -> Result<Option<Until>> {
        match self.until.as_deref() {
            Some("conclusive") => Ok(Some(Until {
                margin: self.margin.unwrap_or(DEFAULT_MARGIN),
                max_rounds: self.max_rounds.map_or(MAX_ROUNDS, |n| n.min(100_000) as u32),
                budget_ns: self.budget.map(|budget| budget.as_nanos() as u64),
            })),
            Some(other) => {
                Err(Error::usage(format!("--until: unknown value '{other}'"))
                    .hint("write --until conclusive"))
            }
            None if self.margin.is_some() || self.max_rounds.is_some() => {
                Err(Error::usage("--margin and --max-rounds require --until").hint("add --until conclusive"))
            }
            None => Ok(None),
        }
    }

    /// Adds restarts to the spec, with a number of rounds that can be divided into blocks.
    fn with_restarts(&self, mut spec: RunSpec, urls: &[String]) -> Result<RunSpec> {
        let restarts = self.restarts.unwrap_or(0);
        if restarts == 0 {
            return Ok(spec);
        }
        if restarts > MAX_RESTARTS {
            let error = Error::usage(format!("--restarts {restarts} is out of range"));
            return Err(error.hint(format!("from 0 to {MAX_RESTARTS}")));
        }
        if !urls.iter().any(|url| is_throwaway(url)) {
            return Err(Error::usage(
                "--restarts: no target is a throwaway server, and Kurabe restarts no others",
            )
            .hint("use one, such as up:postgres"));
        }
        spec.restarts = restarts as u32;
        let rounds = spec.rounds_in_blocks(spec.rounds);
        if self.rounds.is_some() && rounds != spec.rounds {
            let least = if spec.slice_ns.is_some() { "3 rounds, one of them continuous" } else { "2 rounds" };
            return Err(Error::usage(format!(
                "{} rounds cannot be divided into {} blocks of equal length of at least {least}",
                spec.rounds,
                spec.blocks()
            ))
            .hint(format!("use --rounds {rounds}")));
        }
        spec.rounds = rounds;
        Ok(spec)
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
        let question = Question::by_default(targets, &axes);
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
        if self.companions.cache.is_some() && !experiment.takes_cache {
            return refuse("cache", "a cache", |experiment| experiment.takes_cache);
        }
        if self.companions.remote.is_some() && !experiment.takes_remote {
            return refuse("remote", "a second server", |experiment| experiment.takes_remote);
        }
        Ok(())
    }
}

#[cfg(not(feature = "fleet"))]
use crate::left_out::fleet::shown;

/// The maximum number of agents: more would need more ports of the coordinator's broker than one process may open.
const MAX: u64 = 10_000;

/// A fleet's URL without its password.
#[cfg(feature = "fleet")]
fn shown(url: &str) -> Result<String> {
    Ok(kurabe_fleet::FleetUrl::parse(url)?.shown())
}

impl Request {
    /// The requested fleet, without its password.
    pub(super) fn fleet_spec(&self) -> Result<Option<FleetSpec>> {
        let Some(url) = &self.companions.fleet else {
            let given = [
                (self.agents.is_some(), "--agents"),
                (!self.labels.is_empty(), "--agent-label"),
                (self.on_lost_agent.is_some(), "--on-lost-agent"),
            ];
            let Some((_, option)) = given.into_iter().find(|(given, _)| *given) else { return Ok(None) };
            return Err(Error::usage(format!("{option} needs --fleet")).hint("add --fleet nats://HOST:4222"));
        };
        if self.agents.is_some_and(|agents| !(1..=MAX).contains(&agents)) {
            return Err(Error::usage("--agents is out of range").hint(format!("from 1 to {MAX}")));
        }
        let url = shown(url)?;
        let agents = self.agents.map(|agents| agents as u32);
        let on_lost_agent = self.on_lost_agent.unwrap_or_default();
        Ok(Some(FleetSpec { url, agents, labels: self.labels.clone(), on_lost_agent }))
    }
}
