//! The answer: what gains how much, for which statements, at what cost; and what was tried for nothing.

use crate::bench::{Bench, Cost};
use crate::change::Proposal;
use crate::decide::Outcome;
use crate::search::{Confirmed, Fault, Found, Lap, ProposalState};
use crate::{AdviceRequest, table};
use kurabe_capture::statements::Statements;
use kurabe_copy::script::comment;
use kurabe_core::Error;
use kurabe_protocol::sql::Dialect;
use kurabe_protocol::sql::Statement;
use kurabe_stats::{Estimate, IntervalSettings, Mean, PairedRatio, mean};
use serde::Serialize;

/// The answer.
#[derive(Debug, Serialize)]
pub struct Advice {
    pub capture: String,
    /// The unchanged server, without passwords.
    pub target: String,
    pub requests: u64,
    /// Replays that were made.
    pub replays: usize,
    /// The factor by which the unchanged server may differ from itself; `None`: nothing was confirmed.
    pub unchanged: Option<f64>,
    /// What gains, the most first.
    pub gains: Vec<Gain>,
    /// All gains together, if there are several.
    pub together: Option<Gain>,
    pub others: Vec<Other>,
    pub loops: Vec<SlowLoop>,
    /// Why it ended early.
    pub ended: Option<String>,
    #[serde(skip)]
    pub error: Option<Error>,
}

/// What gains, or all of it together.
#[derive(Debug, Serialize)]
pub struct Gain {
    pub label: String,
    /// The statement, or how a setting is made to stay.
    pub sql: String,
    pub reason: String,
    /// How many times as fast all requests are together.
    pub faster: Estimate,
    /// The statement that gains most.
    pub most: Option<Moved>,
    /// How many times as long statements that write take, where that can be told from 1.
    pub writes: Option<Estimate>,
    pub index_bytes: i64,
    pub build_ns: u64,
    /// The share of the reads that a cache answered, from 0 to 1.
    pub hit_ratio: Option<f64>,
    /// Memory and the like.
    pub costs: Option<String>,
}

/// A statement, and its time before and after as shares of the time of all requests before, from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    pub statement: String,
    pub before: f64,
    pub after: f64,
}

/// A proposal that is no gain.
#[derive(Debug, Serialize)]
pub struct Other {
    pub label: String,
    pub sql: String,
    pub why: Why,
}

/// Why a proposal is no gain.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    NoTime,
    Refused(String),
    /// It changes an answer.
    WrongAnswer(String),
    /// It was chosen, and the search ended before its confirmation did.
    Unconfirmed,
    /// Its trial was not promising; the factor is how many times as fast it was there.
    NotPromising(f64),
    /// The confirmation does not tell it from the unchanged server.
    NotConfirmed(Estimate),
    /// The confirmation shows that it is slower.
    Slower(Estimate),
}

/// A loop of reads, and the share of the time that one statement in its place saves at most, from 0 to 1.
#[derive(Debug, Serialize)]
pub struct SlowLoop {
    pub statement: String,
    pub saves_at_most: f64,
}

impl Advice {
    pub(crate) fn new(
        request: &AdviceRequest<'_>,
        asked: &Statements,
        bench: &Bench<'_>,
        found: Found,
    ) -> Self {
        let total: u64 = asked.all.iter().map(|one| one.total_ns).sum();
        let mut advice = Self {
            capture: request.capture.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            target: kurabe_targets::without_passwords(std::iter::once(request.target.to_owned())).concat(),
            requests: bench.reports.requests,
            replays: bench.replays,
            unchanged: found.band.filter(|band| band.is_finite()),
            gains: Vec::new(),
            together: None,
            others: Vec::new(),
            loops: Vec::new(),
            ended: found.ended.as_ref().map(Error::to_string),
            error: None,
        };
        let replays = Replays { bench, dialect: asked.language.dialect(), base: &found.base };
        for (at, (proposal, state)) in bench.proposals.iter().zip(&found.states).enumerate() {
            let confirmed = found.confirmed.iter().position(|one| one.set == [at]);
            let why = match (state, confirmed) {
                (_, Some(place)) => {
                    let confirmed = &found.confirmed[place];
                    let estimate = confirmed.ratio.estimate;
                    match confirmed.outcome {
                        Outcome::Gain => {
                            advice.gains.push(replays.gain(confirmed, &[proposal]));
                            continue;
                        }
                        Outcome::Nothing => Why::NotConfirmed(estimate),
                        Outcome::Loss => Why::Slower(estimate),
                    }
                }
                (ProposalState::Faulty(Fault::Refused(why)), _) => Why::Refused(why.clone()),
                (ProposalState::Faulty(Fault::Answer(why)), _) => Why::WrongAnswer(why.clone()),
                (ProposalState::Tried(factor), _) => Why::NotPromising(*factor),
                (ProposalState::Chosen, _) => Why::Unconfirmed,
                (ProposalState::NotTried, _) => Why::NoTime,
            };
            let (label, sql) = (proposal.change.label(), proposal.change.script(bench.engine));
            advice.others.push(Other { label, sql, why });
        }
        advice.gains.sort_by(|one, other| other.faster.value.total_cmp(&one.faster.value));
        let together = found.confirmed.iter().find(|one| one.set.len() > 1 && one.outcome == Outcome::Gain);
        // Of a set with one that gains nothing alone, it is not known what gains.
        advice.together = together.filter(|one| one.set.len() == advice.gains.len()).map(|one| {
            let proposals: Vec<&Proposal> = one.set.iter().map(|at| &bench.proposals[*at]).collect();
            replays.gain(one, &proposals)
        });
        let slow = asked.loops.iter().filter_map(|one| {
            let statement = asked.all.get(one.statement)?;
            let saved = 1.0 - one.units as f64 / statement.calls.max(1) as f64;
            let saves_at_most = saved.max(0.0) * statement.total_ns as f64 / total.max(1) as f64;
            Some(SlowLoop { statement: statement.text.clone(), saves_at_most })
        });
        advice.loops = slow.filter(|one| one.saves_at_most >= 0.01).collect();
        advice.loops.sort_by(|one, other| other.saves_at_most.total_cmp(&one.saves_at_most));
        advice.error = found.ended;
        advice
    }

