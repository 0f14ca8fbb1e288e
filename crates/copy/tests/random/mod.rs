//! Random tables of each engine, copied to each engine. Source and target are read by the engines' own programs, and compared
//! without the code under test: every value is the same, or the plan listed the difference.
//!
//! `KURABE_COPY_SEED` repeats a run; `KURABE_COPY_PAIRS=postgres-mysql` limits it.

mod compare;
pub mod draw;
mod dump;
mod types;

use super::common::{Place, run_planned, side};
use compare::compare;
use draw::{Draw, Form, Literal};
use dump::dump;
use kurabe_copy::event::Event;
use kurabe_copy::issue::Accepted;
use kurabe_copy::page::PageSize;
use kurabe_copy::plan::Plan;
use kurabe_copy::run::{Copy, How};
use kurabe_copy::wanted::Wanted;
use kurabe_core::{Error, ErrorKind};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

const ENGINES: [&str; 4] = ["sqlite", "postgres", "mysql", "mariadb"];

struct Table {
    name: String,
    /// Names, declarations and forms.
    columns: Vec<(String, String, Form)>,
    sql: String,
}

/// A table with random columns, perhaps a key, and random rows.
fn table(engine: &str, name: &str, draw: &mut Draw) -> Table {
    let mut columns = vec![("c0".to_owned(), "INTEGER".to_owned(), Form::Number)];
    let mut literals: Vec<Literal> = Vec::new();
    for at in 1..=1 + draw.below(6) {
        let (declared, form, literal) = types::column(engine, draw);
        columns.push((format!("c{at}"), declared, form));
        literals.push(literal);
    }
    let (keyed, required) = (!draw.one_in(4), draw.below(columns.len() as u64) as usize);
    let list = columns.iter().enumerate().map(|(at, (name, declared, _))| {
        let null =
            if at == 0 && keyed || at == required && at > 0 && engine == "sqlite" { " NOT NULL" } else { "" };
        format!("{name} {declared}{null}")
    });
    let mut list: Vec<String> = list.collect();
    if keyed {
        list.push("PRIMARY KEY (c0)".to_owned());
    }
    let mut sql = format!("CREATE TABLE {name} ({});\n", list.join(", "));
    sql.push_str("BEGIN;\n");
    for row in 0..draw.below(40) {
        let values = literals.iter().enumerate().map(|(at, literal)| {
            let never = at + 1 == required && engine == "sqlite";
            if !never && draw.one_in(9) { "NULL".to_owned() } else { literal(draw) }
        });
        let values: Vec<String> = values.collect();
        writeln!(sql, "INSERT INTO {name} VALUES ({}, {});", row * 3, values.join(", ")).unwrap();
    }
    sql.push_str("COMMIT");
    Table { name: name.to_owned(), columns, sql }
}

/// What came out of a copy: its plan, and tables that were left out, each with the reason.
#[derive(Default)]
struct Copied {
    plan: Plan,
    refused: Vec<(String, String)>,
    failed: Vec<(String, String)>,
}

