//! MySQL and MariaDB.

use super::{Engine, Identity, Keyless, TargetFacts};
use crate::catalog::{Catalog, Collation, Column, DefaultValue, ForeignKey, Table, read_default};
use crate::issue::IssueKind;
use crate::sql::{GAP, Side, text};
use crate::types::{Class, Kind, Mapped, Rule, UNLIMITED, lossy, rule};
use kurabe_core::Result;

/// MySQL and MariaDB.
pub struct Mysql;

/// Collations that compare text by bytes, including trailing spaces: MariaDB since 10.2, MySQL since 8.0.17; then that
/// of every version, which ignores trailing spaces.
const BY_BYTES: [&str; 3] = ["utf8mb4_nopad_bin", "utf8mb4_0900_bin", "utf8mb4_bin"];

const TYPES: &[(&str, Class)] = &[
    ("tinyint", Class::Int8),
    ("tinyint unsigned", Class::Int16),
    ("smallint", Class::Int16),
    ("smallint unsigned", Class::Int32),
    ("mediumint", Class::Int32),
    ("mediumint unsigned", Class::Int32),
    ("int", Class::Int32),
    ("int unsigned", Class::Int64),
    ("bigint", Class::Int64),
    ("bigint unsigned", Class::UInt64),
    ("decimal", Class::Decimal),
    ("decimal unsigned", Class::Decimal),
    ("float", Class::Float32),
    ("float unsigned", Class::Float32),
    ("double", Class::Float64),
    ("double unsigned", Class::Float64),
    ("char", Class::Char),
    ("varchar", Class::Varchar),
    ("tinytext", Class::Text),
    ("text", Class::Text),
    ("mediumtext", Class::Text),
    ("longtext", Class::Text),
    ("binary", Class::Binary),
    ("varbinary", Class::Varbinary),
    ("tinyblob", Class::Blob),
    ("blob", Class::Blob),
    ("mediumblob", Class::Blob),
    ("longblob", Class::Blob),
    ("date", Class::Date),
    ("time", Class::Time),
    ("datetime", Class::Timestamp),
    ("timestamp", Class::TimestampTz),
    ("year", Class::Int16),
    ("json", Class::Json),
    ("uuid", Class::Uuid),
    ("enum", Class::Enum),
    ("set", Class::Enum),
    ("bit", Class::Bits),
];

