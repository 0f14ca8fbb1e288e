//! Secrets beside which no name stands: rows without a list of columns, executions of statements that were prepared as SQL, and
//! variables. The columns of tables are known from the server's catalogue, which is read before, and from statements.

use kurabe_protocol::sql::{Dialect, Kind, Statement, Token, first_word};
use kurabe_relay::lock;
use kurabe_wire::statement::{may_name_secret, names_secret};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
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

/// The tables of a database that a server's catalogue has.
#[derive(Debug, Default)]
pub struct Catalogue {
    databases: Vec<String>,
    /// Whether tables have a column of secrets, by database, schema and name. Without a schema: whether any of that name has one.
    seen: HashMap<[String; 3], bool>,
}

impl Catalogue {
    /// A catalogue without tables, of the database with any of these names.
    pub fn new(databases: Vec<String>) -> Self {
        Self { databases, seen: HashMap::new() }
    }

    pub fn names(&mut self, database: &str) {
        if !self.databases.iter().any(|known| known == database) {
            self.databases.push(database.to_owned());
        }
    }

    /// Adds a table. `schema`: empty if databases have none.
    pub fn add<'a>(&mut self, schema: &str, table: &str, columns: impl IntoIterator<Item = &'a str>) {
        let is_secret = columns.into_iter().any(names_secret);
        for schema in [schema, ""] {
            let key = [String::new(), schema.to_lowercase(), table.to_lowercase()];
            *self.seen.entry(key).or_default() |= is_secret;
        }
    }
}

/// Knowledge of the tables of all connections.
#[derive(Default)]
pub(crate) struct Tables {
    /// `None` if nobody asked for one, or why it could not be read.
    catalogue: Option<Result<Catalogue, String>>,
    /// Whether rows were kept that only a catalogue could tell about.
    was_missed: AtomicBool,
    /// What statements say: tables with a secret by their name alone, and those without one by all that is known of them.
    learnt: Mutex<HashMap<[String; 3], bool>>,
}

impl Tables {
    pub(crate) fn new(catalogue: Option<Result<Catalogue, String>>) -> Self {
        Self { catalogue, ..Self::default() }
    }

    /// Why the catalogue could not be read, if it was needed.
    pub(crate) fn why_unknown(&self) -> Option<String> {
        let why = self.catalogue.as_ref().and_then(|read| read.as_ref().err());
        why.filter(|_| self.was_missed.load(Ordering::Relaxed)).cloned()
    }

    fn catalogue(&self) -> Option<&Catalogue> {
        self.catalogue.as_ref().and_then(|read| read.as_ref().ok())
    }

    /// Whether a row of a table may have a secret.
    fn has(&self, key: &[String; 3]) -> bool {
        let bare = [String::new(), String::new(), key[2].clone()];
        let learnt = lock(&self.learnt);
        if is_of_accounts(&key[2]) || learnt.get(&bare) == Some(&true) {
            return true;
        }
        if let Some(read) = self.catalogue() {
            return *read.seen.get(key).or_else(|| learnt.get(key)).unwrap_or(&true);
        }
        self.was_missed.store(true, Ordering::Relaxed);
        learnt.len() >= MOST
    }

    fn learn(&self, key: [String; 3], is_secret: bool) {
        let mut learnt = lock(&self.learnt);
        if learnt.len() < MOST || learnt.contains_key(&key) {
            *learnt.entry(key).or_default() |= is_secret;
        }
    }

    fn learn_secret(&self, table: &str) {
        self.learn([String::new(), String::new(), table.to_lowercase()], true);
    }
}

/// Whether a table's name alone says that its rows have secrets.
fn is_of_accounts(table: &str) -> bool {
    let last = table.rsplit('_').next().unwrap_or_default();
    let one = last.strip_suffix('s').unwrap_or(last);
    let is_key = one == "key" && ["api_", "access_", "private_"].iter().any(|kind| table.contains(kind));
    is_key || OF_ACCOUNTS.contains(&one)
}

#[derive(Default)]
pub(crate) struct Secrets {
    tables: Arc<Tables>,
    /// The database in which tables without a qualifier are; empty if it is that of the catalogue.
    database: String,
    /// The names of statements with secrets that SQL has prepared.
    statements: HashSet<String>,
}

