//! SQLite. A column's declared type says what its values should be; [`crate::scan`] says what they are.

use super::{Engine, Identity, Keyless, TargetFacts};
use crate::catalog::{Catalog, Collation, Column, DefaultValue, ForeignKey, Index, Table, read_default};
use crate::issue::IssueKind;
use crate::sql::{GAP, Side, literal, text};
use crate::types::{Class, Declared, Kind, Rule, UNLIMITED, lossy, rule};
use kurabe_core::Result;

/// SQLite.
pub struct Sqlite;

const TYPES: &[(&str, Class)] = &[
    ("boolean", Class::Bool),
    ("bool", Class::Bool),
    ("tinyint", Class::Int64),
    ("smallint", Class::Int64),
    ("int", Class::Int64),
    ("integer", Class::Int64),
    ("bigint", Class::Int64),
    ("unsigned64_text", Class::UInt64),
    ("decimal_text", Class::Decimal),
    ("float", Class::Float64),
    ("real", Class::Float64),
    ("double", Class::Float64),
    ("double precision", Class::Float64),
    ("char", Class::Varchar),
    ("character", Class::Varchar),
    ("varchar", Class::Varchar),
    ("nvarchar", Class::Varchar),
    ("character varying", Class::Varchar),
    ("text", Class::Text),
    ("clob", Class::Text),
    ("blob", Class::Blob),
    ("date_text", Class::Date),
    ("time_text", Class::Time),
    ("datetime_text", Class::Timestamp),
    ("timestamptz_text", Class::TimestampTz),
    ("uuid_text", Class::Uuid),
    ("json_text", Class::Json),
    ("decimal", Class::Decimal),
    ("numeric", Class::Decimal),
    ("date", Class::Date),
    ("datetime", Class::Timestamp),
    ("timestamp", Class::Timestamp),
];

