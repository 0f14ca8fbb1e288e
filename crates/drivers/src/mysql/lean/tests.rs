mod login;

use super::*;
use crate::mysql::config::Config;
use crate::wire::Wire;
use crate::wire::script::{Parts, Script};
use kurabe_core::compression::Compression;
use kurabe_core::target::TargetUrl;
use kurabe_protocol::mysql::message::push_length;
use login::{greeting, log_in};
use proptest::prelude::*;

/// The bytes of hexadecimal digits.
pub(super) fn bytes(digits: &str) -> Vec<u8> {
    digits.as_bytes().as_chunks().0.iter().map(|two| crate::wire::unhex(*two).unwrap()).collect()
}

/// The hexadecimal digits of bytes.
pub(super) fn digits(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| crate::wire::hex(*byte)).map(char::from).collect()
}

const AGREED: Agreed = Agreed { no_eof: true, cached_columns: false, compressed: false };

fn over(answers: Vec<u8>, piece: usize, agreed: Agreed) -> Lean<Script> {
    let packets = Packets::new(Wire::new(Script::in_pieces(answers, piece)));
    Lean::over(packets, agreed, Arc::new(AtomicUsize::new(0)))
}

/// Encodes payloads as packets, numbered from `first`.
fn packets(first: u8, payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, payload) in payloads.iter().enumerate() {
        out.extend(Packet { length: payload.len(), sequence: first.wrapping_add(at as u8) }.bytes());
        out.extend_from_slice(payload);
    }
    out
}

fn column(kind: u8) -> Vec<u8> {
    let mut out = b"\x03def\0\0\0\x01a\0\x0c\x3f\0\0\0\0\0".to_vec();
    out.extend_from_slice(&[kind, 0, 0, 0, 0, 0]);
    out
}

const END: [u8; 7] = [0xfe, 0, 0, 2, 0, 0, 0];
const OK: [u8; 7] = [0, 1, 0, 2, 0, 0, 0];

fn good_answer() -> Vec<u8> {
    let row = b"\0\x10\x07\0\0\0\0\0\0\0\x04body\x07\xe8\x07\x02\x1d\x01\x02\x03".to_vec();
    packets(1, &[vec![4], column(8), column(252), column(8), column(12), row, END.to_vec()])
}

fn statement() -> Statement {
    Statement {
        number: 258,
        parameter_types: vec![6, 6],
        types_sent: false,
        column_kinds: vec![Kind::Bytes; 4],
    }
}

fn rows_text() -> RowsText {
    RowsText {
        select: "SELECT a FROM t".to_owned(),
        table: "t".to_owned(),
        columns: "a".to_owned(),
        kinds: vec![FieldType::Int],
    }
}

/// One row, once.
struct OneRow(bool);

impl RowSource for OneRow {
    fn next(&mut self, put: &mut RowSink<'_>) -> Result<bool> {
        let taken = std::mem::replace(&mut self.0, true);
        if taken { Ok(false) } else { put(&[Value::Int(7)]).map(|()| true) }
    }
}

/// The answers to preparing, to opening a cursor and to fetching from it, of a table with one column.
fn cursor_answers(no_eof: bool) -> Vec<u8> {
    let end = |status: u8| {
        // An OK packet in place of EOF has changed rows and a key before the status.
        if no_eof { vec![0xfe, 0, 0, status, 0, 0, 0] } else { vec![0xfe, 0, 0, status, 0] }
    };
    let row = |number: u8| vec![0, 0, number, 0, 0, 0, 0, 0, 0, 0];
    let mut prepared = vec![vec![0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], column(8)];
    if !no_eof {
        prepared.push(end(2));
    }
    [
        packets(1, &prepared),
        packets(1, &[vec![1], column(8), end(0x42)]),
        packets(1, &[row(1), end(0x42)]),
        packets(1, &[row(2), end(0x82)]),
    ]
    .concat()
}

