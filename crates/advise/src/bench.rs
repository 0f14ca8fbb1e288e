//! Measures sets of proposals: each on a throwaway server of its own, with data restored before each replay of the capture, in rounds
//! beside the unchanged server and a second instance of that.

use crate::change::{Change, Proposal, is_postgres};
use crate::indexes::Schemas;
use crate::search::{Fault, Lap, Laps, Measured, Phase, Set, Trials};
use kurabe_copy::engines::{Engine, Side};
use kurabe_copy::script::quoted;
use kurabe_core::axis::AxisValue;
use kurabe_core::custom::CustomWorkload;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::run::{Outcome, Run, RunSpec};
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::plan::Plan;
use kurabe_engine::plan::budget::Fit;
use kurabe_engine::prepare::target::Target;
use kurabe_engine::{Conditions, Event, Listener, NewRun, Start};
use kurabe_experiments::registry;
use kurabe_experiments::replay::{self, Reports};
use kurabe_targets::{OpenOptions, Opened, Reporter};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The axes on which clients may differ from the recorded ones.
const AXES: [&str; 3] = [replay::POOLED, replay::PREPARED, replay::CACHE];
/// The rounds of the confirmation, at least and at most.
const CONFIRM: (u32, u32) = (5, 12);
/// The share of the budget after which nothing more is searched.
const SEARCH: f64 = 0.6;
/// The servers that run at the same time, at least and at most, and the share of the budget for starting them once.
const LEAST: usize = 4;
const MOST: usize = 8;
const OPENING: f64 = 0.2;
/// The share of the budget that one change may take, and the shortest such time.
const CHANGE: f64 = 0.1;
const LEAST_CHANGE: Duration = Duration::from_secs(5);
/// The bytes of all indexes.
const BYTES_OF_POSTGRES: &str = "SELECT coalesce(sum(pg_catalog.pg_indexes_size(c.oid)), 0)::bigint FROM pg_catalog.pg_class c \
     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')";
const BYTES_OF_MYSQL: &str = "SELECT coalesce(sum(index_length), 0) FROM information_schema.tables \
     WHERE table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')";
/// The schemas with tables, but for that in which names are looked up.
const SCHEMAS_OF_POSTGRES: &str = "SELECT DISTINCT n.nspname FROM pg_catalog.pg_class c \
     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') AND n.nspname !~ '^pg_' \
     AND n.nspname <> 'information_schema' AND n.oid IS DISTINCT FROM current_schema()::regnamespace";
const SCHEMAS_OF_MYSQL: &str = "SELECT DISTINCT table_schema FROM information_schema.tables WHERE table_type = 'BASE TABLE' \
     AND table_schema NOT IN (database(), 'mysql', 'information_schema', 'performance_schema', 'sys')";
/// The cache that is put in front of a server.
const CACHE: &str = "up:memcached";

/// What is measured, and with what.
pub struct Bench<'a> {
    /// The unchanged server, such as `up:postgres`.
    pub url: &'a str,
    pub is_mariadb: bool,
    pub engine: &'static Engine,
    /// A file with schema and data, or `copy:URL`; `None`: the URL names one.
    pub data: Option<&'a str>,
    pub workload: CustomWorkload,
    pub reports: Reports,
    pub proposals: Vec<Proposal>,
    pub budget: Duration,
    pub began: Instant,
    pub cancel: &'a AtomicBool,
    pub reporter: &'a dyn Reporter,
    /// How long a server takes to start with its data, and a replay with its restart.
    pub pace: Option<Pace>,
    /// What the sets of the confirmation cost, in their order.
    pub costs: Vec<Option<Cost>>,
    /// Replays so far.
    pub replays: usize,
}

/// How long the parts of a measurement take.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    server: Duration,
    replay: Duration,
}

/// What a set costs beside time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes of indexes that it adds; negative: that it saves.
    pub index_bytes: i64,
    /// How long its statements took on the loaded server.
    pub build: Duration,
}

/// Says nothing but warnings, since a search starts dozens of servers.
struct Quiet<'a>(&'a dyn Reporter);

impl Reporter for Quiet<'_> {
    fn note(&self, _: &str) {}

    fn warning(&self, text: &str) {
        self.0.warning(text);
    }

    fn wait_for(&self, what: String) {
        self.0.wait_for(what);
    }

    fn check(&self) -> Result<()> {
        self.0.check()
    }
}

/// Measures of each target the cell that its set asks for, and the A/A control of the unchanged server alone.
struct Caller<'a>(&'a dyn Reporter, &'a [Axes]);

/// The axes of a replay whose clients do something otherwise.
type Axes = Vec<&'static str>;

