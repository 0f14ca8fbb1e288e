//! How an engine is installed on this system: the name of its package for the system's package manager.

use std::path::Path;
use std::process::{Command, Stdio};

/// The package managers, each with the command that installs.
const MANAGERS: [(&str, &str); 6] = [
    ("apt-get", "apt-get install"),
    ("dnf", "dnf install"),
    ("apk", "apk add"),
    ("pacman", "pacman -S"),
    ("zypper", "zypper install"),
    ("brew", "brew install"),
];

/// The packages of each engine for the managers in their order; empty where there is none.
const PACKAGES: [(&str, [&str; 6]); 6] = [
    ("mariadb", ["mariadb-server", "mariadb-server", "mariadb", "mariadb", "mariadb", "mariadb"]),
    ("memcached", ["memcached", "memcached", "memcached", "memcached", "memcached", "memcached"]),
    ("mysql", ["mysql-server", "mysql-server", "", "", "", "mysql"]),
    (
        "postgres",
        ["postgresql", "postgresql-server", "postgresql", "postgresql", "postgresql-server", "postgresql"],
    ),
    ("redis", ["redis-server", "redis", "redis", "", "redis", "redis"]),
    ("valkey", ["valkey-server", "valkey", "valkey", "valkey", "valkey", "valkey"]),
];

/// What to do if an engine is not installed. `elsewhere` says it where this system has no package of it.
pub(crate) fn how_to_install(engine: &str, elsewhere: &str) -> String {
    let known = |manager: &str, package: &str| manager != "apt-get" || apt_has(package);
    of(engine, &in_path, &known).unwrap_or_else(|| elsewhere.to_owned())
}

/// The command that installs an engine, if a package manager is there and knows it.
fn of(
    engine: &str,
    is_installed: &dyn Fn(&str) -> bool,
    is_known: &dyn Fn(&str, &str) -> bool,
) -> Option<String> {
    let (_, packages) = PACKAGES.iter().find(|(name, _)| *name == engine)?;
    let mut managers = MANAGERS.iter().zip(packages);
    let ((manager, install), package) = managers.find(|((manager, _), _)| is_installed(manager))?;
    (!package.is_empty() && is_known(manager, package)).then(|| format!("install it: {install} {package}"))
}

fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether APT knows a package. Where its lists are missing, nobody can tell.
fn apt_has(package: &str) -> bool {
    let has_lists = |folder: &Path| folder.read_dir().is_ok_and(|mut files| files.nth(2).is_some());
    if !has_lists(Path::new("/var/lib/apt/lists")) {
        return true;
    }
    let mut shown = Command::new("apt-cache");
    shown.args(["show", package]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shown.status().map_or(true, |status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_is_that_of_the_system() {
        let on = |manager: &'static str, engine: &str| of(engine, &|name| name == manager, &|_, _| true);
        let expected = |text: &str| Some(format!("install it: {text}"));
        assert_eq!(on("apt-get", "postgres"), expected("apt-get install postgresql"));
        assert_eq!(on("dnf", "redis"), expected("dnf install redis"));
        assert_eq!(on("pacman", "valkey"), expected("pacman -S valkey"));
        // No package, no manager, and none that the manager knows.
        assert_eq!(on("pacman", "redis"), None);
        assert_eq!(on("nosuch", "redis"), None);
        assert_eq!(on("apt-get", "nosuch"), None);
        assert_eq!(of("mysql", &|_| true, &|_, _| false), None);
    }
}
