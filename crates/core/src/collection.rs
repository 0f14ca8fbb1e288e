//! Collections, the data model of an experiment: typed fields, a primary key and indexes. Each driver maps them
//! to its database.

use crate::remote::{Link, RemoteCollection};

/// The prefix of every collection's name. A driver refuses to change anything else.
pub const NAMESPACE_PREFIX: &str = "kurabe_";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Text with a maximum length (`varchar`).
    Text {
        /// The maximum number of characters.
        max: u32,
    },
    /// Text of any length (`longtext`, `text`, `CLOB`).
    LongText,
    /// Bytes with a maximum length (`varbinary`).
    Bytes {
        /// The maximum number of bytes.
        max: u32,
    },
    /// Bytes of any length (`longblob`, `bytea`, `BLOB`).
    LongBytes,
    /// A 64-bit integer.
    Int,
    /// A timestamp with microseconds, in UTC.
    Timestamp,
}

/// The character set in which a server stores the text of a collection. Sessions send and receive UTF-8 in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    /// Unicode, in the server's usual encoding.
    #[default]
    Unicode,
    /// ISO 8859-1, one byte for each character ([`Capabilities::latin1`](crate::driver::Capabilities::latin1)).
    Latin1,
}

/// A named, typed field. A field is null only if the parameter is `Null`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name: lower-case letters, digits and underscores.
    pub name: &'static str,
    pub kind: FieldType,
}

/// The comment of a table that Kurabe made, on engines whose tables have comments and no owner. To write it to another table,
/// a role needs the privilege `ALTER` on that, with which it could as well destroy the rows itself.
pub const TABLE_COMMENT: &str = "made by Kurabe";

/// A table, a document collection or a key space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Its name on the server, with [`NAMESPACE_PREFIX`]: lower-case letters, digits and underscores, at most 60
    /// characters.
    pub name: String,
    /// Its fields, in the order of the parameters of `Insert`.
    pub fields: Vec<Field>,
    /// The fields of the primary key, by position, in this order.
    pub key: Vec<usize>,
    /// Secondary indexes, each as positions of fields.
    pub indexes: Vec<Vec<usize>>,
    /// The field with the time when a row expires, which is never null; `None`: rows do not expire. Databases that can remove
    /// such rows by themselves are told the time; elsewhere [`Purge`](crate::operation::Operation::Purge) removes them.
    pub expires: Option<usize>,
    /// The name of the cache that holds it; `None`: the store holds it.
    pub cache: Option<String>,
    /// Where it is if it is on a remote server, or reads one; `None`: it is an ordinary collection of the target.
    pub remote: Option<RemoteCollection>,
    /// The character set of its text.
    pub charset: Charset,
}

impl Collection {
    /// A collection of the store with a primary key and no secondary index.
    pub fn new(name: impl Into<String>, fields: Vec<Field>, key: Vec<usize>) -> Self {
        let (indexes, charset) = (Vec::new(), Charset::default());
        Self { name: name.into(), fields, key, indexes, expires: None, cache: None, remote: None, charset }
    }

    /// The link by which the target reads its rows from a remote server, if it has no rows of its own.
    pub fn link(&self) -> Option<&Link> {
        self.remote.as_ref()?.link.as_ref()
    }

    /// The fields that are not part of the key.
    pub fn rest(&self) -> Vec<usize> {
        (0..self.fields.len()).filter(|field| !self.key.contains(field)).collect()
    }

    /// Whether a field is part of the key or of an index.
    pub fn is_indexed(&self, field: usize) -> bool {
        self.key.contains(&field) || self.indexes.iter().any(|index| index.contains(&field))
    }

    /// Whether these fields are a subsequence of [`Self::rest`].
    pub fn in_rest(&self, fields: &[usize]) -> bool {
        fields.is_sorted_by(|a, b| a < b) && !fields.iter().any(|field| self.key.contains(field))
    }

    /// Whether Kurabe could have given this name. A driver checks it before it creates or removes anything.
    pub fn name_is_ours(name: &str) -> bool {
        name.len() <= 60
            && name.strip_prefix(NAMESPACE_PREFIX).is_some_and(|rest| {
                !rest.is_empty()
                    && rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_with_prefix_are_ours() {
        assert!(Collection::name_is_ours("kurabe_session_1"));
        for name in ["users", "kurabe_", "kurabe_a; drop table x", "Kurabe_a", "kurabe_\u{e9}"] {
            assert!(!Collection::name_is_ours(name), "{name}");
        }
    }
}
