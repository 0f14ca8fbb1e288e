use super::*;
use ::bson::oid::ObjectId;
use ::bson::spec::BinarySubtype;
use ::bson::{Binary, Bson, DateTime, Regex, Timestamp, doc};
use proptest::prelude::*;

/// Whether an element is what the crate `bson` takes it for.
fn same(ours: &Element<'_>, theirs: &Bson) -> bool {
    match (ours, theirs) {
        (Element::Double(a), Bson::Double(b)) => a.to_bits() == b.to_bits(),
        (Element::Text(a), Bson::String(b)) => *a == b.as_bytes(),
        (Element::Document(a), Bson::Document(b)) => same_document(*a, b),
        (Element::Array(a), Bson::Array(b)) => {
            let found: Vec<_> = a.values().collect();
            found.len() == b.len() && found.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Element::Binary(a), Bson::Binary(b)) => *a == b.bytes,
        (Element::ObjectId(own), Bson::ObjectId(theirs)) => *own == theirs.bytes(),
        (Element::Null, Bson::Null) => true,
        (Element::Bool(a), Bson::Boolean(b)) => a == b,
        (Element::DateTime(a), Bson::DateTime(b)) => *a == b.timestamp_millis(),
        (Element::Int32(a), Bson::Int32(b)) => a == b,
        (Element::Int64(a), Bson::Int64(b)) => a == b,
        (Element::Other, other) => matches!(
            other,
            Bson::RegularExpression(_)
                | Bson::JavaScriptCode(_)
                | Bson::JavaScriptCodeWithScope(_)
                | Bson::Timestamp(_)
                | Bson::Symbol(_)
                | Bson::Decimal128(_)
                | Bson::Undefined
                | Bson::MaxKey
                | Bson::MinKey
        ),
        _ => false,
    }
}

fn same_document(ours: Raw<'_>, theirs: &::bson::Document) -> bool {
    let found: Result<Vec<_>> = ours.elements().collect();
    found.is_ok_and(|found| {
        found.len() == theirs.len()
            && found.iter().zip(theirs).all(|((name, a), (known, b))| *name == known.as_bytes() && same(a, b))
    })
}

/// A value of any type that a server may send.
fn value() -> impl Strategy<Value = Bson> {
    let text = "[^\0]{0,9}";
    let leaf = prop_oneof![
        any::<f64>().prop_map(Bson::Double),
        ".{0,20}".prop_map(Bson::String),
        proptest::collection::vec(any::<u8>(), 0..30)
            .prop_map(|bytes| Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes })),
        any::<[u8; 12]>().prop_map(|id| Bson::ObjectId(ObjectId::from_bytes(id))),
        any::<bool>().prop_map(Bson::Boolean),
        any::<i64>().prop_map(|at| Bson::DateTime(DateTime::from_millis(at))),
        any::<i32>().prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        any::<(u32, u32)>().prop_map(|(time, increment)| Bson::Timestamp(Timestamp { time, increment })),
        any::<[u8; 16]>().prop_map(|bytes| Bson::Decimal128(::bson::Decimal128::from_bytes(bytes))),
        ".{0,9}".prop_map(Bson::JavaScriptCode),
        ".{0,9}".prop_map(Bson::Symbol),
        (text, "[imsx]{0,2}").prop_map(|(pattern, options)| {
            let cstring = |text: String| ::bson::raw::CString::try_from(text).unwrap();
            Bson::RegularExpression(Regex { pattern: cstring(pattern), options: cstring(options) })
        }),
        prop_oneof![Just(Bson::Null), Just(Bson::Undefined), Just(Bson::MinKey), Just(Bson::MaxKey)],
    ];
    leaf.prop_recursive(4, 24, 6, move |inner| {
        let fields = proptest::collection::vec((text, inner.clone()), 0..6);
        let document = fields.prop_map(|fields| fields.into_iter().collect::<::bson::Document>());
        prop_oneof![
            proptest::collection::vec(inner, 0..6).prop_map(Bson::Array),
            document.clone().prop_map(Bson::Document),
            (".{0,9}", document).prop_map(|(code, scope)| {
                Bson::JavaScriptCodeWithScope(::bson::JavaScriptCodeWithScope { code, scope })
            }),
        ]
    })
}

/// Reads all elements at all depths.
fn walk(document: Raw<'_>) -> Result<usize> {
    document.elements().try_fold(0, |all, element| match element?.1 {
        Element::Document(inner) | Element::Array(inner) => Ok(all + 1 + walk(inner)?),
        _ => Ok(all + 1),
    })
}

