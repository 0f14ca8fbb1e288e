//! The tests of the run file's schema.

use crate::json_schema;

#[path = "../../record/tests/common/mod.rs"]
#[allow(dead_code, reason = "the record crate's tests use the rest")]
mod common;
#[path = "../../record/tests/schema.rs"]
mod schema;
