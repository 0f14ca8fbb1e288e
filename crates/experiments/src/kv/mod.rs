//! E2, single records by key: read one, or add one, as each page of a small web application does.
//!
//! On a database, clients do this themselves. Through an application (`kurabe app`, or any other that serves
//! `docs/app.openapi.yaml`) each transaction is one page. Reads draw uniformly from loaded records; writes add
//! records with new keys. The content of a record follows from its key by a formula that an application in any
//! language, or SQL, can compute ([`record`]).

mod record;
mod transaction;
mod via;
mod workload;

use crate::axes::{self, CLIENTS, CONNECTION_OR_VIA};
use crate::prelude::*;
use crate::via::ViaWorkload;

/// The experiment `kv`.
pub(crate) struct KeyValue;

/// The name of the operation that reads a record.
const READ: &str = "read";
/// The name of the operation that adds a record.
const WRITE: &str = "write";

static INFO: ExperimentInfo = ExperimentInfo {
    name: "kv",
    question: "How many pages a second does an application serve that read, or add, one record?",
    about: "Reads one record of 96 characters by its key, drawn uniformly from 10,000, or adds one under a new key: \
            directly on a database, or through an application (a target http://host:port, or --via) as one page \
            each. After E2 of the published experiments (web_kv.csv).",
    axes: &[AxisInfo { default: &["1", "10", "100"], ..CLIENTS }, CONNECTION_OR_VIA],
    operations: &[
        OperationInfo { name: READ, about: "read one record by its key", requests: 1_000, writes: false },
        OperationInfo { name: WRITE, about: "add one record under a new key", requests: 1_000, writes: true },
    ],
    metrics: &[],
    chart_axis: "clients",
    answer: Answer::Throughput,
    published: Some("web_kv.csv"),
};

impl Experiment for KeyValue {
    fn info(&self) -> &'static ExperimentInfo {
        &INFO
    }

    fn plan(&self, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        workload::KvWorkload::plan(cell, dataset)
    }

    fn pages(&self) -> Option<&dyn Pages> {
        Some(self)
    }
}

impl Pages for KeyValue {
    fn plan(&self, cell: &Cell) -> Result<PlannedCell> {
        Ok(ViaWorkload::plan(axes::policy(cell)?, via::KvPages))
    }
}
