//! What an experiment asks of a database, in no database's words.

use crate::collection::Collection;
use crate::raw::RawStatement;
use std::sync::Arc;

/// One request to a database. A driver prepares it once into what its database really executes, and executes
/// that with parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The least request that the server answers. No parameters, no rows.
    Ping,
    /// Starts a transaction. No parameters, no rows.
    Begin,
    /// Makes what was done since [`Operation::Begin`] permanent.
    Commit,
    /// Takes back what was done since [`Operation::Begin`].
    Rollback,
    /// One row by its primary key. Parameters: the key's fields. Reply: `fields` of the row, or no row.
    Get {
        /// Where from.
        collection: Arc<Collection>,
        /// Which fields come back, by position.
        fields: Vec<usize>,
    },
    /// Adds one row; an error where the key exists. Parameters: every field. Reply: affected 1.
    Insert {
        /// Where to.
        collection: Arc<Collection>,
    },
    /// Adds rows in one request, all or none. Parameters: every field of the first row, of the second, …
    /// Reply: affected = `rows`.
    InsertMany {
        /// Where to.
        collection: Arc<Collection>,
        /// How many rows.
        rows: usize,
    },
    /// Adds rows in one request, each on its own: where one is refused, which is an error, others may have gone in. What
    /// a database without [`Operation::InsertMany`] may have to load many rows. Parameters and reply as there.
    InsertEach {
        /// Where to.
        collection: Arc<Collection>,
        /// How many rows.
        rows: usize,
    },
    /// Adds a row or replaces the one with its key. Parameters: every field.
    Put {
        /// Where to.
        collection: Arc<Collection>,
    },
    /// Changes fields of one row. Parameters: `fields`, then the key's fields. Reply: affected 1, or 0 where no
    /// row has the key.
    Update {
        /// Where.
        collection: Arc<Collection>,
        /// Which fields change, by position.
        fields: Vec<usize>,
    },
    /// Removes one row by its key. Parameters: the key's fields. Reply: affected 1, or 0.
    Delete {
        /// Where from.
        collection: Arc<Collection>,
    },
    /// All rows whose fields `by` equal the parameters, in the order of the primary key. Reply: `fields` of each.
    FindEqual {
        /// Where from.
        collection: Arc<Collection>,
        /// Which fields are compared, by position: the first fields of the key, or of an index.
        by: Vec<usize>,
        /// Which fields come back, by position.
        fields: Vec<usize>,
    },
    /// All rows whose field `by` is not less than the first parameter and less than the second, in the order of that field
    /// and then of the primary key. Text is compared by its bytes, so that a search by prefix is such a range, from the
    /// prefix to [`after_prefix`]: what every ordered index answers. Reply: `fields` of each row.
    FindRange {
        /// Where from.
        collection: Arc<Collection>,
        /// Which field is compared, by position: the first of the key, or of an index.
        by: usize,
        /// Which fields come back, by position.
        fields: Vec<usize>,
    },
    /// A page of an application, which keeps its own data and has no other operation. Parameters: its path. Reply: one row with
    /// the body as bytes. An error where it has no such page or record ([`NotFound`](crate::ErrorKind::NotFound)), or
    /// could not do what was asked, with its reason and HTTP's status as code.
    Page {
        /// Whether this connection is asked nothing more, so that the application may close it.
        last: bool,
    },
    /// How many rows there are, counted by the server. Reply: one row, one whole number.
    Count {
        /// Where.
        collection: Arc<Collection>,
    },
    /// A statement of the user's own, in SQL. Parameters: one for each place that it has. Reply: the rows that come, a
    /// number that is not whole as text, or how many were changed.
    Raw {
        /// What it says.
        statement: Arc<RawStatement>,
    },
}

impl Operation {
    /// The operation's name, as docs and messages say it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ping => "Ping",
            Self::Begin => "Begin",
            Self::Commit => "Commit",
            Self::Rollback => "Rollback",
            Self::Get { .. } => "Get",
            Self::Insert { .. } => "Insert",
            Self::InsertMany { .. } => "InsertMany",
            Self::InsertEach { .. } => "InsertEach",
            Self::Put { .. } => "Put",
            Self::Update { .. } => "Update",
            Self::Delete { .. } => "Delete",
            Self::FindEqual { .. } => "FindEqual",
            Self::FindRange { .. } => "FindRange",
            Self::Page { .. } => "Page",
            Self::Count { .. } => "Count",
            Self::Raw { .. } => "Raw",
        }
    }

    /// The collection it works on; none for `Ping`, transactions, pages and a user's own statement.
    pub fn collection(&self) -> Option<&Arc<Collection>> {
        match self {
            Self::Ping
            | Self::Begin
            | Self::Commit
            | Self::Rollback
            | Self::Page { .. }
            | Self::Raw { .. } => None,
            Self::Get { collection, .. }
            | Self::Insert { collection }
            | Self::InsertMany { collection, .. }
            | Self::InsertEach { collection, .. }
            | Self::Put { collection }
            | Self::Update { collection, .. }
            | Self::Delete { collection }
            | Self::FindEqual { collection, .. }
            | Self::FindRange { collection, .. }
            | Self::Count { collection } => Some(collection),
        }
    }

    /// How many parameters it takes.
    pub fn parameters(&self) -> usize {
        match self {
            Self::Ping | Self::Begin | Self::Commit | Self::Rollback | Self::Count { .. } => 0,
            Self::Get { collection, .. } | Self::Delete { collection } => collection.key.len(),
            Self::Insert { collection } | Self::Put { collection } => collection.fields.len(),
            Self::InsertMany { collection, rows } | Self::InsertEach { collection, rows } => {
                collection.fields.len() * rows
            }
            Self::Update { collection, fields } => fields.len() + collection.key.len(),
            Self::FindEqual { by, .. } => by.len(),
            Self::FindRange { .. } => 2,
            Self::Page { .. } => 1,
            Self::Raw { statement } => statement.parameters,
        }
    }
}

/// The least text that comes after all texts with this prefix, compared by bytes: where a range of
/// [`Operation::FindRange`] ends. `None` where there is no such text: the prefix is empty, or its last sign is the last of all.
pub fn after_prefix(prefix: &str) -> Option<String> {
    let last = prefix.chars().next_back()?;
    // Surrogates are no signs: the range of `char` steps over them.
    let next = (last..=char::MAX).nth(1)?;
    let mut end = prefix[..prefix.len() - last.len_utf8()].to_owned();
    end.push(next);
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_exactly_the_texts_of_its_prefix() {
        let prefixes = ["100", "109", "東", "a\u{d7ff}", "~"];
        let texts = [
            "1",
            "10",
            "100",
            "1000",
            "10:",
            "109",
            "1099999",
            "11",
            "東京",
            "東",
            "南",
            "a\u{d7ff}x",
            "a\u{e000}",
            "~~",
        ];
        for prefix in prefixes {
            let end = after_prefix(prefix).unwrap();
            for text in texts {
                assert_eq!(
                    text >= prefix && text < end.as_str(),
                    text.starts_with(prefix),
                    "{prefix} {text}"
                );
            }
        }
        assert_eq!(after_prefix(""), None);
        assert_eq!(after_prefix("\u{10ffff}"), None);
    }
}
