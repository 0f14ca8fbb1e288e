//! Values that the server made in the recording, each of which the replay binds to the value of its own run.
//!
//! Keys (`RETURNING`, the key in an OK packet, `nextval`), UUIDs, ids of streams and moments of the clock are recorded with the answers
//! that gave them. Where a replay gets another one, it sends that in later requests, and compares later answers as if it had
//! the recorded one. UUIDs and moments are found by their value; numbers only where requests of the recording had such keys.

use super::commands::Sent;
use super::family::Family;
use super::traffic::{Template, Traffic, Unit};
use kurabe_capture::record::{Parameter, Request, Value};
use kurabe_protocol::sql::{Kind, Statement, Token};
use kurabe_wire::statement::GAP;
use kurabe_wire::view::{Exchange, Rows, Spans, Step, moment, moment_like, uuid};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most rows of one statement to which MySQL gives numbers one after the other, and of which these are followed.
const ROWS: u64 = 1_000;
/// The most ways in which columns of an answer are taken to have keys.
const WAYS: usize = 256;
/// Requests after which a value that never changed is no key.
const CONSTANT: u32 = 3;

/// What was bound so far.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    is_used: AtomicBool,
    bound: Mutex<Bound>,
}

/// What a request named, and the own value.
type Named = (Vec<Vec<u8>>, Vec<u8>);

