//! What limited a trial, and the rule that named it.

use crate::format::name_of;
use crate::messages::{Language, Message};
use serde::Serialize;

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

    /// Its name in sentences.
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
