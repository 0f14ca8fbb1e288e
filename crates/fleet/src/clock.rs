//! Compares an agent's clock with the coordinator's.
//!
//! The coordinator asks for the agent's time. The answer was given between question and answer, so that the middle of
//! these two is wrong by at most half of the round trip (D. Mills, RFC 5905, section 8). Of many round trips the shortest
//! is used.

use std::time::Duration;

/// The comparison with one agent. All times are nanoseconds; each side counts from a moment of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    /// What is added to the coordinator's time to have the agent's.
    offset_ns: i128,
    round_trip_ns: u64,
}

impl Offset {
    /// From one round trip: sent and received by the coordinator's clock, answered by the agent's.
    pub(crate) fn of(sent_ns: u64, received_ns: u64, answered_ns: u64) -> Self {
        let middle = i128::midpoint(sent_ns.into(), received_ns.into());
        let round_trip_ns = received_ns.saturating_sub(sent_ns);
        Self { offset_ns: i128::from(answered_ns) - middle, round_trip_ns }
    }

    /// The better of two.
    pub(crate) fn better(self, other: Option<Self>) -> Self {
        other.filter(|other| other.round_trip_ns < self.round_trip_ns).unwrap_or(self)
    }

    /// The agent's time at this time of the coordinator.
    pub(crate) fn of_agent(self, coordinator_ns: u64) -> u64 {
        u64::try_from(i128::from(coordinator_ns) + self.offset_ns).unwrap_or(0)
    }

    /// The maximum error.
    pub(crate) fn error(self) -> Duration {
        Duration::from_nanos(self.round_trip_ns / 2)
    }

    pub(crate) fn round_trip(self) -> Duration {
        Duration::from_nanos(self.round_trip_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_stats::rng::Rng;

    #[test]
    fn error_is_at_most_half_of_the_shortest_round_trip() {
        let mut rng = Rng::new(5);
        for _ in 0..200 {
            // The agent's clock is ahead or behind by up to a second.
            let ahead = i128::from(rng.below(2_000_000_000)) - 1_000_000_000;
            let mut best: Option<Offset> = None;
            let mut now = 10_000_000_000_u64;
            for _ in 0..20 {
                let (out, back) = (1_000 + rng.below(900_000), 1_000 + rng.below(900_000));
                let answered = u64::try_from(i128::from(now + out) + ahead).unwrap();
                best = Some(Offset::of(now, now + out + back, answered).better(best));
                now += 2_000_000;
            }
            let best = best.unwrap();
            let real = i128::from(now) + ahead;
            let wrong = (i128::from(best.of_agent(now)) - real).unsigned_abs();
            assert!(wrong <= u128::from(best.round_trip_ns / 2) + 1, "{wrong} {best:?}");
            assert_eq!(best.error(), best.round_trip() / 2);
        }
    }
}
