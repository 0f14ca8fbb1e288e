//! A statement's text, divided into what the program wrote and the values in it.

pub use crate::template::{GAP, Split, fingerprint};

use crate::protocols::mongodb;
use crate::view::{Exchange, Parameter};
use crate::{conceal, resource};
use kurabe_protocol::sql::{self, Kind, tokens};

/// How a dialect writes texts, or what is a value in the path of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `"name"`, `E'\''`, `$$text$$`, `$1`.
    Postgres,
    /// `"text"`, `` `name` ``, `'\''`, `# comment`.
    Mysql,
    /// Commands of MongoDB, which are documents; their text has none of their values.
    Mongodb,
    /// Commands of Redis and memcached, whose values are beside their text: `SET ? ?`.
    Commands,
    /// Method and path of HTTP.
    Http,
    /// Method and path of `CouchDB`.
    Couchdb,
}

impl Dialect {
    /// The dialect of a protocol's requests, by the scheme of its URLs.
    pub fn of_scheme(scheme: &str) -> Self {
        match scheme {
            "mysql" | "mariadb" => Self::Mysql,
            "http" => Self::Http,
            "couchdb" => Self::Couchdb,
            "mongodb" => Self::Mongodb,
            "redis" | "valkey" | "memcached" => Self::Commands,
            _ => Self::Postgres,
        }
    }

    /// How its texts of SQL are read. What is no SQL is read as standard SQL is.
    pub fn sql(self) -> sql::Dialect {
        match self {
            Self::Postgres | Self::Commands => sql::Dialect::POSTGRES,
            Self::Mysql => sql::Dialect::MYSQL,
            Self::Mongodb | Self::Http | Self::Couchdb => sql::Dialect::STANDARD,
        }
    }

    /// Whether requests have a method and a path in place of a statement.
    pub fn has_paths(self) -> bool {
        matches!(self, Self::Http | Self::Couchdb)
    }
}

/// Divides a text. Filling the gaps with the literals gives the text again.
pub fn split(text: &str, dialect: Dialect) -> Split<'_> {
    split_under(text, dialect, dialect.sql())
}

/// Like [`split`], of a session that reads SQL in this way.
pub fn split_under(text: &str, dialect: Dialect, sql: sql::Dialect) -> Split<'_> {
    let mut found = Split::default();
    if text.contains(GAP) {
        // No template can be made of it.
        return Split { template: GAP.to_string(), literals: vec![text] };
    }
    if dialect.has_paths() {
        return resource::split(text, dialect == Dialect::Couchdb);
    }
    if dialect == Dialect::Mongodb {
        return Split { template: text.to_owned(), literals: Vec::new() };
    }
    for token in tokens(text, sql) {
        if matches!(token.kind, Kind::Comment | Kind::Number | Kind::Text) {
            found.template.push(GAP);
            found.literals.push(token.text);
        } else {
            found.template.push_str(token.text);
        }
    }
    found
}

/// What may be kept of a statement that may contain a password: `None` if nothing speaks for one, else its kind.
pub fn concealed(text: &str, template: &str, dialect: Dialect) -> Option<String> {
    if dialect.has_paths() {
        return resource::concealed(text, template);
    }
    let shown = conceal::sql(text);
    if shown == text.trim() {
        return None;
    }
    // Their values are beside the text, which says what the request is.
    if matches!(dialect, Dialect::Mongodb | Dialect::Commands) {
        return Some(template.to_owned());
    }
    let first: String = template
        .trim_start_matches(|c: char| c == GAP || c.is_whitespace() || c == '(')
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    // What reads and changes tables has values only as literals; other statements have them anywhere.
    let is_plain = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "COPY"]
        .contains(&first.to_ascii_uppercase().as_str());
    Some(if is_plain { fingerprint(template) } else { shown })
}

/// Commands of Redis and memcached by which clients set up a connection or ask about the server.
const SETUP: [&str; 25] = [
    "ACL", "ASKING", "AUTH", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "ECHO", "HELLO", "INFO", "PING",
    "QUIT", "READONLY", "RESET", "ROLE", "SELECT", "SENTINEL", "mn", "quit", "refresh_certs", "shutdown",
    "stats", "verbosity", "version", "watch",
];
/// Paths by which clients of `CouchDB` ask about the server.
const PATHS: [&str; 4] = ["/", "/_session", "/_up", "/_all_dbs"];

