//! What a capture shows in sentences, on a terminal and on a page.

use super::Shown;
use crate::file::Known;
use kurabe_core::units::{count, counted, size, time};
use std::time::Duration;

pub fn ns(ns: u64) -> String {
    time(Duration::from_nanos(ns))
}

impl Shown {
    /// What it shows in sentences, the most important one first.
    pub fn facts(&self) -> Vec<String> {
        let connections = &self.connections;
        let mut facts = vec![format!(
            "{} of {}, {} requests, {:.0}/s (peak {}/s)",
            ns(self.time_ns),
            self.about.protocol,
            count(self.requests),
            self.requests as f64 / (self.time_ns as f64 / 1e9).max(1e-9),
            count(self.peak_per_second),
        )];
        let of = |number: u64, what: &str| format!("{} {what}", count(number));
        let known = [
            (Known::Times, format!("{:.2} under way on average", self.concurrency)),
            (Known::Errors, counted(self.errors, "error")),
            (Known::All, of(self.unanswered, "without an answer")),
            (Known::All, of(self.pipelined, "pipelined")),
        ];
        let known: Vec<String> =
            known.into_iter().filter(|(least, _)| self.about.known <= *least).map(|(_, fact)| fact).collect();
        facts.extend((!known.is_empty()).then(|| known.join(", ")));
        facts.push(format!(
            "{}, at most {} at once, {:.0} % of their time idle in transaction",
            counted(connections.opened, "connection"),
            count(connections.most_open),
            100.0 * connections.idle_in_transaction,
        ));
        let of_log = match self.about.known {
            Known::All => None,
            Known::Errors => Some("times are the server's, and of answers only errors are known"),
            Known::Times => Some("times are the server's, and answers are not known"),
            Known::Requests => Some("neither times nor answers are known, and shares are of calls"),
        };
        facts.extend(of_log.map(|what| format!("From a log: {what}.")));
        facts.extend((self.data_bytes > 0).then(|| format!("{} of bulk data", size(self.data_bytes))));
        facts
    }

    /// Why connections, or their rest, were not read.
    pub fn unreadable(&self) -> impl Iterator<Item = String> {
        self.connections.unreadable.iter().map(|(why, times)| format!("{times} not read: {why}"))
    }

    /// That the recorder did not end in order, if it did not.
    pub fn cut_short(&self) -> Option<String> {
        let left_out = match self.ending.left_out {
            0 => String::new(),
            bytes => format!("; {bytes} bytes of a last block that is cut off are left out"),
        };
        (!self.ending.complete).then(|| format!("The recorder did not end in order{left_out}."))
    }
}
