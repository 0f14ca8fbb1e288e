//! A model of a capture: a custom workload whose transactions, values and pauses are those of the application.

use crate::draws::{Draw, Order};
use crate::forms::{Piece, Value};
use crate::plain::{self, Expr, Plain, Verb};
use crate::show::{Analysis, Call, Kind, Sample, Shown, analyse, flatten};
use crate::units::{Node, What};
use crate::variables::{Plan, Source, Statement, Use, Variable, plan};
use kurabe_core::text::printable;
use kurabe_core::units::count;
use kurabe_core::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// The maximum number of kinds of transactions. Statements outside of transactions that belong to more become kinds alone.
const KINDS: usize = 30;
/// Parts from which a unit outside of a transaction that hardly ever came again is taken apart.
const RARE_PARTS: usize = 8;
/// A kind is left out that has less than one of so many transactions, and less than this share of the time.
const RARE: u64 = 1_000;
const RARE_TIME: f64 = 0.01;
/// The shortest mean pause within a transaction that is kept, in nanoseconds: less is what the program computes.
const PAUSE: f64 = 1e6;
/// The most repetitions of a loop.
const REPEATS: u64 = 200;
/// The most numbers of repetitions that are told apart.
const COUNTS: usize = 20;
/// The most rows of a collection that is made for the run.
const ROWS: i64 = 10_000_000;
/// The largest weight of a workload.
const WEIGHT: u64 = 1_000_000;
/// The key of a table that is made, and whose own is not known.
const NUMBER: &str = "number";
/// The calls from which at most one row each says that it is found by its key.
const BY_KEY: u64 = 10;

/// A custom workload, and what to say about it.
pub struct Model {
    /// The file.
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
    let analysis = analyse(path)?;
    let (about, shown) = (&analysis.shown.about, &analysis.shown);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if about.values != crate::Values::Keep {
        let how = format!("{:?}", about.values).to_lowercase();
        return Err(Error::usage(format!(
            "{name} was recorded with --values {how}, so that a model cannot know which values to draw for its parameters"
        ))
        .hint("record it with --values keep; what it shows is in 'kurabe capture show'"));
    }
    let kinds = chosen(&analysis);
    let plans: Vec<Plan> = kinds.iter().map(|kind| plan(kind, &analysis.forms)).collect();
    let family = if about.protocol.starts_with("postgres") { "postgres" } else { "mysql" };
    let mut writer = Writer {
        analysis: &analysis,
        simple: analysis.forms.iter().map(plain::read).collect(),
        made,
        family,
        tables: BTreeMap::new(),
        lost: BTreeMap::new(),
        carried: BTreeSet::new(),
        writes: false,
        adds: false,
        names: BTreeSet::new(),
        codes: if family == "postgres" { &["40001", "40P01"] } else { &["1213", "1205"] },
    };
    writer.look_at_tables(&kinds, &plans);
    let all: u64 = kinds.iter().map(|kind| kind.calls).sum();
    let most = kinds.iter().map(|kind| kind.calls).max().unwrap_or(1);
    let mut transactions = String::new();
    for (kind, plan) in kinds.iter().zip(&plans) {
        let Some(body) = writer.transaction(kind, plan) else { continue };
        let weight = (kind.calls as f64 * (WEIGHT as f64 / most as f64).min(1.0)).round().max(1.0);
        let _ = writeln!(
            transactions,
            "\n# {} of {}, {:.1} % of the time\n[transaction.{}]\nweight = {weight}\n{}",
            count(kind.calls),
            count(all),
            100.0 * kind.total_ns as f64 / shown.total_ns().max(1) as f64,
            body.name,
            body.text
        );
    }
    if transactions.is_empty() {
        return Err(Error::usage(format!("{name} has no statement that a workload can have"))
            .hint("'kurabe capture show' says what it has"));
    }
    let notes = writer.notes(shown);
    let mut text = format!(
        "# What {} recorded of {}, as a workload, by 'kurabe capture model'. Recorded: {} connections at once, {} transactions in\n\
         # {:.1} s. Pauses between transactions are left out: --rate {:.0} sends as many in a second as the application did.\n",
        printable(&name),
        about.protocol,
        shown.connections.most_working,
        count(all),
        shown.time_ns as f64 / 1e9,
        (all as f64 / (shown.time_ns.max(1) as f64 / 1e9)).max(1.0),
    );
    for note in &notes {
        let _ = writeln!(text, "# {note}");
    }
    if writer.writes && !made {
        text.push_str("write = true\n");
    }
    let sent = analysis.sent;
    let statement = if sent.as_text > sent.executed.max(sent.bound) {
        "literal"
    } else if sent.bound > sent.executed {
        "per-request"
    } else {
        "once"
    };
    let _ = writeln!(
        text,
        "\n[axes]\nclients = [{}]\nstatement = [\"{statement}\"]",
        shown.connections.most_working.clamp(1, 1_000)
    );
    if made {
        text.push_str("\n[variables]\nscale = 1\n");
    }
    writer.write_tables(&mut text);
    text.push_str(&transactions);
    Ok(Model { text, notes })
}

