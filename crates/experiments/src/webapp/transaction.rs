//! The transaction of one client on a database: a request of the application, step by step.

use super::answer::{self, RequestResult};
use super::codes::PREFIX;
use super::draws::{self, Draw, Draws};
use super::store::{Store, range};
use super::user::{CHANGES, User};
use crate::fill::{acknowledged, text};
use crate::metrics::time;
use crate::prelude::*;
use std::collections::HashMap;
use std::time::Instant;

/// The mean time of each type of request, and of each step, if it occurs.
pub(super) const METRICS: &[Metric] = &[
    time("log in", "to find the user by name and password"),
    time("write log", "to add a line to the log"),
    time("update", "to change the user, which one request in 20 does"),
    time("search", "to search the postal codes, which one request in 10 does"),
    time("plain", "a request that does neither"),
    time("with update", "a request that changes the user"),
    time("with search", "a request that searches the postal codes"),
    time("with both", "a request that does both"),
];
/// The first metrics are of steps, the others of types.
const STEPS: usize = 4;

/// One step: its statement and its answer.
struct Step {
    statement: Statement,
    reply: Reply,
}

impl Step {
    /// Executes it, which is this one of [`METRICS`].
    fn execute(
        &mut self,
        session: &mut dyn Session,
        parameters: &[Value<'_>],
        recorder: &mut Recorder,
        span: usize,
    ) -> Result<()> {
        let began = Instant::now();
        let done = self.statement.execute(session, parameters, &mut self.reply);
        recorder.span(METRICS[span].name, 1, began.elapsed());
        done
    }
}

pub(super) struct Request {
    store: Arc<Store>,
    draws: Draws,
    draw: Draw,
    steps: [Step; 4],
    /// The user that logs in; after a check, its state at log-in.
    user: User,
    /// Its state after the update.
    changed: User,
    address: String,
    prefix: [u8; PREFIX],
    end: [u8; PREFIX],
    /// The versions of the users that this client changed. Only this client may change them.
    known: HashMap<u64, u64>,
    /// The expected version of the user at log-in, if known.
    expected: Option<u64>,
}

impl Request {
    pub(super) fn new(store: &Arc<Store>, bind: Bind, client: Client) -> Self {
        let step = |operation| Step { statement: Statement::new(operation, bind), reply: Reply::new() };
        Self {
            store: Arc::clone(store),
            draws: Draws::new(client, store.count, store.codes.towns.len() as u64),
            draw: Draw { line: 0, user: 1, version: None, town: None },
            steps: [store.log_in(), store.write_log(), store.update(), store.search()].map(step),
            user: User::default(),
            changed: User::default(),
            address: String::new(),
            prefix: [b'0'; PREFIX],
            end: [b'0'; PREFIX],
            known: HashMap::new(),
            expected: None,
        }
    }
}

impl Transaction for Request {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.steps.iter_mut().try_for_each(|step| step.statement.attach(session))
    }

    fn detach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.steps.iter_mut().try_for_each(|step| step.statement.detach(session))
    }

    fn prepare_input(&mut self) {
        let (seed, codes) = (self.store.seed, &self.store.codes);
        self.draw = self.draws.next();
        let Draw { line, user, version, town } = self.draw;
        self.user.identify(seed, user);
        draws::address(seed, line, &mut self.address);
        // After a failed change the version of the user is unknown.
        self.expected =
            if version.is_some() { self.known.remove(&user) } else { self.known.get(&user).copied() };
        if let Some(version) = version {
            self.changed.become_version(seed, codes, user, version);
        }
        if let Some(town) = town {
            (self.prefix, self.end) = range(&codes.towns[town as usize].code);
        }
    }

    fn run(&mut self, session: &mut dyn Session, recorder: &mut Recorder) -> Result<()> {
        let Draw { line, user, version, town } = self.draw;
        let [log_in, log, update, search] = &mut self.steps;
        let own = &self.user;
        let began = Instant::now();
        log_in.execute(session, &[Value::Text(&own.name), Value::Text(&own.password)], recorder, 0)?;
        let (number, at) = (Value::Int(user as i64), Value::Time(draws::time(line)));
        let row = [Value::Int(line as i64), number, Value::Text(&self.address), at];
        log.execute(session, &row, recorder, 1)?;
        if version.is_some() {
            let [email, code, address, new, time] = CHANGES.map(|position| self.changed.field(position));
            update.execute(session, &[email, code, address, new, time, number], recorder, 2)?;
        }
        if town.is_some() {
            search.execute(session, &[text(&self.prefix)?, text(&self.end)?], recorder, 3)?;
        }
        let kind = STEPS + usize::from(version.is_some()) + 2 * usize::from(town.is_some());
        recorder.span(METRICS[kind].name, 1, began.elapsed());
        Ok(())
    }

    fn check(&mut self, recorder: &mut Recorder) -> Result<()> {
        let Draw { line, user, version, town } = self.draw;
        let mut found = std::mem::take(&mut self.user);
        let checked = self.store.check_user(user, self.expected, &self.steps[0].reply, &mut found);
        self.user = found;
        checked?;
        acknowledged(&self.steps[1].reply, format_args!("line {line} of the log"))?;
        if let Some(version) = version {
            acknowledged(&self.steps[2].reply, format_args!("the change of user {user}"))?;
            self.known.insert(user, version);
        }
        if town.is_some() {
            self.store.check_towns(self.prefix, &self.steps[3].reply)?;
        }
        recorder.rows_written(1);
        Ok(())
    }

    fn render(&self, out: &mut Vec<u8>) {
        let Draw { line, user, version: changed, town } = self.draw;
        let result = RequestResult {
            user,
            version: self.user.version,
            line,
            changed,
            prefix: town.map(|_| self.prefix),
        };
        answer::request(self.store.seed, &self.store.codes, &result, line, &self.user, out);
    }
}
