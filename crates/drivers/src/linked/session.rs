//! Says in an error on which of two servers it happened.

use super::role;
use crate::members::Members;
use crate::prelude::*;
use kurabe_core::interceptor::Interceptor;
use kurabe_core::remote::{RemoteCollection, RemoteServer};
use std::time::Duration;

/// Time for a remote to answer after an error.
const PATIENCE: Duration = Duration::from_secs(2);

/// Adds to errors of operations on remote and linked collections which server they concern.
pub(super) struct Explain {
    remotes: Members,
    /// Prepared operations on such collections: the handle, the remote, and whether it is reached by a link.
    prepared: Vec<(usize, RemoteServer, bool)>,
}

impl Explain {
    pub(super) fn new(remotes: Members) -> Self {
        Self { remotes, prepared: Vec::new() }
    }

    #[cold]
    fn explained(&self, error: Error, server: RemoteServer, linked: bool) -> Error {
        let role = role(server);
        // Only errors of servers and of connections have an end.
        let of_an_end = matches!(
            error.kind(),
            ErrorKind::Server
                | ErrorKind::ConnectionLost
                | ErrorKind::Timeout
                | ErrorKind::Unreachable
                | ErrorKind::Denied
                | ErrorKind::NotFound
                | ErrorKind::Limit
        );
        if !of_an_end {
            return error;
        }
        if !linked {
            return error.context(role);
        }
        let remote = self.remotes.iter().find(|remote| remote.name == server.name());
        let asked = remote.map(|remote| remote.driver.connect(&ConnectOptions::within(PATIENCE)));
        match asked {
            Some(Err(why)) => error.context(format!("the link to {role}, which does not answer ({why})")),
            Some(Ok(session)) => {
                let _ = session.close();
                error.context(format!("the link to {role}, which answers"))
            }
            None => error.context(format!("the link to {role}")),
        }
    }
}

impl Interceptor for Explain {
    fn prepare(&mut self, inner: &mut dyn Session, operation: &Operation) -> Result<Prepared> {
        let remote = operation.collection().and_then(|collection| collection.remote.as_ref());
        let Some(RemoteCollection { server, link }) = remote else { return inner.prepare(operation) };
        let linked = link.is_some();
        let prepared = inner.prepare(operation).map_err(|error| self.explained(error, *server, linked))?;
        self.prepared.push((prepared.0, *server, linked));
        Ok(prepared)
    }

    fn execute(
        &mut self,
        inner: &mut dyn Session,
        prepared: &Prepared,
        parameters: &[Value<'_>],
        out: &mut Reply,
    ) -> Result<()> {
        let done = inner.execute(prepared, parameters, out);
        let known = || self.prepared.iter().find(|(handle, ..)| *handle == prepared.0);
        match done {
            Err(error) => Err(match known() {
                Some((_, server, linked)) => self.explained(error, *server, *linked),
                None => error,
            }),
            Ok(()) => Ok(()),
        }
    }

    fn release(&mut self, inner: &mut dyn Session, prepared: Prepared) -> Result<()> {
        self.prepared.retain(|(handle, ..)| *handle != prepared.0);
        inner.release(prepared)
    }
}
