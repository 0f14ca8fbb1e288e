//! Firebird 3.

use super::{Engine, Identity, TargetFacts};
use crate::catalog::{Catalog, Collation, Column, DefaultValue, ForeignKey, Table, read_default};
use crate::issue::IssueKind;
use crate::sql::{Row, Side, text};
use crate::types::{Class, Kind, Mapped, Rule, UNLIMITED, lossy, rule};
use kurabe_core::Result;

/// Firebird.
pub struct Firebird;

const TYPES: &[(&str, Class)] = &[
    ("boolean", Class::Bool),
    ("smallint", Class::Int16),
    ("integer", Class::Int32),
    ("bigint", Class::Int64),
    ("decimal", Class::Decimal),
    ("numeric", Class::Decimal),
    ("float", Class::Float32),
    ("double precision", Class::Float64),
    ("char", Class::Char),
    ("varchar", Class::Varchar),
    ("blob sub_type text", Class::Text),
    ("char character set octets", Class::Binary),
    ("varchar character set octets", Class::Varbinary),
    ("blob sub_type binary", Class::Blob),
    ("date", Class::Date),
    ("time", Class::Time),
    ("timestamp", Class::Timestamp),
];

const FRACTION: &str = "a time has four decimal digits of a second";
const RULES: &[Rule] = &[
    rule(Class::Bool, UNLIMITED, "BOOLEAN", Class::Bool),
    rule(Class::Int8, UNLIMITED, "SMALLINT", Class::Int16),
    rule(Class::Int16, UNLIMITED, "SMALLINT", Class::Int16),
    rule(Class::Int32, UNLIMITED, "INTEGER", Class::Int32),
    rule(Class::Int64, UNLIMITED, "BIGINT", Class::Int64),
    lossy(
        Class::UInt64,
        UNLIMITED,
        "VARCHAR(20) CHARACTER SET ASCII",
        Class::Varchar,
        IssueKind::Unsigned64,
        "Firebird's integers have a sign: text, which every value fits",
    ),
    rule(Class::Decimal, 18, "DECIMAL({n},{s})", Class::Decimal),
    lossy(
        Class::Decimal,
        UNLIMITED,
        "VARCHAR(2000) CHARACTER SET ASCII",
        Class::Varchar,
        IssueKind::Decimal,
        "a decimal number has at most 18 digits: text",
    ),
    rule(Class::Float32, UNLIMITED, "FLOAT", Class::Float32),
    rule(Class::Float64, UNLIMITED, "DOUBLE PRECISION", Class::Float64),
    rule(Class::Char, 255, "CHAR({n}) CHARACTER SET UTF8", Class::Char),
    rule(Class::Char, UNLIMITED, "BLOB SUB_TYPE TEXT CHARACTER SET UTF8", Class::Text),
    rule(Class::Varchar, 2_000, "VARCHAR({n}) CHARACTER SET UTF8", Class::Varchar),
    rule(Class::Varchar, UNLIMITED, "BLOB SUB_TYPE TEXT CHARACTER SET UTF8", Class::Text),
    rule(Class::Text, UNLIMITED, "BLOB SUB_TYPE TEXT CHARACTER SET UTF8", Class::Text),
    rule(Class::Binary, 8_000, "VARCHAR({n}) CHARACTER SET OCTETS", Class::Varbinary),
    rule(Class::Binary, UNLIMITED, "BLOB SUB_TYPE BINARY", Class::Blob),
    rule(Class::Varbinary, 8_000, "VARCHAR({n}) CHARACTER SET OCTETS", Class::Varbinary),
    rule(Class::Varbinary, UNLIMITED, "BLOB SUB_TYPE BINARY", Class::Blob),
    rule(Class::Blob, UNLIMITED, "BLOB SUB_TYPE BINARY", Class::Blob),
    rule(Class::Date, UNLIMITED, "DATE", Class::Date),
    rule(Class::Time, 4, "TIME", Class::Time),
    lossy(Class::Time, UNLIMITED, "TIME", Class::Time, IssueKind::Fraction, FRACTION),
    rule(Class::Timestamp, 4, "TIMESTAMP", Class::Timestamp),
    lossy(Class::Timestamp, UNLIMITED, "TIMESTAMP", Class::Timestamp, IssueKind::Fraction, FRACTION),
    lossy(
        Class::TimestampTz,
        UNLIMITED,
        "TIMESTAMP",
        Class::Timestamp,
        IssueKind::TimeZone,
        "a timestamp in UTC has no zone",
    ),
    rule(Class::Uuid, UNLIMITED, "CHAR(36) CHARACTER SET ASCII", Class::Char),
    rule(Class::Json, UNLIMITED, "BLOB SUB_TYPE TEXT CHARACTER SET UTF8", Class::Text),
    lossy(
        Class::Enum,
        UNLIMITED,
        "VARCHAR(255) CHARACTER SET UTF8",
        Class::Varchar,
        IssueKind::Enum,
        "the list of words is of the source only",
    ),
    lossy(Class::Bits, 63, "BIGINT", Class::Int64, IssueKind::Bits, "a bit field becomes an integer"),
    lossy(
        Class::Bits,
        UNLIMITED,
        "VARCHAR(20) CHARACTER SET ASCII",
        Class::Varchar,
        IssueKind::Bits,
        "a bit field becomes text",
    ),
    lossy(
        Class::Native,
        UNLIMITED,
        "BLOB SUB_TYPE TEXT CHARACTER SET UTF8",
        Class::Text,
        IssueKind::Type,
        "the type is of the source only: text here",
    ),
    lossy(
        Class::Geometry,
        UNLIMITED,
        "BLOB SUB_TYPE TEXT CHARACTER SET UTF8",
        Class::Text,
        IssueKind::Type,
        "a geometry becomes its text, without the number of its reference system",
    ),
];

