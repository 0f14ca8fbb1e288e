//! The plan of one table: its columns, its key and the statements that make it.

use crate::casts::Casts;
use crate::catalog::{Collation, Column, Table};
use crate::ddl;
use crate::defaults;
use crate::engines::{Engine, Identity, TargetFacts};
use crate::issue::{Accepted, Becomes, Issue, IssueKind};
use crate::names::Names;
use crate::plan::{ColumnPlan, Resume, TablePlan};
use crate::rows::PageSize;
use crate::scan::{Correction, Scanned, ScannedColumn, corrections, scan};
use crate::sql::{Side, quoted};
use crate::types::{Class, Kind, Mapped, UNLIMITED, kind_of};
use kurabe_core::{Error, ErrorKind, Result, units};
use std::collections::HashMap;

/// What the plan of one table is made of.
pub struct OneTable<'a> {
    pub source: &'a mut Side,
    /// The target's engine.
    pub target: &'a dyn Engine,
    /// What its server says.
    pub facts: &'a TargetFacts,
    /// The table on the source.
    pub table: &'a Table,
    /// The table as it is made, with the names of the target.
    pub made: &'a Table,
    /// What the user accepts.
    pub accepted: &'a Accepted,
    /// What types become.
    pub casts: &'a Casts<'a>,
    /// How many rows are inserted together.
    pub page: PageSize,
    /// Takes what does not map.
    pub issues: &'a mut Vec<Issue>,
}

/// The types of a table's columns.
struct Types {
    kinds: Vec<Kind>,
    /// Whether both sides have the same type, and values are carried as the server writes them.
    exact: Vec<bool>,
    mapped: Vec<Mapped>,
    /// The maximum lengths of columns that an index of the target limits.
    longest: Vec<Option<u32>>,
    /// The columns with decimal numbers that have more digits than the target's.
    longer: Vec<usize>,
    /// The columns that are of unlimited length, since a row has a maximum length.
    widened: Vec<usize>,
    /// The type that a column has in fact, and the number of values that are not of the declared one.
    corrected: Vec<Correction>,
}

