//! Logs of MySQL and MariaDB, in which prepared statements have their values: the slow query log (MySQL manual, "The Slow Query Log"; MariaDB,
//! "Slow Query Log Overview"), which has every statement if `long_query_time` is 0, and the general query log, which has no durations.

use super::lines::{self, Lines, duration};
use super::{Entry, Log, What};
use crate::file::Known;
use kurabe_core::Result;
use kurabe_wire::view::Exchange;
use std::collections::HashMap;

const HINT: &str = "set slow_query_log = ON, long_query_time = 0, log_output = 'FILE', and for codes of errors MySQL's log_slow_extra = ON";
/// Lines in which the first entry must begin.
const LOOKED_AT: u64 = 1_000;

struct Slow {
    lines: Lines,
    /// What the log said last: it leaves out what did not change.
    at: u64,
    database: String,
    has_errors: bool,
    unread: u64,
}

/// What the comments before a statement say.
#[derive(Default)]
struct Head {
    user: String,
    thread: String,
    schema: Option<String>,
    time: Option<u64>,
    rows: u64,
    affected: u64,
    error: Option<String>,
}

/// A log of either kind.
///
/// # Errors
/// If it is none.
pub(super) fn open(mut lines: Lines) -> Result<Box<dyn Log>> {
    for _ in 0..LOOKED_AT {
        match lines.peek() {
            None => break,
            Some(line) if begins(line) => {
                return Ok(Box::new(Slow {
                    lines,
                    at: 0,
                    database: String::new(),
                    has_errors: false,
                    unread: 0,
                }));
            }
            Some(line) if General::entry(line).is_some() => {
                return Ok(Box::new(General { lines, at: 0, sessions: HashMap::new(), unread: 0 }));
            }
            Some(_) => drop(lines.take()?),
        }
    }
    Err(lines.wrong("it is no slow or general query log of MySQL or MariaDB").hint(HINT))
}

impl Slow {
    /// Reads comments up to the statement.
    fn head(&mut self) -> Result<Head> {
        let mut head = Head::default();
        while let Some(line) = self.lines.peek().and_then(|line| line.strip_prefix("# ")) {
            if line.starts_with(COMMAND) {
                break;
            }
            if let Some(text) = line.strip_prefix("Time: ") {
                match lines::time(text) {
                    Some(at) => self.at = at,
                    None => self.unread += 1,
                }
            } else {
                let user = line.strip_prefix("User@Host: ").and_then(|text| text.split('[').next());
                head.user = user.map_or(head.user, |user| user.trim().to_owned());
                let words: Vec<&str> = line.split_whitespace().collect();
                for (n, name) in words.iter().enumerate() {
                    let Some(name) = name.strip_suffix(':') else { continue };
                    // Without a value, the next name follows.
                    let value = words.get(n + 1).filter(|value| !value.ends_with(':'));
                    head.set(name, value.copied().unwrap_or_default());
                    self.has_errors |= name == "Errno";
                }
            }
            self.lines.take()?;
        }
        Ok(head)
    }

    /// Reads the statement up to the next comments.
    fn statement(&mut self) -> Result<String> {
        let mut text = String::new();
        while let Some(line) = self.lines.peek().filter(|line| !begins(line)) {
            if is_start(line) {
                while self.lines.peek().is_some_and(|line| !begins(line)) {
                    self.lines.take()?;
                }
                break;
            }
            let database = line.strip_prefix("use ").filter(|_| text.is_empty());
            if let Some(database) = database.and_then(|rest| rest.strip_suffix(';')) {
                database.trim_matches('`').clone_into(&mut self.database);
            } else if !(text.is_empty() && line.starts_with("SET timestamp=")) {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(line);
            }
            self.lines.take()?;
        }
        text.truncate(text.trim_end().trim_end_matches(';').len());
        Ok(text)
    }
}

/// What the log calls commands of the protocol that are no statements.
const COMMAND: &str = "administrator command: ";

impl Head {
    fn set(&mut self, name: &str, value: &str) {
        let count = || value.parse().unwrap_or(0);
        match name {
            "Id" | "Thread_id" => value.clone_into(&mut self.thread),
            "Query_time" => self.time = duration(value, 1e9),
            "Rows_sent" => self.rows = count(),
            "Rows_affected" => self.affected = count(),
            "Errno" => self.error = Some(value.to_owned()).filter(|code| code != "0"),
            "Schema" => self.schema = Some(value.to_owned()),
            _ => {}
        }
    }
}

