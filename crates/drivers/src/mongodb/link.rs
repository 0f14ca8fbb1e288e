//! One connection for one session, out of the crate's pool.
//!
//! A `Client` of the crate is a pool with tasks that watch the servers, and one `Client` a session would double the
//! connections. So all sessions of a driver share one, and the pool is made to hold exactly one connection for each:
//!
//! - **To connect** is to send a ping and not to read its answer: until it is read, the pool cannot give that connection
//!   to anybody else, so the next session's ping needs a new one. Should it get one that belongs to a session which does
//!   nothing just then, it is kept out of the way and a further ping is sent, until one gets a connection of its own.
//!   The ping's answer is read before the session's first request.
//! - **To close** is to send a ping and to give up on it: the crate closes a connection whose answer is outstanding.
//!
//! Between requests any session may get any of the connections, as an application's threads do; there are always as
//! many as there are sessions, and each request has one to itself.
//!
//! The crate runs on a tokio runtime without threads of its own: whoever waits for an answer does its work, so that with
//! one client no request wakes another thread.

use super::config::Config;
use super::errors;
use super::ledger::{Id, Ledger, got};
use crate::prelude::*;
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

/// A ping whose answer was not read yet.
type Ping = Pin<Box<dyn Future<Output = mongodb::error::Result<Document>> + Send>>;

/// The most connections that a session checks when it ends: others use the pool meanwhile.
const CLOSING_PINGS: usize = 64;
/// How long a session that ends may try to close its connection.
const FAREWELL: Duration = Duration::from_millis(500);

/// What all sessions of a driver share.
#[derive(Debug)]
pub(super) struct Shared {
    // Before the runtime, in which their last tasks run.
    pub(super) client: Client,
    pub(super) database: Database,
    pub(super) config: Config,
    ledger: Arc<Ledger>,
    /// Collections that were seen on the server, so that each is looked for once.
    seen: Mutex<HashSet<String>>,
    runtime: Runtime,
}

impl Shared {
    pub(super) fn new(config: &Config) -> Result<Self> {
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
                mongodb::error::Error::custom("the servers' names were not found within the time allowed")
            };
            let mut options = tokio::time::timeout(timeout, config.options()).await.map_err(late)??;
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

    /// Drives a future of the crate's to its end, for so long at most.
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

    /// Runs what is no future but spawns tasks, such as dropping a session of the server's.
    pub(super) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let _guard = self.runtime.enter();
        work()
    }

    /// Sends a ping and stops when it has a connection, whose answer is then outstanding.
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

    /// Waits for the answer to a ping, and refuses one to another request. The crate does not compare which request an answer
    /// belongs to: after one that came twice, each request is given the answer to the one before it.
    fn pong(&self, timeout: Duration, ping: Ping) -> Result<()> {
        let answer = self.wait(timeout, ping)?;
        // A ping's own answer says that it was done, and the time of the cluster.
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

/// A session's connection.
pub(super) struct Link {
    /// The ping that was sent when it was opened.
    ping: Option<Ping>,
    timeout: Duration,
    /// Whether its connection is gone already.
    lost: bool,
    pub(super) shared: Arc<Shared>,
}

impl Link {
    /// Opens a connection.
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
            // Whose connection it was may have had a new one made meanwhile; then this one is one too many.
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

    /// Sends a request and waits for its answer.
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

    /// Checks that the server sent no more answers than there were requests, on each connection that nobody uses just now:
    /// any of them may have been this session's. One is closed when the link is dropped.
    pub(super) fn close_checked(&mut self) -> Result<()> {
        if self.lost {
            return Ok(());
        }
        let shared = &self.shared;
        let mut pings: Vec<Ping> = self.ping.take().into_iter().collect();
        loop {
            // The pool takes connections back before it gives one out: after a ping, those that are idle are known.
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
        // A connection that is lost the crate closes itself.
        while !self.lost && shared.ledger.has_spare() && Instant::now() < until {
            let Some(ping) =
                outstanding.take().or_else(|| shared.send_ping(FAREWELL).ok().map(|(ping, _)| ping))
            else {
                break;
            };
            shared.within(|| drop(ping));
            // The task that closes it runs when somebody waits.
            let _ = shared.wait(FAREWELL, async {
                for _ in 0..8 {
                    tokio::task::yield_now().await;
                }
                Ok(())
            });
        }
    }
}
