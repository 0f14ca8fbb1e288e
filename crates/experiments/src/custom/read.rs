//! Parses a workload in Kurabe's own language: TOML.

use super::declared::{Declared, Described, Program, Step};
use super::expression::Expr;
use super::functions::LESS;
use super::request::Request;
use super::section::{Section, known, place, variable};
use super::variables::{Constant, EVERY_CLIENTS};
use super::{draws, relations, steps};
use crate::prelude::*;
use kurabe_core::custom::CustomWorkload;
use kurabe_core::sort;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// After this many successive retries an error is final.
const MAX_RETRIES: u32 = 100;

/// The maximum number of steps of a transaction, with those that it repeats.
const MAX_STEPS: usize = 2_000;

/// The keys of a workload, besides those of every suite.
pub const KEYS: &[&str] =
    &["name", "question", "about", "variables", "collection", "table", "transaction", "write"];

/// The names of engines in statements.
const ENGINES: &[&str] = &["sqlite", "postgres", "postgresql", "mysql", "mariadb", "oracle"];

/// The files of values that a workload names, in any order.
pub fn value_files(text: &str) -> Vec<String> {
    fn named(value: &Value, found: &mut Vec<String>) {
        if let Value::Table(table) = value {
            for (key, value) in table {
                match value {
                    Value::String(name) if key == "file" => found.push(name.clone()),
                    other => named(other, found),
                }
            }
        }
    }
    let mut found = Vec::new();
    if let Ok(table) = text.parse::<Table>()
        && let Some(transactions) = table.get("transaction")
    {
        named(transactions, &mut found);
    }
    sort::by(&mut found, Ord::cmp);
    found.dedup();
    found
}

pub(super) fn read(source: &CustomWorkload) -> Result<Described> {
    let Some((file, values)) = source.files.split_first() else {
        return Err(Error::usage("the workload has no file"));
    };
    let table: Table = file.text.parse().map_err(|e: toml::de::Error| {
        let line = e.span().map_or(0, |span| file.text[..span.start].lines().count().max(1));
        Error::usage(format!("{}: line {line}: {}", file.name, e.message()))
    })?;
    let values: BTreeMap<&str, &str> =
        values.iter().map(|file| (file.name.as_str(), file.text.as_str())).collect();
    let stem = file.name.rsplit('/').next().unwrap_or_default();
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    // The other keys belong to the suite. The parser of suites checks them.
    let top = Section { table: &table, place: file.name.clone() };
    let name = name_of(top.text("name")?.unwrap_or(stem));
    let mut declared = Declared::default();
    variables(&top, source, &mut declared)?;
    let write = top.truth("write")? || source.write;
    if let Some(table) = top.table("collection")? {
        declared.relations = relations::collections(table, &file.name, &file.text, &mut declared.variables)?;
    }
    if let Some(table) = top.table("table")? {
        for relation in relations::tables(table, &file.name, &file.text, write)? {
            if declared.relations.iter().any(|known| known.name == relation.name) {
                return Err(
                    top.error(format!("a collection and a table have the same name {}", relation.name))
                );
            }
            declared.relations.push(relation);
        }
    }
    for (name, value) in top.table("transaction")?.into_iter().flatten() {
        let place = place(&file.name, &file.text, "transaction", name);
        let mut steps = Steps { declared: &mut declared, values: &values, write, made: Vec::new() };
        let program = steps.transaction(name, value, place)?;
        declared.programs.push(program);
    }
    declared.programs.retain(|program| program.weight > 0);
    declared.decide_access(steps::WRITE)?;
    declared.note_changes();
    let question =
        top.text("question")?.map_or_else(|| format!("How does '{name}' perform, and where?"), str::to_owned);
    let about = top.text("about")?.unwrap_or("A custom workload.").to_owned();
    Ok(Described { name, question, about, declared })
}

/// A name that is valid for a run, and so for a directory.
pub(super) fn name_of(text: &str) -> String {
    let name: String = text
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(40)
        .collect();
    let name = name.trim_matches('-').to_owned();
    if name.is_empty() { "custom".to_owned() } else { name }
}

fn variables(top: &Section<'_>, source: &CustomWorkload, declared: &mut Declared) -> Result<()> {
    for name in EVERY_CLIENTS {
        declared.variables.slot(name);
    }
    let table = top.table("variables")?;
    for (name, value) in table.into_iter().flatten() {
        let value = top.constant(name, value)?;
        declared.variables.set(name, value);
    }
    for (name, value) in &source.define {
        let names: Vec<&str> = table.into_iter().flat_map(Table::keys).map(String::as_str).collect();
        known(name, &names, "variable").map_err(|error| error.context("--define"))?;
        declared.variables.set(name, Constant::of(value));
    }
    Ok(())
}