const RULES: &[Rule] = &[
    rule(Class::Bool, UNLIMITED, "tinyint(1)", Class::Int8),
    rule(Class::Int8, UNLIMITED, "tinyint", Class::Int8),
    rule(Class::Int16, UNLIMITED, "smallint", Class::Int16),
    rule(Class::Int32, UNLIMITED, "int", Class::Int32),
    rule(Class::Int64, UNLIMITED, "bigint", Class::Int64),
    rule(Class::UInt64, UNLIMITED, "bigint unsigned", Class::UInt64),
    rule(Class::Decimal, 65, "decimal({n},{s})", Class::Decimal),
    lossy(
        Class::Decimal,
        UNLIMITED,
        "decimal(65,30)",
        Class::Decimal,
        IssueKind::Decimal,
        "a decimal number has at most 65 digits, 30 of them after the point; a larger one stops the copy",
    ),
    rule(Class::Float32, UNLIMITED, "float", Class::Float32),
    rule(Class::Float64, UNLIMITED, "double", Class::Float64),
    rule(Class::Char, 255, "char({n})", Class::Char),
    rule(Class::Char, UNLIMITED, "longtext", Class::Text),
    rule(Class::Varchar, 4_000, "varchar({n})", Class::Varchar),
    rule(Class::Varchar, UNLIMITED, "longtext", Class::Text),
    rule(Class::Text, UNLIMITED, "longtext", Class::Text),
    rule(Class::Binary, 255, "binary({n})", Class::Binary),
    rule(Class::Binary, UNLIMITED, "longblob", Class::Blob),
    rule(Class::Varbinary, 4_000, "varbinary({n})", Class::Varbinary),
    rule(Class::Varbinary, UNLIMITED, "longblob", Class::Blob),
    rule(Class::Blob, UNLIMITED, "longblob", Class::Blob),
    rule(Class::Date, UNLIMITED, "date", Class::Date),
    rule(Class::Time, 6, "time({n})", Class::Time),
    rule(Class::Time, UNLIMITED, "time(6)", Class::Time),
    rule(Class::Timestamp, 6, "datetime({n})", Class::Timestamp),
    rule(Class::Timestamp, UNLIMITED, "datetime(6)", Class::Timestamp),
    lossy(
        Class::TimestampTz,
        6,
        "datetime({n})",
        Class::Timestamp,
        IssueKind::TimeZone,
        "timestamp ends in 2038; a datetime in UTC has no zone",
    ),
    lossy(
        Class::TimestampTz,
        UNLIMITED,
        "datetime(6)",
        Class::Timestamp,
        IssueKind::TimeZone,
        "timestamp ends in 2038; a datetime in UTC has no zone",
    ),
    rule(Class::Uuid, UNLIMITED, "char(36)", Class::Char),
    rule(Class::Json, UNLIMITED, "json", Class::Json),
    lossy(
        Class::Enum,
        UNLIMITED,
        "varchar(255)",
        Class::Varchar,
        IssueKind::Enum,
        "the list of words is of the source only",
    ),
    lossy(Class::Bits, 64, "bit({n})", Class::Bits, IssueKind::Bits, "a bit field of another engine"),
    lossy(
        Class::Bits,
        UNLIMITED,
        "longtext",
        Class::Text,
        IssueKind::Bits,
        "a bit field has at most 64 bits",
    ),
    lossy(
        Class::Native,
        UNLIMITED,
        "longtext",
        Class::Text,
        IssueKind::Type,
        "the type is of the source only: text here",
    ),
];

