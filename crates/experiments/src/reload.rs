//! E13, dump and restore of a table whose rows may come back in an order that is foreign to its key.
//!
//! Row `i` of `n` is `(i / 10, i · s mod n)`, where `s` has no common factor with `n` and is near `n` divided by the
//! golden ratio. So `id2` has every number below `n` once, far apart for neighbours in the key.

use crate::axes::{choice, writes};
use crate::fill::{self, fill, rows_of_a_request};
use crate::metrics::time;
use crate::prelude::*;
use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::dump::RowOrder;
use kurabe_core::job::{Ended, Job, JobContext};
use kurabe_core::observation::Endpoint;
use kurabe_core::stats_probe::{Clients, Counter, EngineUse, Reading, SnapshotPoint, StatsProbe};
use std::time::Duration;

/// Rows with the same `id1`.
const GROUP: u64 = 10;
/// Rows of a request that reads, and of a part that is written between two reports of progress.
const CHUNK: u64 = 10_000;
/// Bytes of a row's values.
const ROW_BYTES: u64 = 16;
/// Approximate bytes of a stored row with its entry in the index.
const STORED_BYTES: u64 = 80;
/// Rows that are dumped and restored per second at most, for the time that a run is expected to take. MariaDB and
/// PostgreSQL with a large buffer pool were seen at 100,000 to 300,000, MariaDB with a small one at 20,000 where the order is foreign.
const MAX_PER_SECOND: u64 = 64_000;
/// The default time of a run. Two million rows were seen to be restored in 25 s by the key, and in 100 s at random.
const BUDGET: Duration = Duration::from_secs(480);

const ORDER: &str = "order";
const TOOL: &str = "tool";
const ROWS: &str = "rows";

const fn bytes(name: &'static str, about: &'static str) -> Metric {
    Metric::new(name, Unit::Bytes, Better::Lower, about)
}

const DUMP: Metric = time("dump", "to dump the table, or to read it in this order").primary();
const RESTORE: Metric = time("restore", "to replace the table by what was dumped").primary();
const RESTORED: Metric = Metric::new(
    "rows restored per second",
    Unit::PerSecond,
    Better::Higher,
    "rows, by the time of the restore",
);
const SIZE: Metric = bytes("table size", "of the restored table with its indexes, as the server reports it");
const DUMP_SIZE: Metric =
    Metric::new("dump size", Unit::Bytes, Better::Neither, "of the dump that the engine's program wrote");
/// Bytes that the server wrote while it restored, by its own counters.
const WRITTEN: [(Counter, Metric); 3] = [
    (
        Counter::FileBytes,
        bytes("file bytes per row", "written to all files until the restore ended, with logs"),
    ),
    (Counter::LogBytes, bytes("log bytes per row", "written to the recovery log until the restore ended")),
    (
        Counter::BinlogBytes,
        bytes("binary log bytes per row", "written to the log for replication until then"),
    ),
];

static INFO: ExperimentInfo = ExperimentInfo {
    name: "reload",
    question: "How long does a table take to dump and to restore, by the order of its rows in the dump?",
    about: "Dumps a table (id1, id2) with the primary key (id1, id2) and an index on id2, and restores it: by the \
            engine's own programs (mysqldump or mariadb-dump, pg_dump and psql, sqlite3 .dump), and by a session of \
            Kurabe's that inserts in the same order (--tool kurabe). The restored table is counted and compared by a digest. Two \
            million rows by default, which are more than the usual buffer pool of 128 MB holds, and 8 minutes per target; --rows \
            29m is the original's size. Whether the order matters depends on the memory of the server: compare targets such as \
            up:mariadb?innodb_buffer_pool_size=8M. pg_dump and sqlite3 have no order of their own: there the rows are \
            stored in it. As in the published experiments (reload.csv).",
    axes: &[
        AxisInfo::new(
            ORDER,
            "the order of the rows in the dump",
            AxisKind::choice(&[
                ("key", "by the primary key"),
                ("index", "by the index on id2"),
                ("random", "at random"),
            ]),
            &["key", "random"],
        ),
        AxisInfo::new(
            TOOL,
            "what dumps and restores",
            AxisKind::choice(&[
                ("engine", "the engine's own programs, with a file between them"),
                ("kurabe", "one session, which reads into memory and inserts many rows a request"),
            ]),
            &["engine"],
        ),
        AxisInfo::new(ROWS, "rows of the table", AxisKind::count(100, 1_000_000_000), &["2m"]),
    ],
    operations: &[writes("reload", "dump the table and restore it", 1)],
    metrics: &[DUMP, RESTORE, RESTORED, SIZE, DUMP_SIZE, WRITTEN[0].1, WRITTEN[1].1, WRITTEN[2].1],
    chart_axis: ROWS,
    answer: Answer::Metrics,
    published: Some("reload.csv"),
};

