//! What an experiment keeps in a database: typed fields, a key, indexes. Each driver turns it into its own kind.

/// Every collection's name starts with this; a driver refuses to touch anything else.
pub const NAMESPACE_PREFIX: &str = "kurabe_";

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Text of at most so many characters (`varchar`).
    Text {
        /// The most characters it holds.
        max: u32,
    },
    /// Text of any length (`longtext`, `text`, `CLOB`).
    LongText,
    /// Bytes, at most so many (`varbinary`).
    Bytes {
        /// The most bytes it holds.
        max: u32,
    },
    /// Bytes of any length (`longblob`, `bytea`, `BLOB`).
    LongBytes,
    /// A whole number of 64 bits.
    Int,
    /// A moment, to the microsecond, in UTC.
    Timestamp,
}

/// A named, typed field. Fields hold a value unless the parameter given is `Null`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name: lower case letters, digits and underscores.
    pub name: &'static str,
    /// Its type.
    pub kind: FieldType,
}

/// A table, a document collection or a key space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Its name on the server, with [`NAMESPACE_PREFIX`]; lower case letters, digits and underscores, at most 60.
    pub name: String,
    /// Its fields, in the order in which `Insert` takes them.
    pub fields: Vec<Field>,
    /// Which fields, by position, make the primary key, in this order.
    pub key: Vec<usize>,
    /// Further indexes: each the positions of its fields.
    pub indexes: Vec<Vec<usize>>,
    /// The name of the cache in front of the store that it lies in; `None`: in the store itself.
    pub cache: Option<String>,
}

impl Collection {
    /// A collection of the store, with a primary key and no further index.
    pub fn new(name: impl Into<String>, fields: Vec<Field>, key: Vec<usize>) -> Self {
        Self { name: name.into(), fields, key, indexes: Vec::new(), cache: None }
    }

    /// The fields that are not in the key.
    pub fn rest(&self) -> Vec<usize> {
        (0..self.fields.len()).filter(|field| !self.key.contains(field)).collect()
    }

    /// Whether a field is in the key or an index.
    pub fn is_indexed(&self, field: usize) -> bool {
        self.key.contains(&field) || self.indexes.iter().any(|index| index.contains(&field))
    }

    /// Whether these fields are some of [`Self::rest`], in its order.
    pub fn in_rest(&self, fields: &[usize]) -> bool {
        fields.is_sorted_by(|a, b| a < b) && !fields.iter().any(|field| self.key.contains(field))
    }

    /// Whether the name is one that Kurabe gives: what a driver checks before it makes or removes anything.
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
    fn only_plain_names_with_our_prefix_are_ours() {
        assert!(Collection::name_is_ours("kurabe_session_1"));
        for name in ["users", "kurabe_", "kurabe_a; drop table x", "Kurabe_a", "kurabe_\u{e9}"] {
            assert!(!Collection::name_is_ours(name), "{name}");
        }
    }
}
