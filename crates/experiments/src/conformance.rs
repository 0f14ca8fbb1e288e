//! Checks an application against `docs/app.openapi.yaml`: each page by itself, then several clients at once, as a run would.
//! It is for the author of an application: every check is made, and each that fails says what was expected.

use crate::answer::{self, COUNT};
use crate::axes::CLIENTS;
use crate::kv::Digests;
use crate::point::content;
use crate::prelude::*;
use crate::rows::LOADED;
use crate::{registry, webapp};
use kurabe_core::driver::{ConnectOptions, Driver};
use serde_json::{Map, Value as Json};
use std::thread;

/// The experiments that an application may serve.
const EXPERIMENTS: [&str; 3] = ["kv", "connect", "webapp"];
/// Clients at once, and requests of each for an operation.
const AT_ONCE: (usize, u64) = (8, 25);
/// Records that are drawn by the application; they are not all the same one.
const DRAWN: usize = 20;

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As the contract says.
    Right,
    /// Not as the contract says: what was expected, and what came.
    Wrong(String),
    /// Optional, and not there.
    Absent(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The request, or what was done: `GET /kv/read?key=0`.
    pub what: String,
    pub outcome: Outcome,
}

/// Makes all checks. Those that write add records.
///
/// # Errors
/// If the application cannot be reached.
pub fn check(driver: &dyn Driver) -> Result<Vec<Check>> {
    let mut checker = Checker { session: driver.connect(&ConnectOptions::default())?, checks: Vec::new() };
    checker.health();
    let mut served = 0;
    for name in EXPERIMENTS {
        let about = match checker.get(&format!("/{name}")) {
            Ok(body) => body,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unsupported) => {
                checker
                    .note(format!("GET /{name}"), Outcome::Absent(format!("{name} is not served: {error}")));
                continue;
            }
            Err(error) => {
                checker.note(format!("GET /{name}"), Outcome::Wrong(error.to_string()));
                continue;
            }
        };
        served += 1;
        let Some(about) = checker.about(name, &about) else { continue };
        match name {
            "kv" => checker.kv(&about),
            "connect" => checker.connect(&about),
            _ => checker.webapp(&about),
        }
        checker.at_once(driver, registry::find(name)?, &about);
    }
    if served == 0 {
        checker.note("any of /kv, /connect, /webapp".to_owned(), Outcome::Wrong("none is served".to_owned()));
    }
    Ok(checker.checks)
}

struct Checker {
    session: Box<dyn Session>,
    checks: Vec<Check>,
}

impl Checker {
    fn note(&mut self, what: String, outcome: Outcome) {
        self.checks.push(Check { what, outcome });
    }

    fn result(&mut self, what: impl Into<String>, result: Result<()>) {
        let outcome = result.map_or_else(|error| Outcome::Wrong(error.to_string()), |()| Outcome::Right);
        self.note(what.into(), outcome);
    }

    fn request(&mut self, path: &str, writes: bool) -> Result<Vec<u8>> {
        page::request(&mut *self.session, path, writes)
    }

    fn get(&mut self, path: &str) -> Result<Vec<u8>> {
        self.request(path, false)
    }

    fn health(&mut self) {
        let outcome = match self.get("/health") {
            Ok(body) if body == b"ok\n" => Outcome::Right,
            Ok(_) => Outcome::Wrong("expected the body 'ok' and a line feed".to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Outcome::Absent("optional: tells whether the database answers".to_owned())
            }
            Err(error) => Outcome::Wrong(error.to_string()),
        };
        self.note("GET /health".to_owned(), outcome);
    }

    /// A request that must be refused with this status.
    fn refused(&mut self, path: &str, writes: bool, status: u16, why: &str) {
        let what = format!("{} {path}", if writes { "POST" } else { "GET" });
        let outcome = match self.request(path, writes) {
            Err(error) if error.server_code() == Some(&status.to_string()) => Outcome::Right,
            Err(error) => Outcome::Wrong(format!("expected status {status}, because {why}; {error}")),
            Ok(_) => Outcome::Wrong(format!("expected status {status}, because {why}; it was accepted")),
        };
        self.note(what, outcome);
    }

