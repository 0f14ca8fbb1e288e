//! An engine as data, what it does in its own way, and a session of it.

use super::facts::{DocumentLimits, Documents, Identity, TargetFacts};
use crate::catalog::{Catalog, Collation, Column, Table, Text};
use crate::issue::IssueKind;
use crate::page::{Cell, Encoded};
use crate::sql::{Row, text};
use crate::types::{Class, Declared, Kind, Mapped, UNLIMITED};
use crate::verify::form::Shape;
use kurabe_core::Result;
use kurabe_core::driver::Session;

/// The placeholder of a parameter in the texts of this crate. No SQL contains it otherwise.
pub const GAP: char = '\0';

/// One side of a copy: a session and its engine.
pub struct Side {
    pub session: Box<dyn Session>,
    pub engine: &'static Engine,
    /// The target's name, for messages.
    pub name: String,
}

impl Side {
    /// Reads the schema of the session's database.
    pub fn catalog(&mut self) -> Result<Catalog> {
        (self.engine.catalog)(self)
    }
}

/// An expression of a column or a value.
pub type Expression = fn(&str) -> String;

/// A statement that takes rows, for a quoted table and its quoted columns.
pub type Load = fn(&str, &str) -> String;

/// A hash of 64 bits of a value, of which there are the type, the column, whether it may be null, and the hash of the values before it.
pub type Hash = fn(&str, &str, bool, String) -> String;

/// How a server computes digests of rows.
#[derive(Clone, Copy)]
pub struct Sums {
    /// The text of a row of these texts. Of those at the end that are null, an earlier one says it.
    pub row: fn(&str) -> String,
    /// The number of characters of a text.
    pub length: fn(&str) -> String,
    /// The text, or this one if it is null.
    pub or: fn(&str, &str) -> String,
    /// The sum of the first 56 bits of the SHA-256 of this text, or of these bytes, in each row.
    pub sum: fn(&str) -> String,
    /// For another server of the same kind.
    pub exact: Option<Hash>,
}

