//! Compares answers with those that were recorded: what a replay reports, and why its answers may differ.

use super::bindings::{Bindings, Followed, Learnt, Times, has_more_uuids};
use super::commands::{self, Sent};
use super::http;
use super::traffic::{Traffic, Unit};
use crate::metrics::{count, time};
use crate::prelude::*;
use kurabe_capture::file::{About, Known};
use kurabe_capture::record::Request;
use kurabe_core::{Error, sort};
use kurabe_protocol::call::{Call, Language};
use kurabe_protocol::sql::{self, Statement};
use kurabe_wire::view::{Exchange, Step, lists_without_rows};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(super) const MEAN: Metric =
    time("request mean", "mean time of all requests; with a speed, from when the request was due");
pub(super) const P99: Metric = time("request p99", "99th percentile of the same");
/// The mean times of every second eighth of the requests, and of the others.
pub(super) const HALVES: [Metric; 2] = [
    time("request mean, first half", "mean time of the requests in every second eighth of the capture"),
    time("request mean, other half", "mean time of the other requests"),
];
pub(super) const LEFT_OUT: Metric =
    count("requests left out", "requests of the capture that cannot be sent again");
pub(super) const HITS: Metric = Metric::new(
    "hit ratio",
    kurabe_core::metric::Unit::Share,
    Better::Higher,
    "share of the cacheable reads that the cache answered",
);
pub(super) const CACHED: Metric =
    count("cacheable reads", "reads outside of transactions, which look into the cache first");
/// In the order of `Varies::ALL`.
pub(super) const VARIES: [Metric; 4] = [
    count(
        "volatile answers",
        "answers of which values are not compared, as the statement asks for time, random numbers, sequences or the server's state",
    ),
    count("reordered answers", "answers with the same rows in another order"),
    count("raced answers", "answers that differ where a change was committed at the same time"),
    count("answers compared in part", "answers of which only the status or the number of rows was compared"),
];

/// Wrong answers after which a replay ends: the data does not fit.
pub(super) const MANY: u64 = 100;
/// Statements with wrong answers that are listed.
const LISTED: usize = 3;
/// Characters of an example.
const SHOWN: usize = 200;

/// Codes of errors by which a transaction lost against another one, or a time limit: PostgreSQL's, MySQL's and MongoDB's.
const LOST: &[&str] =
    &["40001", "40P01", "55P03", "57014", "1205", "1213", "1317", "3024", "3572", "50", "112"];

/// Codes of constraints that rows of another transaction may violate, and of conflicts of CouchDB and MongoDB.
const CONFLICTS: &[&str] = &["23505", "23503", "23P01", "1062", "1451", "1452", "409", "412", "11000"];

/// The code of what PostgreSQL refuses since its transaction has failed.
const ABORTED: &str = "25P02";

#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) answers: u64,
    pub(super) changes: u64,
    pub(super) varies: BTreeMap<Varies, u64>,
    pub(super) wrong: u64,
    /// By kind of statement: how many, and an example with what differs.
    wrong_kinds: BTreeMap<usize, (u64, String)>,
}

impl Compared {
    pub(super) fn add(&mut self, other: Self) {
        self.answers += other.answers;
        self.changes += other.changes;
        self.wrong += other.wrong;
        for (varies, count) in other.varies {
            *self.varies.entry(varies).or_default() += count;
        }
        for (kind, (count, example)) in other.wrong_kinds {
            self.wrong_kinds.entry(kind).or_insert((0, example)).0 += count;
        }
    }

