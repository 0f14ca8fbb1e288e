//! The gate: whether a comparison of two runs stops a release.
//!
//! A result is judged by the margin that `--fail-on` gives its metric: primary metrics by `slower`, the 99th percentile of
//! service or response times by `p99`. It is *slower* if the whole interval of second ÷ first lies below 1 ÷ (1 + margin), and *passed* if the
//! whole interval lies above. In between it is *undecided*: a slowdown beyond the margin is neither shown nor
//! excluded. A result that cannot be compared is *not judged*. Nor can other load on the machine stop a release: a result
//! during which other processes used the CPU is never *slower*, but *undecided*.

use super::{Compared, Difference, Row};
use crate::finding::{Finding, Runs, Section, Why};
use crate::format::percent;
use crate::summary::{CellResult, Status, Summary};
use kurabe_core::metric::{RESPONSE_P99, SERVICE_P99};
use kurabe_core::{Error, Result};
use serde::Serialize;

/// Conditions that make results of two runs incomparable if they differ, as [`Difference::what`] names them.
const CONDITIONS: [&str; 4] = ["experiment", "processor", "CPUs", "records"];

/// What the gate says of one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// A slowdown beyond the margin is excluded.
    Passed,
    /// It is slower, or by another metric worse, by more than the margin.
    Slower,
    /// A slowdown beyond the margin is neither shown nor excluded.
    Undecided,
    /// It could not be compared.
    NotJudged,
}

impl Judgement {
    /// Its words in tables.
    pub fn words(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Slower => "slower",
            Self::Undecided => "undecided",
            Self::NotJudged => "not judged",
        }
    }
}

/// What the gate says of the second run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// No primary result is slower by more than the margin.
    Passed,
    /// At least one is.
    Failed,
    /// None is shown to be, and for at least one it is not excluded.
    Undecided,
}

/// The margins of what is judged: 0.05 is 5 %. `None`: it is not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Criteria {
    /// That of primary metrics.
    pub slower: Option<f64>,
    /// That of the 99th percentile of service or response times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
}

impl Criteria {
    /// Reads `slower`, `slower:10%`, `p99:20%` or several with commas; without one, a margin is `default`.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) if it is anything else, or names a metric twice.
    pub fn parse(text: &str, default: f64, margin: impl Fn(&str) -> Result<f64>) -> Result<Self> {
        let mut criteria = Self::default();
        for one in text.split(',') {
            let (metric, share) =
                one.split_once(':').map_or((one, None), |(metric, share)| (metric, Some(share)));
            let of = match metric {
                "slower" => &mut criteria.slower,
                "p99" => &mut criteria.p99,
                _ => return Err(unknown(one)),
            };
            if of.replace(share.map_or(Ok(default), &margin)?).is_some() {
                return Err(unknown(text));
            }
        }
        Ok(criteria)
    }

    /// The margin of a result; `None` if it is not judged.
    pub fn of(&self, metric: &str, primary: bool) -> Option<f64> {
        let p99 = self.p99.filter(|_| [SERVICE_P99.name, RESPONSE_P99.name].contains(&metric));
        p99.or(self.slower.filter(|_| primary))
    }

    /// Their words: `more than 5 %`, `more than 5 % (p99: 10 %)`.
    pub(crate) fn words(&self) -> String {
        match (self.slower, self.p99) {
            (Some(slower), Some(p99)) => format!("more than {} (p99: {})", percent(slower), percent(p99)),
            (Some(margin), None) | (None, Some(margin)) => format!("more than {}", percent(margin)),
            (None, None) => "any margin".to_owned(),
        }
    }
}

fn unknown(text: &str) -> Error {
    Error::usage(format!("'{text}' is not a criterion"))
        .hint("write slower, slower:5%, p99:10% or slower:5%,p99:10%")
}

/// The gate's result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gate {
    /// The margins.
    pub criteria: Criteria,
    /// The decision.
    pub decision: Decision,
    /// The number of primary results for each judgement: passed, slower, undecided, not judged.
    pub passed: u32,
    /// Results that are slower by more than the margin.
    pub slower: u32,
    /// Results for which that is neither shown nor excluded.
    pub undecided: u32,
    /// Results that could not be compared, including those that only the first run has.
    pub not_judged: u32,
    /// Differences between the runs because of which nothing is judged.
    pub obstacles: Vec<Difference>,
}

