//! What happens before the first trial: targets, limits, memory, what is loaded and claimed.

pub mod eviction;
pub mod fixture;
pub mod latency;
pub mod overhead;
pub mod preflight;
pub(crate) mod server_memory;
pub mod target;
