//! Conversations of MySQL, as views see them.

use super::*;
use crate::view::Conversation;
use crate::view::tests::{exchanges, seen_by};

pub(crate) fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    [&[length[0], length[1], length[2], sequence], body].concat()
}

fn packets(bodies: &[&[u8]]) -> Vec<u8> {
    bodies.iter().enumerate().flat_map(|(n, body)| packet(n as u8 + 1, body)).collect()
}

/// Whether the client speaks, and what it says. After the manual's "Command Phase".
pub(crate) fn conversation() -> Vec<(bool, Vec<u8>)> {
    let mut greeting = b"\x0a8.0\0\x01\0\0\0abcdefgh\0\x09\x82\x2d\x02\0\x08\0\x15".to_vec();
    greeting.extend([0; 10]);
    let response = [&[0x09, 0x82, 0x08, 0, 0, 0, 0, 1, 45][..], &[0; 23], b"bob\0\x07hunter2"].concat();
    let ok = |status: u8| packet(1, &[0, 2, 0, status, 0, 0, 0]);
    let (eof, eof_open) = (b"\xfe\0\0\x02\0", b"\xfe\0\0\x03\0");
    let execute = b"\x17\x07\0\0\0\0\x01\0\0\0\x02\x01\x03\0\xfd\0\x05\0\0\0";
    vec![
        (false, packet(0, &greeting)),
        (true, packet(1, &response)),
        (false, packets(&[b"\x01\x03"])),
        (false, packet(3, b"\0\0\0\x02\0\0\0")),
        (true, packet(0, b"\x03BEGIN")),
        (false, ok(3)),
        (true, packet(0, b"\x16SELECT a FROM t WHERE b = ? AND c = ?")),
        (false, packets(&[b"\0\x07\0\0\0\x01\0\x02\0\0\0\0", b"def", b"def", eof, b"def", eof])),
        (true, packet(0, execute)),
        (false, packets(&[b"\x01", b"def", eof, b"\0\0\x01x", b"\0\0\x01y", eof_open])),
        (true, packet(0, b"\x03LOAD DATA LOCAL INFILE 'f' INTO TABLE t")),
        (false, packets(&[b"\xfbf"])),
        (true, [packet(2, b"1\n2\n"), packet(3, b"")].concat()),
        (false, ok(3)),
        (true, packet(0, b"\x03SELECT 1; SELECT 2")),
        (
            false,
            packets(&[
                b"\x01", b"def", eof, b"\x011", b"\xfe\0\0\x0a\0", b"\x01", b"def", eof, b"\x012", eof,
            ]),
        ),
        (true, packet(0, b"\x03INSERT 1")),
        (false, packets(&[b"\xff\x26\x04#23000no"])),
        (true, packet(0, b"\x0e")),
    ]
}

fn seen(conversation: &[(bool, Vec<u8>)], piece: usize) -> Vec<Event> {
    seen_by(Conversation::after_greeting(Mysql::new(Dialect::MYSQL)), conversation, piece)
}

/// After a request for TLS, which the view does not see, numbers of packets are one higher, and passwords may be in clear.
#[test]
fn login_over_tls_that_ended_before_is_read_as_any_other_and_no_password_is_seen() {
    let plain = conversation();
    let mut ended = plain.clone();
    ended[1].1[3] += 1;
    // The server asks for the password itself, as caching_sha2_password does; the client sends it.
    let asks = [
        (false, packet(3, b"\xfecaching_sha2_password\0abcdefghabcdefghabcd\0")),
        (true, packet(4, &[b'h'; 32])),
        (false, packet(5, b"\x01\x04")),
        (true, packet(6, b"hunter2\0")),
        (false, packet(7, b"\0\0\0\x02\0\0\0")),
    ];
    ended.splice(2..4, asks);
    let (plain, mut ended) = (seen(&plain, usize::MAX), seen(&ended, 3));
    // The handshake before the requests is longer.
    let at = exchanges(&ended)[0].at - exchanges(&plain)[0].at;
    for event in &mut ended {
        if let Event::Exchange(one) = event {
            one.at -= at;
        }
    }
    assert_eq!(ended, plain);
    assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
}

