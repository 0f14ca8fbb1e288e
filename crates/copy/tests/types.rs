//! The tables of types as golden files, one for each pair of engines. `KURABE_BLESS=1 cargo test -p kurabe-copy types`
//! writes them anew; read the difference.

use kurabe_copy::engines::{ALL, Engine};
use kurabe_copy::types::{kind_of, map};
use std::fmt::Write as _;
use std::path::Path;

/// What each type of `from` becomes on `to`, with and without numbers.
fn table(from: &dyn Engine, to: &dyn Engine) -> String {
    let mut text = String::new();
    for (name, _) in from.types() {
        for declared in [(*name).to_owned(), with_numbers(name, "6"), with_numbers(name, "60,20")] {
            let mapped = map(from, to, &kind_of(from, &declared)).unwrap();
            let issue = mapped.issue.map_or_else(String::new, |(kind, _)| format!("  [{}]", kind.name()));
            writeln!(text, "{declared} -> {}{issue}", mapped.sql).unwrap();
        }
    }
    text
}

/// The numbers follow the first word of a time, and the last one of other types.
fn with_numbers(name: &str, numbers: &str) -> String {
    for tail in [" without time zone", " with time zone", " unsigned", " character set octets"] {
        if let Some(first) = name.strip_suffix(tail) {
            return format!("{first}({numbers}){tail}");
        }
    }
    format!("{name}({numbers})")
}

#[test]
fn types_of_each_pair_of_engines_are_golden() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let bless = std::env::var_os("KURABE_BLESS").is_some();
    for from in ALL {
        for to in ALL.iter().filter(|to| to.name() != from.name()) {
            let file = folder.join(format!("{}-{}.txt", from.name(), to.name()).to_lowercase());
            let made = table(*from, *to);
            if bless {
                std::fs::write(&file, &made).unwrap();
            }
            let golden = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(golden == made, "{} differs: KURABE_BLESS=1 writes it anew", file.display());
        }
    }
}
