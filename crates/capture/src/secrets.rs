//! Secrets beside which no name stands: rows without a list of columns, executions of statements that were prepared as SQL, and
//! variables. What a table holds is known from the server's catalogue, and learnt from what is asked of it.

use kurabe_core::Result;
use kurabe_protocol::sql::{Dialect, Kind, Statement, Token, columns_of_values, first_word};
use kurabe_relay::lock;
use kurabe_wire::statement::column_has_secret;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

/// The tables, and the statements of a connection, that are remembered at most.
const MOST: usize = 10_000;
/// What a table is named after whose rows have secrets.
const OF_ACCOUNTS: [&str; 12] = [
    "account", "admin", "apikey", "auth", "credential", "login", "member", "passwd", "password", "secret",
    "token", "user",
];
/// Beginnings of keys and tokens that services give.
const KEYS: [&str; 14] = [
    "AIza", "AKIA", "ASIA", "SG.", "eyJ", "ghp_", "gho_", "github_pat_", "glpat-", "pk_", "rk_", "sk_",
    "xoxb-", "xoxp-",
];
/// The lengths of texts that may be keys, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 20..=2_000;
/// The length up to which a text without such a beginning may be one.
const SHORT: usize = 128;
/// The entropy from which a text looks like a key, in bits for each character.
const RANDOM: f64 = 4.3;

/// Parts of names of which nothing else in a statement speaks for a secret. Only there its columns are read.
const PARTS: [&str; 3] = ["token", "key", "passcode"];

/// Gives the columns of a table; none if there is no such table.
pub type Catalogue = Box<dyn Fn(&str) -> Result<Vec<String>> + Send + Sync>;

/// Knowledge of the tables of all connections.
#[derive(Clone, Default)]
pub(crate) struct Tables(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// Whether tables have a column of secrets, by their names in lower case.
    secret: HashMap<String, bool>,
    catalogue: Option<Catalogue>,
    /// Why the catalogue gave nothing.
    why: Option<String>,
}

impl Tables {
    pub(crate) fn know_by(&self, catalogue: Catalogue) {
        lock(&self.0).catalogue = Some(catalogue);
    }

    /// Why the catalogue was asked in vain.
    pub(crate) fn why_unknown(&self) -> Option<String> {
        lock(&self.0).why.clone()
    }

    fn has(&self, table: &str) -> bool {
        let mut known = lock(&self.0);
        let lower = table.to_lowercase();
        if let Some(known) = known.secret.get(&lower) {
            return *known;
        }
        // Where the name says it, an own connection to the server is spared.
        let is_secret = is_of_accounts(&lower)
            || match known.catalogue.as_ref().map(|catalogue| catalogue(table)).transpose() {
                Ok(columns) => columns.iter().flatten().any(|column| column_has_secret(column)),
                Err(why) => {
                    known.why = Some(why.to_string());
                    false
                }
            };
        known.add(lower, is_secret);
        is_secret
    }
}

impl Known {
    fn add(&mut self, table: String, is_secret: bool) {
        if self.secret.len() < MOST {
            self.secret.insert(table, is_secret);
        }
    }
}

/// Whether a table's name alone says that its rows have secrets.
fn is_of_accounts(table: &str) -> bool {
    let last = table.rsplit('_').next().unwrap_or_default();
    let one = last.strip_suffix('s').unwrap_or(last);
    let is_key = one == "key" && ["api_", "access_", "private_"].iter().any(|kind| table.contains(kind));
    is_key || OF_ACCOUNTS.contains(&one)
}

/// The secrets of a connection.
#[derive(Default)]
pub(crate) struct Secrets {
    tables: Tables,
    /// The names of statements with secrets that SQL has prepared.
    statements: HashSet<String>,
}

impl Secrets {
    pub(crate) fn new(tables: &Tables) -> Self {
        Self { tables: tables.clone(), statements: HashSet::new() }
    }

