//! A schema, as the engines' catalogues describe it.

use crate::issue::IssueKind;
use crate::script::without_bytes;
use crate::sql::{Row, by_object, text, texts};
use kurabe_core::text::cut;
use kurabe_protocol::sql::{Dialect, Kind, Token, tokens};

/// What a database holds.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Its tables, by name.
    pub tables: Vec<Table>,
    /// Objects that are no tables, and cannot be copied.
    pub leftovers: Vec<Leftover>,
    /// The names of all objects in the name space of tables.
    pub names: Vec<String>,
    /// Types and extensions, as the engine renders them, which tables need.
    pub types: Vec<Named>,
    /// Sequences that are no part of an identity column.
    pub sequences: Vec<Named>,
    /// Which tables and types need which of those, by their names.
    pub needs: Vec<(String, String)>,
    /// The statements after all rows, by the names of their types and sequences, and what is lost without each.
    pub after: Vec<(IssueKind, Named)>,
}

/// A statement that makes something with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    pub sql: String,
}

/// A table as its own engine renders it, for a server of the same kind.
#[derive(Clone, Debug, Default)]
pub struct Native {
    /// The statement that makes it.
    pub create: String,
    /// Whether that makes its key; otherwise the key is made after its rows.
    pub has_key: bool,
    /// What is made after its rows: indexes, constraints, the positions of its numbers.
    pub later: Vec<Named>,
    /// The statements of its foreign keys, by their names, after all tables.
    pub foreign: Vec<Named>,
}

/// What a file of what is not made has of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// A statement of the source's server.
    Statement(String),
    /// One by which others mean something else.
    First(String),
    /// One that may take rights away from who executes it.
    Last(String),
    /// One that means this only with settings of the session: their names and values, and the statement.
    Under(Vec<(&'static str, String)>, String),
    /// Words about it, which are no statement.
    Words(String),
    /// What the user says of a table or of an object in it: which kind of object it is on the source, the source's
    /// statement or nothing, and the words.
    Remark { what: String, own: String, text: String },
}

/// Something that cannot be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub kind: IssueKind,
    /// The table that it belongs to; `None` for objects of the database.
    pub table: Option<String>,
    pub name: String,
    /// What it is, shortened.
    pub detail: String,
    pub text: Text,
    /// Whether [`Native`] has it.
    pub carried: bool,
    /// Whether it has a meaning on servers of this kind only, so that others lose nothing.
    pub internal: bool,
    /// The users and roles that the statement names, and what it names of other databases, in the engine's quotes.
    pub roles: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    /// The columns of the primary key; empty without one.
    pub primary: Vec<String>,
    /// Its other indexes, unique ones included.
    pub indexes: Vec<Index>,
    pub foreign: Vec<ForeignKey>,
    /// The name of a hidden whole number that is unique, by which rows can be read in order.
    pub hidden: Option<&'static str>,
    /// The collation of columns that say none, where a table has one.
    pub collation: String,
    /// How its engine renders it.
    pub native: Option<Native>,
    /// Why the user does not see all of it.
    pub hides: Option<String>,
    /// Whether reading it by its name alone would read tables that inherit from it too.
    pub inherited: bool,
    /// The condition of the rows that are copied; `None`: all.
    pub filter: Option<String>,
}

impl Table {
    pub fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|known| known.name == column)
    }

    /// Whether a column is in the primary key or an index.
    pub fn is_indexed(&self, column: &str) -> bool {
        let has = |columns: &[String]| columns.iter().any(|known| known == column);
        has(&self.primary)
            || self.indexes.iter().any(|index| has(&index.columns))
            || self.foreign.iter().any(|key| has(&key.columns))
    }
}

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    /// Its type as the catalogue writes it.
    pub declared: String,
    pub nullable: bool,
    pub default: DefaultValue,
    /// Whether the server gives it numbers.
    pub identity: bool,
    /// How its text is compared.
    pub collation: Collation,
    /// The expression of a generated column.
    pub generated: Option<String>,
    /// The next of the numbers that the server gives.
    pub next: Option<i128>,
    /// Whether all servers of the engine have one binary form of its values.
    pub has_binary: bool,
}

/// A column's default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// None, or null.
    Null,
    /// A literal: its value as text.
    Literal(String),
    /// The time of the insert.
    Now,
    Expression(String),
}

