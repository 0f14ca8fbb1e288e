//! `cargo xtask bench gate`: how often a gate finds a slowdown that was planted, and how often it fails without one, beside
//! other load.
//!
//! The base and the head are two PostgreSQL servers with the same query, which adds as many numbers as a table says. The head's
//! table says more of them. Meanwhile a thread for each processor is busy for a share of each ten milliseconds.
//!
//! - `--gates 60`: gates for each planted slowdown
//! - `--slowdowns 100,30,0`: how many per cent slower the head is
//! - `--load 50`: the share of each processor that other load takes, in per cent
//! - `--fail-on slower:10%`: the criterion
//! - `--rounds 12`, `--duration 150ms`: those of each gate

use super::options::Variables;
use super::run::{Kurabe, need};
use super::server::Server;
use crate::shell::{self, Outcome};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The numbers that the base adds: some milliseconds, of which the round trip is a small part.
const WORK: u32 = 20_000;
/// The time in which other load is busy and idle once.
const PERIOD: Duration = Duration::from_millis(10);

/// Exit codes of a gate.
const PASSED: i32 = 0;
const FAILED: i32 = 6;
const UNDECIDED: i32 = 7;

pub fn run(args: &[String]) -> Outcome {
    let options = Variables::read(
        args,
        &[
            ("gates", "60"),
            ("slowdowns", "100,30,0"),
            ("load", "50"),
            ("fail-on", "slower:10%"),
            ("rounds", "12"),
            ("duration", "150ms"),
        ],
    )?;
    need("psql", "postgresql-client")?;
    let (gates, load) = (options.number("gates")?, options.get("load").parse::<u32>());
    let load = load.ok().filter(|load| *load <= 100).ok_or("--load is a share in per cent")?;
    let kurabe = Kurabe::build("gate")?;
    let script = kurabe.scratch.join("work.sql");
    std::fs::write(&script, "SELECT sum(g) FROM planted, generate_series(1, planted.work) AS g;\n")
        .map_err(|error| format!("{}: {error}", script.display()))?;
    let base = server(&kurabe, WORK)?;
    let _load = OtherLoad::start(load);
    let mut missed = Vec::new();
    println!("slowdown  gates  failed  undecided  passed");
    for slowdown in options.list("slowdowns") {
        let percent: u32 = slowdown.parse().map_err(|_| format!("--slowdowns: '{slowdown}' is no number"))?;
        let head = server(&kurabe, WORK + WORK * percent / 100)?;
        let mut counts = [0_u32; 3];
        for _ in 0..gates {
            let mut gate = kurabe.command();
            gate.arg("gate").arg(&script).args([&base.url, &head.url]).args(["--quiet", "--no-html"]);
            gate.args(["--fail-on", options.get("fail-on"), "--rounds", options.get("rounds")]);
            gate.args(["--duration", options.get("duration")]);
            let output = gate.output().map_err(|error| format!("kurabe gate: {error}"))?;
            let at = match output.status.code() {
                Some(FAILED) => 0,
                Some(UNDECIDED) => 1,
                Some(PASSED) => 2,
                other => {
                    let said = String::from_utf8_lossy(&output.stderr);
                    return Err(format!("kurabe gate ended with {other:?}: {said}"));
                }
            };
            counts[at] += 1;
        }
        let [failed, undecided, passed] = counts;
        println!("{percent:7} %  {gates:5}  {failed:6}  {undecided:9}  {passed:6}");
        let failed = f64::from(failed) / f64::from(gates);
        match percent {
            0 if failed > 0.05 => missed.push("more than one gate in twenty failed without a slowdown"),
            100.. if failed < 0.95 => missed.push("fewer than 95 of 100 gates found a slowdown of two times"),
            _ => {}
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("; ")) }
}

/// A server whose table says to add so many numbers.
fn server(kurabe: &Kurabe, work: u32) -> Result<Server, String> {
    let server = Server::start(&kurabe.program, "postgres", &[])?;
    let sql = format!("CREATE TABLE planted AS SELECT {work} AS work");
    let mut psql = Command::new("psql");
    psql.args(["--no-psqlrc", "--quiet", "--command", &sql]).arg(&server.url);
    shell::run(psql.env("PGPASSWORD", &server.password), "psql")?;
    Ok(server)
}

/// Threads that are busy for a share of the time, until this is dropped.
struct OtherLoad {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl OtherLoad {
    fn start(percent: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let busy = PERIOD * percent / 100;
        let work = |stop: Arc<AtomicBool>| {
            move || {
                while !stop.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    while began.elapsed() < busy {
                        std::hint::spin_loop();
                    }
                    thread::sleep(PERIOD.saturating_sub(began.elapsed()));
                }
            }
        };
        let threads =
            (0..if percent == 0 { 0 } else { processors }).map(|_| thread::spawn(work(Arc::clone(&stop))));
        let threads = threads.collect();
        Self { stop, threads }
    }
}

impl Drop for OtherLoad {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
