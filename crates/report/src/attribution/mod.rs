//! The bottleneck of a trial: one resource, or round-trip time; with its evidence, and how certain it is.
//!
//! Pure: from an observation and a measurement, both as recorded. A later version of Kurabe may judge an old run better.

mod evidence;
mod facts;
mod rules;
mod tiers;

pub use rules::{Ground, Rule};

use facts::Facts;
use kurabe_core::run::Measurement;
use rules::Judged;
use serde::Serialize;

/// The bottleneck of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bottleneck {
    /// The client's CPU: the figure is a lower bound of what the server can do.
    ClientCpu,
    /// The server's CPU, or the one thread that its work hangs on.
    ServerCpu,
    /// The CPU of the one process that holds client and database.
    ProcessCpu,
    /// Waiting for storage.
    Disk,
    /// The way between client and server.
    Network,
    /// Waiting within the server, for what another session holds.
    Locks,
    /// Nothing was full: the time that one round trip takes.
    Latency,
    /// Nothing: the load that was asked for was served.
    Load,
    /// It could not be seen, and is not guessed.
    Unknown,
}

impl Bottleneck {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::ClientCpu,
        Self::ServerCpu,
        Self::ProcessCpu,
        Self::Disk,
        Self::Network,
        Self::Locks,
        Self::Latency,
        Self::Load,
        Self::Unknown,
    ];

    /// As tables name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::ClientCpu => "client CPU",
            Self::ServerCpu => "server CPU",
            Self::ProcessCpu => "CPU",
            Self::Disk => "disk",
            Self::Network => "network",
            Self::Locks => "locks",
            Self::Latency => "latency",
            Self::Load => "–",
            Self::Unknown => "?",
        }
    }

    /// As files name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClientCpu => "client-cpu",
            Self::ServerCpu => "server-cpu",
            Self::ProcessCpu => "process-cpu",
            Self::Disk => "disk",
            Self::Network => "network",
            Self::Locks => "locks",
            Self::Latency => "latency",
            Self::Load => "load",
            Self::Unknown => "unknown",
        }
    }

    /// As sentences name it.
    pub fn noun(self) -> &'static str {
        match self {
            Self::ClientCpu => "the client's CPU",
            Self::ServerCpu => "the server's CPU",
            Self::ProcessCpu => "the CPU of the process with client and database",
            Self::Disk => "storage",
            Self::Network => "the network",
            Self::Locks => "locks",
            Self::Latency => "round-trip time",
            Self::Load => "the given rate",
            Self::Unknown => "unknown",
        }
    }
}

/// Client or server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sides {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// How certain an attribution is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The evidence leaves little room.
    High,
    /// It is the likeliest.
    Low,
}

impl Confidence {
    /// As files name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Low => "low",
        }
    }
}

/// Where the time of one round trip goes, as shares of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Split {
    /// The round trip, in microseconds.
    pub round_trip_us: f64,
    /// The client's CPU.
    pub client_cpu: f64,
    /// The server's CPU.
    pub server_cpu: f64,
    /// Waiting for a processor, on either side.
    pub queue: f64,
    /// The rest: on the way, waking up, and what the server waits for.
    pub rest: f64,
}

/// The bottleneck of a trial, or of the trials of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attribution {
    /// What it was.
    pub bottleneck: Bottleneck,
    /// How certain that is.
    pub confidence: Confidence,
    /// What it rests on, in a line.
    pub evidence: String,
    /// The rule that named a resource, with what it measured and its threshold.
    pub ground: Option<Ground>,
    /// Where round-trip time went, where both sides were seen.
    pub split: Option<Split>,
    /// Trials that say so.
    pub trials: u32,
    /// Trials that were looked at.
    pub of_trials: u32,
    /// Why the figures should not be relied on: what else the machine did meanwhile.
    pub disturbed: Option<String>,
    /// What the other side of the evidence was doing: the client's CPU as a share of what it may use.
    pub client_busy: f64,
}

/// Attributes one trial. `own_ns_per_op` is what the tool itself costs per operation, where it was measured. `None`
/// where nobody looked.
pub fn of_trial(measured: &Measurement, own_ns_per_op: Option<f64>) -> Option<Attribution> {
    of_trials(std::iter::once(measured), own_ns_per_op)
}

/// Why a trial should not be relied on: what else the machine did meanwhile, as a clause. It looks at processors' time only,
/// never at how fast the trial was; and says nothing of trials so short that counters of a hundredth of a second cannot.
pub fn disturbed(measured: &Measurement) -> Option<String> {
    let facts = Facts::of(measured.observed.as_deref()?, measured, None);
    rules::disturbed(&facts).filter(|_| facts.seconds >= rules::SHORT)
}

/// Attributes the trials of a cell: what most of them say.
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
    // What is certain weighs more than what is likely.
    let weight = |wanted: Bottleneck| -> u32 {
        let votes = judged.iter().filter(|(_, one)| one.bottleneck == wanted);
        votes.map(|(_, one)| if high(one) { 3 } else { 2 }).sum()
    };
    let bottleneck = judged.iter().map(|(_, one)| one.bottleneck).max_by_key(|one| (weight(*one), *one))?;
    let chosen: Vec<&(Facts, Judged)> =
        judged.iter().filter(|(_, one)| one.bottleneck == bottleneck).collect();
    let certain = chosen.iter().filter(|(_, one)| high(one)).count();
    // Four of five trials have to say it, and half of all to be certain of it.
    let sure = chosen.len() * 5 >= judged.len() * 4 && certain * 2 >= judged.len();
    // The evidence is that of one rule: the one by which most trials say so.
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
        evidence: evidence::line(&facts, bottleneck, ground) + &tiers::clause(&facts, bottleneck),
        ground,
        split: split(&facts),
        trials: chosen.len() as u32,
        of_trials: judged.len() as u32,
        disturbed: rules::disturbed(&facts),
        client_busy: client_busy(&facts),
    })
}

/// The client's CPU as a share of the most that its threads could use.
fn client_busy(facts: &Facts) -> f64 {
    (facts.client.cpu / facts.client.capacity.min(facts.clients).max(f64::MIN_POSITIVE)).min(1.0)
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
        queue: of(facts.client.queue + server.queue).min(1.0),
        rest: facts.idle(),
    })
}