pub(crate) static RELOAD: Experiment = Experiment { budget: Some(BUDGET), ..Experiment::new(&INFO, &plan) };

fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let word = cell.word(ORDER)?;
    let orders = [("key", RowOrder::Key), ("index", RowOrder::Index), ("random", RowOrder::Random)];
    let order = choice(&INFO, cell, ORDER, &orders)?;
    let by_programs = choice(&INFO, cell, TOOL, &[("engine", true), ("kurabe", false)])?;
    let rows = Rows::new(cell.number(ROWS)?, dataset.seed);
    // Engines that store rows as they come need a table for each order.
    let name = format!("kurabe_{}_reload_{word}_{}", dataset.slot, rows.count);
    let field = |name| Field { name, kind: FieldType::Int };
    let mut table = Collection::new(name.clone(), vec![field("id1"), field("id2")], vec![0, 1]);
    table.indexes = vec![vec![1]];
    let job = Reload { table: Arc::new(table), rows, order, by_programs };
    let demand = Demand {
        operations: vec![job.insert(), job.range(0), job.range(1), job.count()],
        loaded_bytes: rows.count * STORED_BYTES,
        client_bytes: rows.count * ROW_BYTES,
        dump_tool: by_programs,
        ..Demand::default()
    };
    let min_time = Duration::from_secs_f64(rows.count as f64 / MAX_PER_SECOND as f64);
    // The writer, the reader, the probe, and what creates the table or finds its size.
    Ok(PlannedCell { min_time, ..PlannedCell::job(name, demand, 4, job) })
}

/// The rows of the table.
#[derive(Clone, Copy, Debug)]
struct Rows {
    count: u64,
    step: u64,
    seed: u64,
}

impl Rows {
    fn new(count: u64, seed: u64) -> Self {
        let near = ((count as f64 * 0.618_033_988_75) as u64).max(1);
        // A number without a common factor is never far; the one below the count is one.
        let step = (near..=count).find(|step| gcd(*step, count) == 1).unwrap_or(1);
        Self { count, step, seed }
    }

    fn row(&self, number: u64) -> [i64; 2] {
        let id2 = u128::from(number) * u128::from(self.step) % u128::from(self.count);
        [(number / GROUP) as i64, id2 as i64]
    }

    /// The numbers of all rows in this order.
    fn in_order(&self, order: RowOrder) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..self.count as u32).collect();
        match order {
            RowOrder::Key => {}
            RowOrder::Index => {
                for number in 0..self.count {
                    numbers[self.row(number)[1] as usize] = number as u32;
                }
            }
            RowOrder::Random => Rng::new(self.seed).shuffle(&mut numbers),
        }
        numbers
    }

    fn digest(&self) -> Digest {
        let mut digest = Digest::default();
        (0..self.count).for_each(|number| digest.add(self.row(number)));
        digest
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The number of rows, and the sum of a hash of 128 bits of each, modulo 2^128. The order of the rows does not matter,
/// and one that is missing, doubled or changed does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Digest {
    rows: u64,
    sum: u128,
}

impl Digest {
    fn add(&mut self, [id1, id2]: [i64; 2]) {
        let half = |salt| u128::from(mix(mix(salt, id1 as u64), id2 as u64));
        self.rows += 1;
        self.sum = self.sum.wrapping_add(half(1) << 64 | half(2));
    }
}

struct Reload {
    table: Arc<Collection>,
    rows: Rows,
    order: RowOrder,
    by_programs: bool,
}

impl Reload {
    fn insert(&self) -> Operation {
        Operation::Insert { collection: Arc::clone(&self.table) }
    }

    fn range(&self, by: usize) -> Operation {
        Operation::FindRange { collection: Arc::clone(&self.table), by, fields: vec![0, 1] }
    }

    fn count(&self) -> Operation {
        Operation::Count { collection: Arc::clone(&self.table) }
    }

    /// Inserts rows in this order.
    fn write(&self, session: &mut dyn Session, rows: &[[i64; 2]]) -> Result<()> {
        let per_request = rows_of_a_request(2, ROW_BYTES);
        fill(session, &self.table, rows.len() as u64, per_request, &mut |row, field, _| {
            Ok(Value::Int(rows[row as usize][field]))
        })
    }

    /// The values of a field that begin a part of the table, and end it: about [`CHUNK`] rows each.
    fn parts(&self, by: usize) -> impl Iterator<Item = [i64; 2]> + use<> {
        let (values, each) = match by {
            0 => (self.rows.count.div_ceil(GROUP), CHUNK / GROUP),
            _ => (self.rows.count, CHUNK),
        };
        (0..values.div_ceil(each)).map(move |part| [(part * each) as i64, ((part + 1) * each) as i64])
    }

