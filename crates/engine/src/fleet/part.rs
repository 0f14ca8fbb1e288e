//! The part of a trial's clients that one process runs.

use kurabe_core::Result;
use kurabe_core::planned::share;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

/// The clients whose index has this remainder: of `of` parts, that with this number, from 0. Clients are dealt out in
/// turn, and so are the arrivals of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientShare {
    pub number: usize,
    /// The number of parts.
    pub of: usize,
}

impl ClientShare {
    /// All clients.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// Whether a client belongs to it.
    pub fn has(self, index: usize) -> bool {
        index % self.of.max(1) == self.number
    }

    /// How many of this many clients belong to it.
    pub fn clients(self, count: usize) -> usize {
        share(count as u64, self.number, self.of) as usize
    }

    /// How many of the first `most` arrivals are taken by its clients: arrivals are dealt out to all clients in turn.
    pub(crate) fn arrivals(self, most: u64, clients: usize) -> u64 {
        if most == u64::MAX {
            return most;
        }
        let all = clients.max(1) as u64;
        let rest = self.clients((most % all) as usize) as u64;
        most / all * self.clients(all as usize) as u64 + rest
    }
}

/// A process runs a part of a trial's clients, and another one says when they start.
pub struct ShareOfTrial<'a> {
    pub part: ClientShare,
    /// Called when all clients are connected, have warmed up and wait. It returns when they are to start.
    pub ready: &'a (dyn Fn() -> Result<Instant> + Sync),
    /// Called when the last client has made its last transaction. Connections are closed after it returns.
    pub ended: &'a (dyn Fn(bool) + Sync),
    /// Ends the measured phase when it is set, as a client without any records left does.
    pub stop: &'a AtomicBool,
}

/// A sleep may take this much longer than it should; the rest of a wait spins.
const SPIN: Duration = Duration::from_micros(200);

/// Waits until this instant, to a few microseconds.
pub(crate) fn wait_until(at: Instant) {
    thread::sleep(at.saturating_duration_since(Instant::now()).saturating_sub(SPIN));
    while Instant::now() < at {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(of: usize) -> impl Iterator<Item = ClientShare> {
        (0..of).map(move |number| ClientShare { number, of })
    }

    #[test]
    fn each_client_belongs_to_exactly_one_part() {
        for of in 1..20 {
            for count in 0..60 {
                for index in 0..count {
                    assert_eq!(parts(of).filter(|part| part.has(index)).count(), 1);
                }
                for part in parts(of) {
                    let own = (0..count).filter(|index| part.has(*index)).count();
                    assert_eq!(part.clients(count), own, "{part:?} of {count}");
                }
            }
        }
    }

    #[test]
    fn parts_share_out_all_arrivals() {
        for of in 1..12 {
            for clients in 1..40 {
                for most in (0..300).step_by(7) {
                    let sum: u64 = parts(of).map(|part| part.arrivals(most, clients)).sum();
                    assert_eq!(sum, most, "{of} parts, {clients} clients");
                }
            }
        }
    }
}
