//! MariaDB.

use std::path::Path;
use std::process::Command;

use crate::TestbedError;
use crate::engine::{Engine, Installed, Instance, Launch};
use crate::spec::{LOGIN, SUPERUSER};
use crate::{mysql_family as family, programs};

pub(crate) static MARIADB: Engine = Engine {
    small: &[("innodb_log_file_size", "16M")],
    links,
    prepare,
    ..family::engine(
        "mariadb",
        "install it (https://mariadb.org/download), or name its folder: up:mariadb?programs=FOLDER",
        find,
        command,
    )
};

fn find() -> Result<Installed, String> {
    // Old packages call the server mysqld, like MySQL.
    for name in ["mariadbd", "mysqld"] {
        let Some(program) = programs::any(name) else { continue };
        let Ok(line) = programs::first_line(Command::new(&program).arg("--version")) else { continue };
        let Some(version) = programs::word_after(&line, "Ver").filter(|v| v.contains("MariaDB")) else {
            continue;
        };
        if programs::any("mariadb-install-db").is_none() {
            return Err(format!("{} found, but no program `mariadb-install-db`", program.display()));
        }
        return Ok(Installed { program, version });
    }
    Err("no program `mariadbd`".to_owned())
}

/// Folders of plugins: Debian's and Ubuntu's, those of MariaDB's own packages, and that of a build with defaults.
const PLUGINS: [&str; 4] = [
    "/usr/lib/mysql/plugin", "/usr/lib64/mysql/plugin", "/usr/lib64/mariadb/plugin",
    "/usr/local/mysql/lib/plugin",
];

/// Loads the storage engines `FederatedX`, CONNECT and Spider. The server refuses to load a file that does not exist.
fn links() -> Vec<(String, String)> {
    let there =
        |name: &&str| PLUGINS.iter().any(|folder| Path::new(folder).join(format!("{name}.so")).exists());
    let plugins = ["ha_federatedx", "ha_connect", "ha_spider"].into_iter().filter(there);
    let load = plugins.map(|name| ("plugin_load_add".to_owned(), name.to_owned()));
    // Only a superuser may define servers, and tables of CONNECT need FILE. By default Spider refuses links to its own server. "loose": the setting is unknown without Spider.
    let others = [("loose_spider_same_server_link", "ON"), (LOGIN, SUPERUSER)];
    load.chain(others.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
}

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    family::init_file(instance)?;
    let install = Launch::new(programs::any("mariadb-install-db").unwrap_or_default())
        .arg("--no-defaults")
        .path("datadir", &instance.data())
        .path("tmpdir", &instance.tmp())
        .arg("--auth-root-authentication-method=normal")
        .arg("--skip-test-db")
        .args(family::fixed(instance))
        .args(family::small(&MARIADB, instance));
    Ok(vec![family::as_root(install)])
}

fn command(instance: &Instance, first: bool) -> Launch {
    // Statements read and write files in a folder of its own only; it cannot be told to have none.
    let launch = Launch::new(&instance.installed.program).arg("--no-defaults");
    family::serve(launch, instance, first).path("secure-file-priv", &instance.tmp())
}
