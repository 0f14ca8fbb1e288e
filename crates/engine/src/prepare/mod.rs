//! What happens before the first trial: targets, limits, memory, what is loaded and claimed.

pub(crate) mod eviction;
pub mod fixture;
pub mod latency;
pub(crate) mod overhead;
pub(crate) mod preflight;
pub(crate) mod server_memory;
pub(crate) mod slowness;
pub mod target;
