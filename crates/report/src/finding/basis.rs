//! The basis of the results: what was tested and verified, the noise floor, and durability.

use crate::finding::Context;
use crate::format::{list, nanos, settings_list};
use crate::labels::{Axis, Labels, OperationLabels};
use crate::messages::Language;
use crate::noise::{self, NoiseFloor};
use crate::proof;
use crate::results::overhead_of;
use crate::target::TargetId;
use crate::wording::{class_name, listed, many, promise, rounds, say, with_version};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::run::{MIN_INTERLEAVED_ROUNDS, Run, Sampled};
use kurabe_core::verification::Verification;
use kurabe_core::{sort, units};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
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

/// What was tested and how.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tested {
    pub targets: Vec<TargetId>,
    pub cpus: u64,
    pub rounds: u32,
    pub comparisons: u32,
    pub further_comparisons: u32,
    /// The slice length, if trials were interleaved.
    pub slice_ns: Option<u64>,
    /// Restarts of throwaway servers between blocks of rounds.
    pub restarts: u32,
    /// What verdicts claim.
    pub sampled: Sampled,
    /// Why trials were not interleaved.
    pub not_interleaved: Option<NotInterleaved>,
    /// Rounds; empty if the run was analysed once, at its end.
    pub analysed_after: Vec<u32>,
    /// The threads that clients shared, the most of any trial; `None`: each client had its own.
    pub shared_threads: Option<u64>,
    /// The agents that ran the clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Agents>,
}

/// The basis of the results.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the first lines of each kind and the schema describe its members")]
pub enum Basis {
    /// What was tested and how.
    Tested(Tested),
    /// The noise floors.
    NoiseFloor { largest: Option<f64>, each: Vec<NoiseFloor> },
    /// The tool's own overhead for the baseline.
    ToolOverhead { each: Vec<Overhead> },
    /// What was verified in all cells, and the maximum share of the client's CPU for checking. `verification`: `None`
    /// if the version that made the run did not record it.
    Verified { verification: Option<Verification>, cpu_share: Option<f64> },
    /// The durability class of a target.
    Durability {
        target: TargetId,
        version: String,
        class: Option<DurabilityClass>,
        settings: BTreeMap<String, String>,
    },
}

impl Basis {
    pub(super) fn sentence(&self, labels: &Labels) -> String {
        let language = labels.language;
        match self {
            Self::Tested(tested) => tested.sentence(labels),
            Self::NoiseFloor { largest: Some(largest), each } => noise::sentence(*largest, each, labels),
            Self::NoiseFloor { largest: None, .. } => say!(
                language,
                "what two equal measurements differ by is not known (needs an A/A control and two rounds).",
                "同じ条件の 2 つの測定の差は不明です(A/A 比較と 2 ラウンドが必要です)。",
            ),
            Self::ToolOverhead { each } => {
                let one = |one: &Overhead| {
                    let (time, operation) = (nanos(one.ns_per_op), &one.operation);
                    say!(language, "{time} per {operation}", "{operation} 1 回に {time}")
                };
                let all = listed(&each.iter().map(one).collect::<Vec<_>>(), language);
                say!(
                    language,
                    "the tool's own overhead is {all} (baseline, on the null target).",
                    "道具自身の負荷: {all}(対象 null: で測った基準)。",
                )
            }
            Self::Verified { verification, cpu_share } => {
                proof::sentence(verification.as_ref(), *cpu_share, language)
            }
            Self::Durability { target, version, class, settings } => {
                let settings = settings_list(settings);
                let space = if language == Language::Japanese { "" } else { " " };
                let settings = if settings.is_empty() { settings } else { format!("{space}({settings})") };
                let (target, name) = (with_version(target, version, labels), class_name(*class));
                let promise = promise(*class, language);
                say!(
                    language,
                    "durability of {target}: {name}: {promise}{settings}.",
                    "{target} の耐久性は {name}: {promise}ます{settings}。",
                )
            }
        }
    }
}

