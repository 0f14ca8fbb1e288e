//! Sentences of findings in Japanese. What servers, drivers and licences say is as they say it, and so are evidence and
//! reasons that come from the kernel's counters.

mod figures;
mod runs;

use super::{Comparison, Finding, Interval, Limit, Measured, Note, Pair, Progress, Scope, Trials, Why};
use crate::attribution::{Bottleneck, Confidence};
use crate::format::percent;
use crate::labels::Labels;
use crate::messages::Language;
use crate::metrics::is_speed;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::units;
use std::time::Duration;

/// The sentence of a finding; `None` of one that is in English only.
pub(super) fn sentence(finding: &Finding, labels: &Labels) -> Option<String> {
    match finding {
        Finding::Comparison(comparison) => Some(compared(comparison, labels)),
        Finding::Progress(progress) => Some(progressed(progress)),
        Finding::Trials(trials) => Some(tried(trials, labels)),
        Finding::Note(note) => noted(note, labels),
        Finding::Values(values) => Some(figures::values(values, labels)),
        Finding::Rates(rates) => Some(figures::rates(rates, labels)),
        Finding::Basis(basis) => Some(figures::basis(basis, labels)),
        Finding::Runs(runs) => Some(runs::sentence(runs, labels)),
    }
}

/// A factor for a reader: `0.97`, `5.1`, `120`.
fn factor(value: f64) -> String {
    match value {
        value if value < 0.01 => "0.01 未満".to_owned(),
        value if value < 0.1 => format!("{value:.3}"),
        value if value < 1.1 => format!("{value:.2}"),
        value if value < 10.0 => format!("{value:.1}"),
        value if value < 1_000.0 => format!("{value:.0}"),
        _ => "1,000 超".to_owned(),
    }
}

/// `5.1 倍(区間 4.8~5.3)`.
fn ratio(ratio: Interval) -> String {
    let ends = ratio.low.zip(ratio.high);
    let ends = ends.map(|(low, high)| format!("(区間 {}~{})", factor(low), factor(high)));
    format!("{} 倍{}", factor(ratio.value), ends.unwrap_or_default())
}

/// Each ratio with its place.
fn ratios(measured: &[Measured], labels: &Labels) -> String {
    let one = |one: &Measured| match one.at.as_ref().zip(labels.chart_axis()) {
        Some((at, axis)) if measured.len() > 1 => {
            format!("{} で {}", axis.name_value(at), ratio(one.interval()))
        }
        _ => ratio(one.interval()),
    };
    measured.iter().map(one).collect::<Vec<_>>().join("、")
}

/// What is compared and where: `書き込み(1 kB、クライアント 16)`.
fn subject(metric: Option<&str>, scope: &Scope, labels: &Labels) -> String {
    let operations: Vec<String> = scope.operations.iter().map(|name| labels.plural(name)).collect();
    let mut what = operations.join("と");
    if let Some(metric) = metric.filter(|metric| !is_speed(metric)) {
        what = format!("{what}の {metric}");
    }
    let axis = labels.chart_axis();
    let all = axis.is_some_and(|axis| axis.varies() && scope.at.len() == axis.values.len());
    let at: Vec<String> = match axis {
        Some(axis) if all => vec![format!("すべての {}", axis.name)],
        Some(axis) => scope.at.iter().map(|value| axis.name_value(value)).collect(),
        None => Vec::new(),
    };
    let targets = if labels.several_targets() && !scope.targets.is_empty() {
        vec![scope.targets.iter().map(|name| labels.target(name)).collect::<Vec<_>>().join("と")]
    } else {
        Vec::new()
    };
    let place: Vec<String> = targets.into_iter().chain(at).chain(labels.axes_of(&scope.axes)).collect();
    if place.is_empty() { what } else { format!("{what}({})", place.join("、")) }
}

