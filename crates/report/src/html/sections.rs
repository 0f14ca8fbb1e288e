//! The sections of the page besides the charts.

use super::escape::Escaped;
use crate::engine::{self, Titled};
use crate::finding::Section;
use crate::format::{capital, command_line, glued, list};
use crate::published::Published;
use crate::summary::{Status, Summary, TargetSummary};
use crate::table::{Table, fixed_axes, lacking as lacking_cells, tables};
use kurabe_core::units;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The verdicts, after publishing restrictions and before warnings.
pub(super) fn verdict(page: &mut String, summary: &Summary) {
    for sentence in summary.sentences(Section::Publishing) {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", Escaped(&glued(sentence)));
    }
    page.push_str("<ul class=\"verdict\">\n");
    for sentence in summary.sentences(Section::Verdict) {
        let _ = writeln!(page, "<li>{}</li>", Escaped(&glued(sentence)));
    }
    page.push_str("</ul>\n");
    for sentence in summary.sentences(Section::Warning) {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", Escaped(&glued(sentence)));
    }
}

/// The number of sentences shown at once; the others are folded, except on paper.
const SHOWN_AT_ONCE: usize = 12;

/// A section with an item for each of its sentences; empty if there are none.
pub(super) fn list_of(page: &mut String, summary: &Summary, section: Section, heading: &str) {
    let sentences = summary.sentences(section);
    if sentences.is_empty() {
        return;
    }
    let _ = writeln!(page, "<section>\n<h2>{heading}</h2>");
    let many = sentences.len() > SHOWN_AT_ONCE;
    if many {
        let _ = writeln!(page, "<details>\n<summary>{} findings</summary>", sentences.len());
    }
    items(page, &sentences);
    page.push_str(if many { "</details>\n</section>\n" } else { "</section>\n" });
}

fn items(page: &mut String, sentences: &[impl AsRef<str>]) {
    page.push_str("<ul class=\"plain\">\n");
    for sentence in sentences {
        let _ = writeln!(page, "<li>{}</li>", Escaped(&glued(sentence.as_ref())));
    }
    page.push_str("</ul>\n");
}

pub(super) fn results(page: &mut String, summary: &Summary) {
    let tables = tables(summary);
    if tables.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>Results</h2>\n");
    let fixed = fixed_axes(summary);
    let fixed = if fixed.is_empty() { String::new() } else { format!(" Constant: {}.", fixed.join(", ")) };
    let _ = writeln!(
        page,
        "<p class=\"soft\">Operations per second: the median of the rounds with its 95 % interval. \
         Latencies: over all rounds. CPU: of the client. Stored: mean bytes per record sent to the \
         database.{}</p>",
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

/// The server's own statistics, and what it does not report.
pub(super) fn engine(page: &mut String, summary: &Summary) {
    let (tables, missing) = (engine::tables(summary, false), summary.sentences(Section::NotReported));
    if tables.is_empty() && missing.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>Reported by the server</h2>\n");
    for Titled { title, legend, table } in tables {
        let _ = writeln!(
            page,
            "<h3>{}</h3>\n<p class=\"soft\">{}</p>",
            Escaped(&title),
            Escaped(&glued(&legend))
        );
        one_table(page, &table);
    }
    if !missing.is_empty() {
        page.push_str("<h3>Not reported</h3>\n");
        items(page, &missing);
    }
    page.push_str("</section>\n");
}

pub(super) fn lacking(page: &mut String, summary: &Summary) {
    let entries = lacking_cells(summary);
    if entries.is_empty() {
        return;
    }
    page.push_str(
        "<section>\n<h2>No results</h2>\n<div \
         class=\"box\"><table>\n<thead><tr><th>target</th><th>cell</th><th>operations</th><th>status</th><th>reason</th></tr></thead>\n<tbody>\n",
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

pub(super) fn basis(page: &mut String, summary: &Summary) {
    page.push_str("<section>\n<h2>Basis</h2>\n");
    items(page, &summary.sentences(Section::Basis));
    page.push_str(
        "<h3>How to read a verdict</h3>\n\
         <p>Each round measures every cell once, in random order. A ratio is the geometric mean of the rounds' ratios. A target or a value is called faster if two conditions hold: the ratio's interval excludes 1, corrected for few rounds and for all comparisons; and the ratio is farther from 1 than the noise floor. The noise floor is the possible difference of two measurements of a target's first cell in each round; for two targets, the larger one.</p>\n\
         <p>“No difference detected” does not prove equality; the sentence gives the smallest detectable difference. “Differ by less than” means that the whole interval lies within the margin. A ratio is valid for the tested values on this machine. A verdict on writes mentions different durability.</p>\n</section>\n",
    );
}

pub(super) fn targets(page: &mut String, summary: &Summary) {
    page.push_str("<section>\n<h2>Targets</h2>\n");
    for (target, name) in summary.targets.iter().zip(&summary.labels.targets) {
        one_target(page, target, name);
    }
    page.push_str("</section>\n");
}

fn one_target(page: &mut String, target: &TargetSummary, name: &str) {
    let _ = writeln!(page, "<h3>{} {}</h3>\n<dl>", Escaped(name), Escaped(&target.version));
    let class = crate::template::class_name(target.durability);
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
    page.push_str("<section>\n<h2>Setup</h2>\n<dl>\n");
    for axis in &summary.labels.axes {
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

/// The source of the published results, and their known problems.
pub(super) fn published(page: &mut String, published: &Published) {
    let about = &published.about;
    let _ = writeln!(
        page,
        "<h3>Published results: {}</h3>\n<p class=\"soft\">{} {}.</p>\n<p class=\"soft\">Known problems of \
         these results:</p>",
        Escaped(&about.title),
        Escaped(&about.provenance),
        Escaped(&about.hardware)
    );
    items(page, &about.faults);
}
