//! Proposes indexes for the shapes of statements, and to drop those that no statement could use.

use crate::change::{Change, Index, Proposal, TableName, is_postgres};
use crate::shapes::{Part, Shape};
use kurabe_capture::statements::Asked;
use kurabe_copy::catalog::{Catalog, Table};
use kurabe_copy::engines::Engine;
use kurabe_protocol::sql::{Dialect, Statement};
use std::collections::BTreeSet;

/// The columns for equality in an index at most.
const EQUAL: usize = 3;
/// The columns that an index only holds, at most.
const HELD: usize = 3;
/// The characters of a long text in an index.
const PREFIX: u32 = 32;
/// The smallest share of the recorded time of statements for which an index is proposed.
const SHARE: f64 = 0.01;
/// The longest name of an index, in characters.
const NAME: usize = 56;

/// What a server has.
#[derive(Default)]
pub struct Schemas {
    /// The tables, each with its schema, empty for that in which names are looked up.
    pub tables: Vec<(String, Table)>,
    /// The names of views and of what else is found where tables are, in lower case.
    pub others: Vec<String>,
}

impl Schemas {
    pub(crate) fn add(&mut self, schema: &str, catalogue: Catalog) {
        let is_table = |name: &String| catalogue.tables.iter().any(|table| table.name == *name);
        self.others
            .extend(catalogue.names.iter().filter(|name| !is_table(name)).map(|name| name.to_lowercase()));
        self.tables.extend(catalogue.tables.into_iter().map(|table| (schema.to_owned(), table)));
    }
}

/// What is known of the database.
pub struct Known<'a> {
    pub engine: &'static Engine,
    pub has_expressions: bool,
    pub dialect: Dialect,
    pub schemas: &'a Schemas,
    pub asked: &'a [Asked],
    /// Of each statement, its shapes.
    pub shapes: &'a [Vec<Shape>],
}

/// Indexes that are not there yet, those for the largest share of the time first.
pub fn missing(known: &Known<'_>) -> Vec<Proposal> {
    let total: u64 = known.asked.iter().map(|asked| asked.total_ns).sum();
    // With the recorded time of the statements that each is for, and the last of these.
    let mut found: Vec<(Proposal, u64, usize)> = Vec::new();
    for (at, (asked, shapes)) in known.asked.iter().zip(known.shapes).enumerate() {
        if (asked.total_ns as f64) < SHARE * total as f64 {
            continue;
        }
        for (index, reason) in shapes.iter().flat_map(|shape| candidates(shape, known)) {
            match found.iter_mut().find(|(other, ..)| is_same(&other.change, &index)) {
                Some((.., last)) if *last == at => {}
                Some((_, weight, last)) => (*weight, *last) = (*weight + asked.total_ns, at),
                None => {
                    let change = Change::Index(index);
                    found.push((Proposal { change, reason, costs: None }, asked.total_ns, at));
                }
            }
        }
    }
    found.sort_by_key(|(_, weight, _)| std::cmp::Reverse(*weight));
    let mut found: Vec<Proposal> = found.into_iter().map(|(proposal, ..)| proposal).collect();
    name_all(&mut found, &known.schemas.tables);
    found
}

fn is_same(change: &Change, index: &Index) -> bool {
    matches!(change, Change::Index(other) if Index { name: String::new(), ..other.clone() } == *index)
}