/// How text is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collation {
    /// By its bytes; or the column is no text.
    Bytes,
    /// By its bytes, in the engine's rules of this name, which may ignore trailing spaces.
    Binary(String),
    Named(String),
}

#[derive(Clone, Debug)]
pub struct Index {
    pub name: String,
    /// Whether it allows an entry only once.
    pub unique: bool,
    /// Its columns, in order.
    pub columns: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct ForeignKey {
    /// Its name; empty if it has none.
    pub name: String,
    pub columns: Vec<String>,
    /// The table that it refers to.
    pub parent: String,
    /// The columns there; empty for its primary key.
    pub parent_columns: Vec<String>,
    /// What happens if the parent's key changes: `NO ACTION`, `CASCADE`, …
    pub on_update: String,
    /// What happens if the parent is deleted.
    pub on_delete: String,
    /// Whether the server vouches that each row has its parent.
    pub proven: bool,
}

impl ForeignKey {
    /// The clauses of its actions, each with a leading space.
    pub fn actions(&self) -> String {
        let clause = |word: &str, action: &str| match action {
            "NO ACTION" | "" => String::new(),
            action => format!(" ON {word} {action}"),
        };
        clause("UPDATE", &self.on_update) + &clause("DELETE", &self.on_delete)
    }
}

impl Catalog {
    /// What is made before the tables that need it.
    pub fn before(&self) -> impl Iterator<Item = &Named> {
        self.types.iter().chain(&self.sequences)
    }

    pub fn table_mut(&mut self, name: &str) -> Option<&mut Table> {
        self.tables.iter_mut().find(|table| table.name == name)
    }

    /// Gives foreign keys the names that tables and columns have, where the engine finds them without regard to case.
    pub fn name_parents(&mut self) {
        let columns = |table: &Table| table.columns.iter().map(|column| column.name.clone()).collect();
        let known = self.tables.iter().map(|table| (table.name.clone(), columns(table)));
        let known: Vec<(String, Vec<String>)> = known.collect();
        for key in self.tables.iter_mut().flat_map(|table| &mut table.foreign) {
            let found = named(&known, |(name, _)| name, &key.parent);
            let Some((parent, columns)) = found else { continue };
            key.parent.clone_from(parent);
            for column in &mut key.parent_columns {
                if let Some(found) = named(columns, |name| name, column) {
                    column.clone_from(found);
                }
            }
        }
    }

    /// Adds an index of a table, or its primary key.
    pub fn add_index(&mut self, table: &str, index: Index, is_primary: bool) {
        match self.table_mut(table) {
            None => {}
            Some(table) if is_primary => table.primary = index.columns,
            Some(table) => table.indexes.push(index),
        }
    }

    /// Adds a statement after the rows of a table, or to those of its foreign keys, by the name of what it makes.
    pub fn add_later(&mut self, table: &str, name: &str, sql: String, is_foreign: bool) {
        let Some(native) = self.table_mut(table).and_then(|table| table.native.as_mut()) else { return };
        let list = if is_foreign { &mut native.foreign } else { &mut native.later };
        list.push(Named { name: name.to_owned(), sql });
    }

    /// Adds the foreign keys of a query, each of whose rows is one of their columns: the table, the key's name, the column, the parent
    /// or nothing if it is elsewhere, its column, the actions, and whether the server vouches that each row has its parent.
    pub fn add_foreign_keys(&mut self, rows: &[Row]) {
        for rows in by_object(rows) {
            let field = |at: usize| text(&rows[0], at).to_owned();
            let Some(table) = self.table_mut(text(&rows[0], 0)) else { continue };
            table.foreign.push(ForeignKey {
                name: field(1),
                columns: texts(rows, 2),
                parent: field(3),
                parent_columns: texts(rows, 4),
                on_update: field(5),
                on_delete: field(6),
                proven: text(&rows[0], 7) == "1",
            });
        }
    }

    /// Adds something that the engine's own rendering of the table has, and no other engine gets.
    pub fn leave_to_others(&mut self, kind: IssueKind, table: &str, name: &str, what: &str) -> &mut Leftover {
        let left = self.leave(kind, Some(table), name, what);
        left.carried = true;
        left
    }

