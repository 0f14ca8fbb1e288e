//! Experiments through one application, or through several before one database. Each transaction is one page, and
//! each answer is checked. This module has the parts that all such experiments share: requests before a trial, and
//! the check that the application stored what it acknowledged.

use crate::answer::{self, COUNT};
use crate::prelude::*;
use crate::rows::LOADED;
use kurabe_core::page::body;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt::Write as _;

/// The pages of an experiment that clients request.
pub(crate) trait PageSet: Send + Sync {
    /// What is known of the application's data.
    type Data: Send + Sync + 'static;

    /// The application's description of its data ([`facts`]), and what follows from it.
    fn data(&self, session: &mut dyn Session) -> Result<Self::Data>;

    fn client(&self, operation: &str, client: Client, data: Arc<Self::Data>) -> Result<Box<dyn PageClient>>;

    /// Checks, after a trial with writes, that the application stored what it acknowledged to each client.
    fn verify(
        &self,
        session: &mut dyn Session,
        data: &Self::Data,
        clients: &[ClientSummary],
        added: &Added,
    ) -> Result<Verification>;
}

/// The repeated request of one client.
pub(crate) trait PageClient: Send {
    /// Draws the next request and writes its path.
    fn draw(&mut self, path: &mut String);

    /// Checks the answer. Records the rows that the application acknowledged as added, and notes them.
    fn check(&mut self, path: &str, body: &[u8], recorder: &mut Recorder) -> Result<()>;
}

struct PageTransaction {
    client: Box<dyn PageClient>,
    page: Statement,
    path: String,
    reply: Reply,
}

impl Transaction for PageTransaction {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.page.attach(session)
    }

    fn prepare_input(&mut self) {
        self.path.clear();
        self.client.draw(&mut self.path);
    }

    fn run(&mut self, session: &mut dyn Session, _: &mut Recorder) -> Result<()> {
        self.page.execute(session, &[Value::Text(&self.path)], &mut self.reply)
    }

    fn check(&mut self, recorder: &mut Recorder) -> Result<()> {
        self.client.check(&self.path, body(&self.reply), recorder)
    }
}

/// The application's description of rows that are numbered from 1.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Rows {
    pub(crate) seed: u64,
    /// The number of rows before any was added.
    pub(crate) records: u64,
}

impl Rows {
    pub(crate) fn of(session: &mut dyn Session, info: &ExperimentInfo) -> Result<Self> {
        let rows: Self = facts(session, info, "its seed and its number of records")?;
        if rows.records == 0 {
            return Err(Error::mismatch("the application reports no records"));
        }
        Ok(rows)
    }
}

/// Reads uniformly drawn rows, and checks each.
pub(crate) struct ReadRows<D> {
    page: String,
    records: u64,
    data: D,
    rng: Rng,
    key: u64,
}

impl<D: RowData> ReadRows<D> {
    pub(crate) fn new(page: String, records: u64, client: Client, data: D) -> Self {
        Self { page, records, data, rng: Rng::new(client.seed), key: 0 }
    }
}

impl<D: RowData> PageClient for ReadRows<D> {
    fn draw(&mut self, path: &mut String) {
        self.key = 1 + self.rng.below(self.records);
        // Writing to memory does not fail.
        let _ = write!(path, "{}?key={}", self.page, self.key);
    }

    fn check(&mut self, path: &str, body: &[u8], _: &mut Recorder) -> Result<()> {
        let (key, data) = answer::read(path, body, Some(self.key))?;
        self.data.check(key, LOADED, data)
    }
}

/// Rows that the application acknowledged as added to the clients of a trial.
pub(crate) struct Added {
    pub(crate) rows: u64,
    /// The application's count before the trial, if it counts.
    before: Option<u64>,
    page: String,
}

impl Added {
    /// Checks their number: they have this many `different` keys, and the application's count has increased by as
    /// many. Returns the count; `None` if the application does not count. `what` is the name of rows and of their
    /// keys, in the plural.
    pub(crate) fn verify(&self, session: &mut dyn Session, what: [&str; 2], different: usize) -> Result<u64> {
        let (added, [rows, keys]) = (self.rows, what);
        if different as u64 != added {
            return Err(Error::mismatch(format!(
                "{added} {rows} were acknowledged, but with {different} different {keys}"
            )));
        }
        let (Some(before), Some(now)) = (self.before, answer::ask_count(session, &self.page)?) else {
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

/// The application's description of its data on the experiment's first page. If it is missing, the error says "does
/// not say" and `what`.
pub(crate) fn facts<F: DeserializeOwned>(
    session: &mut dyn Session,
    info: &ExperimentInfo,
    what: &str,
) -> Result<F> {
    let out = page::get(session, &format!("/{}", info.name))?;
    serde_json::from_slice(&out)
        .map_err(|error| Error::mismatch(format!("the application does not report {what}: {error}")))
}

/// A cell of an experiment through an application.
pub(crate) struct ViaWorkload<P> {
    info: &'static ExperimentInfo,
    pages: P,
    /// Whether each connection ends with its first request.
    last: bool,
}

/// What was found at the beginning of the current trial.
struct Found<D> {
    data: Arc<D>,
    counted: Option<u64>,
}

impl<P: PageSet + 'static> ViaWorkload<P> {
    pub(crate) fn plan(info: &'static ExperimentInfo, policy: LoopPolicy, pages: P) -> PlannedCell {
        let served = NeededSetting {
            name: format!("/{}", info.name),
            value: "served".to_owned(),
            remedy: format!("if it is kurabe up app, start it with --experiment {}", info.name),
        };
        let demand = Demand { client_bytes: 64_000, settings: vec![served], ..Demand::default() };
        let last = policy.connections == Connections::PerRequest;
        PlannedCell::new(info.name, demand, policy, Self { info, pages, last })
    }

    fn writes(&self, operation: &str) -> bool {
        self.info.operations.iter().any(|known| known.name == operation && known.writes)
    }
}

/// The application loads its data itself.
impl<P: PageSet + 'static> Workload for ViaWorkload<P> {
    fn before(&self, Before { operation, state, session, .. }: Before<'_>) -> Result<()> {
        let data = Arc::new(self.pages.data(session)?);
        let count = path(self.info, COUNT);
        let counted = if self.writes(operation) { answer::ask_count(session, &count)? } else { None };
        *state = DatasetState::new(Found { data, counted });
        Ok(())
    }

    fn transaction(&self, name: &str, state: &DatasetState, client: Client) -> Result<Box<dyn Transaction>> {
        let data = Arc::clone(&state.get::<Found<P::Data>>()?.data);
        let client = self.pages.client(name, client, data)?;
        let page = Operation::Page { writes: self.writes(name), last: self.last };
        let page = Statement::new(page, Bind::Once);
        Ok(Box::new(PageTransaction { client, page, path: String::new(), reply: Reply::new() }))
    }

    fn after(&self, After { operation, state, session, clients }: After<'_>) -> Result<Checked> {
        if !self.writes(operation) {
            return Ok(Checked::default());
        }
        let Found { data, counted } = state.get::<Found<P::Data>>()?;
        let rows = clients.iter().map(|client| client.rows_written).sum();
        let added = Added { rows, before: *counted, page: path(self.info, COUNT) };
        self.pages.verify(session, data, clients, &added).map(Checked::from)
    }
}
