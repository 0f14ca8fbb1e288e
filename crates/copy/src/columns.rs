//! The plan of one table: its columns, its key and the statements that make it.

use crate::casts::Casts;
use crate::catalog::{Collation, Column, Table};
use crate::column_types::{ELSEWHERE, in_page};
use crate::ddl;
use crate::defaults;
use crate::engines::engine::Engine;
use crate::engines::facts::{Documents, Identity, TargetFacts};
use crate::issue::{Becomes, Issue, IssueKind};
use crate::names::Names;
use crate::plan::{ColumnPlan, Resume, TablePlan};
use crate::script::quoted;
use crate::sql::Side;
use crate::types::{Class, ColumnTypes, UNLIMITED};
use crate::wanted::Wanted;
use kurabe_core::{Error, Result, units};
use std::collections::HashMap;

/// What the plan of one table is made of.
pub struct OneTable<'a> {
    pub source: &'a mut Side,
    /// The target's engine.
    pub target: &'a Engine,
    pub facts: &'a TargetFacts,
    /// The table on the source.
    pub table: &'a Table,
    /// The table as it is made, with the names of the target.
    pub made: &'a Table,
    pub wanted: &'a Wanted,
    pub casts: &'a Casts<'a>,
    pub issues: &'a mut Vec<Issue>,
}

