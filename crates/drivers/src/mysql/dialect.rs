//! The SQL of MySQL and MariaDB.

use super::config::Config;
use crate::sql::{Dialect, Placeholder};
use kurabe_core::collection::{Collection, FieldType};
use std::borrow::Cow;

/// Characters of the longest `varchar`: a row's columns share 65,535 bytes, and a character may take 4.
const MOST_TEXT: u32 = 12_000;

/// Bytes of the longest `varbinary`, for the same reason.
const MOST_BYTES: u32 = 48_000;

/// The dialect, with the storage engine that the URL asks for.
pub(crate) fn dialect(config: &Config) -> Dialect {
    let engine = config.engine.as_ref().map(|name| format!(" ENGINE={name}")).unwrap_or_default();
    Dialect {
        engine: "MySQL",
        quote: '`',
        placeholder: Placeholder::Question,
        column_type,
        upsert,
        // Text is compared by bytes, as in the other engines, and not by the letters' weights.
        create_tail: format!("{engine} DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin").into(),
        clear: "TRUNCATE TABLE",
        ping: "DO 0",
        begin: "START TRANSACTION",
        commit: "COMMIT",
        rollback: "ROLLBACK",
    }
}

fn column_type(kind: FieldType, in_key: bool) -> Cow<'static, str> {
    match kind {
        FieldType::Text { max } if max <= MOST_TEXT => format!("varchar({max})").into(),
        FieldType::Bytes { max } if max <= MOST_BYTES => format!("varbinary({max})").into(),
        // An index entry holds at most 3,072 bytes.
        FieldType::Text { .. } | FieldType::LongText if in_key => "varchar(700)".into(),
        FieldType::Bytes { .. } | FieldType::LongBytes if in_key => "varbinary(3000)".into(),
        FieldType::Text { .. } | FieldType::LongText => "longtext".into(),
        FieldType::Bytes { .. } | FieldType::LongBytes => "longblob".into(),
        FieldType::Int => "bigint".into(),
        FieldType::Timestamp => "datetime(6)".into(),
    }
}

/// ` ON DUPLICATE KEY UPDATE …`, in the one form that both engines know.
fn upsert(dialect: &Dialect, collection: &Collection) -> String {
    let plain = |field: &usize| !collection.key.contains(field);
    let mut fields: Vec<usize> = (0..collection.fields.len()).filter(plain).collect();
    if fields.is_empty() {
        fields.clone_from(&collection.key);
    }
    let set: Vec<String> = fields
        .iter()
        .filter_map(|&field| collection.fields.get(field))
        .map(|field| dialect.quoted(field.name))
        .map(|name| format!("{name} = VALUES({name})"))
        .collect();
    format!(" ON DUPLICATE KEY UPDATE {}", set.join(", "))
}
