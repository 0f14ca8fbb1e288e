//! Values that the server made in the recording, each of which the replay binds to the value of its own run.
//!
//! Keys (`RETURNING`, the key in an OK packet, `nextval`), UUIDs, ids of streams and moments of the clock are recorded with the answers
//! that gave them. Where a replay gets another one, it sends that in later requests, and compares later answers as if it had
//! the recorded one. UUIDs and moments are found by their value; numbers only where requests of the recording had such keys.

use super::commands::Sent;
use super::family::Family;
use super::traffic::{Template, Traffic, Unit};
use kurabe_capture::record::{Parameter, Request};
use kurabe_protocol::sql::{Kind, Statement, Token, columns_of_values};
use kurabe_wire::statement::GAP;
use kurabe_wire::view::{Exchange, Rows, Spans, Step, are_all, moment, moment_like, uuid};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most rows of one statement to which MySQL gives numbers one after the other, and of which these are followed.
const ROWS: u64 = 1_000;
/// The most ways in which columns of an answer are taken to have keys.
const WAYS: usize = 256;
/// The most texts of rows without an order whose orders are tried.
const ORDERED: usize = 4;
/// Requests after which a value that never changed is no key.
const CONSTANT: u32 = 3;

/// What was bound so far.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    is_used: AtomicBool,
    bound: Mutex<Bound>,
}

/// A text of this run in place of a recorded one.
#[derive(Debug)]
struct OwnText {
    /// What else the request named.
    names: Vec<Vec<u8>>,
    own: Vec<u8>,
    /// Whether the server made it in this answer, and did not only give it.
    is_made: bool,
}

#[derive(Debug, Default)]
struct Bound {
    /// Own values by recorded ones. Numbers are those of a source: a table, or a statement.
    numbers: HashMap<(usize, i128), i128>,
    /// An id of a stream is one of others too: beside it is what else its request named.
    texts: HashMap<Vec<u8>, Vec<OwnText>>,
    moments: HashMap<i64, i64>,
    /// Own values by recorded ones, of rows whose order is not known: they are sent, and no answer is compared by them.
    guessed: HashMap<Vec<u8>, Vec<u8>>,
    /// Recorded values by own ones.
    recorded: HashMap<i128, Vec<(usize, i128)>>,
    recorded_texts: HashMap<Vec<u8>, Vec<u8>>,
}

/// What was learnt from an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Learnt {
    pub(super) times: Times,
    /// Whether it is the first to give a value that is followed: there the value itself cannot be compared.
    pub(super) is_first: bool,
    /// Whether it is not known which of its rows is which, since it gives them in no order.
    pub(super) is_unsure: bool,
}

/// A recorded value, and the one of this run in its place.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// Whether times in an answer are right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Times {
    /// They are those of the recording, or of this run in their places; or there are none.
    #[default]
    Same,
    /// Some are of this run's clock, and are seen for the first time; or not all are known.
    First,
    /// One is of neither clock, or is in another place.
    Other,
}

/// How an answer compares, whose values are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// All of it is as it was recorded.
    Equal,
    /// The same rows in another order, which is that of values that the server made.
    Reordered,
    Not,
}

impl Bindings {
    /// Learns from an answer. `spans`: what counts as a time, and what is one of this run's clock.
    pub(super) fn learn(
        &self,
        traffic: &Traffic,
        sent: &Sent,
        answer: &Exchange,
        spans: [Spans; 2],
    ) -> Learnt {
        let is_same = sent.made == answer.made;
        if answer.made.is_empty() || is_same && are_all(&answer.made) && !self.is_used.load(Ordering::Relaxed)
        {
            return Learnt::default();
        }
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let mut learnt = Learnt { times: bound.times(&sent.made, answer, spans), ..Learnt::default() };
        if sent.made.len() != answer.made.len() {
            return learnt;
        }
        let (template, family) = (&traffic.templates[sent.template], traffic.family);
        let is_made = template.makes.is_some() || sent.varies || family.is("volatile", &template.text);
        let has_texts = is_made || family.has_commands() || traffic.is_inserted(template);
        let is_placed = answer.rows <= 1
            || template.inserts
            || family.has_commands()
            || answer.kept.as_ref().is_some_and(Rows::are_ordered);
        let pairs = if is_placed {
            sent.made.iter().map(Vec::as_slice).zip(answer.made.iter().map(Vec::as_slice)).collect()
        } else {
            let (known, guessed) = bound.pairs(sent, answer, family);
            for (recorded, own) in guessed {
                learnt.is_unsure |= is_text(recorded);
                bound.guessed.insert(name(recorded), own.to_vec());
            }
            known
        };
        for (recorded, own) in pairs {
            let is_text = is_text(recorded);
            if let (false, Some(from), Some(to)) = (is_text, moment(recorded), moment(own)) {
                bound.moments.insert(from, to);
            } else if is_text
                && has_texts
                && (recorded != own || !sent.names.is_empty())
                && uuid(recorded).is_none_or(|uuid| !traffic.fixed.contains(&uuid))
            {
                learnt.is_first |= bound.text(recorded, own, &sent.names, is_made);
            } else if let (Some(source), Some(from), Some(to)) =
                (template.makes, number(recorded, family), number(own, family))
            {
                learnt.is_first |= from != to && bound.numbers.get(&(source, from)) != Some(&to);
                let rows = if family == Family::Mysql { answer.affected.clamp(1, ROWS) } else { 1 };
                (0..i128::from(rows)).for_each(|n| bound.number(source, from + n, to + n));
            }
        }
        self.is_used.store(true, Ordering::Relaxed);
        learnt
    }

