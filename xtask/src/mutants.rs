//! `cargo xtask mutants`: changes files of a crate in small ways, one at a time, and names the changes that the crate's own tests do
//! not see. cargo-mutants does it.

use std::process::Command;

use crate::shell::Outcome;
use crate::test::repository;

const HELP: &str = "\
cargo xtask mutants FILE… [-- OPTION…]

Changes each function of the files (crates/stats/src/paired.rs, or 'crates/stats/src/**'), and runs the tests of its crate after each
change. Those that no test sees are listed, and are in target/mutants.out/missed.txt. Options are of cargo-mutants: --list only lists
them, --shard 0/8 tries an eighth.";
const VERSION: &str = "27.1.0";

pub fn run(args: &[String]) -> Outcome {
    let (files, options) = match args.iter().position(|arg| arg == "--") {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &[][..]),
    };
    if files.is_empty() || files.iter().any(|file| file.starts_with('-')) {
        println!("{HELP}");
        return if args.iter().any(|arg| arg == "--help") {
            Ok(())
        } else {
            Err("it needs files".to_owned())
        };
    }
    let tool = crate::tool::compiled("cargo-mutants", VERSION, &[])?;
    let mut mutants = Command::new(tool);
    crate::shell::without_package(&mut mutants);
    mutants.args(["mutants", "--no-shuffle", "--output", "target", "--colors", "never"]);
    for file in files {
        mutants.args(["--file", file, "--package", &package(file)?]);
    }
    let status = mutants.args(options).current_dir(repository()).status();
    // 2: some were missed.
    match status.map_err(|error| format!("cargo-mutants: {error}"))?.code() {
        Some(0) => Ok(()),
        Some(2) => {
            Err("some changes are seen by no test (above, and in target/mutants.out/missed.txt)".to_owned())
        }
        code => Err(format!("cargo-mutants ended with {code:?}")),
    }
}

/// The package of a file of a crate.
fn package(file: &str) -> Result<String, String> {
    let krate = file.strip_prefix("crates/").and_then(|rest| rest.split('/').next());
    match krate {
        Some("kurabe") => Ok("kurabe".to_owned()),
        Some(krate) if repository().join("crates").join(krate).is_dir() => Ok(format!("kurabe-{krate}")),
        _ => Err(format!("{file} is in no crate; write crates/CRATE/src/…")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_of_a_file_is_its_crate() {
        assert_eq!(package("crates/stats/src/paired.rs").as_deref(), Ok("kurabe-stats"));
        assert_eq!(package("crates/kurabe/src/main.rs").as_deref(), Ok("kurabe"));
        assert!(package("src/main.rs").is_err() && package("crates/nowhere/src/a.rs").is_err());
    }
}
