//! A relay that lies once in each trial, between the program and a real server.
//!
//! Survived: the trial with a lie is recorded as failed, or the run exits with a documented code without it. `control`
//! tells no lie: every trial must be measured. A lie counts only if the relay applied it. `load-drop` and `load-flip`
//! lie while the store is filled: then any trial may fail, but one must.

use crate::app::App;
use crate::case::{Case, Outcome};
use crate::context::{Context, words};
use crate::process::{self, Ran};
use crate::random::Random;
use crate::relay::lie::Lie;
use crate::relay::{Known, Plan, Relay};
use crate::runfile::{self, Trial};
use crate::server::{ENGINES, Server};
use std::time::Duration;

/// A workload, and the lies that apply to it.
struct Workload {
    name: &'static str,
    args: &'static str,
    /// The axis of the cells: a cell that failed once is not measured again, so that each lie needs a separate cell.
    axis: Axis,
    writes: bool,
}

/// The difference between cells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    Clients,
    Payload,
}

const WORKLOADS: [Workload; 6] = [
    Workload { name: "point-write", args: "run point-write", axis: Axis::Clients, writes: true },
    Workload { name: "point-read", args: "run point-read", axis: Axis::Clients, writes: false },
    Workload {
        name: "session write",
        args: "run session --operation write --layout blob --compress none",
        axis: Axis::Payload,
        writes: true,
    },
    Workload {
        name: "session read",
        args: "run session --operation read --layout blob --compress none",
        axis: Axis::Payload,
        writes: false,
    },
    Workload { name: "kv write", args: "run kv --operation write", axis: Axis::Clients, writes: true },
    Workload { name: "kv read", args: "run kv --operation read", axis: Axis::Clients, writes: false },
];

/// The web tier; the relay is between it and its client.
const APP: &str = "app";
/// The maximum number of trials of one run: a cell each, and the A/A control.
const BATCH: usize = 25;
/// The maximum number of repetitions of a run with too few lies.
const AGAIN: usize = 3;
/// The time limit of an answer with lies: a lie that keeps a lock delays each trial after it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The same if a request is delayed, so that its connection does not end: each such trial waits for it.
const TIMEOUT_LATE: Duration = Duration::from_secs(3);
/// The time limit of a run, to which each trial adds twice the time limit of an answer.
const LIMIT: Duration = Duration::from_secs(90);

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for engine in ENGINES.into_iter().chain([APP]) {
        for (lie, name) in Lie::ALL {
            if suited(engine, lie).is_empty() {
                continue;
            }
            let attack = move |context: &Context, seed, tries| tell(context, engine, lie, seed, tries);
            cases.push(case(engine, name, BATCH, attack));
        }
        let attack = move |context: &Context, seed, tries| control(context, engine, seed, tries);
        cases.push(case(engine, "control", BATCH, attack));
        // The application fills its database itself.
        let loads = [("load-drop", Lie::Drop), ("load-flip", Lie::FlipRequest)];
        for (kind, lie) in loads.into_iter().filter(|_| engine != APP) {
            cases.push(case(engine, kind, 1, move |context, seed, _| load(context, engine, lie, seed)));
        }
    }
    cases
}

fn case(
    engine: &str,
    kind: &str,
    batch: usize,
    attack: impl Fn(&Context, u64, usize) -> Result<Vec<Outcome>, String> + Send + Sync + 'static,
) -> Case {
    Case::new("liar", kind, engine, batch, move |context, seed, tries| {
        attack(context, seed, tries).unwrap_or_else(|why| vec![Outcome::Skipped(why)])
    })
}

/// The result of a run through the relay.
struct Lied {
    ran: Ran,
    trials: Vec<Trial>,
    told: Vec<crate::relay::Told>,
    seen: Vec<(String, u64)>,
    known: Known,
    what: String,
}

/// The parameters of a run with lies: whether they begin at once, known answers, seed and trials.
struct How {
    at_once: bool,
    known: Known,
    seed: u64,
    trials: usize,
}

