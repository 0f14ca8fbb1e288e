//! From what is wanted and the catalogues of both sides to a plan.

use crate::casts::Casts;
use crate::catalog::{Catalog, Named, Table, Text};
use crate::columns::{OneTable, differ_beyond_case};
use crate::engines::engine::Engine;
use crate::engines::facts::{Carried, TargetFacts};
use crate::engines::queries::file;
use crate::foreign;
use crate::issue::{Issue, IssueKind};
use crate::leftovers;
use crate::names::{Names, differ, ordered};
use crate::needs::{missing_collation, needed};
use crate::plan::{Left, Plan, TablePlan};
use crate::script::{Entry, check, statement, without_bytes};
use crate::sql::{Side, text};
use crate::state;
use crate::wanted::{Parts, Wanted, chosen, existing, own, prepare};
use kurabe_core::sort;
use kurabe_core::{Error, Result};
use kurabe_driver_common::ownership::MARKER;
use std::collections::HashMap;

/// Plans a copy. Reads the source's catalogue and, where something depends on values, its tables. `there` is what exists
/// on the target, if only rows are copied. Refuses what no acceptance can map, such as names that are too long.
pub fn plan(
    source: &mut Side,
    target: &Engine,
    facts: &TargetFacts,
    wanted: &Wanted,
    there: Option<&Catalog>,
) -> Result<Plan> {
    let mut catalog = source.catalog()?;
    let comments = besides(source, &mut catalog, facts)?;
    let own = own(source, &catalog)?;
    let mut tables = chosen(source, &catalog, wanted, &own)?;
    let mut plan = Plan { parts: wanted.parts, ..Plan::default() };
    let is_left =
        |name: &&String| catalog.names.contains(name) && !tables.iter().any(|table| table.name == **name);
    let sql = Entry::comment("Kurabe made this table for itself, by its record");
    let left = own.iter().filter(is_left).map(|name| Left { object: name.clone(), sql: sql.clone() });
    plan.left = left.collect();
    let gone = leftovers::gone(&mut tables, &catalog, wanted, &mut plan.issues);
    if !matches!(&*facts.encoding, "" | "UTF8") {
        let other = if facts.encoding == "SQL_ASCII" { "" } else { ", or have other characters" };
        let encoding = &facts.encoding;
        let detail =
            format!("a database in {encoding} refuses texts that are too long in bytes{other} (--reject)");
        plan.issues.push(Issue::new(IssueKind::StorageClass, "the target".to_owned(), detail));
    }
    let mut casts = wanted.casts.clone();
    casts.check(&tables)?;
    if let Some(there) = there {
        existing(&tables, there, wanted, facts.same_server, &mut casts)?;
    }
    prepare(&mut tables, wanted, &casts);
    // The engine's own text of a table has its collations.
    for table in tables.iter_mut().filter(|_| facts.same_server && source.engine.names_objects) {
        table.native.take_if(|native| missing_collation(&native.create, facts).is_some());
    }
    if wanted.rejects {
        refuse_reject(source, facts, wanted, &tables)?;
    }
    let as_made = |table: &Table| {
        let mut made = Table { name: wanted.renamed(&table.name), ..table.clone() };
        made.foreign.iter_mut().for_each(|key| key.parent = wanted.renamed(&key.parent));
        made
    };
    let made: Vec<Table> = tables.iter().map(as_made).collect();
    let casts = Casts::new(source.engine, target, &casts)?;
    let mut names = Names::new(target, &made);
    differ(made.iter().map(|table| table.name.as_str()))?;
    differ_beyond_case(facts.folds_tables, made.iter().map(|table| table.name.as_str()), "tables")?;
    for (table, made) in tables.iter().zip(&made) {
        check_table(target, facts, wanted, table, made)?;
        let (casts, issues) = (&casts, &mut plan.issues);
        let mut one = OneTable { source, target, facts, table, made, wanted, casts, issues };
        let mut planned = one.plan(&mut names)?;
        let found = there.and_then(|there| there.tables.iter().find(|table| table.name == made.name));
        for column in
            found.iter().flat_map(|found| &found.columns).filter(|column| column.generated.is_some())
        {
            let own = planned.columns.iter_mut().filter(|own| own.name.eq_ignore_ascii_case(&column.name));
            own.for_each(|own| own.written = false);
        }
        plan.tables.push(planned);
    }
    foreign::plan(source, target, facts, [&tables, &made], wanted, &mut plan, &mut names)?;
    let all = wanted.tables.is_empty() && wanted.exclude.is_empty();
    if facts.same_server {
        if wanted.parts != Parts::Data {
            plan.before = needed(&catalog, &plan.tables, all);
            // A serial column that the source's own text does not make has a sequence of its own.
            let is_other = |of: &String| tables.iter().any(|one| one.name == *of && one.native.is_none());
            let is_needed = |made: &Named| {
                let listed = catalog.leftovers.iter().any(|one| one.table.is_none() && one.name == made.name);
                listed || catalog.needs.iter().any(|(of, needed)| *needed == made.name && !is_other(of))
            };
            plan.before.retain(|made| !catalog.sequences.contains(made) || is_needed(made));
        }
        let is_lost = |made: &Named| !facts.accepts_any_bytes && check(&made.sql).is_err();
        let user = |made: &Named| {
            let needs = |of: &&TablePlan| needed(&catalog, std::slice::from_ref(of), false).contains(made);
            plan.tables.iter().find(needs)
        };
        let lost = plan.before.iter().filter(|made| is_lost(made));
        for (made, table) in lost.filter_map(|made| Some((made, user(made)?))) {
            check(&made.sql).map_err(|error| error.context(format!("table {}", table.name)))?;
        }
        let is_refused = |made: &mut Named| {
            (is_lost(made) || missing_collation(&made.sql, facts).is_some()) && user(made).is_none()
        };
        let refused = plan.before.extract_if(.., is_refused);
        plan.issues.extend(refused.map(|made| not_made(target, IssueKind::View, &made)));
        let is_made = |(_, after): &&(_, Named)| plan.before.iter().any(|made| made.name == after.name);
        plan.after = catalog.after.iter().filter(is_made).cloned().collect();
        let is_native = |name: &str| tables.iter().any(|table| table.name == name && table.native.is_some());
        let has_object = |(_, made): &(_, Named)| is_native(&made.name) || all && made.name.is_empty();
        plan.after.extend(comments.iter().filter(|made| has_object(made)).cloned());
        let lost = plan.after.extract_if(.., |(_, made)| is_lost(made));
        plan.issues.extend(lost.map(|(kind, made)| not_made(target, kind, &made)));
        plan.execute_bytes();
    }
    leftovers::list(&mut plan, target, facts, &catalog, &[&*tables, &*gone].concat(), wanted);
    plan.leave_out(target, wanted, &catalog, facts.same_server, (&gone, &comments))?;
    sort::by_key(&mut plan.issues, Issue::place);
    let at: HashMap<&str, usize> = tables.iter().map(|table| &*table.name).zip(0..).collect();
    plan.tables = ordered(plan.tables, |own| {
        let parents = tables[own].foreign.iter().filter_map(|key| at.get(&*key.parent).copied());
        parents.filter(|parent| *parent != own).collect()
    });
    Ok(plan)
}

