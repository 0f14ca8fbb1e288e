//! The supervisor: a process that runs one server, and stops it when its parent process ends.
//!
//! The tool starts its own program with [`SUBCOMMAND`], and that process calls [`run`]. It has its own process group,
//! so that Ctrl-C in the terminal does not reach it, and reads requests from a pipe on standard input. The system
//! closes the pipe when the tool ends, even by kill -9. Then the supervisor stops the server, removes its folder and
//! exits. It also creates the folder, so that the end of the tool never leaves anything behind.
//!
//! If the supervisor itself is killed, the system kills the server (its "parent death signal" is set), and the next
//! start sweeps the folder.

mod child_process;
mod exec_wrapper;
pub(crate) mod messages;
mod serve;
mod sync;
mod together;

use std::ffi::OsString;
use std::process::ExitCode;

pub use messages::SUBCOMMAND;
pub(crate) use messages::{COUNT, ENVIRONMENT, Facts, Report, Request};
pub(crate) use together::together;

/// Runs this process as a supervisor, until its work is done. `args` are those after [`SUBCOMMAND`].
///
/// Standard output is for the process that started it.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    match args.next() {
        None => {
            crate::signals::outlive_file_limit();
            serve::serve()
        }
        Some(word) if word == exec_wrapper::EXEC => exec_wrapper::become_server(args),
        Some(word) if word == together::TOGETHER => together::run(args),
        Some(word) if word == crate::tcp::LISTEN => crate::tcp::listen(args),
        Some(_) => ExitCode::from(2),
    }
}