impl Tested {
    fn sentence(&self, labels: &Labels) -> String {
        let (language, tested) = (labels.language, labels.tested());
        let cpus = match self.cpus {
            0 => String::new(),
            n => {
                let cpus = many(n, "CPU", "CPUs");
                say!(language, ", on a machine with {cpus}", "、CPU {n} 個のマシン")
            }
        };
        let agents = self.fleet.as_ref().map(|fleet| fleet.clause(language));
        let agents = agents.map_or_else(String::new, |agents| say!(language, "; {agents}", "、{agents}"));
        let threads = self.shared_threads.map_or_else(String::new, |n| {
            let threads = many(n, "thread", "threads");
            say!(
                language,
                "; where there were more clients, they shared {threads}",
                "、クライアントがそれより多いときはスレッド {n} 本を共有",
            )
        });
        let slices = self.slice_ns.map(|ns| units::time(Duration::from_nanos(ns)));
        let slices = slices.map_or_else(String::new, |slice| {
            say!(
                language,
                ", the first of each block with continuous trials, in which limits are observed, the others interleaved in \
                 slices of {slice}, which give rates and ratios",
                "、各ブロックの最初は連続した試行(限界の観測)、ほかは {slice} ごとに交互(数値と倍率)",
            )
        });
        let separate = self.not_interleaved.as_ref().map(|why| why.clause(labels)).unwrap_or_default();
        let (blocks, compared) = (self.blocks(language), self.compared(language));
        let targets = labels.targets_of(&self.targets);
        let (n, rounds) = (self.rounds, rounds(self.rounds));
        say!(
            language,
            "tested: {targets}{tested}{cpus}{agents}{threads}. {rounds} in random order{blocks}{slices}{separate}; {compared}.",
            "条件: {targets}{tested}{cpus}{agents}{threads}。無作為な順の {n} ラウンド{blocks}{slices}{separate}。{compared}",
        )
    }

    /// With what confidence the intervals of the comparisons hold, and of what, as a clause; in Japanese as sentences.
    fn compared(&self, language: Language) -> String {
        let between = match self.sampled {
            Sampled::TheseServers => {
                say!(language, "between these servers as they ran", "そのとき動いていたサーバーどうし")
            }
            Sampled::AnyStart => {
                say!(language, "between any two starts of these servers", "サーバーの任意の起動どうし")
            }
        };
        let after: Vec<String> = self.analysed_after.iter().map(ToString::to_string).collect();
        let rounds = listed(&after, language);
        let after = if after.is_empty() {
            String::new()
        } else {
            say!(language, ", at analyses after {rounds} rounds", "、{rounds} ラウンド後の解析で")
        };
        let (n, further) = (self.comparisons, self.further_comparisons);
        let intervals = if n == 1 {
            "the interval of 1 comparison holds".to_owned()
        } else {
            format!("the intervals of {n} comparisons hold together")
        };
        let compared = if n == 0 {
            say!(language, "nothing was compared", "何も比較していません。")
        } else {
            say!(
                language,
                "{intervals} with 95 % confidence {between}{after}",
                "比較 {n} 件の区間は、{between}について{after}同時に 95 % で成り立ちます。",
            )
        };
        let so = if further == 1 {
            "so does that of 1 comparison of another metric".to_owned()
        } else {
            format!("so do those of {further} comparisons of other metrics")
        };
        let further = match further {
            0 => String::new(),
            n => say!(language, "; {so}, separately", "ほかの指標の比較 {n} 件も、別に同様です。"),
        };
        compared + &further
    }

    /// The blocks of rounds, as a clause; empty without restarts.
    fn blocks(&self, language: Language) -> String {
        if self.restarts == 0 {
            return String::new();
        }
        let means = match self.sampled {
            Sampled::TheseServers => String::new(),
            Sampled::AnyStart => {
                say!(language, "; the samples are the means of blocks", "(標本はブロックの平均)")
            }
        };
        let blocks = self.restarts + 1;
        say!(
            language,
            ", in {blocks} blocks with restarts of throwaway servers in between{means}",
            "、一時サーバーを再起動して {blocks} ブロック{means}",
        )
    }
}

impl Agents {
    /// What they did, as a clause.
    pub(crate) fn clause(&self, language: Language) -> String {
        let spread = units::time(Duration::from_nanos(self.start_spread_ns));
        let (n, names) = (self.names.len(), listed(&self.names, language));
        if n == 1 {
            return say!(language, "clients on agent {names}", "クライアントはエージェント {names}");
        }
        say!(
            language,
            "clients on {n} agents ({names}), which started at most {spread} apart",
            "クライアントはエージェント {n} 個({names})、開始の差は最大 {spread}",
        )
    }
}

impl NotInterleaved {
    /// The reason as a clause.
    fn clause(&self, labels: &Labels) -> String {
        let language = labels.language;
        let why = match self {
            Self::OpenLoop => say!(language, "open loop", "開ループ"),
            Self::FewRounds => say!(
                language,
                "needs {MIN_INTERLEAVED_ROUNDS} rounds",
                "{MIN_INTERLEAVED_ROUNDS} ラウンドが必要",
            ),
            Self::Fleet => say!(language, "on a fleet", "複数のエージェント"),
            Self::Asked => say!(language, "as requested", "指定による"),
            Self::Some { cells, operations } => {
                let results = many((*cells).into(), "result", "results");
                let (all, names) = (list(operations), labels.operations_of(operations));
                return say!(
                    language,
                    "; {results} of {all} are measured in separate trials (they write to the same tables, need 64 or more \
                     clients, depend on earlier trials, or are not compared)",
                    "、{names} の結果 {cells} 件は別々の試行(同じ表への書き込み、64 以上のクライアント、前の試行への依存、または比較なし)",
                );
            }
        };
        say!(language, "; trials are not interleaved ({why})", "、交互でない試行({why})")
    }
}

