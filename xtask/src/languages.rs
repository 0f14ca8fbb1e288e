//! `cargo xtask setup`: what application stacks need, and with `--stacks` the drivers of other languages that `cargo xtask
//! bench drivers` shows. Programs are packages of the distribution; libraries come from Maven and npm, into the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fetch::{self, folder};
use crate::shell::{Outcome, Root, on_path, run};
use crate::testbed::programs;
use crate::{apt, client_drivers};

/// A program or some of its modules, and the packages that have them.
struct Program {
    what: &'static str,
    packages: &'static [&'static str],
    /// Whether it is installed without `--stacks` too: the stacks whose tests run in CI need it.
    always: bool,
    there: fn() -> bool,
}

const PROGRAMS: &[Program] = &[
    Program {
        what: "php-fpm with mysqli, pdo and pgsql",
        packages: &["php-fpm", "php-mysql", "php-pgsql"],
        always: true,
        there: || php_has(&["mysqli", "pdo_mysql", "pgsql", "pdo_pgsql"]),
    },
    Program { what: "nginx", packages: &["nginx-light"], always: true, there: || on_path("nginx") },
    Program {
        what: "a JDK",
        packages: &["default-jdk-headless"],
        always: true,
        there: || on_path("java") && on_path("javac"),
    },
    Program {
        what: "Maven, which fetches Java's libraries",
        packages: &["maven"],
        always: true,
        there: || on_path("mvn") || java_libraries_there(),
    },
    Program {
        what: "gunicorn with psycopg 3 and mysqlclient",
        packages: &["gunicorn", "python3-psycopg", "python3-mysqldb"],
        always: false,
        there: || ["gunicorn", "psycopg", "MySQLdb"].iter().all(|module| python_has(module)),
    },
    Program {
        what: "Node.js with npm",
        packages: &["nodejs", "npm"],
        always: false,
        there: || on_path("node") && (on_path("npm") || node_libraries_there()),
    },
    Program {
        what: "PHP's extensions mongodb, memcached and curl",
        packages: &["php-mongodb", "php-memcached", "php-curl"],
        always: false,
        there: || php_has(&["mongodb", "memcached", "curl"]),
    },
    Program {
        what: "Apache with mod_php",
        packages: &["apache2-bin", "libapache2-mod-php"],
        always: false,
        there: || on_path("apache2") && apache_has("libphp"),
    },
    Program {
        what: "Apache with mod_perl and Perl's drivers",
        packages: &[
            "apache2-bin", "libapache2-mod-perl2", "libapache-dbi-perl", "libdbd-mariadb-perl",
            "libdbd-mysql-perl", "libdbd-pg-perl", "libcache-memcached-fast-perl",
        ],
        always: false,
        there: || {
            let modules = ["Apache/DBI", "DBD/MariaDB", "DBD/mysql", "DBD/Pg", "Cache/Memcached/Fast"];
            on_path("apache2") && apache_has("mod_perl") && modules.iter().all(|module| perl_has(module))
        },
    },
];

const POM: &str = include_str!("../../stacks/java/pom.xml");
/// `DIGEST  NAME` a line.
const CHECKSUMS: &str = include_str!("../../stacks/java/checksums.sha256");
const NODE: [(&str, &str); 2] = [
    ("package.json", include_str!("../../stacks/node/package.json")),
    ("package-lock.json", include_str!("../../stacks/node/package-lock.json")),
];

