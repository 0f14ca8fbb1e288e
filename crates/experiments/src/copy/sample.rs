//! A generated table with a column of every type that engines have in common, and statements that each engine writes in its own way.
//!
//! A cell is a function of its row and column. Each engine declares the columns by types of its own.

use kurabe_copy::engines::{ALL, Engine, GAP};
use kurabe_copy::page::{Cell, Encoded, Page};
use kurabe_copy::rows::encode;
use kurabe_copy::script::quoted;
use kurabe_copy::sql::pieces;
use kurabe_copy::types::{Class, Mapped};
use kurabe_core::collection::Collection;
use kurabe_core::driver::Session;
use kurabe_core::operation::Operation;
use kurabe_core::raw::{RawStatement, RawText};
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, Result};
use std::fmt::Write as _;
use std::sync::Arc;

/// The key, which counts the rows from 1.
pub const KEY: &str = "id";

/// The columns after the key: name, class, and the type on each of [`ALL`].
const COLUMNS: &[(&str, Class, [&str; 4])] = &[
    ("c_bool", Class::Bool, ["BOOLEAN", "boolean", "tinyint(1)", "BOOLEAN"]),
    ("c_int8", Class::Int8, ["TINYINT", "smallint", "tinyint", "SMALLINT"]),
    ("c_int16", Class::Int16, ["SMALLINT", "smallint", "smallint", "SMALLINT"]),
    ("c_int32", Class::Int32, ["INTEGER", "integer", "int", "INTEGER"]),
    ("c_int64", Class::Int64, ["BIGINT", "bigint", "bigint", "BIGINT"]),
    (
        "c_unsigned64",
        Class::UInt64,
        ["UNSIGNED64_TEXT", "numeric(20)", "bigint unsigned", "VARCHAR(20) CHARACTER SET ASCII"],
    ),
    ("c_decimal", Class::Decimal, ["DECIMAL_TEXT(18,4)", "numeric(18,4)", "decimal(18,4)", "DECIMAL(18,4)"]),
    ("c_float32", Class::Float32, ["REAL", "real", "float", "FLOAT"]),
    ("c_float64", Class::Float64, ["DOUBLE", "double precision", "double", "DOUBLE PRECISION"]),
    ("c_char", Class::Char, ["CHAR(8)", "character(8)", "char(8)", "CHAR(8) CHARACTER SET UTF8"]),
    (
        "c_varchar",
        Class::Varchar,
        ["VARCHAR(60)", "character varying(60)", "varchar(60)", "VARCHAR(60) CHARACTER SET UTF8"],
    ),
    ("c_text", Class::Text, ["TEXT", "text", "longtext", "BLOB SUB_TYPE TEXT CHARACTER SET UTF8"]),
    ("c_binary", Class::Binary, ["BLOB", "bytea", "binary(8)", "VARCHAR(8) CHARACTER SET OCTETS"]),
    ("c_varbinary", Class::Varbinary, ["BLOB", "bytea", "varbinary(40)", "VARCHAR(40) CHARACTER SET OCTETS"]),
    ("c_blob", Class::Blob, ["BLOB", "bytea", "longblob", "BLOB SUB_TYPE BINARY"]),
    ("c_date", Class::Date, ["DATE_TEXT", "date", "date", "DATE"]),
    ("c_time", Class::Time, ["TIME_TEXT(3)", "time(3) without time zone", "time(3)", "TIME"]),
    (
        "c_timestamp",
        Class::Timestamp,
        ["DATETIME_TEXT(3)", "timestamp(3) without time zone", "datetime(3)", "TIMESTAMP"],
    ),
    (
        "c_instant",
        Class::TimestampTz,
        ["TIMESTAMPTZ_TEXT(3)", "timestamp(3) with time zone", "datetime(3)", "TIMESTAMP"],
    ),
    ("c_uuid", Class::Uuid, ["UUID_TEXT", "uuid", "char(36)", "CHAR(36) CHARACTER SET ASCII"]),
    ("c_json", Class::Json, ["JSON_TEXT", "jsonb", "json", "BLOB SUB_TYPE TEXT CHARACTER SET UTF8"]),
];

