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
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    types: BTreeMap<String, Cast>,
    #[serde(default)]
    columns: BTreeMap<String, Cast>,
    #[serde(default)]
    indexed: BTreeMap<String, Cast>,
    #[serde(default)]
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
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) if it is neither.
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
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) if it is not one.
    pub fn add_file(&mut self, text: &str) -> Result<()> {
        let file: File = toml::from_str(text).map_err(|error| Error::usage(error.to_string()))?;
        self.0.types.extend(file.types);
        self.0.columns.extend(file.columns);
        Ok(())
    }

    /// Sets the type of one column.
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
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage).
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
    user: &'a UserCasts,
}

impl<'a> Casts<'a> {
    /// The table of two engines, and what the user says.
    ///
    /// # Errors
    /// [`Internal`](kurabe_core::ErrorKind::Internal) if the built-in table cannot be read.
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

    /// Whether the user says what a column becomes.
    pub fn are_given(&self, table: &str, column: &Column) -> bool {
        self.user.has(table, column)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::kind_of;
    use crate::engines::{ALL, of_scheme};

    fn column(declared: &str) -> Column {
        Column {
            name: "c".to_owned(),
            declared: declared.to_owned(),
            nullable: true,
            default: crate::catalog::DefaultValue::Null,
            identity: false,
            collation: crate::catalog::Collation::Bytes,
            generated: None,
            next: None,
        }
    }

    fn becomes(from: &str, to: &str, user: &UserCasts, declared: &str, limit: Option<u32>) -> Mapped {
        let (from, to) = (of_scheme(from).unwrap(), of_scheme(to).unwrap());
        let casts = Casts::new(from, to, user).unwrap();
        casts.becomes("t", &column(declared), &kind_of(from, declared), limit).unwrap()
    }

    #[test]
    fn every_type_of_every_engine_has_a_line_in_every_table() {
        let user = UserCasts::default();
        for (from, to) in ALL.iter().flat_map(|from| ALL.iter().map(move |to| (*from, *to))) {
            let casts = Casts::new(from, to, &user).unwrap();
            if from.name == to.name && from.name != "MySQL" {
                continue;
            }
            let all = || casts.file.types.iter();
            for (name, _) in classes(from).filter(|(name, _)| !name.contains("character set u")) {
                let own = all().any(|(known, _)| known == name || known == "known");
                assert!(own || name.contains("set ascii"), "{} to {}: {name}", from.name, to.name);
                for declared in [name.to_owned(), format!("{name}(65535)")] {
                    let kind = kind_of(from, &declared);
                    let mapped = casts.becomes("t", &column(&declared), &kind, None).unwrap();
                    let is_known = mapped.stored.class != crate::types::Class::Native;
                    assert!(is_known, "{} to {}: {declared}, {mapped:?}", from.name, to.name);
                }
            }
            for (name, _) in all().filter(|(name, _)| !matches!(name.as_str(), "known" | "*")) {
                assert!(classes(from).any(|(known, _)| known == name), "{} has no {name}", from.name);
            }
        }
    }

    #[test]
    fn users_word_for_a_column_precedes_that_for_its_type_and_the_table() {
        let mut user = UserCasts::default();
        let sql = |user: &UserCasts, declared: &str| becomes("mysql", "postgres", user, declared, None).sql;
        assert_eq!(sql(&user, "tinyint(1)"), "smallint");
        user.add("tinyint(1)=boolean").unwrap();
        assert_eq!(
            (sql(&user, "tinyint(1)"), sql(&user, "TINYINT(4)")),
            ("boolean".into(), "smallint".into())
        );
        user.add_file("[types]\ntinyint = \"integer\"\n[columns]\n\"shop.t.d\" = \"text\"").unwrap();
        assert_eq!((sql(&user, "tinyint(1)"), sql(&user, "tinyint")), ("boolean".into(), "integer".into()));
        user.add("shop.t.c=numeric(12,2)").unwrap();
        assert_eq!(sql(&user, "tinyint(1)"), "numeric(12,2)");
        for wrong in ["boolean", "=boolean", "int="] {
            assert!(user.add(wrong).is_err(), "{wrong}");
        }
        assert!(user.add_file("[types]\nint = 5").is_err());
        let table = Table { name: "t".to_owned(), columns: vec![column("tinyint(1)")], ..Table::default() };
        let error = user.check(&[table]).unwrap_err().to_string();
        assert!(error.contains("shop.t.d is no column"), "{error}");
    }

    #[test]
    fn numbers_decide_between_lines_and_an_index_limits_text() {
        let user = UserCasts::default();
        for (from, to, declared, limit, sql, issue) in [
            ("mysql", "postgres", "bigint(20) unsigned", None, "numeric(20)", Some(IssueKind::Unsigned64)),
            ("mysql", "sqlite", "enum('a','b)')", None, "TEXT", Some(IssueKind::Enum)),
            ("postgres", "mysql", "numeric(66,2)", None, "decimal(65,30)", Some(IssueKind::Decimal)),
            ("postgres", "mysql", "numeric(40,31)", None, "decimal(65,30)", Some(IssueKind::Decimal)),
            ("postgres", "mysql", "text", Some(760), "varchar(760)", None),
            ("postgres", "mysql", "bytea", Some(380), "varbinary(380)", None),
            ("postgres", "mysql", "inet", Some(760), "varchar(760)", Some(IssueKind::Type)),
            ("sqlite", "postgres", "MONEY WORDS", None, "text", None),
            ("sqlite", "postgres", "unsigned big int", None, "bigint", None),
            ("mariadb", "mysql", "set('a')", None, "set('a')", None),
            ("mariadb", "mysql", "json(text)", None, "json", None),
            ("mariadb", "mysql", "inet6", None, "longtext", Some(IssueKind::Type)),
        ] {
            let mapped = becomes(from, to, &user, declared, limit);
            assert_eq!((mapped.sql.as_str(), mapped.issue), (sql, issue), "{from} to {to}: {declared}");
        }
    }
}