impl Engine for Firebird {
    fn name(&self) -> &'static str {
        "Firebird"
    }

    fn schemes(&self) -> &'static [&'static str] {
        &["firebird"]
    }

    fn longest_name(&self) -> usize {
        31
    }

    fn reading(&self) -> &'static [&'static str] {
        &[]
    }

    fn writing(&self) -> &'static [&'static str] {
        &[]
    }

    fn types(&self) -> &'static [(&'static str, Class)] {
        TYPES
    }

    fn default_fraction(&self) -> u32 {
        4
    }

    fn default_decimal(&self) -> (u32, u32) {
        (9, 0)
    }

    fn rules(&self) -> &'static [Rule] {
        RULES
    }

    fn catalog(&self, side: &mut Side) -> Result<Catalog> {
        let mut catalog = Catalog::default();
        let sql = "SELECT TRIM(RDB$RELATION_NAME), IIF(RDB$VIEW_BLR IS NULL, 0, 1) FROM RDB$RELATIONS \
                   WHERE RDB$SYSTEM_FLAG = 0 ORDER BY 1";
        for row in side.rows(sql)? {
            let name = text(&row, 0);
            catalog.names.push(name.to_owned());
            if text(&row, 1) == "0" {
                catalog.tables.push(Table { name: name.to_owned(), ..Table::default() });
            } else {
                catalog.leave(IssueKind::View, None, name, "a view");
            }
        }
        columns(side, &mut catalog)?;
        indexes(side, &mut catalog)?;
        constraints(side, &mut catalog)?;
        let sql = "SELECT TRIM(RDB$RELATION_NAME), TRIM(RDB$TRIGGER_NAME) FROM RDB$TRIGGERS \
                   WHERE RDB$SYSTEM_FLAG = 0 AND RDB$RELATION_NAME IS NOT NULL ORDER BY 1, 2";
        for row in side.rows(sql)? {
            catalog.leave(IssueKind::Trigger, Some(text(&row, 0)), text(&row, 1), "a trigger");
        }
        Ok(catalog)
    }

    fn read(&self, kind: &Kind, column: &str) -> String {
        match kind.class {
            Class::Decimal => format!("CAST({column} AS VARCHAR(40))"),
            Class::Date | Class::Time | Class::Timestamp => format!("CAST({column} AS VARCHAR(30))"),
            Class::Bool => format!("IIF({column} IS NULL, NULL, IIF({column}, 1, 0))"),
            _ => column.to_owned(),
        }
    }

    fn cannot_hold(&self, stored: &Kind) -> &'static [IssueKind] {
        match stored.class {
            Class::Float32 | Class::Float64 | Class::Decimal => &[IssueKind::NotANumber],
            Class::Date => &[IssueKind::ZeroDate, IssueKind::DateRange],
            Class::Timestamp => &[IssueKind::ZeroDate, IssueKind::DateRange, IssueKind::Fraction],
            Class::Time => &[IssueKind::TimeRange, IssueKind::Fraction],
            _ => &[],
        }
    }

    fn has_unfit(&self, kind: &Kind, unfit: IssueKind, column: &str) -> Option<String> {
        match unfit {
            IssueKind::NulCharacter if kind.class.is_text() => {
                Some(format!("POSITION(x'00' IN CAST({column} AS BLOB SUB_TYPE BINARY)) > 0"))
            }
            _ => None,
        }
    }

    fn octets(&self, column: &str) -> String {
        format!("OCTET_LENGTH({column})")
    }

    /// The client waits for each statement's answer, and a statement has few parameters.
    fn insert_limits(&self) -> (usize, usize) {
        (1, 250)
    }

    fn collate(&self, _: &Collation, _: &TargetFacts, _: bool) -> String {
        String::new()
    }

    fn one_row(&self) -> &'static str {
        " FROM RDB$DATABASE"
    }

    /// Integers only: an unsigned 64-bit integer of another engine has another type here.
    fn identity(&self, _: &Table, _: &Column, mapped: &Mapped) -> Option<Identity> {
        let is_integer = matches!(mapped.stored.class, Class::Int16 | Class::Int32 | Class::Int64);
        is_integer.then_some(Identity { before: " GENERATED BY DEFAULT AS IDENTITY", ..Identity::default() })
    }

    fn foreign_keys_have_one_type(&self) -> bool {
        true
    }

    /// Its own checks at once, too.
    fn action<'a>(&self, action: &'a str) -> &'a str {
        if action == "RESTRICT" { "NO ACTION" } else { action }
    }

    fn restart_identity(&self, table: &str, column: &str, next: i128) -> Option<String> {
        // The next number is one more than this.
        Some(format!("ALTER TABLE {table} ALTER COLUMN {column} RESTART WITH {}", next - 1))
    }

    fn now(&self, _: &Kind) -> String {
        "CURRENT_TIMESTAMP".to_owned()
    }

    /// An index entry has at most a quarter of a page, and a character four bytes.
    fn longest_key(&self) -> Option<u32> {
        Some(250)
    }
}

