//! Reads a capture: which of its requests are sent, by connection, and which of them together.

use super::commands::{self, Judged, Sent};
use super::order::{Changes, order};
use super::traffic::{Connection, Kind, Template, Traffic, Unit, find_transactions};
use super::{keys, mongodb, postgres, redis};
use crate::custom::reads::{has_values_in_gaps, is_value};
use crate::prelude::*;
use kurabe_capture::Values;
use kurabe_capture::file::{self, About};
use kurabe_capture::record::{Parameter, Record, Request};
use kurabe_protocol::call::{Call, Language, is_quiet};
use kurabe_protocol::sql;
use kurabe_wire::statement::{GAP, fingerprint};
use kurabe_wire::view::{Step, Transaction, uuid};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::path::Path;

/// Bytes of values that are kept of any file, and for each of its bytes.
const LEAST_HELD: u64 = 256 << 20;
const HELD: u64 = 50;

/// Reads a capture.
pub(super) fn read(path: &Path) -> Result<Traffic> {
    let mut reading = Reading { most: file::most_kept(path), ..Reading::default() };
    let mut known = None;
    let (about, ending) = file::read(path, |about, record| {
        let language = || commands::schemes(&about.protocol).map(|_| about.language());
        if let Some(language) = *known.get_or_insert_with(language) {
            reading.traffic.language = language;
            reading.take(record);
        }
    })?;
    let wrong = |why: &str| Error::usage(format!("{}: {why}", path.display()));
    if about.values != Values::Keep {
        return Err(wrong("its values were not kept, so that it cannot be replayed")
            .hint("capture again with --values keep"));
    }
    if commands::schemes(&about.protocol).is_none() {
        // What an application answers depends on a session, which no capture has.
        let why = if about.protocol == "http" { ": logins and cookies are not recorded" } else { "" };
        return Err(wrong(&format!("captures of {} cannot be replayed{why}", about.protocol))
            .hint("'kurabe capture show' says what there is"));
    }
    let is_mongodb = reading.traffic.language == Language::Documents;
    if is_mongodb {
        reading.keep_one_database();
    }
    if reading.traffic.requests == 0 {
        let error = wrong("it has no request with an answer that can be sent again");
        let is_old = is_mongodb && reading.traffic.left_out > 0;
        return Err(if is_old {
            error.hint("captures of MongoDB by earlier builds have no commands: capture it again")
        } else {
            error
        });
    }
    reading.traffic.complete = ending.complete;
    Ok(reading.end(about))
}

#[derive(Default)]
struct Reading {
    /// What is known so far.
    traffic: Traffic,
    /// The place of each template, by its number in the file.
    numbers: HashMap<u64, usize>,
    by_text: HashMap<String, usize>,
    /// The requests of each connection.
    sent: Vec<Vec<Sent>>,
    open: HashMap<u64, Live>,
    /// Cursors of MongoDB.
    cursors: mongodb::Recorded,
    /// Of how many requests, and of how many bytes of values, each is kept; none if there are more.
    most: u64,
    held: u64,
}

/// A connection while it is read.
#[derive(Default)]
struct Live {
    place: usize,
    data: Vec<u8>,
    is_data_cut: bool,
    made: Vec<Vec<u8>>,
    /// Statements that are prepared, and the request that did it, if no execution has shown their types yet.
    prepared: HashMap<(u64, Vec<String>), Option<usize>>,
    /// The names of statements that SQL prepared.
    names: HashSet<String>,
    /// Whether a command of Redis that varies waits for `EXEC`, and what those that wait name.
    varies: bool,
    named: Vec<Vec<u8>>,
}

