//! One connection per session, from the crate's pool.
//!
//! A `Client` of the crate is a pool with tasks that monitor the servers. One `Client` per session would double the
//! connections. So all sessions of a driver share one `Client`, whose pool holds exactly one connection per session:
//!
//! - **Connecting** sends a ping without reading its answer. Until the answer is read, the pool cannot reuse that
//!   connection, so the next session's ping opens a new one. A ping may check out the connection of an idle session. It
//!   is then held while further pings are sent, until one gets a new connection. The ping's answer is read before the
//!   session's first request.
//! - **Closing** sends a ping and drops it: the crate closes a connection whose answer is outstanding.
//!
//! Between requests any session may check out any connection, as an application's threads do. There are always as many
//! connections as sessions, and no two requests share one.
//!
//! The crate runs on a single-threaded tokio runtime. The thread that waits for an answer drives the runtime, so with
//! one client no request wakes another thread.

use super::config::Config;
use super::errors;
use super::ledger::{Id, Ledger, got};
use crate::prelude::*;
use kurabe_core::compression::Compression;
use mongodb::bson::{Document, RawDocumentBuf, rawdoc};
use mongodb::event::EventHandler;
use mongodb::{Client, Database};
use std::collections::HashSet;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// A ping whose answer has not been read yet.
type Ping = Pin<Box<dyn Future<Output = mongodb::error::Result<Document>> + Send>>;

/// The maximum number of connections that a closing session checks, since others use the pool meanwhile.
const CLOSING_PINGS: usize = 64;
/// Time limit for closing a session's connection.
const FAREWELL: Duration = Duration::from_millis(500);

/// State shared by all sessions of a driver.
#[derive(Debug)]
pub(super) struct Shared {
    // Dropped before the runtime, in which their last tasks run.
    pub(super) client: Client,
    pub(super) database: Database,
    pub(super) config: Config,
    ledger: Arc<Ledger>,
    /// Collections known to exist, so that each is checked once.
    seen: Mutex<HashSet<String>>,
    runtime: Runtime,
}

