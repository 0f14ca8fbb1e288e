//! An experiment through an application, or several before one database: each transaction is one page, and every answer is
//! compared with what it must be. Here is what all such experiments share: what is asked before a trial, and how the
//! application is held to what it acknowledged.

use crate::count::{self, COUNT};
use kurabe_core::driver::{Namespace, Session};
use kurabe_core::experiment::{
    Checked, Client, ClientSummary, DatasetState, ExperimentInfo, Transaction, Workload,
};
use kurabe_core::planned::{Connections, Demand, LoopPolicy, NeededSetting, PlannedCell};
use kurabe_core::verification::Verification;
use kurabe_core::{Error, Result};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// What the pages of an experiment hold.
pub(crate) trait Pages: Send + Sync {
    /// What is known of the application's data.
    type Data: Send + Sync + 'static;
    /// What a client was told.
    type Told: 'static;

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

    /// `last`: whether each connection ends with its first request.
    fn transaction(
        &self,
        operation: &str,
        client: Client,
        data: Arc<Self::Data>,
        last: bool,
    ) -> Result<Box<dyn Transaction>>;

    /// Holds the application, after a trial that wrote, to what it told each client.
    fn hold(
        &self,
        session: &mut dyn Session,
        data: &Self::Data,
        told: &[&Self::Told],
        added: &Added,
    ) -> Result<Verification>;
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

/// A cell of an experiment through an application.
pub(crate) struct ViaWorkload<P: Pages> {
    pages: P,
    /// Whether each connection ends with its first request.
    last: bool,
}

/// What the present trial found when it began.
struct Found<D> {
    data: Arc<D>,
    counted: Option<u64>,
}

impl<P: Pages + 'static> ViaWorkload<P> {
    pub(crate) fn plan(policy: LoopPolicy, pages: P) -> PlannedCell {
        let info = pages.info();
        let served = NeededSetting {
            name: format!("/{}", info.name),
            value: "served".to_owned(),
            remedy: format!("if it is kurabe app, start it with --experiment {}", info.name),
        };
        let demand = Demand {
            client_bytes: pages.client_bytes(),
            settings: [vec![served], pages.settings()].concat(),
            ..Demand::default()
        };
        let stored_bytes = pages.stored_bytes();
        let last = policy.connections == Connections::PerRequest;
        PlannedCell { stored_bytes, ..PlannedCell::new(info.name, demand, policy, Self { pages, last }) }
    }

    fn writes(&self, operation: &str) -> bool {
        self.pages.info().operations.iter().any(|known| known.name == operation && known.writes)
    }
}

impl<P: Pages + 'static> Workload for ViaWorkload<P> {
    /// The application loaded its data itself.
    fn load(&self, _namespace: &mut dyn Namespace, _session: &mut dyn Session) -> Result<DatasetState> {
        Ok(DatasetState::default())
    }

    fn before(
        &self,
        operation: &str,
        state: &mut DatasetState,
        _namespace: &mut dyn Namespace,
        session: &mut dyn Session,
    ) -> Result<()> {
        let data = Arc::new(self.pages.data(session)?);
        let counted =
            if self.writes(operation) { count::ask(session, &page(self.pages.info(), COUNT))? } else { None };
        *state = DatasetState::new(Found { data, counted });
        Ok(())
    }

    fn transaction(
        &self,
        operation: &str,
        state: &DatasetState,
        client: Client,
    ) -> Result<Box<dyn Transaction>> {
        let data = Arc::clone(&state.get::<Found<P::Data>>()?.data);
        self.pages.transaction(operation, client, data, self.last)
    }

    fn after(
        &self,
        operation: &str,
        state: &DatasetState,
        session: &mut dyn Session,
        clients: &[ClientSummary],
    ) -> Result<Checked> {
        if !self.writes(operation) {
            return Ok(Checked::default());
        }
        let Found { data, counted } = state.get::<Found<P::Data>>()?;
        let rows = clients.iter().map(|client| client.rows_written).sum();
        let added = Added { rows, before: *counted, page: page(self.pages.info(), COUNT) };
        let told = clients.iter().map(ClientSummary::notes).collect::<Result<Vec<&P::Told>>>()?;
        self.pages.hold(session, data, &told, &added).map(Checked::from)
    }
}
