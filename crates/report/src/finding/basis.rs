//! Findings on the basis of the results: what was tested and verified, the noise floor, and durability.

use super::wording::{class_name, many, promise, rounds, with_version};
use crate::format::{list, nanos, percent, settings_list};
use crate::labels::Labels;
use crate::metrics::is_speed;
use crate::proof::writes;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::run::{MIN_INTERLEAVED_ROUNDS, Sampled};
use kurabe_core::units;
use kurabe_core::verification::Verification;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Why trials were not interleaved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "why")]
pub enum NotInterleaved {
    OpenLoop,
    /// There were too few rounds.
    FewRounds,
    /// The clients ran on a fleet.
    Fleet,
    /// The user requested separate trials.
    Asked,
    /// Some trials could not be interleaved.
    Some {
        /// The number of cells with separate trials, each operation counted separately.
        cells: u32,
        /// The operations of those trials.
        operations: Vec<String>,
    },
}

/// What two instances of one target differ by in an operation, beyond the noise of the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// The target's name.
    pub target: String,
    pub operation: String,
    pub metric: String,
    /// The relative difference: 0.03 is 3 %.
    pub noise_floor: f64,
    /// Whether the A/A control ran on a second instance of the server; otherwise on the same server.
    pub second_instance: bool,
}

/// The tool's own overhead.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overhead {
    pub operation: String,
    /// Wall time per operation, in nanoseconds.
    pub ns_per_op: f64,
}

/// The agents that ran the clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Agents {
    pub names: Vec<String>,
    /// The longest time between the first agent's start and the last one's in any trial, in nanoseconds.
    pub start_spread_ns: u64,
}

/// The basis of the results.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Basis {
    /// What was tested and how. `slice_ns`: the slice length, if trials were interleaved; `restarts`: restarts of
    /// throwaway servers between blocks of rounds; `sampled`: what verdicts claim; `not_interleaved`: why trials were not interleaved.
    /// `analysed_after`: rounds; empty if the run was analysed once, at its end. `shared_threads`: the threads that
    /// clients shared, the most of any trial; `None`: each client had its own. `fleet`: the agents that ran the clients.
    Tested {
        targets: Vec<String>,
        cpus: u64,
        rounds: u32,
        comparisons: u32,
        further_comparisons: u32,
        slice_ns: Option<u64>,
        restarts: u32,
        sampled: Sampled,
        not_interleaved: Option<NotInterleaved>,
        analysed_after: Vec<u32>,
        shared_threads: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        fleet: Option<Agents>,
    },
    /// The noise floors.
    NoiseFloor { largest: Option<f64>, each: Vec<NoiseFloor> },
    /// The tool's own overhead for the baseline.
    ToolOverhead { each: Vec<Overhead> },
    /// What was verified in all cells, and the maximum share of the client's CPU for checking. `verification`: `None`
    /// if the version that made the run did not record it.
    Verified { verification: Option<Verification>, cpu_share: Option<f64> },
    /// The durability class of a target.
    Durability {
        target: String,
        version: String,
        class: Option<DurabilityClass>,
        settings: BTreeMap<String, String>,
    },
}

impl Basis {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        match self {
            Self::Tested {
                targets,
                cpus,
                rounds: made,
                comparisons,
                further_comparisons,
                slice_ns,
                restarts,
                sampled,
                not_interleaved,
                analysed_after,
                shared_threads,
                fleet,
            } => {
                let (varied, held) = labels.tested();
                let varied =
                    if varied.is_empty() { String::new() } else { format!("; {}", varied.join("; ")) };
                let held =
                    if held.is_empty() { String::new() } else { format!("; constant: {}", held.join(", ")) };
                let cpus = match cpus {
                    0 => String::new(),
                    n => format!(", on a machine with {}", many(*n, "CPU", "CPUs")),
                };
                let agents = fleet.as_ref().map_or_else(String::new, |fleet| format!("; {}", fleet.clause()));
                let slices = slice_ns.map_or_else(String::new, |ns| {
                    let slice = units::time(Duration::from_nanos(ns));
                    format!(
                        ", the first of each block with continuous trials, which are the figures, the others interleaved \
                         in slices of {slice}, which give the ratios"
                    )
                });
                let separate = not_interleaved.as_ref().map_or_else(String::new, not_interleaved_because);
                let compared = compared(*comparisons, *sampled);
                let further = match further_comparisons {
                    0 => String::new(),
                    1 => "; so does that of 1 comparison of another metric, separately".to_owned(),
                    n => format!("; so do those of {n} comparisons of other metrics, separately"),
                };
                let blocks = blocks(*restarts, *sampled);
                let threads = shared_threads.map_or_else(String::new, |n| {
                    format!("; where there were more clients, they shared {}", many(n, "thread", "threads"))
                });
                let analysed: Vec<String> = analysed_after.iter().map(ToString::to_string).collect();
                let analysed = (*comparisons > 0 && !analysed.is_empty())
                    .then(|| format!(", at analyses after {} rounds", list(&analysed)));
                let analysed = analysed.unwrap_or_default();
                let (targets, rounds) = (labels.targets_of(targets), rounds(*made));
                format!(
                    "tested: {targets}{varied}{held}{cpus}{agents}{threads}. {rounds} in random order{blocks}{slices}{separate}; \
                     {compared}{analysed}{further}."
                )
            }
            Self::NoiseFloor { largest: Some(largest), each } => noise_floors(*largest, each, labels),
            Self::NoiseFloor { largest: None, .. } => {
                "what two equal measurements differ by is not known (needs an A/A control and two rounds)."
                    .to_owned()
            }
            Self::ToolOverhead { each } => {
                let each: Vec<String> = each
                    .iter()
                    .map(|one| format!("{} per {}", nanos(one.ns_per_op), one.operation))
                    .collect();
                format!("the tool's own overhead is {} (baseline, on the null target).", list(&each))
            }
            Self::Verified { verification, cpu_share } => {
                let cost = cpu_share.map_or_else(String::new, |share| {
                    format!("; checking took at most {} of the client's CPU", percent(share))
                });
                let Some(all) = verification else {
                    return format!(
                        "the version of Kurabe that made the run did not record how it was verified{cost}."
                    );
                };
                let answers = format!("{} replies compared byte for byte", units::count(all.answers));
                match (all.answers, all.writes) {
                    (0, 0) => format!("nothing was verified{cost}."),
                    (_, 0) => format!("verified: {answers}{cost}."),
                    (0, _) => format!("verified: {}{cost}.", writes(all)),
                    _ => format!("verified: {answers}; {}{cost}.", writes(all)),
                }
            }
            Self::Durability { target, version, class, settings } => {
                let settings = settings_list(settings);
                let settings = if settings.is_empty() { settings } else { format!(" ({settings})") };
                let (target, class_name) = (with_version(target, version, labels), class_name(*class));
                format!("durability of {target}: {class_name}: {}{settings}.", promise(*class))
            }
        }
    }
}

