//! Requests of clients, in the structure of their protocol. A call that is no statement of SQL is a list of parts, each of which says what
//! it is; a text of it is for people, and nothing is read from that.

use crate::command::Command;
use crate::http::Request;
use crate::mongodb::bson::DOCUMENT;
use crate::mongodb::command::Command as Document;
use crate::sql;

/// A parameter of a statement, or a part of another call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameter {
    /// The type by its number in the protocol; 0 if the client left it to the server, which did not say what it chose. Of a part
    /// of a call, what it is.
    pub kind: u32,
    /// Whether the server has chosen the type, whose number another server may not know.
    pub chosen: bool,
    /// Whether it was sent in the protocol's binary format.
    pub binary: bool,
    pub value: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Value {
    #[default]
    Null,
    /// Not kept.
    Dropped,
    /// The bytes, or what was kept in their place.
    Bytes(Vec<u8>),
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl From<Option<Vec<u8>>> for Value {
    fn from(bytes: Option<Vec<u8>>) -> Self {
        bytes.map_or(Self::Null, Self::Bytes)
    }
}

/// The kind of the name of a command, or the method of HTTP.
pub const NAME: u32 = 32;
/// The kind of the number of the cursor of MongoDB that the answer opened, which is no type of BSON.
pub const CURSOR: u32 = 257;
/// The kind of a part that says that there is no answer.
pub const QUIET: u32 = 258;

impl Parameter {
    /// A parameter of a type that the client chose.
    pub fn new(kind: u32, binary: bool, value: impl Into<Value>) -> Self {
        Self { kind, chosen: false, binary, value: value.into() }
    }

    /// Bytes of the value; `None` for NULL, and for what was not kept.
    pub fn bytes(&self) -> Option<&[u8]> {
        if let Value::Bytes(bytes) = &self.value { Some(bytes) } else { None }
    }

    /// Text of the value; empty if it has none.
    pub fn text(&self) -> &str {
        self.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }

    /// Whether a part of a call says which call it is, and is no value.
    pub fn is_name(&self) -> bool {
        (NAME..2 * NAME).contains(&self.kind)
    }
}

/// Whether a call has no answer.
pub fn is_quiet(parts: &[Parameter]) -> bool {
    parts.iter().any(|one| one.kind == QUIET)
}

/// The cursor of MongoDB that the answer to a call opened.
pub fn cursor(parts: &[Parameter]) -> Option<i64> {
    let cursor = parts.iter().find(|one| one.kind == CURSOR)?;
    cursor.bytes()?.try_into().ok().map(i64::from_le_bytes)
}

/// Language of the calls of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Sql(sql::Dialect),
    /// Commands of words, as Valkey has them too.
    Redis,
    Memcached,
    /// Commands of MongoDB.
    Documents,
    Http,
    /// HTTP, whose paths have a meaning.
    Couchdb,
}

impl Default for Language {
    fn default() -> Self {
        Self::Sql(sql::Dialect::POSTGRES)
    }
}

impl Language {
    /// The language of a protocol, by the scheme of its URLs.
    pub fn from_scheme(scheme: &str) -> Self {
        match scheme {
            "mysql" | "mariadb" => Self::Sql(sql::Dialect::MYSQL),
            "http" => Self::Http,
            "couchdb" | "couchdbs" => Self::Couchdb,
            "mongodb" => Self::Documents,
            "redis" | "valkey" => Self::Redis,
            "memcached" => Self::Memcached,
            _ => Self::default(),
        }
    }

    /// The language of a session with this setting.
    #[must_use]
    pub fn under(self, setting: &str, value: &str) -> Self {
        if let Self::Sql(dialect) = self { Self::Sql(dialect.under(setting, value)) } else { self }
    }

    /// How its texts of SQL are read, if it has some.
    pub fn sql(self) -> Option<sql::Dialect> {
        if let Self::Sql(dialect) = self { Some(dialect) } else { None }
    }

    /// How a text of SQL is read, also where no other text of the language is one.
    pub fn dialect(self) -> sql::Dialect {
        self.sql().unwrap_or_default()
    }

    pub fn is_postgres(self) -> bool {
        self.sql().is_some_and(sql::Dialect::is_postgres)
    }

    pub fn is_mysql(self) -> bool {
        self.sql().is_some_and(sql::Dialect::is_mysql)
    }

    /// A call: a statement by its text, any other by its parts. `None` if parts are missing that say what it is.
    pub fn call<'a>(self, statement: &'a str, parts: &'a [Parameter]) -> Option<Call<'a>> {
        Some(match self {
            Self::Sql(dialect) => Call::Sql(statement, dialect),
            Self::Redis | Self::Memcached => Call::Command(Command::read(parts)?),
            Self::Documents => Call::Document(document(parts)?),
            Self::Http | Self::Couchdb => Call::Http(Request::read(parts)?),
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    Sql(&'a str, sql::Dialect),
    Command(Command<'a>),
    Document(Document<'a>),
    Http(Request<'a>),
}

impl Call<'_> {
    /// Whether it sets up a connection or a transaction, or asks about the server.
    pub fn is_setup(&self) -> bool {
        match self {
            // Commands of MySQL's protocol without a text.
            Self::Sql(text, dialect) => {
                text.starts_with("COM_") || sql::Statement::read(text, *dialect).is_setup()
            }
            Self::Command(command) => command.is_setup() || command.is_of_transaction(),
            Self::Document(command) => command.is_setup() || command.ends_transaction(),
            Self::Http(_) => false,
        }
    }
}

/// The command of a call that is a document; `None` if it has a part of another kind.
pub fn document(parts: &[Parameter]) -> Option<Document<'_>> {
    let (document, rest) = parts.split_first().filter(|(one, _)| one.kind == u32::from(DOCUMENT))?;
    let is_known = rest.iter().all(|one| [CURSOR, QUIET].contains(&one.kind));
    Document::read(document.bytes()?).filter(|_| is_known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mongodb::command::plain;

    #[test]
    fn part_of_a_document_or_one_beside_a_part_that_is_not_known_is_no_call() {
        let whole = plain(b"ping", None);
        for part in [&whole[..whole.len() - 1], b""] {
            assert!(document(&[Parameter::new(DOCUMENT.into(), true, part)]).is_none());
        }
        assert!(document(&[]).is_none());
        let document = Parameter::new(DOCUMENT.into(), true, whole);
        for (kind, is_call) in [(CURSOR, true), (QUIET, true), (DOCUMENT.into(), false), (300, false)] {
            let parts = [document.clone(), Parameter { kind, ..Parameter::default() }];
            assert_eq!(Language::Documents.call("", &parts).is_some(), is_call, "{kind}");
        }
    }
}
