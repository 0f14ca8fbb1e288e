//! Values that the server made in the recording, each of which the replay binds to the value of its own run.
//!
//! Keys (`RETURNING`, the key in an OK packet, `nextval`), UUIDs, ids of streams and moments of the clock are recorded with the answers
//! that gave them. Where a replay gets another one, it sends that in later requests, and compares later answers as if it had
//! the recorded one. UUIDs and moments are found by their value; numbers only where requests of the recording had such keys.

use super::commands::Sent;
use super::traffic::{Traffic, Unit};
use super::values::{elements, is_text, name, number, number_like, put, text_like, values};
use kurabe_capture::record::Request;
use kurabe_protocol::call::Language;
use kurabe_wire::view::{Exchange, Rows, Spans, are_all, moment, moment_like, uuid};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most rows of one statement to which MySQL gives numbers one after the other, and of which these are followed.
pub(super) const ROWS: u64 = 1_000;
/// The most ways in which columns of an answer are taken to have keys.
const WAYS: usize = 256;
/// The most texts of rows without an order whose orders are tried.
const ORDERED: usize = 4;

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
        let (template, language) = (&traffic.templates[sent.template], traffic.language);
        let is_made = template.makes.is_some() || sent.varies;
        let has_texts = is_made || language.sql().is_none() || traffic.is_inserted(template);
        let is_placed = answer.rows <= 1
            || template.inserts
            || language.sql().is_none()
            || answer.kept.as_ref().is_some_and(Rows::are_ordered);
        let pairs = if is_placed {
            sent.made.iter().map(Vec::as_slice).zip(answer.made.iter().map(Vec::as_slice)).collect()
        } else {
            let (known, guessed) = bound.pairs(sent, answer, language);
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
                (template.makes, number(recorded, language), number(own, language))
            {
                learnt.is_first |= from != to && bound.numbers.get(&(source, from)) != Some(&to);
                let rows = if language.is_mysql() { answer.affected.clamp(1, ROWS) } else { 1 };
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
                        && let Some(one) = bound.own(value, source(n), &sent.request, traffic.language)
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
    pub(super) fn follow(&self, rows: &Rows, recorded: u64, language: Language) -> Followed {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        bound.follow(rows, recorded, language, &HashMap::new())
    }
}

impl Bound {
    /// See [`Bindings::follow`]. `also`: more recorded texts by own ones.
    fn follow(
        &self,
        rows: &Rows,
        recorded: u64,
        language: Language,
        also: &HashMap<Vec<u8>, &[u8]>,
    ) -> Followed {
        let text = |name: &Vec<u8>| {
            also.get(name).copied().or_else(|| self.recorded_texts.get(name).map(Vec::as_slice))
        };
        // The sources whose keys a column may have; other values are found by themselves.
        let mut columns: BTreeMap<usize, Vec<Option<usize>>> = BTreeMap::new();
        let mut has_texts = false;
        rows.values(|column, value| {
            has_texts |= text(&name(value)).is_some();
            let found = number(value, language).and_then(|number| self.recorded.get(&number));
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
                let of = self.recorded.get(&number(value, language)?)?;
                let (_, recorded) = of.iter().find(|(known, _)| *known == source)?;
                Some(Cow::Owned(number_like(value, *recorded, language)?))
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
        language: Language,
    ) -> (Vec<Pair<'a>>, Vec<Pair<'a>>) {
        let mut own: Vec<&[u8]> = answer.made.iter().map(Vec::as_slice).collect();
        let (mut known, mut left) = (Vec::new(), Vec::new());
        for recorded in &sent.made {
            match own
                .iter()
                .position(|own| self.is_followed(recorded, own) || self.has_number(recorded, own, language))
            {
                Some(at) => known.push((recorded.as_slice(), own.remove(at))),
                None => left.push(recorded.as_slice()),
            }
        }
        let is_moment = |value: &[u8]| !is_text(value) && moment(value).is_some();
        let is_number = |value: &[u8]| !is_text(value) && moment(value).is_none();
        // Pairs of one kind by their places, if both sides have as many.
        let of = |is: &dyn Fn(&[u8]) -> bool| -> Vec<Pair<'_>> {
            let [left, own] =
                [&left, &own].map(|all| all.iter().copied().filter(|one| is(one)).collect::<Vec<_>>());
            if left.len() == own.len() { left.into_iter().zip(own).collect() } else { Vec::new() }
        };
        let (texts, mut guessed) = (of(&is_text), of(&is_moment));
        known.extend(of(&is_number));
        // Of more rows it is not known which of their values these are.
        let is_whole = !has_more_uuids(answer) && are_all(&answer.made) && texts.len() <= ORDERED;
        match (&answer.kept, &texts[..]) {
            (_, [] | [_]) if is_whole => known.extend(texts),
            (Some(rows), _) if is_whole => {
                let recorded: Vec<&[u8]> = texts.iter().map(|(recorded, _)| *recorded).collect();
                let mut found = orders(recorded.len()).into_iter().filter(|order| {
                    let pairs = order.iter().zip(&texts);
                    let also = pairs.map(|(place, (_, own))| (name(own), recorded[*place])).collect();
                    self.follow(rows, sent.request.digest, language, &also) != Followed::Not
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
    fn has_number(&self, recorded: &[u8], own: &[u8], language: Language) -> bool {
        let of = number(own, language).and_then(|own| self.recorded.get(&own));
        of.is_some_and(|of| of.iter().any(|(_, known)| Some(*known) == number(recorded, language)))
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
    fn own(&self, given: &[u8], source: Option<usize>, of: &Request, language: Language) -> Option<Vec<u8>> {
        if let Some(known) = self.texts.get(&name(given)) {
            let is_named = |name: &Vec<u8>| of.parameters.iter().any(|one| one.bytes() == Some(name));
            let named = known.iter().rev().find(|text| text.names.iter().any(is_named)).or(known.last());
            return named.map(|text| text_like(given, &text.own)).filter(|own| own != given);
        }
        if let Some(own) = source.and_then(|source| self.numbers.get(&(source, number(given, language)?))) {
            return number_like(given, *own, language);
        }
        if let Some(own) = moment(given).and_then(|at| self.moments.get(&at)) {
            return moment_like(given, *own).filter(|own| own != given);
        }
        self.guessed.get(&name(given)).map(|own| text_like(given, own)).filter(|own| own != given)
    }
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

#[cfg(test)]
mod tests {
    use super::super::keys::tests::sent;
    use super::*;
    use kurabe_protocol::sql::Dialect;
    use kurabe_wire::view::Watch;

    const LANGUAGE: Language = Language::Sql(Dialect::POSTGRES);
    /// The clock of the server when it answers.
    const TIME: &str = "2026-11-29 05:05:05";

    #[test]
    fn bound_values_are_sent_in_the_form_of_the_recorded_ones() {
        let (mut bound, none) = (Bound::default(), Request::default());
        bound.number(0, 7, 8);
        bound.number(0, 8, 7);
        assert_eq!(bound.own(b"7", Some(0), &none, LANGUAGE).unwrap(), b"8");
        assert_eq!(bound.own(&7_i64.to_be_bytes(), Some(0), &none, LANGUAGE).unwrap(), 8_i64.to_be_bytes());
        assert_eq!(bound.own(&7_i16.to_be_bytes(), Some(0), &none, LANGUAGE).unwrap(), 8_i16.to_be_bytes());
        let [recorded, own] =
            ["4f6c9e0a-1b2c-4d3e-8f40-51627384950a", "00000000-1b2c-4d3e-8f40-51627384950a"];
        assert!(bound.text(recorded.as_bytes(), own.as_bytes(), &[], true));
        assert_eq!(bound.own(recorded.as_bytes(), None, &none, LANGUAGE).unwrap(), own.as_bytes());
        assert_eq!(
            bound.own(&uuid(recorded.as_bytes()).unwrap(), None, &none, LANGUAGE),
            uuid(own.as_bytes()).map(Vec::from)
        );
        assert_eq!(
            bound.own(&8_i32.to_le_bytes(), Some(0), &none, Language::Sql(Dialect::MYSQL)).unwrap(),
            7_i32.to_le_bytes()
        );
        assert!(
            bound.own(b"7", None, &none, LANGUAGE).is_none()
                && bound.own(b"7", Some(1), &none, LANGUAGE).is_none()
        );
        assert_eq!(bound.recorded[&8], [(0, 7)]);
        bound.number(0, 7, 7);
        assert!(bound.own(b"7", Some(0), &none, LANGUAGE).is_none() && bound.recorded[&8].is_empty());
        // The same id in two streams.
        let id = b"1795903064500-0";
        for (key, own) in [(&b"a"[..], &b"1-0"[..]), (b"b", b"2-0")] {
            assert!(bound.text(id, own, &[key.to_vec()], true));
        }
        let of = sent(0, 0, &["a", "1795903064500-0"], &[]).request;
        assert_eq!(bound.own(id, None, &of, Language::Redis).unwrap(), b"1-0");
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
        let mut view = (kurabe_wire::registry::of_scheme("postgres").unwrap().view)(Dialect::POSTGRES);
        let (now, mut events) = (std::time::Instant::now(), Vec::new());
        view.let_in(0);
        view.watch(Watch {
            began: (now, moment(TIME.as_bytes()).unwrap()),
            recorded: None,
            keeps_rows: true,
            as_text: false,
        });
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
            let (known, guessed) = bound.pairs(&of, &own, LANGUAGE);
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
        // A value of another kind in its place does not make one the only text that is left.
        let other: [&[&str]; 2] = [&[&own_b, TIME], &[&own_a, TIME]];
        let uneven: [&[&str]; 2] = [&[&a, "x"], &[TIME, "y"]];
        let same_time = (Vec::from(TIME), Vec::from(TIME));
        assert_eq!(known("SELECT d, at FROM t", &["d", "at"], &uneven, &other, &bound), (vec![same_time], 0));
        bound.guessed.insert(name(a.as_bytes()), own_b.clone().into());
        let sends = |bound: &Bound| bound.own(a.as_bytes(), None, &Request::default(), LANGUAGE).unwrap();
        assert_eq!(sends(&bound), own_b.as_bytes());
        bound.text(a.as_bytes(), own_a.as_bytes(), &[], false);
        assert_eq!(sends(&bound), own_a.as_bytes());
        assert_eq!(known(text, &["d"], &recorded, &own, &bound), (right, 0));
    }
}
