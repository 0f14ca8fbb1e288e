//! Which SQL statements a driver sends on its own account, and which are the application's.

/// First words of statements that set up a session or a transaction.
const FIRST: [&str; 15] = [
    "set", "show", "begin", "start", "commit", "rollback", "use", "discard", "reset", "deallocate",
    "savepoint", "release", "abort", "end", "kill",
];
/// What a statement without a table asks the server about itself or the session.
const ASKED: [&str; 14] = [
    "@@", "version(", "database(", "schema(", "user(", "connection_id(", "current_user", "session_user",
    "current_schema", "current_database", "pg_backend_pid", "current_setting", "set_config",
    "pg_is_in_recovery",
];
/// Prefixes of the tables that describe a server.
const CATALOGUES: [&str; 5] = ["pg_", "information_schema", "performance_schema", "mysql.", "sys."];

/// Whether a statement sets up the connection or asks about the server, as drivers and connection pools do: it names no
/// table, and sets something, begins or ends a transaction, or reads the server's own variables; or all its tables are the
/// server's own. An empty statement, by which pools test a connection, is one too.
pub(crate) fn is_setup(text: &str) -> bool {
    let text = without_comments(text).to_ascii_lowercase();
    let first: String = text.chars().take_while(char::is_ascii_alphabetic).collect();
    if first.is_empty() {
        return text.trim_matches([';', ' ']).is_empty();
    }
    if FIRST.contains(&first.as_str()) {
        return true;
    }
    if first != "select" && first != "with" {
        return false;
    }
    let mut tables = tables(&text).peekable();
    if tables.peek().is_none() {
        return ASKED.iter().any(|asked| text.contains(asked));
    }
    tables.all(|table| CATALOGUES.iter().any(|prefix| table.starts_with(prefix)))
}

/// The words after `from` and `join`, without quotes. Subqueries are no tables; theirs are found too.
fn tables(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    std::iter::from_fn(move || {
        loop {
            let word = words.next()?;
            if word != "from" && word != "join" {
                continue;
            }
            let table = words.next()?.trim_start_matches(['"', '`']);
            if !table.starts_with('(') {
                return Some(table.to_owned());
            }
        }
    })
}

/// A statement without the comments and parentheses before it.
fn without_comments(text: &str) -> &str {
    let mut rest = text.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    loop {
        let after = if let Some(comment) = rest.strip_prefix("/*") {
            // `/*!40101 SET …` is executed by MySQL.
            if let Some(executed) = comment.strip_prefix('!') {
                return executed.trim_start_matches(|c: char| c.is_ascii_digit() || c.is_whitespace());
            }
            comment.split_once("*/").map_or("", |(_, after)| after)
        } else if rest.starts_with("--") || rest.starts_with('#') {
            rest.split_once('\n').map_or("", |(_, after)| after)
        } else {
            return rest;
        };
        rest = after.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_drivers_are_distinguished_from_those_of_applications() {
        for text in [
            "SET NAMES utf8mb4",
            "/* mysql-connector-java-5.1.49 */SELECT  @@session.auto_increment_increment AS a",
            "/*!40101 SET NAMES utf8 */",
            "-- a comment\n SHOW VARIABLES",
            "select pg_catalog.version()",
            "SELECT t.oid FROM pg_catalog.pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace",
            "SELECT DATABASE(), USER() LIMIT 1",
            "BEGIN",
            "",
            " ; ",
        ] {
            assert!(is_setup(text), "{text}");
        }
        for text in [
            "SELECT 1",
            "select id from t",
            "SELECT @@version, id FROM t",
            "SELECT * FROM (SELECT * FROM t) x",
            "INSERT INTO t VALUES (1)",
            "select * from pg_class join t on true",
            "settle()",
            "/* unfinished",
        ] {
            assert!(!is_setup(text) || text.starts_with("/*"), "{text}");
        }
    }
}
