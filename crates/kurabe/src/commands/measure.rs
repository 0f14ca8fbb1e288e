//! Measures a planned run, records each trial, and reports.

use super::fleet::Agents;
use super::pause::Pauses;
use super::planned::{given_up, longer_than_planned};
use super::report;
use super::stopping_rule::{StopRule, StoppingRule};
use crate::exit::{self, Exit};
use crate::output::Output;
use crate::progress::Progress;
use crate::signals;
use anyhow::Result;
use kurabe_core::observation::Endpoint;
use kurabe_core::run::{Outcome, Run, RunEnd, RunHeader, TrialRecord};
use kurabe_engine::fleet::Fleet;
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::fixture::Fixture;
use kurabe_engine::run::event::Event;
use kurabe_engine::run::runner::{InterferenceCheck, Runner};
use kurabe_observe::{Live, Monitor};
use kurabe_record::Writer;
use kurabe_targets::Opened;
use kurabe_testbed::testing;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a new run and a resumed run have in common.
pub(super) struct RunContext<'a> {
    pub(super) plan: &'a Plan,
    pub(super) opened: &'a Opened,
    /// The machines that run the clients; `None`: this program does.
    pub(super) agents: Option<&'a Agents>,
    pub(super) fixtures: Vec<Option<Fixture>>,
    pub(super) writer: Writer,
    pub(super) cancel: &'a AtomicBool,
    /// The time that was announced.
    pub(super) announced: Option<Duration>,
    /// The time that the run keeps to, if the user did not set the number of rounds.
    pub(super) budget: Option<Duration>,
    pub(super) html: bool,
    pub(super) stop_rule: StopRule<'a>,
    /// Whether the report is printed.
    pub(super) print: bool,
    pub(super) output: &'a Output,
}

/// Tells programs the run's name and file, among the events of its progress.
fn print_beginning(header: &RunHeader, writer: &Writer, output: &Output) {
    if output.json {
        let file = writer.path().file.display().to_string();
        output.event(&json!({ "event": "run-begins", "run": header.run, "file": file }));
    }
}

/// Tells where the run is.
fn print_end(run: &Run, writer: &Writer, complete: bool, is_claim: bool, output: &Output) {
    if output.json {
        let (run, file) = (&run.header.run, writer.path().file.display().to_string());
        output.event(&json!({ "event": "run-ends", "run": run, "file": file, "complete": complete }));
    } else if !is_claim {
        output.hint(&format!("run: {}", run.header.run));
    }
}

/// Tells what is waited for if the user stops the run now.
fn announce_what_a_stop_waits_for(event: &Event<'_>, header: &RunHeader) {
    match event {
        Event::TrialBegins { cell, operation, .. } => {
            let target = &header.targets[cell.target].name;
            signals::wait_for(format!("{operation} on {target} to end"));
        }
        Event::Restarting => signals::wait_for("the throwaway servers to restart"),
        Event::Loading { cell } => {
            let target = &header.targets[cell.target].name;
            signals::wait_for(format!("{target} to be loaded"));
        }
        Event::TrialEnds { .. }
        | Event::AgentLost { .. }
        | Event::Replanned { .. }
        | Event::RoundsEnd { .. } => {}
    }
}

/// What observes servers: this host, and the agents of the hosts that have one. Warns of an agent that does not answer.
fn monitor(opened: &Opened, output: Output) -> Monitor {
    let mut monitor = Monitor::new();
    for (server, remote) in &opened.observers {
        if let Endpoint::Tcp { host, port } = server
            && let Err(why) = remote.try_out(host, *port)
        {
            output.warning(&format!("not observed: {why}"));
        }
        monitor.use_agent(server.clone(), remote.clone());
    }
    monitor
}

/// What shows the use of this machine, of the client and of the servers on this machine while the run goes on.
fn live(opened: &Opened) -> Live {
    let drivers = opened.targets.iter().flat_map(|target| {
        std::iter::once(&target.driver).chain(target.second.as_ref().map(|second| &second.driver))
    });
    Live::new(drivers.map(|driver| driver.endpoint()).collect())
}

/// Tells once, after the first rounds, that a run takes longer than was announced.
struct Lateness<'a> {
    /// `None`: it was told, or need not be.
    announced: Option<Duration>,
    began: Instant,
    output: &'a Output,
}

impl Lateness<'_> {
    fn note(&mut self, event: &Event<'_>, header: &RunHeader) {
        // Interleaved trials take longer than those of the first round.
        let rounds = if header.spec.slice_ns.is_some() { 2 } else { 1 };
        let Some(announced) = self.announced else { return };
        let note = match event {
            Event::Replanned { plan, planned, expected } => {
                Some(given_up(*plan, *planned, *expected, announced))
            }
            Event::TrialBegins { round, left: Some(left), .. } if *round == rounds => {
                longer_than_planned(self.began.elapsed() + *left, announced)
            }
            _ => None,
        };
        if let Some(note) = note {
            self.announced = None;
            self.output.note(&note);
        }
    }
}

