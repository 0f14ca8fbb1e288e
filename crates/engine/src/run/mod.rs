//! A run: its rounds, and what it reports meanwhile.

pub mod event;
pub(crate) mod reruns;
pub(crate) mod run_state;
pub mod runner;
pub(crate) mod throwaway;
