//! What a copy will make on the target, and what does not map.

use crate::catalog::{Catalog, Collation, Table};
use crate::ddl;
use crate::engines::{Engine, TargetFacts};
use crate::issue::{Accepted, Issue, IssueKind};
use crate::scan::scan;
use crate::sql::Side;
use crate::types::{Class, Kind, Mapped, UNLIMITED, kind_of, map};
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
    /// Whether the target's server gives it numbers.
    pub identity: bool,
}

/// A statement that makes something with a name.
#[derive(Clone, Debug)]
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
    /// The positions of the columns by which rows are read in pages; empty if there is no such key.
    pub key: Vec<usize>,
    /// Whether both engines have the rows in the same order of this key.
    pub same_order: bool,
    /// The number of rows when the plan was made.
    pub rows: u64,
    /// No row has more bytes in columns of unlimited length.
    pub longest_row: u64,
    /// The statement that makes it.
    pub create: String,
    /// The statements that make its indexes, after its rows are copied.
    pub indexes: Vec<Named>,
    /// The statements that make its foreign keys, after all tables are copied.
    pub foreign: Vec<Named>,
}

/// A whole copy.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The tables, parents before the tables that refer to them.
    pub tables: Vec<TablePlan>,
    /// What does not map.
    pub issues: Vec<Issue>,
}

/// What a copy is asked to do.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The tables; all if empty.
    pub tables: Vec<String>,
    /// Accepted differences.
    pub accepted: Accepted,
}