/// What was tested, noise floor, overhead, verification and durability.
pub(super) fn findings(context: &Context<'_>) -> Vec<Basis> {
    let header = &context.run.header;
    let (interleaved, separate) = interleaved(context.run);
    let tested = Basis::Tested(Tested {
        targets: context.labels.ids.clone(),
        cpus: header.machine.cpus,
        rounds: context.rounds,
        comparisons: context.comparisons[0],
        further_comparisons: context.comparisons[1],
        slice_ns: header.spec.slice_ns.filter(|_| !interleaved.is_empty()),
        restarts: header.spec.block(context.rounds.saturating_sub(1)),
        sampled: header.spec.sampled(),
        not_interleaved: not_interleaved(context, &separate.difference(&interleaved).copied().collect()),
        analysed_after: context.rule.analysed_after(),
        shared_threads: shared_threads(context.run),
        fleet: agents(context.run),
    });
    let noise = Basis::NoiseFloor { largest: context.noise.largest(), each: context.noise.list() };
    let overhead = overhead(context);
    let overhead = (!overhead.is_empty()).then_some(Basis::ToolOverhead { each: overhead });
    let verified = Basis::Verified {
        verification: proof::sum(context.cells.iter().map(|cell| &cell.verified.proven)),
        cpu_share: context.cells.iter().filter_map(|cell| cell.verify_share).max_by(f64::total_cmp),
    };
    let durability = context.known_targets().map(|(id, target)| Basis::Durability {
        target: id.clone(),
        version: target.version.clone(),
        class: target.durability,
        settings: target.durability_settings.clone(),
    });
    [tested, noise].into_iter().chain(overhead).chain([verified]).chain(durability).collect()
}

/// Measured operations: the cell's position and the operation's name.
type Measured<'a> = BTreeSet<(usize, &'a str)>;

/// Those with interleaved trials, and those with separate ones in rounds whose trials are interleaved.
fn interleaved(run: &Run) -> (Measured<'_>, Measured<'_>) {
    let (mut interleaved, mut separate) = (BTreeSet::new(), BTreeSet::new());
    for (trial, measured) in run.measured().filter(|(trial, _)| !run.header.spec.is_continuous(trial.round)) {
        let of = if measured.slices > 0 { &mut interleaved } else { &mut separate };
        of.insert((trial.cell, &*trial.operation));
    }
    (interleaved, separate)
}

/// The threads that clients shared, the most of any trial; `None` if each client had its own.
fn shared_threads(run: &Run) -> Option<u64> {
    run.measured().map(|(_, measured)| measured.threads).max().filter(|threads| *threads > 0)
}

/// The agents that ran the clients; `None` without a fleet.
fn agents(run: &Run) -> Option<Agents> {
    let names: Vec<String> = run.header.agents.iter().map(|agent| agent.name.clone()).collect();
    let spread = run.measured().filter_map(|(_, measured)| Some(measured.fleet.as_ref()?.start_spread_ns));
    (!names.is_empty()).then(|| Agents { names, start_spread_ns: spread.max().unwrap_or(0) })
}

/// Why the `separate` trials were not interleaved.
fn not_interleaved(context: &Context<'_>, separate: &Measured<'_>) -> Option<NotInterleaved> {
    let spec = &context.run.header.spec;
    if spec.slice_ns.is_some() {
        let operations = sort::distinct(separate.iter().map(|(_, operation)| *operation));
        return (!separate.is_empty()).then(|| NotInterleaved::Some {
            cells: separate.len() as u32,
            operations: operations.into_iter().map(str::to_owned).collect(),
        });
    }
    Some(if spec.fleet.is_some() {
        NotInterleaved::Fleet
    } else if spec.arrivals.is_some() {
        NotInterleaved::OpenLoop
    } else if spec.rounds < MIN_INTERLEAVED_ROUNDS {
        NotInterleaved::FewRounds
    } else {
        NotInterleaved::Asked
    })
}

/// The tool's overhead for the baseline: that of the first target with it, for each operation.
fn overhead(context: &Context<'_>) -> Vec<Overhead> {
    let labels = context.labels;
    let baseline = Axis::baselines(&labels.axes);
    let of = |operation: &OperationLabels| {
        let ns_per_op = overhead_of(&context.run.header.overhead, &baseline, &operation.name)?;
        Some(Overhead { operation: operation.name.clone(), ns_per_op })
    };
    labels.operations.iter().filter_map(of).collect()
}
