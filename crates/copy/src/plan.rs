//! What a copy will make on the target, and what does not map.

use crate::canonical::Mend;
use crate::casts::{Casts, UserCasts};
use crate::catalog::{Catalog, ForeignKey, Native, Table, named};
use crate::columns::{OneTable, differ_in_more_than_case};
use crate::ddl;
use crate::engines::{Carried, Engine, TargetFacts};
use crate::issue::{Accepted, Issue};
use crate::leftovers;
use crate::names::{Names, differ, is_of};
use crate::needs::{needed, types_exist};
use crate::rows::PageSize;
use crate::sql::{Side, text};
use crate::types::{Kind, Mapped};
use kurabe_core::collection::NAMESPACE_PREFIX;
use kurabe_core::sort;
use kurabe_core::{Error, ErrorKind, Result, units};
use std::collections::HashSet;
use std::fmt::Write as _;

/// A column of a new table.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a column that do not depend on one another")]
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
    /// Whether both sides have the same type, so that values are carried and compared as the server writes them.
    pub exact: bool,
    /// The kinds of values that become others, as accepted.
    pub mend: Vec<Mend>,
    /// The next number, if the target's server gives it numbers.
    pub identity: Option<i128>,
    /// The expression that reads it for the target. Verification has its own.
    pub read: String,
    /// Whether the target's numbers in documents have 64 bits.
    pub rounds: bool,
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
    pub name: String,
    /// The statement.
    pub sql: String,
}

/// A new table.
#[derive(Clone, Debug)]
pub struct TablePlan {
    /// Its name on the source.
    pub name: String,
    /// Its name on the target.
    pub to: String,
    /// The condition of the rows that are copied.
    pub filter: Option<String>,
    pub columns: Vec<ColumnPlan>,
    /// The source's table in queries: its quoted name, without the rows of tables that inherit from it.
    pub from: String,
    /// The positions of the columns by which rows are named; empty if there is no key.
    pub key: Vec<usize>,
    /// How a copy continues.
    pub resume: Resume,
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
    /// The condition of the rows that are copied, with the word before it; empty if all are.
    pub fn filtered(&self) -> String {
        self.filter.as_ref().map(|filter| format!(" WHERE ({filter})")).unwrap_or_default()
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
    /// The statements after all rows: the positions of sequences, and comments.
    pub after: Vec<Named>,
    /// What the user leaves out.
    pub left: Vec<Left>,
    /// What is copied of each table.
    pub parts: Parts,
}

/// An object that the user leaves out.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Left {
    /// Its name, perhaps with that of its table.
    pub object: String,
    /// The statement that would make it.
    pub sql: String,
}

/// Takes those out that the user leaves out.
fn take_left(wanted: &Wanted, table: &str, made: &mut Vec<Named>) -> Vec<Left> {
    let dot = if table.is_empty() { "" } else { "." };
    let left = made.extract_if(.., |named| wanted.leaves_out(table, &named.name));
    left.map(|named| Left { object: format!("{table}{dot}{}", named.name), sql: named.sql }).collect()
}

/// What is copied of each table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parts {
    /// Everything.
    #[default]
    All,
    /// The tables without rows.
    Schema,
    /// The rows, into tables that exist.
    Data,
}

/// What a copy is asked to do.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Patterns of the tables; all if empty.
    pub tables: Vec<String>,
    /// Patterns of tables that are not copied.
    pub exclude: Vec<String>,
    /// Names of tables on the source, and on the target.
    pub rename: Vec<(String, String)>,
    /// Names of objects that are not made: `NAME`, or `TABLE.NAME`.
    pub leave_out: Vec<String>,
    /// Names of tables, and the conditions of their rows.
    pub filters: Vec<(String, String)>,
    /// What is copied of each.
    pub parts: Parts,
    /// Accepted differences.
    pub accepted: Accepted,
    /// How many rows are inserted together.
    pub page: PageSize,
    /// What the user says of types.
    pub casts: UserCasts,
}

impl Wanted {
    /// The table's name on the target.
    fn renamed(&self, name: &str) -> String {
        let found = self.rename.iter().find(|(from, _)| from == name).map(|(_, to)| to.as_str());
        found.unwrap_or(name).to_owned()
    }

