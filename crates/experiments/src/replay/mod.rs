//! The replay of a capture: an experiment that is read from what an application asked of a database.
//!
//! `traffic` reads the capture and says what waits for what, `client` sends it, `compare` judges the answers.

mod bindings;
mod cached;
mod client;
mod commands;
mod compare;
mod http;
mod job;
mod keys;
mod memcached;
mod mongodb;
mod mysql;
mod order;
mod pooled;
mod postgres;
mod prepared;
mod reading;
mod redis;
mod traffic;
mod values;

use crate::metrics::time;
use crate::prelude::*;
use crate::statement::raw;
use compare::{CACHED, HALVES, HITS, LEFT_OUT, MEAN, P99, VARIES};
use job::{Replay, Seen};
use kurabe_capture::file::Known;
use kurabe_capture::session;
use kurabe_core::custom::{self, CustomFile, CustomWorkload};
use kurabe_core::driver::Access;
use kurabe_core::raw::RawPiece;
use kurabe_core::run::Setup;
use kurabe_core::sort;
use kurabe_core::text::cut;
use kurabe_protocol::call::Language;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use traffic::Traffic;

/// Statements with a metric of their own; the rest share one.
const OWN: usize = 8;
/// Kinds of transactions with a metric.
const TRANSACTIONS: usize = 4;
/// Characters of a statement or a transaction in the name of its metric.
const NAME: usize = 44;
/// The metric of the statements without one of their own.
const OTHERS: &str = "other statements";
/// The default time of a run, and as how many recorded times at least.
const BUDGET: Duration = Duration::from_secs(30);
const ROUNDS: u32 = 12;
const SPEED: &str = "speed";

/// The axis of a replay through a cache: both are compared.
pub const CACHE: &str = "cached";

/// The axes of a replay whose clients do something otherwise than the recorded ones.
pub const POOLED: &str = "pooled";
pub const PREPARED: &str = "prepared";

static AXES: [AxisInfo; 4] = [SPEEDS, POOLS, PREPARES, CACHES];

const POOLS: AxisInfo = AxisInfo::new(
    POOLED,
    "whether connections are kept",
    AxisKind::choice(&[
        ("no", "each is opened and closed as it was recorded"),
        (
            "yes",
            "as many as were open at once; one that is closed is the next one's, if it left the session as it was",
        ),
    ]),
    &["no"],
);

const PREPARES: AxisInfo = AxisInfo::new(
    PREPARED,
    "whether statements are prepared",
    AxisKind::choice(&[
        ("no", "as they were recorded"),
        ("yes", "once a connection, and executed with their literals as parameters"),
    ]),
    &["no"],
);

const CACHES: AxisInfo = AxisInfo::new(
    CACHE,
    "whether reads look into the cache first",
    AxisKind::choice(&[
        ("no", "the database answers all"),
        (
            "yes",
            "reads outside of transactions look into the cache; a commit that changes a table empties it of its reads",
        ),
    ]),
    &["no", "yes"],
);

const SPEEDS: AxisInfo = AxisInfo::new(
    SPEED,
    "how fast it is replayed",
    AxisKind::decimal(1_000_000).or(&[(
        "max",
        "each connection sends its next request when it may; 1: at the recorded times, 2: twice as fast",
    )]),
    &["max"],
);

/// The axes of a replay; those behind the first one are of SQL, and the last one needs a cache.
pub fn axes() -> &'static [AxisInfo] {
    &AXES
}

/// What a run file keeps of a capture, beside its name.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Kept {
    digest: Option<String>,
    protocol: String,
    #[serde(default)]
    known: Known,
    requests: u64,
    complete: bool,
    connections: usize,
    /// The largest number of connections that are open at the same time.
    most_open: usize,
    /// How long it took, in nanoseconds.
    time: u64,
    /// The first statement that may change something, and why.
    writes: Option<(String, String)>,
    /// The statements with the largest share of time.
    statements: Vec<String>,
    /// The kinds of transactions with the largest share of time.
    #[serde(default)]
    transactions: Vec<String>,
    /// Whether the data is restored before each replay.
    restored: bool,
    /// Whether the databases or collections of the capture are removed before each replay.
    #[serde(default)]
    emptied: bool,
    /// Whether the cache in front of the targets is a throwaway one; `None` without a cache.
    #[serde(default)]
    throwaway_cache: Option<bool>,
    /// Whether the requests' two [halves](Around::halves) have a mean each.
    #[serde(default)]
    halves: bool,
}