/// Whether a command of Redis or memcached sets up a connection or asks about the server.
pub fn is_setup_command(text: &str) -> bool {
    SETUP.contains(&text.split(' ').next().unwrap_or_default())
}

/// A request for people, without anything that may be a password, and whether it sets up the connection or asks about the server.
pub(crate) fn shown(request: &Exchange, scheme: &str) -> (String, bool) {
    let text = &request.text;
    match scheme {
        "redis" | "memcached" => {
            // The first word says most: others are values.
            let (command, _) = text.split_once(" ?").unwrap_or((text, ""));
            let count = if command == "CLIENT SETINFO" { 2 } else { 1 };
            let words = request.parameters.iter().take(count).filter_map(Parameter::bytes);
            let words = words.map(String::from_utf8_lossy);
            let shown = words.fold(command.to_owned(), |text, word| format!("{text} {word}"));
            (shown, is_setup_command(text))
        }
        "mongodb" => {
            // Other names and all values may be passwords.
            let shown = mongodb::command(&request.parameters).map(|command| {
                let collection = command.collection().map(|name| format!(" {name}"));
                format!("{}{}", command.name(), collection.unwrap_or_default())
            });
            let is_setup = mongodb::SETUP.contains(&text.as_str());
            let first = || text.split(' ').next().unwrap_or_default().to_owned();
            (shown.unwrap_or_else(first), is_setup)
        }
        "couchdb" | "http" => {
            // The query may contain passwords.
            let shown = text.split_once('?').map_or_else(|| text.clone(), |(path, _)| format!("{path}?…"));
            let is_setup = text.split_once(' ').is_some_and(|(_, path)| PATHS.contains(&path));
            (shown, is_setup && scheme == "couchdb")
        }
        scheme => {
            let is_setup =
                is_setup(text, Dialect::of_scheme(scheme)) && !OWN_COMMANDS.contains(&text.as_str());
            (conceal::sql(text), is_setup)
        }
    }
}

/// Commands of MySQL that do not set up a connection: they are what it is for.
const OWN_COMMANDS: [&str; 7] = [
    "COM_BINLOG_DUMP", "COM_BINLOG_DUMP_GTID", "COM_CREATE_DB", "COM_DROP_DB", "COM_SHUTDOWN",
    "COM_STMT_FETCH", "COM_TABLE_DUMP",
];

/// The maximum length of a word of a command in which names of secrets are looked for, in bytes.
const LOOKED_AT: usize = 16 << 10;

/// Whether the words of a command of a store of keys may hold a secret: behind the name of one, or within a document.
pub fn command_has_secret<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> bool {
    words
        .into_iter()
        .filter(|word| word.len() <= LOOKED_AT)
        .any(|word| conceal::names_secret(word) || word.starts_with(b"{") && conceal::http(word))
}

/// Whether a text may have the name of a column that says that a secret is in it.
pub fn may_name_secret(text: &str) -> bool {
    conceal::has_name(text)
}

/// Whether the name of a column says that a secret is in it.
pub fn column_has_secret(column: &str) -> bool {
    conceal::names_secret(column.as_bytes())
}

