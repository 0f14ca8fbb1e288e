//! The queue on a real broker, with runs that are no processes: who decides what became of a run, and how a worker ends.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "helpers of a test are a test")]

mod common;

use common::Broker;
use kurabe_core::ErrorKind;
use kurabe_core::name::{Name, RelativePath};
use kurabe_fleet::{Entry, Execution, Executor, FleetUrl, NO_AGENTS, Queue, State, Submission, WorkFolder};
use kurabe_stats::rng::Rng;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The time from Ctrl-C to the exit of the program, whatever it still does (`kurabe/src/signals.rs`).
const SIGNAL_HANDLER: Duration = Duration::from_millis(4_500);

fn queue(broker: &Broker) -> Queue {
    Queue::connect(&FleetUrl::parse(&broker.url).unwrap(), "test").unwrap()
}

fn named(text: &str) -> Name {
    Name::parse(text).unwrap()
}

/// A run on a host of its own.
fn submission(host: &str) -> Submission {
    let suite = RelativePath::parse("s.toml").unwrap();
    Submission {
        files: BTreeMap::from([(suite.clone(), String::new())]),
        suite,
        targets: Vec::new(),
        hosts: vec![host.to_owned()],
        agents: Some(NO_AGENTS),
        labels: BTreeMap::new(),
        on_lost_agent: kurabe_core::fleet::OnLostAgent::default(),
        define: BTreeMap::new(),
        write: false,
        by: "test".to_owned(),
    }
}

/// Runs that ignore requests to stop and end after a fixed time.
struct Runs(Option<Duration>);

struct Running(Option<Instant>);

impl Executor for Runs {
    fn start(&mut self, _: &Name, _: &Submission, folder: &Path) -> Result<Box<dyn Execution>, String> {
        let run = folder.join("runs/r");
        std::fs::create_dir(&run)
            .and_then(|()| std::fs::write(run.join("run.jsonl"), "{}\n"))
            .map_err(|error| error.to_string())?;
        Ok(Box::new(Running(self.0.map(|time| Instant::now() + time))))
    }
}

impl Execution for Running {
    fn ended(&mut self) -> Option<i32> {
        self.0.is_some_and(|end| Instant::now() >= end).then_some(0)
    }

    fn confirm(&mut self) {}

    fn stop(&mut self) {}
}

fn state(queue: &Queue, id: &Name) -> State {
    queue.find(id).unwrap().state
}

/// Waits until a run is in such a state.
fn wait_for(queue: &Queue, id: &Name, wanted: fn(&State) -> bool) -> State {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        let state = state(queue, id);
        if wanted(&state) {
            return state;
        }
        assert!(Instant::now() < until, "{id}: {state:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn cancel_raced_against_start_and_end_has_one_outcome() {
    const WORKERS: usize = 8;
    const EACH: usize = 25;
    let Some(broker) = Broker::start() else { return };
    let (stop, notes) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let outcomes = thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (broker, stop, notes) = (&broker, &stop, &notes);
            scope.spawn(move || {
                let base = tempfile::tempdir().unwrap();
                let folder = WorkFolder::make(base.path()).unwrap();
                let note = |text: &str| notes.lock().unwrap().push(text.to_owned());
                let name = named(&format!("w{worker}"));
                queue(broker).work(&name, &mut Runs(Some(Duration::from_millis(30))), &folder, stop, &note);
            });
        }
        // Each asks for its own runs in turn, so that a worker takes each of them soon.
        let askers: Vec<_> = (0..WORKERS)
            .map(|asker| {
                let broker = &broker;
                scope.spawn(move || {
                    let (queue, mut rng) = (queue(broker), Rng::new(asker as u64));
                    let mut outcomes = Vec::new();
                    for nth in 0..EACH {
                        let name = format!("r{asker}-{nth}");
                        let id = queue.submit(&named(&name), &submission(&name)).unwrap();
                        let running = |state: &State| !matches!(state, State::Queued { .. });
                        // From before the start until after the end of the run.
                        if nth % 3 != 0 {
                            wait_for(&queue, &id, running);
                        }
                        thread::sleep(Duration::from_millis(rng.below(250)));
                        let cancelled = match queue.cancel(&id) {
                            Ok(()) => true,
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
                                assert!(error.to_string().contains("is over already"), "{error}");
                                false
                            }
                        };
                        outcomes.push((id, cancelled, queue.cancel(&named(&name)).is_ok()));
                    }
                    outcomes
                })
            })
            .collect();
        let outcomes: Vec<_> = askers.into_iter().flat_map(|asker| asker.join().unwrap()).collect();
        // Whatever the workers were doing is done.
        let until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until {
            thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::SeqCst);
        outcomes
    });
    assert_eq!(outcomes.len(), WORKERS * EACH);
    let queue = queue(&broker);
    let all: BTreeMap<Name, Entry> =
        queue.list().unwrap().into_iter().map(|entry| (entry.id.clone(), entry)).collect();
    for (id, cancelled, twice) in &outcomes {
        let state = &all[id].state;
        match state {
            State::Cancelled { .. } => {
                assert!(cancelled, "{id} was cancelled, and the user was told otherwise");
            }
            State::Ended { .. } => assert!(!cancelled, "{id} was cancelled for the user, and ended"),
            other => panic!("{id}: {other:?}"),
        }
        assert!(!twice, "{id} was cancelled twice");
    }
    let count = outcomes.iter().filter(|(_, cancelled, _)| *cancelled).count();
    let notes = notes.into_inner().unwrap();
    let late = notes.iter().filter(|note| note.contains("its results are discarded")).count();
    println!("{count} of {} were cancelled, {late} of them when they had ended", outcomes.len());
    assert!(count > 20 && count < outcomes.len() - 20, "the race was one-sided: {count}");
}

#[test]
fn stopped_worker_gives_a_run_that_does_not_end_back_before_the_signal_handler_exits() {
    let Some(broker) = Broker::start() else { return };
    let base = tempfile::tempdir().unwrap();
    let folder = WorkFolder::make(base.path()).unwrap();
    let (stop, queue_of_user) = (AtomicBool::new(false), queue(&broker));
    let id = queue_of_user.submit(&named("slow"), &submission("h")).unwrap();
    let folders =
        || std::fs::read_dir(folder.path()).unwrap().flatten().filter(|entry| entry.path().is_dir()).count();
    let took = thread::scope(|scope| {
        let work = || {
            queue(&broker).work(&named("w"), &mut Runs(None), &folder, &stop, &|_| {});
            Instant::now()
        };
        let worker = scope.spawn(work);
        wait_for(&queue_of_user, &id, |state| matches!(state, State::Running { .. }));
        assert_eq!(folders(), 1);
        let stopped = Instant::now();
        stop.store(true, Ordering::SeqCst);
        worker.join().unwrap() - stopped
    });
    assert!(took + Duration::from_millis(500) < SIGNAL_HANDLER, "{took:?}");
    assert_eq!(state(&queue_of_user, &id), State::Queued { attempts: 0 });
    assert_eq!(folders(), 0, "its folder is left");
    // The message is free at once, not after the time limit of an acknowledgement.
    stop.store(false, Ordering::SeqCst);
    let began = Instant::now();
    thread::scope(|scope| {
        let (broker, folder, stop) = (&broker, &folder, &stop);
        scope.spawn(move || {
            let mut runs = Runs(Some(Duration::ZERO));
            queue(broker).work(&named("next"), &mut runs, folder, stop, &|_| {});
        });
        wait_for(&queue_of_user, &id, |state| matches!(state, State::Ended { .. }));
        stop.store(true, Ordering::SeqCst);
    });
    assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
}
