//! The deadlines of waits, and the ends of sleeps.
//!
//! A sleep usually ends by its time, so each has an entry. A wait for a socket hardly ever does: its deadline is renewed
//! with each request, thousands of times before the first would be over. So a task has one entry for all of its waits,
//! which is looked at again when it is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// A task, by position.
pub(crate) type TaskId = usize;

#[derive(Default)]
pub(crate) struct Timers {
    sleeps: BinaryHeap<Reverse<(Instant, TaskId)>>,
    deadlines: BinaryHeap<Reverse<(Instant, TaskId)>>,
}

/// The deadline of a task's wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadline {
    /// When the current wait ends; `None` if it has no end, or the task does not wait.
    pub(crate) at: Option<Instant>,
    /// The task's next entry among the timers. It is never later than `at`.
    armed: Option<Instant>,
}

impl Timers {
    /// Adds the end of a task's sleep.
    pub(crate) fn sleep(&mut self, until: Instant, task: TaskId) {
        self.sleeps.push(Reverse((until, task)));
    }

    /// Sets the deadline of a task's wait.
    pub(crate) fn set(&mut self, deadline: &mut Deadline, at: Instant, task: TaskId) {
        deadline.at = Some(at);
        if deadline.armed.is_none_or(|armed| at < armed) {
            deadline.armed = Some(at);
            self.deadlines.push(Reverse((at, task)));
        }
    }

    /// Removes and returns a task whose sleep is over.
    pub(crate) fn awake(&mut self, now: Instant) -> Option<TaskId> {
        let Reverse((until, _)) = self.sleeps.peek()?;
        if *until > now {
            return None;
        }
        self.sleeps.pop().map(|Reverse((_, task))| task)
    }

    /// Removes and returns a task whose entry is due. [`Timers::is_over`] says whether its wait is over.
    pub(crate) fn due(&mut self, now: Instant) -> Option<(Instant, TaskId)> {
        let Reverse((at, _)) = self.deadlines.peek()?;
        if *at > now {
            return None;
        }
        self.deadlines.pop().map(|Reverse(entry)| entry)
    }

    /// Whether a task's wait is over, whose entry for `entry` was due. If not, it is entered again.
    pub(crate) fn is_over(
        &mut self,
        deadline: &mut Deadline,
        entry: Instant,
        task: TaskId,
        now: Instant,
    ) -> bool {
        if deadline.armed == Some(entry) {
            deadline.armed = None;
        }
        match deadline.at {
            None => false,
            Some(at) if at <= now => true,
            Some(at) => {
                self.set(deadline, at, task);
                false
            }
        }
    }

    /// The end of the next sleep.
    pub(crate) fn next_sleep(&self) -> Option<Instant> {
        self.sleeps.peek().map(|Reverse((until, _))| *until)
    }

    /// The next entry of a deadline.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.peek().map(|Reverse((at, _))| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn renewed_deadline_has_one_entry_and_ends_late_enough() {
        let (mut timers, mut deadline) = (Timers::default(), Deadline::default());
        let start = Instant::now();
        let ms = |n| start + Duration::from_millis(n);
        for request in 0..1_000 {
            timers.set(&mut deadline, ms(100 + request), 7);
            deadline.at = None;
        }
        timers.set(&mut deadline, ms(2_000), 7);
        assert_eq!(timers.deadlines.len(), 1);
        let (entry, task) = timers.due(ms(150)).unwrap();
        assert!(task == 7 && !timers.is_over(&mut deadline, entry, task, ms(150)));
        assert_eq!(timers.next_deadline(), Some(ms(2_000)));
        let (entry, task) = timers.due(ms(2_000)).unwrap();
        assert!(timers.is_over(&mut deadline, entry, task, ms(2_000)));
    }

    #[test]
    fn shorter_deadline_after_a_longer_one_ends_in_time() {
        let (mut timers, mut deadline) = (Timers::default(), Deadline::default());
        let start = Instant::now();
        let ms = |n| start + Duration::from_millis(n);
        timers.set(&mut deadline, ms(100), 0);
        timers.set(&mut deadline, ms(10), 0);
        let (entry, _) = timers.due(ms(10)).unwrap();
        assert!(timers.is_over(&mut deadline, entry, 0, ms(10)));
        deadline.at = None;
        // The entry of the first one is left.
        let (entry, _) = timers.due(ms(100)).unwrap();
        assert!(!timers.is_over(&mut deadline, entry, 0, ms(100)));
        assert_eq!(timers.next_deadline(), None);
    }

    #[test]
    fn sleeps_end_in_the_order_of_their_times() {
        let mut timers = Timers::default();
        let now = Instant::now();
        for (task, ms) in [30, 10, 20].into_iter().enumerate() {
            timers.sleep(now + Duration::from_millis(ms), task);
        }
        assert_eq!(timers.awake(now), None);
        let later = now + Duration::from_millis(25);
        let awake: Vec<TaskId> = std::iter::from_fn(|| timers.awake(later)).collect();
        assert_eq!(awake, [1, 2]);
    }
}
