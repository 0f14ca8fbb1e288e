//! The web application through one application, or through several before one database. Each request is one page, and
//! each answer is checked.

use super::answer;
use super::codes::{Codes, Source};
use super::user::User;
use super::{INFO, LOG, REQUEST, USER, Written};
use crate::defect::no_operation;
use crate::prelude::*;
use crate::via::{Added, PageClient, PageSet, facts, path};
use serde::Deserialize;

/// The application's description of its data on `/webapp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
struct Facts {
    seed: u64,
    /// The number of users; their numbers are 1 to this.
    records: u64,
    /// The number of towns.
    codes: u64,
    /// Identifies the list of towns.
    codes_digest: u64,
}

#[derive(Debug)]
pub(super) struct Data {
    facts: Facts,
    codes: Arc<Codes>,
}

pub(super) struct WebPages {
    /// The file of the application's postal codes, if they were not generated.
    file: Option<String>,
}

impl WebPages {
    pub(super) fn new(cell: &Cell) -> Self {
        let file = match Source::of(cell, 0, 1) {
            Source::File(path) => Some(path),
            Source::Generated { .. } => None,
        };
        Self { file }
    }

    /// The application's postal codes, computed here.
    fn codes(&self, facts: &Facts) -> Result<Arc<Codes>> {
        let source = match &self.file {
            Some(path) => Source::File(path.clone()),
            None => Source::Generated { seed: facts.seed, count: facts.codes },
        };
        let codes = Codes::get(&source)?;
        if codes.digest == facts.codes_digest {
            return Ok(codes);
        }
        let what = "the application has different postal codes";
        Err(Error::mismatch(what)
            .hint("if it reads them from a file, pass the same file with --postal-codes"))
    }
}

/// Requests a page and compares all of it.
fn ask_for(session: &mut dyn Session, path: &str, expected: &[u8]) -> Result<()> {
    if page::get(session, path)? == expected {
        return Ok(());
    }
    Err(Error::mismatch(format!("read back: {path} differs from what was written")))
}

impl PageSet for WebPages {
    type Data = Data;
    /// What the application acknowledged to a client.
    type Acknowledged = Written;

    const INFO: &'static ExperimentInfo = &INFO;
    const CLIENT_BYTES: u64 = 128_000;
    const STORED_BYTES: Option<u64> = None;

    fn data(&self, session: &mut dyn Session) -> Result<Data> {
        let facts: Facts = facts(session, &INFO, "its data")?;
        if facts.records == 0 || !(1..=super::codes::MOST).contains(&facts.codes) {
            return Err(Error::mismatch("the application reports no users or no postal codes"));
        }
        Ok(Data { facts, codes: self.codes(&facts)? })
    }

    fn client(&self, operation: &str, _client: Client, data: Arc<Data>) -> Result<Box<dyn PageClient>> {
        if operation != REQUEST {
            return Err(no_operation(INFO.name, operation));
        }
        Ok(Box::new(Request {
            data,
            expected: Vec::new(),
            user: User::default(),
            acknowledged: Written::default(),
        }))
    }

    fn verify(
        &self,
        session: &mut dyn Session,
        data: &Data,
        all: &[&Written],
        added: &Added,
    ) -> Result<Verification> {
        let mut acknowledged = Written::default();
        for one in all {
            acknowledged.lines.extend(&one.lines);
            acknowledged.changes += one.changes;
            for (user, version) in &one.versions {
                acknowledged.note_version(*user, *version);
            }
        }
        acknowledged.lines.sort_unstable();
        acknowledged.lines.dedup_by_key(|(line, _)| *line);
        let counted = added.verify(session, ["lines of the log", "numbers"], acknowledged.lines.len())?;
        let mut expected = Vec::new();
        for (line, user) in &acknowledged.lines {
            expected.clear();
            answer::line(data.facts.seed, *line, *user, &mut expected);
            ask_for(session, &format!("{}?key={line}", path(&INFO, LOG)), &expected)?;
        }
        let mut user = User::default();
        for (number, version) in &acknowledged.versions {
            user.become_version(data.facts.seed, &data.codes, *number, *version);
            expected.clear();
            answer::user(&user, &mut expected);
            ask_for(session, &format!("{}?key={number}", path(&INFO, USER)), &expected)?;
        }
        let records = (acknowledged.lines.len() + acknowledged.versions.len()) as u64;
        // Each page that wrote a line was compared.
        let (answers, writes) = (added.rows, added.rows + acknowledged.changes);
        Ok(Verification { answers, writes, records, counted, read_back: records })
    }
}

/// Requests pages with users of the application's choice.
struct Request {
    data: Arc<Data>,
    expected: Vec<u8>,
    user: User,
    acknowledged: Written,
}

impl PageClient for Request {
    fn draw(&mut self, page: &mut String) {
        page.push_str(&path(&INFO, REQUEST));
    }

    fn check(&mut self, _path: &str, body: &[u8]) -> Result<()> {
        let Data { facts, codes } = &*self.data;
        let result = answer::read(body)?;
        let answer::RequestResult { user, version, line, changed, .. } = result;
        if !(1..=facts.records).contains(&user) {
            return Err(Error::mismatch(format!("user {user} logged in but does not exist")));
        }
        self.user.become_version(facts.seed, codes, user, version);
        self.expected.clear();
        answer::request(facts.seed, codes, &result, &self.user, &mut self.expected);
        if body != self.expected {
            return Err(Error::mismatch(format!(
                "the answer with line {line} of the log is wrong for user {user} at version {version}"
            )));
        }
        self.acknowledged.lines.push((line, user));
        if let Some(changed) = changed {
            self.acknowledged.changes += 1;
            self.acknowledged.note_version(user, changed);
        }
        Ok(())
    }

    fn rows_written(&self) -> u64 {
        self.acknowledged.lines.len() as u64
    }

    fn notes(&mut self) -> Option<Notes> {
        Some(Box::new(std::mem::take(&mut self.acknowledged)))
    }
}
