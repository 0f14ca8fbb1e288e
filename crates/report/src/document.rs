//! A report before it is written: blocks with text in one language. Each format has one writer of them:
//! [`terminal`](crate::terminal), [`markdown`](crate::markdown) and [`html`](crate::html).

use crate::catalogue::{self, translated};
use crate::cell::Status;
use crate::finding::Section;
use crate::format::{capital, command_line, cpus, machine, origin, settings_list, timestamp};
use crate::messages::{Language, Message};
use crate::summary::Summary;
use crate::table::{Table, fixed_axes, lacking, tables};
use crate::target::TargetSummary;
use crate::wording::{class_name, promise, say};
use crate::{answer, server_statistics};
use kurabe_core::units;

/// A part of a report.
pub(crate) enum Block {
    Title(String),
    /// A licence's restriction, which stands before results, or a warning beside them.
    Notice(String),
    Paragraph(String),
    /// The conclusion from the results, an item a sentence.
    Conclusion(Vec<String>),
    Items(Vec<String>),
    /// Items that other blocks name by their number.
    Numbered(Vec<String>),
    /// Items that are never folded, such as the conditions of a run.
    Facts(Vec<String>),
    /// Cells without results, each with its status.
    Lacking(Vec<(Status, String)>),
    /// Names with their texts.
    Terms(Vec<(String, String)>),
    /// A command line.
    Command(String),
    /// A table below its title and its legend.
    Table(Table),
    /// A table whose rows stand in groups: the position of each group's first row, and its heading.
    Groups(Table, Vec<(usize, String)>),
    /// Blocks below a heading.
    Section(String, Vec<Self>),
    /// Blocks below a heading of less weight.
    Part(String, Vec<Self>),
    /// Blocks that are shown on demand, where the format allows that.
    Details(String, Vec<Self>),
}

/// The report of a run with all details, for a terminal and as Markdown.
pub(crate) fn report(summary: &Summary) -> Vec<Block> {
    let language = summary.labels.language;
    // Experiments ask in English.
    let question = summary.question.clone().filter(|_| language == Language::English);
    let [verdict, bottlenecks, details, not_reported, warnings] = [
        (Message::Verdict, Section::Verdict),
        (Message::Bottlenecks, Section::Bottleneck),
        (Message::InDetail, Section::Detail),
        (Message::NotReported, Section::NotReported),
        (Message::Warnings, Section::Warning),
    ]
    .map(|(heading, of)| section(summary, heading, of));
    let mut basis = summary.sentences(Section::Basis);
    basis.extend(made(summary));
    let rankings = answer::rankings(summary);
    let (ranked, headings) =
        answer::table(&summary.experiment, &rankings.iter().collect::<Vec<_>>(), language);
    let tables = results(summary).into_iter().chain(server_statistics::tables(summary));
    [Block::Title(format!("{} · {}", summary.experiment, summary.run))]
        .into_iter()
        .chain(question.map(Block::Paragraph))
        .chain(notices(summary.sentences(Section::Publishing)))
        .chain((!rankings.is_empty()).then_some(Block::Groups(ranked, headings)))
        .chain(verdict)
        .chain(tables.map(Block::Table))
        .chain(without_results(lacking(summary), language))
        .chain(bottlenecks)
        .chain(details)
        .chain(not_reported)
        .chain(warnings)
        .chain([Block::Section(Message::Basis.text(language).to_owned(), vec![Block::Facts(basis)])])
        .collect()
}

