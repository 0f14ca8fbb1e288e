//! Shared code of MySQL and MariaDB.

use std::path::{Path, PathBuf};

use crate::TestbedError;
use crate::engine::{ConnectionLimit, Engine, Installed, Instance, Launch};
use crate::spec::SUPERUSER;
use crate::wire::{self, Socket};

/// One of both.
pub(crate) const fn engine(
    name: &'static str,
    how: &'static str,
    find: fn() -> Result<Installed, String>,
    command: fn(&Instance, first: bool) -> Launch,
) -> Engine {
    Engine {
        reserved: RESERVED,
        durability,
        // MariaDB refuses less.
        small_cache: &[("innodb_buffer_pool_size", "6M")],
        connections: Some(ConnectionLimit { names: &["max_connections"], own: 0, default: 151 }),
        // Not with settings that are fixed when the data folder is created.
        can_use_template: |instance| fixed(instance).next().is_none(),
        has_users: |_, _| true,
        login: Some(SUPERUSER),
        socket: |instance| Some(socket(instance)),
        own_host: true,
        ..Engine::new(
            name,
            how,
            find,
            command,
            |instance, _| {
                wire::mysql(asked(instance, &socket(instance)))?;
                instance.link().map_or(Ok(()), |_| instance.accepts())
            },
            url,
        )
    }
}

/// The URL, with the scheme of the engine's name.
pub(crate) fn url(instance: &Instance) -> String {
    let scheme = instance.spec.engine.split('@').next().unwrap_or_default();
    // MySQL encrypts a password by its key. The server is ours, and so is its key.
    let key = if instance.spec.engine == "mysql" { "?get_server_public_key=true" } else { "" };
    let user = if instance.spec.engine == "mysql@5.5" { "root" } else { USER };
    let (login, address, port) = (instance.login(user), instance.address(), instance.port);
    format!("{scheme}://{login}@{address}:{port}/kurabe{key}")
}

/// The user of the URL. The superuser, `root`, logs in on the Unix socket.
pub(crate) const USER: &str = "kurabe";

/// What the user of the URL may do, each with the reason. It may neither change settings of the server, with which it would write
/// files, nor read and write such files, nor make users, nor become one (`SUPER` and its parts, `FILE`, `CREATE USER`, `SET USER`).
const PRIVILEGES: [&str; 8] = [
    // Tables, views, routines, triggers and events of its own database.
    "ALL ON kurabe.*",
    // What sessions wait for; binary logs and their size; FLUSH TABLES WITH READ LOCK of a consistent copy.
    "PROCESS, REPLICATION CLIENT, RELOAD ON *.*",
    // Work of statements and threads.
    "SELECT ON performance_schema.*",
    // Whether the planner's statistics are made; which servers there are links to; which functions of libraries there are.
    "SELECT ON mysql.innodb_table_stats",
    "SELECT ON mysql.servers",
    "SELECT ON mysql.func",
    // What functions and procedures do, for sessions that only read: MariaDB's way and MySQL's.
    "SELECT ON mysql.proc",
    "SHOW_ROUTINE ON *.*",
];

/// The statements that give the user its privileges, as it connects from this host.
pub(crate) fn privileges(host: &str, is_mysql: bool, is_superuser: bool) -> Vec<String> {
    let user = format!("'{USER}'@'{host}'");
    let mut statements = vec![format!("REVOKE ALL PRIVILEGES, GRANT OPTION FROM {user}")];
    if is_superuser {
        statements.push(format!("GRANT ALL PRIVILEGES ON *.* TO {user} WITH GRANT OPTION"));
    } else {
        let of_other = if is_mysql { "SELECT ON mysql.proc" } else { "SHOW_ROUTINE ON *.*" };
        let own = PRIVILEGES.iter().filter(|some| **some != of_other);
        statements.extend(own.map(|some| format!("GRANT {some} TO {user}")));
    }
    statements
}

/// Settings of both that only the testbed may set.
const RESERVED: &[&str] = &[
    "admin_address", "admin_port", "basedir", "bind_address", "bootstrap", "datadir", "daemonize",
    "defaults_extra_file", "defaults_file", "extra_port", "init_file", "initialize", "initialize_insecure",
    "log_error", "mysqlx_bind_address", "pid_file", "port", "secure_file_priv", "skip_grant_tables",
    "socket", "user",
];

/// Settings that are fixed when the data folder is created.
const FIXED: &[&str] = &["innodb_page_size", "lower_case_table_names"];