/// Its name before `です`.
fn noun(bottleneck: Bottleneck) -> String {
    let text = bottleneck.message().text(Language::Japanese);
    let space = if text.ends_with(|c: char| c.is_ascii()) { " " } else { "" };
    format!("{text}{space}")
}

fn promise(class: Option<DurabilityClass>) -> &'static str {
    match class {
        None => "応答済みの書き込みが何に耐えるかわからず",
        Some(DurabilityClass::Memory) => "応答済みの書き込みもサーバーの停止で失われることがあり",
        Some(DurabilityClass::OsCache) => "応答済みの書き込みも停電で失われることがあり",
        Some(DurabilityClass::PeriodicSync) => {
            "応答済みの書き込みも障害や停電で最後の約 1 秒分が失われることがあり"
        }
        Some(DurabilityClass::Synced) => "応答済みの書き込みは停電に耐え",
        Some(DurabilityClass::Replicated) => "応答済みの書き込みはマシンの喪失に耐え",
    }
}

fn compared(comparison: &Comparison, labels: &Labels) -> String {
    let (Comparison::Better { scope, pair, .. }
    | Comparison::NoDifference { scope, pair, .. }
    | Comparison::Undecided { scope, pair, .. }
    | Comparison::NotComparable { scope, pair, .. }) = comparison;
    let what = subject(Some(&pair.metric), scope, labels);
    let [a, b] = [&pair.a, &pair.b].map(|side| labels.side(&pair.axis, side));
    match comparison {
        Comparison::Better { measured, lower_bound, limit, durability, .. } => {
            let than = if is_speed(&pair.metric) { "の速さ" } else { "良い値" };
            let least = if *lower_bound { "少なくとも " } else { "" };
            let ratios = ratios(measured, labels);
            let limit = limit.map_or_else(String::new, |limit| limited(limit, &b));
            let durability: Vec<String> = durability
                .iter()
                .map(|one| format!("{} では{}", labels.targets_of(&one.targets), promise(one.class)))
                .collect();
            let durability = match durability.as_slice() {
                [] => String::new(),
                some => format!("耐久性が異なります: {}ます。", some.join("、")),
            };
            format!("{what}: {a} は {b} に対して {least}{ratios}{than}です。{limit}{durability}")
        }
        Comparison::NoDifference { margin, .. } => {
            format!("{what}: {a} と {b} の差は {} 未満です。", percent(*margin))
        }
        Comparison::Undecided { measured, noise_floor, further_rounds, further_seconds, .. } => {
            let noise = noise_floor.map_or_else(String::new, |floor| {
                format!("同じ条件の 2 つの測定が最大 {} 違いました。", percent(floor))
            });
            let more = further_rounds.map_or_else(String::new, |more| {
                let time = further_seconds.map(|all| format!("({})", duration(all))).unwrap_or_default();
                format!("あと約 {more} ラウンド{time}で決まる見込みです。")
            });
            format!("{what}: {a} と {b} は未決です。測定値は {}です。{noise}{more}", ratios(measured, labels))
        }
        Comparison::NotComparable { why, .. } => {
            format!("{what}: {a} と {b} は比較していません。{}", reason(why, pair, labels))
        }
    }
}

fn duration(seconds: u64) -> String {
    units::time(Duration::from_secs(seconds))
}

fn limited(Limit { bottleneck, confidence }: Limit, side: &str) -> String {
    let likely = if confidence == Confidence::Low { "おそらく" } else { "" };
    match bottleneck {
        Bottleneck::Unknown | Bottleneck::Load => String::new(),
        Bottleneck::Latency => format!("{side} は往復に時間がかかります。"),
        other => format!("{side} のボトルネックは{likely}{}です。", noun(other)),
    }
}