impl OneTable<'_> {
    /// Plans the table.
    pub fn plan(&mut self, names: &mut Names<'_>) -> Result<TablePlan> {
        self.check_names()?;
        let (table, made) = (self.table, self.made);
        let types = self.types()?;
        let scanned = self.scan(&types)?;
        let native = table.native.as_ref().filter(|_| self.facts.same_server);
        let in_page: u64 = types.iter().map(|types| in_page(&types.mapped)).sum();
        let longest = self.facts.longest_in_page.filter(|_| native.is_none());
        if let Some((most, of_rows)) = longest.filter(|(most, _)| in_page > *most)
            && (!of_rows || self.has_long_row(&types, most)?)
        {
            let (bytes, most) = (units::count(in_page), units::count(most));
            let what = format!(
                "table {}: its rows may have {bytes} bytes in a page of {}, which takes {most}",
                made.name, self.target.name
            );
            return Err(Error::unsupported(what).hint("leave the table out with --exclude"));
        }
        self.issues.extend(scanned.issues);
        let columns = table.columns.iter().zip(&types).zip(&scanned.unfit);
        let columns: Vec<ColumnPlan> = columns
            .map(|((column, types), unfit)| match native {
                Some(_) => self.native_column(column, types),
                None => self.column(column, types, *unfit),
            })
            .collect();
        let key = key(table, &columns);
        // The order of places is for a table whose key is made after its rows. A condition may be answered by an index, in its order.
        let by_place = native.is_some() && table.filter.is_none();
        let resume = match table.hidden.filter(|_| self.source.engine.place.is_none() || by_place) {
            Some(hidden) => Resume::Hidden(hidden),
            None => resume(self.source.engine, &columns, &key),
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
            has_key: !made.primary.is_empty() && native.is_none_or(|native| native.has_key),
            indexes: native
                .map_or_else(|| ddl::indexes(self.target, made, names), |native| native.later.clone()),
            foreign: Vec::new(),
            page: self.wanted.page,
            rows: scanned.rows,
            columns,
            key,
            resume,
        })
    }

    fn check_names(&self) -> Result<()> {
        let table = &self.made.name;
        let mut names = self.table.columns.iter().map(|column| column.name.as_str());
        let refused = |name| Some(format!("column {table}.{name}: {}", self.target.refuses_name(name)?));
        if let Some(what) = names.clone().find_map(refused) {
            return Err(Error::unsupported(what).hint("rename it, or leave the table out with --tables"));
        }
        differ_beyond_case(self.facts.folds_columns, &mut names, &format!("columns of table {table}"))
    }

    /// Whether a row has more bytes in its page: of a long value those of a pointer.
    fn has_long_row(&mut self, types: &[ColumnTypes], most: u64) -> Result<bool> {
        let engine = self.source.engine;
        let sizes = self.table.columns.iter().zip(types).map(|(column, types)| {
            let octets = (engine.octets)(&quoted(engine, &column.name));
            match in_page(&types.mapped) {
                ELSEWHERE => {
                    format!("COALESCE(CASE WHEN {octets} > {ELSEWHERE} THEN 20 ELSE {octets} + 1 END, 0)")
                }
                short => short.to_string(),
            }
        });
        let sizes = sizes.collect::<Vec<_>>().join(" + ");
        Ok(self.source.count(self.table, &format!("{sizes} > {most}"))? > 0)
    }

    /// A column as the engine renders it.
    fn native_column(&mut self, column: &Column, types: &ColumnTypes) -> ColumnPlan {
        if let Collation::Named(name) | Collation::Binary(name) = &column.collation
            && types.kind.class.is_text()
            && !self.facts.collations.contains(name)
        {
            self.list(column, IssueKind::Collation, format!("the target does not have {name}"));
        }
        self.as_it_is(column, types)
    }

    fn as_it_is(&self, column: &Column, types: &ColumnTypes) -> ColumnPlan {
        let engine = self.source.engine;
        ColumnPlan {
            name: column.name.clone(),
            kind: types.kind.clone(),
            mapped: types.mapped.clone(),
            nullable: column.nullable,
            sql: String::new(),
            exact: types.exact,
            mend: None,
            identity: None,
            read: engine.dialect.read(&types.kind, &quoted(engine, &column.name)),
            rounds: false,
            has_binary: types.exact && column.has_binary,
            written: column.generated.is_none(),
        }
    }

    fn column(
        &mut self,
        column: &Column,
        types: &ColumnTypes,
        unfit: Option<(IssueKind, u64)>,
    ) -> ColumnPlan {
        let (table, target, same) = (self.table, self.target, self.source.engine == self.target);
        let (kind, mapped, exact) = (&types.kind, &types.mapped, types.exact);
        let mut identity =
            if column.identity { target.dialect.identity(table, column, mapped) } else { None };
        // Where the numbered column must be of a certain type, which may not reach as far as the numbers.
        if kind.class == Class::UInt64 && identity.is_some_and(|identity| identity.type_name.is_some()) {
            let large = format!("{} > {}", self.source.quoted(&column.name), i64::MAX);
            identity = identity.filter(|_| self.source.count(table, &large).is_ok_and(|large| large == 0));
        }
        let default = defaults::clause(exact, target, &column.default, kind, mapped);
        self.list_types(column, types);
        if let Some(expression) = &column.generated {
            self.list(column, IssueKind::Generated, expression.clone());
        }
        // An array of PostgreSQL has the collation of its elements.
        let is_array =
            exact && kind.declared.ends_with("[]") && matches!(column.collation, Collation::Named(_));
        let has_collation = kind.class.is_text() || is_array;
        if let Collation::Named(name) = &column.collation
            && has_collation
            && !(same && self.facts.collations.contains(name))
        {
            self.list(column, IssueKind::Collation, name.clone());
        }
        if column.identity && identity.is_none() {
            let detail = format!("{} cannot give numbers to this column", target.name);
            self.list(column, IssueKind::Identity, detail);
        }
        let documents = match mapped.stored.class {
            Class::Json if !exact => target.dialect.documents(&mapped.stored, &self.facts.edition),
            _ => Documents::Kept,
        };
        let rounds = documents == Documents::Rounded;
        if documents > self.source.engine.dialect.documents(kind, "") {
            let numbers = if rounds { ", and numbers have 64 bits" } else { "" };
            let lost = format!("spaces, repeated keys and the order of keys are not kept{numbers}");
            self.list(column, IssueKind::Json, lost);
        }
        let (mut mend, mut nullable) = (None, column.nullable);
        if let Some((unfit, count)) = unfit {
            self.list(column, unfit, format!("{} values", units::count(count)));
            let becomes = self.wanted.accepted.becomes(unfit, &format!("{}.{}", table.name, column.name));
            nullable |= becomes == Becomes::Usual && unfit != IssueKind::NulCharacter;
            mend = Some((unfit, becomes)).filter(|(_, becomes)| *becomes != Becomes::Itself);
        }
        let default = match default {
            _ if identity.is_some() => String::new(),
            Ok(default) => default,
            Err(why) => {
                self.list(column, IssueKind::Default, why);
                String::new()
            }
        };
        let collated = has_collation && (is_array || mapped.stored.class.is_text());
        let collation = match &column.collation {
            Collation::Named(_) if !same => String::new(),
            collation if collated => target.dialect.collate(collation, self.facts, same),
            _ => String::new(),
        };
        let nullable = nullable && !table.primary.contains(&column.name);
        let null = if nullable { target.nullable } else { " NOT NULL" };
        let Identity { type_name, before, after } = identity.unwrap_or_default();
        let sql = format!(
            "{} {}{collation}{default}{before}{null}{after}",
            quoted(target, &column.name),
            type_name.unwrap_or(&mapped.sql)
        );
        let identity = identity.is_some().then(|| column.next.unwrap_or(1));
        ColumnPlan { nullable, sql, mend, identity, rounds, written: true, ..self.as_it_is(column, types) }
    }

    fn list(&mut self, column: &Column, kind: IssueKind, detail: String) {
        let object = format!("{}.{}", self.table.name, column.name);
        self.issues.push(Issue::new(kind, object, detail));
    }

    fn list_types(&mut self, column: &Column, types: &ColumnTypes) {
        let (kind, mapped, declared) = (&types.kind, &types.mapped, &column.declared);
        // A column without a type is one of the type that all its values have.
        if let Some((name, count)) = types.corrected.filter(|(_, count)| *count > 0) {
            let (count, declared) =
                (units::count(count), if declared.is_empty() { "nothing" } else { declared });
            let detail = format!("declared {declared}, but {count} values are not: it is copied as {name}");
            self.list(column, IssueKind::StorageClass, detail);
        }
        if let Some(kind) = mapped.issue {
            let why = if types.is_longer { ": some have more digits than the target's" } else { "" };
            self.list(column, kind, format!("{declared} becomes {}{why}", mapped.sql));
        }
        // Those of SQLite are no limits.
        let is_limited = matches!(kind.class, Class::Char | Class::Varchar)
            && kind.n != UNLIMITED
            && !self.source.engine.is_loose;
        let is_given = types.exact || self.casts.user.has(&self.table.name, column);
        let is_free = is_limited && mapped.stored.class == Class::Text && !is_given && !types.is_widened;
        let whys = [
            is_free.then_some(": its text has no maximum length"),
            types.is_widened.then_some(": a row has a maximum length"),
            types.longest.map(|_| ", since it is indexed"),
        ];
        for why in whys.into_iter().flatten() {
            self.list(column, IssueKind::TextLength, format!("{declared} becomes {}{why}", mapped.sql));
        }
    }
}

/// Refuses names that are the same on a target without regard to case.
pub fn differ_beyond_case<'n>(folds: bool, names: impl Iterator<Item = &'n str>, what: &str) -> Result<()> {
    let mut known: HashMap<String, &str> = HashMap::new();
    for name in names.filter(|_| folds) {
        if let Some(other) = known.insert(name.to_lowercase(), name) {
            let what = format!("{what}: {other} and {name} are one name on the target");
            return Err(Error::unsupported(what).hint("rename one of them, or leave it out with --tables"));
        }
    }
    Ok(())
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
fn resume(engine: &Engine, columns: &[ColumnPlan], key: &[usize]) -> Resume {
    // Text compares with an ENUM by its word, but sorts by its number. A floating-point number is not its text.
    let others =
        [Class::Float32, Class::Float64, Class::Enum, Class::Json, Class::Native, Class::Bool, Class::Bits];
    let is_usable = |at: &usize| engine.is_loose || !others.contains(&columns[*at].kind.class);
    if key.is_empty() || !key.iter().all(is_usable) {
        return Resume::Restart;
    }
    Resume::Columns(key.to_vec())
}