#[derive(Debug, Default)]
struct Bound {
    /// Own values by recorded ones. Numbers are those of a source: a table, or a statement.
    numbers: HashMap<(usize, i128), i128>,
    /// An id of a stream is one of others too: beside it is what else its request named.
    texts: HashMap<Vec<u8>, Vec<Named>>,
    moments: HashMap<i64, i64>,
    /// Recorded values by own ones.
    recorded: HashMap<i128, Vec<(usize, i128)>>,
    recorded_texts: HashMap<Vec<u8>, Vec<u8>>,
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
    /// Learns from an answer.
    pub(super) fn learn(&self, traffic: &Traffic, sent: &Sent, answer: &Exchange) {
        if sent.made.len() != answer.made.len()
            || sent.made == answer.made && !self.is_used.load(Ordering::Relaxed)
        {
            return;
        }
        let template = &traffic.templates[sent.template];
        let makes_texts = template.makes.is_some() || traffic.is_inserted(template);
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        for (recorded, own) in sent.made.iter().zip(&answer.made) {
            let is_text =
                uuid(recorded).is_some() || recorded.contains(&b'-') && moment_like(recorded, 0).is_none();
            if let (false, Some(from), Some(to)) = (is_text, moment(recorded), moment(own)) {
                bound.moments.insert(from, to);
            } else if is_text
                && (makes_texts || traffic.family.has_commands())
                && (recorded != own || !sent.names.is_empty())
            {
                let known = bound.texts.entry(name(recorded)).or_default();
                known.retain(|(names, _)| *names != sent.names);
                known.push((sent.names.clone(), own.clone()));
                bound.recorded_texts.insert(name(own), recorded.clone());
            } else if let (Some(source), Some(from), Some(to)) =
                (template.makes, number(recorded, traffic.family), number(own, traffic.family))
            {
                let is_mysql = traffic.family == Family::Mysql;
                let rows = if is_mysql { answer.affected.clamp(1, ROWS) } else { 1 };
                (0..i128::from(rows)).for_each(|n| bound.number(source, from + n, to + n));
            }
        }
        self.is_used.store(true, Ordering::Relaxed);
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
        // The sources whose keys a column may have; other values are found by themselves.
        let mut columns: BTreeMap<usize, Vec<Option<usize>>> = BTreeMap::new();
        let mut has_texts = false;
        rows.values(|column, value| {
            has_texts |= bound.recorded_texts.contains_key(&name(value));
            let found = number(value, family).and_then(|number| bound.recorded.get(&number));
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
                if let Some(text) = bound.recorded_texts.get(&name(value)) {
                    return Some(Cow::Owned(text_like(value, text)));
                }
                let source = chosen.get(&column).copied().flatten()?;
                let of = bound.recorded.get(&number(value, family)?)?;
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
}

impl Bound {
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

    /// The value of this run in place of a recorded one, if it is another.
    fn own(&self, given: &[u8], source: Option<usize>, of: &Request, family: Family) -> Option<Vec<u8>> {
        if let Some(known) = self.texts.get(&name(given)) {
            let is_named = |name: &Vec<u8>| {
                of.parameters.iter().any(|one| matches!(&one.value, Value::Bytes(value) if value == name))
            };
            let named = known.iter().rev().find(|(names, _)| names.iter().any(is_named));
            return named.or(known.last()).map(|(_, own)| text_like(given, own)).filter(|own| own != given);
        }
        if let Some(own) = source.and_then(|source| self.numbers.get(&(source, number(given, family)?))) {
            return number_like(given, *own, family);
        }
        let own = self.moments.get(&moment(given)?)?;
        moment_like(given, *own).filter(|own| own != given)
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
    let parameters = request.parameters.iter().enumerate().map(|(n, parameter)| match &parameter.value {
        Value::Bytes(bytes) => (PARAMETERS + n, Some((&bytes[..], false))),
        Value::Null | Value::Dropped => (PARAMETERS + n, None),
    });
    literals.chain(parameters)
}

/// The place of the first parameter, behind those of literals.
const PARAMETERS: usize = 1 << 20;

fn put(request: &mut Request, place: usize, value: Vec<u8>, quote: bool) {
    if let Some(place) = place.checked_sub(PARAMETERS) {
        if let Some(Parameter { value: given, .. }) = request.parameters.get_mut(place) {
            *given = Value::Bytes(value);
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

/// Whether moments of an answer are those of the recording, or of this run's clock; `None` if it has none that differ. `all`: what
/// counts as a moment.
pub(super) fn moments_fit(sent: &Sent, answer: &Exchange, [all, own]: [Spans; 2]) -> Option<bool> {
    let mut recorded: HashMap<&[u8], u32> = HashMap::new();
    sent.made.iter().for_each(|value| *recorded.entry(value).or_default() += 1);
    let mut take = |value: &[u8]| match recorded.get_mut(value) {
        Some(left @ 1..) => {
            *left -= 1;
            true
        }
        _ => false,
    };
    let mut others = answer.made.iter().filter(|value| all.have(value) && !take(value));
    let first = others.next()?;
    Some(own.have(first) && others.all(|value| own.have(value)))
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
            columns.entry(template).or_insert_with(|| columns_of_values(&templates[template].text, family));
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

/// The column of each value of a template, in lower case: the one to which it is compared or set, or the word before it.
fn columns_of_values(text: &str, family: Family) -> HashMap<usize, String> {
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
    let tokens = statement.tokens();
    let is_insert = statement
        .first()
        .is_some_and(|first| ["insert", "replace"].iter().any(|word| first.eq_ignore_ascii_case(word)));
    // Rows are lists of values, or columns that are arrays.
    let is_rows = |token: &Token<'_>| is_insert && token.is_one_of(&["unnest", "value", "values"]);
    let listed = tokens
        .iter()
        .take_while(|token| !is_rows(token) && !token.is("select"))
        .skip_while(|token| !token.is_mark('('));
    let listed: Vec<&str> = listed.filter_map(Token::name).collect();
    let (mut found, mut parameters, mut last) = (HashMap::new(), PARAMETERS.., "");
    // How deep parentheses and brackets are, how deep a row is and whether by arrays, and the place in it.
    let (mut depth, mut row, mut at_row) = (0, None, 0);
    for token in tokens {
        let number = token.text.trim_start_matches('$').parse::<usize>().ok();
        let place = match (token.kind, number) {
            (Kind::Number, Some(literal)) if literal >= LITERAL => Some(literal - LITERAL),
            (Kind::Parameter, Some(number)) => number.checked_sub(1).map(|number| PARAMETERS + number),
            (Kind::Parameter, None) => parameters.next(),
            _ => None,
        };
        if let Some(place) = place {
            let is_of_row = row.is_some_and(|(of, by_arrays)| depth == of || by_arrays && depth > of);
            let of_row = listed.get(at_row).filter(|_| is_of_row);
            found.insert(place, of_row.unwrap_or(&last).to_lowercase());
        } else if is_rows(token) {
            row = Some((depth + 1, token.is("unnest")));
        } else if token.is_mark('(') || token.is_mark('[') {
            depth += 1;
            at_row = if row.is_some_and(|(of, _)| depth == of) { 0 } else { at_row };
        } else if token.is_mark(')') || token.is_mark(']') {
            depth -= 1;
        } else if token.is_mark(',') && row.is_some_and(|(of, _)| depth == of) {
            at_row += 1;
        } else if let Some(name) = token.name().filter(|_| !token.is_one_of(&["all", "any", "in", "not"])) {
            last = name;
        }
    }
    found
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
            tables,
            family: FAMILY,
            makes: None,
            uses: Vec::new(),
        }
    }

    /// A request of a template with parameters, answered at once.
    fn sent(template: usize, at: u64, parameters: &[&str], made: &[&str]) -> Sent {
        let parameter = |text: &&str| Parameter {
            kind: 0,
            chosen: false,
            binary: false,
            value: Value::Bytes(text.as_bytes().to_vec()),
        };
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
    fn column_of_a_value_is_the_one_to_which_it_is_compared_or_set() {
        for (text, expected) in [
            (
                "INSERT INTO t (a, b) VALUES (\0, $1), (\0, lower($2))",
                &[(0, "a"), (1, "a"), (PARAMETERS, "b"), (PARAMETERS + 1, "lower")][..],
            ),
            (
                "INSERT INTO t (a, b) SELECT * FROM UNNEST((ARRAY[\0, \0])::int[], ARRAY[\0, $1])",
                &[(0, "a"), (1, "a"), (2, "b"), (PARAMETERS, "b")],
            ),
            (
                "UPDATE t SET \"Aa\" = \0, b = b + \0 WHERE t.c_id IN (\0, \0)",
                &[(0, "aa"), (1, "b"), (2, "c_id"), (3, "c_id")],
            ),
            ("SELECT a FROM t WHERE b > $1 LIMIT \0", &[(0, "limit"), (PARAMETERS, "b")]),
        ] {
            let mut found: Vec<_> = columns_of_values(text, FAMILY).into_iter().collect();
            found.sort();
            assert_eq!(
                found,
                expected.iter().map(|(place, name)| (*place, (*name).to_owned())).collect::<Vec<_>>(),
                "{text}"
            );
        }
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
        bound.texts.insert(name(recorded.as_bytes()), vec![(Vec::new(), own.as_bytes().to_vec())]);
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
        let known = |key: &[u8], own: &[u8]| (vec![key.to_vec()], own.to_vec());
        bound.texts.insert(id.to_vec(), vec![known(b"a", b"1-0"), known(b"b", b"2-0")]);
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
}
