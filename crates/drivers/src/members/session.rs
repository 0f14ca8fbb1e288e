//! A connection to a target's own server, and one to each member, opened when the first operation on the member is
//! prepared.
//!
//! A transaction is one of a single server: of that on which an operation was prepared last. Rows are therefore loaded
//! in transactions wherever they are. An error of an operation on a remote or linked collection says which server it
//! concerns.

use super::member::{Member, Role, place};
use crate::prelude::*;
use crate::slots::Slots;
use kurabe_core::driver::Access;
use kurabe_core::remote::RemoteServer;
use std::sync::Arc;
use std::time::Duration;

/// Time for a remote to answer after an error.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct CompositeSession {
    members: Arc<Vec<Member>>,
    options: ConnectOptions,
    /// That of the target's own server, then one for each member.
    sessions: Vec<Option<Box<dyn Session>>>,
    slots: Slots<Slot>,
    /// The index of the session that prepared the last operation on a collection.
    last: usize,
}

/// A prepared operation.
struct Slot {
    /// The index of the session that prepared it, and its handle there.
    session: usize,
    prepared: Prepared,
    far: Option<Far>,
}

/// The remote of an operation's collection, and whether it is reached by a link.
#[derive(Clone, Copy)]
struct Far {
    server: RemoteServer,
    is_linked: bool,
}

impl CompositeSession {
    pub(super) fn new(own: Box<dyn Session>, members: Arc<Vec<Member>>, options: ConnectOptions) -> Self {
        let sessions = [Some(own)].into_iter().chain(members.iter().map(|_| None)).collect();
        Self { members, options, sessions, slots: Slots::default(), last: 0 }
    }

    fn prepare_by(
        &mut self,
        operation: &Operation,
        prepare: fn(&mut dyn Session, &Operation) -> Result<Prepared>,
    ) -> Result<Prepared> {
        let collection = operation.collection();
        let far = collection.and_then(|of| of.remote.as_ref());
        let far = far.map(|of| Far { server: of.server, is_linked: of.link.is_some() });
        let session = match operation {
            Operation::Begin | Operation::Commit | Operation::Rollback => Ok(self.last),
            _ => self.number_of(collection.map(|of| &**of)).inspect(|number| self.last = *number),
        };
        let prepared = session
            .and_then(|session| Ok((session, prepare(open(&mut self.sessions, session)?, operation)?)));
        let (session, prepared) = prepared.map_err(|error| explained(&self.members, far, error))?;
        Ok(self.slots.insert(Slot { session, prepared, far }))
    }

    /// The index of a collection's session, which is opened if it is not yet.
    fn number_of(&mut self, collection: Option<&Collection>) -> Result<usize> {
        let at = collection.map_or(Ok(None), |collection| place(&self.members, collection))?;
        let Some(at) = at else { return Ok(0) };
        if self.sessions[1 + at].is_none() {
            let Member { role, driver, .. } = &self.members[at];
            // Whoever only reads fills the cache.
            let access = if role.is_remote() { self.options.access } else { Access::ReadWrite };
            let session = driver.connect(&ConnectOptions { access, ..self.options });
            self.sessions[1 + at] = Some(session.map_err(|error| error.context(role.word()))?);
        }
        Ok(1 + at)
    }

    fn of(&mut self, collection: Option<&Collection>) -> Result<&mut dyn Session> {
        let number = self.number_of(collection)?;
        open(&mut self.sessions, number)
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
        Some(member) => error.context(member.role.word()),
        None => error,
    })
}

/// Says which server an error of an operation concerns.
#[cold]
fn explained(members: &[Member], far: Option<Far>, error: Error) -> Error {
    let Some(Far { server, is_linked }) = far else { return error };
    // Only errors of servers and of connections concern one.
    let of_server = matches!(
        error.kind(),
        ErrorKind::Server
            | ErrorKind::ConnectionLost
            | ErrorKind::Timeout
            | ErrorKind::Unreachable
            | ErrorKind::Denied
            | ErrorKind::NotFound
            | ErrorKind::Limit
    );
    if !of_server {
        return error;
    }
    let role = Role::Remote(server);
    let word = role.word();
    if !is_linked {
        return error.context(word);
    }
    let remote = members.iter().find(|member| member.role == role);
    match remote.map(|remote| remote.driver.connect(&ConnectOptions::within(PATIENCE))) {
        Some(Err(why)) => error.context(format!("the link to {word}, which does not answer ({why})")),
        Some(Ok(session)) => {
            let _ = session.close();
            error.context(format!("the link to {word}, which answers"))
        }
        None => error.context(format!("the link to {word}")),
    }
}

fn open(sessions: &mut [Option<Box<dyn Session>>], number: usize) -> Result<&mut dyn Session> {
    match sessions.get_mut(number) {
        Some(Some(session)) => Ok(&mut **session),
        _ => Err(Error::new(ErrorKind::Internal, "the operation was not prepared on this connection")),
    }
}

impl Session for CompositeSession {
    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        self.prepare_by(operation, |session, operation| session.prepare(operation))
    }

    fn prepare_literal(&mut self, operation: &Operation) -> Result<Prepared> {
        self.prepare_by(operation, |session, operation| session.prepare_literal(operation))
    }

    #[inline]
    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        let Slot { session, prepared, far } = self.slots.get(prepared)?;
        let session = open(&mut self.sessions, *session)?;
        session.execute(prepared, parameters, out).map_err(|error| explained(&self.members, *far, error))
    }

    fn pipeline(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut [Reply]) -> Result<()> {
        let Slot { session, prepared, far } = self.slots.get(prepared)?;
        let session = open(&mut self.sessions, *session)?;
        session.pipeline(prepared, parameters, out).map_err(|error| explained(&self.members, *far, error))
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
        let Slot { session, prepared, .. } = self.slots.remove(&prepared)?;
        said(&self.members, session, open(&mut self.sessions, session)?.release(prepared))
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

    /// Those of the target's own server.
    /// Whether one of the servers has an open transaction.
    fn in_transaction(&self) -> Option<bool> {
        let known = self.sessions.iter().flatten().filter_map(|session| session.in_transaction());
        known.max()
    }

    fn raw_messages(&mut self) -> Result<&mut dyn RawMessages> {
        open(&mut self.sessions, 0)?.raw_messages()
    }
}

impl Bulk for CompositeSession {
    fn execute_in_pages(
        &mut self,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        pages: &mut Pages<'_>,
    ) -> Result<()> {
        let Slot { session, prepared, .. } = self.slots.get(prepared)?;
        open(&mut self.sessions, *session)?.bulk()?.execute_in_pages(prepared, parameters, pages)
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
        self.of(Some(collection))?.read_rows(collection, fields, fetch, row)
    }

    fn write_rows(&mut self, collection: &Arc<Collection>, rows: &mut dyn RowSource) -> Result<Moved> {
        self.of(Some(collection))?.write_rows(collection, rows)
    }
}

impl Planner for CompositeSession {
    fn estimate(&mut self, operation: &Operation, parameters: &[Value<'_>]) -> Result<RowEstimate> {
        let session = self.of(operation.collection().map(|collection| &**collection))?;
        session.planner()?.estimate(operation, parameters)
    }
}

impl Cache for CompositeSession {
    fn counters(&mut self, collection: &Collection) -> Result<CacheCounters> {
        self.of(Some(collection))?.cache()?.counters(collection)
    }
}
