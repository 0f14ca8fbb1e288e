//! Links from MySQL or MariaDB to another of them: tables of the storage engines FEDERATED, CONNECT and Spider. Sources:
//! MySQL Reference Manual, "The FEDERATED Storage Engine", "CREATE SERVER Statement"; MariaDB Knowledge Base,
//! "`FederatedX`", "CONNECT MYSQL Table Type", "Spider Storage Engine".
//!
//! A linked collection is a table of such an engine and a server definition, which holds the password. Definitions
//! belong to the whole server and not to a database, so that their names contain a hash of the database's name.

use super::config::Config;
use crate::prelude::*;
use crate::sql::{Dialect, LinkedStatements, create_table};
use crate::wire::Place;
use crate::wire::link::{Query, rows};
use crate::wire::tls::Mode;
use kurabe_core::collection::Charset;
use kurabe_core::remote::{Addresses, Link, RemoteServer, address_of};

/// The servers to which links may lead, or why they cannot.
pub(super) type Remotes = Addresses<Config>;

/// The storage engines by which a table of another server is read.
const FEDERATED: &str = "federated";
const CONNECT: &str = "connect";
const SPIDER: &str = "spider";

/// How linked collections are read: as tables of this engine.
pub(super) const LINKED: LinkedStatements = LinkedStatements { before, text: |_, _| Ok(None) };

/// CONNECT has no access by row position, by which MariaDB returns sorted rows that are longer than this variable's
/// value: 1,024 bytes by default. This is the largest (MariaDB Server Documentation, `max_length_for_sort_data`).
fn before(operation: &Operation) -> Option<String> {
    let link = operation.collection()?.link()?;
    (link.way == CONNECT).then(|| "SET SESSION max_length_for_sort_data = 8388608".to_owned())
}

/// The storage engine of a way, and how to load it into MariaDB; `None` if there is no such way.
fn engine(way: &str) -> Option<(&'static str, &'static str)> {
    match way {
        FEDERATED => Some(("FEDERATED", "ha_federatedx")),
        CONNECT => Some(("CONNECT", "ha_connect")),
        SPIDER => Some(("SPIDER", "ha_spider")),
        _ => None,
    }
}

fn no_way() -> Error {
    Error::unsupported("MySQL and MariaDB read another server's tables by federated, connect or spider")
}

/// The address of a remote.
pub(super) fn address(url: &TargetUrl) -> Result<Config> {
    if !matches!(url.scheme.as_str(), "mysql" | "mariadb") {
        let why =
            format!("these storage engines read MySQL and MariaDB only, and the remote is {}:", url.scheme);
        return Err(Error::unsupported(why));
    }
    let config = Config::from_url(url)?;
    match config.tls {
        Mode::Off => Ok(config),
        Mode::On { .. } => Err(Error::unsupported("a link to a remote with tls= is not supported")),
    }
}

/// Why the link cannot be created, as far as that is known without the server.
pub(super) fn refusal(remotes: &Remotes, server: RemoteServer, link: &Link) -> Option<String> {
    if engine(link.way).is_none() {
        return Some(no_way().to_string());
    }
    if link.fetch.is_some() {
        return Some(format!("{} has no fetch size", link.way));
    }
    let (_, remote) = remotes.iter().find(|(known, _)| *known == server)?;
    remote.as_ref().err().map(ToString::to_string)
}

/// Why this server cannot use the storage engine of a way, as a clause.
pub(super) fn missing(connection: &mut dyn Query, server: RemoteServer, way: &str) -> Result<Option<String>> {
    let (engine, plugin) = engine(way).ok_or_else(no_way)?;
    let sql = format!(
        "SELECT VERSION(), (SELECT support FROM information_schema.engines WHERE engine = '{engine}')"
    );
    let found = rows(connection, &sql)?.into_iter().next().unwrap_or_default();
    let field = |at: usize| found.get(at).map_or("", String::as_str);
    let is_mariadb = field(0).to_ascii_lowercase().contains("mariadb");
    if !matches!(field(1), "YES" | "DEFAULT") {
        return Ok(Some(match (is_mariadb, way) {
            (true, _) => format!(
                "the server has no storage engine {engine}; install its plugin and start the server with \
                 --plugin-load-add={plugin}"
            ),
            (false, FEDERATED) => {
                format!("the server's storage engine {engine} is off; start the server with --federated")
            }
            (false, _) => format!("MySQL has no storage engine {engine}"),
        }));
    }
    if way == SPIDER && server == RemoteServer::Same {
        let allowed = rows(connection, "SELECT @@spider_same_server_link")?;
        if allowed.first().and_then(|row| row.first()).is_some_and(|value| value == "0") {
            let why =
                "Spider refuses links to its own server; start the server with --spider-same-server-link=ON";
            return Ok(Some(why.to_owned()));
        }
    }
    // Definitions of earlier runs must be found.
    Ok(match rows(connection, "SELECT 1 FROM mysql.servers LIMIT 1") {
        Err(error) if error.server_code().is_some() => Some(format!(
            "this user may not create server definitions, which needs FEDERATED ADMIN and SELECT on mysql.servers: {error}"
        )),
        found => found.map(|_| None)?,
    })
}

/// The name of the server definition of a linked collection.
pub(super) fn definition(name: &str, database: &str) -> String {
    // FNV-1a. A later version of Kurabe must find the same definitions.
    let hash = database
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // At most 64 characters.
    format!("{}_{hash:08x}", name.get(..55.min(name.len())).unwrap_or_default())
}

