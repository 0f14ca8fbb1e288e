//! E16, a copy of a table from one database to another, by the code of `kurabe copy`.
//!
//! One end is the target, the other its remote. The copy's target has an empty table of that name in the ownership table
//! before each trial, so that what a trial leaves behind is removed however it ends.

mod sample;

use crate::axes::{choice, writes};
use crate::content::{Content, Kind};
use crate::fill;
use crate::metrics::time;
use crate::prelude::*;
use crate::readback;
use kurabe_copy::engines::Engine;
use kurabe_copy::event::{Event, Step, TableDone};
use kurabe_copy::issue::Accepted;
use kurabe_copy::plan::Plan;
use kurabe_copy::run::{Copy, How};
use kurabe_copy::sql::Side;
use kurabe_copy::state;
use kurabe_copy::wanted::Wanted;
use kurabe_core::driver::{Capability, ConnectOptions, Driver};
use kurabe_core::job::{Ended, Job, JobContext};
use kurabe_core::remote::{RemoteCollection, RemoteServer};
use sample::{engine_of, which};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const TABLE: &str = "table";
const DIRECTION: &str = "direction";
const WHERE: &str = "where";
const ROWS: &str = "rows";

/// Characters of the text of a plain row.
const TEXT: u64 = 180;
/// Bytes of a plain row: two integers, and the text.
const PLAIN_BYTES: u64 = 16 + TEXT;
/// Rows that the copy reads at a time, at most.
const PAGE: u64 = 2_000;
/// The number of values in the indexed column of plain rows.
const INDEXED: u64 = 1_000_000;
/// The time to copy a row and to compare it, of a plain table and of one with all types, for the time that a run is expected to take.
/// Between MySQL and PostgreSQL it was 8 to 11 µs and 30 to 45 µs.
const PLAIN_ROW: Duration = Duration::from_micros(10);
const TYPED_ROW: Duration = Duration::from_micros(35);
/// The version of every row.
const VERSION: u64 = 0;

const COPIED: Metric = Metric::new(
    "rows copied per second",
    Unit::PerSecond,
    Better::Higher,
    "rows, by the time of reading and inserting them, without comparison and indexes",
)
.primary();
const PLAN: Metric = time("plan", "to read the catalogue, and once the table, for what does not map");
const COPYING: Metric = time("copy", "to read all rows from one end and insert them at the other");
const COMPARING: Metric = time("compare", "to read both ends and compare every value");
const INDEXING: Metric = time("index", "to make the indexes");

static INFO: ExperimentInfo = ExperimentInfo {
    name: "copy",
    question: "How fast does a table move from one database to another, with every value compared?",
    about: "Copies a table between the target and a second server as 'kurabe copy' does: definition, rows, comparison of \
            every value on both ends, indexes. The second server is another instance of the target's engine, or the one \
            that --remote names, of any engine: SQLite, PostgreSQL, MySQL and MariaDB. --direction tells which end is \
            copied from: 'kurabe run copy up:mysql --remote up:postgres --direction out' copies from MySQL to PostgreSQL. \
            Throughput, data per second and CPU time are of all of it; 'rows copied per second' is of reading and \
            inserting alone. Rows of plain tables are read back and compared with what was generated, too.",
    axes: &[
        AxisInfo::new(
            TABLE,
            "the table",
            AxisKind::choice(&[
                ("plain", "a key, an indexed integer, and text of 180 characters"),
                ("types", "a column of every type that the engines have in common, with nulls"),
            ]),
            &["plain", "types"],
        ),
        AxisInfo::new(
            DIRECTION,
            "which way the rows go",
            AxisKind::choice(&[
                ("out", "from the target to the other server"),
                ("into", "from the other server to the target"),
            ]),
            &["out", "into"],
        ),
        AxisInfo::new(
            WHERE,
            "the other server",
            AxisKind::choice(&[
                (
                    "second",
                    "a second instance of the target's: another process on this host, or another file",
                ),
                ("remote", "the server that --remote names"),
            ]),
            &["second", "remote"],
        ),
        AxisInfo::new(ROWS, "rows of the table", AxisKind::count(1, 1_000_000_000), &["20k"]),
    ],
    operations: &[writes("copy", "copy the table; counted by the row", 1)],
    metrics: &[COPIED, PLAN, COPYING, COMPARING, INDEXING],
    chart_axis: ROWS,
    answer: Answer::Metrics,
    published: None,
};

