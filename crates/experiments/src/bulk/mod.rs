//! E6, moving many rows.
//!
//! Reads stream: each row is checked as it arrives and then forgotten, so that the client's memory does not grow with
//! the rows. One bit for each row tells whether it has arrived.

mod data;
mod job;
mod loopback;
mod peak_memory;

use crate::axes::{choice, reads, writes};
use crate::prelude::*;
use data::{Data, Kind};
use job::{Moving, READ, WRITE};
use kurabe_core::compression::COMPRESSION;
use kurabe_core::transfer::{Fetch, Transfer};
use loopback::{LOOPBACK, LOOPBACK_SHARE};
use peak_memory::{PEAK_MEMORY, PEAK_MEMORY_ADDED};

/// Bytes by which a row in a request exceeds its content, in any protocol.
const AROUND: u64 = 32;

/// The most rows that are asked for by their keys in one round trip: requests that surely fit into the buffers of sockets.
const MAX_BY_KEY: u64 = 1_000;

static INFO: ExperimentInfo = ExperimentInfo {
    name: "bulk",
    question: "How fast do many rows move between client and database?",
    about: "Reads all rows of a table, or writes as many to an empty one, over one connection: an integer key and text. \
            --fetch is the number of rows of a round trip: of a server-side cursor when reading, of one INSERT when \
            writing, all within one transaction if the database has them. A store that finds values by their keys only \
            (Redis, memcached) is sent up to 1,000 requests for a row together. 'whole' is the engine's own way: COPY \
            (PostgreSQL), one streamed result and LOAD DATA LOCAL (MySQL, MariaDB), a statement that is stepped through \
            and a transaction of prepared inserts (SQLite). Rows are checked as they arrive: each once, with its \
            content. Written rows are counted by the server and read back. Content is random by default: an \
            engine that leaves out repeated values would else be measured without its network. A rate is of \
            rows; other metrics are bytes per second, bytes on the wire for each byte of a row, round trips, CPU time of \
            client and server for each megabyte, the client's peak memory, and what loopback alone gives. --wire-compression has \
            both ends compress what they send. As in the published experiments \
            (bulk_fetch.csv).",
    axes: &[
        AxisInfo::new("rows", "rows of the table", AxisKind::count(1, 1_000_000_000), &["100k"]),
        AxisInfo::new(
            "row-bytes",
            "bytes of a row: 8 of its key, and its text",
            AxisKind::size(32, 1_000_000),
            &["1024"],
        ),
        AxisInfo::new(
            "fetch",
            "rows of a round trip",
            AxisKind::count(1, 1_000_000).or(&[("whole", "all rows, in the engine's own way")]),
            &["1", "10", "100", "1k", "10k", "50k", "whole"],
        ),
        AxisInfo::new(
            "content",
            "content of the rows",
            AxisKind::choice(&[
                ("random", "characters drawn at random, which compress by a quarter at most"),
                ("equal", "the same text in every row"),
                ("alternating", "two texts in turn"),
            ]),
            &["random"],
        ),
        AxisInfo { default: &["off"], ..COMPRESSION },
    ],
    operations: &[
        reads(READ, "read all rows; counted by the row", 1),
        writes(WRITE, "write all rows to an empty table; counted by the row", 1),
    ],
    metrics: &[LOOPBACK, LOOPBACK_SHARE, PEAK_MEMORY, PEAK_MEMORY_ADDED],
    chart_axis: "fetch",
    answer: Answer::Comparison,
    published: Some("bulk_fetch.csv"),
};

pub(crate) static BULK: Experiment = Experiment::new(&INFO, &plan);

fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let kinds = [("random", Kind::Random), ("equal", Kind::Equal), ("alternating", Kind::Alternating)];
    let content = cell.word("content")?;
    let kind = choice(&INFO, cell, "content", &kinds)?;
    let rows = dataset.records.map_or_else(|| cell.number("rows"), Ok)?;
    let row_bytes = cell.number("row-bytes")?;
    let fetch = match cell.get("fetch") {
        Some(AxisValue::Number(rows)) => Fetch::Rows(*rows),
        _ => Fetch::Whole,
    };
    let name = format!("kurabe_{}_bulk_{content}_{rows}_{row_bytes}", dataset.slot);
    let moving = Moving::new(name.clone(), Data::new(kind, dataset.seed, row_bytes), rows, row_bytes, fetch);
    let request = row_bytes + AROUND;
    let demand = Demand {
        operations: vec![moving.insert_loaded()],
        value_bytes: row_bytes,
        request_bytes: request,
        loaded_bytes: rows * request,
        client_bytes: rows.div_ceil(8) + 1_000_000,
        ..Demand::default()
    };
    let by_key = |each: u64| Demand {
        operations: vec![moving.get()],
        capabilities: vec![Capability::Pipelining],
        request_bytes: each * request,
        ..Demand::default()
    };
    let instead = match fetch {
        Fetch::Rows(each) if each.min(rows) <= MAX_BY_KEY => vec![by_key(each.min(rows))],
        _ => Vec::new(),
    };
    let reading = Demand { transfers: vec![Transfer::Read(fetch)], instead, ..Demand::default() };
    let writing = match fetch {
        Fetch::Whole => Demand { transfers: vec![Transfer::Write], ..Demand::default() },
        Fetch::Rows(each) => {
            let each = each.min(rows);
            let by = |insert| Demand {
                operations: vec![insert],
                request_bytes: each * request,
                parameters: 2 * each,
                ..Demand::default()
            };
            let mut ways = moving.inserts(each).into_iter().map(by);
            let first = ways.next().unwrap_or_default();
            Demand { instead: ways.collect(), ..first }
        }
    };
    let operations = vec![(READ, reading), (WRITE, writing)];
    let round_trips = match fetch {
        Fetch::Rows(each) => rows.div_ceil(each.max(1)),
        Fetch::Whole => 1,
    };
    Ok(PlannedCell {
        operations,
        round_trips,
        moved_bytes: rows * request,
        ..PlannedCell::job(name, demand, 1, moving)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(given: &[(&str, &str)]) -> PlannedCell {
        plan(&INFO.baseline(given).unwrap(), &Dataset { seed: 1, records: None, slot: 0 }).unwrap()
    }

    #[test]
    fn each_direction_has_its_own_demand() {
        let whole = planned(&[("fetch", "whole")]);
        let demand = |name| &whole.operations.iter().find(|(known, _)| *known == name).unwrap().1;
        assert_eq!(demand(READ).transfers, [Transfer::Read(Fetch::Whole)]);
        assert_eq!(demand(WRITE).transfers, [Transfer::Write]);
        let thousand = planned(&[("fetch", "1k"), ("row-bytes", "100")]);
        let (_, writing) = &thousand.operations[1];
        assert_eq!((writing.parameters, writing.request_bytes), (2_000, 132_000));
        assert!(writing.transfers.is_empty());
        for way in [writing, &writing.instead[0]] {
            assert_eq!(way.operations[0].parameters(), 2_000);
        }
        // Of a store without a stream of rows, as many are asked for by their keys.
        let reading = |planned: &PlannedCell| planned.operations[0].1.clone();
        let instead = reading(&thousand).instead;
        assert_eq!(instead[0].capabilities, [Capability::Pipelining]);
        assert!(matches!(instead[0].operations[..], [Operation::Get { .. }]));
        assert!(
            reading(&planned(&[("fetch", "1001")])).instead.is_empty() && reading(&whole).instead.is_empty()
        );
        // No statement has more rows than there are.
        let few = planned(&[("fetch", "1k"), ("rows", "7")]);
        assert_eq!(few.operations[1].1.parameters, 14);
    }

    #[test]
    fn cells_that_differ_in_fetch_share_their_rows() {
        let name = |given: &[(&str, &str)]| planned(given).dataset;
        assert_eq!(name(&[("fetch", "1")]), name(&[("fetch", "whole")]));
        for other in [("content", "equal"), ("rows", "7"), ("row-bytes", "100")] {
            assert_ne!(name(&[]), name(&[other]));
        }
        assert!(Collection::name_is_ours(&name(&[("content", "alternating"), ("rows", "1000000000")])));
    }
}
