//! An experiment through an application, or several before one database: each transaction is one page, and every answer is
//! compared with what it must be. Here is what all such experiments share: what is asked before a trial, and how the
//! application is held to what it acknowledged.

use crate::axes;
use crate::count::{self, COUNT};
use kurabe_core::axis::Cell;
use kurabe_core::driver::{Namespace, Session};
use kurabe_core::experiment::{Client, Demand, Done, ExperimentInfo, NeededSetting, Transaction, Workload};
use kurabe_core::verification::Verification;
use kurabe_core::{Error, ErrorKind, Result};
use serde::de::DeserializeOwned;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the pages of an experiment hold.
pub(crate) trait Pages: Send + Sync {
    /// What is known of the application's data.
    type Data: Send + Sync;
    /// What the clients of a trial were told.
    type Told: Default + Send;

    fn info(&self) -> &'static ExperimentInfo;

    /// Bytes that a client holds.
    fn client_bytes(&self) -> u64;

    fn stored_bytes(&self) -> Option<u64>;

    /// What the application must say of itself, beyond serving the experiment.
    fn settings(&self) -> Vec<NeededSetting> {
        Vec::new()
    }

    /// What the application says of its data ([`facts`]), and what follows from it.
    fn data(&self, session: &mut dyn Session) -> Result<Self::Data>;

    fn transaction(
        &self,
        operation: &str,
        client: Client,
        trial: Trial<Self>,
    ) -> Result<Box<dyn Transaction>>;

    /// Holds the application, after a trial that wrote, to what it told.
    fn hold(
        &self,
        session: &mut dyn Session,
        data: &Self::Data,
        told: Self::Told,
        added: &Added,
    ) -> Result<Verification>;
}

/// What a transaction of a trial is given.
pub(crate) struct Trial<P: Pages + ?Sized> {
    pub(crate) data: Arc<P::Data>,
    pub(crate) told: Arc<Mutex<P::Told>>,
    /// Whether each connection ends with its first request.
    pub(crate) last: bool,
}

/// Rows that a trial's clients were told were added.
pub(crate) struct Added {
    pub(crate) rows: u64,
    /// What the application counted before the trial, where it counts.
    before: Option<u64>,
    page: String,
}

impl Added {
    /// Holds the application to their number: they have so many `different` keys, and so many more are counted. Gives how many
    /// were counted: none where it does not count. `what` rows and their keys are called, in the plural.
    pub(crate) fn hold(&self, session: &mut dyn Session, what: [&str; 2], different: usize) -> Result<u64> {
        let (added, [rows, keys]) = (self.rows, what);
        if different as u64 != added {
            return Err(Error::mismatch(format!(
                "{added} {rows} were acknowledged under {different} different {keys}"
            )));
        }
        let (Some(before), Some(now)) = (self.before, count::ask(session, &self.page)?) else {
            return Ok(0);
        };
        if now.checked_sub(before) != Some(added) {
            return Err(Error::mismatch(format!(
                "{added} {rows} were acknowledged; the application counted {before} before the trial and {now} after it"
            )));
        }
        Ok(added)
    }
}

/// The path of an experiment's page.
pub(crate) fn page(info: &ExperimentInfo, of: &str) -> String {
    format!("/{}/{of}", info.name)
}

/// What the application says of its data on the experiment's first page: "does not say …" `what`, where it does not.
pub(crate) fn facts<F: DeserializeOwned>(
    session: &mut dyn Session,
    info: &ExperimentInfo,
    what: &str,
) -> Result<F> {
    let mut out = Vec::new();
    session.ask(&format!("/{}", info.name), false, &mut out)?;
    serde_json::from_slice(&out)
        .map_err(|error| Error::mismatch(format!("the application does not say {what}: {error}")))
}

pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cell of an experiment through an application.
pub(crate) struct ViaWorkload<P: Pages> {
    clients: usize,
    connection_per_request: bool,
    pages: P,
    /// What the present trial found when it began.
    found: Mutex<Option<Found<P>>>,
    told: Arc<Mutex<P::Told>>,
}

struct Found<P: Pages> {
    data: Arc<P::Data>,
    counted: Option<u64>,
}

impl<P: Pages> ViaWorkload<P> {
    /// The cell says whether clients keep their connections to the application.
    pub(crate) fn new(cell: &Cell, pages: P) -> Result<Self> {
        let connection_per_request = axes::connection_per_request(cell)?;
        Ok(Self { connection_per_request, ..Self::kept(cell, pages)? })
    }

    /// Clients keep them.
    pub(crate) fn kept(cell: &Cell, pages: P) -> Result<Self> {
        Ok(Self {
            clients: axes::clients(cell)?,
            connection_per_request: false,
            pages,
            found: Mutex::new(None),
            told: Arc::default(),
        })
    }

    fn writes(&self, operation: &str) -> bool {
        self.pages.info().operations.iter().any(|known| known.name == operation && known.writes)
    }
}

impl<P: Pages> Workload for ViaWorkload<P> {
    fn demand(&self) -> Demand {
        let info = self.pages.info();
        let served = NeededSetting {
            name: format!("/{}", info.name),
            value: "served".to_owned(),
            remedy: format!("if it is kurabe app, start it with --experiment {}", info.name),
        };
        Demand {
            connections: self.clients as u64 + 1,
            client_bytes: self.pages.client_bytes(),
            settings: [vec![served], self.pages.settings()].concat(),
            ..Demand::default()
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn connection_per_request(&self) -> bool {
        self.connection_per_request
    }

    fn stored_bytes(&self) -> Option<u64> {
        self.pages.stored_bytes()
    }

    fn data(&self) -> String {
        self.pages.info().name.to_owned()
    }

    /// The application loaded its data itself.
    fn load(&self, _namespace: &mut dyn Namespace, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    fn before(
        &self,
        operation: &str,
        _namespace: &mut dyn Namespace,
        session: &mut dyn Session,
    ) -> Result<()> {
        let data = Arc::new(self.pages.data(session)?);
        let counted =
            if self.writes(operation) { count::ask(session, &page(self.pages.info(), COUNT))? } else { None };
        *lock(&self.found) = Some(Found { data, counted });
        *lock(&self.told) = P::Told::default();
        Ok(())
    }

    fn transaction(&self, operation: &str, client: Client) -> Result<Box<dyn Transaction>> {
        let found = lock(&self.found);
        let data = Arc::clone(&found.as_ref().ok_or_else(not_asked)?.data);
        let trial = Trial { data, told: Arc::clone(&self.told), last: self.connection_per_request };
        self.pages.transaction(operation, client, trial)
    }

    fn after(&self, operation: &str, session: &mut dyn Session, done: &[Done]) -> Result<Verification> {
        if !self.writes(operation) {
            return Ok(Verification::default());
        }
        let Found { data, counted } = lock(&self.found).take().ok_or_else(not_asked)?;
        let told = std::mem::take(&mut *lock(&self.told));
        let rows = done.iter().map(|done| done.rows_written).sum();
        let added = Added { rows, before: counted, page: page(self.pages.info(), COUNT) };
        self.pages.hold(session, &data, told, &added)
    }
}

fn not_asked() -> Error {
    Error::new(ErrorKind::Internal, "the application was not asked yet")
}
