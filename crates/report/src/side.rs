//! The sides of a comparison, by identity: renderers name them.

use crate::labels::Labels;
use crate::messages::{Language, Message};
use kurabe_core::axis::AxisValue;
use serde::Serialize;

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// A target of the run, by its position.
    Target(usize),
    /// A value of the axis in which the sides differ.
    Value(AxisValue),
    /// The first of two runs.
    FirstRun,
    /// The second of two runs.
    SecondRun,
    /// The run of two targets that are compared as two runs are.
    Run,
}

impl Labels {
    /// A side of a comparison by this axis: `SQLite`, `compress zstd`, `16 clients`.
    pub fn side(&self, axis: &str, side: &Side) -> String {
        match side {
            Side::Target(target) => self.targets.get(*target).cloned().unwrap_or_default(),
            Side::Value(value) => {
                self.axis(axis).map_or_else(|| value.to_string(), |axis| axis.name_value(value))
            }
            Side::FirstRun => Message::FirstRun.text(self.language).to_owned(),
            Side::SecondRun => Message::SecondRun.text(self.language).to_owned(),
            Side::Run => Message::TheRun.text(self.language).to_owned(),
        }
    }

    /// A side of a comparison with its preposition, which Japanese does not have: `on SQLite`, `with compress zstd`.
    pub fn with(&self, axis: &str, side: &Side) -> String {
        let word = if matches!(side, Side::Value(_)) { "with" } else { "on" };
        let side = self.side(axis, side);
        if self.language == Language::Japanese { side } else { format!("{word} {side}") }
    }
}