    /// The description of an experiment, if it can be used.
    fn about(&mut self, name: &str, body: &[u8]) -> Option<Map<String, Json>> {
        let what = format!("GET /{name}");
        let Ok(about) = serde_json::from_slice::<Map<String, Json>>(body) else {
            self.note(what, Outcome::Wrong("expected a JSON object".to_owned()));
            return None;
        };
        let number = |member: &str| about.get(member).and_then(Json::as_u64);
        let mut needed = vec![("seed", 0), ("records", 1)];
        if name == "webapp" {
            needed.extend([("codes", 1), ("codes_digest", 0)]);
        }
        for (member, least) in needed {
            if number(member).is_none_or(|number| number < least) {
                let why = format!("expected '{member}', a whole number from {least} on");
                self.note(what, Outcome::Wrong(why));
                return None;
            }
        }
        let connection = about.get("connection").and_then(Json::as_str);
        if name == "connect" && connection.is_none_or(|text| axes_of_connection(text).is_none()) {
            let why = "expected 'connection': kept, per-request or pool of N".to_owned();
            self.note(what, Outcome::Wrong(why));
            return None;
        }
        self.note(what, Outcome::Right);
        for (member, about_it) in
            [("engine", "the database's product"), ("durability", "what an acknowledged write survives")]
        {
            if about.get(member).is_none_or(Json::is_null) {
                let what = format!("GET /{name}: '{member}'");
                self.note(what, Outcome::Absent(format!("optional: {about_it}; reports show it")));
            }
        }
        Some(about)
    }

    /// Reads records by key, without one, and with wrong ones.
    fn reads(&mut self, page: &str, records: u64, expected: &dyn RowData) {
        for key in [1, records] {
            let path = format!("{page}?key={key}");
            let read = self.get(&path).and_then(|body| {
                let (key, data) = answer::read(&path, &body, Some(key))?;
                expected.check(key, LOADED, data)
            });
            self.result(format!("GET {path}"), read);
        }
        let mut drawn = Vec::new();
        let all = (0..DRAWN).try_for_each(|_| {
            let body = self.get(page)?;
            let (key, data) = answer::read(page, &body, None)?;
            if !(1..=records).contains(&key) {
                return Err(Error::mismatch(format!("record {key} is not one of 1 to {records}")));
            }
            drawn.push(key);
            expected.check(key, LOADED, data)
        });
        drawn.sort_unstable();
        drawn.dedup();
        let all = all.and_then(|()| {
            // Twenty draws of one in a hundred are all equal once in 10^38.
            if records >= 100 && drawn.len() == 1 {
                return Err(Error::mismatch(format!(
                    "expected records drawn from 1 to {records}, always got the same"
                )));
            }
            Ok(())
        });
        self.result(format!("GET {page} ({DRAWN} times)"), all);
        self.refused(&format!("{page}?key=0"), false, 404, "there is no record 0");
        self.refused(&format!("{page}?key={}", u64::MAX), false, 404, "there is no such record");
        self.refused(&format!("{page}?key=x"), false, 400, "a key is a whole number");
        self.refused(&format!("{page}?key=-1"), false, 400, "a key is a whole number from 0 on");
        self.refused(page, true, 405, "a page that reads is requested by GET");
    }

    fn kv(&mut self, about: &Map<String, Json>) {
        let [seed, records] = ["seed", "records"].map(|name| about[name].as_u64().unwrap_or_default());
        let expected = Digests { seed };
        self.reads("/kv/read", records, &expected);
        self.refused("/kv/write", false, 405, "a page that changes the database is requested by POST");
        let before = answer::ask_count(&mut *self.session, &format!("/kv/{COUNT}"));
        let written = self.request("/kv/write", true).and_then(|body| {
            let (key, data) = answer::read("/kv/write", &body, None)?;
            if key <= records {
                return Err(Error::mismatch(format!("expected a key above {records}, got {key}")));
            }
            expected.check(key, LOADED, data).map(|()| key)
        });
        if let Ok(key) = written {
            let path = format!("/kv/read?key={key}");
            let read = self.get(&path).and_then(|body| {
                let (key, data) = answer::read(&path, &body, Some(key))?;
                expected.check(key, LOADED, data)
            });
            self.result("GET /kv/read?key=… of the record that was added", read);
        }
        let written = written.map(drop);
        let counted = written.is_ok();
        self.result("POST /kv/write", written);
        let what = format!("GET /kv/{COUNT}");
        match before
            .and_then(|before| Ok((before, answer::ask_count(&mut *self.session, &format!("/kv/{COUNT}"))?)))
        {
            Ok((Some(before), Some(after))) if counted && after != before + 1 => {
                let why =
                    format!("expected {} after one record was added to {before}, got {after}", before + 1);
                self.note(what, Outcome::Wrong(why));
            }
            Ok((Some(_), Some(_))) => self.note(what, Outcome::Right),
            Ok(_) => {
                let why = "optional: by it a lost write is found that reading back cannot find";
                self.note(what, Outcome::Absent(why.to_owned()));
            }
            Err(error) => self.note(what, Outcome::Wrong(error.to_string())),
        }
        self.refused("/kv/nothing", false, 404, "there is no such page");
    }

