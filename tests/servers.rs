//! The program on real servers: measurements, refusals with their reasons, and clean-up.

mod anonymous;
mod beforehand;
mod bulk;
mod cache;
mod cells;
pub(crate) mod common;
mod connections;
mod cpus;
mod disk;
mod ends;
mod estimate;
mod eviction;
mod footprint;
mod kills;
mod link;
mod load;
mod malformed;
mod memory;
mod pooler;
mod reach;
mod read_only;
mod refusals;
mod secrets;
mod standby;
pub(crate) mod tls;
mod watch;
