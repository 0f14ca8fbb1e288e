//! Units of work: what an application did at a time, with its loops folded.

use serde::ser::{Serialize, SerializeMap, Serializer};

/// The longest sequence of different statements that is found to repeat.
const PERIOD: usize = 16;

/// A statement or a loop, how often it came one after the other in a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// A statement's number, or what a loop repeats.
    pub what: What,
    /// The least and the most repetitions.
    pub least: u64,
    pub most: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Statement(usize),
    Loop(Vec<Node>),
}

/// A node is written with the least and the most repetitions, and with the statement or what repeats.
impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("times", &[self.least, self.most])?;
        match &self.what {
            What::Statement(place) => map.serialize_entry("statement", place)?,
            What::Loop(body) => map.serialize_entry("repeats", body)?,
        }
        map.end()
    }
}

impl Node {
    fn one(statement: usize) -> Self {
        Self { what: What::Statement(statement), least: 1, most: 1 }
    }

    /// How many numbers it has, with what it repeats.
    pub(crate) fn size(&self) -> usize {
        match &self.what {
            What::Statement(_) => 1,
            What::Loop(body) => 1 + body.iter().map(Self::size).sum::<usize>(),
        }
    }

    /// Whether it is the same but for its repetitions.
    pub fn is_like(&self, other: &Self) -> bool {
        match (&self.what, &other.what) {
            (What::Statement(one), What::Statement(two)) => one == two,
            (What::Loop(one), What::Loop(two)) => alike(one, two),
            _ => false,
        }
    }

    /// Widens the repetitions to those of the same elsewhere.
    pub fn widen(&mut self, other: &Self) {
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        if let (What::Loop(own), What::Loop(others)) = (&mut self.what, &other.what) {
            own.iter_mut().zip(others).for_each(|(own, other)| own.widen(other));
        }
    }
}

/// Whether two sequences are the same but for repetitions.
pub fn alike(one: &[Node], two: &[Node]) -> bool {
    one.len() == two.len() && one.iter().zip(two).all(|(one, two)| one.is_like(two))
}

pub fn folded(statements: &[usize]) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for statement in statements {
        let one = Node::one(*statement);
        match nodes.last_mut().filter(|last| last.is_like(&one)) {
            Some(last) => (last.least, last.most) = (last.least + 1, last.most + 1),
            None => nodes.push(one),
        }
    }
    // Loops in loops: an order's items, then a customer's orders.
    loops(loops(nodes))
}

/// Folds the loops of a sequence that has no end of its own. Gives how often all of it was done, and what.
pub(crate) fn fold(statements: &[usize]) -> (u64, Vec<Node>) {
    let nodes = folded(statements);
    match nodes.as_slice() {
        // A client in a loop, and not a loop of the application's.
        [Node { what: What::Loop(body), most, .. }] => (*most, body.clone()),
        [Node { what, most, .. }] => (*most, vec![Node { what: what.clone(), least: 1, most: 1 }]),
        _ => (1, nodes),
    }
}

/// Folds what repeats, the shortest first.
fn loops(nodes: Vec<Node>) -> Vec<Node> {
    (2..=PERIOD).fold(nodes, |nodes, period| repeats(&nodes, period))
}

fn repeats(nodes: &[Node], period: usize) -> Vec<Node> {
    let mut folded = Vec::new();
    let mut rest = nodes;
    while let Some((first, after)) = rest.split_first() {
        let mut pieces = rest.chunks_exact(period);
        let mut body = pieces.next().unwrap_or_default().to_vec();
        let times = 1 + pieces.take_while(|piece| alike(&body, piece)).count();
        if times == 1 || body.is_empty() {
            folded.push(first.clone());
            rest = after;
            continue;
        }
        let (repeated, after) = rest.split_at(period * times);
        for piece in repeated.chunks_exact(period) {
            body.iter_mut().zip(piece).for_each(|(own, other)| own.widen(other));
        }
        folded.push(Node { what: What::Loop(body), least: times as u64, most: times as u64 });
        rest = after;
    }
    folded
}

/// Where the statements of a unit stand in its nodes, which are numbered from the root on, each before what it repeats.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    /// The node of each statement, in order.
    pub(crate) statements: Vec<usize>,
    /// Of nodes that repeat, how often each did, as often as it was come to.
    pub(crate) counts: Vec<(usize, u64)>,
}

