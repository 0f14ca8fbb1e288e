//! Reads a capture once: kinds of statements and of units of work, with samples of their values. Memory does not depend on
//! its length.

use super::{COURSE, Course, Part, Shown, Statement, Unit};
use crate::commands;
use crate::file::{self, About};
use crate::forms::{Form, Value};
use crate::record::{Record, Request};
use crate::units::{Node, Visits, What, alike, fold, walk};
use kurabe_core::Result;
use kurabe_core::sort;
use kurabe_stats::Rng;
use kurabe_stats::histogram::Histogram;
use kurabe_wire::statement::Dialect;
use kurabe_wire::statement::{fingerprint, is_setup};
use kurabe_wire::view::{Step, Transaction};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The passes from which a loop outside of a transaction is a client's, and not one of the application.
const PASSES: u64 = 10;
/// The requests from which a connection is one that works.
const WORKING: u64 = 10;
/// The pause of a connection outside of a transaction after which another unit of work begins, in nanoseconds.
const PAUSE: u64 = 10_000_000;
/// The maximum number of kinds of statements that are told apart; the rest are one.
const STATEMENTS: usize = 1_000;
/// The maximum number of kinds of units.
const UNITS: usize = 1_000;
/// The maximum number of statements of a unit. Outside of a transaction another begins then.
const LONGEST: usize = 10_000;
/// The statements and values of a unit that are kept until it ends.
const VALUES: usize = 3_000;
/// The maximum number of forms of statements whose values are kept.
const FORMS: usize = 4_000;
/// The maximum number of values of a statement: one with more is bulk data.
const LONG: usize = 500;
/// The maximum number of units of a kind whose values are kept: more do not make draws clearer.
const SAMPLES: usize = 10_000;
/// The maximum number of statements and values in all of these.
const SAMPLED: usize = 800_000;
/// A unit outside of a transaction with more parts than this is no unit, but a client that never pauses.
const PARTS: usize = 64;
/// A loop of reads with this many repetitions is what "N+1" means.
const MANY: u64 = 5;

#[derive(Default)]
struct Reading {
    shown: Shown,
    /// The kind of each template, by the template's number.
    kinds: HashMap<u64, usize>,
    by_text: HashMap<String, usize>,
    times: Vec<Histogram>,
    /// Each template as a form, by its number, and the place of the first form that is the same.
    formed: HashMap<u64, (usize, Form)>,
    /// Of commands that are told as statements: their texts, by the template's number.
    told: Option<HashMap<u64, String>>,
    by_form: HashMap<String, usize>,
    forms: Vec<Form>,
    sent: Sent,
    units: HashMap<Vec<usize>, Vec<Kind>>,
    rng: Option<Rng>,
    sampled: usize,
    open: HashMap<u64, Live>,
    /// What began in each second.
    seconds: BTreeMap<u64, Course>,
    first: Option<u64>,
    last: u64,
    open_ns: u64,
    idle_ns: u64,
    total_ns: u64,
    /// Connections that are open and work.
    working: u64,
}

/// How statements were sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) as_text: u64,
    pub(crate) bound: u64,
    pub(crate) executed: u64,
}

/// A kind of unit with the values of some of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kind {
    pub(crate) nodes: Vec<Node>,
    pub(crate) calls: u64,
    pub(crate) total_ns: u64,
    pub(crate) transaction: bool,
    /// How many were rolled back.
    pub(crate) rolled_back: u64,
    seen: u64,
    /// In the order of time.
    pub(crate) samples: Vec<Sample>,
}

/// A unit with its values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) connection: u64,
    pub(crate) at: u64,
    /// Each with the number of its node.
    pub(crate) calls: Vec<(usize, Call)>,
    /// Of nodes that repeat, how often.
    pub(crate) counts: Vec<(usize, u64)>,
}

/// A statement with its values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    pub(crate) statement: usize,
    /// The form, if there are not too many.
    pub(crate) form: Option<usize>,
    pub(crate) at: u64,
    /// The time since the connection's answer before.
    pub(crate) pause: u64,
    pub(crate) values: Vec<Value>,
}

