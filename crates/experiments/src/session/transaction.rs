//! The transactions of one client: add a session, or load one.

use super::store::{Layout, Store, split};
use crate::answer::record;
use crate::codec::{Codec, Encoding};
use crate::ident::{Ident, own};
use crate::prelude::*;
use crate::statement::recycle;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::iter::StepBy;
use std::ops::RangeFrom;

/// Adds sessions with increasing numbers, distinct from those of the other clients.
pub(super) struct Write {
    store: Arc<Store>,
    collection: Arc<Collection>,
    bind: Bind,
    /// By the number of rows, which varies with compression.
    statements: HashMap<usize, Statement>,
    codec: Codec,
    payload: Vec<u8>,
    parameters: Vec<Value<'static>>,
    reply: Reply,
    keys: StepBy<RangeFrom<u64>>,
    key: u64,
    id: Ident,
    sent_rows: usize,
}

impl Write {
    pub(super) fn new(
        store: &Arc<Store>,
        collection: &Arc<Collection>,
        bind: Bind,
        client: Client,
    ) -> Result<Self> {
        Ok(Self {
            store: Arc::clone(store),
            collection: Arc::clone(collection),
            bind,
            statements: HashMap::new(),
            codec: store.codec()?,
            payload: Vec::new(),
            parameters: Vec::new(),
            reply: Reply::new(),
            keys: own(0, client),
            key: 0,
            id: Ident::of(store.seed, 0),
            sent_rows: 0,
        })
    }
}

impl Transaction for Write {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statements.clear();
        if self.store.layout == Layout::Blob {
            let mut statement = Statement::new(self.store.insert(&self.collection, 1), self.bind);
            statement.attach(session)?;
            self.statements.insert(1, statement);
        }
        Ok(())
    }

    fn prepare_input(&mut self) {
        // A failed transaction counts too: the answer may have been lost after the session was stored.
        self.key = self.keys.next().unwrap_or_default();
        self.id = Ident::of(self.store.seed, self.key);
        self.store.write(self.key, 0, &mut self.payload);
    }

    fn run(&mut self, session: &mut dyn Session, _: &mut Recorder) -> Result<()> {
        let Self { store, codec, payload, reply, id, .. } = self;
        let stored = codec.encode(payload)?;
        let rows = store.rows(stored.len());
        let updated = Value::Time(store.time(self.key));
        let mut parameters: Vec<Value<'_>> = std::mem::take(&mut self.parameters);
        if store.layout == Layout::Blob {
            parameters.extend([Value::Text(id.as_str()), data(store.encoding, stored)?, updated]);
        } else {
            for (n, piece) in split(stored) {
                let piece = data(store.encoding, piece)?;
                parameters.extend([Value::Text(id.as_str()), Value::Int(n as i64), piece, updated]);
            }
        }
        let statement = match self.statements.entry(rows) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let mut statement = Statement::new(store.insert(&self.collection, rows), self.bind);
                statement.attach(session)?;
                entry.insert(statement)
            }
        };
        let done = statement.execute(session, &parameters, reply);
        self.parameters = recycle(parameters);
        self.sent_rows = rows;
        done
    }

    fn check(&mut self, recorder: &mut Recorder) -> Result<()> {
        if self.reply.affected() != self.sent_rows as u64 {
            return Err(Error::mismatch(format!(
                "the server acknowledged {1} of {0} rows of a written session",
                self.sent_rows,
                self.reply.affected()
            )));
        }
        recorder.rows_written(self.sent_rows as u64);
        Ok(())
    }

    fn render(&self, out: &mut Vec<u8>) {
        record(self.id.as_str(), &self.payload, out);
    }
}

/// Loads uniformly drawn sessions.
pub(super) struct Read {
    store: Arc<Store>,
    statement: Statement,
    answer: Returned,
    rng: Rng,
    records: u64,
    key: u64,
    id: Ident,
}

impl Read {
    pub(super) fn new(
        store: &Arc<Store>,
        collection: &Arc<Collection>,
        bind: Bind,
        records: u64,
        client: Client,
    ) -> Result<Self> {
        Ok(Self {
            store: Arc::clone(store),
            statement: Statement::new(store.select(collection), bind),
            answer: Returned::new(store)?,
            rng: Rng::new(client.seed),
            records,
            key: 0,
            id: Ident::of(store.seed, 0),
        })
    }
}

