//! Forms in which other clients name a database. A target in such a form is refused with the URL to write instead, and is
//! not repeated: it may contain a password where Kurabe does not know of one.

use crate::error::Error;
use crate::secret::is_secret_name;
use crate::units;

/// The words that targets begin with.
const SCHEMES: [&str; 25] = [
    "sqlite", "postgres", "postgresql", "mysql", "mariadb", "redis", "rediss", "valkey", "valkeys",
    "mongodb", "mongodb+srv", "memcached", "couchdb", "couchdbs", "lmdb", "oracle", "null", "tcp", "http",
    "https", "up", "stack", "pgsql", "mssql", "sqlserver",
];

/// Names of parameters in connection strings: libpq's, ODBC's, ADO.NET's, those of JDBC and PDO.
const PARAMETERS: [&str; 33] = [
    "host", "hostaddr", "hostname", "server", "addr", "address", "datasource", "networkaddress", "port",
    "dbname", "database", "db", "initialcatalog", "user", "username", "userid", "uid", "password", "passwd",
    "pwd", "pass", "passfile", "service", "sslmode", "options", "driver", "dsn", "filedsn", "unixsocket",
    "socket", "charset", "applicationname", "connecttimeout",
];

/// A form: its name, and what is written instead.
struct Form {
    name: &'static str,
    instead: String,
}

impl Form {
    fn new(name: &'static str, instead: impl Into<String>) -> Self {
        Self { name, instead: instead.into() }
    }

    fn error(&self) -> Error {
        let Self { name, instead } = self;
        Error::usage(format!(
            "a target is a URL, and this is {name} (it is not shown: it may contain a password)"
        ))
        .hint(format!("write {instead}"))
    }
}

/// The error of a text in a form of other clients; `None` if it is in none of them.
pub(super) fn refused(text: &str) -> Option<Error> {
    form(text.trim()).map(|form| form.error())
}

/// The error of a text that is no URL. It is repeated only if it is the name of an engine, or nearly.
pub(super) fn no_url(text: &str) -> Error {
    let what = if units::nearest(text, &SCHEMES).is_some() {
        format!("'{text}' is not a target")
    } else {
        "this is not a target (it is not shown: it may contain a password)".to_owned()
    };
    Error::usage(what).hint("a target is a URL such as sqlite:, postgres://user@host/db or up:mysql")
}

/// Whether a word may be repeated in a message: it is the name of an engine, or nearly, or made of letters only, as few
/// passwords are.
pub(super) fn is_word(word: &str) -> bool {
    let letters = word.trim_matches('-').bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    letters && word.len() <= 16 || units::nearest(word, &SCHEMES).is_some()
}

/// Whether this is the name of an option that connection strings have.
pub(super) fn is_option(name: &str) -> bool {
    PARAMETERS.contains(&&*plain(name))
}

/// Whether a text that is no readable target may contain a password.
pub(super) fn may_hold_secret(text: &str) -> bool {
    form(text.trim()).is_some()
        || text.contains('@') && text.contains(':')
        || pairs(text, &[';', '&', '?', ' ', ',', ':']).any(|(name, _)| is_secret_name(name))
}

