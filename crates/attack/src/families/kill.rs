//! `kill -9` of the server, of the program, of the supervisor, at random times.
//!
//! Survived: nothing is left behind (no process, and no folder that the next start does not remove). The run file is
//! intact up to its last trial, so that `show` reads it and `resume` continues. A run that lost its server exits with 4
//! or 3 within 60 s, unless it had ended before. `kurabe up` detects within 20 s that its server was killed, and exits
//! with 3.

use crate::case::{Case, Outcome};
use crate::context::{Context, Place, words};
use crate::process::{self, Running};
use crate::random::Random;
use crate::runfile;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// The time limit of a run that lost its server.
const LIMIT: Duration = Duration::from_secs(60);
/// The time limit for detecting that a server was killed.
const NOTICED: Duration = Duration::from_secs(20);
/// The time limit for the removal of processes and folders.
const PATIENCE: Duration = Duration::from_secs(15);

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let all = ["sqlite", "redis", "memcached", "postgres"];
    let servers = &all[1..];
    let kinds = [("program", &all[..]), ("server", servers), ("supervisor", servers), ("up", servers)];
    Case::of_each("kill", &kinds, attack)
}

/// Checks that `kurabe up` detects that its server was killed.
fn up(context: &Context, target: &str) -> Result<Outcome, String> {
    let place = context.place()?;
    let mut running = Running::start(&mut place.command(&["up", target]))?;
    while running.said(0).is_empty() {
        if running.ended() || running.age() > LIMIT {
            return Err(format!("kurabe up {target}: {}", running.said(1)));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let below = process::descendants(running.pid());
    let server =
        below.iter().copied().find(|pid| !is_supervisor(context, *pid)).ok_or("no server is below it")?;
    process::send(server, Signal::KILL);
    let killed = running.age();
    let ran = running.finish(killed + NOTICED);
    let complaint =
        ran.unclean(&[3]).or_else(|| ran.errors().is_empty().then(|| "it says nothing".to_owned()));
    Ok(Outcome::of(complaint.or_else(|| left(&place))))
}

fn attack(context: &Context, kind: &str, target: &str, seed: u64) -> Result<Outcome, String> {
    if kind == "up" {
        return up(context, target);
    }
    let mut random = Random::new(seed);
    let place = context.place()?;
    let url = if target == "sqlite" { "sqlite:".to_owned() } else { format!("up:{target}") };
    let rounds = 5 + random.below(30);
    let line = format!("run session {url} --payload 1k --layout blob --compress none --requests 60");
    let line = format!("{line} --records 20 --rounds {rounds} --no-html -q");
    let mut running = Running::start(&mut place.command(&words(&line)))?;
    // From its start to some trials later.
    let moment = Duration::from_millis(random.number() % 4_000);
    let began = Instant::now();
    while began.elapsed() < moment && !running.ended() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut hit = !running.ended();
    if kind == "program" {
        running.signal(Signal::KILL);
    } else {
        let below = process::descendants(running.pid());
        let victim = below.iter().copied().find(|pid| is_supervisor(context, *pid) == (kind == "supervisor"));
        hit &= victim.is_some();
        if let Some(pid) = victim {
            process::send(pid, Signal::KILL);
        }
    }
    if !hit {
        let ran = running.finish(LIMIT);
        return Ok(Outcome::of(ran.unclean(&[0]).map(|why| format!("before it was killed: {why}"))));
    }
    let ran = running.finish(LIMIT + began.elapsed());
    // Without its supervisor no server can be started, which is an error of this machine.
    let documented: &[i32] = if kind == "supervisor" { &[0, 3, 4, 5] } else { &[0, 3, 4] };
    if kind != "program"
        && let Some(complaint) = ran.unclean(documented)
    {
        return Ok(Outcome::Failed(format!("killed after {moment:?}: {complaint}")));
    }
    let complaint = left(&place).or_else(|| whole(&place, target, kind, &mut random));
    Ok(Outcome::of(complaint.map(|complaint| format!("killed after {moment:?}: {complaint}"))))
}

/// Whether a process is the program itself, as the supervisor of a server.
fn is_supervisor(context: &Context, pid: u32) -> bool {
    std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program == context.program)
}

/// What is left behind after the program has ended, and has been started again and ended.
pub fn left(place: &Place) -> Option<String> {
    let mark = place.path().display().to_string();
    let until = Instant::now() + PATIENCE;
    let mut processes = process::with_environment(&mark);
    while !processes.is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
        processes = process::with_environment(&mark);
    }
    if !processes.is_empty() {
        let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let names: Vec<String> = processes.iter().map(|pid| format!("{pid} {}", name(pid).trim())).collect();
        for pid in processes {
            process::send(pid, Signal::KILL);
        }
        return Some(format!("processes are left: {}", names.join(", ")));
    }
    if files(place).is_empty() {
        return None;
    }
    // A later start may remove what a killed process could not.
    let line = "run point-read sqlite: --rounds 1 --requests 10 --records 10 --no-html -q";
    let mut command = place.command(&words(line));
    command.env("KURABE_RUNS", place.home());
    let ran = process::run(&mut command, LIMIT).ok()?;
    if let Some(complaint) = ran.unclean(&[0]) {
        return Some(format!("a later start: {complaint}"));
    }
    let files = files(place);
    (!files.is_empty()).then(|| format!("files are left after a later start: {}", files.join(", ")))
}

/// The content of the folder for temporary files, without released locks.
fn files(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.temporary()).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Checks that the run file is readable, and that the run continues if possible.
fn whole(place: &Place, target: &str, kind: &str, random: &mut Random) -> Option<String> {
    runfile::find(&place.runs())?;
    let known = runfile::trials(&place.runs()).len();
    let shown = process::run(&mut place.command(&["report", "last"]), LIMIT).ok()?;
    if let Some(complaint) = shown.unclean(&[0]) {
        return Some(format!("show, with {known} trials: {complaint}"));
    }
    // Continuing takes as long as the run, so it is not tested each time.
    if target != "sqlite" || kind != "program" || random.below(4) > 0 {
        return None;
    }
    let resumed =
        process::run(&mut place.command(&["run", "--resume", "last", "--no-html", "-q"]), 2 * LIMIT).ok()?;
    resumed.unclean(&[0]).map(|complaint| format!("resume: {complaint}")).or_else(|| left(place))
}