/// The part of a page behind its charts.
pub(crate) fn behind_charts(summary: &Summary) -> Vec<Block> {
    let language = summary.labels.language;
    let say = |message: Message| message.text(language).to_owned();
    let details = section(summary, Message::InDetail, Section::Detail);
    let bottlenecks = section(summary, Message::Bottlenecks, Section::Bottleneck);
    let missing = summary.sentences(Section::NotReported);
    let missing =
        (!missing.is_empty()).then(|| Block::Part(say(Message::NotReported), vec![Block::Facts(missing)]));
    let how = [Message::HowIntervals, Message::HowUndecided].map(|message| Block::Paragraph(say(message)));
    let basis = vec![
        Block::Facts(summary.sentences(Section::Basis)),
        Block::Part(say(Message::HowToRead), how.into()),
    ];
    let server = server_statistics::tables(summary).into_iter().map(Block::Table);
    let server: Vec<Block> = server.chain(missing).collect();
    let fixed = fixed_axes(summary).join(", ");
    let constant = Message::Constant.with(language, &[("values", &fixed)]);
    let legend = say(Message::ResultsLegend) + if fixed.is_empty() { "" } else { &constant };
    let results: Vec<Block> = tables(summary).into_iter().map(Block::Table).collect();
    let lacking = without_results(lacking(summary), language);
    let results = (!results.is_empty()).then(|| {
        let blocks = [Block::Paragraph(legend)].into_iter().chain(results).collect();
        Block::Section(say(Message::Results), blocks)
    });
    details
        .into_iter()
        .chain(results)
        .chain((!server.is_empty()).then(|| Block::Section(say(Message::FromServer), server)))
        .chain(bottlenecks)
        .chain(lacking)
        .chain([
            Block::Section(say(Message::Basis), basis),
            Block::Section(say(Message::Targets), targets(summary)),
            Block::Section(say(Message::Setup), setup(summary)),
        ])
        .collect()
}

pub(crate) fn notices(sentences: Vec<String>) -> Vec<Block> {
    sentences.into_iter().map(Block::Notice).collect()
}

/// The sentences of a section of the findings below their heading; `None` if there are none.
fn section(summary: &Summary, heading: Message, of: Section) -> Option<Block> {
    let sentences = summary.sentences(of);
    let heading = heading.text(summary.labels.language).to_owned();
    (!sentences.is_empty()).then(|| Block::Section(heading, vec![Block::Items(sentences)]))
}

fn without_results(entries: Vec<(Status, String)>, language: Language) -> Option<Block> {
    let heading = Message::NoResults.text(language).to_owned();
    (!entries.is_empty()).then(|| Block::Section(heading, vec![Block::Lacking(entries)]))
}

/// The tables of results. Titles name the only target and the rounds, legends the constant axes.
fn results(summary: &Summary) -> Vec<Table> {
    let labels = &summary.labels;
    let alone = labels.targets.first().filter(|_| !labels.several_targets());
    let on =
        alone.map_or_else(String::new, |target| Message::On.with(labels.language, &[("target", target)]));
    let suffix = format!("{on}{}{}", Message::Comma.text(labels.language), summary.rounds_text());
    let fixed = fixed_axes(summary).join(" · ");
    let mut all = tables(summary);
    for table in &mut all {
        table.title += &suffix;
        table.legend.get_or_insert_with(|| fixed.clone());
    }
    all
}

/// The origin of the run, and how to repeat it.
fn made(summary: &Summary) -> Vec<String> {
    let (began, command) = (timestamp(summary.began), command_line(&summary.command));
    let (language, kurabe, seed) = (summary.labels.language, &summary.kurabe, summary.seed);
    let machine = machine(&summary.machine, language);
    let made = [
        say!(language, "Machine: {machine}.", "マシン: {machine}。"),
        say!(
            language,
            "Kurabe {kurabe}, {began}, seed {seed}: {command}",
            "Kurabe {kurabe}、{began}、乱数の種 {seed}: {command}"
        ),
    ];
    let from = capital(&origin(&summary.origin, language).join(Message::Comma.text(language)));
    let from = (!from.is_empty()).then(|| say!(language, "{from}.", "{from}。"));
    made.into_iter().chain(from).collect()
}

/// The facts of each target.
fn targets(summary: &Summary) -> Vec<Block> {
    let language = summary.labels.language;
    let one = |(target, name): (&TargetSummary, &String)| {
        let class = class_name(target.durability);
        let durability = match language {
            Language::English => format!("{class}: {}", target.durability_promise),
            Language::Japanese => format!("{class}: {}ます", promise(target.durability, language)),
        };
        let terms = terms([
            (Message::DurabilityOf.text(language), durability),
            (Message::Because.text(language), settings_list(&target.durability_settings)),
            (Message::Settings.text(language), settings_list(&target.settings)),
            (Message::Client.text(language), target.client.clone()),
            (Message::ReachedBy.text(language), translated(&target.transport, language)),
            ("URL", target.url.clone()),
        ]);
        let notes: Vec<String> = target.notes.iter().map(|note| catalogue::note(note, language)).collect();
        let notes = (!notes.is_empty()).then_some(Block::Facts(notes));
        Block::Part(format!("{name} {}", target.version), [terms].into_iter().chain(notes).collect())
    };
    summary.targets.iter().zip(&summary.labels.targets).map(one).collect()
}

