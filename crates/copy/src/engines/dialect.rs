//! What an engine does in its own way: statements and expressions that depend on more than a name.

use crate::catalog::{Catalog, Collation, Column, Table};
use crate::issue::IssueKind;
use crate::page::{Cell, Encoded};
use crate::sql::{GAP, Side};
use crate::types::{Class, Declared, Kind, Mapped};
use crate::verify::form::Shape;
use kurabe_core::Result;
use kurabe_core::value::Value;

/// What an engine does in its own way.
pub trait Dialect: Sync {
    /// The type that is like one that `casts/types.toml` does not have, if there is one.
    fn type_of_unknown(&self, declared: &Declared) -> Option<&'static str> {
        let _ = declared;
        None
    }

    /// The class of the values that a column of this type stores.
    fn stored_class(&self, kind: &Kind) -> Class {
        kind.class
    }

    /// Begins the transactions of several sessions, which read the same rows. By itself, each sees what was committed
    /// before its own queries.
    fn begin_together(&self, sides: &mut [&mut Side]) -> Result<()> {
        sides.iter_mut().try_for_each(|side| side.begin_reading())
    }

    /// The text of one of [`Engine::others`](super::Engine::others), of which the query gave `text`.
    fn own_text(&self, side: &mut Side, kind: IssueKind, name: &str, text: &str) -> Result<String> {
        let _ = (side, kind, name);
        Ok(text.to_owned())
    }

    /// Reads the schema of the session's database.
    fn catalog(&self, side: &mut Side) -> Result<Catalog>;

    /// The expression that reads a column.
    fn read(&self, kind: &Kind, column: &str) -> String;

    /// The expression by which verification reads a column, and how it writes the value: by other functions of the server
    /// than [`Dialect::read`], and without regard to the session's settings. `exact`: the other side is a server of this
    /// kind, and has the same type.
    fn check(&self, kind: &Kind, exact: bool, column: &str) -> (Shape, String);

    /// What a copy does to the source's other users, a sentence; `None`: nothing.
    fn hinders(&self, source: &mut Side) -> Result<Option<&'static str>> {
        let _ = source;
        Ok(None)
    }

    /// The expression of a value in an insert; [`GAP`] is the parameter.
    fn write(&self, stored: &Kind) -> String {
        let _ = stored;
        GAP.to_string()
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

    /// The expression of one value in an insert, if it is another one than [`Dialect::write`] for its column.
    fn write_alone(&self, stored: &Kind, cell: Cell<'_>) -> Option<String> {
        let _ = (stored, cell);
        None
    }

    /// The class by which a type's values are read and written between servers of this kind.
    fn exact_class(&self, kind: &Kind) -> Class {
        kind.class
    }

    /// The kinds of values of a class that a target cannot hold.
    fn cannot_hold(&self, stored: &Kind) -> &'static [IssueKind];

    /// The condition that a column of the source has such a value; `None` if it never has.
    fn has_unfit(&self, kind: &Kind, unfit: IssueKind, column: &str) -> Option<String>;

    /// Conditions that a value of the right storage class has not the form of its column's class, and the type that the
    /// column then has. The first that holds for some value decides.
    fn other_forms(&self, kind: &Kind, column: &str) -> Vec<(String, &'static str)> {
        let _ = (kind, column);
        Vec::new()
    }

    /// The condition that a decimal number has more digits before or after its point; `None` if it never has.
    fn longer_decimal(&self, column: &str, whole: u32, part: u32) -> Option<String> {
        let _ = (column, whole, part);
        None
    }

    /// How JSON documents of this type are stored by a server of this [edition](TargetFacts::edition).
    fn documents(&self, kind: &Kind, edition: &str) -> Documents {
        let _ = (kind, edition);
        Documents::Kept
    }

    /// The type of a new column like this one on a server of the same kind.
    fn same_type<'k>(&self, kind: &'k Kind) -> &'k str {
        &kind.declared
    }

    /// What follows the type of a text column that compares by its bytes, or by the rules of that name on the same engine.
    ///
    /// `same`: the source is of the same engine.
    fn collate(&self, collation: &Collation, target: &TargetFacts, same: bool) -> String;

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
    fn identity(&self, table: &Table, column: &Column, mapped: &Mapped) -> Option<Identity> {
        let _ = (table, column);
        // Integers only: an unsigned 64-bit integer of another engine has another type here.
        let is_integer = matches!(mapped.stored.class, Class::Int16 | Class::Int32 | Class::Int64);
        is_integer.then_some(Identity { before: " GENERATED BY DEFAULT AS IDENTITY", ..Identity::default() })
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

    /// The statement after which the server gives numbers from `next` on; `None` if it needs none.
    fn restart_identity(&self, table: &str, column: &str, next: i128) -> Option<String> {
        let _ = (table, column, next);
        None
    }

    /// The default `CURRENT_TIMESTAMP` of a column.
    fn now(&self, stored: &Kind) -> String {
        let _ = stored;
        "CURRENT_TIMESTAMP".to_owned()
    }
}

/// What JSON documents lose as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Documents {
    /// Nothing: they are text.
    Kept,
    /// Spaces, repeated keys and the order of keys.
    Parsed,
    /// And digits of numbers beyond 64 bits.
    Rounded,
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