/// The indexes that could serve a shape, with the reason for each.
fn candidates(shape: &Shape, known: &Known<'_>) -> Vec<(Index, String)> {
    let (schema, table) = &known.schemas.tables[shape.table];
    let is_postgres = is_postgres(known.engine);
    let as_part = |part: &Part| fit(part, table, is_postgres);
    let equal: Vec<Part> = shape.equal.iter().map(|one| as_part(&one.part)).take(EQUAL).collect();
    let range: Vec<Part> = shape.range.iter().map(as_part).take(1).collect();
    let order: Vec<Part> = shape.order.iter().map(|(column, _)| Part::Column(column.clone())).collect();
    let downs: Vec<bool> = shape.order.iter().map(|(_, down)| *down).collect();
    let has_mixed_order = downs.iter().any(|down| *down != downs[0]);
    let index = |parts: Vec<Part>| Index {
        table: TableName { schema: schema.clone(), name: table.name.clone() },
        parts: without_repeats(parts),
        ..Index::default()
    };
    let mut found: Vec<(Index, String)> = Vec::new();
    if !equal.is_empty() {
        found.push((index(equal.clone()), "compared for equality".to_owned()));
    }
    if equal.len() > 1 {
        for part in &equal[..2] {
            found.push((index(vec![part.clone()]), "compared for equality".to_owned()));
        }
    }
    if !range.is_empty() {
        let why = if equal.is_empty() { "a range" } else { "equality before a range" };
        found.push((index([equal.clone(), range.clone()].concat()), why.to_owned()));
    }
    if !order.is_empty() {
        let mut ordered = index([equal.clone(), order].concat());
        if has_mixed_order {
            ordered.down = [vec![false; ordered.parts.len().saturating_sub(downs.len())], downs].concat();
        }
        let why = if equal.is_empty() { "an order" } else { "equality before an order" };
        found.push((ordered, why.to_owned()));
    }
    let held = covering(shape, found.last().map(|(index, _)| index), is_postgres);
    found.extend(held);
    if is_postgres {
        let partial: Vec<_> = found.iter().filter_map(|(index, _)| partial(shape, index, table)).collect();
        found.extend(partial);
    }
    let is_call = |part: &Part| matches!(part, Part::Call { .. });
    found.retain(|(index, _)| {
        !index.parts.is_empty()
            && (known.has_expressions || !index.parts.iter().any(is_call))
            && !exists(index, table)
    });
    found
}

/// A part as this engine can have it: of a long text of MySQL only its beginning.
fn fit(part: &Part, table: &Table, is_postgres: bool) -> Part {
    let column = table.columns.iter().find(|column| column.name == part.column());
    let is_long = column.is_some_and(|column| {
        // The type's name, without a list of values that may contain any word.
        let name = column.declared.split(['(', ' ']).next().unwrap_or_default().to_ascii_lowercase();
        ["text", "blob", "json"].iter().any(|kind| name.ends_with(kind))
    });
    match part {
        Part::Column(column) | Part::Beginning(column) if is_long && !is_postgres => {
            Part::Prefix(column.clone(), PREFIX)
        }
        other => other.clone(),
    }
}

fn without_repeats(parts: Vec<Part>) -> Vec<Part> {
    let mut known = BTreeSet::new();
    parts.into_iter().filter(|part| known.insert(part.column().to_owned())).collect()
}

/// An index with the few other columns that the statement needs of the table.
fn covering(shape: &Shape, index: Option<&Index>, is_postgres: bool) -> Option<(Index, String)> {
    let index = index?;
    let needed: BTreeSet<&str> = shape.given.iter().map(String::as_str).chain(shape.keys()).collect();
    let held = |column: &&str| !index.parts.iter().any(|part| part.column() == *column);
    let rest: Vec<String> = needed.into_iter().filter(held).map(str::to_owned).collect();
    let has_all = index.parts.iter().all(|part| matches!(part, Part::Column(_)));
    if shape.gives_all || rest.is_empty() || rest.len() > HELD || !has_all {
        return None;
    }
    let mut index = index.clone();
    if is_postgres {
        index.include = rest;
    } else {
        index.parts.extend(rest.into_iter().map(Part::Column));
    }
    Some((index, "has all columns that the statement needs".to_owned()))
}

/// An index of the rows that have the constant with which a column is always compared.
fn partial(shape: &Shape, index: &Index, table: &Table) -> Option<(Index, String)> {
    let constant = |part: &Part| {
        let equal = shape.equal.iter().find(|one| one.part == *part)?;
        Some((part.column().to_owned(), equal.constant.clone()?))
    };
    let only = index.parts.iter().find_map(constant).filter(|_| index.include.is_empty())?;
    let mut parts: Vec<Part> = index.parts.iter().filter(|part| part.column() != only.0).cloned().collect();
    if parts.is_empty() {
        parts = table.primary.iter().map(|column| Part::Column(column.clone())).collect();
    }
    let reason = format!("{} is always {}", only.0, only.1);
    let index = Index { parts, only: Some(only), down: Vec::new(), ..index.clone() };
    Some((index, reason))
}

