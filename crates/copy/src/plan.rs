//! What a copy will make on the target, and what does not map.

use crate::canonical::Reading;
use crate::casts::{Casts, UserCasts};
use crate::catalog::{Catalog, ForeignKey, Table};
use crate::columns::{OneTable, differ_in_more_than_case};
use crate::ddl;
use crate::engines::{Engine, TargetFacts};
use crate::issue::{Accepted, Issue, IssueKind};
use crate::names::Names;
use crate::rows::PageSize;
use crate::sql::Side;
use crate::types::{Kind, Mapped};
use kurabe_core::collection::NAMESPACE_PREFIX;
use kurabe_core::{Error, ErrorKind, Result, units};
use std::collections::HashSet;
use std::fmt::Write as _;

/// A column of a new table.
#[derive(Clone, Debug)]
pub struct ColumnPlan {
    /// Its name, on both sides.
    pub name: String,
    /// Its type on the source.
    pub kind: Kind,
    /// Its type on the target.
    pub mapped: Mapped,
    /// Whether it can be null on the target.
    pub nullable: bool,
    /// Its definition on the target.
    pub sql: String,
    /// The kinds of values that become others, as accepted.
    pub mend: Vec<IssueKind>,
    /// The next number, if the target's server gives it numbers.
    pub identity: Option<i128>,
    /// Whether its values are inserted; if not, the target's server generates them.
    pub written: bool,
}

/// How a copy of a table that was stopped continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// After the last row in the order of these columns.
    Columns(Vec<usize>),
    /// After the last row in the order of a hidden whole number.
    Hidden(&'static str),
    /// From the first row.
    Restart,
}

/// A statement that makes something with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The statement.
    pub sql: String,
}

/// A new table.
#[derive(Clone, Debug)]
pub struct TablePlan {
    /// Its name, on both sides.
    pub name: String,
    /// Its columns.
    pub columns: Vec<ColumnPlan>,
    /// The source's table in queries: its quoted name, without the rows of tables that inherit from it.
    pub from: String,
    /// The positions of the columns by which rows are named; empty if there is no key.
    pub key: Vec<usize>,
    /// How a copy continues.
    pub resume: Resume,
    /// Whether both servers are of one kind, so that values are compared as they are written there.
    pub exact: bool,
    /// How many rows are inserted together.
    pub page: PageSize,
    /// The number of rows when the plan was made.
    pub rows: u64,
    /// The statement that makes it.
    pub create: String,
    /// The statements that make its indexes, after its rows are copied.
    pub indexes: Vec<Named>,
    /// The statements that make its foreign keys, after all tables are copied.
    pub foreign: Vec<Named>,
}

impl TablePlan {
    /// How the values of a side are read.
    pub fn readings(&self, engine: &dyn Engine) -> Vec<Reading> {
        let (hex, exact) = (engine.bytes_as_hex(), self.exact);
        self.columns.iter().map(|column| Reading { class: column.kind.class, hex, exact }).collect()
    }
}

/// A whole copy.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The tables, parents before the tables that refer to them.
    pub tables: Vec<TablePlan>,
    /// What does not map.
    pub issues: Vec<Issue>,
    /// The statements that make what tables need: types and sequences.
    pub before: Vec<Named>,
    /// The statements after all rows that set the positions of sequences.
    pub after: Vec<Named>,
}

/// What a copy is asked to do.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The tables; all if empty.
    pub tables: Vec<String>,
    /// Accepted differences.
    pub accepted: Accepted,
    /// How many rows are inserted together.
    pub page: PageSize,
    /// What the user says of types.
    pub casts: UserCasts,
}

