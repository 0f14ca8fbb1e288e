//! An experiment through an application, or several before one database: each transaction is one page, and every answer is
//! compared with what it must be. Here is what all such experiments share: what is asked before a trial, and how the
//! application is held to what it acknowledged.

use crate::answer;
use crate::count::{self, COUNT};
use crate::defect::no_session;
use kurabe_core::driver::{Prepared, Session};
use kurabe_core::experiment::{
    After, Before, Checked, Client, ClientSummary, DatasetState, ExperimentInfo, Notes, Prepare, Transaction,
    Workload,
};
use kurabe_core::operation::Operation;
use kurabe_core::page::{self, body};
use kurabe_core::planned::{Connections, Demand, LoopPolicy, NeededSetting, PlannedCell};
use kurabe_core::value::{Reply, Value};
use kurabe_core::verification::Verification;
use kurabe_core::{Error, Result};
use kurabe_stats::rng::Rng;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt::Write as _;
use std::sync::Arc;

/// What the pages of an experiment hold.
pub(crate) trait PageSet: Send + Sync {
    /// What is known of the application's data.
    type Data: Send + Sync + 'static;
    /// What a client was told.
    type Told: 'static;

    /// The experiment.
    const INFO: &'static ExperimentInfo;
    /// Bytes that a client holds.
    const CLIENT_BYTES: u64;
    const STORED_BYTES: Option<u64>;

    /// What the application must say of itself, beyond serving the experiment.
    fn settings(&self) -> Vec<NeededSetting> {
        Vec::new()
    }

    /// What the application says of its data ([`facts`]), and what follows from it.
    fn data(&self, session: &mut dyn Session) -> Result<Self::Data>;

    fn visit(&self, operation: &str, client: Client, data: Arc<Self::Data>) -> Result<Box<dyn Visit>>;

    /// Holds the application, after a trial that wrote, to what it told each client.
    fn hold(
        &self,
        session: &mut dyn Session,
        data: &Self::Data,
        told: &[&Self::Told],
        added: &Added,
    ) -> Result<Verification>;
}

/// What one client asks for over and over.
pub(crate) trait Visit: Send {
    /// Draws what is asked for next, and makes it the path.
    fn draw(&mut self, path: &mut String);

    /// Compares the answer with what it must be.
    fn check(&mut self, path: &str, body: &[u8]) -> Result<()>;

    /// Rows that the application said it added.
    fn rows_written(&self) -> u64 {
        0
    }

    /// What it was told: a [`PageSet::Told`].
    fn told(&mut self) -> Option<Notes> {
        None
    }
}

/// A client that asks for pages.
struct Visitor {
    visit: Box<dyn Visit>,
    page: Operation,
    prepared: Option<Prepared>,
    path: String,
    reply: Reply,
}

impl Transaction for Visitor {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.prepared = Some(session.prepare(&self.page)?);
        Ok(())
    }

    fn prepare_input(&mut self) {
        self.path.clear();
        self.visit.draw(&mut self.path);
    }

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let prepared = self.prepared.as_ref().ok_or_else(no_session)?;
        session.execute(prepared, &[Value::Text(&self.path)], &mut self.reply)
    }

    fn check(&mut self) -> Result<()> {
        self.visit.check(&self.path, body(&self.reply))
    }

    fn rows_written(&self) -> u64 {
        self.visit.rows_written()
    }

    fn notes(&mut self) -> Option<Notes> {
        self.visit.told()
    }
}

/// What an application says of rows that are numbered from 1.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Rows {
    pub(crate) seed: u64,
    /// How many were there before anything was added.
    pub(crate) records: u64,
}

impl Rows {
    pub(crate) fn of(session: &mut dyn Session, info: &ExperimentInfo) -> Result<Self> {
        let rows: Self = facts(session, info, "its seed and its number of records")?;
        if rows.records == 0 {
            return Err(Error::mismatch("the application says that it has no records"));
        }
        Ok(rows)
    }
}

/// Reads rows drawn uniformly from all, each compared by `compare` with what it must be.
pub(crate) struct ReadRows<C> {
    page: String,
    records: u64,
    compare: C,
    rng: Rng,
    key: u64,
}

