//! A cell of the web application on a database as the engine sees it: load, transaction, check.

use super::draws::Draws;
use super::further::{Show, Shown};
use super::store::{ROW_BYTES, Store};
use super::transaction::Request;
use super::{INFO, LOG, REQUEST, USER};
use crate::axes;
use crate::count::{COUNT, Count};
use crate::defect::no_operation;
use crate::fill::{PARAMETERS, REQUEST_BYTES, count, sample};
use crate::statement::Bind;
use kurabe_core::axis::Cell;
use kurabe_core::driver::{Namespace, Session};
use kurabe_core::experiment::{Checked, Client, Dataset, Demand, Done, Transaction, Workload};
use kurabe_core::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Versions that one trial may use: a trial has fewer requests, and there are fewer trials than of these.
const VERSIONS: u64 = 1 << 32;

/// Numbers of rows, each with what it must hold.
type Pairs = Vec<(u64, u64)>;

/// How many trials this process has begun: cells of one target share its users, and every change is to be one.
static TRIALS: AtomicU64 = AtomicU64::new(0);

pub(super) struct WebWorkload {
    store: Arc<Store>,
    clients: usize,
    connection_per_request: bool,
    /// The version before the present trial's first.
    base: AtomicU64,
}

impl WebWorkload {
    pub(super) fn new(cell: &Cell, dataset: &Dataset) -> Result<Self> {
        let store = Arc::new(Store::new(cell, dataset)?);
        let clients = cell.number("clients")?;
        if clients > store.count {
            let users = store.count;
            return Err(Error::unsupported(format!(
                "each client changes users of its own, and there are {users} for {clients} clients"
            )));
        }
        let connection_per_request = axes::connection_per_request(cell)?;
        Ok(Self { store, clients: clients as usize, connection_per_request, base: AtomicU64::new(0) })
    }

    /// Each line of the log with its user, and each changed user with its last version, after so many requests.
    fn written(&self, done: &[Done]) -> (Pairs, Pairs) {
        let base = self.base.load(Ordering::Relaxed);
        let (mut lines, mut versions) = (Vec::new(), BTreeMap::new());
        for done in done {
            let mut draws =
                Draws::new(done.client, self.store.count, self.store.codes.towns.len() as u64, base);
            for _ in 0..done.completed {
                let draw = draws.next();
                lines.push((draw.line, draw.user));
                if let Some(version) = draw.version {
                    versions.insert(draw.user, version);
                }
            }
        }
        (lines, versions.into_iter().collect())
    }
}

impl Workload for WebWorkload {
    fn demand(&self) -> Demand {
        let store = &self.store;
        let rows = store.count + store.codes.towns.len() as u64;
        Demand {
            operations: vec![
                store.log_in(),
                store.write_log(),
                store.update(),
                store.search(),
                store.get_user(),
                store.get_line(),
            ],
            capabilities: Vec::new(),
            value_bytes: 4 * super::codes::NAME as u64,
            request_bytes: REQUEST_BYTES,
            parameters: PARAMETERS,
            connections: self.clients as u64 + 2,
            loaded_bytes: rows * ROW_BYTES,
            client_bytes: 128_000,
            ..Demand::default()
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn connection_per_request(&self) -> bool {
        self.connection_per_request
    }

    fn further_pages(&self) -> &'static [&'static str] {
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

    fn stored_bytes(&self) -> Option<u64> {
        None
    }

    fn data(&self) -> String {
        self.store.data()
    }

    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<()> {
        for collection in [&self.store.log, &self.store.users, &self.store.towns] {
            namespace.create(collection)?;
        }
        self.store.fill(session)?;
        [&self.store.users, &self.store.towns].into_iter().try_for_each(|filled| namespace.analyse(filled))
    }

    fn before(
        &self,
        _operation: &str,
        namespace: &mut dyn Namespace,
        _session: &mut dyn Session,
    ) -> Result<()> {
        let trial = TRIALS.fetch_add(1, Ordering::Relaxed) + 1;
        self.base.store(trial * VERSIONS, Ordering::Relaxed);
        namespace.clear(&self.store.log)
    }

    fn transaction(&self, operation: &str, client: Client) -> Result<Box<dyn Transaction>> {
        let store = &self.store;
        match operation {
            REQUEST => {
                // A connection that lives for one request is not worth four round trips that prepare its statements.
                let bind = if self.connection_per_request { Bind::InOne } else { Bind::Once };
                let base = self.base.load(Ordering::Relaxed);
                Ok(Box::new(Request::new(store, bind, base, client)))
            }
            COUNT => Ok(Box::new(Count::new(&store.log))),
            LOG => Ok(Box::new(Show::new(store, Shown::Line))),
            USER => Ok(Box::new(Show::new(store, Shown::User))),
            _ => Err(no_operation(INFO.name, operation)),
        }
    }

    fn after(&self, _operation: &str, session: &mut dyn Session, done: &[Done]) -> Result<Checked> {
        let acknowledged: u64 = done.iter().map(|done| done.rows_written).sum();
        let (lines, versions) = self.written(done);
        if lines.len() as u64 != acknowledged {
            let made = lines.len();
            return Err(Error::mismatch(format!(
                "{made} lines of the log were written and {acknowledged} acknowledged"
            )));
        }
        let counted = count(session, &self.store.log)?;
        if let Some(rows) = counted
            && rows != acknowledged
        {
            return Err(Error::mismatch(format!(
                "{acknowledged} lines of the log were acknowledged and the server counts {rows}"
            )));
        }
        let mut read = match counted {
            Some(_) => self.store.read_lines_back(session, sample(&lines).copied())?,
            // Where nothing counts, every line is asked for.
            None => self.store.read_lines_back(session, lines.iter().copied())?,
        };
        read += self.store.read_users_back(session, sample(&versions).copied())?;
        // Each of them read its user and compared it.
        let answers_compared = done.iter().map(|done| done.completed).sum();
        Ok(Checked { writes_counted: acknowledged, answers_compared, records_read_back: read })
    }
}