/// SQLite has five storage classes. A type whose name ends in `_TEXT` has the affinity TEXT, so that its values stay as
/// they are written, and says what the text is.
const RULES: &[Rule] = &[
    rule(Class::Bool, UNLIMITED, "BOOLEAN", Class::Bool),
    rule(Class::Int8, UNLIMITED, "TINYINT", Class::Int64),
    rule(Class::Int16, UNLIMITED, "SMALLINT", Class::Int64),
    rule(Class::Int32, UNLIMITED, "INTEGER", Class::Int64),
    rule(Class::Int64, UNLIMITED, "BIGINT", Class::Int64),
    lossy(
        Class::UInt64,
        UNLIMITED,
        "UNSIGNED64_TEXT",
        Class::Text,
        IssueKind::Unsigned64,
        "SQLite's integers have a sign: text, which every value fits",
    ),
    lossy(
        Class::Decimal,
        100_000,
        "DECIMAL_TEXT({n},{s})",
        Class::Text,
        IssueKind::Decimal,
        "SQLite has no exact decimal numbers: text",
    ),
    lossy(
        Class::Decimal,
        UNLIMITED,
        "DECIMAL_TEXT",
        Class::Text,
        IssueKind::Decimal,
        "SQLite has no exact decimal numbers: text",
    ),
    rule(Class::Float32, UNLIMITED, "REAL", Class::Float64),
    rule(Class::Float64, UNLIMITED, "DOUBLE", Class::Float64),
    rule(Class::Char, UNLIMITED, "CHAR({n})", Class::Text),
    rule(Class::Varchar, 1_000_000_000, "VARCHAR({n})", Class::Text),
    rule(Class::Varchar, UNLIMITED, "TEXT", Class::Text),
    rule(Class::Text, UNLIMITED, "TEXT", Class::Text),
    rule(Class::Binary, UNLIMITED, "BLOB", Class::Blob),
    rule(Class::Varbinary, UNLIMITED, "BLOB", Class::Blob),
    rule(Class::Blob, UNLIMITED, "BLOB", Class::Blob),
    rule(Class::Date, UNLIMITED, "DATE_TEXT", Class::Text),
    rule(Class::Time, UNLIMITED, "TIME_TEXT({n})", Class::Text),
    rule(Class::Timestamp, UNLIMITED, "DATETIME_TEXT({n})", Class::Text),
    rule(Class::TimestampTz, UNLIMITED, "TIMESTAMPTZ_TEXT({n})", Class::Text),
    rule(Class::Uuid, UNLIMITED, "UUID_TEXT", Class::Text),
    rule(Class::Json, UNLIMITED, "JSON_TEXT", Class::Text),
    lossy(
        Class::Enum,
        UNLIMITED,
        "TEXT",
        Class::Text,
        IssueKind::Enum,
        "the list of words is of the source only",
    ),
    lossy(Class::Bits, 63, "BIGINT", Class::Int64, IssueKind::Bits, "a bit field becomes an integer"),
    lossy(
        Class::Bits,
        UNLIMITED,
        "UNSIGNED64_TEXT",
        Class::Text,
        IssueKind::Bits,
        "a bit field becomes text",
    ),
    lossy(
        Class::Native,
        UNLIMITED,
        "TEXT",
        Class::Text,
        IssueKind::Type,
        "the type is of the source only: text here",
    ),
];

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
        TYPES
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
        RULES
    }

    fn catalog(&self, side: &mut Side) -> Result<Catalog> {
        let mut catalog = Catalog::default();
        let sql = "SELECT name, type, tbl_name, sql FROM sqlite_schema WHERE substr(name, 1, 7) <> 'sqlite_' ORDER BY name";
        for row in side.rows(sql)? {
            let (name, table, sql) = (text(&row, 0), text(&row, 2), text(&row, 3));
            catalog.names.push(name.to_owned());
            match text(&row, 1) {
                "table" if sql.to_ascii_uppercase().starts_with("CREATE VIRTUAL") => {
                    catalog.leave(IssueKind::View, None, name, "a virtual table");
                }
                "table" => {
                    let read = read_table(side, name, sql, &mut catalog)?;
                    catalog.tables.push(read);
                }
                "view" => catalog.leave(IssueKind::View, None, name, sql),
                "trigger" => catalog.leave(IssueKind::Trigger, Some(table), name, sql),
                _ => {}
            }
        }
        Ok(catalog)
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
    fn identity(&self, table: &Table, column: &Column) -> Option<Identity> {
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

fn read_table(side: &mut Side, name: &str, sql: &str, catalog: &mut Catalog) -> Result<Table> {
    let mut table = Table { name: name.to_owned(), ..Table::default() };
    let of = literal(name)?;
    let upper = sql.to_ascii_uppercase();
    let words: Vec<&str> = upper.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    if words.contains(&"CHECK") {
        catalog.leave(IssueKind::Check, Some(name), name, "CHECK in the table's definition");
    }
    let mut key: Vec<(u64, String)> = Vec::new();
    for row in side.rows(&format!(
        "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo({of}) ORDER BY cid"
    ))? {
        let column = text(&row, 0).to_owned();
        let position = text(&row, 4).parse().unwrap_or(0);
        if position > 0 {
            key.push((position, column.clone()));
        }
        table.columns.push(Column {
            declared: text(&row, 1).to_owned(),
            // A key may hold nulls here unless it says otherwise, and nowhere else.
            nullable: text(&row, 2) == "0" && position == 0,
            default: row.get(3).and_then(Option::as_deref).map_or(DefaultValue::Null, read_default),
            identity: false,
            collation: Collation::Bytes,
            generated: matches!(text(&row, 5), "2" | "3").then(|| "an expression".to_owned()),
            name: column,
        });
    }
    key.sort();
    table.primary = key.into_iter().map(|(_, column)| column).collect();
    if let [only] = table.primary.as_slice()
        && !words.contains(&"WITHOUT")
    {
        let only = only.clone();
        for column in &mut table.columns {
            column.identity = column.name == only && column.declared.eq_ignore_ascii_case("INTEGER");
        }
    }
    indexes(side, &of, &mut table, catalog)?;
    collations(sql, &mut table);
    foreign_keys(side, &of, &mut table)?;
    Ok(table)
}

fn indexes(side: &mut Side, of: &str, table: &mut Table, catalog: &mut Catalog) -> Result<()> {
    let list = format!("SELECT name, \"unique\", origin, partial FROM pragma_index_list({of}) ORDER BY name");
    for row in side.rows(&list)? {
        let (name, origin) = (text(&row, 0), text(&row, 2));
        if origin == "pk" {
            continue;
        }
        if text(&row, 3) == "1" {
            catalog.leave(IssueKind::PartialIndex, Some(&table.name), name, "an index of some rows");
            continue;
        }
        let index = literal(name)?;
        let parts = side.rows(&format!(
            "SELECT cid, name, coll FROM pragma_index_xinfo({index}) WHERE key = 1 ORDER BY seqno"
        ))?;
        if parts.iter().any(|part| text(part, 0) == "-2") {
            catalog.leave(IssueKind::ExpressionIndex, Some(&table.name), name, "an index on an expression");
            continue;
        }
        let columns = parts.iter().map(|part| text(part, 1).to_owned()).collect();
        table.indexes.push(Index { name: name.to_owned(), unique: text(&row, 1) == "1", columns });
    }
    Ok(())
}

/// Finds `COLLATE` in a table's definition: the catalogue names collations of indexes only.
fn collations(sql: &str, table: &mut Table) {
    for column in &mut table.columns {
        // From the column's name to the next comma outside parentheses.
        let Some(at) = sql.to_ascii_lowercase().find(&column.name.to_ascii_lowercase()) else { continue };
        let mut depth = 0;
        let definition: String = sql[at..]
            .chars()
            .take_while(|character| {
                depth += i32::from(*character == '(') - i32::from(*character == ')');
                depth >= 0 && (depth > 0 || *character != ',')
            })
            .collect();
        let mut words = definition.split_whitespace();
        if words.any(|word| word.eq_ignore_ascii_case("COLLATE"))
            && let Some(name) = words.next()
        {
            let name = name.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_uppercase();
            if name != "BINARY" {
                column.collation = Collation::Named(name);
            }
        }
    }
}

fn foreign_keys(side: &mut Side, of: &str, table: &mut Table) -> Result<()> {
    let sql = format!(
        "SELECT id, \"table\", \"from\", \"to\", on_update, on_delete FROM pragma_foreign_key_list({of}) ORDER BY id, seq"
    );
    let mut last = None;
    for row in side.rows(&sql)? {
        let id = text(&row, 0).to_owned();
        if last.as_ref() != Some(&id) {
            table.foreign.push(ForeignKey {
                name: String::new(),
                columns: Vec::new(),
                parent: text(&row, 1).to_owned(),
                parent_columns: Vec::new(),
                on_update: text(&row, 4).to_owned(),
                on_delete: text(&row, 5).to_owned(),
            });
            last = Some(id);
        }
        if let Some(key) = table.foreign.last_mut() {
            key.columns.push(text(&row, 2).to_owned());
            if let Some(to) = row.get(3).cloned().flatten() {
                key.parent_columns.push(to);
            }
        }
    }
    Ok(())
}
