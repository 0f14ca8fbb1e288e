//! Values round-trip.

use super::subject::{Subject, affected, count, data, get, insert, put, run};
use kurabe_core::ErrorKind;
use kurabe_core::collection::FieldType;
use kurabe_core::driver::{Session, Support};
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};

/// As a reply returns it: text as bytes.
fn replied(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Text(text) => Value::Bytes(text.as_bytes()),
        other => other,
    }
}

pub(super) fn assert_row(reply: &Reply, row: usize, expected: &[Value<'_>], what: &str) {
    assert_eq!(reply.width(), expected.len(), "{what}");
    for (field, value) in expected.iter().enumerate() {
        let found = reply.field(row, field).unwrap();
        // Not `assert_eq`: printing a megabyte of difference does not help.
        assert!(found == replied(*value), "{what}: field {field} is {:.100}", format!("{found:?}"));
    }
}

pub(super) fn every_value_comes_back(subject: &Subject) {
    let fields = [
        ("id", FieldType::Text { max: 72 }),
        ("word", FieldType::Text { max: 200 }),
        ("story", FieldType::LongText),
        ("mark", FieldType::Bytes { max: 300 }),
        ("data", FieldType::LongBytes),
        ("number", FieldType::Int),
        ("at", FieldType::Timestamp),
    ];
    let collection = subject.make("values", &fields, &[0]);
    let every_byte: Vec<u8> = (0..=255).collect();
    let long_bytes: Vec<u8> =
        (0..1_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let long_text: String =
        "0123456789 'quoted' \"twice\" \\ ünïcödé 🦀\n".chars().cycle().take(200_000).collect();
    let quotes = r#"' '' " \ \' ; -- /* */ ? $1 :a %s ` \0 \n"#;
    let texts = ["", " ", quotes, "Ünïcödé 🦀🏔 \u{10FFFF}", "tab\tnewline\nreturn\r", "  spaces around  "];
    let numbers = [0, 1, -1, i64::MIN, i64::MAX, 1 << 32, -(1 << 53) - 1];
    // The years 1970, 2023 with microseconds, 1969, 1968, 2038 and later, 1001, 9999.
    let times = [
        0,
        1_700_000_000_123_456,
        -1,
        -31_536_000_000_001,
        2_147_483_648_000_001,
        253_402_300_799_999_999,
        -30_578_688_000_000_000 + 1,
        999_999,
    ];
    let n = Value::Null;
    let mut rows = vec![[Value::Text("null"), n, n, n, n, n, n]];
    let (text, int, time) = (Value::Text("x"), Value::Int(5), Value::Time(1));
    for value in texts {
        rows.push([
            text,
            Value::Text(value),
            Value::Text(value),
            n,
            Value::Bytes(value.as_bytes()),
            int,
            time,
        ]);
    }
    for bytes in [&b""[..], &[0], &[255], &[0, 0, 255, 0], b"' \" \\ \r\n", &every_byte] {
        rows.push([text, text, text, Value::Bytes(bytes), Value::Bytes(bytes), int, time]);
    }
    rows.extend(numbers.map(|number| [text, n, n, n, n, Value::Int(number), n]));
    rows.extend(times.map(|time| [text, n, n, n, n, n, Value::Time(time)]));
    rows.push([text, n, n, n, Value::Bytes(&long_bytes), int, time]);
    rows.push([text, n, Value::Text(&long_text), n, n, int, time]);

    let mut session = subject.session();
    let ids: Vec<String> = (0..rows.len()).map(|n| format!("row {n}")).collect();
    for (row, id) in rows.iter_mut().zip(&ids) {
        row[0] = Value::Text(id);
        let done = affected(session.as_mut(), &insert(&collection), row.as_slice());
        assert_eq!(done, 1, "insert of {id}");
    }
    // Again, over the same rows in another order, so that no reply is that of the previous request.
    for (row, id) in rows.iter().zip(&ids).rev() {
        run(session.as_mut(), &put(&collection), row.as_slice())
            .unwrap_or_else(|e| panic!("put of {id}: {e}"));
    }
    let all = get(&collection, &[1, 2, 3, 4, 5, 6]);
    let prepared = session.prepare(&all).unwrap();
    let mut out = Reply::new();
    for (row, id) in rows.iter().zip(&ids) {
        session.execute(&prepared, &row[..1], &mut out).unwrap_or_else(|e| panic!("{id}: {e}"));
        assert_eq!(out.rows(), 1, "{id}");
        assert_row(&out, 0, &row[1..], id);
    }
    session.release(prepared).unwrap();
    literals_round_trip(subject, session.as_mut(), &all, &rows);
    let some = run(session.as_mut(), &get(&collection, &[3, 6]), &rows[8][..1]).unwrap();
    assert_row(&some, 0, &[rows[8][3], rows[8][6]], &subject.url);
    let turned = get(&collection, &[6, 0, 2]);
    if subject.has(&turned) {
        let some = run(session.as_mut(), &turned, &rows[8][..1]).unwrap();
        assert_row(&some, 0, &[rows[8][6], rows[8][0], rows[8][2]], &subject.url);
    }
    session.close().unwrap();
}

/// The same rows, written and read with literals; or the reason why that is impossible.
fn literals_round_trip(
    subject: &Subject,
    session: &mut dyn Session,
    all: &Operation,
    rows: &[[Value<'_>; 7]],
) {
    if let Support::No(reason) = subject.driver.capabilities().literals {
        assert!(reason.len() > 10 && !reason.ends_with('.'), "'{reason}' is not a clause");
        let error = session.prepare_literal(all).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        return;
    }
    let collection = all.collection().unwrap();
    let [read, remove, add] =
        [all.clone(), Operation::Delete { collection: collection.clone() }, insert(collection)]
            .map(|operation| session.prepare_literal(&operation).unwrap());
    let mut out = Reply::new();
    for row in rows {
        let what = format!("{:?} in the text", row[0]);
        session.execute(&read, &row[..1], &mut out).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_row(&out, 0, &row[1..], &what);
        assert_eq!((out.rows(), out.affected()), (1, 0), "{what}");
        session.execute(&remove, &row[..1], &mut out).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(out.affected(), 1, "{what}");
        session.execute(&add, row, &mut out).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(out.affected(), 1, "{what}");
        session.execute(&read, &row[..1], &mut out).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_row(&out, 0, &row[1..], &what);
    }
    let error = session.execute(&read, &[], &mut out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    for prepared in [read, remove, add] {
        session.release(prepared).unwrap();
    }
}

pub(super) fn different_keys_are_different_rows(subject: &Subject) {
    let collection = subject.make_plain("keys");
    let mut session = subject.session();
    let long = "x".repeat(40);
    let ids = [
        "a",
        // SQL's PAD SPACE would make these three equal.
        "a ",
        "a  ",
        " ",
        "A",
        "á",
        " a",
        "a:b",
        "a%3Ab",
        "'",
        "\"",
        "\\",
        "%",
        "_",
        "",
        "🦀",
        "ß",
        "ss",
        "SS",
        "\u{1}",
        &long,
        &long[1..],
    ];
    for (n, id) in ids.iter().enumerate() {
        let row = [Value::Text(id), Value::Bytes(&[n as u8])];
        run(session.as_mut(), &insert(&collection), &row).unwrap_or_else(|e| panic!("key {id:?}: {e}"));
    }
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(data(session.as_mut(), &collection, id), Some(vec![n as u8]), "key {id:?}");
    }
    let numbers = subject.make("number_keys", &[("id", FieldType::Int), ("data", FieldType::LongText)], &[0]);
    for number in [0, -1, 1, i64::MIN, i64::MAX] {
        let text = number.to_string();
        run(session.as_mut(), &insert(&numbers), &[Value::Int(number), Value::Text(&text)]).unwrap();
        let reply = run(session.as_mut(), &get(&numbers, &[1]), &[Value::Int(number)]).unwrap();
        assert_eq!(reply.field_bytes(0, 0), Some(text.as_bytes()));
    }
}

pub(super) fn a_second_row_of_a_key_is_refused(subject: &Subject) {
    let collection = subject.make_plain("twice");
    let mut session = subject.session();
    let first = [Value::Text("a"), Value::Bytes(b"first")];
    let second = [Value::Text("a"), Value::Bytes(b"second")];
    assert_eq!(affected(session.as_mut(), &insert(&collection), &first), 1);
    let prepared = session.prepare(&insert(&collection)).unwrap();
    let mut out = Reply::new();
    for _ in 0..3 {
        let error = session.execute(&prepared, &second, &mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Server, "{error}");
        assert!(error.server_code().is_some_and(|code| !code.is_empty()), "{error}");
        assert_eq!((out.rows(), out.affected()), (0, 0));
        // The session continues, and the row is still the first one.
        assert_eq!(data(session.as_mut(), &collection, "a").as_deref(), Some(&b"first"[..]));
    }
    session.execute(&prepared, &[Value::Text("b"), Value::Null], &mut out).unwrap();
    assert_eq!(out.affected(), 1);
    session.release(prepared).unwrap();
    run(session.as_mut(), &put(&collection), &second).unwrap();
    assert_eq!(data(session.as_mut(), &collection, "a").as_deref(), Some(&b"second"[..]));
}

pub(super) fn absent_rows_are_no_error_and_affected_rows_are_counted(subject: &Subject) {
    let collection = subject.make_plain("absent");
    let session = &mut *subject.session();
    let absent = Value::Text("absent");
    assert_eq!(data(session, &collection, "absent"), None);
    let update = Operation::Update { collection: collection.clone(), fields: vec![1] };
    let delete = Operation::Delete { collection: collection.clone() };
    if subject.has(&delete) {
        assert_eq!(affected(session, &delete, &[absent]), 0);
    }
    if subject.has(&update) {
        assert_eq!(affected(session, &update, &[Value::Bytes(b"x"), absent]), 0);
        assert_eq!(data(session, &collection, "absent"), None);
    }
    let here = Value::Text("here");
    assert_eq!(affected(session, &insert(&collection), &[here, Value::Bytes(b"1")]), 1);
    if subject.has(&update) {
        // The second time changes nothing, but the row exists: it counts.
        for _ in 0..2 {
            assert_eq!(affected(session, &update, &[Value::Bytes(b"2"), here]), 1);
        }
        assert_eq!(data(session, &collection, "here").as_deref(), Some(&b"2"[..]));
    }
    if subject.has(&delete) {
        assert_eq!(affected(session, &delete, &[here]), 1);
        assert_eq!(affected(session, &delete, &[here]), 0);
        assert_eq!(data(session, &collection, "here"), None);
    }
}

pub(super) fn many_rows_go_in_together_or_not_at_all(subject: &Subject) {
    let collection = subject.make_plain("many");
    let many = Operation::InsertMany { collection: collection.clone(), rows: 50 };
    if !subject.has(&many) {
        return;
    }
    let ids: Vec<String> = (0..99).map(|n| format!("id {n}")).collect();
    let mut other = subject.session();
    // If the server cannot count, the test reads every possible row.
    let mut counted = || {
        if subject.has(&count(&collection)) {
            return run(other.as_mut(), &count(&collection), &[]).unwrap().field_int(0, 0);
        }
        Some(ids.iter().filter(|id| data(other.as_mut(), &collection, id).is_some()).count() as i64)
    };
    assert_eq!(counted(), Some(0));
    let session = &mut *subject.session();
    let row = |n: usize| [Value::Text(&ids[n]), Value::Bytes(ids[n].as_bytes())];
    let first: Vec<Value<'_>> = (0..50).flat_map(row).collect();
    assert_eq!(affected(session, &many, &first), 50);
    assert_eq!(counted(), Some(50));
    // The first of these is new; the last exists already.
    let second: Vec<Value<'_>> = (49..99).rev().flat_map(row).collect();
    let error = run(session, &many, &second).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server, "{error}");
    assert_eq!(counted(), Some(50));
    assert_eq!(data(session, &collection, "id 98"), None);
    assert_eq!(data(session, &collection, "id 49").as_deref(), Some(&b"id 49"[..]));
}

/// Some servers limit the sum of the declared lengths of a statement's parameters.
pub(super) fn many_rows_of_wide_fields_come_back(subject: &Subject) {
    let text = |max| FieldType::Text { max };
    let fields = [
        ("id", FieldType::Int),
        ("name", text(400)),
        ("indexed", text(100)),
        ("data", FieldType::Bytes { max: 400 }),
    ];
    let collection = subject.make("wide", &fields, &[0]);
    let many = Operation::InsertMany { collection: collection.clone(), rows: 40 };
    if !subject.has(&many) {
        return;
    }
    let texts: Vec<String> = (0..40).map(|n| format!("田中 健 {n}")).collect();
    let bytes: Vec<[u8; 3]> = (0..40).map(|n| [0, n, 0xff - n]).collect();
    let row = |n: usize| {
        [Value::Int(n as i64), Value::Text(&texts[n]), Value::Text(&texts[39 - n]), Value::Bytes(&bytes[n])]
    };
    let session = &mut *subject.session();
    assert_eq!(affected(session, &many, &(0..40).flat_map(row).collect::<Vec<_>>()), 40);
    let read = get(&collection, &[1, 2, 3]);
    for n in 0..40 {
        let reply = run(session, &read, &[Value::Int(n as i64)]).unwrap();
        assert_row(&reply, 0, &row(n)[1..], &subject.url);
    }
}

pub(super) fn each_row_of_a_request_goes_in_or_is_refused(subject: &Subject) {
    let collection = subject.make_plain("each");
    let each = Operation::InsertEach { collection: collection.clone(), rows: 3 };
    if !subject.has(&each) {
        return;
    }
    let session = &mut *subject.session();
    let row = |id: &'static str| [Value::Text(id), Value::Bytes(id.as_bytes())];
    let first = ["a", "b", "c"].map(row).concat();
    assert_eq!(affected(session, &each, &first), 3);
    let error = run(session, &each, &["d", "b", "e"].map(row).concat()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server, "{error}");
    assert!(error.server_code().is_some_and(|code| !code.is_empty()), "{error}");
    for id in ["a", "b", "c"] {
        assert_eq!(data(session, &collection, id).as_deref(), Some(id.as_bytes()));
    }
}

pub(super) fn rows_of_a_part_of_the_key_come_in_order(subject: &Subject) {
    let fields = [
        ("id", FieldType::Text { max: 40 }),
        ("sub", FieldType::Int),
        ("piece", FieldType::Text { max: 4_000 }),
    ];
    let collection = subject.make("pieces", &fields, &[0, 1]);
    let session = &mut *subject.session();
    let subs = [5, -3, 300, 0, i64::MAX, 2, i64::MIN, 10, 1];
    for id in ["a", "b", "ab", "a b"] {
        for sub in subs {
            let piece = format!("{id} {sub}");
            run(session, &insert(&collection), &[Value::Text(id), Value::Int(sub), Value::Text(&piece)])
                .unwrap();
        }
    }
    let one = run(session, &get(&collection, &[2]), &[Value::Text("b"), Value::Int(-3)]).unwrap();
    assert_eq!(one.field_bytes(0, 0), Some(&b"b -3"[..]));
    let find = Operation::FindEqual { collection: collection.clone(), by: vec![0], fields: vec![1, 2] };
    if !subject.has(&find) {
        return;
    }
    let mut sorted = subs;
    sorted.sort_unstable();
    for id in ["a", "b", "ab"] {
        let found = run(session, &find, &[Value::Text(id)]).unwrap();
        assert_eq!(found.rows(), subs.len(), "{id}");
        for (row, sub) in sorted.iter().enumerate() {
            let piece = format!("{id} {sub}");
            assert_row(&found, row, &[Value::Int(*sub), Value::Text(&piece)], &subject.url);
        }
    }
    assert_eq!(run(session, &find, &[Value::Text("c")]).unwrap().rows(), 0);
    let whole = Operation::FindEqual { collection, by: vec![0, 1], fields: vec![2] };
    let found = run(session, &whole, &[Value::Text("a b"), Value::Int(10)]).unwrap();
    assert_row(&found, 0, &[Value::Text("a b 10")], &subject.url);

    // Text is ordered by its bytes, for any locale of the server.
    let fields =
        [("group", FieldType::Int), ("word", FieldType::Text { max: 20 }), ("data", FieldType::LongBytes)];
    let words = subject.make("words", &fields, &[0, 1]);
    let mut list = ["b", "B", "a", "é", "z", "", "ab", "a-b", "aB", "🦀", "~"];
    for word in list {
        run(session, &insert(&words), &[Value::Int(1), Value::Text(word), Value::Null]).unwrap();
    }
    list.sort_unstable();
    let find = Operation::FindEqual { collection: words, by: vec![0], fields: vec![1, 2] };
    let found = run(session, &find, &[Value::Int(1)]).unwrap();
    assert_eq!(found.rows(), list.len());
    for (row, word) in list.iter().enumerate() {
        assert_row(&found, row, &[Value::Text(word), Value::Null], "order of words");
    }
}
