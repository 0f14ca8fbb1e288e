//! MySQL, installed or from a root folder in the cache (created by `cargo xtask setup` if the distribution has no
//! MySQL).

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::TestbedError;
use crate::engine::{Engine, Installed, Instance, Launch};
use crate::spec::{LOGIN, SUPERUSER};
use crate::{mysql_family as family, programs, root, wire};

pub(crate) static MYSQL: Engine = Engine {
    // A smaller log makes the installation wait for it.
    small: &[("innodb_redo_log_capacity", "16M")],
    // Only a superuser may define servers.
    links: || vec![("federated".to_owned(), String::new()), (LOGIN.to_owned(), SUPERUSER.to_owned())],
    prepare,
    // By its first login the server knows the password's digest, and does not ask later clients for the password itself.
    protect: |instance, _| {
        wire::mysql_login(family::asked(instance, &family::socket(instance)), family::USER, instance.secret())
    },
    // The server creates a new UUID at the start.
    make_own: |instance| {
        let _ = fs::remove_file(instance.data().join("auto.cnf"));
        Ok(Vec::new())
    },
    ..family::engine(
        "mysql",
        "install it (https://dev.mysql.com/downloads/mysql), or unpack it and name its folder: up:mysql?programs=FOLDER",
        find,
        command,
    )
};

/// The server's program with its first options: no option files, and the location of its own files.
fn launch(program: &Path) -> Launch {
    let Some(root) = root::MYSQL.root_of(program) else { return Launch::new(program).arg("--no-defaults") };
    let share = root.dir.join("usr/share/mysql");
    Launch::in_root(&root)
        .arg("--no-defaults")
        .path("basedir", &root.dir.join("usr"))
        .path("lc-messages-dir", &share)
        .path("character-sets-dir", &share.join("charsets"))
        .path("plugin-dir", &root.dir.join("usr/lib/mysql/plugin"))
}

/// Its version, if the program is MySQL's and not MariaDB's.
fn version(line: &str) -> Option<String> {
    programs::word_after(line, "Ver").filter(|version| !version.contains("MariaDB"))
}

fn find() -> Result<Installed, String> {
    let mut what = "no program `mysqld` of MySQL's".to_owned();
    if let Some(program) = programs::any("mysqld") {
        match programs::first_line(Command::new(&program).arg("--version")).map(|line| version(&line)) {
            Ok(Some(version)) => return Ok(Installed { program, version }),
            Ok(None) => what = format!("{what} ({} is MariaDB's)", program.display()),
            Err(why) => what = format!("{what} ({why})"),
        }
    }
    let root = root::MYSQL.root().ok_or_else(|| what + ", none in the cache")?;
    let mut command = Command::new(&root.loader);
    Installed::identify(command.args(root.prefix()).arg("--version"), root.program, "MySQL", version)
}

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    family::init_file(instance)?;
    let initialize = launch(&instance.installed.program)
        .arg("--initialize-insecure")
        .path("datadir", &instance.data())
        .args(family::fixed(instance))
        .args(family::small(&MYSQL, instance));
    Ok(vec![family::as_root(initialize)])
}

fn command(instance: &Instance, first: bool) -> Launch {
    // The X protocol would listen on a well-known port on all addresses. No statement reads or writes files.
    let launch = launch(&instance.installed.program);
    // Its binary log would keep the user from making functions and triggers.
    family::serve(launch, instance, first).args([
        "--mysqlx=OFF",
        "--secure-file-priv=NULL",
        "--log-bin-trust-function-creators=ON",
    ])
}
