//! A place for one connection to the database, with the transactions that are attached to it.

use crate::answer::{Answer, Kind};
use crate::catalogue::Catalogue;
use crate::{Application, Connection};
use kurabe_core::driver::{ConnectOptions, Prepared, Session};
use kurabe_core::experiment::{Client, ClientSummary, Transaction};
use kurabe_core::operation::Operation;
use kurabe_core::page::Page;
use kurabe_core::value::Reply;
use kurabe_core::{Error, ErrorKind, Result};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The longest that connecting, or one answer of the database, may take: a client waits for it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of so many database calls the CPU time of one is taken.
const TIMED: u64 = 32;

/// What one place did on one page.
#[derive(Debug)]
pub struct Tally {
    /// Which of the served experiments.
    pub served: usize,
    /// Its operation, or further page.
    pub operation: &'static str,
    /// What the place did, as the client that its transactions are of.
    pub done: ClientSummary,
    /// Transactions that failed: of these nobody knows whether the database made them.
    pub failed: u64,
}

/// What all places share.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Goes up when a connection was lost: those that are older are not trusted any more.
    losses: AtomicU64,
    calls: AtomicU64,
    timed: AtomicU64,
    timed_ns: AtomicU64,
}

impl Ledger {
    /// Counts a call, which was timed if it is known when it began.
    fn note(&self, began: Option<rustix::time::Timespec>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(began) = began {
            let spent = clock_gettime(ClockId::ThreadCPUTime) - began;
            let ns = spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64;
            self.timed.fetch_add(1, Ordering::Relaxed);
            self.timed_ns.fetch_add(ns, Ordering::Relaxed);
        }
    }

    /// CPU time within database calls, in nanoseconds, estimated from those that were timed.
    pub(crate) fn database_cpu_ns(&self) -> u64 {
        let [calls, timed, ns] =
            [&self.calls, &self.timed, &self.timed_ns].map(|n| n.load(Ordering::Relaxed));
        if timed == 0 { 0 } else { (ns as f64 * calls as f64 / timed as f64) as u64 }
    }
}

/// One page's transaction in a place.
struct Desk {
    transaction: Box<dyn Page>,
    /// Whether it is attached to the present connection.
    attached: bool,
    completed: u64,
    failed: u64,
}

pub(crate) struct Seat {
    client: Client,
    desks: Vec<Option<Desk>>,
    session: Option<Box<dyn Session>>,
    /// [`Ledger::losses`] when the connection was opened.
    opened: u64,
    calls: u64,
}

impl Seat {
    pub(crate) fn new(client: Client, pages: usize) -> Self {
        Self { client, desks: (0..pages).map(|_| None).collect(), session: None, opened: 0, calls: 0 }
    }