/// The kinds that become transactions.
fn chosen(analysis: &Analysis) -> Vec<Kind> {
    let mut kept = Vec::new();
    let mut alone: BTreeMap<usize, Kind> = BTreeMap::new();
    for kind in &analysis.kinds {
        let mut key = Vec::new();
        flatten(&kind.nodes, &mut key);
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
        for sample in &kind.samples {
            for (_, call) in &sample.calls {
                let one = alone.entry(call.statement).or_default();
                one.samples.push(single(sample, call));
                one.total_ns += (kind.total_ns as f64 / calls.max(1) as f64) as u64;
            }
        }
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        for (_, call) in kind.samples.iter().flat_map(|sample| &sample.calls) {
            *numbers.entry(call.statement).or_default() += 1;
        }
        for (statement, number) in numbers {
            if let Some(one) = alone.get_mut(&statement) {
                one.nodes = vec![Node { what: What::Statement(statement), least: 1, most: 1 }];
                one.calls += (number as f64 * per_sample).round() as u64;
            }
        }
    }
    kept.extend(alone.into_values());
    kept.sort_by_key(|kind| std::cmp::Reverse(kind.total_ns));
    // What hardly ever comes is often what a program does as it starts.
    let (calls, time) = kept.iter().fold((0, 0), |sum, kind| (sum.0 + kind.calls, sum.1 + kind.total_ns));
    kept.retain(|kind| kind.calls * RARE >= calls || kind.total_ns as f64 >= RARE_TIME * time as f64);
    kept
}

fn single(sample: &Sample, call: &Call) -> Sample {
    Sample { calls: vec![(0, call.clone())], counts: Vec::new(), ..*sample }
}

#[derive(Debug, Default)]
struct Table {
    /// The columns by which rows are found that are one at most, and the calls that do it.
    keys: BTreeMap<Vec<String>, u64>,
    key: Vec<String>,
    fields: BTreeMap<String, Field>,
    /// Columns by which rows are found that are several.
    indexed: BTreeSet<String>,
    /// The largest key.
    rows: i64,
    /// The fields of steps that name it.
    used: BTreeSet<String>,
    /// Whether its key was added, since no statement names one.
    is_numbered: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Field {
    /// No value says what it is.
    #[default]
    Unknown,
    Int,
    /// Up to so many characters.
    Text(usize),
    Time,
    Other,
}

impl Field {
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, field) | (field, Self::Unknown) => field,
            (Self::Text(one), Self::Text(two)) => Self::Text(one.max(two)),
            (one, two) if one == two => one,
            _ => Self::Other,
        }
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Unknown,
            Value::Int(_) => Self::Int,
            // A time may be a column of another type than text.
            Value::Text(text)
                if !text.get(4..5).is_some_and(|sign| sign == "-" && text[..4].parse::<u16>().is_ok()) =>
            {
                Self::Text(text.chars().count())
            }
            _ => Self::Other,
        }
    }
}

struct Writer<'a> {
    analysis: &'a Analysis,
    /// Each form, if it is so simple.
    simple: Vec<Option<Plain>>,
    made: bool,
    family: &'static str,
    tables: BTreeMap<String, Table>,
    /// Why statements, by their places, are not in the model.
    lost: BTreeMap<usize, &'static str>,
    carried: BTreeSet<usize>,
    writes: bool,
    /// Whether additions to a column became writes.
    adds: bool,
    names: BTreeSet<String>,
    codes: &'static [&'static str],
}

struct Body {
    name: String,
    text: String,
}