impl Listener for Caller<'_> {
    fn event(&mut self, event: Event<'_>) -> Result<()> {
        if let Event::TrialBegins { .. } = event {
            self.0.wait_for("the replay to end".to_owned());
        }
        Ok(())
    }

    fn start(&mut self, plan: &mut Plan, _: Option<&Fit>, _: &[Target]) -> Result<Start> {
        plan.retain(|cell| {
            let is_asked = |axis: &&str| cell.axes.word(axis).is_ok_and(|word| word == "yes");
            let asked: Axes = AXES.into_iter().filter(is_asked).collect();
            asked == self.1[cell.target] && (!cell.aa_control || cell.target == 0)
        });
        Ok(Start::Measure { warnings: Vec::new() })
    }
}

impl Bench<'_> {
    /// What the loaded server has.
    ///
    /// # Errors
    /// If the server cannot be started or loaded, or its catalogue not be read.
    pub fn schemas(&mut self) -> Result<Schemas> {
        let began = Instant::now();
        let options = OpenOptions { setup: self.data.map(str::to_owned), ..OpenOptions::default() };
        let opened = kurabe_targets::open(&[self.url.to_owned()], &options, self.reporter)?;
        let schemas = self.schemas_of(&opened);
        opened.close(self.reporter);
        // A restart takes less than a start with its data.
        let server = began.elapsed();
        self.pace = Some(Pace { server, replay: server / 2 });
        schemas
    }

    fn schemas_of(&self, opened: &Opened) -> Result<Schemas> {
        let mut all = Schemas::default();
        let mut first = self.side(opened, 0)?;
        all.add("", first.catalog()?);
        let sql = if is_postgres(self.engine) { SCHEMAS_OF_POSTGRES } else { SCHEMAS_OF_MYSQL };
        for schema in first.catalogue(sql)?.into_iter().flatten().flatten() {
            let mut url = opened.reached[0].clone();
            if is_postgres(self.engine) {
                url.options.insert("search_path".to_owned(), quoted(self.engine, &schema));
            } else {
                url.path.clone_from(&schema);
            }
            let (driver, ..) = kurabe_targets::open_one(&url, None)?;
            let session = driver.connect(&ConnectOptions::default())?;
            all.add(&schema, Side { session, engine: self.engine, name: schema.clone() }.catalog()?);
        }
        Ok(all)
    }

    /// The axes on which a set differs from what was recorded, in the order of all.
    fn axes_of(&self, set: &[usize]) -> Axes {
        let has = |axis: &&str| {
            set.iter().any(|one| matches!(&self.proposals[*one].change, Change::Client { axis: known, .. } if known == axis))
        };
        AXES.into_iter().filter(has).collect()
    }

    fn side(&self, opened: &Opened, at: usize) -> Result<Side> {
        let missing = || Error::new(ErrorKind::Internal, "a server that was not opened");
        let target = opened.targets.get(at).ok_or_else(missing)?;
        let session = target.driver.connect(&ConnectOptions::default())?;
        Ok(Side { session, engine: self.engine, name: target.name.clone() })
    }

    /// The URL of a server with the settings of a set, in place of those that the unchanged server has.
    fn url_of(&self, set: &[usize]) -> String {
        let (server, options) = self.url.split_once('?').unwrap_or((self.url, ""));
        let mut options: Vec<String> =
            options.split('&').filter(|one| !one.is_empty()).map(str::to_owned).collect();
        for one in set {
            if let Change::Setting { name, value } = &self.proposals[*one].change {
                options.retain(|known| known.split('=').next() != Some(name));
                options.push(format!("{name}={value}"));
            }
        }
        if options.is_empty() { server.to_owned() } else { format!("{server}?{}", options.join("&")) }
    }

    /// The statements of a set, which end by themselves if they take too long; `None` of settings alone.
    fn script_of(&self, set: &[usize]) -> Option<String> {
        let statements: Vec<String> =
            set.iter().filter_map(|one| self.proposals[*one].change.sql(self.engine)).collect();
        if statements.is_empty() {
            return None;
        }
        let longest = self.budget.mul_f64(CHANGE).max(LEAST_CHANGE);
        let limit = if is_postgres(self.engine) {
            format!("SET statement_timeout = {};\n", longest.as_millis())
        } else if self.is_mariadb {
            format!("SET max_statement_time = {};\n", longest.as_secs())
        } else {
            String::new()
        };
        Some(limit + &statements.join("\n") + "\n")
    }

    /// Replays the capture on open servers.
    fn run(&self, opened: &mut Opened, axes: &[Axes], rounds: u32) -> Result<Run> {
        let plan = self.plan(opened.targets.iter().map(|target| target.url.as_str()), axes, rounds)?;
        let conditions = Conditions { cancel: self.cancel, ..Conditions::default() };
        let new = NewRun { budget: None, ..NewRun::new(plan) };
        let run =
            kurabe_engine::run(new, &mut opened.targets, &conditions, &mut Caller(self.reporter, axes))?;
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Interrupted, "stopped by the user"));
        }
        run.ok_or_else(|| Error::new(ErrorKind::Internal, "a run that was not made"))
    }

    fn plan<'u>(&self, urls: impl Iterator<Item = &'u str>, axes: &[Axes], rounds: u32) -> Result<Plan> {
        let targets = urls.map(|url| Ok(TargetUrl::parse(url)?.to_string())).collect::<Result<Vec<_>>>()?;
        let applications = vec![false; targets.len()];
        let mut spec = RunSpec::new("replay", targets);
        spec.custom = Some(self.workload.clone());
        let experiment = registry::of(&spec)?;
        experiment.info.name.clone_into(&mut spec.experiment);
        // A replay without a cache has no such axis.
        let known =
            AXES.into_iter().filter(|axis| experiment.info.axes.iter().any(|info| info.name == *axis));
        let words = |axis| if axes.concat().contains(&axis) { vec!["no", "yes"] } else { vec!["no"] };
        let all = known.map(|axis| (axis, words(axis))).chain([("speed", vec!["max"])]);
        let word = |word: &str| AxisValue::Word(word.to_owned());
        spec.axes =
            all.map(|(axis, words)| (axis.to_owned(), words.into_iter().map(word).collect())).collect();
        spec.operations = experiment.info.operation_names();
        spec.requests = spec.operations.iter().map(|name| (name.clone(), 1)).collect();
        spec.rounds = rounds;
        Plan::draft(experiment, spec, &applications)
    }

    /// The replays of a cell, by round, and the first failure.
    fn laps(&self, phase: Phase, run: &Run, target: usize, aa_control: bool) -> (Laps, Option<Fault>) {
        let cells = &run.header.cells;
        let is_here = |cell: usize| {
            cells.get(cell).is_some_and(|cell| cell.target == target && cell.aa_control == aa_control)
        };
        let mut laps = vec![None; run.header.spec.rounds as usize];
        let mut fault = None;
        for trial in run.trials.iter().filter(|trial| is_here(trial.cell)) {
            match &trial.outcome {
                Outcome::Failed { kind, reason, .. } => {
                    let of = if *kind == ErrorKind::Mismatch { Fault::Answer } else { Fault::Refused };
                    fault = Some(of(reason.clone()));
                }
                Outcome::Measured(measured) => {
                    let value = |name: &str| {
                        measured.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value)
                    };
                    // A capture of a few requests may have one half only.
                    let half = value(self.reports.halves[usize::from(phase == Phase::Confirm)]);
                    let all = value(self.reports.mean);
                    if let (Some(mean_ns), Some(lap)) = (all, laps.get_mut(trial.round as usize)) {
                        let statements =
                            self.reports.statements.iter().map(|one| value(&one.metric)).collect();
                        let (judged_ns, hits) = (half.unwrap_or(mean_ns), value(self.reports.hits));
                        *lap = Some(Lap { judged_ns, mean_ns, statements, hits });
                    }
                }
            }
        }
        if laps.iter().all(Option::is_none) && fault.is_none() {
            let why =
                cells.iter().filter(|cell| cell.target == target).find_map(|cell| cell.unavailable.clone());
            fault = Some(Fault::Refused(why.unwrap_or_else(|| "it was not measured".to_owned())));
        }
        (laps, fault)
    }

    /// What the sets cost, beside the unchanged server.
    fn costs_of(&self, opened: &Opened, places: &[Option<usize>]) -> Vec<Option<Cost>> {
        let sql = if is_postgres(self.engine) { BYTES_OF_POSTGRES } else { BYTES_OF_MYSQL };
        let bytes = |at: usize| self.side(opened, at).and_then(|mut side| side.number(sql)).ok();
        let base = bytes(0);
        let cost = |at: &Option<usize>| {
            let at = (*at)?;
            let index_bytes = bytes(at)?.cast_signed() - base?.cast_signed();
            Some(Cost { index_bytes, build: opened.changed.get(at).copied().unwrap_or_default() })
        };
        places.iter().map(cost).collect()
    }
}

