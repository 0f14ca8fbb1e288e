//! `cargo xtask setup --stacks`: drivers of the languages that applications are written in, from the distribution's
//! packages, from npm and from Maven. `cargo xtask bench drivers` and a test use them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::bench::drivers::{folder, list, version};
use crate::setup::on_path;
use crate::shell::{Root, run};
use crate::{Outcome, apt};

const NODE: [(&str, &str); 2] = [
    ("package.json", include_str!("../drivers/node/package.json")),
    ("package-lock.json", include_str!("../drivers/node/package-lock.json")),
];
const POM: &str = include_str!("../drivers/java/pom.xml");
/// The profiles of the POM, each a driver in a folder of its own.
const JARS: [&str; 4] = ["connector-j", "connector-j-5.1", "mariadb-java-client", "pgjdbc"];

/// Installs what is missing. Returns what is still missing, with the reason.
pub fn install(root: Root, cannot: Option<&str>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut packages: Vec<&str> = list::all()
        .filter(|driver| version(driver).is_none())
        .flat_map(|driver| driver.packages.iter().copied())
        .filter(|package| !provided(package))
        .collect();
    packages.sort_unstable();
    packages.dedup();
    if !packages.is_empty() {
        let done = match cannot {
            Some(why) => Err(why.to_owned()),
            None => apt::install(root, &packages),
        };
        problems.extend(done.err().map(|why| format!("{} are missing ({why})", packages.join(", "))));
    }
    problems.extend(node().err().map(|why| format!("drivers of Node.js are missing ({why})")));
    problems.extend(java().err().map(|why| format!("drivers of Java are missing ({why})")));
    if problems.is_empty() {
        let missing = list::all().filter(|driver| version(driver).is_none());
        problems.extend(missing.map(|driver| format!("{} was installed, and does not work", driver.name)));
    }
    problems
}

/// Whether a package's program is there from elsewhere, as a JDK of another vendor is.
fn provided(package: &str) -> bool {
    match package {
        "default-jdk-headless" => on_path("javac"),
        "maven" => on_path("mvn"),
        "nodejs" => on_path("node"),
        "npm" => on_path("npm"),
        _ => false,
    }
}

/// Copies a folder's files, and then runs a command in it, unless what it makes is there.
fn make(folder: &Path, files: &[(&str, &str)], made: &str, command: &mut Command) -> Outcome {
    let current =
        files.iter().all(|(name, text)| fs::read_to_string(folder.join(name)).is_ok_and(|old| old == *text));
    if current && folder.join(made).exists() {
        return Ok(());
    }
    let write = || {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
    };
    write().map_err(|error| format!("{}: {error}", folder.display()))?;
    println!("setup: fetching drivers into {}", folder.display());
    let name = command.get_program().to_string_lossy().into_owned();
    run(command.current_dir(folder), &name)?;
    if folder.join(made).exists() { Ok(()) } else { Err(format!("{name} succeeded, but {made} is missing")) }
}

fn node() -> Outcome {
    let home = folder().ok_or("neither KURABE_CACHE nor HOME is set, so the cache is unknown")?;
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    make(&home.join("node"), &NODE, "node_modules/pg/package.json", &mut npm)
}

fn java() -> Outcome {
    let home = folder().ok_or("neither KURABE_CACHE nor HOME is set, so the cache is unknown")?;
    for jar in JARS {
        let folder = home.join("java").join(jar);
        let mut maven = Command::new("mvn");
        // Only the drivers: what they can use besides is not needed.
        maven.args(["-q", "-B", "-P", jar, "dependency:copy-dependencies", "-DexcludeTransitive=true"]);
        maven.arg("-DoutputDirectory=.");
        make(&folder, &[("pom.xml", POM)], "pom.xml", &mut maven)?;
        let is_jar =
            |entry: fs::DirEntry| entry.path().extension().is_some_and(|extension| extension == "jar");
        if !fs::read_dir(&folder).into_iter().flatten().flatten().any(is_jar) {
            let _ = fs::remove_file(folder.join("pom.xml"));
            return Err(format!("mvn succeeded, but {} has no jar", folder.display()));
        }
    }
    Ok(())
}
