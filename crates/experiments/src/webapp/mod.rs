//! E7, a small web application.
//!
//! A client's seed determines which users log in, which are changed and what is searched, so that the expected content
//! of every row is known after a trial ([`draws`]).

mod answer;
mod codes;
mod draws;
mod info;
mod inputs;
mod names;
mod store;
mod transaction;
mod user;
mod via;
mod written;

use crate::answer::{COUNT, Count};
use crate::axes::{self, no_operation};
use crate::fill::{PARAMETERS, REQUEST_BYTES, acknowledged_rows, check_count};
use crate::prelude::*;
use crate::via::ViaWorkload;
use draws::{CHANGES, Draw, Draws};
use info::{INFO, LOG, REQUEST, USER};
use store::{ROW_BYTES, Store};
use transaction::Request;
use user::User;
pub(crate) use via::check_user_page;
use written::Written;

/// Bytes of a client's memory.
const CLIENT_BYTES: u64 = 128_000;
pub(crate) static WEBAPP: Experiment =
    Experiment { plan_via: Some(plan_via), ..Experiment::new(&INFO, &plan) };

fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let store = Arc::new(Store::new(cell, dataset)?);
    axes::suffice(cell, store.count, "users")?;
    let demand = Demand {
        operations: vec![
            store.log_in(),
            store.write_log(),
            store.update(),
            store.search(),
            store.get_user(),
            store.get_line(),
        ],
        value_bytes: 4 * codes::NAME as u64,
        request_bytes: REQUEST_BYTES,
        parameters: PARAMETERS,
        loaded_bytes: (store.count + store.codes.towns.len() as u64) * ROW_BYTES,
        client_bytes: CLIENT_BYTES,
        ..Demand::default()
    };
    let capacity = Some(Capacity { records: store.count, requests_per_record: CHANGES, of_memory: false });
    let policy = LoopPolicy { capacity, ..axes::policy(cell)? };
    // A connection that lives for one request is not worth four round trips to prepare its statements.
    let bind = match policy.connections {
        Connections::PerRequest => Bind::InOne,
        Connections::Kept | Connections::Pool(_) => Bind::Once,
    };
    let facts = vec![
        ("seed", store.seed),
        ("records", store.count),
        ("codes", store.codes.towns.len() as u64),
        ("codes_digest", store.codes.digest),
    ];
    let pages = Some(ServedPages { names: &[REQUEST, COUNT, LOG, USER], facts, ..ServedPages::default() });
    Ok(PlannedCell { pages, ..PlannedCell::new(store.data(), demand, policy, WebWorkload { store, bind }) })
}

fn plan_via(cell: &Cell) -> Result<PlannedCell> {
    let mut planned = ViaWorkload::plan(&INFO, axes::policy(cell)?, via::WebPages::new(cell));
    planned.demand.client_bytes = CLIENT_BYTES;
    Ok(planned)
}

struct WebWorkload {
    store: Arc<Store>,
    bind: Bind,
}

impl WebWorkload {
    fn written(&self, done: &[ClientSummary]) -> Written {
        let mut written = Written::default();
        for done in done {
            let mut draws = Draws::new(done.client, self.store.count, self.store.codes.towns.len() as u64);
            for _ in 0..done.completed {
                let Draw { line, user, version, .. } = draws.next();
                written.request(line, user, line, version);
            }
        }
        written
    }
}

impl Workload for WebWorkload {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        for collection in [&self.store.log, &self.store.users, &self.store.towns] {
            namespace.create(collection)?;
        }
        self.store.fill(session)?;
        namespace.analyse(&self.store.users)?;
        namespace.analyse(&self.store.towns)?;
        Ok(DatasetState::default())
    }

    fn before(&self, Before { namespace, .. }: Before<'_>) -> Result<()> {
        namespace.clear(&self.store.log)
    }

    fn transaction(&self, name: &str, _: &DatasetState, client: Client) -> Result<Box<dyn Transaction>> {
        let store = &self.store;
        match name {
            REQUEST => Ok(Box::new(Request::new(store, self.bind, client))),
            COUNT => Ok(Box::new(Count::new(&store.log))),
            LOG => Ok(Box::new(Show::new(store, Shown::Line))),
            USER => Ok(Box::new(Show::new(store, Shown::User))),
            _ => Err(no_operation(INFO.name, name)),
        }
    }

    fn after(&self, After { session, clients: done, .. }: After<'_>) -> Result<Checked> {
        let acknowledged = acknowledged_rows(done, "lines of the log were written")?;
        let written = self.written(done);
        let counted = check_count(session, &self.store.log, acknowledged, "lines of the log")?;
        let lines = written.lines.iter().map(|(line, user, _)| (*line, *user));
        let versions = written.versions.iter().map(|(user, version)| (*user, *version));
        let read_back =
            self.store.read_lines_back(session, lines)? + self.store.read_users_back(session, versions)?;
        let verification = Verification {
            // Each request read its user, and the answer was compared.
            answers: done.iter().map(|done| done.completed).sum(),
            writes: acknowledged + written.changes,
            records: written.records(),
            counted: counted.unwrap_or(0),
            read_back,
        };
        Ok(verification.into())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Line,
    User,
}

/// Shows the line of the log, or the user, that the client names, so that it can check what the application stored.
struct Show {
    store: Arc<Store>,
    what: Shown,
    statement: Statement,
    key: Option<u64>,
    reply: Reply,
    user: User,
}

impl Show {
    fn new(store: &Arc<Store>, what: Shown) -> Self {
        let operation = match what {
            Shown::Line => store.get_line(),
            Shown::User => store.get_user(),
        };
        let statement = Statement::new(operation, Bind::Once);
        let (store, reply, user) = (Arc::clone(store), Reply::new(), User::default());
        Self { store, what, statement, key: None, reply, user }
    }
}

/// There is no such user or line.
fn absent(key: u64) -> Error {
    Error::new(ErrorKind::NotFound, format!("{key} does not exist"))
}

impl Transaction for Show {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statement.attach(session)
    }

    fn prepare_input(&mut self) {
        self.key = None;
    }

    fn run(&mut self, session: &mut dyn Session, _: &mut Recorder) -> Result<()> {
        let key = self.key.ok_or_else(|| Error::usage("name the record to show: ?key=17"))?;
        self.statement.execute(session, &[Value::Int(key as i64)], &mut self.reply)
    }

    fn check(&mut self, _: &mut Recorder) -> Result<()> {
        let key = self.key.unwrap_or_default();
        if self.reply.rows() == 0 {
            return Err(absent(key));
        }
        match self.what {
            Shown::User => self.store.check_user(key, None, &self.reply, &mut self.user),
            Shown::Line => {
                let user = self.reply.field_int(0, 1).and_then(|user| u64::try_from(user).ok());
                let user =
                    user.ok_or_else(|| Error::mismatch(format!("line {key} of the log has no user")))?;
                self.user.number = user;
                self.store.check_line(key, user, &self.reply)
            }
        }
    }

    fn set_key(&mut self, key: u64) -> Result<()> {
        // Keys are signed on the server.
        self.key = Some(i64::try_from(key).map_err(|_| absent(key))? as u64);
        Ok(())
    }

    fn render(&self, out: &mut Vec<u8>) {
        match self.what {
            Shown::User => answer::user(&self.user, out),
            Shown::Line => {
                let number = self.key.unwrap_or_default();
                answer::line(self.store.seed, number, number, self.user.number, out);
            }
        }
    }
}
