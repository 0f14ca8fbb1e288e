//! A running stack, and the database that it uses.

use crate::reporter::Reporter;
use kurabe_core::target::TargetUrl;
use kurabe_engine::prepare::fixture::Fixture;
use kurabe_engine::prepare::target::Target;
use kurabe_testbed::Server;
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// A database that stacks use.
pub(crate) struct StackDatabase {
    /// Its URL, as given.
    pub(super) url: String,
    pub(super) target: Target,
    pub(super) reached: TargetUrl,
    /// The number of stacks that use it.
    pub(super) stacks: usize,
}

/// A running stack, with its tables. It is dropped before its database's server.
pub(crate) struct RunningStack {
    pub(super) server: Server,
    /// Dropping it removes the tables.
    pub(super) fixture: Fixture,
}

impl RunningStack {
    /// Stops the application, then removes its tables.
    pub(crate) fn stop(self, reporter: &dyn Reporter) {
        if let Err(error) = self.server.stop() {
            reporter.warning(&error.to_string());
        }
        drop(self.fixture);
    }

    /// How it ended, if it ended unexpectedly.
    pub(crate) fn died(&self) -> Option<String> {
        self.server.died()
    }

    /// Waits, for a short time, for how it ended, if nothing listens at its port any more: its supervisor first ends
    /// the other processes.
    pub(crate) fn settle(&self) {
        let address = (Ipv4Addr::LOCALHOST, self.server.port());
        let until = Instant::now() + Duration::from_secs(10);
        while self.died().is_none() && Instant::now() < until && TcpStream::connect(address).is_err() {
            thread::sleep(Duration::from_millis(20));
        }
    }
}