    /// Does what a page is for.
    pub(crate) fn serve(
        &mut self,
        application: &Application,
        catalogue: &Catalogue,
        ledger: &Ledger,
        page: usize,
        key: Option<u64>,
    ) -> Answer {
        let result = self.transact(application, catalogue, ledger, page, key);
        if result.as_ref().is_err_and(|error| !leaves_usable(error)) {
            // What is lost is not said goodbye to.
            if self.session.take().is_some() {
                ledger.losses.fetch_max(self.opened + 1, Ordering::Relaxed);
            }
        }
        match result {
            Ok(body) => {
                let kind = if application_page(catalogue, page) { Kind::Record } else { Kind::Text };
                Answer::new(200, kind, body)
            }
            // Of what a client asked for wrongly, the database is not the reason.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Usage) => {
                Answer::of_error(&error)
            }
            Err(error) => Answer::of_error(&error.context(&application.target)),
        }
    }

    fn transact(
        &mut self,
        application: &Application,
        catalogue: &Catalogue,
        ledger: &Ledger,
        page: usize,
        key: Option<u64>,
    ) -> Result<Vec<u8>> {
        if self.desks[page].is_none() {
            let transaction = transaction(application, catalogue, page, self.client)?;
            self.desks[page] = Some(Desk { transaction, attached: false, completed: 0, failed: 0 });
        }
        let Some(desk) = &mut self.desks[page] else { return Err(incomplete()) };
        match key {
            Some(key) => desk.transaction.set_key(key)?,
            None => desk.transaction.prepare_input(),
        }
        self.calls += 1;
        let began = self.calls.is_multiple_of(TIMED).then(|| clock_gettime(ClockId::ThreadCPUTime));
        let done = if catalogue.pages[page].anew {
            self.run_anew(application, page)
        } else {
            self.run(application, ledger, page)
        };
        ledger.note(began);
        let Some(desk) = &mut self.desks[page] else { return Err(incomplete()) };
        if let Err(error) = done.and_then(|()| desk.transaction.check()) {
            desk.failed += u64::from(error.kind() != ErrorKind::NotFound);
            return Err(error);
        }
        desk.completed += 1;
        let mut body = Vec::new();
        desk.transaction.render(&mut body);
        Ok(body)
    }

    /// What the database has to do with it.
    fn run(&mut self, application: &Application, ledger: &Ledger, page: usize) -> Result<()> {
        self.connect(application, ledger)?;
        let (Some(session), Some(desk)) = (&mut self.session, &mut self.desks[page]) else {
            return Err(incomplete());
        };
        if !desk.attached {
            desk.transaction.attach(&mut **session)?;
            desk.attached = true;
        }
        desk.transaction.run(&mut **session)?;
        if application.options.connection == Connection::PerRequest
            && let Some(session) = self.session.take()
        {
            session.close()?;
        }
        Ok(())
    }

    /// The same on a connection that is opened for it, and closed. The place's own stays as it is.
    fn run_anew(&mut self, application: &Application, page: usize) -> Result<()> {
        let Some(desk) = &mut self.desks[page] else { return Err(incomplete()) };
        let mut session = (application.connect)(&ConnectOptions::within(PATIENCE))?;
        desk.transaction.attach(&mut *session)?;
        desk.transaction.run(&mut *session)?;
        session.close()
    }

    /// Sees that there is a connection, and a new one where another of the same age was lost.
    fn connect(&mut self, application: &Application, ledger: &Ledger) -> Result<()> {
        let losses = ledger.losses.load(Ordering::Relaxed);
        if self.session.is_some() && self.opened == losses {
            return Ok(());
        }
        self.session = None;
        for desk in self.desks.iter_mut().flatten() {
            desk.attached = false;
        }
        let connected = (application.connect)(&ConnectOptions::within(PATIENCE));
        if let Err(error) = &connected
            && matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::ConnectionLost)
        {
            // Where no server is, no connection of another place's is left either, though none has noticed yet.
            ledger.losses.fetch_max(losses + 1, Ordering::Relaxed);
        }
        self.session = Some(connected?);
        self.opened = losses;
        Ok(())
    }

    /// Forgets the connection, after a defect in the middle of it.
    pub(crate) fn abandon(&mut self) {
        self.session = None;
    }

    /// Says goodbye, and what was done here.
    pub(crate) fn close(mut self, catalogue: &Catalogue) -> Vec<Tally> {
        if let Some(session) = self.session.take() {
            // All answers were given: a goodbye that fails changes nothing.
            let _ = session.close();
        }
        let pages = self.desks.into_iter().zip(&catalogue.pages);
        let tally = |(desk, page): (Option<Desk>, &crate::catalogue::Page)| {
            let (mut desk, served) = (desk?, page.served?);
            let done = ClientSummary {
                client: self.client,
                completed: desk.completed,
                rows_written: desk.transaction.rows_written(),
                notes: desk.transaction.notes(),
            };
            Some(Tally { served, operation: page.operation, done, failed: desk.failed })
        };
        pages.filter_map(tally).collect()
    }
}

/// A place without a transaction or a connection where there must be one.
fn incomplete() -> Error {
    Error::new(ErrorKind::Internal, "a place without a connection or a transaction")
}

/// Whether a session goes on after such an error.
fn leaves_usable(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Mismatch | ErrorKind::NotFound | ErrorKind::Unsupported | ErrorKind::Server
    )
}

fn application_page(catalogue: &Catalogue, page: usize) -> bool {
    catalogue.pages[page].served.is_some()
}

fn transaction(
    application: &Application,
    catalogue: &Catalogue,
    page: usize,
    client: Client,
) -> Result<Box<dyn Page>> {
    let page = &catalogue.pages[page];
    match page.served {
        Some(served) => {
            let served = &application.served[served];
            served.pages.page(page.operation, &served.state, client)
        }
        None => Ok(Box::new(Health::default())),
    }
}

/// Whether the database answers.
#[derive(Default)]
struct Health {
    prepared: Option<Prepared>,
    reply: Reply,
}

impl Transaction for Health {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.prepared = Some(session.prepare(&Operation::Ping)?);
        Ok(())
    }

    fn prepare_input(&mut self) {}

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        match &self.prepared {
            Some(prepared) => session.execute(prepared, &[], &mut self.reply),
            None => Err(Error::new(ErrorKind::Internal, "the transaction has no session")),
        }
    }

    fn check(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Page for Health {
    fn render(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"ok\n");
    }
}
