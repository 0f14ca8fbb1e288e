//! The guard: a process of its own that runs one server, and ends it when its parent ends, however that ended.
//!
//! The tool starts its own program again with [`SUBCOMMAND`]; that process calls [`run`]. It is in a process group of
//! its own, so that Ctrl-C at the terminal does not reach it, and reads orders from a pipe on its standard input. The
//! system closes the pipe when the tool stops or dies, even by kill -9; then the guard stops the server, removes its
//! folder and exits. The guard does everything from making the folder on, so there is no moment at which the tool's
//! death would leave anything behind.
//!
//! Should the guard itself be killed, the system kills the server (its "parent death signal" is set), and the next
//! start sweeps the folder.

mod messages;
mod running;
mod serve;
mod shim;

use std::ffi::OsString;
use std::process::ExitCode;

pub(crate) use messages::{Facts, Order, Report};

/// The hidden subcommand: `PROGRAM guard …` must call [`run`] with the arguments after `guard`, and do nothing else.
pub const SUBCOMMAND: &str = "guard";

/// Set in a guard's environment, to refuse a guard's guard: a program that takes [`SUBCOMMAND`] for something else
/// would start itself without end.
pub(crate) const ENVIRONMENT: &str = "KURABE_IS_GUARD";

/// Runs this process as a guard, until its work is done. `args` are those after [`SUBCOMMAND`].
///
/// The guard speaks on standard output to the process that started it, and to no one else.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    match args.next() {
        None => serve::serve(),
        Some(word) if word == shim::WORD => shim::become_server(args),
        Some(_) => ExitCode::from(2),
    }
}
