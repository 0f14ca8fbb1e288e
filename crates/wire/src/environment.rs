//! The environment variables that tell a program its server.

use kurabe_core::secret::Secret;
use kurabe_core::target::TargetUrl;
use kurabe_relay::At;
use std::path::Path;

/// The names of a protocol's own variables; an empty name: none.
#[derive(Clone, Copy, Debug)]
pub struct Variables {
    host: &'static str,
    port: &'static str,
    user: &'static str,
    password: &'static str,
    database: &'static str,
    /// `host:port`, or the path of a Unix socket.
    address: &'static str,
    /// The path of a Unix socket, beside a host of this machine.
    socket: &'static str,
    url: &'static [&'static str],
    /// Variables that would name another server.
    removed: &'static [&'static str],
    /// The variable that names the file of trusted authorities.
    authority: &'static str,
    /// What else has to be set, if TLS ends at the relay.
    pub ended: &'static [(&'static str, &'static str)],
    /// The options of a URL by which a client uses TLS and trusts an authority; no value: the authority's file.
    trust: &'static [(&'static str, Option<&'static str>)],
}

impl Variables {
    /// None of its own.
    pub(crate) const NONE: Self = Self {
        host: "",
        port: "",
        user: "",
        password: "",
        database: "",
        address: "",
        socket: "",
        url: &[],
        removed: &[],
        authority: "",
        ended: &[],
        trust: &[("ca", None)],
    };
    /// Those of the client programs of MySQL and MariaDB, and of their container images.
    pub(crate) const MYSQL: Self = Self {
        host: "MYSQL_HOST",
        port: "MYSQL_TCP_PORT",
        user: "MYSQL_USER",
        password: "MYSQL_PWD",
        database: "MYSQL_DATABASE",
        url: &["DATABASE_URL"],
        socket: "MYSQL_UNIX_PORT",
        removed: &["MYSQL_UNIX_PORT"],
        trust: &[("ssl-ca", None)],
        ..Self::NONE
    };

    /// libpq's.
    pub(crate) const POSTGRES: Self = Self {
        host: "PGHOST",
        port: "PGPORT",
        user: "PGUSER",
        password: "PGPASSWORD",
        database: "PGDATABASE",
        url: &["DATABASE_URL"],
        removed: &["PGHOSTADDR", "PGSERVICE", "PGSERVICEFILE"],
        authority: "PGSSLROOTCERT",
        // SCRAM would be bound to the certificate of the relay, which is not that of the server.
        ended: &[("PGCHANNELBINDING", "disable")],
        trust: &[
            ("sslmode", Some("verify-full")),
            ("sslrootcert", None),
            ("channel_binding", Some("disable")),
        ],
        ..Self::NONE
    };
    /// redis-cli's password, and what applications use.
    pub(crate) const REDIS: Self = Self {
        host: "REDIS_HOST",
        port: "REDIS_PORT",
        password: "REDISCLI_AUTH",
        url: &["REDIS_URL"],
        // redis-py's.
        trust: &[("ssl_ca_certs", None)],
        ..Self::NONE
    };
    /// libmemcached's, which knows no password in the text protocol, and Kurabe's own.
    pub(crate) const MEMCACHED: Self =
        Self { address: "MEMCACHED_SERVERS", password: "MEMCACHED_PASSWORD", ..Self::NONE };
    /// What applications use.
    pub(crate) const MONGODB: Self =
        Self { url: &["MONGODB_URI"], trust: &[("tls", Some("true")), ("tlsCAFile", None)], ..Self::NONE };
    /// What applications use.
    pub(crate) const COUCHDB: Self =
        Self { url: &["COUCHDB_URL"], password: "COUCHDB_PASSWORD", ..Self::NONE };
}

