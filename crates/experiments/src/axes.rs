//! Axes that several experiments have.

use kurabe_core::Result;
use kurabe_core::axis::{AxisInfo, AxisKind, Cell};
use kurabe_core::planned::{Connections, LoopPolicy};

/// Clients at work at the same time.
pub(crate) const CLIENTS: AxisInfo = AxisInfo {
    name: "clients",
    help: "clients at work at the same time",
    kind: AxisKind::Count { least: 1, most: 100_000 },
    default: &["1"],
};

/// When statements are prepared.
pub(crate) const STATEMENT: AxisInfo = AxisInfo {
    name: "statement",
    help: "when statements are prepared",
    kind: AxisKind::Choice(&[
        ("once", "once for each connection"),
        ("per-request", "anew for every request"),
    ]),
    default: &["once"],
};

/// How long a connection lives.
pub(crate) const CONNECTION: AxisInfo = AxisInfo {
    name: "connection",
    help: "how long a connection lives",
    kind: AxisKind::Choice(&[
        ("kept", "each client keeps its own"),
        ("per-request", "opened and closed for every request"),
    ]),
    default: &["kept"],
};

/// The same where an application may stand between.
pub(crate) const CONNECTION_OR_VIA: AxisInfo =
    AxisInfo { help: "how long a connection lives, to the database or to the application", ..CONNECTION };

/// How many clients a cell has, each with a connection that it keeps or with one for each request.
///
/// # Errors
/// Where the cell lacks one of the axes: a defect of the experiment.
pub(crate) fn policy(cell: &Cell) -> Result<LoopPolicy> {
    let connections = match cell.word(CONNECTION.name)? {
        "per-request" => Connections::PerRequest,
        _ => Connections::Kept,
    };
    Ok(LoopPolicy::new(cell.number(CLIENTS.name)? as usize, connections))
}