impl Reading {
    fn take(&mut self, record: Record) {
        match record {
            Record::Open { connection, at, said } => {
                let place = self.traffic.connections.len();
                self.traffic.connections.push(Connection {
                    opened: at,
                    said,
                    closed: at,
                    ..Connection::default()
                });
                self.sent.push(Vec::new());
                self.open.insert(connection, Live { place, ..Live::default() });
            }
            Record::Statement { number, template } => self.statement(number, template),
            Record::Data { connection, length, bytes } => {
                if let Some(live) = self.open.get_mut(&connection) {
                    live.is_data_cut |= length != bytes.len() as u64;
                    live.data.extend(bytes);
                }
            }
            Record::Made { connection, values } => {
                if let Some(live) = self.open.get_mut(&connection) {
                    live.made = values;
                }
            }
            Record::Request(request) => self.request(*request),
            Record::Close { connection, at, .. } => {
                if let Some(live) = self.open.remove(&connection) {
                    self.traffic.connections[live.place].closed = at;
                }
            }
            Record::End { .. } => {}
        }
    }

    fn statement(&mut self, number: u64, template: String) {
        let sql = self.traffic.language.sql();
        let text = if sql.is_some() { fingerprint(&template) } else { template.clone() };
        let next = self.traffic.kinds.len();
        let kind = *self.by_text.entry(text.clone()).or_insert(next);
        if kind == next {
            self.traffic.kinds.push(Kind { text, calls: 0, time: 0 });
        }
        let mut known = Template { language: self.traffic.language, kind, ..Template::default() };
        // Requests say what any other call does.
        if let Some(dialect) = sql {
            let shown = template.replace(GAP, " ? ");
            let judged = Judged::read(&Call::Sql(&shown, dialect), self.traffic.language);
            let statement = sql::Statement::read(&shown, dialect);
            if judged.writes.is_some() {
                self.traffic.stored.learn(&statement);
            }
            // What SET may change is said by values too.
            known.has_values_in_gaps = !statement.tokens().first().is_some_and(|token| token.is("set"))
                && has_values_in_gaps(&template, GAP, commands::engine(dialect));
            let is_setup = Call::Sql(&self.traffic.kinds[kind].text, dialect).is_setup();
            known.has_volatile_columns = statement.varies() == Some(sql::Varies::Values)
                && statement.volatile_columns().is_some_and(|columns| !columns.is_empty());
            // A number of a sequence is asked for as a row is inserted.
            let words = ["insert", "merge", "nextval", "replace"];
            known.inserts = statement.tokens().iter().any(|token| token.is_one_of(&words));
            known.tables = statement.tables();
            let writes = judged.writes.filter(|_| known.has_values_in_gaps);
            known.judged = Judged { writes, is_setup, ..judged };
        }
        self.numbers.insert(number, self.traffic.templates.len());
        self.traffic.templates.push(Template { text: template, ..known });
    }

