//! The report for a terminal: the answer in few lines, or the whole document.

use crate::answer::{self, Ranking, rankings, statements};
use crate::document;
use crate::finding::{Finding, Note, Section, Statement};
use crate::messages::Message;
use crate::summary::Summary;
use crate::table::lacking;
use crate::terminal_page::Page;
use kurabe_core::sort;

pub use crate::terminal_page::{Options, wrapped_list};

/// The number of lines of a report without details: it is read without scrolling.
const LINES: usize = 20;

/// The number of failures that are shown in any case.
const FAILED: usize = 2;

/// The report as text that ends with a newline: the answer in at most 20 lines, unless a licence or a message of a server
/// needs more; or with all details.
pub fn render(summary: &Summary, options: &Options) -> String {
    if !options.details {
        return answer(summary, options);
    }
    let mut page = Page::new(options, summary.labels.language);
    page.write(&document::report(summary));
    format!("{}\n", page.text.trim_end())
}

/// The answer: what else the experiment answers with, the ranking at each place, what lacks results, and the most serious
/// notes.
fn answer(summary: &Summary, options: &Options) -> String {
    let mut page = Page::new(options, summary.labels.language);
    page.write(&document::notices(summary.sentences(Section::Publishing)));
    let mut all = rankings(summary);
    let [others, _] = statements(summary, !all.is_empty());
    let threshold = answer::threshold_sentence(summary);
    let least = all.first().map_or(0, |ranking| ranking.compared().count() + 2);
    let mut notes: Vec<&Statement> = summary.statements(Section::Warning).collect();
    // Those from before the first trial were shown before it.
    notes.retain(|note| {
        !matches!(note.finding, Finding::Note(Note::Preflight { .. } | Note::TargetNote { .. }))
    });
    sort::by_key(&mut notes, |note| note.finding.consequence());
    let notes: Vec<String> = notes.into_iter().map(|note| summary.sentence(note)).collect();
    // What failed is not left out for want of a line.
    let failed: Vec<String> = lacking(summary).into_iter().map(|(_, sentence)| sentence).collect();
    let needed: usize = failed.iter().take(FAILED).map(|one| page.item_height(one)).sum();
    // The last line. What was asked for comes before notes.
    let limit = usize::from(summary.spec.slo_ns.is_some());
    let most = LINES.saturating_sub(1 + limit + needed);
    let others: Vec<String> = others.into_iter().map(|one| summary.sentence(one)).collect();
    let left = page.items(&others, most.saturating_sub(least));
    let room = most.saturating_sub(page.lines() + 1);
    let height = |ranking: &Ranking<'_>| ranking.rows.len() + page.height(&ranking.heading);
    let mut cut = 0;
    if all.iter().map(height).sum::<usize>() > room {
        for ranking in &mut all {
            let before = ranking.rows.len();
            ranking.keep_compared();
            cut += before - ranking.rows.len();
        }
    }
    let heights: Vec<usize> = all.iter().map(height).collect();
    let mut shown = fitting_rankings(&all, &heights, room);
    if let Some(sentence) = left_out(summary, &all, &shown, cut) {
        shown = fitting_rankings(&all, &heights, room.saturating_sub(page.item_height(&sentence)));
    }
    if !shown.is_empty() {
        let shown: Vec<&Ranking<'_>> = shown.iter().map(|at| &all[*at]).collect();
        let (table, headings) = answer::table(&summary.experiment, &shown, summary.labels.language);
        page.groups(&table, &headings);
    }
    if let Some(sentence) = left_out(summary, &all, &shown, cut) {
        page.item(&sentence);
    }
    if let Some(sentence) = threshold {
        page.item(&sentence);
    }
    let (first, failed) = failed.split_at(failed.len().min(FAILED));
    page.items(first, usize::MAX);
    let behind = left + page.items(&[failed, &notes].concat(), LINES - 1);
    let language = summary.labels.language;
    let more = match behind {
        0 => String::new(),
        1 => Message::OneMore.text(language).to_owned(),
        more => Message::MoreFindings.with(language, &[("count", &more.to_string())]),
    };
    let command = format!("kurabe report {} --verbose", summary.run);
    page.paragraph(&Message::AllFigures.with(language, &[("more", &more), ("command", &command)]));
    page.text
}

/// What was measured and is not shown: combinations in rankings, and of the rankings that are left out the operations and
/// values of the chart axis that no other has; of the rest the place, or their number.
fn left_out(summary: &Summary, all: &[Ranking<'_>], shown: &[usize], cut: usize) -> Option<String> {
    let labels = &summary.labels;
    let chart = labels.chart_axis();
    let of = |ranking: &Ranking<'_>| -> Option<[String; 2]> {
        let cell = ranking.rows.first()?.cell;
        let at = chart.and_then(|axis| Some(axis.name_value(cell.axes.get(&axis.name)?)));
        Some([labels.plural(&cell.operation), at.unwrap_or_default()])
    };
    let seen: Vec<[String; 2]> = shown.iter().filter_map(|at| of(&all[*at])).collect();
    let hidden = all.iter().enumerate().filter(|(at, _)| !shown.contains(at));
    let (mut what, mut others) = ([Vec::new(), Vec::new()], Vec::new());
    for (_, ranking) in hidden {
        let names = of(ranking).unwrap_or_default();
        match (0..2).find(|part| seen.iter().all(|one| one[*part] != names[*part])) {
            Some(part) if what[part].contains(&names[part]) => {}
            Some(part) => what[part].push(names[part].clone()),
            None => others.push(ranking.heading.clone()),
        }
    }
    let counted =
        |message: Message, count: usize| message.with(labels.language, &[("count", &count.to_string())]);
    if others.len() > 1 {
        others = vec![counted(Message::MorePlaces, others.len())];
    }
    others.extend((cut > 0).then(|| counted(Message::MoreCombinations, cut)));
    let what = [what.concat(), others].concat().join("; ");
    (!what.is_empty()).then(|| Message::NotShown.with(labels.language, &[("what", &what)]))
}

/// The rankings of these heights that fit into so many lines, by position: those at the first value of the chart axis, then
/// others; at least one.
fn fitting_rankings(all: &[Ranking<'_>], heights: &[usize], lines: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    sort::by_key(&mut order, |at| !all[*at].is_first);
    let mut used = 0;
    let mut kept: Vec<usize> = order
        .into_iter()
        .enumerate()
        .take_while(|(n, at)| {
            used += heights[*at];
            *n == 0 || used <= lines
        })
        .map(|(_, at)| at)
        .collect();
    kept.sort_unstable();
    kept
}
