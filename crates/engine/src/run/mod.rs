//! A run: its rounds, and what it reports meanwhile.

pub(crate) mod attempt;
pub mod event;
mod replan;
pub(crate) mod reruns;
pub(crate) mod run_state;
pub mod runner;
pub(crate) mod throwaway;
