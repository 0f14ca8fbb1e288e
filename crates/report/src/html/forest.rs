//! The forest plot: every comparison of a primary metric as a ratio with its interval, beside the margin. It is a table, so
//! that it reads without pictures.

use super::palette::Px;
use super::scale::{Log, range, ticks};
use crate::comparison::{TARGET, sides};
use crate::finding::wording::gained;
use crate::format::{capital, percent};
use crate::group::grouped;
use crate::summary::{Summary, Verdict, VerdictResult};
use kurabe_core::run::DEFAULT_MARGIN;
use kurabe_core::units;
use maud::{Markup, PreEscaped, html};
use std::fmt::Write as _;

/// The width of a plot in its own units; it is stretched to that of its column.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 18.0;
/// The number of comparisons shown at once; further operations are folded, except on paper.
const SHOWN_AT_ONCE: usize = 60;
/// The largest factor of the axis: longer intervals end in an arrow.
const LONGEST: f64 = 1_000.0;

/// The section of the forest plot; empty without comparisons.
pub(super) fn forest(summary: &Summary) -> Markup {
    let shown: Vec<&Verdict> =
        summary.verdicts.iter().filter(|verdict| verdict.primary && verdict.ratio.is_some()).collect();
    let refused =
        summary.verdicts.iter().filter(|verdict| verdict.primary && verdict.ratio.is_none()).count();
    let margin = summary.spec.until.map_or(DEFAULT_MARGIN, |until| until.margin);
    let Some(axis) = Axis::of(&shown, margin) else { return html! {} };
    let groups = grouped(shown.iter().map(|verdict| (verdict.operation.as_str(), *verdict)));
    let mut before = 0;
    let tables: Vec<Markup> = groups
        .into_iter()
        .map(|(operation, verdicts)| {
            let verdicts = in_order(verdicts);
            let open = before == 0 || before + verdicts.len() <= SHOWN_AT_ONCE;
            before += verdicts.len();
            let heading = capital(&summary.labels.plural(operation));
            let count = verdicts.len();
            html! {
                details open[open] {
                    summary { (heading) " · " (count) (if count == 1 { " comparison" } else { " comparisons" }) }
                    (table(summary, &axis, &verdicts))
                }
            }
        })
        .collect();
    html! {
        section class="forest" {
            h2 { "Comparisons" }
            p class="soft" {
                "The ratio of two cells with its interval, from rounds measured together. Right of 1 the first one is better. The \
                 band is the margin of ±" (percent(margin)) ": an interval within it shows that they are equal for most purposes. All \
                 intervals hold together with 95 %."
                @if refused > 0 { " " (refused) " further pairs could not be compared; the findings say why." }
            }
            (axis.common())
            @for table in tables { (table) }
        }
    }
}

/// The comparisons of targets first, and those of the same two sides one after another.
fn in_order(verdicts: Vec<&Verdict>) -> Vec<&Verdict> {
    let key = |verdict: &Verdict| (verdict.pair.clone(), verdict.target.clone());
    let pairs = grouped(verdicts.into_iter().map(|verdict| (key(verdict), verdict)));
    let (targets, others): (Vec<_>, Vec<_>) =
        pairs.into_iter().partition(|((pair, _), _)| pair.axis == TARGET);
    targets.into_iter().chain(others).flat_map(|(_, verdicts)| verdicts).collect()
}

/// The common axis of all plots.
struct Axis {
    scale: Log,
    low: f64,
    high: f64,
    margin: f64,
}

impl Axis {
    fn of(verdicts: &[&Verdict], margin: f64) -> Option<Self> {
        let ratios: Vec<f64> = verdicts.iter().filter_map(|verdict| verdict.ratio).collect();
        let (least, most) = range(ratios.into_iter(), 1.0)?;
        // Intervals are shown whole unless they are much longer than the ratios differ.
        let beyond = (most / least).max(2.0);
        let ends = verdicts.iter().flat_map(|verdict| {
            [verdict.low.map(|low| low.max(least / beyond)), verdict.high.map(|high| high.min(most * beyond))]
        });
        let all: Vec<f64> = ends
            .flatten()
            .chain([least, most, 1.0 / (1.0 + 2.0 * margin), 1.0 + 2.0 * margin])
            .map(|end| end.clamp(1.0 / LONGEST, LONGEST))
            .collect();
        let (low, high) = range(all.into_iter(), 1.2)?;
        Some(Self { scale: Log::new(low, high, 0.0, WIDTH), low, high, margin })
    }

    /// The labels of the axis, as shares of its width.
    fn labels(&self) -> Markup {
        let factor = |value: f64| {
            let text = format!("{value:.3}");
            format!("{}×", text.trim_end_matches('0').trim_end_matches('.'))
        };
        let marks: Vec<f64> = if self.high / self.low < 3.0 {
            [0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0].to_vec()
        } else {
            ticks(self.low, self.high)
                .into_iter()
                .filter(|(_, label)| *label)
                .map(|(value, _)| value)
                .collect()
        };
        let mut free_from = 0.0;
        let mut shown = Vec::new();
        // 1 comes first: no other label takes its place.
        let place = |value: f64| self.scale.at(value) / WIDTH * 100.0;
        let one = place(1.0);
        for value in marks.into_iter().filter(|value| *value > self.low && *value < self.high) {
            let at = place(value);
            let is_one = (value - 1.0).abs() < 1e-9;
            if is_one || at >= free_from && (at - one).abs() > 11.0 {
                free_from = at + 11.0;
                shown.push((at, factor(value)));
            }
        }
        html! {
            div class="ticks" aria-hidden="true" {
                @for (at, text) in shown { span style={ "left:" (PreEscaped(format!("{at:.1}"))) "%" } { (text) } }
            }
        }
    }

