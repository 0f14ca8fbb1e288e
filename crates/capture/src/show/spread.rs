//! Loops of reads that an application spreads over the connections of a pool. No connection has more than a part of one. A loop is
//! known by the order in time, and by one read for each row of the statement before.

use super::Statement;
use super::steps::{MANY, is_read};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The requests that are looked at: of more, the first ones say it.
const MOST: usize = 200_000;
/// The pairs of statements that are looked at, the most frequent first.
const PAIRS: usize = 100;
/// The share of the statements with rows that must be followed by as many reads.
const SHARE: f64 = 0.8;

/// Requests outside of transactions, over all connections.
#[derive(Default)]
pub(super) struct Requests(Vec<One>);

struct One {
    at: u64,
    end: u64,
    connection: u64,
    statement: usize,
    rows: u64,
}

/// A loop of reads over several connections, behind another statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) before: usize,
    pub(crate) statement: usize,
    /// How often, and how often it repeats at least and at most.
    pub(crate) calls: u64,
    pub(crate) times: [u64; 2],
}

/// Work between two moments at which neither statement is under way.
#[derive(Default)]
struct Part {
    end: u64,
    /// The rows of each call of the statement before that gave some.
    rows: Vec<u64>,
    reads: u64,
    /// How many more rows than reads each connection had.
    left: BTreeMap<u64, i64>,
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
        let mut pairs: BTreeMap<[usize; 2], usize> = BTreeMap::new();
        for pair in self.0.windows(2) {
            *pairs.entry([pair[0].statement, pair[1].statement]).or_default() += 1;
        }
        let reads = |place: usize| statements.get(place).is_some_and(|one| is_read(&one.text));
        let mut pairs: Vec<_> =
            pairs.into_iter().filter(|([before, after], _)| before != after && reads(*after)).collect();
        pairs.sort_by_key(|(_, count)| Reverse(*count));
        let mut found: Vec<Spread> = Vec::new();
        for (pair, _) in pairs.into_iter().take(PAIRS) {
            if !found.iter().any(|known| known.statement == pair[1]) {
                found.extend(self.followed(pair, pause));
            }
        }
        found
    }

    /// How often a statement is followed by as many reads as it gave rows, over several connections; `None` where that is not the rule.
    ///
    /// Several at a time are counted together: from one at which neither is under way to the next, there are as many reads as rows.
    fn followed(&self, [before, statement]: [usize; 2], pause: u64) -> Option<Spread> {
        let mut found = Spread { before, statement, calls: 0, times: [u64::MAX, 0] };
        let (mut part, mut all) = (Part::default(), 0);
        for one in self.0.iter().filter(|one| one.statement == before || one.statement == statement) {
            let is_other = one.statement == before && one.at >= part.end && part.is_right();
            if is_other || one.at > part.end.saturating_add(pause) {
                all += std::mem::take(&mut part).count(&mut found);
            }
            part.end = part.end.max(one.end);
            let left = part.left.entry(one.connection).or_default();
            if one.statement == before {
                part.rows.extend(Some(one.rows).filter(|rows| *rows > 0));
                *left = left.saturating_add_unsigned(one.rows);
            } else {
                part.reads += 1;
                *left -= 1;
            }
        }
        all += part.count(&mut found);
        let is_rule = found.calls > 0 && found.calls as f64 >= SHARE * all as f64 && found.times[1] >= MANY;
        is_rule.then_some(found)
    }
}

impl Part {
    fn is_right(&self) -> bool {
        self.rows.iter().sum::<u64>() == self.reads
    }

    /// Adds its loops, and gives the number of its calls with rows.
    fn count(self, found: &mut Spread) -> u64 {
        let calls = self.rows.len() as u64;
        let is_spread = self.left.values().any(|left| *left != 0);
        if self.is_right() && is_spread && self.reads >= MANY * calls {
            found.calls += calls;
            for rows in self.rows {
                found.times = [found.times[0].min(rows), found.times[1].max(rows)];
            }
        }
        calls
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

    /// Pages of several threads at once, each a list and a read for each of its rows, over the connections of a pool in turn, or each
    /// over one of its own.
    fn pages(threads: u64, reads: usize, is_pool: bool) -> Vec<(u64, usize, [u64; 2], u64)> {
        let (mut all, mut next, mut rng) = (Vec::new(), 0, Rng::new(1));
        for thread in 0..threads {
            let mut at = thread * MS / 3;
            for page in 0..10 {
                let rows = 5 + (page + thread) % 4;
                for n in 0..=rows {
                    let end = at + 200_000 + rng.below(100_000);
                    let statement = if n == 0 { 0 } else { reads };
                    let connection = if is_pool { next % 7 } else { thread };
                    all.push((connection, statement, [at, end], if n == 0 { rows } else { 1 }));
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
            let seen = found(&pages(threads, 1, true));
            assert_eq!(
                seen,
                [Spread { before: 0, statement: 1, calls: 10 * threads, times: [5, 8] }],
                "{threads}"
            );
            // Threads with connections of their own have units of work.
            assert_eq!(found(&pages(threads, 1, false)), [], "{threads}");
        }
        // What is written is no read.
        assert!(found(&pages(1, 2, true)).is_empty());
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