/// What a capture shows, and what a model needs beyond that.
pub(crate) struct Analysis {
    pub(crate) shown: Shown,
    /// The kinds of units, as in `shown`, whose statements have the places that they have there.
    pub(crate) kinds: Vec<Kind>,
    pub(crate) forms: Vec<Form>,
    pub(crate) sent: Sent,
}

/// A form by its place, and its values.
type Formed = (usize, Vec<Value>);

/// A connection while it is read.
#[derive(Default)]
struct Live {
    requests: u64,
    opened: u64,
    ended: u64,
    in_transaction: bool,
    rolled_back: bool,
    statements: Vec<usize>,
    calls: Vec<Call>,
    /// The statements and values in these.
    kept: usize,
    unit_ns: u64,
    unit_at: u64,
}

impl Live {
    /// The same connection with these statements.
    fn of(&self, unit_ns: u64, statements: &[usize], calls: Vec<Call>) -> Self {
        let (opened, ended, unit_at) = (self.opened, self.ended, self.unit_at);
        Self { opened, ended, unit_at, unit_ns, statements: statements.to_vec(), calls, ..Self::default() }
    }

    /// Takes the first statements, and their share of the time.
    fn split(&mut self, length: usize) -> Self {
        let share = length as f64 / self.statements.len().max(1) as f64;
        let unit_ns = (self.unit_ns as f64 * share) as u64;
        self.unit_ns -= unit_ns;
        let statements: Vec<usize> = self.statements.drain(..length).collect();
        let calls = self.calls.drain(..length.min(self.calls.len())).collect();
        self.of(unit_ns, &statements, calls)
    }
}

/// Reads a capture with samples of the values. `tells`: commands on keys and documents become statements, where they can.
pub(crate) fn analyse(path: &Path, tells: bool) -> Result<Analysis> {
    let mut reading = Reading { told: tells.then(HashMap::new), ..Reading::default() };
    let (about, ending) = file::read_with(path, |about, record| reading.take(about, record))?;
    reading.shown.about = about;
    reading.shown.ending = ending;
    Ok(reading.end())
}

/// The dialect of a capture.
fn dialect(about: &About) -> Dialect {
    Dialect::of_scheme(&about.protocol)
}

impl Reading {
    fn take(&mut self, about: &About, record: Record) {
        match record {
            Record::Open { connection, at, .. } => {
                self.open.insert(connection, Live { opened: at, ended: at, ..Live::default() });
                let connections = &mut self.shown.connections;
                connections.opened += 1;
                connections.most_open = connections.most_open.max(self.open.len() as u64);
            }
            Record::Statement { number, template } => {
                if let Some(told) = self.told.as_mut().filter(|_| commands::are_told(&about.protocol)) {
                    told.insert(number, template);
                    return;
                }
                let kind = self.kind(fingerprint(&template), about);
                self.kinds.insert(number, kind);
                let form = Form::of(&template, dialect(about));
                let place = self.form(&form).filter(|_| self.formed.len() < 4 * FORMS);
                self.formed.extend(place.map(|place| (number, (place, form))));
            }
            Record::Request(request) => self.request(&request, about),
            Record::Data { length, .. } => self.shown.data_bytes += length,
            Record::Close { connection, at, unreadable } => {
                if let Some(mut live) = self.open.remove(&connection) {
                    self.unit(connection, &mut live);
                    self.open_ns += at.saturating_sub(live.opened);
                    self.working -= u64::from(live.requests >= WORKING);
                }
                if let Some(why) = unreadable {
                    *self.shown.connections.unreadable.entry(why).or_default() += 1;
                }
            }
            Record::End { .. } => {}
        }
    }

    /// The place of a form, if there are not too many.
    fn form(&mut self, form: &Form) -> Option<usize> {
        let key = form.key();
        let is_kept = self.forms.len() < FORMS && form.values_in_it() <= LONG;
        self.by_form.get(&key).copied().or_else(|| {
            is_kept.then(|| {
                self.forms.push(form.clone());
                self.by_form.insert(key, self.forms.len() - 1);
                self.forms.len() - 1
            })
        })
    }

