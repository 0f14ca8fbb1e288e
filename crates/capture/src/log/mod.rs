//! A capture from a server's log: what was asked of it, when, and how long that took. Of answers a log has errors at most.

use crate::file::{About, Known};
use crate::input::Input;
use crate::secrets::Tables;
use crate::tape::{Tape, Taped, Totals};
use kurabe_core::{Error, Result, sort};
use kurabe_protocol::sql::{Dialect, Statement, Token, tokens};
use kurabe_wire::registry::Protocol;
use kurabe_wire::view::{Event, Exchange, Parameter, Step, Transaction};
use lines::Lines;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

mod general;
mod lines;
mod mysql;
mod postgres;
#[cfg(test)]
mod tests;

/// How far the entries of a session may be out of order without being counted: clocks of logs are coarse.
const COARSE: Duration = Duration::from_secs(2);

/// The schemes whose logs are read.
pub const LOGS: [&str; 4] = ["postgres", "postgresql", "mysql", "mariadb"];

/// Reads the log of a server, and writes a capture of the sessions of one database. `about` gets the time of the first request. Also returns
/// what is missing, for the user.
///
/// # Errors
/// If the protocol is none of [`LOGS`], it is no such log, has nothing of the database, has several and none is named, or the capture cannot be written.
pub fn record(
    input: Input,
    database: Option<&str>,
    protocol: &Protocol,
    path: &Path,
    about: &mut About,
) -> Result<(Totals, Vec<String>)> {
    let from = input.path.clone();
    let lines = Lines::new(input)?;
    let (mut log, dialect): (Box<dyn Log>, _) = match about.protocol.as_str() {
        "mysql" | "mariadb" => (mysql::open(lines)?, Dialect::MYSQL),
        _ => (Box::new(postgres::Postgres::new(lines)?), Dialect::POSTGRES),
    };
    // The database of a session may be unknown that began before the log.
    let is_wanted =
        |entry: &Entry| entry.database.is_empty() || database.is_none_or(|wanted| wanted == entry.database);
    let mut written = None::<Written>;
    let mut others: Vec<String> = Vec::new();
    let done = loop {
        let entry = match log.next() {
            Ok(Some(entry)) => entry,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        if !is_wanted(&entry) {
            if !others.contains(&entry.database) && others.len() < 8 {
                others.push(entry.database);
            }
            continue;
        }
        let written = match &mut written {
            Some(written) => written,
            None if entry.what == What::Ended => continue,
            None => {
                about.known = log.known();
                about.began_ms = entry.at.saturating_sub(entry.time) / 1_000_000;
                written.insert(Written::begin(protocol, path, about, &entry, dialect)?)
            }
        };
        if let Err(error) = written.take(entry) {
            break Err(error);
        }
    };
    let mut missing = counted(log.left_out());
    let shown = from.display();
    let Some(written) = written else {
        done?;
        return Err(if others.is_empty() {
            let but = if missing.is_empty() { "" } else { " but " };
            Error::usage(format!("{shown} has no requests{but}{}", missing.join(", "))).hint(log.hint())
        } else {
            Error::usage(format!("{shown} has nothing of database {}", database.unwrap_or_default()))
                .hint(format!("it has {}", others.join(", ")))
        });
    };
    missing.extend(counted(written.missing()));
    match done {
        Ok(()) => Ok((written.end(path)?, missing)),
        Err(error) => {
            // What was read before is no capture of what was asked for.
            drop(written.end(path));
            let _ = fs::remove_file(path);
            Err(error)
        }
    }
}

/// Facts for the user, without those of which there are none.
fn counted(facts: Vec<(&'static str, u64)>) -> Vec<String> {
    let facts = facts.into_iter().filter(|(_, count)| *count > 0);
    facts.map(|(what, count)| format!("{what}: {count}")).collect()
}

struct Written {
    tape: Tape,
    began: Instant,
    /// The time of the log at which the capture begins, in nanoseconds since 1970.
    origin: u64,
    scheme: String,
    dialect: Dialect,
    database: String,
    sessions: HashMap<String, Session>,
    /// Connections whose end is in the log.
    ended: u64,
    /// Requests whose values are not in the log, calls of procedures, and requests that are out of order.
    cut: u64,
    calls: u64,
    disordered: u64,
}

struct Session {
    taped: Taped,
    /// When its last request was over.
    last: Instant,
    transaction: Followed,
}

impl Written {
    fn begin(
        protocol: &Protocol,
        path: &Path,
        about: &About,
        first: &Entry,
        dialect: Dialect,
    ) -> Result<Self> {
        let tape = Tape::begin(protocol, path, about, Tables::default())?;
        let began = tape.shared.began;
        Ok(Self {
            tape,
            began,
            origin: first.at.saturating_sub(first.time),
            scheme: about.protocol.clone(),
            dialect,
            database: first.database.clone(),
            sessions: HashMap::new(),
            ended: 0,
            cut: 0,
            calls: 0,
            disordered: 0,
        })
    }

    fn take(&mut self, entry: Entry) -> Result<()> {
        let Entry { session, user, database, at, time, what } = entry;
        let ended = self.began + Duration::from_nanos(at.saturating_sub(self.origin));
        let What::Asked(mut exchange) = what else {
            if let Some(mut known) = self.sessions.remove(&session) {
                known.taped.end(ended.max(known.last));
                self.ended += 1;
            }
            return Ok(());
        };
        if self.database.is_empty() {
            self.database.clone_from(&database);
        } else if !database.is_empty() && database != self.database {
            let what = format!("the log has requests of databases {:?} and {database:?}", self.database);
            let hint =
                format!("name the one to read in the target, such as {}://localhost/{database}", self.scheme);
            return Err(Error::usage(what).hint(hint));
        }
        self.keep(&mut exchange);
        // What began before the capture is as long as since then.
        let time = Duration::from_nanos(time).min(ended - self.began);
        let began = ended.checked_sub(time).unwrap_or(self.began);
        let known = self.sessions.entry(session).or_insert_with(|| {
            let mut taped = self.tape.shared.connection();
            let said = [("user", user), ("database", database)];
            let said = said.into_iter().filter(|(_, value)| !value.is_empty());
            taped.saw(Event::Client(said.map(|(name, value)| (name.to_owned(), value)).collect()), began);
            Session { taped, last: began, transaction: Followed::default() }
        });
        self.disordered += u64::from(ended + COARSE < known.last);
        // The log's clock is coarser than its durations: a request does not begin before the session's last was over.
        let began = began.max(known.last);
        let ended = began + time;
        (exchange.began, exchange.ended) = (Some(began), Some(ended));
        exchange.transaction = known.transaction.after(&exchange, self.dialect);
        known.taped.saw(Event::Exchange(exchange), ended);
        known.last = ended;
        Ok(())
    }

    /// Cuts off what is too long, and counts what is missing.
    fn keep(&mut self, exchange: &mut Exchange) {
        let values: usize = exchange.parameters.iter().filter_map(Parameter::bytes).map(<[u8]>::len).sum();
        if exchange.text.len() > KEPT || values > KEPT {
            let end = (0..=KEPT).rev().find(|at| exchange.text.is_char_boundary(*at)).unwrap_or(0);
            exchange.text.truncate(end);
            (exchange.parameters, exchange.cut) = (Vec::new(), true);
        }
        exchange.cut |= needs_data(&exchange.text, self.dialect);
        self.cut += u64::from(exchange.cut);
        let is_call = exchange.text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("call "));
        self.calls += u64::from(is_call && self.dialect == Dialect::MYSQL);
    }

    /// What is missing, or too much, for the user.
    fn missing(&self) -> Vec<(&'static str, u64)> {
        let count = self.tape.shared.connections.load(Ordering::SeqCst);
        let ends = if self.ended == 0 && count > 1 { count } else { 0 };
        vec![
            ("requests whose values or data are not in the log", self.cut),
            ("calls of procedures, whose own statements may be in the log too", self.calls),
            ("requests that are out of order", self.disordered),
            ("connections whose end is not in the log", ends),
        ]
    }

    fn end(self, path: &Path) -> Result<Totals> {
        let Self { tape, sessions, .. } = self;
        let mut left: Vec<Session> = sessions.into_values().collect();
        sort::by_key(&mut left, |one| one.taped.number);
        for session in &mut left {
            session.taped.end(session.last);
        }
        tape.finish(path)
    }
}

/// Whether a statement sends data that is not in a log.
fn needs_data(text: &str, dialect: Dialect) -> bool {
    let mut tokens = tokens(text, dialect).filter(|token| !token.is_blank());
    match tokens.next() {
        Some(first) if first.is("load") => tokens.next().is_some_and(|what| what.is_one_of(&["data", "xml"])),
        Some(first) if first.is("copy") => tokens.any(|token| token.is("stdin")),
        _ => false,
    }
}

/// The maximum size of a statement, or of the values of an execution, that is kept, in bytes.
const KEPT: usize = 1 << 20;
/// What is left out.
const UNREAD: &str = "lines that cannot be read";

/// What one line, or a few, say.
#[derive(Debug, Default, PartialEq, Eq)]
struct Entry {
    /// The session, by the log's own name of it.
    session: String,
    user: String,
    database: String,
    /// When it was written, in nanoseconds since 1970: a request was over then.
    at: u64,
    /// How long the request took, in nanoseconds.
    time: u64,
    what: What,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum What {
    /// A request, without its times.
    Asked(Box<Exchange>),
    #[default]
    Ended,
}

trait Log {
    /// The next entry; `None` at the end.
    fn next(&mut self) -> Result<Option<Entry>>;

    /// What it says beside requests, once an entry was read.
    fn known(&self) -> Known;

    /// What is left out, and how many of it.
    fn left_out(&self) -> Vec<(&'static str, u64)>;

    /// The settings that make the server write what is missing.
    fn hint(&self) -> &'static str;
}

/// MySQL's code of an error that ends the transaction: a deadlock.
const DEADLOCK: &str = "1213";

/// A session, as far as its transaction depends on it.
#[derive(Debug, Default)]
struct Followed {
    state: Option<Transaction>,
    /// Whether each statement begins a transaction (`autocommit = 0`).
    is_manual: bool,
}

impl Followed {
    /// The state after a request.
    fn after(&mut self, exchange: &Exchange, dialect: Dialect) -> Transaction {
        let before = self.state.unwrap_or(Transaction::None);
        let statement = Statement::read(&exchange.text, dialect);
        let is_mysql = dialect == Dialect::MYSQL;
        let next = match &exchange.error {
            _ if exchange.step == Step::Prepare => before,
            Some(error) if is_mysql && error == DEADLOCK => Transaction::None,
            // Other errors do not end a transaction of MySQL.
            Some(_) if is_mysql => before,
            Some(_) if statement.begins(&["commit", "end"]) => Transaction::None,
            Some(_) if before == Transaction::None => before,
            Some(_) => Transaction::Failed,
            None => {
                let manual = is_mysql.then(|| autocommit(&exchange.text)).flatten();
                if let Some(is_on) = manual {
                    self.is_manual = !is_on;
                    // To switch it on commits.
                    if is_on { Transaction::None } else { before }
                } else {
                    let statements = statement.tokens().split(|token| token.is_mark(';'));
                    statements.fold(before, |state, one| self.step(state, one, dialect))
                }
            }
        };
        self.state = Some(next);
        next
    }

    /// The state after one statement that was executed.
    fn step(&self, before: Transaction, tokens: &[Token<'_>], dialect: Dialect) -> Transaction {
        let is_mysql = dialect == Dialect::MYSQL;
        let words: Vec<String> = tokens
            .iter()
            .skip_while(|one| one.is_mark('('))
            .map_while(Token::name)
            .take(6)
            .map(str::to_lowercase)
            .collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] | ["set" | "use" | "show", ..] | ["commit" | "rollback", "prepared", ..] => before,
            ["rollback" | "abort", rest @ ..] if rest.iter().take(2).any(|word| *word == "to") => {
                if before == Transaction::None { before } else { Transaction::Open }
            }
            ["begin", ..]
            | ["start", "transaction", ..]
            | ["commit" | "end" | "rollback" | "abort", .., "and", "chain"] => Transaction::Open,
            ["commit" | "end" | "rollback" | "abort", ..] | ["prepare", "transaction", ..] => {
                Transaction::None
            }
            ["create" | "drop", "temporary", ..] if is_mysql => before,
            // They commit by themselves.
            ["create" | "alter" | "drop" | "truncate" | "rename" | "lock", ..] if is_mysql => {
                Transaction::None
            }
            _ if self.is_manual && before == Transaction::None => Transaction::Open,
            _ => before,
        }
    }
}

/// Whether a statement switches `autocommit` on or off.
fn autocommit(text: &str) -> Option<bool> {
    let text: String = text.chars().take(100).filter(|c| !c.is_whitespace()).collect();
    let text = text.to_ascii_lowercase().replace(":=", "=");
    let (_, value) = text.strip_prefix("set")?.split_once("autocommit=")?;
    Some(!["0", "off", "false"].iter().any(|off| value.starts_with(off)))
}
