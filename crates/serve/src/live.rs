//! Running trials, as server-sent events.
//!
//! Events of a run come from its run file, which gets a line after each trial; those of a job also from its progress,
//! which has the rate within a trial. Both are files, so that several people may look at once and a restart of the page
//! loses nothing.

use crate::failure::{Answer, blocking};
use crate::jobs::Job;
use crate::{Shared, page, runs};
use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use kurabe_core::run::{Measurement, Outcome, Run, TrialRecord};
use kurabe_record::{Entry, RunPath, RunState};
use maud::{Markup, html};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The interval at which files are looked at.
const LOOK: Duration = Duration::from_millis(400);
/// The most trials in the log of a page, the newest ones.
const LOG: usize = 40;

/// A trial for the log.
fn trial(run: &Run, record: &TrialRecord) -> Value {
    let cell = run.header.cells.get(record.cell);
    let target = cell.and_then(|cell| run.header.targets.get(cell.target)).map(|target| target.name.clone());
    let axes = cell.map(|cell| {
        let varies = |name: &str| run.header.spec.axes.get(name).is_none_or(|values| values.len() > 1);
        let shown = cell
            .axes
            .values()
            .iter()
            .filter(|(name, _)| varies(name))
            .map(|(name, value)| format!("{name} {value}"));
        let control = cell.aa_control.then(|| "A/A control".to_owned());
        shown.chain(control).collect::<Vec<_>>().join(", ")
    });
    let mut object =
        json!({ "round": record.round + 1, "target": target, "axes": axes, "operation": record.operation });
    match &record.outcome {
        Outcome::Measured(measured) => {
            object["rate"] = json!(measured.ops_per_second());
            let times = measured.open.as_ref().map_or(&measured.service, |open| &open.response);
            let time = |q: f64| times.quantile(q).map(page::nanos);
            object["p50"] = json!(time(0.5));
            object["p99"] = json!(time(0.99));
            let (client, server) = cpus(measured);
            object["client_cpu"] = json!(client);
            object["server_cpu"] = json!(server);
            object["rerun"] = json!(record.rerun_reason);
        }
        Outcome::Failed { reason, .. } => object["failed"] = json!(reason),
    }
    object
}

/// The processors that client and server used in a trial; `None` if not observed.
fn cpus(measured: &Measurement) -> (Option<f64>, Option<f64>) {
    let Some(observed) = &measured.observed else { return (None, None) };
    let wall = observed.wall_ns.max(1) as f64;
    let server = observed.server_seen().map(|server| server.cpu_ns as f64 / wall);
    (Some(observed.client.cpu_ns as f64 / wall), server)
}

/// The live part of a run's page: the newest trials.
pub(crate) fn panel(url: &str, running: bool, run: &Run) -> Markup {
    html! {
        section id="live" data-events=[running.then_some(url)] {
            @if running { (figures()) }
            h2 { "Trials" }
            (log(run))
        }
    }
}

/// The live part of a job's page.
pub(crate) fn job_panel(url: &str, running: bool) -> Markup {
    html! {
        section id="live" data-events=[running.then_some(url)] { @if running { (figures()) } }
    }
}

fn figures() -> Markup {
    html! {
        div class="figures" aria-live="off" {
            div { b id="rate" { "–" } span { "operations/s" } }
            div { b id="p99" { "–" } span { "p99" } }
            div { b id="cpus" { "–" } span { "CPUs used: client, server" } }
            div { b id="done" { "–" } span { "trials" } }
            div { b id="left" { "–" } span { "left" } }
        }
        p id="doing" class="soft" role="status" {}
        svg id="rates" viewBox="0 0 600 120" preserveAspectRatio="none" role="img" aria-label="operations per second over time" {
            polyline points="" {}
        }
        noscript { p class="soft" { "Reload the page to see new trials." } }
    }
}

fn log(run: &Run) -> Markup {
    let text = |value: &Value| value.as_str().unwrap_or("–").to_owned();
    let number = |value: &Value, digits: usize| {
        value.as_f64().map_or_else(|| "–".to_owned(), |n| format!("{n:.digits$}"))
    };
    html! {
        div class="box" { table {
            thead { tr {
                th class="num" { "round" } th { "target" } th { "cell" } th { "operation" } th class="num" { "ops/s" }
                th class="num" { "p50" } th class="num" { "p99" } th class="num" { "client CPUs" } th class="num" { "server CPUs" }
            } }
            tbody id="log" {
                @for record in run.trials.iter().rev().take(LOG) {
                    @let trial = trial(run, record);
                    tr {
                        td class="num" { (trial["round"]) } td { (text(&trial["target"])) } td { (text(&trial["axes"])) }
                        td { (text(&trial["operation"])) }
                        @if let Some(reason) = trial["failed"].as_str() {
                            td class="wrap failed" colspan="5" { (reason) }
                        } @else {
                            td class="num" { (number(&trial["rate"], 0)) }
                            td class="num" { (text(&trial["p50"])) } td class="num" { (text(&trial["p99"])) }
                            td class="num" { (number(&trial["client_cpu"], 2)) }
                            td class="num" { (number(&trial["server_cpu"], 2)) }
                        }
                    }
                }
            }
        } }
    }
}

