//! Logs of PostgreSQL in the formats csvlog, jsonlog and stderr (manual, "Error Reporting and Logging"). What a duration says was done is written by
//! `exec_simple_query`, `exec_parse_message`, `exec_bind_message` and `exec_execute_message` of `postgres.c`.

mod prefixed;

use super::lines::{self, Lines, duration};
use super::{Entry, Log, UNREAD, What};
use crate::file::Known;
use kurabe_core::Result;
use kurabe_protocol::sql::{Dialect, Kind, tokens};
use kurabe_wire::view::{Exchange, Parameter, Step};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};

/// Lines in which the first entry must begin.
const LOOKED_AT: u64 = 1_000;
const UNNAMED: &str = "<unnamed>";
const HINT: &str = "set log_min_duration_statement = 0, log_parameter_max_length = -1, log_parameter_max_length_on_error = -1, \
                    log_disconnections = on, lc_messages = 'C', and log_line_prefix = '%m [%p] %q%u@%d ', or log_destination = 'csvlog' or 'jsonlog'";

pub(super) struct Postgres {
    lines: Lines,
    /// Whether it is in the format stderr.
    is_prefixed: bool,
    sessions: HashMap<String, Session>,
    unread: u64,
    /// Requests without a duration, and durations without a request.
    timeless: u64,
    textless: u64,
    /// The length of the longest value that is whole.
    longest: usize,
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

impl Postgres {
    /// # Errors
    /// If it is no such log. A file that was cut off may begin within an entry.
    pub(super) fn new(mut lines: Lines) -> Result<Self> {
        let mut unread = 0;
        let is_prefixed = loop {
            match lines.peek() {
                Some(line) if begins(line) => break false,
                Some(line) if prefixed::begins(line) => break true,
                _ => {}
            }
            if unread == LOOKED_AT || lines.take()?.is_none() {
                let what = "it is no log of PostgreSQL whose lines begin with time and process";
                return Err(lines.wrong(what).hint(HINT));
            }
            unread += 1;
        };
        Ok(Self {
            lines,
            is_prefixed,
            sessions: HashMap::new(),
            unread,
            timeless: 0,
            textless: 0,
            longest: 0,
        })
    }

    /// The next entry; `None` at the end, and an empty one for what belongs to none.
    fn read(&mut self) -> Result<Option<Line>> {
        if self.is_prefixed {
            return prefixed::next(&mut self.lines);
        }
        loop {
            let is_json = self.lines.peek().is_some_and(|line| line.starts_with('{'));
            let text = if is_json { self.lines.take()? } else { self.lines.take_quoted(begins)? };
            let Some(text) = text else { return Ok(None) };
            if !text.trim().is_empty() {
                return Ok(Some(Line::read(&text).unwrap_or_default()));
            }
        }
    }

    fn take(&mut self, line: Line, at: u64) -> Option<Entry> {
        // A prefix need not have the user.
        let has_user = self.is_prefixed || !line.user.is_empty();
        if !has_user || !matches!(line.backend_type.as_str(), "" | "client backend") {
            return None;
        }
        // Without `log_disconnections`, a process of the same number is another session when it begins.
        let is_new = self.is_prefixed && line.message.starts_with("connection received: ");
        let (what, time) = if is_new || line.message.starts_with("disconnection: ") {
            self.forget(&line.session_id);
            (What::Ended, 0)
        } else {
            let (exchange, time) = match line.error_severity.as_str() {
                "LOG" => self.told(&line)?,
                "ERROR" | "FATAL" | "PANIC" if !line.statement.is_empty() => (self.failed(&line), 0),
                _ => return None,
            };
            (What::Asked(Box::new(exchange)), time)
        };
        Some(Entry { session: line.session_id, user: line.user, database: line.dbname, at, time, what })
    }

    /// A request, or a step of one, with its duration if that is not said later.
    fn told(&mut self, line: &Line) -> Option<(Exchange, u64)> {
        let session = self.sessions.entry(line.session_id.clone()).or_default();
        let Some(rest) = line.message.strip_prefix("duration: ") else {
            let begun = session.begun(&line.message, &line.detail, &mut self.longest)?;
            self.timeless += u64::from(session.pending.replace(begun).is_some());
            return None;
        };
        let (time, rest) = rest.split_once(" ms")?;
        let time = duration(time, 1e6)?;
        let rest = rest.trim_start();
        if rest.is_empty() {
            if let Some(exchange) = session.pending.take() {
                return Some((exchange, time + std::mem::take(&mut session.before)));
            }
            if matches!(line.ps.as_str(), "PARSE" | "BIND" | "") {
                session.before = session.before.saturating_add(time);
            } else {
                session.before = 0;
                self.textless += 1;
            }
            return None;
        }
        if let Some((name, text)) = named(rest, "parse ") {
            if name == UNNAMED {
                session.before = time;
                return None;
            }
            session.prepared.insert(text.to_owned());
            let exchange = Exchange { text: text.to_owned(), step: Step::Prepare, ..Exchange::default() };
            return Some((exchange, time));
        }
        if rest.starts_with("bind ") {
            session.before = session.before.saturating_add(time);
            return None;
        }
        let Some(exchange) = session.begun(rest, &line.detail, &mut self.longest) else {
            self.textless += 1;
            return None;
        };
        let pending = session.pending.take();
        self.timeless += u64::from(pending.is_some_and(|pending| pending.text != exchange.text));
        Some((exchange, time.saturating_add(std::mem::take(&mut session.before))))
    }

