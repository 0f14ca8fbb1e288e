//! The published schema accepts every line that is really written, and no other.

// As siblings: the full tier has this file and a complete validator beside each other too.
use super::common;
use super::json_schema::Validator;
use kurabe_core::run::Replanned;
use serde_json::{Value, json};

fn validator() -> Validator {
    Validator::new(include_str!("../../../docs/schema/run.schema.json"))
}

fn written_lines() -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let store = kurabe_record::Store::open(dir.path()).unwrap();
    let mut writer = store.create(&common::header("a", 100)).unwrap();
    for trial in common::trials(4) {
        writer.trial(&trial).unwrap();
    }
    writer.replanned(&Replanned { rounds: 1, restarts: 0 }).unwrap();
    writer.resumed(&common::resumption(4)).unwrap();
    writer.end(&common::end(true)).unwrap();
    let text = std::fs::read_to_string(&writer.path().file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_written_line_follows_the_published_schema() {
    let validator = validator();
    for line in written_lines() {
        assert_eq!(validator.error(&line), None, "{line}");
    }
}

#[test]
fn schema_requires_every_written_member() {
    // Each member is required, so that adding or removing a member of the types changes the schema too.
    for line in written_lines() {
        for pointer in [
            "", "/spec", "/machine", "/targets/0", "/targets/0/facts", "/cells/0", "/trial", "/resumed",
            "/end",
        ] {
            if line.pointer(pointer).is_some() {
                check_members(&line, pointer);
            }
        }
    }
}

/// Checks that the schema accepts a line, and requires each member of the object at this place and no other.
fn check_members(line: &Value, pointer: &str) {
    let validator = validator();
    assert!(validator.is_valid(line), "{line}");
    for member in line.pointer(pointer).unwrap().as_object().unwrap().keys() {
        let mut less = line.clone();
        less.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(member);
        assert!(!validator.is_valid(&less), "without {pointer}/{member} it is still valid");
    }
    let mut more = line.clone();
    more.pointer_mut(pointer).unwrap()["surplus"] = json!(1);
    assert!(!validator.is_valid(&more), "with {pointer}/surplus it is still valid");
}

#[test]
fn licence_clause_in_schema_requires_all_members() {
    let mut header = written_lines().remove(0);
    header["targets"][0]["publishing"] =
        json!({"name": "Licence, 7", "says": "may not", "source": "https://x"});
    check_members(&header, "/targets/0/publishing");
}

#[test]
fn schema_accepts_only_durability_classes_in_spec() {
    let validator = validator();
    let mut header = written_lines().swap_remove(0);
    // Older run files lack it.
    assert!(validator.is_valid(&header) && header["spec"].get("durability").is_none());
    header["spec"]["durability"] = json!("os-cache");
    assert!(validator.is_valid(&header));
    header["spec"]["durability"] = json!("safe");
    assert!(!validator.is_valid(&header));
}

#[test]
fn schema_rejects_other_lines() {
    let validator = validator();
    for line in [
        json!({}),
        json!(1),
        json!({"kurabe-run": 3}),
        json!({"line": 2, "end": {"at_ms": 1, "complete": true}}),
    ] {
        assert!(!validator.is_valid(&line), "{line}");
    }
}

#[test]
fn schema_requires_all_members_of_custom_workload() {
    let mut line = written_lines().remove(0);
    let custom = kurabe_core::custom::CustomWorkload {
        language: kurabe_core::custom::Language::Pgbench,
        files: vec![kurabe_core::custom::CustomFile {
            name: "a.sql".into(),
            text: "SELECT 1;".into(),
            weight: 2,
        }],
        define: [("scale".to_owned(), "10".to_owned())].into(),
        scale: None,
        max_tries: None,
        init: true,
        write: false,
    };
    line["spec"]["custom"] = serde_json::to_value(&custom).unwrap();
    for pointer in ["/spec/custom", "/spec/custom/files/0"] {
        check_members(&line, pointer);
    }
}
