//! Comparisons of two runs and decisions of gates, in Japanese.

use super::figures::gained;
use super::subject;
use crate::compare::{Between, Decision};
use crate::finding::runs::Runs;
use crate::labels::Labels;
use crate::metrics::is_speed;
use kurabe_core::units;
use std::time::Duration;

pub(super) fn sentence(runs: &Runs, labels: &Labels) -> String {
    match runs {
        Runs::NotCompared { run } => format!("{run} は途中です。結果は示しますが、比較しません。"),
        Runs::Changed { scope, metric, better, ratio, lower_bound } => {
            let (run, ratio) = (if *better { "2" } else { "1" }, gained(*ratio, *lower_bound));
            let word = if is_speed(metric) { "の速さ" } else { "良い値" };
            format!("{}: {run} 番目の実行が {ratio}{word}です。", subject(Some(metric), scope, labels))
        }
        Runs::Changes { better, worse, no_difference, undecided, not_comparable } => {
            let all = better + worse + no_difference + undecided + not_comparable;
            if all == 0 {
                return "2 つの実行に共通の結果がありません。".to_owned();
            }
            let rest = counts(&[(*no_difference, "同等"), (*undecided, "未決"), (*not_comparable, "比較不可")]);
            format!("共通の結果 {all} 件のうち、2 番目の実行で良くなったもの {better} 件、悪くなったもの {worse} 件{rest}。")
        }
        Runs::NotInterleaved { between } => apart(*between),
        Runs::OnlyIn { run, target } => format!("{target} は {run} だけにあります。"),
        Runs::Unmatched { run, results } => {
            format!("{run} の結果 {results} 件には、軸の値が違うため、対応する結果がありません。")
        }
        Runs::Gated { criteria, decision, passed, slower, undecided, tails, not_judged } => {
            let all = passed + slower + undecided + not_judged;
            let decision = match decision {
                Decision::Passed => "合格",
                Decision::Failed => "不合格",
                Decision::Undecided => "未決",
            };
            let rest = counts(&[
                (*passed, "合格"),
                (undecided - tails, "未決"),
                (*tails, "--fail-on にない p99 で未決"),
                (*not_judged, "判定なし"),
            ]);
            format!(
                "ゲートは{decision}です。結果 {all} 件のうち、{} 悪くなったもの {slower} 件{rest}。",
                criteria.japanese()
            )
        }
        Runs::MoreRounds { rounds, needed: Some(needed) } => format!(
            "{rounds} ラウンドでなく約 {needed} ラウンドで決まる見込みです。--rounds {needed}、長い試行、または広い許容差を使ってください。"
        ),
        Runs::MoreRounds { needed: None, .. } => {
            "未決のものは許容差の境にあり、ラウンドを増やしても決まらない見込みです。--fail-on slower:10% のように許容差を変えてください。"
                .to_owned()
        }
        Runs::OtherLoad { results } => format!(
            "不合格になる結果 {results} 件の測定中、ほかのプロセスが CPU を使いました。空いたマシンで、または --wait-quiet 10min を付けて測り直してください。"
        ),
        Runs::NotJudged { reason } => format!("判定しない結果があります: {reason}。"),
        Runs::Obstacle { what, first, second } => {
            format!("どの結果も判定しません。{what} が違います: 1 番目 {first}、2 番目 {second}。")
        }
    }
}

/// The counts that are not 0, each with its word.
fn counts(all: &[(u32, &str)]) -> String {
    all.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("、{word} {n} 件")).collect()
}

/// What the runs lack that one run with both would have.
fn apart(between: Between) -> String {
    const WEAKER: &str = "両方を 1 つの実行で測るより弱い証拠です。";
    let time = |seconds| units::time(Duration::from_secs(seconds));
    match between {
        Between::Starts => format!("2 つの実行は別の時に測りました。{WEAKER}"),
        Between::Runs { runs } => {
            format!(
                "2 つの実行は別の時に測り、この組の以前の実行 {runs} 件の違いを基準に比べました。{WEAKER}"
            )
        }
        Between::Nothing { runs, needed, covered, needed_time } => {
            let lacks = if runs < needed {
                format!("同じ条件の以前の実行が、必要な {needed} 件のうち {runs} 件しかありません。")
            } else {
                format!(
                    "以前の実行 {runs} 件の期間が、必要な {} に対して {} です。",
                    time(needed_time),
                    time(covered)
                )
            };
            format!(
                "何も判定できません。2 つの実行は別の時に測られ、サーバーの起動を標本にしていません。{lacks}1 つの実行で両方を測るか、両方の実行で一時サーバーと --restarts 3 以上を使ってください。"
            )
        }
    }
}
