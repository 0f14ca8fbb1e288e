//! A memcached session: one connection, with one request for each operation.

use super::namespace::Generations;
use super::protocol::Client;
use super::{key, value};
use crate::prelude::*;
use crate::slots::{Slots, check_parameters, check_supported};
use crate::ttl;
use crate::wire::Peer;
use kurabe_core::driver::CacheCounters;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The maximum `ttl`, in seconds: memcached reads a number above thirty days as a date.
pub(super) const LONGEST: u32 = 30 * 86_400;

/// Why memcached does not support an operation; `None` if it does.
pub(super) fn unsupported(operation: &Operation) -> Option<&'static str> {
    match operation {
        Operation::Ping | Operation::Insert { .. } | Operation::Put { .. } | Operation::Delete { .. } => None,
        Operation::Get { collection, fields } => {
            (!collection.in_rest(fields)).then_some("memcached returns a value without its key")
        }
        Operation::Update { collection, fields } => (*fields != collection.rest())
            .then_some("memcached replaces a value as a whole: it cannot change some of a row's fields"),
        Operation::InsertMany { .. } => {
            Some("memcached has no request that stores several values atomically")
        }
        Operation::InsertEach { .. } => Some("memcached has no request that stores several values"),
        Operation::FindEqual { .. } | Operation::FindRange { .. } => {
            Some("memcached finds a value by its whole key only")
        }
        Operation::Purge { .. } => Some("memcached removes expired values by itself"),
        Operation::Page { .. } => Some("memcached has no pages"),
        Operation::Raw { .. } => Some("memcached has no SQL for the statements of a workload"),
        Operation::Flow(_) => Some(NO_FLOW),
        Operation::Count { .. } => Some("memcached cannot count or list its keys"),
        Operation::Begin | Operation::Commit | Operation::Rollback => Some("memcached has no transactions"),
    }
}

pub(super) struct MemcachedSession<S> {
    client: Client<S>,
    generations: Arc<Generations>,
    slots: Slots<Slot>,
    ttl: Option<u32>,
    key: Vec<u8>,
    value: Vec<u8>,
}

struct Slot {
    operation: Operation,
    parameters: usize,
    /// The collection's current generation; shared, since clearing sets a new one.
    generation: Arc<AtomicU64>,
    /// Flags of a write: mode (`M`), and the expiry (`T`) if all values have the same.
    flags: String,
    /// The parameter with the time when the value expires.
    expires: Option<usize>,
    /// The fields that are not in the key.
    rest: Vec<usize>,
    /// For `Get`: the fields to return, as indexes of `rest`.
    wanted: Vec<usize>,
}

impl<S: Peer> MemcachedSession<S> {
    pub(super) fn new(client: Client<S>, generations: Arc<Generations>, ttl: Option<u32>) -> Self {
        Self { client, generations, slots: Slots::default(), ttl, key: Vec::new(), value: Vec::new() }
    }
}

impl<S: Peer + Send> Session for MemcachedSession<S> {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        check_supported(operation, unsupported(operation))?;
        let mode = match operation {
            Operation::Insert { .. } => " ME",
            Operation::Update { .. } => " MR",
            _ => "",
        };
        let life = self.ttl.map_or_else(String::new, |seconds| format!(" T{seconds}"));
        let mut slot = Slot {
            operation: operation.clone(),
            parameters: operation.parameters(),
            generation: Arc::default(),
            flags: format!("{mode}{life}"),
            expires: None,
            rest: Vec::new(),
            wanted: Vec::new(),
        };
        if let Some(collection) = operation.collection() {
            let found = self.generations.get(&collection.name, &mut self.client);
            slot.generation = self.client.wire.settle(found)?;
            slot.rest = collection.rest();
            slot.expires = collection.expires.and_then(|field| match operation {
                Operation::Update { fields, .. } => fields.iter().position(|changed| *changed == field),
                _ => Some(field),
            });
        }
        if let Operation::Get { fields, .. } = operation {
            slot.wanted = fields.iter().filter_map(|f| slot.rest.iter().position(|rest| rest == f)).collect();
        }
        Ok(self.slots.insert(slot))
    }

    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        out.clear();
        let slot = self.slots.get(prepared)?;
        check_parameters(slot.operation.name(), slot.parameters, parameters.len())?;
        let Some(collection) = slot.operation.collection() else {
            let ponged = self.client.ping();
            return self.client.wire.settle(ponged);
        };
        let parts = slot.request(collection, parameters, &mut self.key, &mut self.value)?;
        if let Some(parts) = parts {
            self.client.send_set(&self.key, &slot.flags(parameters), parts)?;
        } else {
            self.client.begin();
            slot.put(None, parameters, &mut self.client, &self.key);
            self.client.send()?;
        }
        let answered = slot.answer(&mut self.client, out).inspect_err(|_| out.clear());
        self.client.wire.settle(answered)
    }

    /// Every request gets its answer, even if an earlier one was refused.
    fn pipeline(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut [Reply]) -> Result<()> {
        out.iter_mut().for_each(Reply::clear);
        let slot = self.slots.get(prepared)?;
        let each = slot.parameters;
        check_parameters(slot.operation.name(), each * out.len(), parameters.len())?;
        let Some(collection) = slot.operation.collection() else {
            return Err(Error::unsupported("memcached: pings are not pipelined"));
        };
        self.client.begin();
        for n in 0..out.len() {
            let own = &parameters[n * each..(n + 1) * each];
            let parts = slot.request(collection, own, &mut self.key, &mut self.value)?;
            slot.put(parts, own, &mut self.client, &self.key);
        }
        self.client.send_pipeline()?;
        let mut ended = Ok(());
        for reply in out.iter_mut() {
            self.client.wire.next_answer();
            let answer = slot.answer(&mut self.client, reply).inspect_err(|_| reply.clear());
            let answer = self.client.wire.settle(answer);
            if self.client.wire.has_failed() {
                return answer;
            }
            ended = ended.and(answer);
        }
        ended
    }

    fn connect_times(&self) -> Option<ConnectTimes> {
        self.client.times
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        self.slots.remove(&prepared).map(drop)
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.client.quit();
        Ok(())
    }

    fn close_checked(mut self: Box<Self>) -> Result<()> {
        self.client.quit_checked()
    }

    fn cache(&mut self) -> Result<&mut dyn Cache> {
        Ok(self)
    }

    fn raw_messages(&mut self) -> Result<&mut dyn RawMessages> {
        Ok(&mut self.client.wire)
    }

    without!(bulk, planner, transactions);
}

