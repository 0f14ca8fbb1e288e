//! One client's connection: `hyper` on a TCP stream with time limits.
//!
//! `hyper` closes a slow client without a response and counts idle time as part of a head. The limits are therefore
//! applied here: a head that has begun ends with 408, an idle connection without a response.

use crate::queue::Job;
use crate::response::{self, Response};
use crate::router::Wanted;
use crate::slot::Shared;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

/// The longest head of a request, in bytes: the least that `hyper` supports.
const HEAD: usize = 8 * 1024;
/// The maximum number of header fields.
const FIELDS: usize = 64;
/// How long a client may receive nothing of a response that is being sent.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// How long a connection is read after its last response, so that unread requests do not reset it.
const LINGER: Duration = Duration::from_secs(1);

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No byte of a request has arrived.
    Idle,
    /// A head has begun.
    Head,
    /// A request is being processed.
    Working,
    /// A response is being sent.
    Answering,
}

/// A connection's phase and when it last changed or made progress. Its stream and its service record it.
#[derive(Debug)]
struct Progress(Mutex<(Phase, Instant)>);

impl Progress {
    fn lock(&self) -> MutexGuard<'_, (Phase, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn phase(&self) -> Phase {
        self.lock().0
    }

    /// Whether no request has been received that has no response yet.
    fn is_waiting(&self) -> bool {
        matches!(self.phase(), Phase::Idle | Phase::Head)
    }

    fn enter(&self, phase: Phase) {
        *self.lock() = (phase, Instant::now());
    }

    /// Enters `to` if the phase is `from`.
    fn advance(&self, from: Phase, to: Phase) {
        let mut progress = self.lock();
        if progress.0 == from {
            *progress = (to, Instant::now());
        }
    }

    /// When the connection ends unless it makes progress; `None` while a request is processed.
    fn deadline(&self, shared: &Shared) -> Option<Instant> {
        let options = &shared.application.options;
        let (phase, since) = *self.lock();
        let limit = match phase {
            Phase::Idle => options.idle_time,
            Phase::Head => options.head_time,
            Phase::Working => return None,
            Phase::Answering => WRITE_TIME,
        };
        since.checked_add(limit)
    }
}

/// A TCP stream that records its connection's progress.
struct Stream {
    tcp: TcpStream,
    progress: Arc<Progress>,
}

impl Stream {
    fn written(&self, n: usize) {
        if n > 0 {
            self.progress.advance(Phase::Answering, Phase::Answering);
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.tcp).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.progress.advance(Phase::Idle, Phase::Head);
        }
        Poll::Ready(Ok(()))
    }
}

/// What is written without a request is `hyper`'s response to a malformed one. It has no body and is discarded:
/// [`serve`] sends one that names the reason.
impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.progress.is_waiting() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let n = ready!(Pin::new(&mut self.tcp).poll_write(context, bytes))?;
        self.written(n);
        Poll::Ready(Ok(n))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.progress.is_waiting() {
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        let n = ready!(Pin::new(&mut self.tcp).poll_write_vectored(context, slices))?;
        self.written(n);
        Poll::Ready(Ok(n))
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    /// Called when everything is written.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.progress.advance(Phase::Answering, Phase::Idle);
        Poll::Ready(Ok(()))
    }

    /// Does nothing: [`serve`] closes the stream.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// How a connection ended.
enum End {
    Closed(hyper::Result<()>),
    TimedOut,
    Stopped,
}

/// The protocol's options.
pub(crate) fn protocol() -> http1::Builder {
    let mut http = http1::Builder::new();
    // ab and others compare the names of fields with their case.
    http.title_case_headers(true).half_close(true).max_buf_size(HEAD).max_headers(FIELDS);
    http.header_read_timeout(None::<Duration>);
    http
}

