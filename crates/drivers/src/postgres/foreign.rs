//! Links from PostgreSQL to another PostgreSQL server: foreign tables of `postgres_fdw`, and queries by `dblink`; and
//! to MySQL or MariaDB by foreign tables of `mysql_fdw`.
//! Source: PostgreSQL's manual, "`postgres_fdw`", "dblink", "CREATE SERVER", "CREATE USER MAPPING".
//!
//! A linked collection has a foreign server of its name and a user mapping, which holds the password. With `postgres_fdw`
//! it also has a foreign table. `dblink` has no tables: the statement names the server and contains the remote's
//! statement, so that the remote selects the range as it does for a foreign table.

use super::config::{Config, folder_and_port};
use super::mysql_fdw;
use crate::prelude::*;
use crate::sql::{Dialect, LinkedStatements, columns, count, find_range};
use crate::wire::Place;
use crate::wire::link::{Query, rows};
use crate::wire::tls::{Check, Mode};
use kurabe_core::remote::{Addresses, Link, RemoteServer, address_of};

/// The servers to which links may lead, or why they cannot.
pub(super) type Remotes = Addresses<Remote>;

/// The address of a server to which a link may lead.
#[derive(Clone)]
pub(super) enum Remote {
    Postgres(Box<Config>),
    Mysql(mysql_fdw::Address),
}

/// The extensions by which a table of another server is read.
const FDW: &str = "fdw";
const DBLINK: &str = "dblink";
const MYSQL_FDW: &str = "mysql-fdw";

/// The text by which an extension is known as installed by Kurabe.
const COMMENT: &str = "installed by Kurabe, which removes it after its last run";

/// Selects the statements that remove the extensions which Kurabe installed.
pub(super) const INSTALLED: &str = "SELECT 'DROP EXTENSION ' || pg_catalog.quote_ident(extname) FROM pg_catalog.pg_extension \
     WHERE pg_catalog.pg_get_userbyid(extowner) = current_user AND pg_catalog.obj_description(oid, 'pg_extension') = 'installed by Kurabe, which removes it after its last run'";

/// The error of removing an object on which others depend (`dependent_objects_still_exist`).
pub(super) const IN_USE: &str = "2BP01";

/// How linked collections are read.
pub(super) const LINKED: LinkedStatements = LinkedStatements { before, text };

/// The extension of a way; `None` if PostgreSQL has no such way.
fn extension(way: &str) -> Option<&'static str> {
    match way {
        FDW => Some("postgres_fdw"),
        DBLINK => Some("dblink"),
        MYSQL_FDW => Some(mysql_fdw::NAME),
        _ => None,
    }
}

fn no_way() -> Error {
    Error::unsupported("PostgreSQL reads another server's tables by fdw, dblink or mysql-fdw")
}

pub(super) fn address(url: &TargetUrl) -> Result<Remote> {
    let scheme = url.scheme.as_str();
    if matches!(scheme, "postgres" | "postgresql") {
        let mut hosts = Config::from_url(url)?;
        return match (hosts.pop(), hosts.is_empty()) {
            (Some(config), true) => Ok(Remote::Postgres(Box::new(config))),
            _ => Err(url.wrong("a link is to one host").hint("name one host in the URL of the remote")),
        };
    }
    if mysql_fdw::SCHEMES.contains(&scheme) {
        return mysql_fdw::Address::of(url).map(Remote::Mysql);
    }
    let why = "postgres_fdw and dblink read PostgreSQL only, mysql_fdw MySQL and MariaDB, and the remote is";
    Err(Error::unsupported(format!("{why} {scheme}:")))
}

/// Why the link cannot be created, as far as that is known without the server.
pub(super) fn refusal(remotes: &Remotes, server: RemoteServer, link: &Link) -> Option<String> {
    if extension(link.way).is_none() {
        return Some(no_way().to_string());
    }
    if link.way == DBLINK && link.fetch.is_some() {
        return Some("dblink has no fetch size: it asks for the whole result at once".to_owned());
    }
    if link.way == MYSQL_FDW && server != RemoteServer::Given {
        return Some("mysql_fdw reads MySQL and MariaDB; name such a server with --remote".to_owned());
    }
    // The address of the remote may not be known yet.
    let (_, remote) = remotes.iter().find(|(known, _)| *known == server)?;
    let made = remote.as_ref().map_err(Clone::clone).and_then(|remote| options(remote, link).map(drop));
    made.err().map(|error| error.to_string())
}