    /// Reads a part of the table.
    fn read(
        session: &mut dyn Session,
        prepared: &Prepared,
        [from, to]: [i64; 2],
        reply: &mut Reply,
        mut row: impl FnMut([i64; 2]),
    ) -> Result<()> {
        session.execute(prepared, &[Value::Int(from), Value::Int(to)], reply)?;
        for at in 0..reply.rows() {
            let field = |field| {
                let missing = || Error::mismatch("a row came back without one of its numbers");
                reply.field_int(at, field).ok_or_else(missing)
            };
            row([field(0)?, field(1)?]);
        }
        Ok(())
    }

    fn by_programs(&self, context: &mut JobContext<'_>) -> Result<()> {
        let mut tool = context.driver().dump_tool()?;
        let dumped = context
            .span(DUMP.name, |context| tool.dump(&self.table, self.order, &mut |_| context.work(0, 0)))?;
        context.sample(DUMP_SIZE.name, DUMP_SIZE.unit, dumped as f64);
        let in_process = context.driver().endpoint() == Endpoint::InProcess;
        // The program of an embedded database is another process than the one that is counted.
        let written = if in_process { None } else { Written::begin(context.driver(), context.options())? };
        self.restore(context, |job, context| {
            let mut done = 0;
            let rows = job.rows.count;
            tool.restore(&mut |bytes| {
                let now = (u128::from(rows) * u128::from(bytes) / u128::from(dumped.max(1))) as u64;
                let new = now.min(rows).saturating_sub(done);
                done += new;
                context.work(new, 0)
            })?;
            context.work(rows - done, 0)
        })?;
        Written::end(written, context, self.rows.count)?;
        record_size(context, tool.stored_bytes(&self.table)?);
        Ok(())
    }

    fn by_session(&self, context: &mut JobContext<'_>) -> Result<()> {
        let rows = context.span(DUMP.name, |context| self.read_in_order(context))?;
        let written = Written::begin(context.driver(), context.options())?;
        self.restore(context, |job, context| {
            context.driver().namespace()?.create(&job.table)?;
            for part in rows.chunks(CHUNK as usize) {
                job.write(context.session("writer")?, part)?;
                context.work(part.len() as u64, 0)?;
            }
            Ok(())
        })?;
        Written::end(written, context, self.rows.count)?;
        // Without the programs nothing reports the size.
        if let Ok(mut tool) = context.driver().dump_tool() {
            record_size(context, tool.stored_bytes(&self.table)?);
        }
        Ok(())
    }

    /// All rows of the table, in the order of the cell.
    fn read_in_order(&self, context: &mut JobContext<'_>) -> Result<Vec<[i64; 2]>> {
        let by = usize::from(self.order == RowOrder::Index);
        let mut rows = Vec::with_capacity(self.rows.count as usize);
        let mut reply = Reply::new();
        let prepared = context.session("reader")?.prepare(&self.range(by))?;
        for part in self.parts(by) {
            Self::read(context.session("reader")?, &prepared, part, &mut reply, |row| rows.push(row))?;
            context.work(0, 0)?;
        }
        context.session("reader")?.release(prepared)?;
        if self.order == RowOrder::Random {
            Rng::new(self.rows.seed).shuffle(&mut rows);
        }
        Ok(rows)
    }

    /// Times a restore.
    fn restore(
        &self,
        context: &mut JobContext<'_>,
        restore: impl FnOnce(&Self, &mut JobContext<'_>) -> Result<()>,
    ) -> Result<()> {
        let began = std::time::Instant::now();
        context.span(RESTORE.name, |context| restore(self, context))?;
        let rate = self.rows.count as f64 / began.elapsed().as_secs_f64();
        context.sample(RESTORED.name, RESTORED.unit, rate);
        Ok(())
    }
}

fn record_size(context: &mut JobContext<'_>, bytes: Option<u64>) {
    if let Some(bytes) = bytes {
        context.sample(SIZE.name, SIZE.unit, bytes as f64);
    }
}

impl Job for Reload {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        namespace.create(&self.table)?;
        // In another order than that of the key, a table larger than the server's memory takes long to load.
        let order = if namespace.keeps_insertion_order() { self.order } else { RowOrder::Key };
        let rows: Vec<[i64; 2]> =
            self.rows.in_order(order).into_iter().map(|number| self.rows.row(u64::from(number))).collect();
        self.write(session, &rows)?;
        namespace.analyse(&self.table)?;
        Ok(DatasetState::default())
    }

