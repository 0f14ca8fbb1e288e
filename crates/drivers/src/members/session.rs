//! A connection to a target's own server, and one to each member, opened when the first operation on the member is
//! prepared.
//!
//! A transaction is one of a single server: of that on which an operation was prepared last. Rows are therefore loaded
//! in transactions wherever they are.

use super::{Member, Members, Place};
use crate::prelude::*;
use crate::slots::Slots;
use std::sync::Arc;

pub(crate) struct PairSession {
    members: Members,
    place: Place,
    options: ConnectOptions,
    /// That of the target's own server, then one for each member.
    sessions: Vec<Option<Box<dyn Session>>>,
    /// The index of the session that prepared an operation, and its handle there.
    slots: Slots<(usize, Prepared)>,
    /// The index of the session that prepared the last operation on a collection.
    last: usize,
}

impl PairSession {
    pub(crate) fn new(
        store: Box<dyn Session>,
        members: Members,
        place: Place,
        options: ConnectOptions,
    ) -> Self {
        let sessions = [Some(store)].into_iter().chain(members.iter().map(|_| None)).collect();
        Self { members, place, options, sessions, slots: Slots::default(), last: 0 }
    }

    /// The session of an operation, and its index.
    fn of_operation(&mut self, operation: &Operation) -> Result<(usize, &mut dyn Session)> {
        match operation {
            Operation::Begin | Operation::Commit | Operation::Rollback => {
                let last = self.last;
                Ok((last, open(&mut self.sessions, last)?))
            }
            _ => {
                let collection = operation.collection().map(|collection| &**collection);
                self.last = self.of(collection)?.0;
                self.of(collection)
            }
        }
    }

    /// The session of a collection, and its index.
    fn of(&mut self, collection: Option<&Collection>) -> Result<(usize, &mut dyn Session)> {
        let at = collection.and_then(|collection| (self.place)(&self.members, collection)).transpose()?;
        let Some(at) = at else { return Ok((0, open(&mut self.sessions, 0)?)) };
        if self.sessions[1 + at].is_none() {
            let member = &self.members[at];
            let session = member.driver.connect(&self.options);
            self.sessions[1 + at] = Some(session.map_err(|error| error.context(member.role))?);
        }
        Ok((1 + at, open(&mut self.sessions, 1 + at)?))
    }

    /// Closes each, even if an earlier one failed.
    fn close_all(self, close: impl Fn(Box<dyn Session>) -> Result<()>) -> Result<()> {
        let Self { members, sessions, .. } = self;
        let closed = sessions
            .into_iter()
            .enumerate()
            .filter_map(|(number, session)| session.map(|session| said(&members, number, close(session))));
        closed.fold(Ok(()), Result::and)
    }
}

/// Says which member an error is of; the target's own errors need no word.
fn said<T>(members: &[Member], number: usize, done: Result<T>) -> Result<T> {
    let member = number.checked_sub(1).and_then(|at| members.get(at));
    done.map_err(|error| match member {
        Some(member) => error.context(member.role),
        None => error,
    })
}

fn open(sessions: &mut [Option<Box<dyn Session>>], number: usize) -> Result<&mut dyn Session> {
    match sessions.get_mut(number) {
        Some(Some(session)) => Ok(&mut **session),
        _ => Err(Error::new(ErrorKind::Internal, "the operation was not prepared on this connection")),
    }
}

impl Session for PairSession {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        let (number, session) = self.of_operation(operation)?;
        let prepared = session.prepare(operation)?;
        Ok(self.slots.insert((number, prepared)))
    }

    fn prepare_literal(&mut self, operation: &Operation) -> Result<Prepared> {
        let (number, session) = self.of_operation(operation)?;
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

    fn connect_times(&self) -> Option<ConnectTimes> {
        self.sessions.first()?.as_ref()?.connect_times()
    }

    fn flush_stats(&mut self) -> Result<()> {
        let Self { members, sessions, .. } = self;
        let mut all = sessions.iter_mut().enumerate();
        all.try_for_each(|(number, session)| {
            session.as_mut().map_or(Ok(()), |session| said(members, number, session.flush_stats()))
        })
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        let (number, prepared) = self.slots.remove(&prepared)?;
        said(&self.members, number, open(&mut self.sessions, number)?.release(prepared))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.close_all(Session::close)
    }

    fn close_checked(self: Box<Self>) -> Result<()> {
        self.close_all(Session::close_checked)
    }

    fn bulk(&mut self) -> Result<&mut dyn Bulk> {
        Ok(self)
    }

    fn planner(&mut self) -> Result<&mut dyn Planner> {
        Ok(self)
    }

    fn cache(&mut self) -> Result<&mut dyn Cache> {
        Ok(self)
    }

    /// Those of the store.
    fn raw_messages(&mut self) -> Result<&mut dyn RawMessages> {
        open(&mut self.sessions, 0)?.raw_messages()
    }
}

impl Bulk for PairSession {
    fn execute_in_pages(
        &mut self,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        pages: &mut Pages<'_>,
    ) -> Result<()> {
        let (number, prepared) = self.slots.get(prepared)?;
        open(&mut self.sessions, *number)?.bulk()?.execute_in_pages(prepared, parameters, pages)
    }

    /// By the server whose statement was prepared last, as a transaction is.
    fn load_text(&mut self, statement: &str, rows: &[u8]) -> Result<u64> {
        open(&mut self.sessions, self.last)?.bulk()?.load_text(statement, rows)
    }

    fn read_rows(
        &mut self,
        collection: &Arc<Collection>,
        fields: &[usize],
        fetch: Fetch,
        row: &mut RowSink<'_>,
    ) -> Result<Moved> {
        self.of(Some(collection))?.1.read_rows(collection, fields, fetch, row)
    }

    fn write_rows(&mut self, collection: &Arc<Collection>, rows: &mut dyn RowSource) -> Result<Moved> {
        self.of(Some(collection))?.1.write_rows(collection, rows)
    }
}

impl Planner for PairSession {
    fn estimate(&mut self, operation: &Operation, parameters: &[Value<'_>]) -> Result<RowEstimate> {
        let (_, session) = self.of(operation.collection().map(|collection| &**collection))?;
        session.planner()?.estimate(operation, parameters)
    }
}

impl Cache for PairSession {
    fn counters(&mut self, collection: &Collection) -> Result<CacheCounters> {
        self.of(Some(collection))?.1.cache()?.counters(collection)
    }
}
