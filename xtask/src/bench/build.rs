//! `cargo xtask bench build`: the release build from nothing, at another commit and now.
//!
//! Both are built in temporary target folders, one after the other, with everything downloaded before. The build of the
//! commit is that of a fresh clone; that of now is of the working tree. Processor time is that of cargo and all processes
//! that it started, from the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::options::Variables;
use super::process;
use super::run::{self, machine};
use crate::shell::{self, Outcome};

/// What a build took and made.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Built {
    /// Seconds of processor time.
    cpu: f64,
    /// Seconds.
    wall: f64,
    /// Packages, each version of one counted.
    packages: usize,
    /// Packages with more than one version.
    duplicates: usize,
    /// Size of the program without symbols, in bytes.
    size: u64,
}

pub fn run(args: &[String]) -> Outcome {
    let given = Variables::read(args, &[("base", "HEAD"), ("features", ""), ("base-features", "")])?;
    let list = |name| Some(given.get(name)).filter(|list| !list.is_empty());
    let (base, features, base_features) = (given.get("base"), list("features"), list("base-features"));
    let revision = shell::run(Command::new("git").args(["rev-parse", "--short", "--verify", base]), "git")?;
    let scratch = run::scratch("build")?;
    let measured = measure(&scratch, base, base_features, features);
    let _ = fs::remove_dir_all(&scratch);
    let [before, now] = measured?;
    let of =
        |features: Option<&str>| features.map_or(String::new(), |list| format!(" with --features {list}"));
    println!("{}; cargo build --release --locked -p kurabe, target folder empty\n", machine());
    let (then, this) = (of(base_features), of(features));
    println!("| | {}{then} | working tree{this} | ratio |\n|---|--:|--:|--:|", revision.trim());
    print!("{}", table(&before, &now));
    Ok(())
}

/// Builds a commit and the working tree.
fn measure(
    scratch: &Path,
    base: &str,
    base_features: Option<&str>,
    features: Option<&str>,
) -> Result<[Built; 2], String> {
    let (clone, archive) = (scratch.join("base"), scratch.join("base.tar"));
    fs::create_dir_all(&clone).map_err(|error| format!("{}: {error}", clone.display()))?;
    shell::run(Command::new("git").args(["archive", "--output"]).arg(&archive).arg(base), "git archive")?;
    shell::run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&clone), "tar")?;
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    for folder in [&clone, &here] {
        shell::run(shell::cargo().args(["fetch", "--locked"]).current_dir(folder), "cargo fetch")?;
    }
    let before = build(&clone, &scratch.join("target-base"), base_features)?;
    let now = build(&here, &scratch.join("target-now"), features)?;
    Ok([before, now])
}

fn build(folder: &Path, target: &Path, features: Option<&str>) -> Result<Built, String> {
    let cargo = |words: &[&str]| {
        let mut command = shell::cargo();
        command.current_dir(folder).args(words).args(["--locked", "-p", "kurabe"]);
        command.args(features.into_iter().flat_map(|list| ["--features", list]));
        command.env("CARGO_TARGET_DIR", target);
        command
    };
    let names = ["tree", "-e", "normal,build", "--prefix", "none", "--no-dedupe", "--format", "{p}"];
    let (packages, duplicates) = counted(&shell::run(&mut cargo(&names), "cargo tree")?);
    eprintln!("building {} …", folder.display());
    let (cpu, began) = (process::cpu_of_ended_children(), Instant::now());
    shell::run(&mut cargo(&["build", "--release"]), "cargo build")?;
    let wall = began.elapsed().as_secs_f64();
    let cpu = process::cpu_of_ended_children() - cpu;
    let size = stripped(&target.join("release/kurabe"))?;
    // Two target folders at a time need twice the room.
    fs::remove_dir_all(target).map_err(|error| format!("{}: {error}", target.display()))?;
    Ok(Built { cpu, wall, packages, duplicates, size })
}

/// The number of packages in `cargo tree`'s list, and of those in several versions.
fn counted(list: &str) -> (usize, usize) {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in list.lines() {
        // `rustls v0.23.46 (*)`
        if let Some((name, rest)) = line.split_once(' ') {
            versions.entry(name).or_default().insert(rest.split(' ').next().unwrap_or_default());
        }
    }
    let packages = versions.values().map(BTreeSet::len).sum();
    (packages, versions.values().filter(|versions| versions.len() > 1).count())
}

/// The size of a program without symbols.
fn stripped(program: &Path) -> Result<u64, String> {
    let copy = PathBuf::from(format!("{}.stripped", program.display()));
    shell::run(Command::new("strip").arg("-o").arg(&copy).arg(program), "strip (of binutils)")?;
    let size = fs::metadata(&copy).map_err(|error| format!("{}: {error}", copy.display()))?.len();
    Ok(size)
}

fn table(before: &Built, now: &Built) -> String {
    let row = |name: &str, before: f64, now: f64, digits: usize| {
        format!("| {name} | {before:.digits$} | {now:.digits$} | {:.2} |\n", now / before)
    };
    let mb = |bytes: u64| bytes as f64 / 1e6;
    row("processor time, s", before.cpu, now.cpu, 0)
        + &row("time, s", before.wall, now.wall, 0)
        + &row("packages", before.packages as f64, now.packages as f64, 0)
        + &row("packages in several versions", before.duplicates as f64, now.duplicates as f64, 0)
        + &row("program without symbols, MB", mb(before.size), mb(now.size), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_of_a_package_is_counted_once() {
        let list = "kurabe v0.1.0 (/src)\nsyn v2.0.1\nserde v1.0.0 (*)\nsyn v3.0.0\n\nserde v1.0.0\n";
        assert_eq!(counted(list), (4, 1));
    }

    #[test]
    fn table_has_a_ratio_for_each_figure() {
        let before = Built { cpu: 100.0, wall: 50.0, packages: 400, duplicates: 10, size: 40_000_000 };
        let now = Built { cpu: 40.0, wall: 20.0, packages: 200, duplicates: 5, size: 10_000_000 };
        let text = table(&before, &now);
        assert!(text.starts_with("| processor time, s | 100 | 40 | 0.40 |\n"), "{text}");
        assert!(text.ends_with("| program without symbols, MB | 40.0 | 10.0 | 0.25 |\n"), "{text}");
    }
}