    /// A unit with the values of this run in place of the recorded ones.
    pub(super) fn filled<'a>(&self, traffic: &Traffic, unit: &'a Unit) -> Cow<'a, Unit> {
        let mut filled = Cow::Borrowed(unit);
        if !self.is_used.load(Ordering::Relaxed) {
            return filled;
        }
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, sent) in unit.requests.iter().enumerate() {
            let template = &traffic.templates[sent.template];
            let source = |place: usize| {
                template.uses.iter().find(|(known, _)| *known == place).map(|(_, source)| *source)
            };
            for (n, value) in values(&sent.request) {
                let Some((given, quote)) = value else { continue };
                let mut own = given.to_vec();
                for at in elements(given).into_iter().rev() {
                    if let Some(value) = given.get(at.clone())
                        && let Some(one) = bound.own(value, source(n), &sent.request, traffic.family)
                    {
                        own.splice(at, one);
                    }
                }
                if own != given {
                    put(&mut filled.to_mut().requests[place].request, n, own, quote);
                }
            }
        }
        filled
    }

    /// Whether rows are those of the recording, but for values that are followed.
    pub(super) fn follow(&self, rows: &Rows, recorded: u64, family: Family) -> Followed {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        bound.follow(rows, recorded, family, &HashMap::new())
    }
}

impl Bound {
    /// See [`Bindings::follow`]. `also`: more recorded texts by own ones.
    fn follow(&self, rows: &Rows, recorded: u64, family: Family, also: &HashMap<Vec<u8>, &[u8]>) -> Followed {
        let text = |name: &Vec<u8>| {
            also.get(name).copied().or_else(|| self.recorded_texts.get(name).map(Vec::as_slice))
        };
        // The sources whose keys a column may have; other values are found by themselves.
        let mut columns: BTreeMap<usize, Vec<Option<usize>>> = BTreeMap::new();
        let mut has_texts = false;
        rows.values(|column, value| {
            has_texts |= text(&name(value)).is_some();
            let found = number(value, family).and_then(|number| self.recorded.get(&number));
            for (source, _) in found.into_iter().flatten() {
                let known = columns.entry(column).or_insert_with(|| vec![None]);
                if !known.contains(&Some(*source)) {
                    known.push(Some(*source));
                }
            }
        });
        if columns.is_empty() && !has_texts {
            return Followed::Not;
        }
        let mut followed = Followed::Not;
        let ways = columns.values().fold(1_usize, |ways, sources| ways.saturating_mul(sources.len()));
        // The last way takes each column to have keys, which is the likeliest.
        for way in (0..ways.min(WAYS)).rev() {
            let (mut left, mut chosen) = (way, HashMap::new());
            for (column, sources) in &columns {
                chosen.insert(*column, sources[left % sources.len()]);
                left /= sources.len();
            }
            let digest = rows.digest_with(|column, value| {
                if let Some(text) = text(&name(value)) {
                    return Some(Cow::Owned(text_like(value, text)));
                }
                let source = chosen.get(&column).copied().flatten()?;
                let of = self.recorded.get(&number(value, family)?)?;
                let (_, recorded) = of.iter().find(|(known, _)| *known == source)?;
                Some(Cow::Owned(number_like(value, *recorded, family)?))
            });
            if digest == recorded {
                return Followed::Equal;
            }
            let has_key = |column: usize| chosen.get(&column).copied().flatten().is_some();
            if digest >> 32 == recorded >> 32 && rows.are_ordered_by(has_key) {
                followed = Followed::Reordered;
            }
        }
        followed
    }