/// What is around a replay.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Around {
    /// Whether its statements may change existing tables.
    pub write: bool,
    /// Whether the targets' data is restored before each replay.
    pub restored: bool,
    /// Whether the targets are throwaway servers. A restart empties one of memcached, as it was when it began.
    pub throwaway: bool,
    /// Whether the cache in front of the targets is a throwaway server; `None` without a cache.
    pub throwaway_cache: Option<bool>,
    /// Whether it reports the mean time of every second eighth of the requests, and that of the others: what is chosen by one half
    /// is confirmed by the other.
    pub halves: bool,
}

/// A capture as the workload of a run.
///
/// # Errors
/// If it cannot be read, or cannot be replayed.
pub fn workload(path: &Path, around: Around) -> Result<CustomWorkload> {
    let Around { write, restored, throwaway, throwaway_cache, halves } = around;
    let name = path.display().to_string();
    let digest = Setup::of(&name)
        .map_err(|_| {
            Error::usage(format!("the capture {name} cannot be read"))
                .hint("'kurabe capture TARGET -o FILE' makes one")
        })?
        .digest;
    let traffic = load(&name, digest.as_deref())?;
    let mut kinds: Vec<_> = traffic.kinds.iter().filter(|kind| kind.calls > 0).collect();
    sort::by_key(&mut kinds, |kind| std::cmp::Reverse(kind.time));
    let is_emptied = |language| throwaway && traffic.language == language;
    let kept = Kept {
        digest,
        protocol: traffic.about.protocol.clone(),
        known: traffic.about.known,
        requests: traffic.requests,
        complete: traffic.complete,
        connections: traffic.connections.len(),
        most_open: traffic.lanes.len(),
        time: traffic.ended(),
        writes: traffic.writes().map(|(text, why)| (text.to_owned(), why.to_owned())),
        statements: kinds.iter().take(OWN).map(|kind| kind.text.clone()).collect(),
        transactions: traffic.transactions.iter().take(TRANSACTIONS).map(|kind| kind.text.clone()).collect(),
        restored: restored || is_emptied(Language::Memcached),
        emptied: is_emptied(Language::Couchdb) || is_emptied(Language::Documents),
        throwaway_cache,
        halves,
    };
    let is_sql = traffic.language.sql().is_some();
    if throwaway_cache.is_some() && !is_sql {
        return Err(Error::usage(format!("--cache is for replays of SQL, and not of {}", kept.protocol)));
    }
    if throwaway_cache.is_some()
        && !traffic.is_counted
        && let Some(why) = cached::nothing_to_cache(&traffic)
    {
        return Err(Error::usage(format!("no read of {name} is cacheable: {why}"))
            .hint("a cache would answer nothing: replay it without --cache"));
    }
    let text = serde_json::to_string(&kept)
        .map_err(|error| Error::new(ErrorKind::Internal, format!("a capture without a summary: {error}")))?;
    let files = vec![CustomFile { name, text, weight: 1 }];
    Ok(CustomWorkload::new(custom::Language::Capture, files, BTreeMap::new(), write))
}

/// The schemes of targets on which a capture can be replayed.
///
/// # Errors
/// If the workload is no capture.
pub fn schemes(source: &CustomWorkload) -> Result<&'static [&'static str]> {
    let protocol = kept(source)?.1.protocol;
    Ok(commands::schemes(&protocol).unwrap_or_default())
}

/// Whether the capture has its end.
///
/// # Errors
/// If the workload is no capture.
pub fn is_complete(source: &CustomWorkload) -> Result<bool> {
    Ok(kept(source)?.1.complete)
}

/// The recorded settings of new sessions that no replay sets, since this version does not know them.
///
/// # Errors
/// If the workload is no capture, or it cannot be read any more.
pub fn unknown_settings(source: &CustomWorkload) -> Result<Vec<String>> {
    let (name, kept) = kept(source)?;
    let about = &load(name, kept.digest.as_deref())?.about;
    let known = session::names(&about.protocol);
    let all = about.session.iter().flatten().map(|(name, _)| name);
    Ok(all.filter(|name| !known.contains(&name.as_str())).cloned().collect())
}

/// A statement of which replays report the mean time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Its text, as the capture shows it.
    pub text: String,
    /// The metric with the mean time of a call.
    pub metric: String,
    /// How often one replay sends it.
    pub calls: u64,
}