fn form(text: &str) -> Option<Form> {
    let (scheme, rest) = text.split_once(':').unwrap_or(("", text));
    let lower = scheme.to_ascii_lowercase();
    let url = |scheme: &str| instead(scheme);
    match &*lower {
        "jdbc" | "r2dbc" => {
            let inner = rest.split(':').next().unwrap_or_default().to_ascii_lowercase();
            return Some(Form::new("a URL of JDBC", url(&inner)));
        }
        "odbc" => return Some(Form::new("a connection string of ODBC", url(""))),
        "file" => return Some(Form::new("a URL of a file", "sqlite:PATH, or lmdb:PATH")),
        "unix" | "redis+unix" | "redis+socket" | "valkey+unix" | "redis-socket" => {
            return Some(Form::new("a URL of a Unix socket", "redis://localhost?socket=/PATH"));
        }
        "mongodb+srv" => return None,
        _ => {}
    }
    if let Some((dialect, _)) = lower.split_once('+').filter(|_| !scheme.is_empty()) {
        return Some(Form::new("a URL of SQLAlchemy", url(dialect)));
    }
    let is_url = rest.starts_with("//") && !scheme.is_empty() && !scheme.contains(['=', ' ', ';', '@', '/']);
    if !is_url {
        let starts = |text: &str, between: &[char]| {
            pairs(text, between).next().is_some_and(|(name, _)| is_option(name) || is_secret_name(name))
        };
        // `pgsql:host=localhost;dbname=shop`
        if !scheme.is_empty() && !scheme.contains(['=', ';', ' ']) && starts(rest, &[';']) {
            return Some(Form::new("a data source name of PDO", url(&lower)));
        }
        if text.contains(';') && starts(text, &[';']) {
            let driver =
                pairs(text, &[';']).find(|(name, _)| plain(name) == "driver").map_or("", |(_, value)| value);
            return Some(Form::new(
                "a connection string of ODBC or ADO.NET",
                url(&driver.to_ascii_lowercase()),
            ));
        }
        if starts(text, &[' ', '\t', '\n']) {
            let postgres = instead("postgres");
            return Some(Form::new("written with libpq's keywords", postgres));
        }
    }
    if text.contains("@tcp(") || text.contains("@unix(") {
        return Some(Form::new("a data source name of Go's driver of MySQL", url("mysql")));
    }
    // A URL's path or options may go on as a connection string does.
    let of_path = text.split_once('?').map_or(text, |(path, _)| path);
    if pairs(of_path, &[';', '&', ' ']).any(|(name, _)| is_secret_name(name)) {
        return Some(Form::new("a mixture of a URL and a connection string", url(&lower)));
    }
    // `scott/tiger@host`, but no path of a file.
    let is_pair =
        |who: &str| who.contains(':') || who.matches('/').count() == 1 && !who.starts_with(['/', '.', '~']);
    let names_user = text.split_once('@').is_some_and(|(who, _)| is_pair(who));
    if !is_url && scheme.contains(['@', '/']) || scheme.is_empty() && names_user {
        return Some(Form::new("without a scheme", url("")));
    }
    // `me:secret@host` has the user for its scheme.
    let has_at = || rest.split('/').next().unwrap_or_default().contains('@');
    if !is_url && !scheme.is_empty() && has_at() && !SCHEMES.contains(&&*lower) {
        return Some(Form::new("without a scheme", url("")));
    }
    None
}

/// The pairs `name=value` of a text, one behind each of these characters.
fn pairs<'a>(text: &'a str, between: &'a [char]) -> impl Iterator<Item = (&'a str, &'a str)> {
    let is_name =
        |name: &str| name.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.'));
    let pairs = text.split(between).filter_map(|part| part.split_once('='));
    pairs.map(|(name, value)| (name.trim(), value.trim())).filter(move |(name, _)| is_name(name))
}

/// A parameter's name in small letters, without spaces and underscores.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The URL of the engine that a word names, with where its password belongs.
fn instead(word: &str) -> String {
    let has = |part: &str| word.contains(part);
    let (url, password) = match word {
        _ if has("postgres") || word == "pgsql" || has("psqlodbc") || word == "pg" => {
            ("postgres://user@host:port/database", "PGPASSWORD or ~/.pgpass")
        }
        _ if has("mariadb") => ("mariadb://user@host:port/database", "MYSQL_PWD or ~/.my.cnf"),
        _ if has("mysql") => ("mysql://user@host:port/database", "MYSQL_PWD or ~/.my.cnf"),
        _ if has("oracle") || word == "oci" => ("oracle://user@host:port/service", "KURABE_ORACLE_PASSWORD"),
        _ if has("sqlite") => return "sqlite:PATH".to_owned(),
        _ if has("redis") || has("valkey") => ("redis://host:port/0", "REDISCLI_AUTH"),
        _ if has("mongo") => ("mongodb://user@host:port/database", ""),
        _ => ("ENGINE://user@host:port/database, such as postgres://app@db.example/shop", ""),
    };
    match password {
        "" => url.to_owned(),
        password => format!("{url}, and the password in {password}"),
    }
}