impl<S: Peer + Send> Cache for MemcachedSession<S> {
    fn counters(&mut self, _collection: &Collection) -> Result<CacheCounters> {
        let stats = self.client.stats("stats");
        let stats = self.client.wire.settle(stats)?;
        let number = |name: &str| stats.number(name).unwrap_or_default();
        Ok(CacheCounters {
            hits: number("get_hits"),
            misses: number("get_misses"),
            evictions: number("evictions"),
            items: number("curr_items"),
        })
    }
}

impl Slot {
    /// The value of one execution in three parts, if it writes one, with its packed part in `value`. The key is written
    /// to `key`.
    fn request<'a>(
        &self,
        collection: &Collection,
        parameters: &[Value<'a>],
        key: &mut Vec<u8>,
        value: &'a mut Vec<u8>,
    ) -> Result<Option<[&'a [u8]; 3]>> {
        let generation = self.generation.load(Ordering::Relaxed);
        let all = parameters.iter().copied();
        match &self.operation {
            Operation::Get { .. } | Operation::Delete { .. } => {
                key::write(key, &collection.name, generation, all)?;
                Ok(None)
            }
            Operation::Update { .. } => {
                let fields = self.rest.len();
                key::write(key, &collection.name, generation, all.clone().skip(fields))?;
                value::pack(value, all.take(fields)).map(Some)
            }
            // `Insert` and `Put`; other operations are never prepared.
            _ => {
                let fields = |at: &usize| parameters[*at];
                key::write(key, &collection.name, generation, collection.key.iter().map(fields))?;
                value::pack(value, self.rest.iter().map(fields)).map(Some)
            }
        }
    }

    /// The flags of a write.
    fn flags(&self, parameters: &[Value<'_>]) -> Cow<'_, str> {
        match self.expires.map(|at| parameters[at]) {
            Some(Value::Time(micros)) => {
                let seconds = ttl::remaining_ms(micros).div_ceil(1_000);
                // memcached reads more than thirty days as a date.
                let is_date = seconds > u64::from(LONGEST);
                let life = if is_date { micros.unsigned_abs() / 1_000_000 } else { seconds };
                Cow::Owned(format!("{} T{life}", self.flags))
            }
            _ => Cow::Borrowed(&self.flags),
        }
    }

    /// Appends the request of one execution.
    fn put<S: Peer>(
        &self,
        parts: Option<[&[u8]; 3]>,
        parameters: &[Value<'_>],
        client: &mut Client<S>,
        key: &[u8],
    ) {
        match (parts, &self.operation) {
            (Some(parts), _) => client.put_set(key, &self.flags(parameters), parts),
            (None, Operation::Delete { .. }) => client.put_delete(key, ""),
            (None, _) => client.put_get(key, " v"),
        }
    }

    /// Receives the answer to one request.
    fn answer<S: Peer>(&self, client: &mut Client<S>, out: &mut Reply) -> Result<()> {
        if let Operation::Get { .. } = self.operation {
            if let Some(total) = client.got()? {
                value::receive(client, total, self.rest.len(), &self.wanted, out)?;
            }
            return Ok(());
        }
        let stored = client.done()?;
        if let (Operation::Insert { collection }, false) = (&self.operation, stored) {
            let message = format!("memcached: {} already has a value with this key", collection.name);
            return Err(Error::new(ErrorKind::Server, message).code("NS"));
        }
        out.set_affected(u64::from(stored));
        Ok(())
    }
}
