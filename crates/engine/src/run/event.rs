//! Events of the engine, for the progress display and the recorder.

use kurabe_core::run::{CellRecord, Replanned, TrialRecord};
use std::time::Duration;

#[derive(Debug)]
pub enum Event<'a> {
    /// Data is being loaded, before the first trial that needs it.
    Loading { cell: &'a CellRecord },
    /// Throwaway servers are being restarted, between two blocks of rounds.
    Restarting,
    /// A trial starts.
    TrialBegins {
        /// Its round, from 0.
        round: u32,
        cell: &'a CellRecord,
        operation: &'a str,
        /// Trials that have ended, including those recorded before a resume.
        ended: usize,
        /// The total number of planned trials.
        planned: usize,
        /// The estimated remaining time; `None` before the first trial has ended.
        left: Option<Duration>,
    },
    /// The run goes on without an agent of its fleet.
    AgentLost {
        /// Its name, and the reason, as a clause.
        why: &'a str,
    },
    /// Some rounds will not be made, so that the run keeps to its budget.
    Replanned {
        plan: Replanned,
        /// The number of rounds before.
        planned: u32,
        /// The time that those would have taken, since the start of the run.
        expected: Duration,
    },
    /// All planned rounds are complete. The listener may request more.
    RoundsEnd {
        /// The number of rounds.
        rounds: u32,
        /// The number of additional rounds; 0 unless the listener sets it.
        further: &'a mut u32,
    },
    /// A trial ended, successfully or not. The listener records it before it returns.
    TrialEnds {
        /// The result.
        record: &'a TrialRecord,
    },
}