    /// Compares an answer with the recorded one. `other_counts`: whether updates count other rows than for the recorded
    /// client.
    pub(super) fn answer(
        &mut self,
        traffic: &Traffic,
        unit: &Unit,
        (sent, answer): (&Sent, &Exchange),
        other_counts: bool,
        (bindings, learnt): (&Bindings, Learnt),
        may_have_ties: impl FnOnce() -> bool,
    ) {
        self.answers += 1;
        self.changes += answer.affected;
        let request = &sent.request;
        let about = &traffic.about;
        let has_times = about.known == Known::All && !about.has_old_checksums;
        let times = if has_times { learnt.times } else { Times::Same };
        let differs = difference(request, traffic, answer, other_counts)
            .or_else(|| (times == Times::Other).then(|| "another time".to_owned()));
        let text = || traffic.text(sent);
        // Why values of an answer that does not differ may have been left out.
        let left_out = |is_first: bool| {
            let is_volatile = traffic.templates[sent.template].has_volatile_columns && answer.rows > 0;
            let is_first = is_first || times == Times::First;
            let is_of_clock = || varies(&text(), traffic, sent, answer) == Some(Varies::Volatile);
            match (is_volatile || is_first && is_of_clock(), is_first) {
                (true, _) => Some(Varies::Volatile),
                (_, true) => Some(Varies::Part),
                _ => None,
            }
        };
        let Some(differs) = differs else {
            let is_partial = is_partial(request, traffic, answer).then_some(Varies::Part);
            self.vary(left_out(false).or(is_partial));
            return;
        };
        let is_followed = request.rows == answer.rows
            && request.affected == answer.affected
            && request.error == answer.error;
        if let Some(rows) = answer.kept.as_ref().filter(|_| is_followed && times != Times::Other) {
            match bindings.follow(rows, request.digest, traffic.language) {
                Followed::Equal => return self.vary(left_out(learnt.is_first)),
                Followed::Reordered => return self.vary(Some(Varies::Order)),
                Followed::Not => {}
            }
        }
        let may_race = request.error == answer.error
            || [&request.error, &answer.error]
                .into_iter()
                .flatten()
                .any(|code| CONFLICTS.contains(&code.as_str()));
        let varies = varies(&text(), traffic, sent, answer);
        // A time in the place of another is not that of the same row elsewhere.
        let varies =
            varies.filter(|varies| times != Times::Other || *varies != Varies::Order).or_else(|| {
                // Numbers that a client was told are followed.
                let for_numbers = sent.made.is_empty() && traffic.raced_for_numbers(unit);
                (may_race && (traffic.raced(unit) || for_numbers)).then_some(Varies::Raced)
            });
        let is_reordered =
            is_followed && request.digest >> 32 == answer.digest >> 32 && traffic.language.sql().is_some();
        let varies = varies.or_else(|| (is_reordered && may_have_ties()).then_some(Varies::Part));
        // The lowest quarter is that of the rows without numbers and UUIDs.
        let is_unsure = is_followed && learnt.is_unsure && request.digest & 0xffff == answer.digest & 0xffff;
        let varies = varies.or(is_unsure.then_some(Varies::Part));
        if varies.is_some() {
            return self.vary(varies);
        }
        self.wrong += 1;
        if answer.error.as_deref() == Some(ABORTED) {
            // An earlier answer of the transaction is the wrong one.
            return;
        }
        let kind = traffic.templates[sent.template].kind;
        let (count, _) = self.wrong_kinds.entry(kind).or_insert_with(|| {
            let shown: String = text().chars().take(SHOWN).collect();
            (0, format!("{differs} for '{shown}'"))
        });
        *count += 1;
    }

    /// An answer is right, although something of it may differ.
    fn vary(&mut self, varies: Option<Varies>) {
        if let Some(varies) = varies {
            *self.varies.entry(varies).or_default() += 1;
        }
    }

    /// The wrong answers, by statement with one example each.
    pub(super) fn error(&self, traffic: &Traffic) -> Option<Error> {
        if self.wrong == 0 {
            return None;
        }
        let mut kinds: Vec<_> = self.wrong_kinds.iter().collect();
        sort::by_key(&mut kinds, |(_, (count, _))| std::cmp::Reverse(*count));
        let ended = if self.wrong >= MANY { " until the replay was ended" } else { "" };
        let mut what =
            format!("{} of {} answers differ from the recorded ones{ended}", self.wrong, self.answers);
        for (kind, (count, example)) in kinds.iter().take(LISTED) {
            let _ = write!(what, "; {count} of '{}', such as {example}", traffic.kinds[**kind].text);
        }
        if kinds.len() > LISTED {
            let _ = write!(what, "; and of {} other statements", kinds.len() - LISTED);
        }
        if traffic.left_out > 0 {
            let _ = write!(
                what,
                "; {} requests of the capture cannot be sent again, and may have changed what was read",
                traffic.left_out
            );
        }
        let hint = if traffic.language == Language::Couchdb {
            "is the data as it was when the capture began? A throwaway server begins empty; --write replays on a server of yours"
        } else {
            "is the data as it was when the capture began? On a throwaway server, --data FILE|copy:URL restores it before \
             each replay"
        };
        Some(Error::mismatch(what).hint(hint))
    }
}

/// What of an answer's shape differs.
fn difference(
    recorded: &Request,
    traffic: &Traffic,
    answer: &Exchange,
    other_counts: bool,
) -> Option<String> {
    let known = traffic.about.known;
    if matches!(known, Known::Times | Known::Requests) {
        return None;
    }
    if recorded.error != answer.error {
        let shown = |error: &Option<String>| {
            error.as_ref().map_or("no error".to_owned(), |code| format!("error {code}"))
        };
        return Some(format!("{} instead of {}", shown(&answer.error), shown(&recorded.error)));
    }
    if recorded.step == Step::Prepare || known == Known::Errors || is_packed(recorded, traffic, answer) {
        return None;
    }
    if recorded.rows != answer.rows {
        return Some(format!("{} rows instead of {}", answer.rows, recorded.rows));
    }
    if recorded.affected != answer.affected && !other_counts {
        return Some(format!("{} rows changed instead of {}", answer.affected, recorded.affected));
    }
    let differs = recorded.digest != answer.digest && !traffic.about.has_old_checksums;
    let differs = differs && !may_be_nil(&traffic.about, [recorded.digest, answer.digest]);
    differs.then(|| format!("other values in {} rows", answer.rows.max(1)))
}

