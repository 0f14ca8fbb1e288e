//! The full tier: what takes minutes, or needs what the default tier does not install. It runs before a release:
//! `cargo xtask test --full`, or alone `cargo test -p kurabe --test full`. `cargo test` neither builds nor runs it.
//!
//! A test stands in one tier. It belongs here if it soaks, captures packets, runs ten thousand clients, plants causes and
//! differences (`kurabe selftest`), answers shipped claims, compares with pgbench and sysbench, or runs application stacks and load generators of others. Each
//! promise of docs/ARCHITECTURE.md has a test in the default tier (`tests/main.rs`) too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests are tests")]

mod claims;
mod copies;
mod direct;
mod faults;
mod hostile;
mod packets;
mod peers;
mod planted;
mod soak;
mod stacks;
mod threads;
mod tools;

// What both tiers use. Each tier uses a part of it.
#[path = "../fleet/common.rs"]
#[allow(dead_code, unused_imports)]
mod fleet;
#[path = "../webapp/held.rs"]
#[allow(dead_code, unused_imports)]
mod held;
#[path = "../stacks/lies.rs"]
#[allow(dead_code, unused_imports)]
mod lies;
#[path = "../network.rs"]
#[allow(dead_code, unused_imports)]
mod network;
#[path = "../servers/common.rs"]
#[allow(dead_code, unused_imports)]
mod servers_common;
#[path = "../threads/shared.rs"]
#[allow(dead_code, unused_imports)]
mod shared_threads;
#[path = "../support.rs"]
#[allow(dead_code, unused_imports)]
mod support;
#[path = "../web/common.rs"]
#[allow(dead_code, unused_imports)]
mod web_common;

mod servers {
    pub(crate) use crate::servers_common as common;
}

mod web {
    pub(crate) use crate::web_common as common;
}
