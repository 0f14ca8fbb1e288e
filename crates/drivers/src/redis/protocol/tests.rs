use super::*;
use crate::wire::script::{Parts, Script};
use kurabe_core::ErrorKind;

fn client(answers: &[u8]) -> Client<Script> {
    Client::new(Script::new(answers.to_vec()))
}

#[test]
fn request_is_an_array_of_strings() {
    let mut client = client(b"+OK\r\n");
    client.ask(&[b"SET", b"k", b"a\r\nb"]).unwrap();
    assert_eq!(client.wire.stream().sent, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\n");
}

#[test]
fn every_kind_of_answer_is_read() {
    let text = "*9\r\n+OK\r\n:-5\r\n$2\r\na\r\r\n_\r\n$-1\r\n=5\r\ntxt:x\r\n,1.5\r\n#t\r\n%1\r\n$1\r\nk\r\n~1\r\n:1\r\n";
    let node = client(text.as_bytes()).whole().unwrap();
    let [ok, int, bulk, null, old_null, verbatim, double, yes, map] = node.items() else {
        panic!("{node:?}");
    };
    assert_eq!(
        [ok, int, bulk, verbatim, double, yes].map(Node::text),
        ["OK", "-5", "a\r", "x", "1.5", "t"].map(str::to_owned)
    );
    assert!(matches!((null, old_null), (Node::Null, Node::Null)));
    assert_eq!(map.items()[1].items()[0].text(), "1");
}

#[test]
fn attributes_and_push_messages_are_skipped() {
    let mut client =
        client(b">2\r\n+invalidate\r\n*1\r\n+k\r\n|1\r\n+ttl\r\n:3\r\n$1\r\nv\r\n|1\r\n+a\r\n:3\r\n:7\r\n");
    assert!(matches!(client.answer().unwrap(), Head::Bulk(1)));
    client.wire.skip(1).unwrap();
    client.end_value().unwrap();
    assert_eq!(client.whole().unwrap().text(), "7");
}

#[test]
fn an_error_within_an_answer_does_not_end_it() {
    let mut client = client(b"*2\r\n-WRONGTYPE no\r\n:1\r\n!8\r\nOOM full\r\n+OK\r\n");
    let node = client.whole().unwrap();
    assert!(matches!(&node.items()[0], Node::Refused(e) if e.server_code() == Some("WRONGTYPE")), "{node:?}");
    let long = client.answer().unwrap();
    assert!(matches!(&long, Head::Refused(e) if e.kind() == ErrorKind::Limit), "{long:?}");
    assert_eq!(client.whole().unwrap().text(), "OK");
}

#[test]
fn malformed_answers_are_protocol_errors() {
    for answer in [
        "HTTP/1.1 400 Bad Request\r\n", "\r\n", "\n", "+OK\n", ":\r\n", ":1x\r\n",
        ":99999999999999999999\r\n", ":9223372036854775808\r\n", "$-2\r\n", "$?\r\n", "$99999999999999\r\n",
        "!99999\r\n", "_x\r\n", "*-5\r\n", "$1\r\nab\r\n", "$4\r\nab\r\ncd",
    ] {
        let error = client(answer.as_bytes()).whole().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{answer:?}: {error}");
    }
    let deep = "*1\r\n".repeat(10_000);
    assert_eq!(client(deep.as_bytes()).whole().unwrap_err().kind(), ErrorKind::Protocol);
    // A line without an end is refused before it fills the memory.
    assert_eq!(client(&vec![b'+'; 1_000_000]).whole().unwrap_err().kind(), ErrorKind::Protocol);
}

#[test]
fn truncated_answer_is_a_lost_connection() {
    let whole = b"*3\r\n$5\r\nhello\r\n%1\r\n+a\r\n_\r\n:-12\r\n";
    assert!(client(whole).whole().is_ok());
    for cut in 0..whole.len() {
        let error = client(&whole[..cut]).whole().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{cut}");
    }
    // A large announced count without data takes no memory, …
    for claim in ["*17179869184\r\n:1\r\n", "%9000000000\r\n"] {
        let error = client(claim.as_bytes()).whole().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{claim}");
    }
    // … and a length beyond the limit of an answer is refused immediately.
    let error = client(b"$17179869184\r\nx").whole().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
}

mod fuzz {
    use super::*;

    const WORDS: &[&str] = &[
        "\r\n", "*2\r\n", "%1\r\n", "~0\r\n", "$1\r\na\r\n", "$5\r\n", "$-1\r\n", "*-1\r\n", ":1\r\n",
        "+x\r\n", "_\r\n", "-ERR no\r\n", "|1\r\n", ">1\r\n", "!3\r\n", "=4\r\n", "txt:", "*1000000000\r\n",
    ];

    /// The answers are the input itself, or text with words of the protocol.
    #[test]
    fn any_answers_are_answers_or_an_error() {
        bolero::check!(name = "redis-answers").for_each(|input: &[u8]| {
            let mut parts = Parts::new(input);
            let (piece, with_words) = parts.head();
            let bytes = if with_words { parts.words(WORDS) } else { parts.rest().to_vec() };
            let client = || Client::new(Script::in_pieces(bytes.clone(), piece));
            let mut reading = client();
            while reading.whole().is_ok_and(|_| !reading.wire.buffered().is_empty()) {}
            let mut reading = client();
            if let Ok(Head::Bulk(length)) = reading.answer() {
                let _ = reading.wire.skip(length).and_then(|()| reading.end_value());
            }
            let _ = client().bulk_into(&mut Vec::new());
        });
    }
}