impl Secrets {
    pub(crate) fn new(tables: &Arc<Tables>) -> Self {
        Self { tables: Arc::clone(tables), ..Self::default() }
    }

    /// Notes the database of the connection.
    pub(crate) fn is_in(&mut self, database: &str) {
        self.database = self.place(database);
    }

    /// The name of a database; empty for that of the catalogue.
    fn place(&self, database: &str) -> String {
        let lower = database.to_lowercase();
        let is_read = self
            .tables
            .catalogue()
            .is_some_and(|read| read.databases.iter().any(|name| name.to_lowercase() == lower));
        if is_read { String::new() } else { lower }
    }

    /// By what a table is known. The databases of MySQL have no schemas.
    fn key(&self, (schema, table): (Option<&str>, &str), is_mysql: bool) -> [String; 3] {
        let place =
            schema.filter(|_| is_mysql).map_or_else(|| self.database.clone(), |name| self.place(name));
        let schema = schema.filter(|_| !is_mysql).unwrap_or_default();
        [place, schema.to_lowercase(), table.to_lowercase()]
    }

    /// Whether a statement may hold a secret without a name for it. `is_named`: whether it names a secret. `failed`: whether the
    /// server refused it.
    pub(crate) fn hold(&mut self, text: &str, dialect: Dialect, is_named: bool, failed: bool) -> bool {
        let first = first_word(text, dialect).unwrap_or_default().to_ascii_lowercase();
        let may = [
            "alter", "com_init_db", "copy", "create", "do", "execute", "explain", "insert", "load", "merge",
            "prepare", "replace", "set", "use", "with",
        ];
        let is_batch = text.trim_end_matches([';', ' ', '\n']).contains(';');
        let is_plain = !is_named && !is_batch && !text.contains('@') && !may.contains(&&*first);
        if is_plain && !may_name_secret(text) {
            return false;
        }
        let statement = Statement::read(text, dialect);
        let all = statement.tokens();
        let names = is_named || names_column_of_secrets(all);
        if names && self.tables.catalogue().is_none() {
            statement.tables().iter().for_each(|table| self.tables.learn_secret(table));
        }
        let mut found = false;
        for tokens in all.split(|token| token.is_mark(';')) {
            found |= self.one(tokens, dialect, is_named, failed);
        }
        found
    }

