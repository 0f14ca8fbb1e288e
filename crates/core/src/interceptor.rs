//! A driver around another: everything passes through, but for what a [`Interceptor`] does otherwise.
//!
//! Causes and differences are planted so (`kurabe truth`), and servers that lie, stall or forget in tests. There is one
//! such driver, so that a method added to [`Driver`] or [`Session`] is passed on everywhere as soon as it is here.

use crate::collection::Collection;
use crate::driver::{
    CacheCounters, Capabilities, ConnectOptions, ConnectTimes, Driver, Namespace, Prepared, Session, Support,
};
use crate::durability::DurabilityClass;
use crate::error::Result;
use crate::facts::ServerFacts;
use crate::observation::Endpoint;
use crate::operation::Operation;
use crate::value::{Reply, Value};
use crate::stats_probe::StatsProbe;
use std::ops::DerefMut;

/// What is done otherwise on one session. Each method passes on to `inner` unless it is written anew.
pub trait Interceptor: Send {
    /// What is done before each request, whatever it is.
    ///
    /// # Errors
    /// Any: the request is not made then.
    fn before_request(&mut self) -> Result<()> {
        Ok(())
    }

    /// As [`Session::prepare`].
    ///
    /// # Errors
    /// As there.
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        inner.prepare(operation)
    }

    /// As [`Session::prepare_literal`].
    ///
    /// # Errors
    /// As there.
    fn prepare_literal(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        inner.prepare_literal(operation)
    }

    /// As [`Session::execute`].
    ///
    /// # Errors
    /// As there.
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
    ///
    /// # Errors
    /// As there.
    fn pipeline(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut [Reply],
    ) -> Result<()> {
        inner.pipeline(prepared, parameters, out)
    }

    /// As [`Session::release`].
    ///
    /// # Errors
    /// As there.
    fn release(&mut self, inner: &mut dyn Session, prepared: Prepared) -> Result<()> {
        inner.release(prepared)
    }

    /// What is done before the session is closed.
    ///
    /// # Errors
    /// Any: the session is not closed in order then.
    fn closing(&mut self, inner: &mut dyn Session) -> Result<()> {
        let _ = inner;
        Ok(())
    }
}

/// A driver whose sessions have a hook each.
pub struct DriverLayer<F> {
    inner: Box<dyn Driver>,
    interceptor: F,
}

impl<F, H> DriverLayer<F>
where
    F: Fn() -> H + Send + Sync,
    H: Interceptor + 'static,
{
    /// Puts a hook, made by `hook`, around each session that `inner` opens.
    pub fn new(inner: Box<dyn Driver>, interceptor: F) -> Self {
        Self { inner, interceptor }
    }
}

impl<F, H> Driver for DriverLayer<F>
where
    F: Fn() -> H + Send + Sync,
    H: Interceptor + 'static,
{
    fn describe(&self) -> Result<ServerFacts> {
        self.inner.describe()
    }

    fn supports(&self, operation: &Operation) -> Support {
        self.inner.supports(operation)
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn endpoint(&self) -> Endpoint {
        self.inner.endpoint()
    }

    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        self.inner.require_durability(class)
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let inner = self.inner.connect(options)?;
        Ok(Box::new(InterceptedSession::new(inner, (self.interceptor)())))
    }

    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        self.inner.stats_probe(options)
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        self.inner.namespace()
    }
}

/// A session that is held: owned, or lent by somebody who closes it.
pub trait SessionHandle: DerefMut<Target = dyn Session> + Send {
    /// Closes it if it is owned.
    ///
    /// # Errors
    /// As [`Session::close`].
    fn close(self) -> Result<()>;

    /// Closes it if it is owned, and checks what came.
    ///
    /// # Errors
    /// As [`Session::close_checked`].
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

/// A session with a hook around it.
pub struct InterceptedSession<S, H> {
    inner: S,
    interceptor: H,
}

impl<S: SessionHandle, H: Interceptor> InterceptedSession<S, H> {
    /// Puts a hook around a session.
    pub fn new(inner: S, interceptor: H) -> Self {
        Self { inner, interceptor }
    }
}

impl<S: SessionHandle, H: Interceptor> Session for InterceptedSession<S, H> {
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

    fn settle(&mut self) -> Result<()> {
        self.inner.settle()
    }

    fn connect_times(&self) -> Option<ConnectTimes> {
        self.inner.connect_times()
    }

    fn cache_counters(&mut self, collection: &Collection) -> Result<CacheCounters> {
        self.inner.cache_counters(collection)
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
