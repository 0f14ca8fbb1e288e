//! TLS for the `postgres` crate, which has none built in, and limits for what it reads.

use crate::wire::{tls, too_much};
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use rustls::ClientConfig;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;

/// Limits of a stream: too many bytes of one reply end it, and another thread can end it.
#[derive(Clone)]
pub(crate) struct StreamLimits(Arc<Limits>);

struct Limits {
    received: AtomicU64,
    most: u64,
    ended: AtomicBool,
    /// The task that waits for data.
    reader: Mutex<Option<Waker>>,
}

impl StreamLimits {
    pub(crate) fn new(most: u64) -> Self {
        let (received, ended) = (AtomicU64::new(0), AtomicBool::new(false));
        Self(Arc::new(Limits { received, most, ended, reader: Mutex::default() }))
    }

    pub(crate) fn most(&self) -> u64 {
        self.0.most
    }

    /// Resets the byte count at the start of a request.
    pub(crate) fn begin(&self) {
        self.0.received.store(0, Ordering::Relaxed);
    }

    /// Ends the stream: a pending read returns an error.
    pub(crate) fn end(&self) {
        self.0.ended.store(true, Ordering::SeqCst);
        let reader = self.0.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Checks, before a read or write, whether the stream was ended.
    fn check(&self, context: &Context<'_>) -> io::Result<()> {
        let mut reader = self.0.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if !reader.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            *reader = Some(context.waker().clone());
        }
        drop(reader);
        if self.0.ended.load(Ordering::SeqCst) { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    /// Counts bytes after a read.
    fn received(&self, bytes: usize) -> io::Result<()> {
        let before = self.0.received.fetch_add(bytes as u64, Ordering::Relaxed);
        let over = before + bytes as u64 > self.0.most;
        if over { Err(io::Error::other(too_much(self.0.most))) } else { Ok(()) }
    }
}

/// Applies the limits to a stream without TLS.
#[derive(Clone)]
pub(crate) struct Plain(pub(crate) StreamLimits);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Plain {
    type Stream = Limited<S>;
    type TlsConnect = Self;
    type Error = Infallible;

    fn make_tls_connect(&mut self, _: &str) -> Result<Self, Infallible> {
        Ok(self.clone())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Plain {
    type Stream = Limited<S>;
    type Error = Infallible;
    type Future = Ready<Result<Limited<S>, Infallible>>;

    fn connect(self, stream: S) -> Self::Future {
        ready(Ok(Limited { stream, limits: self.0 }))
    }
}

/// Creates TLS connections with this configuration.
#[derive(Clone)]
pub(crate) struct Rustls(TlsConnector, StreamLimits);

impl Rustls {
    pub(crate) fn new(config: &Arc<ClientConfig>, limits: StreamLimits) -> Self {
        tls::install_provider();
        Self(TlsConnector::from(Arc::clone(config)), limits)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Rustls {
    type Stream = Limited<tokio_rustls::client::TlsStream<S>>;
    type TlsConnect = ToHost;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<ToHost, InvalidDnsNameError> {
        let host = ServerName::try_from(domain.to_owned())?;
        Ok(ToHost { connector: self.0.clone(), limits: self.1.clone(), host })
    }
}

/// Creates TLS connections to one host.
pub(crate) struct ToHost {
    connector: TlsConnector,
    limits: StreamLimits,
    host: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for ToHost {
    type Stream = Limited<tokio_rustls::client::TlsStream<S>>;
    type Error = io::Error;
    type Future =
        Pin<Box<dyn Future<Output = io::Result<Limited<tokio_rustls::client::TlsStream<S>>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let stream = self.connector.connect(self.host, stream).await?;
            Ok(Limited { stream, limits: self.limits })
        })
    }
}

/// A stream with limits.
pub(crate) struct Limited<S> {
    stream: S,
    limits: StreamLimits,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Limited<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Limited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.limits.check(context)?;
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.limits.received(buffer.filled().len() - before)?;
        polled
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Limited<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.limits.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
