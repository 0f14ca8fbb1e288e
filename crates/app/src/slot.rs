//! A session slot: one connection to the database, with the transactions that are attached to it.

use crate::metrics::Metrics;
use crate::queue::{Job, Queue};
use crate::response::{self, Kind, Response};
use crate::router::Router;
use crate::{Application, Connection};
use hyper::StatusCode;
use kurabe_core::driver::{ConnectOptions, Session};
use kurabe_core::experiment::{Client, ClientSummary, Recorder, Transaction};
use kurabe_core::operation::Operation;
use kurabe_core::value::Reply;
use kurabe_core::{Error, ErrorKind, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time limit for connecting and for each reply of the database: a client waits for it.
const DATABASE_TIME: Duration = Duration::from_secs(10);

/// What one session slot did on one page.
#[derive(Debug)]
pub struct PageSummary {
    /// Which of the served experiments.
    pub served: usize,
    /// Its operation or additional page.
    pub operation: &'static str,
    /// What the slot did, as one client of the database.
    pub done: ClientSummary,
    /// Transactions that failed: whether the database executed them is unknown.
    pub failed: u64,
}

/// What all session threads share.
pub(crate) struct Shared {
    pub application: Application,
    pub router: Router,
    pub queue: Queue,
    pub metrics: Metrics,
    /// The number of times that connections were lost. Connections opened before the last time are not used again.
    losses: AtomicU64,
}

impl Shared {
    pub(crate) fn new(application: Application) -> Self {
        let router = Router::new(&application);
        let queue = Queue::new(application.options.waiting());
        Self { application, router, queue, metrics: Metrics::default(), losses: AtomicU64::new(0) }
    }

    fn connect(&self) -> Result<Box<dyn Session>> {
        (self.application.connect)(&ConnectOptions::within(DATABASE_TIME))
    }

    /// Records the loss of a connection that was opened after this many losses.
    fn lost(&self, opened: u64) {
        self.losses.fetch_max(opened + 1, Ordering::Relaxed);
    }
}

/// A page's transaction in a slot.
struct AttachedPage {
    transaction: Box<dyn Transaction>,
    recorder: Recorder,
    /// Whether it is attached to the current connection.
    is_attached: bool,
    completed: u64,
    failed: u64,
}

pub(crate) struct Slot<'a> {
    shared: &'a Shared,
    client: Client,
    pages: Vec<Option<AttachedPage>>,
    session: Option<Box<dyn Session>>,
    /// [`Shared::losses`] when the connection was opened.
    opened: u64,
}

impl<'a> Slot<'a> {
    /// The slot of this index among those of the application.
    pub(crate) fn new(shared: &'a Shared, index: usize) -> Self {
        let options = &shared.application.options;
        let count = options.session_slots();
        // The other applications' slots are other clients of the same data.
        let index = index + (options.part.number - 1) * count;
        let seed = options.seed.wrapping_add(index as u64);
        let client = Client { index, count: count * options.part.of, seed, trial: 1 };
        let pages = shared.router.pages.iter().map(|_| None).collect();
        Self { shared, client, pages, session: None, opened: 0 }
    }

    /// Processes requests until the queue is closed and empty.
    pub(crate) fn work(mut self) -> Vec<PageSummary> {
        while let Some(Job { page, key, reply, queued }) = self.shared.queue.take() {
            self.shared.metrics.waited(queued.elapsed());
            // Some drivers panic on replies that they do not expect.
            let response = catch_unwind(AssertUnwindSafe(|| self.serve(page, key))).unwrap_or_else(|_| {
                self.session = None;
                response::text(StatusCode::INTERNAL_SERVER_ERROR, "the database's client panicked")
            });
            if response.status().is_server_error() && response.status() != StatusCode::NOT_IMPLEMENTED {
                self.shared.metrics.failed.one();
            }
            // The client may have left.
            let _ = reply.send(response);
        }
        self.close()
    }

