//! JSON Schema (draft 2020-12), as far as the schemas in docs/schema use it: the keyword that is unknown here panics. The
//! full tier runs the same tests with a complete library.

use serde_json::{Map, Value};

/// A schema.
pub(crate) struct Validator(Value);

/// Keywords that restrict nothing, or that another one reads.
const NOTES: [&str; 9] =
    ["$schema", "$id", "$defs", "title", "description", "contentEncoding", "properties", "then", "else"];

impl Validator {
    pub(crate) fn new(schema: &str) -> Self {
        Self(serde_json::from_str(schema).unwrap())
    }

    /// What is wrong with a value.
    pub(crate) fn errors(&self, value: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        self.check(&self.0, value, "", &mut errors);
        errors
    }

    pub(crate) fn is_valid(&self, value: &Value) -> bool {
        self.errors(value).is_empty()
    }

    fn holds(&self, schema: &Value, value: &Value) -> bool {
        let mut errors = Vec::new();
        self.check(schema, value, "", &mut errors);
        errors.is_empty()
    }

    /// Checks a value at this JSON pointer.
    fn check(&self, schema: &Value, value: &Value, at: &str, errors: &mut Vec<String>) {
        let schema = match schema {
            Value::Bool(true) => return,
            Value::Bool(false) => return errors.push(format!("nothing is allowed at {at}")),
            schema => schema.as_object().unwrap(),
        };
        for (keyword, rule) in schema {
            if let (Some(limit), Some(number)) = (rule.as_f64(), value.as_f64())
                && let Some(within) = match keyword.as_str() {
                    "minimum" => Some(number >= limit),
                    "maximum" => Some(number <= limit),
                    "exclusiveMinimum" => Some(number > limit),
                    _ => None,
                }
            {
                if !within {
                    errors.push(format!("{number} at {at}: {keyword} {limit}"));
                }
                continue;
            }
            let follows = match keyword.as_str() {
                "$ref" => {
                    let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                    self.check(self.0.pointer(pointer).unwrap(), value, at, errors);
                    true
                }
                "allOf" => {
                    list(rule).iter().for_each(|rule| self.check(rule, value, at, errors));
                    true
                }
                "oneOf" => list(rule).iter().filter(|rule| self.holds(rule, value)).count() == 1,
                "if" => {
                    let next = schema.get(if self.holds(rule, value) { "then" } else { "else" });
                    next.into_iter().for_each(|next| self.check(next, value, at, errors));
                    true
                }
                "const" => value == rule,
                "enum" => list(rule).contains(value),
                "type" if rule.is_array() => list(rule).iter().any(|name| is(name, value)),
                "type" => is(rule, value),
                // The only pattern.
                "pattern" => {
                    assert_eq!(rule, "^[0-9a-f]{8}$");
                    value.as_str().is_none_or(|text| {
                        text.len() == 8 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
                    })
                }
                "items" => {
                    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(rule, item, &format!("{at}/{n}"), errors);
                    }
                    true
                }
                "minItems" => {
                    value.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap())
                }
                "maxItems" => {
                    value.as_array().is_none_or(|items| items.len() as u64 <= rule.as_u64().unwrap())
                }
                "required" => value.as_object().is_none_or(|members| has_all(members, rule)),
                "dependentRequired" => value.as_object().is_none_or(|members| {
                    let present =
                        rule.as_object().unwrap().iter().filter(|(name, _)| members.contains_key(*name));
                    present.into_iter().all(|(_, names)| has_all(members, names))
                }),
                "propertyNames" => value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .all(|(name, _)| self.holds(rule, &Value::from(name.as_str()))),
                "minimum" | "maximum" | "exclusiveMinimum" => true,
                "additionalProperties" => true,
                note => {
                    assert!(NOTES.contains(&note), "the schema has a keyword that is unknown here: {note}");
                    true
                }
            };
            if !follows {
                errors.push(format!("{value} at {at}: {keyword} {rule}"));
            }
        }
        // Members, each by its own schema or by that of all others.
        let known = schema.get("properties").and_then(Value::as_object);
        for (name, member) in value.as_object().into_iter().flatten() {
            let rule = known.and_then(|known| known.get(name)).or_else(|| schema.get("additionalProperties"));
            rule.into_iter().for_each(|rule| self.check(rule, member, &format!("{at}/{name}"), errors));
        }
    }
}

fn list(rule: &Value) -> &[Value] {
    rule.as_array().unwrap()
}

fn has_all(members: &Map<String, Value>, names: &Value) -> bool {
    list(names).iter().all(|name| members.contains_key(name.as_str().unwrap()))
}

/// Whether a value is of a type.
fn is(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => panic!("{other} is not a type"),
    }
}

#[test]
fn small_validator_knows_what_follows_and_what_does_not() {
    let schema = Validator::new(
        r##"{"type": "object", "required": ["a"], "additionalProperties": false, "properties": {
            "a": {"type": ["integer", "null"], "minimum": 1}, "b": {"type": "array", "maxItems": 1, "items": {"$ref": "#/$defs/c"}},
            "d": {"oneOf": [{"const": 1}, {"enum": [1, 2]}]}}, "$defs": {"c": {"pattern": "^[0-9a-f]{8}$", "type": "string"}}}"##,
    );
    let follows = |text: &str| schema.is_valid(&serde_json::from_str(text).unwrap());
    for right in [r#"{"a": 1}"#, r#"{"a": null, "b": ["0123cdef"]}"#, r#"{"a": 2.0, "d": 2}"#] {
        assert!(follows(right), "{right}");
    }
    for wrong in [
        "[]",
        "{}",
        r#"{"a": 0}"#,
        r#"{"a": 1.5}"#,
        r#"{"a": "1"}"#,
        r#"{"a": 1, "x": 1}"#,
        r#"{"a": 1, "b": ["0123cdeg"]}"#,
        r#"{"a": 1, "b": ["0123cdef", "0123cdef"]}"#,
        r#"{"a": 1, "d": 1}"#,
    ] {
        assert!(!follows(wrong), "{wrong}");
    }
}
