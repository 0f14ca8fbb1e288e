//! A model of a capture: a custom workload whose transactions, values and pauses are those of the application.

mod draws;
mod steps;
mod tables;
mod writer;

use crate::file::About;
use crate::rows::Plain;
use crate::show::{Analysis, Kind, Sample, Shown, analyse};
use crate::units::{Node, What, flatten};
use crate::variables::{Plan, plan};
use crate::{commands, rows};
use draws::{REPEATS, counts, repeats};
use kurabe_core::text::printable;
use kurabe_core::units::{count, counted};
use kurabe_core::{Error, Result, sort};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use tables::{ROWS, number};
use writer::{NUMBER, Writer, list, quoted};

/// The shortest mean pause within a transaction that is kept, in nanoseconds: less is what the program computes.
const PAUSE: f64 = 1e6;
/// The largest weight of a workload.
const WEIGHT: u64 = 1_000_000;
/// A custom workload, and what to say about it.
pub struct Model {
    pub text: String,
    /// How much it has, and what it lacks.
    pub notes: Vec<String>,
}

/// Describes a capture as a custom workload: on the tables that the application used, or, if `made`, on collections that are
/// made for the run.
///
/// # Errors
/// If it is no capture, has no values, or nothing in it can be part of a workload.
pub fn model(path: &Path, made: bool) -> Result<Model> {
    let mut analysis = analyse(path, true)?;
    let about = &analysis.shown.about;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    refuse(about, &name, made)?;
    let simple: Vec<Option<Plain>> = analysis.forms.iter().map(rows::read).collect();
    let lengths =
        commands::are_translated(about.language()).then(|| number(&mut analysis.kinds, &simple, ROWS));
    let is_translated = lengths.is_some();
    let (about, shown) = (&analysis.shown.about, &analysis.shown);
    let kinds = chosen(&analysis);
    let plans: Vec<Plan> = kinds.iter().map(|kind| plan(kind, &analysis.forms)).collect();
    let family = if about.protocol.starts_with("postgres") { "postgres" } else { "mysql" };
    let sent = analysis.sent;
    let is_literal = sent.as_text > sent.executed.max(sent.bound) && !is_translated;
    let mut writer = Writer {
        analysis: &analysis,
        is_literal,
        simple,
        lengths,
        made,
        family,
        tables: BTreeMap::new(),
        lost: BTreeMap::new(),
        carried: BTreeSet::new(),
        writes: false,
        adds: false,
        longest_loop: 0,
        names: BTreeSet::new(),
        codes: match family {
            _ if is_translated => &["40001", "40P01", "1213", "1205"],
            "postgres" => &["40001", "40P01"],
            _ => &["1213", "1205"],
        },
    };
    writer.look_at_tables(&kinds, &plans);
    let all: u64 = kinds.iter().map(|kind| kind.calls).sum();
    let most = kinds.iter().map(|kind| kind.calls).max().unwrap_or(1);
    let of = shown.about.known.shares();
    let mut transactions = String::new();
    for (kind, plan) in kinds.iter().zip(&plans) {
        let Some((own, body)) = writer.transaction(kind, plan) else { continue };
        let weight = (kind.calls as f64 * (WEIGHT as f64 / most as f64).min(1.0)).round().max(1.0);
        let _ = writeln!(
            transactions,
            "\n# {} of {}, {:.1} % of the {of}\n[transaction.{own}]\nweight = {weight}\n{body}",
            count(kind.calls),
            count(all),
            100.0 * kind.total_ns as f64 / shown.total_ns().max(1) as f64,
        );
    }
    if transactions.is_empty() {
        return Err(Error::usage(format!("{name} has no statement that a workload can have"))
            .hint("'kurabe capture show' says what it has"));
    }
    let notes = writer.notes(shown);
    let mut text = format!(
        "# What {} recorded of {}, as a workload, by 'kurabe capture model'. Recorded: {} at once, {} in\n\
         # {:.1} s. Pauses between transactions are left out: --rate {:.0} sends as many in a second as the application did.\n",
        printable(&name),
        about.protocol,
        counted(shown.connections.most_working, "connection"),
        counted(all, "transaction"),
        shown.time_ns as f64 / 1e9,
        (all as f64 / (shown.time_ns.max(1) as f64 / 1e9)).max(1.0),
    );
    for note in &notes {
        let _ = writeln!(text, "# {note}");
    }
    if writer.writes && !made {
        text.push_str("write = true\n");
    }
    let statement = if is_literal {
        "literal"
    } else if sent.bound > sent.executed {
        "per-request"
    } else {
        "once"
    };
    let _ = writeln!(text, "\n[axes]\nclients = [{}]", shown.connections.most_working.clamp(1, 1_000));
    if !is_translated {
        let _ = writeln!(text, "statement = [\"{statement}\"]");
    }
    if made {
        text.push_str("\n[variables]\nscale = 1\n");
    }
    writer.write_tables(&mut text);
    text.push_str(&transactions);
    Ok(Model { text, notes })
}

