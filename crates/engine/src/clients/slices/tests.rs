use super::*;
use std::sync::Mutex as Log;
use std::sync::atomic::AtomicU64;
use std::thread;

/// The order of the slices of some trials, where each client ends after that many slices.
fn executed(
    clients: &[usize],
    ends_after: &[usize],
    time: Option<Duration>,
) -> (Vec<usize>, Vec<SliceStats>) {
    let scheduler = SliceScheduler::new(clients.len(), Duration::from_millis(1));
    let log = Log::new(Vec::new());
    let inside = Log::new(0_usize);
    let never = AtomicBool::new(false);
    let stats = thread::scope(|scope| {
        for (trial, (clients, ends_after)) in clients.iter().zip(ends_after).enumerate() {
            let lane = scheduler.lane(trial);
            lane.ready(*clients);
            for client in 0..*clients {
                let (log, inside) = (&log, &inside);
                scope.spawn(move || {
                    let mut worker = lane.client();
                    for _ in 0..*ends_after {
                        let Some((slice, _)) = worker.next(2) else { return };
                        {
                            let mut inside = inside.lock().unwrap();
                            assert!(*inside == 0 || *inside == trial + 1, "two trials run at once");
                            *inside = trial + 1;
                        }
                        thread::sleep(slice);
                        if client == 0 {
                            log.lock().unwrap().push(trial);
                        }
                        *inside.lock().unwrap() = 0;
                    }
                });
            }
            scheduler.wait_until_ready(trial);
        }
        scheduler.run(time, 1, &never, &mut || Duration::ZERO)
    });
    (log.into_inner().unwrap(), stats)
}

#[test]
fn slices_are_spoiled_if_more_than_ten_and_more_than_a_quarter_are_void() {
    assert!(!is_spoiled(0, 10) && is_spoiled(0, 11));
    assert!(!is_spoiled(60, 20) && is_spoiled(59, 20));
}

#[test]
fn each_cycle_runs_lanes_forward_and_backward() {
    let (log, stats) = executed(&[1, 1, 1], &[4, 4, 4], None);
    assert!(stats.iter().all(|stats| stats.slices >= 4), "{stats:?}");
    assert_eq!(log.len(), 12);
    for cycle in log.chunks(6) {
        assert!((0..3).all(|at| cycle[at] == cycle[5 - at]), "{log:?}");
    }
}

#[test]
fn trials_have_equal_time_where_a_transaction_takes_longer_than_a_slice() {
    let scheduler = SliceScheduler::new(2, Duration::from_millis(1));
    let never = AtomicBool::new(false);
    let time = Duration::from_millis(300);
    let stats = thread::scope(|scope| {
        for (trial, transaction) in [20, 1].into_iter().enumerate() {
            let lane = scheduler.lane(trial);
            lane.ready(1);
            scope.spawn(move || {
                let (mut worker, mut made) = (lane.client(), 0);
                while let Some((slice, _)) = worker.next(made) {
                    let began = Instant::now();
                    made = 0;
                    while began.elapsed() < slice {
                        thread::sleep(Duration::from_millis(transaction));
                        made += 1;
                    }
                }
            });
        }
        scheduler.run(Some(time), 1, &never, &mut || Duration::ZERO)
    });
    // By number, there would be 300 slices of 20 ms.
    for trial in &stats {
        assert!(trial.slices <= 60 && trial.time >= time, "{stats:?}");
    }
    assert!(stats[0].slices <= 20, "{stats:?}");
}

/// Two trials of one client each while this process stands still in these of all slices, counted from 1: the statistics,
/// and whether each client's slices were void, in order.
fn with_standstills(still: impl Fn(u64) -> bool) -> (Vec<SliceStats>, Vec<Vec<(u64, bool)>>) {
    let scheduler = SliceScheduler::new(2, Duration::from_millis(1));
    let (never, current) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let clients: Vec<_> = (0..2)
            .map(|trial| {
                let (lane, current) = (scheduler.lane(trial), &current);
                lane.ready(1);
                scope.spawn(move || {
                    let (mut worker, mut seen) = (lane.client(), Vec::new());
                    while let Some((_, was_void)) = worker.next(2) {
                        if let Some((last, void)) = seen.last_mut() {
                            *void = was_void;
                            assert_eq!(lane.is_void(*last), was_void);
                        }
                        seen.push((worker.slice(), false));
                        current.store(worker.slice(), Ordering::SeqCst);
                    }
                    if let Some((last, void)) = seen.last_mut() {
                        *void = lane.is_void(*last);
                    }
                    seen
                })
            })
            .collect();
        let mut told = 0;
        let mut stood_still = || {
            let slice = current.load(Ordering::SeqCst);
            let now = slice != told && still(slice);
            told = slice;
            Duration::from_millis(if now { 200 } else { 0 })
        };
        let stats = scheduler.run(Some(Duration::from_millis(20)), 1, &never, &mut stood_still);
        (stats, clients.into_iter().map(|client| client.join().unwrap()).collect())
    })
}

#[test]
fn slice_in_which_kurabe_stood_still_is_void_and_made_again() {
    let (stats, clients) = with_standstills(|slice| slice == 5 || slice == 18);
    assert_eq!(stats.iter().map(|trial| trial.void).sum::<u64>(), 2, "{stats:?}");
    for (trial, slices) in stats.iter().zip(&clients) {
        assert_eq!((trial.slices, trial.is_void), (20, false), "{stats:?}");
        assert_eq!(slices.len() as u64, 20 + trial.void);
        assert!(slices.iter().all(|(slice, void)| *void == (*slice == 5 || *slice == 18)), "{slices:?}");
        assert_eq!(trial.stood_still, Duration::from_millis(400));
    }
}

#[test]
fn trials_of_which_most_slices_are_void_end() {
    let (stats, _) = with_standstills(|_| true);
    assert!(stats.iter().all(|trial| trial.is_void), "{stats:?}");
}

#[test]
fn lane_that_ends_early_does_not_block_others() {
    let (_, stats) = executed(&[1, 1], &[2, 6], None);
    assert!(stats[0].slices >= 2 && stats[1].slices >= 6, "{stats:?}");
}

#[test]
fn missing_lane_is_not_waited_for() {
    let scheduler = SliceScheduler::new(2, Duration::from_millis(1));
    scheduler.lane(0).leave();
    scheduler.lane(1).ready(1);
    let never = AtomicBool::new(false);
    let stats = thread::scope(|scope| {
        // Called, and dropped before it started.
        let worker = scheduler.lane(1).client();
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(5));
            drop(worker);
        });
        scheduler.run(None, 1, &never, &mut || Duration::ZERO)
    });
    assert_eq!(stats[0].slices, 0);
}