/// Why this server cannot use the extension of a way, as a clause.
pub(super) fn missing(connection: &mut dyn Query, way: &str) -> Result<Option<String>> {
    let name = extension(way).ok_or_else(no_way)?;
    let sql = format!(
        "SELECT (SELECT e.installed_version IS NOT NULL FROM pg_catalog.pg_available_extensions e \
         WHERE e.name = '{name}'), (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)"
    );
    let found = rows(connection, &sql)?.into_iter().next().unwrap_or_default();
    let field = |at: usize| found.get(at).map_or("", String::as_str);
    Ok(match (field(0), field(1)) {
        ("t", _) | ("f", "t") => None,
        ("f", _) => Some(format!(
            "the extension {name} is not installed in this database, and only a superuser may install it: CREATE EXTENSION {name}"
        )),
        _ if way == MYSQL_FDW => Some(format!(
            "the server has no extension {name}; install it for its version of PostgreSQL (Debian: postgresql-15-mysql-fdw)"
        )),
        _ => Some(format!("the server has no extension {name}; install PostgreSQL's contrib package")),
    })
}

/// Installs the extension of a way in the schema of this quoted name, unless it is installed, with a comment by which it is known as Kurabe's.
pub(super) fn install(connection: &mut dyn Query, way: &str, schema: &str) -> Result<()> {
    let name = extension(way).ok_or_else(no_way)?;
    let installed = format!("SELECT 1 FROM pg_catalog.pg_extension WHERE extname = '{name}'");
    if !rows(connection, &installed)?.is_empty() {
        return Ok(());
    }
    // In one transaction, so that no extension remains without its comment.
    let comment = format!("COMMENT ON EXTENSION {name} IS '{COMMENT}'");
    let mut run = |sql: &str| connection.query(sql, &mut Reply::new());
    let done = ["BEGIN", &format!("CREATE EXTENSION {name} SCHEMA {schema}"), &comment, "COMMIT"]
        .into_iter()
        .try_for_each(&mut run);
    if done.is_err() {
        run("ROLLBACK")?;
    }
    done.map_err(|error| error.context(format!("cannot install the extension {name}")))
}

/// The options of the foreign server of a link.
fn options(remote: &Remote, link: &Link) -> Result<Vec<(&'static str, String)>> {
    match (remote, link.way) {
        (Remote::Mysql(remote), MYSQL_FDW) => Ok(remote.server(link)),
        (Remote::Postgres(remote), FDW | DBLINK) => options_for_postgres(remote, link),
        (Remote::Mysql(_), _) => {
            let why = "postgres_fdw and dblink read PostgreSQL only, and the remote is MySQL or MariaDB; use mysql-fdw";
            Err(Error::unsupported(why))
        }
        (Remote::Postgres(_), _) => {
            Err(Error::unsupported("mysql_fdw reads MySQL and MariaDB only, and the remote is PostgreSQL"))
        }
    }
}

fn options_for_postgres(remote: &Config, link: &Link) -> Result<Vec<(&'static str, String)>> {
    let (host, port) = match &remote.place {
        Place::Tcp { host, port } => (host.clone(), *port),
        Place::Unix(path) => {
            let (folder, port) = folder_and_port(path).ok_or_else(|| {
                Error::unsupported("the remote's Unix socket has no name from which libpq takes its port")
            })?;
            (folder.to_string_lossy().into_owned(), port)
        }
    };
    let tls = match &remote.tls {
        Mode::Off => "disable",
        Mode::On { wanted, .. } if wanted.check == Check::Nothing && wanted.identity.is_none() => "require",
        Mode::On { .. } => {
            return Err(Error::unsupported(
                "a link that checks certificates needs their files on the target's host",
            ));
        }
    };
    let mut options = vec![
        ("host", host),
        ("port", port.to_string()),
        ("dbname", remote.database.clone()),
        ("sslmode", tls.to_owned()),
        // By this name the stats probe of the remote finds the link's sessions.
        ("application_name", "kurabe".to_owned()),
    ];
    options.extend(link.fetch.map(|rows| ("fetch_size", rows.to_string())));
    Ok(options)
}

/// The statements that create a linked collection, after its extension.
pub(super) fn create(
    dialect: &Dialect,
    remotes: &Remotes,
    collection: &Collection,
    server: RemoteServer,
    link: &Link,
) -> Result<Vec<String>> {
    let remote = address_of(remotes, server)?;
    let wrapper = if link.way == DBLINK { "dblink_fdw" } else { extension(link.way).ok_or_else(no_way)? };
    let (name, table_name) = (dialect.quoted(&collection.name), dialect.table(&collection.name));
    let options = listed(&options(remote, link)?);
    let user = match remote {
        Remote::Postgres(remote) => {
            let mut user = vec![("user", remote.user.clone())];
            user.extend(remote.password.as_ref().map(|password| ("password", password.expose().to_owned())));
            user
        }
        Remote::Mysql(remote) => remote.user(),
    };
    let mut statements = vec![
        format!("CREATE SERVER {name} FOREIGN DATA WRAPPER {wrapper} OPTIONS ({options})"),
        format!("CREATE USER MAPPING FOR CURRENT_USER SERVER {name} OPTIONS ({})", listed(&user)),
    ];
    if link.way != DBLINK {
        let table = match remote {
            Remote::Postgres(remote) => {
                // Without it, the name of the local schema counts.
                let path = remote.search_path.as_deref().unwrap_or("public");
                let schema = path.split(',').next().unwrap_or(path).trim().trim_matches('"').to_owned();
                [("schema_name", schema), ("table_name", link.source.clone())]
            }
            Remote::Mysql(remote) => remote.table(link),
        };
        let (columns, table) = (columns(dialect, collection).join(", "), listed(&table));
        statements
            .push(format!("CREATE FOREIGN TABLE {table_name} ({columns}) SERVER {name} OPTIONS ({table})"));
    }
    Ok(statements)
}