impl Engine for Mysql {
    fn name(&self) -> &'static str {
        "MySQL"
    }

    fn schemes(&self) -> &'static [&'static str] {
        &["mysql", "mariadb"]
    }

    fn quote(&self) -> char {
        '`'
    }

    fn longest_name(&self) -> usize {
        64
    }

    fn reading(&self) -> &'static [&'static str] {
        &[
            "SET SESSION sql_mode = ''",
            "SET SESSION time_zone = '+00:00'",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "SET SESSION TRANSACTION READ ONLY",
        ]
    }

    /// Zero dates and zeros in columns whose numbers the server gives are stored as they are. Foreign keys are checked
    /// when they are added.
    fn writing(&self) -> &'static [&'static str] {
        &[
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'",
            "SET SESSION time_zone = '+00:00'",
        ]
    }

    fn types(&self) -> &'static [(&'static str, Class)] {
        TYPES
    }

    fn default_fraction(&self) -> u32 {
        0
    }

    fn default_decimal(&self) -> (u32, u32) {
        (10, 0)
    }

    fn rules(&self) -> &'static [Rule] {
        RULES
    }

    fn catalog(&self, side: &mut Side) -> Result<Catalog> {
        let mut catalog = Catalog::default();
        tables(side, &mut catalog)?;
        columns(side, &mut catalog)?;
        indexes(side, &mut catalog)?;
        foreign_keys(side, &mut catalog)?;
        checks(side, &mut catalog)?;
        let triggers = "SELECT trigger_name, event_object_table, action_statement FROM information_schema.triggers \
                        WHERE trigger_schema = DATABASE() ORDER BY 2, 1";
        for row in side.rows(triggers)? {
            catalog.leave(IssueKind::Trigger, Some(text(&row, 1)), text(&row, 0), text(&row, 2));
        }
        Ok(catalog)
    }

    /// Integers, floating-point numbers, bytes and text come as they are. All else is text: a date may be one that no
    /// calendar has, and an unsigned integer may have 64 bits.
    fn read(&self, kind: &Kind, column: &str) -> String {
        match kind.class {
            Class::UInt64 | Class::Date | Class::Time | Class::Timestamp | Class::TimestampTz => {
                format!("CAST({column} AS CHAR)")
            }
            Class::Bits => format!("CAST(CAST({column} AS UNSIGNED) AS CHAR)"),
            _ => column.to_owned(),
        }
    }

    fn write(&self, stored: &Kind) -> String {
        match stored.class {
            Class::Bits => format!("CAST({GAP} AS UNSIGNED)"),
            _ => GAP.to_string(),
        }
    }

    /// A number is not compared with text, which would make both floating-point.
    fn compared(&self, stored: &Kind) -> String {
        match stored.class {
            Class::UInt64 | Class::Bits => format!("CAST({GAP} AS UNSIGNED)"),
            Class::Decimal => format!("CAST({GAP} AS DECIMAL(65,30))"),
            _ => GAP.to_string(),
        }
    }

    fn cannot_hold(&self, stored: &Kind) -> &'static [IssueKind] {
        match stored.class {
            Class::Float32 | Class::Float64 | Class::Decimal => &[IssueKind::NotANumber],
            Class::Date | Class::Timestamp | Class::TimestampTz => &[IssueKind::DateRange],
            _ => &[],
        }
    }

    fn has_unfit(&self, kind: &Kind, unfit: IssueKind, column: &str) -> Option<String> {
        let date = matches!(kind.class, Class::Date | Class::Timestamp | Class::TimestampTz);
        match unfit {
            IssueKind::ZeroDate | IssueKind::DateRange if date => {
                Some(format!("(YEAR({column}) = 0 OR MONTH({column}) = 0 OR DAYOFMONTH({column}) = 0)"))
            }
            IssueKind::TimeRange if kind.class == Class::Time => {
                Some(format!("({column} < '00:00:00' OR {column} >= '24:00:00')"))
            }
            IssueKind::NulCharacter if kind.class.is_text() => {
                Some(format!("LOCATE(x'00', CAST({column} AS BINARY)) > 0"))
            }
            IssueKind::Fraction if kind.n > 4 => Some(format!("MICROSECOND({column}) % 100 <> 0")),
            _ => None,
        }
    }

    fn octets(&self, column: &str) -> String {
        format!("LENGTH({column})")
    }

    fn keyless(&self) -> Keyless {
        Keyless::Offset
    }

    fn compares_rows(&self) -> bool {
        false
    }

    fn insert_limits(&self) -> (usize, usize) {
        (500, 60_000)
    }

    fn collate(&self, collation: &Collation, target: &TargetFacts, same: bool) -> String {
        match collation {
            Collation::Named(name) | Collation::Binary(name) if same && target.collations.contains(name) => {
                let charset = name.split('_').next().unwrap_or_default();
                format!(" CHARACTER SET {charset} COLLATE {name}")
            }
            _ => String::new(),
        }
    }

    fn table_options(&self, target: &TargetFacts) -> String {
        format!(" ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE={}", target.by_bytes)
    }

    fn facts(&self, side: &mut Side) -> Result<TargetFacts> {
        let rows = side.rows("SELECT collation_name FROM information_schema.collations")?;
        let collations: Vec<String> = rows.iter().map(|row| text(row, 0).to_owned()).collect();
        let found = BY_BYTES.iter().find(|name| collations.iter().any(|known| known == *name));
        Ok(TargetFacts { by_bytes: (*found.unwrap_or(&BY_BYTES[2])).to_owned(), collations })
    }

    fn identity(&self, table: &Table, column: &Column) -> Option<Identity> {
        let leads = |columns: &[String]| columns.first() == Some(&column.name);
        // One column of a table, which is the first of a key.
        let only = table.columns.iter().filter(|other| other.identity).count() == 1;
        let keyed = leads(&table.primary);
        (only && keyed).then_some(Identity { after: " AUTO_INCREMENT", ..Identity::default() })
    }

    /// Without it, a TIMESTAMP of an older server is not null.
    fn nullable(&self) -> &'static str {
        " NULL"
    }

    /// Types that are stored outside the row have none.
    fn has_literal_default(&self, mapped: &Mapped) -> bool {
        let name = mapped.sql.to_ascii_lowercase();
        !(name.contains("text") || name.contains("blob") || name == "json")
    }

    /// InnoDB refuses it.
    fn has_action(&self, action: &str) -> bool {
        action != "SET DEFAULT"
    }

    /// The server continues after the largest number.
    fn restart_identity(&self, _: &str, _: &str, _: i128) -> Option<String> {
        None
    }

    fn now(&self, stored: &Kind) -> String {
        match stored.n {
            0 | UNLIMITED => "CURRENT_TIMESTAMP".to_owned(),
            n => format!("CURRENT_TIMESTAMP({})", n.min(6)),
        }
    }

    fn index_names_are_shared(&self) -> bool {
        false
    }

    /// An index entry has at most 3,072 bytes, and a character up to four.
    fn longest_key(&self) -> Option<u32> {
        Some(760)
    }
}

