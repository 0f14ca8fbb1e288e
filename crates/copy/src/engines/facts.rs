//! What engines and their servers have.

use crate::issue::IssueKind;
use serde::Deserialize;

/// A kind of objects that are no tables, with their text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Others {
    pub kind: IssueKind,
    /// What happens to them between servers of one kind.
    pub carried: Carried,
    /// The query: the table that each belongs to or null, its name, its text.
    pub sql: String,
}

/// How objects come to another server of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carried {
    /// They do not.
    No,
    /// They do not, and no other engine has such a thing.
    Internal,
    /// As a part of the table's own text.
    InTable,
    /// By their text, after all rows.
    ByText,
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

/// What a server refuses in a JSON document that is well formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentLimits {
    /// The most arrays and objects within one another.
    pub depth: usize,
    /// Whether a number is one of 64 bits, floating-point.
    pub has_doubles: bool,
    /// Whether a text may have the character of number zero.
    pub has_zero: bool,
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
#[expect(clippy::struct_excessive_bools, reason = "facts of a server that do not depend on one another")]
pub struct TargetFacts {
    /// The collation that compares text by bytes, where a table has one, or the database has it; or empty.
    pub by_bytes: String,
    pub collations: Vec<String>,
    /// The bytes that a row may have in its page, as the server counts them, and whether it refuses rows with more, and not the
    /// table; `None` if it says so itself where nothing is changed.
    pub longest_in_page: Option<(u64, bool)>,
    /// Whether names of tables, and of columns, are the same without regard to case.
    pub folds_tables: bool,
    pub folds_columns: bool,
    /// Which of the servers of one engine it is: `MySQL` or `MariaDB`.
    pub edition: String,
    /// The encoding of its texts, if it may be another one than the source's; empty if all servers of the engine have one.
    pub encoding: String,
    /// Whether the source's server is of the same engine and edition.
    pub same_server: bool,
    /// The tables that exist without transactions.
    pub without_transactions: Vec<String>,
    /// Whether source and target are databases of PostgreSQL without an encoding, which take all bytes.
    pub accepts_any_bytes: bool,
    /// The users and roles of a server of the same engine and edition, and what its other databases have, in the engine's quotes.
    pub roles: Vec<String>,
    /// Why these are not all; `None` if they are.
    pub roles_unread: Option<String>,
    /// The setting by which it refuses tables without a primary key, if it does.
    pub requires_keys: Option<String>,
}
