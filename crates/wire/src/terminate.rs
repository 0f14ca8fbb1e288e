//! TLS that ends at the relay, on both sides: the client's with a certificate that was made for it, the server's as the
//! target's URL asks for.

use crate::tls::{Act, TlsStart};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_relay::{Ends, Hook, Socket, Way};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// The size of a piece, in bytes.
const PIECE: usize = 16 * 1024;
/// What a client may send before it is known whether it uses TLS, in bytes: more than any request for it and handshake.
const LONGEST: usize = 128 * 1024;

#[derive(Clone, Debug)]
pub struct Terminator {
    to_server: Arc<ClientConfig>,
    name: ServerName<'static>,
    to_client: Arc<ServerConfig>,
}

/// The relay's own certificate and its private key (PEM).
#[derive(Clone, Copy)]
pub struct Certificate<'a> {
    pub certificate: &'a str,
    pub key: &'a str,
}

/// Why a connection could not be relayed.
#[derive(Debug)]
pub enum Failure {
    /// The server is not trusted, or does not agree.
    Server(Error),
    /// The client does not trust the relay, or does not agree.
    Client(Error),
    /// One of them has closed, or cannot be reached.
    Lost(io::Error),
}

/// Both ends of a connection, and whether they are encrypted.
#[derive(Debug)]
pub struct Begun {
    pub client: Socket,
    pub server: Socket,
    pub is_encrypted: bool,
}

impl Terminator {
    /// With the server of this host, whose certificate is checked as `to_server` says.
    ///
    /// # Errors
    /// If the host can have no certificate, or the relay's own certificate cannot be read.
    pub fn new(to_server: Arc<ClientConfig>, host: &str, own: Certificate<'_>) -> Result<Self> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Error::usage(format!("'{host}' cannot be a TLS server's name")))?;
        let wrong = |why: &dyn Display| {
            Error::new(ErrorKind::Internal, format!("the certificate of the capture cannot be used: {why}"))
        };
        let chain = vec![CertificateDer::from_pem_slice(own.certificate.as_bytes()).map_err(|e| wrong(&e))?];
        let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).map_err(|e| wrong(&e))?;
        let mut to_client = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|e| wrong(&e))?;
        // A client that closes at once would not read them.
        to_client.send_tls13_tickets = 0;
        Ok(Self { to_server, name, to_client: Arc::new(to_client) })
    }

    /// Follows a connection until it is known whether it uses TLS, and encrypts both sides if it does. What is in plain text
    /// until then passes [`Hook::piece`].
    ///
    /// # Errors
    /// If one of both does not agree. The connection is closed then.
    pub fn begin(
        &self,
        mut start: Box<dyn TlsStart>,
        hook: &dyn Hook,
        client: Socket,
        server: Socket,
    ) -> Result<Begun, Failure> {
        let ends = |from: &Socket, to: &Socket| Ends { from: from.handle(), to: to.handle() };
        let mut ends = [ends(&client, &server), ends(&server, &client)];
        let place = |way: Way| usize::from(way == Way::ToClient);
        let (mut piece, mut acts, mut sent) = (vec![0; PIECE], Vec::new(), 0);
        loop {
            let way = Socket::wait(&client, &server).map_err(Failure::Lost)?;
            let read = match ends[place(way)].from.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(Failure::Lost)?,
            };
            let bytes = piece.get(..read).unwrap_or_default();
            match way {
                // Either has ended: that is forwarded as any other end.
                _ if bytes.is_empty() => acts.push(Act::Plain),
                Way::ToServer => start.sent(bytes, &mut acts),
                Way::ToClient => start.received(bytes, &mut acts),
            }
            sent += if way == Way::ToServer { read } else { 0 };
            if sent > LONGEST {
                let what = "a client sent much before it was known whether it uses TLS";
                return Err(Failure::Client(Error::new(ErrorKind::Protocol, what)));
            }
            for act in acts.drain(..) {
                let done = match act {
                    Act::Tell(way, bytes) => ends[place(way)].to.write_all(&bytes),
                    Act::Forward(_, bytes) if bytes.is_empty() => Ok(()),
                    Act::Forward(way, mut bytes) => hook.piece(way, &mut bytes, &mut ends[place(way)]),
                    Act::Plain => return Ok(Begun { client, server, is_encrypted: false }),
                    Act::Encrypt { answer, client: early, server: early_of_server } => {
                        return self.encrypt((client, early), (server, early_of_server), &answer);
                    }
                };
                done.map_err(Failure::Lost)?;
            }
        }
    }

    /// Encrypts the server's side, and then the client's: a client whose server is not trusted gets nothing.
    fn encrypt(
        &self,
        (mut client, from_client): (Socket, Vec<u8>),
        (server, from_server): (Socket, Vec<u8>),
        answer: &[u8],
    ) -> Result<Begun, Failure> {
        let internal =
            |error: rustls::Error| Failure::Lost(io::Error::other(format!("no TLS session: {error}")));
        let session =
            ClientConnection::new(Arc::clone(&self.to_server), self.name.clone()).map_err(internal)?;
        let server = server.encrypt(session, from_server).map_err(|error| of_server(&error))?;
        client.write_all(answer).map_err(Failure::Lost)?;
        let session = ServerConnection::new(Arc::clone(&self.to_client)).map_err(internal)?;
        let client = client.encrypt(session, from_client).map_err(|error| of_client(&error))?;
        Ok(Begun { client, server, is_encrypted: true })
    }
}

/// The error of TLS in an error of a socket.
fn of_tls(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn of_server(error: &io::Error) -> Failure {
    let (kind, what) = match of_tls(error) {
        Some(rustls::Error::InvalidCertificate(why)) => {
            let text = format!("the server's certificate is not trusted: {why}");
            return Failure::Server(Error::new(ErrorKind::Denied, text).hint(
                "name the authority that signed it with ca=FILE in the target's URL (sslrootcert=FILE with sslmode=, ssl-ca=FILE \
                 with ssl-mode=), and the host as the certificate has it; the server's administrator knows both",
            ));
        }
        Some(error) => (ErrorKind::Protocol, error.to_string()),
        None if error.kind() == io::ErrorKind::WouldBlock => {
            (ErrorKind::Timeout, "it does not answer".to_owned())
        }
        None => (ErrorKind::ConnectionLost, error.to_string()),
    };
    Failure::Server(Error::new(kind, format!("no TLS with the server: {what}")))
}

fn of_client(error: &io::Error) -> Failure {
    use rustls::AlertDescription as Alert;
    const DISTRUST: [Alert; 9] = [
        Alert::UnknownCA,
        Alert::BadCertificate,
        Alert::UnsupportedCertificate,
        Alert::CertificateRevoked,
        Alert::CertificateExpired,
        Alert::CertificateUnknown,
        Alert::AccessDenied,
        // An authority of this name with another key, such as that of another capture.
        Alert::DecryptError,
        Alert::UserCanceled,
    ];
    let what = match of_tls(error) {
        Some(rustls::Error::AlertReceived(alert)) if DISTRUST.contains(alert) => {
            format!("a client does not trust the certificate of this capture (its alert: {alert:?})")
        }
        Some(error) => format!("no TLS with a client: {error}"),
        None if error.kind() == io::ErrorKind::WouldBlock => {
            "a client did not go on with the handshake of TLS".to_owned()
        }
        None => {
            "a client ended the handshake of TLS; it may not trust the certificate of this capture".to_owned()
        }
    };
    Failure::Client(Error::new(ErrorKind::Protocol, what))
}
