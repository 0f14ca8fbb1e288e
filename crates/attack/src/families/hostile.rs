//! What families share that put a hostile relay before a real server.

use crate::case::Outcome;
use crate::context::Context;
use crate::process::{self, Ran};
use crate::random::Random;
use crate::relay::hostile::{Hostile, How, Plan};
use crate::server::Server;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What one answer may take, as the program documents it.
const DEADLINE: Duration = Duration::from_secs(30);
/// What one answer may take where the attack asks for less.
const SHORT_DEADLINE: Duration = Duration::from_secs(5);
/// The growth that is allowed, in kilobytes.
pub const GROWTH_KB: u64 = 64 * 1024;

/// A command that talks to a server: its words before and behind the URL, and whether it needs the database for itself.
type Asked = (&'static [&'static str], &'static [&'static str], bool);

const COMMANDS: [Asked; 3] = [
    (&["doctor"], &[], false),
    (
        &["run", "point-read"],
        &["--rounds", "1", "--requests", "40", "--records", "20", "--no-html", "-q", "--seed", "1"],
        true,
    ),
    (
        &["run", "point-write"],
        &["--rounds", "1", "--requests", "40", "--records", "50", "--no-html", "-q", "--seed", "1"],
        true,
    ),
];

/// Engines that can be reached through a well-known crate too.
pub const WITH_DRIVER: [&str; 3] = ["mysql", "mariadb", "postgres"];

/// What is asked: the number of the command, and whether through the crate of others.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Asking {
    command: usize,
    driver: bool,
}

impl Asking {
    /// Through the program's own client: `doctor` (0), a run that reads (1), one that writes (2).
    pub fn native(command: usize) -> Self {
        Self { command, driver: false }
    }
}

/// Until when the program must end: it waits for one answer, and tidies up over connections that may be no better; and the
/// machine may be busy.
pub fn limit(deadline: Duration) -> Duration {
    2 * deadline + Duration::from_secs(20)
}

/// What one answer may take, for a try: mostly what was asked for, so that many can be made.
pub fn deadline(random: &mut Random) -> Duration {
    if random.below(4) == 0 { DEADLINE } else { SHORT_DEADLINE }
}

/// What an undisturbed run shows: pieces of each connection, and its memory's peak.
pub type Control = (Vec<usize>, u64);

static CONTROLS: Mutex<Option<HashMap<(String, Asking), Control>>> = Mutex::new(None);

/// What came of a hostile run.
pub struct Met {
    /// How the program ended.
    pub ran: Ran,
    /// Whether the relay turned hostile in it.
    pub fired: bool,
    /// The peak of the undisturbed run, in kilobytes.
    pub control_kb: u64,
    /// What was done, for people.
    pub what: String,
}

/// Runs one of the commands against the server, hostile at a moment that `random` chooses.
///
/// # Errors
/// The attack could not be made.
pub fn meet(
    context: &Context,
    server: &Server,
    random: &mut Random,
    deadline: Duration,
    how: How,
) -> Result<Met, String> {
    let driver = WITH_DRIVER.contains(&server.engine.as_str()) && random.below(3) == 0;
    let asking = Asking { command: random.below(COMMANDS.len()), driver };
    let (command, _, exclusive) = COMMANDS[asking.command];
    let (pieces, control_kb) = control(context, server, asking)?;
    let (connection, piece) = moment(&pieces, random);
    let _alone = exclusive.then(|| server.alone());
    let what = format!(
        "{} of {}{}, connection {connection}, piece {piece}: {}",
        command.join(" "),
        server.engine,
        if driver { " client=driver" } else { "" },
        short(&how)
    );
    let plan = Plan { port: server.port, connection, piece, how };
    let (ran, relay) = run(context, server, asking, plan, deadline)?;
    Ok(Met { ran, fired: relay.fired(), control_kb, what })
}

/// A connection and a piece of it at which the relay turns hostile.
pub fn moment(pieces: &[usize], random: &mut Random) -> (usize, usize) {
    let connection = random.below(pieces.len());
    let all = pieces.get(connection).copied().unwrap_or(1).max(1);
    // Half of them early, where connections are made and statements prepared.
    (connection, if random.below(2) == 0 { random.below(all.min(6)) } else { random.below(all) })
}

/// Judges a run that met a hostile server.
pub fn judge(met: &Met) -> Outcome {
    if !met.fired {
        return Outcome::Skipped("the connection did not come so far".to_owned());
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

/// What the undisturbed command shows.
///
/// # Errors
/// It does not succeed.
pub fn control(context: &Context, server: &Server, asking: Asking) -> Result<Control, String> {
    let key = (server.engine.clone(), asking);
    let known =
        |controls: &Option<HashMap<_, Control>>| controls.as_ref().and_then(|known| known.get(&key).cloned());
    if let Some(known) = known(&CONTROLS.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(known);
    }
    let _alone = server.alone();
    // A program that was killed may have left its claim.
    server.empty();
    let plan = Plan { port: server.port, connection: 0, piece: 0, how: How::Honest };
    let (ran, relay) = run(context, server, asking, plan, DEADLINE)?;
    if let Some(complaint) = ran.unclean(&[0]) {
        return Err(format!("the control of {}: {complaint}", server.engine));
    }
    let control = (relay.pieces(), ran.peak_kb);
    CONTROLS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert_default()
        .insert(key, control.clone());
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
    let mut url = server.through(relay.port());
    if asking.driver {
        url.push_str(if url.contains('?') { "&client=driver" } else { "?client=driver" });
    }
    let (before, behind, _) = COMMANDS[asking.command];
    let seconds = format!("--timeout={}s", deadline.as_secs());
    let args = [before, &[url.as_str(), &seconds], behind].concat();
    let ran = process::run(&mut place.command(&args), limit(deadline))?;
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