/// Refuses a capture of which there can be no model, or not so.
fn refuse(about: &About, name: &str, made: bool) -> Result<()> {
    if about.values != crate::Values::Keep {
        let how = format!("{:?}", about.values).to_lowercase();
        return Err(Error::usage(format!(
            "{name} was recorded with --values {how}, so that a model cannot know which values to draw for its parameters"
        ))
        .hint("record it with --values keep; what it shows is in 'kurabe capture show'"));
    }
    if ["couchdb", "http"].contains(&about.protocol.as_str()) {
        let what = if about.protocol == "http" { "" } else { "'kurabe run replay' sends them again; " };
        return Err(Error::usage(format!(
            "{name} has requests of {}, of which there is no model yet",
            about.protocol
        ))
        .hint(format!("{what}'kurabe capture show' says what there is")));
    }
    if commands::are_translated(about.language()) && !made {
        return Err(Error::usage(format!(
            "a workload cannot name the keys or documents of {name}, as it can name tables of SQL"
        ))
        .hint("add --made: the run then makes tables like them, on any engine"));
    }
    Ok(())
}

impl Writer<'_> {
    /// The name of a transaction, and its text.
    fn transaction(&mut self, kind: &Kind, plan: &Plan) -> Option<(String, String)> {
        let mut writes = false;
        let steps = self.steps(&kind.nodes, 0, kind, plan, 2, &mut writes);
        if steps.is_empty() {
            return None;
        }
        self.writes |= writes;
        let mut text = self.draws(plan, None, "", "\n", &steps.concat());
        for name in self.tables.iter().filter(|(_, table)| table.is_numbered).map(|(name, _)| name) {
            let variable = format!("{NUMBER}_{name}");
            if steps.iter().any(|step| step.contains(&format!("\":{variable}\""))) {
                let _ = writeln!(text, "draw.{variable} = {{ sequence = 1 }}");
            }
        }
        text.push_str(&repeats(kind, &kind.nodes, 0, "draw."));
        // Stores of keys have no transaction that could be rolled back.
        if writes && (kind.transaction || !self.is_translated()) {
            let _ = writeln!(text, "retry = {}", list(self.codes.iter().map(|code| quoted(code))));
        }
        text.push_str("steps = [\n");
        let end = if kind.rolled_back * 2 > kind.calls { "rollback" } else { "commit" };
        let (begin, end) = if kind.transaction {
            ("  \"begin\",\n".to_owned(), format!("  \"{end}\",\n"))
        } else {
            (String::new(), String::new())
        };
        let _ = write!(text, "{begin}{}{end}]", steps.concat());
        Some((self.name(kind), text))
    }

    /// A name by its first statement that writes, else by its first.
    fn name(&mut self, kind: &Kind) -> String {
        let does = |place: &usize| self.analysis.shown.statements.get(*place).map(|one| &one.does);
        let places = flatten(&kind.nodes);
        let writes = places.iter().find(|place| does(place).is_some_and(|does| does.writes));
        let name = writes.or(places.first()).and_then(does).map_or("statement-", |does| &does.name);
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(34).collect();
        let name = name.trim_matches('-').to_owned();
        let mut unique = name.clone();
        let mut number = 2;
        while !self.names.insert(unique.clone()) {
            unique = format!("{name}-{number}");
            number += 1;
        }
        unique
    }

    /// The steps of a sequence of nodes, the first of which is number `first`.
    fn steps(
        &mut self,
        nodes: &[Node],
        first: usize,
        kind: &Kind,
        plan: &Plan,
        indent: usize,
        writes: &mut bool,
    ) -> Vec<String> {
        let mut steps = Vec::new();
        let mut number = first;
        for node in nodes {
            let inner = if node.most > 1 { indent + 2 } else { indent };
            let mut body = match &node.what {
                What::Statement(place) => self.statement(number, *place, kind, plan, inner, writes),
                What::Loop(body) => self.steps(body, number + 1, kind, plan, inner, writes),
            };
            if node.most > 1 && !body.is_empty() {
                self.longest_loop = self.longest_loop.max(node.most);
                let pad = " ".repeat(indent);
                let counts = counts(kind, number);
                let repeat = match counts.as_slice() {
                    [(one, _)] => format!("repeat = {one}"),
                    several => {
                        let most = several.iter().map(|(count, _)| *count).max().unwrap_or(1);
                        format!("repeat = \":times_{number}\", most = {most}")
                    }
                };
                let drawn = self.draws(plan, Some(number), &format!("{pad}  "), ",\n", &body.concat());
                let inner = match &node.what {
                    What::Loop(body) => {
                        repeats(kind, body, number + 1, &format!("{pad}  draw.")).replace("}\n", "},\n")
                    }
                    What::Statement(_) => String::new(),
                };
                body = vec![format!(
                    "{pad}{{ {repeat},\n{drawn}{inner}{pad}  steps = [\n{}{pad}  ] }},\n",
                    body.concat()
                )];
            }
            steps.append(&mut body);
            number += node.size();
        }
        steps
    }

    /// The step of a statement, and the pause before it.
    fn statement(
        &mut self,
        node: usize,
        place: usize,
        kind: &Kind,
        plan: &Plan,
        indent: usize,
        writes: &mut bool,
    ) -> Vec<String> {
        let asked = self.analysis.shown.statements.get(place);
        let step = match plan.statements.get(&node) {
            None => Err("its values were not recorded, or are bulk data"),
            Some(statement) => self
                .step(statement, asked.map_or("", |one| &one.text), plan)
                .map(|step| (step, statement.pause_ns)),
        };
        match step {
            Err(why) => {
                self.lost.insert(place, why);
                Vec::new()
            }
            Ok((step, pause_ns)) => {
                self.carried.insert(place);
                *writes |= asked.is_some_and(|one| one.does.writes);
                let pad = " ".repeat(indent);
                let mut steps = vec![format!("{pad}{step},\n")];
                if kind.transaction && pause_ns >= PAUSE {
                    steps.insert(0, format!("{pad}{{ sleep = \"{:.0}us\" }},\n", pause_ns / 1e3));
                }
                steps
            }
        }
    }
}

