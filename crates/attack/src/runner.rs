//! Starts the servers of cases, and runs the tries: few at once of those that measure, many at once of those that wait.

use crate::case::{Case, Outcome};
use crate::context::Context;
use crate::random::Random;
use crate::server::{ENGINES, Server, Starting};
use crate::table::Table;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The number of concurrent attacks that measure.
const MEASURING: usize = 3;
/// The number of concurrent attacks that wait.
const WAITING: usize = 16;

/// How often a moment is drawn, if the program does not come to it.
const DRAWS: usize = 4;

/// One call of a case.
struct Job<'a> {
    case: &'a Case,
    seed: u64,
    tries: usize,
}

/// Starts the servers of these cases concurrently; attacks that wait have separate ones, which come second. `refused` receives
/// why one cannot be started.
pub fn start_servers(
    program: &Path,
    folder: &Path,
    cases: &[&Case],
    mut refused: impl FnMut(&str),
) -> [Vec<Server>; 2] {
    let starting = [false, true].map(|waits| {
        let mut engines: Vec<&str> = Vec::new();
        for case in cases.iter().filter(|case| case.waits == waits) {
            if ENGINES.contains(&case.target.as_str()) && !engines.contains(&case.target.as_str()) {
                engines.push(&case.target);
            }
        }
        engines.into_iter().map(|engine| Starting::new(program, engine, folder, &[])).collect::<Vec<_>>()
    });
    starting.map(|starting| {
        let ready = starting.into_iter().map(|started| started.and_then(Starting::ready));
        ready.filter_map(|server| server.inspect_err(|why| refused(why)).ok()).collect()
    })
}

/// Runs the tries of each case in a random order. `progress` receives the name of each call that has ended.
pub fn run(context: &Context, cases: &[(Case, usize)], seed: u64, progress: impl Fn(&str) + Sync) -> Table {
    let mut random = Random::new(seed);
    let mut jobs: [Vec<Job>; 2] = [Vec::new(), Vec::new()];
    for (case, tries) in cases {
        let mut left = *tries;
        // The first call has the seed itself, so that the printed command repeats it.
        let mut seeds = Random::new(seed);
        let mut next = seed;
        while left > 0 {
            let tries = left.min(case.batch);
            jobs[usize::from(case.waits)].push(Job { case, seed: next, tries });
            next = seeds.number() >> 16;
            left -= tries;
        }
    }
    let table = Mutex::new(Table::default());
    let lock = || table.lock().unwrap_or_else(PoisonError::into_inner);
    for jobs in &mut jobs {
        for at in (1..jobs.len()).rev() {
            jobs.swap(at, random.below(at + 1));
        }
    }
    let jobs = jobs.map(Mutex::new);
    thread::scope(|scope| {
        for (jobs, workers) in jobs.iter().zip([MEASURING, WAITING]) {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(job) = take(jobs) {
                        let (name, target) = (job.case.name(), &job.case.target);
                        let (seed, outcomes) = attack(context, &job, &[&name, target]);
                        progress(&format!("{name} {target}"));
                        lock().add(&name, target, (seed, job.tries), outcomes);
                    }
                });
            }
        }
    });
    table.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the tries of a call. If none was made, since the program did not come to the moment that was drawn, other moments are
/// drawn: what a run sends depends on other load, too. Returns the seed.
fn attack(context: &Context, job: &Job<'_>, words: &[&str]) -> (u64, Vec<Outcome>) {
    let mut seed = job.seed;
    for _ in 1..DRAWS {
        let outcomes = (job.case.attack)(context, mixed(seed, words), job.tries);
        if !outcomes.iter().all(|outcome| matches!(outcome, Outcome::Skipped(_))) {
            return (seed, outcomes);
        }
        seed = Random::new(seed).number() >> 16;
    }
    (seed, (job.case.attack)(context, mixed(seed, words), job.tries))
}

fn take<'a>(jobs: &Mutex<Vec<Job<'a>>>) -> Option<Job<'a>> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// The seed of one case, so that cases differ (FNV-1a).
fn mixed(seed: u64, words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes());
    bytes.fold(seed ^ 0xcbf2_9ce4_8422_2325, |mixed, byte| {
        (mixed ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}