/// Refuses a table whose name is too long, or that has no key where the server requires one.
fn check_table(to: &Engine, facts: &TargetFacts, wanted: &Wanted, table: &Table, made: &Table) -> Result<()> {
    let name = &made.name;
    let native = table.native.iter().filter(|_| facts.same_server);
    let texts = native.flat_map(|native| {
        native.later.iter().chain(&native.foreign).map(|made| &made.sql).chain([&native.create])
    });
    let texts = texts.filter(|_| !facts.accepts_any_bytes);
    let mut texts = table.columns.iter().map(|column| &column.name).chain([&table.name]).chain(texts);
    texts.try_for_each(|text| check(text)).map_err(|error| error.context(format!("table {}", table.name)))?;
    let is_own = [MARKER, state::NAME].iter().any(|own| own.eq_ignore_ascii_case(name));
    let own = "the record of the copy has this name on the target while it is copied";
    let own = Some(own.to_owned()).filter(|_| is_own && wanted.parts != Parts::Data);
    if let Some(why) = to.refuses_name(name).or(own) {
        let why = format!("table {name}: {why}");
        return Err(Error::unsupported(why).hint("--rename it, or leave it out with --exclude"));
    }
    let required =
        facts.requires_keys.as_ref().filter(|_| made.primary.is_empty() && wanted.parts != Parts::Data);
    required.map_or(Ok(()), |setting| {
        let why = format!("table {name} has no primary key, and the target requires one ({setting} = ON)");
        let out = format!("leave the table out with --exclude {}", table.name);
        Err(Error::unsupported(why).hint(format!("add one, {out}, or have the setting changed")))
    })
}

/// Refuses to take rows elsewhere that the target refuses, of a table that keeps the rows of an insert that fails. A table that the
/// source's server writes has the source's engine.
fn refuse_reject(source: &mut Side, facts: &TargetFacts, wanted: &Wanted, tables: &[Table]) -> Result<()> {
    let into = wanted.parts == Parts::Data;
    let there = &facts.without_transactions;
    let without = if into { there.clone() } else { source.without_transactions()? };
    let names = tables.iter().filter(|table| into || facts.same_server && table.native.is_some());
    let mut names = names.map(|table| wanted.renamed(&table.name));
    let found = names.find(|name| without.iter().any(|known| known.eq_ignore_ascii_case(name)));
    found.map_or(Ok(()), |name| {
        let what = format!("--reject: table {name} has no transactions on the target");
        Err(Error::unsupported(what).hint("copy without --reject, or give it an engine that has them"))
    })
}

/// The difference of an object that the target cannot have as it is.
fn not_made(target: &Engine, kind: IssueKind, made: &Named) -> Issue {
    let [name, detail] = [&made.name, &made.sql].map(|text| without_bytes(text, "\u{fffd}"));
    Issue { text: Some(statement(target, &made.sql)), ..Issue::new(kind, name, detail) }
}

/// Adds what the source has besides tables. Returns the statements that another server of the same kind gets, by the name of
/// their table.
fn besides(source: &mut Side, catalog: &mut Catalog, facts: &TargetFacts) -> Result<Vec<(IssueKind, Named)>> {
    let mut made = Vec::new();
    for others in &file(source.engine).others {
        for row in source.catalogue(&others.sql)? {
            let table = row.first().and_then(Option::as_deref);
            let (own, roles) = source.engine.dialect.own_text(source, others.kind, &row)?;
            let mut is_carried = !matches!(others.carried, Carried::No | Carried::Internal);
            if others.carried == Carried::ByText
                && let Text::Remark { own: sql, .. } | Text::Statement(sql) = &own
                && !sql.is_empty()
            {
                is_carried = facts.accepts_any_bytes || check(sql).is_ok();
                let name = table.unwrap_or_default().to_owned();
                let named = || (others.kind, Named { name, sql: sql.clone() });
                made.extend((facts.same_server && is_carried).then(named));
            }
            let left = catalog.leave_text(others.kind, table, text(&row, 1), own);
            left.carried = is_carried;
            left.internal = others.carried == Carried::Internal;
            left.roles = roles;
        }
    }
    Ok(made)
}
