//! The parts of the page beside its charts.

use super::escape::Escaped;
use crate::engine::{self, Titled};
use crate::format::{capital, command_line, glued, list};
use crate::published::Published;
use crate::summary::{Status, Summary, TargetSummary};
use crate::table::{Table, fixed_axes, lacking as lacking_cells, tables};
use crate::terminal::trust as trust_sentences;
use kurabe_core::units;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The verdict first (after what licences say of publishing it), then what a reader must know before believing it.
pub(super) fn verdict(page: &mut String, summary: &Summary) {
    for sentence in &summary.publishing {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", Escaped(&glued(sentence)));
    }
    page.push_str("<ul class=\"verdict\">\n");
    for sentence in &summary.summary {
        let _ = writeln!(page, "<li>{}</li>", Escaped(&glued(sentence)));
    }
    page.push_str("</ul>\n");
    for note in &summary.notes {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", Escaped(&glued(note)));
    }
    let _ = writeln!(page, "<p class=\"soft\">{}</p>", Escaped(&glued(&summary.scope)));
}

/// More sentences than these are folded; on paper they are all there.
const SHOWN_AT_ONCE: usize = 12;

pub(super) fn details(page: &mut String, summary: &Summary) {
    if summary.details.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>In particular</h2>\n");
    let many = summary.details.len() > SHOWN_AT_ONCE;
    if many {
        let _ = writeln!(
            page,
            "<details>\n<summary>{} verdicts, each in a sentence</summary>",
            summary.details.len()
        );
    }
    items(page, &summary.details);
    page.push_str(if many { "</details>\n</section>\n" } else { "</section>\n" });
}

fn items(page: &mut String, sentences: &[String]) {
    page.push_str("<ul class=\"plain\">\n");
    for sentence in sentences {
        let _ = writeln!(page, "<li>{}</li>", Escaped(&glued(sentence)));
    }
    page.push_str("</ul>\n");
}

pub(super) fn figures(page: &mut String, summary: &Summary) {
    let tables = tables(summary);
    if tables.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>Figures</h2>\n");
    let fixed = fixed_axes(summary);
    let fixed = if fixed.is_empty() { String::new() } else { format!(" Throughout: {}.", fixed.join(", ")) };
    let _ = writeln!(
        page,
        "<p class=\"soft\">Operations per second: the median of the rounds with its 95 % interval. Latencies: over all rounds. CPU: of the client. Stored: mean bytes handed to the database for one record.{}</p>",
        Escaped(&fixed)
    );
    for table in tables {
        let _ = writeln!(page, "<h3>{}</h3>", Escaped(&table.title(summary)));
        if let Some(legend) = &table.legend {
            let _ = writeln!(page, "<p class=\"soft\">{}</p>", Escaped(legend));
        }
        one_table(page, &table);
    }
    page.push_str("</section>\n");
}

