//! What a statement is, by its tokens: its order, its limit, its tables, and what makes its answer differ from one execution to the
//! next.

use super::lexer::{Dialect, Kind, Token, tokens};

/// Functions whose values depend on time, chance or the session. A name followed by a parenthesis is a call of one.
const VOLATILE: &[&str] = &[
    "clock_timestamp", "connection_id", "curdate", "currval", "current_catalog", "current_database",
    "current_date", "current_role", "current_schema", "current_schemas", "current_time", "current_timestamp",
    "current_user", "curtime", "database", "found_rows", "gen_random_bytes", "gen_random_uuid", "gen_salt",
    "inet_client_addr", "inet_client_port", "inet_server_addr", "inet_server_port", "last_insert_id",
    "lastval", "localtime", "localtimestamp", "newid", "nextval", "now", "rand", "random", "random_bytes",
    "random_normal", "schema", "session_user", "statement_timestamp", "sys_guid", "sysdate", "system_user",
    "timeofday", "transaction_timestamp", "user", "utc_date", "utc_time", "utc_timestamp", "uuid",
    "uuid_generate_v1", "uuid_generate_v1mc", "uuid_generate_v4", "uuid_short", "uuid_v4", "uuid_v7",
    "uuidv4", "uuidv7", "version",
];
/// Those of them that are read without a parenthesis, and are no names of anything else there.
const BARE: &[&str] =
    &["current_date", "current_time", "current_timestamp", "current_user", "localtime", "localtimestamp"];
const BARE_OF_POSTGRES: &[&str] =
    &["current_catalog", "current_role", "current_schema", "session_user", "system_user", "user"];
const BARE_OF_MYSQL: &[&str] = &["utc_date", "utc_time", "utc_timestamp"];
/// Columns that PostgreSQL adds to every table. No other column can have these names.
const OF_ROWS: &[&str] = &["cmax", "cmin", "ctid", "xmax", "xmin"];
/// First words of statements that say something about the server, or how it works.
const OF_SERVER: &[&str] =
    &["analyze", "check", "desc", "describe", "explain", "optimize", "repair", "show", "vacuum"];
/// Texts that PostgreSQL reads as a time that depends on the present one, beside a type of these.
const PRESENT: &[&str] = &["'now'", "'today'", "'tomorrow'", "'yesterday'"];
const TIMES: &[&str] = &["date", "time", "timestamp", "timestamptz", "timetz"];
/// Schemas that describe a server.
const CATALOGUES: &[&str] = &["information_schema", "mysql", "performance_schema", "pg_catalog", "sys"];
/// Tables and views of these that are named without a schema; what ends with `_` is the beginning of several.
const OF_CATALOGUE: &[&str] = &[
    "pg_aggregate", "pg_am", "pg_amop", "pg_amproc", "pg_attrdef", "pg_attribute", "pg_auth_", "pg_authid",
    "pg_available_", "pg_cast", "pg_class", "pg_collation", "pg_config", "pg_constraint", "pg_conversion",
    "pg_cursors", "pg_database", "pg_db_role_", "pg_default_acl", "pg_depend", "pg_description", "pg_enum",
    "pg_event_trigger", "pg_extension", "pg_file_settings", "pg_foreign_", "pg_group", "pg_hba_", "pg_index",
    "pg_indexes", "pg_inherits", "pg_language", "pg_largeobject", "pg_locks", "pg_matviews", "pg_namespace",
    "pg_opclass", "pg_operator", "pg_opfamily", "pg_partitioned_table", "pg_policies", "pg_policy",
    "pg_prepared_", "pg_proc", "pg_publication", "pg_publication_", "pg_range", "pg_replication_",
    "pg_rewrite", "pg_roles", "pg_rules", "pg_sequence", "pg_sequences", "pg_settings", "pg_shadow",
    "pg_shdepend", "pg_shdescription", "pg_shmem_", "pg_stat_", "pg_statio_", "pg_statistic", "pg_stats",
    "pg_subscription", "pg_tables", "pg_tablespace", "pg_timezone_", "pg_transform", "pg_trigger", "pg_ts_",
    "pg_type", "pg_user", "pg_user_mappings", "pg_views",
];
/// First words of statements that set up a session or a transaction.
const SETUP: &[&str] = &[
    "abort", "begin", "commit", "deallocate", "discard", "end", "kill", "release", "reset", "rollback",
    "savepoint", "set", "show", "start", "use",
];
/// Functions by which drivers ask about the server or the session.
const ASKED: &[&str] = &[
    "connection_id", "current_database", "current_schema", "current_setting", "current_user", "database",
    "pg_backend_pid", "pg_is_in_recovery", "schema", "session_user", "set_config", "user", "version",
];
/// Words before a table, and those of them before a list of tables.
const BEFORE: &[&str] = &["copy", "from", "into", "join", "table", "truncate", "update", "using", "view"];
const LISTS: &[&str] = &["from", "table", "truncate", "update", "using"];
/// Words between such a word and the table.
const BETWEEN: &[&str] = &[
    "concurrently", "exists", "if", "ignore", "into", "lateral", "low_priority", "not", "only", "quick",
    "table",
];
/// Words after a list of tables.
const AFTER: &[&str] = &[
    "for", "group", "having", "limit", "order", "returning", "select", "set", "union", "value", "values",
    "where", "window",
];
/// Words after which a name with a parenthesis is no function.
const NO_CALL: &[&str] = &["as", "copy", "into", "on", "recursive", "references", "table", "update", "with"];
/// Words after which rows are chosen, until one of the others.
const CHOOSES: &[&str] =
    &["fetch", "from", "having", "join", "limit", "offset", "on", "using", "where", "with"];
