//! Between the guard and a server: a moment in which the process becomes the server's user and asks to be
//! ended with its parent, before it becomes the server.
//!
//! The order matters, since a change of user forgets that request; hence a step of our own after the change, which
//! std's `Command` does not offer without unsafe code.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Gid, Pid, Signal, Uid, getppid, set_parent_process_death_signal};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

use crate::TestbedError;
use crate::engine::{Launch, Site};
use crate::process::this_program;

pub(super) const WORD: &str = "exec";

/// The command that runs `launch` as the server's user, in its folder, with everything it prints going to `log`; the
/// system sends it `last` when the guard is gone.
/// It must be spawned by the guard's main thread: the death of the thread that did it counts as the parent's.
pub(super) fn command(
    launch: &Launch,
    last: Signal,
    site: &Site,
    log: File,
) -> Result<Command, TestbedError> {
    let errors = log.try_clone().map_err(TestbedError::io("opening the server's log"))?;
    let number = |n: Option<u32>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let mut command = Command::new(this_program());
    command
        .arg(super::SUBCOMMAND)
        .arg(WORD)
        .arg(std::process::id().to_string())
        .arg(last.as_raw().to_string())
        .arg(number(site.account.map(|account| account.uid)))
        .arg(number(site.account.map(|account| account.gid)))
        .arg(&launch.program)
        .args(&launch.args)
        .current_dir(&site.dir)
        .stdin(if launch.input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(log)
        .stderr(errors)
        // Nothing of the caller's environment may steer the server (PGDATA, MYSQL_TCP_PORT …) or be seen in it.
        .env_clear()
        .env("LC_ALL", "C")
        .env("HOME", site.tmp())
        .env("TMPDIR", site.tmp());
    for name in ["PATH", "LD_LIBRARY_PATH", "TZ"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    Ok(command)
}

/// Becomes the server: the arguments are those that [`command`] put there.
pub(super) fn become_server(args: impl Iterator<Item = OsString>) -> ExitCode {
    match replace(args) {
        Ok(error) | Err(error) => {
            // Standard error is the server's log, whose tail is shown when a start fails.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{error}\n").as_bytes());
            ExitCode::from(127)
        }
    }
}

/// Returns only on failure.
fn replace(mut args: impl Iterator<Item = OsString>) -> Result<String, String> {
    let mut next = |what: &str| args.next().ok_or_else(|| format!("no {what}"));
    let number = |text: OsString| text.to_str().and_then(|text| text.parse::<u32>().ok());
    let parent = number(next("parent")?);
    let last = next("signal")?.to_str().and_then(|text| text.parse().ok()).and_then(Signal::from_named_raw);
    let (uid, gid) = (number(next("user")?), number(next("group")?));
    let program = next("program")?;
    if let (Some(uid), Some(gid)) = (uid, gid) {
        // This process has one thread, so the thread's identity is the process's.
        let change = || {
            set_thread_groups(&[])?;
            set_thread_gid(Gid::from_raw(gid))?;
            set_thread_uid(Uid::from_raw(uid))
        };
        change().map_err(|error| format!("cannot become user {uid}: {error}"))?;
    }
    set_parent_process_death_signal(Some(last.unwrap_or(Signal::KILL))).map_err(|error| error.to_string())?;
    // Had the guard died just before, the signal would never come.
    if getppid().map(|pid| Pid::as_raw_nonzero(pid).get() as u32) != parent {
        return Err("the guard is gone".to_owned());
    }
    let error = Command::new(&program).args(args).exec();
    Ok(format!("{} cannot be run: {error}", program.to_string_lossy()))
}
