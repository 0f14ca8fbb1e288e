//! A fleet: several machines run the clients of a trial.
//!
//! The coordinator is `kurabe run --fleet`: it plans, prepares, verifies, records and reports. An agent is `kurabe agent`:
//! it plans the same cell by itself, connects to the target by itself, runs its part of the clients, and returns what
//! they recorded. `kurabe-engine` knows agents only as a [`Fleet`](kurabe_engine::fleet::Fleet).
//!
//! The messages are lines of JSON ([`message`]). They travel over a pipe, of `ssh HOST kurabe agent --stdio`, or over
//! NATS. An agent on NATS starts a process `kurabe agent --stdio` for each run, and passes lines on. So there is one
//! implementation of an agent, and a run that is lost ends with its process and all connections.
//!
//! Both sides send a sign of life twice a second. An agent that has heard nothing for [`SILENCE`] ends; a coordinator
//! fails the trial, with the agent's name.

mod agent;
mod build;
mod clock;
mod coordinator;
mod delivery;
pub mod message;
mod nats;
mod place;
mod silence;

pub use agent::{Allowed, serve, serve_nats};
pub use build::Build;
pub use coordinator::{Agents, ReachedServer, Wanted};
pub use message::Roles;
pub use place::FleetUrl;

use std::time::Duration;

/// How often each side sends a sign of life.
pub const BEAT: Duration = Duration::from_millis(500);

/// After this time without a sign of life, the other side counts as lost.
pub const SILENCE: Duration = Duration::from_millis(3_500);
