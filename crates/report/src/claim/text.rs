//! The answers on the terminal.

use super::{Answer, Card, Judgement, Part, Report};
use crate::format::{capital, figure, timestamp, value_of};
use crate::messages::{Language, Message};
use crate::table::{Column, Table};
use crate::terminal_page::{Options, Page};
use crate::wording::{joined, say, with_interval};
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
pub(super) fn found(part: &Part, language: Language) -> String {
    let shown = |found: Estimate| with_interval(found, &show(part.unit), language);
    part.found.map_or_else(|| "–".to_owned(), shown)
}

/// What is claimed of a part: `at least 2`.
pub(super) fn claimed(part: &Part, language: Language) -> String {
    part.claimed.words(&show(part.unit), language)
}

/// The claim with its year.
pub(super) fn text(card: &Card) -> String {
    match card.about.year {
        Some(year) => format!("{} ({year})", card.about.claim),
        None => card.about.claim.clone(),
    }
}

/// The result in one cell of a table: the value of the only test, or how many tests hold.
fn result(judgement: &Judgement, language: Language) -> String {
    let tested: Vec<&Part> =
        judgement.tests.iter().filter(|part| part.answer != Answer::NotTestable).collect();
    match tested.as_slice() {
        [] => "–".to_owned(),
        [one] => found(one, language),
        several => {
            let hold = several.iter().filter(|part| part.answer == Answer::Holds).count();
            let all = several.len();
            say!(language, "{hold} of {all} hold", "{all} 件中 {hold} 件成立")
        }
    }
}

/// What is claimed, if it is the same in all tests.
fn one_claim(judgement: &Judgement, language: Language) -> String {
    let mut all: Vec<String> = judgement.tests.iter().map(|part| claimed(part, language)).collect();
    all.dedup();
    match all.as_slice() {
        [] => "–".to_owned(),
        [one] => one.clone(),
        _ => say!(language, "several", "複数"),
    }
}

/// The report as text that ends with a newline: the table, then the tests of each claim, or with
/// [`details`](Options::details) also the published results and their faults.
pub fn terminal(report: &Report, options: &Options, language: Language) -> String {
    let mut page = Page::new(options, language);
    let title = Message::Claims.text(language);
    page.heading(&format!("{title} · Kurabe {} · {}", report.kurabe, timestamp(report.made)));
    let publishing: Vec<String> = report
        .claims
        .iter()
        .flat_map(|card| [&card.now].into_iter().chain(&card.then))
        .flat_map(|judgement| judgement.publishing.clone())
        .collect();
    page.publishing(&publishing);
    page.gap();
    page.grid(&table(report, options.width, language));
    page.gap();
    let is_tested = |card: &&Card| {
        let judgements = [Some(&card.now), card.then.as_ref()];
        options.details || judgements.into_iter().flatten().any(|found| found.answer != Answer::NotTestable)
    };
    for card in report.claims.iter().filter(is_tested) {
        details(&mut page, card, options.details, language);
    }
    let others: Vec<&Card> = report.claims.iter().filter(|card| !is_tested(card)).collect();
    if !others.is_empty() {
        page.heading(&capital(Message::NotTestable.text(language)));
        for card in others {
            let published = card.about.published.as_ref();
            let published = published
                .map_or_else(String::new, |text| say!(language, "; published: {text}", "。公表値: {text}"));
            let (id, why) = (&card.about.id, joined(&card.now.reasons(language), "; ", language));
            page.item(&say!(language, "{id}: {why}{published}.", "{id}: {why}{published}。"));
        }
        page.gap();
    }
    page.item(&total(report, language));
    for card in report.claims.iter().filter(|card| card.no_longer_holds) {
        page.item(&no_longer(&card.about.id, card, language));
    }
    if !report.complete {
        page.item(Message::ClaimsStopped.text(language));
    }
    page.text
}

/// How many claims have which answer, in a sentence.
pub(super) fn total(report: &Report, language: Language) -> String {
    let (all, counts) = (report.claims.len(), report.counts(language));
    say!(language, "Of {all} claims {counts}.", "主張 {all} 件: {counts}。")
}

