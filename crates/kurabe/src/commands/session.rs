//! A run as its user sees it: its plan, its progress, its record and its report.

use super::announcement::{
    announcement, given_up, left_out, long, longer_than_planned, too_long, unavailable,
};
use super::execute::{Job, Made};
use super::files::write_private;
use super::report;
use super::warnings::{own_caches, scattered, unleased, warnings};
use crate::exit::{self, Exit};
use crate::output::Output;
use crate::progress::Progress;
use crate::signals;
use kurabe_core::axis::AxisInfo;
use kurabe_core::observation::Endpoint;
use kurabe_core::run::{CellRecord, Outcome, Run, RunHeader};
use kurabe_core::{Error, Result, units};
use kurabe_engine::clients::cpu_partition::CpuPartition;
use kurabe_engine::plan::Plan;
use kurabe_engine::plan::budget::Fit;
use kurabe_engine::prepare::target::Target;
use kurabe_engine::{Conditions, Event, InterferenceCheck, Listener, RunError, Start};
use kurabe_experiments::registry;
use kurabe_observe::{Live, Monitor, Remote};
use kurabe_record::Writer;
use kurabe_report::{analyse, html};
use kurabe_targets::Opened;
use kurabe_testbed::testing;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

/// What a run is for: it says when a run with a stopping rule may end, and what is printed of it.
#[derive(Clone, Copy, Default)]
pub(super) enum StopRule<'a> {
    /// The run's own report: it ends when all comparisons of primary metrics are conclusive.
    #[default]
    Report,
    /// A claim, whose answer others print: it ends when this function says that the claim is decided.
    Claim(&'a dyn Fn(&Run) -> bool),
}

impl StopRule<'_> {
    /// Until when rounds are added, as a clause; `margin` is that of the stopping rule.
    pub(super) fn end(self, margin: f64) -> String {
        match self {
            Self::Report => {
                format!("until all comparisons are conclusive at ±{} %", (margin * 1e4).round() / 100.0)
            }
            Self::Claim(_) => "until the claim is decided".to_owned(),
        }
    }
}

/// What observes a run on these targets, and what it counts.
pub(super) struct Watch {
    /// Completed transactions of the current trial.
    completed: Arc<AtomicU64>,
    monitor: Monitor,
}

impl Watch {
    /// Observes this host, and the hosts that have an agent.
    pub(super) fn new(observers: &[(Endpoint, Remote)]) -> Self {
        let mut monitor = Monitor::new();
        for (server, remote) in observers {
            monitor.use_agent(server.clone(), remote.clone());
        }
        Self { completed: Arc::default(), monitor }
    }

    /// The conditions of a run that is observed by this.
    pub(super) fn conditions<'a>(&'a self, cancel: &'a AtomicBool) -> Conditions<'a> {
        Conditions {
            cancel,
            progress: &self.completed,
            observer: Some(&self.monitor),
            interference_check: interference_check(),
            ..Conditions::default()
        }
    }
}

/// Which trials are repeated. What tests disturb of each other need not be.
fn interference_check() -> Option<InterferenceCheck> {
    (!testing::small_servers()).then_some(kurabe_report::attribution::disturbed)
}

/// Shows a run, records it and reports on it.
pub(super) struct Session<'a> {
    /// What was asked for; `None`: the rest of a recorded run.
    job: Option<&'a Job<'a>>,
    /// Whether a page is written.
    html: bool,
    axes: Vec<AxisInfo>,
    observers: Vec<(Endpoint, Remote)>,
    cpu_partition: Option<CpuPartition>,
    /// The servers whose use is shown while the run goes on; `None`: it is not.
    live: Option<Vec<Endpoint>>,
    completed: Arc<AtomicU64>,
    writer: Option<Writer>,
    progress: Option<Progress>,
    /// The targets' names.
    targets: Vec<String>,
    lateness: Lateness,
    pauses: Pauses,
    /// Why it ended undecided.
    undecided: Option<String>,
    /// The cells as planned.
    cells: Vec<CellRecord>,
    output: &'a Output,
}

impl<'a> Session<'a> {
    /// A session of a new run.
    pub(super) fn new(
        job: &'a Job<'a>,
        plan: &Plan,
        opened: &Opened,
        watch: &Watch,
        output: &'a Output,
    ) -> Self {
        Self { job: Some(job), html: job.html, ..Self::of_rest(None, false, plan, opened, watch, output) }
    }

