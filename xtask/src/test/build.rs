//! Builds all test programs with one selection of packages and features, and finds them in cargo's messages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::shell::cargo;

/// Which tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Default,
    Full,
}

/// The option of the full tier.
pub const FULL: &str = "--full";
/// Packages that only the full tier builds: a third of all libraries is theirs, and a default build has none of them.
const HEAVY: [&str; 4] = [TESTS, "kurabe-fleet", "kurabe-lmdb", "kurabe-oracle"];
/// The package whose tests need heavy libraries, which also clippy reads in the full tier alone.
const TESTS: &str = "kurabe-fulltests";

pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// The packages and features of a tier, as arguments of cargo.
pub fn selection(tier: Tier) -> Vec<String> {
    match tier {
        Tier::Default => workspace_without(&HEAVY),
        Tier::Full => [workspace_without(&[]), all_features()].concat(),
    }
}

/// What clippy and the documentation read: all features in each tier, so that one step of CI compiles what only the full tier
/// tests.
pub fn read_by_lint(tier: Tier) -> Vec<String> {
    let left_out: &[&str] = if tier == Tier::Full { &[] } else { &[TESTS] };
    [workspace_without(left_out), all_features()].concat()
}

fn workspace_without(packages: &[&str]) -> Vec<String> {
    let excluded = packages.iter().flat_map(|package| ["--exclude", package]);
    ["--locked", "--workspace"].into_iter().chain(excluded).map(str::to_owned).collect()
}

/// The feature `full` of each package that has it.
fn all_features() -> Vec<String> {
    let manifests = manifests();
    let full = manifests.iter().filter(|text| has_full(text)).filter_map(|text| package(text));
    let features: Vec<String> = full.map(|package| format!("{package}/full")).collect();
    if features.is_empty() { Vec::new() } else { vec!["--features".to_owned(), features.join(",")] }
}

/// The test programs of the full tier that cargo builds only if they are named (`test = false`).
pub fn named_only() -> Vec<String> {
    manifests().iter().flat_map(|text| unbuilt(text)).collect()
}

