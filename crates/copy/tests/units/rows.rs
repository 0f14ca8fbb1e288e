//! [`kurabe_copy::rows`].

use kurabe_copy::rows::push_text;
use kurabe_core::ErrorKind;
use kurabe_core::value::Value;

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
    assert_eq!(push_text(&mut Vec::new(), Value::Time(1)).unwrap_err().kind(), ErrorKind::Internal);
}
