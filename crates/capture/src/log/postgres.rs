//! Logs of PostgreSQL in the formats csvlog and jsonlog (manual, "Error Reporting and Logging"). What a duration says was done is written by
//! `exec_simple_query`, `exec_parse_message`, `exec_bind_message` and `exec_execute_message` of `postgres.c`.

use super::lines::{self, Lines, duration};
use super::{Entry, Log, What};
use crate::file::Known;
use kurabe_core::Result;
use kurabe_wire::statement::{Dialect, split};
use kurabe_wire::view::{Exchange, Parameter, Step};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};

/// Lines in which the first entry must begin.
const LOOKED_AT: u64 = 1_000;
const UNNAMED: &str = "<unnamed>";
const HINT: &str = "set log_min_duration_statement = 0, log_parameter_max_length = -1, lc_messages = 'C', and log_destination = 'csvlog' or \
                    'jsonlog'";

pub(super) struct Postgres {
    lines: Lines,
    sessions: HashMap<String, Session>,
    unread: u64,
    timeless: u64,
}

#[derive(Default)]
struct Session {
    /// The time of steps before an execution, in nanoseconds.
    before: u64,
    /// What is under way; its duration follows.
    pending: Option<Exchange>,
    /// Statements that were prepared under a name.
    prepared: HashSet<String>,
}

/// A line, by the names of jsonlog.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    timestamp: String,
    user: String,
    dbname: String,
    session_id: String,
    error_severity: String,
    state_code: String,
    message: String,
    detail: String,
    context: String,
    statement: String,
    backend_type: String,
}

impl Line {
    fn read(text: &str) -> Option<Self> {
        if text.starts_with('{') {
            return serde_json::from_str(text).ok();
        }
        let mut fields = lines::fields(text);
        let has_all = fields.len() >= 23;
        let mut field = |place: usize| fields.get_mut(place).map(std::mem::take).unwrap_or_default();
        has_all.then(|| Self {
            timestamp: field(0),
            user: field(1),
            dbname: field(2),
            session_id: field(5),
            error_severity: field(11),
            state_code: field(12),
            message: field(13),
            detail: field(14),
            context: field(18),
            statement: field(19),
            backend_type: field(23),
        })
    }
}

impl Postgres {
    /// # Errors
    /// If it is no such log. A file that was cut off may begin within an entry.
    pub(super) fn new(mut lines: Lines) -> Result<Self> {
        let is_entry =
            |line: &str| Line::read(line).is_some_and(|line| lines::time(&line.timestamp).is_some());
        let mut unread = 0;
        // The first line of an entry has what is needed, or quotation marks that are open.
        while !lines.peek().is_some_and(|line| is_entry(line) || lines::fields(line).len() >= 14) {
            if unread == LOOKED_AT || lines.take()?.is_none() {
                let what = "it is no log of PostgreSQL in the format csvlog or jsonlog";
                return Err(lines.wrong(what).hint(HINT));
            }
            unread += 1;
        }
        Ok(Self { lines, sessions: HashMap::new(), unread, timeless: 0 })
    }

    fn take(&mut self, line: Line, at: u64) -> Option<Entry> {
        let is_client = matches!(line.backend_type.as_str(), "" | "client backend") && !line.user.is_empty();
        if !is_client {
            return None;
        }
        if line.message.starts_with("disconnection: ") {
            self.forget(&line.session_id);
            return Some(Entry {
                at,
                session: line.session_id,
                user: line.user,
                database: line.dbname,
                ..Entry::default()
            });
        }
        let session = self.sessions.entry(line.session_id.clone()).or_default();
        let (exchange, time) = match line.error_severity.as_str() {
            "LOG" => {
                let Some(rest) = line.message.strip_prefix("duration: ") else {
                    let begun = session.begun(&line.message, &line.detail)?;
                    self.timeless += u64::from(session.pending.replace(begun).is_some());
                    return None;
                };
                session.took(rest, &line.detail)?
            }
            "ERROR" if !line.statement.is_empty() => (session.failed(&line), 0),
            _ => return None,
        };
        let what = What::Asked(Box::new(exchange));
        Some(Entry { session: line.session_id, user: line.user, database: line.dbname, at, time, what })
    }

    fn forget(&mut self, session: &str) {
        let known = self.sessions.remove(session);
        self.timeless += u64::from(known.is_some_and(|known| known.pending.is_some()));
    }
}

impl Log for Postgres {
    fn next(&mut self) -> Result<Option<Entry>> {
        loop {
            let is_json = self.lines.peek().is_some_and(|line| line.starts_with('{'));
            let line = if is_json { self.lines.take()? } else { self.lines.take_quoted()? };
            let Some(text) = line else {
                self.timeless +=
                    self.sessions.drain().filter(|(_, one)| one.pending.is_some()).count() as u64;
                return Ok(None);
            };
            let read = Line::read(&text).and_then(|line| lines::time(&line.timestamp).map(|at| (line, at)));
            match read {
                Some((line, at)) => {
                    if let Some(entry) = self.take(line, at) {
                        return Ok(Some(entry));
                    }
                }
                None => self.unread += u64::from(!text.trim().is_empty()),
            }
        }
    }