/// The statements that create a linked collection.
pub(super) fn create(
    dialect: &Dialect,
    remotes: &Remotes,
    collection: &Collection,
    server: RemoteServer,
    link: &Link,
    definition: &str,
) -> Result<[String; 2]> {
    let remote = address_of(remotes, server)?;
    let address = match &remote.place {
        Place::Tcp { host, port } => format!("HOST {}, PORT {port}", literal(host)),
        Place::Unix(path) => format!("HOST 'localhost', SOCKET {}", literal(&path.to_string_lossy())),
    };
    let [database, user, password] = [&remote.database, &remote.user, remote.password.expose()].map(literal);
    let options = format!("{address}, DATABASE {database}, USER {user}, PASSWORD {password}");
    let source = format!("{definition}/{}", link.source);
    let tail = match link.way {
        FEDERATED => format!(" ENGINE=FEDERATED CONNECTION={}", literal(&source)),
        CONNECT => format!(" ENGINE=CONNECT TABLE_TYPE=MYSQL CONNECTION={}", literal(&source)),
        SPIDER => {
            let comment = format!("wrapper \"mysql\", srv \"{definition}\", table \"{}\"", link.source);
            format!(" ENGINE=SPIDER COMMENT={}", literal(&comment))
        }
        _ => return Err(no_way()),
    };
    // The character set follows the storage engine.
    let charset = match collection.charset {
        Charset::Unicode => {
            dialect.create_tail.find(" DEFAULT CHARSET").map_or("", |at| &dialect.create_tail[at..])
        }
        Charset::Latin1 => charset_clause(Charset::Latin1),
    };
    let dialect = Dialect { create_tail: format!("{tail}{charset}").into(), ..dialect.clone() };
    Ok([
        format!("CREATE SERVER `{definition}` FOREIGN DATA WRAPPER mysql OPTIONS ({options})"),
        create_table(&dialect, collection)?,
    ])
}

/// The character set of a table and its collation, which compares bytes, as a clause with a leading space.
pub(super) fn charset_clause(charset: Charset) -> &'static str {
    match charset {
        Charset::Unicode => " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        Charset::Latin1 => " CHARACTER SET latin1 COLLATE latin1_bin",
    }
}

/// The server definition of this name, if there is one.
pub(super) fn find(definition: &str) -> String {
    format!("SELECT Server_name FROM mysql.servers WHERE Server_name = '{definition}'")
}

/// A literal, for the default `sql_mode`.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::dialect::dialect;
    use kurabe_core::collection::Field;

    fn made(way: &'static str) -> [String; 2] {
        let fields = vec![
            Field { name: "id", kind: FieldType::Int },
            Field { name: "data", kind: FieldType::LongText },
        ];
        let collection = Collection::new("kurabe_0_far", fields, vec![0]);
        let url = TargetUrl::parse("mariadb://bob:it%27s@h:7/shop").unwrap();
        let remotes = vec![(RemoteServer::Second, address(&url))];
        let link = Link { way, source: "kurabe_0_source".to_owned(), fetch: None };
        let name = definition("kurabe_0_far", "near");
        create(&dialect(None, None), &remotes, &collection, RemoteServer::Second, &link, &name).unwrap()
    }

    #[test]
    fn password_is_only_in_server_definition() {
        for way in [FEDERATED, CONNECT, SPIDER] {
            let [server, table] = made(way);
            assert!(
                server.ends_with("(HOST 'h', PORT 7, DATABASE 'shop', USER 'bob', PASSWORD 'it''s')"),
                "{server}"
            );
            assert!(!table.contains("it''s"), "{table}");
            assert!(table.ends_with("DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"), "{table}");
            let (name, engine) = (definition("kurabe_0_far", "near"), engine(way).unwrap().0);
            assert!(table.contains(&format!("ENGINE={engine} ")) && table.contains(&name), "{table}");
        }
    }

    #[test]
    fn linked_table_has_the_character_set_of_its_collection() {
        let id = Field { name: "id", kind: FieldType::Int };
        let collection =
            Collection { charset: Charset::Latin1, ..Collection::new("kurabe_0_far", vec![id], vec![0]) };
        let remotes = vec![(RemoteServer::Second, address(&TargetUrl::parse("mysql://u:@h/d").unwrap()))];
        let link = Link { way: FEDERATED, source: "kurabe_0_source".to_owned(), fetch: None };
        let made =
            create(&dialect(None, None), &remotes, &collection, RemoteServer::Second, &link, "x").unwrap();
        assert!(made[1].ends_with(" CHARACTER SET latin1 COLLATE latin1_bin"), "{}", made[1]);
        assert!(!made[1].contains("utf8mb4"), "{}", made[1]);
    }

    #[test]
    fn definitions_of_two_databases_have_different_names_within_the_limit() {
        let long = "kurabe_".repeat(9);
        let names = ["a", "b"].map(|database| definition(&long, database));
        assert!(names[0] != names[1] && names.iter().all(|name| name.len() <= 64), "{names:?}");
    }

    #[test]
    fn impossible_links_have_reasons() {
        let why = |way, fetch, url: &str| {
            let remotes = vec![(RemoteServer::Second, address(&TargetUrl::parse(url).unwrap()))];
            let link = Link { way, source: "kurabe_0_source".to_owned(), fetch };
            refusal(&remotes, RemoteServer::Second, &link).unwrap_or_default()
        };
        assert_eq!(why(SPIDER, None, "mysql://u:@h/d"), "");
        assert!(why("fdw", None, "mysql://u:@h/d").contains("federated, connect or spider"));
        assert!(why(FEDERATED, Some(1), "mysql://u:@h/d").contains("no fetch size"));
        assert!(why(CONNECT, None, "postgres://u:@h/d").contains("the remote is postgres:"));
        assert!(why(CONNECT, None, "mysql://u:@h/d?tls=require").contains("tls="));
    }
}
