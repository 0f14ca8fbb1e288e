//! What a replay sends: the requests of a capture, by connection.
//!
//! A *unit* is what is sent at once: a request, or the messages of PostgreSQL's extended protocol up to Sync. `commits` says what it waits
//! for.

use super::commands::{Judged, Sent};
use super::{http, memcached, redis};
use kurabe_capture::file::About;
use kurabe_capture::record;
use kurabe_capture::units::{Node, What, alike, folded};
use kurabe_core::text::cut;
use kurabe_core::{Error, ErrorKind, Result, sort, units};
use kurabe_protocol::call::{Call, Language};
use kurabe_protocol::http::Request;
use kurabe_protocol::sql::Statement;
use kurabe_wire::statement::filled;
use kurabe_wire::view::{Step, Transaction};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) about: About,
    pub(super) complete: bool,
    pub(super) language: Language,
    pub(super) templates: Vec<Template>,
    pub(super) kinds: Vec<Kind>,
    /// Kinds of transactions, those with the largest share of time first.
    pub(super) transactions: Vec<TransactionKind>,
    pub(super) units: Vec<Unit>,
    pub(super) connections: Vec<Connection>,
    /// Connections of which none is open at the same time as another of its lane.
    pub(super) lanes: Vec<Vec<usize>>,
    pub(super) requests: u64,
    /// Whether there are so many that they were counted and not kept.
    pub(super) is_counted: bool,
    /// Requests that cannot be sent again: without an answer, cut off, or of commands that are not known.
    pub(super) left_out: u64,
    pub(super) commits: Vec<Commit>,
    pub(super) stored: Stored,
    /// Tables into which rows are inserted, and those of them into which several connections insert at the same time.
    pub(super) inserted: HashSet<String>,
    pub(super) raced_for: HashSet<String>,
    /// UUIDs that were there before.
    pub(super) fixed: HashSet<[u8; 16]>,
}

/// A statement without its values.
#[derive(Debug, Default)]
pub(super) struct Template {
    pub(super) text: String,
    pub(super) kind: usize,
    /// Facts about it by itself, or as one of its requests is sent.
    pub(super) judged: Judged,
    /// Whether its gaps are where values are.
    pub(super) has_values_in_gaps: bool,
    /// Whether it inserts rows of SQL.
    pub(super) inserts: bool,
    /// Whether time or chance makes the values of columns of its answers, and it is known of which.
    pub(super) has_volatile_columns: bool,
    pub(super) tables: Vec<String>,
    /// The protocol: parameters of commands may be keys.
    pub(super) language: Language,
    /// Whose keys its answers give, and the places of its values that have such keys.
    pub(super) makes: Option<usize>,
    pub(super) uses: Vec<(usize, usize)>,
}

impl Template {
    /// Whether it may change something, or locks rows.
    pub(super) fn may_change(&self) -> bool {
        self.judged.locks || self.judged.writes.is_some()
    }

    /// The text with the literals of a request.
    pub(super) fn filled(&self, request: &record::Request) -> String {
        filled(&self.text, request.literals.iter().map(String::as_str))
    }
}

/// Statements of one fingerprint.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) text: String,
    pub(super) calls: u64,
    pub(super) time: u64,
}

/// Transactions of one kind.
#[derive(Debug)]
pub(super) struct TransactionKind {
    pub(super) nodes: Vec<Node>,
    /// Its statements with their repetitions.
    pub(super) text: String,
    pub(super) calls: u64,
    /// How long all of them waited for answers, in nanoseconds.
    pub(super) time: u64,
}

#[derive(Debug, Default)]
pub(super) struct Connection {
    pub(super) opened: u64,
    /// What the client said about itself.
    pub(super) said: Vec<(String, String)>,
    pub(super) units: Vec<usize>,
    pub(super) closed: u64,
    /// When its last request was answered.
    pub(super) last: u64,
    /// Whether it has requests, and how long it waited for their answers.
    pub(super) has_requests: bool,
    pub(super) waited: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Unit {
    /// When it began, and when it was answered, in nanoseconds since the capture began.
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) requests: Vec<Sent>,
    /// The kind of its transaction, and whether it is the last unit of that.
    pub(super) transaction: Option<(usize, bool)>,
    /// Its place in the order of answers, and among commits if it is one.
    pub(super) rank: usize,
    pub(super) commit: Option<usize>,
    /// The first units and commits that must be answered before it begins.
    pub(super) after_units: usize,
    pub(super) after_commits: usize,
    pub(super) may_wait: bool,
    /// The tables into which it inserts rows, which the server may give numbers.
    pub(super) inserts: Vec<String>,
    /// Whether it goes on with what another connection began.
    pub(super) goes_on: bool,
    /// The earliest time of its effect, if it is a commit.
    pub(super) effect: u64,
    /// When its transaction began to read: that is what it sees, if the transaction is repeatable.
    pub(super) snapshot: [u64; 2],
}

