//! Ctrl-C: the first one stops the current work and keeps the results, the second one exits at once.
//!
//! The first Ctrl-C prints what the program waits for. If that does not end, connections are shut down, and finally
//! the program exits. Recorded trials are on disk by then. Supervisors remove throwaway servers in any case, when
//! their parent exits.
#![allow(clippy::exit)]

use crate::exit::{self, Exit};
use crate::output::Output;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_targets::Reporter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Time after the first Ctrl-C until running statements are ended on the servers, and again until connections are shut down.
const CUT: Duration = Duration::from_secs(3);
/// How long the program waits for servers that are ending statements, before it exits.
pub(crate) const ENDS: Duration = Duration::from_secs(5);
/// Time after that until the program exits.
const LEAVE: Duration = Duration::from_millis(1_500);
/// The pause between two looks at what may end by itself.
const LOOK: Duration = Duration::from_millis(100);

/// The flag that [`watch`] returned: there is one handler for all runs of the program.
static WATCHED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// Set by the first Ctrl-C.
static STOPPED: AtomicBool = AtomicBool::new(false);
/// What the program waits for: "the trial of read on mysql to end".
static WAITED_FOR: Mutex<String> = Mutex::new(String::new());

/// Sets what the program waits for if it is stopped.
pub(crate) fn wait_for(what: impl Into<String>) {
    *WAITED_FOR.lock().unwrap_or_else(PoisonError::into_inner) = what.into();
}

/// Whether the user has stopped the program.
pub(crate) fn stopped() -> bool {
    STOPPED.load(Ordering::SeqCst)
}

/// Fails after the user has stopped the program.
///
/// # Errors
/// [`Interrupted`](ErrorKind::Interrupted).
pub(crate) fn check() -> Result<()> {
    if stopped() { Err(Error::new(ErrorKind::Interrupted, "stopped by the user")) } else { Ok(()) }
}

/// Handles interrupts from now on, and returns the flag that the first one sets. If the program does not end in time,
/// it exits with `late`. Called again, it returns the same flag and changes nothing.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) if the handler cannot be installed.
pub(crate) fn watch(late: Exit, output: &Output) -> Result<Arc<AtomicBool>> {
    if let Some(stop) = WATCHED.get() {
        return Ok(Arc::clone(stop));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (flag, output) = (Arc::clone(&stop), *output);
    handle(move || {
        if STOPPED.swap(true, Ordering::SeqCst) {
            std::process::exit(exit::INTERRUPTED.code());
        }
        flag.store(true, Ordering::SeqCst);
        let waited_for = WAITED_FOR.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Before the first trial, and in commands without a run, nothing is set.
        let waited_for = if waited_for.is_empty() { "the current request" } else { &waited_for };
        output.hint(&format!("stopping: waiting for {waited_for}; press Ctrl-C again to exit now"));
        let last = move || {
            thread::sleep(CUT);
            // What the servers still execute would go on without the program. Then there is time to remove tables.
            if kurabe_core::statements::end(None) {
                thread::sleep(CUT);
            }
            kurabe_drivers::cancel::cut_connections();
            thread::sleep(LEAVE);
            output.hint("exited without waiting; recorded trials are kept ('kurabe run --resume last')");
            std::process::exit(late.code());
        };
        if thread::Builder::new().name("leaving".to_owned()).spawn(last).is_err() {
            std::process::exit(exit::INTERRUPTED.code());
        }
    })?;
    Ok(Arc::clone(WATCHED.get_or_init(|| stop)))
}

/// Waits for the user to stop the program, or for `check` to fail.
pub(crate) fn until_stopped(stop: &AtomicBool, mut check: impl FnMut() -> Result<()>) -> Result<()> {
    while !stop.load(Ordering::SeqCst) {
        check()?;
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Exits at the first interrupt; for commands without anything to keep or to close.
pub(crate) fn leave_at_once(output: &Output) -> Result<()> {
    let output = *output;
    handle(move || {
        output.hint("stopped by the user");
        std::process::exit(exit::INTERRUPTED.code());
    })
}

fn handle(work: impl FnMut() + Send + 'static) -> Result<()> {
    ctrlc::set_handler(work)
        .map_err(|e| Error::new(ErrorKind::Internal, format!("interrupts cannot be handled: {e}")))
}

/// What tells the user how targets are opened, and ends that if the user stops it.
impl Reporter for Output {
    fn note(&self, text: &str) {
        self.note(text);
    }

    fn warning(&self, text: &str) {
        self.warning(text);
    }

    fn wait_for(&self, what: String) {
        wait_for(what);
    }

    fn check(&self) -> Result<()> {
        check()
    }
}
