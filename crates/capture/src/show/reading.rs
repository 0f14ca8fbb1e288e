//! Reads a capture once: kinds of statements and of units of work, with samples of their values. Memory does not depend on
//! its length.

use super::does::{Does, Transaction as Changes};
use super::n_plus_one;
use super::spread::Requests;
use super::work::{Kind, Live, Occurrence, Work, cost};
use super::{COURSE, Course, Shown, Statement, Unit};
use crate::Values;
use crate::commands;
use crate::file::{self, About};
use crate::forms::{Form, Value, call_values};
use crate::record::{Record, Request};
use crate::units::{flatten, renumber};
use kurabe_core::Result;
use kurabe_core::sort;
use kurabe_protocol::call::{Call, Language};
use kurabe_protocol::command::Command;
use kurabe_stats::histogram::Histogram;
use kurabe_wire::statement::fingerprint;
use kurabe_wire::view::{Step, Transaction};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The requests from which a connection is one that works.
const WORKING: u64 = 10;
/// The pause of a connection outside of a transaction after which another unit of work begins, in nanoseconds.
const PAUSE: u64 = 10_000_000;
/// The maximum number of kinds of statements that are told apart; the rest are one.
const STATEMENTS: usize = 1_000;
/// The maximum number of statements of a unit. Outside of a transaction another begins then.
const LONGEST: usize = 10_000;
/// The statements and values of a unit that are kept until it ends.
const VALUES: usize = 3_000;
/// The maximum number of steps of the course while it is read: of a day each second is one.
const STEPS: usize = 100_000;
/// The maximum number of forms of statements whose values are kept.
const FORMS: usize = 4_000;
/// The maximum number of values of a statement: one with more is bulk data.
const LONG: usize = 500;
/// The maximum length of the first line of a script, and of a part of a key, in characters.
const LINE: usize = 60;

#[derive(Default)]
struct Reading {
    language: Language,
    shown: Shown,
    /// The kind of each template, by the template's number.
    kinds: HashMap<u64, usize>,
    by_text: HashMap<String, usize>,
    times: Vec<Histogram>,
    /// Each template as a form, by its number, and the place of the first form that is the same.
    formed: HashMap<u64, (usize, Form)>,
    /// Of calls that are no statements: their texts, by the template's number.
    texts: HashMap<u64, String>,
    /// Whether commands on keys and documents become statements, where they can.
    translates: bool,
    /// The first lines of scripts of Redis, by their checksums.
    scripts: HashMap<String, String>,
    /// Of executions of these, by the places of their kinds: the command, the checksum and the pattern of the key.
    executed: HashMap<usize, [String; 3]>,
    by_form: HashMap<String, usize>,
    forms: Vec<Form>,
    sent: Sent,
    work: Work,
    outside: Requests,
    open: HashMap<u64, Live>,
    /// What began in each step of so many seconds, which are more where a capture is long.
    seconds: BTreeMap<u64, Course>,
    step: u64,
    /// When the first step begins.
    course_from: Option<u64>,
    first: Option<u64>,
    last: u64,
    open_ns: u64,
    idle_ns: u64,
    total_ns: u64,
    /// Connections that are open and work.
    working: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) as_text: u64,
    pub(crate) bound: u64,
    pub(crate) executed: u64,
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