    /// The place of a kind of statement.
    fn kind(&mut self, text: String, about: &About) -> usize {
        let is_full = self.shown.statements.len() >= STATEMENTS;
        let text =
            if is_full && !self.by_text.contains_key(&text) { "(other statements)".to_owned() } else { text };
        if let Some(place) = self.by_text.get(&text) {
            return *place;
        }
        let place = self.shown.statements.len();
        // `SET` of Redis writes a value.
        let is_command = ["redis", "valkey", "memcached"].contains(&about.protocol.as_str());
        let setup = if is_command { commands::is_setup(&text) } else { is_setup(&text) };
        let lower = text.to_ascii_lowercase();
        let is_one_of = |words: &[&str]| setup && words.iter().any(|word| lower.starts_with(word));
        self.shown.statements.push(Statement {
            setup,
            begins: is_one_of(&["begin", "start", "multi"]),
            rolls_back: is_one_of(&["rollback", "abort", "discard"]),
            text: text.clone(),
            ..Statement::default()
        });
        self.times.push(Histogram::new());
        self.by_text.insert(text, place);
        place
    }

    /// What a request does: the place of its kind, and its form and values, if these are known.
    fn done(&mut self, request: &Request, about: &About) -> Option<(usize, Option<Formed>)> {
        let Some(told) = self.told.as_ref().filter(|_| commands::are_told(&about.protocol)) else {
            let place = self.kinds.get(&request.statement).copied()?;
            let formed = self.formed.get(&request.statement).filter(|_| !request.cut);
            return Some((place, formed.map(|(form, own)| (*form, own.values(request, dialect(about))))));
        };
        let text = told.get(&request.statement)?.clone();
        match commands::translate(&about.protocol, &text, request) {
            Ok((text, values)) => {
                let form = self.form(&Form::of(&text, Dialect::Postgres));
                Some((self.kind(fingerprint(&text), about), form.map(|form| (form, values))))
            }
            Err(why) => {
                let place = self.kind(text, about);
                self.shown.statements.get_mut(place)?.why_not.get_or_insert(why);
                Some((place, None))
            }
        }
    }

    fn request(&mut self, request: &Request, about: &About) {
        let Some((place, formed)) = self.done(request, about) else { return };
        let shown = &mut self.shown;
        let (Some(statement), Some(times)) = (shown.statements.get_mut(place), self.times.get_mut(place))
        else {
            return;
        };
        shown.requests += 1;
        shown.errors += u64::from(request.error.is_some());
        shown.unanswered += u64::from(request.time.is_none() && request.error.is_none());
        shown.pipelined += u64::from(request.pipelined);
        shown.cut += u64::from(request.cut);
        statement.errors += u64::from(request.error.is_some());
        statement.rows += request.rows;
        statement.affected += request.affected;
        statement.most_rows = statement.most_rows.max(request.rows.max(request.affected));
        if request.step == Step::Prepare {
            statement.prepared += 1;
        } else {
            statement.calls += 1;
        }
        let (at, time) = (request.at, request.time.unwrap_or(0));
        let second = self.seconds.entry(at / 1_000_000_000).or_default();
        second.requests += 1;
        second.busy_ns += time;
        shown.peak_per_second = shown.peak_per_second.max(second.requests);
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = self.last.max(at + time);
        self.total_ns += time;
        statement.total_ns += time;
        if request.time.is_some() && request.step != Step::Prepare {
            times.record(time);
        }
        let is_call = request.step != Step::Prepare;
        let is_setup = statement.setup;
        let (begins, rolls_back) = (is_call && statement.begins, is_call && statement.rolls_back);
        let mut live = self.open.remove(&request.connection).unwrap_or_default();
        live.requests += 1;
        if live.requests == WORKING {
            self.working += 1;
            let connections = &mut self.shown.connections;
            connections.most_working = connections.most_working.max(self.working);
        }
        let pause = at.saturating_sub(live.ended);
        if live.in_transaction {
            self.idle_ns += pause;
        } else if pause > PAUSE || begins || live.statements.len() >= LONGEST {
            self.unit(request.connection, &mut live);
        }
        live.rolled_back = rolls_back;
        if !is_setup && is_call && live.statements.len() < LONGEST {
            if live.statements.is_empty() {
                (live.unit_at, live.kept) = (at, 0);
            }
            live.statements.push(place);
            let sent = &mut self.sent;
            match request.step {
                Step::Execute => sent.executed += 1,
                Step::Bound => sent.bound += 1,
                _ => sent.as_text += 1,
            }
            if live.kept < VALUES && about.values == crate::Values::Keep {
                let (form, values) = formed.unzip();
                let values = values.unwrap_or_default();
                live.kept += cost(&values);
                live.calls.push(Call { statement: place, form, at, pause, values });
            }
        }
        live.unit_ns += time;
        live.ended = live.ended.max(at + time);
        match request.transaction {
            Transaction::Unknown => live.in_transaction |= begins,
            Transaction::Open | Transaction::Failed => live.in_transaction = true,
            Transaction::None => {
                if live.in_transaction || begins {
                    live.in_transaction = true;
                    self.unit(request.connection, &mut live);
                }
                live.in_transaction = false;
            }
        }
        self.open.insert(request.connection, live);
    }

