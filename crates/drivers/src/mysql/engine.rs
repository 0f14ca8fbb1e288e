//! The storage engine of our tables: what it can do, and which one it is.

use super::dialect::column_type;
use crate::prelude::*;
use crate::wire::link::{Query, rows};
use kurabe_core::collection::Field;

/// A storage engine, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StorageEngine {
    /// Its name; as the server spells it, once the server was asked.
    pub(crate) name: String,
    transactions: bool,
}

impl StorageEngine {
    /// What its name says, before any server was asked.
    pub(crate) fn named(name: &str) -> Self {
        let without = ["MyISAM", "Aria", "MEMORY", "ARCHIVE", "CSV", "BLACKHOLE", "MRG_MyISAM"];
        let transactions = !without.iter().any(|known| known.eq_ignore_ascii_case(name));
        Self { name: name.to_owned(), transactions }
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// What follows `CREATE TABLE … (…)` to have it.
    pub(crate) fn create_tail(&self) -> String {
        // Aria's tables survive a crash only so. It is the default, but a default may change.
        let more = if self.is("Aria") { " TRANSACTIONAL=1" } else { "" };
        format!(" ENGINE={}{more}", self.name)
    }

    /// Whether its tables have an operation.
    pub(crate) fn supports(&self, operation: &Operation) -> Support {
        let no = |what: &str| Support::No(format!("tables of storage engine {} {what}", self.name));
        match operation {
            Operation::Begin | Operation::Commit | Operation::Rollback if !self.transactions => {
                no("have no transactions")
            }
            Operation::InsertMany { rows: 2.., .. } if !self.transactions => {
                no("keep those rows of a request that come before one that is refused")
            }
            _ if self.is("MEMORY") && operation.collection().is_some_and(|of| has_long_column(of)) => {
                no("have no columns of type BLOB or TEXT")
            }
            _ => Support::Native,
        }
    }
}

fn has_long_column(collection: &Collection) -> bool {
    let long = |(position, field): (usize, &Field)| {
        column_type(field.kind, collection.is_indexed(position)).starts_with("long")
    };
    collection.fields.iter().enumerate().any(long)
}

/// The storage engines that the server can use.
pub(crate) fn all(link: &mut dyn Query) -> Result<Vec<StorageEngine>> {
    let sql =
        "SELECT engine, transactions FROM information_schema.engines WHERE support IN ('YES', 'DEFAULT')";
    Ok(rows(link, sql)?
        .into_iter()
        .filter_map(|row| <[String; 2]>::try_from(row).ok())
        .map(|[name, transactions]| StorageEngine { name, transactions: transactions == "YES" })
        .collect())
}

/// Of those, the one of this name.
pub(crate) fn find(engines: &[StorageEngine], name: &str) -> Result<StorageEngine> {
    engines.iter().find(|engine| engine.is(name)).cloned().ok_or_else(|| {
        let names: Vec<&str> = engines.iter().map(|engine| engine.name.as_str()).collect();
        Error::new(ErrorKind::NotFound, format!("the server has no storage engine {name}"))
            .hint(format!("it has: {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::collection::{Field, FieldType};
    use std::sync::Arc;

    fn says(engine: &str, operation: &Operation) -> String {
        match StorageEngine::named(engine).supports(operation) {
            Support::Native => String::new(),
            Support::No(reason) => reason,
        }
    }

    #[test]
    fn an_engine_without_transactions_says_so_for_whatever_needs_one() {
        let id = Field { name: "id", kind: FieldType::Int };
        let collection = Arc::new(Collection::new("kurabe_a", vec![id], vec![0]));
        let many = |rows| Operation::InsertMany { collection: Arc::clone(&collection), rows };
        for engine in ["MyISAM", "aria", "MEMORY"] {
            assert!(says(engine, &Operation::Begin).contains("no transactions"), "{engine}");
            assert!(says(engine, &many(2)).contains("before one that is refused"), "{engine}");
            assert_eq!(says(engine, &many(1)), "", "one row goes in or does not");
        }
        assert_eq!(says("InnoDB", &Operation::Begin) + &says("InnoDB", &many(2)), "");
    }

    #[test]
    fn tables_in_memory_hold_no_long_values() {
        let of = |kind| {
            let id = Field { name: "id", kind: FieldType::Int };
            let fields = vec![id, Field { name: "data", kind }];
            Operation::Put { collection: Arc::new(Collection::new("kurabe_a", fields, vec![0])) }
        };
        for kind in [FieldType::LongBytes, FieldType::LongText, FieldType::Text { max: 20_000 }] {
            assert!(says("memory", &of(kind)).contains("BLOB or TEXT"), "{kind:?}");
            assert_eq!(says("MyISAM", &of(kind)), "");
        }
        assert_eq!(says("MEMORY", &of(FieldType::Bytes { max: 4_000 })), "");
    }
}