    /// Which value of an answer stands for which recorded one, where rows came in no order: what is known, and what is guessed
    /// by their places. It is known of what was followed before, of the only one that is left, and where the rows are those
    /// of the recording with these texts and with no others.
    fn pairs<'a>(
        &self,
        sent: &'a Sent,
        answer: &'a Exchange,
        family: Family,
    ) -> (Vec<Pair<'a>>, Vec<Pair<'a>>) {
        let mut own: Vec<&[u8]> = answer.made.iter().map(Vec::as_slice).collect();
        let (mut known, mut left) = (Vec::new(), Vec::new());
        for recorded in &sent.made {
            match own
                .iter()
                .position(|own| self.is_followed(recorded, own) || self.has_number(recorded, own, family))
            {
                Some(at) => known.push((recorded.as_slice(), own.remove(at))),
                None => left.push(recorded.as_slice()),
            }
        }
        let are_same = |(recorded, own): &Pair<'_>| {
            (is_text(recorded), moment(recorded).is_some()) == (is_text(own), moment(own).is_some())
        };
        let left: Vec<Pair<'_>> = left.into_iter().zip(own).filter(are_same).collect();
        let (texts, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(|(recorded, _)| is_text(recorded));
        let (numbers, mut guessed): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|(recorded, _)| moment(recorded).is_none());
        known.extend(numbers);
        // Of more rows it is not known which of their values these are.
        let is_whole = !has_more_uuids(answer) && are_all(&answer.made) && texts.len() <= ORDERED;
        match (&answer.kept, &texts[..]) {
            (_, [] | [_]) if is_whole => known.extend(texts),
            (Some(rows), _) if is_whole => {
                let recorded: Vec<&[u8]> = texts.iter().map(|(recorded, _)| *recorded).collect();
                let mut found = orders(recorded.len()).into_iter().filter(|order| {
                    let pairs = order.iter().zip(&texts);
                    let also = pairs.map(|(place, (_, own))| (name(own), recorded[*place])).collect();
                    self.follow(rows, sent.request.digest, family, &also) != Followed::Not
                });
                match (found.next(), found.next()) {
                    (Some(order), None) => {
                        let pairs = order.iter().zip(&texts);
                        known.extend(pairs.map(|(place, (_, own))| (recorded[*place], *own)));
                    }
                    _ => guessed.extend(texts),
                }
            }
            _ => guessed.extend(texts),
        }
        (known, guessed)
    }

    /// Whether a number of this run is bound to the recorded one.
    fn has_number(&self, recorded: &[u8], own: &[u8], family: Family) -> bool {
        let of = number(own, family).and_then(|own| self.recorded.get(&own));
        of.is_some_and(|of| of.iter().any(|(_, known)| Some(*known) == number(recorded, family)))
    }

    fn number(&mut self, source: usize, recorded: i128, own: i128) {
        let former = if recorded == own {
            self.numbers.remove(&(source, recorded))
        } else {
            self.numbers.insert((source, recorded), own)
        };
        if let Some(of) = former.and_then(|former| self.recorded.get_mut(&former)) {
            of.retain(|one| *one != (source, recorded));
        }
        let of = self.recorded.entry(own).or_default();
        of.retain(|(known, _)| *known != source);
        if recorded != own {
            of.push((source, recorded));
        }
    }

    /// Binds a text, and says whether that is new. What the server has made is not bound anew by what it only gives.
    fn text(&mut self, recorded: &[u8], own: &[u8], names: &[Vec<u8>], is_made: bool) -> bool {
        let known = self.texts.entry(name(recorded)).or_default();
        let before = known.iter().position(|text| text.names == names);
        if before.is_some_and(|at| known[at].own == own || known[at].is_made && !is_made) {
            return false;
        }
        if let Some(at) = before {
            let former = name(&known.remove(at).own);
            if self.recorded_texts.get(&former).is_some_and(|of| of == recorded) {
                self.recorded_texts.remove(&former);
            }
        }
        known.push(OwnText { names: names.to_vec(), own: own.to_vec(), is_made });
        self.recorded_texts.insert(name(own), recorded.to_vec());
        recorded != own
    }

    /// Whether a value of this run is the recorded one, or is bound to it.
    fn is_followed(&self, recorded: &[u8], own: &[u8]) -> bool {
        let is_text = || {
            let known = self.texts.get(&name(recorded));
            known.is_some_and(|known| known.iter().any(|text| text.own == own))
        };
        let is_moment = || match (moment(recorded), moment(own)) {
            (Some(recorded), Some(own)) => self.moments.get(&recorded) == Some(&own),
            _ => false,
        };
        recorded == own || is_moment() || is_text()
    }

    /// Whether times in an answer are right, before anything is learnt from it.
    fn times(&self, recorded: &[Vec<u8>], answer: &Exchange, [all, own]: [Spans; 2]) -> Times {
        let made = &answer.made;
        let is_time = |value: &[u8]| all.have(value);
        if !made.iter().any(|value| is_time(value)) {
            return Times::Same;
        }
        let in_place = |(from, to): (&Vec<u8>, &Vec<u8>)| !is_time(to) || self.is_followed(from, to);
        if recorded.len() == made.len() && recorded.iter().zip(made).all(in_place) {
            return if are_all(made) { Times::Same } else { Times::First };
        }
        // Of long answers each list ends elsewhere.
        if !are_all(recorded) || !are_all(made) {
            return Times::First;
        }
        let mut left: Vec<&Vec<u8>> = recorded.iter().collect();
        let mut is_first = false;
        for value in made.iter().filter(|value| is_time(value)) {
            if let Some(at) = left.iter().position(|from| self.is_followed(from, value)) {
                left.swap_remove(at);
            } else if own.have(value) {
                is_first = true;
            } else {
                return Times::Other;
            }
        }
        // Times in the places of others, unless rows are equal in what they are ordered by.
        let is_wrong = !is_first && answer.kept.as_ref().is_some_and(Rows::are_ordered);
        if is_wrong { Times::Other } else { Times::First }
    }

    /// The value of this run in place of a recorded one, if it is another.
    fn own(&self, given: &[u8], source: Option<usize>, of: &Request, family: Family) -> Option<Vec<u8>> {
        if let Some(known) = self.texts.get(&name(given)) {
            let is_named = |name: &Vec<u8>| of.parameters.iter().any(|one| one.bytes() == Some(name));
            let named = known.iter().rev().find(|text| text.names.iter().any(is_named)).or(known.last());
            return named.map(|text| text_like(given, &text.own)).filter(|own| own != given);
        }
        if let Some(own) = source.and_then(|source| self.numbers.get(&(source, number(given, family)?))) {
            return number_like(given, *own, family);
        }
        if let Some(own) = moment(given).and_then(|at| self.moments.get(&at)) {
            return moment_like(given, *own).filter(|own| own != given);
        }
        self.guessed.get(&name(given)).map(|own| text_like(given, own)).filter(|own| own != given)
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

/// The values of a request with their places: literals without quotes, and whether they have some, and parameters.
fn values(request: &Request) -> impl Iterator<Item = (usize, Option<(&[u8], bool)>)> {
    // What was prepared is found by its text.
    let is_text = matches!(request.step, Step::Text | Step::Bound);
    let literal = |text: &String| {
        let inner = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        (inner.map_or(0..text.len(), |inner| 1..inner.len() + 1), inner.is_some())
    };
    let literals = request.literals.iter().enumerate().filter(move |_| is_text);
    let literals = literals.map(move |(n, text)| {
        let (at, quote) = literal(text);
        (n, text.as_bytes().get(at).map(|text| (text, quote)))
    });
    let parameters = request.parameters.iter().enumerate();
    let parameters = parameters.map(|(n, one)| (PARAMETERS + n, one.bytes().map(|value| (value, false))));
    literals.chain(parameters)
}

/// The place of the first parameter, behind those of literals.
const PARAMETERS: usize = 1 << 20;

fn put(request: &mut Request, place: usize, value: Vec<u8>, quote: bool) {
    if let Some(place) = place.checked_sub(PARAMETERS) {
        if let Some(Parameter { value: given, .. }) = request.parameters.get_mut(place) {
            *given = value.into();
        }
    } else if let Some(literal) = request.literals.get_mut(place) {
        let text = String::from_utf8_lossy(&value);
        *literal = if quote { format!("'{text}'") } else { text.into_owned() };
    }
}

/// The elements of an array of PostgreSQL of one dimension, as a text or in binary form (dimensions, flags, type, length, lower bound,
/// and each element behind its length); all else is one.
fn elements(value: &[u8]) -> Vec<Range<usize>> {
    if let Some(inner) = value.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")) {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b",-".contains(byte);
        if inner.iter().all(is_plain) {
            let mut at = 1;
            let one = |part: &[u8]| {
                let from = at;
                at += part.len() + 1;
                from..from + part.len()
            };
            return inner.split(|byte| *byte == b',').map(one).collect();
        }
    }
    let word = |at: usize| value.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word) as usize);
    if let (Some(1), Some(0 | 1), Some(count)) = (word(0), word(4), word(12)) {
        let mut at = 20_usize;
        let mut one = || {
            let from = at + 4;
            at = from.checked_add(word(at)?)?;
            value.get(from..at).map(|_| from..at)
        };
        let found: Option<Vec<_>> = (0..count.min(value.len())).map(|_| one()).collect();
        if let Some(found) = found.filter(|_| at == value.len()) {
            return found;
        }
    }
    std::iter::once(0..value.len()).collect()
}

