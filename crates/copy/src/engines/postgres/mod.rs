//! PostgreSQL.

mod catalog;

use super::{Engine, Identity, TargetFacts};
use crate::catalog::{Catalog, Collation, Column, Table};
use crate::issue::IssueKind;
use crate::sql::{Side, quoted, text};
use crate::types::{Class, Kind, Mapped, UNLIMITED};
use kurabe_core::Result;

/// PostgreSQL.
pub struct Postgres;

impl Engine for Postgres {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn schemes(&self) -> &'static [&'static str] {
        &["postgres", "postgresql"]
    }

    fn longest_name(&self) -> usize {
        63
    }

    fn reading(&self) -> &'static [&'static str] {
        &[
            "SET DateStyle TO ISO, YMD",
            // A large table takes as long as it takes.
            "SET statement_timeout TO 0",
            "SET idle_in_transaction_session_timeout TO 0",
            "SET IntervalStyle TO postgres",
            "SET TimeZone TO 'UTC'",
            "SET extra_float_digits TO 1",
            "SET bytea_output TO hex",
            // The server refuses to read a table of which a policy hides rows.
            "SET row_security TO off",
            // A whole table in the order of its key: the index gives its first rows at once, and needs no space.
            "SET enable_sort TO off",
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        ]
    }

    fn writing(&self) -> &'static [&'static str] {
        &[
            "SET DateStyle TO ISO, YMD",
            // A large table takes as long as it takes.
            "SET statement_timeout TO 0",
            "SET idle_in_transaction_session_timeout TO 0",
            "SET IntervalStyle TO postgres",
            "SET TimeZone TO 'UTC'",
            "SET extra_float_digits TO 1",
            "SET bytea_output TO hex",
        ]
    }

    fn default_fraction(&self) -> u32 {
        6
    }

    fn default_decimal(&self) -> (u32, u32) {
        (UNLIMITED, 0)
    }

    fn catalog(&self, side: &mut Side) -> Result<Catalog> {
        catalog::read(side)
    }

    fn read(&self, kind: &Kind, column: &str) -> String {
        match kind.class {
            Class::Int16 | Class::Int32 | Class::Int64 => column.to_owned(),
            _ => format!("{column}::text"),
        }
    }

    fn from(&self, table: &Table) -> String {
        format!("{}{}", if table.inherited { "ONLY " } else { "" }, quoted(self, &table.name))
    }

    /// Also for columns whose numbers are always the server's.
    fn overriding(&self) -> &'static str {
        " OVERRIDING SYSTEM VALUE"
    }

    fn characters(&self, column: &str) -> String {
        format!("char_length({column}::text)")
    }

    fn bytes_as_hex(&self) -> bool {
        true
    }

    fn cannot_hold(&self, stored: &Kind) -> &'static [IssueKind] {
        match stored.class {
            Class::Char | Class::Varchar | Class::Text | Class::Json => &[IssueKind::NulCharacter],
            Class::Date | Class::Timestamp | Class::TimestampTz => &[IssueKind::ZeroDate],
            Class::Time => &[IssueKind::TimeRange],
            _ => &[],
        }
    }

    fn has_unfit(&self, kind: &Kind, unfit: IssueKind, column: &str) -> Option<String> {
        match (unfit, kind.class) {
            (IssueKind::DateRange, Class::Date | Class::Timestamp | Class::TimestampTz) => {
                Some(format!("({column} < '0001-01-01' OR {column} >= '10000-01-01')"))
            }
            (IssueKind::NotANumber, Class::Float32 | Class::Float64 | Class::Decimal) => {
                Some(format!("{column}::text IN ('NaN', 'Infinity', '-Infinity')"))
            }
            (IssueKind::TimeRange, Class::Time) => Some(format!("{column} >= '24:00:00'")),
            (IssueKind::Fraction, Class::Time | Class::Timestamp | Class::TimestampTz) if kind.n > 4 => {
                Some(format!("EXTRACT(microseconds FROM {column})::int8 % 100 <> 0"))
            }
            _ => None,
        }
    }

    fn octets(&self, column: &str) -> String {
        format!("octet_length({column}::text)")
    }

    fn insert_limits(&self) -> (usize, usize) {
        (500, 20_000)
    }

    fn load_text(&self, table: &str, columns: &str) -> Option<String> {
        Some(format!("COPY {table} ({columns}) FROM STDIN"))
    }

    fn collate(&self, collation: &Collation, target: &TargetFacts, same: bool) -> String {
        match collation {
            Collation::Bytes | Collation::Binary(_) => " COLLATE \"C\"".to_owned(),
            Collation::Named(name) if same && target.collations.contains(name) => {
                format!(" COLLATE {}", quoted(self, name))
            }
            Collation::Named(_) => String::new(),
        }
    }

    fn facts(&self, side: &mut Side) -> Result<TargetFacts> {
        let rows = side.rows("SELECT collname::text FROM pg_catalog.pg_collation")?;
        let mut collations: Vec<String> = rows.iter().map(|row| text(row, 0).to_owned()).collect();
        if let Collation::Named(own) | Collation::Binary(own) = catalog::of_database(side)? {
            collations.push(own);
        }
        let rows = side.rows("SELECT pg_catalog.format_type(oid, NULL)::text FROM pg_catalog.pg_type")?;
        let types = rows.iter().map(|row| text(row, 0).to_owned()).collect();
        Ok(TargetFacts { by_bytes: "C".to_owned(), collations, types, ..TargetFacts::default() })
    }

    /// Integers only: an unsigned 64-bit integer of another engine has another type here.
    fn identity(&self, _: &Table, _: &Column, mapped: &Mapped) -> Option<Identity> {
        let is_integer = matches!(mapped.stored.class, Class::Int16 | Class::Int32 | Class::Int64);
        is_integer.then_some(Identity { before: " GENERATED BY DEFAULT AS IDENTITY", ..Identity::default() })
    }

    fn restart_identity(&self, table: &str, column: &str, next: i128) -> Option<String> {
        Some(format!("ALTER TABLE {table} ALTER COLUMN {column} RESTART WITH {next}"))
    }

    fn now(&self, stored: &Kind) -> String {
        match stored.class {
            Class::TimestampTz => "CURRENT_TIMESTAMP".to_owned(),
            _ => "LOCALTIMESTAMP".to_owned(),
        }
    }
}
