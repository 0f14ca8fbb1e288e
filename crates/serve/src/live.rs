//! Running trials, as server-sent events.
//!
//! Events of a run come from its run file, which gets a line after each trial; those of a job also from its progress,
//! which has the rate within a trial. Both are files, so that several people may look at once and a restart of the page
//! loses nothing.

use crate::answer::Response;
use crate::call::Call;
use crate::follow::{Follow, LOOK, lock};
use crate::jobs::Job;
use crate::shared::Shared;
use crate::{page, runs};
use http_body_util::Either;
use http_body_util::channel::Channel;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use kurabe_core::Result;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The most trials before the first event whose course a page gets, the newest ones.
const PAST: usize = 120;

/// How long a stream may be silent: a proxy keeps the connection, and one that its client has left is noticed.
const SILENCE: Duration = Duration::from_secs(15);

/// An event, as the HTML standard writes it. JSON has no line breaks.
fn event(kind: &str, data: &str) -> String {
    format!("event: {kind}\ndata: {data}\n\n")
}

/// Sends what `next` finds, until it says that there will be no more, or the client has gone.
fn events<W: Send + 'static>(watch: W, next: fn(&mut W) -> Found) -> Response {
    let (mut sender, body) = Channel::new(1);
    tokio::spawn(async move {
        let (mut watch, mut sent) = (Some(watch), Instant::now());
        while let Some(mut looking) = watch.take() {
            // Files are read beside the thread that answers.
            let looked = tokio::task::spawn_blocking(move || (next(&mut looking), looking)).await;
            let Ok((found, looking)) = looked else { return };
            let mut text = found.events.concat();
            if text.is_empty() && sent.elapsed() >= SILENCE {
                text.push_str(":\n\n");
            }
            let waits = found.events.is_empty() && !found.ended;
            if !text.is_empty() {
                if sender.send_data(Bytes::from(text)).await.is_err() {
                    return;
                }
                sent = Instant::now();
            }
            watch = (!found.ended).then_some(looking);
            if waits {
                tokio::time::sleep(LOOK).await;
            }
        }
    });
    let mut answer = Response::new(Either::Right(body));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

/// What a look at the files found.
struct Found {
    events: Vec<String>,
    ended: bool,
}

/// A run that is looked at.
struct WatchedRun {
    shared: Arc<Shared>,
    follow: Arc<Mutex<Follow>>,
    /// The trials that the page has.
    trials: usize,
    /// Whether the page has the courses of the trials before.
    past_sent: bool,
    /// The job that makes it, for the rate within a trial.
    job: Option<WatchedJob>,
}

pub(crate) fn run(Call { shared, name, .. }: &Call) -> Result<Response> {
    let path = runs::find(shared, name)?;
    let follow = shared.followed.run(&path)?;
    // The page has the trials so far.
    let trials = lock(&follow).count().saturating_sub(1);
    let job = shared.jobs.of_run(&path.name).map(|job| {
        let read = fs::metadata(job.progress()).map_or(0, |file| file.len());
        WatchedJob { shared: Arc::clone(shared), job, read }
    });
    Ok(events(WatchedRun { shared: Arc::clone(shared), follow, trials, past_sent: false, job }, look_at_run))
}

fn look_at_run(watched: &mut WatchedRun) -> Found {
    let mut events = Vec::new();
    if let Some(job) = &mut watched.job {
        // The ends of trials come from the run file, with more.
        let wanted = |event: &Value| {
            matches!(
                event["event"].as_str(),
                Some("trial-begins" | "rate" | "resources" | "loading" | "restarting")
            )
        };
        events.extend(
            progress(job)
                .iter()
                .filter(|event| wanted(event))
                .map(|value| event("progress", &value.to_string())),
        );
    }
    let mut follow = lock(&watched.follow);
    follow.look();
    let ended = !follow.is_running() || watched.shared.stop.load(Ordering::SeqCst);
    if !watched.past_sent {
        let before = follow.since(0).count().saturating_sub(follow.since(watched.trials).count());
        let mut past: Vec<&str> = follow.since(0).take(before).map(|trial| &**trial).collect();
        past.reverse();
        past.truncate(PAST);
        events.push(event("past", &format!("[{}]", past.join(","))));
        watched.past_sent = true;
    }
    events.extend(follow.since(watched.trials).map(|trial| event("trial", trial)));
    watched.trials = follow.count();
    if ended {
        let path = format!("/runs/{}", page::in_url(&follow.path().name));
        events.push(event("end", &json!({ "path": path }).to_string()));
    }
    Found { events, ended }
}

/// A job that is looked at.
struct WatchedJob {
    shared: Arc<Shared>,
    job: Job,
    read: u64,
}

pub(crate) fn job(Call { shared, name, .. }: &Call) -> Result<Response> {
    let job = shared.jobs.find(name)?;
    Ok(events(WatchedJob { shared: Arc::clone(shared), job, read: 0 }, look_at_job))
}

fn look_at_job(watched: &mut WatchedJob) -> Found {
    // Before the file, so that nothing that was written before the end is missed.
    let running = watched.job.is_running();
    let mut events: Vec<String> =
        progress(watched).iter().map(|value| event("progress", &value.to_string())).collect();
    let ended = !running || watched.shared.stop.load(Ordering::SeqCst);
    if ended {
        let path = match watched.job.run() {
            Some(run) => format!("/runs/{}", page::in_url(&run)),
            None => format!("/jobs/{}", watched.job.id),
        };
        events.push(event("end", &json!({ "path": path }).to_string()));
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
