//! [`kurabe_copy::rows`].

use kurabe_copy::rows::{pop_text, push_text};
use kurabe_core::value::Value;
use proptest::prelude::*;

#[test]
fn loaded_text_has_escapes_where_the_format_needs_them() {
    let text = |value| {
        let mut out = Vec::new();
        push_text(&mut out, value).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(text(Value::Null), "\\N");
    assert_eq!(text(Value::Int(i64::MIN)), i64::MIN.to_string());
    assert_eq!(text(Value::Bool(true)), "t");
    assert_eq!(text(Value::Text("a\tb\nc\rd\\N é")), "a\\tb\\nc\\rd\\\\N é");
    assert_eq!(text(Value::Text("")), "");
}

proptest! {
    /// What a line of `COPY` holds of a text is read back.
    #[test]
    fn field_of_a_line_is_the_text_that_was_written(text in "[\\\\\t\n\r\u{8}\u{b}\u{c}abntvfrNé]*") {
        let mut line = Vec::new();
        push_text(&mut line, Value::Text(&text)).unwrap();
        prop_assert!(!line.contains(&b'\t') && !line.contains(&b'\n'));
        prop_assert_eq!(pop_text(&line), text.into_bytes());
    }
}