/// The settings of an instance that are fixed when its data folder is created.
pub(crate) fn fixed(instance: &Instance) -> impl Iterator<Item = String> {
    let is_fixed = |key: &str| FIXED.contains(&&*key.replace('-', "_"));
    let settings = instance.spec.settings.iter();
    settings.filter(move |(key, _)| is_fixed(key)).map(|(key, value)| format!("--{key}={value}"))
}

/// The options with which the data folder of an engine is small, if that is asked for.
pub(crate) fn small(engine: &Engine, instance: &Instance) -> impl Iterator<Item = String> {
    let small = if instance.spec.small_files { engine.small } else { &[] };
    small.iter().map(|(name, value)| format!("--{name}={value}"))
}

/// The settings for a durability class of InnoDB tables, for both; and of MyISAM tables if possible.
fn durability(class: &str) -> &'static [(&'static str, &'static str)] {
    match class {
        // Written to the operating system at each commit, with the longest interval between syncs.
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

/// The socket, with who listens there.
pub(crate) fn asked<'a>(instance: &Instance, path: &'a Path) -> Socket<'a> {
    Socket { path, uid: instance.uid() }
}

pub(crate) fn socket(instance: &Instance) -> PathBuf {
    instance.run().join("mysql.sock")
}

/// The options of the server after `--no-defaults`; for the first start, with the script.
pub(crate) fn serve(launch: Launch, instance: &Instance, first: bool) -> Launch {
    // The last option takes precedence, so the testbed's come after the user's.
    let mut launch = launch
        .settings(instance)
        .path("datadir", &instance.data())
        .path("tmpdir", &instance.tmp())
        .path("socket", &socket(instance))
        .path("pid-file", &instance.run().join("server.pid"))
        .arg(format!("--bind-address={}", instance.address()))
        .arg(format!("--port={}", instance.port));
    if let Some(tls) = &instance.tls {
        launch = launch.path("ssl-ca", &tls.ca).path("ssl-cert", &tls.certificate).path("ssl-key", &tls.key);
    }
    if first {
        launch = launch.path("init-file", &instance.dir.join("init.sql"));
    }
    as_root(launch)
}

/// Adds `--user=root` if this process runs as root: both servers refuse to run as root otherwise. The folder is root's,
/// and cached programs may be accessible to root only.
pub(crate) fn as_root(launch: Launch) -> Launch {
    if rustix::process::geteuid().is_root() { launch.arg("--user=root") } else { launch }
}

/// Writes the script that the server runs before its first connection: it creates the database and its user, whether or not the server
/// resolves names.
pub(crate) fn init_file(instance: &Instance) -> Result<PathBuf, TestbedError> {
    let is_mysql = instance.spec.engine == "mysql";
    // One account for the socket and for TCP: MySQL keeps digests by account, and after a login over the socket clients without TLS
    // need no public key. A server on its own host listens at the address of its link only.
    let hosts: &[&str] = match instance.spec.host_mtu {
        _ if is_mysql => &["%"],
        Some(_) => &["%", "localhost"],
        None => &["127.0.0.1", "localhost"],
    };
    let identified = match &instance.password {
        // MariaDB's digest; MySQL makes one of another kind.
        Some(password) if !is_mysql => format!("BY PASSWORD {}", quoted(&password.native())),
        _ => format!("BY {}", quoted(instance.secret())),
    };
    let mut script = vec![
        // Passwords are this server's own: no replica gets them.
        "SET SESSION sql_log_bin = 0".to_owned(),
        // Text is Unicode, independent of the server's default character set.
        "CREATE DATABASE IF NOT EXISTS kurabe CHARACTER SET utf8mb4".to_owned(),
        format!("ALTER USER 'root'@'localhost' IDENTIFIED {identified}"),
    ];
    for host in hosts {
        script.push(format!("CREATE USER IF NOT EXISTS '{USER}'@'{host}' IDENTIFIED {identified}"));
        script.extend(privileges(host, is_mysql, instance.spec.login));
    }
    // MariaDB creates these too, and they would have access without the password.
    let host = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    script.extend(
        ["127.0.0.1", "::1", &host].map(|host| format!("DROP USER IF EXISTS 'root'@{}", quoted(host))),
    );
    instance.write_secret("init.sql", &(script.join(";\n") + ";\n"))
}

/// A string literal. Line breaks were rejected before; the server reads the script line by line.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_quote_in_a_password_stays_inside_the_literal() {
        assert_eq!(super::quoted(r"a'b\c"), r"'a''b\\c'");
    }
}
