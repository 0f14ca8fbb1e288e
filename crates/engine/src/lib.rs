//! The measuring loop. It plans cells, runs trials in randomised rounds, drives clients, verifies every reply and
//! accounts for every transaction. It reports progress as [`Event`](event::Event)s and prints nothing.

pub mod budget;
mod cancellable;
mod client;
mod clock;
mod connections;
pub mod cpu_partition;
mod draw_seed;
pub mod event;
pub mod eviction;
pub mod fixture;
pub mod fleet;
mod gate;
mod groups;
mod interleave;
mod job;
pub mod latency;
mod launch;
mod loopback;
mod open;
mod order;
pub mod overhead;
mod peak_memory;
pub mod plan;
mod pool;
pub mod preflight;
mod rate_search;
mod records;
mod run_state;
pub mod runner;
mod schedule;
mod server_memory;
mod server_stats;
mod sliced;
mod slices;
mod spans;
mod standstill;
mod tail;
pub mod target;
mod throughput;
mod timeline;
mod totals;
pub mod trial;
mod turnstile;
mod warmup_detector;

pub use cancellable::cancellable;
