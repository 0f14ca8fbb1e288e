//! A capture from a server's log: what was asked of it, when, and how long that took. Of answers a log has errors at most.

mod lines;
mod mysql;
mod postgres;
#[cfg(test)]
mod tests;

use crate::file::{About, Known};
use crate::tape::{Tape, Taped, Totals, view_of};
use kurabe_core::{Error, Result, sort};
use kurabe_wire::registry::Protocol;
use kurabe_wire::statement::{Dialect, fingerprint, split};
use kurabe_wire::view::{Event, Exchange, Step, Transaction};
use lines::Lines;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The schemes whose logs are read.
pub const LOGS: [&str; 4] = ["postgres", "postgresql", "mysql", "mariadb"];

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

/// A log of one format.
trait Log {
    /// The next entry; `None` at the end.
    fn next(&mut self) -> Result<Option<Entry>>;

    /// What it says beside requests, once an entry was read.
    fn known(&self) -> Known;

    /// How many lines could not be read, and requests that have no time.
    fn left_out(&self) -> [u64; 2];

    /// The settings that make the server write what is missing.
    fn hint(&self) -> &'static str;
}

/// Reads the log of a server, and writes a capture of the sessions of one database. `about` gets the time of the first request. Also returns
/// what is missing, for the user.
///
/// # Errors
/// If the protocol is none of [`LOGS`], it is no such log, has nothing of the database, has several and none is named, or the capture cannot be written.
pub fn record(
    from: &Path,
    database: Option<&str>,
    protocol: &Protocol,
    path: &Path,
    about: &mut About,
) -> Result<(Totals, Vec<String>)> {
    view_of(protocol, about)?;
    let lines = Lines::open(from)?;
    let (mut log, dialect): (Box<dyn Log>, _) = match about.protocol.as_str() {
        "mysql" | "mariadb" => (mysql::open(lines)?, Dialect::Mysql),
        _ => (Box::new(postgres::Postgres::new(lines)?), Dialect::Postgres),
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
    let [unread, timeless] = log.left_out();
    let shown = from.display();
    let Some(written) = written else {
        done?;
        return Err(match (others.is_empty(), timeless) {
            (false, _) => {
                Error::usage(format!("{shown} has nothing of database {}", database.unwrap_or_default()))
                    .hint(format!("it has {}", others.join(", ")))
            }
            (true, 0) => Error::usage(format!("{shown} has no requests")).hint(log.hint()),
            (true, _) => {
                Error::usage(format!("{shown} does not say how long requests took")).hint(log.hint())
            }
        });
    };
    let missing = written.missing(log.as_ref(), unread, timeless);
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

/// The capture that is written.
struct Written {
    tape: Tape,
    began: Instant,
    /// The time of the log at which the capture begins, in nanoseconds since 1970.
    origin: u64,
    dialect: Dialect,
    database: String,
    sessions: HashMap<String, Session>,
    count: u64,
    now: Instant,
    /// Executions whose values are not in the log.
    cut: u64,
}

struct Session {
    taped: Taped,
    /// When its last request was over.
    last: Instant,
    transaction: Transaction,
}

impl Written {
    fn begin(
        protocol: &Protocol,
        path: &Path,
        about: &About,
        first: &Entry,
        dialect: Dialect,
    ) -> Result<Self> {
        let tape = Tape::begin(protocol, path, about)?;
        let began = tape.shared.began();
        Ok(Self {
            tape,
            began,
            origin: first.at.saturating_sub(first.time),
            dialect,
            database: first.database.clone(),
            sessions: HashMap::new(),
            count: 0,
            now: began,
            cut: 0,
        })
    }

    fn take(&mut self, entry: Entry) -> Result<()> {
        let Entry { session, user, database, at, time, what } = entry;
        if self.database.is_empty() {
            self.database.clone_from(&database);
        } else if !database.is_empty() && database != self.database {
            return Err(Error::usage(format!(
                "the log has requests of databases {:?} and {database:?}",
                self.database
            ))
            .hint("name the one to read in the target, such as postgres://localhost/shop"));
        }
        let time = Duration::from_nanos(time);
        let ended = self.began + Duration::from_nanos(at.saturating_sub(self.origin));
        let What::Asked(mut exchange) = what else {
            if let Some(mut known) = self.sessions.remove(&session) {
                known.taped.end(ended.max(known.last));
            }
            return Ok(());
        };
        // The log's clock is coarser than its durations: a request does not begin before the session's last was over.
        let began = ended.checked_sub(time).unwrap_or(self.began).max(self.began);
        let known = self.sessions.entry(session).or_insert_with(|| {
            let mut taped = self.tape.shared.connection(self.count);
            self.count += 1;
            let said = [("user", user), ("database", database)];
            let said = said.into_iter().filter(|(_, value)| !value.is_empty());
            taped.saw(Event::Client(said.map(|(name, value)| (name.to_owned(), value)).collect()), began);
            Session { taped, last: began, transaction: Transaction::None }
        });
        let began = began.max(known.last);
        let ended = began + time;
        known.transaction = after(known.transaction, &exchange, self.dialect);
        self.cut += u64::from(exchange.cut);
        (exchange.began, exchange.ended) = (Some(began), Some(ended));
        exchange.transaction = known.transaction;
        known.taped.saw(Event::Exchange(exchange), ended);
        known.last = ended;
        self.now = self.now.max(ended);
        Ok(())
    }

    /// What is missing, for the user.
    fn missing(&self, log: &dyn Log, unread: u64, timeless: u64) -> Vec<String> {
        let mut missing = Vec::new();
        if unread > 0 {
            missing.push(format!("lines of the log that could not be read: {unread}"));
        }
        if timeless > 0 {
            missing.push(format!("requests without a duration are left out: {timeless}; {}", log.hint()));
        }
        if self.cut > 0 {
            missing.push(format!(
                "requests whose values are not in the log: {}; 'show' has them, and a replay leaves them out; {}",
                self.cut,
                log.hint()
            ));
        }
        missing
    }

    fn end(self, path: &Path) -> Result<Totals> {
        let Self { tape, sessions, now, .. } = self;
        let mut left: Vec<Session> = sessions.into_values().collect();
        sort::by_key(&mut left, |one| one.taped.number());
        for session in &mut left {
            session.taped.end(now);
        }
        tape.finish(path)
    }
}

/// The state of a session's transaction after a request, which the log does not say.
fn after(before: Transaction, exchange: &Exchange, dialect: Dialect) -> Transaction {
    let text = fingerprint(&split(&exchange.text, dialect).template).to_ascii_lowercase();
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let [first, second, third] = [(); 3].map(|()| words.next().unwrap_or_default());
    let back_to_savepoint = second == "to" || third == "to";
    match first {
        _ if exchange.step == Step::Prepare => before,
        "rollback" | "abort" if back_to_savepoint && before != Transaction::None => Transaction::Open,
        "commit" | "end" | "rollback" | "abort" if second != "prepared" => Transaction::None,
        "prepare" if second == "transaction" => Transaction::None,
        // MySQL goes on after most errors.
        _ if exchange.error.is_some() && before == Transaction::Open && dialect == Dialect::Postgres => {
            Transaction::Failed
        }
        _ if exchange.error.is_some() => before,
        "begin" => Transaction::Open,
        "start" if second == "transaction" => Transaction::Open,
        // They commit by themselves.
        "create" | "alter" | "drop" | "truncate" | "rename" | "lock" if dialect == Dialect::Mysql => {
            Transaction::None
        }
        _ => before,
    }
}
