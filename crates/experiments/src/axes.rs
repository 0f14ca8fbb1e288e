//! Axes that several experiments share.

use crate::prelude::*;

pub(crate) const CLIENTS: AxisInfo =
    AxisInfo::new("clients", "concurrent clients", AxisKind::count(1, 100_000), &["1"]);

pub(crate) const STATEMENT: AxisInfo = AxisInfo::new(
    "statement",
    "when statements are prepared",
    AxisKind::choice(&[("once", "once for each connection"), ("per-request", "for every request")]),
    &["once"],
);

pub(crate) const CONNECTION: AxisInfo = AxisInfo::new(
    "connection",
    "how long a connection lives",
    AxisKind::choice(&[
        ("kept", "each client keeps its own"),
        ("per-request", "opened and closed for every request"),
    ]),
    &["kept"],
);

/// The same axis for experiments that can also run through an application.
pub(crate) const CONNECTION_OR_VIA: AxisInfo =
    AxisInfo { help: "how long a connection lives, to the database or to the application", ..CONNECTION };

/// What the word of a cell's axis stands for.
pub(crate) fn choice<T: Copy>(
    info: &ExperimentInfo,
    cell: &Cell,
    axis: &str,
    all: &[(&str, T)],
) -> Result<T> {
    let word = cell.word(axis)?;
    let unknown = || format!("{}: unknown axis value '{word}'", info.name);
    let found = all.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| Error::new(ErrorKind::Internal, unknown()))
}

/// An operation that changes no data.
pub(crate) const fn reads(name: &'static str, about: &'static str, requests: u64) -> OperationInfo {
    OperationInfo { name, about, requests, writes: false }
}

/// An operation that changes data.
pub(crate) const fn writes(name: &'static str, about: &'static str, requests: u64) -> OperationInfo {
    OperationInfo { name, about, requests, writes: true }
}

/// The error for an operation that the experiment does not have: a defect of the caller.
pub(crate) fn no_operation(experiment: &str, operation: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("{experiment} has no operation '{operation}'"))
}

/// Checks that each client has records of its own to change, and returns the number of clients.
pub(crate) fn suffice(cell: &Cell, records: u64, what: &str) -> Result<u64> {
    let clients = cell.number(CLIENTS.name)?;
    if clients <= records {
        return Ok(clients);
    }
    Err(Error::unsupported(format!(
        "each client changes its own {what}: {records} are too few for {clients} clients"
    )))
}

/// The number of clients of a cell, and whether each keeps its connection or opens one for each request.
///
/// # Errors
/// If the cell lacks one of the axes: a defect of the experiment.
pub(crate) fn policy(cell: &Cell) -> Result<LoopPolicy> {
    let connections = match cell.word(CONNECTION.name)? {
        "per-request" => Connections::PerRequest,
        _ => Connections::Kept,
    };
    Ok(LoopPolicy { connections, ..LoopPolicy::new(cell.number(CLIENTS.name)? as usize) })
}