type Events = Sse<
    axum::response::sse::KeepAliveStream<
        std::pin::Pin<Box<dyn Stream<Item = Result<Event, Infallible>> + Send>>,
    >,
>;

fn event(kind: &str, data: &Value) -> Event {
    Event::default().event(kind).data(data.to_string())
}

/// Sends what `next` finds, until it says that there will be no more.
fn events<W, F>(watch: W, next: F) -> Events
where
    W: Send + 'static,
    F: Fn(&mut W) -> Found + Send + Sync + Copy + 'static,
{
    let all = stream::unfold((Some(watch), VecDeque::new()), move |(mut watch, mut queue)| async move {
        loop {
            if let Some(event) = queue.pop_front() {
                return Some((Ok(event), (watch, queue)));
            }
            let mut looking = watch.take()?;
            // Files are read beside the thread that answers.
            let (found, looked) =
                tokio::task::spawn_blocking(move || (next(&mut looking), looking)).await.ok()?;
            let waits = found.events.is_empty();
            queue.extend(found.events);
            if !found.ended {
                watch = Some(looked);
                if waits {
                    tokio::time::sleep(LOOK).await;
                }
            }
        }
    });
    let all: std::pin::Pin<Box<dyn Stream<Item = Result<Event, Infallible>> + Send>> = Box::pin(all);
    Sse::new(all).keep_alive(KeepAlive::default())
}

/// What a look at the files found.
struct Found {
    events: Vec<Event>,
    ended: bool,
}

/// A run that is looked at.
struct WatchedRun {
    shared: Arc<Shared>,
    path: RunPath,
    length: u64,
    trials: usize,
    /// The job that makes it, for the rate within a trial.
    job: Option<WatchedJob>,
}

pub(crate) async fn run(State(shared): State<Arc<Shared>>, Path(name): Path<String>) -> Answer<Events> {
    let found = Arc::clone(&shared);
    let (path, trials) = blocking(move || {
        let path = runs::find(&found, &name)?;
        let trials = kurabe_record::read(&path)?.run.trials.len();
        Ok((path, trials))
    })
    .await?;
    let job = shared.jobs.of_run(&path.name).map(|job| {
        let read = fs::metadata(job.progress()).map_or(0, |file| file.len());
        WatchedJob { shared: Arc::clone(&shared), job, read }
    });
    // The page has the trials so far.
    let watched = WatchedRun { shared, path, length: 0, trials: trials.saturating_sub(1), job };
    Ok(events(watched, look_at_run))
}

fn look_at_run(watched: &mut WatchedRun) -> Found {
    let state = state(watched);
    let ended = state != Some(RunState::Running) || watched.shared.stop.load(Ordering::SeqCst);
    let length = fs::metadata(&watched.path.file).map_or(0, |file| file.len());
    let mut events = Vec::new();
    if let Some(job) = &mut watched.job {
        // The ends of trials come from the run file, with more.
        let wanted = |event: &Value| {
            matches!(event["event"].as_str(), Some("trial-begins" | "rate" | "loading" | "restarting"))
        };
        events
            .extend(progress(job).iter().filter(|event| wanted(event)).map(|value| event("progress", value)));
    }
    if length != watched.length {
        watched.length = length;
        if let Ok(recorded) = kurabe_record::read(&watched.path) {
            let run = recorded.run;
            events.extend(
                run.trials.iter().skip(watched.trials).map(|record| event("trial", &trial(&run, record))),
            );
            watched.trials = run.trials.len();
        }
    }
    if ended {
        events.push(event("end", &json!({ "path": format!("/runs/{}", runs::in_url(&watched.path.name)) })));
    }
    Found { events, ended }
}

fn state(watched: &WatchedRun) -> Option<RunState> {
    let entries = watched.shared.store.list().ok()?;
    entries.into_iter().find_map(|entry| match entry {
        Entry::Run(run) if run.path == watched.path => Some(run.state),
        _ => None,
    })
}

/// A job that is looked at.
struct WatchedJob {
    shared: Arc<Shared>,
    job: Job,
    read: u64,
}

pub(crate) async fn job(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Answer<Events> {
    let job = shared.jobs.find(&id)?;
    Ok(events(WatchedJob { shared, job, read: 0 }, look_at_job))
}

fn look_at_job(watched: &mut WatchedJob) -> Found {
    // Before the file, so that nothing that was written before the end is missed.
    let running = watched.job.is_running();
    let mut events: Vec<Event> = progress(watched).iter().map(|value| event("progress", value)).collect();
    let ended = !running || watched.shared.stop.load(Ordering::SeqCst);
    if ended {
        let path = match watched.job.run() {
            Some(run) => format!("/runs/{}", runs::in_url(&run)),
            None => format!("/jobs/{}", watched.job.id),
        };
        events.push(event("end", &json!({ "path": path })));
    }
    Found { events, ended }
}

/// The events that were added to the progress.
fn progress(watched: &mut WatchedJob) -> Vec<Value> {
    let lines = new_lines(watched).unwrap_or_default();
    lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The complete lines that were added to it.
fn new_lines(watched: &mut WatchedJob) -> std::io::Result<Vec<String>> {
    let mut file = File::open(watched.job.progress())?;
    file.seek(SeekFrom::Start(watched.read))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') else { return Ok(Vec::new()) };
    bytes.truncate(last + 1);
    watched.read += bytes.len() as u64;
    Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}