fn tables(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1";
    for row in side.rows(sql)? {
        let (name, kind) = (text(&row, 0), text(&row, 1));
        catalog.names.push(name.to_owned());
        if kind == "BASE TABLE" || kind == "SYSTEM VERSIONED" {
            catalog.tables.push(Table { name: name.to_owned(), ..Table::default() });
        } else {
            catalog.leave(IssueKind::View, None, name, &kind.to_lowercase());
        }
    }
    Ok(())
}

fn columns(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let mariadb = is_mariadb(side)?;
    let sql = "SELECT table_name, column_name, column_type, is_nullable, column_default, extra, collation_name, \
               generation_expression FROM information_schema.columns WHERE table_schema = DATABASE() \
               ORDER BY table_name, ordinal_position";
    for row in side.rows(sql)? {
        let (declared, extra) = (text(&row, 2), text(&row, 5).to_ascii_lowercase());
        let is_expression = mariadb || extra.contains("default_generated");
        let default = match row.get(4).and_then(Option::as_deref) {
            None => DefaultValue::Null,
            Some(default) if is_expression => read_default(default),
            // A BIT's default is written as b'1'.
            Some(default) if default.starts_with("b'") => DefaultValue::Expression(default.to_owned()),
            Some(default) => DefaultValue::Literal(default.to_owned()),
        };
        let name = text(&row, 1);
        let collation = match text(&row, 6) {
            "" | "binary" => Collation::Bytes,
            name if name.ends_with("_bin") => Collation::Binary(name.to_owned()),
            name => Collation::Named(name.to_owned()),
        };
        if extra.contains("on update") {
            let column = format!("{name}, {extra}");
            catalog.leave(IssueKind::Trigger, Some(text(&row, 0)), name, &column);
        }
        let column = Column {
            name: name.to_owned(),
            declared: declared.to_owned(),
            nullable: text(&row, 3) == "YES",
            default,
            identity: extra.contains("auto_increment"),
            collation,
            generated: Some(text(&row, 7).to_owned()).filter(|text| !text.is_empty()),
        };
        if let Some(table) = catalog.table_mut(text(&row, 0)) {
            table.columns.push(column);
        }
    }
    Ok(())
}

fn is_mariadb(side: &mut Side) -> Result<bool> {
    Ok(side.value("SELECT VERSION()")?.unwrap_or_default().to_ascii_lowercase().contains("mariadb"))
}

