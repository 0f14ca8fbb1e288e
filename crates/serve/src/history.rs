//! `/history/SUITE`: the runs of a suite over time, with the runs at which a result changed.

use crate::answer::Response;
use crate::call::Call;
use crate::page;
use crate::shared::Shared;
use crate::verdicts::analyse;
use kurabe_core::axis::Cell;
use kurabe_core::metric::Unit;
use kurabe_core::sort;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_record::{Entry, RunState, RunSummary};
use kurabe_report::history::{Change, Series, history};
use kurabe_report::html::Plot;
use kurabe_report::{Language, Message, Summary, short_commit, timestamp, value_of};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// The most runs of a history, the newest ones.
const MAX: usize = 60;
/// The factor by which a chart goes beyond its values to show their intervals.
const BEYOND: f64 = 1.5;

/// The complete runs of each suite, the newest first.
fn of_suites(shared: &Shared) -> Result<BTreeMap<String, Vec<RunSummary>>> {
    let mut suites: BTreeMap<String, Vec<RunSummary>> = BTreeMap::new();
    for entry in shared.store.list()? {
        if let Entry::Run(run) = entry
            && run.state == RunState::Complete
            && let Some(suite) = run.header.origin.suite.clone()
        {
            suites.entry(suite).or_default().push(*run);
        }
    }
    Ok(suites)
}

pub(crate) fn list(call: &Call) -> Result<Response> {
    let (suites, language) = (of_suites(&call.shared)?, call.language());
    let body = html! {
        @if suites.is_empty() {
            p { (page::with_code(language, Message::NoHistory, "kurabe run -f SUITE.toml")) }
        } @else {
            ul class="plain" {
                @for (suite, runs) in &suites {
                    @let newest = runs.first().map(|run| timestamp(run.header.began)).unwrap_or_default();
                    @let values = [("count", &*runs.len().to_string()), ("date", &newest)];
                    li { a href={ "/history/" (page::in_url(suite)) } { (suite) } (Message::RunsOfSuite.with(language, &values)) }
                }
            }
        }
    };
    Ok(page::layout(language, Message::History.text(language), &body))
}

pub(crate) fn page(call: &Call) -> Result<Response> {
    let (shared, suite, language) = (&call.shared, &call.name, call.language());
    let mut found = of_suites(shared)?
        .remove(suite)
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("the suite '{suite}' has no complete run")))?;
    found.truncate(MAX);
    found.reverse();
    let summaries = found
        .iter()
        .map(|run| Ok(analyse(&kurabe_record::read(&run.path)?.run)))
        .collect::<Result<Vec<Summary>>>()?;
    let title = Message::SuiteOverTime.with(language, &[("suite", suite)]);
    Ok(page::layout(language, &title, &of_summaries(&summaries, language)))
}

fn of_summaries(summaries: &[Summary], language: Language) -> Markup {
    let mut all = history(&summaries.iter().collect::<Vec<_>>());
    sort::by_key(&mut all, |series| !series.has_changed());
    let (changed, steady): (Vec<_>, Vec<_>) = all.iter().partition(|series| series.has_changed());
    let count =
        changed.iter().map(|series| series.points.iter().filter(|point| point.change.is_some()).count());
    let numbers = [summaries.len(), count.sum(), changed.len(), all.len()].map(|number| number.to_string());
    let names = ["count", "changes", "changed", "all"];
    let values: Vec<(&str, &str)> = names.into_iter().zip(numbers.iter().map(String::as_str)).collect();
    let unchanged = steady.len().to_string();
    html! {
        p class="question" { (Message::ChangesOfSuite.with(language, &values)) }
        p class="soft" { (Message::ChangeRule.text(language)) }
        @for series in &changed { (one(series, summaries, language)) }
        @if !steady.is_empty() {
            details open[changed.is_empty()] {
                summary { (Message::Steady.with(language, &[("count", &unchanged)])) }
                @for series in &steady { (one(series, summaries, language)) }
            }
        }
    }
}

fn one(series: &Series, summaries: &[Summary], language: Language) -> Markup {
    let say = |message: Message| message.text(language);
    let values = words(&series.axes, summaries);
    let parts = [
        ("metric", &*series.metric),
        ("operation", &series.operation),
        ("target", &series.target),
        ("values", &values),
    ];
    let what = Message::SeriesOf.with(language, &parts);
    html! {
        figure class="series c0" {
            figcaption { (what) }
            (chart(series, summaries, &what, language))
            @let changes: Vec<_> = series.points.iter().filter_map(|point| Some((point.run, point.change?))).collect();
            @if !changes.is_empty() {
                ul class="plain" { @for (run, change) in &changes { li { (sentence(&summaries[*run], change, language)) } } }
            }
            details {
                summary { (say(Message::Values)) }
                div class="box" { table {
                    thead { tr {
                        th { (say(Message::RunName)) } th { (say(Message::Commit)) }
                        th class="num" { (say(Message::Value)) } th class="num" { (say(Message::Interval)) }
                    } }
                    tbody {
                        @for point in &series.points {
                            @let show = |value: f64| value_of(series.unit, value);
                            tr {
                                td { a href={ "/runs/" (page::in_url(&summaries[point.run].run)) } { (summaries[point.run].run) } }
                                td { code { (commit(&summaries[point.run])) } }
                                td class="num" { (show(point.value.value)) }
                                td class="num" {
                                    @match point.value.low.zip(point.value.high) {
                                        Some((low, high)) => { (show(low)) " – " (show(high)) }
                                        None => "–",
                                    }
                                }
                            }
                        }
                    }
                } }
            }
        }
    }
}

