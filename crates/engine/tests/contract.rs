//! What the author of an experiment, and of a driver, must learn: the types of the two exercises beside this file.

use std::collections::BTreeSet;

/// The types that the first part of a file, before its tests, has from the core.
fn types(source: &str) -> BTreeSet<&str> {
    let part = source.split_once("\nmod tests").unwrap().0;
    let imports = part.split("use kurabe_core::").skip(1).map(|import| import.split_once(';').unwrap().0);
    let names = imports.flat_map(|import| import.split(|c: char| !c.is_alphanumeric()));
    // `Result` is the library's own, with one type of error.
    names.filter(|name| name.starts_with(char::is_uppercase) && *name != "Result").collect()
}

#[test]
fn author_of_a_loop_meets_twenty_types() {
    let met = types(include_str!("noop_loop.rs"));
    assert!(met.contains("Transaction") && met.len() <= 20, "{}: {met:?}", met.len());
}

#[test]
fn author_of_a_key_value_engine_meets_twenty_types_and_writes_eighteen_methods() {
    let source = include_str!("noop_engine.rs");
    let met = types(source);
    assert!(met.contains("Namespace") && met.len() <= 20, "{}: {met:?}", met.len());
    let part = source.split_once("\nmod tests").unwrap().0;
    let methods = ["Driver", "Session", "Namespace"].map(|name| {
        let body = part.split_once(&format!("impl {name} for ")).unwrap().1;
        body.split_once("\n}\n").unwrap().0.matches("\n    fn ").count()
    });
    assert!(methods.iter().sum::<usize>() <= 18, "{methods:?}");
}
