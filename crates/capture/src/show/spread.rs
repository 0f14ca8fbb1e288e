//! Loops of reads that an application spreads over the connections of a pool. No connection has more than a part of one. A loop is
//! known by the order in time, and by one read for each row of the statement before.

use super::MANY;
use super::{SpreadLoop, Statement};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The requests that are looked at: of more, the first ones say it, and the calls of all are estimated.
const MOST: usize = 200_000;
/// The pairs of statements that are looked at, the most frequent first.
const PAIRS: usize = 100;
/// The calls from which a loop is none by chance.
const SEVERAL: u64 = 3;
/// The share of the statements with rows that must be followed by as many reads.
const SHARE: f64 = 0.8;

/// Requests outside of transactions, over all connections.
#[derive(Default)]
pub(super) struct Requests {
    /// The first ones.
    looked_at: Vec<One>,
    count: u64,
}

struct One {
    at: u64,
    end: u64,
    connection: u64,
    statement: usize,
    rows: u64,
}

/// Work between two moments at which neither statement is under way.
#[derive(Default)]
struct Part {
    end: u64,
    /// The rows of each call of the statement before that gave some, and of all of them.
    rows: Vec<u64>,
    sum: u64,
    /// The end of each call and its rows, for which no read can have begun yet.
    under_way: Vec<[u64; 2]>,
    /// The rows of those that have ended.
    ended: u64,
    reads: u64,
    /// How many more rows than reads each connection had.
    left: BTreeMap<u64, i64>,
}

impl Requests {
    pub(super) fn push(&mut self, connection: u64, statement: usize, [at, end]: [u64; 2], rows: u64) {
        self.count += 1;
        if self.looked_at.len() < MOST {
            self.looked_at.push(One { at, end, connection, statement, rows });
        }
    }

    /// The loops that no connection has alone. `pause`: the time after which something else begins, in nanoseconds.
    pub(super) fn loops(mut self, statements: &[Statement], pause: u64) -> Vec<SpreadLoop> {
        self.looked_at.sort_by_key(|one| one.at);
        let mut pairs: BTreeMap<[usize; 2], usize> = BTreeMap::new();
        for pair in self.looked_at.windows(2) {
            *pairs.entry([pair[0].statement, pair[1].statement]).or_default() += 1;
        }
        let reads = |place: usize| statements.get(place).is_some_and(|one| one.does.reads);
        let mut pairs: Vec<_> =
            pairs.into_iter().filter(|([before, after], _)| before != after && reads(*after)).collect();
        pairs.sort_by_key(|(_, count)| Reverse(*count));
        let mut found: Vec<SpreadLoop> = Vec::new();
        for (pair, _) in pairs.into_iter().take(PAIRS) {
            if !found.iter().any(|known| known.statement == pair[1]) {
                found.extend(self.followed(pair, pause));
            }
        }
        found
    }

    /// How often a statement is followed by as many reads as it gave rows, over several connections; `None` where that is not the rule.
    ///
    /// Several at a time are counted together: from one at which neither is under way to the next, there are as many reads as rows. A
    /// read before the rows are there is none of them. Several calls must have differing numbers of rows: one may fit by chance.
    fn followed(&self, [before, statement]: [usize; 2], pause: u64) -> Option<SpreadLoop> {
        let is_estimated = self.count > self.looked_at.len() as u64;
        let mut found = SpreadLoop { after: before, statement, calls: 0, is_estimated, times: [u64::MAX, 0] };
        let (mut part, mut all) = (Part::default(), 0);
        for one in self.looked_at.iter().filter(|one| one.statement == before || one.statement == statement) {
            let is_other = one.statement == before && one.at >= part.end && part.is_right();
            let is_list = one.statement == before;
            if is_other || one.at > part.end.saturating_add(pause) {
                all += std::mem::take(&mut part).count(&mut found);
            }
            if !is_list && part.is_early(one.at) {
                continue;
            }
            part.end = part.end.max(one.end);
            let left = part.left.entry(one.connection).or_default();
            if is_list {
                part.rows.extend(Some(one.rows).filter(|rows| *rows > 0));
                part.sum += one.rows;
                part.under_way.push([one.end, one.rows]);
                *left = left.saturating_add_unsigned(one.rows);
            } else {
                part.reads += 1;
                *left -= 1;
            }
        }
        all += part.count(&mut found);
        let is_rule = found.calls >= SEVERAL && found.calls as f64 >= SHARE * all as f64;
        let [least, most] = found.times;
        if !is_rule || most < MANY || least == most {
            return None;
        }
        let scale = self.count as f64 / self.looked_at.len().max(1) as f64;
        found.calls = (found.calls as f64 * scale).round() as u64;
        Some(found)
    }
}