impl Writer<'_> {
    fn simple(&self, statement: &Statement) -> Option<(Plain, Vec<Use>)> {
        let values = statement.values.clone()?;
        let simple = self.simple.get(statement.form)?.clone()?;
        Some((simple, values))
    }

    /// Learns keys and fields from the statements that name them.
    fn look_at_tables(&mut self, kinds: &[Kind], plans: &[Plan]) {
        let mut found: Vec<(Plain, Vec<Use>, &Plan, u64, u64)> = Vec::new();
        for (kind, plan) in kinds.iter().zip(plans) {
            for (node, place) in statements(&kind.nodes) {
                let Some(statement) = plan.statements.get(&node) else { continue };
                let most_rows = self.analysis.shown.statements.get(place).map_or(0, |one| one.most_rows);
                if let Some((simple, values)) = self.simple(statement) {
                    found.push((simple, values, plan, most_rows, kind.calls));
                }
            }
        }
        for (simple, values, plan, most_rows, calls) in &found {
            let table = self.tables.entry(simple.table.clone()).or_default();
            for column in &simple.columns {
                table.fields.entry(column.clone()).or_default();
            }
            let sets = simple.sets.iter().map(|(column, expr)| match expr {
                Expr::Slot(slot) | Expr::Changed(_, slot) => (column, Some(*slot)),
                Expr::Now => (column, None),
            });
            let by = simple.by.iter().map(|(column, slot)| (column, Some(*slot)));
            for (column, slot) in sets.chain(by) {
                let kind = slot.map_or(Field::Time, |slot| {
                    values.get(slot).map_or(Field::Unknown, |value| plan.field(value))
                });
                let field = table.fields.entry(column.clone()).or_default();
                *field = field.with(kind);
            }
            if !simple.by.is_empty() {
                let columns: Vec<String> = simple.by.iter().map(|(column, _)| column.clone()).collect();
                if *most_rows <= 1 {
                    *table.keys.entry(columns).or_default() += calls;
                } else {
                    table.indexed.extend(columns);
                }
            }
        }
        for table in self.tables.values_mut() {
            let several = std::mem::take(&mut table.indexed);
            let best = table.keys.iter().filter(|(key, calls)| {
                **calls >= BY_KEY && !key.iter().any(|column| several.contains(column) && key.len() == 1)
            });
            table.key = best.max_by_key(|(_, calls)| **calls).map(|(key, _)| key.clone()).unwrap_or_default();
            table.indexed = several.into_iter().filter(|column| table.key.first() != Some(column)).collect();
        }
        for table in self.tables.values_mut().filter(|table| self.made && table.key.is_empty()) {
            table.is_numbered = table.fields.insert(NUMBER.to_owned(), Field::Int).is_none();
            table.key = vec![NUMBER.to_owned()];
        }
        for (simple, values, plan, ..) in &found {
            let Some(table) = self.tables.get_mut(&simple.table) else { continue };
            let [key] = table.key.as_slice() else { continue };
            for (_, slot) in simple.by.iter().filter(|(column, _)| column == key) {
                let most = values.get(*slot).map_or(0, |value| plan.largest(value));
                table.rows = table.rows.max(most);
            }
        }
    }

    /// What the file says of tables.
    fn write_tables(&self, text: &mut String) {
        for (name, table) in self.tables.iter().filter(|(_, table)| !table.used.is_empty()) {
            let kind = if self.made { "collection" } else { "table" };
            let _ = writeln!(text, "\n[{kind}.{name}]");
            if self.made && table.rows > 0 {
                let _ = writeln!(text, "rows = \"greatest(1, int({} * :scale))\"", table.rows);
            }
            if !table.key.is_empty() {
                let _ = writeln!(text, "key = {}", list(table.key.iter().map(|column| quoted(column))));
            }
            if self.made && !table.indexed.is_empty() {
                let _ = writeln!(text, "index = {}", list(table.indexed.iter().map(|column| quoted(column))));
            }
            let mut fields = Vec::new();
            for (column, field) in &table.fields {
                if !self.made && !table.used.contains(column) {
                    continue;
                }
                let kind = match field {
                    Field::Int => "\"int\"".to_owned(),
                    Field::Time => "\"time\"".to_owned(),
                    Field::Text(_) if !self.made => "\"text\"".to_owned(),
                    Field::Text(most) => format!("{{ type = \"text\", max = {} }}", (*most).max(1)),
                    // Only read: its type and size are not in the capture.
                    _ => "{ type = \"text\", max = 20 }".to_owned(),
                };
                fields.push(format!("fields.{} = {kind}", quoted(column)));
            }
            let _ = writeln!(text, "{}", fields.join("\n"));
        }
    }

    fn transaction(&mut self, kind: &Kind, plan: &Plan) -> Option<Body> {
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
        if writes {
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
        Some(Body { name: self.name(kind), text })
    }

    /// A name by its first statement that writes, else by its first.
    fn name(&mut self, kind: &Kind) -> String {
        let all = statements(&kind.nodes);
        let text =
            |place: &usize| self.analysis.shown.statements.get(*place).map_or("", |one| one.text.as_str());
        let places: Vec<usize> = all.into_iter().map(|(_, place)| place).collect();
        let chosen = places.iter().find(|place| !reads(text(place))).or(places.first());
        let words: Vec<String> = text(chosen.unwrap_or(&0))
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| word.chars().any(|c| c.is_ascii_alphanumeric()))
            .map(str::to_lowercase)
            .collect();
        let table = words.iter().position(|word| ["from", "into", "update", "join"].contains(&word.as_str()));
        let table = table.and_then(|place| words.get(place + 1)).map_or("", String::as_str);
        let name = format!("{}-{table}", words.first().map_or("statement", String::as_str));
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
            number += size(node);
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
        let text = self.analysis.shown.statements.get(place).map(|one| one.text.clone()).unwrap_or_default();
        let step = match plan.statements.get(&node) {
            None => Err("its values were not recorded, or are bulk data"),
            Some(statement) => self.step(statement, &text, plan).map(|step| (step, statement.pause_ns)),
        };
        match step {
            Err(why) => {
                self.lost.insert(place, why);
                Vec::new()
            }
            Ok((step, pause_ns)) => {
                self.carried.insert(place);
                *writes |= !reads(&text);
                let pad = " ".repeat(indent);
                let mut steps = vec![format!("{pad}{step},\n")];
                if kind.transaction && pause_ns >= PAUSE {
                    steps.insert(0, format!("{pad}{{ sleep = \"{:.0}us\" }},\n", pause_ns / 1e3));
                }
                steps
            }
        }
    }

    fn step(
        &mut self,
        statement: &Statement,
        text: &str,
        plan: &Plan,
    ) -> std::result::Result<String, &'static str> {
        const WORDS: [&str; 8] =
            ["select", "insert", "update", "delete", "with", "values", "table", "replace"];
        let first: String =
            text.trim_start_matches('(').chars().take_while(char::is_ascii_alphabetic).collect();
        let first = first.to_ascii_lowercase();
        if !WORDS.contains(&first.as_str()) {
            return Err(match first.as_str() {
                "copy" | "load" => "bulk data",
                "declare" | "fetch" | "close" | "move" => "a cursor",
                "call" | "execute" | "do" => "a procedure",
                _ => "not a statement on rows",
            });
        }
        let values =
            statement.values.as_ref().ok_or("values of a type that is not read, or were not recorded")?;
        let simple = self.simple(statement);
        if let Some(step) = simple.as_ref().and_then(|(simple, values)| self.portable(simple, values, plan)) {
            return Ok(step);
        }
        if !self.made {
            let sql = self.sql(statement, values, plan)?;
            // What is so simple is the same on all SQL engines.
            let engine = if simple.is_some() { String::new() } else { format!(".{}", self.family) };
            return Ok(format!("{{ sql{engine} = {} }}", quoted(&sql)));
        }
        let (simple, values) = simple.ok_or("not a statement on rows of one table by equal values")?;
        self.braces(&simple, &values, plan)
            .ok_or("its table has no key of a single number from 1 on, or a value is NULL")
    }

    /// A step that every engine has, if it is known well enough.
    fn portable(&mut self, simple: &Plain, values: &[Use], plan: &Plan) -> Option<String> {
        let made = self.made;
        let table = self.tables.get_mut(&simple.table)?;
        let is_good = |column: &String| {
            let field = table.fields.get(column).copied().unwrap_or_default();
            matches!(field, Field::Int | Field::Text(_)) || made && field != Field::Other
        };
        if made && !table.can_be_made(&simple.table) {
            return None;
        }
        let operand = |slot: usize| plan.operand(values.get(slot)?);
        let columns = simple.columns.iter().chain(simple.sets.iter().map(|(column, _)| column));
        let columns: Vec<&String> = columns.chain(simple.by.iter().map(|(column, _)| column)).collect();
        if !columns.iter().all(|column| is_good(column)) {
            return None;
        }
        let by: Vec<String> = simple.by.iter().map(|(column, _)| column.clone()).collect();
        let keyed = !by.is_empty() && by == table.key;
        let key =
            || Some(list(simple.by.iter().map(|(_, slot)| operand(*slot)).collect::<Option<Vec<_>>>()?));
        let adds = simple.sets.iter().any(|(_, expr)| matches!(expr, Expr::Changed(..)));
        let written = || -> Option<Vec<(String, String)>> {
            let one = |(column, expr): &(String, Expr)| match expr {
                // Not every engine can add to what is there: the value alone is written.
                Expr::Changed(_, slot) if made => Some((column.clone(), operand(*slot)?)),
                Expr::Slot(slot) => Some((column.clone(), operand(*slot)?)),
                Expr::Now => Some((column.clone(), quoted(":now"))),
                Expr::Changed(..) => None,
            };
            simple.sets.iter().map(one).collect()
        };
        let name = quoted(&simple.table);
        let step = match simple.verb {
            Verb::Select if keyed => format!(
                "{{ get = {name}, key = {}, fields = {}, rows = [0, 1] }}",
                key()?,
                list(simple.columns.iter().map(|column| quoted(column)))
            ),
            Verb::Select if made => {
                let by: Option<Vec<String>> = simple
                    .by
                    .iter()
                    .map(|(column, slot)| Some(format!("{} = {}", quoted(column), operand(*slot)?)))
                    .collect();
                format!(
                    "{{ find-equal = {name}, where = {{ {} }}, fields = {} }}",
                    by?.join(", "),
                    list(simple.columns.iter().map(|column| quoted(column)))
                )
            }
            Verb::Update if keyed => {
                self.adds |= adds && made;
                let sets: Vec<String> = written()?
                    .into_iter()
                    .map(|(column, value)| format!("{} = {value}", quoted(&column)))
                    .collect();
                format!(
                    "{{ update = {name}, key = {}, set = {{ {} }}, affected = [0, 1] }}",
                    key()?,
                    sets.join(", ")
                )
            }
            Verb::Delete if keyed => format!("{{ delete = {name}, key = {}, affected = [0, 1] }}", key()?),
            // Every field needs a value, and the key one that no other row has.
            Verb::Insert if !table.key.is_empty() => {
                let mut written = written()?;
                if made && table.is_numbered {
                    written.push((NUMBER.to_owned(), quoted(&format!(":{NUMBER}_{}", simple.table))));
                }
                let all: BTreeSet<&String> =
                    if made { table.fields.keys().collect() } else { table.used.iter().collect() };
                let own: BTreeSet<&String> = written.iter().map(|(column, _)| column).collect();
                if !table.key.iter().all(|column| own.contains(column))
                    || !all.is_subset(&own)
                    || all.is_empty()
                {
                    return None;
                }
                let values: Vec<String> =
                    written.iter().map(|(column, value)| format!("{} = {value}", quoted(column))).collect();
                format!("{{ insert = {name}, values = {{ {} }} }}", values.join(", "))
            }
            _ => return None,
        };
        let columns: Vec<String> = columns.into_iter().cloned().collect();
        table.used.extend(columns);
        table.used.extend(table.key.clone());
        Some(step)
    }

    /// A statement on a collection, for all SQL engines.
    fn braces(&mut self, simple: &Plain, values: &[Use], plan: &Plan) -> Option<String> {
        let table = self.tables.get_mut(&simple.table).filter(|table| table.can_be_made(&simple.table))?;
        let operand = |slot: usize| match values.get(slot)? {
            Use::Variable(variable) => Some(format!(":{}", plan.variables.get(*variable)?.name)),
            Use::Text(Value::Int(number)) => Some(number.to_string()),
            Use::Text(Value::Text(text)) if !text.contains('\\') => {
                Some(format!("'{}'", text.replace('\'', "''")))
            }
            Use::Text(_) => None,
        };
        let value = |(column, expr): &(String, Expr)| match expr {
            Expr::Slot(slot) => operand(*slot),
            Expr::Now => Some("CURRENT_TIMESTAMP".to_owned()),
            Expr::Changed(sign, slot) => Some(format!("{column} {sign} {}", operand(*slot)?)),
        };
        let by: Option<Vec<String>> =
            simple.by.iter().map(|(column, slot)| Some(format!("{column} = {}", operand(*slot)?))).collect();
        let (by, name) = (by?.join(" AND "), &simple.table);
        let pairs: Option<Vec<String>> =
            simple.sets.iter().map(|set| Some(format!("{} = {}", set.0, value(set)?))).collect();
        let columns: Vec<&str> = simple.sets.iter().map(|(column, _)| column.as_str()).collect();
        let (sql, rest) = match simple.verb {
            Verb::Update => {
                (format!("UPDATE {{{name}}} SET {} WHERE {by}", pairs?.join(", ")), String::new())
            }
            Verb::Insert => {
                let values: Option<Vec<String>> = simple.sets.iter().map(value).collect();
                // A key that the server gave is not in the statement.
                table.key.iter().all(|column| columns.contains(&column.as_str())).then_some(())?;
                let sql = format!(
                    "INSERT INTO {{{name}}} ({}) VALUES ({})",
                    columns.join(", "),
                    values?.join(", ")
                );
                (sql, format!(", affected = 1, adds = {}", quoted(name)))
            }
            Verb::Delete => {
                (format!("DELETE FROM {{{name}}} WHERE {by}"), format!(", removes = {}", quoted(name)))
            }
            Verb::Select => return None,
        };
        table.used.extend(table.fields.keys().cloned());
        Some(format!("{{ sql = {}{rest} }}", quoted(&sql)))
    }

    /// The statement's own text, with variables for values.
    fn sql(
        &self,
        statement: &Statement,
        values: &[Use],
        plan: &Plan,
    ) -> std::result::Result<String, &'static str> {
        let form = self.analysis.forms.get(statement.form).ok_or("too many forms of statements")?;
        let mut sql = String::new();
        let mut uses = values.iter();
        for piece in &form.pieces {
            let Piece::Value(..) = piece else {
                if let Piece::Text(text) = piece {
                    is_spelt_safely(text)?;
                    sql.push_str(text);
                }
                continue;
            };
            match uses.next() {
                Some(Use::Variable(variable)) => {
                    let name = plan.variables.get(*variable).map_or("", |one| one.name.as_str());
                    // A typed literal: no parameter may stand behind its type's name.
                    let trimmed = sql.trim_end().len();
                    let word =
                        sql[..trimmed].rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
                    let typed = ["date", "time", "timestamp", "timestamptz"]
                        .contains(&word.to_ascii_lowercase().as_str())
                        || (word.eq_ignore_ascii_case("interval") && self.family == "postgres");
                    if typed {
                        let kind = if self.family == "mysql" && word.eq_ignore_ascii_case("timestamp") {
                            "DATETIME"
                        } else {
                            word
                        };
                        let cast = format!("CAST(:{name} AS {kind})");
                        sql.truncate(trimmed - word.len());
                        sql.push_str(&cast);
                    } else {
                        let _ = write!(sql, ":{name}");
                    }
                }
                Some(Use::Text(value)) => self.literal(value, &mut sql)?,
                None => return Err("its values are not known"),
            }
        }
        let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        let sql = sql.trim_end_matches([';', ' ']);
        if sql.contains(';') {
            return Err("several statements in one text");
        }
        Ok(sql.to_owned())
    }

    fn literal(&self, value: &Value, sql: &mut String) -> std::result::Result<(), &'static str> {
        match value {
            Value::Int(number) => {
                // Two signs begin a comment.
                let space = if sql.ends_with('-') && *number < 0 { " " } else { "" };
                let _ = write!(sql, "{space}{number}");
            }
            Value::Text(text)
                if text.contains(';') || text.contains(char::is_whitespace) && text.contains("  ") =>
            {
                return Err("a text in it cannot be written in a line");
            }
            Value::Text(text) => {
                let text = text.replace('\'', "''");
                let text = if self.family == "mysql" { text.replace('\\', "\\\\") } else { text };
                let _ = write!(sql, "'{text}'");
            }
            Value::Verbatim(text) => {
                let is_comment = ["--", "/*", "#"].iter().any(|sign| text.starts_with(sign));
                // Hints of optimizers are comments.
                sql.push_str(if is_comment && !text.starts_with("/*+") { " " } else { text });
            }
            Value::Null => sql.push_str("NULL"),
            Value::Unknown => return Err("its values are not known"),
        }
        Ok(())
    }

    /// The draws of the variables that a node repeats and steps name, each with `before` and `after`.
    fn draws(&self, plan: &Plan, within: Option<usize>, before: &str, after: &str, steps: &str) -> String {
        let named = |name: &str| {
            let name = format!(":{name}");
            steps
                .split(name.as_str())
                .skip(1)
                .any(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
        };
        let used: BTreeSet<usize> = (0..plan.variables.len())
            .filter(|number| plan.variables.get(*number).is_some_and(|variable| named(&variable.name)))
            .flat_map(|number| match plan.variables.get(number).map(|variable| &variable.source) {
                Some(Source::Plus(of, _)) => vec![number, *of],
                _ => vec![number],
            })
            .collect();
        let mut out = String::new();
        for (number, variable) in plan.variables.iter().enumerate() {
            if variable.within != within || !used.contains(&number) {
                continue;
            }
            let name = &variable.name;
            let of_key = self.key_of(plan, number);
            for (suffix, draw) in draw(variable, plan, of_key.as_ref(), self.made) {
                let _ = write!(out, "{before}draw.{name}{suffix} = {draw}{after}");
            }
        }
        out
    }

    /// How a variable names rows: in the key of a table that is made, or in an INSERT.
    fn key_of(&self, plan: &Plan, variable: usize) -> Option<KeyOf> {
        let mut found: Option<KeyOf> = None;
        for statement in plan.statements.values() {
            let Some((simple, values)) = self.simple(statement) else {
                let text =
                    self.analysis.forms.get(statement.form).map(|form| form.key().to_ascii_lowercase());
                let inserts = text.is_some_and(|text| text.trim_start().starts_with("insert"));
                if statement.values.iter().flatten().any(|one| *one == Use::Variable(variable)) {
                    let found = found.get_or_insert_default();
                    found.is_inserted |= inserts;
                    found.is_compared |= !inserts;
                }
                continue;
            };
            let Some(table) = self.tables.get(&simple.table) else { continue };
            let is_it = |slot: usize| values.get(slot) == Some(&Use::Variable(variable));
            for (column, _) in simple.by.iter().filter(|(_, slot)| is_it(*slot)) {
                let found = found.get_or_insert_default();
                found.is_compared = true;
                if table.key == [column.clone()] {
                    found.table = Some((simple.table.clone(), table.rows));
                }
            }
            for (column, expr) in &simple.sets {
                if matches!(expr, Expr::Slot(slot) if is_it(*slot)) {
                    found.get_or_insert_default().is_written = true;
                }
                if simple.verb == Verb::Insert && matches!(expr, Expr::Slot(slot) if is_it(*slot)) {
                    let found = found.get_or_insert_default();
                    found.is_inserted |= table.key.is_empty() || table.key.contains(column);
                    found.rows = found.rows.max(if table.key.contains(column) { table.rows } else { 0 });
                }
            }
        }
        found
    }

    /// What is not in the model, by share of time.
    fn notes(&self, shown: &Shown) -> Vec<String> {
        let is_control = |text: &str| {
            let first = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
            ["begin", "start", "commit", "end", "rollback", "abort"]
                .contains(&first.to_ascii_lowercase().as_str())
        };
        let mut lost: Vec<(f64, String)> = Vec::new();
        let mut setup = 0.0;
        for (place, statement) in shown.statements.iter().enumerate() {
            if statement.setup {
                if !is_control(&statement.text) {
                    setup += statement.share;
                }
                continue;
            }
            if self.carried.contains(&place) || statement.calls == 0 {
                continue;
            }
            let why = self.lost.get(&place).unwrap_or(&"in none of the frequent kinds of transactions");
            let text: String = printable(&statement.text).chars().take(70).collect();
            lost.push((statement.share, format!("{text}: {why}")));
        }
        if setup > 0.0 {
            lost.push((
                setup,
                "SET, SHOW, savepoints and the like, which set up a connection or a transaction".to_owned(),
            ));
        }
        lost.sort_by(|one, two| two.0.total_cmp(&one.0));
        let share: f64 = lost.iter().map(|(share, _)| share).sum();
        let mut notes = vec![format!("It has {:.1} % of the recorded time.", 100.0 * (1.0 - share).max(0.0))];
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
        if self.adds {
            notes
                .push("Additions to a column write the value alone, as not every engine can add.".to_owned());
        }
        let listed = lost.len().min(10);
        for (share, what) in lost.iter().take(listed) {
            notes.push(format!("Not in it, {:.1} % of the time: {what}", 100.0 * share));
        }
        if lost.len() > listed {
            let rest: f64 = lost.iter().skip(listed).map(|(share, _)| share).sum();
            notes.push(format!(
                "Not in it, {:.1} % of the time: {} other statements",
                100.0 * rest,
                lost.len() - listed
            ));
        }
        notes
    }
}

