//! The tests of the JSON report's schema.

use crate::json_schema;

#[path = "../../report/tests/common/mod.rs"]
#[allow(dead_code, reason = "the report crate's tests use the rest")]
mod common;
#[path = "../../report/tests/schema.rs"]
mod schema;
