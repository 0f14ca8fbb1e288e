//! Fits a run into a time budget: which axis values, how many rounds, how long each trial.
//!
//! A trial takes at least [`MIN_TRIAL`]: shorter ones neither warm up nor can be checked for interference. If the
//! budget is too small, axes with default values lose values first, then rounds are dropped. What the user asked for
//! is kept; then the run takes longer, and the expected time says so. A cell whose work cannot be shortened has its own
//! minimum.
//!
//! Rounds decide, not the length of trials: the connections of one trial differ from those of the next, the machine
//! differs from one second to the next, and Student's quantile of few rounds is large. Interleaved trials meet the same
//! machine and cost little besides their slices, so that a default run has many short rounds of them.

use crate::plan::Plan;
use crate::prepare::latency;
use crate::prepare::target::Target;
use kurabe_core::axis::{AxisInfo, AxisValue};
use kurabe_core::experiment::Answer;
use kurabe_core::load::Load;
use kurabe_core::planned::Need;
use kurabe_core::question::Question;
use kurabe_core::run::{MIN_TRIAL, RunSpec};
use std::collections::HashSet;
use std::time::Duration;

/// The share of a run's time for measuring. The rest is for loading, warming up and checking.
const MEASURING: f64 = 0.6;
/// The minimum time of a search for the highest rate.
const MIN_SEARCH: Duration = Duration::from_secs(5);
/// The time of a search beyond its own, as a share of that: for probes at rates above the server's, and those made again. Searches
/// of 5 s took 8 to 9 s.
const BEYOND_SEARCH: f64 = 0.6;
/// The mean share of a trial's time for warming up.
const WARM_UP: f64 = 0.15;
/// The share of the time of a trial that writes in which its writes are read back.
const READ_BACK: f64 = 0.2;
/// The fixed time of each trial for preparing and checking.
const AROUND: Duration = Duration::from_millis(25);
/// The time to open a connection, if it was not measured.
const CONNECT: Duration = Duration::from_millis(1);
/// The time to restart a throwaway server whose start was not measured.
pub(crate) const RESTART: Duration = Duration::from_secs(2);
/// The time to end a throwaway server before it is started again.
const STOP: Duration = Duration::from_millis(300);
/// Bytes loaded per second.
const LOADED_PER_SECOND: f64 = 30e6;
/// The same of a job, which loads many rows in a request. PostgreSQL took 1.0 s for 105 MB, MariaDB 2.0 s.
const LOADED_TOGETHER: f64 = 70e6;
/// Bytes per second with which a throwaway cache is filled before each trial.
const CACHED_PER_SECOND: f64 = 60e6;
/// The minimum number of values of a default axis.
const MIN_VALUES: usize = 2;
/// The minimum number of rounds. Intervals of fewer rounds are too wide.
const MIN_ROUNDS: u32 = 4;

/// How many rounds a run has if there is time.
#[derive(Clone, Copy)]
struct Usual {
    /// Default values of axes are dropped for these.
    enough: u32,
    /// A longer trial is worth less than another round.
    long_trial: Duration,
    /// The maximum number after adding some.
    most: u32,
}

impl Usual {
    /// Separate trials meet different states of the machine, and each has a warm-up of its own.
    const SEPARATE: Self = Self { enough: 0, long_trial: Duration::from_secs(1), most: 16 };
    /// With 16 clients of PostgreSQL, ratios of interleaved trials had a standard deviation of about 1.8 % with 2 s, of
    /// 2.8 % with 0.5 s and of 3.9 % with 0.3 s: rounds of 0.3 s have two thirds of the error of rounds of 2 s in the same
    /// time, before Student's quantile counts them (`docs/trust.md`). What a trial costs besides was 35 ms.
    const INTERLEAVED: Self = Self { enough: 12, long_trial: Duration::from_millis(250), most: 30 };

    fn for_spec(spec: &RunSpec) -> Self {
        if spec.slice_ns.is_some() { Self::INTERLEAVED } else { Self::SEPARATE }
    }
}

/// The maximum number of rounds per block after adding some.
const MAX_PER_BLOCK: u32 = 4;
/// The default number of restarts of throwaway servers. If speeds of instances have a standard deviation of 1.1 %
/// and the ratios of interleaved trials one of 4 %, nine blocks find 5 % in nine of ten runs
/// (`crates/stats/tests/nested.rs`).
const RESTARTS: u32 = 8;
/// The minimum number: Student's quantile of fewer blocks makes intervals wide.
const MIN_RESTARTS: u32 = 5;
/// The maximum share of a run's time for restarts and for loading data again.
const RESTARTING: f64 = 0.3;

