//! E7, a small web application: each request logs a user in, writes a line to the log, and sometimes changes the user
//! or searches the postal codes.
//!
//! On a database, clients do this themselves. Through an application (`kurabe app`), or through several before one
//! database, each request is one page, and the throughput is summed. A client's seed determines which users log in,
//! which are changed and what is searched, so that the expected content of every row is known after a trial
//! ([`draws`]).

mod answer;
mod codes;
mod draws;
mod further;
mod names;
mod store;
mod transaction;
mod user;
mod via;
mod workload;

use crate::axes::{self, CLIENTS, CONNECTION_OR_VIA};
use crate::prelude::*;
use crate::via::ViaWorkload;

/// The experiment `webapp`.
pub(crate) struct WebApplication;

/// The name of the one operation: a request with all its steps.
const REQUEST: &str = "request";
/// The page that shows a line of the log.
const LOG: &str = "log";
/// The page that shows a user.
const USER: &str = "user";

static INFO: ExperimentInfo = ExperimentInfo {
    name: "webapp",
    question: "How many requests a second does a small web application serve, and which tier is the \
               bottleneck?",
    about: "Each request (1) finds a user by exact name and password among 100,000, (2) adds user, address and time to a \
            log, (3) one time in 20 changes the user, (4) one time in 10 searches 120,000 postal codes by their first five \
            digits. Every search uses an index, and every row of every answer is compared. Clients use a database directly, \
            or one application or several in front of one database (targets http://host:port and \
            http://host:port,host:port, or --via). --records sets the number of users; reports show the time of each \
            step. After E7 of the published experiments (webapp.csv).",
    axes: &[
        AxisInfo { default: &["1", "5", "10", "25", "50"], ..CLIENTS },
        AxisInfo { default: &["kept", "per-request"], ..CONNECTION_OR_VIA },
        AxisInfo {
            name: "postal-codes",
            help: "number of generated postal codes, or a file of real ones",
            kind: AxisKind::CountOrFile {
                least: 1,
                most: codes::MOST,
                words: &[("auto", "six for every five users")],
                file: "Japan Post's list of all towns, in UTF-8 (utf_ken_all.csv)",
            },
            default: &["auto"],
        },
    ],
    operations: &[OperationInfo {
        name: REQUEST,
        about: "log a user in, write the log, sometimes change the user or search the postal codes",
        requests: 100_000,
        writes: true,
    }],
    metrics: transaction::METRICS,
    chart_axis: "clients",
    answer: Answer::Throughput,
    published: Some("webapp"),
};

impl Experiment for WebApplication {
    fn info(&self) -> &'static ExperimentInfo {
        &INFO
    }

    fn plan(&self, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        workload::WebWorkload::plan(cell, dataset)
    }

    fn pages(&self) -> Option<&dyn Pages> {
        Some(self)
    }
}

impl Pages for WebApplication {
    fn plan(&self, cell: &Cell) -> Result<PlannedCell> {
        Ok(ViaWorkload::plan(axes::policy(cell)?, via::WebPages::new(cell)))
    }
}
