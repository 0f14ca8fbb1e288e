//! What a capture shows: statements, units of work, connections.

mod does;
mod reading;
mod spread;
mod terminal;
pub(crate) mod work;

pub(crate) use does::Does;
pub(crate) use reading::{Analysis, analyse};
pub use terminal::steps;
pub(crate) use work::{Kind, Sample};

use crate::file::{About, Ending, Known};
use crate::units::{Node, What, flatten};
use crate::variables::plan;
use kurabe_core::Result;
use kurabe_core::units::{count, counted, size, time};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Shown {
    pub about: About,
    ending: Ending,
    /// The time from the first request to the end of the last answer, in nanoseconds.
    pub(crate) time_ns: u64,
    pub requests: u64,
    errors: u64,
    unanswered: u64,
    /// Requests without all of their values, since they are too long or may contain a password.
    pub cut: u64,
    /// Requests that were sent before an earlier one was answered.
    pipelined: u64,
    peak_per_second: u64,
    /// Requests that were under way at the same time, on average.
    concurrency: f64,
    data_bytes: u64,
    pub(crate) connections: Connections,
    pub statements: Vec<Statement>,
    pub units: Vec<Unit>,
    pub units_not_listed: u64,
    /// Loops of reads over the connections of a pool, which no unit has.
    pub spread_loops: Vec<SpreadLoop>,
    /// From the first request on, in at most 240 steps.
    pub course: Vec<Course>,
}

/// The maximum number of steps of a course of time.
const COURSE: u64 = 240;

/// What began in a step of time.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Course {
    /// How long the step is: the last one ends with the last answer.
    pub seconds: f64,
    pub requests: u64,
    /// How long all of them were under way, in nanoseconds.
    pub busy_ns: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Connections {
    opened: u64,
    most_open: u64,
    /// Of those that had sent ten requests.
    pub(crate) most_working: u64,
    /// The share of their time in which a transaction was open and no request under way.
    idle_in_transaction: f64,
    /// Why connections, or their rest, could not be read, and how many.
    unreadable: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Statement {
    pub text: String,
    pub(crate) setup: bool,
    pub calls: u64,
    prepared: u64,
    pub errors: u64,
    pub rows: u64,
    pub affected: u64,
    /// The most rows that one call gave or changed.
    pub(crate) most_rows: u64,
    pub share: f64,
    pub(crate) total_ns: u64,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    /// Why a model cannot have it.
    #[serde(skip)]
    pub(crate) why_not: Option<&'static str>,
    #[serde(skip)]
    pub(crate) does: Does,
}

/// A kind of unit of work: a transaction, or the requests of a connection without a pause between them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Unit {
    pub calls: u64,
    pub share: f64,
    total_ns: u64,
    pub transaction: bool,
    /// Statements are named by their places in the list.
    pub steps: Vec<Node>,
    /// How parameters are drawn, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub draws: BTreeMap<String, String>,
    /// Whether a loop of reads follows another statement.
    pub n_plus_one: bool,
}

/// A loop of reads behind another statement, spread over several connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpreadLoop {
    /// The statement that gave the rows, and the one that reads once for each, by their places in the list.
    pub after: usize,
    pub statement: usize,
    /// How often, and whether that is estimated, as it is of more than 200,000 requests outside of transactions.
    pub calls: u64,
    pub is_estimated: bool,
    /// How often it repeats at least and at most.
    pub times: [u64; 2],
}

/// Says how many requests a replay leaves out since values are missing.
pub fn left_out(cut: u64, requests: u64) -> String {
    let share = 100.0 * cut as f64 / requests.max(1) as f64;
    let share = if share < 0.1 { "< 0.1".to_owned() } else { format!("{share:.1}") };
    format!("{} requests ({share} %) are above 1 MB or may hold a password: no replay has them", count(cut))
}

/// Reads a capture.
pub fn show(path: &Path) -> Result<Shown> {
    let Analysis { mut shown, kinds, forms, .. } = analyse(path, false)?;
    if shown.about.known == Known::Requests {
        shown.statements.iter_mut().for_each(|one| (one.p50_ns, one.p99_ns) = (None, None));
    }
    for (unit, kind) in shown.units.iter_mut().zip(&kinds) {
        unit.draws = plan(kind, &forms).described();
    }
    Ok(shown)
}

impl Shown {
    /// The time that the application waited, in nanoseconds.
    pub(crate) fn total_ns(&self) -> u64 {
        self.statements.iter().map(|statement| statement.total_ns).sum()
    }
}

/// A loop of reads with this many repetitions is what "N+1" means.
const MANY: u64 = 5;

/// Whether a loop of reads follows another statement.
fn n_plus_one(nodes: &[Node], statements: &[Statement]) -> bool {
    let reads = |number: usize| statements.get(number).is_some_and(|one| one.does.reads);
    let only_reads = |node: &Node| {
        let key = flatten(std::slice::from_ref(node));
        key.into_iter().all(reads)
    };
    nodes.iter().skip(1).any(|node| node.most >= MANY && only_reads(node))
        || nodes.iter().any(|node| matches!(&node.what, What::Loop(body) if n_plus_one(body, statements)))
}

pub fn ns(ns: u64) -> String {
    time(Duration::from_nanos(ns))
}