pub struct Reports {
    /// The metrics with the mean time of all requests, and of each [half](Around::halves).
    pub mean: &'static str,
    pub halves: [&'static str; 2],
    /// How many requests one replay sends.
    pub requests: u64,
    /// The statements with the largest share of the recorded time.
    pub statements: Vec<Reported>,
    /// The metric with the share of the reads that a cache answered.
    pub hits: &'static str,
    /// The connections with requests, and how many of them are open at once.
    pub connections: [usize; 2],
    /// How many requests could be executions of prepared statements, and are none.
    pub unprepared: u64,
    /// How many requests are reads that a cache could answer, and were asked before.
    pub repeated: u64,
}

/// What replays of a capture report.
///
/// # Errors
/// If the workload is no capture, or it cannot be read any more.
pub fn reports(source: &CustomWorkload) -> Result<Reports> {
    let (name, kept) = kept(source)?;
    let traffic = load(name, kept.digest.as_deref())?;
    let calls =
        |text: &String| traffic.kinds.iter().find(|kind| kind.text == *text).map_or(0, |kind| kind.calls);
    let one = |(n, text): (usize, &String)| Reported {
        text: text.clone(),
        metric: metric_name("#", n, text),
        calls: calls(text),
    };
    let statements = kept.statements.iter().enumerate().map(one).collect();
    Ok(Reports {
        mean: MEAN.name,
        halves: HALVES.map(|half| half.name),
        requests: traffic.requests,
        statements,
        hits: HITS.name,
        connections: [traffic.lanes.iter().map(Vec::len).sum(), traffic.lanes.len()],
        unprepared: prepared::left_out(&traffic),
        repeated: cached::repeated(&traffic),
    })
}

/// The name of the metric of a statement or a transaction.
fn metric_name(sign: &str, n: usize, text: &str) -> String {
    format!("{sign}{} {}", n + 1, cut(text, NAME))
}

fn kept(source: &CustomWorkload) -> Result<(&str, Kept)> {
    let file =
        source.files.first().ok_or_else(|| Error::new(ErrorKind::Internal, "a replay without a capture"))?;
    let kept = serde_json::from_str(&file.text)
        .map_err(|error| Error::new(ErrorKind::Damaged, format!("the summary of {}: {error}", file.name)))?;
    Ok((&file.name, kept))
}

/// The captures read so far.
static LOADED: Mutex<Vec<(Setup, Arc<Traffic>)>> = Mutex::new(Vec::new());

fn load(name: &str, digest: Option<&str>) -> Result<Arc<Traffic>> {
    let file = Setup { from: name.to_owned(), digest: digest.map(str::to_owned) };
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, traffic)) = loaded.iter().find(|(known, _)| *known == file) {
        return Ok(Arc::clone(traffic));
    }
    file.check()?;
    let traffic = Arc::new(reading::read(Path::new(name))?);
    loaded.push((file, Arc::clone(&traffic)));
    Ok(traffic)
}

/// A capture as an experiment plans it.
struct Planner {
    name: String,
    kept: Kept,
    write: bool,
    /// The metric of each statement that has one.
    metrics: Vec<(String, &'static str)>,
    /// The metrics of kinds of transactions, the first of which have one.
    of_transactions: Vec<&'static str>,
}

/// The experiment that replays a capture.
///
/// # Errors
/// [`Damaged`](ErrorKind::Damaged) if what the run file keeps of it cannot be read.
pub(crate) fn experiment(source: &CustomWorkload) -> Result<Experiment> {
    let (name, kept) = kept(source)?;
    let short = Path::new(name)
        .file_stem()
        .map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned());
    let named = |sign: &str, n: usize, text: &str| -> &'static str { metric_name(sign, n, text).leak() };
    let metrics: Vec<_> =
        kept.statements.iter().enumerate().map(|(n, text)| (text.clone(), named("#", n, text))).collect();
    let about = |text: &str| -> &'static str { format!("mean time of {text}").leak() };
    let own = metrics.iter().map(|(text, metric)| time(metric, about(text)).primary());
    let of_transactions: Vec<_> =
        kept.transactions.iter().enumerate().map(|(n, text)| named("transaction ", n, text)).collect();
    let whole = |(text, metric): (&String, &&'static str)| {
        let about = format!("mean time of the requests of a transaction together: {text}");
        time(metric, about.leak()).primary()
    };
    let whole = kept.transactions.iter().zip(&of_transactions).map(whole);
    let others = time(OTHERS, "mean time of the statements with the least share of time").primary();
    let cached = [HITS, CACHED].into_iter().filter(|_| kept.throwaway_cache.is_some());
    let halves = HALVES.into_iter().filter(|_| kept.halves);
    let all = own
        .chain([others])
        .chain(whole)
        .chain([MEAN, P99])
        .chain(halves)
        .chain(cached)
        .chain([LEFT_OUT])
        .chain(VARIES);
    let operation = OperationInfo {
        name: "replay",
        about: "all requests of the capture, once",
        requests: 1,
        writes: kept.writes.is_some(),
    };
    let info = ExperimentInfo {
        name: short.leak(),
        question: "How fast is each database with the recorded traffic?",
        about: format!(
            "Replays {} of {}, recorded from {}{}.",
            units::counted(kept.requests, "request"),
            units::counted(kept.connections as u64, "connection"),
            kept.protocol,
            match kept.known {
                Known::All => "",
                Known::Errors => ", in a log: of answers only errors are compared",
                _ => ", in a log: no answers are compared",
            }
        )
        .leak(),
        axes: match Language::from_scheme(&kept.protocol).sql() {
            None => &AXES[..1],
            Some(_) if kept.throwaway_cache.is_none() => &AXES[..3],
            Some(_) => &AXES,
        },
        operations: vec![operation].leak(),
        metrics: all.collect::<Vec<_>>().leak(),
        chart_axis: SPEED,
        ..ExperimentInfo::BASE
    };
    // Several replays, each of which ends when it is done.
    let budget = Some(Duration::from_nanos(kept.time).saturating_mul(ROUNDS).max(BUDGET));
    let takes_cache = kept.throwaway_cache.is_some();
    let planner = Planner { name: name.to_owned(), kept, write: source.write, metrics, of_transactions };
    let plan = move |cell: &Cell, dataset: &Dataset| planner.plan(cell, dataset);
    let experiment = Experiment::new(Box::leak(Box::new(info)), Box::leak(Box::new(plan)));
    Ok(Experiment { takes_cache, budget, ..experiment })
}