    /// The answer for a terminal of so many columns, in at most 20 lines.
    pub fn text(&self, width: usize) -> String {
        table::text(self, width)
    }

    /// The statements and settings that gain, as a file of SQL; `None`: there are none.
    pub fn script(&self) -> Option<String> {
        // Names and literals are of the database and of the capture: they end no comment.
        let line = |gain: &Gain| {
            let about = format!("{}: {}, {}", gain.label, table::factor(gain.faster), gain.reason);
            format!("{}\n{}\n", comment(&about), gain.sql)
        };
        let lines: Vec<String> = self.gains.iter().map(line).collect();
        (!lines.is_empty()).then(|| {
            let by =
                format!("By 'kurabe advise' for {} on {}: each was measured.", self.capture, self.target);
            format!("{}\n\n{}", comment(&by), lines.join("\n"))
        })
    }
}

/// What gains are calculated from.
struct Replays<'a> {
    bench: &'a Bench<'a>,
    dialect: Dialect,
    base: &'a [Option<Lap>],
}

impl Replays<'_> {
    fn gain(&self, confirmed: &Confirmed, proposals: &[&Proposal]) -> Gain {
        let join = |texts: Vec<String>, between: &str| texts.join(between);
        let costs: Vec<String> = proposals.iter().filter_map(|one| one.costs.clone()).collect();
        let Cost { index_bytes, build } = self.cost(confirmed).unwrap_or_default();
        Gain {
            label: if let [one] = proposals { one.change.label() } else { "all of these".to_owned() },
            sql: join(proposals.iter().map(|one| one.change.script(self.bench.engine)).collect(), "\n"),
            reason: join(proposals.iter().map(|one| one.reason.clone()).collect(), "; "),
            faster: confirmed.ratio.estimate,
            most: self.most(&confirmed.laps),
            writes: self.writes(&confirmed.laps),
            index_bytes,
            build_ns: build.as_nanos() as u64,
            hit_ratio: mean(&confirmed.laps.iter().flatten().filter_map(|lap| lap.hits).collect::<Vec<_>>()),
            costs: (!costs.is_empty()).then(|| costs.join(", ")),
        }
    }

    fn cost(&self, confirmed: &Confirmed) -> Option<Cost> {
        self.bench.costs.get(confirmed.place).copied().flatten()
    }

    /// The time of each statement in a replay, in nanoseconds, and of all requests.
    fn times(&self, lap: &Lap) -> (Vec<f64>, f64) {
        let reports = &self.bench.reports;
        let time = |(one, mean): (&kurabe_experiments::replay::Reported, &Option<f64>)| {
            mean.unwrap_or(0.0) * one.calls as f64
        };
        let statements = reports.statements.iter().zip(&lap.statements).map(time).collect();
        (statements, lap.mean_ns * reports.requests as f64)
    }

    /// The mean time of each statement in these replays, and of all requests.
    fn mean_times(&self, laps: &[Option<Lap>]) -> Option<(Vec<f64>, f64)> {
        let all: Vec<(Vec<f64>, f64)> = laps.iter().flatten().map(|lap| self.times(lap)).collect();
        let of = |at: usize| {
            mean(&all.iter().map(|(times, _)| times.get(at).copied().unwrap_or(0.0)).collect::<Vec<_>>())
        };
        let statements = (0..self.bench.reports.statements.len()).map(of).collect::<Option<Vec<_>>>()?;
        Some((statements, mean(&all.iter().map(|(_, total)| *total).collect::<Vec<_>>())?))
    }

    /// The statement that takes less time than before by the most.
    fn most(&self, laps: &[Option<Lap>]) -> Option<Moved> {
        let ((before, all), (after, _)) = (self.mean_times(self.base)?, self.mean_times(laps)?);
        let saved = |at: &usize| before[*at] - after[*at];
        let at = (0..before.len()).max_by(|one, other| saved(one).total_cmp(&saved(other)))?;
        let statement = self.bench.reports.statements.get(at)?.text.clone();
        (saved(&at) > 0.0).then(|| Moved { statement, before: before[at] / all, after: after[at] / all })
    }

    /// How many times as long the reported statements that write take, if that can be told from 1.
    fn writes(&self, laps: &[Option<Lap>]) -> Option<Estimate> {
        let statements = &self.bench.reports.statements;
        let writes: Vec<bool> = statements
            .iter()
            .map(|one| {
                let statement = Statement::read(&one.text, self.dialect);
                !statement.is_setup() && statement.asks_for_write().is_some()
            })
            .collect();
        let time = |lap: &Lap| -> f64 {
            self.times(lap).0.iter().zip(&writes).filter(|(_, writes)| **writes).map(|(time, _)| time).sum()
        };
        let pairs = self
            .base
            .iter()
            .zip(laps)
            .filter_map(|(base, lap)| Some((time(base.as_ref()?), time(lap.as_ref()?))));
        let (before, after): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let ratio = PairedRatio::from_rounds(&after, &before, Mean::Geometric, &IntervalSettings::default())?;
        let differs = ratio.estimate.ends().is_some_and(|(low, high)| low > 1.0 || high < 1.0);
        differs.then_some(ratio.estimate)
    }
}
