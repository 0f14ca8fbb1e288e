//! Firebird 3.

use super::engine::{Dialect, Engine};
use super::facts::TargetFacts;
use super::queries::query;
use crate::catalog::{Catalog, Collation, Column, DefaultValue, Table, read_default};
use crate::issue::IssueKind;
use crate::sql::{Row, Side, text};
use crate::types::{Class, Kind};
use crate::verify::form::Shape;
use kurabe_core::Result;

pub(super) static FIREBIRD: Engine = Engine {
    longest_name: 31,
    default_fraction: 4,
    default_decimal: (9, 0),
    // The client waits for each statement's answer, and a statement has few parameters.
    insert_limits: (1, 250),
    one_row: " FROM RDB$DATABASE",
    delimiter: Some(|new, old| format!("SET TERM {new} {old}")),
    identity_of: Some(|literal| {
        format!("SELECT RDB$RELATION_ID FROM RDB$RELATIONS WHERE RDB$RELATION_NAME = {literal}")
    }),
    foreign_keys_have_one_type: true,
    // An index entry has at most a quarter of a page, and a character four bytes.
    longest_key: Some(250),
    ..Engine::of("Firebird", &["firebird"], &Firebird)
};

struct Firebird;

impl Dialect for Firebird {
    fn place(&self, side: &mut Side) -> Result<Option<[String; 2]>> {
        let row = side.rows("SELECT MON$DATABASE_NAME, MON$CREATION_DATE FROM MON$DATABASE")?;
        Ok(row.first().map(|row| [0, 1].map(|at| text(row, at).to_owned())))
    }

    fn catalog(&self, side: &mut Side) -> Result<Catalog> {
        let mut catalog = Catalog::default();
        let sql = query("firebird", "catalog");
        for row in side.rows(sql)? {
            let name = text(&row, 0);
            catalog.names.push(name.to_owned());
            if text(&row, 1) == "0" {
                catalog.tables.push(Table { name: name.to_owned(), ..Table::default() });
            }
        }
        columns(side, &mut catalog)?;
        indexes(side, &mut catalog)?;
        constraints(side, &mut catalog)?;
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

    fn check(&self, kind: &Kind, _: bool, x: &str) -> (Shape, String) {
        let parts = |parts: &[(&str, &str)]| {
            let parts = parts.iter().map(|(before, part)| format!("'{before}' || EXTRACT({part} FROM {x})"));
            (Shape::Plain, parts.collect::<Vec<_>>().join(" || "))
        };
        let date = [("", "YEAR"), ("-", "MONTH"), ("-", "DAY")];
        let time = [("", "HOUR"), (":", "MINUTE"), (":", "SECOND")];
        match kind.class {
            Class::Bool => (Shape::Plain, format!("CAST({x} AS VARCHAR(5))")),
            Class::Float32 => (Shape::Plain, format!("'' || CAST({x} AS DOUBLE PRECISION)")),
            // A number is written with 16 digits, and has up to 17: in two parts, after T. J. Dekker (1971).
            Class::Float64 => {
                let high = format!("({x} * 134217729 - ({x} * 134217729 - {x}))");
                let halves = format!("{high} || '|' || ({x} - {high})");
                (Shape::Halves, format!("CASE WHEN ABS({x}) < 1e290 THEN {halves} ELSE {x} || '|0' END"))
            }
            Class::Date => parts(&date),
            Class::Time => parts(&time),
            Class::Timestamp => parts(&[&date[..], &[(" ", "HOUR")], &time[1..]].concat()),
            Class::Binary | Class::Varbinary => {
                (Shape::Plain, format!("CAST({x} AS VARCHAR({}) CHARACTER SET OCTETS)", kind.n))
            }
            // The bytes of the text in UTF-8.
            Class::Char | Class::Varchar if kind.n <= 8_000 => {
                let text = format!("CAST({x} AS VARCHAR({}) CHARACTER SET UTF8)", kind.n);
                (Shape::Plain, format!("CAST({text} AS VARCHAR({}) CHARACTER SET OCTETS)", 4 * kind.n))
            }
            Class::Char | Class::Varchar | Class::Text => {
                let text = format!("CAST({x} AS BLOB SUB_TYPE TEXT CHARACTER SET UTF8)");
                (Shape::Plain, format!("CAST({text} AS BLOB SUB_TYPE BINARY)"))
            }
            Class::Blob => (Shape::Plain, x.to_owned()),
            _ => (Shape::Plain, format!("'' || {x}")),
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

    fn collate(&self, _: &Collation, _: &TargetFacts, _: bool) -> String {
        String::new()
    }

    /// Its own checks at once, too.
    fn action<'a>(&self, action: &'a str) -> &'a str {
        if action == "RESTRICT" { "NO ACTION" } else { action }
    }

    fn restart_identity(&self, table: &str, column: &str, next: i128) -> Option<String> {
        // The next number is one more than this.
        Some(format!("ALTER TABLE {table} ALTER COLUMN {column} RESTART WITH {}", next - 1))
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
    let sql = query("firebird", "columns");
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
            default: if default.is_empty() { DefaultValue::Null } else { read_default(default, false) },
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
    let sql = query("firebird", "indexes");
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
    catalog.add_foreign_keys(&side.rows(query("firebird", "foreign_keys"))?);
    // A check is two triggers of one text; that of a domain is one of each of its columns.
    let sql = query("firebird", "checks");
    for row in side.rows(sql)? {
        let (table, name, check) = (text(&row, 0), text(&row, 1), text(&row, 2));
        let left = catalog.leave(IssueKind::Check, Some(table), name, check);
        if text(&row, 3).trim().is_empty() {
            let [table, name] = [table, name].map(|name| side.quoted(name));
            left.with_statement(format!("ALTER TABLE {table} ADD CONSTRAINT {name} {check}"));
        }
    }
    Ok(())
}
