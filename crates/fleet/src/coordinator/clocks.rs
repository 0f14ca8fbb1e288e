//! Compares the clocks of all agents with the coordinator's, at the same time.

use super::shared::Shared;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Round trips of one comparison.
const ROUND_TRIPS: u32 = 16;
/// The longest wait for one answer. A late one does not count.
const WAIT: Duration = Duration::from_millis(500);

/// Compares the clocks of these agents. One that does not answer keeps its last comparison, or has none.
pub(super) fn compare(shared: &Shared, agents: &[usize], cancel: &AtomicBool) {
    let before = {
        let mut state = shared.lock();
        agents.iter().map(|agent| state.members[*agent].clock.take()).collect::<Vec<_>>()
    };
    for _ in 0..ROUND_TRIPS {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        let number = shared.next_ping();
        {
            let mut state = shared.lock();
            for agent in agents {
                state.members[*agent].ping(number);
            }
        }
        let until = Instant::now() + WAIT;
        shared.wait(until, |state| {
            let answered = |agent: &usize| {
                let member = &state.members[*agent];
                member.lost.is_some() || member.pong == number
            };
            agents.iter().all(answered).then_some(())
        });
    }
    let mut state = shared.lock();
    for (agent, before) in agents.iter().zip(before) {
        let member = &mut state.members[*agent];
        member.clock = member.clock.or(before);
    }
}
