//! All statements of the driver: compared with golden files (`KURABE_GOLDEN=write` rewrites them), and recognised by a
//! grammar of the part of Oracle's SQL that they use, which shares nothing with the code that writes them.

use super::super::dialect::dialect;
use super::super::plan::{Steps, literal_plan, plan};
use super::super::values::Bind;
use super::super::{facts, link, metrics, namespace, session};
use super::config;
use super::grammar::recognise;
use super::tokens::{Token, tokens};
use kurabe_core::collection::{Charset, Field};
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::{
    Dialect, MARKER, create_indexes, create_table, drop_table, insert_into_marker, marker,
};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Collections with every type, in keys and outside, and lengths at the limits of column types.
fn collections() -> Vec<Arc<Collection>> {
    let field = |name, kind| Field { name, kind };
    let all = Collection {
        name: "kurabe_all".into(),
        fields: vec![
            field("id", FieldType::Text { max: 72 }),
            field("subid", FieldType::Int),
            field("word", FieldType::Bytes { max: 20 }),
            field("data", FieldType::LongBytes),
            field("story", FieldType::LongText),
            field("at", FieldType::Timestamp),
        ],
        key: vec![0, 1],
        indexes: vec![vec![5], vec![2, 1]],
        expires: Some(5),
        cache: None,
        remote: None,
        charset: Charset::default(),
    };
    let lengths = Collection::new(
        "kurabe_lengths",
        vec![
            field("id", FieldType::Int),
            field("text4000", FieldType::Text { max: 4_000 }),
            field("text4001", FieldType::Text { max: 4_001 }),
            field("raw2000", FieldType::Bytes { max: 2_000 }),
            field("raw4000", FieldType::Bytes { max: 4_000 }),
        ],
        vec![0],
    );
    let long_keys = Collection {
        name: "kurabe_long_keys".into(),
        fields: vec![
            field("id", FieldType::LongText),
            field("mark", FieldType::LongBytes),
            field("n", FieldType::Int),
        ],
        key: vec![0],
        indexes: vec![vec![1]],
        expires: None,
        cache: None,
        remote: None,
        charset: Charset::default(),
    };
    let pieces = Collection::new(
        "kurabe_pieces",
        vec![
            field("id", FieldType::Text { max: 72 }),
            field("subid", FieldType::Int),
            field("data", FieldType::Text { max: 4_000 }),
            field("updated", FieldType::Timestamp),
        ],
        vec![0, 1],
    );
    let only_key = Collection::new("kurabe_key", vec![field("id", FieldType::Int)], vec![0]);
    [all, lengths, long_keys, pieces, only_key].map(Arc::new).into()
}

fn operations(collection: &Arc<Collection>) -> Vec<Operation> {
    let c = || Arc::clone(collection);
    let fields: Vec<usize> = (0..collection.fields.len()).collect();
    let plain: Vec<usize> = fields.iter().copied().filter(|field| !collection.key.contains(field)).collect();
    let mut operations = vec![
        Operation::Get { collection: c(), fields: fields.clone() },
        Operation::Insert { collection: c() },
        Operation::InsertMany { collection: c(), rows: 3 },
        Operation::Put { collection: c() },
        Operation::Delete { collection: c() },
        Operation::FindEqual { collection: c(), by: vec![collection.key[0]], fields: fields.clone() },
        Operation::FindRange { collection: c(), by: collection.key[0], fields },
        Operation::Count { collection: c() },
    ];
    if !plain.is_empty() {
        operations.push(Operation::Update { collection: c(), fields: plain });
    }
    operations.extend(collection.expires.map(|_| Operation::Purge { collection: c() }));
    operations
}

/// The statements of a plan, each with the positions of its parameters in the operation's.
fn statements_of(d: &Dialect, operation: &Operation) -> Vec<(String, Vec<usize>)> {
    let made = plan(d, operation).unwrap();
    let all: Vec<usize> = (0..made.shape.takes.len()).collect();
    match made.steps {
        Steps::Ping | Steps::Begin | Steps::Commit | Steps::Rollback => vec![],
        Steps::Query(sql) | Steps::Change(sql) => vec![(sql, all)],
        Steps::Array { sql, width } => vec![(sql, all[..width].to_vec())],
        Steps::UpdateOrInsert { update, order, insert } => vec![(update, order), (insert, all)],
    }
}