/// Plans a copy. Reads the source's catalogue and, where something depends on values, its tables.
///
/// # Errors
/// [`NotFound`](ErrorKind::NotFound) for a table that does not exist; [`Unsupported`](ErrorKind::Unsupported) for what
/// no acceptance can map, such as names that are too long.
pub fn plan(source: &mut Side, target: &dyn Engine, facts: &TargetFacts, wanted: &Wanted) -> Result<Plan> {
    let catalog = source.engine.catalog(source)?;
    let tables = chosen(source, &catalog, &wanted.tables)?;
    let casts = Casts::new(source.engine, target, &wanted.casts)?;
    wanted.casts.check(&tables)?;
    let mut plan = Plan::default();
    let mut names = Names::new(target, &tables);
    let list: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    differ_in_more_than_case(facts.folds_tables, list.iter().copied(), "tables")?;
    for table in &tables {
        if table.name.len() > target.longest_name() {
            let most = target.longest_name();
            let why = format!("table {}: {} names have at most {most} bytes", table.name, target.name());
            return Err(Error::unsupported(why).hint("rename it, or leave it out with --tables"));
        }
        let (page, issues) = (wanted.page, &mut plan.issues);
        let mut one = OneTable { source, target, facts, table, casts: &casts, page, issues };
        let planned = one.plan(&mut names)?;
        plan.tables.push(planned);
    }
    let same = facts.same_server;
    foreign_keys(source, target, facts, &tables, &mut plan, &mut names)?;
    if same {
        types_exist(&tables, &catalog, facts)?;
        plan.before = needed(&catalog.before, &plan.tables, wanted.tables.is_empty());
        let made = |after: &&Named| plan.before.iter().any(|made| made.name == after.name);
        plan.after = catalog.after.iter().filter(made).cloned().collect();
    }
    for leftover in catalog.leftovers.iter().filter(|leftover| !(same && leftover.carried)) {
        let of_database = leftover.table.is_none() && wanted.tables.is_empty();
        let of_table = leftover.table.as_deref().is_some_and(|table| list.contains(&table));
        if (of_database || of_table) && !leftover.name.starts_with(NAMESPACE_PREFIX) {
            let object = match &leftover.table {
                Some(table) if *table != leftover.name => format!("{table}.{}", leftover.name),
                _ => leftover.name.clone(),
            };
            plan.issues.push(Issue { kind: leftover.kind, object, detail: leftover.detail.clone() });
        }
    }
    plan.issues.sort_by(|a, b| (a.kind, &a.object).cmp(&(b.kind, &b.object)));
    parents_first(&mut plan.tables, &tables);
    Ok(plan)
}

/// The tables to copy: those named, or all but Kurabe's own.
fn chosen(source: &Side, catalog: &Catalog, wanted: &[String]) -> Result<Vec<Table>> {
    if wanted.is_empty() {
        let all = catalog.tables.iter().filter(|table| !table.name.starts_with(NAMESPACE_PREFIX));
        let all: Vec<Table> = all.cloned().collect();
        if all.is_empty() {
            let what = format!("{}: there are no tables to copy", source.name);
            return Err(
                Error::new(ErrorKind::NotFound, what).hint("does the URL name the right database or schema?")
            );
        }
        return Ok(all);
    }
    let find = |name: &String| {
        catalog.tables.iter().find(|table| table.name == *name).cloned().ok_or_else(|| {
            let names: Vec<&str> = catalog.tables.iter().map(|table| table.name.as_str()).collect();
            Error::new(ErrorKind::NotFound, format!("{}: there is no table '{name}'", source.name))
                .hint(units::suggestion(name, &names, "there are"))
        })
    };
    wanted.iter().map(find).collect()
}

/// Plans the foreign keys, after all tables. Those that the target would refuse, or that rows of the source violate, are listed.
fn foreign_keys(
    source: &mut Side,
    target: &dyn Engine,
    facts: &TargetFacts,
    tables: &[Table],
    plan: &mut Plan,
    names: &mut Names,
) -> Result<()> {
    let list: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    for (at, table) in tables.iter().enumerate() {
        let native = table.native.as_ref().filter(|_| facts.same_server);
        let planned = &plan.tables;
        let mut why_not = |key: &ForeignKey| {
            let found =
                planned.iter().zip(tables).find(|(_, known)| known.name.eq_ignore_ascii_case(&key.parent));
            let Some((parent, known)) = found else { return Ok(None) };
            let theirs = if key.parent_columns.is_empty() { &known.primary } else { &key.parent_columns };
            let stored = |plan: &TablePlan, name: &String| {
                let column = plan.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name));
                column.map(|column| (column.mapped.stored.class, column.mapped.sql.clone()))
            };
            for (own, theirs) in key.columns.iter().zip(theirs) {
                let (own, theirs) = (stored(&planned[at], own), stored(parent, theirs));
                let differ = own.as_ref().map(|own| own.0) != theirs.as_ref().map(|theirs| theirs.0);
                if let (Some(own), Some(theirs)) = (own, theirs)
                    && differ
                    && native.is_none()
                    && target.foreign_keys_have_one_type()
                {
                    return Ok(Some(format!(
                        "{} refers to {}, and {} wants one type",
                        own.1,
                        theirs.1,
                        target.name()
                    )));
                }
            }
            let unchecked = native.is_some_and(|native| {
                native.foreign.iter().any(|known| known.name == key.name && known.sql.ends_with("NOT VALID"))
            });
            if key.proven || unchecked {
                return Ok(None);
            }
            let orphans = orphans(source, table, key, known, theirs)?;
            let count = units::count(orphans);
            Ok((orphans > 0).then(|| format!("{count} rows refer to no row of {}", known.name)))
        };
        let foreign = ddl::foreign_keys(target, table, native, &list, names, &mut plan.issues, &mut why_not)?;
        let planned = &mut plan.tables[at];
        if !target.foreign_keys_inline() {
            planned.foreign = foreign;
        } else if native.is_none() {
            planned.create = ddl::create_table(target, facts, table, &planned.columns, &foreign);
        }
    }
    Ok(())
}

