//! Clients that send several requests before they read the answers: the same reads and changes, in the same order.

use super::store::Store;
use super::transaction::{Keys, one_changed};
use crate::defect::no_session;
use crate::fill::text;
use crate::parameters::recycle;
use crate::prelude::*;
use crate::rows::LOADED;

/// One statement, several times in a batch.
struct Batch {
    operation: Operation,
    prepared: Option<Prepared>,
    replies: Vec<Reply>,
    parameters: Vec<Value<'static>>,
}

impl Batch {
    fn new(operation: Operation, depth: usize) -> Self {
        let parameters = Vec::with_capacity(depth * operation.parameters());
        Self { operation, prepared: None, replies: (0..depth).map(|_| Reply::new()).collect(), parameters }
    }

    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.prepared = Some(session.prepare(&self.operation)?);
        Ok(())
    }

    #[inline]
    fn execute<'v>(
        &mut self,
        session: &mut dyn Session,
        fill: impl FnOnce(&mut Vec<Value<'v>>) -> Result<()>,
    ) -> Result<()> {
        let Some(prepared) = &self.prepared else {
            return Err(no_session());
        };
        let mut parameters: Vec<Value<'v>> = std::mem::take(&mut self.parameters);
        let done =
            fill(&mut parameters).and_then(|()| session.pipeline(prepared, &parameters, &mut self.replies));
        self.parameters = recycle(parameters);
        done
    }
}

/// Reads uniformly drawn rows.
pub(super) struct ReadMany {
    store: Arc<Store>,
    batch: Batch,
    rng: Rng,
    keys: Vec<u64>,
}

impl ReadMany {
    pub(super) fn new(store: &Arc<Store>, depth: usize, client: Client) -> Self {
        Self {
            store: Arc::clone(store),
            batch: Batch::new(store.select(), depth),
            rng: Rng::new(client.seed),
            keys: vec![0; depth],
        }
    }
}

impl Transaction for ReadMany {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.batch.attach(session)
    }

    fn prepare_input(&mut self) {
        for key in &mut self.keys {
            *key = 1 + self.rng.below(self.store.records);
        }
    }

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let keys = &self.keys;
        self.batch.execute(session, |parameters| {
            parameters.extend(keys.iter().map(|key| Value::Int(*key as i64)));
            Ok(())
        })
    }

    fn check(&mut self) -> Result<()> {
        let mut answers = self.keys.iter().zip(&self.batch.replies);
        answers.try_for_each(|(key, reply)| self.store.check(*key, LOADED, reply))
    }
}

/// Changes the client's own rows, in the same order as without pipelining.
pub(super) struct WriteMany {
    store: Arc<Store>,
    batch: Batch,
    source: Keys,
    rows: Vec<(u64, Vec<u8>)>,
    written: u64,
}

impl WriteMany {
    pub(super) fn new(store: &Arc<Store>, depth: usize, client: Client) -> Self {
        Self {
            store: Arc::clone(store),
            batch: Batch::new(store.update(), depth),
            source: Keys::new(store.records, client),
            rows: vec![(0, Vec::new()); depth],
            written: 0,
        }
    }
}

impl Transaction for WriteMany {
    fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.batch.attach(session)
    }

    fn prepare_input(&mut self) {
        for (key, data) in &mut self.rows {
            let (drawn, version) = self.source.draw();
            *key = drawn;
            self.store.data.write(drawn, version, data);
        }
    }

    fn run(&mut self, session: &mut dyn Session) -> Result<()> {
        let rows = &self.rows;
        self.batch.execute(session, |parameters| {
            for (key, data) in rows {
                parameters.extend([text(data)?, Value::Int(*key as i64)]);
            }
            Ok(())
        })
    }

    fn check(&mut self) -> Result<()> {
        for ((key, _), reply) in self.rows.iter().zip(&self.batch.replies) {
            one_changed(*key, reply)?;
            self.written += 1;
        }
        Ok(())
    }

    fn rows_written(&self) -> u64 {
        self.written
    }
}
