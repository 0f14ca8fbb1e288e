//! E13, dump and restore of a table whose rows may come back in an order that is foreign to its key.

mod rows;

use crate::axes::{choice, writes};
use crate::fill::{self, fill, rows_of_a_request};
use crate::metrics::time;
use crate::prelude::*;
use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::dump::RowOrder;
use kurabe_core::job::{Ended, Job, JobContext};
use kurabe_core::observation::Endpoint;
use kurabe_core::stats_probe::{Clients, Counter, EngineUse, Reading, SnapshotPoint, StatsProbe};
use rows::{Digest, GROUP, Rows};
use std::time::Duration;

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
    let usual_time = Duration::from_secs_f64(rows.count as f64 / MAX_PER_SECOND as f64);
    // The writer, the reader, the probe, and what creates the table or finds its size.
    Ok(PlannedCell { usual_time, ..PlannedCell::job(name, demand, 4, job) })
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
