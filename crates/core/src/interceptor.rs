//! A driver wrapped around another driver. Every call passes through, except where an [`Interceptor`] changes it.
//!
//! The self-test (`kurabe selftest`) plants known causes and differences this way, and tests build servers that lie,
//! stall or lose data. This is the only such wrapper, so that a new method of [`Driver`] or [`Session`] is forwarded
//! everywhere.

use crate::collection::Collection;
use crate::compression::Compression;
use crate::driver::{
    Bulk, Cache, Capabilities, ConnectOptions, ConnectTimes, Driver, Links, Namespace, Planner, Prepared,
    RawMessages, Receive, RowEstimate, Session, Support,
};
use crate::dump::DumpTool;
use crate::durability::DurabilityClass;
use crate::error::Result;
use crate::facts::ServerFacts;
use crate::memory::LimitedServer;
use crate::observation::Endpoint;
use crate::operation::Operation;
use crate::remote::RemoteAddress;
use crate::stats_probe::StatsProbe;
use crate::transfer::{Fetch, Moved, Pages, RowSink, RowSource, Transfer};
use crate::value::{Reply, Value};
use std::ops::DerefMut;
use std::sync::Arc;

/// Changes what one session does. Each method forwards to `inner` unless it is overridden.
pub trait Interceptor: Send {
    /// Runs before each request.
    ///
    /// # Errors
    /// Any error: the request is not sent.
    fn before_request(&mut self) -> Result<()> {
        Ok(())
    }

    /// As [`Session::prepare`].
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        inner.prepare(operation)
    }

    /// As [`Session::prepare_literal`].
    fn prepare_literal(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        inner.prepare_literal(operation)
    }

    /// As [`Session::execute`].
    fn execute(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        inner.execute(prepared, parameters, out)
    }

    /// As [`Session::pipeline`].
    fn pipeline(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut [Reply],
    ) -> Result<()> {
        inner.pipeline(prepared, parameters, out)
    }

    /// Passes on a row that [`Bulk::read_rows`] has read.
    ///
    /// # Errors
    /// The error of `row`, or any other: the transfer ends.
    fn read_row(&mut self, fields: &[Value<'_>], row: &mut RowSink<'_>) -> Result<()> {
        row(fields)
    }

    /// Passes on a row to [`Bulk::write_rows`].
    ///
    /// # Errors
    /// The error of `put`, or any other: the transfer ends.
    fn write_row(&mut self, fields: &[Value<'_>], put: &mut RowSink<'_>) -> Result<()> {
        put(fields)
    }

    /// As [`Session::release`].
    fn release(&mut self, inner: &mut dyn Session, prepared: Prepared) -> Result<()> {
        inner.release(prepared)
    }

    /// Runs before the session is closed.
    ///
    /// # Errors
    /// Any error: the session is not closed properly.
    fn closing(&mut self, inner: &mut dyn Session) -> Result<()> {
        let _ = inner;
        Ok(())
    }
}

/// Methods that ask `inner` the same.
macro_rules! forward {
    ($($name:ident($($argument:ident: $kind:ty)?) -> $result:ty;)+) => { $(
        fn $name(&self $(, $argument: $kind)?) -> $result {
            self.inner.$name($($argument)?)
        }
    )+ };
}

/// A driver that intercepts the calls of its sessions.
pub struct DriverLayer<F> {
    inner: Box<dyn Driver>,
    interceptor: F,
    shares_threads: bool,
}

impl<F> DriverLayer<F> {
    /// Wraps `inner`; `interceptor` makes an interceptor for each session that it opens.
    pub fn new(inner: Box<dyn Driver>, interceptor: F) -> Self {
        Self { inner, interceptor, shares_threads: false }
    }

    /// Allows clients to share threads, as [`Capabilities::shared_threads`] of the inner driver says. The interceptor
    /// must wait only in calls of the inner session: while it waits elsewhere, no client of its thread works.
    #[must_use]
    pub fn sharing_threads(self) -> Self {
        Self { shares_threads: true, ..self }
    }
}

impl<F, H> Driver for DriverLayer<F>
where
    F: Fn() -> H + Send + Sync,
    H: Interceptor + 'static,
{
    forward! {
        describe() -> Result<ServerFacts>;
        supports(operation: &Operation) -> Support;
        supports_transfer(transfer: Transfer) -> Support;
        supports_compression(compression: Compression) -> Support;
        endpoint() -> Endpoint;
        stats_probe(options: &ConnectOptions) -> Result<Box<dyn StatsProbe>>;
        limited_servers(options: &ConnectOptions) -> Result<Vec<LimitedServer>>;
        links() -> Result<&dyn Links>;
        namespace() -> Result<Box<dyn Namespace>>;
        dump_tool() -> Result<Box<dyn DumpTool>>;
    }

    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.capabilities();
        if self.shares_threads {
            return inner;
        }
        // An interceptor may block the thread.
        Capabilities { shared_threads: Support::no("its requests are intercepted"), ..inner }
    }

    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        self.inner.require_durability(class)
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let inner = self.inner.connect(options)?;
        Ok(Box::new(InterceptedSession::new(inner, (self.interceptor)())))
    }

    fn add_remote(&mut self, remote: RemoteAddress) {
        self.inner.add_remote(remote);
    }
}

/// A session that is owned, or borrowed from a caller who closes it.
pub trait SessionHandle: DerefMut<Target = dyn Session> + Send {
    /// Closes the session if it is owned.
    fn close(self) -> Result<()>;

    /// Closes the session if it is owned, and checks for unexpected data.
    fn close_checked(self) -> Result<()>;
}

impl SessionHandle for Box<dyn Session> {
    fn close(self) -> Result<()> {
        Session::close(self)
    }

