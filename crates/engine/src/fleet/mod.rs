//! Trials whose clients are divided among processes: the agents of a fleet.
//!
//! The coordinator prepares and verifies a trial as any other, and gives its [`Order`] to a [`Fleet`]. Each agent plans
//! the same cell by itself, runs its [`Part`] of the clients, and returns what they recorded as an [`AgentResult`].
//! Results are added up as those of threads are. The engine knows neither a transport nor a message.

mod agents;
mod merge;
mod observed;
mod order;
mod part;
pub(crate) mod refusal;

pub use crate::trial::recorded::{ClientResult, PartResult, Recorded};
pub use agents::{AgentResult, Fleet, FleetClients, Started};
pub(crate) use merge::{sum, used};
pub(crate) use observed::{combined, without_wait};
pub use order::{CellOrder, Order};
pub(crate) use part::wait_until;
pub use part::{Part, PartOfTrial};