/// The number of rows whose foreign key has no parent.
fn orphans(
    source: &mut Side,
    table: &Table,
    key: &ForeignKey,
    parent: &Table,
    theirs: &[String],
) -> Result<u64> {
    let name = |name: &String| source.quoted(name);
    let whole = key.columns.iter().map(|column| format!("c.{} IS NOT NULL", name(column)));
    let equal =
        key.columns.iter().zip(theirs).map(|(own, theirs)| format!("p.{} = c.{}", name(theirs), name(own)));
    let sql = format!(
        "SELECT COUNT(*) FROM {} c WHERE {} AND NOT EXISTS (SELECT 1 FROM {} p WHERE {})",
        source.engine.from(table),
        whole.collect::<Vec<_>>().join(" AND "),
        source.engine.from(parent),
        equal.collect::<Vec<_>>().join(" AND ")
    );
    source.number(&sql)
}

/// Refuses columns whose type neither the target's server has nor the copy makes, such as that of an extension.
fn types_exist(tables: &[Table], catalog: &Catalog, facts: &TargetFacts) -> Result<()> {
    let known = |declared: &str| {
        let name = declared.split(['(', '[']).next().unwrap_or_default().trim();
        let tail = declared.rsplit(')').next().filter(|tail| declared.contains(')') && !tail.is_empty());
        let full = tail.map_or(name.to_owned(), |tail| format!("{name}{}", tail.trim_end_matches("[]")));
        facts.types.contains(&full)
            || name.starts_with("interval")
            || catalog.before.iter().any(|made| made.name == name.trim_matches('"'))
    };
    for table in tables.iter().filter(|_| !facts.types.is_empty()) {
        if let Some(column) = table.columns.iter().find(|column| !known(&column.declared)) {
            let what = format!("{}.{}: the target has no type {}", table.name, column.name, column.declared);
            return Err(Error::unsupported(what).hint("make it there first, such as by CREATE EXTENSION"));
        }
    }
    Ok(())
}

/// The types and sequences that tables, or other types, name. All of them if `all`.
fn needed(known: &[Named], tables: &[TablePlan], all: bool) -> Vec<Named> {
    let of_tables: Vec<&str> = tables.iter().map(|table| table.create.as_str()).collect();
    let mut kept = vec![all; known.len()];
    loop {
        let more = (0..known.len()).find(|at| {
            let others = known.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(named, _)| &named.sql[..]);
            !kept[*at] && of_tables.iter().copied().chain(others).any(|sql| sql.contains(&known[*at].name))
        });
        let Some(more) = more else { break };
        kept[more] = true;
    }
    known.iter().zip(kept).filter(|(_, kept)| *kept).map(|(named, _)| named.clone()).collect()
}

/// Puts tables after those that they refer to, where that is possible.
fn parents_first(plans: &mut Vec<TablePlan>, tables: &[Table]) {
    let mut done: HashSet<String> = HashSet::new();
    let mut ordered = Vec::new();
    while !plans.is_empty() {
        let ready = |plan: &TablePlan| {
            let table = tables.iter().find(|table| table.name == plan.name);
            table.is_none_or(|table| {
                let waits = |parent: &String| {
                    plans.iter().any(|other| other.name == *parent && other.name != plan.name)
                };
                !table.foreign.iter().any(|key| waits(&key.parent) && !done.contains(&key.parent))
            })
        };
        let at = plans.iter().position(ready).unwrap_or(0);
        let plan = plans.remove(at);
        done.insert(plan.name.clone());
        ordered.push(plan);
    }
    *plans = ordered;
}

impl Plan {
    /// The differences that the user did not accept.
    pub fn refused(&self, accepted: &Accepted) -> Vec<&Issue> {
        self.issues.iter().filter(|issue| !accepted.has(issue.kind, &issue.object)).collect()
    }

    /// The plan as text: its statements.
    pub fn statements(&self) -> String {
        let mut text = String::new();
        for named in &self.before {
            let _ = writeln!(text, "{};", named.sql);
        }
        for table in &self.tables {
            let _ = writeln!(text, "{};", table.create);
        }
        let later = self.tables.iter().flat_map(|table| table.indexes.iter());
        for named in later.chain(self.tables.iter().flat_map(|table| table.foreign.iter())) {
            let _ = writeln!(text, "{};", named.sql);
        }
        text
    }
}