impl Trials for Bench<'_> {
    fn rounds(&self, phase: Phase, sets: usize) -> u32 {
        let (least, most) = if phase == Phase::Confirm { CONFIRM } else { (0, u32::MAX) };
        let Some(pace) = self.pace else { return least.max(2) };
        // What was not tried at all is tried once.
        let least = if self.replays == 0 { least.max(1) } else { least };
        let servers = sets as u32 + 2;
        let share = if phase == Phase::Confirm { 1.0 } else { SEARCH };
        let left = self.budget.mul_f64(share).saturating_sub(self.began.elapsed());
        let left = left.saturating_sub(pace.server * servers).as_secs_f64();
        let rounds = (left / (pace.replay * servers).as_secs_f64().max(1e-3)) as u32;
        rounds.clamp(least, most)
    }

    fn beside(&self) -> usize {
        let servers = self.pace.map_or(MOST, |pace| {
            let time = self.budget.mul_f64(OPENING).as_secs_f64();
            (time / pace.server.as_secs_f64().max(1e-3)) as usize
        });
        servers.clamp(LEAST, MOST) - 2
    }

    fn conflict(&self, one: usize, other: usize) -> bool {
        match (&self.proposals[one].change, &self.proposals[other].change) {
            (Change::Setting { name, .. }, Change::Setting { name: other, .. }) => name == other,
            _ => false,
        }
    }

    fn measure(&mut self, phase: Phase, sets: &[Set], rounds: u32) -> Result<Measured> {
        let failed =
            |error: std::io::Error| Error::new(ErrorKind::Environment, format!("no temporary file: {error}"));
        let folder = tempfile::tempdir().map_err(failed)?;
        let urls: Vec<String> =
            std::iter::once(self.url.to_owned()).chain(sets.iter().map(|set| self.url_of(set))).collect();
        let mut changes: Vec<Option<PathBuf>> = vec![None];
        for (at, set) in sets.iter().enumerate() {
            let path = self.script_of(set).map(|text| {
                let path = folder.path().join(format!("{at}.sql"));
                std::fs::write(&path, text).map(|()| path).map_err(failed)
            });
            changes.push(path.transpose()?);
        }
        let mut axes: Vec<Axes> = vec![Axes::new()];
        axes.extend(sets.iter().map(|set| self.axes_of(set)));
        let plan = self.plan(urls.iter().map(String::as_str), &axes, rounds)?;
        let options = OpenOptions {
            connections: plan.connections(),
            cache: Some(CACHE.to_owned()),
            caches: plan.caches(),
            cached: axes.iter().map(|axes| axes.contains(&replay::CACHE)).collect(),
            setup: self.data.map(str::to_owned),
            changes,
            second_instances: vec![true],
            tolerant: true,
            ..OpenOptions::default()
        };
        let began = Instant::now();
        let mut opened = kurabe_targets::open(&urls, &options, &Quiet(self.reporter))?;
        let servers = opened.targets.len() as u32 + 1;
        let server = began.elapsed() / servers;
        let unopened = std::mem::take(&mut opened.unopened);
        if let Some((_, error)) = unopened.iter().find(|(at, _)| *at == 0) {
            let error = error.clone();
            opened.close(self.reporter);
            return Err(error);
        }
        let is_open = |at: usize| unopened.iter().all(|(other, _)| *other != at);
        let axes: Vec<Axes> =
            (0..urls.len()).filter(|at| is_open(*at)).map(|at| std::mem::take(&mut axes[at])).collect();
        let began = Instant::now();
        let run = self.run(&mut opened, &axes, rounds);
        self.replays += (servers * rounds) as usize;
        self.pace = Some(Pace { server, replay: began.elapsed() / (servers * rounds).max(1) });
        let place = |at: usize| is_open(at).then(|| (0..at).filter(|before| is_open(*before)).count());
        let places: Vec<Option<usize>> = (1..urls.len()).map(place).collect();
        if run.is_ok() && phase == Phase::Confirm {
            self.costs = self.costs_of(&opened, &places);
        }
        self.reporter.wait_for("the servers to end".to_owned());
        opened.close(self.reporter);
        let run = run?;
        let (base, fault) = self.laps(phase, &run, 0, false);
        let (again, other) = self.laps(phase, &run, 0, true);
        if let Some(Fault::Answer(why) | Fault::Refused(why)) = fault.or(other) {
            return Err(Error::new(
                ErrorKind::Mismatch,
                format!("the replay fails on the unchanged server: {why}"),
            )
            .hint("the data must be as they were when the capture began; 'kurabe run replay' shows more"));
        }
        let measured = |(at, place): (usize, &Option<usize>)| {
            let Some(place) = place else {
                let why = unopened.iter().find(|(other, _)| *other == at + 1);
                return Err(Fault::Refused(why.map_or_else(String::new, |(_, error)| error.to_string())));
            };
            let (laps, fault) = self.laps(phase, &run, *place, false);
            fault.map_or(Ok(laps), Err)
        };
        let sets = places.iter().enumerate().map(measured).collect();
        Ok(Measured { base, again, sets })
    }
}
