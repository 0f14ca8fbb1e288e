//! Links from one SQLite file to another: `ATTACH DATABASE`. Source: SQLite's documentation, "ATTACH DATABASE".
//!
//! A file is attached to a connection, so that each session attaches it before it prepares the first operation on a
//! linked collection. Nothing of it is in the target's file.

use super::error::explain;
use crate::prelude::*;
use crate::sql::{Dialect, LinkedStatements, count, find_range};
use kurabe_core::remote::{Addresses, Link, RemoteServer, address_of};
use rusqlite::Connection;
use std::path::PathBuf;

/// The files that can be attached, or why they cannot.
pub(super) type Remotes = Addresses<PathBuf>;

/// The means by which SQLite reads another file.
const ATTACH: &str = "attach";

/// How linked collections are read.
pub(super) const LINKED: LinkedStatements = LinkedStatements { before: |_| None, text };

/// The file of a remote.
pub(super) fn file(url: &TargetUrl) -> Result<PathBuf> {
    if url.scheme != "sqlite" {
        return Err(Error::unsupported(format!("SQLite attaches files of SQLite only, not {}:", url.scheme)));
    }
    if url.path.is_empty() {
        return Err(Error::unsupported("SQLite attaches a file, and the remote names none"));
    }
    Ok(PathBuf::from(&url.path))
}

/// Why the link is impossible.
pub(super) fn refusal(remotes: &Remotes, server: RemoteServer, link: &Link) -> Option<String> {
    if link.way != ATTACH {
        return Some("SQLite reads another database's tables by attach only".to_owned());
    }
    if link.fetch.is_some() {
        return Some("SQLite reads attached files in its own process: there is no fetch size".to_owned());
    }
    let (_, file) = remotes.iter().find(|(known, _)| *known == server)?;
    file.as_ref().err().map(ToString::to_string)
}

/// Attaches the file of a remote under the name of [`schema`].
pub(super) fn attach(connection: &Connection, remotes: &Remotes, server: RemoteServer) -> Result<()> {
    let file = address_of(remotes, server)?;
    let sql = format!("ATTACH DATABASE ?1 AS {}", schema(server));
    let attached = connection.execute(&sql, [file.to_string_lossy()]);
    attached.map(drop).map_err(|e| explain(&e).context(format!("attaching {}", file.display())))
}

fn schema(server: RemoteServer) -> String {
    format!("kurabe_{}", server.name())
}

/// The statement on the source in the attached file.
fn text(dialect: &Dialect, operation: &Operation) -> Result<Option<String>> {
    let source = |collection: &Collection| {
        let remote = collection.remote.as_ref()?;
        let link = remote.link.as_ref()?;
        Some(format!("{}.{}", schema(remote.server), dialect.quoted(&link.source)))
    };
    let Some(source) = operation.collection().and_then(|collection| source(collection)) else {
        return Ok(None);
    };
    match operation {
        Operation::FindRange { collection, by, fields } => {
            let bounds = [1, 2].map(|number| (dialect.parameter)(number));
            find_range(dialect, collection, *by, fields, &source, &bounds).map(Some)
        }
        Operation::Count { .. } => Ok(Some(count(&source))),
        other => {
            Err(Error::unsupported(format!("attach: Kurabe sends no {} to an attached file", other.name())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::collection::Field;
    use kurabe_core::remote::RemoteCollection;
    use std::sync::Arc;

    fn linked(server: RemoteServer) -> Arc<Collection> {
        let link = Some(Link { way: ATTACH, source: "kurabe_0_source".to_owned(), fetch: None });
        let id = Field { name: "id", kind: FieldType::Int };
        let remote = Some(RemoteCollection { server, link });
        Arc::new(Collection { remote, ..Collection::new("kurabe_0_far", vec![id], vec![0]) })
    }

    #[test]
    fn linked_collection_is_read_from_attached_file_and_not_from_own_table_of_that_name() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let url = format!("sqlite:{}", folder.path().join(name).display());
            crate::registry::open(&TargetUrl::parse(&url).unwrap()).unwrap()
        };
        let (mut near, far) = (open("near.db"), open("far.db"));
        let id = Field { name: "id", kind: FieldType::Int };
        let source = Arc::new(Collection::new("kurabe_0_source", vec![id], vec![0]));
        for (driver, rows) in [(&near, 1), (&far, 3)] {
            driver.namespace().unwrap().create(&source).unwrap();
            let mut session = driver.connect(&ConnectOptions::default()).unwrap();
            let insert = session.prepare(&Operation::Insert { collection: Arc::clone(&source) }).unwrap();
            for n in 0..rows {
                session.execute(&insert, &[Value::Int(n)], &mut Reply::new()).unwrap();
            }
        }
        let mut url = TargetUrl::parse("sqlite:").unwrap();
        url.path = far.links().unwrap().file().unwrap().to_string_lossy().into_owned();
        near.add_remote(kurabe_core::remote::RemoteAddress { server: RemoteServer::Second, url });
        let collection = linked(RemoteServer::Second);
        assert_eq!(
            near.links().unwrap().supports(RemoteServer::Second, collection.link().unwrap()).unwrap(),
            Support::Native
        );
        let mut session = near.connect(&ConnectOptions::default()).unwrap();
        for operation in [
            Operation::Count { collection: Arc::clone(&collection) },
            // Attached only once.
            Operation::Count { collection: Arc::clone(&collection) },
        ] {
            let prepared = session.prepare(&operation).unwrap();
            let mut reply = Reply::new();
            session.execute(&prepared, &[], &mut reply).unwrap();
            assert_eq!(reply.field_int(0, 0), Some(3));
        }
        let unknown = Operation::Count { collection: linked(RemoteServer::Given) };
        assert_eq!(session.prepare(&unknown).unwrap_err().kind(), ErrorKind::Internal);
    }
}