#[test]
fn requests_are_seen_with_values_and_the_shapes_of_their_answers() {
    let events = seen(&conversation(), usize::MAX);
    assert!(
        !format!("{events:?}").contains("hunter2") && format!("{events:?}").contains("bob"),
        "{events:?}"
    );
    let data = events.iter().any(|event| matches!(event, Event::Data { bytes, .. } if bytes == b"1\n2\n"));
    assert!(data, "{events:?}");
    let found = exchanges(&events);
    let shape = |one: &&Exchange| {
        (one.text.clone(), one.step, one.rows, one.affected, one.error.clone(), one.transaction)
    };
    let select = "SELECT a FROM t WHERE b = ? AND c = ?".to_owned();
    let shapes: Vec<_> = found.iter().map(shape).collect();
    assert_eq!(
        shapes,
        [
            ("BEGIN".to_owned(), Step::Text, 0, 2, None, Transaction::Open),
            (select.clone(), Step::Prepare, 0, 0, None, Transaction::Unknown),
            (select, Step::Execute, 2, 0, None, Transaction::Open),
            ("LOAD DATA LOCAL INFILE 'f' INTO TABLE t".to_owned(), Step::Text, 0, 2, None, Transaction::Open),
            ("SELECT 1; SELECT 2".to_owned(), Step::Text, 2, 0, None, Transaction::None),
            ("INSERT 1".to_owned(), Step::Text, 0, 0, Some("1062".to_owned()), Transaction::Unknown),
            ("COM_PING".to_owned(), Step::Text, 0, 0, None, Transaction::Unknown),
        ]
    );
    let parameter =
        |kind, binary, value: Option<&[u8]>| Parameter::new(kind, binary, value.map(<[u8]>::to_vec));
    assert_eq!(found[2].parameters, [parameter(3, true, Some(&[5, 0, 0, 0])), parameter(0xfd, false, None)]);
    assert!(found.iter().all(|one| !one.cut && !one.pipelined) && found[6].ended.is_none());
}

/// A piece of the second parameter of statement 7.
fn piece_of(data: &[u8]) -> Vec<u8> {
    packet(0, &[b"\x18\x07\0\0\0\x01\0", data].concat())
}

#[test]
fn parameter_in_pieces_is_whole_or_said_to_be_cut_and_reset_forgets_it() {
    let execute = b"\x17\x07\0\0\0\0\x01\0\0\0\0\x01\x03\0\xfd\0\x05\0\0\0";
    let inline = [&execute[..], b"\x05short"].concat();
    let sent = |pieces: Vec<Vec<u8>>, execute: &[u8]| {
        let mut said: Vec<_> = conversation().into_iter().take(8).collect();
        said.push((true, [pieces.concat(), packet(0, execute)].concat()));
        said.push((false, packets(&[b"\0\x01\0\x02\0\0\0"])));
        let events = seen(&said, 60_000);
        let last = exchanges(&events).last().map(|one| (*one).clone()).unwrap();
        (last.cut, last.parameters.get(1).and_then(Parameter::bytes).map(<[u8]>::to_vec))
    };
    let half = vec![b'x'; KEPT / 2];
    let twice = |count: usize| (0..count).map(|_| piece_of(&half)).collect::<Vec<_>>();
    assert_eq!(sent(twice(3), execute), (false, Some(half.repeat(3))));
    // More than is kept of a connection, and a piece that is longer than a request is kept.
    for pieces in [twice(2 * LONG / KEPT + 1), vec![piece_of(&half.repeat(3))]] {
        let (cut, value) = sent(pieces, execute);
        assert!(cut && value.unwrap_or_default().is_empty());
    }
    let reset = [twice(1), vec![packet(0, b"\x1a\x07\0\0\0")]].concat();
    let mut said: Vec<_> = conversation().into_iter().take(8).collect();
    said.push((true, reset.concat()));
    said.push((false, packets(&[b"\0\0\0\x02\0\0\0"])));
    said.push((true, packet(0, &inline)));
    said.push((false, packets(&[b"\0\x01\0\x02\0\0\0"])));
    let events = seen(&said, usize::MAX);
    let last = exchanges(&events).last().map(|one| (*one).clone()).unwrap();
    assert_eq!((last.cut, last.parameters[1].bytes()), (false, Some(&b"short"[..])));
}

#[test]
fn execution_of_a_statement_that_is_not_known_has_a_name_and_is_cut() {
    let mut said: Vec<_> = conversation().into_iter().take(8).collect();
    said.push((true, packet(0, b"\x17\x08\0\0\0\0\x01\0\0\0")));
    let events = seen(&said, usize::MAX);
    let last = exchanges(&events).last().map(|one| (*one).clone()).unwrap();
    assert_eq!((last.cut, last.text.as_str()), (true, UNKNOWN));
}