    fn serve(&mut self, page: usize, key: Option<u64>) -> Response {
        let result = self.transact(page, key);
        if let Err(error) = &result
            && !self.shared.router.pages[page].connects_anew
        {
            self.after_error(error);
        }
        match result {
            Ok(body) => {
                let served = self.shared.router.pages[page].served;
                response::new(StatusCode::OK, served.map_or(Kind::Text, |_| Kind::Record), body)
            }
            // 4xx responses are not the database's fault.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Usage) => {
                response::of_error(&error)
            }
            Err(error) => response::of_error(&error.context(&self.shared.application.target)),
        }
    }

    /// Closes the connection unless it is certainly in its initial state.
    fn after_error(&mut self, error: &Error) {
        match error.kind() {
            ErrorKind::Mismatch | ErrorKind::NotFound | ErrorKind::Unsupported | ErrorKind::Usage => {}
            // The protocol is in order, but a transaction may be open. Other connections are not affected.
            ErrorKind::Server => {
                if let Some(session) = self.session.take() {
                    // The error of the request is the one to report.
                    let _ = session.close();
                }
            }
            _ => {
                if self.session.take().is_some() {
                    self.shared.lost(self.opened);
                }
            }
        }
    }

    fn transact(&mut self, page: usize, key: Option<u64>) -> Result<Vec<u8>> {
        if self.pages[page].is_none() {
            let transaction = self.transaction(page)?;
            let recorder = Recorder::default();
            self.pages[page] =
                Some(AttachedPage { transaction, recorder, is_attached: false, completed: 0, failed: 0 });
        }
        let attached = self.attached(page)?;
        match key {
            Some(key) => attached.transaction.set_key(key)?,
            None => attached.transaction.prepare_input(),
        }
        let shared = self.shared;
        let done = shared.metrics.call(|| {
            if shared.router.pages[page].connects_anew { self.run_anew(page) } else { self.run(page) }
        });
        let attached = self.attached(page)?;
        let AttachedPage { transaction, recorder, .. } = &mut *attached;
        if let Err(error) = done.map_err(of_database).and_then(|()| transaction.check(recorder)) {
            attached.failed += u64::from(error.kind() != ErrorKind::NotFound);
            return Err(error);
        }
        attached.completed += 1;
        let mut body = Vec::new();
        attached.transaction.render(&mut body);
        Ok(body)
    }

    fn attached(&mut self, page: usize) -> Result<&mut AttachedPage> {
        self.pages[page].as_mut().ok_or_else(incomplete)
    }

    /// Runs a page's transaction on the slot's connection.
    fn run(&mut self, page: usize) -> Result<()> {
        self.connect()?;
        let (Some(session), Some(attached)) = (&mut self.session, &mut self.pages[page]) else {
            return Err(incomplete());
        };
        if !attached.is_attached {
            attached.transaction.attach(&mut **session)?;
            attached.is_attached = true;
        }
        attached.transaction.run(&mut **session, &mut attached.recorder)?;
        if self.shared.application.options.connection == Connection::PerRequest
            && let Some(session) = self.session.take()
        {
            session.close()?;
        }
        Ok(())
    }

    /// Runs it on a connection that is opened for it and closed. The slot's own connection is not used.
    fn run_anew(&mut self, page: usize) -> Result<()> {
        let mut session = self.shared.connect()?;
        let attached = self.attached(page)?;
        attached.transaction.attach(&mut *session)?;
        attached.transaction.run(&mut *session, &mut attached.recorder)?;
        session.close()
    }

    /// Opens a connection if there is none, or if another of the same age was lost.
    fn connect(&mut self) -> Result<()> {
        let losses = self.shared.losses.load(Ordering::Relaxed);
        if self.session.is_some() && self.opened == losses {
            return Ok(());
        }
        self.session = None;
        for attached in self.pages.iter_mut().flatten() {
            attached.is_attached = false;
        }
        let connected = self.shared.connect();
        if let Err(error) = &connected
            && matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::ConnectionLost)
        {
            // The server is gone: the other slots' connections are lost too, though they have not noticed yet.
            self.shared.lost(losses);
        }
        self.session = Some(connected?);
        self.opened = losses;
        Ok(())
    }

    /// Closes the connection and returns what was done.
    fn close(mut self) -> Vec<PageSummary> {
        if let Some(session) = self.session.take() {
            // All requests were answered: an error here changes nothing.
            let _ = session.close();
        }
        let summary = |(attached, page): (Option<AttachedPage>, &crate::router::Page)| {
            let (attached, served) = (attached?, page.served?);
            let done = attached.recorder.into_summary(self.client, attached.completed);
            Some(PageSummary { served, operation: page.operation, done, failed: attached.failed })
        };
        self.pages.into_iter().zip(&self.shared.router.pages).filter_map(summary).collect()
    }

    fn transaction(&self, page: usize) -> Result<Box<dyn Transaction>> {
        let page = &self.shared.router.pages[page];
        match page.served {
            Some(served) => {
                let served = &self.shared.application.served[served];
                served.workload.transaction(page.operation, &served.state, self.client)
            }
            None => Ok(Box::new(Health::default())),
        }
    }
}

/// An error of the database. What it did not find is a table or a database, and not the record of a request.
fn of_database(error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::new(ErrorKind::Server, error.to_string()),
        _ => error,
    }
}

fn incomplete() -> Error {
    Error::new(ErrorKind::Internal, "a session slot without a connection or a transaction")
}

/// The health check: whether the database answers.
#[derive(Default)]
struct Health {
    reply: Reply,
}

impl Transaction for Health {
    fn run(&mut self, session: &mut dyn Session, _: &mut Recorder) -> Result<()> {
        let ping = session.prepare(&Operation::Ping)?;
        session.execute(&ping, &[], &mut self.reply)?;
        session.release(ping)
    }

    fn check(&mut self, _: &mut Recorder) -> Result<()> {
        Ok(())
    }

    fn render(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"ok\n");
    }
}
