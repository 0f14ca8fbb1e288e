//! Tests with heavy libraries that nothing else here needs. They are a package of their own, so that only the full tier
//! (`cargo xtask test --full`) builds them. The program that they run is built beside them, as for all tests of the workspace.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests are tests")]

mod browser;
mod deploy;
mod report_json;
mod run_file;

#[path = "../../../tests/page.rs"]
#[allow(dead_code, reason = "the default tier uses the rest")]
mod page;
#[path = "../../../tests/support.rs"]
#[allow(dead_code, reason = "the default tier uses the rest")]
mod support;

/// JSON Schema by a complete library, with the interface of the small validator in `crates/record/tests/json_schema.rs`.
mod json_schema {
    use serde_json::Value;

    /// A schema.
    pub(crate) struct Validator(jsonschema::Validator);

    impl Validator {
        pub(crate) fn new(schema: &str) -> Self {
            let schema: Value = serde_json::from_str(schema).unwrap();
            Self(jsonschema::validator_for(&schema).unwrap())
        }

        /// What is wrong with a value.
        pub(crate) fn error(&self, value: &Value) -> Option<String> {
            let error = self.0.iter_errors(value).next()?;
            Some(format!("{error} at {}", error.instance_path()))
        }

        pub(crate) fn is_valid(&self, value: &Value) -> bool {
            self.0.is_valid(value)
        }
    }
}
