//! [`kurabe_copy::verify::form`].

use kurabe_copy::types::Class;
use kurabe_copy::verify::form::{Field, Shape, bare, number, push};
use kurabe_core::Result;
use proptest::prelude::*;

fn field(class: Class, shape: Shape) -> Field<'static> {
    Field { shape, class, exact: false, rounds: false, no_nul: None }
}

fn of(field: &Field<'_>, text: &str) -> Result<Vec<u8>> {
    let mut form = Vec::new();
    push(field, Some(text.as_bytes()), &mut form).map(|()| form)
}

#[test]
fn texts_of_one_value_have_one_form() {
    for (class, texts) in [
        (Class::Decimal, &["1.5", "1.50", "01.5", "+1.5", "15e-1"][..]),
        (Class::Decimal, &["0", "-0.00", "0e5", ".0"]),
        (Class::Decimal, &["-Infinity", "-Inf", "-inf"]),
        (Class::Decimal, &["Infinity", "Inf", "inf"]),
        (Class::Decimal, &["NaN", "nan"]),
        (Class::Decimal, &["-12000", "-12000.0", "-1.2e4"]),
        (Class::Float64, &["0.1", "0.10000000000000001", "1e-1"]),
        (Class::Float64, &["0", "-0.0"]),
        (Class::Float32, &["0.1", "0.10000000149011612"]),
        (Class::Char, &["a", "a  "]),
        (Class::Date, &["2024-02-29", "2024-02-29 00:00:00", "2024-2-29"]),
        (Class::Time, &["01:02:03.5", "01:02:03.500000", "1:2:3.5"]),
        (Class::Timestamp, &["2024-02-29 01:02:03", "2024-02-29T01:02:03.000"]),
        (Class::TimestampTz, &["2024-02-29 00:00:00+00", "2024-02-29", "2024-02-29T00:00:00Z"]),
        (Class::TimestampTz, &["0044-03-15 01:02:03+00 BC", "0044-03-15 01:02:03.000000 BC"]),
        (Class::Json, &["{\"a\":1,\"b\":[]}", "{ \"b\": [], \"a\": 1 }", "{\"a\":2,\"b\":[],\"a\":1.0}"]),
        (Class::Json, &["[\"\\u00e9,}\", 1e2, null]", "[\"é,}\",100.0,null ]"]),
        (Class::Bool, &["t", "true", "1"]),
        (Class::Bool, &["f", "false", "0"]),
        (Class::UInt64, &["18446744073709551615", "18446744073709551615.0"]),
        (Class::Uuid, &["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc999c0b4ef8bb6d6bb9bd380a11"]),
    ] {
        let field = field(class, Shape::Plain);
        for text in texts {
            assert_eq!(of(&field, text).unwrap(), of(&field, texts[0]).unwrap(), "{class:?} {text}");
        }
    }
}

#[test]
fn document_may_be_nested_deeper_than_a_stack_is() {
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(20_000), "]".repeat(20_000));
    let of = |text: &str| of(&field(Class::Json, Shape::Plain), text).unwrap();
    assert_eq!(of(&deep("{\"a\": 1.0}")), of(&deep("{\"a\":1}")));
    assert_ne!(of(&deep("1")), of(&deep("[1]")));
}

#[test]
fn different_values_have_different_forms() {
    for (class, a, b) in [
        (Class::Int64, "1", "10"),
        (Class::Decimal, "1.5", "-1.5"),
        (Class::Decimal, "0.1", "0.10000000000000000000001"),
        (Class::Float64, "0.1", "0.10000000000000002"),
        (Class::Varchar, "a", "a "),
        (Class::Date, "2024-02-29", "2024-02-28"),
        (Class::Date, "2024-02-", "2024-02-0"),
        (Class::Time, "01:02:03:04", "01:02:03"),
        (Class::Time, "01:02:03", "-01:02:03"),
        (Class::Timestamp, "2024-02-29 01:02:03", "2024-02-29 01:02:03.000001"),
        (Class::Timestamp, "2024-02-29 10:00:00", "2024-02-29 10:00:00-05:00"),
        (Class::Timestamp, "0044-03-15 01:02:03", "0044-03-15 01:02:03 BC"),
        (Class::Timestamp, "infinity", "-infinity"),
        (Class::Json, "{\"a\":1}", "{\"a\":\"1\"}"),
        (Class::Json, "[0.1]", "[0.10000000000000000001]"),
        (Class::Json, "12345678901234567890123", "12345678901234567890124"),
        (Class::Json, "[[1],2]", "[[1,2]]"),
        (Class::Json, "\"a\\\\\"", "\"a\\\"\""),
    ] {
        let field = field(class, Shape::Plain);
        assert_ne!(of(&field, a).unwrap(), of(&field, b).unwrap(), "{class:?}");
    }
    for (class, text) in
        [(Class::Bool, "yes"), (Class::Int32, "x"), (Class::Decimal, "1.2.3"), (Class::Json, "{")]
    {
        assert!(of(&field(class, Shape::Plain), text).is_err(), "{class:?} {text}");
    }
    let rounded = Field { rounds: true, ..field(Class::Json, Shape::Plain) };
    let [a, b, c] = ["[12345678901234567890123]", "[12345678901234567890124]", "[18446744073709551615]"];
    assert_eq!(of(&rounded, a).unwrap(), of(&rounded, b).unwrap());
    assert_ne!(of(&rounded, c).unwrap(), of(&rounded, "[18446744073709551614]").unwrap());
}

#[test]
fn shapes_hold_one_value_in_several_ways() {
    let same = |class: Class, texts: &[(Shape, &str)]| {
        for (shape, text) in texts {
            let first = of(&field(class, texts[0].0), texts[0].1).unwrap();
            assert_eq!(of(&field(class, *shape), text).unwrap(), first, "{class:?} {shape:?} {text}");
        }
    };
    same(Class::Float64, &[(Shape::Bits, "3fb999999999999a"), (Shape::Plain, "0.1"), (Shape::Tagged, "0.1")]);
    same(Class::Float32, &[(Shape::Bits, "3dcccccd"), (Shape::Tagged, "0.10000000149011612")]);
    same(Class::Float64, &[(Shape::Bits, "fff0000000000000"), (Shape::Tagged, "-inf")]);
    same(Class::Text, &[(Shape::Hex, "610062"), (Shape::Tagged, "t610062"), (Shape::Plain, "a\0b")]);
    same(Class::Blob, &[(Shape::Hex, "6100FF"), (Shape::Tagged, "b6100ff")]);
    same(Class::Int64, &[(Shape::Plain, "-70"), (Shape::Tagged, "#-70"), (Shape::Tagged, "t2D3730")]);
    for (shape, text) in [(Shape::Hex, "abc"), (Shape::Hex, "0g"), (Shape::Tagged, "")] {
        assert_eq!(bare(shape, text.as_bytes()), None, "{shape:?} {text}");
    }
}

#[test]
fn zero_characters_become_what_was_accepted() {
    let plain = field(Class::Text, Shape::Plain);
    let other = Field { no_nul: Some("?"), ..field(Class::Text, Shape::Plain) };
    assert_eq!(of(&other, "a\0b").unwrap(), of(&plain, "a?b").unwrap());
    assert_eq!(of(&other, "ab").unwrap(), of(&plain, "ab").unwrap());
}

proptest! {
    #[test]
    fn numbers_keep_all_digits(whole in "[1-9][0-9]{0,40}", part in "[0-9]{0,40}[1-9]") {
        let places = part.len();
        prop_assert_eq!(number(&format!("00{whole}.{part}000")), Some(format!("{whole}{part}e-{places}")));
    }
}