fn one_table(page: &mut String, table: &Table) {
    let class = |right: bool| if right { " class=\"num\"" } else { "" };
    page.push_str("<div class=\"box\"><table>\n<thead><tr>");
    for column in &table.columns {
        let _ = write!(page, "<th{}>{}</th>", class(column.right), Escaped(&column.head));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        page.push_str("<tr>");
        for (column, cell) in table.columns.iter().zip(row) {
            let _ = write!(page, "<td{}>{}</td>", class(column.right), Escaped(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

/// What the server says of itself, and what it does not tell.
pub(super) fn engine(page: &mut String, summary: &Summary) {
    let (said, untold) = (engine::tables(summary, false), engine::untold(summary));
    if said.is_empty() && untold.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>What the server says</h2>\n");
    for Titled { title, legend, table } in said {
        let _ = writeln!(
            page,
            "<h3>{}</h3>\n<p class=\"soft\">{}</p>",
            Escaped(&title),
            Escaped(&glued(&legend))
        );
        one_table(page, &table);
    }
    if !untold.is_empty() {
        page.push_str("<h3>What it does not tell</h3>\n");
        items(page, &untold);
    }
    page.push_str("</section>\n");
}

/// What bound the cells, with the evidence.
pub(super) fn bounds(page: &mut String, summary: &Summary) {
    if summary.bounds.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>What bound it</h2>\n");
    items(page, &summary.bounds);
    page.push_str("</section>\n");
}

pub(super) fn lacking(page: &mut String, summary: &Summary) {
    let entries = lacking_cells(summary);
    if entries.is_empty() {
        return;
    }
    page.push_str(
        "<section>\n<h2>Without figures</h2>\n<div class=\"box\"><table>\n<thead><tr><th>target</th><th>cell</th><th>operations</th><th>status</th><th>reason</th></tr></thead>\n<tbody>\n",
    );
    for entry in entries {
        let class = if entry.status == Status::Failed { "failed" } else { "unavailable" };
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"{class}\">{}</td><td class=\"wrap\">{}</td></tr>",
            Escaped(&entry.target),
            Escaped(&entry.place),
            Escaped(&list(&entry.operations)),
            entry.status_word(),
            Escaped(&entry.reason)
        );
    }
    page.push_str("</tbody></table></div>\n</section>\n");
}

pub(super) fn trust(page: &mut String, summary: &Summary) {
    page.push_str("<section>\n<h2>What this rests on</h2>\n");
    items(page, &trust_sentences(summary));
    page.push_str(
        "<h3>How to read a verdict</h3>\n\
         <p>In each round every cell is measured once, in random order, so that two cells of a round met the same state of the machine. A ratio is the geometric mean of the rounds' ratios. It is called faster or slower only if two things hold: its interval, widened for few rounds and for all comparisons made together, does not hold 1; and it is farther from 1 than the noise floor, which is how far the baseline may be from itself when it is measured twice in each round.</p>\n\
         <p>“No difference was seen” is a normal answer. It does not prove that two things are equal; the sentence says how large a difference would have been seen. A ratio holds for what was tested here, on this machine. Where acknowledged writes survive different things, a verdict on writes says so.</p>\n</section>\n",
    );
}

pub(super) fn targets(page: &mut String, summary: &Summary) {
    page.push_str("<section>\n<h2>Targets</h2>\n");
    for (target, name) in summary.targets.iter().zip(&summary.words.targets) {
        one_target(page, target, name);
    }
    page.push_str("</section>\n");
}

fn one_target(page: &mut String, target: &TargetSummary, name: &str) {
    let _ = writeln!(page, "<h3>{} {}</h3>\n<dl>", Escaped(name), Escaped(&target.version));
    let class = crate::phrase::class_name(target.durability);
    entry(page, "Durability", &format!("{class}: {}", target.durability_promise));
    if !target.durability_settings.is_empty() {
        entry(page, "because", &settings(&target.durability_settings));
    }
    if !target.settings.is_empty() {
        entry(page, "Settings", &settings(&target.settings));
    }
    entry(page, "Client", &target.client);
    entry(page, "Reached by", &target.transport);
    entry(page, "URL", &target.url);
    page.push_str("</dl>\n");
    if !target.notes.is_empty() {
        items(page, &target.notes);
    }
}

fn settings(settings: &BTreeMap<String, String>) -> String {
    let settings: Vec<String> = settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    settings.join(", ")
}

fn entry(page: &mut String, name: &str, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(page, "<dt>{}</dt><dd>{}</dd>", Escaped(name), Escaped(text));
    }
}

/// Axes, machine, command.
pub(super) fn setup(page: &mut String, summary: &Summary) {
    page.push_str("<section>\n<h2>How it was made</h2>\n<dl>\n");
    for axis in &summary.words.axes {
        let values: Vec<String> = axis
            .values
            .iter()
            .map(|value| match axis.meaning(value) {
                Some(meaning) if !meaning.is_empty() => format!("{} ({meaning})", axis.show(value)),
                _ => axis.show(value),
            })
            .collect();
        entry(page, &capital(&axis.name), &values.join(", "));
    }
    let machine = &summary.machine;
    entry(page, "Processor", &format!("{}, {} for the tool", machine.cpu, cpus(machine.cpus)));
    entry(
        page,
        "Memory",
        &if machine.memory_bytes > 0 { units::size(machine.memory_bytes) } else { String::new() },
    );
    entry(page, "System", &machine.system);
    entry(page, "Seed", &summary.seed.to_string());
    page.push_str("</dl>\n");
    let _ =
        writeln!(page, "<pre><code>{}</code></pre>\n</section>", Escaped(&command_line(&summary.command)));
}

fn cpus(count: u64) -> String {
    if count == 1 { "1 CPU".to_owned() } else { format!("{count} CPUs") }
}

/// Where the faint lines come from, and what is wrong with them.
pub(super) fn published(page: &mut String, published: &Published) {
    let about = &published.about;
    let _ = writeln!(
        page,
        "<h3>The faint lines: {}</h3>\n<p class=\"soft\">{} {}.</p>\n<p class=\"soft\">Known faults of these figures:</p>",
        Escaped(&about.title),
        Escaped(&about.provenance),
        Escaped(&about.hardware)
    );
    items(page, &about.faults);
}
