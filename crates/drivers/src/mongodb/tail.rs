//! What a command ends with: the database, the session and its number, and the members that may answer it.

use super::config::Config;
use super::hello::Hello;
use super::writer::Writer;

/// What a command on the target's database ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// The database and the session.
    Plain,
    /// And which members may answer it.
    Read,
    /// And the number of a write that the server executes once.
    Retryable(i64),
    /// And the number of a transaction, …
    Transaction(i64),
    Begin(i64),
}

/// A session on the server, by whose number it executes a write once and a transaction as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lsid {
    pub(super) id: [u8; 16],
    /// The number of the last transaction or retryable write.
    pub(super) last: i64,
}

impl Lsid {
    pub(super) fn write(&self, out: &mut Writer) {
        out.begin("lsid").uuid("id", self.id).end();
    }
}

/// The fields of [`Tail::Plain`] and [`Tail::Read`].
#[derive(Default)]
pub(super) struct Tails {
    plain: Vec<u8>,
    read: Vec<u8>,
}

impl Tails {
    /// Those of a connection to the server that said this.
    pub(super) fn new(config: &Config, hello: &Hello, session: Option<Lsid>) -> Self {
        let plain = Writer::fields(|out| {
            out.text("$db", &config.database);
            if let Some(session) = session {
                session.write(out);
            }
        });
        let is_secondary = hello.set.is_some() && !hello.is_writable;
        let preference = config.preference.as_ref().filter(|_| is_secondary || hello.is_router);
        let mut read = plain.clone();
        read.extend(Writer::fields(|out| match preference {
            // A secondary that was named answers reads only if it is told that it may.
            None if is_secondary => {
                out.begin("$readPreference").text("mode", "primaryPreferred").end();
            }
            None => {}
            Some(preference) => {
                out.begin("$readPreference").text("mode", preference.name());
                if !preference.tags.is_empty() {
                    out.begin_array("tags").begin("0");
                    for (name, value) in &preference.tags {
                        out.text(name, value);
                    }
                    out.end().end();
                }
                if let Some(seconds) = preference.staleness {
                    out.long("maxStalenessSeconds", seconds as i64);
                }
                out.end();
            }
        }));
        Self { plain, read }
    }

    /// Appends the end of a command.
    #[inline]
    pub(super) fn append(&self, tail: Tail, out: &mut Writer) {
        out.append(if tail == Tail::Read { &self.read } else { &self.plain });
        if let Tail::Retryable(number) | Tail::Transaction(number) | Tail::Begin(number) = tail {
            out.long("txnNumber", number);
        }
        if let Tail::Transaction(_) | Tail::Begin(_) = tail {
            out.bool("autocommit", false);
        }
        if let Tail::Begin(_) = tail {
            out.bool("startTransaction", true);
        }
    }
}
