//! What SQL engines differ in, one file an engine: the tables of types, the catalogue, and how values are read and
//! written as text.

mod firebird;
mod mysql;
mod postgres;
mod sqlite;

use crate::catalog::{Catalog, Collation, Column, Index, Table};
use crate::issue::IssueKind;
use crate::page::Cell;
use crate::rows::Encoded;
use crate::run::begin_reading;
use crate::sql::{Side, quoted};
use crate::types::{Class, Declared, Kind, Mapped};
use crate::verify::form::Shape;
use kurabe_core::value::Value;
use kurabe_core::{Error, Result};

pub static ALL: &[&dyn Engine] = &[&sqlite::Sqlite, &postgres::Postgres, &mysql::Mysql, &firebird::Firebird];

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
pub fn of_scheme(scheme: &str) -> Result<&'static dyn Engine> {
    ALL.iter().copied().find(|engine| engine.schemes().contains(&scheme)).ok_or_else(|| {
        let known: Vec<String> =
            ALL.iter().flat_map(|engine| engine.schemes()).map(|scheme| format!("{scheme}:")).collect();
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

/// An SQL engine.
pub trait Engine: Sync {
    /// Its name. Engines of one name have the same types.
    fn name(&self) -> &'static str;

    /// The schemes of its targets.
    fn schemes(&self) -> &'static [&'static str];

    /// The quote of identifiers.
    fn quote(&self) -> char {
        '"'
    }

    /// The maximum length of a name in bytes.
    fn longest_name(&self) -> usize;

    /// Statements that prepare a session which reads.
    fn reading(&self) -> &'static [&'static str];

    /// The statement that begins a transaction which reads; `None`: the driver's own.
    fn begin_reading(&self) -> Option<&'static str> {
        None
    }

    /// Statements that prepare a session which writes.
    fn writing(&self) -> &'static [&'static str];

    /// The type that is like one that `casts/types.toml` does not have, if there is one.
    fn type_of_unknown(&self, declared: &Declared) -> Option<&'static str> {
        let _ = declared;
        None
    }

    /// The class of the values that a column of this type stores.
    fn stored_class(&self, kind: &Kind) -> Class {
        kind.class
    }

    /// Statements more for a session that writes into tables with keys.
    fn writing_into_keys(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether only one session can insert rows at a time.
    fn has_one_writer(&self) -> bool {
        false
    }

    /// Begins the transactions of several sessions, which read the same rows. By itself, each sees what was committed
    /// before its own queries.
    fn begin_together(&self, sides: &mut [&mut Side]) -> Result<()> {
        sides.iter_mut().try_for_each(|side| begin_reading(side))
    }

    /// What it has besides tables.
    fn others(&self) -> &'static [Others] {
        &[]
    }

    /// The text of one of [`Engine::others`], of which the query gave `text`.
    fn own_text(&self, side: &mut Side, kind: IssueKind, name: &str, text: &str) -> Result<String> {
        let _ = (side, kind, name);
        Ok(text.to_owned())
    }

    /// Digits of a second if the type does not say.
    fn default_fraction(&self) -> u32;

    /// Digits of a decimal number, and those after the point, if the type does not say.
    fn default_decimal(&self) -> (u32, u32);

    /// Reads the schema of the session's database.
    fn catalog(&self, side: &mut Side) -> Result<Catalog>;

    /// The expression that reads a column.
    fn read(&self, kind: &Kind, column: &str) -> String;

    /// The expression by which verification reads a column, and how it writes the value: by other functions of the server
    /// than [`Engine::read`], and without regard to the session's settings. `exact`: the other side is a server of this
    /// kind, and has the same type.
    fn check(&self, kind: &Kind, exact: bool, column: &str) -> (Shape, String);

    /// What a copy does to the source's other users, a sentence; `None`: nothing.
    fn hinders(&self, source: &mut Side) -> Result<Option<&'static str>> {
        let _ = source;
        Ok(None)
    }

    /// The expression of a value in an insert; [`GAP`](crate::sql::GAP) is the parameter.
    fn write(&self, stored: &Kind) -> String {
        let _ = stored;
        crate::sql::GAP.to_string()
    }

    /// A table in a query of its own rows.
    fn from(&self, table: &Table) -> String {
        quoted(self, &table.name)
    }

    /// The expression that reads a column of a key with its storage class; `None` if [`Engine::read`] tells all.
    fn read_key(&self, column: &str) -> Option<String> {
        let _ = column;
        None
    }

    /// The expression of a field of a key, as it was read, that is compared with a column.
    fn compared(&self, kind: &Kind, field: Cell<'_>) -> String {
        let _ = field;
        self.write(kind)
    }

    /// A field as it was read, of a key or of a type that only this engine has, as a parameter.
    ///
    /// # Errors
    /// [`Mismatch`](kurabe_core::ErrorKind::Mismatch) if the engine's driver has no such value.
    fn as_read<'a>(&self, field: Cell<'a>) -> Result<Encoded<'a>> {
        Ok(Encoded::Value(match field {
            Cell::Null => Value::Null,
            Cell::Int(number) => Value::Int(number),
            Cell::Bytes(bytes) => std::str::from_utf8(bytes).map_or(Value::Bytes(bytes), Value::Text),
        }))
    }

    /// A field as it was read, for messages.
    fn shown(&self, field: Cell<'_>) -> String {
        field.shown()
    }

    /// The expression of one value in an insert, if it is another one than [`Engine::write`] for its column.
    fn write_alone(&self, stored: &Kind, cell: Cell<'_>) -> Option<String> {
        let _ = (stored, cell);
        None
    }

    /// The class by which a type's values are read and written between servers of this kind.
    fn exact_class(&self, kind: &Kind) -> Class {
        kind.class
    }

    /// What follows the list of columns of an insert, with a leading space.
    fn overriding(&self) -> &'static str {
        ""
    }

    /// Whether bytes are read and written as `\x` and hexadecimal digits.
    fn bytes_as_hex(&self) -> bool {
        false
    }

    /// The kinds of values of a class that a target cannot hold.
    fn cannot_hold(&self, stored: &Kind) -> &'static [IssueKind];

    /// The condition that a column of the source has such a value; `None` if it never has.
    fn has_unfit(&self, kind: &Kind, unfit: IssueKind, column: &str) -> Option<String>;

    /// The expression of a value's storage class, for engines whose columns hold values of any type.
    fn storage_class(&self, column: &str) -> Option<String> {
        let _ = column;
        None
    }

    /// Whether a primary key may hold nulls.
    fn has_null_keys(&self) -> bool {
        false
    }

    /// Conditions that a value of the right storage class has not the form of its column's class, and the type that the
    /// column then has. The first that holds for some value decides.
    fn other_forms(&self, kind: &Kind, column: &str) -> Vec<(String, &'static str)> {
        let _ = (kind, column);
        Vec::new()
    }

    /// The digits of a decimal number before and after its point, if it has less than others.
    fn longest_decimal(&self) -> Option<(u32, u32)> {
        None
    }

    /// The condition that a decimal number has more digits before or after its point; `None` if it never has.
    fn longer_decimal(&self, column: &str, whole: u32, part: u32) -> Option<String> {
        let _ = (column, whole, part);
        None
    }

    /// Whether a JSON document of this type is stored as it was written.
    fn keeps_documents(&self, kind: &Kind) -> bool {
        let _ = kind;
        true
    }

    /// The type of a new column like this one on a server of the same kind.
    fn same_type<'k>(&self, kind: &'k Kind) -> &'k str {
        &kind.declared
    }

    /// The length of a value in bytes.
    fn octets(&self, column: &str) -> String;

    /// The length of a text in characters.
    fn characters(&self, column: &str) -> String {
        format!("CHAR_LENGTH({column})")
    }

    /// The maximum numbers of rows and parameters of an insert.
    fn insert_limits(&self) -> (usize, usize);

    /// The statement that takes rows as text ([`Bulk::load_text`](kurabe_core::driver::Bulk::load_text)), for a quoted
    /// table and its quoted columns; `None` if the engine has none. The text is that of PostgreSQL's `COPY`.
    fn load_text(&self, table: &str, columns: &str) -> Option<String> {
        let _ = (table, columns);
        None
    }

    /// What follows the type of a text column that compares by its bytes, or by the rules of that name on the same engine.
    ///
    /// `same`: the source is of the same engine.
    fn collate(&self, collation: &Collation, target: &TargetFacts, same: bool) -> String;

    /// What follows the columns of a query that has one row, and needs no table.
    fn one_row(&self) -> &'static str {
        ""
    }

    /// What follows the column list of a table.
    fn table_options(&self, target: &TargetFacts) -> String {
        let _ = target;
        String::new()
    }

    /// What the target's server says of itself that decides what is made.
    fn facts(&self, side: &mut Side) -> Result<TargetFacts> {
        let _ = side;
        Ok(TargetFacts::default())
    }

    /// How a column of this new type is declared whose numbers the server gives. `None` if it cannot be one.
    fn identity(&self, table: &Table, column: &Column, mapped: &Mapped) -> Option<Identity>;

    /// The clause of a column that can be null, with a leading space.
    fn nullable(&self) -> &'static str {
        ""
    }

    /// Whether a column of this type can have a literal default.
    fn has_literal_default(&self, mapped: &Mapped) -> bool {
        let _ = mapped;
        true
    }

    /// Whether foreign keys can have this action, on columns that can be null or not.
    fn has_action(&self, action: &str, nullable: bool) -> bool {
        let _ = (action, nullable);
        true
    }

    /// The action of a foreign key as this engine writes it.
    fn action<'a>(&self, action: &'a str) -> &'a str {
        action
    }

    /// The word by which a statement leaves out the rows of tables that inherit from a table, with a space; empty without any.
    fn only(&self) -> &'static str {
        ""
    }

    /// The query of what refers to a table from elsewhere than the database or schema that the catalogue describes, or inherits
    /// from it, given its name as a literal; `None` if there is no such thing.
    fn elsewhere(&self, _literal: &str) -> Option<String> {
        None
    }

    /// The query of what tells a table from another one of its name; `None` if nothing does.
    fn identity_of(&self, _literal: &str) -> Option<String> {
        None
    }

    /// The statement after which the server gives numbers from `next` on; `None` if it needs none.
    fn restart_identity(&self, table: &str, column: &str, next: i128) -> Option<String>;

    /// The default `CURRENT_TIMESTAMP` of a column.
    fn now(&self, stored: &Kind) -> String;

    /// Whether a date and time is stored as text, and the current time can be its default.
    fn stores_times_as_text(&self) -> bool {
        false
    }

    /// Whether foreign keys are written in `CREATE TABLE`, since the engine cannot add them.
    fn foreign_keys_inline(&self) -> bool {
        false
    }

    /// Whether indexes of two tables cannot have one name.
    fn index_names_are_shared(&self) -> bool {
        true
    }

    /// The maximum length of an unlimited text or of bytes in an index; `None` if it may be indexed as it is.
    fn longest_key(&self) -> Option<u32> {
        None
    }

    /// The bytes of a row, but for values of unlimited length; `None` if there is no limit.
    fn longest_row(&self) -> Option<u64> {
        None
    }

    /// Whether a foreign key's columns have the same types as those that they refer to.
    fn foreign_keys_have_one_type(&self) -> bool {
        false
    }

    /// The statement that makes an index of a quoted name on a quoted table.
    fn create_index(&self, index: &Index, name: &str, table: &str, columns: &str) -> String {
        let unique = if index.unique { "UNIQUE " } else { "" };
        format!("CREATE {unique}INDEX {name} ON {table} ({columns})")
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

/// The declaration of a column whose numbers the server gives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity {
    /// Its type, if it must be a certain one.
    pub type_name: Option<&'static str>,
    /// What precedes `NOT NULL`, with a leading space.
    pub before: &'static str,
    /// What follows `NOT NULL`, with a leading space.
    pub after: &'static str,
}

/// Facts of a target's server.
#[derive(Clone, Debug, Default)]
pub struct TargetFacts {
    /// The collation that compares text by bytes.
    pub by_bytes: String,
    /// The names of all collations.
    pub collations: Vec<String>,
    /// Whether names of tables, and of columns, are the same without regard to case.
    pub folds_tables: bool,
    /// See `folds_tables`.
    pub folds_columns: bool,
    /// The names of all types, where tables may have types of their own.
    pub types: Vec<String>,
    /// Which of the servers of one engine it is: `MySQL` or `MariaDB`.
    pub edition: String,
    /// Whether the source's server is of the same engine and edition.
    pub same_server: bool,
    /// The setting by which it refuses tables without a primary key, if it does.
    pub requires_keys: Option<&'static str>,
}

/// All kinds of values that depend on the value, not on the type.
pub const OF_VALUES: &[IssueKind] = &[
    IssueKind::ZeroDate,
    IssueKind::DateRange,
    IssueKind::TimeRange,
    IssueKind::NotANumber,
    IssueKind::NulCharacter,
    IssueKind::Fraction,
];
