//! How an engine is installed on this system: the name of its package for the system's package manager.

use std::path::Path;
use std::process::{Command, Stdio};

/// The package managers, each with its word for installing.
const MANAGERS: [&str; 6] =
    ["apt-get install", "dnf install", "apk add", "pacman -S", "zypper install", "brew install"];

/// The packages of each engine and stack for the managers in their order; empty where there is none.
const PACKAGES: [(&str, &[&str]); 10] = [
    ("mariadb", &["mariadb-server", "mariadb-server", "mariadb", "mariadb", "mariadb", "mariadb"]),
    ("memcached", &["memcached"; 6]),
    ("mod_php", &["apache2 libapache2-mod-php php-mysql php-pgsql"]),
    ("mysql", &["mysql-server", "mysql-server", "", "", "", "mysql"]),
    ("perl", &["apache2 libapache2-mod-perl2 libapache-dbi-perl libdbd-mariadb-perl libdbd-pg-perl"]),
    ("php", &["php-fpm php-mysql php-pgsql nginx-light"]),
    (
        "postgres",
        &["postgresql", "postgresql-server", "postgresql", "postgresql", "postgresql-server", "postgresql"],
    ),
    ("python", &["gunicorn python3-psycopg python3-mysqldb"]),
    ("redis", &["redis-server", "redis", "redis", "", "redis", "redis"]),
    ("valkey", &["valkey-server", "valkey", "valkey", "valkey", "valkey", "valkey"]),
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
    let manager = |install: &'static str| install.split(' ').next().unwrap_or(install);
    let mut managers = MANAGERS.iter().zip(packages.iter());
    let (install, package) = managers.find(|(install, _)| is_installed(manager(install)))?;
    (!package.is_empty() && is_known(manager(install), package))
        .then(|| format!("install it: {install} {package}"))
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
    shown.arg("show").args(package.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
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
        let python = "apt-get install gunicorn python3-psycopg python3-mysqldb";
        assert_eq!((on("apt-get", "python"), on("dnf", "python")), (expected(python), None));
        // No package, no manager, and none that the manager knows.
        assert_eq!(on("pacman", "redis"), None);
        assert_eq!(on("nosuch", "redis"), None);
        assert_eq!(on("apt-get", "nosuch"), None);
        assert_eq!(of("mysql", &|_| true, &|_, _| false), None);
    }
}