/// What a variable is in tables.
#[derive(Clone, Debug, Default)]
struct KeyOf {
    /// Its table, and the largest key, where rows are found by it.
    table: Option<(String, i64)>,
    /// Whether rows are inserted with it, which may have to be new.
    is_inserted: bool,
    /// Whether it is written, and whether it is also looked for.
    is_written: bool,
    is_compared: bool,
    rows: i64,
}

impl Table {
    /// Whether it can be made for a run: names that every engine takes, and keys that are numbers from 1 on.
    fn can_be_made(&self, name: &str) -> bool {
        let is_plain = |name: &str| {
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
                && name.len() <= 40
        };
        let key_is_good = match self.key.as_slice() {
            [] => true,
            [key] => self.fields.get(key) == Some(&Field::Int) && (0..=ROWS).contains(&self.rows),
            _ => false,
        };
        key_is_good
            && is_plain(name)
            && self.fields.iter().all(|(name, field)| is_plain(name) && *field != Field::Other)
    }
}

impl Plan {
    /// What kind of field has this value.
    fn field(&self, value: &Use) -> Field {
        let draw = match value {
            Use::Text(value) => return Field::of(value),
            Use::Variable(variable) => match self.variables.get(*variable).map(|variable| &variable.source) {
                Some(Source::Draw(_, nulls)) if *nulls > 0.0 => return Field::Other,
                Some(Source::Draw(draw, _)) => draw,
                _ => return Field::Int,
            },
        };
        match draw {
            Draw::Constant(value) => Field::of(value),
            Draw::Sequence(..) | Draw::Uniform(..) | Draw::Zipf { .. } => Field::Int,
            Draw::List(values) | Draw::Recorded(values, _) => {
                values.iter().fold(Field::Unknown, |field, (value, _)| field.with(Field::of(value)))
            }
        }
    }