/// All statements other than those of operations.
fn other_statements(d: &Dialect) -> Vec<String> {
    let mut all = vec![create_table(d, &marker()).unwrap(), drop_table(d, MARKER)];
    for collection in collections() {
        all.push(create_table(d, &collection).unwrap());
        all.extend(create_indexes(d, &collection).unwrap());
        all.push(kurabe_driver_common::sql::clear_table(d, &collection.name));
        all.push(drop_table(d, &collection.name));
    }
    all.extend([
        namespace::insert_lock_row(),
        namespace::lock_row(),
        namespace::take_lock(),
        namespace::write_holder("process 7 run 2026"),
        namespace::objects_named("kurabe_all"),
        facts::BANNER.to_owned(),
        facts::CHARACTER_SETS.to_owned(),
        metrics::SESSIONS.to_owned(),
        facts::PROFILE.to_owned(),
        facts::TABLESPACE.to_owned(),
        facts::RESOURCES.to_owned(),
        facts::DATABASE.to_owned(),
        facts::parameters(),
        link::SORTING.to_owned(),
        link::alter_session(true, Some(true)).unwrap(),
        link::alter_session(false, Some(false)).unwrap(),
        session::SAVEPOINT.to_owned(),
        session::BACK_TO_SAVEPOINT.to_owned(),
    ]);
    all
}

const VARIANTS: [(&str, &str); 3] =
    [("", "oracle"), ("?lob=out-of-row", "oracle-out-of-row"), ("?text=clob&lob=locator", "oracle-clob")];

fn dialect_of(options: &str) -> Dialect {
    dialect(&config(&format!("oracle://u@h/s{options}")))
}

#[test]
fn statements_and_binds_match_golden_files() {
    for (options, name) in VARIANTS {
        let d = dialect_of(options);
        let mut made = String::new();
        for sql in other_statements(&d) {
            writeln!(made, "{sql}").unwrap();
        }
        for collection in collections() {
            for operation in operations(&collection) {
                let takes = plan(&d, &operation).unwrap().shape.takes;
                for (sql, binds) in statements_of(&d, &operation) {
                    let kinds: Vec<&str> = binds.iter().map(|&at| declared(takes[at])).collect();
                    writeln!(made, "{}: {sql}\n    [{}]", operation.name(), kinds.join(", ")).unwrap();
                }
            }
        }
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
        if std::env::var_os("KURABE_GOLDEN").is_some_and(|what| what == "write") {
            std::fs::write(&file, &made).unwrap();
        }
        let golden = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(made, golden, "{} differs", file.display());
    }
}

/// The declared type of NULL for a field.
fn declared(kind: FieldType) -> &'static str {
    Bind::new(kind, &Value::Null).unwrap().as_crate().db_type().name()
}

#[test]
fn independent_grammar_accepts_all_statements() {
    for (options, _) in VARIANTS {
        let d = dialect_of(options);
        let mut all = other_statements(&d);
        for collection in collections() {
            for operation in operations(&collection) {
                all.extend(statements_of(&d, &operation).into_iter().map(|(sql, _)| sql));
            }
        }
        assert!(all.len() > 50, "{}", all.len());
        for sql in all {
            assert_eq!(recognise(readable(&sql)), Ok(()), "{sql}");
            obeys_oracle(&sql);
        }
    }
}

/// The statement in a PL/SQL block; any other statement as it is.
fn readable(sql: &str) -> &str {
    const HEAD: &str = "BEGIN EXECUTE IMMEDIATE '";
    const TAIL: &str = "'; EXCEPTION WHEN OTHERS THEN IF SQLCODE <> -942 THEN RAISE; END IF; END;";
    if !sql.starts_with("BEGIN ") {
        return sql;
    }
    let inner = sql.strip_prefix(HEAD).and_then(|sql| sql.strip_suffix(TAIL));
    inner.filter(|inner| !inner.contains('\'')).unwrap_or_else(|| panic!("another block: {sql}"))
}

/// Checks rules of which the grammar knows nothing.
fn obeys_oracle(sql: &str) {
    let is_block = sql.starts_with("BEGIN ");
    assert_eq!(sql.ends_with(';'), is_block, "a semicolon ends PL/SQL and nothing else: {sql}");
    let upper = sql.to_ascii_uppercase();
    // IF [NOT] EXISTS and several rows after VALUES require 23ai; Oracle has none of the others.
    for foreign in [
        " LIMIT ", "IF EXISTS", "IF NOT EXISTS", "ON CONFLICT", "ON DUPLICATE", " RETURNING ", "), (", "`",
        "$1", "?",
    ] {
        assert!(!upper.contains(foreign), "{foreign}: {sql}");
    }
    // In Oracle, '' is NULL, and no comparison with it is true.
    assert!(!sql.replace("''", "\u{1}").contains('\u{1}'), "an empty text: {sql}");
    for token in tokens(sql).unwrap() {
        if let Token::Word(name) | Token::Name(name) = token {
            assert!(name.len() <= 128, "{sql}");
        }
    }
    let expected: Vec<String> = (1..=binds_in(sql).len()).map(|n| n.to_string()).collect();
    assert_eq!(binds_in(sql), expected, "binds are :1, :2, … once each, in order: {sql}");
    let select_without_from = upper.starts_with("SELECT") && !upper.contains(" FROM ");
    assert!(!select_without_from, "before 23ai a SELECT has a FROM: {sql}");
}

