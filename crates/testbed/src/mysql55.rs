//! MySQL 5.5.9 of 2011, the server of many published figures, from the cache. `cargo xtask setup --stacks` puts it
//! there, from the Maven artifact `mysql:mysql-connector-mxj-db-files:5.0.12`.

use std::path::PathBuf;
use std::process::Command;

use crate::TestbedError;
use crate::engine::{Engine, Installed, Instance, Launch};
use crate::password::Password;
use crate::spec::Spec;
use crate::{mysql_family as family, programs};

/// Its folder in the cache: the program `mysqld`, its messages and character sets in `share`, and an empty data folder
/// in `data`.
pub(crate) const FOLDER: &str = "mysql-5.5.9";

pub(crate) static MYSQL55: Engine = Engine {
    prepare,
    check,
    // It has no interval between syncs that could be set.
    durability: |class| match class {
        "periodic-sync" => &[("innodb_flush_log_at_trx_commit", "2"), ("sync_binlog", "0")],
        "synced" => &[("innodb_flush_log_at_trx_commit", "1"), ("sync_binlog", "1")],
        _ => &[],
    },
    // The scheme of clients is MySQL's.
    url: family::url,
    own_host: false,
    ..family::engine(
        "mysql@5.5",
        "the set-up of Kurabe's source puts it into the cache folder, on x86-64 only",
        find,
        command,
    )
};

fn home() -> Option<PathBuf> {
    Some(programs::cache()?.join("servers").join(FOLDER))
}

fn find() -> Result<Installed, String> {
    let program = home().map(|home| home.join("mysqld")).filter(|program| programs::is_program(program));
    let program = program.ok_or("no MySQL 5.5 in the cache")?;
    let version =
        |line: &str| programs::word_after(line, "Ver").filter(|version| version.starts_with("5.5."));
    Installed::identify(Command::new(&program).arg("--version"), program.clone(), "MySQL 5.5", version)
}

fn check(spec: &Spec) -> Result<(), String> {
    if spec.tls { Err("this MySQL 5.5 was built without TLS".to_owned()) } else { Ok(()) }
}

/// Its installation is a copy of files.
fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    let mut script = vec![
        "CREATE DATABASE IF NOT EXISTS kurabe CHARACTER SET utf8mb4".to_owned(),
        "GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION".to_owned(),
        // They would have access without a password.
        "DELETE FROM mysql.user WHERE user = '' OR host NOT IN ('localhost', '127.0.0.1')".to_owned(),
        "FLUSH PRIVILEGES".to_owned(),
    ];
    let digest = instance.password.as_ref().map(Password::native).unwrap_or_default();
    script.extend(
        ["127.0.0.1", "localhost"].map(|host| format!("SET PASSWORD FOR 'root'@'{host}' = '{digest}'")),
    );
    instance.write_secret("init.sql", &(script.join(";\n") + ";\n"))?;
    let data = home().unwrap_or_default().join("data");
    Ok(vec![Launch::new(programs::any("cp").unwrap_or_default()).arg("-rT").arg(data).arg(instance.data())])
}

fn command(instance: &Instance, first: bool) -> Launch {
    let home = home().unwrap_or_default();
    let share = home.join("share");
    let launch = Launch::new(&instance.installed.program)
        .arg("--no-defaults")
        .path("basedir", &home)
        .path("lc-messages-dir", &share)
        .path("character-sets-dir", &share.join("charsets"));
    family::serve(launch, instance, first).path("secure-file-priv", &instance.tmp())
}