/// An SQL engine: what it has as data, and by its dialect what depends on more.
#[expect(clippy::struct_excessive_bools, reason = "facts of an engine that do not depend on one another")]
pub struct Engine {
    /// Its name. Engines of one name have the same types.
    pub name: &'static str,
    /// The schemes of its targets.
    pub schemes: &'static [&'static str],
    pub dialect: &'static dyn Dialect,
    /// Reads the schema of a session's database.
    pub catalog: fn(&mut Side) -> Result<Catalog>,
    /// The quote of identifiers.
    pub quote: char,
    /// The maximum length of a name in bytes.
    pub longest_name: usize,
    /// How a text of SQL is divided into tokens.
    pub syntax: kurabe_protocol::sql::Dialect,
    /// The line by which the engine's client takes this sign as the end of a statement.
    pub delimiter: Option<fn(&str) -> String>,
    /// The statements with which a file for the engine's client begins.
    pub script: &'static str,
    /// Whether names have no characters beyond the first 65,536.
    pub has_narrow_names: bool,
    /// Statements more for a session that reads.
    pub reading: &'static [&'static str],
    /// The statement that begins a transaction which reads; `None`: the driver's own.
    pub begin_reading: Option<&'static str>,
    /// Statements more for a session that writes.
    pub writing: &'static [&'static str],
    /// Statements of a writing session before the commit after which rows are told as copied or kept.
    pub before_last_commit: &'static [&'static str],
    /// Statements more for a session that writes into tables with keys.
    pub writing_into_keys: &'static [&'static str],
    /// Whether only one session can insert rows at a time.
    pub has_one_writer: bool,
    /// The class of the values that a column of this type stores, and that by which servers of this kind exchange them.
    pub stored_class: fn(&Kind) -> Class,
    pub exact_class: fn(&Kind) -> Class,
    /// The default of a column that is the time of the insert.
    pub now: fn(&Kind) -> String,
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
    /// Whether columns hold values of any type, text of times among them, and primary keys nulls.
    pub is_loose: bool,
    /// The length of a value in bytes.
    pub octets: fn(&str) -> String,
    /// The length of a text in characters.
    pub characters: fn(&str) -> String,
    /// The maximum numbers of rows and parameters of an insert.
    pub insert_limits: (usize, usize),
    /// The statement that takes rows as text ([`Bulk::load_text`](kurabe_core::driver::Bulk::load_text)), for a quoted
    /// table and its quoted columns; `None` if the engine has none. The text is that of PostgreSQL's `COPY`.
    pub load_text: Option<Load>,
    /// The query whose answer is that of another one as tuples in binary, and the statement that takes these; `None` without any.
    pub pass_through: Option<(Expression, Load)>,
    /// The literal of a [hidden](Table::hidden) number that is a row's place, in whose order a table is read soonest; `None` if it is that of a column.
    pub place: Option<fn(i64) -> String>,
    /// How its server computes digests of rows; `None` if it has none that others have.
    pub sums: Option<Sums>,
    /// What follows the column list of a table, with `{collation}` for that of columns that say none.
    pub table_options: &'static str,
    /// Parts of the names of types whose columns have no literal default.
    pub without_default: &'static [&'static str],
    /// The clause of a column that can be null, with a leading space.
    pub nullable: &'static str,
    /// The word by which a statement leaves out the rows of tables that inherit from a table, with a space; empty without any.
    pub only: &'static str,
    /// The text of several statements, of which one returns the rows of a query of the catalogue, where others' functions could
    /// be found in the query itself; `None` if they cannot.
    pub catalogue: Option<fn(&str) -> String>,
    /// The comparison of two fields of these declared types, with its schema where another role's operator could be taken instead.
    pub sign: fn([&str; 2], &'static str) -> String,
    /// The text of a table with a mark of this number, by which its query `identity_of` knows it; `None` if it needs none.
    pub mark: Option<fn(&str, &str) -> String>,
    /// The statement after which a new table has another identity than one that exists, if the identity is that of the last
    /// definition; `None` if it is that of the table.
    pub identity_ends: Option<&'static str>,
    /// Whether foreign keys are written in `CREATE TABLE`, since the engine cannot add them.
    pub foreign_keys_inline: bool,
    /// Whether foreign keys can have this action, on columns that can be null or not.
    pub has_action: fn(&str, bool) -> bool,
    /// The statement after which the server gives numbers from the next one on, for a table and its column; `None` if it needs none.
    pub restart_identity: Option<fn(&str, &str, i128) -> String>,
    /// A type that a catalogue names so, and the type of a new column like it.
    pub same_type: Option<[&'static str; 2]>,
    /// Whether a foreign key's columns have the same types as those that they refer to.
    pub foreign_keys_have_one_type: bool,
    /// The statements between which tables that refer to one another are removed, where the end of a transaction does not take them back.
    pub drops: Option<[&'static str; 2]>,
    /// The codes of errors by which such a server refuses a temporary table that it may have otherwise.
    pub not_temporary: &'static [&'static str],
    /// Whether indexes of two tables cannot have one name.
    pub index_names_are_shared: bool,
    /// The maximum length of an unlimited text or of bytes in an index; `None` if it may be indexed as it is.
    pub longest_key: Option<u32>,
    /// The bytes of an entry of an index, as they are before the server may compress them; `None` if there is no limit.
    pub longest_entry: Option<u64>,
    /// The bytes of a row, but for values of unlimited length, and those that are in its page, where a value that may have more
    /// than 256 leaves 40; `None` if there is no limit.
    pub longest_row: Option<[u64; 2]>,
    /// Whether definitions name objects that the target may lack, such as collations, and a transaction takes back all that it makes.
    pub names_objects: bool,
}

impl Engine {
    /// Why a name cannot be one on this engine.
    pub fn refuses_name(&self, name: &str) -> Option<String> {
        if self.has_narrow_names && name.chars().any(|c| c > '\u{ffff}') {
            return Some(format!("names of {} have no character beyond U+FFFF", self.name));
        }
        let most = self.longest_name;
        (name.len() > most).then(|| format!("names of {} have at most {most} bytes", self.name))
    }

    /// An engine that has what most have.
    pub(super) const fn of(
        name: &'static str,
        schemes: &'static [&'static str],
        dialect: &'static dyn Dialect,
        catalog: fn(&mut Side) -> Result<Catalog>,
    ) -> Self {
        Self {
            name,
            schemes,
            dialect,
            catalog,
            quote: '"',
            longest_name: 63,
            syntax: kurabe_protocol::sql::Dialect::STANDARD,
            delimiter: None,
            script: "",
            has_narrow_names: false,
            reading: &[],
            begin_reading: None,
            writing: &[],
            before_last_commit: &[],
            writing_into_keys: &[],
            has_one_writer: false,
            stored_class: |kind| kind.class,
            exact_class: |kind| kind.class,
            now: |_| "CURRENT_TIMESTAMP".to_owned(),
            default_fraction: 6,
            default_decimal: (UNLIMITED, 0),
            longest_decimal: None,
            overriding: "",
            bytes_as_hex: false,
            is_loose: false,
            octets: |column| format!("OCTET_LENGTH({column})"),
            characters: |column| format!("CHAR_LENGTH({column})"),
            insert_limits: (500, 20_000),
            load_text: None,
            pass_through: None,
            place: None,
            sums: None,
            table_options: "",
            without_default: &[],
            nullable: "",
            only: "",
            catalogue: None,
            sign: |_, sign| sign.to_owned(),
            mark: None,
            identity_ends: None,
            foreign_keys_inline: false,
            has_action: |_, _| true,
            restart_identity: None,
            same_type: None,
            foreign_keys_have_one_type: false,
            drops: None,
            not_temporary: &[],
            index_names_are_shared: true,
            longest_key: None,
            longest_entry: None,
            longest_row: None,
            names_objects: false,
        }
    }
}

