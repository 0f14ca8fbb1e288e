//! PostgreSQL.

mod before;
mod catalog;
mod later;
mod renderings;

use super::engine::{Dialect, Engine, Expression, Sums};
use super::facts::{DocumentLimits, Documents, TargetFacts};
use super::queries::{expression, query};
use crate::catalog::{Collation, Text};
use crate::issue::IssueKind;
use crate::script::{literal, quoted, unquoted};
use crate::sql::{Row, Side, text, texts};
use crate::types::{Class, Declared, Kind, UNLIMITED};
use crate::verify::form::Shape;
use kurabe_core::Result;

pub(super) static POSTGRES: Engine = Engine {
    syntax: kurabe_protocol::sql::Dialect::POSTGRES,
    script: "SET client_encoding = 'UTF8';\nSET standard_conforming_strings = on;\nSET check_function_bodies = off;\n",
    reading: &[
        // A whole table in the order of its key: the index gives its first rows at once, and needs no space.
        "SET enable_sort TO off",
        // A plan that sorts all the same seems so costly that the server would compile it, for a second each.
        "SELECT pg_catalog.set_config(name, 'off', false) FROM pg_catalog.pg_settings WHERE name = 'jit'",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    ],
    // A server that is killed keeps the pages up to one of them. The last commit waits for the disk, with all before it.
    writing: &["SET synchronous_commit = off"],
    before_last_commit: &["RESET synchronous_commit"],
    // Also for columns whose numbers are always the server's.
    overriding: " OVERRIDING SYSTEM VALUE",
    bytes_as_hex: true,
    octets: |column| format!("pg_catalog.octet_length({column}::text)"),
    characters: |column| format!("pg_catalog.char_length({column}::text)"),
    load_text: Some(|table, columns| format!("COPY {table} ({columns}) FROM STDIN")),
    pass_through: Some((
        |query| format!("COPY ({query}) TO STDOUT (FORMAT binary)"),
        |table, columns| format!("COPY {table} ({columns}) FROM STDIN (FORMAT binary)"),
    )),
    // A block, and 16 bits of the number in it.
    place: Some(|number| format!("'({},{})'", (number >> 16) as u32, number as u16)),
    sums: Some(Sums {
        // The sessions are in UTF-8, or without an encoding where the database has none.
        row: |texts| format!("pg_catalog.textsend(pg_catalog.concat_ws('|', {texts}))"),
        length: |text| format!("pg_catalog.char_length({text})"),
        or: |text, other| format!("coalesce(({text})::text, '{other}')"),
        sum: |row| {
            let bytes = format!("pg_catalog.substring(pg_catalog.sha256({row}), 1, 7)");
            format!("pg_catalog.sum(('x' || pg_catalog.encode({bytes}, 'hex'))::bit(56)::int8)::text")
        },
        exact: Some(hash),
    }),
    now: |stored| {
        if stored.class == Class::TimestampTz { "CURRENT_TIMESTAMP" } else { "LOCALTIMESTAMP" }.to_owned()
    },
    only: "ONLY ",
    restart_identity: Some(restart_identity),
    // A third of a page holds 2,704 bytes, with the lengths of values.
    longest_entry: Some(2_690),
    names_objects: true,
    catalogue: Some(catalogue),
    sign,
    ..Engine::of("PostgreSQL", &["postgres", "postgresql"], &Postgres, catalog::read)
};

/// The text by which a query of the catalogue is read: it is parsed where the session searches `pg_catalog` alone, so that no
/// function and no operator of others is found (CVE-2018-1058), and runs with the user's own search path, by which the server
/// writes names in what it returns.
fn catalogue(sql: &str) -> String {
    format!(
        "SET LOCAL search_path TO pg_catalog; DECLARE kurabe_catalogue NO SCROLL CURSOR FOR {sql}; \
         SET LOCAL search_path TO DEFAULT; FETCH ALL FROM kurabe_catalogue; CLOSE kurabe_catalogue"
    )
}

/// `pg_catalog` has no operators of `varchar`, and those of arrays fit every array: one of exactly these types, which others may
/// make, would be taken instead.
fn sign(declared: [&str; 2], sign: &'static str) -> String {
    if declared.iter().any(|declared| declared.starts_with("character varying") || declared.ends_with("[]")) {
        format!("OPERATOR(pg_catalog.{sign})")
    } else {
        sign.to_owned()
    }
}

/// A value as its type's own function writes it; null stays null. A cast to `text`, which the owner of the type may make, would
/// be a function of theirs.
fn written(format: &str, x: &str) -> String {
    format!("CASE WHEN pg_catalog.num_nulls({x}) = 0 THEN pg_catalog.format('{format}', {x}) END")
}