/// The bytes of a row, about.
pub const ROW_BYTES: u64 = 500;

/// One cell in this many is null.
const NULLS: u64 = 11;

/// Rows of an insert, at most.
const TOGETHER: usize = 50;

/// Inserts of a transaction.
const BATCH: usize = 40;

/// Replaces a collection by a table of this name with these rows. The collection exists and is Kurabe's.
pub fn load(session: &mut dyn Session, collection: &Arc<Collection>, rows: u64) -> Result<()> {
    let mut reply = Reply::new();
    let drop = of_each(collection, |engine| format!("DROP TABLE {}", quoted(engine, &collection.name)));
    once(session, &drop, &mut reply)?;
    once(session, &of_each(collection, |engine| create(engine, &collection.name)), &mut reply)?;
    let engine = engine_of(session, collection)?;
    let together = together(engine);
    let full = session.prepare(&insert(collection, together))?;
    // After the insert, so that the transaction is of its server.
    let [begin, commit] = [Operation::Begin, Operation::Commit].map(|control| session.prepare(&control));
    let (begin, commit) = (begin?, commit?);
    let mut page = Page::new(0);
    for batch in (1..=rows).step_by(together * BATCH) {
        let end = rows.min(batch + (together * BATCH) as u64 - 1);
        session.execute(&begin, &[], &mut reply)?;
        for first in (batch..=end).step_by(together) {
            let last = end.min(first + together as u64 - 1);
            fill(&mut page, first, last);
            let parameters = encoded(engine, &page)?;
            let values: Vec<Value<'_>> = parameters.iter().map(Encoded::value).collect();
            if page.rows() == together {
                session.execute(&full, &values, &mut reply)?;
            } else {
                let part = session.prepare(&insert(collection, page.rows()))?;
                session.execute(&part, &values, &mut reply)?;
                session.release(part)?;
            }
        }
        session.execute(&commit, &[], &mut reply)?;
    }
    [full, begin, commit].into_iter().try_for_each(|prepared| session.release(prepared))
}

fn once(session: &mut dyn Session, operation: &Operation, reply: &mut Reply) -> Result<()> {
    let prepared = session.prepare(operation)?;
    session.execute(&prepared, &[], reply)?;
    session.release(prepared)
}

/// Rows of a full insert, which no engine refuses.
fn together(engine: &Engine) -> usize {
    let (rows, parameters) = engine.insert_limits;
    TOGETHER.min(rows).min(parameters / (COLUMNS.len() + 1)).max(1)
}

/// The key and the columns, as an engine stores them. Every engine has a rule for every class, as a test checks.
fn columns(engine: &Engine) -> Vec<(&'static str, Class, Mapped)> {
    let key = (KEY, Class::Int64, ["BIGINT"; 4]);
    let of = ALL.iter().position(|known| known.name == engine.name);
    let one = |(name, class, types): &(&'static str, Class, [&str; 4])| {
        Some((*name, *class, Mapped::of(engine, (*types.get(of?)?).to_owned(), None)))
    };
    [key].iter().chain(COLUMNS).filter_map(one).collect()
}

fn create(engine: &Engine, table: &str) -> String {
    let mut sql = format!("CREATE TABLE {} (", quoted(engine, table));
    for (name, _, mapped) in columns(engine) {
        // Writing to a String cannot fail.
        let _ = match name {
            KEY => write!(sql, "{} {} NOT NULL PRIMARY KEY", quoted(engine, name), mapped.sql),
            _ => write!(sql, ", {} {}{}", quoted(engine, name), mapped.sql, engine.nullable),
        };
    }
    sql + ")" + &engine.table_options.replace("{collation}", "utf8mb4_bin") + made_by_us(engine)
}

/// What follows the options of a table that Kurabe may remove, with a leading space.
pub fn made_by_us(engine: &Engine) -> &'static str {
    // Other engines know a table's owner, or have no comments.
    if engine.quote == '`' { " COMMENT='made by Kurabe'" } else { "" }
}

