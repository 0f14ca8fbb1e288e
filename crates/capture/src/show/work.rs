//! Units of work: what a connection did in a transaction, or outside of one without a pause.

use crate::forms::Value;
use crate::units::{Node, Visits, What, alike, flatten, fold, folded, walk};
use kurabe_stats::Rng;
use std::collections::{BTreeMap, HashMap};

/// The passes from which a loop outside of a transaction is a client's, and not one of the application.
const PASSES: u64 = 10;
/// The maximum number of kinds of units.
const UNITS: usize = 1_000;
/// The maximum number of units of a kind whose values are kept: more do not make draws clearer.
const SAMPLES: usize = 10_000;
/// The maximum number of statements and values in all of these.
const SAMPLED: usize = 800_000;
/// A unit outside of a transaction with more parts than this is no unit, but a client that never pauses.
const PARTS: usize = 64;

/// Kinds of units, by their statements without repetitions, with samples of their values.
#[derive(Default)]
pub(super) struct Work {
    pub(super) kinds: HashMap<Vec<usize>, Vec<Kind>>,
    /// How many units were of other kinds, when there were too many.
    pub(super) not_listed: u64,
    rng: Option<Rng>,
    sampled: usize,
}

/// A kind of unit with the values of some of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kind {
    pub(crate) nodes: Vec<Node>,
    pub(crate) calls: u64,
    pub(crate) total_ns: u64,
    pub(crate) transaction: bool,
    pub(crate) rolled_back: u64,
    seen: u64,
    /// In the order of time.
    pub(crate) samples: Vec<Sample>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) connection: u64,
    pub(crate) at: u64,
    /// Each with the number of its node.
    pub(crate) calls: Vec<(usize, Occurrence)>,
    /// Of nodes that repeat, how often.
    pub(crate) counts: Vec<(usize, u64)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Occurrence {
    pub(crate) statement: usize,
    /// The form, if there are not too many.
    pub(crate) form: Option<usize>,
    pub(crate) at: u64,
    /// The time since the connection's answer before.
    pub(crate) pause: u64,
    pub(crate) values: Vec<Value>,
}

/// A connection while it is read.
#[derive(Default)]
pub(super) struct Live {
    pub(super) requests: u64,
    pub(super) opened: u64,
    pub(super) ended: u64,
    pub(super) in_transaction: bool,
    pub(super) rolled_back: bool,
    pub(super) statements: Vec<usize>,
    pub(super) calls: Vec<Occurrence>,
    /// The statements and values in these.
    pub(super) kept: usize,
    pub(super) unit_ns: u64,
    pub(super) unit_at: u64,
}

impl Live {
    /// The same connection with these statements.
    fn of(&self, unit_ns: u64, statements: &[usize], calls: Vec<Occurrence>) -> Self {
        let (opened, ended, unit_at) = (self.opened, self.ended, self.unit_at);
        Self { opened, ended, unit_at, unit_ns, statements: statements.to_vec(), calls, ..Self::default() }
    }

    /// Takes the first statements, and their share of the time.
    fn split(&mut self, length: usize) -> Self {
        let share = length as f64 / self.statements.len().max(1) as f64;
        let unit_ns = (self.unit_ns as f64 * share) as u64;
        self.unit_ns -= unit_ns;
        let statements: Vec<usize> = self.statements.drain(..length).collect();
        let calls = self.calls.drain(..length.min(self.calls.len())).collect();
        self.of(unit_ns, &statements, calls)
    }
}

