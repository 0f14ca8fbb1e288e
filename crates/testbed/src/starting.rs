//! Starts throwaway servers, and removes what killed ones left.

use std::path::{Path, PathBuf};

use crate::server::{Server, start_own};
use crate::{StartOptions, TestbedError, folder, registry, testing};

/// Starts a throwaway server, and returns when it answers.
///
/// It runs until [`Server::stop`], until the `Server` is dropped, or until this process ends in any way.
///
/// # Errors
/// [`TestbedError`] with the engine, the problem and a remedy. A failed start leaves nothing behind.
pub fn start(engine: &str, options: &StartOptions) -> Result<Server, TestbedError> {
    // Checked here as well as in the supervisor, so that simple mistakes need no process.
    registry::by_name(engine)?;
    match testing::for_program(engine, options)? {
        Some(server) => Ok(server),
        None => start_own(&options.supervisor_program, options.programs.as_deref(), &options.spec(engine)),
    }
}

/// Removes the folders that killed supervisors left in `base` (or the default folder), with their servers, and returns
/// them. [`start`] does the same first.
pub fn sweep(base: Option<&Path>) -> Vec<PathBuf> {
    let mut options = StartOptions::new("");
    options.base = base.map(Path::to_owned);
    folder::sweep(&folder::base(&options.spec("")))
}