/// A copy with all differences accepted, stopped after some events and continued. Tables that the plan refuses are left out, and
/// those that fail.
fn copied(from: &Place, to: &Place, tables: &[Table], draw: &mut Draw) -> Result<Copied, Error> {
    let mut wanted = Wanted {
        tables: tables.iter().map(|table| table.name.clone()).collect(),
        accepted: Accepted::all(),
        page: PageSize { rows: 1 + draw.below(20) as usize, bytes: 100 + draw.below(3_000) as usize },
        ..Wanted::default()
    };
    let mut out = Copied::default();
    let mut restart = false;
    let mut left = draw.below(40);
    loop {
        let stop = AtomicBool::new(false);
        let mut copy = Copy::new(side(&from.url()), side(&to.url()), &stop);
        let plan = match copy.plan(&wanted, &mut []) {
            Ok(plan) => plan,
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                leave_out(&mut wanted.tables, error, &mut out.refused)?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let how = How { restart: std::mem::take(&mut restart), ..How::default() };
        let done = run_planned(&to.url(), &mut copy, &plan, how, &mut |event| {
            if matches!(event, Event::Progress { .. }) {
                left = left.saturating_sub(1);
                stop.store(left == 1, Ordering::Relaxed);
            }
        });
        match done {
            Ok(_) => {
                out.plan = plan;
                return Ok(out);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => left = 0,
            Err(error) => {
                leave_out(&mut wanted.tables, error, &mut out.failed)?;
                restart = true;
            }
        }
        if wanted.tables.is_empty() {
            return Ok(out);
        }
    }
}

/// Leaves out the table that an error names.
fn leave_out(tables: &mut Vec<String>, error: Error, out: &mut Vec<(String, String)>) -> Result<(), Error> {
    let text = error.to_string();
    let is_named = |name: &String| {
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.into_iter().any(|word| word == name)
    };
    let Some(at) = tables.iter().position(is_named) else { return Err(error) };
    out.push((tables.remove(at).to_lowercase(), text));
    Ok(())
}

/// Makes `count` tables of each engine, and copies them between the chosen pairs. Returns how many arrived.
///
/// # Panics
/// With each table that is another one, and whose difference was not listed.
pub fn check(seed: u64, count: usize, pair: &dyn Fn(usize, usize) -> bool) -> usize {
    let pairs = std::env::var("KURABE_COPY_PAIRS").unwrap_or_default();
    let at = |name: &str| ENGINES.iter().position(|known| *known == name).unwrap();
    let chosen = |from: &str, to: &str| {
        if pairs.is_empty() {
            pair(at(from), at(to))
        } else {
            pairs.split(',').any(|pair| {
                pair == format!("{from}-{to}") || pair == from || pair.strip_prefix('-') == Some(to)
            })
        }
    };
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for from in ENGINES {
        if !ENGINES.iter().any(|to| chosen(from, to)) {
            continue;
        }
        let Some(source) = Place::new(from) else { continue };
        let mut draw = Draw(seed);
        draw.0 ^= from.bytes().map(u64::from).sum::<u64>() << 32;
        let tables: Vec<Table> = (0..count).map(|at| table(from, &format!("t{at}"), &mut draw)).collect();
        let mode = if from.starts_with('m') { "SET sql_mode = 'NO_ENGINE_SUBSTITUTION';" } else { "" };
        let mut kept = Vec::new();
        for table in tables {
            let (is_there, _, error) = source.try_ask(&format!("{mode}{}", table.sql));
            if is_there {
                kept.push(table);
            } else {
                wrong.push(format!("seed {seed}: {from} refuses {}: {error}", table.sql));
            }
        }
        let rows: Vec<_> = kept.iter().map(|table| dump(&source, from, table).unwrap()).collect();
        for to in ENGINES.iter().filter(|to| chosen(from, to)) {
            let Some(target) = Place::new(to) else { continue };
            let pair = format!("seed {seed}, {from} to {to}");
            let done = match copied(&source, &target, &kept, &mut draw) {
                Ok(done) => done,
                Err(error) => {
                    wrong.push(format!("{pair}: {error}"));
                    continue;
                }
            };
            for (name, why) in &done.failed {
                let of = kept.iter().find(|table| table.name == *name);
                let sql = of.and_then(|table| table.sql.lines().next()).unwrap_or_default();
                wrong.push(format!("{pair}: {why}\n    {sql}"));
            }
            for (table, rows) in kept.iter().zip(&rows) {
                if done.refused.iter().chain(&done.failed).any(|(name, _)| *name == table.name) {
                    continue;
                }
                checked += 1;
                let differs = match dump(&target, to, table) {
                    Ok(found) => compare(rows, &found, table, &done.plan),
                    Err(error) => Some(error),
                };
                wrong.extend(differs.map(|what| format!("{pair}, {}: {what}", table.name)));
            }
        }
    }
    assert!(wrong.is_empty(), "KURABE_COPY_SEED={seed}\n{}", wrong.join("\n"));
    checked
}
