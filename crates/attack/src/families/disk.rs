//! Full disks: runs recorded on a small file system, and output to `/dev/full`.
//!
//! Survived: the program exits with 5 and an error that says what is kept, and `show` reads it. With `/dev/full` as its
//! output it exits with 5 or 0, without a panic, and the run file contains every trial.

use crate::case::{Case, Outcome};
use crate::context::{Context, Place, words};
use crate::process::{self, Running};
use crate::random::Random;
use crate::runfile;
use std::fs::OpenOptions;
use std::process::{Command, Stdio};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    vec![Case::single("disk", "full", "null", full), Case::single("disk", "output", "null", output)]
}

/// A command line of a run without a database.
pub fn run_line(rounds: usize) -> String {
    let run = "run session null: --payload 1k --layout blob --requests 100 --records 20 --no-html -q";
    format!("{run} --rounds {rounds}")
}

/// A mounted file system, unmounted on drop.
struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

fn full(context: &Context, seed: u64) -> Result<Outcome, String> {
    let place = context.place()?;
    let size = 32 + Random::new(seed).below(200);
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={size}k"), "none"])
        .arg(place.runs())
        .output()
        .map_err(|error| format!("mount: {error}"))?;
    if !mount.status.success() {
        return Err("a file system can be mounted by root only".to_owned());
    }
    let _mounted = Mounted(place.runs());
    let ran = process::run(&mut place.command(&words(&run_line(400))), LIMIT)?;
    let complaint = ran.unclean(&[5]).or_else(|| {
        if ran.errors().len() != 1 {
            return Some(format!("{} errors: {}", ran.errors().len(), ran.tail()));
        }
        shown(&place)
    });
    Ok(Outcome::of(complaint.map(|complaint| format!("{size} kB: {complaint}"))))
}

/// Checks that the run is shown, if one was started.
fn shown(place: &Place) -> Option<String> {
    if runfile::trials(&place.runs()).is_empty() { None } else { show(place) }
}

/// Checks that the last run is shown.
pub fn show(place: &Place) -> Option<String> {
    let shown = process::run(&mut place.command(&["report", "last"]), LIMIT).ok()?;
    shown.unclean(&[0]).map(|complaint| format!("show: {complaint}"))
}

fn output(context: &Context, seed: u64) -> Result<Outcome, String> {
    let place = context.place()?;
    let mut random = Random::new(seed);
    let to_full = |args: &[&str]| -> Result<process::Ran, String> {
        let full = OpenOptions::new().write(true).open("/dev/full");
        let full = full.map_err(|error| format!("/dev/full: {error}"))?;
        Ok(Running::with_output(&mut place.command(args), Stdio::from(full))?.finish(LIMIT))
    };
    let ran = to_full(&words(&run_line(1 + random.below(4))))?;
    // Two cells for each compression and the A/A control, two operations.
    let trials = runfile::trials(&place.runs()).len();
    let complaint = ran.unclean(&[0, 5]).or_else(|| (trials == 0).then(|| "no trial is recorded".to_owned()));
    if complaint.is_some() {
        return Ok(Outcome::of(complaint));
    }
    let formats: [&[&str]; 5] = [
        &["report", "last"],
        &["report", "--format", "md"],
        &["report", "--format", "json"],
        &["report", "--format", "csv"],
        &["report", "--output", "/dev/full"],
    ];
    let args = *random.pick(&formats);
    let complaint = to_full(args)?.unclean(&[5]).map(|complaint| format!("{}: {complaint}", args.join(" ")));
    Ok(Outcome::of(complaint.or_else(|| shown(&place))))
}
