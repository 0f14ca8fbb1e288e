use super::*;
use crate::wire::script::{Parts, Script};

fn client(answers: &[u8]) -> Client<Script> {
    Client::new(Script::new(answers.to_vec()))
}

#[test]
fn requests_have_the_protocols_format() {
    let mut client = client(b"HD\r\nNS\r\nEN\r\nNF\r\nMN\r\n");
    assert!(client.set(b"k", "", [b"a", b"bc", b"d"]).unwrap());
    assert!(!client.set(b"k", " ME", [b"", b"", b""]).unwrap());
    assert_eq!(client.get(b"k", " v").unwrap(), None);
    assert!(!client.delete(b"k", "").unwrap());
    client.ping().unwrap();
    let sent = client.wire.stream().sent.clone();
    assert_eq!(sent, b"ms k 4\r\nabcd\r\nms k 0 ME\r\n\r\nmg k v\r\nmd k\r\nmn\r\n");
}

#[test]
fn long_value_is_sent_uncopied() {
    let long = vec![b'x'; LONG + 1];
    let mut client = client(b"HD\r\n");
    assert!(client.set(b"k", "", [b"<", &long, b">"]).unwrap());
    let expected = [format!("ms k {}\r\n<", LONG + 3).as_bytes(), &long, b">\r\n"].concat();
    assert!(client.wire.stream().sent == expected);
}

#[test]
fn connection_is_usable_after_an_error_answer() {
    let mut client = client(b"SERVER_ERROR object too large for cache\r\nCLIENT_ERROR bad\r\nMN\r\n");
    assert_eq!(client.set(b"k", "", [b"", b"", b""]).unwrap_err().kind(), ErrorKind::Limit);
    let error = client.get(b"k", " v").unwrap_err();
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::Server, Some("CLIENT_ERROR")));
    client.ping().unwrap();
}

#[test]
fn malformed_answers_are_protocol_errors() {
    for answer in [
        "HTTP/1.1 400 Bad Request\r\n", "VA\r\n", "VA -1\r\n", "VA 99999999999\r\n",
        "VA 18446744073709551616\r\n", "\r\n", "ERROR\r\n", "HD\r\n",
    ] {
        assert_eq!(
            client(answer.as_bytes()).get(b"k", " v").unwrap_err().kind(),
            ErrorKind::Protocol,
            "{answer}"
        );
    }
    // A line without an end is refused before it fills the memory.
    let endless = client(&vec![b'x'; 1_000_000]).get(b"k", " v").unwrap_err();
    assert_eq!(endless.kind(), ErrorKind::Protocol);
}

#[test]
fn value_must_have_the_announced_length() {
    let mut right = client(b"VA 5\r\nhello\r\n");
    let bytes = right.get(b"k", " v").unwrap().unwrap();
    assert_eq!(right.whole_value(bytes).unwrap(), b"hello");
    for (answer, kind) in [
        ("VA 4\r\nhello\r\n", ErrorKind::Protocol),
        ("VA 6\r\nhello\r\n", ErrorKind::ConnectionLost),
        ("VA 900000000\r\nhello\r\n", ErrorKind::ConnectionLost),
        ("VA 5\r\nhel", ErrorKind::ConnectionLost),
    ] {
        let mut client = client(answer.as_bytes());
        let bytes = client.get(b"k", " v").unwrap().unwrap();
        assert_eq!(client.whole_value(bytes).unwrap_err().kind(), kind, "{answer}");
    }
    for cut in ["", "V", "VA 5", "VA 5\r"] {
        let error = client(cut.as_bytes()).get(b"k", " v").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{cut:?}");
    }
}

#[test]
fn keys_are_listed_as_they_were_stored() {
    let line = |key: &str| format!("key={key} exp=-1 la=1 cas=2 fetch=no cls=1 size=63\r\n");
    let listed = |answers: String| {
        let mut keys = Vec::new();
        let end = client(answers.as_bytes()).each_key("hash", |key| keys.push(key.to_owned()));
        (end.unwrap(), keys)
    };
    let both = [line("kurabe_a%3A0006%3A%252F"), line("a%2Fb+c"), "END\r\n".to_owned()].concat();
    assert_eq!(listed(both), (Listing::Ended, vec!["kurabe_a:0006:%2F".to_owned(), "a/b+c".to_owned()]));
    let busy = "BUSY currently processing crawler request\r\n".to_owned();
    assert_eq!(listed(busy), (Listing::Busy, Vec::new()));
    assert_eq!(listed("BADCLASS invalid class id\r\n".to_owned()), (Listing::Refused, Vec::new()));
}

mod fuzz {
    use super::*;

    const WORDS: &[&str] = &[
        "\r\n", "VA ", "VA 5\r\n", "HD\r\n", "EN\r\n", "NF\r\n", "NS\r\n", "MN\r\n", "STAT a ", "END\r\n",
        "VERSION ", "SERVER_ERROR ", "CLIENT_ERROR ", "ERROR\r\n",
    ];

    /// The answers are the input itself, or text with words of the protocol.
    #[test]
    fn any_answers_are_answers_or_an_error() {
        bolero::check!(name = "memcached-answers").for_each(|input: &[u8]| {
            let mut parts = Parts::new(input);
            let (piece, with_words) = parts.head();
            let bytes = if with_words { parts.words(WORDS) } else { parts.rest().to_vec() };
            let client = || Client::new(Script::in_pieces(bytes.clone(), piece));
            let mut reading = client();
            if let Ok(Some(length)) = reading.get(b"k", " v") {
                let _ = reading.whole_value(length);
            }
            let _ = (client().set(b"k", "", [b"", b"", b""]), client().delete(b"k", ""), client().ping());
            let _ = (client().version(), client().stats("stats"));
        });
    }
}
