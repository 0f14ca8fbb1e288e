//! The attribution of a trial, and the rule that named a resource.

use super::{Bottleneck, Confidence, Sides};
use serde::Serialize;

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
