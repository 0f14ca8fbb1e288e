//! PostgreSQL.

use super::{Engine, Identity, TargetFacts};
use crate::catalog::{Catalog, Collation, Column, DefaultValue, ForeignKey, Table, read_default};
use crate::issue::IssueKind;
use crate::sql::{Side, quoted, text};
use crate::types::{Class, Kind, Mapped, Rule, UNLIMITED, lossy, rule};
use kurabe_core::Result;

/// PostgreSQL.
pub struct Postgres;

const TYPES: &[(&str, Class)] = &[
    ("boolean", Class::Bool),
    ("smallint", Class::Int16),
    ("integer", Class::Int32),
    ("bigint", Class::Int64),
    ("numeric", Class::Decimal),
    ("real", Class::Float32),
    ("double precision", Class::Float64),
    ("character", Class::Char),
    ("character varying", Class::Varchar),
    ("text", Class::Text),
    ("name", Class::Text),
    ("bytea", Class::Blob),
    ("date", Class::Date),
    ("time without time zone", Class::Time),
    ("timestamp without time zone", Class::Timestamp),
    ("timestamp with time zone", Class::TimestampTz),
    ("uuid", Class::Uuid),
    ("json", Class::Json),
    ("jsonb", Class::Json),
];

const RULES: &[Rule] = &[
    rule(Class::Bool, UNLIMITED, "boolean", Class::Bool),
    rule(Class::Int8, UNLIMITED, "smallint", Class::Int16),
    rule(Class::Int16, UNLIMITED, "smallint", Class::Int16),
    rule(Class::Int32, UNLIMITED, "integer", Class::Int32),
    rule(Class::Int64, UNLIMITED, "bigint", Class::Int64),
    lossy(
        Class::UInt64,
        UNLIMITED,
        "numeric(20)",
        Class::Decimal,
        IssueKind::Unsigned64,
        "PostgreSQL has no unsigned integers: a decimal number of 20 digits, which every value fits",
    ),
    rule(Class::Decimal, 1_000, "numeric({n},{s})", Class::Decimal),
    rule(Class::Decimal, UNLIMITED, "numeric", Class::Decimal),
    rule(Class::Float32, UNLIMITED, "real", Class::Float32),
    rule(Class::Float64, UNLIMITED, "double precision", Class::Float64),
    rule(Class::Char, 10_000_000, "character({n})", Class::Char),
    rule(Class::Char, UNLIMITED, "text", Class::Text),
    rule(Class::Varchar, 10_000_000, "character varying({n})", Class::Varchar),
    rule(Class::Varchar, UNLIMITED, "text", Class::Text),
    rule(Class::Text, UNLIMITED, "text", Class::Text),
    rule(Class::Binary, UNLIMITED, "bytea", Class::Blob),
    rule(Class::Varbinary, UNLIMITED, "bytea", Class::Blob),
    rule(Class::Blob, UNLIMITED, "bytea", Class::Blob),
    rule(Class::Date, UNLIMITED, "date", Class::Date),
    rule(Class::Time, 6, "time({n}) without time zone", Class::Time),
    rule(Class::Time, UNLIMITED, "time without time zone", Class::Time),
    rule(Class::Timestamp, 6, "timestamp({n}) without time zone", Class::Timestamp),
    rule(Class::Timestamp, UNLIMITED, "timestamp without time zone", Class::Timestamp),
    rule(Class::TimestampTz, 6, "timestamp({n}) with time zone", Class::TimestampTz),
    rule(Class::TimestampTz, UNLIMITED, "timestamp with time zone", Class::TimestampTz),
    rule(Class::Uuid, UNLIMITED, "uuid", Class::Uuid),
    rule(Class::Json, UNLIMITED, "jsonb", Class::Json),
    lossy(
        Class::Enum,
        UNLIMITED,
        "text",
        Class::Text,
        IssueKind::Enum,
        "the list of words is of the source only",
    ),
    lossy(Class::Bits, 63, "bigint", Class::Int64, IssueKind::Bits, "a bit field becomes an integer"),
    lossy(
        Class::Bits,
        UNLIMITED,
        "numeric(20)",
        Class::Decimal,
        IssueKind::Bits,
        "a bit field becomes a number",
    ),
    lossy(
        Class::Native,
        UNLIMITED,
        "text",
        Class::Text,
        IssueKind::Type,
        "the type is of the source only: text here",
    ),
    lossy(
        Class::Geometry,
        UNLIMITED,
        "text",
        Class::Text,
        IssueKind::Type,
        "a geometry becomes its text, without the number of its reference system",
    ),
];

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
            "SET IntervalStyle TO postgres",
            "SET TimeZone TO 'UTC'",
            "SET extra_float_digits TO 1",
            "SET bytea_output TO hex",
        ]
    }

    fn types(&self) -> &'static [(&'static str, Class)] {
        TYPES
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
        tables(side, &mut catalog)?;
        columns(side, &mut catalog)?;
        indexes(side, &mut catalog)?;
        constraints(side, &mut catalog)?;
        let triggers = "SELECT c.relname::text, t.tgname::text, pg_catalog.pg_get_triggerdef(t.oid)::text \
                        FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid \
                        WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace ORDER BY 1, 2";
        for row in side.rows(triggers)? {
            catalog.leave(IssueKind::Trigger, Some(text(&row, 0)), text(&row, 1), text(&row, 2));
        }
        Ok(catalog)
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
        let collations = rows.iter().map(|row| text(row, 0).to_owned()).collect();
        Ok(TargetFacts { by_bytes: "C".to_owned(), collations, ..TargetFacts::default() })
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

fn tables(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    // Identity and serial columns own their sequences.
    let sql = "SELECT c.relname::text, c.relkind::text, c.relispartition::text, \
               (c.relkind = 'r' AND c.relhassubclass)::text FROM pg_catalog.pg_class c \
               WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'i', 'I') \
               AND NOT (c.relkind = 'S' AND EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = c.oid \
               AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i'))) ORDER BY 1";
    for row in side.rows(sql)? {
        let (name, kind) = (text(&row, 0), text(&row, 1));
        catalog.names.push(name.to_owned());
        let what = match kind {
            "r" | "p" if text(&row, 2) == "true" => continue,
            "i" | "I" => continue,
            "r" | "p" => {
                let inherited = text(&row, 3) == "true";
                catalog.tables.push(Table { name: name.to_owned(), inherited, ..Table::default() });
                continue;
            }
            "S" => "a sequence that no column owns",
            "f" => "a foreign table",
            "m" => "a materialized view",
            _ => "a view",
        };
        catalog.leave(IssueKind::View, None, name, what);
    }
    Ok(())
}

fn columns(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT c.relname::text, a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod)::text, \
               a.attnotnull::text, pg_catalog.pg_get_expr(d.adbin, d.adrelid)::text, a.attidentity::text, \
               a.attgenerated::text, co.collname::text, t.typtype::text, \
               (SELECT datcollate::text FROM pg_catalog.pg_database WHERE datname = current_database()) \
               FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
               JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
               LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
               LEFT JOIN pg_catalog.pg_collation co ON co.oid = a.attcollation \
               WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') \
               AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum";
    for row in side.rows(sql)? {
        let default = text(&row, 4);
        let generated = !text(&row, 6).is_empty();
        let is_serial = default.starts_with("nextval(");
        let declared = text(&row, 2);
        let collation = match (text(&row, 7), text(&row, 9)) {
            ("" | "C" | "POSIX", _) | ("default", "C" | "POSIX" | "C.UTF-8" | "C.utf8") => Collation::Bytes,
            ("default", database) => Collation::Named(database.to_owned()),
            (name, _) => Collation::Named(name.to_owned()),
        };
        let column = Column {
            name: text(&row, 1).to_owned(),
            declared: declared.to_owned(),
            nullable: text(&row, 3) != "true",
            default: if generated || is_serial { DefaultValue::Null } else { read_default(default) },
            identity: is_serial || !text(&row, 5).is_empty(),
            collation,
            generated: generated.then(|| default.to_owned()),
        };
        if let Some(table) = catalog.table_mut(text(&row, 0)) {
            table.columns.push(column);
        }
    }
    Ok(())
}

