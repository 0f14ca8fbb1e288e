//! Values in the text of a statement ("SQL Language Expressions", "Literal Values").

use crate::sql::{Literals, digits, quoted, quoted_hex};
use kurabe_core::{Error, Result};

/// Answers come in SQLite's own types, whatever the statement.
pub(super) const LITERALS: Literals = Literals {
    text,
    bytes: |out, bytes| {
        quoted_hex(out, bytes);
        Ok(())
    },
    int: digits,
    // Microseconds since 1970, as in the tables.
    time: |out, micros| {
        digits(out, micros);
        Ok(())
    },
    read: |_| None,
};

/// SQLite takes the text of a statement to end at its first zero character, so that one within a value is made by a
/// function, in the place of a character that the value does not hold. One `||` for each would go too deep.
fn text(out: &mut String, text: &str) -> Result<()> {
    if !text.contains('\0') {
        quoted(out, text);
        return Ok(());
    }
    let unused = ('\u{e000}'..='\u{f8ff}').find(|c| !text.contains(*c));
    let unused =
        unused.ok_or_else(|| Error::unsupported("a text of every private character cannot be written"))?;
    let mut sign = [0; 4];
    let sign = unused.encode_utf8(&mut sign);
    out.push_str("replace(");
    quoted(out, &text.replace('\0', sign));
    out.push_str(", '");
    out.push_str(sign);
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
    fn values_stand_in_the_text_in_their_order() {
        let mut out = "left from before".to_owned();
        let text = template(FieldType::LongText);
        text.fill(&[Value::Text("it's ?"), Value::Int(-3)], &mut out).unwrap();
        assert_eq!(out, r#"UPDATE "kurabe_t" SET "data" = 'it''s ?' WHERE "id" = -3"#);
        template(FieldType::LongBytes).fill(&[Value::Bytes(b"\0'\xff"), Value::Null], &mut out).unwrap();
        assert_eq!(out, r#"UPDATE "kurabe_t" SET "data" = x'0027ff' WHERE "id" = NULL"#);
    }

    #[test]
    fn a_value_of_another_type_or_too_few_are_refused_without_showing_them() {
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
