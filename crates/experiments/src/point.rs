//! The common baseline of database benchmarks: read, or change, one small row by its integer key.
//!
//! It follows `sysbench oltp_point_select` and `pgbench --select-only` as closely as Kurabe's rules allow.

use crate::axes::{self, CLIENTS, CONNECTION, STATEMENT, no_operation, reads, writes};
use crate::content::{Content, Kind};
use crate::fill::{acknowledged_rows, text};
use crate::prelude::*;
use crate::rows::{How, LOADED, Read, Rows, Write, acknowledged_change};
use crate::statement::recycle;
use kurabe_core::planned::share;
use kurabe_stats::Permutation;

pub(crate) static POINT_READ: Experiment =
    Experiment::new(&READ_INFO, &|cell, dataset| plan(&READ_INFO, cell, dataset));
pub(crate) static POINT_WRITE: Experiment =
    Experiment::new(&WRITE_INFO, &|cell, dataset| plan(&WRITE_INFO, cell, dataset));

pub(crate) const READ: &str = "read";
/// The page of an application that opens a connection for each read.
pub(crate) const NEW: &str = "new";
const WRITE: &str = "write";
/// Default number of rows: that of sysbench's documentation and of pgbench's scale 1.
const RECORDS: u64 = 100_000;
/// Characters of a row's data.
pub(crate) const LENGTH: usize = 100;

const PIPELINE: AxisInfo = AxisInfo::new(
    "pipeline",
    "requests that a client sends before it reads the answers",
    AxisKind::count(1, 1_000),
    &["1"],
);

const INFO: ExperimentInfo = ExperimentInfo {
    name: "point-read",
    question: "How fast does a database answer the simplest query, one small row by its key?",
    about: "Reads one field of 100 characters by a whole-number primary key drawn uniformly from 100,000 \
            rows, as sysbench's oltp_point_select and pgbench's select-only do, so that results are \
            comparable.",
    axes: &[CLIENTS, STATEMENT, CONNECTION, PIPELINE],
    operations: &[reads(READ, "read one row by its key", 100_000)],
    ..ExperimentInfo::BASE
};

static READ_INFO: ExperimentInfo = INFO;

static WRITE_INFO: ExperimentInfo = ExperimentInfo {
    name: "point-write",
    question: "How fast does a database perform the smallest change, one small row by its key?",
    about: "Replaces one field of 100 characters by a whole-number primary key drawn uniformly from 100,000 rows, one \
            change per transaction. Clients share the table but no rows, so that they do not wait for each other's \
            row locks.",
    operations: &[writes(WRITE, "change one row by its key", 10_000)],
    ..INFO
};

fn plan(info: &ExperimentInfo, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let writes = info.operations.iter().any(|operation| operation.writes);
    let store = store(&info.name.replace('-', "_"), dataset);
    if writes {
        axes::suffice(cell, store.records, "rows")?;
    }
    let pipeline = cell.number("pipeline")?;
    let bind = Bind::parse(cell.word("statement")?)?;
    if pipeline > 1 && bind != Bind::Once {
        return Err(Error::unsupported("--pipeline needs --statement once"));
    }
    let capacity =
        writes.then_some(Capacity { records: store.records, requests_per_record: 1, of_memory: false });
    let policy = LoopPolicy { pipeline, capacity, ..axes::policy(cell)? };
    let mut needed = Vec::from_iter((bind != Bind::Once).then_some(Capability::PreparedStatements));
    needed.extend((pipeline > 1).then_some(Capability::Pipelining));
    let operations = if writes { vec![store.update()] } else { Vec::new() };
    let pipeline = pipeline as usize;
    let names: &[&str] = match (pipeline, writes) {
        (2.., _) => &[],
        (_, true) => &[WRITE],
        (_, false) => &[READ],
    };
    let workload = PointWorkload { store, bind, pipeline };
    Ok(workload.planned(operations, needed, policy, dataset.seed, names))
}

pub(crate) fn content(seed: u64) -> Content {
    Content::new(Kind::Text, seed, LENGTH)
}

type Store = Rows<Content>;

fn store(name: &str, dataset: &Dataset) -> Arc<Store> {
    let name = format!("kurabe_{}_{name}", dataset.slot);
    Arc::new(Rows::new(name, content(dataset.seed), dataset.records.unwrap_or(RECORDS).max(1)))
}

pub(crate) struct PointWorkload {
    store: Arc<Store>,
    bind: Bind,
    /// Requests that are sent before their answers are read.
    pipeline: usize,
}

