//! What a replay reports, and why its answers may differ from the recorded ones.

use crate::metrics::{count, time};
use crate::prelude::*;

pub(super) const MEAN: Metric =
    time("request mean", "mean time of all requests; with a speed, from when the request was due");
pub(super) const P99: Metric = time("request p99", "99th percentile of the same");
/// The mean times of every second eighth of the requests, and of the others.
pub(super) const HALVES: [Metric; 2] = [
    time("request mean, first half", "mean time of the requests in every second eighth of the capture"),
    time("request mean, other half", "mean time of the other requests"),
];
pub(super) const LEFT_OUT: Metric =
    count("requests left out", "requests of the capture that cannot be sent again");
pub(super) const HITS: Metric = Metric::new(
    "hit ratio",
    Unit::Share,
    Better::Higher,
    "share of the cacheable reads that the cache answered",
);
pub(super) const CACHED: Metric =
    count("cacheable reads", "reads outside of transactions, which look into the cache first");
/// In the order of `Varies::ALL`.
pub(super) const VARIES: [Metric; 4] = [
    count(
        "volatile answers",
        "answers of which values are not compared, as the statement asks for time, random numbers, sequences or the server's state",
    ),
    count("reordered answers", "answers with the same rows in another order"),
    count("raced answers", "answers that differ where a change was committed at the same time"),
    count("answers compared in part", "answers of which only the status or the number of rows was compared"),
];

/// Why an answer may differ from the recorded one, and be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Varies {
    /// The statement asks for what changes: time, random numbers, sequences, the server's state.
    Volatile,
    /// The same rows in another order.
    Order,
    /// A change was committed at the same time.
    Raced,
    /// Only the status or the number of rows can be compared: of a packed body, LIMIT without an order, part of a cursor.
    Part,
}

impl Varies {
    pub(super) const ALL: [Self; 4] = [Self::Volatile, Self::Order, Self::Raced, Self::Part];
}