/// Reads a capture with samples of the values. `translates`: commands on keys and documents become statements, where they can.
pub(crate) fn analyse(path: &Path, translates: bool) -> Result<Analysis> {
    let mut reading = Reading { translates, step: 1, ..Reading::default() };
    let mut language = None;
    let (about, ending) = file::read(path, |about, record| {
        reading.language = *language.get_or_insert_with(|| about.language());
        reading.take(about, record);
    })?;
    reading.shown.about = about;
    reading.shown.ending = ending;
    Ok(reading.end())
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
                let Some(dialect) = self.language.sql() else {
                    self.texts.insert(number, template);
                    return;
                };
                let text = fingerprint(&template);
                let kind = self.kind(&text, || Does::read(&Call::Sql(&text, dialect)));
                self.kinds.insert(number, kind);
                let form = Form::of(&template, dialect);
                let place = self.form(&form).filter(|_| self.formed.len() < 4 * FORMS);
                self.formed.extend(place.map(|place| (number, (place, form))));
            }
            Record::Request(request) => self.request(&request, about),
            Record::Data { length, .. } => self.shown.data_bytes += length,
            Record::Close { connection, at, unreadable } => {
                if let Some(mut live) = self.open.remove(&connection) {
                    self.work.end(connection, &mut live);
                    self.open_ns += at.saturating_sub(live.opened);
                    self.working -= u64::from(live.requests >= WORKING);
                }
                if let Some(why) = unreadable {
                    *self.shown.connections.unreadable.entry(why).or_default() += 1;
                }
            }
            Record::Made { .. } | Record::End { .. } => {}
        }
    }

    /// The place of a form, if there are not too many.
    fn form(&mut self, form: &Form) -> Option<usize> {
        let key = form.key.clone();
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
    fn kind(&mut self, text: &str, does: impl FnOnce() -> Does) -> usize {
        let is_full = self.shown.statements.len() >= STATEMENTS;
        let text = if is_full && !self.by_text.contains_key(text) { "(other statements)" } else { text };
        if let Some(place) = self.by_text.get(text) {
            return *place;
        }
        let place = self.shown.statements.len();
        let does = does();
        let setup = does.is_setup;
        self.shown.statements.push(Statement { setup, does, text: text.to_owned(), ..Statement::default() });
        self.times.push(Histogram::new());
        self.by_text.insert(text.to_owned(), place);
        place
    }

    /// What a request does: the place of its kind, and its form and values, if these are known.
    fn done(&mut self, request: &Request, about: &About) -> Option<(usize, Option<Formed>)> {
        let number = request.statement;
        let language = self.language;
        if language.sql().is_some() {
            let place = self.kinds.get(&number).copied()?;
            let formed = self.formed.get(&number).filter(|_| !request.cut);
            return Some((place, formed.map(|(form, own)| (*form, own.values(request)))));
        }
        let text = self.texts.get(&number)?.clone();
        let call = language.call("", &request.parameters);
        let does = || call.as_ref().map(Does::read).unwrap_or_default();
        if self.translates && commands::are_translated(language) {
            return match commands::translate(call.as_ref(), request) {
                Ok((plain, values)) => {
                    let form = Form::for_translated(plain.clone());
                    let place = self.form(&form);
                    let kind = self.kind(&form.key, || Does::translated(&plain));
                    Some((kind, place.map(|place| (place, values))))
                }
                Err(why) => {
                    let place = self.kind(&text, does);
                    self.shown.statements.get_mut(place)?.why_not.get_or_insert(why);
                    Some((place, None))
                }
            };
        }
        if let Some(Call::Command(command)) = call {
            let script = self.script(&command, about);
            return Some((script.unwrap_or_else(|| self.kind(&text, does)), None));
        }
        let place = self.kind(&text, does);
        let Some(call) = call.filter(|_| !request.cut) else { return Some((place, None)) };
        let (values, are_parameters) = call_values(&call);
        let (columns, values): (Vec<String>, Vec<Value>) = values.into_iter().unzip();
        let form = self.form(&Form::for_call(&text, columns, are_parameters));
        Some((place, form.map(|form| (form, values))))
    }

    /// The kind of an execution of a script of Redis: by the script's checksum and the first key, in which parts with digits are values.
    fn script(&mut self, command: &Command<'_>, about: &About) -> Option<usize> {
        let name = command.names().collect::<Vec<_>>().join(" ");
        let is_script = name.starts_with("EVAL") || name == "SCRIPT LOAD";
        if !is_script || about.values != Values::Keep {
            return None;
        }
        let mut given = command.words();
        let script = given.next()?;
        let first = String::from_utf8_lossy(script);
        let checksum = if name.starts_with("EVALSHA") {
            first.to_lowercase()
        } else {
            let sum = digest(&SHA1_FOR_LEGACY_USE_ONLY, script);
            let sum = sum.as_ref().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
            if self.scripts.len() < STATEMENTS {
                let line = first.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
                self.scripts.entry(sum.clone()).or_insert_with(|| line.chars().take(LINE).collect());
            }
            sum
        };
        if name == "SCRIPT LOAD" {
            return None;
        }
        let key = given.next().filter(|count| *count != b"0").and_then(|_| given.next()).unwrap_or_default();
        let part = |part: &[u8]| {
            let is_value = part.iter().any(u8::is_ascii_digit) || part.len() > LINE;
            if is_value { "?".to_owned() } else { String::from_utf8_lossy(part).into_owned() }
        };
        let key: Vec<_> = key.split(|byte| *byte == b':').map(part).collect();
        let key = key.join(":");
        let text = format!("{name} {checksum} {key}");
        let place = self.kind(&text, || Does::read(&Call::Command(*command)));
        let is_own = self.shown.statements.get(place).is_some_and(|one| one.text == text);
        self.executed.extend(is_own.then_some((place, [name, checksum, key])));
        Some(place)
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
        let step = self.step;
        let first = *self.course_from.get_or_insert(at);
        let second = self.seconds.entry(at.saturating_sub(first) / 1_000_000_000 / step).or_default();
        second.requests += 1;
        second.busy_ns += time;
        shown.peak_per_second = shown.peak_per_second.max(second.requests / step);
        if self.seconds.len() > STEPS {
            self.step *= 2;
            for (second, one) in std::mem::take(&mut self.seconds) {
                let into = self.seconds.entry(second / 2).or_default();
                into.requests += one.requests;
                into.busy_ns += one.busy_ns;
            }
        }
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = self.last.max(at + time);
        self.total_ns += time;
        statement.total_ns += time;
        if request.time.is_some() && request.step != Step::Prepare {
            times.record(time);
        }
        let is_call = request.step != Step::Prepare;
        let (is_setup, changes) = (statement.setup, statement.does.transaction.filter(|_| is_call));
        let begins = changes == Some(Changes::Begins);
        let known = self.open.remove(&request.connection);
        if known.is_none() && self.open.len() as u64 >= file::FEW {
            // No recorder writes requests of connections that never began.
            return;
        }
        let mut live = known.unwrap_or_default();
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
            self.work.end(request.connection, &mut live);
        }
        live.rolled_back = changes == Some(Changes::RollsBack);
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
                live.calls.push(Occurrence { statement: place, form, at, pause, values });
            }
        }
        live.unit_ns += time;
        live.ended = live.ended.max(at + time);
        if is_call && !is_setup && !live.in_transaction && request.transaction == Transaction::None {
            self.outside.push(request.connection, place, [at, at + time], request.rows);
        }
        match request.transaction {
            Transaction::Unknown => live.in_transaction |= begins,
            Transaction::Open | Transaction::Failed => live.in_transaction = true,
            Transaction::None => {
                if live.in_transaction || begins {
                    live.in_transaction = true;
                    self.work.end(request.connection, &mut live);
                }
                live.in_transaction = false;
            }
        }
        self.open.insert(request.connection, live);
    }

    fn end(mut self) -> Analysis {
        for (connection, mut live) in std::mem::take(&mut self.open) {
            self.open_ns += self.last.saturating_sub(live.opened);
            self.work.end(connection, &mut live);
        }
        let all = self.total_ns.max(1) as f64;
        let mut shown = self.shown;
        for (place, [name, checksum, key]) in &self.executed {
            let short: String = checksum.chars().take(8).collect();
            let script = self.scripts.get(checksum).unwrap_or(&short);
            if let Some(statement) = shown.statements.get_mut(*place) {
                format!("{name} {script} {key}").trim_end().clone_into(&mut statement.text);
            }
        }
        shown.units_not_listed = self.work.not_listed;
        for (statement, times) in shown.statements.iter_mut().zip(&self.times) {
            statement.share = statement.total_ns as f64 / all;
            (statement.p50_ns, statement.p99_ns) = (times.quantile(0.5), times.quantile(0.99));
        }
        let mut spread = self.outside.loops(&shown.statements, PAUSE);
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
        let mut kinds: Vec<Kind> = self.work.kinds.into_values().flatten().collect();
        // Equals in an order that does not depend on chance.
        kinds.sort_by_cached_key(|kind| {
            let key = flatten(&kind.nodes);
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
            steps: kind.nodes.clone(),
            draws: BTreeMap::new(),
        };
        shown.units = kinds.iter().map(unit).collect();
        let place = |old: usize| places.get(old).copied().unwrap_or(0);
        for one in &mut spread {
            [one.after, one.statement] = [one.after, one.statement].map(place);
        }
        shown.spread_loops = spread;
        shown.time_ns = self.last.saturating_sub(self.first.unwrap_or(0));
        shown.course =
            course(&self.seconds, self.step, self.last.saturating_sub(self.course_from.unwrap_or(0)));
        // Of a capture of a second or two, no second is whole.
        let average = shown.requests as f64 * 1e9 / shown.time_ns.max(1) as f64;
        shown.peak_per_second = shown.peak_per_second.max(average.ceil() as u64);
        shown.concurrency = self.total_ns as f64 / shown.time_ns.max(1) as f64;
        shown.connections.idle_in_transaction = self.idle_ns as f64 / self.open_ns.max(1) as f64;
        Analysis { shown, kinds, forms: self.forms, sent: self.sent }
    }
}

