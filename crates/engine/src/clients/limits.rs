//! How many requests a client makes in a trial.

/// Warm-up is a twentieth of the client's requests, but at least one request, …
pub(crate) const WARMUP_PART: u64 = 20;
/// … and at most a tenth of the records that it may change, if the measured phase could need them all.
const WARMUP_CAPACITY_PART: u64 = 10;

/// The limits of a client's part of a trial, besides time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Requests of the measured phase; `None`: no limit.
    pub(crate) requests: Option<u64>,
    /// Requests that it has records for, including warm-up.
    pub(crate) capacity: u64,
}

/// The maximum requests of one client in a trial of that many, including warm-up.
pub(crate) fn requests(requests: u64, clients: usize, pipeline: u64) -> u64 {
    let quota = requests.div_ceil(clients.max(1) as u64);
    quota.next_multiple_of(pipeline) + (quota / WARMUP_PART).max(1).next_multiple_of(pipeline)
}

impl Limits {
    /// Requests for its warm-up: what the measured phase leaves, or a small share.
    pub(crate) fn warmup(&self, pipeline: u64) -> u64 {
        let measured = self.requests.map(|requests| requests.next_multiple_of(pipeline));
        match measured {
            Some(measured) if measured < self.capacity => self.capacity - measured,
            _ => self.capacity / WARMUP_CAPACITY_PART,
        }
    }
}
