//! The tests of the JSON report's schema.

use crate::json_schema;

#[path = "../../report/tests/common/mod.rs"]
mod common;
#[path = "../../report/tests/schema.rs"]
mod schema;
