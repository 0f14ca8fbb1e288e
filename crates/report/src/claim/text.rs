//! The answers on the terminal.

use super::{Answer, Card, Judgement, Part, Report};
use crate::format::{figure, timestamp, value_of};
use crate::messages::Language;
use crate::table::{Column, Table};
use crate::terminal_page::{Options, Page};
use crate::wording::with_interval;
use kurabe_core::metric::Unit;
use kurabe_stats::Estimate;
use unicode_width::UnicodeWidthStr;

/// The least width of a claim's text.
const TEXT: usize = 24;

/// Formats a value of a part in its unit.
pub(super) fn show(unit: Unit) -> impl Fn(f64) -> String {
    move |value| match unit {
        Unit::Ratio | Unit::Count => figure(value),
        unit => value_of(unit, value),
    }
}

/// The value of a part with its interval: `1.12 (1.08 to 1.16)`.
pub(super) fn found(part: &Part) -> String {
    let shown = |found: Estimate| with_interval(found, &show(part.unit), Language::English);
    part.found.map_or_else(|| "–".to_owned(), shown)
}

/// What is claimed of a part: `at least 2`.
pub(super) fn claimed(part: &Part) -> String {
    part.claimed.words(&show(part.unit))
}

/// The claim with its year.
pub(super) fn text(card: &Card) -> String {
    match card.about.year {
        Some(year) => format!("{} ({year})", card.about.claim),
        None => card.about.claim.clone(),
    }
}

/// The result in one cell of a table: the value of the only test, or how many tests hold.
fn result(judgement: &Judgement) -> String {
    let tested: Vec<&Part> =
        judgement.tests.iter().filter(|part| part.answer != Answer::NotTestable).collect();
    match tested.as_slice() {
        [] => "–".to_owned(),
        [one] => found(one),
        several => {
            let hold = several.iter().filter(|part| part.answer == Answer::Holds).count();
            format!("{hold} of {} hold", several.len())
        }
    }
}

/// What is claimed, if it is the same in all tests.
fn one_claim(judgement: &Judgement) -> String {
    let mut all: Vec<String> = judgement.tests.iter().map(claimed).collect();
    all.dedup();
    match all.as_slice() {
        [] => "–".to_owned(),
        [one] => one.clone(),
        _ => "several".to_owned(),
    }
}

/// The report as text that ends with a newline: the table, then the tests of each claim, or with
/// [`details`](Options::details) also the published results and their faults.
pub fn terminal(report: &Report, options: &Options) -> String {
    let mut page = Page::new(options);
    page.heading(&format!("Claims · Kurabe {} · {}", report.kurabe, timestamp(report.made)));
    let publishing: Vec<String> = report
        .claims
        .iter()
        .flat_map(|card| [&card.now].into_iter().chain(&card.then))
        .flat_map(|judgement| judgement.publishing.clone())
        .collect();
    page.publishing(&publishing);
    page.gap();
    page.grid(&table(report, options.width));
    page.gap();
    let is_tested = |card: &&Card| {
        let judgements = [Some(&card.now), card.then.as_ref()];
        options.details || judgements.into_iter().flatten().any(|found| found.answer != Answer::NotTestable)
    };
    for card in report.claims.iter().filter(is_tested) {
        details(&mut page, card, options.details);
    }
    let others: Vec<&Card> = report.claims.iter().filter(|card| !is_tested(card)).collect();
    if !others.is_empty() {
        page.heading("Not testable here");
        for card in others {
            let published = card.about.published.as_ref();
            let published = published.map_or_else(String::new, |text| format!("; published: {text}"));
            page.item(&format!("{}: {}{published}.", card.about.id, card.now.reasons().join("; ")));
        }
        page.gap();
    }
    let counts = report.counts();
    page.item(&format!("Of {} claims {counts}.", report.claims.len()));
    for card in report.claims.iter().filter(|card| card.no_longer_holds) {
        let before = match card.held.as_ref().and_then(|held| held.run.as_ref()) {
            Some(run) => format!("it held in the run {run}"),
            None => "the claims file says that it held".to_owned(),
        };
        page.item(&format!("{} does not hold any more: {before}.", card.about.id));
    }
    if !report.complete {
        page.item("Stopped: the other claims were not answered.");
    }
    page.text
}

fn table(report: &Report, width: usize) -> Table {
    let column = |head: &str, spare| Column { head: head.to_owned(), right: false, spare };
    let columns = vec![
        column("id", 0),
        column("answer", 0),
        column("result", 1),
        column("claimed", 2),
        column("claim", 0),
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for card in &report.claims {
        let mut row = |id: &str, judgement: &Judgement, text: String| {
            let word = judgement.answer.word().to_owned();
            rows.push(vec![id.to_owned(), word, result(judgement), one_claim(judgement), text]);
        };
        row(&card.about.id, &card.now, text(card));
        if let Some(then) = &card.then {
            let servers = then.servers();
            let on: &str = if servers.is_empty() { "servers of its time" } else { &servers };
            row("", then, format!("… on {on}"));
        }
    }
    // The text has what the other columns leave, so that no column is dropped for it.
    let widest =
        |at: usize| rows.iter().map(|row| row[at].width()).max().unwrap_or(0).max(columns[at].head.width());
    let others: usize = (0..columns.len() - 1).map(|at| widest(at) + 2).sum();
    let left = width.clamp(60, 200).saturating_sub(others).max(TEXT);
    for row in &mut rows {
        if let Some(text) = row.last_mut() {
            *text = shortened(text, left);
        }
    }
    Table { columns, rows, ..Table::default() }
}

/// The first characters of a text that fit into this many columns.
fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for character in text.chars() {
        if short.width() + 2 > width {
            break;
        }
        short.push(character);
    }
    format!("{}…", short.trim_end())
}

/// The tests of a claim with their values, and why there is none.
fn details(page: &mut Page, card: &Card, all: bool) {
    page.heading(&format!("{}: {}", card.about.id, text(card)));
    if let Some(published) = &card.about.published {
        let fault =
            card.about.fault.as_ref().map(|fault| format!("; its fault: {fault}")).unwrap_or_default();
        page.item(&format!("Published: {published}{fault}."));
    }
    if all && let Some(source) = &card.about.source {
        page.item(&format!("Source: {source}."));
    }
    for (era, judgement) in [("", Some(&card.now)), ("Then: ", card.then.as_ref())] {
        let Some(judgement) = judgement else { continue };
        if let Some(why) = &judgement.why {
            page.item(&format!("{era}{}: {why}.", judgement.answer.word()));
        }
        for part in &judgement.tests {
            page.item(&format!("{era}{}", sentence(part)));
        }
        if let Some(run) = judgement.run.as_ref().filter(|_| all) {
            page.item(&format!("{era}run {run} on {}.", judgement.servers()));
        }
    }
    page.gap();
}

/// `MySQL: write throughput, layout rows : blob: 1.12 (1.08 to 1.16), claimed at most 1: does not hold.`
fn sentence(part: &Part) -> String {
    let at = if part.target.is_empty() { String::new() } else { format!("{}: ", part.target) };
    let value = part.found.map(|_| format!(" = {}", found(part))).unwrap_or_default();
    let why = part.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    let notes = part.notes.iter().fold(String::new(), |text, note| format!("{text}; {note}"));
    format!("{at}{}{value}; claimed: {}: {}{why}{notes}.", part.what, claimed(part), part.answer.word())
}