/// Engines of one name are one: their types and collations have the same meaning.
impl PartialEq for Engine {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// What an engine does in its own way: statements and expressions that depend on more than a name.
#[expect(unused_variables, reason = "parameters of what most engines do not have")]
pub trait Dialect: Sync {
    /// The type that is like one that `casts/types.toml` does not have, if there is one.
    fn type_of_unknown(&self, declared: &Declared) -> Option<&'static str> {
        None
    }

    /// Gives a session these settings, but for those that its server lacks.
    fn set(&self, side: &mut Side, settings: &[[String; 2]]) -> Result<()> {
        Ok(())
    }

    /// What tells the database from all others by the word of its server, and what tells the server from one that began as a
    /// copy of the other, or nothing. `None` if no other session can open the database.
    fn place(&self, side: &mut Side) -> Result<Option<[String; 2]>>;

    /// Keeps others from changing these tables as long as this session, which does nothing else, is open. Returns those that
    /// the server does not lock, with its reason.
    fn hold(&self, side: &mut Side, tables: &[String]) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    /// Begins the transactions of several sessions, which read the same rows, after `hold` has locked what transactions do not
    /// keep.
    fn begin_together(&self, sides: &mut [&mut Side], hold: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        hold()?;
        let Some((first, others)) = sides.split_first_mut() else { return Ok(()) };
        first.begin_reading()?;
        others.iter_mut().try_for_each(|side| self.join(first, side))
    }

    /// Begins a transaction of a further session, which reads the same rows as this one where the engine can do that.
    fn join(&self, side: &mut Side, further: &mut Side) -> Result<()> {
        further.begin_reading()
    }

    /// The text of one of the other objects, of which the query gave this row, and the users and roles that it names.
    fn own_text(&self, side: &mut Side, kind: IssueKind, row: &Row) -> Result<(Text, Vec<String>)> {
        Ok((Text::Statement(text(row, 2).to_owned()), Vec::new()))
    }

