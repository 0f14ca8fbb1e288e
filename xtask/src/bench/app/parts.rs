//! One round: each contender in turn.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::run::Kurabe;
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
    pub kurabe: Kurabe,
    beside: Option<PathBuf>,
    requests: u64,
    clients: u32,
}

/// The kind of a contender.
#[derive(Clone, Copy)]
enum Contender {
    App,
    RemoteContext,
    Database,
    Floor,
}

impl Bench {
    pub fn new(options: &Options) -> Result<Self, String> {
        let (requests, clients) = (options.requests, options.clients);
        Ok(Self { kurabe: Kurabe::build("app")?, beside: options.beside.clone(), requests, clients })
    }

    pub fn round(&self, url: &str, round: usize) -> Result<[Sample; MODES.len()], String> {
        let mut contenders = vec![Contender::App, Contender::Database, Contender::Floor];
        if self.beside.is_some() {
            contenders.insert(1, Contender::RemoteContext);
        }
        let count = contenders.len();
        contenders.rotate_left(round % count);
        let mut samples = [Sample::default(); MODES.len()];
        for contender in contenders {
            match (contender, &self.beside) {
                (Contender::App, _) => {
                    for (sample, (cpu, rate)) in
                        samples.iter_mut().zip(self.application(&self.kurabe.program, url)?)
                    {
                        (sample.app, sample.per_second) = (cpu, rate);
                    }
                }
                (Contender::RemoteContext, Some(program)) => {
                    for (sample, (cpu, rate)) in samples.iter_mut().zip(self.application(program, url)?) {
                        (sample.beside, sample.per_second_beside) = (cpu, rate);
                    }
                }
                (Contender::RemoteContext, None) => {}
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
        let how = ["--clients", WORKERS, "--records", "10k", "--rounds", "1", "--duration", "1s"];
        let cpu = |operation: &str| {
            let report =
                self.kurabe.run(None, &[&["kv", url, "--operation", operation], &how[..]].concat())?;
            report.mean("client_cpu_us_per_op")
        };
        Ok([cpu("read")?, cpu("write")?])
    }
}