/// Installs what is missing: what PHP and Java need, or `all`. Returns what is still missing, with instructions.
pub fn install(all: bool) -> Vec<String> {
    let wanted = PROGRAMS.iter().filter(|program| all || program.always);
    let missing: Vec<&Program> = wanted.filter(|program| !(program.there)()).collect();
    let mut packages: Vec<&str> = missing.iter().flat_map(|program| program.packages).copied().collect();
    if all {
        packages.extend(client_drivers::packages());
    }
    packages.retain(|package| !is_provided(package));
    packages.sort_unstable();
    packages.dedup();
    let mut refused = None;
    if !packages.is_empty() {
        let root = Root::find();
        refused =
            apt::cannot(root).map_or_else(|| apt::install(root, &packages), |why| Err(why.to_owned())).err();
    }
    let still = missing.into_iter().filter(|program| !(program.there)());
    let mut problems: Vec<String> = still
        .map(|Program { what, packages, .. }| {
            let why = refused.as_deref().unwrap_or("its packages were installed, its parts were not found");
            format!("{what} is missing ({why}); to get it: apt-get install {}", packages.join(" "))
        })
        .collect();
    problems.extend(java().err().map(|why| format!("libraries of the Java stack are missing ({why})")));
    if all {
        problems.extend(node().err().map(|why| format!("libraries of Node.js are missing ({why})")));
        problems.extend(client_drivers::complete(refused.as_deref()));
    }
    problems
}

/// Whether a package's program is there from elsewhere, as a JDK of another vendor is.
fn is_provided(package: &str) -> bool {
    match package {
        "default-jdk-headless" => on_path("javac"),
        "maven" => on_path("mvn"),
        "nodejs" => on_path("node"),
        "npm" => on_path("npm"),
        _ => false,
    }
}

/// Whether a `php-fpm` of any version has these extensions.
fn php_has(extensions: &[&str]) -> bool {
    let folders = programs::folders();
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let fpm = entries.map(|entry| entry.path()).find(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("php-fpm") && programs::is_program(path)
    });
    let modules = fpm.and_then(|fpm| run(Command::new(fpm).arg("-m"), "php-fpm -m").ok()).unwrap_or_default();
    extensions.iter().all(|name| modules.lines().any(|line| line.trim() == *name))
}

/// Whether any Python has a module.
fn python_has(module: &str) -> bool {
    let code = format!("import importlib.util as u, sys; sys.exit(u.find_spec('{module}') is None)");
    let all = programs::folders().into_iter().map(|folder| folder.join("python3"));
    all.filter(|path| programs::is_program(path))
        .any(|python| run(Command::new(python).args(["-c", &code]), "python3").is_ok())
}

/// Whether Perl has a module, given as the path of its file without the extension.
fn perl_has(module: &str) -> bool {
    let code = "exit !grep { -e \"$_/$ARGV[0].pm\" } @INC";
    run(Command::new("perl").args(["-e", code, module]), "perl").is_ok()
}

/// Whether Apache has a module where Debian installs them.
fn apache_has(start: &str) -> bool {
    let entries = fs::read_dir("/usr/lib/apache2/modules").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).any(|name| name.starts_with(start))
}

fn known_folder(stack: &str) -> Result<PathBuf, String> {
    folder(stack).ok_or_else(|| "neither KURABE_CACHE nor HOME is set, so the cache is unknown".to_owned())
}

fn has_jars(folder: &Path) -> bool {
    let mut names = CHECKSUMS.lines().filter_map(|line| line.split_whitespace().nth(1));
    names.all(|name| folder.join(name).is_file())
}

fn java_libraries_there() -> bool {
    folder("java").is_some_and(|folder| has_jars(&folder))
}

fn java() -> Outcome {
    let files = [("pom.xml", POM), ("checksums.sha256", CHECKSUMS)];
    fetch::fill(&known_folder("java")?, &files, has_jars, |folder| {
        fetch::maven(folder, &[])?;
        // It is what was tried.
        let mut check = Command::new("sha256sum");
        check.args(["--check", "--quiet", "--strict", "checksums.sha256"]).current_dir(folder);
        run(&mut check, "comparing checksums").map(drop)
    })
}

fn has_packages(folder: &Path) -> bool {
    ["pg", "mysql2"].iter().all(|name| folder.join("node_modules").join(name).join("package.json").is_file())
}

fn node_libraries_there() -> bool {
    folder("node").is_some_and(|folder| has_packages(&folder))
}

fn node() -> Outcome {
    fetch::fill(&known_folder("node")?, &NODE, has_packages, fetch::npm)
}