/// Whether a value that the server made is followed as a text, and is no number and no moment.
fn is_text(value: &[u8]) -> bool {
    uuid(value).is_some() || value.contains(&b'-') && moment_like(value, 0).is_none()
}

/// Whether the rows have more UUIDs than are given with an answer, and followed.
pub(super) fn has_more_uuids(answer: &Exchange) -> bool {
    let mut count = 0;
    if let Some(rows) = &answer.kept {
        rows.values(|_, value| count += usize::from(uuid(value).is_some()));
    }
    count > answer.made.iter().filter(|value| uuid(value).is_some()).count()
}

/// The orders of so many things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let Some(last) = count.checked_sub(1) else { return vec![Vec::new()] };
    let with_last = |order: &Vec<usize>| {
        let order = order.clone();
        (0..count).map(move |at| [&order[..at], &[last], &order[at..]].concat())
    };
    orders(last).iter().flat_map(with_last).collect()
}

/// What a text is known by: a UUID by its bytes.
fn name(value: &[u8]) -> Vec<u8> {
    uuid(value).map_or_else(|| value.to_vec(), |uuid| uuid.to_vec())
}

/// A text in the form of another one.
fn text_like(form: &[u8], text: &[u8]) -> Vec<u8> {
    match uuid(text) {
        Some(uuid) if form.len() == uuid.len() => uuid.to_vec(),
        Some(uuid) => {
            let digits = format!("{:032x}", u128::from_be_bytes(uuid));
            let parts =
                [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| digits.get(part).unwrap_or_default());
            parts.join("-").into_bytes()
        }
        None => text.to_vec(),
    }
}

