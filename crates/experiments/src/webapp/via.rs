//! The web application through one application, or through several before one database. Each request is one page, and
//! each answer is checked.

use super::answer;
use super::codes::{Codes, Source};
use super::info::{INFO, LOG, REQUEST, USER};
use super::inputs::Inputs;
use super::user::User;
use super::written::Written;
use crate::prelude::*;
use crate::via::{Added, PageClient, PageSet, facts, path};
use serde::Deserialize;
use std::time::{SystemTime, UNIX_EPOCH};

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
    #[serde(default)]
    inputs: Chooser,
}

/// Who chooses what a request does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Chooser {
    #[default]
    Application,
    Client,
}

#[derive(Debug)]
pub(super) struct Data {
    facts: Facts,
    codes: Arc<Codes>,
    /// The time at which the trial began, in microseconds since 1970. Versions and origins that clients choose are
    /// higher: a client makes fewer than a million requests a second, so that they rise from trial to trial.
    began: u64,
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
    fn data(&self, session: &mut dyn Session) -> Result<Data> {
        let facts: Facts = facts(session, &INFO, "its data")?;
        if facts.records == 0 || !(1..=super::codes::MAX).contains(&facts.codes) {
            return Err(Error::mismatch("the application reports no users or no postal codes"));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Data { facts, codes: self.codes(&facts)?, began: now.as_micros() as u64 })
    }

    fn client(&self, _: &str, client: Client, data: Arc<Data>) -> Result<Box<dyn PageClient>> {
        let Data { facts, codes, began } = &*data;
        let inputs = (facts.inputs == Chooser::Client)
            .then(|| Inputs::new(client, facts.records, facts.seed, codes, *began));
        Ok(Box::new(Request { data, inputs, expected: Vec::new(), user: User::default() }))
    }

    fn verify(
        &self,
        session: &mut dyn Session,
        data: &Data,
        clients: &[ClientSummary],
        added: &Added,
    ) -> Result<Verification> {
        let mut written = Written::default();
        clients.iter().filter_map(ClientSummary::notes).for_each(|notes| written.merge(notes));
        written.lines.sort_unstable();
        written.lines.dedup_by_key(|(line, ..)| *line);
        let counted = added.verify(session, ["lines of the log", "numbers"], written.lines.len())?;
        let mut expected = Vec::new();
        for (line, user, origin) in &written.lines {
            expected.clear();
            answer::line(data.facts.seed, *line, *origin, *user, &mut expected);
            ask_for(session, &format!("{}?key={line}", path(&INFO, LOG)), &expected)?;
        }
        let mut user = User::default();
        for (number, version) in &written.versions {
            user.become_version(data.facts.seed, &data.codes, *number, *version);
            expected.clear();
            answer::user(&user, &mut expected);
            ask_for(session, &format!("{}?key={number}", path(&INFO, USER)), &expected)?;
        }
        let records = written.records();
        // Each page that wrote a line was compared.
        let (answers, writes) = (added.rows, added.rows + written.changes);
        Ok(Verification { answers, writes, records, counted, read_back: records })
    }
}

/// Checks the page that shows a user: all its fields, at the version that it has. `about` is the application's description.
///
/// # Errors
/// [`Mismatch`](ErrorKind::Mismatch) if it is another user or differs from the known data.
pub(crate) fn check_user_page(about: serde_json::Value, number: u64, body: &[u8]) -> Result<()> {
    let facts: Facts = serde_json::from_value(about)
        .map_err(|error| Error::mismatch(format!("the application does not report its data: {error}")))?;
    let codes = WebPages { file: None }.codes(&facts)?;
    let text = std::str::from_utf8(body).unwrap_or_default();
    let version = text.split('\t').nth(7).and_then(|version| version.parse().ok());
    let version = version.ok_or_else(|| {
        Error::mismatch("expected 'user' and its eight fields with tabs between them, and a line feed")
    })?;
    let (mut user, mut expected) = (User::default(), Vec::new());
    user.become_version(facts.seed, &codes, number, version);
    answer::user(&user, &mut expected);
    if body == expected {
        return Ok(());
    }
    let expected = String::from_utf8_lossy(&expected).into_owned();
    Err(Error::mismatch(format!("user {number} differs; expected {:?}", expected.trim_end())))
}

/// Requests pages, with inputs of the application's choice or of the client's.
struct Request {
    data: Arc<Data>,
    inputs: Option<Inputs>,
    expected: Vec<u8>,
    user: User,
}

impl PageClient for Request {
    fn draw(&mut self, page: &mut String) {
        page.push_str(&path(&INFO, REQUEST));
        if let Some(inputs) = &mut self.inputs {
            inputs.draw(page);
        }
    }

    fn check(&mut self, _path: &str, body: &[u8], recorder: &mut Recorder) -> Result<()> {
        let Data { facts, codes, .. } = &*self.data;
        let result = answer::read(body)?;
        let answer::RequestResult { user, version, line, changed, .. } = result;
        if !(1..=facts.records).contains(&user) {
            return Err(Error::mismatch(format!("user {user} logged in but does not exist")));
        }
        let origin = self.inputs.as_mut().map_or(Ok(line), |inputs| inputs.check(&result))?;
        self.user.become_version(facts.seed, codes, user, version);
        self.expected.clear();
        answer::request(facts.seed, codes, &result, origin, &self.user, &mut self.expected);
        if body != self.expected {
            return Err(Error::mismatch(format!(
                "the answer with line {line} of the log is wrong for user {user} at version {version}"
            )));
        }
        recorder.rows_written(1);
        recorder.notes(Written::default).request(line, user, origin, changed);
        Ok(())
    }
}