    /// The statement that gives a table, or its column of this quoted name and definition, a comment; `None` if there are none.
    fn comment(&self, table: &str, column: Option<(&str, &str)>, literal: &str) -> Option<String> {
        let of =
            column.map_or_else(|| format!("TABLE {table}"), |(name, _)| format!("COLUMN {table}.{name}"));
        Some(format!("COMMENT ON {of} IS {literal}"))
    }

    /// The expression that reads a column.
    fn read(&self, kind: &Kind, column: &str) -> String;

    /// The expression by which verification reads a column, and how it writes the value: by other functions of the server
    /// than [`Dialect::read`], and without regard to the session's settings. `exact`: the other side is a server of this
    /// kind, and has the same type.
    fn check(&self, kind: &Kind, exact: bool, column: &str) -> (Shape, String);

    /// The text of a value that other servers write in the same way, without regard to the session's settings; `None` if they do not.
    /// `exact`: the other side is a server of this kind, and has the same type.
    fn agreed(&self, kind: &Kind, exact: bool, column: &str) -> Option<String> {
        None
    }

    /// What a copy does to the source's other users, a sentence; `None`: nothing.
    fn hinders(&self, source: &mut Side) -> Result<Option<&'static str>> {
        Ok(None)
    }

    /// The expression of a value in an insert; [`GAP`] is the parameter.
    fn write(&self, stored: &Kind) -> String {
        GAP.to_string()
    }

    /// The expression of a field of a key, as it was read, that is compared with a column.
    fn compared(&self, kind: &Kind, field: Cell<'_>) -> String {
        self.write(kind)
    }

    /// A field as it was read, of a key or of a type that only this engine has, as a parameter.
    fn as_read<'a>(&self, field: Cell<'a>) -> Result<Encoded<'a>> {
        Ok(Encoded::Value(field.value()))
    }

    /// The expression of one value in an insert, if it is another one than [`Dialect::write`] for its column.
    fn write_alone(&self, stored: &Kind, cell: Cell<'_>) -> Option<String> {
        None
    }

    /// The kind of values that a column of this type cannot hold.
    fn cannot_hold(&self, stored: &Kind) -> Option<IssueKind>;

    /// Conditions that a value of the right storage class has not the form of its column's class, and the type that the
    /// column then has. The first that holds for some value decides.
    fn other_forms(&self, kind: &Kind, column: &str) -> Vec<(String, &'static str)> {
        Vec::new()
    }

    /// The expression of a text that may be no UTF-8, and null if it is; `None` if all texts of the source are.
    fn maybe_not_utf8(&self, source: &mut Side) -> Result<Option<Expression>> {
        Ok(None)
    }

    /// The condition that a text of this column has characters that Unicode lacks, which are lost; `None` if it never has.
    fn has_no_unicode(&self, column: &Column, name: &str) -> Option<String> {
        None
    }

    /// How JSON documents of this type are stored by a server of this [edition](TargetFacts::edition).
    fn documents(&self, kind: &Kind, edition: &str) -> Documents {
        Documents::Kept
    }

    /// What a server of this edition refuses in documents of this type.
    fn document_limits(&self, stored: &Kind, edition: &str) -> Option<DocumentLimits> {
        None
    }

    /// What follows the type of a text column that compares by its bytes, or by the rules of that name on the same engine.
    ///
    /// `same`: the source is of the same engine.
    fn collate(&self, collation: &Collation, target: &TargetFacts, same: bool) -> String;

    /// What the target's server says of itself that decides what is made.
    fn facts(&self, side: &mut Side) -> Result<TargetFacts> {
        Ok(TargetFacts::default())
    }

    /// How a column of this new type is declared whose numbers the server gives. `None` if it cannot be one.
    fn identity(&self, table: &Table, column: &Column, mapped: &Mapped) -> Option<Identity> {
        // Integers only: an unsigned 64-bit integer of another engine has another type here.
        let is_integer = matches!(mapped.stored.class, Class::Int16 | Class::Int32 | Class::Int64);
        is_integer.then_some(Identity { before: " GENERATED BY DEFAULT AS IDENTITY", ..Identity::default() })
    }
}