/// Follows one pass of a sequence through its nodes, the first of which is number `first`. Gives the number after the last
/// node; `None` if they are not of this sequence.
pub(crate) fn walk(nodes: &[Node], first: usize, rest: &mut &[usize], visits: &mut Visits) -> Option<usize> {
    let mut number = first;
    for node in nodes {
        let (mut count, mut next) = (0, number + 1);
        while count < node.most {
            let before = (*rest, visits.statements.len(), visits.counts.len());
            let done = match (&node.what, rest.split_first()) {
                (What::Statement(wanted), Some((statement, after))) if statement == wanted => {
                    visits.statements.push(number);
                    *rest = after;
                    Some(number + 1)
                }
                (What::Loop(body), Some(_)) => walk(body, number + 1, rest, visits),
                _ => None,
            };
            let Some(done) = done else {
                *rest = before.0;
                visits.statements.truncate(before.1);
                visits.counts.truncate(before.2);
                break;
            };
            (count, next) = (count + 1, done);
        }
        if count == 0 {
            return None;
        }
        if node.most > 1 {
            visits.counts.push((number, count));
        }
        number = next;
    }
    Some(number)
}

/// A statement of a sequence of nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf {
    /// The number of its node.
    pub(crate) node: usize,
    pub(crate) statement: usize,
    /// The number of the innermost node that repeats it.
    pub(crate) within: Option<usize>,
}

/// The statements of a sequence, whose nodes are numbered from 0 on.
pub(crate) fn leaves(nodes: &[Node]) -> Vec<Leaf> {
    fn add(nodes: &[Node], mut node: usize, within: Option<usize>, found: &mut Vec<Leaf>) {
        for one in nodes {
            let within = if one.most > 1 { Some(node) } else { within };
            match &one.what {
                What::Statement(statement) => found.push(Leaf { node, statement: *statement, within }),
                What::Loop(body) => add(body, node + 1, within, found),
            }
            node += one.size();
        }
    }
    let mut found = Vec::new();
    add(nodes, 0, None, &mut found);
    found
}

/// Gives statements other numbers.
pub(crate) fn renumber(nodes: &mut [Node], places: &[usize]) {
    for node in nodes {
        match &mut node.what {
            What::Statement(number) => *number = places.get(*number).copied().unwrap_or(0),
            What::Loop(body) => renumber(body, places),
        }
    }
}

/// The statements of a sequence without repetitions, as a key.
pub(crate) fn flatten(nodes: &[Node]) -> Vec<usize> {
    leaves(nodes).iter().map(|leaf| leaf.statement).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::steps;

    #[test]
    fn repeated_statement_with_an_end_of_its_own_is_one_unit() {
        assert_eq!(steps(&folded(&[7; 20])), "20 × #8");
        assert_eq!(steps(&folded(&[1, 2, 1, 2])), "2 × (#2 + #3)");
    }

    #[test]
    fn loops_are_folded_and_a_client_in_a_loop_is_many_units() {
        for (statements, times, expected) in [
            (vec![1, 2, 2, 2, 2], 1, "#2 + 4 × #3"),
            (vec![1, 2, 2, 2, 1, 2, 2], 2, "#2 + 2-3 × #3"),
            (vec![1, 2, 3, 2, 3, 2, 3], 1, "#2 + 3 × (#3 + #4)"),
            (vec![1, 2, 3, 2, 3, 1, 2, 3, 2, 3, 2, 3], 2, "#2 + 2-3 × (#3 + #4)"),
            (vec![7; 1000], 1000, "#8"),
            (vec![1, 2, 3], 1, "#2 + #3 + #4"),
            (vec![], 1, ""),
        ] {
            let (found, nodes) = fold(&statements);
            assert_eq!((found, steps(&nodes).as_str()), (times, expected), "{statements:?}");
            let (mut rest, mut visits) = (statements.as_slice(), Visits::default());
            let passes = (0..times).filter(|_| walk(&nodes, 0, &mut rest, &mut visits).is_some()).count();
            assert_eq!((passes as u64, rest.len()), (times, 0), "{statements:?}");
            assert_eq!(visits.statements.len(), statements.len());
            let looped: u64 = visits.counts.iter().map(|(_, count)| count).sum();
            assert_eq!(looped > 0, expected.contains('×'));
        }
    }
}