impl Transaction for Read {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.statement.attach(session)
    }

    #[inline]
    fn prepare_input(&mut self) {
        self.key = self.rng.below(self.records);
        self.id = Ident::of(self.store.seed, self.key);
    }

    #[inline]
    fn run(&mut self, session: &mut dyn Session, _: &mut Recorder) -> Result<()> {
        self.statement.execute(session, &[Value::Text(self.id.as_str())], &mut self.answer.reply)?;
        self.answer.open(&self.store)
    }

    #[inline]
    fn check(&mut self, _: &mut Recorder) -> Result<()> {
        self.answer.check(&self.store, self.key, 0)
    }

    fn render(&self, out: &mut Vec<u8>) {
        record(self.id.as_str(), self.answer.payload(&self.store).unwrap_or_default(), out);
    }
}

/// Decodes a returned session as an application does, and checks it.
pub(super) struct Returned {
    pub(super) reply: Reply,
    codec: Codec,
    joined: Vec<u8>,
    opened: Vec<u8>,
}

impl Returned {
    pub(super) fn new(store: &Store) -> Result<Self> {
        Ok(Self { reply: Reply::new(), codec: store.codec()?, joined: Vec::new(), opened: Vec::new() })
    }

    /// Whether the session is one plain value, which is neither joined nor decoded.
    fn is_direct(&self, store: &Store) -> bool {
        store.layout == Layout::Blob && self.codec.is_plain()
    }

    /// What an application must do before it can use the session: join the rows, decode, decompress.
    pub(super) fn open(&mut self, store: &Store) -> Result<()> {
        if self.is_direct(store) {
            return Ok(());
        }
        let stored = match store.layout {
            Layout::Blob => self.reply.field_bytes(0, 0),
            Layout::Rows => {
                self.joined.clear();
                for row in 0..self.reply.rows() {
                    self.joined.extend_from_slice(self.reply.field_bytes(row, 0).unwrap_or_default());
                }
                (self.reply.rows() > 0).then_some(&self.joined[..])
            }
        };
        // `check` reports a missing session, with its number.
        let Some(stored) = stored else {
            // The previous session must not be taken for it.
            self.opened.clear();
            return Ok(());
        };
        if self.codec.is_plain() {
            std::mem::swap(&mut self.opened, &mut self.joined);
        } else {
            self.codec.decode_into(stored, &mut self.opened)?;
        }
        Ok(())
    }

    /// The session's payload after [`Returned::open`], if the answer has one.
    fn payload(&self, store: &Store) -> Option<&[u8]> {
        if self.is_direct(store) { self.reply.field_bytes(0, 0) } else { Some(&self.opened) }
    }

    /// Checks the session: it exists once, each row's timestamp is right, and its bytes are those of this version.
    pub(super) fn check(&self, store: &Store, key: u64, version: u64) -> Result<()> {
        let rows = self.reply.rows();
        if rows == 0 {
            return Err(Error::mismatch(format!("session {key} is missing")));
        }
        if store.layout == Layout::Blob && rows != 1 {
            return Err(Error::mismatch(format!("session {key} was returned {rows} times")));
        }
        let updated = Value::Time(store.time(key));
        for row in 0..rows {
            if self.reply.field(row, 1) != Some(updated) {
                return Err(Error::mismatch(format!(
                    "session {key} was returned with the time {:?} instead of {updated:?}",
                    self.reply.field(row, 1)
                )));
            }
        }
        let bytes = self.payload(store);
        let bytes =
            bytes.ok_or_else(|| Error::mismatch(format!("session {key} was returned without its data")))?;
        store.content.check_part(key, version, store.length(key), bytes)
    }
}

pub(super) fn data(encoding: Encoding, stored: &[u8]) -> Result<Value<'_>> {
    Ok(match encoding {
        Encoding::Binary => Value::Bytes(stored),
        Encoding::Base64 => Value::Text(
            std::str::from_utf8(stored).map_err(|_| Error::new(ErrorKind::Internal, "base64 is not text"))?,
        ),
    })
}