/// Whether nothing is known of a body but that it is there, since it is compressed or has several parts.
fn is_packed(recorded: &Request, traffic: &Traffic, answer: &Exchange) -> bool {
    traffic.language == Language::Couchdb && (recorded.digest == 0 || answer.digest == 0)
}

/// Whether an answer that does not differ was compared in part only.
fn is_partial(recorded: &Request, traffic: &Traffic, answer: &Exchange) -> bool {
    let has_rows = traffic.about.known == Known::All && recorded.error.is_none();
    let is_old = traffic.about.has_old_checksums && recorded.rows > 0;
    has_rows && (is_old || is_packed(recorded, traffic, answer) || recorded.affected != answer.affected)
}

/// Why the answer may be right.
fn varies(text: &str, traffic: &Traffic, sent: &Sent, answer: &Exchange) -> Option<Varies> {
    let (language, recorded) = (traffic.language, &sent.request);
    let lost = |error: &Option<String>| error.as_ref().is_some_and(|code| LOST.contains(&code.as_str()));
    if lost(&recorded.error) || lost(&answer.error) {
        return Some(Varies::Raced);
    }
    if recorded.error != answer.error {
        return None;
    }
    if let Some(asked) = &sent.document {
        return asked.varies(recorded, answer);
    }
    // The upper half is that of the rows in any order.
    let same_rows = recorded.rows == answer.rows && recorded.digest >> 32 == answer.digest >> 32;
    let call = language.call(text, &recorded.parameters);
    if let Some(Call::Http(request)) = call {
        let is_reordered = same_rows && http::is_unordered(&request);
        let is_volatile = http::is_volatile(&request);
        return is_volatile.then_some(Varies::Volatile).or(is_reordered.then_some(Varies::Order));
    }
    let same_count = recorded.rows == answer.rows && recorded.affected == answer.affected;
    if let Some(Call::Command(command)) = call {
        // Checksums of answers without an order are the same in any.
        if sent.varies {
            return Some(Varies::Volatile);
        }
        // It waits up to a time for what another client sends.
        let waits = commands::is(language, "waits", command.name()) || command.name().starts_with("XREAD");
        let has_timed_out = recorded.rows != answer.rows && recorded.rows.min(answer.rows) == 0;
        return (language == Language::Redis && waits && has_timed_out).then_some(Varies::Raced);
    }
    let statement = Statement::read(text, language.dialect());
    let template = &traffic.templates[sent.template];
    // Columns of time and chance have no part in checksums of rows that were divided into values.
    let is_without =
        || !template.judged.is_setup && answer.kept.is_some() && statement.volatile_columns().is_some();
    match statement.varies() {
        Some(sql::Varies::Rows) => return Some(Varies::Volatile),
        Some(sql::Varies::Values) if same_count && !is_without() => return Some(Varies::Volatile),
        _ => {}
    }
    // The lowest quarter is that of the rows without numbers and UUIDs.
    let same_rest = recorded.digest & 0xffff == answer.digest & 0xffff;
    match (same_count, same_rows) {
        // Of rows that are ordered by the server's clock, those of one moment have no order.
        (true, true) => (!statement.is_ordered() || !sent.made.is_empty()).then_some(Varies::Order),
        (true, false) => {
            let has_unknown = template.tables.iter().any(|table| traffic.raced_for.contains(table))
                || traffic.is_inserted(template) && has_more_uuids(answer);
            let is_partial = statement.has_open_limit() || traffic.stored.are_read_by(&statement);
            (is_partial || same_rest && has_unknown).then_some(Varies::Part)
        }
        _ => None,
    }
}

/// Whether the recorded list may have been nil as that of the answer is, since the checksum of an earlier build does not tell.
fn may_be_nil(about: &About, checksums: [u64; 2]) -> bool {
    !about.tells_nil_lists
        && Language::from_scheme(&about.protocol) == Language::Redis
        && checksums == lists_without_rows()
}

/// Why an answer may differ from the recorded one, and be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Varies {
    /// The statement asks for what changes: time, random numbers, sequences, the server's state.
    Volatile,
    /// The same rows in another order.
    Order,
    /// A change was committed at the same time.
    Raced,
    /// Only the status or the number of rows can be compared: of a packed body, LIMIT without an order, part of a cursor.
    Part,
}

impl Varies {
    pub(super) const ALL: [Self; 4] = [Self::Volatile, Self::Order, Self::Raced, Self::Part];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nil_list_is_wrong_for_an_empty_one_unless_an_earlier_build_recorded_it() {
        let [empty, nil] = lists_without_rows();
        let about = About { protocol: "redis".to_owned(), ..About::default() };
        assert!(empty != nil && may_be_nil(&about, [empty, nil]) && !may_be_nil(&about, [nil, empty]));
        assert!(!may_be_nil(&About { tells_nil_lists: true, ..about }, [empty, nil]));
    }
}