/// The factor by which a run may exceed its budget before it warns, or gives up rounds.
pub const LATE: f64 = 1.3;

/// Which values the user did not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Free {
    /// Axes with default values.
    pub axes: Vec<String>,
    /// Whether the number of rounds is the default one.
    pub rounds: bool,
    /// Whether the number of restarts is the default one.
    pub restarts: bool,
}

/// The result of fitting a run into a budget.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The time of each trial's measured phase.
    pub trial: Duration,
    /// Values removed from axes, in the order of the axes.
    pub left_out: Vec<(AxisInfo, Vec<AxisValue>)>,
    /// The number of rounds before the reduction, if rounds were dropped.
    pub rounds_before: Option<u32>,
    /// The budget that would need no reductions.
    pub time_for_all: Duration,
    /// The expected time of the run.
    pub expected: Duration,
}

/// Fits a run into `budget`. Removes values, with their cells, and rounds from `plan` as far as the user did not set
/// them, and reports what it removed; or adds restarts and rounds. Trials use the time that is left. Work whose end is not set takes
/// `slowness` times as long as on the machine of the tests.
pub fn fit(plan: &mut Plan, targets: &[Target], free: &Free, budget: Duration, slowness: f64) -> Fit {
    let (axes, rounds) = (plan.spec.axes.clone(), plan.spec.rounds);
    let usual = Usual::for_spec(&plan.spec);
    // The first analysis of a run with `--until` has a planned number of rounds.
    let adds_rounds = free.rounds && plan.spec.until.is_none();
    if adds_rounds && plan.spec.restarts == 0 {
        plan.spec.rounds = rounds.max(usual.enough);
    }
    let mut cost = Cost::new(plan, targets, slowness);
    let time_for_all = cost.min();
    while cost.min() > budget {
        if let Some((axis, position)) = next_value(plan, &free.axes) {
            plan.drop_value(&axis, position);
        } else if let Some(rounds) = fewer_rounds(&plan.spec).filter(|_| free.rounds) {
            plan.spec.rounds = rounds;
        } else {
            break;
        }
        cost = Cost::new(plan, targets, slowness);
    }
    if free.restarts && adds_rounds {
        cost = add_restarts(plan, targets, cost, budget);
    }
    if adds_rounds {
        loop {
            let before = plan.spec.rounds;
            plan.spec.rounds += plan.spec.blocks();
            let more = Cost::new(plan, targets, slowness);
            if plan.spec.rounds > usual.most.max(MAX_PER_BLOCK * plan.spec.blocks())
                || !more.is_job && more.trial(budget) < usual.long_trial
                || more.min() > budget
            {
                plan.spec.rounds = before;
                break;
            }
            cost = more;
        }
    }
    let trial = cost.trial(budget);
    plan.spec.duration_ns = Some(trial.as_nanos() as u64);
    let left_out = plan.axes.iter().filter_map(|info| {
        let kept = &plan.spec.axes[info.name];
        let gone: Vec<AxisValue> =
            axes[info.name].iter().filter(|value| !kept.contains(value)).cloned().collect();
        (!gone.is_empty()).then_some((*info, gone))
    });
    Fit {
        trial,
        left_out: left_out.collect(),
        rounds_before: (plan.spec.rounds < rounds).then_some(rounds),
        time_for_all,
        expected: cost.expected(trial, budget),
    }
}

/// Adds the default number of restarts, or as many as the budget allows, with the rounds that their blocks need.
fn add_restarts(plan: &mut Plan, targets: &[Target], without: Cost, budget: Duration) -> Cost {
    // A verdict is of any start only if all targets are started again.
    if plan.spec.restarts > 0 || !plan.spec.are_throwaway() {
        return without;
    }
    let rounds = plan.spec.rounds;
    for restarts in (MIN_RESTARTS..=RESTARTS).rev() {
        plan.spec.restarts = restarts;
        plan.spec.rounds = plan.spec.rounds_in_blocks(rounds);
        let cost = Cost::new(plan, targets, without.slowness);
        if cost.restarting <= budget.mul_f64(RESTARTING) && cost.min() <= budget {
            return cost;
        }
    }
    (plan.spec.restarts, plan.spec.rounds) = (0, rounds);
    without
}

/// The next smaller number of rounds, divisible into blocks of equal length if servers are restarted between them;
/// `None` if that is too small.
fn fewer_rounds(spec: &RunSpec) -> Option<u32> {
    let fewer = spec.rounds.checked_sub(spec.blocks())?;
    (fewer >= spec.rounds_in_blocks(MIN_ROUNDS)).then_some(fewer)
}

