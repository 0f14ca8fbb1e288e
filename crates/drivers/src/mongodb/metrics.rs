//! What MongoDB says of itself: `serverStatus`. Source: MongoDB Manual, "serverStatus". Not yet seen on `mongod` itself;
//! FerretDB, which was, tells nothing of this.

use super::link::Link;
use super::session::number;
use kurabe_core::witness::{Clients, EngineCount, Meter, Moment, NotTold, Reach, Reading, Sighting, Witness};
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
        match self.0.administer(rawdoc! { "serverStatus": 1 }) {
            Ok(status) => counts(&status, &mut reading),
            Err(error) if error.server_code().is_some() => reading.not_told.push(NotTold {
                what: "anything".to_owned(),
                why: format!("serverStatus may not be asked: {error}"),
            }),
            Err(error) => return Err(error),
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
        let Some((name, above)) = path.split_last() else { continue };
        let section = above.iter().try_fold(status, |document, part| document.get_document(part).ok());
        match section.and_then(|section| number(section, name)).and_then(|n| u64::try_from(n).ok()) {
            Some(value) => {
                reading.counts.push(EngineCount::new(*what, value, &path.join("."), Reach::Server));
            }
            None => reading.not_told.push(NotTold {
                what: what.word().to_owned(),
                why: "the answer to serverStatus does not hold it".to_owned(),
            }),
        }
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