impl Agents {
    /// What they did, as a clause.
    pub(crate) fn clause(&self) -> String {
        let spread = units::time(Duration::from_nanos(self.start_spread_ns));
        let names = list(&self.names);
        match self.names.len() {
            1 => format!("clients on agent {names}"),
            n => format!("clients on {n} agents ({names}), which started at most {spread} apart"),
        }
    }
}

/// With what confidence the intervals of the comparisons hold, and of what, as a clause.
fn compared(comparisons: u32, sampled: Sampled) -> String {
    let between = match sampled {
        Sampled::TheseServers => "between these servers as they ran",
        Sampled::AnyStart => "between any two starts of these servers",
    };
    match comparisons {
        0 => "nothing was compared".to_owned(),
        1 => format!("the interval of 1 comparison holds with 95 % confidence {between}"),
        n => format!("the intervals of {n} comparisons hold together with 95 % confidence {between}"),
    }
}

/// The blocks of rounds, as a clause; empty without restarts.
fn blocks(restarts: u32, sampled: Sampled) -> String {
    if restarts == 0 {
        return String::new();
    }
    let means = if sampled == Sampled::AnyStart { "; the samples are the means of blocks" } else { "" };
    format!(", in {} blocks with restarts of throwaway servers in between{means}", restarts + 1)
}

/// Why trials were not interleaved, as a clause.
fn not_interleaved_because(why: &NotInterleaved) -> String {
    match why {
        NotInterleaved::OpenLoop => "; trials are not interleaved (open loop)".to_owned(),
        NotInterleaved::FewRounds => {
            format!("; trials are not interleaved (needs {MIN_INTERLEAVED_ROUNDS} rounds)")
        }
        NotInterleaved::Fleet => "; trials are not interleaved (on a fleet)".to_owned(),
        NotInterleaved::Asked => "; trials are not interleaved (as requested)".to_owned(),
        NotInterleaved::Some { cells, operations } => format!(
            "; {} of {} are measured in separate trials (they write to the same tables, need 64 or more \
             clients, depend on earlier trials, or are not compared)",
            many((*cells).into(), "result", "results"),
            list(operations)
        ),
    }
}

fn noise_floors(largest: f64, each: &[NoiseFloor], labels: &Labels) -> String {
    let one = |floor: &NoiseFloor| {
        let of = if is_speed(&floor.metric) { String::new() } else { format!("{} of ", floor.metric) };
        format!("{of}{} {}", labels.plural(&floor.operation), percent(floor.noise_floor))
    };
    let of_target = |floors: &[NoiseFloor]| {
        let name = labels.several_targets().then(|| labels.target(&floors[0].target) + " ");
        let on = if floors[0].second_instance { "a second instance" } else { "the same server" };
        let each: Vec<String> = floors.iter().map(one).collect();
        format!("{}on {on}: {}", name.unwrap_or_default(), each.join(", "))
    };
    let targets: Vec<String> = each.chunk_by(|a, b| a.target == b.target).map(of_target).collect();
    let whose = if targets.len() > 1 { "one combination of each target" } else { "one combination" };
    let (largest, targets) = (percent(largest), targets.join("; "));
    format!(
        "two equal measurements of {whose} in each round may differ by {largest} more than their rounds \
         explain ({targets}). No interval includes that."
    )
}
