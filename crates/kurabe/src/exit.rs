//! The exit codes: a contract with scripts, listed in `kurabe --help` and in `docs/command-line.md`.

use kurabe_core::{Error, ErrorKind};
use std::process::ExitCode;

/// An exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(u8);

/// Success.
pub(crate) const DONE: Exit = Exit(0);
/// A defect of Kurabe itself.
pub(crate) const INTERNAL: Exit = Exit(1);
/// Wrong usage: the command line, a suite file or a URL is invalid; nothing was done.
pub(crate) const USAGE: Exit = Exit(2);
/// A target could not be used: missing, refused, in use, too small, or with wrong replies.
pub(crate) const TARGET: Exit = Exit(3);
/// The run ended, and some cells failed or a target has no results; the report has the reasons. Or a claim that held
/// does not hold any more.
pub(crate) const FAILED_CELLS: Exit = Exit(4);
/// A file could not be found, read or written, or this machine lacks a resource.
pub(crate) const RUN_FILE: Exit = Exit(5);
/// A gate failed: what it judges is worse somewhere by more than its margin.
pub(crate) const SLOWER: Exit = Exit(6);
/// A gate is undecided: nothing is shown to be worse, and somewhere that is not excluded.
pub(crate) const UNDECIDED: Exit = Exit(7);
/// Interrupted by the user; recorded trials are kept.
pub(crate) const INTERRUPTED: Exit = Exit(130);

/// The text for `--help`.
pub(crate) const HELP: &str = "Exit codes:
  0    everything that was asked for was done
  1    a defect of kurabe itself
  2    the command line, a suite file or a URL is wrong; nothing was done
  3    a target, or an address to listen at, could not be used: not there, refused, in use, too small, wrong answers
  4    the run ended, and some cells failed, or a target has no results; the report says why; the command of wire or capture failed;
       or a claim that held does not hold any more; a copy is complete but for rows that the target refused
  5    a run or a report could not be found, read or written, or this machine could not do its part (a full disk)
  6    a gate failed: a primary metric, a kind of transaction or a p99 is worse by more than its margin
  7    a gate is undecided: that is neither shown nor excluded for some of them
  130  stopped by the user; what was measured is kept";

impl Exit {
    /// Its number.
    pub(crate) fn code(self) -> i32 {
        self.0.into()
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}

/// An error about a run file, of any kind.
#[derive(Debug)]
pub(crate) struct OfRunFile(pub(crate) Error);

impl std::fmt::Display for OfRunFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for OfRunFile {}

/// The exit code of an error.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    if error.is::<OfRunFile>() {
        return RUN_FILE;
    }
    let Some(error) = error.downcast_ref::<Error>() else { return INTERNAL };
    match error.kind() {
        ErrorKind::Usage => USAGE,
        ErrorKind::Unreachable
        | ErrorKind::Denied
        | ErrorKind::NotFound
        | ErrorKind::NotPermitted
        | ErrorKind::ReadOnly
        | ErrorKind::NotOurs
        | ErrorKind::InUse
        | ErrorKind::Limit
        | ErrorKind::Unsupported
        | ErrorKind::Server
        | ErrorKind::ConnectionLost
        | ErrorKind::Timeout
        | ErrorKind::Protocol
        // Failed cells are not an error of the run. An error that ends the command means that nothing was measured.
        | ErrorKind::Mismatch => TARGET,
        ErrorKind::Damaged | ErrorKind::Environment => RUN_FILE,
        ErrorKind::Interrupted => INTERRUPTED,
        ErrorKind::Internal => INTERNAL,
    }
}

/// Makes a panic of any thread end the program with exit code 1 and one error. Builds that unwind are as before: a panic
/// fails a trial.
///
/// Collections that the run made on a server stay there until the next run on that server, as after `kill -9`.
pub(crate) fn end_the_program() {
    #[cfg(panic = "abort")]
    std::panic::set_hook(Box::new(|info| {
        use std::io::Write as _;
        let place =
            info.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
        // A closed output must not cause a second panic.
        let _ = writeln!(
            std::io::stderr(),
            "kurabe: a defect of kurabe{place}: {}; what was measured is kept, and 'kurabe run --resume' goes on and removes the run's tables",
            kurabe_core::text::of_panic(info.payload())
        );
        std::process::exit(INTERNAL.code());
    }));
}