impl OneTable<'_> {
    /// Plans the table.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) for names and values that are too long.
    pub fn plan(&mut self, names: &mut Names) -> Result<TablePlan> {
        self.check_names()?;
        let (types, scanned) = self.types()?;
        let table = self.table;
        let native = table.native.as_ref().filter(|_| self.is_same_server());
        let made = self.made;
        let columns = (0..table.columns.len()).map(|at| match native {
            Some(_) => Ok(self.native_column(at, &types)),
            None => self.column(at, &types, &scanned.columns[at]),
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let key = key(table, &columns);
        let resume = match table.hidden {
            Some(hidden) => Resume::Hidden(hidden),
            None => resume(self.source.engine, table, &columns, &key),
        };
        Ok(TablePlan {
            name: table.name.clone(),
            to: made.name.clone(),
            filter: table.filter.clone(),
            from: self.source.engine.from(table),
            create: native.map_or_else(
                || ddl::create_table(self.target, self.facts, made, &columns, &[]),
                |native| native.create.clone(),
            ),
            indexes: native
                .map_or_else(|| ddl::indexes(self.target, made, names), |native| native.later.clone()),
            foreign: Vec::new(),
            page: self.page,
            rows: scanned.rows,
            columns,
            key,
            resume,
        })
    }

    /// Whether both are servers of one kind: types and collations have the same meaning.
    fn is_same_server(&self) -> bool {
        self.is_same_engine() && self.facts.same_server
    }

    fn is_same_engine(&self) -> bool {
        self.source.engine.name() == self.target.name()
    }

    fn check_names(&self) -> Result<()> {
        let (table, most) = (&self.made.name, self.target.longest_name());
        let columns =
            self.table.columns.iter().map(|column| (&column.name, format!("column {table}.{}", column.name)));
        let mut all = columns.chain([(table, format!("table {table}"))]);
        let Some((_, what)) = all.find(|(name, _)| name.len() > most) else {
            return differ_in_more_than_case(
                self.facts.folds_columns,
                self.table.columns.iter().map(|column| column.name.as_str()),
                &format!("columns of table {table}"),
            );
        };
        Err(Error::unsupported(format!("{what}: names of {} have at most {most} bytes", self.target.name()))
            .hint("rename it, or leave the table out with --tables"))
    }

    /// The types by declaration, corrected by the values.
    fn types(&mut self) -> Result<(Types, Scanned)> {
        let (engine, table) = (self.source.engine, self.table);
        let mut kinds: Vec<Kind> =
            table.columns.iter().map(|column| kind_of(engine, &column.declared)).collect();
        let mut corrected = vec![None; kinds.len()];
        let casts = |column: &Column| self.casts.are_given(&table.name, column);
        let exact: Vec<bool> =
            table.columns.iter().map(|column| self.is_same_server() && !casts(column)).collect();
        for (at, kind) in kinds.iter_mut().enumerate() {
            if exact[at]
                || self.is_same_engine() && kind.class == Class::Geometry && !casts(&table.columns[at])
            {
                kind.class = engine.exact_class(kind);
            }
        }
        if exact.contains(&false) {
            corrected = corrections(self.source, table, &kinds)?;
            for (at, kind) in kinds.iter_mut().enumerate() {
                match corrected[at] {
                    Some(_) if exact[at] => corrected[at] = None,
                    Some((name, _)) => *kind = kind_of(engine, name),
                    None => {}
                }
            }
        }
        let (mut mapped, longest) = self.mapped(&kinds, &exact)?;
        let same = self.is_same_server();
        let mut longer = Vec::new();
        if !same {
            longer = self.long_decimals(&kinds, &mut mapped)?;
        }
        let widened = if same { Vec::new() } else { self.widen(&kinds, &mut mapped) };
        let scanned = scan(self.source, self.target, &exact, table, &kinds, &mapped, &longest)?;
        Ok((Types { kinds, exact, mapped, longest, longer, widened, corrected }, scanned))
    }

    /// Makes text of decimal numbers some of which have more digits than the target's.
    fn long_decimals(&mut self, kinds: &[Kind], mapped: &mut [Mapped]) -> Result<Vec<usize>> {
        let mut longer = Vec::new();
        let Some((whole, part)) = self.target.longest_decimal() else { return Ok(longer) };
        for (at, column) in self.table.columns.iter().enumerate() {
            let engine = self.source.engine;
            let is_limited = kinds[at].n <= whole + part && kinds[at].s <= part;
            let is_given = self.casts.are_given(&self.table.name, column);
            if kinds[at].class != Class::Decimal
                || is_limited
                || is_given
                || self.table.is_indexed(&column.name)
            {
                continue;
            }
            let Some(condition) = engine.longer_decimal(&quoted(engine, &column.name), whole, part) else {
                continue;
            };
            let from = engine.from(self.table);
            let filter =
                self.table.filter.as_ref().map(|filter| format!(" AND ({filter})")).unwrap_or_default();
            let sql = format!("SELECT COUNT(*) FROM {from} WHERE ({condition}){filter}");
            if self.source.number(&sql)? > 0
                && let Some(text) = self.casts.longer(&kinds[at])
            {
                mapped[at] = text;
                longer.push(at);
            }
        }
        Ok(longer)
    }

    /// Makes columns of unlimited length out of the longest ones, until a row is short enough. They are stored elsewhere.
    fn widen(&self, kinds: &[Kind], mapped: &mut [Mapped]) -> Vec<usize> {
        let Some(most) = self.target.longest_row() else { return Vec::new() };
        let bytes = |mapped: &Mapped| match mapped.stored.class {
            Class::Char | Class::Varchar => 4 * u64::from(mapped.stored.n) + 2,
            Class::Binary | Class::Varbinary => u64::from(mapped.stored.n) + 2,
            _ => 16,
        };
        let mut widened = Vec::new();
        while mapped.iter().map(bytes).sum::<u64>() > most {
            let free = |at: &usize| {
                bytes(&mapped[*at]) > 16 && !self.table.is_indexed(&self.table.columns[*at].name)
            };
            let Some(at) = (0..mapped.len()).filter(free).max_by_key(|at| bytes(&mapped[*at])) else { break };
            let long = Kind { n: UNLIMITED, ..kinds[at].clone() };
            match self.casts.becomes(&self.table.name, &self.table.columns[at], &long, None) {
                Some(long) if bytes(&long) <= 16 => mapped[at] = long,
                _ => break,
            }
            widened.push(at);
        }
        widened
    }

    fn mapped(&self, kinds: &[Kind], exact: &[bool]) -> Result<(Vec<Mapped>, Vec<Option<u32>>)> {
        let to = self.target;
        let (mut all, mut longest) = (Vec::new(), Vec::new());
        for ((column, kind), exact) in self.table.columns.iter().zip(kinds).zip(exact) {
            let becomes = |limit| {
                if *exact {
                    let sql = to.same_type(kind).to_owned();
                    return Ok(Mapped { sql, stored: kind.clone(), issue: None });
                }
                self.casts.becomes(&self.table.name, column, kind, limit).ok_or_else(|| {
                    Error::new(ErrorKind::Internal, format!("{} has no type for {kind:?}", to.name()))
                })
            };
            let mut mapped = becomes(None)?;
            let most = to.longest_key().filter(|_| !exact && self.table.is_indexed(&column.name));
            let limit = most.map(|most| most / texts_of_widest_index(self.table, &column.name, kinds));
            let limit = limit.filter(|limit| is_longer(&mapped.stored, *limit));
            if limit.is_some() {
                mapped = becomes(limit)?;
            }
            longest.push(limit);
            all.push(mapped);
        }
        Ok((all, longest))
    }

    /// The expression that reads a column.
    fn read(&self, at: usize, types: &Types) -> String {
        let engine = self.source.engine;
        engine.read(&types.kinds[at], &quoted(engine, &self.table.columns[at].name))
    }

    /// A column as the engine renders it.
    fn native_column(&mut self, at: usize, types: &Types) -> ColumnPlan {
        let column = &self.table.columns[at];
        if let Collation::Named(name) | Collation::Binary(name) = &column.collation
            && types.kinds[at].class.is_text()
            && !self.facts.collations.contains(name)
        {
            self.list(column, IssueKind::Collation, format!("the target does not have {name}"));
        }
        ColumnPlan {
            name: column.name.clone(),
            kind: types.kinds[at].clone(),
            mapped: types.mapped[at].clone(),
            nullable: column.nullable,
            sql: String::new(),
            exact: types.exact[at],
            mend: Vec::new(),
            identity: None,
            read: self.read(at, types),
            rounds: false,
            written: column.generated.is_none(),
        }
    }

    fn column(&mut self, at: usize, types: &Types, scanned: &ScannedColumn) -> Result<ColumnPlan> {
        let (table, target, same) = (self.table, self.target, self.is_same_engine());
        let (column, kind, mapped) = (&table.columns[at], &types.kinds[at], &types.mapped[at]);
        let identity = if column.identity { target.identity(table, column, mapped) } else { None };
        let default = defaults::clause(types.exact[at], target, &column.default, kind, mapped);
        self.list_types(at, types, scanned)?;
        if let Some(expression) = &column.generated {
            self.list(column, IssueKind::Generated, expression.clone());
        }
        if let Collation::Named(name) = &column.collation
            && kind.class.is_text()
            && !(same && self.facts.collations.contains(name))
        {
            self.list(column, IssueKind::Collation, name.clone());
        }
        if column.identity && identity.is_none() {
            self.list(
                column,
                IssueKind::Identity,
                format!("{} cannot give numbers to this column", target.name()),
            );
        }
        let parses = mapped.stored.class == Class::Json
            && !types.exact[at]
            && self.facts.edition != "MariaDB"
            && !target.keeps_documents(&mapped.stored);
        let rounds = parses && self.facts.edition == "MySQL";
        let of_mysql = self.source.engine.name() == "MySQL" && !self.source.engine.keeps_documents(kind);
        if parses && self.source.engine.keeps_documents(kind) || rounds && !of_mysql {
            let numbers = if rounds { ", and numbers have 64 bits" } else { "" };
            let lost = format!("spaces, repeated keys and the order of keys are not kept{numbers}");
            self.list(column, IssueKind::Json, lost);
        }
        let mut mend = Vec::new();
        let mut nullable = column.nullable;
        for (unfit, count) in &scanned.unfit {
            self.list(column, *unfit, format!("{} values", units::count(*count)));
            let becomes = self.accepted.becomes(*unfit, &format!("{}.{}", table.name, column.name));
            let is_null = becomes == Becomes::Usual;
            nullable |= is_null && !matches!(unfit, IssueKind::NulCharacter | IssueKind::Fraction);
            if becomes != Becomes::Itself {
                mend.push((*unfit, becomes));
            }
        }
        // A type with fewer digits cuts all values.
        let cuts = mapped.issue == Some(IssueKind::Fraction)
            || target.cannot_hold(&mapped.stored).contains(&IssueKind::Fraction);
        if cuts && !types.exact[at] && !mend.iter().any(|(kind, _)| *kind == IssueKind::Fraction) {
            mend.push((IssueKind::Fraction, Becomes::Usual));
        }
        if scanned.nulls > 0 {
            let why = format!(
                "column {}.{}: the key has {} nulls, and {} allows none",
                table.name,
                column.name,
                units::count(scanned.nulls),
                target.name()
            );
            return Err(Error::unsupported(why).hint("correct them, or leave the table out with --tables"));
        }
        let default = match default {
            _ if identity.is_some() => String::new(),
            Ok(default) => default,
            Err(why) => {
                self.list(column, IssueKind::Default, why);
                String::new()
            }
        };
        let collated = mapped.stored.class.is_text() && kind.class.is_text();
        let collation = match &column.collation {
            Collation::Named(_) if !same => String::new(),
            collation if collated => target.collate(collation, self.facts, same),
            _ => String::new(),
        };
        let nullable = nullable && !table.primary.contains(&column.name);
        let null = if nullable { target.nullable() } else { " NOT NULL" };
        let Identity { type_name, before, after } = identity.unwrap_or_default();
        let sql = format!(
            "{} {}{collation}{default}{before}{null}{after}",
            quoted(target, &column.name),
            type_name.unwrap_or(&mapped.sql)
        );
        Ok(ColumnPlan {
            name: column.name.clone(),
            kind: kind.clone(),
            mapped: mapped.clone(),
            nullable,
            sql,
            exact: types.exact[at],
            mend,
            identity: identity.is_some().then(|| column.next.unwrap_or(1)),
            read: self.read(at, types),
            rounds,
            written: true,
        })
    }

    fn list(&mut self, column: &Column, kind: IssueKind, detail: String) {
        let object = format!("{}.{}", self.table.name, column.name);
        self.issues.push(Issue { kind, object, detail, text: String::new() });
    }

    fn list_types(&mut self, at: usize, types: &Types, scanned: &ScannedColumn) -> Result<()> {
        let (column, mapped) = (&self.table.columns[at], &types.mapped[at]);
        let declared = &column.declared;
        // A column without a type is one of the type that all its values have.
        if let Some((name, count)) = types.corrected[at].filter(|(_, count)| *count > 0) {
            let (count, declared) =
                (units::count(count), if declared.is_empty() { "nothing" } else { declared });
            let detail = format!("declared {declared}, but {count} values are not: it is copied as {name}");
            self.list(column, IssueKind::StorageClass, detail);
        }
        if let Some(kind) = mapped.issue {
            let more = ": some have more digits than the target's";
            let why = if types.longer.contains(&at) { more } else { "" };
            self.list(column, kind, format!("{declared} becomes {}{why}", mapped.sql));
        }
        let kind = &types.kinds[at];
        // Those of SQLite are no limits.
        let is_limited = matches!(kind.class, Class::Char | Class::Varchar)
            && kind.n != UNLIMITED
            && self.source.engine.storage_class("").is_none();
        let is_given = types.exact[at] || self.casts.are_given(&self.table.name, column);
        if is_limited && mapped.stored.class == Class::Text && !is_given && !types.widened.contains(&at) {
            let detail = format!("{declared} becomes {}: its text has no maximum length", mapped.sql);
            self.list(column, IssueKind::TextLength, detail);
        }
        if types.widened.contains(&at) {
            let detail = format!("{declared} becomes {}: a row has a maximum length", mapped.sql);
            self.list(column, IssueKind::TextLength, detail);
        }
        let Some(longest) = types.longest[at] else { return Ok(()) };
        if scanned.too_long > 0 {
            let (count, name) = (units::count(scanned.too_long), self.target.name());
            let why = format!(
                "column {}.{}: {count} values are longer than {longest}, the longest in an index of {name}",
                self.table.name, column.name
            );
            return Err(Error::unsupported(why).hint("leave the table out with --tables"));
        }
        self.list(
            column,
            IssueKind::TextLength,
            format!("{declared} becomes {}, since it is indexed", mapped.sql),
        );
        Ok(())
    }
}

/// Refuses names that are the same on a target without regard to case.
pub fn differ_in_more_than_case<'n>(
    folds: bool,
    names: impl Iterator<Item = &'n str>,
    what: &str,
) -> Result<()> {
    let mut known: HashMap<String, &str> = HashMap::new();
    for name in names.filter(|_| folds) {
        if let Some(other) = known.insert(name.to_lowercase(), name) {
            let what = format!("{what}: {other} and {name} are one name on the target");
            return Err(Error::unsupported(what).hint("rename one of them, or leave it out with --tables"));
        }
    }
    Ok(())
}