impl Traffic {
    /// The text of a request's statement; of any other call, one for people.
    pub(super) fn text(&self, sent: &Sent) -> String {
        let is_http = matches!(self.language, Language::Http | Language::Couchdb);
        match Request::read(&sent.request.parameters).filter(|_| is_http) {
            Some(request) => format!("{} {}", request.method(), String::from_utf8_lossy(&request.target())),
            None => self.templates[sent.template].filled(&sent.request),
        }
    }

    /// The databases that requests of CouchDB name.
    pub(super) fn databases(&self) -> BTreeSet<String> {
        let sent = self.units.iter().flat_map(|unit| &unit.requests);
        let places = sent.filter_map(|sent| Some(Request::read(&sent.request.parameters)?.place()));
        let own = places.filter(|place| !place.is_of_server());
        own.map(|place| place.database.to_owned()).collect()
    }

    /// The longest time that the connections of a lane waited for answers, in nanoseconds.
    pub(super) fn busiest(&self) -> u64 {
        let of = |lane: &Vec<usize>| -> u64 {
            lane.iter().fold(0, |sum, connection| sum.saturating_add(self.connections[*connection].waited))
        };
        self.lanes.iter().map(of).max().unwrap_or(0)
    }

    /// When the last answer came.
    pub(super) fn ended(&self) -> u64 {
        let used = self.connections.iter().filter(|connection| connection.has_requests);
        used.map(|connection| connection.last).max().unwrap_or(0)
    }

    /// Refuses a capture whose requests were not kept.
    pub(super) fn check_kept(&self) -> Result<()> {
        if !self.is_counted {
            return Ok(());
        }
        let what = format!(
            "the capture has {} requests, many times as many as bytes: they are counted, and not replayed",
            units::count(self.requests)
        );
        Err(Error::new(ErrorKind::Limit, what)
            .hint("a recorder writes more for each request: capture it again"))
    }

    /// The tables or collections that its requests change.
    pub(super) fn written(&self) -> Vec<String> {
        let all = self.units.iter().flat_map(|unit| &unit.requests);
        let writes = all.filter(|sent| self.templates[sent.template].judged.writes.is_some());
        sort::distinct(writes.flat_map(|sent| names(&self.templates[sent.template], sent, true)))
    }

    /// The first statement that may change something, and why it may.
    pub(super) fn writes(&self) -> Option<(&str, &str)> {
        let used = |template: &&Template| self.kinds[template.kind].calls > 0;
        let found = self.templates.iter().filter(used).find(|template| template.judged.writes.is_some())?;
        Some((&self.kinds[found.kind].text, found.judged.writes.as_deref()?))
    }

    /// Whether it names tables into which rows are inserted.
    pub(super) fn is_inserted(&self, template: &Template) -> bool {
        template.tables.iter().any(|table| self.inserted.contains(table))
    }

    /// Whether another unit inserted rows into a table of this one at the same time: which got the first number is chance.
    pub(super) fn raced_for_numbers(&self, unit: &Unit) -> bool {
        let overlaps = |other: &&Unit| {
            other.rank != unit.rank
                && other.end >= unit.at
                && other.at <= unit.end
                && other.inserts.iter().any(|table| unit.inserts.contains(table))
        };
        !unit.inserts.is_empty() && self.units.iter().any(|other| overlaps(&other))
    }

    /// Whether a commit that changed a table which this unit reads was under way at the same time, or when the transaction of
    /// this unit began to read: its answer may or may not have known of it.
    pub(super) fn raced(&self, unit: &Unit) -> bool {
        let tables: Vec<String> = unit
            .requests
            .iter()
            .flat_map(|sent| names(&self.templates[sent.template], sent, false))
            .collect();
        let during = |commit: &Commit, [at, end]: [u64; 2]| commit.end >= at && commit.at <= end;
        let overlaps = |commit: &&Commit| {
            Some(commit.number) != unit.commit
                && (during(commit, [unit.at, unit.end]) || during(commit, unit.snapshot))
        };
        let mut commits = self.commits.iter().filter(overlaps);
        commits.any(|commit| commit.tables.iter().any(|table| tables.contains(table)))
    }
}

/// A commit: when, and the tables that its transaction changed.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) number: usize,
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) tables: Vec<String>,
}

/// The tables that a request names, or what may be keys, or documents and databases. `changes`: those that it changes.
pub(super) fn names(template: &Template, sent: &Sent, changes: bool) -> Vec<String> {
    match template.language {
        Language::Documents => {
            sent.document.as_ref().map(|asked| asked.collections.clone()).unwrap_or_default()
        }
        language => match language.call("", &sent.request.parameters) {
            Some(Call::Command(command)) if language == Language::Redis => redis::keys(command).collect(),
            Some(Call::Command(command)) => memcached::keys(command).collect(),
            Some(Call::Http(request)) => http::names(&request, changes),
            _ => template.tables.clone(),
        },
    }
}

