//! Trials of a round that are made again at its end.

use crate::plan::TrialId;
use crate::run::run_state::{Disturbance, DisturbanceKind, Rerun};
use std::collections::VecDeque;

/// Trials that are repeated at the end of their round.
pub(crate) struct Queued {
    pub(crate) group: Vec<TrialId>,
    pub(crate) rerun: Rerun,
    pub(crate) kind: DisturbanceKind,
}

/// Queues a group that was disturbed after this many reruns. If an agent was lost, all trials that the round has `begun`
/// are repeated: they are compared with those that follow, which run on fewer agents.
pub(crate) fn queue_rerun(
    queue: &mut VecDeque<Queued>,
    begun: &[Vec<TrialId>],
    group: Vec<TrialId>,
    disturbance: &Disturbance,
    reruns: u32,
) {
    let Disturbance { why, kind } = disturbance;
    let queued = |group, number| Queued { group, rerun: Rerun { why: why.clone(), number }, kind: *kind };
    if *kind == DisturbanceKind::LostAgent {
        // They are among those that the round has begun.
        queue.clear();
        queue.extend(begun.iter().map(|group| queued(group.clone(), 1)));
    } else {
        queue.push_back(queued(group, reruns + 1));
    }
}
