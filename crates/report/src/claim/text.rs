//! The answers on the terminal.

use crate::claim::{Card, Judgement, Part, Report, name, word};
use crate::document::{Block, notices};
use crate::format::{capital, figure, glued, machine, timestamp, value_of};
use crate::html::{Document, write};
use crate::messages::{Language, Message};
use crate::table::{Column, Table};
use crate::terminal::{Options, Page};
use crate::wording::{joined, say, with_interval};
use kurabe_core::metric::Unit;
use kurabe_stats::{Decision, Estimate};
use maud::{Markup, html};
use std::collections::BTreeSet;
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
        judgement.tests.iter().filter(|part| part.answer != Decision::NotTestable).collect();
    match tested.as_slice() {
        [] => "–".to_owned(),
        [one] => found(one, language),
        several => {
            let hold = several.iter().filter(|part| part.answer == Decision::Within).count();
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
    let title = Message::Claims.text(language);
    let title = format!("{title} · Kurabe {} · {}", report.kurabe, timestamp(report.made));
    let is_tested = |card: &&Card| {
        let judgements = [Some(&card.now), card.then.as_ref()];
        options.details || judgements.into_iter().flatten().any(|found| found.answer != Decision::NotTestable)
    };
    let (tested, others): (Vec<&Card>, Vec<&Card>) = report.claims.iter().partition(is_tested);
    let section = |card: &Card| {
        let items = sentences(card, options.details, language).into_iter().map(|(sentence, _)| sentence);
        Block::Section(format!("{}: {}", card.about.id, text(card)), vec![Block::Items(items.collect())])
    };
    let untested = |card: &Card| {
        let published = card.about.published.as_ref();
        let published = published
            .map_or_else(String::new, |text| say!(language, "; published: {text}", "。公表値: {text}"));
        let (id, why) = (&card.about.id, joined(&card.now.reasons(language), "; ", language));
        say!(language, "{id}: {why}{published}.", "{id}: {why}{published}。")
    };
    let no_longer = report.claims.iter().filter(|card| card.no_longer_holds);
    let no_longer = no_longer.map(|card| no_longer_holds(&card.about.id, card, language));
    let stopped = (!report.complete).then(|| Message::ClaimsStopped.text(language).to_owned());
    let blocks: Vec<Block> = [Block::Title(title)]
        .into_iter()
        .chain(publishing(report))
        .chain([Block::Table(table(report, options.width, language))])
        .chain(tested.into_iter().map(section))
        .chain((!others.is_empty()).then(|| {
            let untested = others.into_iter().map(untested).collect();
            let heading = capital(Message::NotTestable.text(language));
            Block::Section(heading, vec![Block::Items(untested)])
        }))
        .chain([Block::Items(
            [total(report, language)].into_iter().chain(no_longer).chain(stopped).collect(),
        )])
        .collect();
    let mut page = Page::new(options, language);
    page.write(&blocks);
    page.text
}

/// The restrictions of licences on the results of these claims.
fn publishing(report: &Report) -> Vec<Block> {
    let judgements = report.claims.iter().flat_map(|card| [&card.now].into_iter().chain(&card.then));
    let all: BTreeSet<&String> = judgements.flat_map(|judgement| &judgement.publishing).collect();
    notices(all.into_iter().cloned().collect())
}

/// How many claims have which answer, in a sentence.
pub(super) fn total(report: &Report, language: Language) -> String {
    let (all, counts) = (report.claims.len(), report.counts(language));
    say!(language, "Of {all} claims {counts}.", "主張 {all} 件: {counts}。")
}

/// A claim that held before, by this name, in a sentence.
fn no_longer_holds(name: &str, card: &Card, language: Language) -> String {
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
            let answer = word(judgement.answer, language).to_owned();
            rows.push(vec![
                id.to_owned(),
                answer,
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

/// The sentences below a claim: its tests with their values, the reason where there is none, and the published result. The
/// sentence of a test stands with the test.
fn sentences(card: &Card, all: bool, language: Language) -> Vec<(String, Option<&Part>)> {
    let mut told = Vec::new();
    if let Some(published) = &card.about.published {
        let fault =
            card.about.fault.as_ref().map_or_else(String::new, |fault| {
                say!(language, "; its fault: {fault}", "。その欠点: {fault}")
            });
        told.push((say!(language, "Published: {published}{fault}.", "公表値: {published}{fault}。"), None));
    }
    if all && let Some(source) = &card.about.source {
        told.push((say!(language, "Source: {source}.", "出典: {source}。"), None));
    }
    let then = Message::Then.text(language);
    for (era, judgement) in [("", Some(&card.now)), (then, card.then.as_ref())] {
        let Some(judgement) = judgement else { continue };
        if let Some(why) = &judgement.why {
            let (word, why) = (word(judgement.answer, language), why.clause(language));
            told.push((say!(language, "{era}{word}: {why}.", "{era}{word}: {why}。"), None));
        }
        let tests = judgement.tests.iter();
        told.extend(tests.map(|part| (format!("{era}{}", sentence(part, language)), Some(part))));
        if let Some(run) = judgement.run.as_ref().filter(|_| all) {
            let servers = judgement.servers();
            told.push((say!(language, "{era}run {run} on {servers}.", "{era}実行 {run}({servers})。"), None));
        }
    }
    told
}

/// `MySQL: write throughput, layout rows : blob: 1.12 (1.08 to 1.16), claimed at most 1: does not hold.`
fn sentence(part: &Part, language: Language) -> String {
    let at = if part.target.is_empty() { String::new() } else { format!("{}: ", part.target) };
    let value = part.found.map(|_| format!(" = {}", found(part, language))).unwrap_or_default();
    let why = part.why.as_ref().map(|why| format!(" ({})", why.clause(language))).unwrap_or_default();
    let notes = part.notes.iter().map(|note| note.clause(language));
    let (what, claimed, answer) = (&part.what, claimed(part, language), word(part.answer, language));
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

/// The cards' own style, after that of all pages.
const STYLE: &str = ".cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,540px),1fr));gap:18px;margin:22px 0}\
.card{border:1px solid var(--rule);border-left-width:5px;border-radius:6px;padding:12px 18px;break-inside:avoid;overflow-wrap:anywhere}\
.card h2{border:0;margin:0 0 4px;padding:0;font-size:1.12rem}\
.card .answer{font-weight:600;margin:4px 0}\
.card ul{list-style:none;padding:0;margin:8px 0}.card li{margin:8px 0}\
.holds{border-left-color:var(--s2)}.does-not-hold{border-left-color:var(--s1)}\
.undecided{border-left-color:var(--s4)}.not-testable{border-left-color:var(--rule)}\
.card .range{display:block;height:20px;max-width:420px}\
.range .claimed{fill:var(--s2);opacity:.22}.range .one{stroke:var(--faint);stroke-dasharray:2 2}\
.range .bar{stroke:var(--ink);stroke-width:1.6}.range .dot{fill:var(--ink)}\
.no-longer{color:var(--bad);font-weight:600}";

/// The page as text.
pub fn page(report: &Report, language: Language) -> String {
    let say = |message: Message| message.text(language);
    let title = say(Message::Claims);
    let body = html! {
        header {
            h1 { (title) }
            p class="question" { (total(report, language)) }
            p class="meta" {
                "Kurabe " (report.kurabe) " · " (timestamp(report.made)) " · " (glued(&machine(&report.machine, language)))
            }
            @if !report.complete { p class="note" { (say(Message::ClaimsStopped)) } }
        }
        main {
            (write(&publishing(report), language))
            p class="soft" { (say(Message::HowClaims)) }
            div class="cards" { @for card in &report.claims { (one(card, language)) } }
        }
        footer { (Message::Footer.with(language, &[("version", &report.kurabe)])) }
    };
    Document { language, title, style: STYLE, body, script: String::new() }.text()
}

fn one(card: &Card, language: Language) -> Markup {
    html! {
        section class={ "card " (name(card.answer)) } id=(card.about.id) {
            h2 { (card.about.id) ": " (text(card)) }
            p class="answer" { (word(card.answer, language)) }
            @if let Some(then) = &card.then {
                p class="answer" { (Message::Then.text(language)) (word(then.answer, language)) }
            }
            ul {
                @for (sentence, test) in sentences(card, true, language) {
                    li { (glued(&sentence)) @if let Some(test) = test { (drawing(test, language)) } }
                }
            }
            @if card.no_longer_holds { p class="no-longer" { (no_longer_holds(&card.about.id, card, language)) } }
        }
    }
}

/// The interval over the claimed range, on a logarithmic scale; nothing without an interval.
fn drawing(part: &Part, language: Language) -> Markup {
    let Some((found, low, high)) = part.found.and_then(|found| Some((found, found.low?, found.high?))) else {
        return html! {};
    };
    let claimed = part.claimed.ends();
    let ends = [part.claimed.at_least.map(|_| claimed.low), part.claimed.at_most.map(|_| claimed.high)];
    let shown: Vec<f64> = [low, high, found.value].into_iter().chain(ends.into_iter().flatten()).collect();
    if shown.iter().any(|value| *value <= 0.0 || !value.is_finite()) {
        return html! {};
    }
    let least = shown.iter().copied().fold(f64::INFINITY, f64::min) / 1.25;
    let most = shown.iter().copied().fold(0.0, f64::max) * 1.25;
    let x = |value: f64| (value.clamp(least, most) / least).ln() / (most / least).ln() * 400.0;
    let at = |value: f64| format!("{:.1}", x(value));
    let (from, to) = (x(claimed.low.max(least)), x(claimed.high.min(most)));
    let ratio = part.unit == kurabe_core::metric::Unit::Ratio && least < 1.0 && 1.0 < most;
    html! {
        svg class="range" viewBox="0 0 400 20" role="img" aria-label=(Message::IntervalAndRange.text(language)) {
            @if to > from {
                rect class="claimed" x=(format!("{from:.1}")) y="0" width=(format!("{:.1}", to - from)) height="20" {}
            }
            @if ratio { line class="one" x1=(at(1.0)) x2=(at(1.0)) y1="0" y2="20" {} }
            line class="bar" x1=(at(low)) x2=(at(high)) y1="10" y2="10" {}
            circle class="dot" cx=(at(found.value)) cy="10" r="4" {}
        }
    }
}