const GIVES: &[&str] = &["by", "delete", "insert", "returning", "select", "set", "update", "values"];

/// What may differ from one execution of a statement to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Varies {
    /// Values, in as many rows.
    Values,
    /// Which rows there are, too.
    Rows,
}

/// A statement, or several, without spaces and comments.
#[derive(Clone, Debug)]
pub struct Statement<'a> {
    tokens: Vec<Token<'a>>,
    dialect: Dialect,
}

impl<'a> Statement<'a> {
    pub fn read(text: &'a str, dialect: Dialect) -> Self {
        Self { tokens: tokens(text, dialect).filter(|token| !token.is_blank()).collect(), dialect }
    }

    /// The tokens, without spaces and comments.
    pub fn tokens(&self) -> &[Token<'a>] {
        &self.tokens
    }

    /// The first word, behind parentheses.
    pub fn first(&self) -> Option<&'a str> {
        let first = self.tokens.iter().find(|token| !token.is_mark('('))?;
        (first.kind == Kind::Word).then_some(first.text)
    }

    /// The words from the first on, in lower case and with names, up to the first sign that is no parenthesis; without semicolons.
    pub fn words(&self) -> Vec<String> {
        let words = self.tokens.iter().filter(|token| !token.is_mark('(') && !token.is_mark(')'));
        words.map_while(Token::name).map(str::to_lowercase).collect()
    }

    /// Whether it has a token.
    pub fn is_empty(&self) -> bool {
        self.tokens.iter().all(|token| token.is_mark(';'))
    }

    /// Whether its first word is one of these.
    pub fn begins(&self, words: &[&str]) -> bool {
        self.first().is_some_and(|first| words.iter().any(|word| first.eq_ignore_ascii_case(word)))
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(word))
    }

    fn is_mark(&self, at: usize, mark: char) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is_mark(mark))
    }

    fn has(&self, at: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, word)| self.is(at + n, word))
    }

    pub(super) fn before(&self, at: usize) -> Option<&Token<'a>> {
        self.tokens.get(at.checked_sub(1)?)
    }

    /// Whether the token is part of a name with parts before it, or names a column of an answer.
    pub(super) fn is_named(&self, at: usize) -> bool {
        self.before(at).is_some_and(|before| before.is_mark('.') || before.is("as"))
    }

    /// The name of a function that is called here; one of the engine's own schema without that, and none of another.
    fn called(&self, at: usize) -> Option<&'a str> {
        let token = self.tokens.get(at)?;
        let name = match token.kind {
            Kind::Word => token.text,
            Kind::Name if self.dialect.is_postgres() => token.name()?,
            _ => return None,
        };
        if !self.is_mark(at + 1, '(') {
            return None;
        }
        let before = self.before(at);
        if before.is_some_and(|before| before.is_mark('.')) {
            let schema = at.checked_sub(2).and_then(|at| self.tokens.get(at)).and_then(Token::name);
            return schema.is_some_and(|schema| schema.eq_ignore_ascii_case("pg_catalog")).then_some(name);
        }
        (!before.is_some_and(|before| before.is_one_of(NO_CALL))).then_some(name)
    }

    /// Whether the rows of the answer have an order.
    pub fn is_ordered(&self) -> bool {
        order_at(&self.tokens).is_some()
    }

    /// The keys of the order of the rows of the answer.
    fn order_keys(&self) -> Option<Vec<&[Token<'a>]>> {
        let rest = self.tokens.get(order_at(&self.tokens)? + 2..).unwrap_or_default();
        let (mut depth, mut keys, mut begun) = (0, Vec::new(), 0);
        for (at, token) in rest.iter().enumerate() {
            depth += i32::from(token.is_mark('(')) - i32::from(token.is_mark(')'));
            let ends = token.is_mark(';') || token.is_one_of(&["fetch", "for", "limit", "lock", "offset"]);
            if depth < 0 || depth == 0 && ends {
                keys.push(&rest[begun..at]);
                return Some(keys);
            }
            if depth == 0 && token.is_mark(',') {
                keys.push(&rest[begun..at]);
                begun = at + 1;
            }
        }
        keys.push(&rest[begun..]);
        Some(keys)
    }

    /// Whether a limit without an order chooses rows.
    pub fn has_open_limit(&self) -> bool {
        // Of each parenthesis: whether it has an order, a limit, and whether only its existence counts.
        let mut levels = vec![(false, false, false)];
        let mut is_open = false;
        for at in 0..self.tokens.len() {
            if self.is_mark(at, '(') {
                levels.push((false, false, self.before(at).is_some_and(|before| before.is("exists"))));
                continue;
            }
            if self.is_mark(at, ')') {
                if let Some((ordered, limited, exists)) = levels.pop() {
                    is_open |= limited && !ordered && !exists;
                }
                if levels.is_empty() {
                    levels.push((false, false, false));
                }
                continue;
            }
            let Some((ordered, limited, _)) = levels.last_mut() else { continue };
            if self.is_mark(at, ';') {
                is_open |= *limited && !*ordered;
                (*ordered, *limited) = (false, false);
            } else if self.has(at, &["order", "by"]) && !self.is_named(at) {
                *ordered = true;
            } else if !self.is_named(at)
                && (self.is(at, "limit")
                    || self.has(at, &["fetch", "first"])
                    || self.has(at, &["fetch", "next"]))
            {
                *limited = true;
            }
        }
        is_open || levels.iter().any(|(ordered, limited, _)| *limited && !ordered)
    }

    /// What may differ from one execution to the next, with equal data.
    pub fn varies(&self) -> Option<Varies> {
        let is_of_server =
            self.begins(OF_SERVER) || self.relations().any(|relation| relation.is_of_catalogue());
        if is_of_server || self.tokens.iter().any(|token| token.is("tablesample")) {
            return Some(Varies::Rows);
        }
        // Whether what follows chooses rows, of each parenthesis.
        let mut chooses = vec![false];
        let mut found = None;
        for (at, token) in self.tokens.iter().enumerate() {
            if token.is_mark('(') {
                chooses.push(false);
            } else if token.is_mark(')') && chooses.len() > 1 {
                chooses.pop();
            } else if self.is_volatile(at) {
                let chooses = chooses.first() == Some(&true);
                found = found.max(Some(if chooses { Varies::Rows } else { Varies::Values }));
            } else if let Some(last) = chooses.last_mut()
                && !self.is_named(at)
            {
                *last = (*last || token.is_one_of(CHOOSES)) && !token.is_one_of(GIVES);
            }
        }
        found
    }

    /// Whether the value of this token depends on time, chance or the server.
    pub(super) fn is_volatile(&self, at: usize) -> bool {
        let Some(token) = self.tokens.get(at) else { return false };
        let is_one = |name: &str, of: &[&str]| of.iter().any(|known| name.eq_ignore_ascii_case(known));
        if let Some(name) = self.called(at) {
            let begins =
                |start: &str| name.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start));
            // Without arguments they are of the present time.
            let is_empty = self.is_mark(at + 2, ')');
            return is_one(name, VOLATILE)
                || begins("pg_")
                || begins("txid_")
                || is_empty && is_one(name, &["unix_timestamp"])
                || is_one(name, &["age"]) && !self.has_two_arguments(at + 1);
        }
        let (postgres, mysql) = (self.dialect.is_postgres(), self.dialect.is_mysql());
        match token.kind {
            Kind::Word if self.is_named(at) => postgres && is_one(token.text, OF_ROWS) && self.is_column(at),
            Kind::Word => {
                is_one(token.text, BARE)
                    || postgres && (is_one(token.text, BARE_OF_POSTGRES) && self.is_operand(at))
                    || mysql && is_one(token.text, BARE_OF_MYSQL)
                    || postgres && is_one(token.text, OF_ROWS) && self.is_column(at)
                    || self.has(at, &["next", "value", "for"])
            }
            Kind::Text if postgres && is_one(token.text, PRESENT) => {
                let before = self.before(at).is_some_and(|before| before.is_one_of(TIMES));
                let cast = self.is_mark(at + 1, ':')
                    && self.is_mark(at + 2, ':')
                    && self.tokens.get(at + 3).is_some_and(|kind| kind.is_one_of(TIMES));
                before || cast
            }
            Kind::Mark => mysql && self.is_mark(at, '@') && self.is_mark(at + 1, '@'),
            _ => false,
        }
    }

    /// Whether a word is where a value is, and not behind one, where it names that.
    fn is_operand(&self, at: usize) -> bool {
        let is_value = |before: &Token<'_>| {
            before.is_mark(')')
                || before.is_mark('.')
                || matches!(before.kind, Kind::Name | Kind::Number | Kind::Text | Kind::Parameter)
                || before.is_one_of(&["as", "from", "into", "join", "on", "role", "table", "to", "update"])
        };
        !self.before(at).is_some_and(is_value)
    }

    /// Whether a word that is a column of every table is none that the statement names so.
    fn is_column(&self, at: usize) -> bool {
        let Some(word) = self.tokens.get(at).map(|token| token.text) else { return false };
        let names = |at: usize| {
            self.is(at, word)
                && self.before(at).is_some_and(|before| {
                    before.is("as") || before.is_mark(')') || matches!(before.kind, Kind::Name | Kind::Number)
                })
        };
        !(0..self.tokens.len()).any(names)
    }

    /// Whether the parenthesis at a place has a comma of its own.
    fn has_two_arguments(&self, open: usize) -> bool {
        let mut depth = 0;
        for token in self.tokens.get(open..).unwrap_or_default() {
            depth += i32::from(token.is_mark('(')) - i32::from(token.is_mark(')'));
            if depth == 0 {
                return false;
            }
            if depth == 1 && token.is_mark(',') {
                return true;
            }
        }
        false
    }

    /// The columns into which it writes values that depend on time, chance or the server; `*` if one is not named.
    pub fn stored(&self) -> Vec<String> {
        let mut found = Vec::new();
        if !self.begins(&["insert", "merge", "replace", "update", "with"]) {
            return found;
        }
        let is_insert = self.begins(&["insert", "replace"]);
        let values =
            self.tokens.iter().position(|token| token.is_one_of(&["value", "values"])).filter(|_| is_insert);
        let listed: Vec<&str> = self
            .tokens
            .iter()
            .take(values.unwrap_or(0))
            .skip_while(|token| !token.is_mark('('))
            .filter_map(Token::name)
            .collect();
        // The column that is set, and the place in a row.
        let (mut column, mut place, mut depth, mut is_set) = (None, 0, 0_usize, false);
        for (at, token) in self.tokens.iter().enumerate() {
            if token.is_mark('(') {
                depth += 1;
                place = if depth == 1 { 0 } else { place };
            } else if token.is_mark(')') {
                depth = depth.saturating_sub(1);
            } else if token.is_mark(',') && depth == 1 {
                place += 1;
            } else if token.is("set") {
                is_set = true;
            } else if depth == 0 && token.is_one_of(&["returning", "where"]) {
                break;
            } else if is_set && depth == 0 && token.is_mark('=') {
                column = self.before(at).and_then(Token::name);
            } else if self.is_volatile(at) {
                let of_row =
                    values.filter(|values| at > *values && !is_set).and_then(|_| listed.get(place).copied());
                let name = if is_set { column } else { of_row };
                found.push(name.unwrap_or("*").to_lowercase());
            }
        }
        found
    }

    /// Whether its answer may have a column of this name.
    pub fn gives(&self, column: &str) -> bool {
        self.tokens.iter().enumerate().any(|(at, token)| {
            self.is_all(at) || token.name().is_some_and(|name| name.eq_ignore_ascii_case(column))
        })
    }

    /// Whether a sign stands for all columns: `count(*)` has no column, and a product has a factor before it.
    pub(super) fn is_all(&self, at: usize) -> bool {
        let is_before = |before: &Token<'_>| {
            before.is_mark('.')
                || before.is_mark(',')
                || before.is_one_of(&["all", "distinct", "returning", "select"])
        };
        self.is_mark(at, '*') && self.before(at).is_some_and(is_before)
    }

    /// Whether it locks rows, or something that is named.
    pub fn locks(&self) -> bool {
        (0..self.tokens.len()).any(|at| {
            let locked = [
                &["for", "update"][..],
                &["for", "share"],
                &["for", "no", "key", "update"],
                &["for", "key", "share"],
                &["lock", "in", "share", "mode"],
            ];
            let is_lock =
                |name: &str| name.to_ascii_lowercase().trim_end_matches("_shared").ends_with("_lock");
            locked.iter().any(|words| self.has(at, words)) || self.called(at).is_some_and(is_lock)
        })
    }

    /// Whether it sets up the connection or asks about the server, as drivers and connection pools do: it names no table, and
    /// sets something, begins or ends a transaction, or reads the server's own variables; or all its tables are the server's
    /// own. An empty statement, by which pools test a connection, is one too.
    pub fn is_setup(&self) -> bool {
        if self.is_empty() || self.begins(SETUP) {
            return true;
        }
        if !self.begins(&["select", "with"]) {
            return false;
        }
        let mut sources = self.relations().filter(|relation| relation.is_read).peekable();
        if sources.peek().is_some() {
            return sources.all(|relation| relation.is_of_catalogue());
        }
        (0..self.tokens.len()).any(|at| {
            let token = self.tokens.get(at);
            let is_asked = |name: &str| ASKED.iter().any(|asked| name.eq_ignore_ascii_case(asked));
            let is_bare =
                token.is_some_and(|token| token.is_one_of(BARE_OF_POSTGRES) || token.is("current_user"));
            self.called(at).is_some_and(is_asked)
                || is_bare && !self.is_named(at)
                || self.is_mark(at, '@') && self.is_mark(at + 1, '@')
        })
    }

    /// The tables that it names, in lower case, without schemas and quotes. Names that are no tables may be among them.
    pub fn tables(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for relation in self.relations() {
            if !found.contains(&relation.name) {
                found.push(relation.name);
            }
        }
        found
    }

    fn relations(&self) -> impl Iterator<Item = Relation> + '_ {
        let (mut expected, mut in_list, mut is_read, mut outer) = (false, false, false, Vec::new());
        let mut next = 0;
        std::iter::from_fn(move || {
            loop {
                let at = next;
                let token = self.tokens.get(at)?;
                next += 1;
                if token.is_mark('(') {
                    outer.push((in_list, is_read));
                    (expected, in_list) = (false, false);
                } else if token.is_mark(')') {
                    expected = false;
                    (in_list, is_read) = outer.pop().unwrap_or_default();
                } else if token.is_mark(',') {
                    expected = in_list;
                } else if token.is_mark(';') || token.is_mark('=') {
                    expected = false;
                } else if token.is_one_of(AFTER) {
                    (expected, in_list) = (false, false);
                } else if expected && token.is_one_of(BETWEEN) {
                } else if expected && let Some(name) = token.name() {
                    expected = false;
                    let (mut schema, mut name) = (None, name);
                    while self.is_mark(next, '.')
                        && let Some(part) = self.tokens.get(next + 1).and_then(Token::name)
                    {
                        (schema, name) = (Some(name), part);
                        next += 2;
                    }
                    // What is read from may be a function.
                    if !(is_read && self.is_mark(next, '(')) {
                        let schema = schema.map(str::to_lowercase);
                        return Some(Relation { schema, name: name.to_lowercase(), is_read });
                    }
                } else if token.is_one_of(BEFORE)
                    && !self.before(at).is_some_and(|before| before.is("distinct"))
                {
                    (expected, is_read) = (true, token.is_one_of(&["from", "join"]));
                    // A list may go on after it.
                    in_list = if token.is("join") { in_list } else { token.is_one_of(LISTS) };
                } else {
                    expected = false;
                }
            }
        })
    }
}