/// Whether an index of the table begins with these columns.
fn exists(index: &Index, table: &Table) -> bool {
    let columns: Vec<&str> = index.parts.iter().map(Part::column).collect();
    let is_plain = index.parts.iter().all(|part| matches!(part, Part::Column(_) | Part::Prefix(..)));
    let begins = |known: &[String]| {
        known.len() >= columns.len() && known.iter().zip(&columns).all(|(known, column)| known == column)
    };
    let is_known = begins(&table.primary) || table.indexes.iter().any(|known| begins(&known.columns));
    is_plain && index.include.is_empty() && index.only.is_none() && is_known
}

/// Gives each index a name that the tables do not have yet.
fn name_all(found: &mut [Proposal], tables: &[(String, Table)]) {
    let mut known: BTreeSet<String> =
        tables.iter().flat_map(|(_, table)| &table.indexes).map(|index| index.name.clone()).collect();
    for proposal in found {
        let Change::Index(index) = &mut proposal.change else { continue };
        let columns: Vec<&str> = index.parts.iter().map(Part::column).collect();
        let base: String = format!("{}_{}", index.table.name, columns.join("_")).chars().take(NAME).collect();
        let mut name = format!("{base}_idx");
        let mut number = 1;
        while !known.insert(name.clone()) {
            number += 1;
            name = format!("{base}_idx{number}");
        }
        index.name = name;
    }
}

/// Indexes of tables that are written, whose first column no statement names in a condition or an order, and that no key needs.
pub fn unused(known: &Known<'_>) -> Vec<Proposal> {
    let statements = || known.asked.iter().map(|one| Statement::read(&one.text, known.dialect));
    // A view reads tables that its statement does not name.
    let names_view = |one: Statement<'_>| one.tables().iter().any(|name| known.schemas.others.contains(name));
    if statements().any(names_view) {
        return Vec::new();
    }
    // What it writes is named first.
    let writes = |one: &Statement<'_>| one.begins(&["insert", "replace", "update", "delete"]);
    let writing = statements().zip(known.shapes).filter(|(one, _)| writes(one));
    let written: BTreeSet<usize> =
        writing.filter_map(|(_, shapes)| shapes.first()).map(|shape| shape.table).collect();
    let mut found = Vec::new();
    for at in written {
        let (schema, table) = &known.schemas.tables[at];
        let shapes = known.shapes.iter().flatten().filter(|shape| shape.table == at);
        let used: BTreeSet<&String> = shapes.flat_map(|shape| &shape.named).collect();
        // Of the table's own foreign keys, and, where an index that is not unique may serve them, of those that refer to it.
        let keys = known
            .schemas
            .tables
            .iter()
            .flat_map(|(_, other)| other.foreign.iter().map(move |key| (other, key)));
        let keys: BTreeSet<&String> = keys
            .flat_map(|(other, key)| {
                let own = (other.name == table.name).then(|| key.columns.first());
                own.into_iter()
                    .chain((key.parent == table.name).then(|| key.parent_columns.first()))
                    .flatten()
            })
            .collect();
        for index in table.indexes.iter().filter(|index| !index.unique) {
            let Some(first) = index.columns.first() else { continue };
            if used.contains(first) || keys.contains(first) {
                continue;
            }
            found.push(Proposal {
                change: Change::DropIndex {
                    table: TableName { schema: schema.clone(), name: table.name.clone() },
                    name: index.name.clone(),
                    columns: index.columns.clone(),
                },
                reason: format!(
                    "no recorded statement uses it: none compares or orders by {first}, and writes of {} keep it up",
                    table.name
                ),
                costs: None,
            });
        }
    }
    found
}