    /// A session of the rest of a run, which `writer` records.
    pub(super) fn of_rest(
        writer: Option<Writer>,
        html: bool,
        plan: &Plan,
        opened: &Opened,
        watch: &Watch,
        output: &'a Output,
    ) -> Self {
        let drivers = opened.targets.iter().flat_map(|target| {
            std::iter::once(&target.driver).chain(target.second.as_ref().map(|second| &second.driver))
        });
        let is_live = output.json && plan.spec.fleet.is_none();
        Self {
            job: None,
            html,
            axes: plan.axes.clone(),
            observers: opened.observers.clone(),
            cpu_partition: opened.cpu_partition.clone(),
            live: is_live.then(|| drivers.map(|driver| driver.endpoint()).collect()),
            completed: Arc::clone(&watch.completed),
            writer,
            progress: None,
            targets: opened.targets.iter().map(|target| target.name.clone()).collect(),
            lateness: Lateness::new(plan, None),
            pauses: Pauses::asked_for(),
            undecided: None,
            cells: Vec::new(),
            output,
        }
    }

    fn stop_rule(&self) -> StopRule<'a> {
        self.job.map_or(StopRule::Report, |job| job.stop_rule)
    }

    /// Whether it is of a claim, whose answer has what there is to say of its run.
    fn is_claim(&self) -> bool {
        matches!(self.stop_rule(), StopRule::Claim(_))
    }

    /// Shows the plan, and what was left out of it.
    fn show_plan(&mut self, plan: &Plan, fit: Option<&Fit>, targets: &[Target]) -> Result<()> {
        let Some(job) = self.job else { return Ok(()) };
        self.cells = plan.records();
        if plan.trials() == 0 {
            let reasons = unavailable(plan, targets);
            let error = Error::unsupported("nothing can be measured:");
            return Err(error.log(reasons.iter().map(String::as_str)));
        }
        let fitted = fit.zip(plan.spec.budget_ns.map(Duration::from_nanos));
        let text = announcement(plan, targets, fit, job.dry, job.stop_rule);
        let left_out = fitted.and_then(|(fit, budget)| left_out(fit, plan.spec.rounds, budget));
        let text = [Some(text), left_out].into_iter().flatten().collect::<Vec<_>>().join("\n");
        if job.dry && job.print {
            self.output.result(&text)?;
        } else {
            self.output.note(&text);
        }
        if let Some(late) = fitted.and_then(|(fit, budget)| too_long(fit, budget)) {
            self.output.warning(&late);
        }
        Ok(())
    }

    /// Begins to show the trials of a run whose record has begun.
    fn begin(&mut self, run: &str, header: &RunHeader) {
        if self.output.json
            && let Some(writer) = &self.writer
        {
            let file = writer.path().file.display().to_string();
            self.output.event(&json!({ "event": "run-begins", "run": run, "file": file }));
        }
        let (targets, live) = (self.targets.clone(), self.live.take().map(Live::new));
        let (cells, rounds) = (&header.cells, header.spec.rounds);
        let progress = Progress::new(*self.output, &self.axes, targets, cells, rounds, &self.completed, live);
        self.progress = Some(progress);
        for (server, remote) in &self.observers {
            if let Endpoint::Tcp { host, port } = server
                && let Err(why) = remote.try_out(host, *port)
            {
                self.output.warning(&format!("not observed: {why}"));
            }
        }
        self.lateness.began = Instant::now();
    }

    /// Tells what is waited for if the user stops the run now.
    fn announce_what_a_stop_waits_for(&self, event: &Event<'_>) {
        let target = |cell: &CellRecord| self.targets.get(cell.target).map_or("", String::as_str);
        match event {
            Event::MeasuringOverhead => signals::wait_for("the overhead measurement"),
            Event::Preparing => signals::wait_for("the targets to be prepared"),
            Event::TrialBegins { cell, operation, .. } => {
                signals::wait_for(format!("{operation} on {} to end", target(cell)));
            }
            Event::Restarting => signals::wait_for("the throwaway servers to restart"),
            Event::Loading { cell } => signals::wait_for(format!("{} to be loaded", target(cell))),
            _ => {}
        }
    }

    /// Ends the display of trials.
    fn end_progress(&mut self) {
        if let Some(progress) = self.progress.take() {
            progress.finish();
            signals::wait_for("the run file to be written");
        }
        if let Some(why) = self.undecided.take() {
            self.output.note(&why);
        }
    }

    /// Reports on a run that has ended. Returns it, the cells as planned, and the exit code.
    pub(super) fn finish(
        mut self,
        ended: Result<Option<Run>, RunError>,
    ) -> (Option<Made>, Vec<CellRecord>, anyhow::Result<Exit>) {
        self.end_progress();
        let (run, error) = match ended {
            Ok(run) => (run, None),
            Err(RunError { error, partial }) => (partial.map(|run| *run), Some(error)),
        };
        let made = run.map(|run| Made { summary: report::analyse(&run, self.output), run });
        let reported = made.as_ref().map_or(Ok(exit::DONE), |made| self.report(made, error.is_some()));
        // What ended the run matters more than its report.
        (made, self.cells, error.map_or(reported, |error| Err(error.into())))
    }

    fn report(&self, made: &Made, failed: bool) -> anyhow::Result<Exit> {
        let Some(writer) = &self.writer else { return Ok(exit::DONE) };
        let (reported, run) = (self.write_report(made, writer), &made.run);
        if !failed {
            reported?;
        }
        let (name, complete) = (&run.header.run, run.is_complete());
        if self.output.json {
            let file = writer.path().file.display().to_string();
            self.output
                .event(&json!({ "event": "run-ends", "run": name, "file": file, "complete": complete }));
        } else if !self.is_claim() {
            self.output.hint(&format!("run: {name}"));
        }
        if complete || failed {
            return Ok(exit_of(run));
        }
        self.output.hint(&format!("stopped; 'kurabe run --resume {name}' continues at the next trial"));
        Ok(exit::INTERRUPTED)
    }

    /// Prints the report of a run, and writes its page, which a claim names itself.
    fn write_report(&self, made: &Made, writer: &Writer) -> anyhow::Result<()> {
        if made.run.trials.is_empty() {
            self.output.note("nothing was measured");
            return Ok(());
        }
        if self.job.is_none_or(|job| job.print) && !self.is_claim() {
            self.output.result(&report::terminal(&made.summary, self.output))?;
        }
        if self.html {
            let path = writer.path().folder.join("report.html");
            write_private(&path, html::render(&made.summary, &html::Options::default()).as_bytes())?;
            if !self.is_claim() {
                self.output.hint(&format!("report: {}", path.display()));
            }
        }
        Ok(())
    }
}