/// A type's text, from the numbers of `RDB$FIELDS`.
fn declared(row: &Row) -> String {
    let number = |at: usize| text(row, at).parse::<i64>().unwrap_or(0);
    let (kind, sub_type, scale, precision) = (number(3), number(4), -number(5), number(6));
    let (characters, charset) = (number(7), number(8));
    let exact = |name: &str| {
        if scale > 0 || sub_type > 0 {
            format!("numeric({},{scale})", precision.max(1))
        } else {
            name.to_owned()
        }
    };
    // RDB$CHARACTER_SETS: 1 is OCTETS.
    let octets = if charset == 1 { " character set octets" } else { "" };
    match kind {
        7 => exact("smallint"),
        8 => exact("integer"),
        16 => exact("bigint"),
        10 => "float".to_owned(),
        27 => "double precision".to_owned(),
        12 => "date".to_owned(),
        13 => "time".to_owned(),
        35 => "timestamp".to_owned(),
        23 => "boolean".to_owned(),
        14 => format!("char({characters}){octets}"),
        37 => format!("varchar({characters}){octets}"),
        261 if sub_type == 1 => "blob sub_type text".to_owned(),
        261 => "blob sub_type binary".to_owned(),
        other => format!("type {other}"),
    }
}

fn columns(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT TRIM(r.RDB$RELATION_NAME), TRIM(r.RDB$FIELD_NAME), COALESCE(r.RDB$NULL_FLAG, f.RDB$NULL_FLAG, 0), \
               f.RDB$FIELD_TYPE, COALESCE(f.RDB$FIELD_SUB_TYPE, 0), COALESCE(f.RDB$FIELD_SCALE, 0), \
               COALESCE(f.RDB$FIELD_PRECISION, 0), COALESCE(f.RDB$CHARACTER_LENGTH, f.RDB$FIELD_LENGTH), \
               COALESCE(f.RDB$CHARACTER_SET_ID, 0), CAST(r.RDB$DEFAULT_SOURCE AS VARCHAR(2000)), \
               CAST(f.RDB$COMPUTED_SOURCE AS VARCHAR(2000)), COALESCE(r.RDB$IDENTITY_TYPE, -1), \
               COALESCE(r.RDB$COLLATION_ID, f.RDB$COLLATION_ID, 0) \
               FROM RDB$RELATION_FIELDS r JOIN RDB$FIELDS f ON f.RDB$FIELD_NAME = r.RDB$FIELD_SOURCE \
               WHERE r.RDB$SYSTEM_FLAG = 0 ORDER BY r.RDB$RELATION_NAME, r.RDB$FIELD_POSITION";
    for row in side.rows(sql)? {
        let default = text(&row, 9).trim();
        let default = default
            .get(..8)
            .filter(|word| word.eq_ignore_ascii_case("default "))
            .map_or("", |_| &default[8..]);
        let column = Column {
            name: text(&row, 1).to_owned(),
            declared: declared(&row),
            nullable: text(&row, 2) == "0",
            default: if default.is_empty() { DefaultValue::Null } else { read_default(default) },
            identity: text(&row, 11) != "-1",
            collation: match text(&row, 12) {
                "0" => Collation::Bytes,
                number => Collation::Named(format!("collation {number}")),
            },
            generated: row.get(10).cloned().flatten(),
            next: None,
        };
        if let Some(table) = catalog.table_mut(text(&row, 0)) {
            table.columns.push(column);
        }
    }
    Ok(())
}