    fn request(&mut self, mut request: Request) {
        let template = self.numbers.get(&request.statement).copied();
        let filled = template.and_then(|template| self.as_sent(template, &request));
        let (Some(live), Some(template)) = (self.open.get_mut(&request.connection), template) else {
            self.traffic.left_out += 1;
            return;
        };
        let language = self.traffic.language;
        let known = &mut self.traffic.templates[template];
        let text = filled.as_deref().unwrap_or(&known.text);
        let is_of_protocol = language.is_postgres() && postgres::is_of_protocol(text, &mut live.names);
        let call = language.call(text, &request.parameters);
        let is_judged = filled.is_some() || language.sql().is_none();
        let judged = call.filter(|_| is_judged).map(|call| Judged::read(&call, language)).unwrap_or_default();
        let is_other = judged.is_left_out || judged.is_malformed || is_of_protocol;
        let is_unknown = call.is_none() || known.judged.is_left_out || is_other;
        let (mut varies, mut names) = (false, Vec::new());
        if let Some(Call::Command(command)) = call {
            varies = commands::is(language, "volatile", command.name());
            if language == Language::Redis {
                live.varies |= varies;
                live.named.extend(redis::named(command));
                if ["EXEC", "DISCARD", "MULTI"].contains(&command.name()) {
                    varies |= std::mem::take(&mut live.varies);
                }
                if request.transaction != Transaction::Open {
                    names = std::mem::take(&mut live.named);
                }
            }
        }
        let made = std::mem::take(&mut live.made);
        names.retain(|_| !made.is_empty());
        let (data, is_cut) = (std::mem::take(&mut live.data), std::mem::take(&mut live.is_data_cut));
        // A cursor that no request of the replay opens cannot be gone on with.
        let (mut document, mut used) = (None, Some((false, None)));
        if let Some(Call::Document(command)) = call {
            document = Some(mongodb::Asked::read(&command, &request.parameters));
            used = self.cursors.used(&command, live.place, &mut request.digest);
        }
        if language.sql().is_none() {
            known.judged.is_setup = judged.is_setup;
            known.judged.locks |= judged.locks;
        }
        let (goes_on, since) = used.unwrap_or_default();
        let key = (request.statement, request.literals.clone());
        let is_prepared = request.step != Step::Execute || live.prepared.contains_key(&key);
        let can_be_sent = !request.cut && !is_cut && !is_unknown && is_prepared && used.is_some();
        let Some(time) = request.time.filter(|_| can_be_sent) else {
            self.traffic.left_out += 1;
            return;
        };
        if document.is_some() {
            self.cursors.opened(&request, live.place);
        }
        if let Some(why) = judged.writes {
            known.judged.writes.get_or_insert(why);
        }
        let kind = &mut self.traffic.kinds[known.kind];
        (kind.calls, kind.time) = (kind.calls + 1, kind.time.saturating_add(time));
        self.traffic.requests += 1;
        let connection = &mut self.traffic.connections[live.place];
        connection.has_requests = true;
        connection.last = connection.last.max(request.at.saturating_add(time));
        if self.traffic.is_counted {
            connection.waited = connection.waited.saturating_add(time);
            return;
        }
        let other = data.len() + made.iter().map(Vec::len).sum::<usize>();
        let known = document.as_ref().map_or(0, mongodb::Asked::size);
        self.held = self.held.saturating_add(held(&request) + (other + known) as u64);
        if self.traffic.requests > self.most || self.held > LEAST_HELD.max(self.most.saturating_mul(HELD)) {
            self.traffic.is_counted = true;
            for (connection, sent) in self.traffic.connections.iter_mut().zip(std::mem::take(&mut self.sent))
            {
                let times = sent.iter().filter_map(|sent| sent.request.time);
                connection.waited = times.fold(0, u64::saturating_add);
            }
            self.cursors = mongodb::Recorded::default();
            return;
        }
        let sent = &mut self.sent[live.place];
        let types = || {
            request.parameters.iter().map(|one| if one.chosen { 0 } else { one.kind }).collect::<Vec<u32>>()
        };
        let own = if request.step == Step::Bound { types() } else { Vec::new() };
        if request.step == Step::Prepare {
            live.prepared.insert(key, Some(sent.len()));
        } else if let Some(place) = live.prepared.get_mut(&key).and_then(Option::take) {
            sent[place].types = types();
        }
        let types = own;
        sent.push(Sent { request, template, types, made, names, data, goes_on, since, varies, document });
    }

    /// The text of a statement if its literals are more than values, so that the template does not say all that it does.
    fn as_sent(&self, template: usize, request: &Request) -> Option<String> {
        let (language, template) = (self.traffic.language, &self.traffic.templates[template]);
        let dialect = language.sql()?;
        let is_plain = template.has_values_in_gaps
            && request.literals.len() == template.text.matches(GAP).count()
            && request.literals.iter().all(|literal| is_value(literal, commands::engine(dialect)));
        (!is_plain).then(|| template.filled(request))
    }

