//! The answer as one table: the rankings with their absolute figures, and beside them the forest plot, on one logarithmic
//! axis: the ratio of each row to the first with its interval. It reads without pictures. Comparisons of other primary
//! metrics follow in the same form.

use super::lines::Series;
use super::plot::Px;
use crate::answer::{self, Against, Ranking, Row};
use crate::format::percent;
use crate::group::grouped;
use crate::html::plot::{Log, log_ticks, range};
use crate::messages::{Language, Message};
use crate::metrics::is_speed;
use crate::summary::Summary;
use crate::verdict::Verdict;
use crate::wording::metric_of;
use kurabe_core::run::DEFAULT_MARGIN;
use kurabe_stats::{Decision, Estimate};
use maud::{Markup, PreEscaped, html};
use std::fmt::Write as _;

/// The width of a plot in its own units; it is stretched to that of its column.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 18.0;
/// The number of rows shown at once; the rankings after them are folded, except on paper.
const SHOWN_AT_ONCE: usize = 60;
/// The most places whose rates are drawn over time.
const COURSES: usize = 12;
/// The largest factor of the axis: longer intervals end in an arrow.
const LONGEST: f64 = 1_000.0;

/// The section of the answer; empty without results.
pub(super) fn section(summary: &Summary, series: &Series<'_>, rankings: &[Ranking<'_>]) -> Markup {
    let language = summary.labels.language;
    let rows = || rankings.iter().flat_map(|ranking| &ranking.rows);
    let others: Vec<(&Verdict, Estimate)> = summary
        .verdicts
        .iter()
        .filter(|verdict| verdict.primary && !is_speed(&verdict.pair.metric))
        .filter_map(|one| Some((one, one.ratio?)))
        .collect();
    let mut ratios: Vec<Estimate> = rows().filter_map(|row| row.against.as_ref()?.ratio()).collect();
    ratios.extend(others.iter().map(|(_, ratio)| *ratio));
    let margin = summary.spec.until.map_or(DEFAULT_MARGIN, |until| until.margin);
    let axis = Axis::of(&ratios, margin);
    let mut count = 0;
    let (first, further): (Vec<&Ranking<'_>>, Vec<_>) = rankings.iter().partition(|ranking| {
        count += ranking.rows.len();
        count == ranking.rows.len() || count <= SHOWN_AT_ONCE
    });
    html! {
        section class="answer" {
            @if let Some(axis) = &axis { (axis.common()) }
            @if !first.is_empty() { (table(language, series, axis.as_ref(), &first)) }
            @if !further.is_empty() {
                details {
                    summary { (Message::MorePlaces.with(language, &[("count", &further.len().to_string())])) }
                    (table(language, series, axis.as_ref(), &further))
                }
            }
            @if let Some(axis) = axis.as_ref().filter(|_| !others.is_empty()) { (further_metrics(summary, axis, others)) }
            @if axis.is_some() {
                p class="soft" { (Message::PlotLegend.with(language, &[("margin", &percent(margin))])) }
            }
        }
    }
}

