//! A running `kurabe up app`, as a target of runs and of attacks.

use crate::context::Place;
use crate::process::{Ran, Running};
use crate::server::port_of;
use rustix::process::Signal;
use std::time::Duration;

/// The time limit for loading its data.
const START: Duration = Duration::from_secs(60);
/// The time limit for its end.
pub const END: Duration = Duration::from_secs(10);

/// A running application; dropping it ends it.
pub struct App {
    /// Its process.
    pub running: Running,
    /// The port on which it listens, on 127.0.0.1.
    pub port: u16,
}

impl App {
    /// Starts it on a database, with the experiment `kv`.
    ///
    /// # Errors
    /// If it does not print its address.
    pub fn start(place: &Place, target: &str) -> Result<Self, String> {
        let args = ["up", "app", target, "--listen", "127.0.0.1:0", "--experiment", "kv", "--records", "50"];
        let mut command = place.command(&args);
        command.env("KURABE_RUNS", place.home());
        let mut running = Running::start(&mut command)?;
        loop {
            let said = running.said(0);
            // A complete line, so that the port is complete.
            if let Some((line, _)) = said.split_once('\n')
                && let Some(port) = port_of(line.trim())
            {
                return Ok(Self { running, port });
            }
            if running.ended() || running.age() > START {
                return Err(format!("kurabe up app {target} did not start: {said}{}", running.said(1)));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends SIGINT, and returns how it ended.
    pub fn stop(self) -> Ran {
        self.running.signal(Signal::INT);
        let asked = self.running.age();
        self.running.finish(asked + END)
    }
}