/// Which trials are repeated. What tests disturb of each other need not be.
fn interference_check() -> Option<InterferenceCheck> {
    (!testing::small_servers()).then_some(kurabe_report::attribution::disturbed)
}

/// Prints the report of a run, and writes its page; `page`: whether it is of a claim, which names the page itself.
fn write_report(
    run: &Run,
    writer: &Writer,
    is_printed: bool,
    page: Option<bool>,
    output: &Output,
) -> Result<()> {
    if run.trials.is_empty() {
        output.note("nothing was measured");
        return Ok(());
    }
    if is_printed {
        output.result(&report::terminal(run, output))?;
    }
    if let Some(is_claim) = page {
        let path = report::write_html(run, writer.path(), output.language)?;
        if !is_claim {
            output.hint(&format!("report: {}", path.display()));
        }
    }
    Ok(())
}

pub(super) fn measure(context: RunContext<'_>, run: &mut Run) -> Result<Exit> {
    let RunContext {
        plan,
        opened,
        agents,
        fixtures,
        mut writer,
        cancel,
        announced,
        budget,
        html,
        stop_rule,
        print,
        output,
    } = context;
    // The answer to a claim has what there is to say of its run.
    let is_claim = matches!(stop_rule, StopRule::Claim(_));
    let header = &run.header;
    let completed = Arc::new(AtomicU64::new(0));
    let names = header.targets.iter().map(|target| target.name.clone()).collect();
    print_beginning(header, &writer, output);
    let resources = (output.json && agents.is_none()).then(|| live(opened));
    let mut progress =
        Progress::new(*output, &plan.axes, names, &header.cells, header.spec.rounds, &completed, resources);
    let earlier = run.trials.last().map_or(0, |trial| trial.at_ms);
    // The clock of a resumed run continues.
    let began = Instant::now().checked_sub(Duration::from_millis(earlier)).unwrap_or_else(Instant::now);
    let clock = if run.trials.is_empty() { since(header.began) } else { began };
    let observer = monitor(opened, *output);
    let mut ending = StoppingRule::new(run, began, stop_rule);
    let runner = Runner {
        plan,
        run: &header.run,
        targets: &opened.targets,
        began: clock,
        cancel,
        progress: &completed,
        observer: Some(&observer),
        interference_check: interference_check(),
        budget,
        cpu_partition: opened.cpu_partition.as_ref(),
        fleet: agents.map(|agents| agents as &dyn Fleet),
    };
    let (mut made, mut pauses) = (Vec::<TrialRecord>::new(), Pauses::asked_for());
    let mut lateness =
        Lateness { announced: announced.filter(|_| header.spec.until.is_none()), began, output };
    let mut replanned = None;
    let ended = runner.run(fixtures, &run.trials, &mut |event| {
        lateness.note(&event, header);
        if let Event::Replanned { plan, .. } = &event {
            writer.replanned(plan)?;
            replanned = Some(*plan);
        }
        if let Event::TrialEnds { record } = &event {
            writer.trial(record)?;
            made.push((*record).clone());
            if record.rerun_reason.is_none() {
                pauses.after_trial();
            }
        }
        announce_what_a_stop_waits_for(&event, header);
        if let Event::RoundsEnd { rounds, further } = event {
            *further = ending.further(rounds, &made);
        } else {
            progress.show(&event);
        }
        Ok(())
    });
    progress.finish();
    signals::wait_for("the run file to be written");
    if let Some(why) = ending.why() {
        output.note(why);
    }
    run.trials.extend(made);
    if let Some(plan) = replanned {
        run.replan(plan);
    }
    let complete = matches!(ended, Ok(true));
    if ended.is_ok() {
        let end = RunEnd { at_ms: clock.elapsed().as_millis() as u64, complete };
        writer.end(&end)?;
        run.end = Some(end);
    }
    let is_printed = print && !is_claim;
    let reported = write_report(run, &writer, is_printed, html.then_some(is_claim), output);
    if ended.is_ok() {
        reported?;
    }
    print_end(run, &writer, complete, is_claim, output);
    ended?;
    if !complete {
        output
            .hint(&format!("stopped; 'kurabe run --resume {}' continues at the next trial", run.header.run));
        return Ok(exit::INTERRUPTED);
    }
    Ok(exit_of(run))
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

/// The instant of a second since 1970. Times of trials are since the second in which their run began, so that others can
/// place them beside their own.
fn since(second: u64) -> Instant {
    let past = SystemTime::now().duration_since(UNIX_EPOCH + Duration::from_secs(second)).unwrap_or_default();
    Instant::now().checked_sub(past).unwrap_or_else(Instant::now)
}
