//! Storage engines of Kurabe's tables and their capabilities.

use super::types::column_type;
use crate::prelude::*;
use crate::wire::link::{Query, rows};
use kurabe_core::collection::Field;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StorageEngine {
    /// The name; in the server's spelling if it came from the server.
    pub(crate) name: String,
    transactions: bool,
}

impl StorageEngine {
    /// A storage engine known by its name only, before a server is queried.
    pub(crate) fn named(name: &str) -> Self {
        let without = ["MyISAM", "Aria", "MEMORY", "ARCHIVE", "CSV", "BLACKHOLE", "MRG_MyISAM"];
        let transactions = !without.iter().any(|known| known.eq_ignore_ascii_case(name));
        Self { name: name.to_owned(), transactions }
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Table options of `CREATE TABLE` that select this engine.
    pub(crate) fn create_tail(&self) -> String {
        // Aria tables survive a crash only with this option. It is the default, but a default may change.
        let more = if self.is("Aria") { " TRANSACTIONAL=1" } else { "" };
        format!(" ENGINE={}{more}", self.name)
    }

    pub(crate) fn supports(&self, operation: &Operation) -> Support {
        let no = |what: &str| Support::No(format!("tables of storage engine {} {what}", self.name));
        match operation {
            Operation::Begin | Operation::Commit | Operation::Rollback if !self.transactions => {
                no("have no transactions")
            }
            Operation::InsertMany { rows: 2.., .. } if !self.transactions => {
                no("keep the rows of a request that precede a rejected one")
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

pub(crate) fn all(link: &mut dyn Query) -> Result<Vec<StorageEngine>> {
    let sql =
        "SELECT engine, transactions FROM information_schema.engines WHERE support IN ('YES', 'DEFAULT')";
    let rows = rows(link, sql)?.into_iter().filter_map(|row| <[String; 2]>::try_from(row).ok());
    let engine =
        |[name, transactions]: [String; 2]| StorageEngine { name, transactions: transactions == "YES" };
    Ok(rows.map(engine).collect())
}

/// Finds a storage engine by its name, in any case.
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

    fn reason(engine: &str, operation: &Operation) -> String {
        match StorageEngine::named(engine).supports(operation) {
            Support::Native => String::new(),
            Support::No(reason) => reason,
        }
    }

    #[test]
    fn engine_without_transactions_does_not_support_operations_that_need_them() {
        let id = Field { name: "id", kind: FieldType::Int };
        let collection = Arc::new(Collection::new("kurabe_a", vec![id], vec![0]));
        let many = |rows| Operation::InsertMany { collection: Arc::clone(&collection), rows };
        for engine in ["MyISAM", "aria", "MEMORY"] {
            assert!(reason(engine, &Operation::Begin).contains("no transactions"), "{engine}");
            assert!(reason(engine, &many(2)).contains("precede a rejected one"), "{engine}");
            assert_eq!(reason(engine, &many(1)), "", "a single row is atomic");
        }
        assert_eq!(reason("InnoDB", &Operation::Begin) + &reason("InnoDB", &many(2)), "");
    }

    #[test]
    fn memory_tables_do_not_support_long_values() {
        let of = |kind| {
            let id = Field { name: "id", kind: FieldType::Int };
            let fields = vec![id, Field { name: "data", kind }];
            Operation::Put { collection: Arc::new(Collection::new("kurabe_a", fields, vec![0])) }
        };
        for kind in [FieldType::LongBytes, FieldType::LongText, FieldType::Text { max: 20_000 }] {
            assert!(reason("memory", &of(kind)).contains("BLOB or TEXT"), "{kind:?}");
            assert_eq!(reason("MyISAM", &of(kind)), "");
        }
        assert_eq!(reason("MEMORY", &of(FieldType::Bytes { max: 4_000 })), "");
    }
}