/// What is set and removed in the environment of a program.
#[derive(Debug, Default)]
pub struct Environment {
    /// Names and values. Only variables for passwords have passwords: `KURABE_PASSWORD`, and the protocol's own; or URLs, where
    /// the protocol's programs know no other.
    pub set: Vec<(&'static str, String)>,
    pub removed: Vec<&'static str>,
}

/// Options of URLs without which no client logs in through a relay: MySQL's password is encrypted by the server's key, and
/// MongoDB's users are in a database.
const OF_LOGIN: [&str; 3] = ["get_server_public_key", "authSource", "authMechanism"];

/// The folder and the port of a Unix socket that is named as PostgreSQL names it.
fn of_postgres(path: &Path) -> Option<(String, String)> {
    let port = path.file_name()?.to_str()?.strip_prefix(".s.PGSQL.")?;
    Some((path.parent()?.to_str()?.to_owned(), port.to_owned()))
}

/// The URL of a server, by way of a relay there. It has no password, and no options but that of a login.
pub fn through(url: &TargetUrl, relay: &At) -> TargetUrl {
    let mut options: Vec<_> =
        url.options.clone().into_iter().filter(|(name, _)| OF_LOGIN.contains(&&**name)).collect();
    let option = |name: &str, value: String| (name.to_owned(), value);
    let (host, port) = match relay {
        At::Tcp(address) => (Some(address.ip().to_string()), Some(address.port())),
        At::Unix(path) => {
            options.extend(match of_postgres(path) {
                Some((folder, port)) => vec![option("host", folder), option("port", port)],
                None => vec![option("socket", path.display().to_string())],
            });
            (None, None)
        }
    };
    TargetUrl {
        host,
        port,
        // An empty one is no secret.
        password: url.password.clone().filter(|password| password.expose().is_empty()),
        options: options.into_iter().collect(),
        ..url.clone()
    }
}

/// The URL of a server, by way of a relay at this address at which TLS ends: clients trust the authority in this file.
pub fn through_tls(url: &TargetUrl, relay: &At, variables: &Variables, authority: &str) -> TargetUrl {
    let option =
        |(name, value): &(&str, Option<&str>)| ((*name).to_owned(), value.unwrap_or(authority).to_owned());
    let through = through(url, relay);
    let of_login = through.options.clone().into_iter().filter(|(name, _)| name != OF_LOGIN[0]);
    TargetUrl { options: variables.trust.iter().map(option).chain(of_login).collect(), ..through }
}

/// The environment of a program that reaches a server through a relay at this address. `authority`: the file of the authority
/// whom it has to trust, if TLS ends at the relay.
pub fn environment(
    url: &TargetUrl,
    relay: &At,
    variables: &Variables,
    authority: Option<&str>,
) -> Environment {
    let (host, port, socket) = match relay {
        At::Tcp(address) => (address.ip().to_string(), address.port().to_string(), String::new()),
        At::Unix(path) => {
            let (host, port) = of_postgres(path).unwrap_or_else(|| ("localhost".to_owned(), String::new()));
            (host, port, path.display().to_string())
        }
    };
    let mut shown = match authority {
        Some(authority) => through_tls(url, relay, variables, authority),
        None => through(url, relay),
    };
    if variables.password.is_empty() {
        shown.password.clone_from(&url.password);
    }
    let shown = shown.exposed();
    let password = url.password.as_ref().map(Secret::expose).filter(|password| !password.is_empty());
    let mut set = vec![
        ("KURABE_HOST", host.clone()),
        ("KURABE_PORT", port.clone()),
        ("KURABE_URL", shown.clone()),
        (variables.host, host),
        (variables.port, port),
        (variables.address, relay.to_string()),
        ("KURABE_SOCKET", socket.clone()),
        (variables.socket, socket),
    ];
    set.extend(variables.url.iter().map(|name| (*name, shown.clone())));
    let mut both = |own: &'static str, general: &'static str, value: Option<&str>| {
        set.extend(
            value.into_iter().flat_map(|value| [(own, value.to_owned()), (general, value.to_owned())]),
        );
    };
    both(variables.user, "KURABE_USER", url.user.as_deref());
    both(variables.database, "KURABE_DATABASE", Some(url.path.as_str()).filter(|path| !path.is_empty()));
    both(variables.password, "KURABE_PASSWORD", password);
    if let Some(authority) = authority {
        set.extend([("KURABE_CA", authority.to_owned()), (variables.authority, authority.to_owned())]);
        set.extend(variables.ended.iter().map(|(name, value)| (*name, (*value).to_owned())));
    }
    set.retain(|(name, value)| !name.is_empty() && !value.is_empty());
    let is_set = |name: &&str| set.iter().any(|(known, _)| known == name);
    let removed = variables.removed.iter().copied().filter(|name| !is_set(name)).collect();
    Environment { set, removed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_variables_for_passwords_have_passwords() {
        let url = TargetUrl::parse("postgres://bob:hunter2@db.example/shop?search_path=x").unwrap();
        let relay = &At::Tcp("[::1]:7000".parse().unwrap());
        let found = environment(&url, relay, &Variables::POSTGRES, None);
        let value =
            |name: &str| found.set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        assert_eq!(value("KURABE_URL"), Some("postgres://bob@[::1]:7000/shop"));
        assert_eq!((value("PGHOST"), value("PGPORT")), (Some("::1"), Some("7000")));
        assert_eq!((value("PGUSER"), value("PGDATABASE")), (Some("bob"), Some("shop")));
        for (name, value) in &found.set {
            assert_eq!(value.contains("hunter2"), ["PGPASSWORD", "KURABE_PASSWORD"].contains(name), "{name}");
        }
        assert!(found.removed.contains(&"PGHOSTADDR"));
        // MongoDB's programs read no variable with a password.
        let url = TargetUrl::parse("mongodb://bob:hunter2@db.example/shop?authSource=admin&w=1").unwrap();
        let found = environment(&url, relay, &Variables::MONGODB, None);
        let uri = found.set.iter().find(|(name, _)| *name == "MONGODB_URI").unwrap();
        assert_eq!(uri.1, "mongodb://bob:hunter2@[::1]:7000/shop?authSource=admin");
    }

    #[test]
    fn clients_are_told_the_socket_as_their_programs_name_it() {
        for (url, path, variables, expected, shown) in [
            (
                "postgres://bob@h/shop",
                "/r/.s.PGSQL.7",
                &Variables::POSTGRES,
                ["PGHOST=/r", "PGPORT=7"],
                "postgres://bob@/shop?host=/r&port=7",
            ),
            (
                "mysql://bob@h/shop",
                "/r/m",
                &Variables::MYSQL,
                ["MYSQL_UNIX_PORT=/r/m", "MYSQL_HOST=localhost"],
                "mysql://bob@/shop?socket=/r/m",
            ),
            (
                "redis://h/2",
                "/r/m",
                &Variables::REDIS,
                ["KURABE_SOCKET=/r/m", "REDIS_URL=redis:///2?socket=/r/m"],
                "redis:///2?socket=/r/m",
            ),
            (
                "memcached://h",
                "/r/m",
                &Variables::MEMCACHED,
                ["MEMCACHED_SERVERS=/r/m", "KURABE_SOCKET=/r/m"],
                "memcached:?socket=/r/m",
            ),
        ] {
            let url = TargetUrl::parse(url).unwrap();
            let relay = At::Unix(path.into());
            let found = environment(&url, &relay, variables, None);
            let set: Vec<String> = found.set.iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert!(expected.iter().all(|one| set.iter().any(|set| set == one)), "{set:?}");
            assert!(!found.removed.iter().any(|name| found.set.iter().any(|(set, _)| set == name)));
            assert_eq!(through(&url, &relay).to_string(), shown);
        }
    }

    #[test]
    fn clients_are_told_whom_to_trust_where_tls_ends_at_the_relay() {
        let relay = &At::Tcp("127.0.0.1:7000".parse().unwrap());
        let found = |url: &str, variables| {
            environment(&TargetUrl::parse(url).unwrap(), relay, variables, Some("/t/ca.pem")).set
        };
        let value = |found: &[(&str, String)], name: &str| {
            found.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let postgres = found("postgres://bob:pw@h/shop?sslmode=require", &Variables::POSTGRES);
        let options = "channel_binding=disable&sslmode=verify-full&sslrootcert=/t/ca.pem";
        let url = format!("postgres://bob@127.0.0.1:7000/shop?{options}");
        assert_eq!(value(&postgres, "DATABASE_URL"), url);
        assert_eq!(value(&postgres, "PGSSLROOTCERT"), "/t/ca.pem");
        assert_eq!(value(&postgres, "PGCHANNELBINDING"), "disable");
        let redis = found("rediss://h/2?ca=/x", &Variables::REDIS);
        assert_eq!(value(&redis, "REDIS_URL"), "rediss://127.0.0.1:7000/2?ssl_ca_certs=/t/ca.pem");
        let mysql = found("mysql://h/shop", &Variables::MYSQL);
        assert!(value(&mysql, "KURABE_URL").contains("ssl-ca=/t/ca.pem"), "{mysql:?}");
        assert_eq!(value(&mysql, "KURABE_CA"), "/t/ca.pem");
        let mysql =
            TargetUrl::parse("mysql://me@h/shop?get_server_public_key=true&charset=statement").unwrap();
        let url = "mysql://me@127.0.0.1:7000/shop?get_server_public_key=true";
        assert_eq!(through(&mysql, relay).to_string(), url);
    }
}