impl How {
    fn new(seed: u64, trials: usize) -> Self {
        Self { at_once: false, known: Known::new(), seed, trials }
    }
}

fn run(context: &Context, engine: &str, lie: Option<Lie>, of: &Workload, how: How) -> Result<Lied, String> {
    let How { at_once, known, seed, trials } = how;
    let place = context.place()?;
    let app = if engine == APP { Some(App::start(&place, "sqlite:?synchronous=off")?) } else { None };
    let server = if app.is_some() { None } else { Some(context.server(engine)?) };
    let _alone = server.map(Server::alone);
    if let Some(server) = server {
        server.empty();
    }
    let (scheme, port) = match (&app, server) {
        (Some(app), _) => ("http", app.port),
        (None, Some(server)) => (server.scheme(), server.port),
        (None, None) => return Err("no target".to_owned()),
    };
    let plan = Plan { scheme: scheme.to_owned(), port, lie, at_once, seed, known };
    let relay = Relay::start(plan, &place.runs()).map_err(|error| error.to_string())?;
    let through = |server: &Server| server.through(relay.port());
    let mut url = server.map_or_else(|| format!("http://127.0.0.1:{}", relay.port()), through);
    if engine == "mongodb" {
        // A late write creates its collection again, which then has no owner.
        url = url.replacen("/kurabe?", &format!("/kurabe{}?", seed % 1_000), 1);
    }
    let seed = seed % 1_000_000;
    let cells = trials.saturating_sub(1).max(1);
    let (axis, values): (_, Vec<usize>) = match of.axis {
        Axis::Clients => ("--clients", (1..=cells).collect()),
        Axis::Payload => ("--payload", (0..cells).map(|cell| 1_000 + 16 * cell).collect()),
    };
    let values = values.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    // The substitutes for MongoDB and CouchDB take milliseconds for each request.
    let slow = matches!(engine, "mongodb" | "couchdb");
    let (requests, records) = match (slow, lie) {
        (false, _) => ("240", "600"),
        // Most records are read again in each trial: an older version needs an earlier answer.
        (true, Some(Lie::Older)) => ("60", "80"),
        (true, _) => ("60", "120"),
    };
    let timeout = if lie == Some(Lie::Late) { TIMEOUT_LATE } else { TIMEOUT };
    let limited = lie.map_or_else(String::new, |_| format!(" --timeout={}s", timeout.as_secs()));
    let sizes = format!("--requests {requests} --records {records} --seed {seed}");
    let command = format!("{} {url} {axis} {values} --rounds 1 {sizes} --no-html -q{limited}", of.args);
    let limit = LIMIT + 2 * timeout * trials as u32;
    let ran = process::run(&mut place.command(&words(&command)), limit)?;
    let what = of.name.to_owned();
    Ok(Lied {
        ran,
        trials: runfile::trials(&place.runs()),
        told: relay.told(),
        seen: relay.seen(),
        known: relay.known(),
        what,
    })
}

/// The workloads to which such a lie applies: those with such requests that compare the answer.
fn suited(engine: &str, lie: Lie) -> Vec<&'static Workload> {
    let of = |workload: &&Workload| match lie {
        // Requests for pages have no body to flip; the application answers a wrong key with an error.
        Lie::Drop | Lie::Late | Lie::FlipRequest if engine == APP => {
            workload.writes && lie != Lie::FlipRequest
        }
        Lie::Drop | Lie::Late | Lie::FlipRequest => workload.writes,
        // CouchDB's writes read the revision that they replace, and the server refuses a wrong one.
        Lie::OtherKey | Lie::FlipAnswer if engine == "couchdb" => !workload.writes,
        Lie::Older => workload.name == "point-write" && engine != "couchdb",
        Lie::OtherKey | Lie::FlipAnswer => !workload.writes || workload.name == "point-write",
        // An unexpected answer ends a connection of HTTP.
        Lie::AnswerTwice => engine != "couchdb",
        Lie::Twice => true,
    };
    workloads(engine).into_iter().filter(of).collect()
}