    /// The largest number that it can be.
    fn largest(&self, value: &Use) -> i64 {
        let of = |value: &Value| if let Value::Int(number) = value { *number } else { 0 };
        match value {
            Use::Text(value) => of(value),
            Use::Variable(variable) => match self.variables.get(*variable).map(|variable| &variable.source) {
                Some(Source::Draw(draw, _)) => match draw {
                    Draw::Constant(value) => of(value),
                    Draw::Sequence(_, most) | Draw::Uniform(_, most) | Draw::Zipf { most, .. } => *most,
                    Draw::List(values) | Draw::Recorded(values, _) => {
                        values.iter().map(|(value, _)| of(value)).max().unwrap_or(0)
                    }
                },
                Some(Source::Plus(of, added)) => self.largest(&Use::Variable(*of)).saturating_add(*added),
                None => 0,
            },
        }
    }

    /// A value in a step that every engine has.
    fn operand(&self, value: &Use) -> Option<String> {
        match value {
            Use::Variable(variable) => Some(quoted(&format!(":{}", self.variables.get(*variable)?.name))),
            Use::Text(Value::Int(number)) => Some(number.to_string()),
            Use::Text(Value::Text(text)) => {
                let colon = if text.starts_with(':') { ":" } else { "" };
                Some(quoted(&format!("{colon}{text}")))
            }
            Use::Text(_) => None,
        }
    }
}

