//! MySQL and MariaDB.

mod catalog;
mod characters;

use super::engine::{Dialect, Engine, Sums};
use super::facts::{DocumentLimits, Documents, Identity, TargetFacts};
use super::queries::expression;
use crate::catalog::{Collation, Column, Table, Text};
use crate::issue::IssueKind;
use crate::page::Cell;
use crate::script::quoted;
use crate::sql::{GAP, Row, Side, first, only_refused, text, texts};
use crate::types::{Class, Kind, Mapped, UNLIMITED};
use crate::verify::form::Shape;
use kurabe_core::Result;

/// Collations that compare text by bytes, including trailing spaces: MariaDB since 10.2, MySQL since 8.0.17; then that
/// of every version, which ignores trailing spaces.
const BY_BYTES: [&str; 3] = ["utf8mb4_nopad_bin", "utf8mb4_0900_bin", "utf8mb4_bin"];

pub(super) static MYSQL: Engine = Engine {
    quote: '`',
    syntax: kurabe_protocol::sql::Dialect::MYSQL,
    delimiter: Some(|new| format!("DELIMITER {new}")),
    // The first line is a comment for the server, and a command for its client, which would find the ends of quotes by its own character set.
    script: "/*!999999 \\C utf8mb4 */;\nSET NAMES utf8mb4;\nSET SESSION sql_mode = '', time_zone = '+00:00';\n",
    longest_name: 64,
    has_narrow_names: true,
    reading: &[
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET SESSION TRANSACTION READ ONLY",
        // A writer that waits for its disk keeps the server from sending.
        "SET SESSION net_write_timeout = 86400",
        "SET SESSION wait_timeout = 604800",
    ],
    // Zero dates and zeros in columns whose numbers the server gives are stored as they are. Foreign keys are checked
    // when they are added.
    writing: &["SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'"],
    writing_into_keys: &["SET SESSION foreign_key_checks = 0"],
    // A geometry, or a vector, is the bytes that the server stores.
    exact_class: |kind| {
        if kind.class == Class::Geometry || is_vector(kind) { Class::Blob } else { kind.class }
    },
    now: |stored| match stored.n {
        0 | UNLIMITED => "CURRENT_TIMESTAMP".to_owned(),
        n => format!("CURRENT_TIMESTAMP({})", n.min(6)),
    },
    default_fraction: 0,
    default_decimal: (10, 0),
    longest_decimal: Some((35, 30)),
    octets: |column| format!("LENGTH({column})"),
    insert_limits: (500, 60_000),
    sums: Some(Sums {
        row: |texts| format!("CONCAT_WS('|', {texts})"),
        length: |text| format!("CHAR_LENGTH({text})"),
        or: |text, other| format!("COALESCE({text}, '{other}')"),
        sum: |row| format!("CAST(SUM(CAST(CONV(LEFT(SHA2({row}, 256), 14), 16, 10) AS UNSIGNED)) AS CHAR)"),
        exact: None,
    }),
    table_options: " ENGINE=InnoDB COLLATE={collation}",
    // They are stored outside the row.
    without_default: &["text", "blob", "json"],
    // Without it, a TIMESTAMP of an older server is not null.
    nullable: " NULL",
    identity_ends: Some("SELECT SLEEP(1.05 - MICROSECOND(NOW(6)) / 1e6)"),
    // InnoDB refuses the others.
    has_action: |action, nullable| action != "SET DEFAULT" && (nullable || action != "SET NULL"),
    restart_identity: Some(|table, _, next| format!("ALTER TABLE {table} AUTO_INCREMENT = {next}")),
    same_type: Some(["json(text)", "json"]),
    foreign_keys_have_one_type: true,
    drops: Some(["SET SESSION foreign_key_checks = 0", "SET SESSION foreign_key_checks = 1"]),
    // Partitions, full texts, versions, periods, and options of storage.
    not_temporary: &["1562", "1506", "1796", "4137", "4152", "3500", "3833", "1031", "1478"],
    index_names_are_shared: false,
    // An index entry has at most 3,072 bytes, and a character up to four.
    longest_key: Some(760),
    // Of 65,535, and of the 8,126 of half a page of InnoDB, some are of the table itself.
    longest_row: Some([65_000, 8_000]),
    ..Engine::of("MySQL", &["mysql", "mariadb"], &Mysql, catalog::read)
};

