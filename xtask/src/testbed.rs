//! The testbed's code for finding servers, so that both find the same. As files and not as a dependency: they need
//! little beyond std, and set-up does not wait for building the testbed.

#[path = "../../crates/testbed/src/environment.rs"]
mod environment;
#[path = "../../crates/testbed/src/programs.rs"]
#[allow(dead_code, reason = "the testbed searches in other ways too")]
pub mod programs;
#[path = "../../crates/testbed/src/root.rs"]
#[allow(dead_code, reason = "only the testbed runs the servers")]
pub mod root;