impl Listener for Session<'_> {
    fn event(&mut self, event: Event<'_>) -> Result<()> {
        if let Some(note) = self.lateness.note(&event) {
            self.output.note(&note);
        }
        self.announce_what_a_stop_waits_for(&event);
        match &event {
            Event::Note { text } => self.output.note(text),
            Event::Warning { text } => self.output.warning(text),
            Event::Planned { plan, fit, targets } => {
                self.lateness = Lateness::new(plan, *fit);
                self.show_plan(plan, *fit, targets)?;
            }
            Event::Resumed { header, resumption } => {
                self.writer.as_mut().map_or(Ok(()), |writer| writer.resumed(resumption))?;
                self.begin(&header.run, header);
            }
            Event::TrialEnds { record } => {
                self.writer.as_mut().map_or(Ok(()), |writer| writer.trial(record))?;
                if record.rerun_reason.is_none() {
                    self.pauses.after_trial();
                }
            }
            Event::Replanned { plan, .. } => {
                self.writer.as_mut().map_or(Ok(()), |writer| writer.replanned(plan))?;
            }
            Event::Undecided { why } => self.undecided = Some((*why).to_owned()),
            Event::RunEnds { end } => {
                self.end_progress();
                self.writer.as_mut().map_or(Ok(()), |writer| writer.end(end))?;
            }
            _ => {}
        }
        if let Some(progress) = &mut self.progress {
            progress.show(&event);
        }
        Ok(())
    }

    fn start(&mut self, plan: &mut Plan, fit: Option<&Fit>, targets: &[Target]) -> Result<Start> {
        let Some(job) = self.job else { return Ok(Start::Measure { warnings: Vec::new() }) };
        if let Some(expected) = long(plan, fit).filter(|_| !job.may_be_long && !job.dry) {
            self.output.confirm(&format!("the run is expected to take {}", units::time(expected)))?;
        }
        if job.dry {
            let unknown = targets.iter().filter(|target| !target.is_described());
            let unknown: Vec<&str> = unknown.map(|target| target.name.as_str()).collect();
            if !unknown.is_empty() {
                let names = unknown.join(", ");
                self.output.note(&format!("not started, so that its limits are not checked: {names}"));
            }
            return Ok(Start::PlanOnly);
        }
        let mut found = kurabe_observe::disturbances(&std::env::temp_dir());
        found.extend(warnings(plan, targets));
        for warning in &found {
            self.output.warning(warning);
        }
        let lines = self.cpu_partition.as_ref().map_or_else(Vec::new, |cpus| scattered(cpus, targets));
        for line in lines.into_iter().chain(unleased(plan, targets)).chain(own_caches(plan, targets)) {
            self.output.note(&line);
        }
        Ok(Start::Measure { warnings: found })
    }

    fn begins(&mut self, header: &RunHeader) -> Result<String> {
        let Some(job) = self.job else { return Ok(header.run.clone()) };
        let writer = self.writer.insert(job.store.create(header)?);
        let name = writer.name().to_owned();
        self.begin(&name, header);
        Ok(name)
    }

    fn is_decided(&mut self, run: &Run) -> bool {
        match self.stop_rule() {
            StopRule::Report => {
                let info = registry::of(&run.header.spec).ok().map(|experiment| experiment.info);
                let verdicts = analyse(run, info).verdicts;
                verdicts.iter().all(|verdict| !verdict.primary || verdict.conclusive)
            }
            StopRule::Claim(is_decided) => is_decided(run),
        }
    }
}

