//! Which trials of a round are interleaved.

use crate::plan::{Plan, TrialId};
use kurabe_core::axis::{AxisValue, Cell};
use kurabe_core::load::Load;

/// Clients that stand ready at once, at most: no server's limit of connections lies below.
const CLIENTS: usize = 64;

/// Trials that are made together.
struct Group {
    /// What they have in common; `None` for one that is made alone.
    alike: Option<(usize, Cell)>,
    trials: Vec<TrialId>,
    /// Where their data is.
    slots: Vec<usize>,
    clients: usize,
}

/// Groups the trials that are interleaved; each is on its own where that was not asked for.
///
/// Together are cells of one operation that verdicts compare with each other: those which differ in their targets or in a
/// choice, not in an amount. Where they write, one of each fixture: two would find each other's rows.
pub(crate) fn groups(plan: &Plan) -> Vec<Vec<TrialId>> {
    if plan.spec.slice_ns.is_none() {
        return plan.trials.iter().map(|trial| vec![*trial]).collect();
    }
    let mut groups: Vec<Group> = Vec::new();
    for &(cell, operation) in &plan.trials {
        let run_cell = &plan.cells[cell];
        let Some(planned) = run_cell.available() else { continue };
        let (axes, slot, clients) = (&run_cell.record.axes, run_cell.slot, planned.policy.clients);
        let can = planned.policy.interleave
            && !planned.provision.restart
            && Load::of(axes) == Load::Closed
            && clients < CLIENTS;
        let writes = plan.operations[operation].writes;
        let alike = can.then(|| (operation, alike(axes, writes)));
        let fits = |group: &&mut Group| {
            alike.is_some()
                && group.alike == alike
                && group.clients + clients <= CLIENTS
                && !(writes && group.slots.contains(&slot))
        };
        if let Some(group) = groups.iter_mut().find(fits) {
            group.trials.push((cell, operation));
            group.slots.push(slot);
            group.clients += clients;
        } else {
            groups.push(Group { alike, trials: vec![(cell, operation)], slots: vec![slot], clients });
        }
    }
    groups.into_iter().map(|group| group.trials).collect()
}

/// What cells that are compared with each other have in common.
fn alike(axes: &Cell, writes: bool) -> Cell {
    let kept = axes.values().iter().filter(|(_, value)| writes || matches!(value, AxisValue::Number(_)));
    Cell::new(kept.map(|(name, value)| (name.clone(), value.clone())))
}
