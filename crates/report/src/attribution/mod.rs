//! The bottleneck of a trial: a resource or the round-trip time, with evidence and confidence.
//!
//! It is a pure function of recorded observations and measurements. A later version of Kurabe may judge an old run
//! better.

mod evidence;
mod facts;
mod rules;
#[cfg(test)]
mod thresholds;

pub use evidence::Evidence;

use crate::attribution::facts::Facts;
use crate::format::name_of;
use crate::messages::{Language, Message};
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
    pub evidence: Evidence,
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
        ground,
        split: split(&facts),
        trials: chosen.len() as u32,
        of_trials: judged.len() as u32,
        disturbed: rules::disturbed(&facts),
        client_busy: client_busy(&facts),
        evidence: Evidence { facts: Box::new(facts), bottleneck, ground },
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

/// The bottleneck of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bottleneck {
    /// The client's CPU: the result is a lower bound of the server's capacity.
    ClientCpu,
    /// The server's CPU, or its one busy thread.
    ServerCpu,
    /// The CPU of the process that contains client and database.
    ProcessCpu,
    /// Waiting for storage.
    Disk,
    /// The network between client and server.
    Network,
    /// Waits within the server for locks of other sessions.
    Locks,
    /// No saturated resource: round-trip time.
    Latency,
    /// None: the requested load was served.
    Load,
    /// Unknown: it could not be observed.
    Unknown,
}

impl Bottleneck {
    /// Its name in tables.
    pub(crate) fn message(self) -> Message {
        match self {
            Self::ClientCpu => Message::ClientCpu,
            Self::ServerCpu => Message::ServerCpu,
            Self::ProcessCpu => Message::ProcessCpu,
            Self::Disk => Message::Disk,
            Self::Network => Message::Network,
            Self::Locks => Message::Locks,
            Self::Latency => Message::Latency,
            Self::Load => Message::None,
            Self::Unknown => Message::Unknown,
        }
    }

    /// The same in English.
    pub fn word(self) -> &'static str {
        self.message().text(Language::English)
    }

    /// Its name in files.
    pub fn name(self) -> String {
        name_of(&self)
    }
}

/// Client or server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sides {
    Client,
    Server,
}

/// The confidence of an attribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The evidence is strong.
    High,
    /// It is the most likely one.
    Low,
}

impl Confidence {
    /// Its name in files.
    pub fn name(self) -> String {
        name_of(&self)
    }
}

/// What a rule measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The busiest thread of the server, or the mean of the client's threads.
    Thread(Sides),
    /// The server's work for each client, which waits for it.
    PerClient,
    /// The CPU usage of a side relative to its limit.
    Capacity(Sides),
    /// The utilisation of processors shared by client and server, mostly by these.
    SharedCpus,
    /// The share of time in which the threads of a side were running or runnable.
    Ready(Sides),
    /// The utilisation of a network interface.
    Interface,
    /// The network's share of a round trip.
    WireTime,
    /// Samples with the request or its reply in transit.
    InTransit,
    /// Samples in which the server reports a wait for a lock.
    LocksReported,
    /// Samples in which the server had a request and used no CPU.
    HeldRequests,
    /// The share of time that clients of an embedded database slept.
    Slept,
    /// Samples in which the server reports a wait for its log.
    LogReported,
    /// Samples with a thread waiting for storage.
    StorageSamples,
    /// The share of time with a busy disk.
    DiskBusy,
}

/// Why a resource is named: the rule, the measured value and the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ground {
    pub rule: Rule,
    /// The share that was measured.
    pub share: f64,
    /// The threshold of the rule.
    pub threshold: f64,
}

/// The attribution of a trial. A resource has a ground.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Judged {
    pub bottleneck: Bottleneck,
    pub confidence: Confidence,
    pub ground: Option<Ground>,
}

impl Judged {
    pub fn new(bottleneck: Bottleneck, confidence: Confidence) -> Self {
        Self { bottleneck, confidence, ground: None }
    }

    /// The attribution if the share reaches the threshold.
    pub fn by(
        bottleneck: Bottleneck,
        confidence: Confidence,
        rule: Rule,
        share: f64,
        threshold: f64,
    ) -> Option<Self> {
        let ground = Some(Ground { rule, share, threshold });
        (share >= threshold).then_some(Self { bottleneck, confidence, ground })
    }
}