    /// Leaves out what names another database than most requests do: a target is one database.
    fn keep_one_database(&mut self) {
        let mut databases: HashMap<Option<String>, u64> = HashMap::new();
        let database = |sent: &Sent| sent.document.as_ref().and_then(|asked| asked.database.clone());
        for sent in self.sent.iter().flatten() {
            *databases.entry(database(sent)).or_default() += 1;
        }
        let own = |name: &Option<String>| !matches!(name.as_deref(), Some("admin" | "config" | "local"));
        let most = databases.into_iter().filter(|(name, _)| own(name));
        let most = most.max_by_key(|(name, count)| (*count, std::cmp::Reverse(name.clone())));
        let most = most.and_then(|(name, _)| name);
        let Traffic { kinds, templates, requests, left_out, .. } = &mut self.traffic;
        for sent in &mut self.sent {
            sent.retain(|sent| {
                let stays = database(sent) == most;
                if !stays {
                    let kind = &mut kinds[templates[sent.template].kind];
                    kind.calls -= 1;
                    kind.time = kind.time.saturating_sub(sent.request.time.unwrap_or(0));
                    (*requests, *left_out) = (*requests - 1, *left_out + 1);
                }
                stays
            });
        }
    }

    fn end(self, about: About) -> Traffic {
        let Self { traffic, sent, .. } = self;
        let mut traffic = Traffic { about, ..traffic };
        let names: Vec<String> = traffic.kinds.iter().map(|kind| kind.text.clone()).collect();
        keys::find(&sent, &mut traffic.templates, &names, traffic.language);
        let (language, is_counted) = (traffic.language, traffic.is_counted);
        let Traffic { templates, connections, kinds, .. } = &mut traffic;
        let mut units: Vec<Unit> = Vec::new();
        let mut commits: Vec<(usize, Vec<String>)> = Vec::new();
        for (connection, mut sent) in connections.iter_mut().zip(sent) {
            let mut changes = Changes { templates, is_open: false, tables: None, snapshot: None };
            let mut last = connection.opened;
            (connection.has_requests, connection.last) = (!sent.is_empty(), 0);
            if language.is_mysql() {
                // The answer to an execution ends with the last row that is fetched.
                sent.sort_by_key(|sent| sent.request.at);
            }
            let mut sent = sent.into_iter().peekable();
            while sent.peek().is_some() {
                let (mut unit, mut since) = (Unit::default(), None);
                while let Some(one) = sent.next() {
                    let Request { at, time, transaction, step, .. } = one.request;
                    unit.at = if unit.requests.is_empty() { at } else { unit.at };
                    unit.end = unit.end.max(at.saturating_add(time.unwrap_or(0)));
                    let is_quiet = is_quiet(&one.request.parameters);
                    unit.goes_on |= one.goes_on;
                    since = since.or(one.since);
                    unit.requests.push(one);
                    let goes_on = match language {
                        // PostgreSQL says the state after Sync.
                        Language::Sql(dialect) => {
                            dialect.is_postgres() && step != Step::Text && transaction == Transaction::Unknown
                        }
                        Language::Http | Language::Couchdb => false,
                        Language::Redis => sent.peek().is_some_and(|next| next.request.pipelined),
                        Language::Memcached | Language::Documents => {
                            is_quiet || sent.peek().is_some_and(|next| next.request.pipelined)
                        }
                    };
                    if !goes_on {
                        break;
                    }
                }
                // Whatever a file says, time does not go back.
                unit.end = unit.end.max(last);
                unit.at = unit.at.min(unit.end);
                unit.effect = unit.at.max(last);
                last = unit.end;
                connection.last = last;
                connection.waited = connection.waited.saturating_add(unit.end - unit.at);
                let commit = changes.follow(&mut unit);
                if let Some(since) = since {
                    // It reads since its cursor was opened.
                    unit.snapshot = [since, unit.end];
                }
                if let Some(tables) = commit {
                    commits.push((units.len(), tables));
                }
                connection.units.push(units.len());
                units.push(unit);
            }
            connection.closed = connection.closed.max(last);
        }
        for connection in connections.iter_mut().filter(|_| is_counted) {
            connection.closed = connection.closed.max(connection.last);
        }
        let commits = order(&mut units, commits);
        let lanes = lanes(connections);
        let (inserted, raced_for, fixed) = insertions(&units, templates);
        let transactions = find_transactions(&mut units, connections, templates, kinds);
        Traffic { transactions, units, lanes, commits, inserted, raced_for, fixed, ..traffic }
    }
}

