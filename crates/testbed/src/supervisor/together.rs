//! Several programs that are one server, such as php-fpm behind nginx: a process that starts them, and ends them all when
//! it is asked to, or when one of them ends.

use std::ffi::OsString;
use std::io::Write;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::exec_wrapper;
use super::messages::SUBCOMMAND;
use crate::engine::Launch;
use crate::process;

/// The word after [`SUBCOMMAND`] with which this program becomes such a process.
pub(super) const TOGETHER: &str = "together";

/// How long a program may take to stop before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// The process that runs these programs. Each is given as its number of words, and the words.
pub(crate) fn together(programs: impl IntoIterator<Item = Launch>) -> Launch {
    let launch = Launch::new("/proc/self/exe").arg(SUBCOMMAND).arg(TOGETHER);
    programs.into_iter().fold(launch, |launch, program| {
        launch.arg((program.args.len() + 1).to_string()).arg(program.program).args(program.args)
    })
}

/// Becomes that process; the arguments are from [`together`].
pub(super) fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // Standard error is the server's log.
            let _ = writeln!(std::io::stderr(), "{why}");
            ExitCode::FAILURE
        }
    }
}

fn serve(mut args: impl Iterator<Item = OsString>) -> Result<(), String> {
    // Before the first program starts, so that no end of one is missed.
    let mut signals = Signals::new([SIGCHLD, SIGTERM, SIGINT, SIGHUP]).map_err(|error| error.to_string())?;
    let mut running: Vec<(String, Child)> = Vec::new();
    while let Some(count) = args.next() {
        let count = count.to_str().and_then(|text| text.parse().ok()).ok_or("no number of words")?;
        let words: Vec<OsString> = args.by_ref().take(count).collect();
        let name = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        match start(&words) {
            Ok(child) => running.push((name, child)),
            Err(error) => {
                end(running);
                return Err(format!("{name} cannot be started: {error}"));
            }
        }
    }
    let ended = 'signals: {
        for signal in signals.forever() {
            if signal != SIGCHLD {
                break;
            }
            for (name, child) in &mut running {
                if let Ok(Some(status)) = child.try_wait() {
                    break 'signals Some(format!("{name} ended with {status}"));
                }
            }
        }
        None
    };
    end(running);
    ended.map_or(Ok(()), Err)
}

/// Starts a program that the system stops when this process ends.
fn start(words: &[OsString]) -> std::io::Result<Child> {
    Command::new("/proc/self/exe")
        .arg(SUBCOMMAND)
        .arg(exec_wrapper::EXEC)
        .arg(std::process::id().to_string())
        .arg(Signal::TERM.as_raw().to_string())
        // The user is this process's.
        .args(["-", "-"])
        .args(words)
        .stdin(Stdio::null())
        .spawn()
}

/// Asks all to stop, the last one first, and kills those that do not.
fn end(mut running: Vec<(String, Child)>) {
    for (_, child) in running.iter_mut().rev() {
        if child.try_wait().is_ok_and(|ended| ended.is_none()) {
            process::signal(child.id(), Signal::TERM);
        }
    }
    let until = Instant::now() + GRACE;
    for (_, mut child) in running {
        while child.try_wait().is_ok_and(|ended| ended.is_none()) {
            if Instant::now() > until {
                // It is not reaped yet, so that its number is its own.
                process::kill_tree(child.id());
                let _ = child.wait();
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}