/// Whether a statement sets up the connection or a transaction, or asks about the server.
pub fn is_setup(text: &str, dialect: Dialect) -> bool {
    let command = text.split(' ').next().unwrap_or_default();
    text.starts_with("COM_")
        || mongodb::SETUP.contains(&command)
        || ["commitTransaction", "abortTransaction"].contains(&command)
        || sql::Statement::read(text, dialect.sql()).is_setup()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn settings_of_a_session_decide_where_texts_end() {
        for (dialect, setting, value, text, template) in [
            (
                Dialect::Mysql,
                "sql_mode",
                "NO_BACKSLASH_ESCAPES",
                "SELECT 'a\\', 'b', \"c\"",
                "SELECT ?, ?, ?",
            ),
            (Dialect::Mysql, "sql_mode", "", "SELECT 'a\\', ', \"c\"", "SELECT ?, ?"),
            (Dialect::Mysql, "sql_mode", "ANSI_QUOTES,ANSI", "SELECT \"n\" + 'b'", "SELECT \"n\" + ?"),
            (Dialect::Postgres, "standard_conforming_strings", "off", "SELECT 'a\\', ', 'c'", "SELECT ?, ?"),
            (Dialect::Postgres, "standard_conforming_strings", "on", "SELECT 'a\\', 'c'", "SELECT ?, ?"),
        ] {
            let split = split_under(text, dialect, dialect.sql().under(setting, value));
            assert_eq!(split.template, template.replace('?', "\0"), "{setting} = {value}: {text}");
        }
    }

    #[test]
    fn literals_are_found_and_names_are_not() {
        let gap = |text: &str| text.replace('?', "\0");
        for (dialect, text, template) in [
            (
                Dialect::Postgres,
                "SELECT a1, $1 FROM \"t 'x'\" WHERE b = 'it''s' AND c > -1.5e+3",
                "SELECT a1, $1 FROM \"t 'x'\" WHERE b = ? AND c > -?",
            ),
            (
                Dialect::Postgres,
                "SELECT E'a\\'b', 'a\\', $$it's$$, $q$ $$ $q$, x'ff' /* a /* b */ c */",
                "SELECT ?, ?, ?, ?, ? ?",
            ),
            (
                Dialect::Mysql,
                "SELECT `a'b`, \"it's\", 'a\\'b', 0xff # c\n, é2 FROM t2",
                "SELECT `a'b`, ?, ?, ? ?\n, é2 FROM t2",
            ),
            (Dialect::Mysql, "/*!40101 SET NAMES utf8 */", "/*!40101 SET NAMES utf8 */"),
            (Dialect::Mysql, "SELECT 5--3 -- said", "SELECT ?--? ?"),
            (Dialect::Postgres, "SELECT 'open", "SELECT ?"),
        ] {
            assert_eq!(split(text, dialect).template, gap(template), "{text}");
        }
    }

    #[test]
    fn statements_that_differ_in_values_only_have_one_kind() {
        let kind = |text: &str| fingerprint(&split(text, Dialect::Postgres).template);
        assert_eq!(kind("SELECT *\n FROM t WHERE id IN (1, 2,3) ;"), "SELECT * FROM t WHERE id IN (?)");
        assert_eq!(kind("INSERT INTO t VALUES (1, 'a'), (2, 'b') -- x"), "INSERT INTO t VALUES (?) ?");
        assert_eq!(kind("/* trace 7 */ SELECT 1"), "SELECT ?");
        assert_eq!(kind("UPDATE t SET a = a + -5 WHERE b = $12"), "UPDATE t SET a = a + ? WHERE b = ?");
    }

    #[test]
    fn passwords_are_concealed_and_the_kind_of_statement_is_not() {
        let kept = |text: &str| concealed(text, &split(text, Dialect::Postgres).template, Dialect::Postgres);
        assert_eq!(kept("SELECT 1"), None);
        assert_eq!(
            kept("SELECT id FROM u WHERE password = 'hunter2'").unwrap(),
            "SELECT id FROM u WHERE password = ?"
        );
        for text in ["ALTER ROLE u PASSWORD 'hunter2'", "SET my.password = hunter2", "hunter2 password"] {
            assert!(!kept(text).unwrap().contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn command_that_logs_in_keeps_its_name_and_loses_its_values() {
        for text in ["AUTH ?", "AUTH ? ?", "CONFIG SET ? ?"] {
            let shown = concealed(text, text, Dialect::Commands);
            assert!(shown.is_none_or(|shown| shown == text) && is_setup_command(text), "{text}");
        }
        assert!(concealed("AUTH ?", "AUTH ?", Dialect::Commands).is_some());
    }

    proptest! {
        #[test]
        fn gaps_filled_with_literals_are_the_text(text in "[aAeExX1-9 .$'\"`/*#\n\\\\é;-]{0,60}") {
            for dialect in [Dialect::Postgres, Dialect::Mysql] {
                let found = split(&text, dialect);
                let mut literals = found.literals.iter();
                let filled: String = found.template.chars().map(|c| if c == GAP { (*literals.next().unwrap()).to_owned() } else { c.to_string() }).collect();
                prop_assert_eq!(filled, text.as_str());
                prop_assert!(literals.next().is_none());
            }
        }
    }
}