/// The placeholders, outside texts and names.
fn binds_in(sql: &str) -> Vec<String> {
    let bind = |token| if let Token::Bind(number) = token { Some(number) } else { None };
    tokens(sql).unwrap().into_iter().filter_map(bind).collect()
}

#[test]
fn number_of_binds_matches_placeholders() {
    for (options, _) in VARIANTS {
        let d = dialect_of(options);
        for collection in collections() {
            for operation in operations(&collection) {
                for (sql, binds) in statements_of(&d, &operation) {
                    assert_eq!(binds_in(&sql).len(), binds.len(), "{sql}");
                }
            }
        }
    }
}

#[test]
fn names_fit_limit_of_oracle_12_2() {
    let d = dialect_of("");
    let fields = vec![Field { name: "id", kind: FieldType::Int }, Field { name: "n", kind: FieldType::Int }];
    let longest = Collection {
        name: format!("kurabe_{}", "x".repeat(53)),
        fields,
        key: vec![0],
        indexes: vec![vec![1]; 20],
        expires: None,
        cache: None,
        remote: None,
        charset: Charset::default(),
    };
    assert!(Collection::name_is_ours(&longest.name));
    for sql in create_indexes(&d, &longest).unwrap() {
        obeys_oracle(&sql);
    }
}

#[test]
fn put_merges_unless_row_has_lobs() {
    let d = dialect_of("");
    for collection in collections() {
        let lobs = super::super::dialect::lobs(&d, &collection);
        let made = plan(&d, &Operation::Put { collection: Arc::clone(&collection) }).unwrap();
        match made.steps {
            Steps::UpdateOrInsert { order, .. } => {
                assert!(!lobs.is_empty(), "{}", collection.name);
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..collection.fields.len()).collect::<Vec<_>>(), "{}", collection.name);
                assert!(order.ends_with(&collection.key), "{}", collection.name);
            }
            Steps::Change(sql) => assert!(lobs.is_empty() && sql.starts_with("MERGE "), "{sql}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn ownership_entry_is_valid_sql() {
    let sql = insert_into_marker(&dialect_of(""), "kurabe_all");
    assert_eq!(recognise(&sql), Ok(()), "{sql}");
    obeys_oracle(&sql);
}

/// A value of each type with all characters that are special in Oracle.
fn difficult_value(kind: FieldType) -> Value<'static> {
    match kind {
        FieldType::Text { .. } | FieldType::LongText => Value::Text("it's :1 \\ q'[x]' \0 \u{e9}"),
        FieldType::Bytes { .. } | FieldType::LongBytes => Value::Bytes(b"\0'\xff"),
        FieldType::Int => Value::Int(i64::MIN),
        FieldType::Timestamp => Value::Time(1_234_567_890_123_456),
    }
}

#[test]
fn statements_with_literals_match_golden_file_and_parse() {
    let d = dialect_of("");
    let mut made = String::new();
    for collection in collections() {
        for operation in operations(&collection) {
            let Ok(plan) = literal_plan(&d, &operation) else {
                let lobs = !super::super::dialect::lobs(&d, &collection).is_empty();
                let put = matches!(operation, Operation::Put { .. }) && lobs;
                assert!(put || matches!(operation, Operation::InsertMany { .. }), "{operation:?}");
                continue;
            };
            let takes = super::super::plan::plan(&d, &operation).unwrap().shape.takes;
            let values: Vec<Value<'_>> = takes.iter().map(|kind| difficult_value(*kind)).collect();
            let mut sql = String::new();
            plan.template.fill(&values, &mut sql).unwrap();
            assert_eq!(recognise(&sql), Ok(()), "{sql}");
            assert_eq!(binds_in(&sql), [""; 0], "{sql}");
            writeln!(made, "{}: {sql}", operation.name()).unwrap();
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/oracle-literals.txt");
    if std::env::var_os("KURABE_GOLDEN").is_some_and(|what| what == "write") {
        std::fs::write(&file, &made).unwrap();
    }
    assert_eq!(made, std::fs::read_to_string(&file).unwrap_or_default(), "{} differs", file.display());
}
