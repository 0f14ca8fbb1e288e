use super::*;
use crate::{Hook, LOOPBACK, Relay, Socket, Way, forward_both, on_piece};
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// A certificate for `localhost` of this authority: the settings of its server, and of a client that trusts it.
fn configs(authority: &str) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, authority);
    let certificate = params.self_signed(&key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    // Who closes before they are read resets the connection.
    server.send_tls13_tickets = 0;
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    (Arc::new(server), Arc::new(client.with_root_certificates(roots).with_no_client_auth()))
}

fn client_of(config: &Arc<ClientConfig>) -> ClientConnection {
    ClientConnection::new(Arc::clone(config), ServerName::try_from("localhost").unwrap()).unwrap()
}

fn server_of(config: &Arc<ServerConfig>) -> ServerConnection {
    ServerConnection::new(Arc::clone(config)).unwrap()
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

/// Both ends of an encrypted connection.
fn encrypted() -> (Socket, Socket) {
    let (server, client) = configs("one");
    let (near, far) = pair();
    thread::scope(|scope| {
        let far = scope.spawn(|| {
            Socket::Plain(Stream::tcp(far).unwrap()).encrypt(server_of(&server), Vec::new()).unwrap()
        });
        let near = Socket::Plain(Stream::tcp(near).unwrap()).encrypt(client_of(&client), Vec::new()).unwrap();
        (near, far.join().unwrap())
    })
}

/// Much more than all buffers hold.
fn much(seed: u8) -> Vec<u8> {
    (0..20_000_000_u32).map(|n| (n / 7) as u8 ^ seed).collect()
}

#[test]
fn both_ends_send_much_before_they_read() {
    let (near, far) = encrypted();
    thread::scope(|scope| {
        for (end, own, other) in [(&near, 1, 2), (&far, 2, 1)] {
            let (mut reader, mut writer) = (end.handle(), end.handle());
            scope.spawn(move || {
                let bytes = much(own);
                // Keys change on the way, which is answered while the other direction is busy.
                for piece in bytes.chunks(bytes.len() / 4) {
                    writer.write_all(piece).unwrap();
                    let Socket::Tls(tls) = &writer else { panic!("it is not encrypted") };
                    lock(&tls.connection).refresh_traffic_keys().unwrap();
                }
                writer.shutdown(Shutdown::Write);
            });
            scope.spawn(move || {
                let mut received = Vec::new();
                reader.read_to_end(&mut received).unwrap();
                assert!(received == much(other), "{} bytes", received.len());
            });
        }
    });
}

#[test]
fn end_of_one_direction_leaves_the_other_open() {
    let (mut near, mut far) = encrypted();
    near.write_all(b"request").unwrap();
    near.shutdown(Shutdown::Write);
    let mut received = Vec::new();
    far.read_to_end(&mut received).unwrap();
    assert_eq!(received, b"request");
    // The end was said, so that the other end knows that nothing is missing.
    let Socket::Tls(tls) = &far else { panic!("it is not encrypted") };
    assert!(lock(&tls.connection).process_new_packets().unwrap().peer_has_closed());
    far.write_all(b"answer").unwrap();
    far.shutdown(Shutdown::Write);
    received.clear();
    near.read_to_end(&mut received).unwrap();
    assert_eq!(received, b"answer");
}

#[test]
fn end_without_a_word_is_an_end() {
    let (near, mut far) = encrypted();
    drop(near);
    assert_eq!(far.read(&mut [0]).unwrap(), 0);
}

#[test]
fn client_without_trust_tells_the_server_why() {
    let ((server, _), (_, stranger)) = (configs("one"), configs("another"));
    let (near, far) = pair();
    thread::scope(|scope| {
        let far =
            scope.spawn(|| Socket::Plain(Stream::tcp(far).unwrap()).encrypt(server_of(&server), Vec::new()));
        let error =
            Socket::Plain(Stream::tcp(near).unwrap()).encrypt(client_of(&stranger), Vec::new()).unwrap_err();
        let of_tls = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        assert!(matches!(of_tls, Some(rustls::Error::InvalidCertificate(_))), "{error:?}");
        let error = far.join().unwrap().unwrap_err();
        let of_tls = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        assert_eq!(of_tls, Some(&rustls::Error::AlertReceived(AlertDescription::UnknownCA)), "{error:?}");
    });
}

/// A hook that encrypts the client's side, whose handshake arrives with what was read before.
struct Encrypts(Arc<ServerConfig>);

impl Hook for Encrypts {
    fn serve(&self, mut client: Socket, server: Socket) {
        let mut early = vec![0; 100];
        let read = client.read(&mut early).unwrap();
        early.truncate(read);
        forward_both(self, client.encrypt(server_of(&self.0), early).unwrap(), server);
    }
}

#[test]
fn relay_between_an_encrypted_client_and_a_plain_server_forwards_both_and_their_ends() {
    let (server, client) = configs("one");
    let answers = |way: Way, piece: &mut [u8], ends: &mut crate::Ends| match way {
        Way::ToServer => ends.from.write_all(piece),
        Way::ToClient => ends.to.write_all(piece),
    };
    // An echo: what the first relay forwards, the second sends back.
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let echo =
        Relay::start(LOOPBACK, listener.local_addr().unwrap().into(), move |_| on_piece(answers)).unwrap();
    let relay = Relay::start(LOOPBACK, echo.address().into(), move |_| {
        Arc::new(Encrypts(Arc::clone(&server))) as Arc<dyn Hook>
    });
    let relay = relay.unwrap();
    let near = Socket::connect(&relay.address().into()).unwrap();
    let mut near = near.encrypt(client_of(&client), Vec::new()).unwrap();
    let (sent, mut writer) = (much(3), near.handle());
    thread::scope(|scope| {
        let sent = &sent;
        scope.spawn(move || writer.write_all(sent).unwrap());
        let mut received = vec![0; sent.len()];
        near.read_exact(&mut received).unwrap();
        assert!(received == *sent);
    });
    let (far, _) = listener.accept().unwrap();
    near.shutdown(Shutdown::Write);
    let mut far = Socket::Plain(Stream::tcp(far).unwrap());
    assert_eq!(far.read(&mut [0]).unwrap(), 0, "the client's end is forwarded");
    drop(far);
    assert_eq!(near.read(&mut [0]).unwrap(), 0, "and the server's");
}
