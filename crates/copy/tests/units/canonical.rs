//! [`kurabe_copy::canonical`].

use kurabe_copy::canonical::{Reading, decimal, mend, push};
use kurabe_copy::issue::{Becomes, IssueKind};
use kurabe_copy::page::{Cell, Page};
use kurabe_copy::types::Class;
use kurabe_core::Result;
use kurabe_core::value::Value;
use proptest::prelude::*;

fn form(class: Class, text: &str) -> Result<String> {
    let mut page = Page::new(1);
    push(Reading { class, hex: false, exact: false }, Value::Bytes(text.as_bytes()), &mut page)?;
    Ok(match page.cell(0, 0) {
        Cell::Null => "null".to_owned(),
        Cell::Int(number) => number.to_string(),
        Cell::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    })
}

#[test]
fn texts_that_are_no_values_are_refused() {
    for (class, text) in
        [(Class::Bool, "yes"), (Class::Int32, "x"), (Class::Decimal, "1.2.3"), (Class::Json, "{")]
    {
        assert!(form(class, text).is_err(), "{class:?} {text}");
    }
}

#[test]
fn values_are_written_as_they_are() {
    let document = "{ \"b\": 1.00, \"a\": 12345678901234567890123.5, \"b\": 2 }";
    for (class, text, written) in [
        (Class::Json, document, document),
        (Class::Float64, "-0", "-0.0"),
        (Class::Float32, "0.10000000149011612", "0.1"),
        (Class::Decimal, "-1.2e4", "-12000"),
        (Class::Decimal, "-inf", "-Infinity"),
        (Class::Decimal, ".50", "0.5"),
        (Class::UInt64, "18446744073709551615.0", "18446744073709551615"),
        (Class::Bool, "true", "1"),
        (Class::Char, "a  ", "a"),
        (Class::Date, "2024-02-29 00:00:00", "2024-02-29"),
        (Class::Time, "01:02:03.500000", "01:02:03.5"),
        (Class::Timestamp, "2024-02-29T01:02:03.000", "2024-02-29 01:02:03"),
        (Class::TimestampTz, "2024-02-29", "2024-02-29 00:00:00"),
        (Class::TimestampTz, "2024-02-29 00:00:00+00", "2024-02-29 00:00:00"),
    ] {
        assert_eq!(form(class, text).unwrap(), written, "{class:?} {text}");
    }
}

#[test]
fn values_that_a_target_cannot_hold_become_what_the_user_accepted() {
    let after = |kind, text: &str| {
        mend(&(kind, Becomes::Usual), text.as_bytes()).map(|b| String::from_utf8(b).unwrap())
    };
    assert_eq!(after(IssueKind::ZeroDate, "0000-00-00"), None);
    assert_eq!(after(IssueKind::ZeroDate, "2024-00-10 00:00:00"), None);
    assert_eq!(after(IssueKind::ZeroDate, "2024-01-10").as_deref(), Some("2024-01-10"));
    for text in ["infinity", "-infinity", "0044-03-15 BC", "10000-01-01 00:00:00"] {
        assert_eq!(after(IssueKind::DateRange, text), None, "{text}");
    }
    assert_eq!(after(IssueKind::TimeRange, "-01:00:00"), None);
    assert_eq!(after(IssueKind::TimeRange, "838:59:59"), None);
    assert_eq!(after(IssueKind::TimeRange, "23:59:59").as_deref(), Some("23:59:59"));
    assert_eq!(after(IssueKind::NulCharacter, "a\0b").as_deref(), Some("ab"));
    let other = |kind, other: &str, text: &str| {
        let becomes = mend(&(kind, Becomes::Text(other.to_owned())), text.as_bytes());
        String::from_utf8(becomes.unwrap()).unwrap()
    };
    assert_eq!(other(IssueKind::ZeroDate, "0001-01-01", "0000-00-00"), "0001-01-01");
    assert_eq!(other(IssueKind::NulCharacter, "?", "a\0b"), "a?b");
}

proptest! {
    #[test]
    fn floating_point_numbers_keep_all_bits(bits in any::<u64>()) {
        let number = f64::from_bits(bits);
        let text = form(Class::Float64, &number.to_string()).unwrap();
        let back: f64 = text.parse().unwrap();
        prop_assert!(back.to_bits() == number.to_bits() || number.is_nan() && back.is_nan());
    }

    #[test]
    fn decimal_numbers_keep_all_digits(whole in "[1-9][0-9]{0,40}", fraction in "[0-9]{0,40}[1-9]") {
        prop_assert_eq!(decimal(&format!("00{whole}.{fraction}000")), Some(format!("{whole}.{fraction}")));
    }
}
