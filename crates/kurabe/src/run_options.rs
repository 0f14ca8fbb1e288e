//! The options of `kurabe run`, and of what is made of the same: suites, workloads, pgbench's scripts; and the axes, which are options too.

use crate::commands::FileOptions;
use crate::options::{Source, Sourced, Value, options};
use clap::ArgMatches;
use clap::parser::ValueSource;
use kurabe_core::Result;
use kurabe_core::axis::AxisInfo;
use kurabe_core::compression::COMPRESSION;
use kurabe_core::cpus::{CPU_PLACEMENT, CPUS};
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::load::RATE;
use kurabe_experiments::registry::EXPERIMENTS;
use std::path::PathBuf;

options! {
    /// What is done with a run, and where it goes.
    MainOptions {
        suite: Option<PathBuf>,
        again: Option<String>,
        resume: Option<String>,
        trust: bool,
        max_rounds: Sourced<Option<String>>,
        dry_run: bool,
        no_html: bool,
        yes: bool,
        wait_quiet: Option<String>,
        label: Vec<String>,
        previous: bool,
        only: Vec<String>,
        operation: Vec<String>,
        allow_eviction: bool,
        capture: Option<PathBuf>,
        query: Vec<String>,
        runs_dir: Option<PathBuf>,
    }
}

options! {
    /// Targets, and the option whose value is taken for one.
    TargetOptions {
        target: Sourced<Vec<String>>,
        more_targets: Sourced<Vec<String>>,
        via: Sourced<Vec<String>>,
        db: Option<String>,
        interleave: Sourced<Option<String>>,
    }
}

options! {
    /// Custom workloads, and their targets.
    WorkloadOptions {
        define: Vec<String>,
        write: bool,
        target: Vec<String>,
        more_targets: Vec<String>,
        via: Vec<String>,
    }
}

options! {
    /// Scripts of pgbench, and its own options.
    PgbenchOptions {
        script: Vec<String>,
        builtin: Vec<String>,
        scale: Option<String>,
        init: bool,
        skip_some_updates: bool,
        select_only: bool,
        connect: bool,
        client: Option<String>,
        jobs: Option<String>,
        time: Option<String>,
        transactions: Option<String>,
        rate_limit: Option<String>,
        protocol: Option<String>,
        max_tries: Option<String>,
    }
}

/// Declares the settings that options and suite files share, by the names of their fields.
macro_rules! settings {
    ($($field:ident),+ $(,)?) => {
        /// The texts of the settings that options and suite files share; `None` if one is not given.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Settings {
            $(pub(crate) $field: Option<String>,)+
        }

        impl Settings {
            /// Reads each by its name.
            pub(crate) fn read(mut text: impl FnMut(&str) -> Result<Option<String>>) -> Result<Self> {
                Ok(Self { $($field: text(&stringify!($field).replace('_', "-"))?,)+ })
            }

            /// Reads those of the command line, of the environment and of the settings file for which `counts` is true.
            fn of(matches: &ArgMatches, counts: fn(&Sourced<Option<String>>) -> bool) -> Self {
                let text = |name: &str| Some(Sourced::read(matches, name)).filter(counts)?.value;
                Self { $($field: text(&stringify!($field).replace('_', "-")),)+ }
            }
        }
    };
}
settings!(
    requests, duration, budget, rounds, until, margin, max_rounds, interleave, restarts, threads, compare,
    seed, records, slo, timeout, arrivals, cache, remote, setup, fleet, agents, agent_label, on_lost_agent,
    durability,
);

/// The values of an axis.
#[derive(Clone, Debug)]
pub(crate) struct AxisOption {
    pub(crate) axis: &'static AxisInfo,
    texts: Vec<String>,
    /// Whether they are from the settings file.
    pub(crate) is_default: bool,
}

impl AxisOption {
    /// Each value, as this axis separates them.
    pub(crate) fn values(&self, axis: &AxisInfo) -> Vec<String> {
        self.texts.iter().flat_map(|text| axis.list(text)).map(str::to_owned).collect()
    }
}

/// The options of `kurabe run`.
#[derive(Clone, Debug)]
pub(crate) struct RunOptions {
    pub(crate) main: MainOptions,
    pub(crate) targets: TargetOptions,
    pub(crate) workload: WorkloadOptions,
    pub(crate) pgbench: PgbenchOptions,
    pub(crate) files: FileOptions,
    /// All settings; …
    pub(crate) settings: Settings,
    /// … those of the settings file, which a suite precedes; …
    pub(crate) defaults: Settings,
    /// … and the others, which precede a suite.
    pub(crate) chosen: Settings,
    /// The axes that are named, each once.
    pub(crate) axes: Vec<AxisOption>,
    /// The names of all options that were given on the command line.
    pub(crate) given: Vec<String>,
}

impl RunOptions {
    /// Reads them from the command line of `kurabe run`, or of an experiment below it.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let axis = |axis: &'static AxisInfo| {
            let Sourced { value: texts, source } = Sourced::<Vec<String>>::read(matches, axis.name);
            source.map(|source| AxisOption { axis, texts, is_default: source == Source::Default })
        };
        let is_given = |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        Self {
            main: MainOptions::of(matches),
            targets: TargetOptions::of(matches),
            workload: WorkloadOptions::of(matches),
            pgbench: PgbenchOptions::of(matches),
            files: FileOptions::of(matches),
            settings: Settings::of(matches, |_| true),
            defaults: Settings::of(matches, Sourced::is_default),
            chosen: Settings::of(matches, |text| !text.is_default()),
            axes: all_axes().into_iter().filter_map(axis).collect(),
            given: matches.ids().filter(is_given).map(ToString::to_string).collect(),
        }
    }

    /// Whether an option was given on the command line.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|given| given == name)
    }
}

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
