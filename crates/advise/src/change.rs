//! A proposal: a change that could make the traffic faster, its text for the server and for people, and why.

use crate::shapes::Part;
use kurabe_copy::engines::Engine;
use kurabe_copy::script::{comment, quoted};
use std::fmt::Write as _;

/// A change of the database or of its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Index(Index),
    DropIndex {
        table: TableName,
        name: String,
        columns: Vec<String>,
    },
    Setting {
        name: String,
        value: String,
    },
    /// What the application does otherwise: the axis of a replay that does it, and its words.
    Client {
        axis: &'static str,
        words: String,
    },
}

/// A change, and why it could help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    pub change: Change,
    /// The reason, as a clause.
    pub reason: String,
    /// What it costs beside what is measured: memory of a setting.
    pub costs: Option<String>,
}

/// A table, and its schema if that is not the one in which names are looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableName {
    pub schema: String,
    pub name: String,
}

impl TableName {
    /// A name of something in the table's schema, for the server.
    fn beside(&self, name: &str, engine: &Engine) -> String {
        let schema = if self.schema.is_empty() { String::new() } else { quoted(engine, &self.schema) + "." };
        schema + &quoted(engine, name)
    }
}

impl std::fmt::Display for TableName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dot = if self.schema.is_empty() { "" } else { "." };
        write!(out, "{}{dot}{}", self.schema, self.name)
    }
}

/// An index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    pub name: String,
    pub table: TableName,
    pub parts: Vec<Part>,
    /// Whether the last parts that are columns go downwards.
    pub down: Vec<bool>,
    /// Columns that it only holds.
    pub include: Vec<String>,
    /// A column and the literal that all of its rows have.
    pub only: Option<(String, String)>,
}

/// Which texts an engine takes.
pub fn is_postgres(engine: &Engine) -> bool {
    engine.schemes.contains(&"postgres")
}

impl Change {
    /// The statement; `None` of what no statement does.
    pub fn sql(&self, engine: &Engine) -> Option<String> {
        match self {
            Self::Index(index) => Some(index.sql(engine)),
            Self::DropIndex { table, name, .. } => Some(if is_postgres(engine) {
                format!("DROP INDEX {};", table.beside(name, engine))
            } else {
                let table = table.beside(&table.name, engine);
                format!("ALTER TABLE {table} DROP INDEX {};", quoted(engine, name))
            }),
            Self::Setting { .. } | Self::Client { .. } => None,
        }
    }

    /// The lines for a file: a statement, or how a setting is made to stay.
    pub fn script(&self, engine: &Engine) -> String {
        match self {
            Self::Setting { name, value } if is_postgres(engine) => {
                format!("ALTER SYSTEM SET {name} = '{value}'; -- some settings need a restart")
            }
            Self::Setting { name, value } => {
                format!(
                    "-- in section [mysqld] of the server's file of options, and restart it:\n-- {name} = {value}"
                )
            }
            Self::Client { words, .. } => comment(&format!("in the application: {words}")),
            _ => self.sql(engine).unwrap_or_default(),
        }
    }

    /// A line for people.
    pub fn label(&self) -> String {
        match self {
            Self::Index(index) => index.label(),
            Self::DropIndex { table, name, columns } => {
                format!("DROP INDEX {name} ON {table} ({})", columns.join(", "))
            }
            Self::Setting { name, value } => format!("{name} = {value}"),
            Self::Client { words, .. } => words.clone(),
        }
    }
}

impl Index {
    fn sql(&self, engine: &Engine) -> String {
        let quoted = |name: &str| quoted(engine, name);
        let is_postgres = is_postgres(engine);
        let part = |(at, part): (usize, &Part)| {
            let down = if self.down.get(at) == Some(&true) { " DESC" } else { "" };
            match part {
                Part::Column(column) => format!("{}{down}", quoted(column)),
                Part::Beginning(column) if is_postgres => {
                    format!("{} pg_catalog.text_pattern_ops", quoted(column))
                }
                Part::Beginning(column) => quoted(column),
                Part::Prefix(column, length) => format!("{}({length})", quoted(column)),
                // The index calls the catalogue's function, and none of this name that another role made.
                Part::Call { function, column } if is_postgres => {
                    format!("pg_catalog.{function}({})", quoted(column))
                }
                Part::Call { function, column } => format!("({function}({}))", quoted(column)),
            }
        };
        let parts: Vec<String> = self.parts.iter().enumerate().map(part).collect();
        let table = self.table.beside(&self.table.name, engine);
        let mut sql = format!("CREATE INDEX {} ON {table} ({})", quoted(&self.name), parts.join(", "));
        if !self.include.is_empty() {
            let columns: Vec<String> = self.include.iter().map(|column| quoted(column)).collect();
            let _ = write!(sql, " INCLUDE ({})", columns.join(", "));
        }
        if let Some((column, literal)) = &self.only {
            let _ = write!(sql, " WHERE {} OPERATOR(pg_catalog.=) {literal}", quoted(column));
        }
        sql + ";"
    }

    fn label(&self) -> String {
        let part = |(at, part): (usize, &Part)| {
            let down = if self.down.get(at) == Some(&true) { " DESC" } else { "" };
            match part {
                Part::Column(column) | Part::Beginning(column) => format!("{column}{down}"),
                Part::Prefix(column, length) => format!("{column}({length})"),
                Part::Call { function, column } => format!("{function}({column})"),
            }
        };
        let parts: Vec<String> = self.parts.iter().enumerate().map(part).collect();
        let mut label = format!("CREATE INDEX ON {} ({})", self.table, parts.join(", "));
        if !self.include.is_empty() {
            let _ = write!(label, " INCLUDE ({})", self.include.join(", "));
        }
        if let Some((column, literal)) = &self.only {
            let _ = write!(label, " WHERE {column} = {literal}");
        }
        label
    }
}