    /// Whether one statement of a text holds a secret.
    fn one(&mut self, tokens: &[Token<'_>], dialect: Dialect, is_named: bool, failed: bool) -> bool {
        let is_mysql = dialect.is_mysql();
        let mut words = tokens.iter().skip_while(|token| token.is_mark('(')).map_while(Token::name);
        let first = words.next().unwrap_or_default().to_lowercase();
        let second = words.next().unwrap_or_default().to_lowercase();
        match &*first {
            "use" | "com_init_db" => {
                self.is_in(&second);
                false
            }
            "execute" if self.statements.contains(&second) || self.statements.len() >= MOST => true,
            // What they execute is a text.
            "prepare" | "execute" | "do" => {
                let mut inner = tokens.iter().filter(|token| token.kind == Kind::Text);
                let holds = self.writes(tokens, is_mysql)
                    || inner.any(|token| {
                        let text = token.text.trim_matches(['\'', '"', '$']);
                        self.writes(Statement::read(text, dialect).tokens(), is_mysql)
                    });
                if first == "prepare" && (holds || is_named) && self.statements.len() < MOST {
                    self.statements.insert(second);
                }
                holds
            }
            "set" => writes_secret(tokens) || sets_variable(tokens, true),
            "alter" | "create" => {
                self.defined(tokens, is_mysql, failed);
                let verbs = ["delete", "insert", "select", "update"];
                let body = tokens.iter().position(|token| token.is_one_of(&verbs));
                body.is_some_and(|at| self.writes(tokens.get(at..).unwrap_or_default(), is_mysql))
            }
            _ => self.writes(tokens, is_mysql) || sets_variable(tokens, false),
        }
    }

    /// Whether a statement writes or compares values of a column of secrets, or may do so in rows without a list of columns.
    fn writes(&self, tokens: &[Token<'_>], is_mysql: bool) -> bool {
        writes_secret(tokens) || rows_of(tokens).any(|table| self.tables.has(&self.key(table, is_mysql)))
    }

    /// Learns the columns of a table that is made or changed.
    fn defined(&self, tokens: &[Token<'_>], is_mysql: bool, failed: bool) {
        let Some(at) = tokens.iter().take(5).position(|token| token.is("table")) else { return };
        let is_word = |token: &&Token<'_>| token.is_one_of(&["if", "not", "exists", "only"]);
        let skipped = tokens.iter().skip(at + 1).take_while(is_word).count();
        let Some((table, rest)) = table_at(tokens, at + 1 + skipped) else { return };
        let has_secret = tokens.iter().filter_map(Token::name).any(names_secret);
        let is_open = rest.first().is_some_and(|token| token.is_mark('('));
        let others = ["as", "inherits", "like", "select"];
        let is_whole = is_open && !rest.iter().any(|token| token.is_one_of(&others));
        let is_new = tokens.first().is_some_and(|token| token.is("create"));
        let is_renamed = tokens.iter().any(|token| token.is("rename"));
        let is_other = is_renamed || is_new && !is_whole;
        if has_secret || is_other && self.tables.catalogue().is_some() {
            // Any name in it may be the table's new one.
            let all = if is_renamed { tokens } else { &[] };
            all.iter()
                .filter_map(Token::name)
                .chain([table.1])
                .for_each(|name| self.tables.learn_secret(name));
        } else if is_new && skipped == 0 && !failed {
            self.tables.learn(self.key(table, is_mysql), false);
        }
    }
}

fn is_value(token: &Token<'_>) -> bool {
    matches!(token.kind, Kind::Text | Kind::Number | Kind::Parameter)
}

/// Whether a statement names a column of secrets for values, and has one: the data of `COPY` and `LOAD` are values too.
fn writes_secret(tokens: &[Token<'_>]) -> bool {
    let first = tokens.first();
    let is_copy = first.is_some_and(|first| first.is("copy")) && tokens.iter().any(|token| token.is("from"));
    (is_copy || tokens.iter().any(is_value)) && names_column_of_secrets(tokens)
}

/// What the names in a part of a statement are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Of the answer or of its order.
    Answer,
    Tables,
    /// Of columns that are written or compared.
    Values,
}

/// Whether a column of secrets is in a list of columns that are written, in `SET`, in a condition or in a comparison.
fn names_column_of_secrets(tokens: &[Token<'_>]) -> bool {
    let (mut part, mut outer) = (Part::Values, Vec::new());
    let is_compared = |token: Option<&Token<'_>>| {
        token.is_some_and(|token| ['=', '<', '>', '!'].iter().any(|mark| token.is_mark(*mark)))
    };
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        let is_after = |word: &str| before.is_some_and(|before| before.is(word));
        let next = tokens.get(at + 1);
        if token.is_mark('(') {
            outer.push(part);
            part = if part == Part::Tables { Part::Values } else { part };
        } else if token.is_mark(')') {
            part = outer.pop().unwrap_or(Part::Values);
        } else if token.is_mark(';') {
            (part, outer) = (Part::Values, Vec::new());
        } else if is_after("distinct") && token.is_one_of(&["from", "on"]) {
        } else if token.is_one_of(&["group", "order", "returning", "select"]) {
            part = Part::Answer;
        } else if token.is("update") && is_after("key") || token.is_one_of(&["having", "on", "set", "where"])
        {
            part = Part::Values;
        } else if token.is_one_of(&["from", "into", "join", "prepare", "table", "update", "using", "with"]) {
            part = Part::Tables;
        } else if token.name().is_some_and(names_secret)
            && !next.is_some_and(|next| next.is_mark('.'))
            && (part == Part::Values || part == Part::Answer && (is_compared(before) || is_compared(next)))
        {
            return true;
        }
    }
    false
}

/// A table, with its qualifier.
type Name<'a> = (Option<&'a str>, &'a str);

/// The table that is named at a place, and the tokens behind it.
fn table_at<'a, 't>(tokens: &'t [Token<'a>], mut at: usize) -> Option<(Name<'a>, &'t [Token<'a>])> {
    let mut table = (None, tokens.get(at).and_then(Token::name)?);
    while tokens.get(at + 1).is_some_and(|token| token.is_mark('.')) {
        table = (Some(table.1), tokens.get(at + 2).and_then(Token::name)?);
        at += 2;
    }
    Some((table, tokens.get(at + 1..).unwrap_or_default()))
}

/// The tables into which a statement writes rows without a list of their columns.
fn rows_of<'a>(tokens: &[Token<'a>]) -> impl Iterator<Item = Name<'a>> {
    const WORDS: &[&str] = &["delayed", "high_priority", "ignore", "into", "low_priority", "only"];
    let has_value = tokens.iter().any(is_value);
    let has = |word: &str| tokens.iter().any(|token| token.is(word));
    let after = |word: &str| tokens.iter().position(|token| token.is(word)).map(|at| at + 1);
    let found = tokens.iter().enumerate().filter_map(move |(at, verb)| {
        let is_load = at == 0 && verb.is("load");
        let is_copy = at == 0 && verb.is("copy") && has("from");
        let is_insert = has_value && verb.is_one_of(&["insert", "replace"]);
        if !(is_load || is_copy || is_insert) {
            return None;
        }
        let words = tokens.iter().skip(at + 1).take_while(|token| token.is_one_of(WORDS)).count();
        let is_merge = tokens.get(at + 1).is_some_and(|token| token.is("values"));
        let place = match () {
            () if is_load => after("table")?,
            () if is_merge => after("into")?,
            () => at + 1 + words,
        };
        if tokens.get(place).is_some_and(|token| token.is("on")) {
            // The event of a trigger.
            return None;
        }
        let (table, rest) = table_at(tokens, place)?;
        let is_of_list = |token: &&Token<'_>| !token.is("set");
        let has_list = if is_load {
            rest.iter().take_while(is_of_list).any(|token| token.is_mark('('))
        } else {
            let within = rest.iter().find(|token| !token.is_mark('('));
            let is_query = within.is_some_and(|token| token.is_one_of(&["select", "values", "with"]));
            let first = rest.first();
            !is_merge && first.is_some_and(|token| token.is("set") || token.is_mark('(') && !is_query)
        };
        (!has_list).then_some(table)
    });
    found.collect::<Vec<_>>().into_iter()
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
            ("", "SELECT value, token FROM s WHERE id = 1 ORDER BY token", Dialect::POSTGRES, false),
            ("", "SELECT id FROM token WHERE token.id = 1", Dialect::POSTGRES, false),
            ("", "DELETE FROM s WHERE token IS NULL", Dialect::POSTGRES, false),
            ("", "INSERT INTO s (user_id, token) SELECT 1, 'hunter2'", Dialect::POSTGRES, true),
            ("", "UPDATE s SET token = encode('hunter2', 'hex')", Dialect::POSTGRES, true),
            ("", "INSERT INTO s (token) VALUES (lower('hunter2'))", Dialect::POSTGRES, true),
            ("", "UPDATE s SET token=_binary'hunter2'", Dialect::MYSQL, true),
            ("", "INSERT INTO s (id) VALUES (1) ON DUPLICATE KEY UPDATE token = 'x'", Dialect::MYSQL, true),
            ("", "SELECT id FROM s WHERE token ILIKE 'hunter2'", Dialect::POSTGRES, true),
            ("", "SELECT id FROM s WHERE 'hunter2'=token", Dialect::POSTGRES, true),
            ("", "SELECT token = 'hunter2' FROM s", Dialect::POSTGRES, true),
            ("", "SELECT id FROM s WHERE token IS DISTINCT FROM 'hunter2'", Dialect::POSTGRES, true),
            ("", "SELECT id FROM s WHERE pass_phrase = 'hunter2'", Dialect::POSTGRES, true),
            ("", "UPDATE s SET \"authString\" = 'hunter2'", Dialect::POSTGRES, true),
            (
                "",
                "INSERT INTO a (id) VALUES (1); INSERT INTO s (token) VALUES ('x')",
                Dialect::POSTGRES,
                true,
            ),
            ("", "SELECT 1; INSERT INTO users VALUES (1, 'x')", Dialect::POSTGRES, true),
            ("", "INSERT users VALUES (1, 'x')", Dialect::MYSQL, true),
            ("", "REPLACE users VALUES (1, 'x')", Dialect::MYSQL, true),
            ("", "INSERT INTO users SET id = 1", Dialect::MYSQL, false),
            ("", "COPY sessions (user_id, auth_token) FROM STDIN", Dialect::POSTGRES, true),
            ("", "COPY sessions (user_id, auth_token) TO STDOUT", Dialect::POSTGRES, false),
            ("", "LOAD DATA LOCAL INFILE 'f' INTO TABLE s (id, token)", Dialect::MYSQL, true),
            ("", "PREPARE p AS UPDATE s SET token = 'hunter2' WHERE id = $1", Dialect::POSTGRES, true),
            ("", "PREPARE p FROM 'UPDATE s SET token = \\'hunter2\\''", Dialect::MYSQL, true),
            ("", "CREATE TABLE sessions (id int, token varchar(64))", Dialect::POSTGRES, false),
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
                secrets.hold(named, dialect, !named.contains("token"), false);
            }
            assert_eq!(secrets.hold(text, dialect, false, false), is_secret, "{text}");
        }
    }

    #[test]
    fn rows_without_a_list_are_kept_if_the_catalogue_or_a_statement_has_all_columns_of_the_table() {
        let catalogue = || {
            let mut read = Catalogue::new(vec!["shop".to_owned()]);
            read.add("public", "People", ["id", "pass_phrase"]);
            read.add("public", "things", ["id", "name"]);
            read.add("a", "both", ["id"]);
            read.add("b", "both", ["token"]);
            read
        };
        for (before, table, is_secret) in [
            ("", "people", true),
            ("", "public.\"People\"", true),
            ("", "things", false),
            ("", "public.things", false),
            // What was not seen.
            ("", "other.things", true),
            ("", "more", true),
            ("", "both", true),
            ("", "a.both", false),
            ("CREATE TABLE more (id int, name text)", "more", false),
            ("CREATE TEMP TABLE more (id int, pass_phrase text)", "more", true),
            ("CREATE TEMP TABLE things (id int, token text)", "things", true),
            ("CREATE TABLE things (LIKE people)", "things", true),
            ("CREATE TABLE IF NOT EXISTS more (id int)", "more", true),
            ("ALTER TABLE things ADD COLUMN token text", "things", true),
            ("ALTER TABLE people RENAME TO things", "things", true),
        ] {
            let tables = Arc::new(Tables::new(Some(Ok(catalogue()))));
            let mut secrets = Secrets::new(&tables);
            secrets.is_in("shop");
            secrets.hold(before, Dialect::POSTGRES, false, false);
            let mut other = Secrets::new(&tables);
            for text in [format!("INSERT INTO {table} VALUES (1, 'x')"), format!("COPY {table} FROM STDIN")] {
                for one in [&mut secrets, &mut other] {
                    assert_eq!(
                        one.hold(&text, Dialect::POSTGRES, false, false),
                        is_secret,
                        "{before}: {text}"
                    );
                }
            }
            assert_eq!(tables.why_unknown(), None);
        }
        // Tables of another database have other columns.
        let mut secrets = Secrets::new(&Arc::new(Tables::new(Some(Ok(catalogue())))));
        let insert = "INSERT INTO things VALUES (1)";
        for (before, is_secret) in [("USE shop", false), ("USE `more`", true), ("COM_INIT_DB shop", false)] {
            assert!(!secrets.hold(before, Dialect::MYSQL, false, false));
            assert_eq!(secrets.hold(insert, Dialect::MYSQL, false, false), is_secret, "{before}");
        }
        assert!(!secrets.hold("INSERT INTO shop.things VALUES (1)", Dialect::MYSQL, false, false));
        assert!(secrets.hold("INSERT INTO more.things VALUES (1)", Dialect::MYSQL, false, false));
        // Without one, names and other statements say it.
        let tables = Arc::new(Tables::new(Some(Err("refused".to_owned()))));
        let mut secrets = Secrets::new(&tables);
        assert!(secrets.hold("INSERT INTO users VALUES (1)", Dialect::POSTGRES, false, false));
        assert_eq!(tables.why_unknown(), None);
        assert!(!secrets.hold(insert, Dialect::POSTGRES, false, false));
        assert_eq!(tables.why_unknown().as_deref(), Some("refused"));
        assert!(secrets.hold("UPDATE things SET token = 'x'", Dialect::POSTGRES, false, false));
        assert!(secrets.hold(insert, Dialect::POSTGRES, false, false));
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