#[test]
fn cursor_is_read_in_parts_until_its_last_row() {
    for no_eof in [false, true] {
        let mut lean = over(cursor_answers(no_eof), usize::MAX, Agreed { no_eof, ..AGREED });
        let mut found = Vec::new();
        let moved = lean.read_rows(&rows_text(), Fetch::Rows(1), &mut |fields| {
            found.push(fields[0] == Value::Int(found.len() as i64 + 1));
            Ok(())
        });
        assert_eq!(moved.unwrap(), Moved { rows: 2, round_trips: Some(4) }, "{no_eof}");
        assert_eq!(found, [true, true]);
    }
}

#[test]
fn file_is_sent_only_for_our_own_statement_and_from_memory() {
    let answers = [packets(1, &[b"\xfb/etc/passwd".to_vec()]), packets(4, &[OK.to_vec()])].concat();
    let mut lean = over(answers.clone(), usize::MAX, AGREED);
    assert_eq!(lean.load_data(&rows_text(), &mut OneRow(false)).unwrap().rows, 1);
    let sent = &lean.packets.wire.stream().sent;
    // The row is packet 2, an empty packet 3 ends it.
    assert!(sent.ends_with(b"\x02\0\0\x027\n\0\0\0\x03"), "{}", sent.escape_ascii());
    let error = over(answers, usize::MAX, AGREED).query("SELECT 1", &mut Reply::new()).unwrap_err();
    assert!(error.to_string().contains("requests a local file"), "{error}");
}

#[test]
fn server_that_refuses_local_files_has_no_bulk_load_and_the_connection_goes_on() {
    let refusal = |code: u16| {
        let message = [&[0xff], &code.to_le_bytes()[..], b"#42000no"].concat();
        packets(1, &[message])
    };
    for (code, kind) in
        [(3948, ErrorKind::Unsupported), (1148, ErrorKind::Unsupported), (1062, ErrorKind::Server)]
    {
        let mut lean = over([refusal(code), good_answer()].concat(), usize::MAX, AGREED);
        let error = lean.load_data(&rows_text(), &mut OneRow(false)).unwrap_err();
        assert_eq!(error.kind(), kind, "{code}: {error}");
        lean.run(&mut statement(), &PARAMETERS, &mut Reply::new()).unwrap();
    }
}

const PARAMETERS: [Value<'static>; 2] = [Value::Int(258), Value::Bytes(b"xy")];

#[test]
fn operation_is_one_packet_and_types_are_sent_once() {
    let mut lean = over([good_answer(), good_answer(), good_answer()].concat(), usize::MAX, AGREED);
    let mut statement = statement();
    let mut out = Reply::new();
    lean.run(&mut statement, &PARAMETERS, &mut out).unwrap();
    assert_eq!((out.rows(), out.width()), (1, 4));
    assert_eq!(out.field_int(0, 0), Some(7));
    assert_eq!(out.field_bytes(0, 1), Some(&b"body"[..]));
    assert_eq!(out.field(0, 2), Some(Value::Null));
    assert_eq!(out.field(0, 3), Some(Value::Time(1_709_168_523_000_000)));
    let first = b"\x1b\0\0\0\x17\x02\x01\0\0\0\x01\0\0\0\0\x01\x08\0\xfc\0\x02\x01\0\0\0\0\0\0\x02xy";
    let again = b"\x17\0\0\0\x17\x02\x01\0\0\0\x01\0\0\0\0\0\x02\x01\0\0\0\0\0\0\x02xy";
    let null = b"\x0f\0\0\0\x17\x02\x01\0\0\0\x01\0\0\0\x01\0\x02xy";
    let sent = |lean: &Lean<Script>| lean.packets.wire.stream().sent.clone();
    assert_eq!(sent(&lean).escape_ascii().to_string(), first.escape_ascii().to_string());
    out.clear();
    lean.run(&mut statement, &PARAMETERS, &mut out).unwrap();
    assert_eq!(sent(&lean)[first.len()..].escape_ascii().to_string(), again.escape_ascii().to_string());
    // NULL does not change the types.
    lean.run(&mut statement, &[Value::Null, PARAMETERS[1]], &mut out).unwrap();
    let before = first.len() + again.len();
    assert_eq!(sent(&lean)[before..].escape_ascii().to_string(), null.escape_ascii().to_string());
}

#[test]
fn connection_is_usable_after_error() {
    let refusal = packets(1, &[b"\xff\x26\x04#23000Duplicate entry".to_vec()]);
    let mut lean = over([refusal, good_answer()].concat(), 7, AGREED);
    let mut out = Reply::new();
    let error = lean.run(&mut statement(), &PARAMETERS, &mut out).unwrap_err();
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::Server, Some("1062")));
    lean.run(&mut statement(), &PARAMETERS, &mut out).unwrap();
}