/// Plans a copy. Reads the source's catalogue and, where something depends on values, its tables.
///
/// # Errors
/// [`NotFound`](ErrorKind::NotFound) for a table that does not exist; [`Unsupported`](ErrorKind::Unsupported) for what
/// no acceptance can map, such as names that are too long.
pub fn plan(source: &mut Side, target: &dyn Engine, facts: &TargetFacts, wanted: &Wanted) -> Result<Plan> {
    let catalog = source.engine.catalog(source)?;
    let tables = chosen(source, &catalog, &wanted.tables)?;
    let mut plan = Plan::default();
    let mut names = Names::new(target, &tables);
    let list: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    for table in &tables {
        if table.name.len() > target.longest_name() {
            let most = target.longest_name();
            let why = format!("table {}: {} names have at most {most} bytes", table.name, target.name());
            return Err(Error::unsupported(why).hint("rename it, or leave it out with --tables"));
        }
        let planned = plan_table(source, target, facts, wanted, table, &list, &mut names, &mut plan.issues)?;
        plan.tables.push(planned);
    }
    for leftover in &catalog.leftovers {
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

#[allow(clippy::too_many_arguments, reason = "the parts of one plan")]
fn plan_table(
    source: &mut Side,
    target: &dyn Engine,
    facts: &TargetFacts,
    wanted: &Wanted,
    table: &Table,
    list: &[&str],
    names: &mut Names,
    issues: &mut Vec<Issue>,
) -> Result<TablePlan> {
    let engine = source.engine;
    let mut kinds: Vec<Kind> = table.columns.iter().map(|c| kind_of(engine, &c.declared)).collect();
    let (mut mapped, mut longest, mut scanned);
    let mut corrected = vec![None; kinds.len()];
    loop {
        (mapped, longest) = types(engine, target, table, &kinds)?;
        scanned = scan(source, target, table, &kinds, &mapped, &longest)?;
        let mut changed = false;
        for (at, column) in scanned.columns.iter().enumerate() {
            if let Some((class, count)) = column.fallback
                && kinds[at].class != class
            {
                corrected[at] = Some((class, count));
                let kind = &mut kinds[at];
                (kind.class, kind.n, kind.s, changed) = (class, UNLIMITED, 0, true);
                // Between servers of one engine the declared type stays.
            }
        }
        if !changed {
            break;
        }
    }
    let mut columns = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        let object = format!("{}.{}", table.name, column.name);
        let mut list = |kind, detail: String| issues.push(Issue { kind, object: object.clone(), detail });
        if let Some((class, count)) = corrected[at]
            && engine.name() != target.name()
        {
            let count = units::count(count);
            list(
                IssueKind::StorageClass,
                format!("declared {}, but {count} values are not: {class:?}", column.declared),
            );
        }
        if let Some((kind, why)) = mapped[at].issue {
            list(kind, format!("{} becomes {}: {why}", column.declared, mapped[at].sql));
        }
        if let Some(longest) = longest[at] {
            if scanned.columns[at].too_long > 0 {
                let count = units::count(scanned.columns[at].too_long);
                let why = format!(
                    "{object}: {count} values are longer than {longest}, the longest in an index of {}",
                    target.name()
                );
                return Err(Error::unsupported(why).hint("leave the table out with --tables"));
            }
            list(
                IssueKind::TextLength,
                format!("{} becomes {}, since it is indexed", column.declared, mapped[at].sql),
            );
        }
        if let Some(expression) = &column.generated {
            list(IssueKind::Generated, expression.clone());
        }
        if let Collation::Named(name) = &column.collation
            && kinds[at].class.is_text()
            && !(engine.name() == target.name() && facts.collations.contains(name))
        {
            list(IssueKind::Collation, name.clone());
        }
        let identity = if column.identity { target.identity(table, column) } else { None };
        if column.identity && identity.is_none() {
            list(IssueKind::Identity, format!("{} cannot give numbers to this column", target.name()));
        }
        let mut mend = Vec::new();
        let mut nullable = column.nullable;
        for (kind, count) in &scanned.columns[at].unfit {
            list(*kind, format!("{} values", units::count(*count)));
            nullable |= !matches!(kind, IssueKind::NulCharacter | IssueKind::Fraction);
            mend.push(*kind);
        }
        if mapped[at].issue.is_some_and(|(kind, _)| kind == IssueKind::Fraction)
            && !mend.contains(&IssueKind::Fraction)
        {
            mend.push(IssueKind::Fraction);
        }
        let collation = if kinds[at].class.is_text() && !kinds[at].declared.is_empty()
            || engine.name() == target.name()
        {
            let same = engine.name() == target.name();
            let is_text = mapped[at].stored.class.is_text() && kinds[at].class.is_text();
            match &column.collation {
                Collation::Named(_) if !same => String::new(),
                collation if is_text => target.collate(collation, facts),
                _ => String::new(),
            }
        } else {
            String::new()
        };
        let default = match ddl::default(engine, target, &column.default, &mapped[at]) {
            Ok(default) => default,
            Err(why) => {
                list(IssueKind::Default, why);
                String::new()
            }
        };
        if engine.name() == "SQLite" && target.name() == "SQLite" && column.declared.is_empty() {
            mapped[at].sql.clear();
        }
        let type_sql = if identity == Some("") { "INTEGER".to_owned() } else { mapped[at].sql.clone() };
        let default = if identity.is_some() { String::new() } else { default };
        let nullable = nullable && !table.primary.contains(&column.name);
        let null = if nullable { "" } else { " NOT NULL" };
        let null = if nullable && target.name() == "MySQL" { " NULL" } else { null };
        let sql = format!(
            "{} {type_sql}{collation}{default}{}{null}",
            crate::sql::quoted(target, &column.name),
            if identity == Some(" AUTO_INCREMENT") { "" } else { identity.unwrap_or_default() },
        );
        let sql = if identity == Some(" AUTO_INCREMENT") { format!("{sql} AUTO_INCREMENT") } else { sql };
        columns.push(ColumnPlan {
            name: column.name.clone(),
            kind: kinds[at].clone(),
            mapped: mapped[at].clone(),
            nullable,
            sql,
            mend,
            identity: identity.is_some(),
        });
    }
    check_names(target, table)?;
    let key = key(table, &columns);
    let foreign = ddl::foreign_keys(engine, target, table, list, names, issues);
    let inline: Vec<String> = if target.foreign_keys_inline() {
        foreign.iter().map(|key| key.sql.clone()).collect()
    } else {
        Vec::new()
    };
    let _ = wanted;
    Ok(TablePlan {
        name: table.name.clone(),
        same_order: !key.is_empty() && key.iter().all(|at| columns[*at].kind.class.has_one_order()),
        create: ddl::create_table(target, facts, table, &columns, &inline),
        indexes: ddl::indexes(target, table, names),
        foreign: if target.foreign_keys_inline() { Vec::new() } else { foreign },
        rows: scanned.rows,
        longest_row: scanned.longest_row,
        columns,
        key,
    })
}

type Types = (Vec<Mapped>, Vec<Option<u32>>);

/// What the types become, and the maximum lengths of columns that an index of the target limits.
fn types(from: &dyn Engine, to: &dyn Engine, table: &Table, kinds: &[Kind]) -> Result<Types> {
    let mut mapped = Vec::new();
    let mut longest = Vec::new();
    for (column, kind) in table.columns.iter().zip(kinds) {
        let unmapped = || Error::new(ErrorKind::Internal, format!("{} has no type for {kind:?}", to.name()));
        let plain = map(from, to, kind).ok_or_else(unmapped)?;
        let most = to.longest_key().filter(|_| from.name() != to.name() && table.is_indexed(&column.name));
        let limit = most.map(|most| most / texts_of_widest_index(table, &column.name, kinds));
        let is_long = |limit: &u32| {
            matches!(plain.stored.class, Class::Text | Class::Blob | Class::Json)
                || (plain.stored.class.is_text() || plain.stored.class.is_bytes()) && plain.stored.n > *limit
        };
        match limit.filter(is_long) {
            Some(limit) => {
                let class = if plain.stored.class.is_bytes() { Class::Varbinary } else { Class::Varchar };
                let short = Kind { class, n: limit, s: 0, declared: kind.declared.clone() };
                mapped.push(map(from, to, &short).ok_or_else(unmapped)?);
                longest.push(Some(limit));
            }
            None => {
                mapped.push(plain);
                longest.push(None);
            }
        }
    }
    Ok((mapped, longest))
}

/// The number of columns of text or bytes in the index, of those with this column, that has most of them.
fn texts_of_widest_index(table: &Table, column: &str, kinds: &[Kind]) -> u32 {
    let indexes = table.indexes.iter().map(|index| &index.columns);
    let keys = table.foreign.iter().map(|key| &key.columns);
    let texts = |columns: &Vec<String>| {
        let of = |name: &String| table.position(name).map(|at| kinds[at].class);
        columns.iter().filter_map(of).filter(|class| class.is_text() || class.is_bytes()).count() as u32
    };
    let with = indexes
        .chain(keys)
        .chain([&table.primary])
        .filter(|columns| columns.iter().any(|known| known == column));
    with.map(texts).max().unwrap_or(1).max(1)
}

fn check_names(target: &dyn Engine, table: &Table) -> Result<()> {
    let most = target.longest_name();
    match table.columns.iter().find(|column| column.name.len() > most) {
        Some(column) => {
            let why = format!(
                "column {}.{}: {} names have at most {most} bytes",
                table.name,
                column.name,
                target.name()
            );
            Err(Error::unsupported(why).hint("rename it, or leave the table out with --tables"))
        }
        None => Ok(()),
    }
}

/// The columns by which rows are read in pages: the primary key, or a unique index without nulls.
fn key(table: &Table, columns: &[ColumnPlan]) -> Vec<usize> {
    // Text compares with an ENUM by its word, but sorts by its number. A floating-point number is not its text.
    let usable = |class: Class| {
        !matches!(
            class,
            Class::Float32
                | Class::Float64
                | Class::Enum
                | Class::Json
                | Class::Native
                | Class::Bool
                | Class::Bits
        )
    };
    let unique = table.indexes.iter().filter(|index| index.unique).map(|index| &index.columns);
    let positions =
        |names: &Vec<String>| names.iter().map(|name| table.position(name)).collect::<Option<Vec<_>>>();
    [&table.primary]
        .into_iter()
        .chain(unique)
        .filter_map(positions)
        .find(|key| {
            !key.is_empty()
                && key.iter().all(|at| {
                    usable(columns[*at].kind.class)
                        && !table.columns[*at].nullable
                        && columns[*at].mend.iter().all(|kind| *kind == IssueKind::NulCharacter)
                })
        })
        .unwrap_or_default()
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

/// Names of indexes and constraints on the target.
pub struct Names {
    taken: HashSet<String>,
    shared: bool,
    longest: usize,
}

impl Names {
    /// No names but those of the new tables.
    pub fn new(target: &dyn Engine, tables: &[Table]) -> Self {
        let taken = tables.iter().map(|table| table.name.to_lowercase()).collect();
        Self { taken, shared: target.index_names_are_shared(), longest: target.longest_name() }
    }

    /// The name, or another one if it is taken, too long, or one that the engine reserves.
    pub fn of(&mut self, table: &str, name: &str, always_shared: bool) -> String {
        let scope = |name: &str| {
            let name = name.to_lowercase();
            if self.shared || always_shared { name } else { format!("{table}\0{name}") }
        };
        let is_free =
            |taken: &HashSet<String>, name: &str| name.len() <= self.longest && !taken.contains(&scope(name));
        let reserved = name.is_empty()
            || name.starts_with("sqlite_")
            || name.starts_with("RDB$")
            || name.eq_ignore_ascii_case("primary");
        let mut chosen = name.to_owned();
        if reserved || !is_free(&self.taken, name) {
            let stem = if reserved { table.to_owned() } else { format!("{table}_{name}") };
            chosen = (1..)
                .map(|number| {
                    let end = if number == 1 && !reserved { String::new() } else { format!("_k{number}") };
                    let most = self.longest.saturating_sub(end.len());
                    let mut cut = stem.len().min(most);
                    while !stem.is_char_boundary(cut) {
                        cut -= 1;
                    }
                    format!("{}{end}", &stem[..cut])
                })
                .find(|name| is_free(&self.taken, name))
                .unwrap_or_default();
        }
        let key = scope(&chosen);
        self.taken.insert(key);
        chosen
    }
}