/// A table that a statement names.
struct Relation {
    schema: Option<String>,
    name: String,
    /// Whether rows of it are read.
    is_read: bool,
}

impl Relation {
    fn is_of_catalogue(&self) -> bool {
        match &self.schema {
            Some(schema) => CATALOGUES.contains(&schema.as_str()),
            None => OF_CATALOGUE
                .iter()
                .any(|known| self.name == *known || known.ends_with('_') && self.name.starts_with(known)),
        }
    }
}

/// The first word of a statement, behind parentheses.
pub fn first_word(text: &str, dialect: Dialect) -> Option<&str> {
    let mut said = tokens(text, dialect).filter(|token| !token.is_blank() && !token.is_mark('('));
    said.next().filter(|first| first.kind == Kind::Word).map(|first| first.text)
}

/// The order of the rows of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    None,
    /// By more than names and places of columns.
    Unknown,
    /// By columns, which are named or have a place.
    By(Vec<String>),
}

/// The order of the rows of the answer to a statement.
pub fn order(text: &str, dialect: Dialect) -> Order {
    // Most have none, which needs no tokens.
    if !text.as_bytes().windows(5).any(|word| word.eq_ignore_ascii_case(b"order")) {
        return Order::None;
    }
    let statement = Statement::read(text, dialect);
    let Some(keys) = statement.order_keys() else { return Order::None };
    keys.iter().map(|key| ordered_by(key)).collect::<Option<_>>().map_or(Order::Unknown, Order::By)
}

