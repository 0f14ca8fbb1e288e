//! One trial: one operation of one cell, from preparation to verification on the server.

pub(crate) mod course;
pub(crate) mod execute;
pub(crate) mod failure;
pub(crate) mod gate;
pub(crate) mod job;
pub(crate) mod judge;
pub(crate) mod parameters;
mod parts;
pub(crate) mod rate_search;
pub(crate) mod recorded;
mod scale;
pub(crate) mod server_stats;
pub(crate) mod spans;
pub(crate) mod standstill;
mod throughput;
pub(crate) mod warmup_detector;

pub use crate::clients::schedule::LoadModel;
pub use failure::Failure;
pub(crate) use failure::{caught, panicked};
pub use parameters::{Clients, Trial};

use crate::fleet::PartResult;
use kurabe_core::Result;
use kurabe_core::driver::Session;
use kurabe_core::experiment::DatasetState;
use kurabe_core::run::Measurement;

impl Trial<'_> {
    /// Runs the clients on data in this state, and verifies the results over a session if all clients succeeded.
    ///
    /// # Errors
    /// Any error of any client, and any mismatch: the trial has no result then.
    pub fn run(&self, state: &DatasetState, session: &mut dyn Session) -> Result<Measurement, Failure> {
        self.judge(self.execute(state, None)?, None, state, session)
    }

    /// Runs a part of the clients, on data in this state.
    ///
    /// # Errors
    /// Any error of any of these clients.
    pub fn run_part(&self, state: &DatasetState) -> Result<PartResult, Failure> {
        Ok(self.execute(state, None)?.part)
    }
}