#[test]
fn rows_of_a_cursor_belong_to_their_execution_and_a_cursor_that_is_closed_before_its_end_is_cut() {
    let row = |value: u8| [0, 0, value, 0, 0, 0];
    let definition = [&b"\x03def\0\0\0\x01a\0\x0c\x3f\0\x0b\0\0\0"[..], b"\x03\0\0\0\0\0"].concat();
    let (opened, more, last) = (b"\xfe\0\0\x42\0", b"\xfe\0\0\x42\0", b"\xfe\0\0\x82\0");
    let (fetch, execute) = (b"\x1c\x07\0\0\0\x02\0\0\0", b"\x17\x07\0\0\0\x01\x01\0\0\0");
    let mut said: Vec<_> = conversation().into_iter().take(4).collect();
    said.extend([
        (true, packet(0, b"\x16SELECT a FROM t ORDER BY a")),
        (false, packets(&[b"\0\x07\0\0\0\x01\0\0\0\0\0\0", &definition, b"\xfe\0\0\x02\0"])),
        (true, packet(0, execute)),
        (false, packets(&[b"\x01", &definition, opened])),
        (true, packet(0, fetch)),
        (false, packets(&[&row(1), &row(2), more])),
        (true, packet(0, b"\x03INSERT 1")),
        (false, packet(1, b"\0\x01\x2a\x02\0\0\0")),
        (true, packet(0, fetch)),
        (false, packets(&[&row(3), last])),
        (true, packet(0, execute)),
        (false, packets(&[b"\x01", &definition, opened])),
        (true, packet(0, fetch)),
        (false, packets(&[&row(1), &row(2), more])),
        (true, packet(0, b"\x19\x07\0\0\0")),
    ]);
    for piece in [usize::MAX, 1] {
        let events = seen(&said, piece);
        let found = exchanges(&events);
        let shown: Vec<_> = found.iter().map(|one| (one.text.as_str(), one.rows, one.cut)).collect();
        let select = "SELECT a FROM t ORDER BY a";
        assert_eq!(
            shown,
            [(select, 0, false), ("INSERT 1", 0, false), (select, 3, false), (select, 2, true)]
        );
        // The key that the server gave.
        assert_eq!(found[1].made, [b"42"]);
        assert!(found[2].digest != 0 && found[2].ended.is_some());
    }
}

#[test]
fn option_of_several_statements_has_its_value() {
    let mut said = conversation()[..4].to_vec();
    said.extend([(true, packet(0, &[0x1b, 1, 0])), (false, packet(1, b"\xfe\0\0\x02\0"))]);
    assert_eq!(exchanges(&seen(&said, 3))[0].text, "COM_SET_OPTION 1");
}

/// A definition of a column of this type (manual, `ColumnDefinition41`).
fn column(kind: u8) -> Vec<u8> {
    [b"\x03def\0\0\0\x01v\0\x0c\x2d\0\x04\0\0\0", &[kind][..], &[0; 5]].concat()
}

#[test]
fn answers_without_definitions_of_columns_have_the_checksums_of_those_with_them() {
    let [date, long] = [column(0x0c), column(3)];
    // The client may leave them out, and after the number of columns is whether they follow.
    let optional = |mut said: Vec<(bool, Vec<u8>)>| {
        said[0].1[4 + 24] |= 2;
        said[1].1[4 + 3] |= 2;
        said
    };
    let eof = b"\xfe\0\0\x02\0";
    let row: &[u8] = &[0, 0, 7, 0, 0, 0, 4, 0xea, 7, 11, 28];
    let of = |prepared: &[&[u8]], head: &[&[u8]], has_kinds: bool| {
        let mut said = optional(conversation().into_iter().take(7).collect());
        said.push((false, packets(prepared)));
        let execute = b"\x17\x07\0\0\0\0\x01\0\0\0\x02\x01\x03\0\xfd\0\x05\0\0\0";
        said.push((true, packet(0, execute)));
        said.push((false, packets(&[head, &[row, eof]].concat())));
        let events = seen(&said, 5);
        assert!(!events.iter().any(|one| matches!(one, Event::Unreadable(_))), "{events:?}");
        let last = exchanges(&events).last().map(|one| (*one).clone()).unwrap();
        assert_eq!((last.rows, last.ended.is_some(), last.cut), (1, true, !has_kinds));
        last.digest
    };
    let (with, without) = (b"\0\x07\0\0\0\x02\0\x02\0\0\0\0\x01", b"\0\x07\0\0\0\x02\0\x02\0\0\0\0\0");
    let defined: &[&[u8]] = &[with, &long, &long, eof, &long, &date, eof];
    let full = of(defined, &[b"\x02\x01", &long, &date, eof], true);
    assert_eq!(of(defined, &[b"\x02\0", eof], true), full);
    assert_eq!(of(&[without], &[b"\x02\x01", &long, &date, eof], true), full);
    // Its types were never told.
    of(&[without], &[b"\x02\0", eof], false);
}