/// Columns into which statements store what a server made, and what is no key and no moment of its clock: it cannot be followed.
#[derive(Debug, Default)]
pub(super) struct Stored(HashSet<(String, String)>);

/// The most columns that are remembered.
const MOST: usize = 100_000;

impl Stored {
    /// Learns from a statement that writes.
    pub(super) fn learn(&mut self, statement: &Statement<'_>) {
        let columns = if self.0.len() < MOST { statement.stored() } else { Vec::new() };
        for table in statement.tables().into_iter().filter(|_| !columns.is_empty()) {
            self.0.extend(columns.iter().map(|column| (table.clone(), column.clone())));
        }
    }

    /// Whether an answer may have such values; `*` is a column whose name is not known.
    pub(super) fn are_read_by(&self, statement: &Statement<'_>) -> bool {
        let tables = if self.0.is_empty() { Vec::new() } else { statement.tables() };
        let mut of_tables = self.0.iter().filter(|(table, _)| tables.contains(table));
        of_tables.any(|(_, column)| column == "*" || statement.gives(column))
    }
}

/// Characters of a statement in the text of a transaction.
const SHOWN: usize = 60;

/// Finds the transactions of more than one statement, and says of each of their units which one it belongs to. Kinds are in the
/// order of their time, the longest first.
pub(super) fn find_transactions(
    units: &mut [Unit],
    connections: &[Connection],
    templates: &[Template],
    kinds: &[Kind],
) -> Vec<TransactionKind> {
    let mut found: Vec<TransactionKind> = Vec::new();
    for connection in connections {
        let mut open: Vec<usize> = Vec::new();
        for unit in &connection.units {
            let state = units[*unit].requests.last().map(|sent| sent.request.transaction);
            let goes_on = matches!(state, Some(Transaction::Open | Transaction::Failed));
            if !goes_on && open.is_empty() {
                continue;
            }
            open.push(*unit);
            if !goes_on && state == Some(Transaction::None) {
                one(&std::mem::take(&mut open), units, templates, &mut found);
            }
        }
    }
    let mut order: Vec<usize> = (0..found.len()).collect();
    sort::by_key(&mut order, |kind| Reverse(found[*kind].time));
    for unit in units.iter_mut() {
        if let Some((kind, _)) = &mut unit.transaction {
            *kind = order.iter().position(|known| known == kind).unwrap_or_default();
        }
    }
    sort::by_key(&mut found, |kind| Reverse(kind.time));
    for kind in &mut found {
        kind.text = shown(&kind.nodes, kinds);
    }
    found
}

/// Enters a transaction.
fn one(of: &[usize], units: &mut [Unit], templates: &[Template], found: &mut Vec<TransactionKind>) {
    let sent = of.iter().flat_map(|unit| &units[*unit].requests);
    let statements: Vec<usize> = sent
        .filter(|sent| sent.request.step != Step::Prepare && !templates[sent.template].judged.is_setup)
        .map(|sent| templates[sent.template].kind)
        .collect();
    if statements.len() < 2 {
        return;
    }
    let nodes = folded(&statements);
    let known = found.iter().position(|kind| alike(&kind.nodes, &nodes));
    let number = known.unwrap_or(found.len());
    if known.is_none() {
        found.push(TransactionKind { nodes: nodes.clone(), text: String::new(), calls: 0, time: 0 });
    }
    let kind = &mut found[number];
    kind.nodes.iter_mut().zip(&nodes).for_each(|(own, other)| own.widen(other));
    kind.calls += 1;
    for (n, unit) in of.iter().enumerate() {
        let unit = &mut units[*unit];
        kind.time = kind.time.saturating_add(unit.end.saturating_sub(unit.at));
        unit.transaction = Some((number, n + 1 == of.len()));
    }
}

fn shown(nodes: &[Node], kinds: &[Kind]) -> String {
    let one = |node: &Node| {
        let what = match &node.what {
            What::Statement(kind) => cut(&kinds[*kind].text, SHOWN).into_owned(),
            What::Loop(nodes) => format!("({})", shown(nodes, kinds)),
        };
        match (node.least, node.most) {
            (1, 1) => what,
            (least, most) if least == most => format!("{most} × {what}"),
            (least, most) => format!("{least} to {most} × {what}"),
        }
    };
    nodes.iter().map(one).collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_protocol::sql::Dialect;

    #[test]
    fn what_the_server_made_is_known_where_it_is_read() {
        let mut stored = Stored::default();
        let read = |text| Statement::read(text, Dialect::POSTGRES);
        stored.learn(&read("INSERT INTO orders (item, luck) VALUES ($1, random())"));
        let reads = |text| stored.are_read_by(&read(text));
        assert!(reads("SELECT luck FROM orders") && reads("SELECT o.* FROM orders o"));
        assert!(!reads("SELECT item FROM orders") && !reads("SELECT luck FROM item"));
    }
}
