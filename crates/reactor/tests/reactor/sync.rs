//! Locks and conditions, for which threads and tasks wait.

use crate::{PATIENCE, STACK, Task, run};
use kurabe_reactor::{Condition, Lock, Reactor, sleep};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

#[test]
fn threads_and_tasks_wait_for_each_other() {
    const TASKS: usize = 50;
    let (state, changed) = (Lock::new((0, false)), Condition::new());
    let task = || -> Task<'_, ()> {
        Box::new(|| {
            state.lock().0 += 1;
            changed.notify_all();
            let mut state = state.lock();
            while !state.1 {
                state = changed.wait(state);
            }
        })
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| run((0..TASKS).map(|_| task()).collect()));
        }
        let mut guard = state.lock();
        while guard.0 < 2 * TASKS {
            guard = changed.wait(guard);
        }
        guard.1 = true;
        drop(guard);
        changed.notify_all();
    });
}

#[test]
fn notification_wakes_one_task_after_the_other() {
    let (free, given_back) = (Lock::new(1), Condition::new());
    let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let task = || -> Task<'_, ()> {
        Box::new(|| {
            for _ in 0..20 {
                let mut guard = free.lock();
                while *guard == 0 {
                    guard = given_back.wait(guard);
                }
                *guard -= 1;
                drop(guard);
                most.fetch_max(inside.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                sleep(Duration::from_micros(20));
                inside.fetch_sub(1, Ordering::Relaxed);
                *free.lock() += 1;
                given_back.notify_one();
            }
        })
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| run((0..10).map(|_| task()).collect()));
        }
    });
    assert_eq!((most.into_inner(), free.into_inner()), (1, 1));
}

#[test]
fn wait_for_a_notification_ends_with_its_time() {
    let (lock, never) = (Lock::new(()), Condition::new());
    let wait = || {
        let (_guard, over) = never.wait_for(lock.lock(), Duration::from_millis(30));
        over
    };
    assert_eq!(run(vec![Box::new(wait) as Task<'_, bool>, Box::new(wait)]), [true, true]);
    assert!(wait());
    // None of them is left, so that a later notification reaches a later task.
    let waits: Task<'_, bool> = Box::new(|| !never.wait_for(lock.lock(), PATIENCE).1);
    let tells: Task<'_, bool> = Box::new(|| {
        sleep(Duration::from_millis(5));
        never.notify_one();
        true
    });
    assert_eq!(run(vec![waits, tells]), [true, true]);
}

#[test]
#[cfg(debug_assertions)]
fn lock_that_is_held_across_a_wait_is_a_panic() {
    let lock = Lock::new(());
    let task: Task<'_, ()> = Box::new(|| {
        let _guard = lock.lock();
        sleep(Duration::ZERO);
    });
    let results = Reactor::new(vec![task], STACK).unwrap().run();
    let panic = results[0].as_ref().unwrap_err();
    assert!(panic.downcast_ref::<String>().is_some_and(|why| why.contains("holds a lock")));
}