    fn known(&self) -> Known {
        Known::Errors
    }

    fn left_out(&self) -> [u64; 2] {
        [self.unread, self.timeless]
    }

    fn hint(&self) -> &'static str {
        HINT
    }
}

impl Session {
    /// A duration, and what took it if that is said with it.
    fn took(&mut self, text: &str, detail: &str) -> Option<(Exchange, u64)> {
        let (time, rest) = text.split_once(" ms")?;
        let time = duration(time, 1e6)?;
        let rest = rest.trim_start();
        if rest.is_empty() {
            let Some(exchange) = self.pending.take() else {
                // A step before an execution.
                self.before += time;
                return None;
            };
            return Some((exchange, time + std::mem::take(&mut self.before)));
        }
        if let Some((name, text)) = named(rest, "parse ") {
            if name == UNNAMED {
                self.before = time;
                return None;
            }
            self.prepared.insert(text.to_owned());
            return Some((
                Exchange { text: text.to_owned(), step: Step::Prepare, ..Exchange::default() },
                time,
            ));
        }
        if rest.starts_with("bind ") {
            self.before += time;
            return None;
        }
        let exchange = self.begun(rest, detail)?;
        self.pending = None;
        Some((exchange, time + std::mem::take(&mut self.before)))
    }

    /// A request that is executed.
    fn begun(&self, said: &str, detail: &str) -> Option<Exchange> {
        if let Some(text) = said.strip_prefix("statement: ") {
            // Its data is not in a log.
            let start = text.trim_start().get(..4).unwrap_or_default().to_ascii_lowercase();
            let cut = start == "copy" && text.to_ascii_lowercase().contains("stdin");
            return Some(Exchange { text: text.to_owned(), cut, ..Exchange::default() });
        }
        let goes_on = named(said, "execute fetch from ");
        let (name, text) = goes_on.or_else(|| named(said, "execute "))?;
        let parameters = parameters(detail);
        // How many rows each part has is not in a log.
        let cut = goes_on.is_some() || is_cut(text, parameters.as_deref());
        let step = if name != UNNAMED && self.prepared.contains(text) { Step::Execute } else { Step::Bound };
        let parameters = parameters.unwrap_or_default();
        Some(Exchange {
            text: text.to_owned(),
            step,
            parameters,
            goes_on: goes_on.is_some(),
            cut,
            ..Exchange::default()
        })
    }

    /// A request that failed. How long it took is not in a log.
    fn failed(&mut self, line: &Line) -> Exchange {
        self.before = 0;
        let pending = self.pending.take().filter(|pending| pending.text == line.statement);
        let mut exchange = pending.unwrap_or_else(|| {
            let found = parameters(&line.context);
            let has_places = has_places(&line.statement);
            Exchange {
                text: line.statement.clone(),
                step: if has_places { Step::Bound } else { Step::Text },
                cut: is_cut(&line.statement, found.as_deref()),
                parameters: found.unwrap_or_default(),
                ..Exchange::default()
            }
        });
        exchange.error = Some(line.state_code.clone());
        exchange
    }
}

/// The name before a statement, without that of its portal, and the statement.
fn named<'a>(said: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let (name, text) = said.strip_prefix(word)?.split_once(": ")?;
    Some((name.split('/').next().unwrap_or(name), text))
}

fn has_places(text: &str) -> bool {
    let template = split(text, Dialect::Postgres).template;
    let mut places = template.match_indices('$');
    places.any(|(at, _)| template[at + 1..].starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether values of an execution are missing. `log_parameter_max_length` ends those that are cut off with an ellipsis.
fn is_cut(text: &str, parameters: Option<&[Parameter]>) -> bool {
    match parameters {
        None => has_places(text),
        Some(all) => all.iter().any(|one| one.value.as_ref().is_some_and(|value| value.ends_with(b"..."))),
    }
}

/// The values of `parameters: $1 = '7', $2 = NULL`.
fn parameters(detail: &str) -> Option<Vec<Parameter>> {
    let (_, mut rest) = detail.split_once("arameters: ")?;
    let mut found = Vec::new();
    loop {
        let (place, after) = rest.split_once(" = ")?;
        place.strip_prefix('$')?.parse::<u16>().ok()?;
        let (value, after) = match after.strip_prefix('\'') {
            None => (None, after.strip_prefix("NULL")?),
            Some(quoted) => {
                let mut at = 0;
                loop {
                    at += quoted[at..].find('\'')?;
                    if !quoted[at + 1..].starts_with('\'') {
                        break;
                    }
                    at += 2;
                }
                (Some(quoted[..at].replace("''", "'").into_bytes()), &quoted[at + 1..])
            }
        };
        found.push(Parameter { kind: 0, binary: false, value });
        match after.strip_prefix(", ") {
            Some(next) => rest = next,
            None => return Some(found),
        }
    }
}