impl Planner {
    /// Whether it has commands in place of statements.
    fn has_commands(&self) -> bool {
        Language::from_scheme(&self.kept.protocol).sql().is_none()
    }

    fn plan(&self, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        if let Some((text, why)) = self.kept.writes.as_ref().filter(|_| !self.write) {
            return Err(Error::usage(format!("{} may change data: {text} ({why})", self.name)).hint(
                "replay it on a throwaway server, such as up:postgres with --data dump.sql; --write allows it on a server of \
                 yours, whose data it changes",
            ));
        }
        let speed = match cell.word(SPEED)? {
            "max" => None,
            number => match number.parse::<f64>() {
                Ok(speed) if speed > 0.0 => Some(speed),
                _ => {
                    return Err(
                        Error::usage("--speed 0 never ends").hint("write --speed 1 for the recorded times")
                    );
                }
            },
        };
        let traffic = load(&self.name, self.kept.digest.as_deref())?;
        let metric = |kind: &traffic::Kind| {
            self.metrics.iter().find(|(text, _)| *text == kind.text).map_or(OTHERS, |(_, metric)| *metric)
        };
        let metrics = traffic.kinds.iter().map(metric).collect();
        // Without recorded pauses: the time in which the busiest connections waited for answers.
        let time = match speed {
            Some(speed) => (self.kept.time as f64 / speed) as u64,
            None => traffic.busiest(),
        };
        // A run file of an earlier version has fewer axes.
        let is = |axis| cell.word(axis).is_ok_and(|word| word == "yes");
        let is_cached = self.kept.throwaway_cache.is_some() && is(CACHE);
        let need = self.kept.throwaway_cache.filter(|_| is_cached).map(cached::need);
        let cache = need.as_ref().map(|need| cached::collection(&need.name, dataset.slot));
        let through: Vec<Operation> = cache.iter().flat_map(cached::operations).collect();
        let of_transactions = self.of_transactions.clone();
        let (emptied, ended) = (self.kept.emptied, Mutex::new(Seen::default()));
        let halves = self.kept.halves;
        let left = if is(POOLED) { pooled::left(&traffic) } else { Vec::new() };
        let prepares = is(PREPARED);
        let job = Replay {
            traffic,
            metrics,
            of_transactions,
            speed,
            cache,
            left,
            prepares,
            emptied,
            halves,
            ended,
        };
        // Of a server without read-only sessions, only commands that are known to read are sent.
        let reads = self.kept.writes.is_none() && !self.write && !self.has_commands();
        let operation = if self.has_commands() {
            Operation::Ping
        } else {
            raw(&self.name, vec![RawPiece::Text("SELECT 1".to_owned())])
        };
        let demand = Demand {
            operations: [operation].into_iter().chain(through).collect(),
            capabilities: reads.then_some(Capability::ReadOnlySessions).into_iter().collect(),
            ..Demand::default()
        };
        let mut cell = PlannedCell::job("replay", demand, self.kept.most_open, job);
        cell.min_time = Duration::from_nanos(time);
        cell.policy.access = if reads { Access::ReadOnly } else { Access::ReadWrite };
        cell.needs.extend(need.map(Need::Cache));
        if self.kept.restored {
            cell.needs.push(Need::Restart);
        }
        Ok(cell)
    }
}
