//! TLS for the `postgres` crate, which has none built in, and limits for what it reads.

use crate::wire::{tls, too_much};
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use rustls::ClientConfig;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;

/// Limits of a stream: too many bytes of one reply end it, and another thread can end it.
pub(crate) struct StreamLimits {
    received: AtomicU64,
    pub(crate) most: u64,
    ended: AtomicBool,
    /// The task that waits for data.
    reader: Mutex<Option<Waker>>,
}

impl StreamLimits {
    pub(crate) fn new(most: u64) -> Self {
        let (received, ended) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { received, most, ended, reader: Mutex::default() }
    }

    /// Resets the byte count at the start of a request.
    pub(crate) fn begin(&self) {
        self.received.store(0, Ordering::Relaxed);
    }

    /// Ends the stream: a pending read returns an error.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Checks, before a read or write, whether the stream was ended.
    fn check(&self, context: &Context<'_>) -> io::Result<()> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if !reader.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            *reader = Some(context.waker().clone());
        }
        drop(reader);
        if self.ended.load(Ordering::SeqCst) { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    fn received(&self, bytes: usize) -> io::Result<()> {
        let before = self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        let over = before + bytes as u64 > self.most;
        if over { Err(io::Error::other(too_much(self.most))) } else { Ok(()) }
    }
}

/// Makes streams with limits, and with TLS if it is configured.
#[derive(Clone)]
pub(crate) struct MakeStream {
    tls: Option<TlsConnector>,
    limits: Arc<StreamLimits>,
}

impl MakeStream {
    pub(crate) fn new(config: Option<&Arc<ClientConfig>>, limits: Arc<StreamLimits>) -> Self {
        if config.is_some() {
            tls::install_provider();
        }
        Self { tls: config.map(|config| TlsConnector::from(Arc::clone(config))), limits }
    }
}

impl<S: Transport + 'static> MakeTlsConnect<S> for MakeStream {
    type Stream = Limited;
    type TlsConnect = ToHost;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<ToHost, InvalidDnsNameError> {
        let host = |tls| ServerName::try_from(domain.to_owned()).map(|host| (tls, host));
        Ok(ToHost { tls: self.tls.clone().map(host).transpose()?, limits: Arc::clone(&self.limits) })
    }
}

/// Makes the streams to one host.
pub(crate) struct ToHost {
    tls: Option<(TlsConnector, ServerName<'static>)>,
    limits: Arc<StreamLimits>,
}

impl<S: Transport + 'static> TlsConnect<S> for ToHost {
    type Stream = Limited;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Limited>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let stream: Box<dyn Transport> = match self.tls {
                Some((tls, host)) => Box::new(tls.connect(host, stream).await?),
                None => Box::new(stream),
            };
            Ok(Limited { stream, limits: self.limits })
        })
    }
}

/// A connection, encrypted or not.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Transport for S {}

pub(crate) struct Limited {
    stream: Box<dyn Transport>,
    limits: Arc<StreamLimits>,
}

impl TlsStream for Limited {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Limited {
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

impl AsyncWrite for Limited {
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
