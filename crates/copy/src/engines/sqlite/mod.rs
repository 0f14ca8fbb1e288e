//! SQLite. A column's declared type says what its values should be; [`crate::scan`] says what they are.

mod catalog;
mod types;

use super::{Engine, Identity, Keyless, TargetFacts};
use crate::catalog::{Catalog, Collation, Column, Table};
use crate::issue::IssueKind;
use crate::sql::{GAP, Side};
use crate::types::{Class, Declared, Kind, Mapped, Rule, UNLIMITED};
use kurabe_core::Result;

/// SQLite.
pub struct Sqlite;

impl Engine for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite"
    }

    fn schemes(&self) -> &'static [&'static str] {
        &["sqlite"]
    }

    fn longest_name(&self) -> usize {
        1_000
    }

    fn reading(&self) -> &'static [&'static str] {
        &["PRAGMA query_only = ON"]
    }

    /// The driver's own takes the write lock.
    fn begin_reading(&self) -> Option<&'static str> {
        Some("BEGIN DEFERRED")
    }

    fn writing(&self) -> &'static [&'static str] {
        &["PRAGMA foreign_keys = OFF"]
    }

    fn types(&self) -> &'static [(&'static str, Class)] {
        types::TYPES
    }

    /// By affinity ("Datatypes In SQLite", 3.1). A column of another type is one of text; [`crate::scan`] corrects that
    /// by its values.
    fn class_of_unknown(&self, declared: &Declared) -> Class {
        let has = |word: &str| declared.base.contains(word);
        match () {
            () if has("int") => Class::Int64,
            () if has("char") || has("clob") || has("text") => Class::Text,
            () if has("blob") || declared.base.is_empty() => Class::Blob,
            () if has("real") || has("floa") || has("doub") => Class::Float64,
            () => Class::Text,
        }
    }

    fn default_fraction(&self) -> u32 {
        6
    }

    fn default_decimal(&self) -> (u32, u32) {
        (UNLIMITED, 0)
    }

    fn rules(&self) -> &'static [Rule] {
        types::RULES
    }

    fn catalog(&self, side: &mut Side) -> Result<Catalog> {
        catalog::read(side)
    }

    fn read(&self, _: &Kind, column: &str) -> String {
        column.to_owned()
    }

    /// A parameter of a user's statement is bound as text or as an integer.
    fn write(&self, stored: &Kind) -> String {
        match stored.class {
            Class::Float32 | Class::Float64 => format!("CAST({GAP} AS REAL)"),
            class if class.is_bytes() => format!("CAST({GAP} AS BLOB)"),
            _ => GAP.to_string(),
        }
    }

    fn cannot_hold(&self, stored: &Kind) -> &'static [IssueKind] {
        match stored.class {
            Class::Float32 | Class::Float64 => &[IssueKind::NotANumber],
            _ => &[],
        }
    }

    fn has_unfit(&self, kind: &Kind, unfit: IssueKind, column: &str) -> Option<String> {
        match unfit {
            IssueKind::NulCharacter if kind.class.is_text() || kind.class == Class::Json => {
                Some(format!("instr(CAST({column} AS BLOB), x'00') > 0"))
            }
            IssueKind::ZeroDate | IssueKind::DateRange
                if matches!(kind.class, Class::Date | Class::Timestamp | Class::TimestampTz) =>
            {
                Some(format!(
                    "({column} NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' \
                     OR {column} LIKE '0000-%' OR {column} LIKE '____-00-%' OR {column} LIKE '____-__-00%')"
                ))
            }
            IssueKind::TimeRange if kind.class == Class::Time => {
                Some(format!("({column} NOT GLOB '[0-2][0-9]:*' OR {column} >= '24')"))
            }
            IssueKind::NotANumber if matches!(kind.class, Class::Float32 | Class::Float64) => {
                Some(format!("{column} IN (9e999, -9e999)"))
            }
            IssueKind::Fraction if kind.n > 4 => {
                Some(format!("{column} GLOB '*.[0-9][0-9][0-9][0-9]*[1-9]*'"))
            }
            _ => None,
        }
    }

    fn other_classes(&self, kind: &Kind, column: &str) -> Vec<(String, Class)> {
        let blob = (format!("typeof({column}) = 'blob'"), Class::Blob);
        let not = |classes: &str| format!("typeof({column}) NOT IN ({classes}, 'null')");
        let day = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]";
        let time = "[0-2][0-9]:[0-9][0-9]:[0-9][0-9]*";
        let no_match = |glob: &str| {
            format!(
                "(typeof({column}) <> 'text' AND {column} IS NOT NULL OR {column} NOT GLOB '{glob}' OR {column} GLOB '*[+Z]*')"
            )
        };
        match kind.class {
            Class::Blob => vec![(format!("typeof({column}) IN ('integer', 'real')"), Class::Text)],
            Class::Bool => vec![blob, (format!("{column} NOT IN (0, 1)"), Class::Text)],
            class if class.is_whole() => match class {
                Class::UInt64 => vec![blob],
                _ => vec![blob, (not("'integer'"), Class::Text)],
            },
            Class::Float32 | Class::Float64 => vec![blob, (not("'integer', 'real'"), Class::Text)],
            Class::Decimal if kind.declared.to_ascii_lowercase().contains("text") => vec![blob],
            Class::Decimal => vec![
                blob,
                (not("'integer', 'real'"), Class::Text),
                (format!("round({column}, {}) <> {column}", kind.s), Class::Float64),
            ],
            Class::Varchar if kind.n != UNLIMITED => {
                vec![blob, (format!("length({column}) > {}", kind.n), Class::Text)]
            }
            Class::Date => vec![blob, (no_match(day), Class::Text)],
            Class::Timestamp | Class::TimestampTz => {
                vec![blob, (no_match(&format!("{day} {time}")), Class::Text)]
            }
            Class::Json => vec![blob, (format!("json_valid({column}) = 0"), Class::Text)],
            Class::Uuid => vec![blob, (format!("length({column}) <> 36"), Class::Text)],
            _ => vec![blob],
        }
    }

    fn octets(&self, column: &str) -> String {
        format!("length(CAST({column} AS BLOB))")
    }

    fn characters(&self, column: &str) -> String {
        format!("length({column})")
    }

    fn keyless(&self) -> Keyless {
        Keyless::Hidden("rowid")
    }

    fn compares_rows(&self) -> bool {
        true
    }

    fn insert_limits(&self) -> (usize, usize) {
        (250, 30_000)
    }

    fn collate(&self, collation: &Collation, target: &TargetFacts, same: bool) -> String {
        match collation {
            Collation::Named(name) if same && target.collations.contains(name) => format!(" COLLATE {name}"),
            _ => String::new(),
        }
    }

    fn facts(&self, _: &mut Side) -> Result<TargetFacts> {
        let collations = ["NOCASE", "RTRIM"].map(str::to_owned).to_vec();
        Ok(TargetFacts { by_bytes: "BINARY".to_owned(), collations })
    }

    /// Only `INTEGER PRIMARY KEY` is given numbers, and `INTEGER` is then the type's exact name.
    fn identity(&self, table: &Table, column: &Column, _: &Mapped) -> Option<Identity> {
        let only = table.primary == [column.name.clone()];
        only.then_some(Identity { type_name: Some("INTEGER"), ..Identity::default() })
    }

    fn restart_identity(&self, _: &str, _: &str, _: i128) -> Option<String> {
        None
    }

    fn now(&self, _: &Kind) -> String {
        "CURRENT_TIMESTAMP".to_owned()
    }

    fn stores_times_as_text(&self) -> bool {
        true
    }

    fn foreign_keys_inline(&self) -> bool {
        true
    }

    fn final_check(&self) -> Option<&'static str> {
        Some("SELECT \"table\", rowid, parent FROM pragma_foreign_key_check")
    }
}
