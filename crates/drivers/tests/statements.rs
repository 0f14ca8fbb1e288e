//! Compares the SQL of all statements with golden files. `KURABE_GOLDEN=write` rewrites them.

use kurabe_core::collection::{Charset, Collection, Field, FieldType};
use kurabe_core::operation::Operation;
use kurabe_drivers::sql::{Dialect, clear_table, create_indexes, create_table, drop_table, marker, text};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

fn statements(dialect: &Dialect) -> String {
    let collection = Arc::new(Collection {
        name: "kurabe_all".into(),
        fields: vec![
            Field { name: "id", kind: FieldType::Text { max: 72 } },
            Field { name: "subid", kind: FieldType::Int },
            Field { name: "word", kind: FieldType::Bytes { max: 20 } },
            Field { name: "data", kind: FieldType::LongBytes },
            Field { name: "story", kind: FieldType::LongText },
            Field { name: "at", kind: FieldType::Timestamp },
        ],
        key: vec![0, 1],
        indexes: vec![vec![5], vec![2, 1]],
        expires: Some(5),
        cache: None,
        remote: None,
        charset: Charset::default(),
    });
    let only_key = Collection::new("kurabe_key", vec![Field { name: "id", kind: FieldType::Int }], vec![0]);
    let c = || Arc::clone(&collection);
    let mut out = String::new();
    let mut line = |sql: String| writeln!(out, "{sql};").unwrap();
    line(create_table(dialect, &marker()).unwrap());
    line(create_table(dialect, &collection).unwrap());
    create_indexes(dialect, &collection).unwrap().into_iter().for_each(&mut line);
    line(clear_table(dialect, &collection.name));
    line(drop_table(dialect, &collection.name));
    for operation in [
        Operation::Ping,
        Operation::Begin,
        Operation::Commit,
        Operation::Rollback,
        Operation::Get { collection: c(), fields: vec![3, 5] },
        Operation::Insert { collection: c() },
        Operation::InsertMany { collection: c(), rows: 2 },
        Operation::Put { collection: c() },
        Operation::Put { collection: Arc::new(only_key) },
        Operation::Update { collection: c(), fields: vec![3, 5] },
        Operation::Delete { collection: c() },
        Operation::Purge { collection: c() },
        Operation::FindEqual { collection: c(), by: vec![0], fields: vec![1, 3] },
        Operation::FindRange { collection: c(), by: 0, fields: vec![1, 3] },
        Operation::FindRange { collection: c(), by: 5, fields: vec![0] },
        Operation::Count { collection: c() },
    ] {
        line(text(dialect, &operation).unwrap());
    }
    out
}

fn is_golden(name: &str, dialect: &Dialect) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let made = statements(dialect);
    if std::env::var_os("KURABE_GOLDEN").is_some_and(|what| what == "write") {
        std::fs::write(&file, &made).unwrap();
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(made, golden, "{} differs", file.display());
}

#[test]
fn sqlite() {
    is_golden("sqlite.sql", &kurabe_drivers::sqlite::DIALECT);
}

#[test]
fn operation_without_field_or_with_unknown_field_is_rejected() {
    let collection =
        Arc::new(Collection::new("kurabe_a", vec![Field { name: "id", kind: FieldType::Int }], vec![0]));
    let dialect = &kurabe_drivers::sqlite::DIALECT;
    for operation in [
        Operation::Get { collection: collection.clone(), fields: vec![] },
        Operation::Get { collection: collection.clone(), fields: vec![1] },
        Operation::Update { collection: collection.clone(), fields: vec![7] },
        Operation::InsertMany { collection: collection.clone(), rows: 0 },
        Operation::FindEqual { collection, by: vec![], fields: vec![0] },
    ] {
        assert!(text(dialect, &operation).is_err(), "{operation:?}");
    }
}