/// The draws of a variable: what is put behind its name, and how.
fn draw(variable: &Variable, plan: &Plan, of_key: Option<&KeyOf>, made: bool) -> Vec<(&'static str, String)> {
    let name = &variable.name;
    let (draw, nulls) = match &variable.source {
        Source::Plus(of, added) => {
            let of = plan.variables.get(*of).map_or("", |of| of.name.as_str());
            return vec![("", quoted(&format!(":{of} + {added}")))];
        }
        Source::Draw(draw, nulls) => (draw, *nulls),
    };
    let is_inserted = of_key.is_some_and(|key| key.is_inserted);
    let row = of_key.and_then(|key| key.table.as_ref()).filter(|_| made);
    let all_rows = |least: i64, most: i64, part: i64| {
        let (name, rows) = row?;
        ((1..=1 + rows / part).contains(&least) && most >= rows - rows / part).then_some(name.as_str())
    };
    let mut draws = match draw {
        Draw::Constant(value) => vec![("", format!("{{ list = [{}] }}", toml(value)))],
        Draw::Sequence(_, last) if is_inserted && !made => {
            // Rows of an earlier trial are still there.
            let most = if *last < i64::from(i32::MAX) { i64::from(i32::MAX) } else { i64::MAX >> 1 };
            vec![("", quoted(&format!("random({}, {most})", last.saturating_add(1))))]
        }
        Draw::Sequence(_, last) if is_inserted => {
            let first = of_key.map_or(0, |key| key.rows).max(*last);
            vec![("", format!("{{ sequence = {} }}", first.saturating_add(1)))]
        }
        // It begins again at its end.
        Draw::Sequence(first, last) => vec![
            ("_number", "{ sequence = 0 }".to_owned()),
            (
                "",
                quoted(&format!(
                    "{first} + mod(:{name}_number, {})",
                    last.saturating_sub(*first).saturating_add(1)
                )),
            ),
        ],
        // All of its rows, so that the number of rows can be another.
        Draw::Uniform(least, most) if let Some(name) = all_rows(*least, *most, 50) => {
            vec![("", format!("{{ row = {} }}", quoted(name)))]
        }
        Draw::Zipf { least, most, exponent, order: Order::Rising }
            if let Some(name) = all_rows(*least, *most, 2) =>
        {
            vec![("", format!("{{ row = {}, zipfian = true, exponent = {exponent:.3} }}", quoted(name)))]
        }
        Draw::Uniform(least, most) => vec![("", format!("{{ uniform = [{least}, {most}] }}"))],
        Draw::Zipf { least, most, exponent, order: Order::Rising } => {
            vec![("", format!("{{ zipfian = [{least}, {most}], exponent = {exponent:.3} }}"))]
        }
        Draw::Zipf { least, most, exponent, order } => {
            let width = most - least + 1;
            let at = match order {
                Order::Falling => format!("{most} - :{name}_rank"),
                // Any order will do, as long as it is the same in each trial.
                _ => format!("{least} + permute(:{name}_rank, {width}, 1)"),
            };
            vec![
                ("_rank", format!("{{ zipfian = [0, {}], exponent = {exponent:.3} }}", width - 1)),
                ("", quoted(&at)),
            ]
        }
        // What differs each time is written as new texts of the same form.
        Draw::Recorded(values, _)
            if of_key.is_some_and(|key| key.is_inserted || (key.is_written && !key.is_compared))
                && values.iter().all(|(value, count)| *count == 1 && matches!(value, Value::Text(_))) =>
        {
            vec![("", format!("{{ template = {} }}", quoted(&template(values))))]
        }
        Draw::List(values) | Draw::Recorded(values, _) => {
            let weights: Vec<u64> = values.iter().map(|(_, count)| *count).collect();
            let is_even = weights.iter().all(|weight| Some(weight) == weights.first());
            let weights = if is_even {
                String::new()
            } else {
                format!(", weights = [{}]", weights.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
            };
            let values: Vec<String> = values.iter().map(|(value, _)| toml(value)).collect();
            vec![("", format!("{{ list = [{}]{weights} }}", values.join(", ")))]
        }
    };
    if nulls > 0.0 {
        if let Some((suffix, _)) = draws.last_mut() {
            *suffix = "_known";
        }
        let share = (nulls * 10_000.0).round();
        draws.push((
            "",
            quoted(&format!("CASE WHEN random(1, 10000) <= {share} THEN NULL ELSE :{name}_known END")),
        ));
    }
    draws
}

/// A pattern for texts like the first: letters and digits change, the rest stays.
fn template(values: &[(Value, u64)]) -> String {
    let Some((Value::Text(first), _)) = values.first() else { return String::new() };
    // Of hexadecimal numbers digits do for all.
    let is_hex = first.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
        && first.contains(|c: char| c.is_ascii_digit());
    let sign = |c: char| match c {
        c if c.is_ascii_digit() || (is_hex && c != '-') => '#',
        c if c.is_alphabetic() => '@',
        c => c,
    };
    first.chars().map(sign).collect()
}

/// The draws of how often nodes repeat, where that differs.
fn repeats(kind: &Kind, nodes: &[Node], first: usize, before: &str) -> String {
    let mut out = String::new();
    let mut number = first;
    for node in nodes {
        if node.most > 1 {
            let counts = counts(kind, number);
            if counts.len() > 1 {
                let values: Vec<String> = counts.iter().map(|(count, _)| count.to_string()).collect();
                let weights: Vec<String> = counts.iter().map(|(_, weight)| weight.to_string()).collect();
                let _ = writeln!(
                    out,
                    "{before}times_{number} = {{ list = [{}], weights = [{}] }}",
                    values.join(", "),
                    weights.join(", ")
                );
            }
        }
        number += size(node);
    }
    out
}

/// How often a node repeated, each number with how often it came.
fn counts(kind: &Kind, number: usize) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut seen, mut nested) = (0, false);
    for sample in &kind.samples {
        let before = seen;
        for (_, count) in sample.counts.iter().filter(|(node, _)| *node == number) {
            *counts.entry((*count).min(REPEATS)).or_default() += 1;
            seen += 1;
        }
        nested |= seen > before + 1;
    }
    // Where it came once, nothing is said.
    let once = (kind.samples.len() as u64).saturating_sub(seen);
    if once > 0 && !nested {
        *counts.entry(1).or_default() += once;
    }
    let mut counts: Vec<(u64, u64)> = counts.into_iter().collect();
    // The two neighbours that are rarest become their mean.
    while counts.len() > COUNTS {
        let rarest = (1..counts.len()).min_by_key(|n| counts[*n - 1].1 + counts[*n].1).unwrap_or(1);
        let (above, below) = (counts.remove(rarest), counts[rarest - 1]);
        let all = below.1 + above.1;
        counts[rarest - 1] = ((below.0 * below.1 + above.0 * above.1 + all / 2) / all, all);
    }
    if counts.is_empty() { vec![(1, 1)] } else { counts }
}

