//! `kurabe app` at work, as a target and as a victim.

use crate::context::Place;
use crate::process::{Ran, Running};
use crate::server::port_of;
use rustix::process::Signal;
use std::time::Duration;

/// How long it may take to load its data.
const START: Duration = Duration::from_secs(60);
/// How long it may take to end.
pub const END: Duration = Duration::from_secs(10);

/// An application that is ended with its value.
pub struct App {
    /// Its process.
    pub running: Running,
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
}

impl App {
    /// Starts it before a database, with the experiment `kv`.
    ///
    /// # Errors
    /// It does not say where it listens.
    pub fn start(place: &Place, target: &str) -> Result<Self, String> {
        let args = ["app", target, "--listen", "127.0.0.1:0", "--experiment", "kv", "--records", "50"];
        let mut command = place.command(&args);
        command.env("KURABE_RUNS", place.home());
        let mut running = Running::start(&mut command)?;
        loop {
            let said = running.said(0);
            // A whole line, so that the port is.
            if let Some((line, _)) = said.split_once('\n')
                && let Some(port) = port_of(line.trim())
            {
                return Ok(Self { running, port });
            }
            if running.ended() || running.age() > START {
                return Err(format!("kurabe app {target} did not start: {said}{}", running.said(1)));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks it to end, and says how it did.
    pub fn stop(self) -> Ran {
        self.running.signal(Signal::INT);
        let asked = self.running.age();
        self.running.finish(asked + END)
    }
}
