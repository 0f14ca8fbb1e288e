//! What MongoDB says of itself: `serverStatus`. Source: MongoDB Manual, "serverStatus". Not yet seen on `mongod` itself;
//! FerretDB, which was, tells nothing of this.

use super::facts::at;
use super::link::Link;
use super::session::whole;
use kurabe_core::stats_probe::{
    Clients, Counter, CounterScope, Reading, SessionSample, SnapshotPoint, StatsProbe,
};
use kurabe_core::{Error, Result};
use mongodb::bson::{Document, rawdoc};

/// Counters, and where in the answer they stand.
const COUNTERS: &[(Counter, &[&str])] = &[
    (Counter::LogBytes, &["wiredTiger", "log", "log bytes written"]),
    (Counter::LogSyncs, &["wiredTiger", "log", "log sync operations"]),
    (Counter::PagesRequested, &["wiredTiger", "cache", "pages requested from the cache"]),
    (Counter::PagesMissed, &["wiredTiger", "cache", "pages read into cache"]),
    (Counter::RowsExamined, &["metrics", "queryExecutor", "scannedObjects"]),
    (Counter::RowsReturned, &["metrics", "document", "returned"]),
];

/// The connection that asks.
pub(super) struct MongoStatsProbe(pub(super) Link);

impl StatsProbe for MongoStatsProbe {
    fn snapshot(&mut self, point: SnapshotPoint, _: &Clients) -> Result<Reading> {
        let mut reading = Reading::default();
        if matches!(point, SnapshotPoint::Before | SnapshotPoint::After) {
            return Ok(reading);
        }
        let asked = self.0.administer(rawdoc! { "serverStatus": 1 });
        if let Some(status) = reading.reported(asked, "all statistics", "serverStatus may not be asked: ")? {
            counts(&status, &mut reading);
        }
        Ok(reading)
    }

    fn sample_sessions(&mut self, _: &Clients) -> Result<Vec<SessionSample>> {
        // `currentOp` would tell. FerretDB answers it with an empty list, so that nothing read from one was ever seen: until a
        // `mongod` is there to plant a wait on, none is named.
        Err(Error::unsupported(
            "its sessions are not asked what they wait for: no answer to currentOp with a wait in it was ever seen here",
        ))
    }
}

fn counts(status: &Document, reading: &mut Reading) {
    for (what, path) in COUNTERS {
        let value = at(status, path).and_then(whole).and_then(|n| u64::try_from(n).ok());
        let missing = "the answer to serverStatus does not hold it";
        reading.count(*what, value, &path.join("."), CounterScope::Server, missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::doc;

    #[test]
    fn counters_are_found_where_the_manual_has_them_and_the_rest_is_not_told() {
        let status = doc! {
            "wiredTiger": { "log": { "log bytes written": 7_i64 } },
            "metrics": { "document": { "returned": 3 } },
        };
        let mut reading = Reading::default();
        counts(&status, &mut reading);
        let found: Vec<(Counter, u64)> =
            reading.counts.iter().map(|count| (count.what, count.value)).collect();
        assert_eq!(found, [(Counter::LogBytes, 7), (Counter::RowsReturned, 3)]);
        assert_eq!(reading.unavailable.len(), COUNTERS.len() - 2);
    }
}