fn indexes(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT t.relname::text, i.relname::text, x.indisunique::text, x.indisprimary::text, \
               (x.indpred IS NOT NULL)::text, (x.indexprs IS NOT NULL)::text, m.amname::text, a.attname::text, \
               pg_catalog.pg_get_indexdef(x.indexrelid)::text, \
               EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.conindid = i.oid AND k.contype = 'x')::text \
               FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid \
               JOIN pg_catalog.pg_class t ON t.oid = x.indrelid JOIN pg_catalog.pg_am m ON m.oid = i.relam \
               CROSS JOIN LATERAL unnest(x.indkey::int2[]) WITH ORDINALITY AS k(attnum, position) \
               LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum AND k.attnum > 0 \
               WHERE t.relnamespace = current_schema()::regnamespace AND k.position <= x.indnkeyatts AND x.indisvalid \
               ORDER BY t.relname, i.relname, k.position";
    let mut last = (String::new(), String::new());
    for row in side.rows(sql)? {
        let (table, name, is) = (text(&row, 0), text(&row, 1), |at| text(&row, at) == "true");
        let what = if is(4) {
            Some(IssueKind::PartialIndex)
        } else if is(5) {
            Some(IssueKind::ExpressionIndex)
        } else if text(&row, 6) != "btree" && text(&row, 6) != "hash" || is(9) {
            Some(IssueKind::IndexType)
        } else {
            None
        };
        if let Some(kind) = what {
            let this = (table.to_owned(), name.to_owned());
            if last != this {
                catalog.leave(kind, Some(table), name, text(&row, 8));
                last = this;
            }
        } else if is(3) {
            if let Some(table) = catalog.table_mut(table) {
                table.primary.push(text(&row, 7).to_owned());
            }
        } else {
            catalog.add_to_index(table, name, is(2), text(&row, 7).to_owned());
        }
    }
    Ok(())
}

