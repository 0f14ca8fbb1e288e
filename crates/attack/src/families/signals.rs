//! Signals: Ctrl-C once and twice, termination, being stopped for seconds, an output without a reader.
//!
//! Survived: after the first Ctrl-C a message appears (within 1.5 s, since the machine is busy) and the program
//! ends within 8 s for any server; a second Ctrl-C ends it within 2 s. The code is 130 (for SIGTERM 130 or 143), or
//! that of a run which had ended before. A trial in which the program stood still has no counted figures. Without a
//! reader the program ends with 0, 5 or SIGPIPE, and without a panic. Nothing is left behind.

use crate::case::{Case, Outcome};
use crate::context::{Context, Place, words};
use crate::families::disk::{run_line, show};
use crate::families::hostile::{control, moment};
use crate::families::kill::left;
use crate::process::Running;
use crate::random::Random;
use crate::relay::hostile::{Hostile, How, Plan};
use crate::runfile;
use crate::server::Starting;
use rustix::process::Signal;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
/// The time limit for the message, generous since the machine is busy.
const SAID: Duration = Duration::from_millis(1_500);
/// The time limit for the program's end.
const ENDED: Duration = Duration::from_secs(8);

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let kinds: [(&str, &[&str]); 6] = [
        ("int", &["sqlite", "redis", "postgres"]),
        ("int-stalled", &["redis", "postgres", "memcached", "mariadb"]),
        ("int-twice", &["redis", "postgres"]),
        ("term", &["sqlite", "redis"]),
        ("stop", &["sqlite", "redis"]),
        ("closed-output", &["null"]),
    ];
    Case::of_each("signals", &kinds, attack)
}

fn attack(context: &Context, kind: &str, target: &str, seed: u64) -> Result<Outcome, String> {
    let mut random = Random::new(seed);
    match kind {
        "int-stalled" | "int-twice" => stalled(context, target, kind == "int-twice", &mut random),
        "stop" => stop(context, target, &mut random),
        "closed-output" => closed(context, &mut random),
        _ => {
            interrupted(context, target, if kind == "term" { Signal::TERM } else { Signal::INT }, &mut random)
        }
    }
}

/// The arguments of a run that takes minutes.
fn long(url: &str) -> Vec<&str> {
    vec!["run", "point-write", url, "--rounds", "200", "--requests", "2000", "--records", "3000", "--no-html"]
}

fn url(target: &str) -> String {
    if target == "sqlite" { "sqlite:".to_owned() } else { format!("up:{target}") }
}

fn wait_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + limit;
    while !done() {
        if Instant::now() > until {
            return false;
        }
        sleep(Duration::from_millis(3));
    }
    true
}

fn interrupted(
    context: &Context,
    target: &str,
    signal: Signal,
    random: &mut Random,
) -> Result<Outcome, String> {
    let place = context.place()?;
    let url = url(target);
    let mut running = Running::start(&mut place.command(&long(&url)))?;
    let moment = Duration::from_millis(300 + random.number() % 3_000);
    sleep(moment);
    // The signal itself ends a process that has not begun its work.
    let has_begun = !running.said(0).is_empty() || !running.said(1).is_empty();
    let complaint = end(&mut running, &[signal], ENDED);
    let ran = running.finish(LIMIT);
    let ended = || if has_begun || ran.code.is_some() { ran.unclean(&[130, 143]) } else { None };
    let complaint = complaint.or_else(ended).or_else(|| left(&place));
    Ok(Outcome::of(complaint.map(|why| format!("after {moment:?}: {why}"))))
}

/// Sends the signals, half a second apart, and waits for a message and for the program's end.
fn end(running: &mut Running, signals: &[Signal], limit: Duration) -> Option<String> {
    let before = running.said(1).len() + running.said(0).len();
    let mut complaint = None;
    for (at, signal) in signals.iter().enumerate() {
        if at > 0 {
            sleep(Duration::from_millis(500));
        }
        running.signal(*signal);
        if at == 0
            && !wait_until(SAID, || running.said(1).len() + running.said(0).len() > before || running.ended())
        {
            complaint = Some(format!("no message within {SAID:?}"));
        }
    }
    let sent = Instant::now();
    if !wait_until(limit, || running.ended()) {
        running.signal(Signal::KILL);
        return Some(format!("{signals:?}: it had not ended after {:?}", sent.elapsed()));
    }
    complaint
}