    /// Ends a connection's unit of work.
    fn unit(&mut self, connection: u64, live: &mut Live) {
        let total_ns = std::mem::take(&mut live.unit_ns);
        let (statements, calls) = (std::mem::take(&mut live.statements), std::mem::take(&mut live.calls));
        if statements.is_empty() {
            return;
        }
        let (times, nodes) = fold(&statements);
        if !live.in_transaction
            && let Some([before, after]) = self.ends_of_loop(&nodes)
        {
            // A client in a loop was slow once: what is before and after whole passes is no unit.
            let mut rest = live.of(total_ns, &statements, calls);
            for (from, to) in [
                (0, before),
                (before, statements.len() - after),
                (statements.len() - after, statements.len()),
            ] {
                let length = to - from;
                let mut part = rest.split(length);
                if from == before && length > before + after {
                    self.unit(connection, &mut part);
                } else {
                    let Live { unit_ns, statements, calls, .. } = part;
                    self.pieces(connection, live, unit_ns, &statements, calls);
                }
            }
            return;
        }
        let mut key = Vec::new();
        flatten(&nodes, &mut key);
        let is_full = self.units.len() >= UNITS && !self.units.contains_key(&key);
        if !live.in_transaction && (is_full || nodes.len() > PARTS) && key.len() > 1 {
            self.pieces(connection, live, total_ns, &statements, calls);
            return;
        }
        // Single statements are told apart always: there are not more of them than kinds of statements.
        if is_full && key.len() > 1 {
            self.shown.units_not_listed += times;
            return;
        }
        let kinds = self.units.entry(key).or_default();
        let transaction = live.in_transaction;
        let known =
            kinds.iter().position(|kind| kind.transaction == transaction && alike(&kind.nodes, &nodes));
        let place = known.unwrap_or_else(|| {
            kinds.push(Kind { nodes: nodes.clone(), transaction, ..Kind::default() });
            kinds.len() - 1
        });
        let Some(kind) = kinds.get_mut(place) else { return };
        kind.calls += times;
        kind.total_ns += total_ns;
        kind.rolled_back += if live.rolled_back { times } else { 0 };
        kind.nodes.iter_mut().zip(&nodes).for_each(|(own, other)| own.widen(other));
        let (mut rest, mut calls) = (statements.as_slice(), calls.into_iter());
        let rng = self.rng.get_or_insert_with(|| Rng::new(0));
        for _ in 0..times {
            let mut visits = Visits::default();
            let found = walk(&nodes, 0, &mut rest, &mut visits);
            let calls: Vec<_> = visits.statements.into_iter().zip(&mut calls).collect();
            if found.is_none() || calls.is_empty() {
                break;
            }
            // A reservoir: each unit of a kind is in it with the same probability (Vitter 1985, algorithm R).
            kind.seen += 1;
            let cost: usize = calls.iter().map(|(_, call): &(usize, Call)| cost(&call.values)).sum();
            let most = SAMPLES.min(SAMPLED / 8 / cost).max(1);
            let is_full = kind.samples.len() >= most || self.sampled >= SAMPLED;
            let place = if is_full { rng.below(kind.seen) as usize } else { kind.samples.len() };
            let at = calls.first().map_or(live.unit_at, |(_, call)| call.at);
            let sample = Sample { connection, at, calls, counts: visits.counts };
            if let Some(old) = kind.samples.get_mut(place) {
                *old = sample;
            } else if !is_full || kind.samples.is_empty() {
                self.sampled += cost;
                kind.samples.push(sample);
            }
        }
    }

