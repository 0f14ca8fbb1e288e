//! What a long round trip means for a run: loading waits for the answer to each request.

use crate::plan::Plan;
use crate::prepare::target::Target;
use kurabe_core::collection::FieldType;
use kurabe_core::driver::Support;
use kurabe_core::observation::Endpoint;
use kurabe_core::operation::Operation;
use kurabe_core::planned::PlannedCell;
use kurabe_core::run::RunSpec;
use kurabe_core::{Result, units};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// The share of the requests of a load that wait for an answer: the others are sent together, or are parts of one.
const WAITING: f64 = 1.0 / 8.0;
/// Bytes of a request that reads back what was loaded.
const READ_BACK_BYTES: f64 = 1e6;
/// Round trips for each request of a load where rows are read back, listed and removed by their keys: Redis' were two.
const BY_KEY: f64 = 2.0;
/// Round trips of a target before and after all its loads: to claim, create, mark, count and remove tables. With one table and
/// an A/A control PostgreSQL's were 200.
const AROUND: f64 = 150.0;
/// Round trips of each load besides its requests.
const OF_A_LOAD: f64 = 25.0;
/// Round trips of each trial besides its measured phase: facts before and after, and its warm-up.
const OF_A_TRIAL: u32 = 8;
/// Round trips of a measured phase: fewer are no distribution.
const MEASURED: u32 = 10;
/// Requests of each client besides its measured ones, at least: one when it connects, and one of the warm-up.
const SEARCHES: u32 = 2;
/// Smallest requests in the time that a record takes to be loaded by a request of its own, and to be read back; and the least time
/// of both.
const OF_A_RECORD: f64 = 4.0;
const RECORD: Duration = Duration::from_micros(100);
/// The time of a request on the same machine, if the smallest one was not measured, and in this process; and the bytes that a job
/// moves and compares per second: PostgreSQL and MariaDB took 1.0 s for 100 MB, the mean of reads (0.5 s) and writes (1.6 s).
const USUAL: Duration = Duration::from_micros(70);
const IN_PROCESS: Duration = Duration::from_micros(2);
const MOVED: f64 = 100e6;
const MOVED_IN_PROCESS: f64 = 1e9;
/// A load may take this long before its default number of records is reduced.
const MAX: Duration = Duration::from_secs(30);
/// Numbers of records that are tried instead of the default one.
const FEWER: [u64; 9] = [50_000, 20_000, 10_000, 5_000, 2_000, 1_000, 500, 200, 100];

/// How long the data of a cell is waited for; zero if round trips are short.
pub(crate) fn load_time(plan: &Plan, target: &Target, cell: &PlannedCell) -> Duration {
    let Some(round_trip) = target.facts.round_trip_ns else { return Duration::ZERO };
    if cell.creates_nothing() {
        return Duration::ZERO;
    }
    let bytes = plan.loaded_bytes(cell) as f64;
    let requests = bytes / cell.demand.request_bytes.max(1) as f64;
    let read_back = if finds_ranges(target, cell) { bytes / READ_BACK_BYTES } else { requests * BY_KEY };
    Duration::from_nanos(round_trip).mul_f64(requests * WAITING + read_back + OF_A_LOAD)
}

/// Whether the target gives the rows of a range of keys.
fn finds_ranges(target: &Target, cell: &PlannedCell) -> bool {
    let collection = cell.demand.operations.iter().find_map(|operation| operation.collection());
    collection.is_none_or(|collection| {
        let range = Operation::FindRange { collection: Arc::clone(collection), by: 0, fields: vec![0] };
        target.driver.supports(&range) == Support::Native
    })
}

/// How long a target is waited for besides its loads, when tables are claimed and removed.
pub(crate) fn around(target: &Target) -> Duration {
    Duration::from_nanos(target.facts.round_trip_ns.unwrap_or(0)).mul_f64(AROUND)
}

/// The minimum time of a trial's measured phase, and what it waits for besides; zero if answers come soon.
pub(crate) fn trial_time(
    plan: &Plan,
    target: &Target,
    cell: &PlannedCell,
    slowness: f64,
) -> (Duration, Duration) {
    let round_trip = Duration::from_nanos(target.facts.round_trip_ns.unwrap_or(0));
    // Clients search in turn: one processor of the server is enough to read rows in memory.
    let search = search_time(plan, target, cell).mul_f64(slowness * cell.policy.clients as f64);
    (search.max(round_trip * MEASURED), search * SEARCHES + round_trip * OF_A_TRIAL)
}