impl Work {
    /// Ends a connection's unit of work.
    pub(super) fn end(&mut self, connection: u64, live: &mut Live) {
        let total_ns = std::mem::take(&mut live.unit_ns);
        let (statements, calls) = (std::mem::take(&mut live.statements), std::mem::take(&mut live.calls));
        if statements.is_empty() {
            return;
        }
        // A transaction is one unit, whatever it repeats.
        let (times, nodes) = if live.in_transaction { (1, folded(&statements)) } else { fold(&statements) };
        if !live.in_transaction
            && let Some([before, after]) = self.ends_of_loop(&nodes)
        {
            // A client in a loop was slow once: what is before and after whole passes is no unit.
            let mut rest = live.of(total_ns, &statements, calls);
            for (from, to) in [
                (0, before),
                (before, statements.len() - after),
                (statements.len() - after, statements.len()),
            ] {
                let length = to - from;
                let mut part = rest.split(length);
                if from == before && length > before + after {
                    self.end(connection, &mut part);
                } else {
                    let Live { unit_ns, statements, calls, .. } = part;
                    self.pieces(connection, live, unit_ns, &statements, calls);
                }
            }
            return;
        }
        let key = flatten(&nodes);
        let is_full = self.kinds.len() >= UNITS && !self.kinds.contains_key(&key);
        if !live.in_transaction && (is_full || nodes.len() > PARTS) && key.len() > 1 {
            self.pieces(connection, live, total_ns, &statements, calls);
            return;
        }
        // Single statements are told apart always: there are not more of them than kinds of statements.
        if is_full && key.len() > 1 {
            self.not_listed += times;
            return;
        }
        let kinds = self.kinds.entry(key).or_default();
        let transaction = live.in_transaction;
        let known =
            kinds.iter().position(|kind| kind.transaction == transaction && alike(&kind.nodes, &nodes));
        let place = known.unwrap_or_else(|| {
            kinds.push(Kind { nodes: nodes.clone(), transaction, ..Kind::default() });
            kinds.len() - 1
        });
        let Some(kind) = kinds.get_mut(place) else { return };
        kind.calls += times;
        kind.total_ns += total_ns;
        kind.rolled_back += if live.rolled_back { times } else { 0 };
        kind.nodes.iter_mut().zip(&nodes).for_each(|(own, other)| own.widen(other));
        let (mut rest, mut calls) = (statements.as_slice(), calls.into_iter());
        let rng = self.rng.get_or_insert_with(|| Rng::new(0));
        for _ in 0..times {
            let mut visits = Visits::default();
            let found = walk(&nodes, 0, &mut rest, &mut visits);
            let calls: Vec<_> = visits.statements.into_iter().zip(&mut calls).collect();
            if found.is_none() || calls.is_empty() {
                break;
            }
            // A reservoir: each unit of a kind is in it with the same probability (Vitter 1985, algorithm R).
            kind.seen += 1;
            let cost: usize = calls.iter().map(|(_, call): &(usize, Occurrence)| cost(&call.values)).sum();
            let most = SAMPLES.min(SAMPLED / 8 / cost).max(1);
            let is_full = kind.samples.len() >= most || self.sampled >= SAMPLED;
            let place = if is_full { rng.below(kind.seen) as usize } else { kind.samples.len() };
            let at = calls.first().map_or(live.unit_at, |(_, call)| call.at);
            let sample = Sample { connection, at, calls, counts: visits.counts };
            if let Some(old) = kind.samples.get_mut(place) {
                *old = sample;
            } else if !is_full || kind.samples.is_empty() {
                self.sampled += cost;
                kind.samples.push(sample);
            }
        }
    }

    /// If a unit is one loop that begins or ends in the midst of a pass: how many statements are before the first whole pass,
    /// and after the last. Where a pass begins is known from clients that were seen to begin one.
    fn ends_of_loop(&self, nodes: &[Node]) -> Option<[usize; 2]> {
        let place =
            nodes.iter().position(|node| matches!(node.what, What::Loop(_)) && node.least >= PASSES)?;
        let (before, [Node { what: What::Loop(body), most, .. }, after @ ..]) =
            nodes.split_at_checked(place)?
        else {
            return None;
        };
        let once = |nodes: &[Node]| -> Option<Vec<usize>> {
            let one = |node: &Node| match node.what {
                What::Statement(statement) if node.most == 1 => Some(statement),
                _ => None,
            };
            nodes.iter().map(one).collect()
        };
        let (before, body, after) = (once(before)?, once(body)?, once(after)?);
        if nodes.len() == 1 || !body.ends_with(&before) || !body.starts_with(&after) {
            return None;
        }
        let turned = |by: usize| [&body[by..], &body[..by]].concat();
        let known = (0..body.len()).find(|by| self.kinds.contains_key(&turned(*by)));
        // Turned by so many statements, the first pass begins so much later, or one pass earlier.
        let first = before.len() + known.unwrap_or(0);
        let first = if first >= body.len() { first - body.len() } else { first };
        let all = before.len() + body.len() * *most as usize + after.len();
        Some([first, (all - first) % body.len()])
    }

    /// Takes each statement of a client that never pauses as a unit of its own.
    fn pieces(
        &mut self,
        connection: u64,
        live: &Live,
        total_ns: u64,
        statements: &[usize],
        calls: Vec<Occurrence>,
    ) {
        if statements.is_empty() {
            return;
        }
        let mut alone: BTreeMap<usize, Live> = BTreeMap::new();
        for statement in statements {
            alone.entry(*statement).or_default().statements.push(*statement);
        }
        for call in calls {
            if let Some(one) = alone.get_mut(&call.statement) {
                one.calls.push(call);
            }
        }
        for (_, mut one) in alone {
            one.unit_at = live.unit_at;
            let share = one.statements.len() as f64 / statements.len() as f64;
            one.unit_ns = (total_ns as f64 * share) as u64;
            self.end(connection, &mut one);
        }
    }
}

/// The memory of a statement's values, in values: a kilobyte of text is one more.
pub(super) fn cost(values: &[Value]) -> usize {
    let long = |value: &Value| if let Value::Text(text) = value { text.len() >> 10 } else { 0 };
    1 + values.iter().map(|value| 1 + long(value)).sum::<usize>()
}
