//! Ctrl-C: the first ends what is being done in order and keeps what was measured, the second ends the program at once.
//!
//! The first says what is waited for. Where that does not end by itself, connections are shut down, and at last the
//! program ends, whatever a server does: every trial that was recorded is on disk already, and throwaway servers are
//! removed either way, since their guards see their parent go.
#![allow(clippy::exit)]

use crate::exit::{self, Exit};
use crate::output::Output;
use kurabe_core::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// So long after the first Ctrl-C connections to servers are shut down, …
const CUT: Duration = Duration::from_secs(3);
/// … and so long after that the program ends.
const LEAVE: Duration = Duration::from_millis(1_500);

/// Set by the first Ctrl-C.
static STOPPED: AtomicBool = AtomicBool::new(false);
/// What is being done, as what one waits for: "the trial of read on mysql to end".
static WAITED_FOR: Mutex<String> = Mutex::new(String::new());

/// Says what the program waits for from now on, should it be stopped.
pub(crate) fn wait_for(what: impl Into<String>) {
    *WAITED_FOR.lock().unwrap_or_else(PoisonError::into_inner) = what.into();
}

/// Whether the user stopped the program.
pub(crate) fn stopped() -> bool {
    STOPPED.load(Ordering::SeqCst)
}

/// Fails once the user has stopped the program.
///
/// # Errors
/// [`Interrupted`](ErrorKind::Interrupted).
pub(crate) fn check() -> Result<()> {
    if stopped() { Err(Error::new(ErrorKind::Interrupted, "stopped by the user")) } else { Ok(()) }
}

/// Handles interrupts from now on; the flag is set by the first. A program that does not end in time then ends with
/// `late`.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) where the handler cannot be set.
pub(crate) fn watch(late: Exit, output: &Output) -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let (flag, output) = (Arc::clone(&stop), *output);
    handle(move || {
        if STOPPED.swap(true, Ordering::SeqCst) {
            std::process::exit(exit::INTERRUPTED.code());
        }
        flag.store(true, Ordering::SeqCst);
        let waited_for = WAITED_FOR.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Before a run's first trial, and in commands that make no run, nothing is named.
        let waited_for = if waited_for.is_empty() { "the current request" } else { &waited_for };
        output.hint(&format!("stopping: waiting for {waited_for}; press Ctrl-C again to exit now"));
        let last = move || {
            thread::sleep(CUT);
            kurabe_drivers::cancel::cut_connections();
            thread::sleep(LEAVE);
            output.hint("exited without waiting; recorded trials are kept ('kurabe resume last')");
            std::process::exit(late.code());
        };
        if thread::Builder::new().name("leaving".to_owned()).spawn(last).is_err() {
            std::process::exit(exit::INTERRUPTED.code());
        }
    })?;
    Ok(stop)
}

/// Ends the program at the first interrupt: nothing is kept, and nothing needs an end in order.
///
/// # Errors
/// As for [`watch`].
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
