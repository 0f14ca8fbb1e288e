//! The axes that an experiment has: its own, and those of every experiment.

use kurabe_core::axis::AxisInfo;
use kurabe_core::compression::COMPRESSION;
use kurabe_core::cpus::{CPU_PLACEMENT, CPUS};
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::load::RATE;
use kurabe_experiments::registry::EXPERIMENTS;

/// The axes of an experiment, and the common ones.
pub(crate) fn axes_of(info: &ExperimentInfo) -> impl Iterator<Item = &'static AxisInfo> + use<> {
    info.axes.iter().chain(common_axes(info.axes))
}

/// The axes that every experiment has beside these, its own.
pub(crate) fn common_axes(own: &'static [AxisInfo]) -> impl Iterator<Item = &'static AxisInfo> {
    let common: [&'static AxisInfo; 4] = [&RATE, &CPUS, &CPU_PLACEMENT, &COMPRESSION];
    common.into_iter().filter(|axis| !own.iter().any(|known| known.name == axis.name))
}

/// The axes of all experiments, each name once, by which options override a suite.
pub(crate) fn suite_axes() -> Vec<&'static AxisInfo> {
    let built_in = EXPERIMENTS.iter().flat_map(|experiment| experiment.info.axes);
    let mut all: Vec<&AxisInfo> = Vec::new();
    for axis in kurabe_experiments::custom::axes().iter().chain(common_axes(&[])).chain(built_in) {
        if !all.iter().any(|known| known.name == axis.name) {
            all.push(axis);
        }
    }
    all
}

/// The axes that any command line of a run has, each name once.
pub(crate) fn all_axes() -> Vec<&'static AxisInfo> {
    let mut all = suite_axes();
    for axis in kurabe_experiments::replay::axes() {
        if !all.iter().any(|known| known.name == axis.name) {
            all.push(axis);
        }
    }
    all
}
