//! The transaction of a client that adds a record to a database.

use super::record::{Digests, LENGTH};
use crate::answer;
use crate::defect::no_session;
use crate::fill::text;
use crate::prelude::*;
use crate::rows::{LOADED, RowData as _, Rows};

/// Adds records with increasing keys, distinct from those of the other clients.
pub(super) struct Write {
    rows: Arc<Rows<Digests>>,
    prepared: Option<Prepared>,
    reply: Reply,
    key: u64,
    next: u64,
    step: u64,
    data: Vec<u8>,
    written: u64,
}

impl Write {
    /// `loaded`: the number of records before the first is added.
    pub(super) fn new(rows: &Arc<Rows<Digests>>, loaded: u64, client: Client) -> Self {
        Self {
            rows: Arc::clone(rows),
            prepared: None,
            reply: Reply::new(),
            key: 0,
            next: first(loaded, client),
            step: client.count as u64,
            data: Vec::with_capacity(LENGTH),
            written: 0,
        }
    }

    /// The keys of the records that a client has added after `completed` transactions.
    pub(super) fn keys(loaded: u64, client: Client, completed: u64) -> impl Iterator<Item = u64> {
        let first = first(loaded, client);
        (0..completed).map(move |n| first + n * client.count as u64)
    }
}

fn first(loaded: u64, client: Client) -> u64 {
    loaded + 1 + client.index as u64
}

impl Transaction for Write {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.prepared = Some(session.prepare(&self.rows.insert())?);
        Ok(())
    }

    #[inline]
    fn prepare_input(&mut self) {
        self.key = self.next;
        // Includes a failed transaction: the answer may have been lost after the record was stored.
        self.next += self.step;
        self.rows.data.write(self.key, LOADED, &mut self.data);
    }

    #[inline]
    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let parameters = [Value::Int(self.key as i64), text(&self.data)?];
        let prepared = self.prepared.as_ref().ok_or_else(no_session)?;
        session.execute(prepared, &parameters, &mut self.reply)
    }

    #[inline]
    fn check(&mut self) -> Result<()> {
        if self.reply.affected() != 1 {
            let (key, acknowledged) = (self.key, self.reply.affected());
            return Err(Error::mismatch(format!(
                "the server acknowledged {acknowledged} rows for added record {key}, expected 1"
            )));
        }
        self.written += 1;
        Ok(())
    }

    fn rows_written(&self) -> u64 {
        self.written
    }
}

impl Page for Write {
    fn render(&self, out: &mut Vec<u8>) {
        answer::record(self.key, &self.data, out);
    }
}
