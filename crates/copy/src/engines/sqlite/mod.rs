//! SQLite. A column's declared type says what its values should be; [`crate::scan`] says what they are.

mod catalog;

use super::engine::{Dialect, Engine, Expression};
use super::facts::{Identity, TargetFacts};
use super::queries::expression;
use crate::canonical::from_hex;
use crate::catalog::{Collation, Column, Table};
use crate::issue::IssueKind;
use crate::page::{Cell, Encoded};
use crate::script::mask;
use crate::sql::{GAP, Side};
use crate::types::{Class, Declared, Kind, Mapped, UNLIMITED};
use crate::verify::form::Shape;
use kurabe_core::value::Value;
use kurabe_core::{Error, Result};
use std::os::unix::fs::MetadataExt as _;

/// What tells a table that a copy made from one that the user made anew: a comment in its text, which goes with it. The query
/// `identity_of` finds it.
const MARK: &str = "/* kurabe copy ";

pub(super) static SQLITE: Engine = Engine {
    longest_name: 1_000,
    syntax: kurabe_protocol::sql::Dialect::SQLITE,
    reading: &["PRAGMA query_only = ON"],
    // The driver's own takes the write lock.
    begin_reading: Some("BEGIN DEFERRED"),
    writing: &["PRAGMA foreign_keys = OFF"],
    has_one_writer: true,
    is_loose: true,
    // A type whose name ends in `_TEXT` has the affinity TEXT, so that its values stay as they are written, and says what the text is.
    stored_class: |kind| {
        if Declared::parse(&kind.declared).base.ends_with("_text") { Class::Text } else { kind.class }
    },
    exact_class: |_| Class::Native,
    octets: |column| format!("length(CAST({column} AS BLOB))"),
    characters: |column| format!("length({column})"),
    insert_limits: (250, 30_000),
    foreign_keys_inline: true,
    mark: Some(|sql, id| {
        let at = mask(&SQLITE, sql).0.find('(').map_or(sql.len(), |at| at + 1);
        format!("{}{MARK}{id} */{}", &sql[..at], &sql[at..])
    }),
    ..Engine::of("SQLite", &["sqlite"], &Sqlite, catalog::read)
};

struct Sqlite;

impl Dialect for Sqlite {
    fn set(&self, side: &mut Side, settings: &[[String; 2]]) -> Result<()> {
        settings.iter().try_for_each(|[name, value]| side.run(&format!("PRAGMA {name} = {value}")))
    }

    /// The file, whatever its names are.
    fn place(&self, side: &mut Side) -> Result<Option<[String; 2]>> {
        let path =
            side.value("SELECT file FROM pragma_database_list WHERE name = 'main'")?.unwrap_or_default();
        let path = std::fs::metadata(&path).map_or(path, |found| format!("{} {}", found.dev(), found.ino()));
        Ok(Some([path, String::new()]).filter(|[path, _]| !path.is_empty()))
    }

    /// In WAL mode, others may commit between two transactions. Otherwise the first one keeps them waiting.
    fn begin_together(&self, sides: &mut [&mut Side], _: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        for side in sides {
            side.begin_reading()?;
            if side.value("PRAGMA journal_mode")?.as_deref() == Some("wal") {
                return Err(Error::unsupported("several sessions have no common view of a file in WAL mode")
                    .hint("use --jobs 1"));
            }
            side.number("SELECT COUNT(*) FROM sqlite_schema")?;
        }
        Ok(())
    }

