//! Loops of reads that an application spreads over the connections of a pool. No connection has more than a part of one: what
//! follows what is known by time, and that there is one read for each row of the statement before.

use super::Statement;
use super::steps::{MANY, is_read};
use std::collections::{BTreeMap, HashMap};

/// The requests that are looked at: of more, the first ones say it.
const MOST: usize = 200_000;
/// The statements whose loops are looked for, and the statements before each.
const LOOPS: usize = 50;
const BEFORE: usize = 3;
/// The share of the statements with rows that must be followed by as many reads.
const SHARE: f64 = 0.8;

/// Requests outside of transactions, over all connections.
#[derive(Default)]
pub(super) struct Requests(Vec<One>);

#[derive(Clone, Copy)]
struct One {
    at: u64,
    end: u64,
    connection: u64,
    statement: usize,
    rows: u64,
}

/// A loop of reads over several connections, behind another statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) before: usize,
    pub(crate) statement: usize,
    /// How often, and how often it repeats at least and at most.
    pub(crate) calls: u64,
    pub(crate) times: [u64; 2],
}

impl Requests {
    pub(super) fn push(&mut self, connection: u64, statement: usize, [at, end]: [u64; 2], rows: u64) {
        if self.0.len() < MOST {
            self.0.push(One { at, end, connection, statement, rows });
        }
    }

    /// The loops that no connection has alone. `pause`: the time after which something else begins, in nanoseconds.
    pub(super) fn loops(mut self, statements: &[Statement], pause: u64) -> Vec<Spread> {
        self.0.sort_by_key(|one| one.at);
        // What was last before each run of a statement.
        let mut before: BTreeMap<usize, HashMap<usize, u64>> = BTreeMap::new();
        let mut of: HashMap<usize, Vec<One>> = HashMap::new();
        for pair in self.0.windows(2).filter(|pair| pair[0].statement != pair[1].statement) {
            *before.entry(pair[1].statement).or_default().entry(pair[0].statement).or_default() += 1;
        }
        for one in &self.0 {
            of.entry(one.statement).or_default().push(*one);
        }
        let text = |place: usize| statements.get(place).map_or("", |one| one.text.as_str());
        let mut wanted: Vec<usize> = before.keys().copied().filter(|place| is_read(text(*place))).collect();
        wanted.sort_by_key(|place| std::cmp::Reverse(of.get(place).map_or(0, Vec::len)));
        let mut found = Vec::new();
        for statement in wanted.into_iter().take(LOOPS) {
            let mut all: Vec<(usize, u64)> =
                before.remove(&statement).unwrap_or_default().into_iter().collect();
            all.sort_by_key(|(place, count)| (std::cmp::Reverse(*count), *place));
            let loops = all.into_iter().take(BEFORE).filter_map(|(before, _)| {
                let [outer, inner] =
                    [before, statement].map(|place| of.get(&place).map_or(&[][..], Vec::as_slice));
                let (calls, times) = followed(outer, inner, pause)?;
                Some(Spread { before, statement, calls, times })
            });
            found.extend(loops.max_by_key(|one| one.calls));
        }
        found
    }
}

/// How often a statement is followed by as many reads as it gave rows, over several connections, and how many these are at least
/// and at most; `None` where that is not the rule.
///
/// Several at a time are counted together: from one at which neither is under way to the next, there are as many reads as rows.
fn followed(outer: &[One], inner: &[One], pause: u64) -> Option<(u64, [u64; 2])> {
    let (mut outer, mut inner) = (outer.iter().peekable(), inner.iter().peekable());
    let (mut all, mut right, mut times) = (0_u64, 0_u64, [u64::MAX, 0]);
    let mut part = Part::default();
    loop {
        let is_outer = match (outer.peek(), inner.peek()) {
            (None, None) => break,
            (Some(one), Some(two)) => one.at <= two.at,
            (one, _) => one.is_some(),
        };
        let Some(one) = (if is_outer { outer.next() } else { inner.next() }) else { break };
        let is_idle = one.at >= part.end;
        if part.end > 0 && (is_idle && is_outer && part.is_right() || one.at > part.end.saturating_add(pause))
        {
            part.count(&mut all, &mut right, &mut times);
            part = Part::default();
        }
        part.end = part.end.max(one.end);
        if is_outer {
            (part.calls, part.rows) = (part.calls + u64::from(one.rows > 0), part.rows + one.rows);
            part.times = [part.times[0].min(one.rows), part.times[1].max(one.rows)];
        } else {
            part.reads += 1;
            part.is_spread |= part.connection.is_some_and(|known| known != one.connection);
            part.connection = Some(one.connection);
        }
    }
    part.count(&mut all, &mut right, &mut times);
    (right > 0 && right as f64 >= SHARE * all as f64 && times[1] >= MANY).then_some((right, times))
}

