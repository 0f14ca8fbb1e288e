//! One trial: one operation of one cell, from preparation to verification on the server.

pub(crate) mod course;
pub(crate) mod execute;
pub(crate) mod failure;
pub(crate) mod gate;
pub(crate) mod job;
pub(crate) mod judge;
pub(crate) mod rate_search;
pub(crate) mod recorded;
pub(crate) mod server_stats;
pub(crate) mod spans;
pub(crate) mod standstill;
mod throughput;
pub(crate) mod warmup_detector;

pub use crate::clients::schedule::LoadModel;
pub use failure::Failure;
pub(crate) use failure::{caught, panicked};

use crate::clients::schedule;
use crate::conditions::Conditions;
use crate::fleet::{ClientShare, FleetClients, ShareOfTrial, ShareResult};
use kurabe_core::driver::{ConnectOptions, Driver, Session};
use kurabe_core::experiment::{DatasetState, OperationInfo, Stop, Workload};
use kurabe_core::planned::{Capacity, PlannedCell, TrialWork};
use kurabe_core::run::Measurement;
use kurabe_core::threads::ClientThreads;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_stats::rng::mix;
use std::time::Duration;

/// Separates the seed of arrivals from the clients' own.
const ARRIVALS: u64 = 0xA221_7A15;

/// The parameters of a trial.
pub struct Trial<'a> {
    /// The driver of the clients' connections.
    pub driver: &'a dyn Driver,
    /// The options of these connections.
    pub options: &'a ConnectOptions,
    pub cell: &'a PlannedCell,
    /// The cell's work.
    pub work: &'a TrialWork,
    /// The operation to measure.
    pub operation: &'a OperationInfo,
    /// Its number among the trials on this data, from 1.
    pub number: u64,
    /// When the measured phase ends.
    pub stop: Stop,
    pub load_model: LoadModel,
    /// Seed of the clients' random inputs. Trials that differ only in their targets have the same seed; no others do.
    pub seed: u64,
    /// The conditions of its run.
    pub conditions: Conditions<'a>,
    /// Called when all clients are connected and wait for the start, to pin the server's threads.
    pub connected: Option<&'a (dyn Fn() -> Result<()> + Sync)>,
    /// The threads of the clients; `None`: as [`ClientThreads::shared`] decides.
    pub threads: Option<ClientThreads>,
    /// The processes that run the clients.
    pub clients: Clients<'a>,
}

/// The processes that run the clients of a trial.
pub enum Clients<'a> {
    /// This one.
    Here,
    /// This one runs a part of them.
    Share(&'a ShareOfTrial<'a>),
    /// The agents of a fleet.
    Fleet(FleetClients<'a>),
}

impl<'a> Trial<'a> {
    /// The first trial on the cell's data, in a closed loop without an end, in this process, with a thread for each
    /// client or as few as [`ClientThreads::shared`] decides, under the default conditions. Use a struct update to change
    /// some.
    pub fn new(
        driver: &'a dyn Driver,
        options: &'a ConnectOptions,
        cell: &'a PlannedCell,
        work: &'a TrialWork,
        operation: &'a OperationInfo,
    ) -> Self {
        Self {
            driver,
            options,
            cell,
            work,
            operation,
            number: 1,
            stop: Stop::default(),
            load_model: LoadModel::Closed,
            seed: 0,
            conditions: Conditions::default(),
            connected: None,
            threads: None,
            clients: Clients::Here,
        }
    }
}

impl Trial<'_> {
    /// Does its work on data in this state, and verifies the results over a session if all of it succeeded.
    ///
    /// # Errors
    /// Any error of any client, and any mismatch: the trial has no result then.
    pub fn run(&self, state: &DatasetState, session: &mut dyn Session) -> Result<Measurement, Failure> {
        self.judge(self.execute(state, None)?, None, state, session)
    }

    /// Runs a part of the clients, on data in this state.
    ///
    /// # Errors
    /// Any error of any of these clients.
    pub fn run_part(&self, state: &DatasetState) -> Result<ShareResult, Failure> {
        Ok(self.execute_clients(self.workload()?, state, None)?.part)
    }

    /// The work of its clients.
    fn workload(&self) -> Result<&dyn Workload> {
        match self.work {
            TrialWork::Loop(workload) => Ok(&**workload),
            TrialWork::Job(_) => Err(Error::new(ErrorKind::Internal, "a job has no clients")),
        }
    }

    /// The schedule of an open loop.
    pub(crate) fn schedule(&self) -> Result<Option<schedule::ArrivalPlan>> {
        let LoadModel::Open { rate, arrivals } = self.load_model else { return Ok(None) };
        if self.cell.policy.pipeline > 1 {
            let why = "an open loop has one request per arrival, so requests cannot be pipelined";
            return Err(Error::unsupported(why));
        }
        let min = self.stop.min.map_or(0.0, |min| min.as_secs_f64() * rate).ceil() as u64;
        let (time, max) = match (self.stop.duration, self.stop.requests.map(|requests| requests.max(min))) {
            (Some(time), max) => (time, max.unwrap_or(u64::MAX)),
            (None, Some(max)) => (Duration::from_secs_f64(max as f64 / rate), max),
            (None, None) => return Err(Error::new(ErrorKind::Internal, "an open loop has no end")),
        };
        let capacity =
            self.capacity().map(|capacity| schedule::capacity(&capacity, self.cell.policy.clients));
        let due = (rate * time.as_secs_f64()).min(max as f64);
        let cut = capacity.filter(|capacity| (*capacity as f64) < due);
        let (max, is_cut) = (cut.unwrap_or(max), cut.is_some());
        let (seed, part, clients) = (mix(self.seed, ARRIVALS), self.part(), self.cell.policy.clients);
        Ok(Some(schedule::ArrivalPlan { rate, arrivals, time, max, is_cut, seed, part, clients }))
    }

    pub(crate) fn part_of_trial(&self) -> Option<&ShareOfTrial<'_>> {
        match &self.clients {
            Clients::Share(part) => Some(part),
            Clients::Here | Clients::Fleet(_) => None,
        }
    }

    /// The part of the clients that this process runs.
    pub(crate) fn part(&self) -> ClientShare {
        self.part_of_trial().map_or(ClientShare::WHOLE, |part| part.part)
    }

    pub(crate) fn capacity(&self) -> Option<Capacity> {
        self.cell.policy.capacity.filter(|_| self.operation.writes)
    }
}
