//! Makes a target slower by repeated requests.

use kurabe_core::Result;
use kurabe_core::driver::{Driver, Prepared, Session};
use kurabe_core::interceptor::{DriverLayer, Interceptor};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_stats::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The maximum number of characters of a row.
const LONGEST: usize = 1_000;

/// The time added to the requests of one target, and their number.
#[derive(Debug, Default)]
pub(super) struct Added {
    pub(super) nanos: AtomicU64,
    pub(super) requests: AtomicU64,
}

/// Adds requests to a share of the requests. An added request is like any other, and finds client and server as they
/// are between requests. A client that waited instead would change how deeply its server sleeps.
///
/// An added read is of another row: a read of the same row would bring it into the server's cache, and the request
/// itself would then be faster. An added write is of the same row, because the request must overwrite it: with data
/// larger than the server's cache, writes are slowed down by less than is measured.
struct Doubling {
    writes: bool,
    /// Added requests per request.
    share: f64,
    /// The number of added requests that are due.
    due: f64,
    /// The session's prepared reads or writes.
    known: Vec<usize>,
    /// The largest key of a request. The keys are whole numbers from 1, drawn uniformly, so that it soon approaches the
    /// number of rows.
    largest_key: u64,
    rng: Rng,
    added: Arc<Added>,
}

impl Doubling {
    fn new(writes: bool, share: f64, seed: u64, added: Arc<Added>) -> Self {
        Self { writes, share, due: 0.0, known: Vec::new(), largest_key: 0, rng: Rng::new(seed), added }
    }

    /// The parameters of an added read: the key of a row that is drawn as those of the requests are.
    fn other_read<'a>(&mut self, parameters: &[Value<'a>]) -> Vec<Value<'a>> {
        let mut draw = |value: &Value<'a>| match value {
            Value::Int(key) => {
                self.largest_key = self.largest_key.max(u64::try_from(*key).unwrap_or(1));
                Value::Int(1 + self.rng.below(self.largest_key.max(1)) as i64)
            }
            _ => *value,
        };
        parameters.iter().map(&mut draw).collect()
    }
}

/// The parameters of an added write, with other texts of the same length: some engines skip a write that changes
/// nothing.
fn altered<'a>(parameters: &[Value<'a>], other: &'a str) -> Vec<Value<'a>> {
    let alter = |value: &Value<'a>| match value {
        Value::Text(text) => other.get(..text.len()).map_or(*value, Value::Text),
        _ => *value,
    };
    parameters.iter().map(alter).collect()
}

impl Interceptor for Doubling {
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        let prepared = inner.prepare(operation)?;
        // Reading back after writes is not one of the measured requests.
        let known = match operation {
            Operation::Get { .. } => !self.writes,
            Operation::Update { .. } => self.writes,
            _ => false,
        };
        if known {
            self.known.push(prepared.0);
        }
        Ok(prepared)
    }

    fn execute(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        if self.known.contains(&prepared.0) {
            self.added.requests.fetch_add(1, Ordering::Relaxed);
            self.due += self.share;
            if self.due >= 1.0 {
                self.due -= 1.0;
                let text = if self.writes { "x".repeat(LONGEST) } else { String::new() };
                let other = if self.writes {
                    // The row has an unexpected content until the request itself overwrites it.
                    altered(parameters, &text)
                } else {
                    self.other_read(parameters)
                };
                let began = Instant::now();
                inner.execute(prepared, &other, out)?;
                self.added.nanos.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
        }
        inner.execute(prepared, parameters, out)
    }
}

/// A driver that is slower by `effect`, by added reads or writes.
pub(super) fn slowed(
    driver: Box<dyn Driver>,
    writes: bool,
    effect: f64,
    added: &Arc<Added>,
) -> Box<dyn Driver> {
    let added = Arc::clone(added);
    // 5 % slower is 1 ÷ 0.95 times as long.
    let share = 1.0 / (1.0 - effect) - 1.0;
    let seeds = AtomicU64::new(0);
    let layer = DriverLayer::new(driver, move || {
        Doubling::new(writes, share, seeds.fetch_add(1, Ordering::Relaxed), Arc::clone(&added))
    });
    // A comparison uses the threads that a run uses by default.
    Box::new(layer.sharing_threads())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn added_reads_are_spread_over_all_rows() {
        let rows = 1_000_000;
        let mut requests = Rng::new(1);
        let mut doubling = Doubling::new(false, 1.0, 2, Arc::default());
        let mut added = HashSet::new();
        for _ in 0..10_000 {
            let key = Value::Int(1 + requests.below(rows) as i64);
            let other = doubling.other_read(&[key]);
            let [Value::Int(other)] = other[..] else { panic!("a key was expected: {other:?}") };
            assert!((1..=rows as i64).contains(&other), "{other}");
            added.insert(other);
        }
        // Of 10,000 draws of a million rows, some 50 are of a row that was drawn before.
        assert!(added.len() > 9_800, "{}", added.len());
    }
}
