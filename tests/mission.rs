//! `suites/mission.toml`, smaller still: every experiment on every engine that is installed here. It judges what was
//! measured where, and no times.

use crate::servers::common::skip;
use crate::support::{Answer, Place};
use kurabe_experiments::registry::EXPERIMENTS;
use serde_json::Value;
use std::path::Path;
