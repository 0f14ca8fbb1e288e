//! Plants a cause when the gate opens, and removes it when the last client has ended: an observer around the observer.

use super::group::{Group, Limit};
use super::lock::Holder;
use kurabe_core::driver::Driver;
use kurabe_core::observation::{Endpoint, MonitorGuard, Observation, Observer};
use kurabe_core::operation::Operation;
use kurabe_observe::Monitor;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is planted for the measured phase only.
pub(super) enum Plan {
    Nothing,
    /// A limit of the server's processes, or of this process for an embedded database.
    Limit(Limit),
    /// A session that locks the rows 1 to this number, which this operation changes.
    Hold(Box<dyn Driver>, Operation, u64, Duration),
}

/// An observer that plants a cause.
pub(super) struct Planter {
    pub(super) monitor: Monitor,
    pub(super) plan: Plan,
    /// Where the server really listens.
    pub(super) server: Endpoint,
    /// Why it could not be planted.
    pub(super) failed: Arc<Mutex<Option<String>>>,
}

enum Planted {
    Nothing,
    Group(#[allow(dead_code, reason = "it is held until the trial has ended")] Group),
    Holder(#[allow(dead_code, reason = "it is held until the trial has ended")] Holder),
}

impl Planter {
    fn plant(&self) -> Result<Planted, String> {
        match &self.plan {
            Plan::Nothing => Ok(Planted::Nothing),
            Plan::Limit(limit) => {
                let processes = match &self.server {
                    Endpoint::InProcess => vec![std::process::id()],
                    server => kurabe_observe::processes(server)?,
                };
                Group::hold(&processes, *limit).map(Planted::Group)
            }
            Plan::Hold(driver, update, rows, time) => {
                Holder::start(&**driver, update, *rows, *time).map(Planted::Holder).map_err(|e| e.to_string())
            }
        }
    }
}

impl Observer for Planter {
    fn begin(&self, endpoint: &Endpoint, probe_port: Option<u16>) -> Box<dyn MonitorGuard> {
        let planted = self.plant().unwrap_or_else(|why| {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
            Planted::Nothing
        });
        Box::new(Planting { planted, guard: self.monitor.begin(endpoint, probe_port) })
    }
}

struct Planting {
    planted: Planted,
    guard: Box<dyn MonitorGuard>,
}

impl MonitorGuard for Planting {
    fn end(self: Box<Self>) -> Observation {
        let observation = self.guard.end();
        drop(self.planted);
        observation
    }
}
