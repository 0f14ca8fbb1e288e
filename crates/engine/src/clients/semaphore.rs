//! Bounds how many clients do something at a time.

use kurabe_reactor::{Condition, Lock};

/// Lets a number of threads and tasks through at a time.
pub(crate) struct Semaphore {
    /// How many may still enter.
    free: Lock<usize>,
    left: Condition,
}

impl Semaphore {
    /// A semaphore for at most this many at a time, at least one.
    pub(crate) fn new(most: usize) -> Self {
        Self { free: Lock::new(most.max(1)), left: Condition::new() }
    }

    /// Waits until there is room, and then does `what`.
    pub(crate) fn pass<T>(&self, what: impl FnOnce() -> T) -> T {
        let mut free = self.free.lock();
        while *free == 0 {
            free = self.left.wait(free);
        }
        *free -= 1;
        drop(free);
        let _leaves = Leaves(self);
        what()
    }
}

/// Makes room when it is dropped, also if the work panics.
struct Leaves<'a>(&'a Semaphore);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_reactor::Reactor;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    /// Passes while it notes how many do at once.
    fn pass(semaphore: &Semaphore, inside: &AtomicUsize, most: &AtomicUsize) {
        semaphore.pass(|| {
            most.fetch_max(1 + inside.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
            kurabe_reactor::sleep(Duration::from_millis(2));
            inside.fetch_sub(1, Ordering::SeqCst);
        });
    }

    #[test]
    fn threads_and_tasks_pass_a_few_at_a_time() {
        let (semaphore, inside, most) = (Semaphore::new(3), AtomicUsize::new(0), AtomicUsize::new(0));
        let one = || pass(&semaphore, &inside, &most);
        thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(one);
            }
            let tasks: Vec<_> = (0..20).map(|_| one).collect();
            let ended = Reactor::new(tasks, 64 * 1024).unwrap().run();
            assert!(ended.iter().all(Result::is_ok));
        });
        assert_eq!((inside.into_inner(), most.into_inner()), (0, 3));
    }

    #[test]
    fn panic_makes_room() {
        let semaphore = Semaphore::new(1);
        let panics = || semaphore.pass(|| panic!("seven"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(semaphore.pass(|| 7), 7);
    }
}