/// The next smaller number of rounds of a run that has begun: whole blocks are given up. `None` if that is too small.
pub(crate) fn fewer_blocks(spec: &RunSpec, rounds: u32) -> Option<u32> {
    let (step, least) = match spec.restarts {
        0 => (1, MIN_ROUNDS),
        _ => (spec.block_length(), spec.block_length() * (MIN_RESTARTS + 1)),
    };
    rounds.checked_sub(step).filter(|fewer| *fewer >= least)
}

/// The next value to remove: of the default axis with the most values, the one whose neighbours are closest to each
/// other. Values that no target can measure cost nothing and do not count. Of several such axes, the chart's comes last. The
/// baseline's value stays. Where the answer is a comparison, an axis that the question does not have gives way first, and to one
/// value. Where targets are compared at values of an axis that the user named, other axes within which they are compared give way
/// to one value too: more rounds are worth more.
fn next_value(plan: &Plan, free: &[String]) -> Option<(String, usize)> {
    let (info, spec) = (plan.experiment.info, &plan.spec);
    let candidates = info.axes.iter().filter(|axis| free.iter().any(|name| name == axis.name));
    let compared = |axis: &str| {
        let asks = |question: &Question| question.compares(axis) || question.is_within(axis);
        spec.question.as_ref().is_none_or(asks)
    };
    let is_named = |axis: &str| !free.iter().any(|name| name == axis);
    let is_beside = |question: &Question| {
        question.compares_targets() && question.within.iter().any(|axis| is_named(axis))
    };
    let least = |axis: &str| {
        let gives_way = !compared(axis)
            || spec.question.as_ref().is_some_and(|one| !one.compares(axis) && is_beside(one));
        if info.answer == Answer::Comparison && gives_way { 1 } else { MIN_VALUES }
    };
    let measured = |axis: &'static AxisInfo| {
        let is_measured =
            |value: &AxisValue| plan.available().any(|(cell, _)| cell.axes.get(axis.name) == Some(value));
        let values = spec.axes.get(axis.name)?.iter().enumerate();
        Some((axis.name, values.filter(|(_, value)| is_measured(value)).collect::<Vec<_>>()))
    };
    let (name, values) = candidates
        .filter_map(measured)
        .filter(|(name, values)| values.len() > least(name))
        .max_by_key(|(name, values)| (!compared(name), values.len(), *name != info.chart_axis))?;
    let gap = |at: usize| match (values[at - 1].1, values[at].1, values[at + 1].1) {
        (AxisValue::Number(low), _, AxisValue::Number(high)) => {
            Some((*high.max(low) as f64 / *low.min(high).max(&1) as f64).ln())
        }
        // The last of the numbers, beside a word.
        (_, AxisValue::Number(_), _) => Some(f64::INFINITY),
        _ => None,
    };
    let inner = (1..values.len() - 1)
        .filter_map(|at| gap(at).map(|gap| (at, gap)))
        .min_by(|one, other| one.1.total_cmp(&other.1));
    let (position, _) = values[inner.map_or(values.len() - 1, |(at, _)| at)];
    Some((name.to_owned(), position))
}

/// The time to restart the servers of a target.
fn restart_of(target: &Target) -> Duration {
    target.start.map_or(RESTART, |start| start + STOP)
}

/// The time to restart the servers of all targets, which is done at the same time.
fn restart_of_all(targets: &[Target]) -> Duration {
    targets.iter().filter(|target| target.restart.is_some()).map(restart_of).max().unwrap_or(RESTART)
}

/// The costs of a run besides the trials' measured time.
struct Cost {
    trials: f64,
    /// The time of a trial for warming up and reading back, as a share of its measured phase.
    besides: f64,
    /// The minimum total of all measured phases.
    measured: Duration,
    /// Everything else except warming up.
    fixed: Duration,
    /// The part of it for restarts between blocks of rounds.
    restarting: Duration,
    is_job: bool,
    /// How many times as long as on the machine of the tests this one works.
    slowness: f64,
}