impl Part {
    fn is_right(&self) -> bool {
        self.sum == self.reads
    }

    /// Whether a read begins before there are rows for it.
    fn is_early(&mut self, at: u64) -> bool {
        let ended: u64 = self.under_way.extract_if(.., |[end, _]| *end <= at).map(|[_, rows]| rows).sum();
        self.ended += ended;
        self.reads >= self.ended && (self.ended == 0 || !self.under_way.is_empty())
    }

    /// Adds its loops, and gives the number of its calls with rows.
    fn count(self, found: &mut SpreadLoop) -> u64 {
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
    use crate::show::Does;
    use kurabe_protocol::call::Call;
    use kurabe_protocol::sql::Dialect;
    use kurabe_stats::Rng;

    const PAUSE: u64 = 10_000_000;
    const MS: u64 = 1_000_000;

    fn found(all: &[(u64, usize, [u64; 2], u64)]) -> Vec<SpreadLoop> {
        let mut requests = Requests::default();
        for (connection, statement, times, rows) in all {
            requests.push(*connection, *statement, *times, *rows);
        }
        let named = |text: &str| {
            let does = Does::read(&Call::Sql(text, Dialect::POSTGRES));
            Statement { text: text.to_owned(), does, ..Statement::default() }
        };
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
                [SpreadLoop {
                    after: 0,
                    statement: 1,
                    calls: 10 * threads,
                    is_estimated: false,
                    times: [5, 8]
                }],
                "{threads}"
            );
            // Threads with connections of their own have units of work.
            assert_eq!(found(&pages(threads, 1, false)), [], "{threads}");
        }
        // What is written is no read.
        assert!(found(&pages(1, 2, true)).is_empty());
    }

    #[test]
    fn one_coincidence_and_reads_before_the_rows_and_lists_of_one_length_are_no_loop() {
        // Lists of these lengths, with reads after or before each.
        let lists = |lengths: &[u64], is_before: bool| {
            let (mut all, mut at, mut connection) = (Vec::new(), MS, 0);
            for rows in lengths {
                let list = if is_before { *rows } else { 0 };
                for n in 0..=*rows {
                    let is_list = n == list;
                    connection += 1;
                    all.push((
                        connection % 7,
                        usize::from(!is_list),
                        [at, at + MS / 4],
                        if is_list { *rows } else { 1 },
                    ));
                    at += MS / 2;
                }
                at += 30 * MS;
            }
            all
        };
        assert_eq!(found(&lists(&[6, 7, 8], false)).len(), 1);
        assert_eq!(found(&lists(&[6, 7, 8], true)), []);
        assert_eq!(found(&lists(&[6], false)), []);
        assert_eq!(found(&lists(&[6, 6, 6, 6], false)), []);
    }

    #[test]
    fn calls_of_a_capture_with_more_requests_are_estimated() {
        let lists = MOST as u64 / 4;
        let all: Vec<_> = pages(1, 1, true);
        let length = 1_000 * MS;
        let mut requests = Vec::new();
        for round in 0..lists {
            let moved = |one: &(u64, usize, [u64; 2], u64)| {
                (one.0, one.1, one.2.map(|at| at + round * length), one.3)
            };
            requests.extend(all.iter().map(moved));
            if requests.len() > 2 * MOST {
                let seen = found(&requests);
                let right = 10 * (round + 1);
                assert!(seen[0].is_estimated, "{seen:?}");
                assert!(seen[0].calls.abs_diff(right) <= right / 100, "{seen:?} {right}");
                return;
            }
        }
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