    /// A request that failed. How long it took is not in a log.
    fn failed(&mut self, line: &Line) -> Exchange {
        let session = self.sessions.entry(line.session_id.clone()).or_default();
        session.before = 0;
        let pending = session.pending.take();
        self.timeless += u64::from(pending.as_ref().is_some_and(|pending| pending.text != line.statement));
        let mut exchange = pending.filter(|pending| pending.text == line.statement).unwrap_or_else(|| {
            let is_portal = |line: &&str| line.contains("with parameters: ") && !line.starts_with("PL/");
            let found = line.context.lines().find(is_portal).and_then(parameters);
            let step = if session.prepared.contains(&line.statement) {
                Step::Execute
            } else if has_places(&line.statement) {
                Step::Bound
            } else {
                Step::Text
            };
            let cut = is_cut(&line.statement, found.as_deref(), &mut self.longest);
            let parameters = found.unwrap_or_default();
            Exchange { text: line.statement.clone(), step, parameters, cut, ..Exchange::default() }
        });
        exchange.error = Some(line.state_code.clone());
        exchange
    }

    fn forget(&mut self, session: &str) {
        let known = self.sessions.remove(session);
        self.timeless += u64::from(known.is_some_and(|known| known.pending.is_some()));
    }
}

impl Log for Postgres {
    fn next(&mut self) -> Result<Option<Entry>> {
        loop {
            let Some(line) = self.read()? else {
                self.timeless +=
                    self.sessions.drain().filter(|(_, one)| one.pending.is_some()).count() as u64;
                return Ok(None);
            };
            let has_lost = self.lines.has_lost();
            let Some(at) = lines::time(&line.timestamp) else {
                self.unread += 1;
                continue;
            };
            let Some(mut entry) = self.take(line, at) else { continue };
            if let What::Asked(exchange) = &mut entry.what {
                exchange.cut |= has_lost;
            }
            return Ok(Some(entry));
        }
    }

    fn known(&self) -> Known {
        if self.is_prefixed { Known::Times } else { Known::Errors }
    }

    fn left_out(&self) -> Vec<(&'static str, u64)> {
        vec![
            (UNREAD, self.unread),
            ("requests without a duration", self.timeless),
            ("durations without a statement", self.textless),
        ]
    }

    fn hint(&self) -> &'static str {
        HINT
    }
}

impl Session {
    /// A request that is executed.
    fn begun(&mut self, said: &str, detail: &str, longest: &mut usize) -> Option<Exchange> {
        if let Some(text) = said.strip_prefix("statement: ") {
            self.before = 0;
            return Some(Exchange { text: text.to_owned(), ..Exchange::default() });
        }
        let goes_on = named(said, "execute fetch from ");
        let (name, text) = goes_on.or_else(|| named(said, "execute "))?;
        let parameters = parameters(detail);
        let is_prepared = name != UNNAMED && self.prepared.contains(text);
        Some(Exchange {
            text: text.to_owned(),
            step: if is_prepared { Step::Execute } else { Step::Bound },
            // How many rows each part has is not in a log.
            cut: goes_on.is_some() || is_cut(text, parameters.as_deref(), longest),
            goes_on: goes_on.is_some(),
            parameters: parameters.unwrap_or_default(),
            ..Exchange::default()
        })
    }
}

/// Whether an entry begins with this line. The second field of csvlog has quotation marks, which are doubled within a value.
fn begins(line: &str) -> bool {
    if line.starts_with('{') {
        return Line::read(line).is_some();
    }
    let Some((time, rest)) = line.split_once(',') else { return false };
    let is_user = rest.starts_with(',') || rest.strip_prefix('"').is_some_and(|rest| !rest.starts_with('"'));
    is_user && lines::time(time).is_some()
}

/// The name before a statement, without that of its portal, and the statement.
fn named<'a>(said: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let (name, text) = said.strip_prefix(word)?.split_once(": ")?;
    Some((name.split('/').next().unwrap_or(name), text))
}

fn has_places(text: &str) -> bool {
    tokens(text, Dialect::POSTGRES).any(|token| token.kind == Kind::Parameter)
}

/// Whether values of an execution are missing. `log_parameter_max_length` ends those that are longer with an ellipsis, so that none is
/// much longer; `longest` is the length of the longest one so far that has none.
fn is_cut(text: &str, parameters: Option<&[Parameter]>, longest: &mut usize) -> bool {
    let Some(parameters) = parameters else { return has_places(text) };
    let values = || parameters.iter().filter_map(Parameter::bytes);
    let (ends, whole): (Vec<&[u8]>, Vec<&[u8]>) = values().partition(|value| value.ends_with(b"..."));
    *longest = whole.iter().map(|value| value.len()).fold(*longest, usize::max);
    // A character of several bytes is left out whole.
    ends.iter().any(|value| value.len() + 1 >= *longest)
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
        found.push(Parameter::new(0, false, value));
        match after.strip_prefix(", ") {
            Some(next) => rest = next,
            None => return Some(found),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    timestamp: String,
    user: String,
    dbname: String,
    /// What the session does: the tag of its command.
    ps: String,
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
            ps: field(7),
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