/// A query with the keys of its order as further columns, and how many they are; `None` if it may not have them.
pub fn with_order_keys(text: &str, dialect: Dialect) -> Option<(String, usize)> {
    const NONE: [&str; 8] = ["distinct", "except", "for", "group", "having", "intersect", "lock", "union"];
    let statement = Statement::read(text, dialect);
    let (last, before) = statement.tokens.split_last()?;
    let has_more = |token: &Token<'_>| token.is_one_of(&NONE) || token.is_mark(';');
    if !statement.tokens.first()?.is("select") || before.iter().any(has_more) || last.is_one_of(&NONE) {
        return None;
    }
    let (mut depth, mut from) = (0_i32, None);
    for token in &statement.tokens {
        depth += i32::from(token.is_mark('(')) - i32::from(token.is_mark(')'));
        from = from.or(Some(token).filter(|token| depth == 0 && token.is("from")));
    }
    let place = |token: &Token<'_>| token.text.as_ptr() as usize - text.as_ptr() as usize;
    let mut columns = String::new();
    let keys = statement.order_keys()?;
    for key in &keys {
        let key = without_direction(key);
        // A place in a list has another meaning there, and a parameter another place.
        if key.iter().any(|token| matches!(token.kind, Kind::Number | Kind::Parameter)) {
            return None;
        }
        let last = key.last()?;
        columns.push_str(", ");
        columns.push_str(text.get(place(key.first()?)..place(last) + last.text.len())?);
    }
    let from = place(from?);
    Some((format!("{}{columns} {}", text.get(..from)?, text.get(from..)?), keys.len()))
}