/// The steps of a transaction while they are read.
struct Steps<'a> {
    declared: &'a mut Declared,
    /// The lists of values, by the name of their file.
    values: &'a BTreeMap<&'a str, &'a str>,
    /// Whether statements may change data that are not Kurabe's.
    write: bool,
    made: Vec<Step>,
}

impl Steps<'_> {
    fn transaction(&mut self, name: &str, value: &Value, place: String) -> Result<Program> {
        let table = value.as_table().ok_or_else(|| Error::usage("is not a table").context(&place))?;
        let section = Section::new(table, place, &["weight", "draw", "steps", "retry"])?;
        let weight = section.number("weight")?.unwrap_or(1);
        let weight = u64::try_from(weight).ok().filter(|weight| *weight <= 1_000_000);
        let weight = weight.ok_or_else(|| section.error("'weight' is out of range"))?;
        let what = "not a list of the server's codes of errors, such as [\"40001\"]";
        let retry = section.read("retry", what, |value| {
            let codes = value.as_array().filter(|codes| !codes.is_empty())?;
            codes.iter().map(|code| code.as_str().map(str::to_owned)).collect()
        })?;
        self.add(&section)?;
        Ok(Program {
            name: name_of(name),
            weight,
            steps: std::mem::take(&mut self.made),
            retry: retry.unwrap_or_default(),
            retries: Some(MAX_RETRIES),
        })
    }

    /// Adds the draws and the steps of a transaction, or of what one repeats.
    fn add(&mut self, section: &Section<'_>) -> Result<()> {
        if let Some(table) = section.table("draw")? {
            draws::draws(table, &section.place, self.declared, self.values, &mut self.made)?;
        }
        let list = section.get("steps").and_then(Value::as_array).filter(|list| !list.is_empty());
        let list = list.ok_or_else(|| section.error("it has no 'steps'"))?;
        for (number, value) in (1..).zip(list) {
            let place = format!("{}, step {number}", section.place);
            match value.as_table().filter(|table| table.contains_key("repeat")) {
                Some(table) => {
                    let section = Section::new(table, place, &["repeat", "most", "draw", "steps"])?;
                    self.repeat(&section)?;
                }
                None => self.made.push(steps::step(value, &place, self.declared, self.write, ENGINES)?),
            }
            if self.made.len() > MAX_STEPS {
                return Err(
                    section.error(format!("it has more than {MAX_STEPS} steps, with those that it repeats"))
                );
            }
        }
        Ok(())
    }

    /// Adds steps as often as they are repeated at most; those after the number that a variable says are jumped over.
    fn repeat(&mut self, section: &Section<'_>) -> Result<()> {
        let name = section.get("repeat").and_then(Value::as_str).and_then(|text| text.strip_prefix(':'));
        let slot = name.map(|name| section.at(variable(name, &self.declared.variables))).transpose()?;
        let key = if slot.is_some() { "most" } else { "repeat" };
        let times = section.number(key)?.filter(|times| (1..=MAX_STEPS as i64).contains(times));
        let times = times.ok_or_else(|| {
            section.error(format!("'{key}' must be a number from 1 to {MAX_STEPS}: how often at most"))
        })?;
        if slot.is_none() && section.has("most") {
            return Err(section.error("'most' needs a variable in 'repeat', which says how often"));
        }
        let mut jumps = Vec::new();
        for time in 0..times {
            if let Some(slot) = slot {
                jumps.push(self.made.len());
                let condition = Expr::Call(&LESS, vec![Expr::Int(time), Expr::Variable(slot)]);
                self.made.push(Step::Unless { condition, to: 0, place: section.place.clone() });
            }
            self.add(section)?;
        }
        let end = self.made.len();
        for jump in jumps {
            if let Some(Step::Unless { to, .. }) = self.made.get_mut(jump) {
                *to = end;
            }
        }
        Ok(())
    }
}

impl Declared {
    /// Records what the transactions do to the collections.
    pub(super) fn note_changes(&mut self) {
        for step in self.programs.iter().flat_map(|program| &program.steps) {
            let Step::Execute(execute) = step else { continue };
            match &execute.request {
                Request::Put(relation) => {
                    self.relations[*relation].disturbed = true;
                    self.relations[*relation].note_traffic(false);
                }
                Request::Update(relation, fields) => {
                    let changed = &mut self.relations[*relation].changed;
                    for field in fields {
                        changed[*field] = true;
                    }
                }
                Request::Delete(relation) => self.relations[*relation].disturbed = true,
                _ => {}
            }
            for relation in [execute.adds, execute.removes].into_iter().flatten() {
                self.relations[relation].note_traffic(true);
            }
        }
    }
}