#[test]
fn statement_is_closed_although_request_was_not_sent() {
    let mut lean = over(packets(1, &[OK.to_vec()]), 100, AGREED);
    lean.forget(statement()).unwrap();
    // Out of range for the server's DATETIME.
    let beyond = [Value::Time(i64::MAX), Value::Null];
    lean.run(&mut statement(), &beyond, &mut Reply::new()).unwrap_err();
    lean.ping().unwrap();
    assert_eq!(lean.packets.wire.stream().sent, b"\x05\0\0\0\x19\x02\x01\0\0\x01\0\0\0\x0e");
}

#[test]
fn statement_with_unsupported_result_type_is_closed_on_server() {
    // One column of type TIME.
    let prepared = packets(1, &[b"\0\x02\x01\0\0\x01\0\0\0\0\0\0".to_vec(), column(11)]);
    let mut lean = over([prepared, packets(1, &[OK.to_vec()])].concat(), 100, AGREED);
    let error = lean.prepare("x").map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    lean.ping().unwrap();
    let sent = &lean.packets.wire.stream().sent;
    assert_eq!(&sent[6..], b"\x05\0\0\0\x19\x02\x01\0\0\x01\0\0\0\x0e");
}

#[test]
fn older_server_ends_columns_and_rows_with_eof() {
    let eof = vec![0xfe, 0, 0, 2, 0];
    let payloads = [vec![1], column(253), eof.clone(), b"\x02hi".to_vec(), b"\xfb".to_vec(), eof];
    let mut lean = over(packets(1, &payloads), 3, Agreed::default());
    let mut out = Reply::new();
    lean.query("SELECT a FROM b", &mut out).unwrap();
    assert_eq!((out.rows(), out.field_bytes(0, 0)), (2, Some(&b"hi"[..])));
    assert_eq!(out.field(1, 0), Some(Value::Null));
}

