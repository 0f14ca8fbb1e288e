//! A wrapper between the supervisor and a server. The process changes to the server's user, sets its parent death
//! signal, resets ignored signals, and then executes the server.
//!
//! The order matters, since a change of user resets the parent death signal. `std::process::Command` cannot set it
//! after the change without unsafe code.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Gid, Pid, Signal, Uid, getppid, set_parent_process_death_signal};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

use super::messages::SUBCOMMAND;
use crate::engine::{Instance, Launch};
use crate::os_user::nobody;
use crate::{TestbedError, host, signals};

pub(super) const EXEC: &str = "exec";

/// The command that runs `launch` as the server's user, in its folder, with its output in `log`; the system sends it
/// `last` when the supervisor ends. It must be spawned by the supervisor's main thread, since the death of the
/// spawning thread counts.
pub(super) fn command(
    launch: &Launch,
    last: Signal,
    instance: &Instance,
    log: File,
) -> Result<Command, TestbedError> {
    let errors = log.try_clone().map_err(TestbedError::io("opening the server's log"))?;
    let number = |n: Option<u32>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    // Its group is that of the server, which alone may enter the server's folder.
    let uid = instance.os_user.map(|os_user| if launch.needs_name { nobody().uid } else { os_user.uid });
    // This process's program, valid also after the file was replaced by a new build.
    let mut command = launch.link.map_or_else(|| Command::new("/proc/self/exe"), host::Link::command);
    command
        .arg(SUBCOMMAND)
        .arg(EXEC)
        .arg(std::process::id().to_string())
        .arg(last.as_raw().to_string())
        .arg(number(uid))
        .arg(number(instance.os_user.map(|os_user| os_user.gid)))
        .arg(&launch.program)
        .args(&launch.args)
        .current_dir(&instance.dir)
        .stdin(if launch.input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(log)
        .stderr(errors)
        // The caller's environment must not configure the server (PGDATA, MYSQL_TCP_PORT …) or be visible in it.
        .env_clear()
        .env("LC_ALL", "C")
        .env("HOME", instance.tmp())
        .env("TMPDIR", instance.tmp());
    for name in ["PATH", "LD_LIBRARY_PATH", "TZ"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    Ok(command)
}

/// Becomes the server; the arguments are from [`command`].
pub(super) fn become_server(args: impl Iterator<Item = OsString>) -> ExitCode {
    match replace(args) {
        Ok(error) | Err(error) => {
            // Standard error is the server's log, whose end is shown when a start fails.
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
        // This process has one thread, so that the thread's user is the process's.
        let change = || {
            set_thread_groups(&[])?;
            set_thread_gid(Gid::from_raw(gid))?;
            set_thread_uid(Uid::from_raw(uid))
        };
        change().map_err(|error| format!("cannot become user {uid}: {error}"))?;
    }
    set_parent_process_death_signal(Some(last.unwrap_or(Signal::KILL))).map_err(|error| error.to_string())?;
    // If the supervisor had ended earlier, the signal would never be sent.
    if getppid().map(|pid| Pid::as_raw_nonzero(pid).get() as u32) != parent {
        return Err("the supervisor has exited".to_owned());
    }
    signals::reset_all_for_programs();
    let error = Command::new(&program).args(args).exec();
    Ok(format!("{} cannot be run: {error}", program.to_string_lossy()))
}