/// Rankings below their headings, with common columns.
fn table(language: Language, series: &Series<'_>, axis: Option<&Axis>, rankings: &[&Ranking<'_>]) -> Markup {
    let (table, headings) = answer::table("", rankings, language);
    let plot = axis.zip(table.ratios);
    let width = table.columns.len() + usize::from(plot.is_some());
    let mut rows = table.rows.iter();
    html! {
        table class={ "ranking" @if plot.is_some() { " plotted" } } {
            thead {
                tr {
                    @for (at, column) in table.columns.iter().enumerate() {
                        @if let Some((axis, _)) = plot.filter(|(_, ratio)| *ratio == at) {
                            th class="plot" { (Message::LogScale.with(language, &[("what", &column.head)])) (axis.labels()) }
                            th { (Message::RatioInterval.text(language)) }
                        } @else {
                            th class=[column.right.then_some("num")] { (column.head) }
                        }
                    }
                }
            }
            @for (ranking, (_, heading)) in rankings.iter().zip(&headings) {
                @let reference = ranking.rows.iter().find(|row| row.is_reference).map(|row| row.cell.index);
                tbody {
                    tr { th class="place" colspan=(width) scope="rowgroup" { (heading) } }
                    @for (row, cells) in ranking.rows.iter().zip(&mut rows) {
                        @let color = series.color_of(row.cell);
                        tr data-c=(row.cell.index) data-b=[reference.filter(|_| row.against.is_some())] {
                            @for (at, (column, text)) in table.columns.iter().zip(cells).enumerate() {
                                @if let Some((axis, _)) = plot.filter(|(_, ratio)| *ratio == at) {
                                    td class={ "plot c" (color) (pale(row)) } { (axis.plot(ratio_of(row))) }
                                }
                                @if at == 0 {
                                    th scope="row" { i class={ "swatch c" (color) } {} (text) }
                                } @else {
                                    td class=[column.right.then_some("num")] { (text) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The ratio of a row; 1 of the first, and nothing where none was found.
fn ratio_of(row: &Row<'_>) -> Option<Estimate> {
    match &row.against {
        Some(against) => against.ratio(),
        None if !row.is_reference => None,
        None => row.cell.ops_per_second.map(|_| Estimate { value: 1.0, low: None, high: None }),
    }
}

fn pale(row: &Row<'_>) -> &'static str {
    row.against.as_ref().map_or("", |against| of_result(against.verdict.result))
}

fn of_result(result: Decision) -> &'static str {
    match result {
        Decision::Above | Decision::Below | Decision::Within => "",
        Decision::Undecided | Decision::NotTestable => " pale",
    }
}

/// The comparisons of primary metrics that are no speed.
fn further_metrics(summary: &Summary, axis: &Axis, others: Vec<(&Verdict, Estimate)>) -> Markup {
    let (labels, language) = (&summary.labels, summary.labels.language);
    let key = |verdict: &Verdict| (verdict.pair.metric.clone(), verdict.operation.clone());
    let groups = grouped(others.into_iter().map(|one| (key(one.0), one)));
    html! {
        table class="ranking plotted" {
            thead { tr {
                th {}
                th class="plot" { (Message::LogScale.with(language, &[("what", Message::FirstToSecond.text(language))])) (axis.labels()) }
                th { (Message::RatioInterval.text(language)) }
            } }
            @for ((metric, operation), rows) in groups {
                tbody {
                    tr { th class="place" colspan="3" scope="rowgroup" { (labels.begun(&metric_of(&metric, &labels.plural(&operation), language))) } }
                    @for (verdict, ratio) in rows {
                        @let [a, b] = [&verdict.pair.a, &verdict.pair.b].map(|side| labels.side(&verdict.pair.axis, side));
                        @let on = verdict.target.as_ref().filter(|_| labels.several_targets()).map(|target| labels.target(target));
                        @let at = labels.varying_of(&verdict.at).join(", ");
                        tr {
                            th scope="row" {
                                (Message::AToB.with(language, &[("a", &a), ("b", &b)]))
                                @if let Some(on) = on { (Message::On.with(language, &[("target", &on)])) }
                                @if !at.is_empty() { (Message::At.with(language, &[("values", &at)])) }
                            }
                            td class={ "plot c0" (of_result(verdict.result)) } { (axis.plot(Some(ratio))) }
                            td { (answer::against(&Against { verdict, forward: true }, labels.language)) }
                        }
                    }
                }
            }
        }
    }
}

/// The places of the rankings whose trials have a course, as the script reads them: `CELL:COLOUR,…`.
pub(super) fn courses(summary: &Summary, series: &Series<'_>, rankings: &[Ranking<'_>]) -> Markup {
    let has_course = |row: &&Row<'_>| row.cell.detail.as_ref().is_some_and(|detail| detail.course.len() > 1);
    let cells = |ranking: &Ranking<'_>| {
        let rows = ranking.rows.iter().filter(has_course);
        rows.map(|row| format!("{}:{}", row.cell.index, series.color_of(row.cell)))
            .collect::<Vec<_>>()
            .join(",")
    };
    let drawn: Vec<(&str, String)> = rankings
        .iter()
        .map(|ranking| (ranking.heading.as_str(), cells(ranking)))
        .filter(|(_, cells)| !cells.is_empty())
        .take(COURSES)
        .collect();
    html! {
        @if !drawn.is_empty() {
            section id="courses" hidden {
                h2 { (Message::OverTime.text(summary.labels.language)) }
                p class="soft" { (Message::OverTimeLegend.text(summary.labels.language)) }
                (series.colors)
                div class="panels" { @for (heading, cells) in drawn { div data-courses=(cells) data-name=(heading) {} } }
            }
        }
    }
}

/// The common axis of all plots.
struct Axis {
    scale: Log,
    low: f64,
    high: f64,
    margin: f64,
}

impl Axis {
    fn of(ratios: &[Estimate], margin: f64) -> Option<Self> {
        let (least, most) = range(ratios.iter().map(|ratio| ratio.value), 1.0)?;
        // Intervals are shown whole unless they are much longer than the ratios differ.
        let beyond = (most / least).max(2.0);
        let ends = ratios.iter().flat_map(|ratio| {
            [ratio.low.map(|low| low.max(least / beyond)), ratio.high.map(|high| high.min(most * beyond))]
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
            log_ticks(self.low, self.high)
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
            if is_one || at >= free_from && (at - one).abs() > 11.0 && (5.0..=95.0).contains(&at) {
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

    fn plot(&self, ratio: Option<Estimate>) -> Markup {
        let Some(ratio) = ratio else { return html! {} };
        let at = |value: f64| self.scale.at(value);
        let mut bar = String::new();
        let middle = HEIGHT / 2.0;
        if let (Some(low), Some(high)) = (ratio.low, ratio.high) {
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
        html! {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" aria-hidden="true" {
                use href="#margin" {}
                path class="bar" d=(bar) {}
                path class="dot" d=(format!("M{} {middle}h.01", Px(at(ratio.value)))) {}
            }
        }
    }
}
