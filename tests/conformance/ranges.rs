//! Ranges of rows between two values.

use super::rows::assert_row;
use super::subject::{Subject, insert, run};
use kurabe_core::collection::{Collection, FieldType};
use kurabe_core::operation::Operation;
use kurabe_core::value::Value;
use std::sync::Arc;

pub(super) fn a_range_holds_every_row_of_it_in_order_and_none_else(subject: &Subject) {
    let fields = [
        ("code", FieldType::Text { max: 20 }),
        ("number", FieldType::Int),
        ("town", FieldType::Text { max: 40 }),
    ];
    let collection = subject.make("ranges", &fields, &[0, 1]);
    let range = Operation::FindRange { collection: collection.clone(), by: 0, fields: vec![0, 1, 2] };
    if !subject.has(&range) {
        return;
    }
    let session = &mut *subject.session();
    let codes =
        ["1", "10", "100", "100 ", "1000", "10:", "1_0", "1%0", "11", "東京", "東", "南", "a", "B", "b", ""];
    let mut rows: Vec<(&str, i64, String)> =
        codes.iter().flat_map(|code| [7, -2].map(|n| (*code, n, format!("{code}町 {n}")))).collect();
    for (code, number, town) in &rows {
        run(session, &insert(&collection), &[Value::Text(code), Value::Int(*number), Value::Text(town)])
            .unwrap();
    }
    rows.sort_unstable();
    // Ten prefixes, each with the first text after all that begin so; then other ranges.
    let ranges = [
        ("1", "2"),
        ("10", "11"),
        ("100", "101"),
        ("1_", "1`"),
        ("1%", "1&"),
        ("東", "杲"),
        ("a", "b"),
        ("b", "c"),
        ("c", "d"),
        ("A", "B"),
        ("", "~"),
        ("2", "1"),
        ("1", "1"),
    ];
    for (from, to) in ranges {
        let found = run(session, &range, &[Value::Text(from), Value::Text(to)]).unwrap();
        let expected: Vec<_> = rows.iter().filter(|(code, ..)| *code >= from && *code < to).collect();
        let what = format!("from '{from}' to '{to}'");
        assert_eq!(found.rows(), expected.len(), "{what}");
        for (at, (code, number, town)) in expected.into_iter().enumerate() {
            assert_row(&found, at, &[Value::Text(code), Value::Int(*number), Value::Text(town)], &what);
        }
    }
    assert_eq!(run(session, &range, &[Value::Null, Value::Text("z")]).unwrap().rows(), 0);

    // Of a key with one field, and of an index.
    let plain = subject.make_plain("ranges_plain");
    for id in ["b", "a", "ab", "aa"] {
        run(session, &insert(&plain), &[Value::Text(id), Value::Bytes(id.as_bytes())]).unwrap();
    }
    let of_key = Operation::FindRange { collection: plain, by: 0, fields: vec![1] };
    let found = run(session, &of_key, &[Value::Text("a"), Value::Text("b")]).unwrap();
    let got: Vec<_> = (0..found.rows()).map(|row| found.field_bytes(row, 0).unwrap()).collect();
    assert_eq!(got, [b"a".as_slice(), b"aa", b"ab"]);
    let mut indexed = Collection::new("kurabe_test_ranges_indexed", collection.fields.clone(), vec![1]);
    indexed.indexes = vec![vec![0, 2]];
    subject.namespace().create(&indexed).unwrap();
    let indexed = Arc::new(indexed);
    let of_index = Operation::FindRange { collection: indexed.clone(), by: 0, fields: vec![1] };
    if !subject.has(&of_index) {
        return;
    }
    for (number, code, town) in [(3, "b", "x"), (2, "a", "x"), (1, "a", "y"), (4, "c", "x")] {
        run(session, &insert(&indexed), &[Value::Text(code), Value::Int(number), Value::Text(town)]).unwrap();
    }
    let found = run(session, &of_index, &[Value::Text("a"), Value::Text("c")]).unwrap();
    let got: Vec<_> = (0..found.rows()).map(|row| found.field_int(row, 0).unwrap()).collect();
    assert_eq!(got, [1, 2, 3], "by the field and then by the key");
}
