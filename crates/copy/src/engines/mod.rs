//! What SQL engines differ in, one file an engine: the tables of types, the catalogue, and how values are read and
//! written as text.

pub(crate) mod engine;
pub(crate) mod facts;
mod firebird;
mod mysql;
mod postgres;
pub(crate) mod queries;
mod sqlite;

use crate::sql::pieces;
pub use engine::{Dialect, Engine, GAP, Side};
pub use facts::{Carried, Documents, Identity, Others, TargetFacts};
use kurabe_core::collection::Collection;
use kurabe_core::driver::Session;
use kurabe_core::operation::Operation;
use kurabe_core::raw::{RawStatement, RawText};
use kurabe_core::value::Reply;
use kurabe_core::{Error, Result};
use std::sync::Arc;

pub static ALL: &[&Engine] = &[&sqlite::SQLITE, &postgres::POSTGRES, &mysql::MYSQL, &firebird::FIREBIRD];

/// Databases of documents: scheme, name, and how their documents are had.
const DOCUMENTS: &[(&str, &str, &str)] = &[
    ("mongodb", "MongoDB", "mongoexport"),
    ("mongodb+srv", "MongoDB", "mongoexport"),
    ("couchdb", "CouchDB", "GET /DATABASE/_all_docs?include_docs=true"),
    ("couchdbs", "CouchDB", "GET /DATABASE/_all_docs?include_docs=true"),
];

/// The engine of a URL's scheme.
///
/// # Errors
/// [`Unsupported`](kurabe_core::ErrorKind::Unsupported) with the schemes that can be copied.
pub fn of_scheme(scheme: &str) -> Result<&'static Engine> {
    ALL.iter().copied().find(|engine| engine.schemes.contains(&scheme)).ok_or_else(|| {
        let known: Vec<String> =
            ALL.iter().flat_map(|engine| engine.schemes).map(|scheme| format!("{scheme}:")).collect();
        if let Some((_, name, export)) = DOCUMENTS.iter().find(|(known, ..)| *known == scheme) {
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

/// The operation of a statement that each engine writes in its own way, for a collection of any server. All texts have
/// the same parameters. An engine whose tables cannot be copied has no such statement.
pub fn of_each(collection: &Arc<Collection>, text: impl Fn(&'static Engine) -> String) -> Operation {
    let (mut texts, mut parameters) = (Vec::new(), 0);
    for engine in ALL {
        let sql = text(engine);
        parameters = sql.matches(GAP).count();
        texts.push(RawText {
            engine: engine.schemes.first().map(|name| (*name).to_owned()),
            pieces: pieces(&sql),
        });
    }
    let collection = Some(Arc::clone(collection));
    let statement = RawStatement { place: "a copy".to_owned(), texts, parameters, collection };
    Operation::Raw { statement: Arc::new(statement) }
}

/// The operation by which a session's server names its engine.
pub fn which(collection: &Arc<Collection>) -> Operation {
    of_each(collection, |engine| {
        let of = engine.one_row;
        format!("SELECT '{}'{of}", engine.name)
    })
}

/// The engine of a collection's server.
///
/// # Errors
/// [`Unsupported`](kurabe_core::ErrorKind::Unsupported) if its tables cannot be copied; or the server's error.
pub fn engine_of(session: &mut dyn Session, collection: &Arc<Collection>) -> Result<&'static Engine> {
    let which = session.prepare(&which(collection))?;
    let mut reply = Reply::new();
    session.execute(&which, &[], &mut reply)?;
    session.release(which)?;
    let name = String::from_utf8_lossy(reply.field_bytes(0, 0).unwrap_or_default()).into_owned();
    let found = ALL.iter().copied().find(|engine| engine.name == name.trim_end());
    found.ok_or_else(|| Error::unsupported(format!("tables of '{name}' cannot be copied")))
}
