//! What SQL engines differ in, one file an engine: the tables of types, the catalogue, and how values are read and
//! written as text.

mod dialect;
mod firebird;
mod mysql;
mod postgres;
mod sqlite;

use crate::catalog::Table;
use crate::issue::IssueKind;
use crate::sql::quoted;
use crate::types::UNLIMITED;
pub use dialect::{Dialect, Documents, Identity, TargetFacts};
use kurabe_core::{Error, Result};

pub static ALL: &[&Engine] = &[&sqlite::SQLITE, &postgres::POSTGRES, &mysql::MYSQL, &firebird::FIREBIRD];

/// Databases of documents: scheme, name, and how their documents are had.
const DOCUMENTS: &[(&str, &str, &str)] = &[
    ("mongodb", "MongoDB", "mongoexport"),
    ("mongodb+srv", "MongoDB", "mongoexport"),
    ("couchdb", "CouchDB", "GET /DATABASE/_all_docs?include_docs=true"),
    ("couchdbs", "CouchDB", "GET /DATABASE/_all_docs?include_docs=true"),
];

/// The engine of a URL's scheme.
///
/// # Errors
/// [`Unsupported`](kurabe_core::ErrorKind::Unsupported) with the schemes that can be copied.
pub fn of_scheme(scheme: &str) -> Result<&'static Engine> {
    ALL.iter().copied().find(|engine| engine.schemes.contains(&scheme)).ok_or_else(|| {
        let known: Vec<String> =
            ALL.iter().flat_map(|engine| engine.schemes).map(|scheme| format!("{scheme}:")).collect();
        if let Some((_, name, export)) = DOCUMENTS.iter().find(|(known, ..)| *known == scheme) {
            let what = format!("{name} has no tables: collections of documents cannot be copied from or to it");
            return Error::unsupported(what).hint(format!(
                "{export} writes a document a line, which a table with a JSON column can load; or name one of: {}",
                known.join(", ")
            ));
        }
        Error::unsupported(format!("tables of '{scheme}:' cannot be copied"))
            .hint(format!("source and target are one of: {}", known.join(", ")))
    })
}