    /// What all plots have in common: the margin, and the line of equality.
    fn common(&self) -> Markup {
        let at = |value: f64| Px(self.scale.at(value));
        let (from, to) = (at(1.0 / (1.0 + self.margin)), at(1.0 + self.margin));
        html! {
            svg class="hidden" aria-hidden="true" {
                g id="margin" {
                    path class="margin" d=(format!("M{from} 0H{to}V{HEIGHT}H{from}Z")) {}
                    path class="one" d=(format!("M{} 0V{HEIGHT}", at(1.0))) {}
                }
            }
        }
    }

    /// The plot of one comparison.
    fn plot(&self, verdict: &Verdict) -> Markup {
        let at = |value: f64| self.scale.at(value);
        let mut bar = String::new();
        let middle = HEIGHT / 2.0;
        if let (Some(low), Some(high)) = (verdict.low, verdict.high) {
            let _ = write!(bar, "M{} {middle}H{}", Px(at(low)), Px(at(high)));
            // An arrow where the interval goes on, an end where it ends.
            for (end, beyond, side) in [(low, low < self.low, 1.0), (high, high > self.high, -1.0)] {
                let x = at(end);
                let _ = if beyond {
                    let back = 5.0 * side;
                    write!(bar, "M{} {}l{} 4l{} 4", Px(x + back), Px(middle - 4.0), Px(-back), Px(back))
                } else {
                    write!(bar, "M{} {}v8", Px(x), Px(middle - 4.0))
                };
            }
        }
        let ratio = verdict.ratio.unwrap_or(1.0);
        html! {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" aria-hidden="true" {
                use href="#margin" {}
                path class="bar" d=(bar) {}
                path class="dot" d=(format!("M{} {middle}h.01", Px(at(ratio)))) {}
            }
        }
    }
}

fn table(summary: &Summary, axis: &Axis, verdicts: &[&Verdict]) -> Markup {
    let several = summary.metrics.iter().filter(|metric| metric.primary).count() > 1;
    html! {
        table class="ratios" {
            thead {
                tr { th { "comparison" } th { "at" } th class="plot" { (axis.labels()) } th class="num" { "ratio" } th { "verdict" } }
            }
            tbody { @for verdict in verdicts { (row(summary, axis, verdict, several)) } }
        }
    }
}

fn row(summary: &Summary, axis: &Axis, verdict: &Verdict, several: bool) -> Markup {
    let labels = &summary.labels;
    let [a, b] = [&verdict.pair.a, &verdict.pair.b].map(|side| labels.side(&verdict.pair.axis, side));
    let on = verdict.target.as_ref().filter(|_| labels.several_targets());
    let on = on.map_or_else(String::new, |target| format!(" on {}", labels.target(target)));
    let metric = if several { format!("{}: ", verdict.pair.metric) } else { String::new() };
    let x = verdict.x.as_ref().zip(labels.chart_axis()).map(|(x, axis)| axis.show(x)).unwrap_or_default();
    let figure = |value: f64| format!("{value:.prec$}", prec = if value < 10.0 { 2 } else { 0 });
    let ratio = verdict.ratio.map(figure).unwrap_or_default();
    // Beyond the axis, digits say nothing more.
    let bound = |value: f64| match value {
        value if value > LONGEST => format!("> {}", units::count(LONGEST as u64)),
        value if value < 1.0 / LONGEST => format!("< {}", 1.0 / LONGEST),
        value => figure(value),
    };
    let interval =
        verdict.low.zip(verdict.high).map(|(low, high)| format!("{} – {}", bound(low), bound(high)));
    let words = words(summary, verdict, &a, &b);
    let ids = sides(labels, &summary.cells, verdict).map(|[a, b]| [a, b].map(|cell| cell.index));
    let class = match verdict.result {
        VerdictResult::Better => "better",
        VerdictResult::Worse => "worse",
        VerdictResult::NoDifference => "equal",
        VerdictResult::Undecided | VerdictResult::NotComparable => "open",
    };
    let [id_a, id_b] = ids.map_or([None, None], |[a, b]| [Some(a), Some(b)]);
    html! {
        tr class=(class) data-a=[id_a] data-b=[id_b] {
            th scope="row" { (metric) (a) " ÷ " (b) (on) }
            td { (x) }
            td class="plot" { (axis.plot(verdict)) }
            td class="num" { (ratio) @if let Some(interval) = &interval { span class="soft" { " " (interval) } } }
            td { (words) }
        }
    }
}

/// The verdict in few words; its ratio and interval are beside it.
fn words(summary: &Summary, verdict: &Verdict, a: &str, b: &str) -> String {
    let winner = match verdict.result {
        VerdictResult::Better => a,
        VerdictResult::Worse => b,
        VerdictResult::NoDifference => return "equal within the margin".to_owned(),
        VerdictResult::Undecided => return "undecided".to_owned(),
        VerdictResult::NotComparable => return "not comparable".to_owned(),
    };
    let ratio = verdict.result.gain(verdict.ratio, verdict.low, verdict.high);
    ratio.map_or_else(
        || winner.to_owned(),
        |ratio| {
            format!("{winner} {}", gained(&verdict.pair.metric, ratio, verdict.lower_bound, &summary.labels))
        },
    )
}
