//! The open targets of a run.

use crate::reporter::Reporter;
use crate::stacks::running::{RunningStack, StackDatabase};
use crate::throwaway;
use kurabe_core::observation::Endpoint;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, Result};
use kurabe_engine::clients::cpu_partition::CpuPartition;
use kurabe_engine::prepare::target::Target;
use kurabe_observe::Remote;
use kurabe_testbed::Server;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Open targets, with the throwaway servers among them, which run until this is dropped.
#[derive(Default)]
pub struct Opened {
    /// As the engine needs them.
    pub targets: Vec<Target>,
    pub reached: Vec<TargetUrl>,
    /// The URL by which the second instance of each is reached; `None`: there is none.
    pub second_reached: Vec<Option<TargetUrl>>,
    /// How long the [change](crate::OpenOptions::changes) of each took; zero without one.
    pub changed: Vec<Duration>,
    /// Servers that a remote observer watches.
    pub observers: Vec<(Endpoint, Remote)>,
    /// Separate processors for clients and throwaway servers.
    pub cpu_partition: Option<CpuPartition>,
    /// Application stacks, which end before the servers of their databases.
    pub(crate) stacks: Vec<RunningStack>,
    pub(crate) databases: Vec<StackDatabase>,
    /// The positions of the URLs that could not be opened, with the reasons; only with [`tolerant`](crate::OpenOptions::tolerant). They are
    /// none of the targets.
    pub unopened: Vec<(usize, Error)>,
    pub(crate) servers: Vec<Arc<Server>>,
    /// External caches that are leased already, by URL.
    pub(crate) shared: HashSet<String>,
}

impl Opened {
    /// Keeps a throwaway server, and returns the URL by which it is reached.
    pub(crate) fn reached(&mut self, url: &TargetUrl, server: Arc<Server>) -> Result<TargetUrl> {
        let reached = throwaway::reached(url, &server)?;
        self.servers.push(server);
        Ok(reached)
    }

    /// How an application stack or a throwaway server ended, if one ended unexpectedly.
    pub fn died(&self) -> Option<String> {
        let stacks =
            self.stacks.iter().find_map(RunningStack::died).map(|why| format!("the application: {why}"));
        stacks.or_else(|| {
            self.servers.iter().find_map(|server| server.died()).map(|why| format!("the database: {why}"))
        })
    }

    /// Warns if an application stack, or the database of one, has ended. Trials then failed for that reason.
    pub fn warn_of_ended_stacks(&self, reporter: &dyn Reporter) {
        self.stacks.iter().for_each(RunningStack::settle);
        if let Some(why) = self.died().filter(|_| !self.stacks.is_empty()) {
            reporter.warning(&why);
        }
    }

    /// Stops the throwaway servers and removes their data. Shared servers go on.
    pub fn close(self, reporter: &dyn Reporter) {
        drop(self.targets);
        for stack in self.stacks {
            stack.stop(reporter);
        }
        drop(self.databases);
        // Other holders were dropped with the targets, except those of shared servers.
        for server in self.servers.into_iter().filter_map(Arc::into_inner) {
            if let Err(error) = server.stop() {
                reporter.warning(&error.to_string());
            }
        }
    }
}
