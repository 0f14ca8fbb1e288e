//! The bottleneck of a trial: a resource or the round-trip time, with evidence and confidence.
//!
//! It is a pure function of recorded observations and measurements. A later version of Kurabe may judge an old run
//! better.

mod bottleneck;
mod evidence;
mod facts;
mod rules;

pub use bottleneck::{Bottleneck, Confidence, Ground, Rule, Sides};

use bottleneck::Judged;
use facts::Facts;
use kurabe_core::run::Measurement;
use serde::Serialize;

/// The parts of a round trip, as shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Split {
    /// The round trip in microseconds.
    pub round_trip_us: f64,
    /// The client's CPU.
    pub client_cpu: f64,
    /// The server's CPU.
    pub server_cpu: f64,
    /// Waiting for a processor, on either side.
    pub queue: f64,
    /// The rest: network, wake-ups, and the server's waits.
    pub rest: f64,
}

/// The bottleneck of a trial, or of the trials of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attribution {
    pub bottleneck: Bottleneck,
    pub confidence: Confidence,
    /// The evidence, in one line.
    pub evidence: String,
    /// The rule that named a resource, with the measured value and the threshold.
    pub ground: Option<Ground>,
    /// The parts of a round trip, if both sides were observed.
    pub split: Option<Split>,
    /// The number of trials with this bottleneck.
    pub trials: u32,
    /// The number of observed trials.
    pub of_trials: u32,
    /// Why the trials should not be relied on: other load on the machine.
    pub disturbed: Option<String>,
    /// The client's CPU usage as a share of its limit.
    pub client_busy: f64,
}

/// Attributes one trial. `own_ns_per_op` is the tool's own overhead per operation, if measured. `None` without an
/// observation.
pub fn of_trial(measured: &Measurement, own_ns_per_op: Option<f64>) -> Option<Attribution> {
    of_trials(std::iter::once(measured), own_ns_per_op)
}

/// The interference during a trial, as a clause. It depends on processor time only, never on the trial's speed, and
/// is unknown for trials too short for counters with a resolution of 10 ms.
pub fn disturbed(measured: &Measurement) -> Option<String> {
    // Known without any counter, and so for short trials too.
    if let Some(ns) = facts::apart_ns(measured) {
        return Some(rules::started_apart(ns));
    }
    let observed = measured.observed.as_deref().or(measured.observed_group.as_deref())?;
    let facts = Facts::of(observed, measured, None);
    rules::disturbed(&facts).filter(|_| facts.seconds >= rules::SHORT)
}

/// Attributes the trials of a cell: the most frequent bottleneck.
pub(crate) fn of_trials<'a>(
    measured: impl Iterator<Item = &'a Measurement>,
    own_ns_per_op: Option<f64>,
) -> Option<Attribution> {
    let judged: Vec<(Facts, Judged)> = measured
        .filter_map(|measured| Some((measured.observed.as_deref()?, measured)))
        .map(|(observed, measured)| {
            let facts = Facts::of(observed, measured, own_ns_per_op);
            let judged = rules::judge(&facts);
            (facts, judged)
        })
        .collect();
    let high = |one: &Judged| one.confidence == Confidence::High;
    // High confidence has more weight.
    let weight = |wanted: Bottleneck| -> u32 {
        let votes = judged.iter().filter(|(_, one)| one.bottleneck == wanted);
        votes.map(|(_, one)| if high(one) { 3 } else { 2 }).sum()
    };
    let bottleneck = judged.iter().map(|(_, one)| one.bottleneck).max_by_key(|one| (weight(*one), *one))?;
    let chosen: Vec<&(Facts, Judged)> =
        judged.iter().filter(|(_, one)| one.bottleneck == bottleneck).collect();
    let certain = chosen.iter().filter(|(_, one)| high(one)).count();
    // Four of five trials must agree, half of all with high confidence for high confidence.
    let sure = chosen.len() * 5 >= judged.len() * 4 && certain * 2 >= judged.len();
    // The evidence of the most frequent rule.
    let rule = |one: &Judged| one.ground.map(|ground| (ground.rule, ground.threshold));
    let votes = |wanted: &Judged| chosen.iter().filter(|(_, one)| rule(one) == rule(wanted)).count();
    let (_, first) = chosen.iter().rev().max_by_key(|(_, one)| votes(one))?;
    let same: Vec<&&(Facts, Judged)> = chosen.iter().filter(|(_, one)| rule(one) == rule(first)).collect();
    let ground = first.ground.map(|ground| {
        let shares = same.iter().filter_map(|(_, one)| Some(one.ground?.share));
        Ground { share: shares.sum::<f64>() / same.len() as f64, ..ground }
    });
    let facts = Facts::mean(&same.iter().map(|(facts, _)| facts).collect::<Vec<_>>())?;
    Some(Attribution {
        bottleneck,
        confidence: if sure { Confidence::High } else { Confidence::Low },
        evidence: evidence::line(&facts, bottleneck, ground) + &evidence::tiers(&facts, bottleneck),
        ground,
        split: split(&facts),
        trials: chosen.len() as u32,
        of_trials: judged.len() as u32,
        disturbed: rules::disturbed(&facts),
        client_busy: client_busy(&facts),
    })
}

/// The client's CPU usage as a share of what its threads could use.
fn client_busy(facts: &Facts) -> f64 {
    (facts.client.cpu / facts.client.capacity.min(facts.threads).max(f64::MIN_POSITIVE)).min(1.0)
}

fn split(facts: &Facts) -> Option<Split> {
    if facts.unseen.is_some() {
        return None;
    }
    let of = |processors: f64| processors / facts.clients;
    let server = facts.server.unwrap_or_default();
    Some(Split {
        round_trip_us: facts.round_trip_us,
        client_cpu: of(facts.client.cpu).min(1.0),
        server_cpu: of(server.cpu).min(1.0),
        queue: of(facts.client.queue + facts.turn + server.queue).min(1.0),
        rest: facts.idle(),
    })
}