/// Axes, machine, command.
fn setup(summary: &Summary) -> Vec<Block> {
    let (machine, language) = (&summary.machine, summary.labels.language);
    let cpus = cpus(machine, language);
    let axes = summary.labels.axes.iter().map(|axis| {
        // A meaning that the catalogue lacks is left out, as the question is, but for the text of a query.
        let is_text = summary.spec.custom.is_some();
        let meaning = |value| {
            let meaning = axis.meaning(value)?;
            catalogue::find(meaning, language).or_else(|| is_text.then(|| meaning.to_owned()))
        };
        let values = axis.values.iter().map(|value| match (axis.show(value), meaning(value)) {
            (value, Some(meaning)) if !meaning.is_empty() => {
                say!(language, "{value} ({meaning})", "{value}({meaning})")
            }
            (value, _) => value,
        });
        let values: Vec<String> = values.collect();
        (capital(&axis.name), values.join(Message::Comma.text(language)))
    });
    let memory = if machine.memory_bytes > 0 { units::size(machine.memory_bytes) } else { String::new() };
    let processor = Message::ForTheTool.with(language, &[("cpu", &machine.cpu), ("cpus", &cpus)]);
    let rest = [
        (Message::Processor, processor),
        (Message::MemoryOf, memory),
        (Message::System, machine.system.clone()),
        (Message::Seed, summary.seed.to_string()),
    ];
    let rest = rest.map(|(name, text)| (name.text(language).to_owned(), text));
    vec![terms(axes.chain(rest)), Block::Command(command_line(&summary.command))]
}

/// Names with their texts; those without a text are left out.
fn terms(all: impl IntoIterator<Item = (impl Into<String>, String)>) -> Block {
    let all = all.into_iter().filter(|(_, text)| !text.is_empty());
    Block::Terms(all.map(|(name, text)| (name.into(), text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{Options, Page};
    use crate::{html, markdown};

    #[test]
    fn each_format_has_all_texts_of_each_block() {
        let words = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let table = |name: &str| {
            let mut table =
                Table { title: format!("{name}-title"), rows: vec![Vec::new(); 2], ..Table::default() };
            table.add(&format!("{name}-head"), false, 0, words(&["first-row", "second-row"]));
            table
        };
        let below = |name: &str| (format!("{name}-heading"), vec![Block::Paragraph(format!("{name}-text"))]);
        let (section, part, details) = (below("section"), below("part"), below("details"));
        let blocks = [
            Block::Title("document-title".to_owned()),
            Block::Notice("notice".to_owned()),
            Block::Paragraph("paragraph".to_owned()),
            Block::Conclusion(words(&["conclusion"])),
            Block::Items((0..20).map(|n| format!("item-{n}.")).collect()),
            Block::Numbered(words(&["numbered"])),
            Block::Facts(words(&["fact"])),
            Block::Lacking(vec![(Status::Failed, "lacking".to_owned())]),
            Block::Terms(vec![("term".to_owned(), "meaning".to_owned())]),
            Block::Command("command".to_owned()),
            Block::Table(Table { legend: Some("legend".to_owned()), ..table("plain") }),
            Block::Groups(table("grouped"), vec![(0, "one-group".to_owned()), (1, "other-group".to_owned())]),
            Block::Section(section.0, section.1),
            Block::Part(part.0, part.1),
            Block::Details(details.0, details.1),
        ];
        let mut page = Page::new(&Options::default(), Language::English);
        page.write(&blocks);
        let page_of_html = html::write(&blocks, Language::English).into_string();
        for text in [page.text, markdown::write(&blocks), page_of_html] {
            let items = (0..20).map(|n| format!("item-{n}."));
            let others = "document-title notice paragraph conclusion numbered fact lacking term meaning command legend plain-title \
                          plain-head first-row second-row grouped-head one-group other-group section-heading \
                          section-text part-heading part-text details-heading details-text";
            for word in items.chain(others.split_whitespace().map(str::to_owned)) {
                assert!(text.contains(&word), "{word}: {text}");
            }
        }
    }
}