pub(crate) static COPY: Experiment = Experiment { takes_remote: true, ..Experiment::new(&INFO, &plan) };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Out,
    Into,
}

fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let plain = choice(&INFO, cell, TABLE, &[("plain", true), ("types", false)])?;
    let direction = choice(&INFO, cell, DIRECTION, &[("out", Direction::Out), ("into", Direction::Into)])?;
    let servers = [("second", RemoteServer::Second), ("remote", RemoteServer::Given)];
    let server = choice(&INFO, cell, WHERE, &servers)?;
    let rows = dataset.records.map_or_else(|| cell.number(ROWS), Ok)?;
    let [table, way, place] = [TABLE, DIRECTION, WHERE].map(|axis| cell.word(axis).map(initial));
    // Both ends have the same name.
    let name = format!("kurabe_{}_copy_{}{}{}_{rows}", dataset.slot, table?, way?, place?);
    let here = collection(name.clone(), plain);
    let there =
        Collection { remote: Some(RemoteCollection { server, link: None }), ..Collection::clone(&here) };
    let (here, there) = (Arc::new(here), Arc::new(there));
    let (source, target) = match direction {
        Direction::Out => (here, there),
        Direction::Into => (there, here),
    };
    let content = plain.then(|| Content::new(Kind::Text, dataset.seed, TEXT as usize));
    let row_bytes = if plain { PLAIN_BYTES } else { sample::ROW_BYTES };
    let together = fill::rows_of_a_request(3, PLAIN_BYTES).max(1);
    let job = CopyJob { source, target, direction, server, rows, content };
    let demand = Demand {
        operations: job.operations(),
        request_bytes: PAGE.min(rows) * row_bytes * 2,
        parameters: 3 * together,
        loaded_bytes: 2 * rows * row_bytes,
        // A few pages, as they came and in canonical form.
        client_bytes: 8 * PAGE.min(rows) * row_bytes * 2,
        // A copy sets the time zone and more of its sessions.
        capabilities: vec![Capability::OwnSessions],
        ..Demand::default()
    };
    // Both ends, and what creates and removes tables on each.
    let planned = PlannedCell::job(name, demand, 4, job);
    let needs = vec![Need::Remote(server)];
    let usual_time = if plain { PLAIN_ROW } else { TYPED_ROW }.mul_f64(rows as f64);
    Ok(PlannedCell { needs, stored_bytes: Some(row_bytes), usual_time, ..planned })
}

fn initial(word: &str) -> &str {
    &word[..1]
}

/// A plain table; or the key alone, which stands in for a table of all types.
fn collection(name: String, plain: bool) -> Collection {
    let mut fields = vec![Field { name: sample::KEY, kind: FieldType::Int }];
    if plain {
        fields.push(Field { name: "k", kind: FieldType::Int });
        fields.push(Field { name: "data", kind: FieldType::Text { max: TEXT as u32 } });
    }
    let indexes = if plain { vec![vec![1]] } else { Vec::new() };
    Collection { indexes, ..Collection::new(name, fields, vec![0]) }
}

struct CopyJob {
    source: Arc<Collection>,
    target: Arc<Collection>,
    direction: Direction,
    server: RemoteServer,
    rows: u64,
    /// The text of plain rows; `None`: the table has all types.
    content: Option<Content>,
}

/// What the copy knows of its ends.
struct Engines {
    source: &'static Engine,
    target: &'static Engine,
}

impl CopyJob {
    fn operations(&self) -> Vec<Operation> {
        let count = |collection: &Arc<Collection>| Operation::Count { collection: Arc::clone(collection) };
        let mut all =
            vec![which(&self.source), which(&self.target), count(&self.source), count(&self.target)];
        if self.content.is_some() {
            all.push(Operation::Insert { collection: Arc::clone(&self.source) });
            all.push(Operation::Get { collection: Arc::clone(&self.target), fields: vec![1, 2] });
        }
        all
    }