/// The hash of a row's values up to this one, by the functions of hash partitions, which read integers and text where they are stored.
/// Those of other types fold values that are equal, such as 1.0 and 1.00: of these, what the server sends in binary is hashed.
fn hash(declared: &str, x: &str, nullable: bool, row: String) -> String {
    let or = |x: &str, other| if nullable { format!("coalesce({x}, '{other}')") } else { x.to_owned() };
    let row = if nullable { format!("pg_catalog.hashint4extended(({x} IS NULL)::int4, {row})") } else { row };
    let sent = match Declared::parse(declared).base.as_str() {
        "smallint" => return format!("pg_catalog.hashint2extended({}, {row})", or(x, "0")),
        "integer" => return format!("pg_catalog.hashint4extended({}, {row})", or(x, "0")),
        "text" | "character varying" => {
            return format!("pg_catalog.hashtextextended({} COLLATE \"C\", {row})", or(x, ""));
        }
        "character" => return format!("pg_catalog.hashbpcharextended({} COLLATE \"C\", {row})", or(x, "")),
        "bytea" => x.to_owned(),
        "bigint" => format!("pg_catalog.int8send({x})"),
        "boolean" => format!("pg_catalog.boolsend({x})"),
        "numeric" => format!("pg_catalog.numeric_send({x})"),
        "double precision" => format!("pg_catalog.float8send({x})"),
        "date" => format!("pg_catalog.date_send({x})"),
        "uuid" => format!("pg_catalog.uuid_send({x})"),
        "timestamp without time zone" => format!("pg_catalog.timestamp_send({x})"),
        "timestamp with time zone" => format!("pg_catalog.timestamptz_send({x})"),
        _ => format!("pg_catalog.record_send(ROW({x}))"),
    };
    let digits = or(&format!("pg_catalog.encode({sent}, 'hex')"), "");
    format!("pg_catalog.hashtextextended({digits} COLLATE \"C\", {row})")
}

/// Of an identity or a serial column. After the largest number there is no next one.
fn restart_identity(table: &str, column: &str, next: i128) -> String {
    let [table, name] = [table, &unquoted(column)].map(|text| text.replace('\'', "''"));
    format!(
        "SELECT pg_catalog.setval(seqrelid::regclass, least({next}, seqmax)::bigint, {next} > seqmax) FROM pg_catalog.pg_sequence \
         WHERE seqrelid = pg_catalog.pg_get_serial_sequence('{table}', '{name}')::regclass::oid AND seqincrement > 0 AND {next} >= seqmin"
    )
}

struct Postgres;

impl Dialect for Postgres {
    /// A server without an encoding sends all bytes only to a client without one.
    fn set(&self, side: &mut Side, settings: &[[String; 2]]) -> Result<()> {
        let values =
            settings.iter().map(|[name, value]| format!("('{name}', '{value}')")).collect::<Vec<_>>();
        side.run(&query("postgresql", "set").replace("{values}", &values.join(", ")))
    }

    /// A standby is its primary. Two servers that are none may have the same identifier: one was restored from a backup.
    fn place(&self, side: &mut Side) -> Result<Option<[String; 2]>> {
        let row = side.catalogue(query("postgresql", "place"))?;
        Ok(row.first().map(|row| [0, 1].map(|at| text(row, at).to_owned())))
    }

    fn join(&self, side: &mut Side, further: &mut Side) -> Result<()> {
        let snapshot = side.value("SELECT pg_catalog.pg_export_snapshot()")?.unwrap_or_default();
        further.begin_reading()?;
        further.run(&format!("SET TRANSACTION SNAPSHOT {}", literal(side.engine, &snapshot)?))
    }

    fn own_text(&self, _: &mut Side, kind: IssueKind, row: &Row) -> Result<(Text, Vec<String>)> {
        let [own, what, more] = [2, 3, 4].map(|at| text(row, at).to_owned());
        Ok(match kind {
            IssueKind::Comment if what.is_empty() => (Text::Words(more), Vec::new()),
            IssueKind::Comment => (Text::Remark { what, own, text: more }, Vec::new()),
            _ if own.is_empty() => (Text::Words(what), Vec::new()),
            // Of one that is not UTF-8, there is no statement.
            _ => {
                let role = row.get(4).and_then(Option::as_deref).map(|role| quoted(&POSTGRES, role));
                let text = if text(row, 5) == "last" { Text::Last(own) } else { Text::Statement(own) };
                (text, role.into_iter().collect())
            }
        })
    }

    fn read(&self, kind: &Kind, column: &str) -> String {
        match kind.class {
            // A cast to text, which takes spaces away, costs more than all else of such a value.
            Class::Int16 | Class::Int32 | Class::Int64 | Class::Char => column.to_owned(),
            // The server's own casts of these two write more than the type does.
            Class::Native if !matches!(kind.declared.as_str(), "inet" | "cidr") => written("%s", column),
            _ => format!("{column}::text"),
        }
    }

