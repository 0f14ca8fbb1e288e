//! Answers of a script: any bytes are an answer or an error.

use super::*;
use crate::wire::script::{Parts, Script};
use kurabe_core::ErrorKind::{ConnectionLost, Protocol};

/// An `OP_MSG` that answers a request.
fn answer(answers: i32, document: &[u8]) -> Vec<u8> {
    let length = (HEAD + document.len()) as i32;
    let words = [length, 9, answers, 2013, 0].map(i32::to_le_bytes).concat();
    [&words[..], &[0], document].concat()
}

fn client(answers: Vec<u8>, piece: usize) -> Client<Script> {
    Client::new(Wire::new(Script::in_pieces(answers, piece)))
}

fn ping(client: &mut Client<Script>) -> Result<Document> {
    client
        .run(|out| {
            out.int("ping", 1);
        })
        .map(Raw::to_owned)
}

/// Has the server send more.
fn send(client: &mut Client<Script>, bytes: &[u8]) {
    client.wire.stream_mut().answers.get_mut().extend_from_slice(bytes);
}

#[test]
fn answer_in_pieces_of_any_size_is_read() {
    let document = ::bson::doc! { "data": "x".repeat(40_000), "ok": 1.0 }.to_vec().unwrap();
    for piece in [1, 7, 16, 1_000, 100_000] {
        let mut client = client(Vec::new(), piece);
        for number in 1..3 {
            send(&mut client, &answer(number, &document));
            assert_eq!(ping(&mut client).unwrap().raw().text("data").map(str::len), Some(40_000), "{piece}");
        }
        assert_eq!(ping(&mut client).unwrap_err().kind(), ConnectionLost);
    }
}

#[test]
fn cut_answer_ends_the_connection_and_an_error_of_the_server_does_not() {
    let failed =
        ::bson::doc! { "ok": 0, "code": 59, "codeName": "CommandNotFound", "errmsg": "no such command" };
    let failed = answer(1, &failed.to_vec().unwrap());
    let mut whole = client(failed.clone(), 9);
    assert_eq!(ping(&mut whole).unwrap_err().server_code(), Some("59"));
    send(&mut whole, &answer(2, &::bson::doc! { "ok": 1.0 }.to_vec().unwrap()));
    ping(&mut whole).unwrap();
    for end in 0..failed.len() {
        let mut cut = client(failed[..end].to_vec(), 5);
        assert_eq!(ping(&mut cut).unwrap_err().kind(), ConnectionLost, "{end}");
        assert!(cut.is_broken() && ping(&mut cut).is_err(), "{end}");
    }
}

#[test]
fn answers_beyond_the_limits_are_refused() {
    let header = |length: i32, code: i32| [length, 1, 1, code].map(i32::to_le_bytes).concat();
    for (bytes, kind) in [
        (header(i32::MAX, 2013), Protocol),
        (header(-1, 2013), Protocol),
        (header(20, 2013), Protocol),
        (header(40_000, 1), Protocol),
        (answer(2, b"\x05\0\0\0\0"), Protocol),
        (answer(1, b"\x06\0\0\0\0"), Protocol),
        (answer(1, b"\x05\0\0\0\0"), ErrorKind::Server),
        // Compressed by an unknown method, to a length that is not true, and to more than the limit.
        ([header(26, 2012), vec![0xdd, 7, 0, 0, 10, 0, 0, 0, 1, 0]].concat(), Protocol),
        ([header(26, 2012), vec![0xdd, 7, 0, 0, 10, 0, 0, 0, 3, 0]].concat(), Protocol),
        ([header(26, 2012), vec![0xdd, 7, 0, 0, 0, 0, 0, 0x7f, 3, 0]].concat(), Protocol),
    ] {
        let error = ping(&mut client(bytes.clone(), 64)).unwrap_err();
        assert_eq!(error.kind(), kind, "{bytes:?}: {error}");
    }
}

mod fuzz {
    use super::*;

    /// Any bytes, or documents of any bytes in well-formed messages, are answers or an error.
    #[test]
    fn any_answers_are_answers_or_an_error() {
        bolero::check!(name = "mongodb-answers").for_each(|input: &[u8]| {
            let mut parts = Parts::new(input);
            let (piece, formed) = parts.head();
            let mut client = client(Vec::new(), piece);
            for number in 1..=8 {
                if formed {
                    send(&mut client, &answer(number, parts.bytes()));
                } else {
                    send(&mut client, parts.rest());
                }
                client.out.restart(HEAD);
                client.out.text("find", "a");
                let _ = client.read("a", 1, Tail::Read, |document| {
                    document.elements().try_for_each(|element| element.map(drop))
                });
            }
        });
    }
}
