//! Attacks on the program, as `cargo xtask attack` makes them: here one of each kind.

use crate::support::KURABE;
use kurabe_attack::case::Case;
use kurabe_attack::context::Context;
use kurabe_attack::{families, runner};
use kurabe_testbed::testing;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The same attacks each time.
const SEED: u64 = 7;
/// Where an attack is made, the cheapest first.
const TARGETS: [&str; 5] = ["null", "runs", "sqlite", "app", "redis"];

/// A case of each kind that has one of the targets. Lies have tests of their own (`lies.rs`).
fn one_of_each_kind() -> Vec<Case> {
    let mut chosen: Vec<Case> = Vec::new();
    for family in families::FAMILIES.iter().filter(|family| family.name != "liar") {
        for target in TARGETS {
            for case in (family.cases)().into_iter().filter(|case| case.target == target) {
                if !chosen.iter().any(|other| other.name() == case.name()) {
                    chosen.push(case);
                }
            }
        }
    }
    chosen
}

#[test]
fn program_survives_one_attack_of_each_kind() {
    let folder = tempfile::Builder::new().prefix("kurabe-attack-").tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = PathBuf::from(KURABE);
    let cases: Vec<(Case, usize)> = one_of_each_kind().into_iter().map(|case| (case, 1)).collect();
    let kinds: Vec<&Case> = cases.iter().map(|(case, _)| case).collect();
    let mut missing = Vec::new();
    let [servers, waiting] =
        runner::start_servers(&program, folder.path(), &kinds, |why| missing.push(why.to_owned()));
    let context = Context { program, scratch: folder.path().to_owned(), servers, waiting };
    let table = runner::run(&context, &cases, SEED, |_| {});
    let text = table.text(|name, target, seed, tries| {
        format!("cargo xtask attack --only {name} --target {target} --tries {tries} --seed {seed}")
    });
    let (tries, failed) = table.total();
    assert_eq!(failed, 0, "{text}");
    if missing.is_empty() {
        assert_eq!(tries, cases.len(), "{text}");
    } else {
        assert!(!testing::required(), "{missing:?}: {text}");
        testing::skipped(&format!(
            "only {tries} of {} attacks were made: {}",
            cases.len(),
            missing.join("; ")
        ));
    }
}
