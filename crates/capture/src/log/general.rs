//! The general query log of MySQL and MariaDB (MySQL manual, "The General Query Log"), which has each statement as it begins, and no durations.
//! Prepared statements are in it with their values.

use super::lines::{self, Lines};
use super::{Entry, KEPT, Log, UNREAD, What};
use crate::file::Known;
use kurabe_core::Result;
use kurabe_wire::view::Exchange;
use std::collections::HashMap;

pub(super) const HINT: &str = "set slow_query_log = ON, long_query_time = 0, log_output = 'FILE', and for codes of errors MySQL's log_slow_extra = ON";
/// What the log calls commands of the protocol, but for the one of group replication.
const COMMANDS: &[&str] = &[
    "Sleep", "Quit", "Init DB", "Query", "Field List", "Create DB", "Drop DB", "Refresh", "Shutdown",
    "Statistics", "Processlist", "Connect", "Kill", "Debug", "Ping", "Time", "Delayed insert", "Change user",
    "Binlog Dump", "Binlog Dump GTID", "Table Dump", "Connect Out", "Register Slave", "Register Replica",
    "Prepare", "Execute", "Long Data", "Close stmt", "Reset stmt", "Set option", "Fetch", "Daemon",
    "Reset Connection", "Reset connection", "clone", "Bulk_execute", "Slave_worker", "Slave_IO", "Slave_SQL",
    "Com_multi", "Unimpl get tid", "Error",
];
const GROUP: &str = "Group Replication Data Stream subscription";

pub(super) struct General {
    lines: Lines,
    at: u64,
    sessions: HashMap<String, Session>,
    unread: u64,
}

#[derive(Clone, Default)]
struct Session {
    user: String,
    database: String,
    /// Whether its last statement executes another one, which has an entry of its own.
    executes: bool,
}

pub(super) struct Line<'a> {
    /// Its time; without one it is that of the line before.
    time: Option<u64>,
    thread: &'a str,
    command: &'a str,
    argument: &'a str,
}

/// A line that begins an entry: a time or nothing, the number of the connection in at least five places, the command.
pub(super) fn entry(line: &str) -> Option<Line<'_>> {
    let first = line.split(['\t', ' ']).next().unwrap_or_default();
    // MySQL 5.7 had no tab there at first.
    let (time, rest) = if first.contains('T') { line.split_at(first.len()) } else { line.split_once('\t')? };
    let rest = rest.trim_start_matches('\t');
    let time = if time.trim().is_empty() { None } else { Some(lines::time(time)?) };
    let number = rest.trim_start();
    let (thread, rest) =
        number.split_once(' ').filter(|(thread, _)| thread.len() + rest.len() - number.len() >= 5)?;
    let (command, argument) = rest.split_once('\t').unwrap_or((rest, ""));
    let is_number = thread.bytes().all(|byte| byte.is_ascii_digit());
    let is_known = COMMANDS.contains(&command) || command == GROUP;
    (is_number && is_known).then_some(Line { time, thread, command, argument })
}

/// Whether a server that starts, or begins a new file, says so.
pub(super) fn is_start(line: &str) -> bool {
    line.contains(", Version: ") && line.ends_with("started with:")
}

impl General {
    pub(super) fn new(lines: Lines) -> Self {
        Self { lines, at: 0, sessions: HashMap::new(), unread: 0 }
    }

    /// The lines of a statement after its first one.
    fn rest(&mut self, text: &mut String) -> Result<()> {
        while let Some(more) = self.lines.peek().filter(|line| entry(line).is_none() && !is_start(line)) {
            if text.len() <= KEPT {
                text.push('\n');
                text.push_str(more);
            }
            self.lines.take()?;
        }
        Ok(())
    }
}

impl Session {
    /// What an entry says of the session, and whether a connection has ended before it or with it.
    fn take(&mut self, command: &str, text: &str) -> Option<What> {
        let executes = std::mem::take(&mut self.executes);
        match command {
            "Connect" | "Change user" => {
                let (user, rest) = text.split_once(" on ")?;
                let database = rest.split(" using ").next().unwrap_or_default();
                user.split('@').next().unwrap_or_default().clone_into(&mut self.user);
                database.trim().clone_into(&mut self.database);
                Some(What::Ended)
            }
            "Quit" | "Reset Connection" | "Reset connection" => Some(What::Ended),
            "Init DB" => {
                text.trim().clone_into(&mut self.database);
                None
            }
            "Execute" if executes => None,
            "Query" | "Execute" => {
                let mut words = text.split_whitespace();
                let first = words.next().unwrap_or_default().to_ascii_lowercase();
                match first.as_str() {
                    "use" => {
                        let name = words.next().unwrap_or_default().trim_end_matches(';');
                        name.trim_matches('`').clone_into(&mut self.database);
                    }
                    "execute" => self.executes = true,
                    _ => {}
                }
                // The text of what it prepares is left out.
                let cut = first == "prepare" && text.ends_with("...");
                Some(What::Asked(Box::new(Exchange { text: text.to_owned(), cut, ..Exchange::default() })))
            }
            _ => None,
        }
    }
}

impl Log for General {
    fn next(&mut self) -> Result<Option<Entry>> {
        while let Some(first) = self.lines.take()? {
            let Some(Line { time, thread, command, argument }) = entry(&first) else {
                // What a server says as it begins a file.
                self.unread += u64::from(self.at == 0);
                continue;
            };
            self.at = time.unwrap_or(self.at);
            let mut text = argument.to_owned();
            self.rest(&mut text)?;
            let has_lost = self.lines.has_lost();
            let session = self.sessions.entry(thread.to_owned()).or_default();
            let Some(mut what) = session.take(command, &text) else { continue };
            if self.at == 0 {
                self.unread += 1;
                continue;
            }
            if let What::Asked(exchange) = &mut what {
                exchange.cut |= has_lost;
            }
            let Session { user, database, .. } = session.clone();
            if command == "Quit" {
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

    fn left_out(&self) -> Vec<(&'static str, u64)> {
        vec![(UNREAD, self.unread)]
    }

    fn hint(&self) -> &'static str {
        HINT
    }
}
