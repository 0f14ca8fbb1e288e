//! A cell as the engine sees it: loads the data, fills the cache, runs transactions, checks the store.

use super::info::{CACHED, EVICTIONS, HIT_RATIO, HITS_REPORTED, INFO, RECORDS, REFUSED, STALE, STALE_SHARE};
use super::popularity::Popularity;
use super::store::{self, Store, Versions};
use super::transaction::{AfterWrite, CacheClient, Counts, Shared, Tally, taken};
use crate::axes;
use crate::fill::{self, BATCH, acknowledged, check_count};
use crate::prelude::*;
use crate::readback;
use kurabe_core::driver::CacheCounters;
use std::thread;
use std::time::Duration;

/// Values that are sent to the cache before their answers are read.
const TOGETHER: usize = 50;
/// Before a trial every record is stored in the cache once, and then this many times as many records by popularity. A
/// cache that evicts the least recently used record then holds about what it would hold after such requests.
const FILL_AGAIN: usize = 2;

/// Attempts to store a record while the cache has no free memory, and the pause between them.
const PATIENCE: u32 = 500;
const PAUSE: Duration = Duration::from_millis(2);

pub(super) struct CacheWorkload {
    shared: Arc<Shared>,
}

/// The state of the records of a store.
struct State {
    versions: Arc<Versions>,
    /// The version of each record and the cache's counters before the trial.
    before: (Vec<u64>, Option<CacheCounters>),
}