    /// The indexed integer of a plain row.
    fn indexed(key: u64) -> i64 {
        (mix(key, INDEXED) % INDEXED) as i64
    }

    /// Connects to both ends.
    fn ends<'s>(
        &self,
        engines: &Engines,
        drivers: [&dyn Driver; 2],
        options: &ConnectOptions,
        stop: &'s AtomicBool,
    ) -> Result<Copy<'s>> {
        let other = match self.server {
            RemoteServer::Second => "the second instance",
            _ => "the remote server",
        };
        let names = match self.direction {
            Direction::Out => ["the target", other],
            Direction::Into => [other, "the target"],
        };
        let side = |at: usize, engine: &'static Engine| -> Result<Side> {
            let session = drivers[at].connect(options).map_err(|error| error.context(names[at]))?;
            Ok(Side { session, engine, name: names[at].to_owned() })
        };
        Ok(Copy::new(side(0, engines.source)?, side(1, engines.target)?, stop))
    }

    /// Copies, and counts the work that is done.
    fn copied(
        &self,
        copy: &mut Copy<'_>,
        stop: &AtomicBool,
        namespace: &mut dyn Namespace,
        context: &mut JobContext<'_>,
    ) -> Result<TableDone> {
        // The empty table that is in the ownership table.
        let placeholder = copy.target.quoted(&self.target.name);
        copy.target.run(&format!("DROP TABLE {placeholder}"))?;
        let wanted =
            Wanted { tables: vec![self.source.name.clone()], accepted: Accepted::all(), ..Wanted::default() };
        let mut plan: Plan = context.span(PLAN.name, |_| copy.plan(&wanted, &mut []))?;
        // Each page is acknowledged as the report's durability says.
        copy.target.engine.before_last_commit.iter().try_for_each(|sql| copy.target.run(sql))?;
        let made_by_us = sample::made_by_us(copy.target.engine);
        plan.tables.iter_mut().for_each(|table| table.create.push_str(made_by_us));
        let mut seen = 0;
        let done = copy.run(&plan, namespace, How::default(), &mut |event| {
            let counted = match event {
                Event::Progress { step: Step::Copy, rows, .. } => {
                    let new = rows - seen;
                    seen = rows;
                    context.work(new, 0)
                }
                Event::Table(done) => context.work(0, done.bytes),
                _ => context.work(0, 0),
            };
            if counted.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        })?;
        done.into_iter().next().ok_or_else(|| Error::new(ErrorKind::Internal, "no table was copied"))
    }
}