    /// Whether a statement may hold a secret without a name for it. `is_named`: whether it names a secret.
    pub(crate) fn hold(&mut self, text: &str, dialect: Dialect, is_named: bool) -> bool {
        let first = first_word(text, dialect).unwrap_or_default().to_ascii_lowercase();
        let may = ["prepare", "execute", "set", "insert", "replace", "copy", "load", "with"];
        let lower = text.to_ascii_lowercase();
        let may_name = PARTS.iter().any(|part| lower.contains(part));
        let may_set = lower.contains('@');
        if !is_named && !may_name && !may_set && !may.contains(&first.as_str()) {
            return false;
        }
        let statement = Statement::read(text, dialect);
        let has_columns = may_name && has_secret_columns(&statement);
        let has_rows = || has_columns || rows_of(&statement).is_some_and(|table| self.tables.has(&table));
        let second = || statement.words().into_iter().nth(1);
        match first.as_str() {
            "prepare" => {
                // MySQL prepares a text.
                let inner = statement.tokens().iter().find(|token| token.kind == Kind::Text);
                let inner = inner.map(|text| Statement::read(text.text.trim_matches(['\'', '"']), dialect));
                let is_inner = |inner: Statement<'_>| {
                    has_secret_columns(&inner) || rows_of(&inner).is_some_and(|table| self.tables.has(&table))
                };
                if (is_named || has_rows() || inner.is_some_and(is_inner))
                    && self.statements.len() < MOST
                    && let Some(name) = second()
                {
                    self.statements.insert(name);
                }
                false
            }
            "execute" => second().is_some_and(|name| self.statements.contains(&name)),
            "set" => has_columns || sets_variable(statement.tokens(), true),
            _ if is_named => {
                let mut known = lock(&self.tables.0);
                statement.tables().into_iter().for_each(|table| known.add(table.to_lowercase(), true));
                false
            }
            _ => has_rows() || may_set && sets_variable(statement.tokens(), false),
        }
    }
}

/// Whether a column that a value belongs to is one of secrets.
fn has_secret_columns(statement: &Statement<'_>) -> bool {
    let is_value = |token: &Token<'_>| matches!(token.kind, Kind::Text | Kind::Number | Kind::Parameter);
    let tokens = statement.tokens();
    let insert = tokens.iter().position(|token| token.is_one_of(&["insert", "replace"])).unwrap_or(0);
    let own = tokens.get(insert..).unwrap_or_default();
    columns_of_values(own, is_value).iter().any(|(_, column)| column_has_secret(column))
}

/// The table into which a statement writes rows without a list of their columns.
fn rows_of(statement: &Statement<'_>) -> Option<String> {
    let tokens = statement.tokens();
    let verb = tokens.iter().position(|token| token.is_one_of(&["insert", "replace", "copy", "load"]))?;
    let is_load = tokens.get(verb).is_some_and(|token| token.is("load"));
    let before = if is_load { &["table"][..] } else { &["into", "copy"] };
    let mut at =
        tokens.iter().skip(verb).position(|token| token.is_one_of(before)).map(|at| verb + at + 1)?;
    let mut table = tokens.get(at).and_then(Token::name)?;
    while tokens.get(at + 1).is_some_and(|token| token.is_mark('.')) {
        table = tokens.get(at + 2).and_then(Token::name)?;
        at += 2;
    }
    let rest = tokens.get(at + 1..).unwrap_or_default();
    let has_list = if is_load {
        rest.iter().any(|token| token.is_mark('('))
    } else {
        let is_query = rest.get(1).is_some_and(|token| token.is_one_of(&["select", "values", "with"]));
        rest.first().is_some_and(|token| token.is_mark('(')) && !is_query
    };
    (!has_list).then(|| table.to_owned())
}