/// The tables into which units insert rows; those of them whose rows may have got numbers in another order than they were sent in,
/// without that a client was told; and UUIDs that were read before anything was inserted into their tables.
fn insertions(
    units: &[Unit],
    templates: &[Template],
) -> (HashSet<String>, HashSet<String>, HashSet<[u8; 16]>) {
    let mut latest: HashMap<&str, u64> = HashMap::new();
    let mut first: HashMap<&str, u64> = HashMap::new();
    let mut raced = HashSet::new();
    let mut inserts: Vec<&Unit> = units.iter().filter(|unit| !unit.inserts.is_empty()).collect();
    inserts.sort_by_key(|unit| unit.at);
    for unit in inserts {
        let is_told = unit.requests.iter().all(|sent| templates[sent.template].makes.is_some());
        for table in &unit.inserts {
            first.entry(table).or_insert(unit.at);
            let latest = latest.entry(table).or_default();
            if *latest >= unit.at && !is_told {
                raced.insert(table.clone());
            }
            *latest = unit.end.max(*latest);
        }
    }
    let mut fixed = HashSet::new();
    for unit in units {
        for sent in unit.requests.iter().filter(|sent| !sent.made.is_empty()) {
            let Template { tables, has_volatile_columns, .. } = &templates[sent.template];
            let is_before = |table: &String| first.get(table.as_str()).is_none_or(|at| unit.end < *at);
            if !has_volatile_columns && tables.iter().all(is_before) {
                fixed.extend(sent.made.iter().filter_map(|value| uuid(value)));
            }
        }
    }
    (first.into_keys().map(str::to_owned).collect(), raced, fixed)
}

/// About how many bytes the values of a request take.
fn held(request: &Request) -> u64 {
    let value = |one: &Parameter| (size_of::<Parameter>() + one.bytes().map_or(0, <[u8]>::len)) as u64;
    let literals = request.literals.iter().map(|text| (size_of::<String>() + text.len()) as u64);
    request.parameters.iter().map(value).chain(literals).sum()
}