/// The whole number that a value has: as a text, or in two, four or eight bytes.
fn number(value: &[u8], family: Family) -> Option<i128> {
    if value.len() <= 20 && !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
        return std::str::from_utf8(value).ok()?.parse().ok();
    }
    let is_little = family == Family::Mysql;
    let number: i128 = if let Ok(bytes) = <[u8; 2]>::try_from(value) {
        if is_little { i16::from_le_bytes(bytes) } else { i16::from_be_bytes(bytes) }.into()
    } else if let Ok(bytes) = <[u8; 4]>::try_from(value) {
        if is_little { i32::from_le_bytes(bytes) } else { i32::from_be_bytes(bytes) }.into()
    } else {
        let bytes = <[u8; 8]>::try_from(value).ok()?;
        if is_little { i64::from_le_bytes(bytes) } else { i64::from_be_bytes(bytes) }.into()
    };
    (!family.has_commands()).then_some(number)
}

/// A number in the form of another one.
fn number_like(form: &[u8], number: i128, family: Family) -> Option<Vec<u8>> {
    if form.iter().all(u8::is_ascii_digit) {
        return Some(number.to_string().into_bytes());
    }
    let number = i64::try_from(number).ok()?;
    let (narrow, short) = (i32::try_from(number).ok(), i16::try_from(number).ok());
    Some(match (form.len(), family == Family::Mysql) {
        (2, true) => short?.to_le_bytes().to_vec(),
        (2, false) => short?.to_be_bytes().to_vec(),
        (4, true) => narrow?.to_le_bytes().to_vec(),
        (4, false) => narrow?.to_be_bytes().to_vec(),
        (_, true) => number.to_le_bytes().to_vec(),
        (_, false) => number.to_be_bytes().to_vec(),
    })
}

/// The values of a place.
#[derive(Default)]
struct Use {
    /// By source: how many values it has made; `None` for one that made not all of them.
    found: Vec<Option<u32>>,
    last: Option<i128>,
    varies: bool,
}

/// Finds which places of templates have keys that statements of the recording made: a value there is never one that no statement
/// had made before, unless it is older than all of them.
pub(super) fn find(sent: &[Vec<Sent>], templates: &mut [Template], names: &[String], family: Family) {
    if family.has_commands() {
        return;
    }
    let given = |sent: &Sent| -> Vec<(usize, i128)> {
        let mut found = Vec::new();
        for (place, value) in values(&sent.request) {
            let value = value.map_or(&[][..], |(value, _)| value);
            let numbers = elements(value).into_iter().filter_map(|at| number(value.get(at)?, family));
            found.extend(numbers.map(|number| (place, number)));
        }
        found
    };
    let mut numbers: HashMap<String, usize> = HashMap::new();
    // By source: when each of its keys was made.
    let mut sources: Vec<BTreeMap<i128, u64>> = Vec::new();
    let made = |sent: &Sent| -> Vec<i128> {
        let is_key = |value: &&Vec<u8>| moment_like(value, 0).is_none() && uuid(value).is_none();
        sent.made.iter().filter(is_key).filter_map(|value| number(value, family)).collect()
    };
    let answered = || sent.iter().flatten().filter(|sent| !sent.made.is_empty());
    // What a statement returns of its own values is not made; once they may be equal by chance.
    let mut is_given: HashMap<(usize, usize), bool> = HashMap::new();
    for sent in answered() {
        let given = given(sent);
        for (n, made) in made(sent).into_iter().enumerate() {
            *is_given.entry((sent.template, n)).or_insert(true) &=
                given.iter().any(|(_, given)| *given == made);
        }
    }
    for sent in answered() {
        let made = made(sent)
            .into_iter()
            .enumerate()
            .filter(|(n, _)| is_given.get(&(sent.template, *n)) != Some(&true));
        let made: Vec<i128> = made.map(|(_, made)| made).collect();
        if made.is_empty() {
            continue;
        }
        let template = &mut templates[sent.template];
        let name = template.tables.first().filter(|_| template.inserts).unwrap_or(&names[template.kind]);
        let next = numbers.len();
        let source = *numbers.entry(name.clone()).or_insert(next);
        template.makes = Some(source);
        sources.resize_with(numbers.len(), BTreeMap::new);
        let at = sent.request.at.saturating_add(sent.request.time.unwrap_or(0));
        let rows = if family == Family::Mysql { sent.request.affected.clamp(1, ROWS) } else { 1 };
        for value in made.iter().flat_map(|value| (0..i128::from(rows)).map(move |n| value + n)) {
            let known = sources[source].entry(value).or_insert(at);
            *known = at.min(*known);
        }
    }
    let mut uses: HashMap<(usize, usize), Use> = HashMap::new();
    for sent in sent.iter().flatten().filter(|_| !sources.is_empty()) {
        for (place, value) in given(sent) {
            let known = uses.entry((sent.template, place)).or_default();
            known.varies |= known.last.is_some_and(|last| last != value);
            known.last = Some(value);
            known.found.resize(sources.len(), Some(0));
            for (found, source) in known.found.iter_mut().zip(&sources) {
                let is_older = source.first_key_value().is_none_or(|(least, _)| value < *least);
                match source.get(&value) {
                    Some(at) if *at <= sent.request.at => *found = found.map(|count| count + 1),
                    _ if is_older => {}
                    _ => *found = None,
                }
            }
        }
    }
    let tables: HashMap<usize, &String> = numbers.iter().map(|(name, source)| (*source, name)).collect();
    let mut columns: HashMap<usize, HashMap<usize, String>> = HashMap::new();
    for ((template, place), known) in uses {
        let columns =
            columns.entry(template).or_insert_with(|| columns_of(&templates[template].text, family));
        let column = columns.get(&place).map_or("", String::as_str);
        let name = |source: usize| tables.get(&source).map_or("", |table| table.as_str());
        let own = &templates[template].tables;
        // A column that is named after a table has its keys, and one of all tables those of its own.
        let fits = |source: usize| {
            (is_named_after(column, name(source)), own.iter().any(|table| table == name(source)))
        };
        let best = known.found.iter().enumerate().filter(|(source, _)| may_have_keys(column, name(*source)));
        let best = best.filter(|(_, count)| count.is_some_and(|count| count > 0));
        let best = best.max_by_key(|(source, count)| (fits(*source), **count));
        if let Some((source, Some(count @ 1..))) = best
            && (known.varies || *count < CONSTANT)
        {
            templates[template].uses.push((place, source));
        }
    }
}