impl Job for CopyJob {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        namespace.create(&self.source)?;
        match &self.content {
            None => sample::load(session, &self.source, self.rows)?,
            Some(content) => {
                let together = fill::rows_of_a_request(3, PLAIN_BYTES).max(1);
                fill::fill(session, &self.source, self.rows, together, &mut |row, field, out| {
                    let key = row + 1;
                    match field {
                        0 => Ok(Value::Int(key as i64)),
                        1 => Ok(Value::Int(Self::indexed(key))),
                        _ => {
                            content.write(key, VERSION, out);
                            fill::text(out)
                        }
                    }
                })?;
            }
        }
        namespace.analyse(&self.source)?;
        fill::check_count(session, &self.source, self.rows, "loaded rows")?;
        let engines =
            Engines { source: engine_of(session, &self.source)?, target: engine_of(session, &self.target)? };
        Ok(DatasetState::new(engines))
    }

    fn before(&self, Before { namespace, .. }: Before<'_>) -> Result<()> {
        namespace.create(&self.target)
    }

    fn run(&self, _operation: &str, state: &DatasetState, context: &mut JobContext<'_>) -> Result<()> {
        let here = context.driver();
        let there = here.links()?.remote(self.server)?;
        let drivers = match self.direction {
            Direction::Out => [here, there],
            Direction::Into => [there, here],
        };
        let stop = AtomicBool::new(false);
        let mut copy = self.ends(state.get()?, drivers, context.options(), &stop)?;
        let mut namespace = drivers[1].namespace()?;
        let done = self.copied(&mut copy, &stop, &mut *namespace, context);
        let Copy { source, target, .. } = copy;
        if done.is_err() {
            // Their transactions may hold locks, and the first error is the one to report.
            let _ = (source.session.close(), target.session.close());
            let _ = state::remove(&mut *namespace);
        } else {
            source.session.close()?;
            target.session.close()?;
        }
        let done = done?;
        if done.rows != self.rows || done.copied != self.rows {
            let why = format!(
                "{} rows were copied and {} compared, expected {}",
                done.copied, done.rows, self.rows
            );
            return Err(Error::mismatch(why));
        }
        for (metric, took) in [(COPYING, done.copy), (COMPARING, done.verify), (INDEXING, done.index)] {
            context.sample(metric.name, metric.unit, took.as_nanos() as f64);
        }
        context.sample(COPIED.name, COPIED.unit, self.rows as f64 / done.copy.as_secs_f64());
        Ok(())
    }

    /// All values were compared by the copy. Here the server counts, and plain rows are compared with what was generated.
    fn verify(&self, Ended { session, .. }: Ended<'_>) -> Result<Checked> {
        let rows = self.rows;
        let counted = fill::check_count(session, &self.target, rows, "copied rows")?;
        if let Some(content) = &self.content {
            let keys = 1..rows as i64 + 1;
            readback::numbered(session, &self.target, &[1, 2], PLAIN_BYTES, keys, &mut |key, found| {
                let (reply, row, column) = (found.reply, found.row, found.column);
                if reply.field_int(row, column) != Some(Self::indexed(key as u64)) {
                    return Err(Error::mismatch(format!("record {key} was copied with another number")));
                }
                let text = reply.field_bytes(row, column + 1).ok_or_else(|| readback::wrong_rows(key, 1))?;
                content.check(key as u64, VERSION, text)
            })
            .map_err(|error| error.context("read back"))?;
        }
        let counted = counted.unwrap_or_default();
        // Rows of all types were compared by the copy, and are not read here.
        let read_back = if self.content.is_some() { rows } else { 0 };
        Ok(Verification { writes: rows, records: rows, counted, read_back, answers: 0 }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(given: &[(&str, &str)]) -> PlannedCell {
        plan(&INFO.baseline(given).unwrap(), &Dataset { seed: 1, records: None, slot: 12 }).unwrap()
    }

    #[test]
    fn each_cell_has_a_table_of_its_own_whose_name_every_engine_takes() {
        let mut names = Vec::new();
        for table in ["plain", "types"] {
            for direction in ["out", "into"] {
                for place in ["second", "remote"] {
                    let given = [("table", table), ("direction", direction), ("where", place)];
                    let cell = planned(&[&given[..], &[("rows", "99999999")]].concat());
                    assert!(Collection::name_is_ours(&cell.dataset), "{}", cell.dataset);
                    assert!(cell.dataset.len() <= 31, "{}", cell.dataset);
                    names.push(cell.dataset);
                }
            }
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 8);
    }

    #[test]
    fn direction_tells_which_end_is_remote() {
        let remote = |given: &[(&str, &str)]| {
            let cell = planned(given);
            let of = |operation: &Operation| operation.collection().unwrap().remote.is_some();
            (of(&cell.demand.operations[0]), of(&cell.demand.operations[1]), cell.remote())
        };
        assert_eq!(remote(&[]), (false, true, Some(RemoteServer::Second)));
        let into = [("direction", "into"), ("where", "remote")];
        assert_eq!(remote(&into), (true, false, Some(RemoteServer::Given)));
    }

    #[test]
    fn both_ends_must_be_engines_whose_tables_can_be_copied() {
        let cell = planned(&[("table", "types")]);
        for operation in &cell.demand.operations[..2] {
            let Operation::Raw { statement } = operation else { panic!("{operation:?}") };
            for words in [&["sqlite"][..], &["postgres", "postgresql"], &["mysql", "mariadb"]] {
                assert!(statement.text(words).is_some(), "{words:?}");
            }
            assert!(statement.text(&["oracle"]).is_none());
        }
    }
}