/// The texts of the crates' manifests.
fn manifests() -> Vec<String> {
    let entries = fs::read_dir(repository().join("crates")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path().join("Cargo.toml")).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// Whether a manifest has a feature `full`.
fn has_full(manifest: &str) -> bool {
    let features = manifest.split("\n[features]\n").nth(1).unwrap_or_default();
    features.lines().take_while(|line| !line.starts_with('[')).any(|line| line.starts_with("full = "))
}

/// The name in a manifest of a package.
fn package(manifest: &str) -> Option<&str> {
    manifest
        .lines()
        .find_map(|line| line.strip_prefix("name = "))?
        .trim()
        .strip_prefix('"')?
        .strip_suffix('"')
}

/// The names of a manifest's test programs with `test = false`.
fn unbuilt(manifest: &str) -> Vec<String> {
    let blocks = manifest.split("\n[[test]]\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("\n[").next().unwrap_or_default());
    let left_out = blocks.filter(|block| block.lines().any(|line| line == "test = false"));
    left_out.filter_map(package).map(str::to_owned).collect()
}

/// A program with tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The folder of its crate, and which of the crate's programs it is: `engine: tests`.
    pub label: String,
    /// Whether it has the tests within a library or a program, which need no servers.
    pub unit: bool,
    pub path: PathBuf,
    /// The folder of its package, where cargo runs it.
    pub folder: PathBuf,
}

/// Builds the programs of a tier. Cargo shows its progress.
pub fn build(tier: Tier) -> Result<Vec<Program>, String> {
    let mut programs = cargo_test(tier, &[])?;
    let named = named_only();
    if tier == Tier::Full && !named.is_empty() {
        let args: Vec<String> = named.into_iter().flat_map(|name| ["--test".to_owned(), name]).collect();
        programs.extend(cargo_test(tier, &args)?);
    }
    // Fast ones first, so that a simple fault is seen early.
    programs.sort_by_key(|program| !program.unit);
    if programs.is_empty() { Err("cargo built no test programs".to_owned()) } else { Ok(programs) }
}

fn cargo_test(tier: Tier, args: &[String]) -> Result<Vec<Program>, String> {
    let mut command = cargo();
    command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]);
    command.args(selection(tier)).args(args).current_dir(repository());
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cargo test --no-run: {error}"))?;
    if !output.status.success() {
        return Err(format!("the tests do not compile (cargo test --no-run: {})", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(artifact).collect())
}

/// The test program in a message of cargo, if it has one
/// (<https://doc.rust-lang.org/cargo/reference/external-tools.html#artifact-messages>).
fn artifact(message: &str) -> Option<Program> {
    if !message.starts_with(r#"{"reason":"compiler-artifact","#) {
        return None;
    }
    // `target` has a member `test` too: whether it may have tests.
    let profile = message.split_once(r#""profile":{"#)?.1.split('}').next()?;
    if !profile.contains(r#""test":true"#) {
        return None;
    }
    let path = PathBuf::from(string(message, r#""executable":"#)?);
    let folder = PathBuf::from(string(message, r#""manifest_path":"#)?).parent()?.to_owned();
    let target = message.split_once(r#""target":{"#)?.1;
    let kind = string(target, r#""kind":["#)?;
    let name = string(target, r#""name":"#)?;
    let krate = folder.file_name()?.to_string_lossy().into_owned();
    let which = match kind.as_str() {
        "test" if name == krate => "tests",
        "test" => &name,
        _ => "unit tests",
    };
    Some(Program { label: format!("{krate}: {which}"), unit: kind != "test", path, folder })
}

/// The JSON string that follows a key.
fn string(text: &str, key: &str) -> Option<String> {
    let mut letters = text.split_once(key)?.1.strip_prefix('"')?.chars();
    let mut read = String::new();
    loop {
        match letters.next()? {
            '"' => return Some(read),
            // In paths: quotes and backslashes. Cargo writes other letters as they are.
            '\\' => read.push(letters.next()?),
            letter => read.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_of_test_programs_have_a_program() {
        let message = r#"{"reason":"compiler-artifact","package_id":"path+file:///w/crates/engine#kurabe-engine@0.1.0","manifest_path":"/w/crates/engine/Cargo.toml","target":{"kind":["KIND"],"crate_types":["lib"],"name":"engine","src_path":"/w/crates/engine/src/lib.rs","edition":"2024","doc":true,"doctest":false,"test":true},"profile":{"opt_level":"0","debuginfo":1,"debug_assertions":true,"overflow_checks":true,"test":TEST},"features":[],"filenames":["/w/a \"b\""],"executable":"/w/a \"b\"","fresh":true}"#;
        let of = |kind: &str, test: &str| artifact(&message.replace("KIND", kind).replace("TEST", test));
        let program = of("test", "true").unwrap();
        assert_eq!((program.label.as_str(), program.unit), ("engine: tests", false));
        assert_eq!(program.path, Path::new("/w/a \"b\""));
        assert_eq!(program.folder, Path::new("/w/crates/engine"));
        let unit = of("lib", "true").unwrap();
        assert_eq!((unit.label.as_str(), unit.unit), ("engine: unit tests", true));
        assert_eq!(of("lib", "false"), None);
        assert_eq!(artifact(&message.replace(r#""executable":"/w/a \"b\"""#, r#""executable":null"#)), None);
        assert_eq!(artifact(r#"{"reason":"build-finished","success":true}"#), None);
    }

    #[test]
    fn manifest_tells_features_and_programs_of_the_full_tier() {
        let manifest = "[package]\nname = \"kurabe-x\"\n\n[features]\ndefault = []\nfull = [\"default\"]\n\n[[test]]\nname = \"a\"\ntest = false\n\n[[test]]\nname = \"b\"\n\n[[bin]]\nname = \"c\"\ntest = false\n";
        assert!(has_full(manifest));
        assert!(!has_full("[package]\nname = \"kurabe-x\"\n\n[dependencies]\nfull = \"1\"\n"));
        assert_eq!(package(manifest), Some("kurabe-x"));
        assert_eq!(unbuilt(manifest), ["a"]);
    }

    #[test]
    fn heavy_packages_exist_and_only_the_full_tier_selects_them() {
        let (default, full) = (selection(Tier::Default), selection(Tier::Full));
        for heavy in HEAVY {
            assert!(manifests().iter().any(|text| package(text) == Some(heavy)), "{heavy}");
            assert!(default.windows(2).any(|pair| pair == ["--exclude", heavy]), "{heavy}");
        }
        assert!(!full.iter().any(|arg| arg == "--exclude") && !default.iter().any(|arg| arg == "--features"));
        assert!(full.last().unwrap().contains("kurabe/full"), "{full:?}");
        assert_eq!(read_by_lint(Tier::Default).iter().filter(|arg| *arg == "--exclude").count(), 1);
    }

    /// The test files of a folder, and the folders with a `mod.rs`: names of modules.
    fn modules(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let modules = entries.filter(|path| {
            let file = path.extension().is_some_and(|end| end == "rs") && !path.ends_with("main.rs");
            file || path.join("mod.rs").exists()
        });
        modules.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
    }

    #[test]
    fn every_file_of_tests_is_a_module_of_a_program() {
        // Cargo finds no test files itself where a crate has one program: a forgotten one would never run.
        let root = repository();
        let mut folders = vec![root.join("tests"), root.join("tests/full")];
        let crates =
            fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path().join("tests"));
        folders.extend(crates.filter(|folder| folder.join("main.rs").exists()));
        let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let full = read(root.join("tests/full/main.rs"));
        for folder in folders {
            let main = read(folder.join("main.rs"));
            for name in modules(&folder) {
                let line = format!("mod {name};");
                let has = |text: &str| {
                    text.lines().any(|of| of.trim_start() == line) || text.contains(&format!("/{name}.rs\"]"))
                };
                assert!(
                    has(&main) || has(&full),
                    "{} has no line `{line}`",
                    folder.join("main.rs").display()
                );
            }
        }
    }
}