impl CacheWorkload {
    pub(super) fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        let internal = |why: String| Error::new(ErrorKind::Internal, why);
        let payload = cell.number("payload")?;
        let records = dataset.records.unwrap_or(RECORDS);
        let records =
            u32::try_from(records).map_err(|_| Error::usage("--records: too many to fill a cache with"))?;
        let clients = axes::suffice(cell, u64::from(records), "records")?;
        let size = cell.get("cache-size");
        let size = size.ok_or_else(|| internal("cache-aside: the cell has no cache size".to_owned()))?;
        let cache = cache(size, u64::from(records), payload);
        let ways = [
            ("invalidate", AfterWrite::Invalidate),
            ("replace", AfterWrite::Replace),
            ("nothing", AfterWrite::Nothing),
        ];
        let after_write = axes::choice(&INFO, cell, "after-write", &ways)?;
        let writes = cell.number("write-share")?;
        if cache.is_none() && after_write != AfterWrite::Invalidate {
            return Err(Error::unsupported("a cell without a cache has no copy to replace or to leave"));
        }
        let data = format!("kurabe_{}_aside_{payload}", dataset.slot);
        let store = Store::new(
            &data,
            cache.as_ref().map(|cache| &*cache.name),
            dataset.seed,
            records as usize,
            payload as usize,
        );
        let mut operations =
            vec![store::get(&store.stored), store::update(&store.stored), store::insert(&store.stored)];
        if let Some(cached) = &store.cached {
            operations.extend([store::get(cached), store::put(cached), store::delete(cached)]);
        }
        let demand = Demand {
            operations,
            value_bytes: payload,
            request_bytes: payload + 256,
            parameters: 3,
            loaded_bytes: u64::from(records) * payload,
            client_bytes: 4 * payload + 64_000,
            ..Demand::default()
        };
        let exponent = cell.word("zipf")?;
        let exponent =
            exponent.parse().map_err(|_| internal(format!("cache-aside: invalid exponent '{exponent}'")))?;
        let popularity = Popularity::new(dataset.seed, records, exponent);
        let shared = Arc::new(Shared { store, popularity, after_write, writes });
        let policy = LoopPolicy { interleave: false, ..LoopPolicy::new(clients as usize) };
        let planned = PlannedCell::new(data, demand, policy, Self { shared });
        let needs = cache.map(Need::Cache).into_iter().collect();
        Ok(PlannedCell { needs, stored_bytes: Some(payload), ..planned })
    }

    /// Stores records in the cache as requests would have left them there.
    fn fill_cache(
        &self,
        session: &mut dyn Session,
        cached: &Arc<Collection>,
        versions: &Versions,
    ) -> Result<()> {
        let store = &self.shared.store;
        let mut rng = Rng::new(mix(store.seed, 0x6669_6c6c));
        let mut order: Vec<usize> = (0..store.records).collect();
        rng.shuffle(&mut order);
        order.extend((0..FILL_AGAIN * store.records).map(|_| self.shared.popularity.draw(&mut rng)));
        let put = session.prepare(&store::put(cached))?;
        let mut data = vec![Vec::new(); TOGETHER];
        let mut replies: Vec<Reply> = (0..TOGETHER).map(|_| Reply::new()).collect();
        for records in order.chunks(TOGETHER) {
            let rows: Vec<_> = records
                .iter()
                .zip(&mut data)
                .map(|(record, data)| {
                    let version = versions.acknowledged(*record);
                    store.content.write(*record as u64, version, data);
                    (store.ident(*record), version)
                })
                .collect();
            let parameters: Vec<Value<'_>> = rows
                .iter()
                .zip(&data)
                .flat_map(|((id, version), data)| {
                    [Value::Text(id.as_str()), Value::Int(*version as i64), Value::Bytes(data)]
                })
                .collect();
            let mut put_all = || session.pipeline(&put, &parameters, &mut replies[..records.len()]);
            let mut refused = 0;
            while !taken(put_all())? {
                // memcached frees memory in a separate thread, which may be late on a busy machine.
                refused += 1;
                if refused == PATIENCE {
                    return put_all();
                }
                thread::sleep(PAUSE);
            }
        }
        session.release(put)
    }

    /// The cache's own counters; `None` if it has none.
    fn counters(&self, session: &mut dyn Session) -> Result<Option<CacheCounters>> {
        let Some(cached) = &self.shared.store.cached else { return Ok(None) };
        match session.cache().and_then(|cache| cache.counters(cached)) {
            Ok(counters) => Ok(Some(counters)),
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Checks the number of records in the store, and that changed records have the version that was acknowledged
    /// last. Returns how many records it compared.
    fn check_store(
        &self,
        session: &mut dyn Session,
        versions: &Versions,
        records: impl Iterator<Item = usize>,
    ) -> Result<u64> {
        let store = &self.shared.store;
        check_count(session, &store.stored, store.records as u64, "records")?;
        let payload = store.content.length() as u64;
        readback::each(
            session,
            &store::get(&store.stored),
            payload,
            records.map(|record| (record, store.ident(record))),
            |(_, id)| [Value::Text(id.as_str())],
            |(record, _), reply| {
                let found = store.version_of(*record, reply)?;
                let last = versions.acknowledged(*record);
                if u64::try_from(found) == Ok(last) {
                    return Ok(());
                }
                Err(Error::mismatch(format!(
                    "the store has version {found} of record {record}, expected the last acknowledged \
                     version {last}"
                )))
            },
        )
        .map_err(|error| error.context("read back"))
    }

    fn trial_values(
        &self,
        warmup: &Tally,
        tally: &Tally,
        counters: Option<(CacheCounters, CacheCounters)>,
    ) -> Vec<MetricValue> {
        let share = |part: u64, all: u64| (all > 0).then(|| part as f64 / all as f64);
        let mut values = Vec::new();
        let mut add =
            |metric: Metric, value: Option<f64>| values.extend(value.map(|value| metric.value(value)));
        let in_front = self.shared.store.cached.is_some();
        add(HIT_RATIO, share(tally.hits, tally.hits + tally.misses).filter(|_| in_front));
        if let Some((before, after)) = counters {
            // The cache's counters include the warm-up.
            let since = |now: u64, then: u64, warm: u64| now.saturating_sub(then).saturating_sub(warm);
            let hits = since(after.hits, before.hits, warmup.hits);
            let misses = since(after.misses, before.misses, warmup.misses);
            add(HITS_REPORTED, share(hits, hits + misses));
            add(EVICTIONS, Some(after.evictions.saturating_sub(before.evictions) as f64));
            add(CACHED, Some(after.items as f64));
        }
        add(STALE, Some(tally.stale as f64));
        add(STALE_SHARE, share(tally.stale, tally.reads));
        add(REFUSED, (tally.refused > 0).then_some(tally.refused as f64));
        values
    }
}

/// The cache that a cell needs: it holds a share of the records; `None` for the cell without a cache.
fn cache(size: &AxisValue, records: u64, payload: u64) -> Option<CacheNeed> {
    match size {
        AxisValue::Number(percent) => {
            let values = (records * percent).div_ceil(100);
            Some(CacheNeed { name: percent.to_string(), capacity: Some((values, payload)) })
        }
        AxisValue::Word(word) if word == "none" => None,
        AxisValue::Word(word) => Some(CacheNeed { name: word.replace('-', "_"), capacity: None }),
    }
}
impl Workload for CacheWorkload {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        let store = &self.shared.store;
        namespace.create(&store.stored)?;
        let insert = session.prepare(&store::insert(&store.stored))?;
        let (mut reply, mut data) = (Reply::new(), Vec::new());
        fill::in_batches(session, store.records as u64, BATCH, &mut |session, record| {
            store.content.write(record, 0, &mut data);
            let id = store.ident(record as usize);
            let row = [Value::Text(id.as_str()), Value::Int(0), Value::Bytes(&data)];
            session.execute(&insert, &row, &mut reply)?;
            acknowledged(&reply, format_args!("record {record}"))
        })?;
        session.release(insert)?;
        namespace.analyse(&store.stored)?;
        let versions = Arc::new(Versions::new(store.records));
        self.check_store(session, &versions, 0..store.records)
            .map_err(|error| error.context("after loading"))?;
        Ok(DatasetState::new(State { versions, before: (Vec::new(), None) }))
    }

    fn before(&self, Before { state, namespace, session, .. }: Before<'_>) -> Result<()> {
        let state = state.get_mut::<State>()?;
        let versions = &state.versions;
        if let Some(cached) = &self.shared.store.cached {
            // Copies of other cells have other keys.
            namespace.create(cached)?;
            self.fill_cache(session, cached, versions).map_err(|error| error.context("filling the cache"))?;
        }
        let acknowledged =
            (0..self.shared.store.records).map(|record| versions.acknowledged(record)).collect();
        state.before = (acknowledged, self.counters(session)?);
        Ok(())
    }

    fn transaction(&self, _: &str, state: &DatasetState, client: Client) -> Result<Box<dyn Transaction>> {
        let state = state.get::<State>()?;
        Ok(Box::new(CacheClient::new(&self.shared, &state.versions, client)))
    }

    fn after(&self, After { state, session, clients, .. }: After<'_>) -> Result<Checked> {
        let now = self.counters(session)?;
        let State { versions, before: (first, before) } = state.get()?;
        let mut counts = Counts::default();
        for notes in clients.iter().filter_map(ClientSummary::notes::<Counts>) {
            counts.warmup.merge(&notes.warmup);
            counts.measured.merge(&notes.measured);
        }
        let Counts { warmup, measured } = counts;
        let completed: u64 = clients.iter().map(|client| client.completed).sum();
        let reads = warmup.reads + measured.reads;
        let writes = warmup.changes + measured.changes;
        if reads + writes != completed {
            return Err(Error::mismatch(format!(
                "{completed} requests were completed, but {reads} reads and {writes} writes were counted"
            )));
        }
        let changed = (0..).zip(first).filter(|(record, first)| versions.acknowledged(*record) != **first);
        let read_back = self.check_store(session, versions, changed.map(|(record, _)| record))?;
        let metrics = self.trial_values(&warmup, &measured, (*before).zip(now));
        // Popular records are changed several times.
        let verification = Verification { answers: reads, writes, records: read_back, counted: 0, read_back };
        Ok(Checked { verification, metrics, ..Checked::default() })
    }
}
