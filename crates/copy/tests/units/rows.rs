//! [`kurabe_copy::rows`], and what pages say of rows that pass through.

use kurabe_copy::page::{Cell, Page};
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

/// A stopped copy continues after these fields.
#[test]
fn keys_of_rows_that_pass_through_are_read_where_they_stand() {
    let page = |row: &[u8]| {
        let mut page = Page::new(1);
        page.is_tuples = true;
        page.push(Cell::Bytes(row));
        page
    };
    let field = |bytes: &[u8]| [&(bytes.len() as i32).to_be_bytes(), bytes].concat();
    let fields = [
        field(&(-2_i16).to_be_bytes()),
        (-1_i32).to_be_bytes().to_vec(),
        field(&i32::MIN.to_be_bytes()),
        field(&i64::MAX.to_be_bytes()),
    ];
    let whole = [&[0, 4][..], &fields.concat()].concat();
    let tuple = page(&whole);
    let [small, int, large] = [-2, i64::from(i32::MIN), i64::MAX].map(Cell::Int);
    assert_eq!([0, 1, 2, 3, 4].map(|at| tuple.cell(0, at)), [small, Cell::Null, int, large, Cell::Null]);
    let cut = page(&whole[..whole.len() - 1]);
    assert_eq!([0, 1, 2, 3, 4].map(|at| cut.cell(0, at)), [small, Cell::Null, int, Cell::Null, Cell::Null]);
}
