//! The page of a report: what it says before its charts, the charts, and what is behind them.

use super::lines::Series;
use super::{Document, cells, charts, ranking, write};
use crate::answer::{self, Threshold, rankings};
use crate::document::{Block, behind_charts, notices};
use crate::finding::published;
use crate::finding::{Comparison, Consequence, Finding, Progress, Section, Statement, Trials};
use crate::format::{capital, timestamp};
use crate::messages::{Language, Message};
use crate::summary::Summary;
use kurabe_core::sort;
use maud::{Markup, html};

/// Additional contents of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether to show published results in the charts, with their source and known problems, if the experiment has
    /// some.
    pub published: bool,
}

/// The page as text.
pub fn render(summary: &Summary, options: &Options) -> String {
    let published =
        summary.labels.published.filter(|_| options.published).map(published::load).unwrap_or_default();
    let (rankings, series) = (rankings(summary), Series::new(summary));
    let limits = answer::thresholds(summary);
    let opening = Opening::new(summary, !rankings.is_empty());
    let language = summary.labels.language;
    let [filter, panel] = cells::places(language);
    let title = format!("{}: {}", capital(&summary.experiment), summary.labels.targets.join(", "));
    let meta: [(&str, &str); 4] = [
        ("run", &summary.run),
        ("date", &timestamp(summary.began)),
        ("rounds", &summary.rounds_text()),
        ("version", &summary.kurabe),
    ];
    let body = html! {
        header {
            h1 { (title) }
            // Experiments ask in English.
            @if let Some(question) = summary.question.as_ref().filter(|_| language == Language::English) { p class="question" { (question) } }
            p class="meta" { (Message::Run.with(language, &meta)) }
        }
        main {
            (write(&notices(summary.sentences(Section::Publishing)), language))
            (thresholds(&limits, &summary.labels.objective, language))
            (write(&opening.conclusion, language))
            (ranking::section(summary, &series, &rankings))
            (panel)
            (write(&opening.caveats, language))
            (filter)
            (charts::primary(summary, &series))
            (charts::scatters(summary, &series, &published))
            (charts::of_speed(summary, &series, &published))
            (ranking::courses(summary, &series, &rankings))
            (charts::further(summary, &series))
            (write(&behind_charts(summary), language))
        }
        footer { (Message::Footer.with(language, &[("version", &summary.kurabe)])) }
    };
    let script = format!("\"use strict\";const DATA={};{}", cells::data(summary), include_str!("script.js"));
    Document { language, title: &title, style: "", body, script }.text()
}

/// The number of decided comparisons with which a page begins.
const CONCLUSION: usize = 2;

/// The opening of a page, before its charts.
struct Opening {
    /// Missing results, the conclusion in words, how many comparisons are undecided, and other load on the machine.
    conclusion: Vec<Block>,
    /// Caveats, the most serious first, and the other comparisons as sentences, which the rankings have in figures.
    caveats: Vec<Block>,
}

impl Opening {
    fn new(summary: &Summary, has_rankings: bool) -> Self {
        let language = summary.labels.language;
        // The first decided comparisons, then statements that the rankings lack.
        let [others, compared] = answer::statements(summary, has_rankings);
        let (mut said, compared) = split(&compared);
        said.extend(others);
        let mut warnings: Vec<&Statement> = summary.statements(Section::Warning).collect();
        sort::by_key(&mut warnings, |warning| warning.finding.consequence());
        let sentences = |all: &[&Statement]| all.iter().map(|one| summary.sentence(one)).collect::<Vec<_>>();
        let of = |wanted: Place| {
            let here = warnings.iter().filter(|warning| place(&warning.finding) == wanted);
            sentences(&here.copied().collect::<Vec<_>>())
        };
        let said = (!said.is_empty()).then(|| Block::Conclusion(sentences(&said)));
        let conclusion =
            notices(of(Place::Missing)).into_iter().chain(said).chain(notices(of(Place::Beside)));
        let counted =
            |message: Message, count: usize| message.with(language, &[("count", &count.to_string())]);
        let below = of(Place::Below);
        let heading = match below.len() {
            1 => Message::OneCaveat.text(language).to_owned(),
            count => counted(Message::Caveats, count),
        };
        let caveats = (!below.is_empty()).then_some(Block::Details(heading, notices(below)));
        let in_words = (!compared.is_empty()).then(|| {
            let heading = counted(Message::InWords, compared.len());
            Block::Details(heading, vec![Block::Facts(sentences(&compared))])
        });
        Self { conclusion: conclusion.collect(), caveats: caveats.into_iter().chain(in_words).collect() }
    }
}

/// The first comparisons that are decided, and all others.
fn split<'a>(compared: &[&'a Statement]) -> (Vec<&'a Statement>, Vec<&'a Statement>) {
    let mut left = CONCLUSION;
    compared.iter().partition(|one| {
        let is_first = left > 0 && matches!(one.finding, Finding::Comparison(Comparison::Better { .. }));
        left -= usize::from(is_first);
        is_first
    })
}

/// Where a page has a warning.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Before the conclusion: results are missing.
    Missing,
    /// Beside the conclusion: what is undecided, and other load on the machine.
    Beside,
    /// Among the caveats.
    Below,
}

fn place(finding: &Finding) -> Place {
    match finding {
        Finding::Progress(Progress::MoreRounds { .. }) | Finding::Trials(Trials::Disturbed { .. }) => {
            Place::Beside
        }
        _ if finding.consequence() == Consequence::Missing => Place::Missing,
        _ => Place::Below,
    }
}

/// Whether each result keeps the limit of its response times.
fn thresholds(all: &[Threshold], limit: &str, language: Language) -> Markup {
    let passed = all.iter().filter(|one| one.passed).count();
    let word = |passed: bool| (if passed { Message::Pass } else { Message::Fail }).text(language);
    let class = |passed: bool| if passed { "passed" } else { "failed" };
    let kept = passed == all.len();
    let counts = [("limit", limit), ("passed", &passed.to_string()), ("count", &all.len().to_string())];
    html! {
        @if !all.is_empty() {
            section class="thresholds" {
                p { b class=(class(kept)) { (word(kept)) } (Message::ThresholdCount.with(language, &counts)) }
                ul {
                    @for one in all {
                        li {
                            b class=(class(one.passed)) { (if one.passed { "✓ " } else { "✗ " }) (word(one.passed)) }
                            " " (one.text)
                        }
                    }
                }
            }
        }
    }
}