fn indexes(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    // MariaDB has no indexes on expressions, and no such column.
    let sql = "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'information_schema' \
               AND LOWER(table_name) = 'statistics' AND LOWER(column_name) = 'expression'";
    let expression = if side.number(sql)? > 0 { "expression" } else { "CAST(NULL AS CHAR)" };
    let sql = format!(
        "SELECT table_name, index_name, non_unique, column_name, sub_part, index_type, {expression} \
         FROM information_schema.statistics WHERE table_schema = DATABASE() \
         ORDER BY table_name, index_name, seq_in_index"
    );
    let rows = side.rows(&sql)?;
    let mut left = Vec::new();
    for row in &rows {
        let (table, name, kind) = (text(row, 0), text(row, 1), text(row, 5));
        let special = !matches!(kind, "BTREE" | "HASH");
        let what = special.then(|| (IssueKind::IndexType, kind.to_owned()));
        let what = what
            .or_else(|| row[6].as_ref().map(|text| (IssueKind::ExpressionIndex, text.clone())))
            .or_else(|| {
                row[4]
                    .as_ref()
                    .map(|n| (IssueKind::PrefixIndex, format!("the first {n} of {}", text(row, 3))))
            });
        if let Some((kind, detail)) = what {
            left.push((table.to_owned(), name.to_owned(), kind, detail));
        }
    }
    for row in &rows {
        let (table, name) = (text(row, 0), text(row, 1));
        if left.iter().any(|(of, index, ..)| of == table && index == name) {
            continue;
        }
        if name == "PRIMARY" {
            if let Some(table) = catalog.table_mut(table) {
                table.primary.push(text(row, 3).to_owned());
            }
        } else {
            catalog.add_to_index(table, name, text(row, 2) == "0", text(row, 3).to_owned());
        }
    }
    left.dedup_by(|a, b| (&a.0, &a.1) == (&b.0, &b.1));
    for (table, name, kind, detail) in left {
        catalog.leave(kind, Some(&table), &name, &detail);
    }
    Ok(())
}

fn foreign_keys(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT k.table_name, k.constraint_name, k.column_name, k.referenced_table_name, \
               k.referenced_column_name, r.update_rule, r.delete_rule, k.referenced_table_schema = DATABASE() \
               FROM information_schema.key_column_usage k JOIN information_schema.referential_constraints r \
               ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name \
               AND r.table_name = k.table_name \
               WHERE k.table_schema = DATABASE() AND k.referenced_table_name IS NOT NULL \
               ORDER BY k.table_name, k.constraint_name, k.ordinal_position";
    for row in side.rows(sql)? {
        let name = text(&row, 1);
        let Some(table) = catalog.table_mut(text(&row, 0)) else { continue };
        let at = table.foreign.iter().position(|key| key.name == name).unwrap_or_else(|| {
            let parent = if text(&row, 7) == "1" { text(&row, 3).to_owned() } else { String::new() };
            table.foreign.push(ForeignKey {
                name: name.to_owned(),
                columns: Vec::new(),
                parent,
                parent_columns: Vec::new(),
                on_update: text(&row, 5).to_owned(),
                on_delete: text(&row, 6).to_owned(),
            });
            table.foreign.len() - 1
        });
        table.foreign[at].columns.push(text(&row, 2).to_owned());
        table.foreign[at].parent_columns.push(text(&row, 4).to_owned());
    }
    Ok(())
}

/// Check constraints. MariaDB's JSON is a long text with the constraint that it is JSON.
fn checks(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT t.table_name, c.constraint_name, c.check_clause FROM information_schema.check_constraints c \
               JOIN information_schema.table_constraints t ON t.constraint_schema = c.constraint_schema \
               AND t.constraint_name = c.constraint_name AND t.constraint_type = 'CHECK' \
               WHERE c.constraint_schema = DATABASE() ORDER BY 1, 2";
    // MariaDB names a column's constraint as the column: the table is needed too.
    let sql = if is_mariadb(side)? {
        sql.replace(" AND t.constraint_type", " AND t.table_name = c.table_name AND t.constraint_type")
    } else {
        sql.to_owned()
    };
    let rows = match side.rows(&sql) {
        Ok(rows) => rows,
        // Versions without check constraints.
        Err(error) if error.server_code() == Some("1109") => return Ok(()),
        Err(error) => return Err(error),
    };
    for row in rows {
        let (table, name, clause) = (text(&row, 0), text(&row, 1), text(&row, 2));
        let json = clause.strip_prefix("json_valid(`").and_then(|rest| rest.strip_suffix("`)"));
        let column = json.and_then(|column| {
            catalog.table_mut(table)?.columns.iter_mut().find(|known| known.name == column)
        });
        match column {
            Some(column) => {
                "json".clone_into(&mut column.declared);
                column.collation = Collation::Bytes;
            }
            None => catalog.leave(IssueKind::Check, Some(table), name, clause),
        }
    }
    Ok(())
}
