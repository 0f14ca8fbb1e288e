//! What types of one engine become on another: tables as data, one file for each pair of engines, and what the user says
//! instead for a type or for one column.

use crate::catalog::{Column, Table};
use crate::classes::classes;
use crate::engines::engine::Engine;
use crate::issue::IssueKind;
use crate::types::{Class, Declared, Kind, Mapped, UNLIMITED};
use kurabe_core::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The tables: source, target, and the file.
const FILES: &[(&str, &str, &str)] = &[
    ("sqlite", "postgresql", include_str!("../casts/sqlite-postgresql.toml")),
    ("sqlite", "mysql", include_str!("../casts/sqlite-mysql.toml")),
    ("postgresql", "sqlite", include_str!("../casts/postgresql-sqlite.toml")),
    ("postgresql", "mysql", include_str!("../casts/postgresql-mysql.toml")),
    ("mysql", "sqlite", include_str!("../casts/mysql-sqlite.toml")),
    ("mysql", "postgresql", include_str!("../casts/mysql-postgresql.toml")),
    ("mysql", "mysql", include_str!("../casts/mysql-mysql.toml")),
];

/// A file of casts. The user's file may have columns; the built-in ones have what an index limits, and what
/// numbers become that have more digits than the target's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    types: BTreeMap<String, Cast>,
    columns: BTreeMap<String, Cast>,
    indexed: BTreeMap<String, Cast>,
    longer: BTreeMap<String, Cast>,
}

/// What a type becomes.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Cast {
    Always(String),
    One(Rule),
    /// The first whose `upto` is not exceeded.
    First(Vec<Rule>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// The type, with `{n}` and `{s}`; or `{declared}`: as it is.
    to: String,
    /// The largest [`Kind::n`] that it is for.
    upto: Option<u32>,
    /// What does not map.
    lists: Option<IssueKind>,
}

/// What the user says of types and columns.
#[derive(Clone, Debug, Default)]
pub struct UserCasts(File);

impl UserCasts {
    /// Adds `TYPE=TYPE` or `TABLE.COLUMN=TYPE`.
    pub fn add(&mut self, text: &str) -> Result<()> {
        let (from, to) = text.split_once('=').map(|(from, to)| (from.trim(), to.trim())).unwrap_or_default();
        if from.is_empty() || to.is_empty() {
            return Err(Error::usage(format!("--cast {text}: no type after '='"))
                .hint("such as --cast 'tinyint(1)=boolean' or --cast 'orders.total=numeric(12,2)'"));
        }
        let cast = Cast::Always(to.to_owned());
        let of = if from.contains('.') { &mut self.0.columns } else { &mut self.0.types };
        of.insert(from.to_owned(), cast);
        Ok(())
    }

    /// Adds a file of the same form as the built-in tables.
    pub fn add_file(&mut self, text: &str) -> Result<()> {
        let file: File = toml::from_str(text).map_err(|error| Error::usage(error.to_string()))?;
        self.0.types.extend(file.types);
        self.0.columns.extend(file.columns);
        Ok(())
    }

    pub fn set_column(&mut self, table: &str, column: &str, to: &str) {
        self.0.columns.insert(format!("{table}.{column}"), Cast::Always(to.to_owned()));
    }

    /// What the user says of a column.
    fn of(&self, table: &str, column: &Column) -> Option<&Cast> {
        let full = format!("{table}.{}", column.name);
        let is = |name: &String| *name == full || name.ends_with(&format!(".{full}"));
        let of_column = self.0.columns.iter().find(|(name, _)| is(name)).map(|(_, cast)| cast);
        of_column.or_else(|| of_type(&self.0.types, &Declared::parse(&column.declared)))
    }

    /// Whether the user says what a column becomes.
    pub fn has(&self, table: &str, column: &Column) -> bool {
        self.of(table, column).is_some()
    }

    /// Refuses what is said of a type or a column that no table has.
    pub fn check(&self, tables: &[Table]) -> Result<()> {
        let columns =
            || tables.iter().flat_map(|table| table.columns.iter().map(move |column| (&table.name, column)));
        let has_column = |name: &String| {
            columns()
                .any(|(table, column)| format!(".{name}").ends_with(&format!(".{table}.{}", column.name)))
        };
        let has_type = |name: &String| {
            let one = BTreeMap::from([(name.clone(), true)]);
            columns().any(|(_, column)| of_type(&one, &Declared::parse(&column.declared)).is_some())
        };
        let column = self.0.columns.keys().find(|name| !has_column(name)).map(|name| (name, "is no column"));
        let kind = self.0.types.keys().find(|name| !has_type(name)).map(|name| (name, "is no column's type"));
        column.or(kind).map_or(Ok(()), |(name, what)| {
            Err(Error::usage(format!("--cast: {name} {what}")).hint("--dry-run shows the tables"))
        })
    }
}