/// The seconds in steps, as many as there is room for, to the last answer; `each`: the seconds of a key.
fn course(seconds: &BTreeMap<u64, Course>, each: u64, time_ns: u64) -> Vec<Course> {
    let Some((last, _)) = seconds.last_key_value() else { return Vec::new() };
    let all = (last + 1).max(time_ns.div_ceil(1_000_000_000 * each));
    let step = all.div_ceil(COURSE);
    let whole = (step * each) as f64;
    let mut course = vec![Course { seconds: whole, ..Course::default() }; all.div_ceil(step) as usize];
    for (second, one) in seconds {
        if let Some(into) = course.get_mut((second / step) as usize) {
            into.requests += one.requests;
            into.busy_ns += one.busy_ns;
        }
    }
    let left = time_ns as f64 / 1e9 - whole * (course.len() - 1) as f64;
    // Of too short a time no rate is known: it is part of the step before.
    match course.pop() {
        Some(short) if left < whole / 2.0 && !course.is_empty() => {
            let before = course.len() - 1;
            course[before].seconds += left.max(0.0);
            course[before].requests += short.requests;
            course[before].busy_ns += short.busy_ns;
        }
        Some(short) => course.push(Course { seconds: left.max(1e-9), ..short }),
        None => {}
    }
    course
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_with_the_last_answer_and_none_is_too_short_for_a_rate() {
        let one = |requests| Course { requests, ..Course::default() };
        let second = 1_000_000_000;
        let shown = |keys: &[(u64, u64)], time_ns| -> Vec<(f64, u64)> {
            let seconds = keys.iter().map(|(second, requests)| (*second, one(*requests))).collect();
            course(&seconds, 1, time_ns)
                .iter()
                .map(|at| ((at.seconds * 1e3).round() / 1e3, at.requests))
                .collect()
        };
        assert_eq!(shown(&[(0, 10), (1, 6)], second + second * 6 / 10), [(1.0, 10), (0.6, 6)]);
        assert_eq!(shown(&[(0, 10), (1, 1)], second + second / 10), [(1.1, 11)]);
        assert_eq!(shown(&[(0, 3)], second / 4), [(0.25, 3)]);
        assert_eq!(shown(&[(0, 1)], 3 * second), [(1.0, 1), (1.0, 0), (1.0, 0)]);
        let long = shown(&[(0, 1), (599, 1)], 600 * second);
        assert_eq!((long.len(), long[0].0), (200, 3.0));
    }
}
