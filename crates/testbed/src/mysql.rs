//! MySQL, installed or from a root folder in the cache (created by `cargo xtask setup` if the distribution has no
//! MySQL).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TestbedError;
use crate::engine::{ConnectionLimit, Engine, Installed, Instance, Launch, Missing};
use crate::root::MYSQL;
use crate::{mysql_family as family, programs, wire};

pub(crate) struct MySql;

/// The server's program with its first options: no option files, and the location of its own files.
fn launch(program: &Path) -> Launch {
    let Some(root) = MYSQL.root_of(program) else { return Launch::new(program).arg("--no-defaults") };
    let share = root.dir.join("usr/share/mysql");
    Launch::in_root(&root)
        .arg("--no-defaults")
        .path("basedir", &root.dir.join("usr"))
        .path("lc-messages-dir", &share)
        .path("character-sets-dir", &share.join("charsets"))
        .path("plugin-dir", &root.dir.join("usr/lib/mysql/plugin"))
}

/// Its version, if the program is MySQL's and not MariaDB's.
fn version(command: &mut Command) -> Result<Option<String>, String> {
    let line = programs::first_line(command.arg("--version"))?;
    Ok(programs::word_after(&line, "Ver").filter(|version| !version.contains("MariaDB")))
}

impl Engine for MySql {
    fn name(&self) -> &'static str {
        "mysql"
    }

    fn find(&self) -> Result<Installed, Missing> {
        let how =
            "on Debian run `cargo xtask setup` as root, which installs it in the cache; else install MySQL"
                .to_owned();
        let mut what = "no program `mysqld` of MySQL's".to_owned();
        if let Some(program) = programs::find("mysqld", &programs::folders()) {
            match version(&mut Command::new(&program)) {
                Ok(Some(version)) => return Ok(Installed { program, version }),
                Ok(None) => what = format!("{what} ({} is MariaDB's)", program.display()),
                Err(why) => what = format!("{what} ({why})"),
            }
        }
        let Some(root) = MYSQL.root() else {
            return Err(Missing { what: what + ", none in the cache", how });
        };
        match version(Command::new(&root.loader).args(root.prefix())) {
            Ok(Some(version)) => Ok(Installed { program: root.program, version }),
            Ok(None) => Err(Missing { what: format!("{} is not MySQL", root.program.display()), how }),
            Err(what) => Err(Missing { what, how }),
        }
    }

    fn refuses_root(&self) -> bool {
        false
    }

    fn reserved(&self) -> &'static [&'static str] {
        family::RESERVED
    }

    fn durability(&self, class: &str) -> &'static [(&'static str, &'static str)] {
        family::durability(class)
    }

    fn connections(&self) -> Option<ConnectionLimit> {
        Some(ConnectionLimit { names: &["max_connections"], own: 0, default: 151 })
    }

    fn prepare(&self, instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
        family::init_file(instance)?;
        let initialize = launch(&instance.installed.program)
            .arg("--initialize-insecure")
            .path("datadir", &instance.data());
        let initialize = family::fixed(instance).fold(initialize, Launch::arg);
        Ok(vec![family::as_root(initialize)])
    }

    /// Not with settings that are fixed when the data folder is created.
    fn can_use_template(&self, instance: &Instance) -> bool {
        family::fixed(instance).next().is_none()
    }

    /// Removes the server's UUID; it creates a new one at the start.
    fn make_unique(&self, instance: &Instance) {
        let _ = fs::remove_file(instance.data().join("auto.cnf"));
    }

    fn command(&self, instance: &Instance, first: bool) -> Launch {
        // The X protocol would listen on a well-known port on all addresses. Debian's default folder for files may
        // not exist; a throwaway server needs none.
        let launch = launch(&instance.installed.program);
        let launch = family::serve(launch, instance).arg("--mysqlx=OFF").arg("--secure-file-priv=NULL");
        if first { family::with_init_file(launch, &instance.dir) } else { launch }
    }

    fn ping(&self, instance: &Instance, _pid: u32) -> Result<(), String> {
        wire::mysql(&family::socket(instance))
    }

    fn socket(&self, instance: &Instance) -> Option<PathBuf> {
        Some(family::socket(instance))
    }

    fn url(&self, instance: &Instance) -> String {
        format!("mysql://root{}@127.0.0.1:{}/kurabe", instance.no_password(), instance.port)
    }
}