/// The statements of a sequence: the number of each node, and the statement.
fn statements(nodes: &[Node]) -> Vec<(usize, usize)> {
    fn add(nodes: &[Node], first: usize, found: &mut Vec<(usize, usize)>) -> usize {
        let mut number = first;
        for node in nodes {
            number = match &node.what {
                What::Statement(statement) => {
                    found.push((number, *statement));
                    number + 1
                }
                What::Loop(body) => add(body, number + 1, found),
            };
        }
        number
    }
    let mut found = Vec::new();
    add(nodes, 0, &mut found);
    found
}

/// How many numbers a node has, with what it repeats.
fn size(node: &Node) -> usize {
    match &node.what {
        What::Statement(_) => 1,
        What::Loop(body) => 1 + body.iter().map(size).sum::<usize>(),
    }
}

/// Whether a statement only reads, as far as its words say.
fn reads(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let begins = ["select", "(select", "values", "table"].iter().any(|word| lower.starts_with(word));
    let writes = [
        " for update",
        " for share",
        " for no key",
        " lock in share",
        "nextval(",
        "setval(",
        "lock(",
        " into ",
    ];
    begins && !writes.iter().any(|words| lower.contains(words))
}

/// Refuses what the language of workloads would read as a variable or a collection.
fn is_spelt_safely(text: &str) -> std::result::Result<(), &'static str> {
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let next = bytes.get(at + 1).is_some_and(|next| next.is_ascii_alphabetic() || *next == b'_');
        let doubled = at > 0 && bytes.get(at - 1) == Some(&b':');
        if *byte == b':' && next && !doubled {
            return Err("a name behind a colon");
        }
        if *byte == b'{' {
            return Err("a name in braces");
        }
    }
    Ok(())
}

fn list(values: impl IntoIterator<Item = String>) -> String {
    let values: Vec<String> = values.into_iter().collect();
    match values.as_slice() {
        [one] => one.clone(),
        _ => format!("[{}]", values.join(", ")),
    }
}

fn toml(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::Text(text) | Value::Verbatim(text) => quoted(text),
        Value::Null | Value::Unknown => quoted(""),
    }
}

/// A text of TOML: its escapes are those of JSON, and it has one character less.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