/// Whether a text is given to a variable of MySQL, whose name says nothing about it: by `SET`, or else by `:=` or `INTO`.
fn sets_variable(tokens: &[Token<'_>], is_set: bool) -> bool {
    let at = |at: usize, mark| tokens.get(at).is_some_and(|token: &Token<'_>| token.is_mark(mark));
    let is_variable = |place: usize| {
        let is_own = at(place, '@') && !at(place + 1, '@') && !(place > 0 && at(place - 1, '@'));
        let before = place.checked_sub(1).and_then(|before| tokens.get(before));
        let is_into =
            before.is_some_and(|token| token.is("into")) || at(place + 2, ':') && at(place + 3, '=');
        is_own && (is_set || is_into)
    };
    (0..tokens.len()).any(is_variable) && tokens.iter().any(|token| token.kind == Kind::Text)
}

/// Whether a value looks like a key or a token, which nothing beside it says.
pub(crate) fn looks_random(value: &[u8]) -> bool {
    let Some(text) = std::str::from_utf8(value).ok().filter(|text| LENGTHS.contains(&text.len())) else {
        return false;
    };
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+/=~".contains(&byte);
    if !text.bytes().all(is_sign) {
        return false;
    }
    let has = |is: fn(&u8) -> bool| text.as_bytes().iter().any(is);
    let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let is_short = text.len() <= SHORT;
    KEYS.iter().any(|start| text.starts_with(start))
        || is_short && is_mixed && entropy(text.as_bytes()) >= RANDOM
}

/// The entropy of bytes, in bits for each.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in bytes {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let all = bytes.len() as f64;
    let shares = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / all);
    -shares.map(|share| share * share.log2()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_tables_and_statements_with_secrets_are_found_without_a_name() {
        for (named, text, dialect, is_secret) in [
            ("", "INSERT INTO users VALUES (1, 'bob', 'hunter2')", Dialect::POSTGRES, true),
            ("", "INSERT INTO public.\"auth_user\" VALUES ($1)", Dialect::POSTGRES, true),
            ("", "INSERT INTO users (id, name) VALUES (1, 'bob')", Dialect::POSTGRES, false),
            ("", "INSERT INTO items VALUES (1, 'bob')", Dialect::POSTGRES, false),
            ("", "COPY users FROM STDIN", Dialect::POSTGRES, true),
            ("", "COPY users (id, name) FROM STDIN", Dialect::POSTGRES, false),
            ("", "LOAD DATA LOCAL INFILE 'f' INTO TABLE users", Dialect::MYSQL, true),
            ("", "SET @p = 'hunter2'", Dialect::MYSQL, true),
            ("", "SET @n = 5", Dialect::MYSQL, false),
            ("", "SET @@sql_mode = 'ANSI'", Dialect::MYSQL, false),
            ("", "SELECT * FROM users", Dialect::POSTGRES, false),
            ("", "SELECT 'hunter2' INTO @p", Dialect::MYSQL, true),
            ("", "SELECT @p := 'hunter2'", Dialect::MYSQL, true),
            ("", "SELECT a FROM b WHERE c = @p AND d = 'x@y'", Dialect::MYSQL, false),
            // By the column of a value.
            ("", "INSERT INTO sessions (user_id, auth_token) VALUES (1, 'hunter2')", Dialect::POSTGRES, true),
            ("", "UPDATE sessions SET token = $1 WHERE id = $2", Dialect::POSTGRES, true),
            ("", "SELECT id FROM hooks WHERE \"signingKey\" = 'hunter2'", Dialect::POSTGRES, true),
            ("", "SELECT token FROM sessions WHERE id = 1", Dialect::POSTGRES, false),
            ("", "INSERT INTO usage (token_count, key) VALUES (1, 'a')", Dialect::POSTGRES, false),
            (
                "PREPARE p AS INSERT INTO a (token) VALUES ($1)",
                "EXECUTE p('hunter2')",
                Dialect::POSTGRES,
                true,
            ),
            // What another statement says of a table.
            (
                "SELECT id FROM people WHERE password = 'x'",
                "INSERT INTO people VALUES (1)",
                Dialect::POSTGRES,
                true,
            ),
            ("PREPARE p AS UPDATE a SET password = $1", "EXECUTE p('hunter2')", Dialect::POSTGRES, true),
            ("PREPARE p FROM 'INSERT INTO a (token) VALUES (?)'", "EXECUTE p USING @a", Dialect::MYSQL, true),
            ("SELECT 'password' FROM a", "EXECUTE p('hunter2')", Dialect::POSTGRES, false),
        ] {
            let mut secrets = Secrets::default();
            if !named.is_empty() {
                secrets.hold(named, dialect, !named.contains("token"));
            }
            assert_eq!(secrets.hold(text, dialect, false), is_secret, "{text}");
        }
        // What the catalogue says, which is asked once of each table, and not of a statement's own list.
        let (tables, asked) = (Tables::default(), Arc::new(Mutex::new(String::new())));
        let said = Arc::clone(&asked);
        tables.know_by(Box::new(move |table| {
            lock(&said).push_str(table);
            let columns = ["id", if table == "People" { "pass_phrase" } else { "name" }];
            Ok(columns.map(str::to_owned).to_vec())
        }));
        let mut secrets = Secrets::new(&tables);
        for (table, is_secret) in
            [("\"People\"", true), ("people", true), ("users", true), ("b", false), ("b", false)]
        {
            let insert = format!("INSERT INTO {table} VALUES (1, 'hunter2')");
            assert_eq!(secrets.hold(&insert, Dialect::POSTGRES, false), is_secret, "{table}");
        }
        assert!(!secrets.hold("INSERT INTO more (a) VALUES ('x')", Dialect::POSTGRES, false));
        assert_eq!((lock(&asked).as_str(), tables.why_unknown()), ("Peopleb", None));
        let mut secrets = Secrets::default();
        assert!(!secrets.hold("PREPARE p AS INSERT INTO users VALUES ($1)", Dialect::POSTGRES, false));
        assert!(secrets.hold("EXECUTE p('hunter2')", Dialect::POSTGRES, false));
    }

    #[test]
    fn keys_look_random_and_names_and_times_and_numbers_do_not() {
        for text in ["sk_live_4eC39HqLyjWDarjtT1zdp7dc", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY0"] {
            assert!(looks_random(text.as_bytes()), "{text}");
        }
        for text in [
            "2026-11-28T19:00:00.123456Z",
            "550e8400-e29b-41d4-a716-446655440000",
            "12345678901234567890123",
            "a text of several words with 5 Things",
            "someone@example.org",
            "CustomerOrderItemTaxService2",
        ] {
            assert!(!looks_random(text.as_bytes()), "{text}");
        }
    }
}