/// The maximum number of kinds of transactions. Statements outside of transactions that belong to more become kinds alone.
const KINDS: usize = 30;
/// Parts from which a unit outside of a transaction that hardly ever came again is taken apart.
const RARE_PARTS: usize = 8;
/// A kind is left out that has less than one of so many transactions, and less than this share of the time.
const RARE: u64 = 1_000;
const RARE_TIME: f64 = 0.01;

fn chosen(analysis: &Analysis) -> Vec<Kind> {
    let mut kept = Vec::new();
    let mut alone: BTreeMap<usize, Kind> = BTreeMap::new();
    for kind in &analysis.kinds {
        let key = flatten(&kind.nodes);
        let is_rare = kept.len() >= KINDS || (kind.calls <= 2 && key.len() > RARE_PARTS);
        if kind.transaction || (key.len() > 1 && !is_rare) {
            if kept.len() < KINDS {
                kept.push(kind.clone());
            }
            continue;
        }
        // Each statement alone: the mix stays, the order goes.
        let per_sample = kind.calls as f64 / kind.samples.len().max(1) as f64;
        let calls: usize = kind.samples.iter().map(|sample| sample.calls.len()).sum();
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        for sample in &kind.samples {
            for (_, call) in &sample.calls {
                let one = alone.entry(call.statement).or_default();
                one.samples.push(Sample { calls: vec![(0, call.clone())], counts: Vec::new(), ..*sample });
                one.total_ns += (kind.total_ns as f64 / calls.max(1) as f64) as u64;
                *numbers.entry(call.statement).or_default() += 1;
            }
        }
        for (statement, number) in numbers {
            if let Some(one) = alone.get_mut(&statement) {
                one.nodes = vec![Node { what: What::Statement(statement), least: 1, most: 1 }];
                one.calls += (number as f64 * per_sample).round() as u64;
            }
        }
    }
    kept.extend(alone.into_values());
    sort::by_key(&mut kept, |kind| std::cmp::Reverse(kind.total_ns));
    // What hardly ever comes is often what a program does as it starts.
    let (calls, time) = kept.iter().fold((0, 0), |sum, kind| (sum.0 + kind.calls, sum.1 + kind.total_ns));
    kept.retain(|kind| kind.calls * RARE >= calls || kind.total_ns as f64 >= RARE_TIME * time as f64);
    kept
}