impl PointWorkload {
    /// Plans clients that read by key, one request at a time, with this way of binding.
    pub(crate) fn plan_reads(name: &str, bind: Bind, policy: LoopPolicy, dataset: &Dataset) -> PlannedCell {
        let needed = match bind {
            Bind::InOne => Vec::new(),
            Bind::Literal => vec![Capability::PreparedStatements, Capability::Literals],
            Bind::Once | Bind::PerRequest => vec![Capability::PreparedStatements],
        };
        let workload = Self { store: store(name, dataset), bind, pipeline: 1 };
        workload.planned(Vec::new(), needed, policy, dataset.seed, &[READ])
    }

    fn planned(
        self,
        operations: Vec<Operation>,
        capabilities: Vec<Capability>,
        policy: LoopPolicy,
        seed: u64,
        names: &'static [&'static str],
    ) -> PlannedCell {
        let demand = Demand { capabilities, ..self.store.demand(operations) };
        let policy = LoopPolicy { divisible: true, ..policy };
        let facts = vec![("seed", seed), ("records", self.store.records)];
        let pages = (!names.is_empty()).then_some(ServedPages { names, facts, ..ServedPages::default() });
        let planned = PlannedCell::new(self.store.collection.name.clone(), demand, policy, self);
        PlannedCell { pages, stored_bytes: Some(LENGTH as u64), ..planned }
    }

    fn check_writes(&self, session: &mut dyn Session, done: &[ClientSummary]) -> Result<Verification> {
        let writes = acknowledged_rows(done, "changes were completed")?;
        self.store.check_count(session, self.store.records)?;
        let written =
            done.iter().flat_map(|done| Keys::new(self.store.records, done.client).written(done.completed));
        let read = self.store.read_back(session, written)?;
        Ok(Verification { writes, records: read, read_back: read, ..Verification::default() })
    }
}

impl Workload for PointWorkload {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        self.store.load(namespace, session)?;
        Ok(DatasetState::default())
    }

    fn transaction(&self, name: &str, _: &DatasetState, client: Client) -> Result<Box<dyn Transaction>> {
        let (store, keys) = (&self.store, || Keys::new(self.store.records, client));
        match name {
            READ if self.pipeline > 1 => {
                Ok(Box::new(Pipelined::new(store, self.pipeline, Draws::Read(Rng::new(client.seed)))))
            }
            WRITE if self.pipeline > 1 => {
                Ok(Box::new(Pipelined::new(store, self.pipeline, Draws::Write(keys()))))
            }
            READ | NEW => Ok(Box::new(Read::new(store, None, self.bind, client))),
            WRITE => Ok(Box::new(Write::new(store, How::Change, self.bind, keys()))),
            _ => Err(no_operation("point", name)),
        }
    }

    fn after(&self, After { operation, session, clients, .. }: After<'_>) -> Result<Checked> {
        let checked = (operation == WRITE).then(|| self.check_writes(session, clients)).transpose()?;
        Ok(checked.unwrap_or_default().into())
    }
}

/// The rows that one client changes, in order, each with its new version: its residue class, shuffled. Each row comes
/// once before any row is repeated. If a trial ends earlier, each change can therefore be read back.
///
/// Each change writes a version that no row had before. A lost change is therefore always detected, and no server can
/// skip a change as a no-op.
#[derive(Debug)]
struct Keys {
    order: Permutation,
    first: u64,
    step: u64,
    /// The version before the client's first change.
    base: u64,
    drawn: u64,
}

impl Keys {
    /// The keys of a client; there must be at least as many records as clients.
    fn new(records: u64, client: Client) -> Self {
        let own = share(records, client.index, client.count).max(1);
        Self {
            order: Permutation::new(client.seed, own),
            first: 1 + client.index as u64,
            step: client.count as u64,
            base: client.base_version(),
            drawn: 0,
        }
    }

    /// The rows that this many draws changed, each with its last version.
    fn written(self, draws: u64) -> impl Iterator<Item = (u64, u64)> {
        (draws.saturating_sub(self.order.length())..draws).map(move |place| self.at(place))
    }

    #[inline]
    fn at(&self, place: u64) -> (u64, u64) {
        (self.first + self.step * self.order.at(place), self.base + place + 1)
    }
}

impl Iterator for Keys {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        self.drawn += 1;
        Some(self.at(self.drawn - 1))
    }
}

/// The rows that a client requests.
enum Draws {
    /// Reads uniformly drawn rows.
    Read(Rng),
    /// Changes the client's own rows.
    Write(Keys),
}