    fn connect(&mut self, about: &Map<String, Json>) {
        let [seed, records] = ["seed", "records"].map(|name| about[name].as_u64().unwrap_or_default());
        for page in ["/connect/read", "/connect/new"] {
            self.reads(page, records, &content(seed));
        }
    }

    fn webapp(&mut self, about: &Map<String, Json>) {
        let records = about["records"].as_u64().unwrap_or_default();
        for key in [1, records] {
            let path = format!("/webapp/user?key={key}");
            let shown = self.get(&path);
            let shown =
                shown.and_then(|body| webapp::check_user_page(Json::Object(about.clone()), key, &body));
            self.result(format!("GET {path}"), shown);
        }
        for page in ["/webapp/user", "/webapp/log"] {
            self.refused(&format!("{page}?key=0"), false, 404, "there is no record 0");
            self.refused(&format!("{page}?key={}", u64::MAX), false, 404, "there is no such record");
            self.refused(&format!("{page}?key=x"), false, 400, "a key is a whole number");
            self.refused(&format!("{page}?key=1"), true, 405, "a page that reads is requested by GET");
        }
        let page = "/webapp/request";
        self.refused(page, false, 405, "a page that changes the database is requested by POST");
        if about.get("inputs").and_then(Json::as_str) == Some("client") {
            self.refused(page, true, 400, "name, password, ip and at are required");
            let wrong = format!("{page}?name=nobody&password=wrong&ip=10.0.0.1&at=1356998400000000");
            self.refused(&wrong, true, 403, "no user has this name and password");
        }
    }

    /// Several clients at once, as in a run, and the check after it.
    fn at_once(&mut self, driver: &dyn Driver, experiment: &Experiment, about: &Map<String, Json>) {
        let info = experiment.info;
        for operation in info.operations {
            let (clients, requests) = AT_ONCE;
            let done = at_once(driver, experiment, operation.name, about, &mut *self.session);
            let what = format!(
                "{} {}: {clients} clients at once, {requests} requests each, every answer verified",
                info.name, operation.name
            );
            self.result(what, done);
        }
    }
}

/// The values of the axes with which an application's connections are used; `None` if the text is not of the contract.
fn axes_of_connection(text: &str) -> Option<(&'static str, Option<&str>)> {
    match text {
        "kept" => Some(("kept", None)),
        "per-request" => Some(("per-request", None)),
        _ => text
            .strip_prefix("pool of ")
            .filter(|size| size.parse::<u32>().is_ok())
            .map(|size| ("pool", Some(size))),
    }
}

fn at_once(
    driver: &dyn Driver,
    experiment: &Experiment,
    operation: &str,
    about: &Map<String, Json>,
    session: &mut dyn Session,
) -> Result<()> {
    let (clients, requests) = AT_ONCE;
    let count = clients.to_string();
    let mut values = vec![(CLIENTS.name, count.as_str())];
    let connection = about.get("connection").and_then(Json::as_str).and_then(axes_of_connection);
    if experiment.info.name == "connect"
        && let Some((word, pool)) = connection
    {
        values.push(("connection", word));
        values.extend(pool.map(|size| ("pool", size)));
    }
    let cell: Cell = experiment.info.baseline(&values)?;
    let plan = experiment.plan_via.ok_or_else(|| Error::unsupported("it has no pages"))?;
    let workload = plan(&cell)?.workload()?;
    let mut state = DatasetState::default();
    let mut namespace = driver.namespace()?;
    workload.before(Before { operation, state: &mut state, namespace: &mut *namespace, session })?;
    let one = |index: usize| -> Result<ClientSummary> {
        let client = Client { index, count: clients, seed: index as u64 + 1, trial: 1 };
        let mut transaction = workload.transaction(operation, &state, client)?;
        let mut session = driver.connect(&ConnectOptions::default())?;
        transaction.attach(&mut *session)?;
        let mut recorder = Recorder::default();
        for _ in 0..requests {
            transaction.prepare_input();
            transaction.run(&mut *session, &mut recorder)?;
            transaction.check(&mut recorder)?;
        }
        session.close()?;
        Ok(recorder.into_summary(client, requests))
    };
    let done = thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..clients).map(|index| scope.spawn(move || one(index))).collect();
        let panicked = || Error::new(ErrorKind::Internal, "a client panicked");
        threads.into_iter().map(|thread| thread.join().map_err(|_| panicked())?).collect::<Result<Vec<_>>>()
    })?;
    workload.after(After { operation, state: &state, session, clients: &done }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_of_the_contract_is_understood() {
        assert_eq!(axes_of_connection("pool of 16"), Some(("pool", Some("16"))));
        assert_eq!(axes_of_connection("kept"), Some(("kept", None)));
        for text in ["", "pool", "pool of x", "Kept"] {
            assert_eq!(axes_of_connection(text), None, "{text}");
        }
    }
}
