//! The clients of a trial: their threads, connections, schedules and processors.

pub(crate) mod client;
pub(crate) mod connections;
pub mod cpu_partition;
pub(crate) mod launch;
pub(crate) mod schedule;

pub(crate) mod slices;