proptest! {
    #[test]
    fn documents_are_read_as_the_crate_reads_them(fields in proptest::collection::vec(("[^\0]{0,9}", value()), 0..6)) {
        let document: ::bson::Document = fields.into_iter().collect();
        let bytes = document.to_vec().unwrap();
        let ours = Raw::new(&bytes).unwrap();
        prop_assert!(same_document(ours, &document), "{document:?} {ours:?}");
        for (name, value) in &document {
            let first = document.get(name).unwrap();
            prop_assert!(same(&ours.get(name).unwrap().unwrap(), first), "{value:?}");
        }
    }

    /// What the crate refuses may be read, as long as nothing is read twice or outside: every length is checked.
    #[test]
    fn damaged_documents_are_read_or_refused(
        fields in proptest::collection::vec(("[^\0]{0,9}", value()), 0..6),
        damage in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = fields.into_iter().collect::<::bson::Document>().to_vec().unwrap();
        for (at, value) in damage {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        let read = Raw::new(&bytes).and_then(walk);
        if ::bson::Document::from_reader(&*bytes).is_ok() {
            prop_assert!(read.is_ok(), "{bytes:?}");
        }
    }

    #[test]
    fn values_are_written_as_the_crate_reads_them(
        text in ".{0,30}", bytes in proptest::collection::vec(any::<u8>(), 0..30), number: i64, small: i32, truth: bool,
    ) {
        let mut out = Writer::default();
        out.restart(3);
        out.value("text", &Value::Text(&text)).value("bytes", &Value::Bytes(&bytes)).value("null", &Value::Null);
        out.value("int", &Value::Int(number)).value("time", &Value::Time(number)).value("bool", &Value::Bool(truth));
        out.begin_array("list").int("0", small).begin("1").bool("truth", truth).end().end().texts("texts", ["a", "b"]);
        let read = ::bson::Document::from_reader(&out.finish().unwrap()[3..]).unwrap();
        let binary = Binary { subtype: BinarySubtype::Generic, bytes };
        let expected = doc! {
            "text": text, "bytes": binary, "null": null, "int": number, "time": number, "bool": i64::from(truth),
            "list": [small, {"truth": truth}], "texts": ["a", "b"],
        };
        prop_assert_eq!(read, expected);
    }
}

#[test]
fn copy_of_a_document_goes_on_where_it_stands() {
    let mut start = Writer::default();
    start.restart(21);
    start.text("insert", "kurabe_a").bool("ordered", true).begin_array("documents");
    let mut whole = Writer::default();
    whole.text("old", "content");
    whole.clone_from(&start);
    whole.begin("0").object_id("_id", [7; 12]).end().close_nested();
    whole.append(&Writer::fields(|out| {
        out.begin("writeConcern").int("w", 1).end().uuid("id", [9; 16]);
    }));
    let written = ::bson::Document::from_reader(&whole.finish().unwrap()[21..]).unwrap();
    let uuid = Binary { subtype: BinarySubtype::Uuid, bytes: vec![9; 16] };
    let expected = doc! {
        "insert": "kurabe_a", "ordered": true, "documents": [{"_id": ObjectId::from_bytes([7; 12])}],
        "writeConcern": {"w": 1}, "id": uuid,
    };
    assert_eq!(written, expected);
    let empty = ::bson::Document::from_reader(&start.finish().unwrap()[21..]).unwrap();
    assert_eq!(empty.get_array("documents").unwrap().len(), 0);
}

#[test]
fn lengths_of_all_kinds_are_checked() {
    for bytes in [
        &b""[..],
        b"\x05\0\0\0",
        b"\x05\0\0\0\x01",
        b"\x06\0\0\0\0",
        b"\xff\xff\xff\xff\0",
        // A string, binary, document and code whose lengths are too large, too small or negative.
        b"\x0f\0\0\0\x02a\0\x09\0\0\0x\0\0\0",
        b"\x0f\0\0\0\x02a\0\0\0\0\0x\0\0\0",
        b"\x0f\0\0\0\x02a\0\xff\xff\xff\xffx\0\0\0",
        b"\x0f\0\0\0\x05a\0\xff\xff\xff\x7fx\0\0\0",
        b"\x0f\0\0\0\x03a\0\xff\xff\xff\x7fx\0\0\0",
        b"\x0f\0\0\0\x03a\0\x04\0\0\0x\0\0\0",
        b"\x0f\0\0\0\x0fa\0\x02\0\0\0x\0\0\0",
        // A name and a regular expression without an end, a Boolean that is neither, and an unknown type.
        b"\x08\0\0\0\x0aab\0",
        b"\x0a\0\0\0\x0ba\0bc\0",
        b"\x09\0\0\0\x08a\0\x02\0",
        b"\x08\0\0\0\x20a\0\0",
    ] {
        let error = Raw::new(bytes).and_then(walk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{bytes:?}");
    }
}