/// A client that sends several requests before it reads the answers: the same reads and changes, in the same order.
struct Pipelined {
    store: Arc<Store>,
    draws: Draws,
    statement: Statement,
    /// The key of each request, and the data that it writes.
    rows: Vec<(u64, Vec<u8>)>,
    replies: Vec<Reply>,
    parameters: Vec<Value<'static>>,
}

impl Pipelined {
    fn new(store: &Arc<Store>, depth: usize, draws: Draws) -> Self {
        let operation = match draws {
            Draws::Read(_) => store.select(),
            Draws::Write(_) => store.update(),
        };
        Self {
            store: Arc::clone(store),
            draws,
            statement: Statement::new(operation, Bind::Once),
            rows: vec![(0, Vec::new()); depth],
            replies: (0..depth).map(|_| Reply::new()).collect(),
            parameters: Vec::with_capacity(depth * 2),
        }
    }
}

impl Transaction for Pipelined {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statement.attach(session)
    }

    fn prepare_input(&mut self) {
        for (key, data) in &mut self.rows {
            match &mut self.draws {
                Draws::Read(rng) => *key = 1 + rng.below(self.store.records),
                Draws::Write(keys) => {
                    let Some((own, version)) = keys.next() else { continue };
                    *key = own;
                    self.store.data.write(own, version, data);
                }
            }
        }
    }

    #[inline]
    fn run(&mut self, session: &mut dyn Session, _: &mut Recorder) -> Result<()> {
        let mut parameters: Vec<Value<'_>> = std::mem::take(&mut self.parameters);
        for (key, data) in &self.rows {
            if matches!(self.draws, Draws::Write(_)) {
                parameters.push(text(data)?);
            }
            parameters.push(Value::Int(*key as i64));
        }
        let done = self.statement.pipeline(session, &parameters, &mut self.replies);
        self.parameters = recycle(parameters);
        done
    }

    fn check(&mut self, recorder: &mut Recorder) -> Result<()> {
        for ((key, _), reply) in self.rows.iter().zip(&self.replies) {
            match self.draws {
                Draws::Read(_) => self.store.check(*key, LOADED, reply)?,
                Draws::Write(_) => {
                    acknowledged_change(reply, *key)?;
                    recorder.rows_written(1);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    fn planned(clients: &str, records: u64) -> Result<PlannedCell> {
        let cell = WRITE_INFO.baseline(&[("clients", clients)]).unwrap();
        plan(&WRITE_INFO, &cell, &Dataset { seed: 1, records: Some(records), slot: 3 })
    }

    #[test]
    fn more_writers_than_rows_are_rejected_with_reason() {
        assert_eq!(planned("10", 10).unwrap().dataset, "kurabe_3_point_write");
        let error = planned("11", 10).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("10 are too few for 11 clients"), "{error}");
    }

    #[test]
    fn the_first_rows_of_a_seed_never_change() {
        let store = store("point", &Dataset { seed: 1, records: None, slot: 0 });
        let line = |(key, version)| {
            let mut data = Vec::new();
            store.data.write(key, version, &mut data);
            format!("{key} {version} {}", String::from_utf8(data).unwrap())
        };
        let lines = [(1, LOADED), (2, LOADED), (100_000, LOADED), (1, 1 << 32)].map(line).join("\n");
        assert_eq!(lines, include_str!("../golden/point_rows_seed1.txt").trim_end_matches('\n'));
        assert_eq!(store.records, 100_000);
    }

    proptest! {
        #[test]
        fn clients_share_out_all_keys_and_each_comes_once(records in 1u64..200, count in 1usize..20) {
            prop_assume!(records >= count as u64);
            let mut seen = HashSet::new();
            for index in 0..count {
                let client = Client { index, count, seed: index as u64, trial: 1 };
                let keys = Keys::new(records, client);
                for (key, _) in keys.take(share(records, index, count) as usize) {
                    prop_assert!((1..=records).contains(&key));
                    prop_assert!(seen.insert(key), "key {} came twice", key);
                }
            }
            prop_assert_eq!(seen.len() as u64, records);
        }

        #[test]
        fn written_rows_have_the_version_of_their_last_draw(records in 1u64..30, draws in 0u64..100) {
            let client = Client { index: 0, count: 1, seed: 9, trial: 3 };
            let mut keys = Keys::new(records, client);
            let mut last = HashMap::new();
            for n in 0..draws {
                let (key, version) = keys.next().unwrap();
                prop_assert_eq!(version, client.base_version() + n + 1);
                last.insert(key, version);
            }
            prop_assert_eq!(keys.written(draws).collect::<HashMap<_, _>>(), last);
        }
    }
}