struct Mysql;

fn is_vector(kind: &Kind) -> bool {
    kind.declared.starts_with("vector")
}

/// A user or a role in quotes. Servers compare names of hosts without regard to case, and MariaDB's roles have none.
fn account(user: &str, host: &str) -> String {
    let host = quoted(&MYSQL, &host.to_lowercase());
    format!("{}@{host}", quoted(&MYSQL, user)).trim_end_matches("@``").to_owned()
}

impl Dialect for Mysql {
    fn set(&self, side: &mut Side, settings: &[[String; 2]]) -> Result<()> {
        // The list of variables is an answer that it limits, too.
        side.run("SET SESSION sql_select_limit = 18446744073709551615")?;
        let names = settings.iter().map(|[name, _]| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        let known = side.rows(&format!("SHOW SESSION VARIABLES WHERE Variable_name IN ({names})"))?;
        let known = settings.iter().filter(|[name, _]| known.iter().any(|row| text(row, 0) == name));
        let known: Vec<String> = known.map(|[name, value]| format!("SESSION {name} = {value}")).collect();
        side.run(&format!("SET {}", known.join(", ")))
    }

    /// MySQL's servers have an identifier, and MariaDB's since version 10.11.12.
    fn place(&self, side: &mut Side) -> Result<Option<[String; 2]>> {
        let ids = side.rows("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_uid', 'datadir', 'hostname', 'port')")?;
        let ids = ids.iter().map(|row| text(row, 1)).collect::<Vec<_>>().join(" ");
        Ok(side.value("SELECT DATABASE()")?.map(|name| [name, ids]))
    }

    fn hold(&self, side: &mut Side, tables: &[String]) -> Result<Vec<(String, String)>> {
        side.run("SET SESSION lock_wait_timeout = 60")?;
        let lock = |table: &String| format!("{} READ", quoted(&MYSQL, table));
        let (mut locks, mut unheld) = (Vec::new(), Vec::new());
        for table in tables {
            match side.run_text(&format!("LOCK TABLES {}", lock(table))) {
                Ok(()) => locks.push(lock(table)),
                Err(error) => unheld.push((table.clone(), only_refused(error)?.to_string())),
            }
        }
        // Each such statement ends the locks of the one before.
        let all = format!("LOCK TABLES {}", locks.join(", "));
        if locks.is_empty() { Ok(unheld) } else { side.run_text(&all).map(|()| unheld) }
    }

    /// No other session commits between the first transaction and the last one.
    fn begin_together(&self, sides: &mut [&mut Side], hold: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let Some(first) = sides.first_mut() else { return Ok(()) };
        first.run("SET SESSION lock_wait_timeout = 60")?;
        first.run_text("FLUSH TABLES WITH READ LOCK").map_err(|error| {
            error.hint("several sessions read the same rows only with the privilege RELOAD; or use --jobs 1")
        })?;
        // A server that waits for all tables to be closed would wait for one that is locked.
        let mut all = || {
            hold()?;
            let statement = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
            sides.iter_mut().try_for_each(|side| side.run_text(statement))
        };
        let begun = all();
        sides.first_mut().map_or(Ok(()), |first| first.run_text("UNLOCK TABLES")).and(begun)
    }

    fn own_text(&self, side: &mut Side, kind: IssueKind, row: &Row) -> Result<(Text, Vec<String>)> {
        let [table, name, what, whom, option, on] = [0, 1, 2, 3, 4, 5].map(|at| text(row, at).to_owned());
        Ok(match kind {
            IssueKind::Comment => (Text::Remark { what, own: String::new(), text: whom }, Vec::new()),
            // The server writes 'user'@'host', whatever is in the user's name.
            IssueKind::Grant => {
                let inner = whom.get(1..whom.len().saturating_sub(1)).unwrap_or_default();
                let (user, host) = inner.rsplit_once("'@'").unwrap_or((inner, "%"));
                let whom = account(user, host);
                let table = if table.is_empty() { "*".to_owned() } else { side.quoted(&table) };
                let sql = format!("GRANT {what} ON {on}{table} TO {whom}{option}");
                let is_gone = row.get(6).is_some_and(Option::is_none);
                (if is_gone { Text::Words(sql) } else { Text::Statement(sql) }, vec![whom])
            }
            // What follows is its definer.
            _ => {
                let definer = whom.rsplit_once('@').map(|(user, host)| account(user, host));
                let mut own = catalog::own_text(side, &what, &name)?;
                let mut named: Vec<String> = definer.into_iter().collect();
                if let Text::Under(settings, sql) = &mut own {
                    // Each server knows its own time zone, and differences of hours.
                    let is_known = |zone: &str| zone == "SYSTEM" || zone.starts_with(['+', '-']);
                    let may_lack = |(name, value): &&(&str, String)| {
                        *name == "collation_connection" || *name == "time_zone" && !is_known(value)
                    };
                    named.extend(settings.iter().filter(may_lack).map(|(_, value)| value.clone()));
                    if what == "VIEW" {
                        named.extend(catalog::placed(side, sql)?);
                    }
                }
                (own, named)
            }
        })
    }

    /// A column is declared again with it.
    fn comment(&self, table: &str, column: Option<(&str, &str)>, literal: &str) -> Option<String> {
        let column = column.map_or_else(String::new, |(_, sql)| format!(" MODIFY {sql}"));
        Some(format!("ALTER TABLE {table}{column} COMMENT {literal}"))
    }

    /// Integers, floating-point numbers, bytes and text come as they are. All else is text: a date may be one that no
    /// calendar has, and an unsigned integer may have 64 bits.
    fn read(&self, kind: &Kind, column: &str) -> String {
        match kind.class {
            Class::UInt64 | Class::Date | Class::Time | Class::Timestamp | Class::TimestampTz => {
                format!("CAST({column} AS CHAR)")
            }
            Class::Bits => format!("CAST(CAST({column} AS UNSIGNED) AS CHAR)"),
            Class::Geometry => format!("ST_AsText({column})"),
            Class::Native if is_vector(kind) => format!("VECTOR_TO_STRING({column})"),
            Class::Blob if is_vector(kind) => format!("CAST({column} AS BINARY)"),
            _ => column.to_owned(),
        }
    }

    fn check(&self, kind: &Kind, exact: bool, x: &str) -> (Shape, String) {
        let plain = |text: String| (Shape::Plain, text);
        match kind.class {
            Class::Native if is_vector(kind) => (Shape::Hex, format!("HEX(VECTOR_TO_STRING({x}))")),
            Class::Float32 | Class::Float64 => plain(expression("mysql", "all_digits", x)),
            Class::Bits => plain(format!("CONV(HEX({x}), 16, 10)")),
            Class::Date => plain(format!("DATE_FORMAT({x}, '%Y-%m-%d')")),
            Class::Time => plain(format!("TIME_FORMAT({x}, '%H:%i:%s.%f')")),
            Class::Timestamp => plain(format!("DATE_FORMAT({x}, '%Y-%m-%d %H:%i:%s.%f')")),
            Class::TimestampTz => plain(expression("mysql", "instant", x)),
            class if class.is_bytes() => (Shape::Hex, format!("HEX({x})")),
            Class::Geometry if !exact => (Shape::Hex, format!("HEX(ST_AsWKT({x}))")),
            class if class.is_text() || matches!(class, Class::Uuid | Class::Json | Class::Native) => {
                (Shape::Hex, format!("HEX(CONVERT({x} USING utf8mb4))"))
            }
            _ => plain(format!("CONCAT({x})")),
        }
    }

    /// Times as PostgreSQL sends them: since the year 2000, as signed integers of 32 and 64 bits.
    fn agreed(&self, kind: &Kind, exact: bool, x: &str) -> Option<String> {
        match kind.class {
            Class::Date => Some(expression("mysql", "sent_date", x)),
            Class::Time => Some(expression("mysql", "sent_time", x)),
            Class::Timestamp | Class::TimestampTz => Some(expression("mysql", "sent_timestamp", x)),
            Class::Float32 | Class::Float64 => exact.then(|| expression("mysql", "all_digits", x)),
            // Without the zeros of ZEROFILL.
            class if class.is_whole() || class == Class::Decimal => Some(format!("{x} + 0")),
            class if class.is_bytes() => Some(format!("LOWER(HEX({x}))")),
            class if class.is_text() || class == Class::Uuid => Some(format!("CONVERT({x} USING utf8mb4)")),
            _ => None,
        }
    }

    fn write(&self, stored: &Kind) -> String {
        match stored.class {
            // As an unsigned integer, MySQL 9 reads the text of a number from 2^63 on as a negative one.
            Class::Bits => format!("CAST({GAP} AS DECIMAL(20))"),
            _ => GAP.to_string(),
        }
    }

    /// A number is not compared with text, which would make both floating-point.
    fn compared(&self, kind: &Kind, _: Cell<'_>) -> String {
        match kind.class {
            Class::UInt64 => format!("CAST({GAP} AS DECIMAL(20))"),
            Class::Decimal => format!("CAST({GAP} AS DECIMAL(65,{}))", kind.s.min(30)),
            _ => GAP.to_string(),
        }
    }

    fn cannot_hold(&self, stored: &Kind) -> Option<IssueKind> {
        match stored.class {
            Class::Float32 | Class::Float64 | Class::Decimal => Some(IssueKind::NotANumber),
            Class::Date | Class::Timestamp | Class::TimestampTz => Some(IssueKind::DateRange),
            Class::Enum => Some(IssueKind::Enum),
            _ => None,
        }
    }

    /// Counts question marks: a character that Unicode lacks becomes one.
    fn has_no_unicode(&self, column: &Column, name: &str) -> Option<String> {
        let (Collation::Named(rules) | Collation::Binary(rules)) = &column.collation else { return None };
        let without = |text: &str| format!("CHAR_LENGTH(REPLACE({text}, '?', ''))");
        let unicode = without(&format!("CONVERT({name} USING utf8mb4)"));
        let is_unicode = ["utf", "ucs", "latin1", "ascii"].iter().any(|known| rules.starts_with(known));
        (!is_unicode).then(|| format!("{unicode} < {}", without(name)))
    }

    /// MariaDB's JSON is a text.
    fn documents(&self, kind: &Kind, edition: &str) -> Documents {
        if kind.declared == "json" && edition != "MariaDB" { Documents::Rounded } else { Documents::Kept }
    }

    /// The depths are limits of the servers' own parsers.
    fn document_limits(&self, stored: &Kind, edition: &str) -> Option<DocumentLimits> {
        let is_mariadb = edition == "MariaDB";
        let depth = if is_mariadb { 31 } else { 100 };
        let limits = DocumentLimits { depth, has_doubles: !is_mariadb, has_zero: true };
        (stored.declared == "json").then_some(limits)
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

    fn facts(&self, side: &mut Side) -> Result<TargetFacts> {
        let collations = texts(&side.rows("SELECT collation_name FROM information_schema.collations")?, 0);
        let found = BY_BYTES.iter().find(|name| collations.iter().any(|known| known == *name));
        let by_bytes = (*found.unwrap_or(&BY_BYTES[2])).to_owned();
        let edition = if catalog::is_mariadb(side)? { "MariaDB" } else { "MySQL" }.to_owned();
        let folds_tables = side.number("SELECT @@lower_case_table_names")? != 0;
        // MySQL's setting and MariaDB's.
        let keys = "'sql_require_primary_key', 'innodb_force_primary_key'";
        let keys = format!("SHOW VARIABLES WHERE variable_name IN ({keys}) AND value IN ('ON', '1')");
        let requires_keys = first(side.rows(&keys)?);
        Ok(TargetFacts {
            by_bytes,
            collations,
            // Of values that are elsewhere, MariaDB counts what a row has.
            longest_in_page: Some((8_126, edition == "MariaDB")),
            folds_tables,
            folds_columns: true,
            edition,
            without_transactions: side.without_transactions()?,
            requires_keys,
            ..TargetFacts::default()
        })
    }

    fn identity(&self, table: &Table, column: &Column, _: &Mapped) -> Option<Identity> {
        // One column of a table, which is the first of a key.
        let only = table.columns.iter().filter(|other| other.identity).count() == 1;
        let keyed = table.primary.first() == Some(&column.name);
        (only && keyed).then_some(Identity { after: " AUTO_INCREMENT", ..Identity::default() })
    }
}
