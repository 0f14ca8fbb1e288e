//! The request for encryption before PostgreSQL's first message. The relay refuses it, as a server without TLS does.

use super::postgres::{GSS_REQUEST, SSL_REQUEST};
use crate::decoder::TlsRefusal;

/// The length of a request for encryption, in bytes.
const LENGTH: u32 = 8;

/// Answers requests for TLS and GSSAPI encryption with `N`.
#[derive(Default)]
pub(crate) struct PostgresTls {
    /// The first bytes, as long as they may be such a request.
    held: Vec<u8>,
    over: bool,
    refused: bool,
}

impl TlsRefusal for PostgresTls {
    fn sent(&mut self, bytes: &[u8], to_server: &mut Vec<u8>, to_client: &mut Vec<u8>) {
        for (n, byte) in bytes.iter().enumerate() {
            if self.over {
                to_server.extend_from_slice(bytes.get(n..).unwrap_or_default());
                return;
            }
            self.held.push(*byte);
            let requests =
                [SSL_REQUEST, GSS_REQUEST].map(|code| [LENGTH.to_be_bytes(), code.to_be_bytes()].concat());
            if requests.contains(&self.held) {
                self.held.clear();
                self.refused = true;
                to_client.push(b'N');
            } else if !requests.iter().any(|request| request.starts_with(&self.held)) {
                self.over = true;
                to_server.append(&mut self.held);
            }
        }
    }

    fn has_refused(&self) -> bool {
        self.refused
    }
}