    fn run(&self, _operation: &str, _state: &DatasetState, context: &mut JobContext<'_>) -> Result<()> {
        if self.by_programs { self.by_programs(context) } else { self.by_session(context) }
    }

    fn verify(&self, Ended { session, .. }: Ended<'_>) -> Result<Checked> {
        let counted = fill::count(session, &self.table)?.unwrap_or_default();
        let mut reply = Reply::new();
        let mut found = Digest::default();
        let prepared = session.prepare(&self.range(0))?;
        for part in self.parts(0) {
            Self::read(session, &prepared, part, &mut reply, |row| found.add(row))?;
        }
        session.release(prepared)?;
        let expected = self.rows.digest();
        if counted != expected.rows || found != expected {
            return Err(Error::mismatch(format!(
                "the restored table is another one: the server counts {counted} of {} rows, {} were read, and their \
                 digest {}",
                expected.rows,
                found.rows,
                if found.sum == expected.sum { "is the same" } else { "differs" }
            )));
        }
        let rows = expected.rows;
        let verification = Verification {
            writes: rows,
            records: rows,
            counted,
            read_back: found.rows,
            ..Verification::default()
        };
        Ok(verification.into())
    }
}

/// The server's counters at the start of a restore.
struct Written {
    probe: Box<dyn StatsProbe>,
    before: Reading,
}

/// The restore is the work of one client, whose connection is not known.
const RESTORER: Clients = Clients { count: 1, kept: false };

impl Written {
    /// `None` if the server has no statistics.
    fn begin(driver: &dyn Driver, options: &ConnectOptions) -> Result<Option<Self>> {
        let mut probe = match driver.stats_probe(options) {
            Ok(probe) => probe,
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
            Err(error) => return Err(error.context("the stats probe")),
        };
        let before = probe.snapshot(SnapshotPoint::Gate, &RESTORER)?;
        Ok(Some(Self { probe, before }))
    }

    /// Records what was written since, for each row.
    fn end(written: Option<Self>, context: &mut JobContext<'_>, rows: u64) -> Result<()> {
        let Some(Self { mut probe, before }) = written else { return Ok(()) };
        let mut used = EngineUse::default();
        used.add(&before, probe.snapshot(SnapshotPoint::End, &RESTORER)?);
        for (counter, metric) in &WRITTEN {
            if let Some(count) = used.of(*counter) {
                context.sample(metric.name, metric.unit, count.value as f64 / rows as f64);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(rows: &[[i64; 2]]) -> Digest {
        let mut digest = Digest::default();
        for row in rows {
            digest.add(*row);
        }
        digest
    }

    #[test]
    fn each_number_below_the_count_is_an_id2_once() {
        for count in [100, 101, 1_000, 50_000] {
            let rows = Rows::new(count, 1);
            let mut id2: Vec<i64> = (0..count).map(|number| rows.row(number)[1]).collect();
            let neighbours = id2.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < count / 4).count();
            assert_eq!(neighbours, 0, "{count}");
            id2.sort_unstable();
            assert!(id2.iter().copied().eq(0..count as i64), "{count}");
        }
    }

    #[test]
    fn orders_have_all_rows_and_are_sorted_by_their_field() {
        let rows = Rows::new(1_000, 7);
        let of = |order| -> Vec<[i64; 2]> {
            rows.in_order(order).into_iter().map(|number| rows.row(u64::from(number))).collect()
        };
        let (key, index, random) = (of(RowOrder::Key), of(RowOrder::Index), of(RowOrder::Random));
        assert!(key.is_sorted_by_key(|row| row[0]) && index.is_sorted_by_key(|row| row[1]));
        assert!(!random.is_sorted_by_key(|row| row[0]) && !random.is_sorted_by_key(|row| row[1]));
        for order in [key, index, random] {
            assert_eq!(digest_of(&order), rows.digest());
        }
    }

    #[test]
    fn digest_finds_missing_doubled_changed_and_swapped_values() {
        let rows = Rows::new(500, 1);
        let all: Vec<[i64; 2]> = (0..500).map(|number| rows.row(number)).collect();
        let changed = |change: fn(&mut Vec<[i64; 2]>)| {
            let mut changed = all.clone();
            change(&mut changed);
            digest_of(&changed)
        };
        assert_eq!(changed(|rows| rows.reverse()), rows.digest());
        let others = [
            changed(|rows| rows.truncate(499)),
            changed(|rows| rows[3] = rows[4]),
            changed(|rows| rows[9][1] += 1),
            // The sums of both columns stay.
            changed(|rows| (rows[10][1], rows[20][1]) = (rows[20][1], rows[10][1])),
        ];
        for other in others {
            assert_ne!(other, rows.digest());
        }
    }
}
