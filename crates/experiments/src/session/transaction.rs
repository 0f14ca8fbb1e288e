//! The transactions of one client: add a session, or load one.

use super::store::{Layout, Store};
use crate::answer::record;
use crate::codec::{Codec, Encoding};
use crate::ident::Ident;
use crate::parameters::recycle;
use crate::pieces;
use crate::prelude::*;
use std::collections::HashMap;

/// Adds sessions with increasing numbers, distinct from those of the other clients.
pub(super) struct Write {
    store: Arc<Store>,
    collection: Arc<Collection>,
    prepare_once: bool,
    /// Prepared once for each number of rows, which varies with compression.
    prepared: HashMap<usize, Prepared>,
    codec: Codec,
    payload: Vec<u8>,
    parameters: Vec<Value<'static>>,
    reply: Reply,
    key: u64,
    id: Ident,
    next: u64,
    step: u64,
    sent_rows: usize,
    written: u64,
}

impl Write {
    pub(super) fn new(
        store: &Arc<Store>,
        collection: &Arc<Collection>,
        once: bool,
        client: Client,
    ) -> Result<Self> {
        Ok(Self {
            store: Arc::clone(store),
            collection: Arc::clone(collection),
            prepare_once: once,
            prepared: HashMap::new(),
            codec: store.codec()?,
            payload: Vec::new(),
            parameters: Vec::new(),
            reply: Reply::new(),
            key: 0,
            id: Ident::of(store.seed, 0),
            next: client.index as u64,
            step: client.count as u64,
            sent_rows: 0,
            written: 0,
        })
    }

    /// The numbers of the sessions that a client has added after `completed` transactions.
    pub(super) fn keys(client: Client, completed: u64) -> impl Iterator<Item = u64> {
        (0..completed).map(move |n| client.index as u64 + n * client.count as u64)
    }
}

impl Transaction for Write {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.prepared.clear();
        if self.prepare_once && self.store.layout == Layout::Blob {
            self.prepared.insert(1, session.prepare(&self.store.insert(&self.collection, 1))?);
        }
        Ok(())
    }

    fn prepare_input(&mut self) {
        self.key = self.next;
        // Includes a failed transaction: the answer may have been lost after the session was stored.
        self.next += self.step;
        self.id = Ident::of(self.store.seed, self.key);
        self.store.content.write(self.key, 0, &mut self.payload);
    }

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let Self { store, codec, payload, reply, id, .. } = self;
        let stored = codec.encode(payload)?;
        let rows = store.rows(stored.len());
        let updated = Value::Time(Store::updated(self.key));
        let mut parameters: Vec<Value<'_>> = std::mem::take(&mut self.parameters);
        if store.layout == Layout::Blob {
            parameters.extend([Value::Text(id.as_str()), data(store.encoding, stored)?, updated]);
        } else {
            for (n, piece) in pieces::split(stored) {
                let piece = data(store.encoding, piece)?;
                parameters.extend([Value::Text(id.as_str()), Value::Int(n as i64), piece, updated]);
            }
        }
        let done = if self.prepare_once {
            let prepared = match self.prepared.entry(rows) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert(session.prepare(&store.insert(&self.collection, rows))?)
                }
            };
            session.execute(prepared, &parameters, reply)
        } else {
            let prepared = session.prepare(&store.insert(&self.collection, rows))?;
            let done = session.execute(&prepared, &parameters, reply);
            done.and(session.release(prepared))
        };
        self.parameters = recycle(parameters);
        done?;
        self.sent_rows = rows;
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        if self.reply.affected() != self.sent_rows as u64 {
            return Err(Error::mismatch(format!(
                "the server acknowledged {1} of {0} rows of a written session",
                self.sent_rows,
                self.reply.affected()
            )));
        }
        self.written += self.sent_rows as u64;
        Ok(())
    }

    fn rows_written(&self) -> u64 {
        self.written
    }
}

impl Page for Write {
    fn render(&self, out: &mut Vec<u8>) {
        record(self.id.as_str(), &self.payload, out);
    }
}