/// A key of an order without its direction.
fn without_direction<'a, 'b>(key: &'b [Token<'a>]) -> &'b [Token<'a>] {
    let words = ["asc", "desc", "first", "last", "nulls"];
    let count = key.iter().rposition(|token| !token.is_one_of(&words)).map_or(0, |last| last + 1);
    &key[..count]
}

/// The column by which rows are ordered: its place, or its name behind those of its table.
fn ordered_by(tokens: &[Token<'_>]) -> Option<String> {
    let (last, before) = without_direction(tokens).split_last()?;
    let is_name = |(at, token): (usize, &Token<'_>)| {
        if at % 2 == 0 { token.name().is_some() } else { token.is_mark('.') }
    };
    match last.kind {
        Kind::Number if before.is_empty() => Some(last.text.to_owned()),
        _ => {
            let fits = before.len() % 2 == 0 && before.iter().enumerate().all(is_name);
            last.name().filter(|_| fits).map(str::to_owned)
        }
    }
}

/// Where the ORDER BY of the statement itself is: one that is not within parentheses that enclose a part of it.
fn order_at(tokens: &[Token<'_>]) -> Option<usize> {
    let (mut depth, mut has_begun, mut enclosing, mut found, mut after) = (0_i32, false, 0_i32, None, false);
    for (at, token) in tokens.iter().enumerate() {
        if token.is_mark('(') {
            depth += 1;
            enclosing += i32::from(!has_begun);
        } else if token.is_mark(')') {
            depth -= 1;
            // What stands behind a part is about the whole.
            if depth < enclosing {
                enclosing = depth;
                after = true;
            }
        } else if after && token.is_one_of(&["union", "except", "intersect"]) {
            // The order was that of a part.
            found = None;
        } else if token.is("order") && depth == enclosing {
            found = Some(at);
        }
        has_begun |= !token.is_mark('(');
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that excused wrong answers wherever they stood.
    const SUSPECT: [&str; 14] = [
        "uuid", "uuid_of_item", "utc_offset", "pg_class_of_ship", "xmin", "returning", "credit_limit",
        "random", "rand", "now", "limit", "order by", "currval", "version",
    ];

    fn varies(text: &str, dialect: Dialect) -> Option<Varies> {
        Statement::read(text, dialect).varies()
    }

    #[test]
    fn calls_vary_and_names_and_literals_and_comments_do_not() {
        for (dialect, quote) in [(Dialect::POSTGRES, '"'), (Dialect::MYSQL, '`')] {
            for word in SUSPECT {
                let name = format!("{quote}{word}{quote}");
                for text in [
                    format!("SELECT a FROM t WHERE b = '{word}' AND c = '{word}()'"),
                    format!("SELECT a -- {word}()\nFROM t /* {word}() */ WHERE b = 1"),
                    format!("SELECT t.{name}, {name} FROM s.{name} AS {name} WHERE x.{name} = 1"),
                    format!("INSERT INTO {name} (a, {name}) VALUES (1, 2)"),
                    format!("INSERT INTO s.{name} (a) VALUES (1) ON CONFLICT (a) DO NOTHING"),
                    format!("UPDATE {name} SET {name} = {name} + 1"),
                    format!("WITH {name} (a) AS (SELECT 1) SELECT * FROM {name}"),
                    format!("SELECT app.{}(1) FROM t", word.replace(' ', "_")),
                ] {
                    // A column of PostgreSQL's own cannot be another's.
                    if word != "xmin" || dialect == Dialect::MYSQL {
                        assert_eq!(varies(&text, dialect), None, "{text}");
                    }
                    let statement = Statement::read(&text, dialect);
                    assert!(!statement.has_open_limit() && !statement.is_ordered(), "{text}");
                }
                if !word.contains(' ') && !["limit", "returning", "xmin"].contains(&word) {
                    let text = format!("SELECT t.{word}, {word} FROM {word} WHERE {word}_id = 1");
                    assert_eq!(varies(&text, dialect), None, "{text}");
                }
            }
        }
    }

    #[test]
    fn values_vary_where_a_call_gives_them_and_rows_where_it_chooses() {
        use Varies::{Rows, Values};
        let (postgres, mysql) = (Dialect::POSTGRES, Dialect::MYSQL);
        for (dialect, text, expected) in [
            (postgres, "SELECT now()", Some(Values)),
            (postgres, "SELECT pg_catalog.now(), \"random\"()", Some(Values)),
            (mysql, "SELECT a, NOW(6) FROM t", Some(Values)),
            (postgres, "SELECT a FROM t WHERE at > now() - interval '1 day'", Some(Rows)),
            (postgres, "SELECT (SELECT count(*) FROM t WHERE at > now())", Some(Values)),
            (postgres, "SELECT a FROM (SELECT a FROM t WHERE r < random()) s", Some(Rows)),
            (postgres, "INSERT INTO t (at) VALUES (now()) RETURNING id", Some(Values)),
            (postgres, "INSERT INTO t (a) VALUES (1) RETURNING id", None),
            (postgres, "UPDATE t SET at = CURRENT_TIMESTAMP WHERE id = 1", Some(Values)),
            (postgres, "UPDATE t SET a = 1 WHERE at < clock_timestamp()", Some(Rows)),
            (postgres, "SELECT a FROM t ORDER BY random()", Some(Values)),
            (postgres, "SELECT xmin, a FROM t", Some(Values)),
            (postgres, "SELECT min(x) AS xmin FROM t", None),
            (postgres, "SELECT s.xmin FROM (SELECT min(x) xmin FROM t) s", None),
            (postgres, "SELECT s.user FROM s", None),
            (postgres, "SELECT utc_timestamp FROM t", None),
            (mysql, "SELECT utc_timestamp", Some(Values)),
            (mysql, "SELECT @@version", Some(Values)),
            (postgres, "SELECT 'now'::timestamptz", Some(Values)),
            (postgres, "SELECT 'now'::text", None),
            (postgres, "SELECT age(a), age(a, b) FROM t", Some(Values)),
            (postgres, "SELECT age(a, (b)) FROM t", None),
            (postgres, "SELECT relname FROM pg_class", Some(Rows)),
            (postgres, "SELECT a FROM information_schema.tables", Some(Rows)),
            (postgres, "SELECT a FROM pg_items", None),
            (postgres, "SELECT a FROM t TABLESAMPLE system (1)", Some(Rows)),
            (postgres, "EXPLAIN SELECT 1", Some(Rows)),
            (mysql, "SELECT unix_timestamp(a) FROM t", None),
            (mysql, "SELECT unix_timestamp()", Some(Values)),
        ] {
            assert_eq!(varies(text, dialect), expected, "{text}");
        }
    }

    #[test]
    fn columns_of_an_order_are_known_by_name_or_place() {
        let by = |columns: &[&str]| Order::By(columns.iter().map(|column| (*column).to_owned()).collect());
        for (text, expected) in [
            ("SELECT a, b FROM t ORDER BY a, t.b DESC NULLS LAST LIMIT 5", by(&["a", "b"])),
            ("SELECT a FROM t ORDER BY \"A b\" ASC, 2 FOR UPDATE;", by(&["A b", "2"])),
            ("(SELECT a FROM t ORDER BY s.t.a)", by(&["a"])),
            ("SELECT a FROM t ORDER BY lower(a)", Order::Unknown),
            ("SELECT a FROM t ORDER BY a, b + 1", Order::Unknown),
            ("SELECT a FROM t ORDER BY $1", Order::Unknown),
            ("SELECT a FROM t ORDER BY", Order::Unknown),
            ("SELECT a FROM (SELECT a FROM t ORDER BY a) s", Order::None),
        ] {
            assert_eq!(order(text, Dialect::POSTGRES), expected, "{text}");
        }
    }

    #[test]
    fn keys_of_an_order_become_columns() {
        for (text, expected) in [
            (
                "SELECT a FROM t ORDER BY b DESC, lower(c) LIMIT 5",
                Some(("SELECT a , b, lower(c) FROM t ORDER BY b DESC, lower(c) LIMIT 5", 2)),
            ),
            (
                "SELECT (SELECT a FROM u) FROM t ORDER BY t.b",
                Some(("SELECT (SELECT a FROM u) , t.b FROM t ORDER BY t.b", 1)),
            ),
            ("SELECT a FROM t ORDER BY b;", Some(("SELECT a , b FROM t ORDER BY b;", 1))),
            ("SELECT a FROM t ORDER BY b; SELECT 1", None),
            ("SELECT a FROM t ORDER BY 1", None),
            ("SELECT a FROM t ORDER BY b = $1", None),
            ("SELECT DISTINCT a FROM t ORDER BY a", None),
            ("SELECT a FROM t ORDER BY b FOR UPDATE", None),
            ("SELECT 1 ORDER BY 1", None),
            ("SELECT a FROM t", None),
        ] {
            let found = with_order_keys(text, Dialect::POSTGRES);
            assert_eq!(found.as_ref().map(|(text, keys)| (text.as_str(), *keys)), expected, "{text}");
        }
    }

    #[test]
    fn order_and_limit_are_those_of_the_statement() {
        for (text, ordered, open) in [
            ("SELECT a FROM t ORDER\nBY a LIMIT 5", true, false),
            ("SELECT a FROM t LIMIT 5", false, true),
            ("SELECT a FROM t FETCH FIRST 5 ROWS ONLY", false, true),
            ("SELECT credit_limit FROM t WHERE order_by = 1", false, false),
            ("SELECT rank() OVER (ORDER BY a) FROM t LIMIT 1", false, true),
            ("SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 5) s", false, false),
            ("SELECT a FROM (SELECT a FROM t LIMIT 5) s ORDER BY a", true, true),
            ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u LIMIT 1)", false, false),
            ("(SELECT a FROM t ORDER BY a)", true, false),
            ("(SELECT a FROM t ORDER BY a LIMIT 1) UNION ALL (SELECT b FROM u)", false, false),
            ("(SELECT a FROM t) UNION (SELECT b FROM u) ORDER/**/BY 1", true, false),
            ("SELECT a FROM t ORDER BY (a) DESC", true, false),
            ("SELECT a AS limit FROM t", false, false),
        ] {
            let statement = Statement::read(text, Dialect::POSTGRES);
            assert_eq!((statement.is_ordered(), statement.has_open_limit()), (ordered, open), "{text}");
            assert_eq!(order(text, Dialect::POSTGRES) != Order::None, ordered, "{text}");
        }
    }

    #[test]
    fn tables_are_found_in_lists_joins_and_statements_of_every_kind() {
        for (text, expected) in [
            ("select i.v, o.v from item i, other o where i.id = o.id", &["item", "other"][..]),
            ("select a, b from x join y on x.a = y.a, z where c in (1, 2)", &["x", "y", "z"]),
            ("select 1 from (select v from a, b) s, c as d order by e, f", &["a", "b", "c"]),
            ("copy item from stdin", &["item", "stdin"]),
            ("truncate item, \"public\".\"other\"", &["item", "other"]),
            ("truncate table only item", &["item"]),
            ("update/*hint*/item set v = 1, w = 2 where k = 3", &["item"]),
            ("insert into s.t (a, b) values (1, 2), (3, 4) on conflict do update set a = 1", &["t"]),
            ("create table if not exists newt as select 1", &["newt"]),
            ("drop table if exists a, b", &["a", "b"]),
            ("refresh materialized view concurrently mv", &["mv"]),
            ("DELETE FROM a USING b WHERE a.k = b.k", &["a", "b"]),
            ("select v from t -- from u\nwhere k = 1", &["t"]),
            ("select v from `t`", &["t"]),
            ("select v from generate_series(1, 2), t", &["t"]),
            ("select 1", &[]),
        ] {
            let dialect = if text.contains('`') { Dialect::MYSQL } else { Dialect::POSTGRES };
            assert_eq!(Statement::read(text, dialect).tables(), expected, "{text}");
        }
    }

    #[test]
    fn statements_of_drivers_are_distinguished_from_those_of_applications() {
        for (text, is_setup) in [
            ("SET NAMES utf8mb4", true),
            ("/* mysql-connector-java-5.1.49 */SELECT  @@session.auto_increment_increment AS a", true),
            ("/*!40101 SET NAMES utf8 */", true),
            ("-- a comment\n SHOW VARIABLES", true),
            ("select pg_catalog.version()", true),
            ("SELECT t.oid FROM pg_catalog.pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace", true),
            ("SELECT DATABASE(), USER() LIMIT 1", true),
            ("BEGIN", true),
            ("", true),
            (" ; ", true),
            ("SELECT 1", false),
            ("select id from t", false),
            ("SELECT @@version, id FROM t", false),
            ("SELECT * FROM (SELECT * FROM t) x", false),
            ("INSERT INTO t VALUES (1)", false),
            ("select * from pg_class join t on true", false),
            ("settle()", false),
        ] {
            assert_eq!(Statement::read(text, Dialect::MYSQL).is_setup(), is_setup, "{text}");
        }
    }

    #[test]
    fn columns_into_which_the_server_writes_its_own_values_are_known() {
        let stored = |text: &str| Statement::read(text, Dialect::POSTGRES).stored();
        assert_eq!(stored("INSERT INTO t (a, at, b) VALUES ($1, now(), 'now()') RETURNING now()"), ["at"]);
        assert_eq!(stored("INSERT INTO t (a, at) VALUES ((1), coalesce(NULL, now()))"), ["at"]);
        assert_eq!(stored("INSERT INTO t VALUES (1, now())"), ["*"]);
        assert_eq!(stored("UPDATE t SET a = 1, \"At\" = CURRENT_TIMESTAMP WHERE b < now()"), ["at"]);
        assert_eq!(
            stored("INSERT INTO t (a, at) VALUES (1, 2) ON CONFLICT (a) DO UPDATE SET at = now(), b = 2"),
            ["at"]
        );
        assert!(stored("INSERT INTO t (a) VALUES ('now()')").is_empty() && stored("SELECT now()").is_empty());
        let gives = |text: &str| Statement::read(text, Dialect::POSTGRES).gives("at");
        assert!(gives("SELECT a, \"at\" FROM t") && gives("SELECT t.* FROM t") && gives("SELECT * FROM t"));
        assert!(!gives("SELECT a, 2 * 3, count(*), 'at' FROM t"));
    }

    #[test]
    fn locks_are_words_and_calls() {
        let locks = |text: &str| Statement::read(text, Dialect::POSTGRES).locks();
        assert!(locks("SELECT a FROM t FOR\nUPDATE") && locks("SELECT pg_advisory_lock(1)"));
        assert!(!locks("SELECT 'for update', a_lock FROM t"));
    }
}
