//! Values, given rates, and the basis of the results, in Japanese.

use super::{factor, ratio, subject};
use crate::finding::basis::{Agents, Basis, NoiseFloor, NotInterleaved};
use crate::finding::rates::{RatePoint, Rates};
use crate::finding::values::{MetricPoint, PublishedHere, SettingValues, TargetRate, Values};
use crate::finding::wording::with_version;
use crate::finding::{Interval, Scope, Span};
use crate::format::{figure, micros, nanos, percent, settings_list, value_of};
use crate::labels::Labels;
use crate::metrics::is_speed;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::run::{MIN_INTERLEAVED_ROUNDS, Sampled};
use kurabe_core::units;
use kurabe_core::verification::{Proof, Verification};
use std::time::Duration;

/// `1.2 ms(1.1 ms~1.3 ms)`; only the value without an interval.
fn with_interval(interval: Interval, show: &dyn Fn(f64) -> String) -> String {
    let ends = interval.low.zip(interval.high);
    let ends = ends.map(|(low, high)| format!("({}~{})", show(low), show(high)));
    show(interval.value) + &ends.unwrap_or_default()
}

pub(super) fn values(values: &Values, labels: &Labels) -> String {
    match values {
        Values::Throughput { scope, rates } => {
            let rate = |rate: &TargetRate| {
                let name = labels.several_targets().then(|| labels.target(&rate.target) + " ");
                let least = if rate.lower_bound { "少なくとも " } else { "" };
                format!("{}{least}{}", name.unwrap_or_default(), with_interval(rate.per_second, &figure))
            };
            let rates: Vec<String> = rates.iter().map(rate).collect();
            format!("{} の毎秒の回数: {}。", subject(None, &scope.anywhere(), labels), rates.join("、"))
        }
        Values::Cost { scope, pair, cost_us, factor } => {
            let (verb, cost) = if cost_us.value < 0.0 {
                ("短く", Interval { low: cost_us.high, high: cost_us.low, ..*cost_us })
            } else {
                ("長く", *cost_us)
            };
            let cost = with_interval(cost, &|us| micros(us.abs()));
            let [a, b] = [&pair.a, &pair.b].map(|side| labels.side(&pair.axis, side));
            let what = subject(None, scope, labels);
            format!("{what}: {a} は {b} より 1 回あたり {cost} {verb}、時間は {}です。", ratio(*factor))
        }
        Values::MetricValues { scope, name, unit, points } => {
            let value = |point: &MetricPoint| {
                let at = labels.axes_of(&point.axes);
                let at = if at.is_empty() { String::new() } else { format!("{} で ", at.join("、")) };
                at + &with_interval(point.figure, &|value| value_of(*unit, value))
            };
            let values: Vec<String> = points.iter().map(value).collect();
            format!("{} の {name}: {}。", subject(None, scope, labels), values.join("、"))
        }
        Values::Settings { targets, differ } => {
            let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "報告なし".to_owned());
            let of = |one: &SettingValues| {
                let values: Vec<String> = one.values.iter().map(value).collect();
                format!("{} {}", one.name, values.join(" と "))
            };
            let differ: Vec<String> = differ.iter().map(of).collect();
            format!("{} の設定の違い: {}。", labels.targets_of(targets), differ.join("、"))
        }
        Values::Published { claim, here, ratio: Span { low, high }, reproduced, .. } => {
            let result =
                |one: &PublishedHere| format!("{} では {}", labels.target(&one.target), ratio(one.ratio));
            let results: Vec<String> = here.iter().map(result).collect();
            let work = |one: &PublishedHere| {
                let Span { low, high } = one.other_work_us?;
                Some(format!("{} では {}~{}", labels.target(&one.target), micros(low), micros(high)))
            };
            let work: Vec<String> = here.iter().filter_map(work).collect();
            let agrees = match (reproduced, work.as_slice()) {
                (true, _) => "一致します。".to_owned(),
                (false, []) => "一致しません。".to_owned(),
                (false, work) => format!(
                    "一致しません。要求ごとのほかの処理が次の時間なら {low:.1}~{high:.1} 倍になります: {}。",
                    work.join("、")
                ),
            };
            format!("公表された結果: {claim}。ここでは {}。{agrees}", results.join("、"))
        }
    }
}