fn insert(collection: &Arc<Collection>, rows: usize) -> Operation {
    of_each(collection, |engine| {
        let columns = columns(engine);
        let row: Vec<String> =
            columns.iter().map(|(.., mapped)| engine.dialect.write(&mapped.stored)).collect();
        let row = format!("({})", row.join(", "));
        let names: Vec<String> = columns.iter().map(|(name, ..)| quoted(engine, name)).collect();
        let table = quoted(engine, &collection.name);
        format!("INSERT INTO {table} ({}) VALUES {}", names.join(", "), vec![row; rows].join(", "))
    })
}

fn encoded<'a>(engine: &Engine, page: &'a Page) -> Result<Vec<Encoded<'a>>> {
    let columns = columns(engine);
    let mut parameters = Vec::with_capacity(page.rows() * page.width());
    for row in 0..page.rows() {
        for (at, (name, _, mapped)) in columns.iter().enumerate() {
            let one: Result<Encoded<'a>> = encode(engine, mapped.stored.class, page.cell(row, at));
            parameters.push(one.map_err(|error: Error| error.context(name))?);
        }
    }
    Ok(parameters)
}

/// Replaces a page by rows, in canonical form.
fn fill(page: &mut Page, first: u64, last: u64) {
    *page = Page::new(COLUMNS.len() + 1);
    for row in first..=last {
        page.push(Cell::Int(row as i64));
        for (at, (_, class, ..)) in COLUMNS.iter().enumerate() {
            let random = mix(row, at as u64);
            if random.is_multiple_of(NULLS) {
                page.push(Cell::Null);
            } else {
                push(page, *class, random);
            }
        }
    }
}

