//! Tells the tests where cargo puts the program, which another package builds.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a build script speaks to cargo, and fails by panics"
)]

use std::path::Path;

fn main() {
    // TARGET/PROFILE/build/NAME-HASH/out
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let profile = Path::new(&out).ancestors().nth(3).expect("a folder of a build script");
    println!("cargo::rustc-env=CARGO_BIN_EXE_kurabe={}", profile.join("kurabe").display());
    println!("cargo::rerun-if-changed=build.rs");
}