/// An SQL engine: what it has as data, and by its dialect what depends on more.
#[expect(clippy::struct_excessive_bools, reason = "facts of an engine that do not depend on one another")]
pub struct Engine {
    /// Its name. Engines of one name have the same types.
    pub name: &'static str,
    /// The schemes of its targets.
    pub schemes: &'static [&'static str],
    pub dialect: &'static dyn Dialect,
    /// The quote of identifiers.
    pub quote: char,
    /// The maximum length of a name in bytes.
    pub longest_name: usize,
    /// Statements that prepare each session.
    pub each_session: &'static [&'static str],
    /// Statements more for a session that reads.
    pub reading: &'static [&'static str],
    /// The statement that begins a transaction which reads; `None`: the driver's own.
    pub begin_reading: Option<&'static str>,
    /// Statements more for a session that writes.
    pub writing: &'static [&'static str],
    /// Statements more for a session that writes into tables with keys.
    pub writing_into_keys: &'static [&'static str],
    /// Whether only one session can insert rows at a time.
    pub has_one_writer: bool,
    /// What it has besides tables.
    pub others: &'static [Others],
    /// Digits of a second if the type does not say.
    pub default_fraction: u32,
    /// Digits of a decimal number, and those after the point, if the type does not say.
    pub default_decimal: (u32, u32),
    /// The digits of a decimal number before and after its point, if it has less than others.
    pub longest_decimal: Option<(u32, u32)>,
    /// What follows the list of columns of an insert, with a leading space.
    pub overriding: &'static str,
    /// Whether bytes are read and written as `\x` and hexadecimal digits.
    pub bytes_as_hex: bool,
    /// The expression of a value's storage class, for engines whose columns hold values of any type.
    pub storage_class: Option<fn(&str) -> String>,
    /// The expression that reads a column of a key with its storage class; `None` if [`Dialect::read`] tells all.
    pub read_key: Option<fn(&str) -> String>,
    /// Whether a primary key may hold nulls.
    pub has_null_keys: bool,
    /// The length of a value in bytes.
    pub octets: fn(&str) -> String,
    /// The length of a text in characters.
    pub characters: fn(&str) -> String,
    /// The maximum numbers of rows and parameters of an insert.
    pub insert_limits: (usize, usize),
    /// The statement that takes rows as text ([`Bulk::load_text`](kurabe_core::driver::Bulk::load_text)), for a quoted
    /// table and its quoted columns; `None` if the engine has none. The text is that of PostgreSQL's `COPY`.
    pub load_text: Option<fn(&str, &str) -> String>,
    /// What follows the columns of a query that has one row, and needs no table.
    pub one_row: &'static str,
    /// The clause of a column that can be null, with a leading space.
    pub nullable: &'static str,
    /// The word by which a statement leaves out the rows of tables that inherit from a table, with a space; empty without any.
    pub only: &'static str,
    /// The query of what refers to a table from elsewhere than the database or schema that the catalogue describes, or inherits
    /// from it, given its name as a literal; `None` if there is no such thing.
    pub elsewhere: Option<fn(&str) -> String>,
    /// The query of what tells a table from another one of its name; `None` if nothing does.
    pub identity_of: Option<fn(&str) -> String>,
    /// Whether a date and time is stored as text, and the current time can be its default.
    pub stores_times_as_text: bool,
    /// Whether foreign keys are written in `CREATE TABLE`, since the engine cannot add them.
    pub foreign_keys_inline: bool,
    /// Whether a foreign key's columns have the same types as those that they refer to.
    pub foreign_keys_have_one_type: bool,
    /// Whether indexes of two tables cannot have one name.
    pub index_names_are_shared: bool,
    /// The maximum length of an unlimited text or of bytes in an index; `None` if it may be indexed as it is.
    pub longest_key: Option<u32>,
    /// The bytes of a row, but for values of unlimited length; `None` if there is no limit.
    pub longest_row: Option<u64>,
    /// Whether the engine's own text of a table names collations, which the target may lack.
    pub names_collations: bool,
}

impl Engine {
    /// An engine that has what most have.
    const fn of(name: &'static str, schemes: &'static [&'static str], dialect: &'static dyn Dialect) -> Self {
        Self {
            name,
            schemes,
            dialect,
            quote: '"',
            longest_name: 63,
            each_session: &[],
            reading: &[],
            begin_reading: None,
            writing: &[],
            writing_into_keys: &[],
            has_one_writer: false,
            others: &[],
            default_fraction: 6,
            default_decimal: (UNLIMITED, 0),
            longest_decimal: None,
            overriding: "",
            bytes_as_hex: false,
            storage_class: None,
            read_key: None,
            has_null_keys: false,
            octets: |column| format!("OCTET_LENGTH({column})"),
            characters: |column| format!("CHAR_LENGTH({column})"),
            insert_limits: (500, 20_000),
            load_text: None,
            one_row: "",
            nullable: "",
            only: "",
            elsewhere: None,
            identity_of: None,
            stores_times_as_text: false,
            foreign_keys_inline: false,
            foreign_keys_have_one_type: false,
            index_names_are_shared: true,
            longest_key: None,
            longest_row: None,
            names_collations: false,
        }
    }

    /// A table in a query of its own rows.
    pub fn from(&self, table: &Table) -> String {
        format!("{}{}", if table.inherited { self.only } else { "" }, quoted(self, &table.name))
    }
}

/// Engines of one name are one: their types and collations have the same meaning.
impl PartialEq for Engine {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// A kind of objects that are no tables, with their text.
#[derive(Clone, Copy, Debug)]
pub struct Others {
    pub kind: IssueKind,
    /// What happens to them between servers of one kind.
    pub carried: Carried,
    /// The query: the table that each belongs to or null, its name, its text.
    pub sql: &'static str,
}

/// How objects come to another server of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// They do not.
    No,
    /// As a part of the table's own text.
    InTable,
    /// By their text, after all rows.
    ByText,
}
