//! `kurabe agent`: observes servers of this host for a run on another host.

use crate::exit::{self, Exit};
use anyhow::Result;
use kurabe_core::{Error, ErrorKind};
use std::io;

pub(super) fn agent() -> Result<Exit> {
    let ended = kurabe_observe::serve(io::stdin().lock(), io::stdout().lock());
    match ended {
        Ok(()) => Ok(exit::DONE),
        // The run has ended.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(exit::DONE),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(Error::usage(format!("agent: {error}")).hint("a run starts the agent: see ?observe").into())
        }
        Err(error) => Err(Error::new(ErrorKind::Environment, format!("agent: {error}")).into()),
    }
}