/// A hash of two numbers: that of Sebastiano Vigna's splitmix64.
fn mix(row: u64, column: u64) -> u64 {
    let sum =
        row.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(column.wrapping_mul(0xD1B5_4A32_D192_ED03));
    let once = (sum ^ (sum >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let twice = (once ^ (once >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    twice ^ (twice >> 31)
}

fn push(page: &mut Page, class: Class, random: u64) {
    let whole = |bits: u32| Cell::Int((random as i64) >> (64 - bits));
    let words = ["größe", "東京", "it's", "a\\b", "\"quoted\"", "tab\there", "plain", "%_"];
    let word = |at: u32| words[(random >> (8 * at)) as usize % words.len()];
    let text = match class {
        Class::Bool => return page.push(Cell::Int(i64::from(random.is_multiple_of(2)))),
        Class::Int8 => return page.push(whole(8)),
        Class::Int16 => return page.push(whole(16)),
        Class::Int32 => return page.push(whole(32)),
        // The smallest one is a floating-point number where it is written as a literal.
        Class::Int64 => return page.push(Cell::Int((random as i64).max(i64::MIN + 1))),
        Class::UInt64 => {
            return match i64::try_from(random) {
                Ok(number) => page.push(Cell::Int(number)),
                Err(_) => page.push(Cell::Bytes(random.to_string().as_bytes())),
            };
        }
        Class::Binary => return page.push(Cell::Bytes(&random.to_be_bytes())),
        Class::Varbinary => {
            return page.push(Cell::Bytes(&random.to_be_bytes().repeat(5)[..=random as usize % 40]));
        }
        Class::Blob => {
            return page.push(Cell::Bytes(&random.to_le_bytes().repeat(20)[..random as usize % 160]));
        }
        Class::Decimal => format!("{}.{}", random as i32, 1 + random % 9),
        // Quarters, which every floating-point type holds, of few digits.
        Class::Float32 => format!("{:?}", f32::from((random >> 20) as i16) / 4.0),
        Class::Float64 => format!("{:?}", f64::from(random as i32) / 4.0),
        Class::Char => format!("{:08x}", random as u32),
        Class::Varchar => format!("{} {}-{}", word(0), word(1), random % 100_000),
        Class::Text => format!("{} {} {:016x} ", word(0), word(1), random).repeat(1 + random as usize % 5),
        Class::Date => date(random),
        Class::Time => time(random),
        Class::Timestamp | Class::TimestampTz => format!("{} {}", date(random), time(random >> 16)),
        Class::Uuid => {
            let digits = format!("{random:016x}{:016x}", random.rotate_left(17));
            [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
        }
        _ => serde_json::json!({ "n": random as i32, "of": [word(0), null_or(random), true], "z": {} })
            .to_string(),
    };
    page.push(Cell::Bytes(text.as_bytes()));
}

fn null_or(random: u64) -> Option<u8> {
    (!random.is_multiple_of(3)).then_some(random as u8)
}

/// A date that every engine's types hold, those that end in 2038 included.
fn date(random: u64) -> String {
    format!("{}-{:02}-{:02}", 1971 + random % 66, 1 + (random >> 8) % 12, 1 + (random >> 16) % 28)
}

/// A time without zeros at the end of its fraction. Hours that clocks skip in some time zones do not occur.
fn time(random: u64) -> String {
    let (hour, minute, second) = (4 + random % 20, (random >> 8) % 60, (random >> 16) % 60);
    format!("{hour:02}:{minute:02}:{second:02}.{}", 1 + (random >> 24) % 9)
}

/// The operation of a statement that each engine writes in its own way, for a collection of any server. All texts have
/// the same parameters. An engine whose tables cannot be copied has no such statement.
pub fn of_each(collection: &Arc<Collection>, text: impl Fn(&'static Engine) -> String) -> Operation {
    let (mut texts, mut parameters) = (Vec::new(), 0);
    for engine in ALL {
        let sql = text(engine);
        parameters = sql.matches(GAP).count();
        texts.push(RawText {
            engine: engine.schemes.first().map(|name| (*name).to_owned()),
            pieces: pieces(&sql),
        });
    }
    let collection = Some(Arc::clone(collection));
    let statement = RawStatement { place: "a copy".to_owned(), texts, parameters, collection };
    Operation::Raw { statement: Arc::new(statement) }
}

/// The operation by which a session's server names its engine.
pub fn which(collection: &Arc<Collection>) -> Operation {
    of_each(collection, |engine| format!("SELECT '{}'", engine.name))
}

/// The engine of a collection's server.
///
/// # Errors
/// [`Unsupported`](kurabe_core::ErrorKind::Unsupported) if its tables cannot be copied; or the server's error.
pub fn engine_of(session: &mut dyn Session, collection: &Arc<Collection>) -> Result<&'static Engine> {
    let which = session.prepare(&which(collection))?;
    let mut reply = Reply::new();
    session.execute(&which, &[], &mut reply)?;
    session.release(which)?;
    let name = String::from_utf8_lossy(reply.field_bytes(0, 0).unwrap_or_default()).into_owned();
    let found = ALL.iter().copied().find(|engine| engine.name == name.trim_end());
    found.ok_or_else(|| Error::unsupported(format!("tables of '{name}' cannot be copied")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_copy::canonical::{Reading, push as canonical};

    #[test]
    fn every_engine_has_a_column_for_every_class() {
        for engine in ALL {
            assert_eq!(columns(engine).len(), COLUMNS.len() + 1, "{}", engine.name);
            let statement = create(engine, "kurabe_0_copy");
            assert!(statement.contains("c_json") && statement.contains("PRIMARY KEY"), "{statement}");
        }
    }

    #[test]
    fn cells_are_in_canonical_form_and_some_are_null() {
        let mut page = Page::new(0);
        fill(&mut page, 1, 500);
        let mut nulls = vec![0; COLUMNS.len()];
        for row in 0..page.rows() {
            assert_eq!(page.cell(row, 0), Cell::Int(row as i64 + 1));
            for (at, (name, class, ..)) in COLUMNS.iter().enumerate() {
                let cell = page.cell(row, at + 1);
                let value = match cell {
                    Cell::Null => {
                        nulls[at] += 1;
                        continue;
                    }
                    Cell::Int(number) => Value::Int(number),
                    Cell::Bytes(bytes) => Value::Bytes(bytes),
                };
                let mut form = Page::new(1);
                let reading = Reading { class: *class, hex: false, exact: false };
                canonical(reading, value, &mut form).unwrap();
                assert_eq!(form.cell(0, 0), cell, "{name}");
            }
        }
        assert!(nulls.iter().all(|count| (1..200).contains(count)), "{nulls:?}");
    }
}