    /// What the server sends of a value in binary, or writes by another function than the type's own.
    fn check(&self, kind: &Kind, exact: bool, x: &str) -> (Shape, String) {
        let plain = |name: &str| (Shape::Plain, expression("postgresql", name, x));
        let hex = |shape: Shape, bytes: String| (shape, format!("pg_catalog.encode({bytes}, 'hex')"));
        match kind.class {
            Class::Bool => (Shape::Plain, format!("{x}::int::text")),
            Class::Int16 | Class::Int32 | Class::Int64 | Class::Decimal => {
                (Shape::Plain, format!("{x}::text"))
            }
            Class::Float32 => hex(Shape::Bits, format!("pg_catalog.float4send({x})")),
            Class::Float64 => hex(Shape::Bits, format!("pg_catalog.float8send({x})")),
            Class::Blob => hex(Shape::Hex, x.to_owned()),
            Class::Char => hex(Shape::Hex, format!("pg_catalog.bpcharsend({x})")),
            Class::Uuid => hex(Shape::Plain, format!("pg_catalog.uuid_send({x})")),
            Class::Date => plain("date"),
            Class::Time => plain("time"),
            Class::Timestamp => plain("timestamp"),
            Class::TimestampTz => plain("instant"),
            // Numbers of objects are not those of another server, nor are types in arrays of types of one's own.
            Class::Native
                if exact && !kind.declared.starts_with("reg") && !kind.declared.starts_with("acl") =>
            {
                plain("sent")
            }
            _ => hex(Shape::Hex, format!("pg_catalog.textsend({})", self.read(kind, x))),
        }
    }

    /// Of times, what the server sends in binary: microseconds or days since the year 2000.
    fn agreed(&self, kind: &Kind, _: bool, x: &str) -> Option<String> {
        let sent = |of: &str| Some(format!("pg_catalog.encode(pg_catalog.{of}_send({x}), 'hex')"));
        match kind.class {
            Class::Bool => Some(format!("{x}::int")),
            Class::Int16 | Class::Int32 | Class::Int64 | Class::Decimal => Some(x.to_owned()),
            // A cast, which takes spaces away, costs more than all else of such a value, and a full one has none.
            Class::Char if kind.n != UNLIMITED => Some(format!(
                "CASE pg_catalog.char_length({x}) WHEN {} THEN pg_catalog.concat({x}) ELSE {x}::text END",
                kind.n
            )),
            Class::Char | Class::Varchar | Class::Text | Class::Uuid => Some(format!("{x}::text")),
            Class::Blob => Some(format!("pg_catalog.encode({x}, 'hex')")),
            Class::Date => sent("date"),
            Class::Time => sent("time"),
            Class::Timestamp => sent("timestamp"),
            Class::TimestampTz => sent("timestamptz"),
            _ => None,
        }
    }

    fn cannot_hold(&self, stored: &Kind) -> Option<IssueKind> {
        match stored.class {
            Class::Char | Class::Varchar | Class::Text | Class::Json => Some(IssueKind::NulCharacter),
            Class::Date | Class::Timestamp | Class::TimestampTz => Some(IssueKind::ZeroDate),
            Class::Time => Some(IssueKind::TimeRange),
            _ => None,
        }
    }

    fn maybe_not_utf8(&self, source: &mut Side) -> Result<Option<Expression>> {
        let is_any = source.value("SELECT pg_catalog.getdatabaseencoding()")?.as_deref() == Some("SQL_ASCII");
        Ok(is_any.then_some(|x| {
            let text = written("%s", x);
            format!("CASE WHEN pg_catalog.textregexeq({text}, '[^\\x01-\\x7f]') THEN {text} END")
        }))
    }

    fn documents(&self, kind: &Kind, _: &str) -> Documents {
        if kind.declared == "json" { Documents::Kept } else { Documents::Parsed }
    }

    /// As deep as the server's stack of two megabytes is.
    fn document_limits(&self, stored: &Kind, _: &str) -> Option<DocumentLimits> {
        let limits = DocumentLimits { depth: 6_000, has_doubles: false, has_zero: false };
        (stored.declared == "jsonb").then_some(limits)
    }

    fn collate(&self, collation: &Collation, target: &TargetFacts, same: bool) -> String {
        match collation {
            // That of both databases.
            Collation::Binary(_) if same && !target.by_bytes.is_empty() => String::new(),
            Collation::Bytes | Collation::Binary(_) => " COLLATE \"C\"".to_owned(),
            // The first one is the database's.
            Collation::Named(name) if same && target.collations.iter().skip(1).any(|known| known == name) => {
                format!(" COLLATE {name}")
            }
            Collation::Named(_) => String::new(),
        }
    }

    fn facts(&self, side: &mut Side) -> Result<TargetFacts> {
        let mut collations = texts(&side.catalogue(query("postgresql", "collations"))?, 0);
        let (own, is_binary) = match catalog::of_database(side)? {
            Collation::Bytes => ("C".to_owned(), true),
            Collation::Binary(own) => (own, true),
            Collation::Named(own) => (own, false),
        };
        let by_bytes = if is_binary { own.clone() } else { String::new() };
        collations.insert(0, own);
        let encoding = side.value("SELECT pg_catalog.getdatabaseencoding()")?.unwrap_or_default();
        Ok(TargetFacts { by_bytes, collations, encoding, ..TargetFacts::default() })
    }
}