/// Distributes connections over as few lanes as are open at the same time.
fn lanes(connections: &[Connection]) -> Vec<Vec<usize>> {
    let mut used: Vec<usize> = (0..connections.len()).filter(|n| connections[*n].has_requests).collect();
    used.sort_by_key(|n| connections[*n].opened);
    let mut lanes: Vec<Vec<usize>> = Vec::new();
    let mut free: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for number in used {
        let Connection { opened, closed, .. } = connections[number];
        let lane = match free.peek() {
            Some(Reverse((since, lane))) if *since < opened => {
                let lane = *lane;
                free.pop();
                lane
            }
            _ => {
                lanes.push(Vec::new());
                lanes.len() - 1
            }
        };
        lanes[lane].push(number);
        free.push(Reverse((closed, lane)));
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_protocol::mongodb::bson;
    use kurabe_protocol::sql::Dialect;
    use kurabe_wire::view::COMPLETE;

    fn unit(reading: &mut Reading, connection: u64, text: &str, [at, end]: [u64; 2], state: Transaction) {
        let number = reading.numbers.len() as u64;
        reading.take(Record::Statement { number, template: text.to_owned() });
        reading.take(Record::Request(Box::new(Request {
            connection,
            at,
            time: Some(end - at),
            statement: number,
            transaction: state,
            ..Request::default()
        })));
    }

    /// For each unit, the units that must be answered before it begins, of all and of the commits.
    fn needs(units: &[(u64, &str, [u64; 2], Transaction)]) -> Traffic {
        let mut reading = Reading { most: 1_000, ..Reading::default() };
        for connection in 0..=units.iter().map(|unit| unit.0).max().unwrap_or(0) {
            reading.take(Record::Open { connection, at: 0, said: Vec::new() });
        }
        for (connection, text, times, state) in units {
            unit(&mut reading, *connection, text, *times, *state);
        }
        reading.end(About::default())
    }

    #[test]
    fn reader_waits_for_commits_before_it_and_commit_waits_for_readers_before_it() {
        use Transaction::{None, Open};
        let traffic = needs(&[
            (0, "SELECT a FROM t", [1, 2], None),
            (1, "BEGIN", [1, 2], Open),
            (1, "UPDATE t SET a = 1", [3, 4], Open),
            (1, "COMMIT", [5, 6], None),
            (0, "SELECT a FROM t", [7, 8], None),
            (2, "SELECT a FROM u", [5, 7], None),
        ]);
        let needs: Vec<_> = traffic.units.iter().map(|unit| (unit.after_units, unit.after_commits)).collect();
        // By connection. Three units had ended before the commit began.
        assert_eq!(needs, [(0, 0), (0, 1), (0, 0), (0, 0), (3, 0), (0, 0)]);
        assert!(!traffic.units.iter().any(|unit| traffic.raced(unit)));
        assert_eq!(traffic.lanes.len(), 3);
        // The writer, whose pauses do not count.
        assert_eq!(traffic.busiest(), 3);
    }

    #[test]
    fn requests_beyond_what_a_file_has_bytes_for_are_counted_and_not_kept() {
        use Transaction::None;
        let mut reading = Reading { most: 100, ..Reading::default() };
        for connection in 0..2 {
            reading.take(Record::Open { connection, at: 0, said: Vec::new() });
        }
        for number in 0..1_000 {
            unit(&mut reading, number % 2, "SELECT a FROM t", [10 * number, 10 * number + 3], None);
        }
        let traffic = reading.end(About::default());
        assert!(traffic.is_counted && traffic.units.is_empty() && traffic.check_kept().is_err());
        assert_eq!((traffic.requests, traffic.lanes.len(), traffic.ended()), (1_000, 2, 9_993));
        assert_eq!((traffic.busiest(), traffic.kinds[0].calls), (1_500, 1_000));
    }

    #[test]
    fn literal_that_is_more_than_a_value_is_judged_as_it_is_sent() {
        let judged = |template: &str, literals: &[&str], language| {
            let mut reading = Reading {
                traffic: Traffic { language, ..Traffic::default() },
                most: 1_000,
                ..Reading::default()
            };
            reading.take(Record::Open { connection: 0, at: 0, said: Vec::new() });
            let template = template.replace('?', &GAP.to_string());
            reading.take(Record::Statement { number: 0, template });
            let filling = literals.iter().map(|literal| (*literal).to_owned()).collect();
            let request = Request { time: Some(1), literals: filling, ..Request::default() };
            reading.take(Record::Request(Box::new(request)));
            let traffic = reading.end(About::default());
            assert_eq!((traffic.requests, traffic.left_out), (1, 0), "{literals:?}");
            traffic.writes().is_some()
        };
        for (template, literals, writes) in [
            ("SELECT a FROM t WHERE b = ?", &["5"][..], false),
            ("SELECT a FROM t WHERE b = ?", &["'x''y'"], false),
            ("SELECT a FROM t WHERE b = ? ?", &["'x'", "-- said"], false),
            ("SELECT a FROM t WHERE b = ?", &["'x'; DELETE FROM t"], true),
            ("SELECT a FROM t WHERE b = '?'", &["'; DELETE FROM t; --"], true),
            ("SELECT a FROM t WHERE b = ?", &["(SELECT nextval('s'))"], true),
            ("SELECT a FROM t WHERE b = next?('s')", &["val"], true),
            ("SELECT a FROM t WHERE b = '? ?", &["' OR nextval('s') > 0 OR '1' = '", "1'"], true),
            ("?", &["DELETE FROM t"], true),
            ("SET ?", &["STATEMENT tx_read_only=0 FOR DELETE FROM t"], true),
        ] {
            for language in [Dialect::POSTGRES, Dialect::MYSQL].map(Language::Sql) {
                assert_eq!(judged(template, literals, language), writes, "{template} {literals:?}");
            }
        }
    }

    #[test]
    fn update_that_may_have_waited_for_a_commit_waits_for_it() {
        use Transaction::{None, Open};
        let traffic = needs(&[
            (0, "BEGIN", [1, 2], Open),
            (0, "UPDATE t SET a = 1", [3, 4], Open),
            (1, "SELECT a FROM t", [5, 9], None),
            (2, "UPDATE t SET a = 2", [5, 9], None),
            (0, "COMMIT", [6, 10], None),
        ]);
        let needs: Vec<_> = traffic.units.iter().map(|unit| (unit.after_units, unit.after_commits)).collect();
        // The second update waits for the first one's commit, although that was answered later.
        assert_eq!(needs, [(0, 0), (0, 0), (2, 0), (0, 0), (2, 1)]);
        assert!(traffic.raced(&traffic.units[3]));
    }

    #[test]
    fn cursors_of_mongodb_are_gone_on_with_after_they_are_open_and_other_databases_left_out() {
        let field = |kind: u8, name: &[u8], value: &[u8]| {
            let mut out = Vec::new();
            bson::push(&mut out, kind, name, value);
            out
        };
        let long = |name: &[u8], number: i64| field(bson::INT64, name, &number.to_le_bytes());
        let text = |name: &[u8], value: &str| {
            let mut out = Vec::new();
            bson::push_text(&mut out, name, value.as_bytes());
            out
        };
        // As the view records it: the document, and a cursor that the answer opened.
        let command = |fields: &[Vec<u8>], database: &str| {
            let mut out = [&[0; 4], fields.concat().as_slice(), &text(b"$db", database)].concat();
            bson::end(&mut out, 0);
            Parameter::new(bson::DOCUMENT.into(), true, out)
        };
        let find = || vec![text(b"find", "items")];
        let more = |cursor| vec![long(b"getMore", cursor), text(b"collection", "items")];
        let opened = Parameter::new(257, true, &5_i64.to_le_bytes()[..]);
        let mut reading = Reading {
            traffic: Traffic { language: Language::Documents, ..Traffic::default() },
            most: 1_000,
            ..Reading::default()
        };
        for connection in 0..3 {
            reading.take(Record::Open { connection, at: 0, said: Vec::new() });
        }
        for (connection, template, [at, end], parameters) in [
            (0, "find items", [1, 2], vec![command(&find(), "shop"), opened]),
            (2, "find items", [1, 9], vec![command(&find(), "shop")]),
            (1, "getMore items ?", [3, 4], vec![command(&more(5), "shop")]),
            (1, "getMore items ?", [5, 6], vec![command(&more(6), "shop")]),
            (0, "getMore items ?", [7, 8], vec![command(&more(5), "shop")]),
            (1, "find items", [7, 8], vec![command(&find(), "other")]),
            (1, "ping", [9, 9], Vec::new()),
        ] {
            let number = reading.numbers.len() as u64;
            reading.take(Record::Statement { number, template: template.to_owned() });
            let time = Some(end - at);
            let (statement, digest) = (number, u64::from(COMPLETE));
            let request =
                Request { connection, at, time, statement, parameters, digest, ..Request::default() };
            reading.take(Record::Request(Box::new(request)));
        }
        reading.keep_one_database();
        let traffic = reading.end(About::default());
        let needs: Vec<_> = traffic.units.iter().map(|unit| (unit.at, unit.after_units)).collect();
        // By connection. Only what another connection opened has to be waited for.
        assert_eq!(needs, [(1, 0), (7, 0), (3, 1), (1, 0)]);
        assert_eq!((traffic.requests, traffic.left_out), (4, 3));
        // Neither connection has seen all of its documents, which both read since it was opened.
        for more in &traffic.units[1..3] {
            assert_eq!((more.requests[0].request.digest, more.snapshot), (0, [1, more.end]));
        }
        assert!(traffic.writes().is_none() && traffic.written().is_empty());
    }
}
