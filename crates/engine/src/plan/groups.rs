//! Decides which trials of a round are interleaved.

use crate::plan::{Plan, TrialId};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::load::Load;
use kurabe_core::question::Question;
use kurabe_stats::rng::{Rng, mix};

/// The maximum number of connections that clients have at the same time, below the limit of any server.
const CONNECTIONS: u64 = 64;

/// Trials that are interleaved with each other.
struct Group {
    /// What they have in common; `None` for a single trial.
    alike: Option<(usize, Cell)>,
    trials: Vec<TrialId>,
    /// Their data: fixtures and datasets.
    data: Vec<(usize, String)>,
    /// The connections of their clients, all of which are open at the same time.
    connections: u64,
    /// The memory that their clients hold, in bytes.
    held: u64,
}

/// Groups the trials that are interleaved. Without interleaving, each trial is a group.
///
/// A group contains cells of one operation that are compared with each other: those that differ in the target or in a
/// choice, but not in an amount. All of them are connected at the same time, so that the limits of servers and machine are
/// those of the group; what does not fit is in another one. If they write, a group has one cell of each dataset, since two would see each
/// other's rows.
pub(crate) fn groups(plan: &Plan) -> Vec<Vec<TrialId>> {
    if plan.spec.slice_ns.is_none() {
        return plan.trials.iter().map(|trial| vec![*trial]).collect();
    }
    let mut groups: Vec<Group> = Vec::new();
    for &(cell, operation) in &plan.trials {
        let run_cell = &plan.cells[cell];
        let Some(planned) = run_cell.available() else { continue };
        let (axes, slot) = (&run_cell.record.axes, run_cell.slot);
        let (connections, held) = (planned.client_connections(), planned.held_bytes());
        let can = planned.policy.interleave
            && !planned.needs.contains(&kurabe_core::planned::Need::Restart)
            && Load::of(axes) == Load::Closed
            && connections < CONNECTIONS;
        let most = plan.free_connections[run_cell.record.target].min(CONNECTIONS);
        let writes = plan.operations[operation].writes;
        let data = (slot, planned.dataset.clone());
        let alike = can.then(|| (operation, alike(axes, plan.spec.question.as_ref())));
        let fits = |group: &Group| {
            alike.is_some()
                && group.alike == alike
                && group.connections + connections <= most
                && group.held + held <= plan.max_held
                && !(writes && group.data.contains(&data))
        };
        // The same cell of another target first: those two are compared in any case.
        let has_same =
            |group: &Group| group.trials.iter().any(|(cell, _)| plan.cells[*cell].record.axes == *axes);
        let found = groups.iter().position(|group| fits(group) && has_same(group));
        let found = found.or_else(|| groups.iter().position(fits));
        if let Some(group) = found.map(|at| &mut groups[at]) {
            group.trials.push((cell, operation));
            group.data.push(data);
            group.connections += connections;
            group.held += held;
        } else {
            groups.push(Group {
                alike,
                trials: vec![(cell, operation)],
                data: vec![data],
                connections,
                held,
            });
        }
    }
    groups.into_iter().map(|group| group.trials).collect()
}

/// The key that compared cells have in common. Runs of earlier versions compared all axes.
fn alike(axes: &Cell, question: Option<&Question>) -> Cell {
    let kept = axes.values().iter().filter(|(name, value)| {
        matches!(value, AxisValue::Number(_)) || question.is_some_and(|question| !question.compares(name))
    });
    Cell::new(kept.map(|(name, value)| (name.clone(), value.clone())))
}

/// Shuffles the groups of round `round`, and the trials of each: groups of one length have orders of their own.
pub(crate) fn shuffle<T>(seed: u64, round: u32, groups: &mut [Vec<T>]) {
    let mut rng = Rng::new(mix(seed, 0x6f72_6465_7200 + u64::from(round)));
    rng.shuffle(groups);
    for group in groups {
        rng.shuffle(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_runs_every_trial_once_in_its_own_order() {
        let of_round = |round| {
            let mut groups: Vec<Vec<usize>> = (0..50).map(|trial| vec![trial]).collect();
            shuffle(1, round, &mut groups);
            groups.concat()
        };
        let (first, second) = (of_round(0), of_round(1));
        assert_ne!(first, second);
        assert_eq!(first, of_round(0));
        let mut sorted = first;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn groups_of_one_length_have_orders_of_their_own() {
        let alike = |round: &u32| {
            let mut groups: Vec<Vec<(usize, usize)>> =
                (0..2).map(|group| (0..4).map(|trial| (group, trial)).collect()).collect();
            shuffle(1, *round, &mut groups);
            let order = |at: usize| groups[at].iter().map(|(_, trial)| *trial).collect::<Vec<_>>();
            order(0) == order(1)
        };
        // One of 24 orders is the same by chance.
        assert!((0..48).filter(alike).count() < 12);
    }
}
