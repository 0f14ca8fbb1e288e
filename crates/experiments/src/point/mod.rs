//! The common baseline of database benchmarks: read, or change, one small row by its integer key.
//!
//! It follows `sysbench oltp_point_select` and `pgbench --select-only` as closely as Kurabe's rules allow: 100,000
//! rows, uniformly drawn keys, one requested field. In addition every answer is compared byte for byte, and changed
//! rows are read back after the trial.

mod pipelined;
mod store;
mod transaction;
mod workload;

pub(crate) use store::{LENGTH, content};
pub(crate) use workload::PointWorkload;

use crate::axes::{CLIENTS, CONNECTION, STATEMENT};
use crate::prelude::*;

/// The experiment `point-read`.
pub(crate) struct PointRead;

/// The experiment `point-write`.
pub(crate) struct PointWrite;

/// The name of the operation that reads a row.
pub(crate) const READ: &str = "read";
/// The page of an application that opens a connection for each read.
pub(crate) const NEW: &str = "new";
/// The name of the operation that changes a row.
const WRITE: &str = "write";

const PIPELINE: AxisInfo = AxisInfo {
    name: "pipeline",
    help: "requests that a client sends before it reads the answers",
    kind: AxisKind::Count { least: 1, most: 1_000 },
    default: &["1"],
};

static READ_INFO: ExperimentInfo = ExperimentInfo {
    name: "point-read",
    question: "How fast does a database answer the simplest query, one small row by its key?",
    about: "Reads one field of 100 characters by a whole-number primary key drawn uniformly from 100,000 \
            rows, as sysbench's oltp_point_select and pgbench's select-only do, so that results are \
            comparable.",
    axes: &[CLIENTS, STATEMENT, CONNECTION, PIPELINE],
    operations: &[OperationInfo {
        name: READ,
        about: "read one row by its key",
        requests: 100_000,
        writes: false,
    }],
    metrics: &[],
    chart_axis: "clients",
    answer: Answer::Throughput,
    published: None,
};

static WRITE_INFO: ExperimentInfo = ExperimentInfo {
    name: "point-write",
    question: "How fast does a database perform the smallest change, one small row by its key?",
    about: "Replaces one field of 100 characters by a whole-number primary key drawn uniformly from 100,000 rows, one \
            change per transaction. Clients share the table but no rows, so that they do not wait for each other's \
            row locks.",
    axes: &[CLIENTS, STATEMENT, CONNECTION, PIPELINE],
    operations: &[OperationInfo {
        name: WRITE,
        about: "change one row by its key",
        requests: 10_000,
        writes: true,
    }],
    metrics: &[],
    chart_axis: "clients",
    answer: Answer::Throughput,
    published: None,
};

impl Experiment for PointRead {
    fn info(&self) -> &'static ExperimentInfo {
        &READ_INFO
    }

    fn plan(&self, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        PointWorkload::plan(&READ_INFO, cell, dataset)
    }
}

impl Experiment for PointWrite {
    fn info(&self) -> &'static ExperimentInfo {
        &WRITE_INFO
    }

    fn plan(&self, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        PointWorkload::plan(&WRITE_INFO, cell, dataset)
    }
}
