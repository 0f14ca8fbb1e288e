//! A connection to a store, and one to each cache, opened when the first operation on the cache is prepared.

use super::{Caches, place};
use crate::prelude::*;
use crate::slots::Slots;
use kurabe_core::driver::CacheCounters;

pub(super) struct PairSession {
    caches: Caches,
    options: ConnectOptions,
    /// The store's, then one for each cache.
    sessions: Vec<Option<Box<dyn Session>>>,
    /// The index of the session that prepared an operation, and its handle there.
    slots: Slots<(usize, Prepared)>,
}

impl PairSession {
    pub(super) fn new(store: Box<dyn Session>, caches: Caches, options: ConnectOptions) -> Self {
        let sessions = [Some(store)].into_iter().chain(caches.iter().map(|_| None)).collect();
        Self { caches, options, sessions, slots: Slots::default() }
    }

    /// The session of a collection, and its index.
    fn of(&mut self, collection: Option<&Collection>) -> Result<(usize, &mut dyn Session)> {
        let at = collection.and_then(|collection| place(&self.caches, collection)).transpose()?;
        let Some(cache) = at else { return Ok((0, open(&mut self.sessions, 0)?)) };
        if self.sessions[1 + cache].is_none() {
            let session = self.caches[cache].driver.connect(&self.options);
            self.sessions[1 + cache] = Some(session.map_err(|error| error.context("the cache"))?);
        }
        Ok((1 + cache, open(&mut self.sessions, 1 + cache)?))
    }
}

fn open(sessions: &mut [Option<Box<dyn Session>>], number: usize) -> Result<&mut dyn Session> {
    match sessions.get_mut(number) {
        Some(Some(session)) => Ok(&mut **session),
        _ => Err(Error::new(ErrorKind::Internal, "the operation was not prepared on this connection")),
    }
}

impl Session for PairSession {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        let (number, session) = self.of(operation.collection().map(|collection| &**collection))?;
        let prepared = session.prepare(operation)?;
        Ok(self.slots.insert((number, prepared)))
    }

    fn prepare_literal(&mut self, operation: &Operation) -> Result<Prepared> {
        let (number, session) = self.of(operation.collection().map(|collection| &**collection))?;
        let prepared = session.prepare_literal(operation)?;
        Ok(self.slots.insert((number, prepared)))
    }

    #[inline]
    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        let (number, prepared) = self.slots.get(prepared)?;
        open(&mut self.sessions, *number)?.execute(prepared, parameters, out)
    }

    fn pipeline(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut [Reply]) -> Result<()> {
        let (number, prepared) = self.slots.get(prepared)?;
        open(&mut self.sessions, *number)?.pipeline(prepared, parameters, out)
    }

    fn estimate(&mut self, operation: &Operation, parameters: &[Value<'_>]) -> Result<RowEstimate> {
        let (_, session) = self.of(operation.collection().map(|collection| &**collection))?;
        session.estimate(operation, parameters)
    }

    fn connect_times(&self) -> Option<ConnectTimes> {
        self.sessions.first()?.as_ref()?.connect_times()
    }

    fn cache_counters(&mut self, collection: &Collection) -> Result<CacheCounters> {
        self.of(Some(collection))?.1.cache_counters(collection)
    }

    fn flush_stats(&mut self) -> Result<()> {
        self.sessions.iter_mut().flatten().try_for_each(|session| session.flush_stats())
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        let (number, prepared) = self.slots.remove(&prepared)?;
        open(&mut self.sessions, number)?.release(prepared)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let sessions = self.sessions.into_iter().flatten();
        // Each is closed, even if an earlier one failed.
        sessions.map(Session::close).fold(Ok(()), Result::and)
    }

    fn close_checked(self: Box<Self>) -> Result<()> {
        self.sessions.into_iter().flatten().map(Session::close_checked).fold(Ok(()), Result::and)
    }
}
