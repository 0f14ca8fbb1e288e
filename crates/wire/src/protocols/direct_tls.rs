//! TLS from the first byte of a connection, as of `rediss:`.

use crate::tls::{Act, TlsStart, begins_with_tls};
use kurabe_relay::Way;

/// Looks whether the client begins with TLS.
#[derive(Default)]
pub(crate) struct DirectStart {
    /// The first bytes, as long as they may be those of TLS.
    held: Vec<u8>,
}

impl TlsStart for DirectStart {
    fn sent(&mut self, bytes: &[u8], acts: &mut Vec<Act>) {
        self.held.extend_from_slice(bytes);
        let Some(is_tls) = begins_with_tls(&self.held) else { return };
        let held = std::mem::take(&mut self.held);
        if is_tls {
            acts.push(Act::Encrypt { answer: Vec::new(), client: held, server: Vec::new() });
        } else {
            acts.extend([Act::Forward(Way::ToServer, held), Act::Plain]);
        }
    }

    fn received(&mut self, bytes: &[u8], acts: &mut Vec<Act>) {
        let held = std::mem::take(&mut self.held);
        acts.extend([
            Act::Forward(Way::ToClient, bytes.to_vec()),
            Act::Forward(Way::ToServer, held),
            Act::Plain,
        ]);
    }
}
