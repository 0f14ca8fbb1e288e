//! What SQL engines differ in, one file an engine: the tables of types, the catalogue, and how values are read and
//! written as text.

pub(crate) mod engine;
pub(crate) mod facts;
mod mysql;
mod postgres;
pub(crate) mod queries;
mod sqlite;

pub use engine::{Dialect, Engine, GAP, Side, Sums};
pub use facts::{Carried, Documents, Identity, Others, TargetFacts};
use kurabe_core::{Error, Result};

pub static ALL: &[&Engine] = &[&sqlite::SQLITE, &postgres::POSTGRES, &mysql::MYSQL];

/// Databases of documents: the beginning of the schemes, name, and how their documents are had.
const DOCUMENTS: &[(&str, &str, &str)] = &[
    ("mongodb", "MongoDB", "mongoexport"),
    ("couchdb", "CouchDB", "GET /DATABASE/_all_docs?include_docs=true"),
];

/// The engine of a URL's scheme.
pub fn of_scheme(scheme: &str) -> Result<&'static Engine> {
    ALL.iter().copied().find(|engine| engine.schemes.contains(&scheme)).ok_or_else(|| {
        let known: Vec<String> =
            ALL.iter().flat_map(|engine| engine.schemes).map(|scheme| format!("{scheme}:")).collect();
        if let Some((_, name, export)) = DOCUMENTS.iter().find(|(known, ..)| scheme.starts_with(known)) {
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