    /// If a unit is one loop that begins or ends in the midst of a pass: how many statements are before the first whole pass,
    /// and after the last. Where a pass begins is known from clients that were seen to begin one.
    fn ends_of_loop(&self, nodes: &[Node]) -> Option<[usize; 2]> {
        let place =
            nodes.iter().position(|node| matches!(node.what, What::Loop(_)) && node.least >= PASSES)?;
        let (before, [Node { what: What::Loop(body), most, .. }, after @ ..]) =
            nodes.split_at_checked(place)?
        else {
            return None;
        };
        let once = |nodes: &[Node]| -> Option<Vec<usize>> {
            let one = |node: &Node| match node.what {
                What::Statement(statement) if node.most == 1 => Some(statement),
                _ => None,
            };
            nodes.iter().map(one).collect()
        };
        let (before, body, after) = (once(before)?, once(body)?, once(after)?);
        if nodes.len() == 1 || !body.ends_with(&before) || !body.starts_with(&after) {
            return None;
        }
        let turned = |by: usize| [&body[by..], &body[..by]].concat();
        let known = (0..body.len()).find(|by| self.units.contains_key(&turned(*by)));
        // Turned by so many statements, the first pass begins so much later, or one pass earlier.
        let first = before.len() + known.unwrap_or(0);
        let first = if first >= body.len() { first - body.len() } else { first };
        let all = before.len() + body.len() * *most as usize + after.len();
        Some([first, (all - first) % body.len()])
    }

    /// Takes each statement of a client that never pauses as a unit of its own.
    fn pieces(
        &mut self,
        connection: u64,
        live: &Live,
        total_ns: u64,
        statements: &[usize],
        calls: Vec<Call>,
    ) {
        if statements.is_empty() {
            return;
        }
        let mut alone: BTreeMap<usize, Live> = BTreeMap::new();
        for statement in statements {
            alone.entry(*statement).or_default().statements.push(*statement);
        }
        for call in calls {
            if let Some(one) = alone.get_mut(&call.statement) {
                one.calls.push(call);
            }
        }
        for (_, mut one) in alone {
            one.unit_at = live.unit_at;
            let share = one.statements.len() as f64 / statements.len() as f64;
            one.unit_ns = (total_ns as f64 * share) as u64;
            self.unit(connection, &mut one);
        }
    }

    fn end(mut self) -> Analysis {
        for (connection, mut live) in std::mem::take(&mut self.open) {
            self.open_ns += self.last.saturating_sub(live.opened);
            self.unit(connection, &mut live);
        }
        let all = self.total_ns.max(1) as f64;
        let mut shown = self.shown;
        for (statement, times) in shown.statements.iter_mut().zip(&self.times) {
            statement.share = statement.total_ns as f64 / all;
            (statement.p50_ns, statement.p99_ns) = (times.quantile(0.5), times.quantile(0.99));
        }
        // Sorted by time, and units name them by their new places.
        let mut order: Vec<usize> = (0..shown.statements.len()).collect();
        let of = |place: &usize| shown.statements.get(*place).map_or(0, |statement| statement.total_ns);
        sort::by_key(&mut order, |place| std::cmp::Reverse(of(place)));
        let mut places = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            if let Some(place) = places.get_mut(*old) {
                *place = new;
            }
        }
        shown.statements = order.iter().filter_map(|place| shown.statements.get(*place).cloned()).collect();
        let mut kinds: Vec<Kind> = self.units.into_values().flatten().collect();
        // Equals in an order that does not depend on chance.
        kinds.sort_by_cached_key(|kind| {
            let mut key = Vec::new();
            flatten(&kind.nodes, &mut key);
            (std::cmp::Reverse(kind.total_ns), key)
        });
        for kind in &mut kinds {
            renumber(&mut kind.nodes, &places);
            sort::by_key(&mut kind.samples, |sample| sample.at);
            let calls = kind.samples.iter_mut().flat_map(|sample| &mut sample.calls);
            calls.for_each(|(_, call)| call.statement = places.get(call.statement).copied().unwrap_or(0));
        }
        let unit = |kind: &Kind| Unit {
            calls: kind.calls,
            share: kind.total_ns as f64 / all,
            total_ns: kind.total_ns,
            transaction: kind.transaction,
            n_plus_one: n_plus_one(&kind.nodes, &shown.statements),
            steps: parts(&kind.nodes),
            draws: BTreeMap::new(),
        };
        shown.units = kinds.iter().map(unit).collect();
        shown.time_ns = self.last.saturating_sub(self.first.unwrap_or(0));
        shown.course = course(&self.seconds);
        // Of a capture of a second or two, no second is whole.
        let average = shown.requests as f64 * 1e9 / shown.time_ns.max(1) as f64;
        shown.peak_per_second = shown.peak_per_second.max(average.ceil() as u64);
        shown.concurrency = self.total_ns as f64 / shown.time_ns.max(1) as f64;
        shown.connections.idle_in_transaction = self.idle_ns as f64 / self.open_ns.max(1) as f64;
        Analysis { shown, kinds, forms: self.forms, sent: self.sent }
    }
}

