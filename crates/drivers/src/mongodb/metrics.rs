//! What MongoDB says of itself: `serverStatus`. Source: MongoDB Manual, "serverStatus". Not yet seen on `mongod` itself;
//! FerretDB, which was, tells nothing of this.

use super::facts::at;
use super::link::Link;
use super::session::whole;
use kurabe_core::witness::{Clients, Meter, Moment, Reach, Reading, Sighting, Witness};
use kurabe_core::{Error, Result};
use mongodb::bson::{Document, rawdoc};

/// Counters, and where in the answer they stand.
const COUNTERS: &[(Meter, &[&str])] = &[
    (Meter::LogBytes, &["wiredTiger", "log", "log bytes written"]),
    (Meter::LogSyncs, &["wiredTiger", "log", "log sync operations"]),
    (Meter::PagesAsked, &["wiredTiger", "cache", "pages requested from the cache"]),
    (Meter::PagesMissed, &["wiredTiger", "cache", "pages read into cache"]),
    (Meter::RowsExamined, &["metrics", "queryExecutor", "scannedObjects"]),
    (Meter::RowsReturned, &["metrics", "document", "returned"]),
];

/// The connection that asks.
pub(super) struct MongoWitness(pub(super) Link);

impl Witness for MongoWitness {
    fn read(&mut self, moment: Moment, _: &Clients) -> Result<Reading> {
        let mut reading = Reading::default();
        if matches!(moment, Moment::Before | Moment::After) {
            return Ok(reading);
        }
        let asked = self.0.administer(rawdoc! { "serverStatus": 1 });
        if let Some(status) = reading.told(asked, "anything", "serverStatus may not be asked: ")? {
            counts(&status, &mut reading);
        }
        Ok(reading)
    }

    fn look(&mut self, _: &Clients) -> Result<Vec<Sighting>> {
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
        reading.count(*what, value, &path.join("."), Reach::Server, missing);
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
        let found: Vec<(Meter, u64)> = reading.counts.iter().map(|count| (count.what, count.value)).collect();
        assert_eq!(found, [(Meter::LogBytes, 7), (Meter::RowsReturned, 3)]);
        assert_eq!(reading.not_told.len(), COUNTERS.len() - 2);
    }
}