/// The values of axes that vary in the suite.
fn words(axes: &Cell, summaries: &[Summary]) -> String {
    let varies = |name: &str| {
        summaries.iter().any(|summary| summary.spec.axes.get(name).is_some_and(|values| values.len() > 1))
    };
    let shown = axes
        .values()
        .iter()
        .filter(|(name, _)| varies(name))
        .map(|(name, value)| format!(", {name} {value}"));
    shown.collect()
}

fn commit(summary: &Summary) -> &str {
    summary.origin.git.as_ref().map_or("", |git| short_commit(&git.commit))
}

fn sentence(summary: &Summary, change: &Change, language: Language) -> String {
    let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    let run = match commit(summary) {
        "" => summary.run.clone(),
        commit => format!("{}, {} {commit}", summary.run, Message::Commit.text(language)),
    };
    let message = if change.better { Message::ChangedBetter } else { Message::ChangedWorse };
    let (low, high) = (percent(change.ratio.low), percent(change.ratio.high));
    let confirmed = if change.confirmed { "" } else { Message::Unconfirmed.text(language) };
    message.with(language, &[("run", &run), ("low", &low), ("high", &high)]) + confirmed
}

/// Values with their intervals over the runs, by the days on which these began. The values are also in a table.
fn chart(series: &Series, summaries: &[Summary], what: &str, language: Language) -> Markup {
    let values = || series.points.iter().map(|point| point.value.value);
    let (lowest, highest) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    // An interval of few rounds may be much longer than what the runs differ by: it ends at the edge.
    let ends = series.points.iter().flat_map(|point| {
        let (value, beyond) = (point.value, lowest / BEYOND);
        [
            value.low.unwrap_or(value.value).max(beyond),
            value.high.unwrap_or(value.value).min(highest * BEYOND),
        ]
    });
    let (least, most) = ends.fold((f64::INFINITY, 0.0_f64), |(a, b), value| (a.min(value), b.max(value)));
    // The scale shows changes of a few per cent, and no noise below one.
    let (least, most) = (least.min(most * 0.95), most.max(least * 1.05));
    let room = (most - least) * 0.06;
    let newest = summaries.len().saturating_sub(1);
    let mut named = vec![0, newest / 2, newest];
    named.dedup();
    let (day, time) = (|run: usize| timestamp(summaries[run].began), 11..16);
    let is_one_day = day(0).get(..10) == day(newest).get(..10);
    let day = |run: &usize| {
        let text = day(*run);
        text.get(if is_one_day { time.clone() } else { 0..10 }).unwrap_or_default().to_owned()
    };
    let show = |value: f64| value_of(series.unit, value);
    let plot = Plot {
        name: what,
        x: (-0.5, newest as f64 + 0.5),
        x_name: Message::RunsInOrder.text(language),
        x_ticks: named.iter().map(|run| (*run as f64, day(run))).collect(),
        y: (least - room, most + room),
        y_name: &format!("{}{}", series.metric, if series.unit == Unit::PerSecond { ", /s" } else { "" }),
        y_tick: &show,
    };
    let line = |from: (f64, f64), to: (f64, f64)| {
        let ((x1, y1), (x2, y2)) = (plot.at(from.0, from.1), plot.at(to.0, to.1));
        format!("M{x1} {y1}L{x2} {y2}")
    };
    plot.draw(&html! {
        @for point in &series.points {
            @if let Some(change) = point.change {
                @let x = point.run as f64;
                path class=(if change.better { "gained" } else { "changed" }) d=(line((x, plot.y.0), (x, plot.y.1))) {}
            }
        }
        polyline class="path" points=(plot.line(series.points.iter().map(|point| (point.run as f64, point.value.value)))) {}
        @for point in &series.points {
            @let x = point.run as f64;
            @if let Some((low, high)) = point.value.low.zip(point.value.high) {
                path class="bar" d=(line((x, low), (x, high))) {}
            }
            @let (cx, cy) = plot.at(x, point.value.value);
            circle class="value" cx=(cx) cy=(cy) r="3.5" {
                title { (summaries[point.run].run) ": " (show(point.value.value)) }
            }
        }
    })
}