/// The statements that remove a linked collection.
pub(super) fn remove(dialect: &Dialect, name: &str) -> [String; 3] {
    [
        format!("DROP FOREIGN TABLE IF EXISTS {}", dialect.table(name)),
        format!("DROP USER MAPPING IF EXISTS FOR CURRENT_USER SERVER \"{name}\""),
        format!("DROP SERVER IF EXISTS \"{name}\""),
    ]
}

/// `host '127.0.0.1', port '5432'`
fn listed(options: &[(&'static str, String)]) -> String {
    let option = |(name, value): &(&str, String)| format!("{name} {}", literal(value));
    options.iter().map(option).collect::<Vec<_>>().join(", ")
}

/// A literal that does not depend on `standard_conforming_strings`.
pub(super) fn literal(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\'', "''");
    format!("{}'{escaped}'", if text.contains('\\') { "E" } else { "" })
}

/// Opens the session's connection to the remote, by which `dblink` sends all its queries.
fn before(operation: &Operation) -> Option<String> {
    let collection = operation.collection().filter(|of| of.link().is_some_and(|link| link.way == DBLINK))?;
    let name = &collection.name;
    Some(format!(
        "SELECT CASE WHEN '{name}' = ANY (COALESCE(dblink_get_connections(), '{{}}')) THEN 'OK' \
         ELSE dblink_connect('{name}', '{name}') END"
    ))
}

/// The statement that sends an operation by `dblink`; `None` for foreign tables.
fn text(dialect: &Dialect, operation: &Operation) -> Result<Option<String>> {
    let link = |collection: &Collection| collection.link().filter(|link| link.way == DBLINK).cloned();
    let sent = |name: &str, query: &str| format!("dblink('{name}', {query})");
    match operation {
        Operation::FindRange { collection, by, fields } => {
            let Some(link) = link(collection) else { return Ok(None) };
            if collection.fields.get(*by).is_none_or(|field| field.kind != FieldType::Int) {
                return Err(Error::unsupported("dblink: Kurabe sends ranges of integers only"));
            }
            let bounds = ["%s".to_owned(), "%s".to_owned()];
            let source = dialect.quoted(&link.source);
            let query = find_range(dialect, collection, *by, fields, &source, &bounds)?;
            let query = format!("pg_catalog.format({}, $1::bigint, $2::bigint)", literal(&query));
            let defined = columns_of(dialect, collection, fields);
            let from = sent(&collection.name, &query);
            Ok(Some(format!("SELECT * FROM {from} AS linked({defined})")))
        }
        Operation::Count { collection } => {
            let Some(link) = link(collection) else { return Ok(None) };
            let query = literal(&count(&dialect.quoted(&link.source)));
            Ok(Some(format!("SELECT * FROM {} AS linked(n bigint)", sent(&collection.name, &query))))
        }
        _ if operation.collection().and_then(|collection| link(collection)).is_some() => {
            Err(Error::unsupported(format!("dblink: Kurabe sends no {} by it", operation.name())))
        }
        _ => Ok(None),
    }
}

/// Names and types of columns: `"id" bigint, "data" text`.
fn columns_of(dialect: &Dialect, collection: &Collection, fields: &[usize]) -> String {
    let column = |&position: &usize| {
        let field = collection.fields.get(position)?;
        Some(format!("{} {}", dialect.quoted(field.name), (dialect.column_type)(field.kind, false)))
    };
    fields.iter().filter_map(column).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::dialect::dialect;
    use kurabe_core::collection::Field;
    use kurabe_core::remote::RemoteCollection;
    use std::sync::Arc;

    fn linked(way: &'static str, fetch: Option<u64>) -> Collection {
        let fields = vec![
            Field { name: "id", kind: FieldType::Int },
            Field { name: "data", kind: FieldType::Text { max: 9 } },
        ];
        let link = Some(Link { way, source: "kurabe_1_source".to_owned(), fetch });
        let remote = Some(RemoteCollection { server: RemoteServer::Second, link });
        Collection { remote, ..Collection::new("kurabe_0_far", fields, vec![0]) }
    }

    fn statements(way: &'static str, fetch: Option<u64>, url: &str) -> Result<Vec<String>> {
        let remotes = vec![(RemoteServer::Second, address(&TargetUrl::parse(url).unwrap()))];
        let collection = linked(way, fetch);
        let link = collection.link().unwrap();
        create(&dialect(), &remotes, &collection, RemoteServer::Second, link)
    }

    #[test]
    fn password_is_only_in_user_mapping_and_is_escaped() {
        let made = statements(FDW, Some(50), "postgres://bob:it%27s%5C@h:7/shop?search_path=a,b").unwrap();
        assert_eq!(
            made[0],
            "CREATE SERVER \"kurabe_0_far\" FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'h', port '7', \
             dbname 'shop', sslmode 'disable', application_name 'kurabe', fetch_size '50')"
        );
        assert!(made[1].ends_with(r"OPTIONS (user 'bob', password E'it''s\\')"), "{}", made[1]);
        assert_eq!(
            made[2],
            "CREATE FOREIGN TABLE \"kurabe_0_far\" (\"id\" bigint NOT NULL, \"data\" varchar(9) COLLATE \"C\") \
             SERVER \"kurabe_0_far\" OPTIONS (schema_name 'a', table_name 'kurabe_1_source')"
        );
        assert_eq!(made.iter().filter(|sql| sql.contains("it''s")).count(), 1);
    }

    #[test]
    fn mysql_fdw_names_database_and_table_of_the_remote() {
        let of = |url: &str| {
            let remotes = vec![(RemoteServer::Given, address(&TargetUrl::parse(url).unwrap()))];
            let collection = linked(MYSQL_FDW, Some(50));
            let link = collection.link().unwrap();
            let refused = refusal(&remotes, RemoteServer::Given, link);
            (refused, create(&dialect(), &remotes, &collection, RemoteServer::Given, link))
        };
        let (refused, made) = of("mariadb://bob:it%27s@localhost/shop");
        let made = made.unwrap();
        assert_eq!(refused, None);
        assert_eq!(
            made[0],
            "CREATE SERVER \"kurabe_0_far\" FOREIGN DATA WRAPPER mysql_fdw OPTIONS (host '127.0.0.1', port '3306', \
             fetch_size '50')"
        );
        assert!(made[1].ends_with("OPTIONS (username 'bob', password 'it''s')"), "{}", made[1]);
        assert!(made[2].ends_with("OPTIONS (dbname 'shop', table_name 'kurabe_1_source')"), "{}", made[2]);
        for (url, part) in
            [("postgres://u@h/d", "the remote is PostgreSQL"), ("mysql://u@h/d?tls=require", "TLS")]
        {
            assert!(of(url).0.is_some_and(|why| why.contains(part)), "{url}");
        }
    }

    #[test]
    fn dblink_sends_range_as_text_with_both_bounds() {
        let collection = Arc::new(linked(DBLINK, None));
        let range = Operation::FindRange { collection: Arc::clone(&collection), by: 0, fields: vec![0, 1] };
        assert_eq!(
            crate::sql::text(&dialect(), &range).unwrap(),
            "SELECT * FROM dblink('kurabe_0_far', pg_catalog.format('SELECT \"id\", \"data\" FROM \"kurabe_1_source\" \
             WHERE \"id\" >= %s AND \"id\" < %s ORDER BY \"id\"', $1::bigint, $2::bigint)) \
             AS linked(\"id\" bigint, \"data\" varchar(9) COLLATE \"C\")"
        );
        let get = Operation::Get { collection, fields: vec![1] };
        assert_eq!(crate::sql::text(&dialect(), &get).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn impossible_links_have_reasons() {
        let why = |way, fetch, url: &str| {
            let remotes = vec![(RemoteServer::Second, address(&TargetUrl::parse(url).unwrap()))];
            let collection = linked(way, fetch);
            refusal(&remotes, RemoteServer::Second, collection.link().unwrap()).unwrap_or_default()
        };
        assert_eq!(why(FDW, Some(1), "postgres://u@h/d"), "");
        assert!(why("attach", None, "postgres://u@h/d").contains("fdw, dblink or mysql-fdw"));
        assert!(why(DBLINK, Some(1), "postgres://u@h/d").contains("no fetch size"));
        assert!(why(FDW, None, "mysql://u@h/d").contains("use mysql-fdw"));
        assert!(why(FDW, None, "redis://h").contains("the remote is redis:"));
        assert!(why(MYSQL_FDW, None, "mysql://u@h/d").contains("with --remote"));
        assert!(why(FDW, None, "postgres://u@h/d?tls=verify").contains("checks certificates"));
    }
}