/// What is done between two moments at which nothing is under way.
struct Part {
    end: u64,
    /// Calls of the statement before that gave rows, and their rows.
    calls: u64,
    rows: u64,
    times: [u64; 2],
    reads: u64,
    connection: Option<u64>,
    is_spread: bool,
}

impl Default for Part {
    fn default() -> Self {
        Self { end: 0, calls: 0, rows: 0, times: [u64::MAX, 0], reads: 0, connection: None, is_spread: false }
    }
}

impl Part {
    fn is_right(&self) -> bool {
        self.rows == self.reads
    }

    fn count(&self, all: &mut u64, right: &mut u64, times: &mut [u64; 2]) {
        *all += self.calls;
        if self.is_right() && self.is_spread && self.rows >= MANY * self.calls {
            *right += self.calls;
            *times = [times[0].min(self.times[0]), times[1].max(self.times[1])];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_stats::Rng;

    const PAUSE: u64 = 10_000_000;
    const MS: u64 = 1_000_000;

    fn found(all: &[(u64, usize, [u64; 2], u64)]) -> Vec<Spread> {
        let mut requests = Requests::default();
        for (connection, statement, times, rows) in all {
            requests.push(*connection, *statement, *times, *rows);
        }
        let named = |text: &str| Statement { text: text.to_owned(), ..Statement::default() };
        requests.loops(&[named("SELECT a"), named("SELECT b"), named("UPDATE c")], PAUSE)
    }

    /// Pages of several threads at once, each a list and a read for each of its rows, over the connections of a pool in turn.
    fn pages(threads: u64, reads: usize) -> Vec<(u64, usize, [u64; 2], u64)> {
        let (mut all, mut next, mut rng) = (Vec::new(), 0, Rng::new(1));
        for thread in 0..threads {
            let mut at = thread * MS / 3;
            for page in 0..10 {
                let rows = 5 + (page + thread) % 4;
                for n in 0..=rows {
                    let end = at + 200_000 + rng.below(100_000);
                    let statement = if n == 0 { 0 } else { reads };
                    all.push((next % 7, statement, [at, end], if n == 0 { rows } else { 1 }));
                    (at, next) = (end + 50_000, next + 1);
                }
                at += 3 * MS;
            }
        }
        all
    }

    #[test]
    fn loop_over_the_connections_of_a_pool_is_found_whatever_is_done_at_the_same_time() {
        for threads in [1, 3] {
            let found = found(&pages(threads, 1));
            assert_eq!(
                found,
                [Spread { before: 0, statement: 1, calls: 10 * threads, times: [5, 8] }],
                "{threads}"
            );
        }
        // What is written is no read, and one connection alone has units of its own.
        assert!(found(&pages(1, 2)).is_empty());
        let alone: Vec<_> =
            pages(1, 1).into_iter().map(|(_, statement, at, rows)| (0, statement, at, rows)).collect();
        assert!(found(&alone).is_empty());
    }

    #[test]
    fn clients_that_know_nothing_of_each_other_are_no_loop() {
        let mut rng = Rng::new(2);
        for lists in [1, 5, 20] {
            let mut all = Vec::new();
            for connection in 0..8 {
                let mut at = rng.below(MS);
                for _ in 0..500 {
                    let end = at + 100_000 + rng.below(100_000);
                    let statement = usize::from(rng.below(100) >= lists);
                    all.push((connection, statement, [at, end], if statement == 0 { 10 } else { 1 }));
                    at = end + rng.below(40 * MS);
                }
            }
            assert_eq!(found(&all), [], "{lists}");
        }
    }
}
