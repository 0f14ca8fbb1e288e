//! A cell of the web application on a database as the engine sees it: load, transaction, check.

use super::draws::{CHANGES, Draws};
use super::further::{Show, Shown};
use super::store::{ROW_BYTES, Store};
use super::transaction::Request;
use super::{INFO, LOG, REQUEST, USER};
use crate::axes;
use crate::count::{COUNT, Count};
use crate::defect::no_operation;
use crate::fill::{PARAMETERS, REQUEST_BYTES, count};
use crate::prelude::*;
use crate::statement::Bind;
use std::collections::BTreeMap;

/// Numbers of rows, each with its expected value.
type Pairs = Vec<(u64, u64)>;

pub(super) struct WebWorkload {
    store: Arc<Store>,
    bind: Bind,
}

/// What the requests of a trial wrote.
#[derive(Default)]
struct Written {
    /// Each line of the log with its user.
    lines: Pairs,
    /// Each changed user with its last version.
    users: Pairs,
    /// The number of changes of users.
    changes: u64,
}

impl WebWorkload {
    pub(super) fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        let store = Arc::new(Store::new(cell, dataset)?);
        let clients = cell.number("clients")?;
        if clients > store.count {
            let users = store.count;
            return Err(Error::unsupported(format!(
                "each client changes its own users: {users} are too few for {clients} clients"
            )));
        }
        let demand = Demand {
            operations: vec![
                store.log_in(),
                store.write_log(),
                store.update(),
                store.search(),
                store.get_user(),
                store.get_line(),
            ],
            value_bytes: 4 * super::codes::NAME as u64,
            request_bytes: REQUEST_BYTES,
            parameters: PARAMETERS,
            loaded_bytes: (store.count + store.codes.towns.len() as u64) * ROW_BYTES,
            client_bytes: 128_000,
            ..Demand::default()
        };
        let capacity = Some(Capacity { records: store.count, requests_per_record: CHANGES });
        let policy = LoopPolicy { capacity, ..axes::policy(cell)? };
        // A connection that lives for one request is not worth four round trips to prepare its statements.
        let bind = match policy.connections {
            Connections::PerRequest => Bind::InOne,
            Connections::Kept | Connections::Pool(_) => Bind::Once,
        };
        let (name, workload) = (store.data(), Arc::new(Self { store, bind }));
        Ok(PlannedCell::served(name, demand, policy, move || Arc::clone(&workload)))
    }

    fn written(&self, done: &[ClientSummary]) -> Written {
        let mut written = Written::default();
        let mut versions = BTreeMap::new();
        for done in done {
            let mut draws = Draws::new(done.client, self.store.count, self.store.codes.towns.len() as u64);
            for _ in 0..done.completed {
                let draw = draws.next();
                written.lines.push((draw.line, draw.user));
                if let Some(version) = draw.version {
                    versions.insert(draw.user, version);
                    written.changes += 1;
                }
            }
        }
        written.users = versions.into_iter().collect();
        written
    }
}

impl Prepare for WebWorkload {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        for collection in [&self.store.log, &self.store.users, &self.store.towns] {
            namespace.create(collection)?;
        }
        self.store.fill(session)?;
        [&self.store.users, &self.store.towns]
            .into_iter()
            .try_for_each(|filled| namespace.analyse(filled))?;
        Ok(DatasetState::default())
    }

    fn before(&self, Before { namespace, .. }: Before<'_>) -> Result<()> {
        namespace.clear(&self.store.log)
    }
}

impl Workload for WebWorkload {
    fn transaction(
        &self,
        operation: &str,
        state: &DatasetState,
        client: Client,
    ) -> Result<Box<dyn Transaction>> {
        Ok(self.page(operation, state, client)?)
    }

    fn after(&self, After { session, clients: done, .. }: After<'_>) -> Result<Checked> {
        let acknowledged: u64 = done.iter().map(|done| done.rows_written).sum();
        let Written { lines, users, changes } = self.written(done);
        if lines.len() as u64 != acknowledged {
            let made = lines.len();
            return Err(Error::mismatch(format!(
                "{made} lines of the log were written, but {acknowledged} were acknowledged"
            )));
        }
        let counted = count(session, &self.store.log)?;
        if let Some(rows) = counted
            && rows != acknowledged
        {
            return Err(Error::mismatch(format!(
                "the server counts {rows} lines of the log, but acknowledged {acknowledged}"
            )));
        }
        let records = (lines.len() + users.len()) as u64;
        let read_back = self.store.read_lines_back(session, lines.into_iter())?
            + self.store.read_users_back(session, users.into_iter())?;
        let verification = Verification {
            // Each request read its user, and the answer was compared.
            answers: done.iter().map(|done| done.completed).sum(),
            writes: acknowledged + changes,
            records,
            counted: counted.unwrap_or(0),
            read_back,
        };
        Ok(verification.into())
    }
}

impl Serve for WebWorkload {
    fn further(&self) -> &'static [&'static str] {
        &[COUNT, LOG, USER]
    }

    fn facts(&self) -> Vec<(&'static str, u64)> {
        let codes = &self.store.codes;
        vec![
            ("seed", self.store.seed),
            ("records", self.store.count),
            ("codes", codes.towns.len() as u64),
            ("codes_digest", codes.digest),
        ]
    }

    fn page(&self, name: &str, _state: &DatasetState, client: Client) -> Result<Box<dyn Page>> {
        let store = &self.store;
        match name {
            REQUEST => Ok(Box::new(Request::new(store, self.bind, client))),
            COUNT => Ok(Box::new(Count::new(&store.log))),
            LOG => Ok(Box::new(Show::new(store, Shown::Line))),
            USER => Ok(Box::new(Show::new(store, Shown::User))),
            _ => Err(no_operation(INFO.name, name)),
        }
    }
}
