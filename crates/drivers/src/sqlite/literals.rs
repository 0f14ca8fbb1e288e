//! Literals in statements ("SQL Language Expressions", "Literal Values").

use crate::prelude::*;
use crate::sql::{Literals, quoted, standard};

/// Replies always have SQLite's own types. A timestamp is a number of microseconds since 1970, as in the tables.
pub(super) const LITERALS: Literals = Literals { write, read: |_| None };

fn write(out: &mut String, value: Value<'_>) -> Result<()> {
    match value {
        Value::Text(value) if value.contains('\0') => text(out, value),
        _ => standard(out, value),
    }
}

/// Writes a text with zero characters. SQLite ends a statement at its first zero character, so `replace` inserts zero characters for
/// a character that the value does not contain. One `||` for each would exceed the expression depth.
fn text(out: &mut String, text: &str) -> Result<()> {
    let unused = ('\u{e000}'..='\u{f8ff}').find(|c| !text.contains(*c));
    let unused = unused.ok_or_else(|| {
        Error::unsupported("a text with a zero character and every private-use character is not supported")
    })?;
    let mut buffer = [0; 4];
    let character = unused.encode_utf8(&mut buffer);
    out.push_str("replace(");
    quoted(out, &text.replace('\0', character));
    out.push_str(", '");
    out.push_str(character);
    out.push_str("', char(0))");
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::sql::Template;
    use crate::sqlite::DIALECT;
    use kurabe_core::collection::Field;
    use std::sync::Arc;

    fn template(kind: FieldType) -> Template {
        let fields = vec![Field { name: "id", kind: FieldType::Int }, Field { name: "data", kind }];
        let collection = Arc::new(Collection::new("kurabe_t", fields, vec![0]));
        Template::new(&DIALECT, &Operation::Update { collection, fields: vec![1] }).unwrap()
    }

    #[test]
    fn values_are_in_the_text_in_their_order() {
        let mut out = "previous text".to_owned();
        let text = template(FieldType::LongText);
        text.fill(&[Value::Text("it's ?"), Value::Int(-3)], &mut out).unwrap();
        assert_eq!(out, r#"UPDATE "kurabe_t" SET "data" = 'it''s ?' WHERE "id" = -3"#);
        template(FieldType::LongBytes).fill(&[Value::Bytes(b"\0'\xff"), Value::Null], &mut out).unwrap();
        assert_eq!(out, r#"UPDATE "kurabe_t" SET "data" = x'0027ff' WHERE "id" = NULL"#);
    }

    #[test]
    fn values_of_wrong_type_or_number_are_rejected_without_showing_them() {
        let mut out = String::new();
        for values in [
            &[Value::Int(1), Value::Int(1)][..],
            &[Value::Time(1), Value::Int(1)],
            &[Value::Text("hunter2"), Value::Text("hunter2")],
            &[Value::Bytes(b"hunter2\xff"), Value::Int(1)],
            &[Value::Text("hunter2")],
        ] {
            let error = template(FieldType::LongText).fill(values, &mut out).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
