//! One round: each contender in turn.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::serving::{Ab, Serving};
use super::{MODES, Mode, Options, floor};
use crate::shell;

/// Warm-up requests, which open the connections to the database.
const WARM: u64 = 1_000;
const GET_WRITES: &str = "--allow-get-writes";
/// Concurrent requests to the database, with and without the application.
const WORKERS: &str = "16";

/// Microseconds of CPU per request, of each contender, and requests per second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// `kurabe up app`.
    pub app: f64,
    /// That of the other build.
    pub beside: f64,
    /// The same database calls without a web tier.
    pub database: f64,
    /// The minimum.
    pub floor: f64,
    pub per_second: f64,
    pub per_second_beside: f64,
}

pub struct Bench {
    pub program: PathBuf,
    beside: Option<PathBuf>,
    requests: u64,
    clients: u32,
    scratch: PathBuf,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

/// The kind of a contender.
#[derive(Clone, Copy)]
enum Contender {
    App,
    Beside,
    Database,
    Floor,
}

impl Bench {
    pub fn new(program: PathBuf, options: &Options) -> Result<Self, String> {
        let scratch = std::env::temp_dir().join(format!("kurabe-app-{}", std::process::id()));
        fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
        let (requests, clients) = (options.requests, options.clients);
        Ok(Self { program, beside: options.beside.clone(), requests, clients, scratch })
    }

    pub fn round(&self, url: &str, round: usize) -> Result<[Sample; MODES.len()], String> {
        let mut contenders = vec![Contender::App, Contender::Database, Contender::Floor];
        if self.beside.is_some() {
            contenders.insert(1, Contender::Beside);
        }
        let count = contenders.len();
        contenders.rotate_left(round % count);
        let mut samples = [Sample::default(); MODES.len()];
        for contender in contenders {
            match (contender, &self.beside) {
                (Contender::App, _) => {
                    for (sample, (cpu, rate)) in samples.iter_mut().zip(self.application(&self.program, url)?)
                    {
                        (sample.app, sample.per_second) = (cpu, rate);
                    }
                }
                (Contender::Beside, Some(program)) => {
                    for (sample, (cpu, rate)) in samples.iter_mut().zip(self.application(program, url)?) {
                        (sample.beside, sample.per_second_beside) = (cpu, rate);
                    }
                }
                (Contender::Beside, None) => {}
                (Contender::Database, _) => {
                    let [read, write] = self.database(url)?;
                    for (sample, mode) in samples.iter_mut().zip(MODES) {
                        sample.database = if mode.write { write } else { read };
                    }
                }
                (Contender::Floor, _) => {
                    let [kept, anew] = [self.floor(true)?, self.floor(false)?];
                    for (sample, mode) in samples.iter_mut().zip(MODES) {
                        sample.floor = if mode.kept { kept } else { anew };
                    }
                }
            }
        }
        Ok(samples)
    }

    fn application(&self, program: &Path, url: &str) -> Result<Vec<(f64, f64)>, String> {
        let mut command = Command::new(program);
        command.args(["up", "app", url, "--listen", "127.0.0.1:0", "--experiment", "kv", "--records", "10k"]);
        command.args(["--workers", WORKERS]);
        // ab requests writes by GET, as older builds serve them.
        let help = shell::run(Command::new(program).args(["up", "app", "--help"]), "kurabe up app --help")?;
        command.args(help.contains(GET_WRITES).then_some(GET_WRITES));
        let app = Serving::start(command.stderr(Stdio::null()))?;
        for mode in MODES {
            self.drive(&app, mode, WARM.max(u64::from(self.clients)))?;
        }
        MODES.into_iter().map(|mode| self.measure(&app, mode)).collect()
    }

    fn floor(&self, kept: bool) -> Result<f64, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(own);
        command.args(["bench", "app", floor::ARGUMENT, if kept { floor::KEPT } else { "anew" }]);
        let floor = Serving::start(command.stderr(Stdio::null()))?;
        let mode = Mode { write: false, kept };
        self.drive(&floor, mode, WARM.max(u64::from(self.clients)))?;
        Ok(self.measure(&floor, mode)?.0)
    }

    /// Microseconds of CPU per request, and requests per second.
    fn measure(&self, serving: &Serving, mode: Mode) -> Result<(f64, f64), String> {
        let before = serving.cpu()?;
        let per_second = self.drive(serving, mode, self.requests)?;
        Ok(((serving.cpu()? - before) * 1e6 / self.requests as f64, per_second))
    }

    /// Runs ab; returns requests per second.
    fn drive(&self, serving: &Serving, mode: Mode, requests: u64) -> Result<f64, String> {
        let page = format!("{}/kv/{}", serving.url, if mode.write { "write" } else { "read" });
        let length = format!("{requests}");
        Ab { clients: self.clients, kept: mode.kept, length: ["-n", &length], processor: None }.drive(&page)
    }

    /// Microseconds of CPU per read and per write without a web tier.
    fn database(&self, url: &str) -> Result<[f64; 2], String> {
        let runs = self.scratch.join("runs");
        let kurabe = |args: &[&str]| {
            let mut command = Command::new(&self.program);
            shell::run(command.args(args).env("KURABE_RUNS", &runs), "kurabe")
        };
        let how = ["--clients", WORKERS, "--records", "10k", "--rounds", "1", "--duration", "1s"];
        kurabe(&[&["run", "kv", url, "--quiet", "--no-html"], &how[..]].concat())?;
        let csv = kurabe(&["report", "--format", "csv"])?;
        parse(&csv).ok_or_else(|| format!("a report without results: {csv}"))
    }
}

/// The means of `client_cpu_us_per_op` of reads and of writes: a cell and its A/A control are one value.
fn parse(csv: &str) -> Option<[f64; 2]> {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next()?.split(',').collect();
    let column = |name: &str| names.iter().position(|known| *known == name);
    let (operation, cpu) = (column("operation")?, column("client_cpu_us_per_op")?);
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let mean = |wanted: &str| {
        let of = rows.iter().filter(|row| row.get(operation) == Some(&wanted));
        let figures: Vec<f64> = of.filter_map(|row| row.get(cpu)?.parse().ok()).collect();
        (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
    };
    Some([mean("read")?, mean("write")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_are_separate_and_aa_controls_are_merged() {
        let csv = "run,operation,client_cpu_us_per_op\na,read,4.0\na,write,9\na,read,6.0\n";
        assert_eq!(parse(csv), Some([5.0, 9.0]));
        assert_eq!(parse("run,operation,client_cpu_us_per_op\na,read,4.0\n"), None);
    }
}