/// Loads uniformly drawn sessions.
pub(super) struct Read {
    store: Arc<Store>,
    select: Operation,
    prepare_once: bool,
    prepared: Option<Prepared>,
    answer: Answer,
    rng: Rng,
    records: u64,
    key: u64,
    id: Ident,
}

impl Read {
    pub(super) fn new(
        store: &Arc<Store>,
        collection: &Arc<Collection>,
        once: bool,
        records: u64,
        client: Client,
    ) -> Result<Self> {
        Ok(Self {
            store: Arc::clone(store),
            select: store.select(collection),
            prepare_once: once,
            prepared: None,
            answer: Answer::new(store)?,
            rng: Rng::new(client.seed),
            records,
            key: 0,
            id: Ident::of(store.seed, 0),
        })
    }
}

impl Transaction for Read {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        if self.prepare_once {
            self.prepared = Some(session.prepare(&self.select)?);
        }
        Ok(())
    }

    #[inline]
    fn prepare_input(&mut self) {
        self.key = self.rng.below(self.records);
        self.id = Ident::of(self.store.seed, self.key);
    }

    #[inline]
    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let parameters = [Value::Text(self.id.as_str())];
        if let Some(prepared) = &self.prepared {
            session.execute(prepared, &parameters, &mut self.answer.reply)?;
        } else {
            let prepared = session.prepare(&self.select)?;
            session.execute(&prepared, &parameters, &mut self.answer.reply)?;
            session.release(prepared)?;
        }
        self.answer.open(&self.store)
    }

    #[inline]
    fn check(&mut self) -> Result<()> {
        self.answer.check(&self.store, self.key)
    }
}

impl Page for Read {
    fn render(&self, out: &mut Vec<u8>) {
        record(self.id.as_str(), self.answer.payload(&self.store), out);
    }
}

/// Decodes a returned session as an application does, and checks it.
pub(super) struct Answer {
    pub(super) reply: Reply,
    codec: Codec,
    joined: Vec<u8>,
    opened: Vec<u8>,
}

impl Answer {
    pub(super) fn new(store: &Store) -> Result<Self> {
        Ok(Self { reply: Reply::new(), codec: store.codec()?, joined: Vec::new(), opened: Vec::new() })
    }

    /// What an application must do before it can use the session: join the rows, decode, decompress. A session in one
    /// plain value needs none of this.
    pub(super) fn open(&mut self, store: &Store) -> Result<()> {
        if store.layout == Layout::Blob && self.codec.is_plain() {
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

    /// The session's payload after [`Answer::open`].
    fn payload(&self, store: &Store) -> &[u8] {
        if store.layout == Layout::Blob && self.codec.is_plain() {
            self.reply.field_bytes(0, 0).unwrap_or_default()
        } else {
            &self.opened
        }
    }

    /// Checks the session: it exists once, each row's timestamp is right, and its bytes are right.
    pub(super) fn check(&self, store: &Store, key: u64) -> Result<()> {
        let rows = self.reply.rows();
        if rows == 0 {
            return Err(Error::mismatch(format!("session {key} is missing")));
        }
        if store.layout == Layout::Blob && rows != 1 {
            return Err(Error::mismatch(format!("session {key} was returned {rows} times")));
        }
        let updated = Value::Time(Store::updated(key));
        for row in 0..rows {
            if self.reply.field(row, 1) != Some(updated) {
                return Err(Error::mismatch(format!(
                    "session {key} was returned with the time {:?} instead of {updated:?}",
                    self.reply.field(row, 1)
                )));
            }
        }
        if store.layout == Layout::Blob && self.codec.is_plain() {
            let bytes = self.reply.field_bytes(0, 0);
            let bytes = bytes
                .ok_or_else(|| Error::mismatch(format!("session {key} was returned without its data")))?;
            return store.content.check(key, 0, bytes);
        }
        store.content.check(key, 0, &self.opened)
    }
}

fn data(encoding: Encoding, stored: &[u8]) -> Result<Value<'_>> {
    Ok(match encoding {
        Encoding::Binary => Value::Bytes(stored),
        Encoding::Base64 => Value::Text(
            std::str::from_utf8(stored)
                .map_err(|_| Error::new(kurabe_core::ErrorKind::Internal, "base64 is not text"))?,
        ),
    })
}