pub(super) fn rates(rates: &Rates, labels: &Labels) -> String {
    match rates {
        Rates::ResponseTimes { scope, points, bend } => {
            let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
            let at = |point: &RatePoint| {
                format!("毎秒 {} 回で {}", units::count(point.rate), micros(point.p99_us))
            };
            let rest = if points.len() > 1 { format!("、{}", at(last)) } else { String::new() };
            let bend = bend.map_or_else(String::new, |rate| {
                format!("毎秒 {} 回からは最初の 2 倍以上です。", units::count(rate))
            });
            let what = subject(None, &Scope { at: Vec::new(), ..scope.clone() }, labels);
            format!("{what} の応答時間の p99 は、{}{rest} です。{bend}", at(first))
        }
        Rates::Overloaded { scope, served_per_second, dropped, .. } => {
            let dropped = match dropped {
                0 => String::new(),
                n => format!("{} 件は始められませんでした。", units::count(*n)),
            };
            let (what, served) = (subject(None, scope, labels), figure(*served_per_second));
            format!("{what} は過負荷で、毎秒 {served} 回を処理しました。{dropped}")
        }
        Rates::GeneratorLate { scope, lag_us, p99_us } => format!(
            "{} の応答時間は無効です。p99 の {} に対し、負荷の発生が {}(p99)遅れました。",
            subject(None, scope, labels),
            micros(*p99_us),
            micros(*lag_us)
        ),
    }
}

pub(super) fn basis(basis: &Basis, labels: &Labels) -> String {
    match basis {
        Basis::Tested { .. } => tested(basis, labels),
        Basis::NoiseFloor { largest: Some(largest), each } => noise_floors(*largest, each, labels),
        Basis::NoiseFloor { largest: None, .. } => {
            "同じ条件の 2 つの測定の差は不明です(A/A 比較と 2 ラウンドが必要です)。".to_owned()
        }
        Basis::ToolOverhead { each } => {
            let each: Vec<String> =
                each.iter().map(|one| format!("{} 1 回に {}", one.operation, nanos(one.ns_per_op))).collect();
            format!("道具自身の負荷: {}(対象 null: で測った基準)。", each.join("、"))
        }
        Basis::Verified { verification, cpu_share } => {
            let cost = cpu_share.map_or_else(String::new, |share| {
                format!("照合はクライアントの CPU の最大 {} を使いました。", percent(share))
            });
            verification.as_ref().map_or_else(
                || format!("実行した版の Kurabe は、検証の方法を記録していません。{cost}"),
                |all| verified(all) + &cost,
            )
        }
        Basis::Durability { target, version, class, settings } => {
            let settings = settings_list(settings);
            let settings = if settings.is_empty() { settings } else { format!("({settings})") };
            let name = class.map_or("unknown", DurabilityClass::name);
            let promise = super::promise(*class);
            format!("{} の耐久性は {name}: {promise}ます{settings}。", with_version(target, version, labels))
        }
    }
}

fn tested(basis: &Basis, labels: &Labels) -> String {
    let Basis::Tested {
        targets,
        cpus,
        rounds,
        comparisons,
        further_comparisons,
        slice_ns,
        restarts,
        sampled,
        not_interleaved,
        analysed_after,
        shared_threads,
        fleet,
    } = basis
    else {
        return String::new();
    };
    let (varied, held) = labels.tested();
    let mut what = vec![labels.targets_of(targets)];
    what.extend(varied);
    what.extend((!held.is_empty()).then(|| format!("固定: {}", held.join("、"))));
    what.extend((*cpus > 0).then(|| format!("CPU {cpus} 個のマシン")));
    what.extend(fleet.as_ref().map(agents));
    what.extend(shared_threads.map(|n| format!("クライアントがそれより多いときはスレッド {n} 本を共有")));
    let mut how = vec![format!("無作為な順の {rounds} ラウンド")];
    if *restarts > 0 {
        let means = if *sampled == Sampled::AnyStart { "(標本はブロックの平均)" } else { "" };
        how.push(format!("一時サーバーを再起動して {} ブロック{means}", restarts + 1));
    }
    how.extend(slice_ns.map(|ns| {
        let slice = units::time(Duration::from_nanos(ns));
        format!("各ブロックの最初は連続した試行(数値)、ほかは {slice} ごとに交互(倍率)")
    }));
    how.extend(not_interleaved.as_ref().map(separate));
    let between = match sampled {
        Sampled::TheseServers => "そのとき動いていたサーバーどうし",
        Sampled::AnyStart => "サーバーの任意の起動どうし",
    };
    let after: Vec<String> = analysed_after.iter().map(ToString::to_string).collect();
    let after = match after.as_slice() {
        [] => String::new(),
        after => format!("、{} ラウンド後の解析で", after.join("、")),
    };
    let compared = match comparisons {
        0 => "何も比較していません。".to_owned(),
        n => format!("比較 {n} 件の区間は、{between}について{after}同時に 95 % で成り立ちます。"),
    };
    let further = match further_comparisons {
        0 => String::new(),
        n => format!("ほかの指標の比較 {n} 件も、別に同様です。"),
    };
    format!("条件: {}。{}。{compared}{further}", what.join("、"), how.join("、"))
}

