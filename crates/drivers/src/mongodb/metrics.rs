//! Server statistics from `serverStatus` (MongoDB Manual, "serverStatus"). Not tested with `mongod` yet. FerretDB,
//! which was tested, reports none of these counters.

use super::bson::Raw;
use super::client::Link;
use crate::probe::Counters;
use kurabe_core::Result;
use kurabe_core::stats_probe::{Counter, CounterScope, Reading};

/// Counters and their paths in the answer.
const COUNTERS: &[(Counter, &[&str])] = &[
    (Counter::LogBytes, &["wiredTiger", "log", "log bytes written"]),
    (Counter::LogSyncs, &["wiredTiger", "log", "log sync operations"]),
    (Counter::PagesRequested, &["wiredTiger", "cache", "pages requested from the cache"]),
    (Counter::PagesMissed, &["wiredTiger", "cache", "pages read into cache"]),
    (Counter::RowsExamined, &["metrics", "queryExecutor", "scannedObjects"]),
    (Counter::RowsReturned, &["metrics", "document", "returned"]),
];

pub(super) fn probe(client: Link) -> Counters<Link> {
    // `currentOp` has the waits. FerretDB returns an empty list, so wait states are unsupported until they can be tested
    // with `mongod`.
    let no_samples =
        "wait states of its sessions are not supported: Kurabe has not been tested with waits in currentOp";
    Counters { client, read, no_samples, port: Link::port }
}

fn read(link: &mut Link, reading: &mut Reading) -> Result<()> {
    let asked = link.administer(|out| {
        out.int("serverStatus", 1);
    });
    if let Some(status) = reading.reported(asked, "all statistics", "serverStatus may not be asked: ")? {
        counts(status, reading);
    }
    Ok(())
}

fn counts(status: Raw<'_>, reading: &mut Reading) {
    for (what, path) in COUNTERS {
        let value = status.at(path).and_then(|value| value.number()).and_then(|n| u64::try_from(n).ok());
        let missing = "the answer to serverStatus does not hold it";
        reading.count(*what, value, &path.join("."), CounterScope::Server, missing);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bson::Document;
    use super::*;

    #[test]
    fn counters_are_read_from_their_paths_and_others_are_unavailable() {
        let status = Document::of(|out| {
            out.begin("wiredTiger").begin("log").long("log bytes written", 7).end().end();
            out.begin("metrics").begin("document").int("returned", 3).end().end();
        });
        let mut reading = Reading::default();
        counts(status.raw(), &mut reading);
        let found: Vec<(Counter, u64)> =
            reading.counts.iter().map(|count| (count.what, count.value)).collect();
        assert_eq!(found, [(Counter::LogBytes, 7), (Counter::RowsReturned, 3)]);
        assert_eq!(reading.unavailable.len(), COUNTERS.len() - 2);
    }
}
