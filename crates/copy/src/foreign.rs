//! Foreign keys: which of them the target gets, the statements that make them, and whether each row has its parent.

use crate::catalog::{Catalog, ForeignKey, Named, Table, named};
use crate::ddl::{create_table, names};
use crate::engines::engine::Engine;
use crate::engines::facts::TargetFacts;
use crate::issue::{Issue, IssueKind};
use crate::leftovers::take_left;
use crate::names::Names;
use crate::plan::{Plan, TablePlan};
use crate::script::{Entry, quoted};
use crate::sql::Side;
use crate::wanted::Wanted;
use kurabe_core::{Error, ErrorKind, Result, units};

/// Plans the foreign keys, after all tables, which are `tables` on the source and `made` on the target. Those that the target
/// would refuse, or that rows of the source violate, are listed.
pub(crate) fn plan(
    source: &mut Side,
    target: &Engine,
    facts: &TargetFacts,
    [tables, made]: [&[Table]; 2],
    wanted: &Wanted,
    plan: &mut Plan,
    taken: &mut Names<'_>,
) -> Result<()> {
    for (at, table) in made.iter().enumerate() {
        let native = table.native.as_ref().filter(|_| facts.same_server);
        // The engine's own text of a table has them, where they are written in it.
        let is_written = native.is_some() && target.foreign_keys_inline;
        let mut foreign = Vec::new();
        for (number, key) in table.foreign.iter().enumerate().filter(|_| !is_written) {
            // The key, and what is said of it.
            let own = native.iter().flat_map(|native| &native.foreign).filter(|own| own.name == key.name);
            let mut all: Vec<Named> = own.cloned().collect();
            if all.is_empty() {
                all.push(statement(target, table, key, taken));
            }
            let plans = &plan.tables;
            let Some(detail) = why_not(source, target, tables, plans, at, key, native.map(|_| &all[0]))?
            else {
                foreign.extend(all);
                continue;
            };
            let unnamed = format!("foreign key {}", number + 1);
            let name = if key.name.is_empty() { &unnamed } else { &key.name };
            let issue = Issue::new(IssueKind::ForeignKey, format!("{}.{name}", table.name), detail);
            // Its parent may be missing.
            plan.issues.push(Issue { text: Some(Entry::comment(&all[0].sql)), ..issue });
        }
        plan.left.extend(take_left(target, wanted, &tables[at].name, &mut foreign));
        let planned = &mut plan.tables[at];
        if !target.foreign_keys_inline {
            planned.foreign = foreign;
        } else if native.is_none() {
            planned.create = create_table(target, facts, table, &planned.columns, &foreign);
        }
    }
    Ok(())
}

/// Why the target does not get a foreign key of the table at a position, of which there may be the source's own statement.
fn why_not(
    source: &mut Side,
    target: &Engine,
    tables: &[Table],
    plans: &[TablePlan],
    at: usize,
    key: &ForeignKey,
    native: Option<&Named>,
) -> Result<Option<String>> {
    let Some((parent, known)) = plans.iter().zip(tables).find(|(plan, _)| plan.to == key.parent) else {
        let parent = if key.parent.is_empty() { "a table of another schema" } else { &key.parent };
        return Ok(Some(format!("refers to {parent}, which is not copied")));
    };
    let can_be_null = |name: &String| tables[at].columns.iter().any(|own| own.name == *name && own.nullable);
    let nullable = key.columns.iter().all(can_be_null);
    let actions = [&key.on_update, &key.on_delete];
    if let Some(action) = actions.into_iter().find(|action| !(target.has_action)(action, nullable)) {
        let of = if nullable { "" } else { " for columns that are NOT NULL" };
        return Ok(Some(format!("{} has no {action}{of}", target.name)));
    }
    let theirs = if key.parent_columns.is_empty() { &known.primary } else { &key.parent_columns };
    let is_unique = |columns: &[String]| {
        columns.len() == theirs.len()
            && !columns.is_empty()
            && columns.iter().all(|own| theirs.iter().any(|their| their.eq_ignore_ascii_case(own)))
    };
    let mut unique = known.indexes.iter().filter(|index| index.unique).map(|index| &index.columns);
    if source.engine != target && !is_unique(&known.primary) && !unique.any(|columns| is_unique(columns)) {
        let columns = theirs.join(", ");
        return Ok(Some(format!("refers to {} ({columns}), of which no index is unique", known.name)));
    }
    let mapped = |plan: &'_ TablePlan, name: &String| {
        named(&plan.columns, |column| &column.name, name).map(|column| column.mapped.clone())
    };
    let pairs = key.columns.iter().zip(theirs);
    let mut pairs =
        pairs.filter_map(|(own, theirs)| Some((mapped(&plans[at], own)?, mapped(parent, theirs)?)));
    if native.is_none()
        && target.foreign_keys_have_one_type
        && let Some((own, theirs)) = pairs.find(|(own, theirs)| own.stored.class != theirs.stored.class)
    {
        return Ok(Some(format!("{} refers to {}, and {} wants one type", own.sql, theirs.sql, target.name)));
    }
    let unchecked = native.is_some_and(|own| own.sql.ends_with("NOT VALID"));
    if key.proven && known.filter.is_none() || unchecked {
        return Ok(None);
    }
    let orphans = orphans(source, &tables[at], key, known, theirs)?;
    let count = units::count(orphans);
    Ok((orphans > 0).then(|| format!("{count} rows refer to no row of {}", known.name)))
}