/// Judges the results of a comparison of these runs by these criteria, and adds the decision to its findings.
pub fn judge(compared: &mut Compared, first: &Summary, second: &Summary, criteria: Criteria) {
    let is_obstacle = |one: &&Difference| CONDITIONS.contains(&one.what.as_str());
    let obstacles: Vec<Difference> = compared.differences.iter().filter(is_obstacle).cloned().collect();
    for row in &mut compared.rows {
        let margin = criteria.of(&row.metric, row.primary);
        row.gate = margin
            .and_then(|margin| of_row(row, margin))
            .map(|judged| if obstacles.is_empty() { judged } else { Judgement::NotJudged });
        if row.gate == Some(Judgement::Slower) && !row.disturbed.is_empty() {
            row.gate = Some(Judgement::Undecided);
            row.why = Some(Why::Disturbed { sides: row.disturbed.clone() });
        }
    }
    let count =
        |wanted: Judgement| compared.rows.iter().filter(|row| row.gate == Some(wanted)).count() as u32;
    let mut gate = Gate {
        criteria,
        decision: Decision::Passed,
        passed: count(Judgement::Passed),
        slower: count(Judgement::Slower),
        undecided: count(Judgement::Undecided),
        not_judged: count(Judgement::NotJudged) + missing(first, second),
        obstacles,
    };
    gate.decision = match &gate {
        Gate { slower: 1.., .. } => Decision::Failed,
        Gate { passed: 0, .. } | Gate { undecided: 1.., .. } | Gate { not_judged: 1.., .. } => {
            Decision::Undecided
        }
        _ => Decision::Passed,
    };
    let obstacles = gate.obstacles.iter().map(|one| Runs::Obstacle {
        what: one.what.clone(),
        first: one.first.clone(),
        second: one.second.clone(),
    });
    let decided = Runs::Gated {
        criteria,
        decision: gate.decision,
        passed: gate.passed,
        slower: gate.slower,
        undecided: gate.undecided,
        not_judged: gate.not_judged,
    };
    let state = |finding: Runs| Finding::from(finding).state(Section::Verdict, &first.labels);
    let said = [state(decided)].into_iter().chain(obstacles.map(state));
    let at = compared.findings.iter().position(|one| one.section != Section::Publishing);
    let at = at.unwrap_or(compared.findings.len());
    compared.findings.splice(at..at, said);
    compared.gate = Some(gate);
}

/// The words for a judgement of a result, with the reason if other load on the machine is one.
pub(super) fn words(row: &Row, judgement: Judgement) -> String {
    match &row.why {
        Some(Why::Disturbed { sides }) => {
            format!("{} (other processes used the CPU during {})", judgement.words(), sides.join(" and "))
        }
        _ => judgement.words().to_owned(),
    }
}

/// The judgement of a result; `None` if the first run has no result.
fn of_row(row: &Row, margin: f64) -> Option<Judgement> {
    row.first?;
    let limit = 1.0 / (1.0 + margin);
    Some(match (row.low, row.high, &row.why) {
        // A saturated client hides what the server could do, and the application still gets no less.
        (Some(low), _, None | Some(Why::ClientBound { .. })) if low >= limit => Judgement::Passed,
        (_, Some(high), None) if high < limit => Judgement::Slower,
        (_, _, Some(_)) => Judgement::NotJudged,
        _ => Judgement::Undecided,
    })
}

/// The number of results that only the first run has.
fn missing(first: &Summary, second: &Summary) -> u32 {
    let engine = |run: &Summary, at: usize| {
        let engine = run.targets[at].engine.clone();
        let before = run.targets[..at].iter().filter(|target| target.engine == engine).count();
        (engine, before)
    };
    let has = |cell: &&CellResult| {
        let place = engine(first, cell.target_index);
        second.cells.iter().any(|other| {
            !other.aa_control
                && (&other.operation, &other.axes) == (&cell.operation, &cell.axes)
                && engine(second, other.target_index) == place
        })
    };
    let results = first.cells.iter().filter(|cell| !cell.aa_control && cell.status == Status::Ok);
    results.filter(|cell| !has(cell)).count() as u32
}
