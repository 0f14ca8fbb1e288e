//! The coordinator's side.

mod agents;
mod clocks;
mod find;
mod link;
mod member;
mod observe;
mod shared;
mod trial;

pub use agents::{Agents, ReachedServer};
pub use find::Wanted;
