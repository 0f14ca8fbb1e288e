//! Clients that send several requests before they read the answers: the same reads and changes, in the same order.

use super::{Keys, Store};
use crate::defect::no_session;
use crate::fill::text;
use crate::prelude::*;
use crate::rows::{LOADED, acknowledged_change};
use crate::statement::recycle;

/// The rows that a client requests.
pub(super) enum Draws {
    /// Reads uniformly drawn rows.
    Read(Rng),
    /// Changes the client's own rows.
    Write(Keys),
}

/// One statement, several times in a batch.
pub(super) struct Pipelined {
    store: Arc<Store>,
    draws: Draws,
    prepared: Option<Prepared>,
    /// The key of each request, and the data that it writes.
    rows: Vec<(u64, Vec<u8>)>,
    replies: Vec<Reply>,
    parameters: Vec<Value<'static>>,
    written: u64,
}

impl Pipelined {
    pub(super) fn new(store: &Arc<Store>, depth: usize, draws: Draws) -> Self {
        Self {
            store: Arc::clone(store),
            draws,
            prepared: None,
            rows: vec![(0, Vec::new()); depth],
            replies: (0..depth).map(|_| Reply::new()).collect(),
            parameters: Vec::with_capacity(depth * 2),
            written: 0,
        }
    }
}

impl Transaction for Pipelined {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        let operation = match self.draws {
            Draws::Read(_) => self.store.select(),
            Draws::Write(_) => self.store.update(),
        };
        self.prepared = Some(session.prepare(&operation)?);
        Ok(())
    }

    fn prepare_input(&mut self) {
        for (key, data) in &mut self.rows {
            match &mut self.draws {
                Draws::Read(rng) => *key = 1 + rng.below(self.store.records),
                Draws::Write(keys) => {
                    let Some((own, version)) = keys.next() else { continue };
                    *key = own;
                    self.store.data.write(own, version, data);
                }
            }
        }
    }

    #[inline]
    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let prepared = self.prepared.as_ref().ok_or_else(no_session)?;
        let mut parameters: Vec<Value<'_>> = std::mem::take(&mut self.parameters);
        for (key, data) in &self.rows {
            if matches!(self.draws, Draws::Write(_)) {
                parameters.push(text(data)?);
            }
            parameters.push(Value::Int(*key as i64));
        }
        let done = session.pipeline(prepared, &parameters, &mut self.replies);
        self.parameters = recycle(parameters);
        done
    }

    fn check(&mut self) -> Result<()> {
        for ((key, _), reply) in self.rows.iter().zip(&self.replies) {
            match self.draws {
                Draws::Read(_) => self.store.check(*key, LOADED, reply)?,
                Draws::Write(_) => {
                    acknowledged_change(reply, *key)?;
                    self.written += 1;
                }
            }
        }
        Ok(())
    }

    fn rows_written(&self) -> u64 {
        self.written
    }
}