fn indexes(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT TRIM(i.RDB$RELATION_NAME), TRIM(i.RDB$INDEX_NAME), COALESCE(i.RDB$UNIQUE_FLAG, 0), \
               TRIM(s.RDB$FIELD_NAME), IIF(i.RDB$EXPRESSION_BLR IS NULL, 0, 1), TRIM(c.RDB$CONSTRAINT_TYPE) \
               FROM RDB$INDICES i LEFT JOIN RDB$INDEX_SEGMENTS s ON s.RDB$INDEX_NAME = i.RDB$INDEX_NAME \
               LEFT JOIN RDB$RELATION_CONSTRAINTS c ON c.RDB$INDEX_NAME = i.RDB$INDEX_NAME \
               WHERE i.RDB$SYSTEM_FLAG = 0 ORDER BY 1, 2, s.RDB$FIELD_POSITION";
    for row in side.rows(sql)? {
        let (table, name) = (text(&row, 0), text(&row, 1));
        match text(&row, 5) {
            _ if text(&row, 4) == "1" => {
                catalog.leave(IssueKind::ExpressionIndex, Some(table), name, "an index on an expression");
            }
            "PRIMARY KEY" => {
                if let Some(table) = catalog.table_mut(table) {
                    table.primary.push(text(&row, 3).to_owned());
                }
            }
            "FOREIGN KEY" => {}
            _ => catalog.add_to_index(table, name, text(&row, 2) == "1", text(&row, 3).to_owned()),
        }
    }
    Ok(())
}

fn constraints(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT TRIM(c.RDB$RELATION_NAME), TRIM(c.RDB$CONSTRAINT_NAME), TRIM(s.RDB$FIELD_NAME), \
               TRIM(p.RDB$RELATION_NAME), TRIM(q.RDB$FIELD_NAME), TRIM(r.RDB$UPDATE_RULE), TRIM(r.RDB$DELETE_RULE) \
               FROM RDB$RELATION_CONSTRAINTS c JOIN RDB$REF_CONSTRAINTS r ON r.RDB$CONSTRAINT_NAME = c.RDB$CONSTRAINT_NAME \
               JOIN RDB$RELATION_CONSTRAINTS p ON p.RDB$CONSTRAINT_NAME = r.RDB$CONST_NAME_UQ \
               JOIN RDB$INDEX_SEGMENTS s ON s.RDB$INDEX_NAME = c.RDB$INDEX_NAME \
               JOIN RDB$INDEX_SEGMENTS q ON q.RDB$INDEX_NAME = p.RDB$INDEX_NAME AND q.RDB$FIELD_POSITION = s.RDB$FIELD_POSITION \
               ORDER BY 1, 2, s.RDB$FIELD_POSITION";
    for row in side.rows(sql)? {
        let name = text(&row, 1);
        let Some(table) = catalog.table_mut(text(&row, 0)) else { continue };
        let at = table.foreign.iter().position(|key| key.name == name).unwrap_or_else(|| {
            let rule = |at| match text(&row, at) {
                "RESTRICT" => "NO ACTION".to_owned(),
                other => other.to_owned(),
            };
            table.foreign.push(ForeignKey {
                name: name.to_owned(),
                columns: Vec::new(),
                parent: text(&row, 3).to_owned(),
                parent_columns: Vec::new(),
                on_update: rule(5),
                on_delete: rule(6),
                proven: true,
            });
            table.foreign.len() - 1
        });
        table.foreign[at].columns.push(text(&row, 2).to_owned());
        table.foreign[at].parent_columns.push(text(&row, 4).to_owned());
    }
    let sql = "SELECT TRIM(RDB$RELATION_NAME), TRIM(RDB$CONSTRAINT_NAME) FROM RDB$RELATION_CONSTRAINTS \
               WHERE RDB$CONSTRAINT_TYPE = 'CHECK' ORDER BY 1, 2";
    for row in side.rows(sql)? {
        catalog.leave(IssueKind::Check, Some(text(&row, 0)), text(&row, 1), "a check constraint");
    }
    Ok(())
}