fn reason(why: &Why, pair: &Pair, labels: &Labels) -> String {
    let name = |side: &String| labels.side(&pair.axis, side);
    let names = |sides: &[String]| sides.iter().map(name).collect::<Vec<_>>().join("と");
    match why {
        Why::Failed { side, reason } => format!("{} が失敗しました: {reason}", name(side)),
        Why::Unavailable { side, reason } => format!("{} は利用できません: {reason}", name(side)),
        Why::NotMeasured { side } => format!("{} は測っていません。", name(side)),
        Why::Unfinished { side } => format!("{} は測り終えていません。", name(side)),
        Why::NotPositive => "0 以下の値があり、倍率がありません。".to_owned(),
        Why::NoCommonRound => "同じラウンドで測ったことがありません。".to_owned(),
        Why::ClientBound { sides } => {
            format!("{} ではクライアントが飽和したので、その結果は下限です。", names(sides))
        }
        Why::Overloaded { sides } => format!("{} は負荷に追いつきませんでした。", names(sides)),
        Why::GeneratorLate { sides } => format!("{} では負荷の発生が遅れました。", names(sides)),
        Why::Disturbed { sides } => format!("{} の測定中、ほかのプロセスが CPU を使いました。", names(sides)),
    }
}

fn progressed(progress: &Progress) -> String {
    match progress {
        Progress::NoResults => "結果がありません。".to_owned(),
        Progress::NotAnalysed { next } => format!(
            "判定はまだありません。次の解析は {next} ラウンドの後です。'kurabe run --resume' で続けられます。"
        ),
        Progress::NoBaseline => {
            "基準の結果がないので、何も比較していません。ほかの結果は表にあります。".to_owned()
        }
        Progress::OneRound => {
            "1 ラウンドでは区間がなく、判定できません。ラウンドを増やしてください。".to_owned()
        }
        Progress::Incomplete { made, planned } if made > planned => {
            "この実行は、決着の前に止められました。'kurabe run --resume' で続けられます。".to_owned()
        }
        Progress::Incomplete { made, planned } => format!(
            "この実行は途中です。予定した試行 {} 回のうち {} 回を測りました。'kurabe run --resume' で続けられます。",
            units::count(*planned),
            units::count(*made)
        ),
        Progress::MoreRounds {
            undecided,
            of,
            margin,
            decidable,
            further_rounds,
            further_seconds,
            until,
            slices_help,
            restarts,
        } => {
            let more = further_rounds.map_or_else(
                || "ラウンドを増やしても決まらない見込みです。".to_owned(),
                |more| {
                    let how = match restarts {
                        Some(restarts) => format!("--restarts {restarts}"),
                        None if *until => "--max-rounds を増やした 'kurabe run --resume'".to_owned(),
                        None => "--until conclusive".to_owned(),
                    };
                    let time = further_seconds.map(|all| format!("({})", duration(all))).unwrap_or_default();
                    format!("あと約 {more} ラウンド{time}で {decidable} 件が決まる見込みです: {how}。")
                },
            );
            let finer = if *slices_help {
                "--interleave を使うと、より小さな差がわかります。"
            } else {
                ""
            };
            format!("比較 {of} 件のうち {undecided} 件は ±{} では未決です。{more}{finer}", percent(*margin))
        }
        Progress::AllConclusive { margin, of, not_comparable } => {
            let refused = if *not_comparable == 0 {
                String::new()
            } else {
                format!("{not_comparable} 件は、何ラウンド測っても比較できません。")
            };
            if not_comparable == of {
                return refused;
            }
            format!(
                "{refused}比較 {} 件はすべて決着しました。違いがあるか、{} 以内で同等です。",
                of - not_comparable,
                percent(*margin)
            )
        }
    }
}

