//! Tests of where TLS begins, in pieces of any size.

use crate::registry;
use crate::tls::Act;
use kurabe_relay::Way;
use proptest::prelude::*;

/// What a relay that ends TLS does about a conversation in pieces of this size: whether the client speaks, and what it says.
fn begun(scheme: &str, conversation: &[(bool, &[u8])], piece: usize) -> Vec<Act> {
    let mut start = (registry::of_scheme(scheme).unwrap().start)();
    let mut acts: Vec<Act> = Vec::new();
    for (is_client, bytes) in conversation {
        for piece in bytes.chunks(piece) {
            if matches!(acts.last(), Some(Act::Plain | Act::Encrypt { .. })) {
                return joined(acts);
            }
            if *is_client { start.sent(piece, &mut acts) } else { start.received(piece, &mut acts) }
        }
    }
    joined(acts)
}

/// The same with all that is forwarded in a row in one act.
fn joined(acts: Vec<Act>) -> Vec<Act> {
    let mut joined: Vec<Act> = Vec::new();
    for act in acts {
        match (joined.last_mut(), act) {
            (_, Act::Forward(_, bytes)) if bytes.is_empty() => {}
            (Some(Act::Forward(before, all)), Act::Forward(way, bytes)) if *before == way => {
                all.extend(bytes);
            }
            (_, act) => joined.push(act),
        }
    }
    joined
}

const SSL_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
const GSS_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x30";

#[test]
fn tls_begins_as_each_protocol_has_it() {
    use Act::{Encrypt, Forward, Plain, Tell};
    use Way::{ToClient, ToServer};
    let (start, hello) = (&b"\0\0\0\x09\0\x03\0\0\0"[..], &b"\x16\x03\x01\x02\x00\x01"[..]);
    let no = || Tell(ToClient, b"N".to_vec());
    let ask = || Tell(ToServer, SSL_REQUEST.to_vec());
    let greeting = &b"\x0a\0\0\0\x0a8.0\0\x01\0\0\0a"[..];
    let mut request = vec![32, 0, 0, 1, 0, 0x0a, 0, 0];
    request.resize(36, 0);
    let mut without = request.clone();
    without[5] = 0x02;
    let login = [&[40, 0, 0, 1, 0, 0x0a, 0, 0][..], &[0; 36]].concat();
    let encrypt = |answer: &[u8]| Encrypt { answer: answer.to_vec(), client: Vec::new(), server: Vec::new() };
    for piece in [1, 3, usize::MAX] {
        let acts = |scheme, conversation: &[(bool, &[u8])]| begun(scheme, conversation, piece);
        assert_eq!(
            acts("postgres", &[(true, GSS_REQUEST), (true, SSL_REQUEST), (false, b"S")]),
            [no(), ask(), encrypt(b"S")]
        );
        assert_eq!(
            acts("postgres", &[(true, SSL_REQUEST), (false, b"N"), (true, start)]).first_chunk(),
            Some(&[ask(), no()])
        );
        let refused = acts("postgres", &[(true, SSL_REQUEST), (false, b"E\0\0\0\x04")]);
        assert_eq!((&refused[0], refused.last()), (&ask(), Some(&Plain)));
        // Whoever speaks without asking is in plain text, to the last byte.
        let plain = acts("postgres", &[(true, start)]);
        assert!(
            matches!(&plain[..], [Forward(ToServer, bytes), Plain] if start.starts_with(bytes)),
            "{plain:?}"
        );
        let acts = |client: &[u8]| begun("mysql", &[(false, greeting), (true, client)], piece);
        let greeted = || Forward(ToClient, greeting.to_vec());
        assert_eq!(acts(&request), [greeted(), Tell(ToServer, request.clone()), encrypt(b"")]);
        assert_eq!(acts(&without), [greeted(), Forward(ToServer, without.clone()), Plain]);
        let plain = acts(&login);
        assert!(
            matches!(&plain[1..], [Forward(ToServer, bytes), Plain] if login.starts_with(bytes)),
            "{plain:?}"
        );
        let acts = |client: &[u8]| begun("redis", &[(true, client)], piece);
        let of_hello = Encrypt { answer: Vec::new(), client: hello.to_vec(), server: Vec::new() };
        assert_eq!(acts(hello), [of_hello]);
        assert!(
            matches!(&acts(b"PING\r\n")[..], [Forward(ToServer, bytes), Plain] if b"PING\r\n".starts_with(bytes))
        );
    }
    // A client of MySQL does not wait before it begins its handshake.
    let both = [&request, hello].concat();
    let acts = begun("mysql", &[(true, &both)], usize::MAX);
    assert_eq!(acts[1], Encrypt { answer: Vec::new(), client: hello.to_vec(), server: Vec::new() });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// What the client sent goes to the server, or begins TLS, or is still held: nothing else is, and nothing twice.
    #[test]
    fn no_byte_of_the_client_is_lost(asks in any::<bool>(), bytes in prop::collection::vec(any::<u8>(), 0..80), piece in 1_usize..40) {
        for (scheme, request) in [("postgres", SSL_REQUEST), ("mysql", &b"\x20\0\0\x01\0\x0a\0\0"[..]), ("redis", b"\x16\x03\x01")] {
            let sent = [if asks { request } else { &[] }, &bytes[..]].concat();
            let mut start = (registry::of_scheme(scheme).unwrap().start)();
            let (mut acts, mut given) = (Vec::new(), 0);
            for piece in sent.chunks(piece) {
                start.sent(piece, &mut acts);
                given += piece.len();
                if matches!(acts.last(), Some(Act::Plain | Act::Encrypt { .. })) {
                    break;
                }
            }
            let mut passed = Vec::new();
            for act in &acts {
                match act {
                    Act::Tell(Way::ToServer, bytes) | Act::Forward(Way::ToServer, bytes) => passed.extend_from_slice(bytes),
                    Act::Encrypt { client, .. } => passed.extend_from_slice(client),
                    _ => {}
                }
            }
            prop_assert!(sent.starts_with(&passed));
            let is_over = matches!(acts.last(), Some(Act::Plain | Act::Encrypt { .. }));
            prop_assert!(!is_over || passed.len() == given, "{scheme}: {acts:?}");
        }
    }
}
