//! `cargo xtask setup --stacks`: drivers of the languages that applications are written in. `cargo xtask bench drivers` and
//! a test use them. Those of Node.js are the libraries of its stack.

use crate::bench::drivers::list::{self, folder, version};
use crate::fetch;
use crate::shell::Outcome;

const POM: &str = include_str!("../drivers/java/pom.xml");
/// The profiles of the POM, each a driver in a folder of its own.
const JARS: [&str; 4] = ["connector-j", "connector-j-5.1", "mariadb-java-client", "pgjdbc"];

/// The packages of the distribution that have missing drivers.
pub fn packages() -> impl Iterator<Item = &'static str> {
    let missing = list::all().filter(|driver| version(driver).is_none());
    missing.flat_map(|driver| driver.packages.iter().copied())
}

/// Fetches drivers from Maven. Returns what is still missing, with the reason; `refused`: why no packages were installed.
pub fn complete(refused: Option<&str>) -> Vec<String> {
    let mut problems: Vec<String> =
        java().err().map(|why| format!("drivers of Java are missing ({why})")).into_iter().collect();
    if problems.is_empty() {
        let why = refused.unwrap_or("it was installed, and does not work");
        let missing = list::all().filter(|driver| version(driver).is_none());
        problems.extend(missing.map(|driver| format!("the driver {} is missing ({why})", driver.name)));
    }
    problems
}

fn java() -> Outcome {
    let home = folder().ok_or("neither KURABE_CACHE nor HOME is set, so the cache is unknown")?;
    JARS.iter().try_for_each(|jar| {
        fetch::fill(&home.join("java").join(jar), &[("pom.xml", POM)], fetch::has_jar, |folder| {
            // Only the drivers: what they can use besides is not needed.
            fetch::maven(folder, &["-P", jar, "-DexcludeTransitive=true"])
        })
    })
}