/// The memory of a statement's values, in values: a kilobyte of text is one more.
fn cost(values: &[Value]) -> usize {
    let long = |value: &Value| if let Value::Text(text) = value { text.len() >> 10 } else { 0 };
    1 + values.iter().map(|value| 1 + long(value)).sum::<usize>()
}

/// The seconds in steps, as many as there is room for.
fn course(seconds: &BTreeMap<u64, Course>) -> Vec<Course> {
    let (Some((first, _)), Some((last, _))) = (seconds.first_key_value(), seconds.last_key_value()) else {
        return Vec::new();
    };
    let all = last - first + 1;
    let step = all.div_ceil(COURSE);
    let mut course = vec![Course { seconds: step, ..Course::default() }; all.div_ceil(step) as usize];
    if let Some(last) = course.last_mut() {
        last.seconds = all - (all - 1) / step * step;
    }
    for (second, one) in seconds {
        if let Some(at) = course.get_mut(((second - first) / step) as usize) {
            at.requests += one.requests;
            at.busy_ns += one.busy_ns;
        }
    }
    course
}

/// Gives statements other numbers.
fn renumber(nodes: &mut [Node], places: &[usize]) {
    for node in nodes {
        match &mut node.what {
            What::Statement(number) => *number = places.get(*number).copied().unwrap_or(0),
            What::Loop(body) => renumber(body, places),
        }
    }
}

/// The statements of a sequence without repetitions, as a key.
pub(crate) fn flatten(nodes: &[Node], key: &mut Vec<usize>) {
    for node in nodes {
        match &node.what {
            What::Statement(number) => key.push(*number),
            What::Loop(body) => flatten(body, key),
        }
    }
}

fn parts(nodes: &[Node]) -> Vec<Part> {
    let part = |node: &Node| {
        let (statement, repeats) = match &node.what {
            What::Statement(number) => (Some(*number), Vec::new()),
            What::Loop(body) => (None, parts(body)),
        };
        Part { times: [node.least, node.most], statement, repeats }
    };
    nodes.iter().map(part).collect()
}

/// Whether a loop of reads follows another statement.
fn n_plus_one(nodes: &[Node], statements: &[Statement]) -> bool {
    let reads = |number: usize| {
        let text = statements.get(number).map_or("", |one| one.text.as_str());
        let words = ["select", "with", "find ", "aggregate ", "count ", "distinct ", "get /", "head /"];
        words.iter().any(|word| text.to_ascii_lowercase().starts_with(word))
    };
    let only_reads = |node: &Node| {
        let mut key = Vec::new();
        flatten(std::slice::from_ref(node), &mut key);
        key.into_iter().all(reads)
    };
    nodes.iter().skip(1).any(|node| node.most >= MANY && only_reads(node))
        || nodes.iter().any(|node| matches!(&node.what, What::Loop(body) if n_plus_one(body, statements)))
}