fn constraints(side: &mut Side, catalog: &mut Catalog) -> Result<()> {
    let sql = "SELECT t.relname::text, k.conname::text, a.attname::text, p.relname::text, b.attname::text, \
               k.confupdtype::text, k.confdeltype::text, (p.relnamespace = t.relnamespace)::text \
               FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class t ON t.oid = k.conrelid \
               JOIN pg_catalog.pg_class p ON p.oid = k.confrelid \
               CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS c(own, theirs, position) \
               JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = c.own \
               JOIN pg_catalog.pg_attribute b ON b.attrelid = p.oid AND b.attnum = c.theirs \
               WHERE k.contype = 'f' AND k.conparentid = 0 AND t.relnamespace = current_schema()::regnamespace \
               ORDER BY t.relname, k.conname, c.position";
    let action = |letter: &str| match letter {
        "c" => "CASCADE",
        "n" => "SET NULL",
        "d" => "SET DEFAULT",
        "r" => "RESTRICT",
        _ => "NO ACTION",
    };
    for row in side.rows(sql)? {
        let name = text(&row, 1);
        let Some(table) = catalog.table_mut(text(&row, 0)) else { continue };
        let at = table.foreign.iter().position(|key| key.name == name).unwrap_or_else(|| {
            let parent = if text(&row, 7) == "true" { text(&row, 3).to_owned() } else { String::new() };
            table.foreign.push(ForeignKey {
                name: name.to_owned(),
                columns: Vec::new(),
                parent,
                parent_columns: Vec::new(),
                on_update: action(text(&row, 5)).to_owned(),
                on_delete: action(text(&row, 6)).to_owned(),
            });
            table.foreign.len() - 1
        });
        table.foreign[at].columns.push(text(&row, 2).to_owned());
        table.foreign[at].parent_columns.push(text(&row, 4).to_owned());
    }
    let sql = "SELECT t.relname::text, k.conname::text, pg_catalog.pg_get_constraintdef(k.oid)::text \
               FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class t ON t.oid = k.conrelid \
               WHERE k.contype = 'c' AND t.relnamespace = current_schema()::regnamespace ORDER BY 1, 2";
    for row in side.rows(sql)? {
        catalog.leave(IssueKind::Check, Some(text(&row, 0)), text(&row, 1), text(&row, 2));
    }
    Ok(())
}