    /// Whether an object is left out.
    pub(crate) fn leaves_out(&self, table: &str, name: &str) -> bool {
        let full = format!("{table}.{name}");
        !name.is_empty() && self.leave_out.iter().any(|left| *left == name || *left == full)
    }
}

/// Plans a copy. Reads the source's catalogue and, where something depends on values, its tables. `there` is what exists
/// on the target, if only rows are copied.
///
/// # Errors
/// [`NotFound`](ErrorKind::NotFound) for a table that does not exist; [`Unsupported`](ErrorKind::Unsupported) for what
/// no acceptance can map, such as names that are too long.
pub fn plan(
    source: &mut Side,
    target: &Engine,
    facts: &TargetFacts,
    wanted: &Wanted,
    there: Option<&Catalog>,
) -> Result<Plan> {
    let mut catalog = source.engine.dialect.catalog(source)?;
    let comments = others(source, &mut catalog, facts.same_server)?;
    let mut tables = chosen(source, &catalog, wanted)?;
    let mut plan = Plan { parts: wanted.parts, ..Plan::default() };
    plan.issues = leftovers::without_columns(&mut tables);
    let mut casts = wanted.casts.clone();
    casts.check(&tables)?;
    if let Some(there) = there {
        existing(&tables, there, wanted, facts.same_server, &mut casts)?;
    }
    prepare(&mut tables, wanted, &casts);
    // The engine's own text of a table has its collations.
    let lacks = |native: &mut Native| {
        let names =
            native.create.split(" COLLATE ").skip(1).filter_map(|rest| rest.split([' ', ',', ')']).next());
        names
            .map(|name| name.rsplit('.').next().unwrap_or(name).replace('"', ""))
            .any(|name| !facts.collations.contains(&name))
    };
    for table in tables.iter_mut().filter(|_| facts.same_server && source.engine.names_collations) {
        table.native.take_if(lacks);
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
    differ_in_more_than_case(facts.folds_tables, made.iter().map(|table| table.name.as_str()), "tables")?;
    for (table, made) in tables.iter().zip(&made) {
        if made.name.len() > target.longest_name {
            let most = target.longest_name;
            let why = format!("table {}: {} names have at most {most} bytes", made.name, target.name);
            return Err(Error::unsupported(why).hint("--rename it, or leave it out with --exclude"));
        }
        if let Some(setting) = facts.requires_keys
            && made.primary.is_empty()
            && wanted.parts != Parts::Data
        {
            let why = format!(
                "table {} has no primary key, and the target requires one ({setting} = ON)",
                made.name
            );
            let hint = format!(
                "add one, leave the table out with --exclude {}, or have the setting changed",
                table.name
            );
            return Err(Error::unsupported(why).hint(hint));
        }
        let (page, issues, accepted) = (wanted.page, &mut plan.issues, &wanted.accepted);
        let mut one = OneTable { source, target, facts, table, made, accepted, casts: &casts, page, issues };
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
    foreign_keys(
        source,
        target,
        facts,
        &Chosen { tables: &tables, made: &made, wanted },
        &mut plan,
        &mut names,
    )?;
    let all = wanted.tables.is_empty() && wanted.exclude.is_empty();
    if facts.same_server {
        types_exist(&tables, &catalog, facts)?;
        if wanted.parts != Parts::Data {
            plan.before = needed(&catalog, &plan.tables, all);
        }
        let is_made = |after: &&Named| plan.before.iter().any(|made| made.name == after.name);
        plan.after = catalog.after.iter().filter(is_made).cloned().collect();
        let is_native = |name: &str| tables.iter().any(|table| table.name == name && table.native.is_some());
        plan.after.extend(comments.into_iter().filter(|made| is_native(&made.name)));
    }
    leftovers::list(&mut plan, &catalog, &tables, wanted, facts.same_server);
    plan.leave_out(wanted, &catalog)?;
    sort::by(&mut plan.issues, |a, b| (a.kind, &a.object).cmp(&(b.kind, &b.object)));
    parents_first(&mut plan.tables, &tables);
    Ok(plan)
}

/// The chosen tables as they are on the source, and as they are made on the target.
struct Chosen<'c> {
    tables: &'c [Table],
    made: &'c [Table],
    wanted: &'c Wanted,
}

/// Gives tables their conditions. The engine's own text of a table has its own names and types, so that one with others is
/// made as on a server of another kind.
fn prepare(tables: &mut [Table], wanted: &Wanted, casts: &UserCasts) {
    let is_renamed = |name: &String| wanted.renamed(name) != *name;
    for table in tables {
        let filter = wanted.filters.iter().find(|(name, _)| *name == table.name);
        table.filter = filter.map(|(_, condition)| condition.clone());
        let is_other = is_renamed(&table.name) || table.foreign.iter().any(|key| is_renamed(&key.parent));
        let is_cast = table.columns.iter().any(|column| casts.has(&table.name, column));
        if is_other || is_cast || wanted.parts == Parts::Data {
            table.native = None;
        }
    }
}

/// Adds what the source has besides tables. Returns the statements that another server of the same kind gets, by the name of
/// their table.
fn others(source: &mut Side, catalog: &mut Catalog, same: bool) -> Result<Vec<Named>> {
    let mut made = Vec::new();
    for others in source.engine.others {
        for row in source.rows(others.sql)? {
            let table = row.first().and_then(Option::as_deref);
            let sql = source.engine.dialect.own_text(source, others.kind, text(&row, 1), text(&row, 2))?;
            catalog.leave(others.kind, table, text(&row, 1), &sql).carried = others.carried != Carried::No;
            if same && others.carried == Carried::ByText {
                made.push(Named { name: table.unwrap_or_default().to_owned(), sql });
            }
        }
    }
    Ok(made)
}

/// The types of the columns that exist, into which rows are copied.
fn existing(
    tables: &[Table],
    there: &Catalog,
    wanted: &Wanted,
    same: bool,
    casts: &mut UserCasts,
) -> Result<()> {
    for table in tables {
        let to = wanted.renamed(&table.name);
        let missing = |what: String| {
            Error::new(ErrorKind::NotFound, format!("the target has no {what}"))
                .hint("--schema-only makes it; --exclude leaves a table out")
        };
        let found = there.tables.iter().find(|table| table.name == to);
        let found = found.ok_or_else(|| missing(format!("table {to}")))?;
        for column in &table.columns {
            let theirs = named(&found.columns, |known| &known.name, &column.name);
            let theirs = theirs.ok_or_else(|| missing(format!("column {to}.{}", column.name)))?;
            if !(same && theirs.declared == column.declared) {
                casts.set_column(&table.name, &column.name, &theirs.declared);
            }
        }
    }
    Ok(())
}

/// The tables to copy: all but Kurabe's own, or those of the patterns.
fn chosen(source: &Side, catalog: &Catalog, wanted: &Wanted) -> Result<Vec<Table>> {
    let is_own = |table: &&Table| table.name.starts_with(NAMESPACE_PREFIX);
    let all: Vec<&Table> =
        catalog.tables.iter().filter(|table| !is_own(table) || wanted.tables.contains(&table.name)).collect();
    let names: Vec<&str> = all.iter().map(|table| table.name.as_str()).collect();
    let exact = wanted.filters.iter().chain(&wanted.rename).map(|(name, _)| name);
    for pattern in wanted.tables.iter().chain(&wanted.exclude).chain(exact) {
        if !names.iter().any(|name| is_of(pattern, name)) {
            let what = format!("{}: there is no table '{pattern}'", source.name);
            return Err(
                Error::new(ErrorKind::NotFound, what).hint(units::suggestion(pattern, &names, "there are"))
            );
        }
    }
    let is_one = |patterns: &[String], name: &str| patterns.iter().any(|pattern| is_of(pattern, name));
    let is_chosen = |table: &&&Table| {
        (wanted.tables.is_empty() || is_one(&wanted.tables, &table.name))
            && !is_one(&wanted.exclude, &table.name)
            && !wanted.leave_out.contains(&table.name)
    };
    let chosen: Vec<Table> = all.iter().filter(is_chosen).map(|table| (*table).clone()).collect();
    if chosen.is_empty() {
        let what = format!("{}: there are no tables to copy", source.name);
        return Err(
            Error::new(ErrorKind::NotFound, what).hint("does the URL name the right database or schema?")
        );
    }
    Ok(chosen)
}

/// Plans the foreign keys, after all tables. Those that the target would refuse, or that rows of the source violate, are listed.
fn foreign_keys(
    source: &mut Side,
    target: &Engine,
    facts: &TargetFacts,
    chosen: &Chosen<'_>,
    plan: &mut Plan,
    names: &mut Names,
) -> Result<()> {
    let Chosen { tables, made, wanted } = *chosen;
    let list: Vec<&str> = made.iter().map(|table| table.name.as_str()).collect();
    for (at, table) in made.iter().enumerate() {
        let native = table.native.as_ref().filter(|_| facts.same_server);
        let planned = &plan.tables;
        let mut why_not = |key: &ForeignKey| {
            let found = planned.iter().zip(tables).find(|(plan, _)| plan.to == key.parent);
            let Some((parent, known)) = found else { return Ok(None) };
            let theirs = if key.parent_columns.is_empty() { &known.primary } else { &key.parent_columns };
            let stored = |plan: &TablePlan, name: &String| {
                let column = named(&plan.columns, |column| &column.name, name);
                column.map(|column| (column.mapped.stored.class, column.mapped.sql.clone()))
            };
            for (own, theirs) in key.columns.iter().zip(theirs) {
                let (own, theirs) = (stored(&planned[at], own), stored(parent, theirs));
                let differ = own.as_ref().map(|own| own.0) != theirs.as_ref().map(|theirs| theirs.0);
                if let (Some(own), Some(theirs)) = (own, theirs)
                    && differ
                    && native.is_none()
                    && target.foreign_keys_have_one_type
                {
                    return Ok(Some(format!(
                        "{} refers to {}, and {} wants one type",
                        own.1, theirs.1, target.name
                    )));
                }
            }
            let unchecked = native.is_some_and(|native| {
                native.foreign.iter().any(|known| known.name == key.name && known.sql.ends_with("NOT VALID"))
            });
            if key.proven && known.filter.is_none() || unchecked {
                return Ok(None);
            }
            let orphans = orphans(source, &tables[at], key, known, theirs)?;
            let count = units::count(orphans);
            Ok((orphans > 0).then(|| format!("{count} rows refer to no row of {}", known.name)))
        };
        let mut foreign =
            ddl::foreign_keys(target, table, native, &list, names, &mut plan.issues, &mut why_not)?;
        plan.left.extend(take_left(wanted, &tables[at].name, &mut foreign));
        let planned = &mut plan.tables[at];
        if !target.foreign_keys_inline {
            planned.foreign = foreign;
        } else if native.is_none() {
            planned.create = ddl::create_table(target, facts, table, &planned.columns, &foreign);
        }
    }
    Ok(())
}

/// The number of rows whose foreign key has no parent.
pub(crate) fn orphans(
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
        let is_refused =
            |issue: &&Issue| !issue.kind.is_only_listed() && !accepted.has(issue.kind, &issue.object);
        self.issues.iter().filter(is_refused).collect()
    }

    /// Takes out what the user leaves out.
    fn leave_out(&mut self, wanted: &Wanted, catalog: &Catalog) -> Result<()> {
        let left = &mut self.left;
        let before = take_left(wanted, "", &mut self.before);
        self.after.retain(|after| !before.iter().any(|made| made.object == after.name));
        left.extend(before);
        for table in &mut self.tables {
            left.extend(take_left(wanted, &table.name, &mut table.indexes));
        }
        for table in catalog.tables.iter().filter(|table| wanted.leave_out.contains(&table.name)) {
            let none = || format!("-- {} has no text of its own", table.name);
            let sql = table.native.as_ref().map_or_else(none, |native| native.create.clone());
            left.push(Left { object: table.name.clone(), sql });
        }
        let is_left = |name: &&String| {
            left.iter().any(|left| left.object == **name || left.object.ends_with(&format!(".{name}")))
        };
        match wanted.leave_out.iter().find(|name| !is_left(name)) {
            None => Ok(()),
            Some(name) => {
                let what = format!("--leave-out: nothing that would be made is named '{name}'");
                Err(Error::new(ErrorKind::NotFound, what).hint(
                    "--dry-run shows the statements; a part of a table's own text is left out with the table",
                ))
            }
        }
    }

    /// The plan as text: its statements.
    pub fn statements(&self) -> String {
        let mut text = String::new();
        if self.parts == Parts::Data {
            return text;
        }
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