    fn hinders(&self, source: &mut Side) -> Result<Option<&'static str>> {
        let mode = source.value("PRAGMA journal_mode")?.unwrap_or_default();
        let why =
            "writers of the source wait until the copy ends; with PRAGMA journal_mode = WAL they would not";
        Ok((mode != "wal").then_some(why))
    }

    /// By affinity ("Datatypes In SQLite", 3.1). A column of another type is one of text; [`crate::scan`] corrects that
    /// by its values.
    fn type_of_unknown(&self, declared: &Declared) -> Option<&'static str> {
        let has = |word: &str| declared.base.contains(word);
        Some(match () {
            () if has("int") => "bigint",
            () if has("char") || has("clob") || has("text") => "text",
            () if has("blob") || declared.base.is_empty() => "blob",
            () if has("real") || has("floa") || has("doub") => "double",
            () => "text",
        })
    }

    fn comment(&self, _: &str, _: Option<(&str, &str)>, _: &str) -> Option<String> {
        None
    }

    fn read(&self, kind: &Kind, column: &str) -> String {
        match kind.class {
            Class::Native => expression("sqlite", "with_storage_class", column),
            _ => column.to_owned(),
        }
    }

    /// The storage class, and the bytes of the value, which may be no UTF-8. No function writes every real number exactly.
    fn check(&self, _: &Kind, _: bool, x: &str) -> (Shape, String) {
        (Shape::Tagged, expression("sqlite", "tagged", x))
    }

    fn compared(&self, _: &Kind, field: Cell<'_>) -> String {
        match () {
            () if is_real(field) => format!("CAST({GAP} AS REAL)"),
            () if is_no_utf8(field) => format!("CAST({GAP} AS TEXT)"),
            () => GAP.to_string(),
        }
    }

    fn as_read<'a>(&self, field: Cell<'a>) -> Result<Encoded<'a>> {
        Ok(Encoded::Value(match field {
            // Bytes that the statement makes a text of, where they are no UTF-8.
            Cell::Bytes([b't', text @ ..]) => Cell::Bytes(text).value(),
            Cell::Bytes([b'x', digits @ ..]) => return Ok(Encoded::Bytes(from_hex(digits)?)),
            // Infinity has no literal.
            Cell::Bytes(b"inf") => Value::Text("9e999"),
            Cell::Bytes(b"-inf") => Value::Text("-9e999"),
            field => field.value(),
        }))
    }

    /// A column with an affinity makes a number of the text of one. Others keep what they are given.
    fn write_alone(&self, stored: &Kind, cell: Cell<'_>) -> Option<String> {
        let name = stored.declared.to_ascii_lowercase();
        let keeps = name.trim().is_empty() || name == "any" || name.contains("blob");
        match () {
            () if stored.class != Class::Native => None,
            () if keeps && is_real(cell) => Some(format!("CAST({GAP} AS REAL)")),
            () => is_no_utf8(cell).then(|| format!("CAST({GAP} AS TEXT)")),
        }
    }

    /// A parameter of a user's statement is bound as text or as an integer.
    fn write(&self, stored: &Kind) -> String {
        match stored.class {
            Class::Float32 | Class::Float64 => format!("CAST({GAP} AS REAL)"),
            class if class.is_bytes() => format!("CAST({GAP} AS BLOB)"),
            _ => GAP.to_string(),
        }
    }

    fn cannot_hold(&self, stored: &Kind) -> Option<IssueKind> {
        matches!(stored.class, Class::Float32 | Class::Float64).then_some(IssueKind::NotANumber)
    }

    fn other_forms(&self, kind: &Kind, column: &str) -> Vec<(String, &'static str)> {
        let name = match kind.class {
            Class::Bool => "no_bool",
            Class::UInt64 => "no_unsigned",
            Class::Decimal if kind.declared.to_ascii_lowercase().contains("text") => "no_decimal",
            Class::Decimal => {
                let whole = if kind.n == UNLIMITED { 1_000 } else { kind.n.saturating_sub(kind.s) };
                let digits =
                    if whole > 300 { String::new() } else { format!(" OR abs({column}) >= 1e{whole}") };
                return vec![(format!("round({column}, {}) <> {column}{digits}", kind.s), "double")];
            }
            Class::Float32 | Class::Float64 => "no_double",
            Class::Varchar if kind.n != UNLIMITED => {
                return vec![(format!("length({column}) > {}", kind.n), "text")];
            }
            Class::Date => "no_date",
            Class::Timestamp | Class::TimestampTz => "no_timestamp",
            Class::Time => "no_time",
            Class::Json => "no_json",
            Class::Uuid => "no_uuid",
            _ => return Vec::new(),
        };
        vec![(expression("sqlite", name, column), "text")]
    }

    fn maybe_not_utf8(&self, _: &mut Side) -> Result<Option<Expression>> {
        Ok(Some(|x| expression("sqlite", "maybe_not_utf8", x)))
    }

    fn collate(&self, collation: &Collation, target: &TargetFacts, same: bool) -> String {
        match collation {
            Collation::Named(name) if same && target.collations.contains(name) => format!(" COLLATE {name}"),
            _ => String::new(),
        }
    }

    fn facts(&self, _: &mut Side) -> Result<TargetFacts> {
        let collations = ["NOCASE", "RTRIM"].map(str::to_owned).to_vec();
        Ok(TargetFacts { collations, folds_tables: true, folds_columns: true, ..TargetFacts::default() })
    }

    /// Only `INTEGER PRIMARY KEY` is given numbers, and `INTEGER` is then the type's exact name.
    fn identity(&self, table: &Table, column: &Column, _: &Mapped) -> Option<Identity> {
        let only = table.primary == [column.name.clone()];
        only.then_some(Identity { type_name: Some("INTEGER"), ..Identity::default() })
    }
}

/// Whether a field that was read with its storage class is a text of other bytes than UTF-8.
fn is_no_utf8(field: Cell<'_>) -> bool {
    matches!(field, Cell::Bytes([b't', text @ ..]) if std::str::from_utf8(text).is_err())
}

/// Whether a field that was read with its storage class is a floating-point number.
fn is_real(field: Cell<'_>) -> bool {
    matches!(field, Cell::Bytes(bytes) if !matches!(bytes.first(), Some(b't' | b'x')))
}