impl Cost {
    fn new(plan: &Plan, targets: &[Target], slowness: f64) -> Self {
        let operations = plan.operations.len() as u32;
        let rounds = plan.spec.rounds;
        let spec = RunSpec { control_distance: plan.spec.sparse_controls(), ..plan.spec.clone() };
        let (mut loaded, mut repeated, mut claimed) = (HashSet::new(), HashSet::new(), HashSet::new());
        let restarting = restart_of_all(targets) * plan.spec.restarts;
        let writing = plan.operations.iter().filter(|operation| operation.writes).count();
        // The time of a job is that of its work.
        let is_job = plan.available().any(|(_, cell)| cell.is_job());
        let writing = if is_job { 0.0 } else { writing as f64 / plan.operations.len().max(1) as f64 };
        let besides = WARM_UP + READ_BACK * writing;
        let measured = Duration::ZERO;
        let mut cost =
            Self { trials: 0.0, besides, measured, fixed: restarting, restarting, is_job, slowness };
        // The first cell of each target is measured twice.
        let firsts: Vec<_> = plan.available().filter(|(record, _)| repeated.insert(record.target)).collect();
        let firsts = firsts.into_iter().map(|cell| (cell, true));
        for ((record, cell), is_aa_control) in plan.available().map(|cell| (cell, false)).chain(firsts) {
            let is_search = Load::of(&record.axes) == Load::Highest;
            let least = if is_search { MIN_SEARCH } else { MIN_TRIAL };
            let beyond = if is_search { MIN_SEARCH.mul_f64(BEYOND_SEARCH) } else { Duration::ZERO };
            let (least_far, far_waits) = latency::trial_time(plan, &targets[record.target], cell, slowness);
            let job = cell.min_time + latency::job_time(&targets[record.target], cell, slowness);
            let least = least.max(job).max(least_far);
            let connections = u32::try_from(cell.connections()).unwrap_or(u32::MAX);
            let throwaway = plan.spec.is_throwaway(record.target);
            let restart = cell.needs.contains(&Need::Restart) && throwaway;
            let restart = if restart { restart_of(&targets[record.target]) } else { Duration::ZERO };
            let is_filled =
                cell.needs.iter().any(|need| matches!(need, Need::Cache(cache) if cache.capacity.is_some()));
            let bytes = plan.loaded_bytes(cell) as f64;
            let fill = Duration::from_secs_f64(if is_filled { bytes / CACHED_PER_SECOND } else { 0.0 });
            let connect = targets[record.target].connect.unwrap_or(CONNECT);
            let each = AROUND + beyond + far_waits + connect * connections + restart + fill;
            let times = operations.saturating_mul(spec.rounds_of(is_aa_control, rounds));
            cost.trials += f64::from(times);
            cost.measured += least * times;
            cost.fixed += each * times;
            // An A/A control has its own data on another instance, and if trials are interleaved.
            let own =
                is_aa_control && (targets[record.target].second.is_some() || plan.spec.slice_ns.is_some());
            if loaded.insert((record.target, own, &cell.dataset)) {
                // A job loads many at once, and experiments without a size of requests load little.
                let each = Some(&cell.demand).filter(|demand| demand.request_bytes > 0 && !cell.is_job());
                let records = each.map_or(0.0, |each| bytes / each.request_bytes as f64);
                let rows = each.map_or(0.0, |_| plan.loaded_rows(cell));
                let target = &targets[record.target];
                let loaded_per_second = if is_job { LOADED_TOGETHER } else { LOADED_PER_SECOND };
                let time = slowness * (bytes / loaded_per_second + rows / target.pace.loaded_per_second);
                let alone = latency::record_time(target).mul_f64(records);
                let load = Duration::from_secs_f64(time) + alone + latency::load_time(plan, target, cell);
                if !cell.creates_nothing() && claimed.insert(record.target) {
                    cost.fixed += latency::around(target);
                }
                // Data is reloaded after each restart.
                let again = load * if throwaway { plan.spec.restarts } else { 0 };
                cost.fixed += load + again;
                cost.restarting += again;
            }
        }
        cost
    }

    /// The minimum time of the run.
    fn min(&self) -> Duration {
        let share = if self.is_job { 1.0 } else { MEASURING };
        self.measured.div_f64(share).max(self.measured.mul_f64(1.0 + self.besides) + self.fixed)
    }

    /// The time of a trial's measured phase so that the run takes about `budget`.
    fn trial(&self, budget: Duration) -> Duration {
        let trials = self.trials.max(1.0);
        let least = self.measured.div_f64(trials);
        let rest = budget.saturating_sub(self.fixed).div_f64(1.0 + self.besides);
        least.max(budget.mul_f64(MEASURING).min(rest).div_f64(trials))
    }

    /// The expected time of the run with such trials. A job ends when its work is done, and other trials use the budget.
    fn expected(&self, trial: Duration, budget: Duration) -> Duration {
        if self.is_job {
            return self.min();
        }
        budget.max(trial.mul_f64((1.0 + self.besides) * self.trials) + self.fixed)
    }
}
