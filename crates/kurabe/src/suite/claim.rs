//! The suite of a claim: what is measured to answer it, in the cheapest way that decides it.

use super::Request;
use super::file::{KEYS, parse_table};
use crate::run_options::Settings;
use kurabe_core::Result;
use kurabe_core::custom::CustomWorkload;
use std::time::Duration;
use toml::Table;

/// The default time limit of a claim's run.
const BUDGET: &str = "60s";

impl Request {
    /// The keys of a suite, which a claim has too.
    pub(crate) fn suite_keys() -> &'static [&'static str] {
        &KEYS
    }

    /// Reads the suite of a claim. An axis that it does not name has only its first default value, and rounds are added
    /// until the claim is decided.
    ///
    /// # Errors
    /// As for a suite file.
    pub(crate) fn of_claim(table: &Table, custom: Option<CustomWorkload>) -> Result<Self> {
        let defaults = Settings {
            until: Some("conclusive".to_owned()),
            budget: Some(BUDGET.to_owned()),
            ..Settings::default()
        };
        let mut request = parse_table(table, custom, defaults)?;
        for axis in request.find()?.info.axes {
            if let Some(first) = axis.default.first() {
                request.axes.entry(axis.name.to_owned()).or_insert_with(|| vec![(*first).to_owned()]);
            }
        }
        // Values out of range are refused here.
        request.spec()?;
        Ok(request)
    }

    /// The same on these targets. `write`: whether a custom workload may change existing tables.
    #[must_use]
    pub(crate) fn on(mut self, targets: Vec<String>, write: bool) -> Self {
        self.targets = targets;
        if let Some(custom) = &mut self.custom {
            custom.write = write;
        }
        self
    }

    /// The same with this time limit.
    #[must_use]
    pub(crate) fn within(mut self, budget: Option<Duration>) -> Self {
        self.budget = budget.or(self.budget);
        self
    }

    pub(crate) fn time_limit(&self) -> Option<Duration> {
        self.budget
    }
}