impl Log for Slow {
    fn next(&mut self) -> Result<Option<Entry>> {
        while self.lines.peek().is_some() {
            let head = self.head()?;
            let text = self.statement()?;
            let Some(time) = head.time.filter(|_| !text.is_empty() && !head.thread.is_empty()) else {
                self.unread += 1;
                continue;
            };
            let mut what = What::Ended;
            if let Some(command) = text.trim_start_matches("# ").strip_prefix(COMMAND) {
                if command != "Quit" {
                    continue;
                }
            } else {
                let Head { rows, affected, error, .. } = head;
                what = What::Asked(Box::new(Exchange { rows, affected, error, ..asked(text) }));
            }
            // A session without a database counts to the last one.
            if let Some(schema) = head.schema.filter(|schema| !schema.is_empty()) {
                self.database = schema;
            }
            let database = self.database.clone();
            return Ok(Some(Entry {
                session: head.thread,
                user: head.user,
                database,
                at: self.at,
                time,
                what,
            }));
        }
        Ok(None)
    }

    fn known(&self) -> Known {
        if self.has_errors { Known::Errors } else { Known::Times }
    }

    fn left_out(&self) -> [u64; 2] {
        [self.unread, 0]
    }

    fn hint(&self) -> &'static str {
        HINT
    }
}

/// Whether an entry begins with this line.
fn begins(line: &str) -> bool {
    ["# Time: ", "# User@Host: "].iter().any(|start| line.starts_with(start))
}

/// A statement, without its times.
fn asked(text: String) -> Exchange {
    // Its data is not in a log.
    let start = text.get(..9).unwrap_or_default();
    Exchange { cut: start.eq_ignore_ascii_case("load data"), text, ..Exchange::default() }
}

/// The general query log, which has each statement as it begins.
struct General {
    lines: Lines,
    at: u64,
    /// User and database by connection.
    sessions: HashMap<String, [String; 2]>,
    unread: u64,
}

impl General {
    /// The time of a line that begins an entry, if it has one, the number of its connection, its command and argument.
    fn entry(line: &str) -> Option<(&str, &str, &str, &str)> {
        let (time, rest) = line.split_once('\t')?;
        let (thread, rest) = rest.trim_start().split_once(' ')?;
        let (command, argument) = rest.split_once('\t').unwrap_or((rest, ""));
        let is_number = !thread.is_empty() && thread.bytes().all(|byte| byte.is_ascii_digit());
        let is_command = command.starts_with(|c: char| c.is_ascii_uppercase()) && command.len() < 24;
        let is_time = time.is_empty() || lines::time(time).is_some();
        (is_number && is_command && is_time).then_some((time, thread, command, argument))
    }
}

impl Log for General {
    fn next(&mut self) -> Result<Option<Entry>> {
        while let Some(line) = self.lines.take()? {
            let Some((time, thread, command, argument)) = Self::entry(&line) else {
                // What a server says as it begins a file.
                self.unread += u64::from(self.at == 0);
                continue;
            };
            self.at = lines::time(time).unwrap_or(self.at);
            let mut text = argument.to_owned();
            while let Some(more) =
                self.lines.peek().filter(|line| Self::entry(line).is_none() && !is_start(line))
            {
                text.push('\n');
                text.push_str(more);
                self.lines.take()?;
            }
            let known = self.sessions.entry(thread.to_owned()).or_default();
            let what = match command {
                "Connect" => {
                    if let Some((user, rest)) = argument.split_once(" on ") {
                        let database = rest.split(" using ").next().unwrap_or_default();
                        *known = [
                            user.split('@').next().unwrap_or_default().to_owned(),
                            database.trim().to_owned(),
                        ];
                    }
                    continue;
                }
                "Init DB" => {
                    argument.trim().clone_into(&mut known[1]);
                    continue;
                }
                "Query" | "Execute" => What::Asked(Box::new(asked(text))),
                "Quit" => What::Ended,
                _ => continue,
            };
            let [user, database] = known.clone();
            if what == What::Ended {
                self.sessions.remove(thread);
            }
            return Ok(Some(Entry {
                session: thread.to_owned(),
                user,
                database,
                at: self.at,
                time: 1,
                what,
            }));
        }
        Ok(None)
    }

    fn known(&self) -> Known {
        Known::Requests
    }

    fn left_out(&self) -> [u64; 2] {
        [self.unread, 0]
    }

    fn hint(&self) -> &'static str {
        HINT
    }
}

/// Whether a server that starts, or begins a new file, says so.
fn is_start(line: &str) -> bool {
    line.contains(", Version: ") && line.ends_with("started with:")
}
