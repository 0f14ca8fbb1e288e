//! The request for encryption before PostgreSQL's first message. The relay refuses it, as a server without TLS does, or has
//! TLS end at itself.

use crate::decoder::{Act, TlsRefusal, TlsStart};
use kurabe_protocol::postgres::frame::{GSS_REQUEST, SSL_REQUEST};
use kurabe_relay::Way;

/// The length of a request for encryption, in bytes.
const LENGTH: u32 = 8;

/// The request for the encryption with this number.
fn request(code: u32) -> Vec<u8> {
    [LENGTH.to_be_bytes(), code.to_be_bytes()].concat()
}

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
            let requests = [SSL_REQUEST, GSS_REQUEST].map(request);
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

/// Passes the request for TLS and its answer on, and refuses encryption by GSSAPI, which the relay could not end.
#[derive(Default)]
pub(crate) struct PostgresStart {
    /// What the client sent, as long as it may be a request; once the server was asked, what follows the request.
    held: Vec<u8>,
    asked: bool,
}

impl TlsStart for PostgresStart {
    fn sent(&mut self, bytes: &[u8], acts: &mut Vec<Act>) {
        self.held.extend_from_slice(bytes);
        self.look(acts);
    }

    fn received(&mut self, bytes: &[u8], acts: &mut Vec<Act>) {
        match bytes.split_first() {
            Some((b'S', rest)) if self.asked => {
                let client = std::mem::take(&mut self.held);
                acts.push(Act::Encrypt { answer: b"S".to_vec(), client, server: rest.to_vec() });
            }
            Some((b'N', [])) if self.asked => {
                self.asked = false;
                acts.push(Act::Tell(Way::ToClient, b"N".to_vec()));
                self.look(acts);
            }
            // An error, such as that there are too many clients.
            _ => {
                acts.push(Act::Forward(Way::ToClient, bytes.to_vec()));
                self.plain(acts);
            }
        }
    }
}

impl PostgresStart {
    fn look(&mut self, acts: &mut Vec<Act>) {
        let (tls, gss) = (request(SSL_REQUEST), request(GSS_REQUEST));
        while !self.asked {
            if self.held.starts_with(&gss) {
                self.held.drain(..gss.len());
                acts.push(Act::Tell(Way::ToClient, b"N".to_vec()));
            } else if self.held.starts_with(&tls) {
                self.held.drain(..tls.len());
                self.asked = true;
                acts.push(Act::Tell(Way::ToServer, tls.clone()));
            } else if tls.starts_with(&self.held) || gss.starts_with(&self.held) {
                return;
            } else {
                return self.plain(acts);
            }
        }
    }

    fn plain(&mut self, acts: &mut Vec<Act>) {
        acts.push(Act::Forward(Way::ToServer, std::mem::take(&mut self.held)));
        acts.push(Act::Plain);
    }
}