/// The clause or the statement that makes a foreign key.
fn statement(target: &Engine, table: &Table, key: &ForeignKey, taken: &mut Names<'_>) -> Named {
    // The server makes an index of its name, unless there is one that begins with its columns.
    let indexes = table.indexes.iter().map(|index| &index.columns).chain([&table.primary]);
    let is_index = !indexes.into_iter().any(|columns| columns.starts_with(&key.columns));
    let name = taken.of(&table.name, &key.name, true, is_index);
    let parents = names(target, &key.parent_columns);
    let parents = if parents.is_empty() { parents } else { format!(" ({parents})") };
    let clause = format!(
        "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {}{parents}{}",
        quoted(target, &name),
        names(target, &key.columns),
        quoted(target, &key.parent),
        key.actions(),
    );
    let add = format!("ALTER TABLE {} ADD {clause}", quoted(target, &table.name));
    Named { name, sql: if target.foreign_keys_inline { clause } else { add } }
}

/// The number of rows whose foreign key has no parent.
fn orphans(source: &mut Side, table: &Table, key: &ForeignKey, parent: &Table, to: &[String]) -> Result<u64> {
    let name = |name: &String| source.quoted(name);
    let whole = key.columns.iter().map(|column| format!("c.{} IS NOT NULL", name(column)));
    let declared = |of: &Table, name: &String| {
        named(&of.columns, |column| &column.name, name)
            .map_or_else(String::new, |column| column.declared.clone())
    };
    let sign = source.engine.sign;
    let equal = key.columns.iter().zip(to).map(|(own, theirs)| {
        let types = [declared(parent, theirs), declared(table, own)];
        format!("p.{} {} c.{}", name(theirs), sign(types.each_ref().map(String::as_str), "="), name(own))
    });
    let filter = |table: &Table| table.filter.as_ref().map(|filter| format!("({filter})"));
    let sql = format!(
        "SELECT COUNT(*) FROM {} c WHERE {} AND NOT EXISTS (SELECT 1 FROM {} p WHERE {})",
        source.engine.from(table),
        whole.chain(filter(table)).collect::<Vec<_>>().join(" AND "),
        source.engine.from(parent),
        equal.chain(filter(parent)).collect::<Vec<_>>().join(" AND ")
    );
    source.number(&sql)
}

/// Proves the foreign keys of tables that were there before, where the server did not check them for the rows that came.
pub(crate) fn prove(target: &mut Side, plan: &Plan, there: &Catalog) -> Result<()> {
    let engine = target.engine;
    if engine.writing_into_keys.is_empty() && !engine.foreign_keys_inline {
        return Ok(());
    }
    let table = |name: &str| there.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name));
    for child in plan.tables.iter().filter_map(|planned| table(&planned.to)) {
        for key in &child.foreign {
            let Some(parent) = table(&key.parent) else { continue };
            let theirs = if key.parent_columns.is_empty() { &parent.primary } else { &key.parent_columns };
            let count = orphans(target, child, key, parent, theirs)?;
            if count > 0 {
                let what = format!(
                    "table {}: {} rows refer to no row of {} ({})",
                    child.name,
                    units::count(count),
                    parent.name,
                    key.columns.join(", ")
                );
                return Err(Error::new(ErrorKind::Mismatch, what)
                    .hint("copy that table too, or choose the rows that have their parents with --where"));
            }
        }
    }
    Ok(())
}
