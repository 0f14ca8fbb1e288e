//! How a transaction makes its request: with a statement that is prepared once or for each request, or with literals
//! in the text.

use crate::prelude::*;
use kurabe_core::raw::{RawPiece, RawStatement, RawText};

/// When a statement is prepared, if at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bind {
    /// Once for each connection.
    Once,
    /// For every request, and closed after it.
    PerRequest,
    /// Never: the values are literals in the text.
    Literal,
    /// In one round trip, without state left on the connection: as [`Bind::Literal`] if the database has statements.
    /// Without statements, preparing sends nothing.
    InOne,
}

impl Bind {
    /// The way that an axis value names.
    pub(crate) fn parse(word: &str) -> Result<Self> {
        match word {
            "once" => Ok(Self::Once),
            "per-request" => Ok(Self::PerRequest),
            "literal" => Ok(Self::Literal),
            other => Err(Error::new(ErrorKind::Internal, format!("unknown way to bind '{other}'"))),
        }
    }
}

/// Text of standard SQL, the same for all engines.
pub(crate) fn raw(place: &str, pieces: Vec<RawPiece>) -> Operation {
    raw_texts(place, [(None, pieces)])
}

/// A statement with texts for these engines; `None`: for all others.
pub(crate) fn raw_texts<const N: usize>(place: &str, texts: [(Option<&str>, Vec<RawPiece>); N]) -> Operation {
    let text =
        |(engine, pieces): (Option<&str>, _)| RawText { engine: engine.map(ToOwned::to_owned), pieces };
    let texts = texts.map(text).into();
    let statement = RawStatement { place: place.to_owned(), texts, parameters: 0, collection: None };
    Operation::Raw { statement: Arc::new(statement) }
}

pub(crate) struct Statement {
    pub(crate) operation: Operation,
    bind: Bind,
    prepared: Option<Prepared>,
}

impl Statement {
    pub(crate) fn new(operation: Operation, bind: Bind) -> Self {
        Self { operation, bind, prepared: None }
    }

    /// Prepares it on a new connection.
    pub(crate) fn attach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.prepared = match self.bind {
            Bind::Once => Some(session.prepare(&self.operation)?),
            Bind::Literal => Some(session.prepare_literal(&self.operation)?),
            Bind::InOne => match session.prepare_literal(&self.operation) {
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    Some(session.prepare(&self.operation)?)
                }
                prepared => Some(prepared?),
            },
            Bind::PerRequest => None,
        };
        Ok(())
    }

    /// Prepares it as [`attach`](Self::attach) does, or, where the server refuses, when it is first executed: what it names may
    /// not exist before, as a temporary table does not.
    pub(crate) fn attach_or_defer(&mut self, session: &mut dyn Session) -> Result<()> {
        match self.attach(session) {
            Err(error) if self.bind == Bind::Once && error.server_code().is_some() => Ok(()),
            attached => attached,
        }
    }

    /// Whether it is yet to be prepared on a connection.
    pub(crate) fn is_deferred(&self) -> bool {
        self.bind == Bind::Once && self.prepared.is_none()
    }

    /// Closes the prepared statement of a connection.
    pub(crate) fn detach(&mut self, session: &mut dyn Session) -> Result<()> {
        self.prepared.take().map_or(Ok(()), |prepared| session.release(prepared))
    }

    #[inline]
    pub(crate) fn execute(
        &self,
        session: &mut dyn Session,
        parameters: &[Value<'_>],
        reply: &mut Reply,
    ) -> Result<()> {
        if let Some(prepared) = &self.prepared {
            return session.execute(prepared, parameters, reply);
        }
        let prepared = session.prepare(&self.operation)?;
        session.execute(&prepared, parameters, reply)?;
        session.release(prepared)
    }

    /// Sends a request for each of these replies before it reads the first. The statement is prepared once.
    pub(crate) fn pipeline(
        &self,
        session: &mut dyn Session,
        parameters: &[Value<'_>],
        replies: &mut [Reply],
    ) -> Result<()> {
        let not_attached = || Error::new(ErrorKind::Internal, "the transaction has no session");
        session.pipeline(self.prepared.as_ref().ok_or_else(not_attached)?, parameters, replies)
    }
}

/// Keeps a vector's memory for the next values, which have another lifetime. `collect` reuses the allocation.
pub(crate) fn recycle(mut values: Vec<Value<'_>>) -> Vec<Value<'static>> {
    values.clear();
    values.into_iter().map(|_| Value::Null).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused() {
        let text = String::from("another value");
        let values = vec![Value::Text(&text); 8];
        let (at, room) = (values.as_ptr() as usize, values.capacity());
        let again = recycle(values);
        assert_eq!((again.as_ptr() as usize, again.capacity(), again.len()), (at, room, 0));
    }
}