impl<C: Fn(u64, &[u8]) -> Result<()> + Send> ReadRows<C> {
    pub(crate) fn new(page: String, records: u64, client: Client, compare: C) -> Self {
        Self { page, records, compare, rng: Rng::new(client.seed), key: 0 }
    }
}

impl<C: Fn(u64, &[u8]) -> Result<()> + Send> Visit for ReadRows<C> {
    fn draw(&mut self, path: &mut String) {
        self.key = 1 + self.rng.below(self.records);
        // Writing to memory does not fail.
        let _ = write!(path, "{}?key={}", self.page, self.key);
    }

    fn check(&mut self, path: &str, body: &[u8]) -> Result<()> {
        let (key, data) = answer::read(path, body, Some(self.key))?;
        (self.compare)(key, data)
    }
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
pub(crate) fn path(info: &ExperimentInfo, of: &str) -> String {
    format!("/{}/{of}", info.name)
}

/// What the application says of its data on the experiment's first page: "does not say …" `what`, where it does not.
pub(crate) fn facts<F: DeserializeOwned>(
    session: &mut dyn Session,
    info: &ExperimentInfo,
    what: &str,
) -> Result<F> {
    let out = page::get(session, &format!("/{}", info.name))?;
    serde_json::from_slice(&out)
        .map_err(|error| Error::mismatch(format!("the application does not say {what}: {error}")))
}

/// A cell of an experiment through an application.
pub(crate) struct ViaWorkload<P: PageSet> {
    pages: P,
    /// Whether each connection ends with its first request.
    last: bool,
}

/// What the present trial found when it began.
struct Found<D> {
    data: Arc<D>,
    counted: Option<u64>,
}

impl<P: PageSet + 'static> ViaWorkload<P> {
    pub(crate) fn plan(policy: LoopPolicy, pages: P) -> PlannedCell {
        let info = P::INFO;
        let served = NeededSetting {
            name: format!("/{}", info.name),
            value: "served".to_owned(),
            remedy: format!("if it is kurabe app, start it with --experiment {}", info.name),
        };
        let demand = Demand {
            client_bytes: P::CLIENT_BYTES,
            settings: [vec![served], pages.settings()].concat(),
            ..Demand::default()
        };
        let stored_bytes = P::STORED_BYTES;
        let last = policy.connections == Connections::PerRequest;
        PlannedCell { stored_bytes, ..PlannedCell::new(info.name, demand, policy, Self { pages, last }) }
    }

    fn writes(operation: &str) -> bool {
        P::INFO.operations.iter().any(|known| known.name == operation && known.writes)
    }
}

/// The application loads its data itself.
impl<P: PageSet + 'static> Prepare for ViaWorkload<P> {
    fn before(&self, Before { operation, state, session, .. }: Before<'_>) -> Result<()> {
        let data = Arc::new(self.pages.data(session)?);
        let counted =
            if Self::writes(operation) { count::ask(session, &path(P::INFO, COUNT))? } else { None };
        *state = DatasetState::new(Found { data, counted });
        Ok(())
    }
}

impl<P: PageSet + 'static> Workload for ViaWorkload<P> {
    fn transaction(
        &self,
        operation: &str,
        state: &DatasetState,
        client: Client,
    ) -> Result<Box<dyn Transaction>> {
        let data = Arc::clone(&state.get::<Found<P::Data>>()?.data);
        let visit = self.pages.visit(operation, client, data)?;
        let page = Operation::Page { last: self.last };
        Ok(Box::new(Visitor { visit, page, prepared: None, path: String::new(), reply: Reply::new() }))
    }

    fn after(&self, After { operation, state, session, clients }: After<'_>) -> Result<Checked> {
        if !Self::writes(operation) {
            return Ok(Checked::default());
        }
        let Found { data, counted } = state.get::<Found<P::Data>>()?;
        let rows = clients.iter().map(|client| client.rows_written).sum();
        let added = Added { rows, before: *counted, page: path(P::INFO, COUNT) };
        let told = clients.iter().map(ClientSummary::notes).collect::<Result<Vec<&P::Told>>>()?;
        self.pages.hold(session, data, &told, &added).map(Checked::from)
    }
}
