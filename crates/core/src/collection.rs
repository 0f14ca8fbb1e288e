//! What an experiment keeps in a database: typed fields, a key, indexes. Each driver turns it into its own kind.

/// Every collection's name starts with this; a driver refuses to touch anything else.
pub const NAMESPACE_PREFIX: &str = "kurabe_";

/// What stands in the name of a collection that lies in a cache in front of the store, between what is the collection's
/// own and the name of the cache.
const IN_CACHE: &str = "_in_";

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
}

impl Collection {
    /// A collection with a primary key and no further index.
    pub fn new(name: impl Into<String>, fields: Vec<Field>, key: Vec<usize>) -> Self {
        Self { name: name.into(), fields, key, indexes: Vec::new() }
    }

    /// The name of a collection that lies in this cache.
    pub fn name_in_cache(name: &str, cache: &str) -> String {
        format!("{name}{IN_CACHE}{cache}")
    }

    /// The cache that a collection of this name lies in; `None`: in the store itself, as all do where there is no cache.
    pub fn cache_of(name: &str) -> Option<&str> {
        name.rsplit_once(IN_CACHE).map(|(_, cache)| cache)
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
    fn a_name_says_which_cache_its_collection_lies_in() {
        let name = Collection::name_in_cache("kurabe_0_aside_1000", "as_is");
        assert!(Collection::name_is_ours(&name));
        assert_eq!(Collection::cache_of(&name), Some("as_is"));
        assert_eq!(Collection::cache_of("kurabe_0_session_1000_blob_none_binary_text_r"), None);
    }

    #[test]
    fn only_plain_names_with_our_prefix_are_ours() {
        assert!(Collection::name_is_ours("kurabe_session_1"));
        for name in ["users", "kurabe_", "kurabe_a; drop table x", "Kurabe_a", "kurabe_\u{e9}"] {
            assert!(!Collection::name_is_ours(name), "{name}");
        }
    }
}
