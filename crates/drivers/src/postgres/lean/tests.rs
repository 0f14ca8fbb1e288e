use super::*;
use crate::wire::script::{Parts, Script};
use kurabe_core::target::TargetUrl;
use proptest::prelude::*;

fn lean(answers: Vec<u8>) -> Lean<Script> {
    Lean::over(Wire::new(Script::new(answers)))
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
    out
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

fn row(fields: &[Option<&[u8]>]) -> Vec<u8> {
    let mut body = (fields.len() as u16).to_be_bytes().to_vec();
    for field in fields {
        body.extend_from_slice(&field.map_or(-1, |bytes| bytes.len() as i32).to_be_bytes());
        body.extend_from_slice(field.unwrap_or_default());
    }
    message(b'D', &body)
}

fn refusal(state: &str, text: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0C{state}\0M{text}\0\0").as_bytes())
}

fn statement() -> Statement {
    let column_forms = vec![Form::Int(8), Form::Bytes, Form::Time];
    Statement::new("k1".to_owned(), vec![20, 17], vec![Form::Int(8), Form::Bytes], column_forms, false)
}

fn rows_text() -> RowsText {
    let kinds = vec![FieldType::Int, FieldType::LongText];
    RowsText {
        select: "SELECT a, b FROM t".to_owned(),
        table: "t".to_owned(),
        columns: "a, b".to_owned(),
        kinds,
    }
}

/// Two rows, of which so many were taken.
struct TwoRows(i64);

impl RowSource for TwoRows {
    fn next(&mut self, put: &mut RowSink<'_>) -> Result<bool> {
        self.0 += 1;
        if self.0 > 2 {
            return Ok(false);
        }
        put(&[Value::Int(self.0), Value::Text("x")]).map(|()| true)
    }
}

fn two(number: i64) -> [Vec<u8>; 2] {
    [number.to_be_bytes().to_vec(), b"x".to_vec()]
}

fn data_row(number: i64) -> Vec<u8> {
    let [a, b] = two(number);
    row(&[Some(&a), Some(&b)])
}

/// Reads all rows and returns their first fields.
fn numbers(lean: &mut Lean<Script>, fetch: Fetch) -> Result<(Vec<i64>, Moved)> {
    let mut found = Vec::new();
    let moved = lean.read_rows(&rows_text(), fetch, &mut |fields| {
        assert_eq!(fields[1], Value::Bytes(b"x"));
        if let Value::Int(number) = fields[0] {
            found.push(number);
        }
        Ok(())
    })?;
    Ok((found, moved))
}

#[test]
fn portal_is_read_in_parts_of_so_many_rows() {
    let end = [message(b'3', b""), ready()].concat();
    let answers = [
        description(&[], &[20, 25]),
        message(b'2', b""),
        data_row(1),
        message(b's', b""),
        data_row(2),
        message(b'C', b"SELECT 2\0"),
        end,
    ];
    let mut lean = lean(answers.concat());
    let (found, moved) = numbers(&mut lean, Fetch::Rows(1)).unwrap();
    assert_eq!((found, moved), (vec![1, 2], Moved { rows: 2, round_trips: Some(4) }));
    let sent = lean.wire.stream().sent.escape_ascii().to_string();
    // Twice Execute of one row and Flush; Sync only at the end.
    let fetch = b"E\0\0\0\x09\0\0\0\0\x01H\0\0\0\x04".escape_ascii().to_string();
    assert_eq!(
        (sent.matches(&fetch).count(), sent.matches("S\\x00\\x00\\x00\\x04").count()),
        (2, 2),
        "{sent}"
    );
}

#[test]
fn error_within_a_portal_is_returned_and_the_connection_goes_on() {
    let answers = [
        description(&[], &[20, 25]),
        message(b'2', b""),
        data_row(1),
        refusal("57014", "canceled"),
        ready(),
        good_answer(),
    ];
    let mut lean = lean(answers.concat());
    let error = numbers(&mut lean, Fetch::Rows(5)).unwrap_err();
    assert_eq!(error.server_code(), Some("57014"));
    lean.run(&mut statement(), &[Value::Int(1), Value::Bytes(b"x")], &mut Reply::new()).unwrap();
}

#[test]
fn rows_of_copy_are_read_from_messages_with_any_number_of_them() {
    let tuple = |number| data_row(number)[5..].to_vec();
    let header = [b"PGCOPY\n\xff\r\n\0".as_slice(), &[0; 8]].concat();
    let answers = [
        description(&[], &[20, 25]),
        // The answer to Close and Sync, which are sent before the query.
        [message(b'3', b""), ready()].concat(),
        message(b'H', &[1, 0, 2, 0, 1, 0, 1]),
        message(b'd', &[header, tuple(1), tuple(2)].concat()),
        message(b'd', &tuple(3)),
        message(b'd', &[0xff, 0xff]),
        [message(b'c', b""), message(b'C', b"COPY 3\0"), ready()].concat(),
    ];
    let (found, moved) = numbers(&mut lean(answers.concat()), Fetch::Whole).unwrap();
    assert_eq!((found, moved.rows), (vec![1, 2, 3], 3));
}

#[test]
fn copied_rows_are_sent_in_binary_and_counted_by_the_server() {
    let answers = [
        description(&[], &[20, 25]),
        [message(b'3', b""), ready()].concat(),
        message(b'G', &[1, 0, 2, 0, 1, 0, 1]),
        [message(b'C', b"COPY 2\0"), ready()].concat(),
    ];
    let mut lean = lean(answers.concat());
    assert_eq!(lean.write_rows(&rows_text(), &mut TwoRows(0)).unwrap().rows, 2);
    let sent = lean.wire.stream().sent.escape_ascii().to_string();
    let last = b"\0\x02\0\0\0\x08\0\0\0\0\0\0\0\x02\0\0\0\x01x\xff\xffc\0\0\0\x04".escape_ascii().to_string();
    assert!(sent.ends_with(&last), "{sent}");
}

#[test]
fn server_that_answers_copy_as_no_server_does_is_refused() {
    let before = [description(&[], &[20, 25]), message(b'3', b""), ready()];
    let begins = message(b'G', &[1, 0, 2, 0, 1, 0, 1]);
    let ended = [message(b'C', b"COPY 2\0"), ready()].concat();
    let rows = message(b'd', b"rows");
    for answers in [
        vec![&begins, &rows, &ended],
        vec![&rows, &begins, &ended],
        vec![&ended, &begins, &ended],
        vec![&begins, &begins, &ended],
    ] {
        let answers: Vec<&[u8]> = answers.into_iter().map(Vec::as_slice).collect();
        let mut lean = lean([before.concat(), answers.concat()].concat());
        let error = lean.write_rows(&rows_text(), &mut TwoRows(0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{answers:?}: {error}");
    }
    // After an error the server waits for no rows.
    let refused = refusal("42501", "permission denied");
    let mut lean = lean([before.concat(), refused, begins].concat());
    assert_eq!(lean.write_rows(&rows_text(), &mut TwoRows(0)).unwrap_err().server_code(), Some("42501"));
    assert!(!lean.wire.stream().sent.ends_with(b"c\0\0\0\x04"));
}

fn good_answer() -> Vec<u8> {
    let fields: [Option<&[u8]>; 3] = [Some(&[0, 0, 0, 0, 0, 0, 0, 7]), Some(b"body"), None];
    let parts = [
        message(b'2', b""),
        message(b'N', b"SNOTICE\0\0"),
        message(b'S', b"TimeZone\0UTC\0"),
        row(&fields),
        message(b'C', b"SELECT 1\0"),
        ready(),
    ];
    parts.concat()
}

#[test]
fn operation_is_one_bind_execute_and_sync() {
    let mut lean = lean(good_answer());
    let mut out = Reply::new();
    lean.run(&mut statement(), &[Value::Int(258), Value::Bytes(b"xy")], &mut out).unwrap();
    let expected = b"B\0\0\0$\0k1\0\0\x01\0\x01\0\x02\0\0\0\x08\0\0\0\0\0\0\x01\x02\0\0\0\x02xy\0\x01\0\x01\
        E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
    assert_eq!(lean.wire.stream().sent.escape_ascii().to_string(), expected.escape_ascii().to_string());
    assert_eq!((out.rows(), out.width(), out.affected()), (1, 3, 0));
    assert_eq!(out.field_int(0, 0), Some(7));
    assert_eq!(out.field_bytes(0, 1), Some(&b"body"[..]));
    assert_eq!(out.field(0, 2), Some(Value::Null));
}

/// Description of a statement with these parameter and column types.
fn description(parameter_types: &[u32], column_types: &[u32]) -> Vec<u8> {
    let mut parameters = (parameter_types.len() as u16).to_be_bytes().to_vec();
    parameters.extend(parameter_types.iter().flat_map(|kind| kind.to_be_bytes()));
    let mut columns = (column_types.len() as u16).to_be_bytes().to_vec();
    for kind in column_types {
        columns.extend_from_slice(b"c\0\0\0\0\0\0\0");
        columns.extend_from_slice(&kind.to_be_bytes());
        columns.extend_from_slice(&[0; 8]);
    }
    [message(b'1', b""), message(b't', &parameters), message(b'T', &columns), ready()].concat()
}

#[test]
fn other_types_use_text_format_beside_binary_ones() {
    let (int8, uuid, numeric, bool) = (20, 2950, 1700, 16);
    let fields: [Option<&[u8]>; 3] = [Some(b"12.50"), Some(&[0, 0, 0, 0, 0, 0, 0, 7]), Some(b"t")];
    let answer = [message(b'2', b""), row(&fields), message(b'C', b"SELECT 1\0"), ready()].concat();
    let mut lean = lean([description(&[uuid, int8], &[numeric, int8, bool]), answer].concat());
    let mut statement = lean.prepare("x").unwrap();
    let before = lean.wire.stream().sent.len();
    let mut out = Reply::new();
    lean.run(&mut statement, &[Value::Text("a0ee"), Value::Int(1)], &mut out).unwrap();
    let expected = b"B\0\0\0,\0k1\0\0\x02\0\0\0\x01\0\x02\0\0\0\x04a0ee\0\0\0\x08\0\0\0\0\0\0\0\x01\
        \0\x03\0\0\0\x01\0\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
    let sent = &lean.wire.stream().sent[before..];
    assert_eq!(sent.escape_ascii().to_string(), expected.escape_ascii().to_string());
    assert_eq!(out.field_bytes(0, 0), Some(&b"12.50"[..]));
    assert_eq!(out.field_int(0, 1), Some(7));
    assert_eq!(out.field_bytes(0, 2), Some(&b"t"[..]));
}

#[test]
fn values_of_custom_statement_use_text_format() {
    let fields: [Option<&[u8]>; 2] = [Some(b"-7"), Some(b"2024-02-29")];
    let answer = [message(b'2', b""), row(&fields), message(b'C', b"SELECT 1\0"), ready()].concat();
    let mut lean = lean([description(&[20], &[23, 1082]), answer].concat());
    let mut statement = lean.prepare_raw("x").unwrap();
    let mut out = Reply::new();
    lean.run(&mut statement, &[Value::Int(258)], &mut out).unwrap();
    assert!(lean.wire.stream().sent.windows(7).any(|bytes| bytes == b"\0\0\0\x03258"));
    assert_eq!((out.field_int(0, 0), out.field_bytes(0, 1)), (Some(-7), Some(&b"2024-02-29"[..])));
}

#[test]
fn connection_is_usable_after_error() {
    let answers = [refusal("23505", "duplicate key"), ready(), good_answer()].concat();
    let mut lean = lean(answers);
    let mut out = Reply::new();
    let parameters = [Value::Int(1), Value::Bytes(b"x")];
    let error = lean.run(&mut statement(), &parameters, &mut out).unwrap_err();
    assert_eq!(error.server_code(), Some("23505"));
    lean.run(&mut statement(), &parameters, &mut out).unwrap();
}

#[test]
fn closed_connection_reports_last_error_of_server() {
    let mut lean = lean(refusal("57P01", "terminating connection due to administrator command"));
    let error = lean.query("SELECT 1", &mut Reply::new()).unwrap_err();
    assert_eq!((error.kind(), error.server_code()), (ErrorKind::ConnectionLost, Some("57P01")));
    let error = lean.query("SELECT 1", &mut Reply::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionLost);
}

#[test]
fn statement_is_closed_with_next_request() {
    let answers = [message(b'3', b""), ready(), message(b'C', b"DELETE 3\0"), ready()].concat();
    let mut lean = lean(answers);
    lean.forget(statement()).unwrap();
    let mut out = Reply::new();
    lean.query("x", &mut out).unwrap();
    assert_eq!(out.affected(), 3);
    assert_eq!(lean.wire.stream().sent, b"C\0\0\0\x08Sk1\0S\0\0\0\x04Q\0\0\0\x06x\0");
}

#[test]
fn statement_is_closed_although_request_was_not_sent() {
    let mut lean = lean([message(b'3', b""), ready(), message(b'I', b""), ready()].concat());
    lean.forget(statement()).unwrap();
    let mut out = Reply::new();
    lean.run(&mut statement(), &[Value::Text("no"), Value::Bytes(b"")], &mut out).unwrap_err();
    lean.query("a\0b", &mut out).unwrap_err();
    assert!(lean.wire.stream().sent.is_empty());
    lean.ping().unwrap();
    assert!(lean.wire.stream().sent.starts_with(b"C\0\0\0\x08Sk1\0"));
}

#[test]
fn too_many_scram_iterations_are_rejected_at_once() {
    let config = Config::from_url(&TargetUrl::parse("postgres://u:secret@h/d").unwrap()).unwrap().remove(0);
    let begin = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    let first = message(b'R', b"\0\0\0\x0br=nonce,s=c2FsdA==,i=4000000000");
    let mut wire = Wire::new(Script::new([begin, first].concat()));
    let error = startup::start(&mut wire, &config, &Channel::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.to_string().contains("4000000000 iterations"), "{error}");
}

#[test]
fn invalid_parameter_sends_nothing() {
    let mut lean = lean(good_answer());
    let mut out = Reply::new();
    let error = lean.run(&mut statement(), &[Value::Text("no"), Value::Bytes(b"")], &mut out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(lean.wire.stream().sent.is_empty());
    lean.run(&mut statement(), &[Value::Int(1), Value::Bytes(b"")], &mut out).unwrap();
}

#[test]
fn server_without_scram_proof_is_rejected() {
    let config = Config::from_url(&TargetUrl::parse("postgres://u:secret@h/d").unwrap()).unwrap().remove(0);
    let begin = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    let done = message(b'R', b"\0\0\0\0");
    let mut wire = Wire::new(Script::new([begin, done, ready()].concat()));
    let error = startup::start(&mut wire, &config, &Channel::default()).unwrap_err();
    assert!(error.to_string().contains("did not prove"), "{error}");
    let mut wire = Wire::new(Script::new(message(b'R', b"\0\0\0\x03")));
    let error = startup::start(&mut wire, &config, &Channel::default()).unwrap_err();
    assert!(error.to_string().contains("plain text"), "{error}");
    assert!(!wire.stream().sent.windows(6).any(|bytes| bytes == b"secret"));
}

use super::authentication::Channel;
use crate::postgres::config::Config;

/// Executes, prepares, queries and starts with these replies; nothing may panic or loop endlessly.
fn exercise(answers: &[u8], piece: usize) {
    let over = || Lean::over(Wire::new(Script::in_pieces(answers.to_vec(), piece)));
    let mut out = Reply::new();
    let _ = over().run(&mut statement(), &[Value::Int(1), Value::Bytes(b"x")], &mut out);
    let _ = over().prepare("SELECT 1");
    let _ = over().query("SELECT 1", &mut out);
    for fetch in [Fetch::Rows(1), Fetch::Whole] {
        let _ = over().read_rows(&rows_text(), fetch, &mut |_| Ok(()));
    }
    let _ = over().write_rows(&rows_text(), &mut TwoRows(0));
    let config = Config::from_url(&TargetUrl::parse("postgres://u:p@h/d").unwrap()).unwrap().remove(0);
    let _ = startup::start(
        &mut Wire::new(Script::in_pieces(answers.to_vec(), piece)),
        &config,
        &Channel { private: true, ..Channel::default() },
    );
}

mod fuzz {
    use super::*;

    /// The kinds of messages that a server sends.
    const KINDS: &[u8] = b"DCZETtRSN123nIKsHGdc";

    /// The answers are the input itself, or messages: each is a kind, and a body with its length.
    #[test]
    fn any_answers_are_a_reply_or_an_error() {
        bolero::check!(name = "postgres-answers").for_each(|input: &[u8]| {
            let mut parts = Parts::new(input);
            let (piece, framed) = parts.head();
            if !framed {
                return exercise(parts.rest(), piece);
            }
            let mut answers = Vec::new();
            while !parts.is_empty() {
                let kind = parts.byte();
                let known = KINDS.contains(&kind);
                let kind = if known { kind } else { KINDS[usize::from(kind) % KINDS.len()] };
                answers.extend(message(kind, parts.bytes()));
            }
            exercise(&answers, piece);
        });
    }
}

proptest! {
    #[test]
    fn truncated_reply_is_a_lost_connection(keep in 0usize..1000, piece in 1usize..64) {
        let whole = good_answer();
        let keep = keep % whole.len();
        let mut lean = Lean::over(Wire::new(Script::in_pieces(whole[..keep].to_vec(), piece)));
        let error = lean.run(&mut statement(), &[Value::Int(1), Value::Bytes(b"x")], &mut Reply::new()).unwrap_err();
        prop_assert_eq!(error.kind(), ErrorKind::ConnectionLost);
        let error = lean.ping().unwrap_err();
        prop_assert_eq!(error.kind(), ErrorKind::ConnectionLost);
    }

    #[test]
    fn damaged_reply_never_panics(at in 0usize..1000, byte: u8) {
        let mut answers = good_answer();
        let at = at % answers.len();
        answers[at] = byte;
        exercise(&answers, 1000);
    }
}