fn stalled(context: &Context, target: &str, twice: bool, random: &mut Random) -> Result<Outcome, String> {
    let place = context.place()?;
    // A separate server, since a killed program keeps its lease for a minute.
    let server = Starting::new(&context.program, target, &place.temporary(), &[])?.ready()?;
    let (pieces, _) = control(context, &server, 2)?;
    let (connection, piece) = moment(&pieces, random);
    let plan = Plan { port: server.port, connection, piece, how: How::Silent };
    let what = format!("silent at connection {connection}, piece {piece}");
    let relay = Hostile::start(plan).map_err(|error| error.to_string())?;
    let url = server.through(relay.port());
    let mut running = Running::start(&mut place.command(&long(&url)))?;
    if !wait_until(Duration::from_secs(20), || relay.fired() || running.ended()) || running.ended() {
        running.signal(Signal::KILL);
        return Err("the run did not reach that piece".to_owned());
    }
    sleep(Duration::from_millis(300 + random.number() % 1_000));
    let (signals, limit) = if twice {
        (&[Signal::INT, Signal::INT][..], Duration::from_secs(2))
    } else {
        (&[Signal::INT][..], ENDED)
    };
    let complaint = end(&mut running, signals, limit);
    let ran = running.finish(LIMIT);
    let complaint = complaint.or_else(|| ran.unclean(&[130, 143, 3, 4]));
    Ok(Outcome::of(complaint.map(|why| format!("{what}: {why}"))))
}

fn stop(context: &Context, target: &str, random: &mut Random) -> Result<Outcome, String> {
    let place = context.place()?;
    let run = "run point-read --rounds 3 --duration 1s --requests 100000000 --records 200 --no-html -q";
    let line = format!("{run} {}", url(target));
    let mut running = Running::start(&mut place.command(&words(&line)))?;
    // In the middle of the first trial's measured second, when the run file has its first line.
    if !wait_until(Duration::from_secs(40), || runfile::find(&place.runs()).is_some() || running.ended()) {
        running.signal(Signal::KILL);
        return Err("no run began".to_owned());
    }
    let moment = Duration::from_millis(700 + random.number() % 4_000);
    sleep(moment);
    let seconds = 2 + random.below(3) as u64;
    let before = runfile::trials(&place.runs()).len();
    running.signal(Signal::STOP);
    sleep(Duration::from_secs(seconds));
    let after = runfile::trials(&place.runs()).len();
    running.signal(Signal::CONT);
    if running.ended() {
        return Err("it had ended before".to_owned());
    }
    let ran = running.finish(LIMIT);
    let complaint = ran.unclean(&[0, 4]).or_else(|| {
        let stood = runfile::stood_still(&place.runs(), seconds, before);
        (!stood.is_empty()).then(|| {
            format!("trials {stood:?} of which it stood still for {seconds} s count (recorded before: {before}, after: {after})")
        })
    });
    Ok(Outcome::of(complaint.map(|why| format!("stopped after {moment:?}: {why}"))))
}

fn closed(context: &Context, random: &mut Random) -> Result<Outcome, String> {
    let place = context.place()?;
    let line = run_line(2);
    let args = words(&line);
    let commands: [&[&str]; 6] = [
        &args,
        &["list"],
        &["--help"],
        &["runs", "ls"],
        &["report", "last"],
        &["report", "--format", "json"],
    ];
    let which = *random.pick(&commands);
    let needs_run = which[0] == "report";
    if needs_run && let Some(why) = crate::process::run(&mut place.command(&args), LIMIT)?.unclean(&[0]) {
        return Err(why);
    }
    let mut command = place.command(which);
    if random.below(2) == 0 {
        // Closed from the start; the program may then use the descriptor for another file.
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" >&-"]).arg(command.get_program()).args(which);
        place.settle(&mut shell);
        command = shell;
    }
    let (reader, writer) = std::io::pipe().map_err(|error| error.to_string())?;
    drop(reader);
    let ran = Running::with_output(&mut command, Stdio::from(writer))?.finish(LIMIT);
    let by_signal = !ran.hung && ran.code.is_none();
    let complaint = if by_signal { None } else { ran.unclean(&[0, 5]) };
    Ok(Outcome::of(complaint.or_else(|| whole(&place)).map(|why| format!("{}: {why}", which.join(" ")))))
}

fn whole(place: &Place) -> Option<String> {
    runfile::find(&place.runs())?;
    show(place)
}
