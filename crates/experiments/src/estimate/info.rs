//! What the experiment asks, what it varies and what it reports.

use super::data::DATA;
use crate::axes::reads;
use crate::metrics::time;
use crate::prelude::*;
use kurabe_core::metric::{Source, THROUGHPUT};

/// Estimated rows over counted ones, a point for each condition.
pub(super) const ESTIMATED: Metric = Metric::new(
    "estimated rows",
    Unit::Count,
    Better::Neither,
    "the optimizer's estimate for each condition, over the rows that the server counts",
)
.from(Source::Scatter("counted rows"));
pub(super) const MEDIAN: Metric = Metric::new(
    "q-error median",
    Unit::Ratio,
    Better::Lower,
    "median over the conditions of the factor between estimated and counted rows, either way; at least one row counts \
     on both sides (Moerkotte, Neumann and Steidl 2009)",
);
pub(super) const P95: Metric =
    Metric::new("q-error p95", Unit::Ratio, Better::Lower, "95th percentile of the same").primary();
pub(super) const WORST: Metric =
    Metric::new("q-error worst", Unit::Ratio, Better::Lower, "maximum of the same");
pub(super) const EXPLAIN: Metric = time(
    "explain time",
    "median time of a request that plans and explains a query: an upper bound of planning",
);
pub(super) const PLANNING: Metric = time("planning time", "median planning time that the server reports");

/// The state of a table of the user.
pub(super) const AS_IS: &str = "as-is";

pub(super) static INFO: ExperimentInfo = ExperimentInfo {
    name: "estimate",
    question: "Does the optimizer know how many rows a condition selects?",
    about: "Asks the optimizer (EXPLAIN) how many rows each of a hundred ranges and equalities selects, has the server \
            count them, and compares both: the q-error is the larger of estimated/counted and counted/estimated. All \
            columns of the table are indexed: evenly distributed values, values by Zipf's law, values in the order of \
            the rows, two correlated columns, texts, a column with NULLs, and a joined table. Each round has other \
            rows and conditions. Statistics are gathered before each trial; or they are those of the \
            first half of the rows; or two rows in five were deleted before, so that pages are about half full. For \
            your own table, give what follows FROM, and --state as-is: --data \"orders WHERE total > 100\"; it is only \
            read. As in the published experiments (estimate.csv).",
    axes: &[
        AxisInfo::new(
            "data",
            "what is selected by",
            AxisKind::choice(DATA).or_text(kurabe_core::axis::FreeText::Phrase("TABLE WHERE CONDITION")),
            &["uniform", "zipf", "correlated", "join"],
        ),
        AxisInfo::new(
            "state",
            "state of the table and its statistics",
            AxisKind::choice(&[
                ("fresh", "statistics gathered before each trial"),
                ("stale", "statistics of the first half of the rows, in the order in which they were added"),
                ("deleted", "two rows in five deleted, then statistics gathered before each trial"),
                (AS_IS, "as it is, for your own table"),
            ]),
            &["fresh", "stale", "deleted"],
        ),
    ],
    operations: &[reads("estimate", "plan and explain one query", 100)],
    metrics: &[
        MEDIAN,
        P95,
        WORST,
        EXPLAIN,
        PLANNING,
        ESTIMATED,
        // Cells differ in what they select, so that their rates compare nothing.
        THROUGHPUT.secondary(),
    ],
    // No axis is an amount.
    chart_axis: "",
    answer: Answer::Metrics,
    published: Some("estimate.csv"),
};
