//! Conversations of HTTP, in pieces of any size.

use super::*;
use crate::view::tests::{asked, exchanges, seen_of, told};

fn seen(conversation: &[(bool, Vec<u8>)], piece: usize) -> Vec<Event> {
    seen_of(Http::couchdb(), conversation, piece)
}

/// The parts of a request behind its line.
fn given(one: &Exchange) -> Vec<Parameter> {
    one.parameters.iter().filter(|one| !Request::is_of_line(one)).cloned().collect()
}

const LOGIN: &str =
    "POST /_session HTTP/1.1\r\nCookie: hunter2\r\nContent-Length: 21\r\n\r\nname=bob&word=hunter2";

/// Requests of each kind with their answers.
pub(crate) fn conversation() -> Vec<(bool, Vec<u8>)> {
    vec![
        asked(LOGIN),
        told("HTTP/1.1 200 OK\r\nSet-Cookie: hunter2\r\nContent-Length: 11\r\n\r\n{\"ok\":true}"),
        asked(
            "PUT /shop/a HTTP/1.1\r\nExpect: 100-continue\r\nAuthorization: hunter2\r\nif-match: 1-x\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        told("HTTP/1.1 100 Continue\r\n\r\n"),
        asked("5;x=y\r\n{\"a\":\r\n3\r\n 1}\r\n0\r\nTrailer: z\r\n\r\n"),
        told(
            "HTTP/1.1 201 Created\r\nContent-Length: 37\r\n\r\n{\"ok\":true,\"id\":\"a\",\"rev\":\"2-abcdef\"}",
        ),
        asked(
            "GET /shop/_all_docs?limit=2 HTTP/1.1\r\n\r\nHEAD /shop/a HTTP/1.1\r\n\r\nGET /shop/b HTTP/1.1\r\n\r\n",
        ),
        told(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n19\r\n{\"total_rows\":9,\"rows\":[\n\r\n5\r\n{},{}\r\n2\r\n]}\r\n0\r\nX: y\r\n\r\n",
        ),
        told(
            "HTTP/1.1 200 OK\r\nContent-Length: 56\r\n\r\nHTTP/1.1 404 Object Not Found\r\nContent-Length: 2\r\n\r\n{}",
        ),
        asked("DELETE /shop/a?rev=2-abc HTTP/1.1\r\n\r\n"),
        told("HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n"),
        asked("POST /shop/_find HTTP/1.1\r\nContent-Length: 30\r\n\r\n{\"selector\":{\"pwd\":\"hunter2\"}}"),
        told("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x08."),
        asked("GET /shop/c HTTP/1.1\r\nIf-None-Match: \"1\"\r\n\r\n"),
        told("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n"),
        asked("GET /shop/d HTTP/1.1\r\n\r\n"),
        told("HTTP/1.0 200 OK\r\n\r\n{\"a\":"),
    ]
}

#[test]
fn requests_have_their_values_and_answers_their_shape() {
    let whole = seen(&conversation(), usize::MAX >> 1);
    assert!(!format!("{whole:?}").contains("hunter2"), "{whole:?}");
    let all = exchanges(&whole);
    let shown: Vec<_> =
        all.iter().map(|one| (one.text.as_str(), given(one).len(), one.rows, one.affected)).collect();
    let expected = [
        ("POST /_session", 0, 1, 0),
        ("PUT /shop/?", 2, 1, 1),
        ("GET /shop/_all_docs?limit=?", 0, 2, 0),
        ("HEAD /shop/?", 0, 0, 0),
        ("GET /shop/?", 0, 0, 0),
        ("DELETE /shop/??rev=?", 0, 0, 1),
        ("POST /shop/_find", 0, 1, 0),
        ("GET /shop/?", 1, 0, 0),
        ("GET /shop/?", 0, 0, 0),
    ];
    assert_eq!(shown, expected);
    assert!(all[0].cut && !all[1].cut && all[6].cut && all[8].ended.is_none());
    let body = Parameter::new(0, false, &b"{\"a\": 1}"[..]);
    let matched = Parameter::new(6, false, &b"1-x"[..]);
    assert_eq!(given(all[1]), [matched, body]);
    let targets = [2, 5].map(|place: usize| Request::read(&all[place].parameters).unwrap().target());
    assert_eq!(targets, [&b"/shop/_all_docs?limit=2"[..], b"/shop/a?rev=2-abc"]);
    assert!(!all[2].pipelined && all[3].pipelined && all[4].pipelined);
    assert_eq!((all[4].error.as_deref(), all[6].digest), (Some("404"), 0));
    assert!(whole.iter().all(|event| !matches!(event, Event::Unreadable(_))), "{whole:?}");
}

#[test]
fn answer_that_ends_with_the_connection_is_complete_when_the_server_has_closed_it() {
    let now = Instant::now();
    let of = |is_closed: bool| {
        let (mut view, mut events) = (Http::default(), Vec::new());
        view.sent(b"GET /a HTTP/1.0\r\n\r\n", now, &mut events).unwrap();
        view.received(b"HTTP/1.0 200 OK\r\n\r\nhello", now, &mut events).unwrap();
        if is_closed {
            view.closed(now, &mut events);
        }
        view.end(&mut events);
        let all = exchanges(&events);
        assert_eq!(all.len(), 1);
        (all[0].ended.is_some(), all[0].rows)
    };
    assert_eq!((of(true), of(false)), ((true, 1), (false, 0)));
}

#[test]
fn id_that_the_server_chose_is_kept() {
    let of = |body: &str| {
        let request = format!("POST /shop HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let answer =
            "HTTP/1.1 201 Created\r\nContent-Length: 30\r\n\r\n{\"ok\":true,\"id\":\"a\",\"rev\":\"1\"}";
        let events = seen(&[asked(&request), told(answer)], 3);
        let parameters = given(exchanges(&events)[0]);
        parameters.iter().map(|one| (one.kind, one.bytes().unwrap().to_vec())).collect::<Vec<_>>()
    };
    let body = |text: &str| (0, text.as_bytes().to_vec());
    assert_eq!(of("{}"), [body("{}"), (CHOSEN_ID, b"a".to_vec())]);
    assert_eq!(of("{\"_id\":\"a\"}"), [body("{\"_id\":\"a\"}")]);
}

#[test]
fn early_answer_is_that_of_its_request_and_the_rest_of_a_body_is_no_request() {
    let put = "PUT /shop/a HTTP/1.1\r\nContent-Length: 30\r\n\r\n";
    let refused = told("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    let rest = asked(&format!("{}GET /shop/b HTTP/1.1\r\n\r\n", "x".repeat(29)));
    let events = seen(&[asked(&format!("{put}x")), refused.clone(), rest, refused.clone()], 5);
    let all: Vec<_> =
        exchanges(&events).iter().map(|one| (one.text.as_str(), one.cut, one.ended.is_some())).collect();
    assert_eq!(all, [("PUT /shop/?", true, true), ("GET /shop/?", false, true)]);
    // Whether the body follows that it held back cannot be known.
    let put = asked("PUT /shop/a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    let events = seen(&[put, refused, asked("GET /shop/b HTTP/1.1\r\n\r\n")], 5);
    assert!(
        exchanges(&events).len() == 1 && matches!(events.last(), Some(Event::Unreadable(_))),
        "{events:?}"
    );
}

#[test]
fn stream_that_cannot_be_read_is_said_once_and_ends_the_recording() {
    let get = "GET /a HTTP/1.1\r\n\r\n";
    for conversation in [
        vec![asked("\x16\x03\x01\0\x05\x01hello")],
        vec![asked("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")],
        vec![
            asked("GET /a HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"),
            told("HTTP/1.1 101 Switching Protocols\r\n\r\n\x01"),
        ],
        vec![asked("CONNECT h:1 HTTP/1.1\r\n\r\n"), told("HTTP/1.1 200 OK\r\n\r\nx")],
        vec![asked(get), told("SSH-2.0-OpenSSH_9\r\n")],
        vec![asked(get), told("HTTP/1.1 2000 OK\r\n\r\n")],
        vec![asked(get), told("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n")],
        vec![asked(get), told("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n")],
        vec![asked(get), told("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n")],
        vec![asked(get), told("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n")],
        vec![asked(get), told("HTTP/1.1 204 None\r\n\r\n"), told("HTTP/1.1 408 Timeout\r\n\r\n")],
        vec![asked("GET /a HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n")],
        vec![asked("GET /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n")],
        vec![asked("hello\r\n")],
    ] {
        let events = seen(&conversation, 4);
        let unreadable = events.iter().filter(|event| matches!(event, Event::Unreadable(_))).count();
        assert_eq!(unreadable, 1, "{conversation:?}: {events:?}");
    }
    // A server that does not change the protocol goes on.
    let asks = asked("GET /a HTTP/1.1\r\nUpgrade: h2c\r\n\r\n");
    let events = seen(&[asks, told("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")], 4);
    assert!(exchanges(&events)[0].rows == 1 && !matches!(events.last(), Some(Event::Unreadable(_))));
}

#[test]
fn requests_that_are_never_answered_are_kept_up_to_a_limit() {
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(60_000));
    let events = seen(&[asked(&long.repeat(1_000))], 1 << 16);
    let kept = exchanges(&events).len();
    assert!(matches!(events.last(), Some(Event::Unreadable(_))) && (200..600).contains(&kept), "{kept}");
}

#[test]
fn long_body_is_cut_off_and_the_next_request_is_found() {
    let long =
        [&b"PUT /shop/a HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n"[..], &vec![b'x'; 3_000_000]].concat();
    let events = seen(&[(true, long), asked("GET /shop/a HTTP/1.1\r\n\r\n")], 1 << 16);
    let all = exchanges(&events);
    assert!(all.len() == 2 && all[0].cut && given(all[0]).is_empty() && !all[1].cut);
}

#[test]
fn answer_that_is_compressed_by_gzip_is_compared_as_one_that_is_not() {
    let text = br#"{"rows":[{"id":"a"},{"id":"b"}]}"#;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text).unwrap();
    let packed = gzip.finish().unwrap();
    let of = |coding: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let answer = [head.as_bytes(), body].concat();
        let conversation = [asked("GET /shop/_all_docs HTTP/1.1\r\n\r\n"), (false, answer)];
        let [whole, pieces] = [usize::MAX >> 1, 3].map(|piece| seen(&conversation, piece));
        assert_eq!(whole, pieces);
        let one = exchanges(&whole)[0];
        (one.rows, one.digest)
    };
    let plain = of("identity", text);
    assert!(plain.0 == 2 && plain.1 != 0, "{plain:?}");
    assert_eq!(of("gzip", &packed), plain);
    // Several of them one after the other are one, and of what is no whole one nothing is known.
    assert_eq!(of("x-gzip", &[packed.as_slice(), &packed].concat()).0, 2);
    let damaged = [&packed[..9], b"????", &packed[13..]].concat();
    for unknown in
        [of("gzip", &packed[..20]), of("gzip", &damaged), of("br", &packed), of("gzip, gzip", &packed)]
    {
        assert_eq!(unknown, (1, 0));
    }
}

#[test]
fn requests_of_a_long_pipeline_keep_their_lines() {
    let body = "x".repeat(1_000_000);
    let put = asked(&format!("PUT /shop/17 HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    let events = seen(&vec![put; 40], 1 << 16);
    let all = exchanges(&events);
    let is_whole = |one: &&&Exchange| Request::read(&one.parameters).unwrap().target() == b"/shop/17";
    assert_eq!(all.iter().filter(is_whole).count(), 40);
    assert!(all.iter().filter(|one| one.cut).count() > 20);
}
