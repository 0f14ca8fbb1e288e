//! A built-in experiment: its description and the functions that plan its cells.

use crate::prelude::*;
use std::time::Duration;

pub(crate) struct BuiltIn {
    pub(crate) info: &'static ExperimentInfo,
    pub(crate) plan: fn(&Cell, &Dataset) -> Result<PlannedCell>,
    /// Plans a cell on a target that is an application.
    pub(crate) pages: Option<fn(&Cell) -> Result<PlannedCell>>,
    pub(crate) takes_cache: bool,
    pub(crate) takes_remote: bool,
    /// The default time of a run for each target, if that of most experiments is too short.
    pub(crate) budget: Option<Duration>,
}

impl BuiltIn {
    /// An experiment on databases, without pages, without a cache and without a second server.
    pub(crate) const fn new(
        info: &'static ExperimentInfo,
        plan: fn(&Cell, &Dataset) -> Result<PlannedCell>,
    ) -> Self {
        Self { info, plan, pages: None, takes_cache: false, takes_remote: false, budget: None }
    }
}

impl Experiment for BuiltIn {
    fn info(&self) -> &'static ExperimentInfo {
        self.info
    }

    fn takes_cache(&self) -> bool {
        self.takes_cache
    }

    fn takes_remote(&self) -> bool {
        self.takes_remote
    }

    fn budget(&self) -> Option<Duration> {
        self.budget
    }

    fn plan(&self, cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
        (self.plan)(cell, dataset)
    }

    fn pages(&self) -> Option<fn(&Cell) -> Result<PlannedCell>> {
        self.pages
    }
}
