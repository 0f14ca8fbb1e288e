//! The kinds of transactions of a capture: those whose statements, with loops folded, are the same.

use super::traffic::{Connection, Kind, Template, TransactionKind, Unit};
use kurabe_capture::units::{Node, What, alike, folded};
use kurabe_core::sort;
use kurabe_core::text::cut;
use kurabe_wire::view::{Step, Transaction};
use std::cmp::Reverse;

/// Characters of a statement in the text of a transaction.
const SHOWN: usize = 60;

/// Finds the transactions of more than one statement, and says of each of their units which one it belongs to. Kinds are in the
/// order of their time, the longest first.
pub(super) fn find(
    units: &mut [Unit],
    connections: &[Connection],
    templates: &[Template],
    kinds: &[Kind],
) -> Vec<TransactionKind> {
    let mut found: Vec<TransactionKind> = Vec::new();
    for connection in connections {
        let mut open: Vec<usize> = Vec::new();
        for unit in &connection.units {
            let state = units[*unit].requests.last().map(|sent| sent.request.transaction);
            let goes_on = matches!(state, Some(Transaction::Open | Transaction::Failed));
            if !goes_on && open.is_empty() {
                continue;
            }
            open.push(*unit);
            if !goes_on && state == Some(Transaction::None) {
                one(&std::mem::take(&mut open), units, templates, &mut found);
            }
        }
    }
    let mut order: Vec<usize> = (0..found.len()).collect();
    sort::by_key(&mut order, |kind| Reverse(found[*kind].time));
    for unit in units.iter_mut() {
        if let Some((kind, _)) = &mut unit.transaction {
            *kind = order.iter().position(|known| known == kind).unwrap_or_default();
        }
    }
    sort::by_key(&mut found, |kind| Reverse(kind.time));
    for kind in &mut found {
        kind.text = shown(&kind.nodes, kinds);
    }
    found
}

/// Enters a transaction.
fn one(of: &[usize], units: &mut [Unit], templates: &[Template], found: &mut Vec<TransactionKind>) {
    let sent = of.iter().flat_map(|unit| &units[*unit].requests);
    let statements: Vec<usize> = sent
        .filter(|sent| sent.request.step != Step::Prepare && !templates[sent.template].is_setup)
        .map(|sent| templates[sent.template].kind)
        .collect();
    if statements.len() < 2 {
        return;
    }
    let nodes = folded(&statements);
    let known = found.iter().position(|kind| alike(&kind.nodes, &nodes));
    let number = known.unwrap_or(found.len());
    if known.is_none() {
        found.push(TransactionKind { nodes: nodes.clone(), text: String::new(), calls: 0, time: 0 });
    }
    let kind = &mut found[number];
    kind.nodes.iter_mut().zip(&nodes).for_each(|(own, other)| own.widen(other));
    kind.calls += 1;
    for (n, unit) in of.iter().enumerate() {
        let unit = &mut units[*unit];
        kind.time = kind.time.saturating_add(unit.end.saturating_sub(unit.at));
        unit.transaction = Some((number, n + 1 == of.len()));
    }
}

fn shown(nodes: &[Node], kinds: &[Kind]) -> String {
    let one = |node: &Node| {
        let what = match &node.what {
            What::Statement(kind) => cut(&kinds[*kind].text, SHOWN).into_owned(),
            What::Loop(nodes) => format!("({})", shown(nodes, kinds)),
        };
        match (node.least, node.most) {
            (1, 1) => what,
            (least, most) if least == most => format!("{most} × {what}"),
            (least, most) => format!("{least} to {most} × {what}"),
        }
    };
    nodes.iter().map(one).collect::<Vec<_>>().join(" + ")
}