fn tried(trials: &Trials, labels: &Labels) -> String {
    let place = |scope: &Scope| subject(None, scope, labels);
    let part =
        |cells: u32, of: u32| if of == 1 { String::new() } else { format!("の {of} 件中 {cells} 件") };
    match trials {
        Trials::Bottleneck { scope, exact, bottleneck, confidence, evidence, cells, of } => {
            let part = if *exact { String::new() } else { part(*cells, *of) };
            let likely = if *confidence == Confidence::Low { "おそらく" } else { "" };
            let least = if *bottleneck == Bottleneck::ClientCpu { "結果は下限です。" } else { "" };
            format!(
                "{}{part}: ボトルネックは{likely}{}です。{least}根拠: {evidence}。",
                place(scope),
                noun(*bottleneck)
            )
        }
        Trials::ClientLimitsScaling { scope, from, known } => {
            let beyond = known.map(|known| format!("{known} 個を超える")).unwrap_or_default();
            format!(
                "{}: サーバーのプロセッサ {from} 個からは、サーバーでなくクライアントが頭打ちです。{beyond}サーバーの伸びはわかりません。クライアントに\
                 もっと多くのプロセッサを使ってください。",
                place(scope)
            )
        }
        Trials::Disturbed { cells, of, reason, .. } => format!(
            "結果 {of} 件のうち {cells} 件で、マシンにほかの負荷がありました({reason})。空いたマシンで測り直してください。"
        ),
        Trials::Rerun { trials, reason } => {
            format!("乱された試行 {trials} 回を測り直しました({reason})。乱された結果は数えません。")
        }
        Trials::FewerAgents { agents, trials, of } => format!(
            "エージェント {} が抜け、試行 {of} 回のうち {trials} 回は少ないエージェントで測りました。同じラウンドの試行は同じエージェントで測っています。",
            agents.join("と")
        ),
        Trials::Failed { cells } => format!("試行が失敗したため、結果 {cells} 件がありません。"),
        Trials::RecordsExhausted { scope, trials, of, records, needed } => format!(
            "{}: 試行 {of} 回のうち {trials} 回が早く終わりました。{} 件の各レコードは 1 回だけ変更するためです。長く測るには --records {needed} を使ってください。",
            place(scope),
            units::count(*records)
        ),
        Trials::WrongAnswers { answers } => format!("誤った応答が {answers} 件ありました。"),
        Trials::Unsteady { scope, cells, of, change } => {
            let (word, by) = if *change < 1.0 { ("低下", 1.0 - change) } else { ("上昇", change - 1.0) };
            format!(
                "{}{} は安定しませんでした(~ の印)。試行中に速さが最大 {} {word}しました。--duration を長くしてください。",
                place(scope),
                part(*cells, *of),
                percent(by)
            )
        }
        Trials::SteadyLate { scope, cells, of } => format!(
            "{}{} は、ウォームアップの後でようやく安定しました。--duration を長くしてください。",
            place(scope),
            part(*cells, *of)
        ),
    }
}

fn noted(note: &Note, labels: &Labels) -> Option<String> {
    match note {
        Note::TargetNote { target, note } => Some(format!("{} について: {note}", labels.target(target))),
        Note::LeftOut { targets, noise_floor_lost } => {
            let floor = if *noise_floor_lost {
                "同じ条件の測定の差は、そのうちの 1 つで測ったため不明です。"
            } else {
                ""
            };
            Some(format!("この実行の対象のうち {targets} 件は、この報告に含みません。{floor}"))
        }
        Note::Resumed { from_trial, changes } => Some(format!(
            "試行 {from_trial} からは {} が変わり、結果に影響しうる状態です。",
            changes.join("、")
        )),
        Note::RatesApart { .. } => Some(
            "毎秒の回数は連続した試行のもの、倍率は交互の試行のものです。判定は倍率によります。".to_owned(),
        ),
        Note::PublishingRestricted { target, version, says, name, source } => Some(format!(
            "{} の結果の公表は制限されています: {says}({name}、{source})。",
            super::wording::with_version(target, version, labels)
        )),
        Note::NotReported { target, what, reason } => {
            Some(format!("{} が報告しないもの: {}({reason})。", labels.target(target), what.join("、")))
        }
        Note::Preflight { .. } => None,
    }
}
