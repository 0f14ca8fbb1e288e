//! The published program: profile `dist`, all features, linked for an older glibc.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{GLIBC, Release, system::System};
use crate::shell::{run, target_folder};

pub fn program(release: &Release, system: &System) -> Result<PathBuf, String> {
    println!("dist: building {} of {}; ten minutes on two processors", release.version, release.commit);
    let target = format!("{}.{GLIBC}", release.triple());
    let mut build = system.tool("cargo-zigbuild");
    build.args([
        "zigbuild", "--profile", "dist", "--locked", "-p", "kurabe", "--features", "full", "--target",
        &target,
    ]);
    run(build.env("KURABE_COMMIT", &release.commit), "cargo zigbuild")?;
    Ok(target_folder().join(release.triple()).join("dist/kurabe"))
}

/// An error names the symbols that an older glibc lacks.
pub fn needs_no_newer_glibc(program: &Path) -> Result<(), String> {
    let table = run(Command::new("readelf").args(["--wide", "--version-info"]).arg(program), "readelf")?;
    let versions = table.split_whitespace().filter_map(|word| word.strip_prefix("GLIBC_"));
    let newer: Vec<&str> = versions.filter(|version| number(version) > number(GLIBC)).collect();
    if newer.is_empty() {
        return Ok(());
    }
    Err(format!("{} needs glibc {}; {GLIBC} is promised", program.display(), newer.join(", ")))
}

/// `2.2.5` as (2, 2, 5).
fn number(version: &str) -> Vec<u32> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(
            number("2.4") < number("2.31")
                && number("2.2.5") < number("2.31")
                && number("2.34") > number("2.31")
        );
    }
}
