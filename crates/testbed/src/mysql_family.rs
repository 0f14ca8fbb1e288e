//! What MySQL and MariaDB share.

use std::path::{Path, PathBuf};

use crate::TestbedError;
use crate::engine::{Launch, Site};

/// Settings that the testbed decides itself, of both.
pub(crate) const RESERVED: &[&str] = &[
    "admin_address",
    "admin_port",
    "basedir",
    "bind_address",
    "bootstrap",
    "datadir",
    "daemonize",
    "defaults_extra_file",
    "defaults_file",
    "extra_port",
    "init_file",
    "initialize",
    "initialize_insecure",
    "log_error",
    "mysqlx_bind_address",
    "pid_file",
    "port",
    "skip_grant_tables",
    "socket",
    "user",
];

/// What makes tables of InnoDB of that durability class, for both; and those of MyISAM where they can be.
pub(crate) fn durability(class: &str) -> &'static [(&'static str, &'static str)] {
    match class {
        // Written to the system at each commit; the longest time that there is between syncs.
        "os-cache" => &[
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_flush_log_at_timeout", "2700"),
            ("sync_binlog", "0"),
            ("myisam_recover_options", "BACKUP,FORCE"),
        ],
        "periodic-sync" => &[("innodb_flush_log_at_trx_commit", "2"), ("sync_binlog", "0")],
        "synced" => &[("innodb_flush_log_at_trx_commit", "1"), ("sync_binlog", "1")],
        _ => &[],
    }
}

pub(crate) fn socket(site: &Site) -> PathBuf {
    site.dir.join("mysql.sock")
}

/// The options of the server proper; what is common and comes after `--no-defaults`.
pub(crate) fn serve(launch: Launch, site: &Site) -> Launch {
    // The last word counts: ours comes after the caller's.
    let option = |(key, value): &(String, String)| match value.as_str() {
        "" => format!("--{key}"),
        value => format!("--{key}={value}"),
    };
    let mut launch = site.spec.settings.iter().map(option).fold(launch, Launch::arg);
    launch = launch
        .path("datadir", &site.data())
        .path("tmpdir", &site.tmp())
        .path("socket", &socket(site))
        .path("pid-file", &site.dir.join("server.pid"))
        .arg("--bind-address=127.0.0.1")
        .arg(format!("--port={}", site.port));
    if let Some(tls) = &site.tls {
        launch = launch.path("ssl-ca", &tls.ca).path("ssl-cert", &tls.certificate).path("ssl-key", &tls.key);
    }
    as_root(launch)
}

/// Both refuse to run as root unless told to by name. Root it is, since it started us: the folder is root's, and the
/// cached programs may lie where only root can go.
pub(crate) fn as_root(launch: Launch) -> Launch {
    if rustix::process::geteuid().is_root() { launch.arg("--user=root") } else { launch }
}

/// Makes the script that the server runs before it accepts its first connection: the database, and a superuser for
/// TCP from 127.0.0.1 whether or not the server resolves names.
pub(crate) fn init_file(site: &Site) -> Result<PathBuf, TestbedError> {
    let mut script = vec![
        // Whatever character set the server was built with, text is Unicode.
        "CREATE DATABASE IF NOT EXISTS kurabe CHARACTER SET utf8mb4".to_owned(),
        "CREATE USER IF NOT EXISTS 'root'@'127.0.0.1'".to_owned(),
        "GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION".to_owned(),
    ];
    if let Some(password) = &site.spec.password {
        let password = quoted(password);
        script.extend(
            ["127.0.0.1", "localhost"].map(|h| format!("ALTER USER 'root'@'{h}' IDENTIFIED BY {password}")),
        );
        // MariaDB makes these too, and they would get in without the password.
        let host = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
        script.extend(["::1", &host].map(|host| format!("DROP USER IF EXISTS 'root'@{}", quoted(host))));
    }
    site.write_secret("init.sql", &(script.join(";\n") + ";\n"))
}

/// A string literal. Line breaks were refused before; the server reads the script a line at a time.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Where the script is, for the command line of the first start.
pub(crate) fn with_init_file(launch: Launch, dir: &Path) -> Launch {
    launch.path("init-file", &dir.join("init.sql"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_quote_in_a_password_stays_inside_the_literal() {
        assert_eq!(super::quoted(r"a'b\c"), r"'a''b\\c'");
    }
}