impl Shown {
    /// What it shows in sentences, the most important one first.
    pub fn facts(&self) -> Vec<String> {
        let connections = &self.connections;
        let mut facts = vec![format!(
            "{} of {}, {} requests, {}/s (peak {}/s)",
            ns(self.time_ns),
            self.about.protocol,
            count(self.requests),
            count((self.requests as f64 / (self.time_ns as f64 / 1e9).max(1e-9)).round() as u64),
            count(self.peak_per_second),
        )];
        let of = |number: u64, what: &str| format!("{} {what}", count(number));
        let known = [
            (Known::Times, format!("{:.2} under way on average", self.concurrency)),
            (Known::Errors, counted(self.errors, "error")),
            (Known::All, of(self.unanswered, "without an answer")),
            (Known::All, of(self.pipelined, "pipelined")),
        ];
        let known: Vec<String> =
            known.into_iter().filter(|(least, _)| self.about.known <= *least).map(|(_, fact)| fact).collect();
        facts.extend((!known.is_empty()).then(|| known.join(", ")));
        facts.push(format!(
            "{}, at most {} at once, {:.0} % of their time idle in transaction",
            counted(connections.opened, "connection"),
            count(connections.most_open),
            100.0 * connections.idle_in_transaction,
        ));
        let of_log = match self.about.known {
            Known::All => None,
            Known::Errors => Some("times are the server's, and of answers only errors are known"),
            Known::Times => Some("times are the server's, and answers are not known"),
            Known::Requests => Some("neither times nor answers are known, and shares are of calls"),
        };
        facts.extend(of_log.map(|what| format!("From a log: {what}.")));
        facts.extend((self.data_bytes > 0).then(|| format!("{} of bulk data", size(self.data_bytes))));
        facts
    }

    /// Why connections, or their rest, were not read.
    pub fn unreadable(&self) -> impl Iterator<Item = String> {
        self.connections.unreadable.iter().map(|(why, times)| format!("{times} not read: {why}"))
    }

    /// That the recorder did not end in order, if it did not.
    pub fn cut_short(&self) -> Option<String> {
        let left_out = match self.ending.left_out {
            0 => String::new(),
            bytes => format!("; {bytes} bytes of a last block that is cut off are left out"),
        };
        (!self.ending.complete).then(|| format!("The recorder did not end in order{left_out}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Parameter, Record, Request};
    use kurabe_protocol::command;
    use kurabe_stats::Rng;
    use kurabe_wire::view::{Step, Transaction};

    #[test]
    fn point_read_takes_at_most_60_bytes_and_its_draw_is_named() {
        const REQUESTS: u64 = 50_000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads.capture");
        let about = About { protocol: "postgres".to_owned(), ..About::default() };
        let open = |connection| Record::Open { connection, at: connection, said: Vec::new() };
        let mut records: Vec<Record> = (0..8).map(open).collect();
        let template = "SELECT abalance FROM pgbench_accounts WHERE aid = $1;".to_owned();
        records.push(Record::Statement { number: 0, template });
        let (mut rng, mut at) = (Rng::new(1), 0);
        for number in 0..REQUESTS {
            at += 5_000 + rng.below(20_000);
            let key = 1 + rng.below(100_000);
            let value = key.to_string().into_bytes();
            let request = Request {
                connection: number % 8,
                at,
                time: Some(50_000 + rng.below(100_000)),
                parameters: vec![Parameter::new(23, false, value)],
                rows: 1,
                digest: kurabe_stats::mix(1, key),
                step: Step::Execute,
                transaction: Transaction::None,
                ..Request::default()
            };
            records.push(Record::Request(Box::new(request)));
        }
        records.push(Record::End { requests: REQUESTS });
        crate::file::write(&path, &about, &records).unwrap();
        let shown = show(&path).unwrap();
        let size = std::fs::metadata(&path).unwrap().len();
        assert_eq!((shown.requests, shown.units.first().map(|unit| unit.calls)), (REQUESTS, Some(REQUESTS)));
        let draws: Vec<_> = shown.units.iter().flat_map(|unit| unit.draws.values()).collect();
        assert!(draws.iter().all(|draw| draw.starts_with("uniform")) && draws.len() == 1, "{draws:?}");
        assert!(size <= 60 * REQUESTS, "{size}");
    }
    #[test]
    fn scripts_are_told_apart_by_their_first_lines_and_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scripts.capture");
        let about = About { protocol: "redis".to_owned(), ..About::default() };
        let script = "\n-- takes a job\nreturn redis.call('lpop', KEYS[1])";
        // As sha1sum says.
        let sum = "b77c1409c24a696aec22ddda0a3cad706d09a509";
        let mut records = vec![Record::Open { connection: 0, at: 0, said: Vec::new() }];
        for (number, template) in ["EVAL ?", "EVALSHA ?"].into_iter().enumerate() {
            records.push(Record::Statement { number: number as u64, template: template.to_owned() });
        }
        for (at, (statement, words)) in [
            (1, [sum, "1", "bull:mail:7"]),
            (0, [script, "1", "bull:mail:8"]),
            (1, [sum, "1", "bull:mail:9"]),
            (1, ["0123456789ABCDEF0123456789abcdef01234567", "0", "x"]),
        ]
        .into_iter()
        .enumerate()
        {
            let name = if statement == 0 { "EVAL" } else { "EVALSHA" };
            records.push(Record::Request(Box::new(Request {
                at: at as u64 * 100,
                time: Some(10),
                statement,
                parameters: command::parts([name], words.map(|word| word.as_bytes().to_vec()), false),
                ..Request::default()
            })));
        }
        crate::file::write(&path, &about, &records).unwrap();
        let shown = show(&path).unwrap();
        let mut found: Vec<_> =
            shown.statements.iter().filter(|one| one.calls > 0).map(|one| (&*one.text, one.calls)).collect();
        found.sort_unstable();
        let expected = [
            ("EVAL -- takes a job bull:mail:?", 1),
            ("EVALSHA -- takes a job bull:mail:?", 2),
            ("EVALSHA 01234567", 1),
        ];
        assert_eq!(found, expected);
    }
}