/// A claim that held before, by this name, in a sentence.
pub(super) fn no_longer(name: &str, card: &Card, language: Language) -> String {
    match card.held.as_ref().and_then(|held| held.run.as_ref()) {
        Some(run) => say!(
            language,
            "{name} does not hold any more: it held in the run {run}.",
            "{name} は成立しなくなりました。実行 {run} では成立していました。",
        ),
        None => say!(
            language,
            "{name} does not hold any more: the claims file says that it held.",
            "{name} は成立しなくなりました。主張のファイルには成立したとあります。",
        ),
    }
}

fn table(report: &Report, width: usize, language: Language) -> Table {
    let column = |head: Message, spare| Column { head: head.text(language).to_owned(), right: false, spare };
    let columns = vec![
        column(Message::ClaimName, 0),
        column(Message::Answer, 0),
        column(Message::Result, 1),
        column(Message::Claimed, 2),
        column(Message::Claim, 0),
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for card in &report.claims {
        let mut row = |id: &str, judgement: &Judgement, text: String| {
            let word = judgement.answer.word(language).to_owned();
            rows.push(vec![
                id.to_owned(),
                word,
                result(judgement, language),
                one_claim(judgement, language),
                text,
            ]);
        };
        row(&card.about.id, &card.now, text(card));
        if let Some(then) = &card.then {
            let servers = then.servers();
            let of_its_time = say!(language, "servers of its time", "当時のサーバー");
            let on = if servers.is_empty() { of_its_time } else { servers };
            row("", then, say!(language, "… on {on}", "… {on}"));
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
fn details(page: &mut Page, card: &Card, all: bool, language: Language) {
    page.heading(&format!("{}: {}", card.about.id, text(card)));
    if let Some(published) = &card.about.published {
        let fault =
            card.about.fault.as_ref().map_or_else(String::new, |fault| {
                say!(language, "; its fault: {fault}", "。その欠点: {fault}")
            });
        page.item(&say!(language, "Published: {published}{fault}.", "公表値: {published}{fault}。"));
    }
    if all && let Some(source) = &card.about.source {
        page.item(&say!(language, "Source: {source}.", "出典: {source}。"));
    }
    let then = Message::Then.text(language);
    for (era, judgement) in [("", Some(&card.now)), (then, card.then.as_ref())] {
        let Some(judgement) = judgement else { continue };
        if let Some(why) = &judgement.why {
            let (word, why) = (judgement.answer.word(language), why.clause(language));
            page.item(&say!(language, "{era}{word}: {why}.", "{era}{word}: {why}。"));
        }
        for part in &judgement.tests {
            page.item(&format!("{era}{}", sentence(part, language)));
        }
        if let Some(run) = judgement.run.as_ref().filter(|_| all) {
            let servers = judgement.servers();
            page.item(&say!(language, "{era}run {run} on {servers}.", "{era}実行 {run}({servers})。"));
        }
    }
    page.gap();
}

/// `MySQL: write throughput, layout rows : blob: 1.12 (1.08 to 1.16), claimed at most 1: does not hold.`
fn sentence(part: &Part, language: Language) -> String {
    let at = if part.target.is_empty() { String::new() } else { format!("{}: ", part.target) };
    let value = part.found.map(|_| format!(" = {}", found(part, language))).unwrap_or_default();
    let why = part.why.as_ref().map(|why| format!(" ({})", why.clause(language))).unwrap_or_default();
    let notes = part.notes.iter().map(|note| note.clause(language));
    let (what, claimed, answer) = (&part.what, claimed(part, language), part.answer.word(language));
    match language {
        Language::English => {
            let notes = notes.fold(String::new(), |text, note| format!("{text}; {note}"));
            format!("{at}{what}{value}; claimed: {claimed}: {answer}{why}{notes}.")
        }
        Language::Japanese => {
            let notes = notes.fold(String::new(), |text, note| format!("{text}。{note}"));
            format!("{at}{what}{value}、主張の範囲: {claimed}、{answer}{why}{notes}。")
        }
    }
}
