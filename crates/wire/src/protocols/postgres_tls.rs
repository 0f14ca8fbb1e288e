//! The request for encryption before PostgreSQL's first message. The relay refuses it, as a server without TLS does, or has
//! TLS end at itself.

use crate::tls::{Act, TlsRefusal, TlsStart, plain};
use kurabe_protocol::postgres::frame::{GSS_REQUEST, SSL_REQUEST, Start};
use kurabe_protocol::{Found, Header as _};
use kurabe_relay::Way;

/// Takes a request for encryption from the front: its code. [`Found::Invalid`] if there is none.
fn take_request(held: &mut Vec<u8>) -> Found<u32> {
    match Start::find(held) {
        Found::Header(start) if start.body() == 0 && matches!(start.code, SSL_REQUEST | GSS_REQUEST) => {
            held.drain(..Start::LENGTH);
            Found::Header(start.code)
        }
        Found::Header(_) | Found::Invalid(_) => Found::Invalid(0),
        Found::Need(length) => Found::Need(length),
    }
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
        self.held.extend_from_slice(bytes);
        while !self.over {
            match take_request(&mut self.held) {
                Found::Need(_) => return,
                Found::Invalid(_) => self.over = true,
                Found::Header(_) => {
                    self.refused = true;
                    to_client.push(b'N');
                }
            }
        }
        to_server.append(&mut self.held);
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
                plain(std::mem::take(&mut self.held), acts);
            }
        }
    }
}

impl PostgresStart {
    fn look(&mut self, acts: &mut Vec<Act>) {
        while !self.asked {
            match take_request(&mut self.held) {
                Found::Need(_) => return,
                Found::Invalid(_) => return plain(std::mem::take(&mut self.held), acts),
                Found::Header(SSL_REQUEST) => {
                    self.asked = true;
                    let request = [8_u32.to_be_bytes(), SSL_REQUEST.to_be_bytes()].concat();
                    acts.push(Act::Tell(Way::ToServer, request));
                }
                Found::Header(_) => acts.push(Act::Tell(Way::ToClient, b"N".to_vec())),
            }
        }
    }
}