/// The workloads that a target serves.
fn workloads(engine: &str) -> Vec<&'static Workload> {
    WORKLOADS.iter().filter(|workload| engine != APP || workload.name.starts_with("kv")).collect()
}

fn tell(
    context: &Context,
    engine: &'static str,
    lie: Lie,
    seed: u64,
    tries: usize,
) -> Result<Vec<Outcome>, String> {
    let suited = suited(engine, lie);
    let mut random = Random::new(seed);
    let mut outcomes = Vec::new();
    let mut last = None;
    for attempt in 0..AGAIN {
        let workload = *random.pick(&suited);
        // An older version needs an earlier trial.
        let trials = (tries - outcomes.len()).max(if lie == Lie::Older { 3 } else { 2 });
        let lied =
            run(context, engine, Some(lie), workload, How::new(seed.wrapping_add(attempt as u64), trials))?;
        let hung = lied.ran.unclean(&[0, 3, 4, 5]);
        for told in &lied.told {
            let outcome = match lied.trials.get(told.trial) {
                Some(Trial::Measured) => Outcome::Failed(format!(
                    "{}: trial {} was lied to ({}) and has figures",
                    lied.what, told.trial, told.what
                )),
                _ => Outcome::of(hung.as_ref().map(|why| format!("{}: {why}", lied.what))),
            };
            outcomes.push(outcome);
        }
        if outcomes.len() >= tries {
            break;
        }
        last = Some(lied);
    }
    outcomes.truncate(tries);
    if outcomes.is_empty() {
        outcomes.extend(last.as_ref().map(untold));
    }
    Ok(outcomes)
}

/// The outcome of a run without a request to which the lie applies.
fn untold(lied: &Lied) -> Outcome {
    let seen = format!("{:?}", lied.seen).chars().take(300).collect::<String>();
    Outcome::Skipped(format!(
        "no request for the lie; {}, {} trials: {}; {seen}",
        lied.what,
        lied.trials.len(),
        lied.ran.tail()
    ))
}

fn control(context: &Context, engine: &'static str, seed: u64, tries: usize) -> Result<Vec<Outcome>, String> {
    let workload = *Random::new(seed).pick(&workloads(engine));
    let lied = run(context, engine, None, workload, How::new(seed, tries))?;
    let judge = |trial: &Trial| match trial {
        Trial::Failed(reason) => Outcome::Failed(format!("{}: no lie was told, and: {reason}", lied.what)),
        Trial::Measured => Outcome::Survived,
    };
    let mut outcomes: Vec<Outcome> = lied.trials.iter().map(judge).take(tries).collect();
    if outcomes.is_empty() {
        outcomes.push(Outcome::Failed(format!("{}: no trial came out: {}", lied.what, lied.ran.tail())));
    }
    Ok(outcomes)
}

fn load(context: &Context, engine: &'static str, lie: Lie, seed: u64) -> Result<Vec<Outcome>, String> {
    let reads: Vec<&Workload> = WORKLOADS.iter().filter(|workload| !workload.writes).collect();
    let workload = *Random::new(seed).pick(&reads);
    // Acknowledging a dropped request needs a known answer.
    let known = if lie == Lie::Drop {
        run(context, engine, None, workload, How::new(seed, 1))?.known
    } else {
        Known::new()
    };
    let lied = run(context, engine, Some(lie), workload, How { at_once: true, known, ..How::new(seed, 1) })?;
    if lied.told.is_empty() {
        return Ok(vec![untold(&lied)]);
    }
    let complaint = lied.ran.unclean(&[3, 4, 5]).or_else(|| {
        let first = lied.told.first().map(|told| told.trial);
        let all = lied.trials.iter().skip(first.unwrap_or(0)).all(|trial| *trial == Trial::Measured);
        all.then(|| format!("{}: every trial has figures", lied.what))
    });
    Ok(vec![Outcome::of(complaint)])
}