/// Tells once, after the first rounds, that a run takes longer than was announced.
struct Lateness {
    /// `None`: it was told, or need not be.
    announced: Option<Duration>,
    /// The first round whose trials take what those of later ones do.
    from_round: u32,
    began: Instant,
}

impl Lateness {
    /// Lateness of a run with this plan.
    fn new(plan: &Plan, fit: Option<&Fit>) -> Self {
        let announced = fit.map(|fit| fit.expected).filter(|_| plan.spec.until.is_none());
        // Interleaved trials take longer than those of the first round.
        let from_round = if plan.spec.slice_ns.is_some() { 2 } else { 1 };
        Self { announced, from_round, began: Instant::now() }
    }

    fn note(&mut self, event: &Event<'_>) -> Option<String> {
        let announced = self.announced?;
        let note = match event {
            Event::Replanned { plan, planned, expected } => {
                Some(given_up(*plan, *planned, *expected, announced))
            }
            Event::TrialBegins { round, left: Some(left), .. } if *round == self.from_round => {
                longer_than_planned(self.began.elapsed() + *left, announced)
            }
            _ => None,
        };
        if note.is_some() {
            self.announced = None;
        }
        note
    }
}

/// The exit code of a complete run.
fn exit_of(run: &Run) -> Exit {
    // A trial that was repeated counts with its last outcome.
    let last: BTreeMap<_, _> = run
        .trials
        .iter()
        .map(|trial| ((trial.round, trial.cell, &trial.operation), &trial.outcome))
        .collect();
    let failed = last.values().any(|outcome| matches!(outcome, Outcome::Failed { .. }));
    let cells = &run.header.cells;
    let unmeasured = (0..run.header.targets.len()).any(|target| {
        cells.iter().filter(|cell| cell.target == target).all(|cell| cell.unavailable.is_some())
    });
    if failed || unmeasured { exit::FAILED_CELLS } else { exit::DONE }
}

/// The variable that asks for pauses: `3:FILE` makes `FILE.waits` after the third trial that counts, and waits until `FILE` exists or the
/// run is stopped; several are separated by commas. Only builds with debug assertions read it.
const PAUSE: &str = "KURABE_PAUSE";
/// The interval of looking for the file.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// Pauses after trials, for tests that kill or interrupt something while a run goes on.
pub(super) struct Pauses {
    /// The trials so far.
    trials: u64,
    /// After which trial, and until which file exists.
    asked: Vec<(u64, PathBuf)>,
}

impl Pauses {
    /// The pauses that are asked for.
    pub(super) fn asked_for() -> Self {
        let text = if cfg!(debug_assertions) { std::env::var(PAUSE).ok() } else { None };
        let parse = |one: &str| {
            let (trial, file) = one.split_once(':')?;
            Some((trial.parse().ok()?, PathBuf::from(file)))
        };
        Self { trials: 0, asked: text.iter().flat_map(|text| text.split(',')).filter_map(parse).collect() }
    }

    /// Counts a trial, and waits if it is one of those.
    pub(super) fn after_trial(&mut self) {
        self.trials += 1;
        for (_, file) in self.asked.iter().filter(|(trial, _)| *trial == self.trials) {
            // Who cannot be told does not let the run go on either, which fails the test.
            let _ = std::fs::write(file.with_extension("waits"), "");
            while !file.exists() && !signals::stopped() {
                std::thread::sleep(ASK_EVERY);
            }
        }
    }
}
