use super::*;
use crate::wire::script::{Parts, Script};
use proptest::prelude::*;

const HEAD_SENT: &[u8] = b"GET /kv HTTP/1.1\r\nHost: a:1\r\n\r\n";

fn ask(answers: &[u8], piece: usize) -> Result<(Answer, Vec<u8>)> {
    let mut client = Client::new(Script::in_pieces(answers.to_vec(), piece));
    let mut out = b"before".to_vec();
    let answer = client.request(&mut HEAD_SENT.to_vec(), b"", &mut out)?;
    Ok((answer, out))
}

/// Complete answers with each of the three framings.
const WHOLE: [&[u8]; 4] = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nTrailer: z\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\nhello",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\nConnection: close\r\n\r\nhello",
];

#[test]
fn short_body_is_sent_with_its_head_and_a_long_one_beside_it() {
    for length in [0, 5, LONG, 3 * LONG] {
        let body = vec![b'x'; length];
        let mut client = Client::new(Script::new(WHOLE[0].to_vec()));
        client.request(&mut HEAD_SENT.to_vec(), &body, &mut Vec::new()).unwrap();
        assert_eq!(client.wire.stream().sent, [HEAD_SENT, &body].concat(), "{length}");
    }
}

#[test]
fn unrequested_data_is_not_the_next_answer() {
    let twice = [WHOLE[0], WHOLE[0]].concat();
    let mut client = Client::new(Script::new(twice));
    let mut ask = || client.request(&mut HEAD_SENT.to_vec(), b"", &mut Vec::new());
    assert_eq!(ask().unwrap().status, 200);
    let error = ask().unwrap_err();
    assert!(error.to_string().contains("more than was asked for"), "{error}");
}

#[test]
fn every_framing_is_parsed_in_pieces_of_any_size() {
    for (answer, stays) in WHOLE.into_iter().zip([true, true, false, false]) {
        for piece in 1..=answer.len() {
            let (head, body) = ask(answer, piece).unwrap();
            assert_eq!((head, body.as_slice()), (Answer { status: 200, stays }, &b"hello"[..]));
        }
    }
}

#[test]
fn malformed_answers_are_protocol_errors() {
    for bytes in [
        // It does not wait for the end of what cannot be HTTP.
        &b"SSH-2.0-OpenSSH_9\r\n"[..],
        b"HTTQ",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n",
    ] {
        let error = ask(bytes, 1_000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    }
    let endless =
        b"HTTP/1.1 200 OK\r\n".iter().copied().chain(b"a: b\r\n".iter().copied().cycle().take(40_000));
    assert_eq!(ask(&endless.collect::<Vec<u8>>(), 1_000).unwrap_err().kind(), ErrorKind::Protocol);
}

mod fuzz {
    use super::*;

    const WORDS: &[&str] = &[
        "\r\n",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 200 OK\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 204 \r\n",
        "HTTP/1.1 404 Not Found\r\n",
        "HTTP/1.1 301 \r\nLocation: /x\r\n",
        "Content-Length: ",
        "Transfer-Encoding: ",
        "chunked\r\n",
        "gzip, ",
        "Connection: ",
        "close\r\n",
        "keep-alive\r\n",
        "18446744073709551615\r\n",
        "0\r\n\r\n",
        "5\r\nhello\r\n",
        "3;x=y\r\n",
        "Trailer: z\r\n",
    ];

    /// The answers, to two requests, are the input itself, or text with words of HTTP.
    #[test]
    fn any_answers_are_answers_or_an_error() {
        bolero::check!(name = "http-answers").for_each(|input: &[u8]| {
            let mut parts = Parts::new(input);
            let (piece, with_words) = parts.head();
            let bytes = if with_words { parts.words(WORDS) } else { parts.rest().to_vec() };
            let mut client = Client::new(Script::in_pieces(bytes, piece));
            for _ in 0..2 {
                let _ = client.request(&mut HEAD_SENT.to_vec(), b"", &mut Vec::new());
            }
        });
    }
}

proptest! {
    #[test]
    fn truncated_answer_is_an_error(which in prop::sample::select(vec![0usize, 1, 3]), cut: prop::sample::Index) {
        let whole = WHOLE[which];
        let cut = cut.index(whole.len());
        prop_assert!(ask(&whole[..cut], 7).is_err());
    }
}