    fn close_checked(self) -> Result<()> {
        Session::close_checked(self)
    }
}

impl SessionHandle for &mut (dyn Session + 'static) {
    fn close(self) -> Result<()> {
        Ok(())
    }

    fn close_checked(self) -> Result<()> {
        Ok(())
    }
}

/// Rows of a transfer that count as one request, so that it can be stopped.
const EACH: u64 = 1_000;

/// The rows of a bulk write through an interceptor.
struct InterceptedRows<'a, H> {
    rows: &'a mut dyn RowSource,
    interceptor: &'a mut H,
    sent: u64,
}

impl<H: Interceptor> RowSource for InterceptedRows<'_, H> {
    fn next(&mut self, put: &mut RowSink<'_>) -> Result<bool> {
        self.sent += 1;
        if self.sent.is_multiple_of(EACH) {
            self.interceptor.before_request()?;
        }
        let Self { rows, interceptor, .. } = self;
        rows.next(&mut |fields| interceptor.write_row(fields, put))
    }
}

/// A session whose calls are intercepted.
pub struct InterceptedSession<S, H> {
    inner: S,
    interceptor: H,
}

impl<S, H> InterceptedSession<S, H> {
    /// Wraps a session.
    pub fn new(inner: S, interceptor: H) -> Self {
        Self { inner, interceptor }
    }
}

impl<S: SessionHandle, H: Interceptor> Session for InterceptedSession<S, H> {
    forward! {
        in_transaction() -> Option<bool>;
        connect_times() -> Option<ConnectTimes>;
    }

    fn prepare(&mut self, operation: &Operation) -> Result<Prepared> {
        self.interceptor.prepare(&mut *self.inner, operation)
    }

    fn prepare_literal(&mut self, operation: &Operation) -> Result<Prepared> {
        self.interceptor.prepare_literal(&mut *self.inner, operation)
    }

    fn execute(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        self.interceptor.before_request()?;
        self.interceptor.execute(&mut *self.inner, prepared, parameters, out)
    }

    fn pipeline(&mut self, prepared: &Prepared, parameters: &[Value<'_>], out: &mut [Reply]) -> Result<()> {
        self.interceptor.before_request()?;
        self.interceptor.pipeline(&mut *self.inner, prepared, parameters, out)
    }

    fn flush_stats(&mut self) -> Result<()> {
        self.inner.flush_stats()
    }

    fn bulk(&mut self) -> Result<&mut dyn Bulk> {
        self.inner.bulk()?;
        Ok(self)
    }

    fn planner(&mut self) -> Result<&mut dyn Planner> {
        self.inner.planner()?;
        Ok(self)
    }

    fn cache(&mut self) -> Result<&mut dyn Cache> {
        self.inner.cache()
    }

    fn raw_messages(&mut self) -> Result<&mut dyn RawMessages> {
        self.inner.raw_messages()?;
        Ok(self)
    }

    fn release(&mut self, prepared: Prepared) -> Result<()> {
        self.interceptor.release(&mut *self.inner, prepared)
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.interceptor.closing(&mut *self.inner)?;
        self.inner.close()
    }

    fn close_checked(mut self: Box<Self>) -> Result<()> {
        self.interceptor.closing(&mut *self.inner)?;
        self.inner.close_checked()
    }
}

impl<S: SessionHandle, H: Interceptor> RawMessages for InterceptedSession<S, H> {
    fn exchange_raw(&mut self, messages: &[u8], receive: &mut Receive<'_>) -> Result<()> {
        self.interceptor.before_request()?;
        self.inner.raw_messages()?.exchange_raw(messages, receive)
    }

    fn flags(&mut self) -> u32 {
        self.inner.raw_messages().map_or(0, RawMessages::flags)
    }

    fn database(&mut self) -> Option<&str> {
        self.inner.raw_messages().ok().and_then(RawMessages::database)
    }
}

impl<S: SessionHandle, H: Interceptor> Planner for InterceptedSession<S, H> {
    fn estimate(&mut self, operation: &Operation, parameters: &[Value<'_>]) -> Result<RowEstimate> {
        self.interceptor.before_request()?;
        self.inner.planner()?.estimate(operation, parameters)
    }
}

impl<S: SessionHandle, H: Interceptor> Bulk for InterceptedSession<S, H> {
    fn read_rows(
        &mut self,
        collection: &Arc<Collection>,
        fields: &[usize],
        fetch: Fetch,
        row: &mut RowSink<'_>,
    ) -> Result<Moved> {
        let interceptor = &mut self.interceptor;
        interceptor.before_request()?;
        let mut received = 0_u64;
        self.inner.bulk()?.read_rows(collection, fields, fetch, &mut |fields| {
            received += 1;
            if received.is_multiple_of(EACH) {
                interceptor.before_request()?;
            }
            interceptor.read_row(fields, row)
        })
    }

    fn write_rows(&mut self, collection: &Arc<Collection>, rows: &mut dyn RowSource) -> Result<Moved> {
        self.interceptor.before_request()?;
        let mut rows = InterceptedRows { rows, interceptor: &mut self.interceptor, sent: 0 };
        self.inner.bulk()?.write_rows(collection, &mut rows)
    }

    fn execute_in_pages(
        &mut self,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        pages: &mut Pages<'_>,
    ) -> Result<()> {
        self.interceptor.before_request()?;
        self.inner.bulk()?.execute_in_pages(prepared, parameters, pages)
    }

    fn load_text(&mut self, statement: &str, rows: &[u8]) -> Result<u64> {
        self.interceptor.before_request()?;
        self.inner.bulk()?.load_text(statement, rows)
    }
}
