//! The column types of fields.

use kurabe_core::collection::FieldType;
use std::borrow::Cow;

/// Characters of the longest `varchar`: a row's columns share 65,535 bytes, and a character may take 4.
const MAX_TEXT: u32 = 12_000;

/// Bytes of the longest `varbinary`, for the same reason.
const MAX_BYTES: u32 = 48_000;

pub(super) fn column_type(kind: FieldType, in_key: bool) -> Cow<'static, str> {
    match kind {
        FieldType::Text { max } if max <= MAX_TEXT => format!("varchar({max})").into(),
        FieldType::Bytes { max } if max <= MAX_BYTES => format!("varbinary({max})").into(),
        // An index entry holds at most 3,072 bytes.
        FieldType::Text { .. } | FieldType::LongText if in_key => "varchar(700)".into(),
        FieldType::Bytes { .. } | FieldType::LongBytes if in_key => "varbinary(3000)".into(),
        FieldType::Text { .. } | FieldType::LongText => "longtext".into(),
        FieldType::Bytes { .. } | FieldType::LongBytes => "longblob".into(),
        FieldType::Int => "bigint".into(),
        FieldType::Timestamp => "datetime(6)".into(),
    }
}