/// Whether a column may hold values that are longer than an index allows.
fn is_longer(stored: &Kind, limit: u32) -> bool {
    let class = stored.class;
    matches!(class, Class::Text | Class::Blob | Class::Json)
        || (class.is_text() || class.is_bytes()) && stored.n > limit
}

/// The number of columns of text or bytes in the index, of those with this column, that has most of them.
fn texts_of_widest_index(table: &Table, column: &str, kinds: &[Kind]) -> u32 {
    let indexes = table.indexes.iter().map(|index| &index.columns);
    let keys = table.foreign.iter().map(|key| &key.columns);
    let texts = |columns: &Vec<String>| {
        let of = |name: &String| table.position(name).map(|at| kinds[at].class);
        columns.iter().filter_map(of).filter(|class| class.is_text() || class.is_bytes()).count() as u32
    };
    let all = indexes.chain(keys).chain([&table.primary]);
    let with = all.filter(|columns| columns.iter().any(|known| known == column));
    with.map(texts).max().unwrap_or(1).max(1)
}

/// The columns by which rows are named: the primary key, or a unique index without nulls.
fn key(table: &Table, columns: &[ColumnPlan]) -> Vec<usize> {
    let unique = table.indexes.iter().filter(|index| index.unique).map(|index| &index.columns);
    let positions =
        |names: &Vec<String>| names.iter().map(|name| table.position(name)).collect::<Option<Vec<_>>>();
    let is_key = |key: &Vec<usize>| {
        !key.is_empty()
            && key.iter().all(|at| {
                !table.columns[*at].nullable
                    && columns[*at].mend.iter().all(|(kind, _)| *kind == IssueKind::NulCharacter)
            })
    };
    [&table.primary].into_iter().chain(unique).filter_map(positions).find(is_key).unwrap_or_default()
}

/// How a copy of a table continues: after the last key, if its values as text are compared as they are ordered.
fn resume(engine: &dyn Engine, table: &Table, columns: &[ColumnPlan], key: &[usize]) -> Resume {
    // Text compares with an ENUM by its word, but sorts by its number. A floating-point number is not its text.
    let others =
        [Class::Float32, Class::Float64, Class::Enum, Class::Json, Class::Native, Class::Bool, Class::Bits];
    let is_usable = |at: &usize| engine.read_key("").is_some() || !others.contains(&columns[*at].kind.class);
    let nullable = |at: &usize| table.columns[*at].nullable;
    if key.is_empty() || !key.iter().all(is_usable) || key.iter().any(nullable) {
        return Resume::Restart;
    }
    Resume::Columns(key.to_vec())
}