/// Serves a client until it leaves, exceeds a time limit or the application stops.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    http: &http1::Builder,
    tcp: TcpStream,
    mut stop: watch::Receiver<bool>,
) {
    let progress = Arc::new(Progress(Mutex::new((Phase::Idle, Instant::now()))));
    let service = service_fn(|request: Request<Incoming>| {
        let (shared, progress) = (Arc::clone(&shared), Arc::clone(&progress));
        async move {
            progress.enter(Phase::Working);
            let response = respond(&shared, shared.router.find(&request)).await;
            progress.enter(Phase::Answering);
            Ok::<_, Infallible>(response)
        }
    });
    let stream = TokioIo::new(Stream { tcp, progress: Arc::clone(&progress) });
    let mut connection = http.serve_connection(stream, service);
    let mut timer = pin!(sleep_until(Instant::now() + shared.application.options.idle_time.min(WRITE_TIME)));
    let mut stopping = false;
    let end = loop {
        let progressed = poll_fn(|context| {
            if let Poll::Ready(closed) = Pin::new(&mut connection).poll(context) {
                return Poll::Ready(End::Closed(closed));
            }
            // The timer is moved forward when it has fired, and back when a limit is shorter than the last one.
            let deadline = progress.deadline(&shared);
            if let Some(deadline) = deadline
                && deadline < timer.deadline()
            {
                timer.as_mut().reset(deadline);
            }
            while timer.as_mut().poll(context).is_ready() {
                let now = Instant::now();
                match deadline {
                    Some(deadline) if deadline <= now => return Poll::Ready(End::TimedOut),
                    _ => timer.as_mut().reset(deadline.unwrap_or(now + WRITE_TIME)),
                }
            }
            Poll::Pending
        });
        tokio::select! {
            biased;
            end = progressed => break end,
            _ = stop.changed(), if !stopping => {
                stopping = true;
                if progress.is_waiting() {
                    break End::Stopped;
                }
                Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    let phase = progress.phase();
    let parts = connection.into_parts();
    let mut tcp = parts.io.into_inner().tcp;
    let last = match end {
        End::Closed(Ok(())) => {
            // Unread bytes would reset the connection, and the client could lose its response.
            if !parts.read_buf.is_empty() || matches!(tcp.try_read(&mut [0]), Ok(1..)) {
                linger(&mut tcp).await;
            }
            return;
        }
        End::Closed(Err(error)) if error.is_parse() && progress.is_waiting() => malformed(&error),
        End::TimedOut if phase == Phase::Head => {
            let seconds = shared.application.options.head_time.as_secs_f64();
            let text = format!("the head of the request was not complete within {seconds} s");
            response::raw(StatusCode::REQUEST_TIMEOUT, &text)
        }
        End::Closed(Err(_)) | End::TimedOut | End::Stopped => return,
    };
    shared.metrics.malformed.one();
    if tcp.write_all(&last).await.is_ok() {
        linger(&mut tcp).await;
    }
}

/// The response to a request.
async fn respond(shared: &Shared, wanted: Wanted) -> Response {
    let response = match wanted {
        Wanted::Malformed(response) => {
            shared.metrics.malformed.one();
            return response;
        }
        Wanted::Known(response) => response,
        Wanted::Page { page, key } => {
            let (reply, response) = oneshot::channel();
            let job = Job { page, key, reply, queued: Instant::now().into_std() };
            if shared.queue.offer(job) {
                response.await.unwrap_or_else(|_| {
                    response::text(StatusCode::SERVICE_UNAVAILABLE, "the application is stopping")
                })
            } else {
                shared.metrics.refused.one();
                let waiting = shared.application.options.queue;
                response::text(
                    StatusCode::SERVICE_UNAVAILABLE,
                    &format!("{waiting} requests are waiting already"),
                )
            }
        }
    };
    shared.metrics.answered.one();
    response
}

fn malformed(error: &hyper::Error) -> Vec<u8> {
    if error.is_parse_too_large() {
        let text = format!("the head of a request has at most {HEAD} bytes and {FIELDS} fields");
        return response::raw(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &text);
    }
    response::raw(StatusCode::BAD_REQUEST, &format!("not an HTTP/1.1 request: {error}"))
}

/// Ends our half of a connection, and reads until the client ends its half.
async fn linger(tcp: &mut TcpStream) {
    let _ = tcp.shutdown().await;
    let mut discarded = [0; 2048];
    let _ = timeout(LINGER, async { while matches!(tcp.read(&mut discarded).await, Ok(1..)) {} }).await;
}
