//! What the experiment asks, what it varies and what it reports; its pages.

use crate::axes::{CLIENTS, CONNECTION_OR_VIA, writes};
use crate::prelude::*;

/// The name of the one operation: a request with all its steps.
pub(super) const REQUEST: &str = "request";
/// The page that shows a line of the log.
pub(super) const LOG: &str = "log";
/// The page that shows a user.
pub(super) const USER: &str = "user";

pub(super) static INFO: ExperimentInfo = ExperimentInfo {
    name: "webapp",
    question: "How many requests a second does a small web application serve, and which tier is the \
               bottleneck?",
    about: "Each request (1) finds a user by exact name and password among 100,000, (2) adds user, address and time to a \
            log, (3) one time in 20 changes the user, (4) one time in 10 searches 120,000 postal codes by their first five \
            digits. Every search uses an index, and every row of every answer is compared. Clients use a database directly, \
            or one application or several in front of one database (targets http://host:port and \
            http://host:port,host:port, or --via). --records sets the number of users; reports show the time of each \
            step. As in the published experiments (webapp.csv).",
    axes: &[
        AxisInfo { default: &["1", "5", "10", "25", "50"], ..CLIENTS },
        AxisInfo { default: &["kept", "per-request"], ..CONNECTION_OR_VIA },
        AxisInfo::new(
            "postal-codes",
            "number of generated postal codes, or a file of real ones",
            AxisKind::count(1, super::codes::MAX).or(&[("auto", "six for every five users")]).or_text(
                kurabe_core::axis::FreeText::File(
                    "Japan Post's list of all towns, in UTF-8 (utf_ken_all.csv)",
                ),
            ),
            &["auto"],
        ),
    ],
    operations: &[writes(
        REQUEST,
        "log a user in, write the log, sometimes change the user or search the postal codes",
        100_000,
    )],
    metrics: super::transaction::METRICS,
    chart_axis: "clients",
    answer: Answer::Comparison,
    published: Some("webapp"),
};