impl Writer<'_> {
    /// What is not in the model, by share of time.
    fn notes(&self, shown: &Shown) -> Vec<String> {
        let mut lost: Vec<(f64, String)> = Vec::new();
        let mut setup = 0.0;
        for (place, statement) in shown.statements.iter().enumerate() {
            if statement.setup {
                if statement.does.transaction.is_none() {
                    setup += statement.share;
                }
                continue;
            }
            if self.carried.contains(&place) || statement.calls == 0 {
                continue;
            }
            let why = statement
                .why_not
                .as_ref()
                .or(self.lost.get(&place))
                .unwrap_or(&"in none of the frequent kinds of transactions");
            let text: String = printable(&statement.text).chars().take(70).collect();
            lost.push((statement.share, format!("{text}: {why}")));
        }
        if setup > 0.0 {
            lost.push((
                setup,
                "what sets up a connection or a transaction, or asks about the server".to_owned(),
            ));
        }
        sort::by(&mut lost, |one, two| two.0.total_cmp(&one.0));
        let share: f64 = lost.iter().map(|(share, _)| share).sum();
        let of = shown.about.known.shares();
        let mut notes = vec![format!("It has {:.1} % of the recorded {of}.", 100.0 * (1.0 - share).max(0.0))];
        if self.writes && !self.made {
            notes.push(
                "It changes rows of these tables: run it on a copy, or on throwaway servers (--setup)."
                    .to_owned(),
            );
        }
        if self.made {
            notes.push(
                "Its tables are made for the run: columns that no statement names are missing in them."
                    .to_owned(),
            );
        }
        if self.is_translated() {
            notes.push(
                "Keys that are no numbers have numbers. Times to live and conditions of writes are left out."
                    .to_owned(),
            );
        }
        if self.adds {
            notes
                .push("Additions to a column write the value alone, as not every engine can add.".to_owned());
        }
        if self.longest_loop > REPEATS {
            notes.push(format!(
                "A loop repeats {REPEATS} times at most; the longest recorded loop has {} repetitions.",
                count(self.longest_loop)
            ));
        }
        let listed = lost.len().min(10);
        for (share, what) in lost.iter().take(listed) {
            notes.push(format!("Not in it, {:.1} % of the {of}: {what}", 100.0 * share));
        }
        if lost.len() > listed {
            let rest: f64 = lost.iter().skip(listed).map(|(share, _)| share).sum();
            notes.push(format!(
                "Not in it, {:.1} % of the {of}: {} other statements",
                100.0 * rest,
                lost.len() - listed
            ));
        }
        notes
    }
}