    /// Adds something that cannot be copied, of which there is this text.
    pub fn leave_text(&mut self, kind: IssueKind, of: Option<&str>, name: &str, text: Text) -> &mut Leftover {
        let detail = match &text {
            Text::Statement(sql)
            | Text::First(sql)
            | Text::Last(sql)
            | Text::Under(_, sql)
            | Text::Words(sql) => sql.clone(),
            Text::Remark { what, text, .. } => format!("COMMENT ON {what} IS {text}"),
        };
        let left = self.leave(kind, of, name, &detail);
        left.text = text;
        left
    }

    /// Adds something that cannot be copied. Its text are these words, unless the caller sets another.
    pub fn leave(&mut self, kind: IssueKind, table: Option<&str>, name: &str, detail: &str) -> &mut Leftover {
        let detail_shown = without_bytes(detail, "\u{fffd}");
        let shown: String = detail_shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let at = self.leftovers.len();
        self.leftovers.push(Leftover {
            kind,
            table: table.map(str::to_owned),
            name: name.to_owned(),
            detail: cut(&shown, 120).into_owned(),
            text: Text::Words(detail.to_owned()),
            carried: false,
            internal: false,
            roles: Vec::new(),
        });
        &mut self.leftovers[at]
    }
}

impl Leftover {
    /// Has this statement for its text.
    pub fn with_statement(&mut self, sql: impl Into<String>) -> &mut Self {
        self.text = Text::Statement(sql.into());
        self
    }
}

/// The one of this name; without one, that whose name differs only in case.
pub fn named<'l, T>(list: &'l [T], name: impl Fn(&T) -> &String, wanted: &str) -> Option<&'l T> {
    let exact = list.iter().find(|one| name(one) == wanted);
    exact.or_else(|| list.iter().find(|one| name(one).eq_ignore_ascii_case(wanted)))
}

/// Reads a default that an engine writes as an expression: a number, a quoted text, perhaps with a cast, or the time.
/// `escapes`: a backslash escapes in such a text.
pub fn read_default(text: &str, escapes: bool) -> DefaultValue {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let now = [
        "current_timestamp", "current_timestamp()", "now()", "localtimestamp", "datetime('now')",
        "statement_timestamp()",
    ];
    if lower.is_empty() || lower == "null" || lower.starts_with("null::") {
        return DefaultValue::Null;
    }
    // With digits of a second, perhaps.
    let bare = lower
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once('('))
        .filter(|(_, digits)| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
    if now.contains(&bare.map_or(lower.as_str(), |(name, _)| name)) || now.contains(&lower.as_str()) {
        return DefaultValue::Now;
    }
    if matches!(lower.as_str(), "true" | "false") {
        return DefaultValue::Literal(if lower == "true" { "1" } else { "0" }.to_owned());
    }
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    if inner.parse::<f64>().is_ok() && inner.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return DefaultValue::Literal(inner.to_owned());
    }
    let syntax = if escapes { Dialect::MYSQL } else { Dialect::STANDARD };
    let tokens: Vec<Token<'_>> = tokens(inner, syntax).filter(|token| !token.is_blank()).collect();
    if let [literal, cast @ ..] = &tokens[..]
        && let Some(value) = literal.text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''))
    {
        let is_of_type = |token: &Token<'_>| {
            matches!(token.kind, Kind::Word | Kind::Name | Kind::Number) || "(),.[]".contains(token.text)
        };
        let is_cast = match cast {
            [one, two, of @ ..] => one.is_mark(':') && two.is_mark(':') && of.iter().all(is_of_type),
            others => others.is_empty(),
        };
        if is_cast {
            return DefaultValue::Literal(unescaped(value, escapes));
        }
    }
    DefaultValue::Expression(text.to_owned())
}

/// Decodes the inside of a quoted text.
fn unescaped(written: &str, escapes: bool) -> String {
    let (mut text, mut characters) = (String::new(), written.chars());
    while let Some(character) = characters.next() {
        match character {
            '\'' => text.extend(characters.next()),
            '\\' if escapes => text.extend(characters.next().map(|escaped| match escaped {
                '0' => '\0',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'b' => '\u{8}',
                'Z' => '\u{1a}',
                other => other,
            })),
            character => text.push(character),
        }
    }
    text
}