/// The entry of a type: with its numbers, or by its words.
fn of_type<'t, T>(types: &'t BTreeMap<String, T>, declared: &Declared) -> Option<&'t T> {
    let words = Declared { n: None, s: None, ..declared.clone() };
    [declared, &words].into_iter().find_map(|wanted| {
        types.iter().find(|(name, _)| Declared::parse(name) == *wanted).map(|(_, found)| found)
    })
}

/// What types of a source become on a target.
pub struct Casts<'a> {
    from: &'a Engine,
    to: &'a Engine,
    file: File,
    pub(crate) user: &'a UserCasts,
}

impl<'a> Casts<'a> {
    /// The table of two engines, and what the user says.
    pub fn new(from: &'a Engine, to: &'a Engine, user: &'a UserCasts) -> Result<Self> {
        let is = |engine: &Engine, name: &str| engine.name.eq_ignore_ascii_case(name);
        let found = FILES.iter().find(|(a, b, _)| is(from, a) && is(to, b)).map_or("", |(.., text)| text);
        let file = toml::from_str(found).map_err(|error| {
            Error::new(kurabe_core::ErrorKind::Internal, format!("{} to {}: {error}", from.name, to.name))
        })?;
        Ok(Self { from, to, file, user })
    }

    /// What a column becomes: by the user's word for the column or its type, or by the table of the two engines. `kind` is
    /// its type, perhaps corrected by its values; `limit` is the maximum length in an index.
    pub fn becomes(&self, table: &str, column: &Column, kind: &Kind, limit: Option<u32>) -> Option<Mapped> {
        let declared = Declared::parse(&kind.declared);
        let types = &self.file.types;
        let user = self.user.of(table, column);
        let known = || {
            let is_known = classes(self.from).any(|(name, _)| name == declared.base);
            types.get("known").filter(|_| is_known)
        };
        let alike = || types.get(self.from.dialect.type_of_unknown(&declared)?);
        let cast = user.or_else(|| of_type(types, &declared)).or_else(known).or_else(alike);
        let mapped = self.rendered(cast.or_else(|| types.get("*"))?, kind, kind.n)?;
        let Some(limit) = limit.filter(|_| user.is_none()) else { return Some(mapped) };
        let what = if mapped.stored.class.is_bytes() { "bytes" } else { "text" };
        let short = self.rendered(self.file.indexed.get(what)?, kind, limit)?;
        Some(Mapped { issue: mapped.issue, ..short })
    }

    /// What a column becomes some of whose decimal numbers have more digits than the target's.
    pub fn longer(&self, kind: &Kind) -> Option<Mapped> {
        self.rendered(self.file.longer.get("decimal")?, kind, kind.n)
    }

    fn rendered(&self, cast: &Cast, kind: &Kind, n: u32) -> Option<Mapped> {
        let (to, issue) = match cast {
            Cast::Always(to) => (to, None),
            Cast::One(rule) => (&rule.to, rule.lists),
            Cast::First(rules) => {
                let longest = self.to.longest_decimal.filter(|_| kind.class == Class::Decimal);
                let n = if longest.is_some_and(|(_, part)| kind.s > part) { UNLIMITED } else { n };
                let rule = rules.iter().find(|rule| n <= rule.upto.unwrap_or(UNLIMITED))?;
                (&rule.to, rule.lists)
            }
        };
        if to == "{declared}" {
            return Some(Mapped { sql: kind.declared.clone(), stored: kind.clone(), issue });
        }
        // MySQL has texts of no characters.
        let n = if kind.class.is_text() || kind.class.is_bytes() { n.max(1) } else { n };
        let sql = to.replace("{n}", &n.to_string()).replace("{s}", &kind.s.to_string());
        Some(Mapped::of(self.to, sql, issue))
    }
}

/// The built-in tables of engines whose names these are; all if there are none.
pub fn shown(names: &[&str]) -> String {
    let mut text = String::new();
    for (from, to, file) in FILES {
        if names.is_empty() || names.iter().zip([from, to]).all(|(name, of)| name.eq_ignore_ascii_case(of)) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "# {from} to {to}\n{file}");
        }
    }
    text
}