/// Ends of the names of columns that have keys.
const KEYS: [&str; 8] = ["id", "key", "no", "nr", "number", "pk", "ref", "uid"];

/// Whether a column of this name may have keys of a table.
fn may_have_keys(column: &str, table: &str) -> bool {
    KEYS.iter().any(|end| column.ends_with(end)) || is_named_after(column, table)
}

/// Whether a column has a word of a table's name, but for its plural.
fn is_named_after(column: &str, table: &str) -> bool {
    let words = table.split('_').map(|word| word.strip_suffix('s').unwrap_or(word));
    words.filter(|word| word.len() > 2).any(|word| column.contains(word))
}

/// The column of each value of a template, in lower case.
fn columns_of(text: &str, family: Family) -> HashMap<usize, String> {
    /// What stands for the first literal, which no statement has.
    const LITERAL: usize = 990_000_000;
    let mut literals = LITERAL..;
    let text: String = text
        .split_inclusive(GAP)
        .map(|part| match part.strip_suffix(GAP) {
            Some(part) => format!("{part} {} ", literals.next().unwrap_or(LITERAL)),
            None => part.to_owned(),
        })
        .collect();
    let statement = Statement::read(&text, family.dialect().sql());
    let number = |token: &Token<'_>| token.text.trim_start_matches('$').parse::<usize>().ok();
    let is_value = |token: &Token<'_>| match token.kind {
        Kind::Number => number(token).is_some_and(|literal| literal >= LITERAL),
        kind => kind == Kind::Parameter,
    };
    let mut parameters = PARAMETERS..;
    let place = |(at, column): (usize, &str)| {
        let token = statement.tokens().get(at)?;
        let place = match (token.kind, number(token)) {
            (Kind::Number, literal) => literal? - LITERAL,
            (_, Some(number)) => PARAMETERS + number.checked_sub(1)?,
            (_, None) => parameters.next()?,
        };
        Some((place, column.to_lowercase()))
    };
    columns_of_values(statement.tokens(), is_value).into_iter().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_protocol::sql::Dialect;

    const FAMILY: Family = Family::Postgres;

    fn template(text: &str, kind: usize) -> Template {
        let statement = Statement::read(text, Dialect::POSTGRES);
        let (tables, inserts) = (statement.tables(), text.starts_with("INSERT"));
        Template {
            text: text.to_owned(),
            kind,
            writes: None,
            has_values_in_gaps: true,
            locks: false,
            inserts,
            is_left_out: false,
            is_setup: false,
            has_volatile_columns: false,
            tables,
            family: FAMILY,
            makes: None,
            uses: Vec::new(),
        }
    }

    /// A request of a template with parameters, answered at once.
    fn sent(template: usize, at: u64, parameters: &[&str], made: &[&str]) -> Sent {
        let parameter = |text: &&str| Parameter::of(0, false, text.as_bytes());
        let parameters = parameters.iter().map(parameter).collect();
        Sent {
            request: Request { at, time: Some(0), step: Step::Bound, parameters, ..Request::default() },
            template,
            types: Vec::new(),
            made: made.iter().map(|value| value.as_bytes().to_vec()).collect(),
            data: Vec::new(),
            goes_on: false,
            since: None,
            varies: false,
            names: Vec::new(),
        }
    }

    #[test]
    fn places_of_keys_are_those_whose_values_were_made_before() {
        let mut templates = vec![
            template("INSERT INTO orders (buyer_id) VALUES ($1) RETURNING id", 0),
            template("INSERT INTO item (order_id, quantity, shop_no) VALUES ($1, $2, $3)", 1),
            template("UPDATE orders SET views = $2 WHERE id = ANY($1) LIMIT $3", 2),
        ];
        let mut all = Vec::new();
        for n in 0..9 {
            let id = (n + 1).to_string();
            all.push(sent(0, 10 * n, &["7"], &[&id]));
            // The number of a shop is there before an order has it, and views are none by their name.
            all.push(sent(1, 10 * n + 1, &[&id, "1", &(9 - n).to_string()], &[]));
            all.push(sent(2, 10 * n + 2, &[&id, &(n / 2 + 1).to_string(), "1"], &[]));
        }
        let names = ["a", "b", "c"].map(str::to_owned);
        find(&[all], &mut templates, &names, FAMILY);
        assert_eq!(templates[0].makes, Some(0));
        assert!(templates[0].uses.is_empty());
        assert_eq!(templates[1].uses, [(PARAMETERS, 0)]);
        assert_eq!(templates[2].uses, [(PARAMETERS, 0)]);
    }

    #[test]
    fn keys_of_two_tables_are_told_apart_by_the_names_of_columns() {
        let mut templates = vec![
            template("INSERT INTO shop_post (title) VALUES ($1) RETURNING id", 0),
            template("INSERT INTO shop_comment (post_id) VALUES ($1) RETURNING id", 1),
            template("SELECT a FROM shop_comment WHERE post_id = $1", 2),
            template("SELECT a FROM shop_post WHERE id = $1", 3),
            template("SELECT a FROM shop_comment WHERE id = $1", 4),
        ];
        let mut all = Vec::new();
        for n in 0..5 {
            let id = (n + 1).to_string();
            all.push(sent(0, 10 * n, &["x"], &[&id]));
            all.push(sent(1, 10 * n + 1, &[&id], &[&(2 * n + 1).to_string()]));
            all.push(sent(1, 10 * n + 2, &[&id], &[&(2 * n + 2).to_string()]));
            all.extend((2..5).map(|template| sent(template, 10 * n + 3, &[&id], &[])));
        }
        let names = ["a", "b", "c", "d", "e"].map(str::to_owned);
        find(&[all], &mut templates, &names, FAMILY);
        let (post, comment) = (templates[0].makes.unwrap(), templates[1].makes.unwrap());
        for (template, source) in [(1, post), (2, post), (3, post), (4, comment)] {
            assert_eq!(templates[template].uses, [(PARAMETERS, source)], "{template}");
        }
    }

    #[test]
    fn column_of_a_value_is_known_by_its_place() {
        let text = "INSERT INTO t (a, \"Bb\") VALUES (\0, $2), (\0, lower($1))";
        let mut found: Vec<_> = columns_of(text, FAMILY).into_iter().collect();
        found.sort();
        let expected = [(0, "a"), (1, "a"), (PARAMETERS, "lower"), (PARAMETERS + 1, "bb")];
        assert_eq!(found, expected.map(|(place, name)| (place, name.to_owned())));
    }

    #[test]
    fn elements_of_arrays_are_found_in_both_forms() {
        let of = |value: &[u8]| elements(value).into_iter().map(|at| value[at].to_vec()).collect::<Vec<_>>();
        assert_eq!(of(b"{8,17}"), [b"8".to_vec(), b"17".to_vec()]);
        assert_eq!((of(b"8"), of(b"{\"a\": 8}")), (vec![b"8".to_vec()], vec![b"{\"a\": 8}".to_vec()]));
        let header = [1, 0, 23, 2, 1].map(u32::to_be_bytes).concat();
        let array = [&header[..], &[0, 0, 0, 4, 0, 0, 0, 8, 0, 0, 0, 4, 0, 0, 0, 17]].concat();
        assert_eq!(of(&array), [8_u32.to_be_bytes().to_vec(), 17_u32.to_be_bytes().to_vec()]);
        assert_eq!(of(&array[..30]), [array[..30].to_vec()]);
    }

    #[test]
    fn bound_values_are_sent_in_the_form_of_the_recorded_ones() {
        let (mut bound, none) = (Bound::default(), Request::default());
        bound.number(0, 7, 8);
        bound.number(0, 8, 7);
        assert_eq!(bound.own(b"7", Some(0), &none, FAMILY).unwrap(), b"8");
        assert_eq!(bound.own(&7_i64.to_be_bytes(), Some(0), &none, FAMILY).unwrap(), 8_i64.to_be_bytes());
        assert_eq!(bound.own(&7_i16.to_be_bytes(), Some(0), &none, FAMILY).unwrap(), 8_i16.to_be_bytes());
        let [recorded, own] =
            ["4f6c9e0a-1b2c-4d3e-8f40-51627384950a", "00000000-1b2c-4d3e-8f40-51627384950a"];
        assert!(bound.text(recorded.as_bytes(), own.as_bytes(), &[], true));
        assert_eq!(bound.own(recorded.as_bytes(), None, &none, FAMILY).unwrap(), own.as_bytes());
        assert_eq!(
            bound.own(&uuid(recorded.as_bytes()).unwrap(), None, &none, FAMILY),
            uuid(own.as_bytes()).map(Vec::from)
        );
        assert_eq!(
            bound.own(&8_i32.to_le_bytes(), Some(0), &none, Family::Mysql).unwrap(),
            7_i32.to_le_bytes()
        );
        assert!(
            bound.own(b"7", None, &none, FAMILY).is_none()
                && bound.own(b"7", Some(1), &none, FAMILY).is_none()
        );
        assert_eq!(bound.recorded[&8], [(0, 7)]);
        bound.number(0, 7, 7);
        assert!(bound.own(b"7", Some(0), &none, FAMILY).is_none() && bound.recorded[&8].is_empty());
        // The same id in two streams.
        let id = b"1795903064500-0";
        for (key, own) in [(&b"a"[..], &b"1-0"[..]), (b"b", b"2-0")] {
            assert!(bound.text(id, own, &[key.to_vec()], true));
        }
        let of = sent(0, 0, &["a", "1795903064500-0"], &[]).request;
        assert_eq!(bound.own(id, None, &of, Family::Redis).unwrap(), b"1-0");
        let mut request = Request { literals: vec!["'a'".to_owned()], ..Request::default() };
        put(&mut request, 0, b"b".to_vec(), true);
        assert_eq!(request.literals, ["'b'"]);
    }

    #[test]
    fn what_the_server_made_is_known_where_it_is_read() {
        let mut stored = Stored::default();
        let read = |text| Statement::read(text, Dialect::POSTGRES);
        stored.learn(&read("INSERT INTO orders (item, luck) VALUES ($1, random())"));
        let reads = |text| stored.are_read_by(&read(text));
        assert!(reads("SELECT luck FROM orders") && reads("SELECT o.* FROM orders o"));
        assert!(!reads("SELECT item FROM orders") && !reads("SELECT luck FROM item"));
    }

    /// What a view gives of an answer of PostgreSQL.
    fn answered(text: &str, columns: &[&str], rows: &[&[&str]]) -> Exchange {
        let message =
            |tag: u8, body: &[u8]| [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat();
        let count = (columns.len() as u16).to_be_bytes();
        let column = |name: &&str| [name.as_bytes(), &[0; 19]].concat();
        let described = [&count[..], &columns.iter().flat_map(column).collect::<Vec<u8>>()].concat();
        let value = |value: &&str| [&(value.len() as u32).to_be_bytes(), value.as_bytes()].concat();
        let row = |row: &&[&str]| {
            message(b'D', &[&count[..], &row.iter().flat_map(value).collect::<Vec<u8>>()].concat())
        };
        let told = [
            message(b'T', &described),
            rows.iter().flat_map(row).collect(),
            message(b'C', b"SELECT 2\0"),
            message(b'Z', b"I"),
        ];
        let mut view = (kurabe_wire::registry::of_scheme("postgres").unwrap().view)();
        let (now, mut events) = (std::time::Instant::now(), Vec::new());
        view.let_in(0);
        view.watch(kurabe_wire::view::Watch { keeps_rows: true, ..kurabe_wire::view::Watch::now() });
        view.sent(&message(b'Q', &[text.as_bytes(), b"\0"].concat()), now, &mut events);
        view.received(&told.concat(), now, &mut events);
        let found = events.into_iter().find_map(|event| match event {
            kurabe_wire::view::Event::Exchange(found) => Some(*found),
            _ => None,
        });
        found.unwrap()
    }

    #[test]
    fn uuids_of_rows_in_no_order_are_bound_where_it_is_known_which_is_which() {
        let one = |n: u8| format!("0000000{n}-1b2c-4d3e-8f40-51627384950a");
        let [a, b, own_a, own_b] = [1, 2, 3, 4].map(one);
        let known = |text: &str, columns: &[&str], recorded: &[&[&str]], own: &[&[&str]], bound: &Bound| {
            let (recorded, own) = (answered(text, columns, recorded), answered(text, columns, own));
            let mut of = sent(0, 0, &[], &[]);
            (of.request.digest, of.made) = (recorded.digest, recorded.made);
            let (known, guessed) = bound.pairs(&of, &own, FAMILY);
            let mut known: Vec<_> = known.iter().map(|(from, to)| (from.to_vec(), to.to_vec())).collect();
            known.sort();
            (known, guessed.len())
        };
        let right: Vec<(Vec<u8>, Vec<u8>)> =
            [(&a, &own_a), (&b, &own_b)].map(|(from, to)| (from.clone().into(), to.clone().into())).into();
        let (mut bound, text) = (Bound::default(), "SELECT d, id FROM t");
        // The rows came in another order. Their other values say which is which.
        let recorded: [&[&str]; 2] = [&[&a, "7"], &[&b, "8"]];
        let own: [&[&str]; 2] = [&[&own_b, "8"], &[&own_a, "7"]];
        assert_eq!(known(text, &["d", "id"], &recorded, &own, &bound), (right.clone(), 0));
        // Without other values nothing does, but for what is known of one of them.
        let (text, recorded, own): (_, [&[&str]; 2], [&[&str]; 2]) =
            ("DELETE FROM t RETURNING d", [&[&a], &[&b]], [&[&own_b], &[&own_a]]);
        assert_eq!(known(text, &["d"], &recorded, &own, &bound), (Vec::new(), 2));
        bound.guessed.insert(name(a.as_bytes()), own_b.clone().into());
        let sends = |bound: &Bound| bound.own(a.as_bytes(), None, &Request::default(), FAMILY).unwrap();
        assert_eq!(sends(&bound), own_b.as_bytes());
        bound.text(a.as_bytes(), own_a.as_bytes(), &[], false);
        assert_eq!(sends(&bound), own_a.as_bytes());
        assert_eq!(known(text, &["d"], &recorded, &own, &bound), (right, 0));
    }
}