#[test]
fn call_returns_its_rows_and_a_final_result() {
    let int = || b"\0\0\x2a\0\0\0\0\0\0\0".to_vec();
    let more = [0xfe, 0, 0, 10, 0, 0, 0].to_vec();
    let set = |end: &Vec<u8>| vec![vec![1], column(8), int(), end.clone()];
    let answer = |results: &[Vec<Vec<u8>>]| packets(1, &results.concat());
    let one = answer(&[set(&more), vec![OK.to_vec()]]);
    let failed = answer(&[set(&more), vec![b"\xff\x26\x04#23000Duplicate entry".to_vec()]]);
    let two = answer(&[set(&more), set(&more), vec![OK.to_vec()]]);
    let mut lean = over([one.clone(), two, failed, one].concat(), 7, AGREED);
    let mut statement = Statement { parameter_types: Vec::new(), column_kinds: Vec::new(), ..statement() };
    let mut run = || {
        let mut out = Reply::new();
        lean.run(&mut statement, &[], &mut out).map(|()| (out.rows(), out.field_int(0, 0), out.affected()))
    };
    assert_eq!(run(), Ok((1, Some(42), 1)));
    assert_eq!(run().unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(run().unwrap_err().server_code(), Some("1062"));
    assert_eq!(run(), Ok((1, Some(42), 1)));
    // The same in the text format, with a server that ends columns and rows with EOF.
    let (eof, more) = (vec![0xfe, 0, 0, 2, 0], vec![0xfe, 0, 0, 10, 0]);
    let payloads = [vec![1], column(253), eof, b"\x02hi".to_vec(), more, OK.to_vec()];
    let mut lean = over([packets(1, &payloads), packets(1, &[OK.to_vec()])].concat(), 3, Agreed::default());
    let mut out = Reply::new();
    lean.query("CALL p()", &mut out).unwrap();
    assert_eq!((out.rows(), out.field_bytes(0, 0)), (1, Some(&b"hi"[..])));
    lean.ping().unwrap();
}

#[test]
fn columns_omitted_by_mariadb_are_cached() {
    let mut statement = Statement { column_kinds: vec![Kind::Int { bytes: 8, signed: true }], ..statement() };
    let payloads = [vec![1, 0], b"\0\0\x2a\0\0\0\0\0\0\0".to_vec(), END.to_vec()];
    let mut lean = over(packets(1, &payloads), 100, Agreed { cached_columns: true, ..AGREED });
    let mut out = Reply::new();
    lean.run(&mut statement, &PARAMETERS, &mut out).unwrap();
    assert_eq!(out.field_int(0, 0), Some(42));
}

#[test]
fn row_of_several_packets_is_joined() {
    for length in [MAX - 5, MAX - 4, MAX, 2 * MAX + 3] {
        let value: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
        let mut row = Vec::new();
        push_length(&mut row, length);
        row.extend_from_slice(&value);
        let mut payloads = vec![vec![1], column(252)];
        payloads.extend(row.chunks(MAX).map(<[u8]>::to_vec));
        if row.len() % MAX == 0 {
            payloads.push(Vec::new());
        }
        payloads.push(END.to_vec());
        let mut lean = over(packets(1, &payloads), 60_000, AGREED);
        let mut out = Reply::new();
        lean.query("SELECT a", &mut out).unwrap();
        assert!(out.field_bytes(0, 0) == Some(&value), "{length}");
    }
}

#[test]
fn packet_out_of_order_is_an_error() {
    let mut lean = over(packets(2, &[OK.to_vec()]), 100, AGREED);
    let error = lean.ping().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert_eq!(lean.ping().unwrap_err().kind(), ErrorKind::ConnectionLost);
}

/// Executes, prepares, queries and logs in with these replies; nothing may panic or loop endlessly.
fn exercise(answers: &[u8], piece: usize) {
    for cached_columns in [false, true] {
        for no_eof in [false, true] {
            let over = || over(answers.to_vec(), piece, Agreed { no_eof, cached_columns, ..AGREED });
            let mut out = Reply::new();
            let _ = over().run(&mut statement(), &PARAMETERS, &mut out);
            let _ = over().prepare("SELECT 1");
            let _ = over().query("SELECT 1", &mut out);
            for fetch in [Fetch::Rows(1), Fetch::Whole] {
                let _ = over().exchange(|lean| lean.read_parts(&mut statement(), fetch, &mut |_| Ok(())));
            }
            let _ = over().load_data(&rows_text(), &mut OneRow(false));
        }
    }
    let _ = log_in(answers.to_vec(), piece);
    let _ = log_in([packets(0, &[greeting()]), answers.to_vec()].concat(), piece);
}

mod fuzz {
    use super::*;

    /// The answers are the input itself, or packets: the number of the first, then payloads with their lengths.
    #[test]
    fn any_answers_are_a_reply_or_an_error() {
        bolero::check!(name = "mysql-answers").for_each(|input: &[u8]| {
            let mut parts = Parts::new(input);
            let (piece, framed) = parts.head();
            if !framed {
                return exercise(parts.rest(), piece);
            }
            let first = parts.byte() % 3;
            let mut payloads = Vec::new();
            while !parts.is_empty() {
                payloads.push(parts.bytes().to_vec());
            }
            exercise(&packets(first, &payloads), piece);
        });
    }
}

proptest! {
    #[test]
    fn truncated_reply_is_a_lost_connection(keep in 0usize..1000, piece in 1usize..64) {
        let whole = good_answer();
        let keep = keep % whole.len();
        let mut lean = over(whole[..keep].to_vec(), piece, AGREED);
        let error = lean.run(&mut statement(), &PARAMETERS, &mut Reply::new()).unwrap_err();
        prop_assert_eq!(error.kind(), ErrorKind::ConnectionLost);
        prop_assert_eq!(lean.ping().unwrap_err().kind(), ErrorKind::ConnectionLost);
    }

    #[test]
    fn damaged_reply_never_panics(at in 0usize..1000, byte: u8, piece in 1usize..64) {
        for mut answers in [good_answer(), packets(0, &[greeting()])] {
            let at = at % answers.len();
            answers[at] = byte;
            exercise(&answers, piece);
        }
    }
}
