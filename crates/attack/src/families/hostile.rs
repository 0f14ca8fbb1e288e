//! Shared code of families with a hostile relay in front of a real server.

use crate::case::Outcome;
use crate::context::{Context, words};
use crate::process::{self, Ran};
use crate::random::Random;
use crate::relay::hostile::{Hostile, How, Plan};
use crate::server::Server;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The documented default time limit of an answer.
const DEADLINE: Duration = Duration::from_secs(30);
/// The time limit of an answer if the attack sets a shorter one.
const SHORT_DEADLINE: Duration = Duration::from_secs(5);
/// The allowed growth of memory, in kilobytes.
pub const GROWTH_KB: u64 = 64 * 1024;

/// Commands that use a server: the words before and after the URL. The runs need the database exclusively.
const COMMANDS: [(&str, &str); 3] = [
    ("doctor", ""),
    ("run point-read", "--rounds 1 --requests 40 --records 20 --no-html -q --seed 1"),
    ("run point-write", "--rounds 1 --requests 40 --records 50 --no-html -q --seed 1"),
];

/// The number of a command: `doctor` (0), a run that reads (1), one that writes (2).
pub type Asking = usize;

/// The time limit of the program: it waits for one answer, and cleans up over connections that may be as slow. The
/// machine may be busy.
pub fn limit(deadline: Duration) -> Duration {
    2 * deadline + Duration::from_secs(20)
}

/// The time limit of an answer in a try: mostly the short one, so that many tries are possible.
pub fn deadline(random: &mut Random) -> Duration {
    if random.below(4) == 0 { DEADLINE } else { SHORT_DEADLINE }
}

/// The results of an undisturbed run: pieces of each connection, and its peak memory.
pub type Control = (Vec<usize>, u64);

static CONTROLS: Mutex<Option<HashMap<(String, Asking), Control>>> = Mutex::new(None);

/// The result of a hostile run.
pub struct Met {
    /// How the program ended.
    pub ran: Ran,
    /// Whether the relay became hostile.
    pub fired: bool,
    /// The peak memory of the undisturbed run, in kilobytes.
    pub control_kb: u64,
    /// What was done, for messages.
    pub what: String,
}

/// Runs one of the commands against the server, which becomes hostile at a random time.
///
/// # Errors
/// If the attack is impossible.
pub fn meet(
    context: &Context,
    server: &Server,
    random: &mut Random,
    deadline: Duration,
    how: How,
) -> Result<Met, String> {
    let asking = random.below(COMMANDS.len());
    let (command, _) = COMMANDS[asking];
    let (pieces, control_kb) = control(context, server, asking)?;
    let (connection, piece) = moment(&pieces, random);
    let _alone = (command != "doctor").then(|| server.alone());
    let what =
        format!("{command} of {}, connection {connection}, piece {piece}: {}", server.engine, short(&how));
    let plan = Plan { port: server.port, connection, piece, how };
    let (ran, relay) = run(context, server, asking, plan, deadline)?;
    Ok(Met { ran, fired: relay.fired(), control_kb, what })
}

/// The connection, and the piece of it, at which the relay becomes hostile.
pub fn moment(pieces: &[usize], random: &mut Random) -> (usize, usize) {
    let connection = random.below(pieces.len());
    let all = pieces.get(connection).copied().unwrap_or(1).max(1);
    // Half of them early, while connections are opened and statements prepared.
    (connection, if random.below(2) == 0 { random.below(all.min(6)) } else { random.below(all) })
}

/// Judges a run on a hostile server.
pub fn judge(met: &Met) -> Outcome {
    if !met.fired {
        return Outcome::Skipped("the run did not reach that piece".to_owned());
    }
    let complaint = met.ran.unclean(&[0, 3, 4]).or_else(|| {
        let grown = met.ran.peak_kb.saturating_sub(met.control_kb);
        if grown > GROWTH_KB {
            return Some(format!("its memory grew by {} MB", grown / 1024));
        }
        let errors = met.ran.errors();
        if met.ran.code == Some(3) && errors.is_empty() {
            return Some(format!("no error was shown: {}", met.ran.tail()));
        }
        let long = errors.iter().find(|error| error.len() > 2_000);
        long.map(|error| format!("an error of {} bytes", error.len()))
    });
    Outcome::of(complaint.map(|complaint| format!("{}: {complaint}", met.what)))
}

/// Runs the undisturbed command.
///
/// # Errors
/// If it does not succeed.
pub fn control(context: &Context, server: &Server, asking: Asking) -> Result<Control, String> {
    let key = (server.engine.clone(), asking);
    let controls = || CONTROLS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = controls().get_or_insert_default().get(&key).cloned();
    if let Some(known) = known {
        return Ok(known);
    }
    let _alone = server.alone();
    // A program that was killed may have left its lease.
    server.empty();
    let plan = Plan { port: server.port, connection: 0, piece: 0, how: How::Honest };
    let (ran, relay) = run(context, server, asking, plan, DEADLINE)?;
    if let Some(complaint) = ran.unclean(&[0]) {
        return Err(format!("the control of {}: {complaint}", server.engine));
    }
    let control = (relay.pieces(), ran.peak_kb);
    controls().get_or_insert_default().insert(key, control.clone());
    Ok(control)
}

fn run(
    context: &Context,
    server: &Server,
    asking: Asking,
    plan: Plan,
    deadline: Duration,
) -> Result<(Ran, Hostile), String> {
    let place = context.place()?;
    let relay = Hostile::start(plan).map_err(|error| error.to_string())?;
    let url = server.through(relay.port());
    let (before, behind) = COMMANDS[asking];
    let line = format!("{before} {url} --timeout={}s {behind}", deadline.as_secs());
    let ran = process::run(&mut place.command(&words(line.trim_end())), limit(deadline))?;
    Ok((ran, relay))
}

fn short(how: &How) -> String {
    match how {
        How::Endless(first, pattern) => {
            let text = |bytes: &[u8]| {
                String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).escape_debug().to_string()
            };
            format!("endless '{}' '{}'", text(first), text(pattern))
        }
        other => format!("{other:?}").chars().take(120).collect(),
    }
}
