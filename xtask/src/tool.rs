//! Programs of other projects that tasks use, each of one version, compiled once into `target/tools`.

use std::path::PathBuf;

use crate::shell::{self, cargo};
use crate::test::repository;

/// A program with the name of its crate. `options` are those of `cargo install`.
pub fn compiled(name: &str, version: &str, options: &[&str]) -> Result<PathBuf, String> {
    let root = repository().join("target/tools").join(format!("{name}-{version}"));
    let program = root.join("bin").join(name);
    if !program.exists() {
        println!("compiling {name} {version}; once, some minutes");
        let mut install = cargo();
        install.args(["install", "--locked", "--quiet", "--root"]).arg(&root);
        shell::run(install.args(options).args(["--version", version, name]), "cargo install")?;
    }
    Ok(program)
}
