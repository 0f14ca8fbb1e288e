//! The page with one card for each claim: self-contained, without network access and without scripts.

use super::text::{claimed, found, no_longer, text, total};
use super::{Answer, Card, Judgement, Part, Report};
use crate::format::{capital, glued, timestamp};
use crate::html::Document;
use crate::messages::{Language, Message};
use kurabe_core::units;
use maud::{Markup, html};

/// The cards' own style, after that of all pages.
const STYLE: &str = ".cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,540px),1fr));gap:18px;margin:22px 0}\
.card{border:1px solid var(--rule);border-left-width:5px;border-radius:6px;padding:12px 18px;break-inside:avoid;overflow-wrap:anywhere}\
.card h2{border:0;margin:0 0 4px;padding:0;font-size:1.12rem}\
.card dl{margin:8px 0}.card .answer{font-weight:600;margin:4px 0}\
.card ul{list-style:none;padding:0;margin:8px 0}.card li{margin:8px 0}\
.holds{border-left-color:var(--s2)}.does-not-hold{border-left-color:var(--s1)}\
.undecided{border-left-color:var(--s4)}.not-testable{border-left-color:var(--rule)}\
.card .range{display:block;height:20px;max-width:420px}\
.range .claimed{fill:var(--s2);opacity:.22}.range .one{stroke:var(--faint);stroke-dasharray:2 2}\
.range .bar{stroke:var(--ink);stroke-width:1.6}.range .dot{fill:var(--ink)}\
.no-longer{color:var(--bad);font-weight:600}";

/// The page as text.
pub fn page(report: &Report, language: Language) -> String {
    let machine = &report.machine;
    let say = |message: Message| message.text(language);
    let title = say(Message::Claims);
    let (memory, cpus) = (glued(&units::size(machine.memory_bytes)), units::counted(machine.cpus, "CPU"));
    let body = html! {
        header {
            h1 { (title) }
            p class="question" { (total(report, language)) }
            p class="meta" {
                "Kurabe " (report.kurabe) " · " (timestamp(report.made)) " · " (machine.cpu) ", " (cpus) ", "
                (memory) ", " (machine.system)
            }
            @if !report.complete { p class="note" { (say(Message::ClaimsStopped)) } }
        }
        main {
            p class="soft" { (say(Message::HowClaims)) }
            div class="cards" { @for card in &report.claims { (one(card, language)) } }
        }
        footer { (Message::Footer.with(language, &[("version", &report.kurabe)])) }
    };
    Document { language, title, style: STYLE, body, script: String::new() }.text()
}

/// The class of an answer in the style sheet.
fn class(answer: Answer) -> &'static str {
    match answer {
        Answer::Holds => "holds",
        Answer::DoesNotHold => "does-not-hold",
        Answer::Undecided => "undecided",
        Answer::NotTestable => "not-testable",
    }
}

fn one(card: &Card, language: Language) -> Markup {
    let about = &card.about;
    let facts = [
        (Message::Published, &about.published),
        (Message::ItsFault, &about.fault),
        (Message::ClaimSource, &about.source),
    ];
    html! {
        section class={ "card " (class(card.answer)) } id=(about.id) {
            h2 { (about.id) ": " (text(card)) }
            (judgement("", &card.now, language))
            @if let Some(then) = &card.then { (judgement(Message::Then.text(language), then, language)) }
            @if card.no_longer_holds { p class="no-longer" { (no_longer(&about.id, card, language)) } }
            dl {
                @for (name, text) in facts {
                    @if let Some(text) = text { dt { (name.text(language)) } dd { (glued(text)) } }
                }
            }
        }
    }
}

fn judgement(era: &str, judgement: &Judgement, language: Language) -> Markup {
    let servers = judgement.servers();
    html! {
        p class="answer" { (era) (judgement.answer.word(language)) }
        @if let Some(why) = &judgement.why { p class="soft" { (why.clause(language)) } }
        @for clause in &judgement.publishing { p class="note" { (clause) } }
        @if !judgement.tests.is_empty() {
            ul { @for part in &judgement.tests { li { (test(part, language)) } } }
        }
        @if let Some(run) = &judgement.run {
            p class="soft" { (capital(Message::RunName.text(language))) " " (run) @if !servers.is_empty() { ": " (servers) } }
        }
    }
}

fn test(part: &Part, language: Language) -> Markup {
    let say = |message: Message| message.text(language);
    html! {
        @if !part.target.is_empty() { strong { (part.target) } ": " }
        (glued(&part.what))
        @if part.found.is_some() { " = " (glued(&found(part, language))) }
        "; " (say(Message::Claimed)) ": " (glued(&claimed(part, language))) ": " strong { (part.answer.word(language)) }
        @if let Some(why) = &part.why { " (" (why.clause(language)) ")" }
        @for note in &part.notes { "; " (note.clause(language)) }
        (drawing(part, language))
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