fn agents(fleet: &Agents) -> String {
    let spread = units::time(Duration::from_nanos(fleet.start_spread_ns));
    let names = fleet.names.join("、");
    format!("クライアントはエージェント {} 個({names})、開始の差は最大 {spread}", fleet.names.len())
}

/// Why trials were not interleaved, as a clause.
fn separate(why: &NotInterleaved) -> String {
    match why {
        NotInterleaved::OpenLoop => "交互でない試行(開ループ)".to_owned(),
        NotInterleaved::FewRounds => format!("交互でない試行({MIN_INTERLEAVED_ROUNDS} ラウンドが必要)"),
        NotInterleaved::Fleet => "交互でない試行(複数のエージェント)".to_owned(),
        NotInterleaved::Asked => "交互でない試行(指定による)".to_owned(),
        NotInterleaved::Some { cells, operations } => format!(
            "{} の結果 {cells} 件は別々の試行(同じ表への書き込み、64 以上のクライアント、前の試行への依存、または比較なし)",
            operations.join("と")
        ),
    }
}

fn noise_floors(largest: f64, each: &[NoiseFloor], labels: &Labels) -> String {
    let one = |floor: &NoiseFloor| {
        let name = labels.several_targets().then(|| labels.target(&floor.target) + " の");
        let on = if floor.second_instance { "別のインスタンス" } else { "同じサーバー" };
        let of = if is_speed(&floor.metric) { String::new() } else { format!("の {}", floor.metric) };
        let (name, what) = (name.unwrap_or_default(), labels.plural(&floor.operation));
        format!("{name}{what}{of} {}({on})", percent(floor.noise_floor))
    };
    let each: Vec<String> = each.iter().map(one).collect();
    format!(
        "同じ条件の 2 つの測定は、ラウンドのばらつきを超えて最大 {} 違うことがあります: {}。区間はこれを含みません。",
        percent(largest),
        each.join("、")
    )
}

/// What was verified, as a sentence.
fn verified(all: &Verification) -> String {
    let count = units::count;
    let answers = format!("応答 {} 件をバイト単位で照合", count(all.answers));
    if all.writes == 0 {
        return if all.answers == 0 {
            "検証したものはありません。".to_owned()
        } else {
            format!("検証: {answers}。")
        };
    }
    let counted = match all.counted {
        0 => String::new(),
        n if n >= all.writes => "(すべてサーバーで計数)".to_owned(),
        n => format!("(うち {} 件をサーバーで計数)", count(n)),
    };
    let writes = count(all.writes);
    let writes = match all.how() {
        Proof::ReadBackAll => format!("書き込み {writes} 件のレコードをすべて読み戻して照合{counted}"),
        Proof::ReadBackLast => {
            format!(
                "書き込み {writes} 件、レコード {} 件の最後の版を読み戻して照合{counted}",
                count(all.records)
            )
        }
        Proof::Counted if all.read_back == 0 => format!("書き込み {writes} 件をサーバーで計数、読み戻しなし"),
        Proof::Counted | Proof::Sample => {
            format!(
                "書き込み {writes} 件にサーバーが応答{counted}、レコード {} 件を読み戻して照合",
                count(all.read_back)
            )
        }
        _ => format!("書き込み {writes} 件にサーバーが応答{counted}、読み戻しなし"),
    };
    if all.answers == 0 { format!("検証: {writes}。") } else { format!("検証: {answers}、{writes}。") }
}

/// How much better one side is, from a ratio above 1: `1.2 倍(区間 1.1~1.3)`.
pub(super) fn gained(of: Interval, lower_bound: bool) -> String {
    match of.low.filter(|_| lower_bound) {
        Some(low) => format!("少なくとも {} 倍", factor(low)),
        None => ratio(of),
    }
}
