//! What the engine tells while it works. The progress display and the recorder are its listeners.

use kurabe_core::run::{CellRecord, TrialRecord};
use std::time::Duration;

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A store is being filled, before the first trial that needs it.
    Loading {
        /// The cell that needs it.
        cell: &'a CellRecord,
    },
    /// The throwaway servers are being restarted, between two blocks of rounds.
    Restarting,
    /// A trial begins.
    TrialBegins {
        /// Its round, from 0.
        round: u32,
        /// The cell.
        cell: &'a CellRecord,
        /// The operation.
        operation: &'a str,
        /// Trials ended so far, those of an earlier sitting included.
        ended: usize,
        /// Trials planned in all.
        planned: usize,
        /// How long the rest will take, from what the trials took so far; `None` before anything is known.
        left: Option<Duration>,
    },
    /// All rounds planned so far are made. The listener may ask for further ones.
    RoundsEnd {
        /// How many they are.
        rounds: u32,
        /// How many more are wanted: 0 unless the listener says otherwise.
        further: &'a mut u32,
    },
    /// A trial ended, well or not. The listener records it before it returns.
    TrialEnds {
        /// What came out.
        record: &'a TrialRecord,
    },
}
