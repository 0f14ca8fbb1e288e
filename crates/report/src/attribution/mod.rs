//! What bound a trial: one resource, or the time of a round trip; with the evidence in a line, and how certain it is.
//!
//! Pure: from an observation and a measurement, both as recorded. A later version of Kurabe may judge an old run better.

mod evidence;
mod facts;
mod rules;
mod tiers;

use facts::Facts;
use kurabe_core::run::Measurement;
use serde::Serialize;

/// What bound a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
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
    NotKnown,
}

impl Bound {
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
        Self::NotKnown,
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
            Self::NotKnown => "?",
        }
    }

    /// As files name the saturated resource; `none` where nothing was full, nothing where it is not known.
    pub fn saturated(self) -> Option<&'static str> {
        match self {
            Self::ClientCpu => Some("client-cpu"),
            Self::ServerCpu => Some("server-cpu"),
            Self::ProcessCpu => Some("process-cpu"),
            Self::Disk => Some("disk"),
            Self::Network => Some("network"),
            Self::Locks => Some("locks"),
            Self::Latency | Self::Load => Some("none"),
            Self::NotKnown => None,
        }
    }
}

/// How certain an attribution is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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

/// What bound a trial, or the trials of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attribution {
    /// What it was.
    pub bound_by: Bound,
    /// How certain that is.
    pub confidence: Confidence,
    /// What it rests on, in a line.
    pub evidence: String,
    /// Where the time of a round trip went, where both sides were seen.
    pub split: Option<Split>,
    /// Trials that say so.
    pub trials: u32,
    /// Trials that were looked at.
    pub of_trials: u32,
    /// Why the figures should not be relied on: what else the machine did meanwhile.
    pub suspect: Option<String>,
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
pub fn suspect(measured: &Measurement) -> Option<String> {
    let facts = Facts::of(measured.observed.as_deref()?, measured, None);
    rules::suspect(&facts).filter(|_| facts.seconds >= rules::SHORT)
}

/// Attributes the trials of a cell: what most of them say.
pub(crate) fn of_trials<'a>(
    measured: impl Iterator<Item = &'a Measurement>,
    own_ns_per_op: Option<f64>,
) -> Option<Attribution> {
    let judged: Vec<(Facts, Bound, Confidence)> = measured
        .filter_map(|measured| Some((measured.observed.as_deref()?, measured)))
        .map(|(observed, measured)| {
            let facts = Facts::of(observed, measured, own_ns_per_op);
            let (bound, confidence) = rules::judge(&facts);
            (facts, bound, confidence)
        })
        .collect();
    // What is certain weighs more than what is likely.
    let weight = |wanted: Bound| -> u32 {
        let votes = judged.iter().filter(|(_, bound, _)| *bound == wanted);
        votes.map(|(_, _, confidence)| if *confidence == Confidence::High { 3 } else { 2 }).sum()
    };
    let bound = judged.iter().map(|(_, bound, _)| *bound).max_by_key(|bound| (weight(*bound), *bound))?;
    let chosen: Vec<&Facts> =
        judged.iter().filter(|(_, other, _)| *other == bound).map(|(facts, _, _)| facts).collect();
    let certain = judged.iter().filter(|(_, other, c)| *other == bound && *c == Confidence::High).count();
    // Four of five trials have to say it, and half of all to be certain of it.
    let high = chosen.len() * 5 >= judged.len() * 4 && certain * 2 >= judged.len();
    let facts = Facts::mean(&chosen)?;
    Some(Attribution {
        bound_by: bound,
        confidence: if high { Confidence::High } else { Confidence::Low },
        evidence: evidence::line(&facts, bound) + &tiers::clause(&facts, bound),
        split: split(&facts),
        trials: chosen.len() as u32,
        of_trials: judged.len() as u32,
        suspect: rules::suspect(&facts),
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
