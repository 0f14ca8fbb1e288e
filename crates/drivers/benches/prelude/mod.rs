//! What the benches share: a collection on a target, workers on it, and what their work costs.

#![allow(dead_code, unused_imports, reason = "no bench uses all of it")]

pub use kurabe_core::collection::{Collection, Field, FieldType};
pub use kurabe_core::driver::{ConnectOptions, Driver, Namespace, Prepared, Session, Support};
pub use kurabe_core::operation::Operation;
pub use kurabe_core::target::TargetUrl;
pub use kurabe_core::value::{Reply, Value};
pub use rustix::time::ClockId;
pub use std::sync::Arc;

use rustix::time::clock_gettime;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Microseconds of CPU and of the clock, per operation.
pub type Cost = (f64, f64);

/// Reads or writes once; given a number that no other call has.
pub type Work = Box<dyn FnMut(usize) + Send>;

/// The arguments of the command line, without those of Cargo.
pub fn arguments() -> Vec<String> {
    std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect()
}

pub fn open(url: &str) -> Box<dyn Driver> {
    kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap()
}

/// A collection of rows with an id of this type and a value of that.
pub fn collection(name: &str, id: FieldType, data: FieldType) -> Arc<Collection> {
    let fields = vec![Field { name: "id", kind: id }, Field { name: "data", kind: data }];
    Arc::new(Collection::new(name, fields, vec![0]))
}

/// A collection on a target.
pub struct Fixture {
    pub driver: Box<dyn Driver>,
    pub collection: Arc<Collection>,
    namespace: Box<dyn Namespace>,
}

impl Fixture {
    pub fn new(url: &str, collection: Arc<Collection>) -> Self {
        let driver = open(url);
        let mut namespace = driver.namespace().unwrap();
        namespace.create(&collection).unwrap();
        Self { driver, collection, namespace }
    }

    pub fn session(&self) -> Box<dyn Session> {
        self.driver.connect(&ConnectOptions::default()).unwrap()
    }

    pub fn get(&self) -> Operation {
        Operation::Get { collection: Arc::clone(&self.collection), fields: vec![1] }
    }

    pub fn insert(&self) -> Operation {
        Operation::Insert { collection: Arc::clone(&self.collection) }
    }

    /// A session of its own, with an operation.
    pub fn worker(&self, operation: &Operation) -> (Box<dyn Session>, Prepared) {
        let mut session = self.session();
        let prepared = session.prepare(operation).unwrap();
        (session, prepared)
    }

    pub fn remove(mut self) {
        self.namespace.remove(&self.collection.name).unwrap();
        // Another target may be the same database.
        if self.namespace.list().unwrap().is_empty() {
            self.namespace.finish().unwrap();
        }
    }
}

/// Runs an operation that is needed once.
pub fn once(session: &mut dyn Session, operation: &Operation, parameters: &[Value<'_>]) {
    let prepared = session.prepare(operation).unwrap();
    session.execute(&prepared, parameters, &mut Reply::new()).unwrap();
    session.release(prepared).unwrap();
}

/// The cost of an operation that is done `count` times.
pub fn cost(clock: ClockId, count: usize, work: impl FnOnce()) -> Cost {
    let cpu = || {
        let now = clock_gettime(clock);
        now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
    };
    let (began, cpu_began) = (Instant::now(), cpu());
    work();
    let count = count.max(1) as f64;
    ((cpu() - cpu_began) / count, began.elapsed().as_secs_f64() * 1e6 / count)
}

/// The cost of a call of all workers together, each in a thread. CPU time is the whole process's.
pub fn together(workers: Vec<Work>, calls: usize, next: &AtomicUsize) -> Cost {
    let share = calls / workers.len();
    cost(ClockId::ProcessCPUTime, share * workers.len(), || {
        std::thread::scope(|scope| {
            for mut work in workers {
                scope.spawn(move || (0..share).for_each(|_| work(next.fetch_add(1, Ordering::Relaxed))));
            }
        });
    })
}

/// The costs of two ways, by number, in turns, so that whatever else the machine does meets both alike. Each goes first
/// every other round; the first round warms up.
pub fn in_turns(rounds: usize, mut way: impl FnMut(usize) -> Cost) -> [Vec<Cost>; 2] {
    let mut found = [const { Vec::new() }; 2];
    for round in 0..=rounds {
        for turn in [round % 2, 1 - round % 2] {
            let cost = way(turn);
            if round > 0 {
                found[turn].push(cost);
            }
        }
    }
    found
}

/// The ratios of the first way's CPU to the second's, in order.
pub fn ratios([first, second]: &[Vec<Cost>; 2]) -> Vec<f64> {
    sorted(first.iter().zip(second).map(|(first, second)| first.0 / second.0))
}

pub fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The median of CPU and of the clock.
pub fn middle(costs: &[Cost]) -> Cost {
    let of = |part: fn(&Cost) -> f64| sorted(costs.iter().map(part))[costs.len() / 2];
    (of(|cost| cost.0), of(|cost| cost.1))
}
