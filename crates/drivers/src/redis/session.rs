//! A Redis session: one connection, with one request for each operation.

use super::answer::{self, Gathered};
use super::connect::lines;
use super::namespace::Collections;
use super::plan::{Plan, unsupported};
use super::protocol::Client;
use super::request::Keys;
use crate::prelude::*;
use crate::slots::{Slots, check_parameters, check_supported};
use crate::wire::{Outbox, Peer};
use kurabe_core::driver::{CacheCounters, RawMessages};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) struct RedisSession<S> {
    work: Work<S>,
    collections: Arc<Collections>,
    ttl: Option<u32>,
    slots: Slots<Plan>,
}

/// The connection, and reusable buffers.
struct Work<S> {
    client: Client<S>,
    keys: Keys,
    gathered: Gathered,
    /// For each request of a pipeline, whether it was sent.
    sent: Vec<bool>,
    /// Whether the server has cached the script.
    script_known: bool,
}

impl<S: Peer> RedisSession<S> {
    pub(super) fn new(client: Client<S>, collections: Arc<Collections>, ttl: Option<u32>) -> Self {
        let work = Work {
            client,
            keys: Keys::default(),
            gathered: Gathered::default(),
            sent: Vec::new(),
            script_known: false,
        };
        Self { work, collections, ttl, slots: Slots::default() }
    }
}

impl<S: Peer + Send> Session for RedisSession<S> {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        check_supported(operation, unsupported(operation, self.ttl))?;
        let gone = match operation.collection() {
            Some(collection) => {
                let found = self.collections.get(&collection.name, &mut self.work.client);
                self.work.client.wire.settle(found)?
            }
            None => Arc::default(),
        };
        Ok(self.slots.insert(Plan::new(operation, self.ttl, gone)))
    }

    #[inline]
    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        out.clear();
        let plan = self.slots.get(prepared)?;
        check_parameters(plan.operation, plan.width * plan.rows.max(1), parameters.len())?;
        self.work.execute(plan, parameters, out).map_err(|error| self.work.failed(error, out))
    }

    fn pipeline(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut [Reply]) -> Result<()> {
        out.iter_mut().for_each(Reply::clear);
        let plan = self.slots.get(prepared)?;
        let each = plan.width * plan.rows.max(1);
        check_parameters("a pipeline", each * out.len(), parameters.len())?;
        self.work.pipeline(plan, parameters, each, out)
    }

    fn connect_times(&self) -> Option<ConnectTimes> {
        self.work.client.times
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        self.slots.remove(&prepared).map(drop)
    }

    /// Sends `QUIT`. It is deprecated and not needed to close, but shows whether the server sent surplus answers.
    fn close_checked(mut self: Box<Self>) -> Result<()> {
        self.work.client.quit_checked()
    }

    fn cache(&mut self) -> Result<&mut dyn Cache> {
        Ok(self)
    }

    fn raw_messages(&mut self) -> Result<&mut dyn RawMessages> {
        Ok(&mut self.work.client.wire)
    }

    without!(bulk, planner, transactions);
}

impl<S: Peer + Send> Cache for RedisSession<S> {
    fn counters(&mut self, _collection: &Collection) -> Result<CacheCounters> {
        let node = self.work.client.ask_text(&["INFO"])?;
        let info = lines(&node);
        let number = |name: &str| info.number(name).unwrap_or_default();
        let items = self.work.client.ask_text(&["DBSIZE"])?;
        Ok(CacheCounters {
            hits: number("keyspace_hits"),
            misses: number("keyspace_misses"),
            evictions: number("evicted_keys"),
            items: items.text().parse().unwrap_or_default(),
        })
    }
}

impl<S: Peer> Work<S> {
    #[inline]
    fn execute(&mut self, plan: &Plan, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        Self::check(&plan.gone)?;
        self.keys.fill(plan, parameters)?;
        self.send(plan, parameters)?;
        match answer::read(plan, &mut self.client, &mut self.gathered, out) {
            // The server's script cache was flushed.
            Err(error) if plan.scripted && error.server_code() == Some("NOSCRIPT") => {
                self.script_known = false;
                self.send(plan, parameters)?;
                answer::read(plan, &mut self.client, &mut self.gathered, out)
            }
            done => done,
        }
    }

    #[inline]
    fn send(&mut self, plan: &Plan, parameters: &[Value<'_>]) -> Result<()> {
        let Client { wire, request, .. } = &mut self.client;
        request.clear();
        let mut outbox = Outbox::new(wire, request);
        self.keys.write(plan, parameters, self.script_known, &mut outbox)?;
        outbox.flush()?;
        self.script_known |= plan.scripted;
        Ok(())
    }

    fn pipeline(
        &mut self,
        plan: &Plan,
        parameters: &[Value<'_>],
        each: usize,
        out: &mut [Reply],
    ) -> Result<()> {
        Self::check(&plan.gone)?;
        let mut first = None;
        self.sent.clear();
        let Client { wire, request, .. } = &mut self.client;
        request.clear();
        let mut outbox = Outbox::<S>::copying(request);
        let mut known = self.script_known;
        for n in 0..out.len() {
            let parameters = &parameters[n * each..(n + 1) * each];
            // A refusal before sending affects only this request, like a refusal by the server.
            let refused = self.keys.fill(plan, parameters).err();
            self.sent.push(refused.is_none());
            if let Some(error) = refused {
                first = first.take().or(Some(error));
            } else {
                self.keys.write(plan, parameters, known, &mut outbox)?;
                known |= plan.scripted;
            }
        }
        wire.send_pipeline(request)?;
        self.script_known = known;
        for n in 0..out.len() {
            if !self.sent[n] {
                continue;
            }
            let reply = &mut out[n];
            self.client.wire.next_answer();
            if let Err(error) = answer::read(plan, &mut self.client, &mut self.gathered, reply) {
                self.script_known &= error.server_code() != Some("NOSCRIPT");
                let error = self.failed(error, reply);
                if self.client.wire.has_failed() {
                    out[n..].iter_mut().for_each(Reply::clear);
                    return Err(error);
                }
                first = first.or(Some(error));
            }
        }
        first.map_or(Ok(()), Err)
    }

    #[inline]
    fn check(gone: &AtomicBool) -> Result<()> {
        if gone.load(Ordering::Relaxed) {
            let what = "the collection was removed after the operation was prepared";
            return Err(Error::new(ErrorKind::Server, what).code("NO_COLLECTION"));
        }
        Ok(())
    }

    #[cold]
    fn failed(&mut self, error: Error, out: &mut Reply) -> Error {
        out.clear();
        self.client.wire.note(&error);
        error
    }
}

#[cfg(test)]
mod tests;
