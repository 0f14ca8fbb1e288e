//! The slow query log of MySQL and MariaDB (MySQL manual, "The Slow Query Log"; MariaDB, "Slow Query Log Overview"), which has every statement
//! if `long_query_time` is 0. Prepared statements are in it with their values.

use super::general::{self, General, HINT, is_start};
use super::lines::{self, Lines, duration};
use super::{Entry, KEPT, Log, UNREAD, What};
use crate::file::Known;
use kurabe_core::Result;
use kurabe_wire::view::Exchange;

/// Lines in which the first entry must begin.
const LOOKED_AT: u64 = 1_000;

struct Slow {
    lines: Lines,
    /// What the log said last: it leaves out what did not change.
    at: u64,
    database: String,
    has_errors: bool,
    unread: u64,
    nameless: u64,
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
                    nameless: 0,
                }));
            }
            Some(line) if general::entry(line).is_some() => return Ok(Box::new(General::new(lines))),
            Some(_) => drop(lines.take()?),
        }
    }
    Err(lines.wrong("it is no slow or general query log of MySQL or MariaDB").hint(HINT))
}

impl Slow {
    fn head(&mut self) -> Result<Head> {
        let mut head = Head::default();
        while let Some(line) = self.lines.peek().and_then(|line| line.strip_prefix("# ")) {
            if line.starts_with(COMMAND) {
                break;
            }
            if let Some(text) = line.strip_prefix("Time: ") {
                // Old servers have the user in the same line.
                match lines::time(text.split(" # ").next().unwrap_or_default()) {
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
                    self.has_errors |= matches!(name, "Errno" | "Last_errno");
                }
            }
            self.lines.take()?;
        }
        Ok(head)
    }

    /// Reads the statement up to the next comments; `None` if its end is missing.
    fn statement(&mut self) -> Result<Option<String>> {
        let (mut text, mut has_set, mut ends) = (String::new(), false, false);
        while let Some(line) = self.lines.peek().filter(|line| !begins(line)) {
            if is_start(line) {
                while self.lines.peek().is_some_and(|line| !begins(line)) {
                    self.lines.take()?;
                }
                break;
            }
            ends = line.ends_with(';');
            let is_first = text.is_empty();
            let database = line.strip_prefix("use ").filter(|_| is_first && !has_set);
            if let Some(database) = database.and_then(|rest| rest.strip_suffix(';')) {
                database.trim_matches('`').clone_into(&mut self.database);
            } else if let Some(seconds) = timestamp(line).filter(|_| is_first && !has_set) {
                has_set = true;
                // MariaDB says the time only if the second has changed.
                if self.at == 0 {
                    self.at = seconds * 1_000_000_000;
                }
            } else if text.len() <= KEPT {
                if !is_first {
                    text.push('\n');
                }
                text.push_str(line);
            }
            self.lines.take()?;
        }
        if text.len() <= KEPT {
            text.truncate(text.trim_end().trim_end_matches(';').len());
        }
        Ok(ends.then_some(text))
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
            "Errno" | "Last_errno" => self.error = Some(value.to_owned()).filter(|code| code != "0"),
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
            let has_lost = self.lines.has_lost();
            let (Some(time), Some(text), true) = (head.time, text, self.at > 0) else {
                self.unread += 1;
                continue;
            };
            if text.is_empty() {
                continue;
            }
            if head.thread.is_empty() {
                self.nameless += 1;
                continue;
            }
            let mut what = What::Ended;
            if let Some(command) = text.trim_start_matches("# ").strip_prefix(COMMAND) {
                if !["Quit", "Change user", "Reset connection"]
                    .iter()
                    .any(|end| command.eq_ignore_ascii_case(end))
                {
                    continue;
                }
            } else {
                let Head { rows, affected, error, .. } = head;
                what = What::Asked(Box::new(Exchange {
                    text,
                    rows,
                    affected,
                    error,
                    cut: has_lost,
                    ..Exchange::default()
                }));
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

    fn left_out(&self) -> Vec<(&'static str, u64)> {
        let nameless = "requests that do not name their connection, as before MySQL 5.6";
        vec![(UNREAD, self.unread), (nameless, self.nameless)]
    }

    fn hint(&self) -> &'static str {
        HINT
    }
}

/// Whether an entry begins with this line.
fn begins(line: &str) -> bool {
    ["# Time: ", "# User@Host: "].iter().any(|start| line.starts_with(start))
}

/// The number of seconds since 1970 that a line before a statement sets: `SET last_insert_id=7,insert_id=8,timestamp=9;`.
fn timestamp(line: &str) -> Option<u64> {
    let mut seconds = None;
    for one in line.strip_prefix("SET ")?.strip_suffix(';')?.split(',') {
        let (name, value) = one.split_once('=')?;
        match name {
            "timestamp" => seconds = Some(value.split('.').next()?.parse().ok()?),
            "last_insert_id" | "insert_id" if value.parse::<i128>().is_ok() => {}
            _ => return None,
        }
    }
    seconds
}
