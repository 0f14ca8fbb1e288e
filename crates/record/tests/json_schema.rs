//! JSON Schema (draft 2020-12), as far as the schemas in docs/schema use it: the keyword that is unknown here panics. The
//! full tier runs the same tests with a complete library.

use serde_json::{Map, Value};

/// A schema.
pub(crate) struct Validator(Value);

/// Keywords that restrict nothing, or that another one reads.
const NOTES: [&str; 10] = [
    "$schema", "$id", "$defs", "title", "description", "contentEncoding", "properties",
    "additionalProperties", "then", "else",
];

/// What is wrong first: the keyword with its rule, and the path of the value, the last part first.
struct Wrong<'a> {
    keyword: &'a str,
    rule: &'a Value,
    path: Vec<String>,
}

impl Validator {
    pub(crate) fn new(schema: &str) -> Self {
        Self(serde_json::from_str(schema).unwrap())
    }

    /// What is wrong with a value.
    pub(crate) fn error(&self, value: &Value) -> Option<String> {
        let Wrong { keyword, rule, mut path } = self.check(&self.0, value).err()?;
        path.reverse();
        Some(format!("{keyword} {rule} at /{}", path.join("/")))
    }

    pub(crate) fn is_valid(&self, value: &Value) -> bool {
        self.holds(&self.0, value)
    }

    fn holds(&self, schema: &Value, value: &Value) -> bool {
        self.check(schema, value).is_ok()
    }

    fn check<'a>(&'a self, schema: &'a Value, value: &Value) -> Result<(), Wrong<'a>> {
        let wrong = |keyword, rule| Wrong { keyword, rule, path: Vec::new() };
        let keywords = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Bool(false) => return Err(wrong("nothing is allowed", schema)),
            schema => schema.as_object().unwrap(),
        };
        for (keyword, rule) in keywords {
            let limit = |follows: fn(f64, f64) -> bool| {
                value.as_f64().is_none_or(|number| follows(number, rule.as_f64().unwrap()))
            };
            let count = |follows: fn(u64, u64) -> bool| {
                value.as_array().is_none_or(|items| follows(items.len() as u64, rule.as_u64().unwrap()))
            };
            let follows = match keyword.as_str() {
                "$ref" => {
                    let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                    self.check(self.0.pointer(pointer).unwrap(), value)?;
                    true
                }
                "allOf" => {
                    list(rule).iter().try_for_each(|rule| self.check(rule, value))?;
                    true
                }
                "oneOf" => list(rule).iter().filter(|rule| self.holds(rule, value)).count() == 1,
                "if" => {
                    let next = keywords.get(if self.holds(rule, value) { "then" } else { "else" });
                    next.into_iter().try_for_each(|next| self.check(next, value))?;
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
                "minimum" => limit(|number, limit| number >= limit),
                "maximum" => limit(|number, limit| number <= limit),
                "exclusiveMinimum" => limit(|number, limit| number > limit),
                "minItems" => count(|items, limit| items >= limit),
                "maxItems" => count(|items, limit| items <= limit),
                "items" => {
                    let mut items = value.as_array().into_iter().flatten().enumerate();
                    items.try_for_each(|(n, item)| within(self.check(rule, item), || n.to_string()))?;
                    true
                }
                "required" => value.as_object().is_none_or(|members| has_all(members, rule)),
                "dependentRequired" => value.as_object().is_none_or(|members| {
                    let mut rules = rule.as_object().unwrap().iter();
                    rules.all(|(name, names)| !members.contains_key(name) || has_all(members, names))
                }),
                "propertyNames" => {
                    let mut names = value.as_object().into_iter().flat_map(Map::keys);
                    names.all(|name| self.holds(rule, &Value::from(name.as_str())))
                }
                note => {
                    assert!(NOTES.contains(&note), "the schema has a keyword that is unknown here: {note}");
                    true
                }
            };
            if !follows {
                return Err(wrong(keyword, rule));
            }
        }
        // Members, each by its own schema or by that of all others.
        let known = keywords.get("properties").and_then(Value::as_object);
        for (name, member) in value.as_object().into_iter().flatten() {
            let rule =
                known.and_then(|known| known.get(name)).or_else(|| keywords.get("additionalProperties"));
            within(rule.map_or(Ok(()), |rule| self.check(rule, member)), || name.clone())?;
        }
        Ok(())
    }
}

/// A result about a part of a value, as one about the value.
fn within(result: Result<(), Wrong<'_>>, part: impl FnOnce() -> String) -> Result<(), Wrong<'_>> {
    result.map_err(|mut wrong| {
        wrong.path.push(part());
        wrong
    })
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
    let inner = schema.error(&serde_json::json!({"a": 1, "b": ["x"]}));
    assert_eq!(inner.as_deref(), Some(r#"pattern "^[0-9a-f]{8}$" at /b/0"#));
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