impl Shared {
    pub(super) fn new(config: &Config, compression: Compression) -> Result<Self> {
        crate::wire::tls::install_provider();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Error::new(ErrorKind::Environment, format!("mongodb: no runtime: {e}")))?;
        let ledger = Arc::new(Ledger::default());
        let (connections, servers) = (Arc::clone(&ledger), Arc::clone(&ledger));
        let client = runtime.block_on(async {
            let timeout = ConnectOptions::default().timeout;
            let late = |_| {
                mongodb::error::Error::custom("the servers' names were not resolved within the time allowed")
            };
            let mut options =
                tokio::time::timeout(timeout, config.options(compression)).await.map_err(late)??;
            options.cmap_event_handler =
                Some(EventHandler::callback(move |event| connections.connection_event(event)));
            options.sdam_event_handler =
                Some(EventHandler::callback(move |event| servers.server_event(event)));
            Client::with_options(options)
        });
        let client = client.map_err(|error| errors::failed(&error, config, None))?;
        let database = client.database(&config.database);
        Ok(Self { client, database, config: config.clone(), ledger, seen: Mutex::default(), runtime })
    }

    /// Runs a future of the crate to completion, or until the timeout.
    pub(super) fn wait<T>(
        &self,
        timeout: Duration,
        future: impl Future<Output = mongodb::error::Result<T>>,
    ) -> Result<T> {
        let waited = || self.runtime.block_on(async { tokio::time::timeout(timeout, future).await });
        match catch_unwind(AssertUnwindSafe(waited)) {
            Ok(Ok(result)) => result.map_err(|error| {
                errors::request_failed(&error, &self.config, self.ledger.failure().as_ref())
            }),
            Ok(Err(_)) => Err(errors::silent(&self.config)),
            Err(_) => Err(errors::panicked()),
        }
    }

    /// Runs synchronous code that spawns tasks, such as dropping a `ClientSession`.
    pub(super) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let _guard = self.runtime.enter();
        work()
    }

    /// Sends a ping and returns once it has a connection, with the answer outstanding.
    fn send_ping(&self, timeout: Duration) -> Result<(Ping, Id)> {
        let database = self.database.clone();
        let mut ping: Ping = Box::pin(async move { database.run_raw_command(rawdoc! { "ping": 1 }).await });
        got();
        let mut id = None;
        let one = self.config.names_one_server();
        let sent = poll_fn(|context| {
            let polled = ping.as_mut().poll(context);
            id = got().or(id.take());
            match polled {
                Poll::Ready(Ok(answer)) if id.is_some() => Poll::Ready(Ok(Some(answer))),
                Poll::Ready(Ok(_)) => {
                    Poll::Ready(Err(mongodb::error::Error::custom("no connection was named")))
                }
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Pending if id.is_some() => Poll::Ready(Ok(None)),
                Poll::Pending if one => match self.ledger.refusal() {
                    Some(error) => Poll::Ready(Err(error)),
                    None => Poll::Pending,
                },
                Poll::Pending => Poll::Pending,
            }
        });
        if let Some(answer) = self.wait(timeout, sent)? {
            ping = Box::pin(std::future::ready(Ok(answer)));
        }
        id.map(|id| (ping, id)).ok_or_else(errors::panicked)
    }

    /// Waits for a ping's answer, and rejects the answer to another request. The crate does not match answers to
    /// requests: after a duplicate answer, each request would get the answer to the previous one.
    fn pong(&self, timeout: Duration, ping: Ping) -> Result<()> {
        let answer = self.wait(timeout, ping)?;
        // A ping's answer has only its status and the cluster time.
        let own = |field: &String| field == "ok" || field == "operationTime" || field.starts_with('$');
        if !answer.keys().all(own) {
            let message = "the server sent more answers than there were requests";
            return Err(Error::new(ErrorKind::Protocol, message));
        }
        Ok(())
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, HashSet<String>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Link {
    /// The ping that opened the connection.
    ping: Option<Ping>,
    timeout: Duration,
    /// Whether the connection is closed already.
    lost: bool,
    pub(super) shared: Arc<Shared>,
}

impl Link {
    pub(super) fn open(shared: Arc<Shared>, timeout: Duration) -> Result<Self> {
        let until = Instant::now() + timeout;
        let left = || until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        shared.ledger.session_begins();
        let mut link = Self { ping: None, timeout, lost: true, shared };
        let shared = &link.shared;
        let mut others = Vec::new();
        let own = loop {
            let (ping, id) = shared.send_ping(left())?;
            if shared.ledger.claim(id) {
                break ping;
            }
            others.push(ping);
        };
        for other in others {
            // The session that used this connection may have opened another one meanwhile; then this one is surplus.
            if shared.ledger.has_spare() {
                shared.within(|| drop(other));
            } else {
                shared.pong(left(), other)?;
            }
        }
        link.ping = Some(own);
        link.lost = false;
        Ok(link)
    }

    pub(super) fn wait<T>(&mut self, future: impl Future<Output = mongodb::error::Result<T>>) -> Result<T> {
        let opened = self.ping.take().map_or(Ok(()), |ping| self.shared.pong(self.timeout, ping));
        let result = opened.and_then(|()| self.shared.wait(self.timeout, future));
        if let Err(error) = &result {
            use ErrorKind::{ConnectionLost, Protocol, Timeout, Unreachable};
            self.lost = matches!(error.kind(), ConnectionLost | Protocol | Timeout | Unreachable);
        }
        result
    }

    /// Runs a command whose answer is one document, on the target's database.
    pub(super) fn run(&mut self, command: RawDocumentBuf) -> Result<Document> {
        let database = self.shared.database.clone();
        self.wait(database.run_raw_command(command).into_future())
    }

    /// Checks each idle connection for surplus answers: any of them may have been this session's. One connection is
    /// closed when the link is dropped.
    pub(super) fn close_checked(&mut self) -> Result<()> {
        if self.lost {
            return Ok(());
        }
        let shared = &self.shared;
        let mut pings: Vec<Ping> = self.ping.take().into_iter().collect();
        loop {
            // The pool handles returned connections before a check-out: after a ping, the idle count is up to date.
            pings.push(shared.send_ping(self.timeout)?.0);
            if shared.ledger.idle() == 0 || pings.len() >= CLOSING_PINGS {
                break;
            }
        }
        pings.into_iter().try_for_each(|ping| shared.pong(self.timeout, ping))
    }

    /// Runs a command on the database `admin`.
    pub(super) fn administer(&mut self, command: RawDocumentBuf) -> Result<Document> {
        let database = self.shared.client.database("admin");
        self.wait(database.run_raw_command(command).into_future())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.ledger.session_ends();
        let until = Instant::now() + FAREWELL;
        let mut outstanding = self.ping.take();
        // The crate closes a lost connection itself.
        while !self.lost && shared.ledger.has_spare() && Instant::now() < until {
            let Some(ping) =
                outstanding.take().or_else(|| shared.send_ping(FAREWELL).ok().map(|(ping, _)| ping))
            else {
                break;
            };
            shared.within(|| drop(ping));
            // The task that closes it runs only while the runtime is driven.
            let _ = shared.wait(FAREWELL, async {
                for _ in 0..8 {
                    tokio::task::yield_now().await;
                }
                Ok(())
            });
        }
    }
}