/// How long the target searches a cell's rows for one by a whole number; zero if it has an index for that.
fn search_time(plan: &Plan, target: &Target, cell: &PlannedCell) -> Duration {
    let by_number = |operation: &Operation| match operation {
        Operation::Get { collection, .. } => {
            matches!(collection.key[..], [at] if collection.fields[at].kind == FieldType::Int)
        }
        _ => false,
    };
    let scanned = target.pace.scanned_per_second;
    let scanned = scanned.filter(|_| cell.demand.operations.iter().any(by_number));
    scanned.map_or(Duration::ZERO, |scanned| Duration::from_secs_f64(plan.loaded_rows(cell) / scanned))
}

/// The time to load a record by a request of its own, and to read it back.
pub(crate) fn record_time(target: &Target) -> Duration {
    target.round_trip.map_or(RECORD, |round_trip| RECORD.max(round_trip.mul_f64(OF_A_RECORD)))
}

/// The minimum time of a job's requests that follow one another, of its other work, and of the bytes that they move.
pub(crate) fn job_time(target: &Target, cell: &PlannedCell, slowness: f64) -> Duration {
    let (request, moved_per_second) = match target.driver.endpoint() {
        Endpoint::InProcess => (IN_PROCESS, MOVED_IN_PROCESS),
        _ => (USUAL, MOVED),
    };
    let far = target.facts.round_trip_ns.map(Duration::from_nanos);
    let request = far.or(target.round_trip).unwrap_or(request);
    let moved = Duration::from_secs_f64(cell.moved_bytes as f64 / moved_per_second);
    request.mul_f64(cell.round_trips as f64) + (cell.usual_time + moved).mul_f64(slowness)
}

/// The time of all loads of a run's first round, by target.
fn load_times(plan: &Plan, targets: &[Target]) -> Vec<Duration> {
    let mut times = vec![Duration::ZERO; targets.len()];
    let mut loaded = HashSet::new();
    for (record, cell) in plan.available() {
        if loaded.insert((record.target, record.aa_control, &cell.dataset)) {
            times[record.target] += load_time(plan, &targets[record.target], cell);
        }
    }
    times
}

/// Reduces the default number of records if round trips are so long that loading them would dominate the run. Returns what
/// to say of it, one sentence for each target whose load takes long.
pub fn fit(plan: &mut Plan, targets: &[Target]) -> Result<Vec<String>> {
    let is_long = |plan: &Plan| load_times(plan, targets).into_iter().any(|time| time > MAX);
    if targets.iter().all(|target| target.facts.round_trip_ns.is_none()) {
        return Ok(Vec::new());
    }
    let before = load_times(plan, targets);
    let mut reduced = None;
    if plan.spec.records.is_none() && is_long(plan) {
        for records in FEWER {
            let spec = RunSpec { records: Some(records), ..plan.spec.clone() };
            let experiment = plan.experiment;
            // A custom workload has numbers of its own.
            if !plan.try_rewrite(experiment, spec, targets) {
                break;
            }
            reduced = Some(records);
            if !is_long(plan) {
                break;
            }
        }
    }
    let after = load_times(plan, targets);
    let all = targets.iter().zip(before.into_iter().zip(after));
    let far = all.filter_map(|(target, times)| Some((target, target.facts.round_trip_ns?, times)));
    let line = |(target, round_trip, (before, after)): (&Target, u64, (Duration, Duration))| {
        let round_trip = units::time(Duration::from_nanos(round_trip));
        let fewer = reduced.filter(|_| after < before).map_or_else(String::new, |records| {
            let records = units::count(records);
            format!(
                ": {records} records instead of the default number, whose load would take {}",
                units::time(before + around(target))
            )
        });
        format!(
            "{}: a round trip takes {round_trip}, so that loading takes about {}{fewer}",
            target.name,
            units::time(after + around(target))
        )
    };
    Ok(far.filter(|(_, _, (before, _))| !before.is_zero()).map(line).collect())
}
