//! MariaDB.

use std::path::PathBuf;
use std::process::Command;

use crate::TestbedError;
use crate::engine::{ConnectionLimit, Engine, Installed, Instance, Launch, Missing};
use crate::{mysql_family as family, programs, wire};

pub(crate) struct MariaDb;

impl Engine for MariaDb {
    fn name(&self) -> &'static str {
        "mariadb"
    }

    fn find(&self) -> Result<Installed, Missing> {
        let how = "apt-get install mariadb-server, or `cargo xtask setup`".to_owned();
        let folders = programs::folders();
        let installer = programs::find("mariadb-install-db", &folders);
        // Old packages call the server mysqld, like MySQL.
        for name in ["mariadbd", "mysqld"] {
            let Some(program) = programs::find(name, &folders) else { continue };
            let Ok(line) = programs::first_line(Command::new(&program).arg("--version")) else { continue };
            let Some(version) = programs::word_after(&line, "Ver").filter(|v| v.contains("MariaDB")) else {
                continue;
            };
            if installer.is_none() {
                let what = format!("{} found, but no program `mariadb-install-db`", program.display());
                return Err(Missing { what, how });
            }
            return Ok(Installed { program, version });
        }
        Err(Missing { what: "no program `mariadbd`".to_owned(), how })
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
        let installer = programs::find("mariadb-install-db", &programs::folders()).unwrap_or_default();
        let install = Launch::new(installer)
            .arg("--no-defaults")
            .path("datadir", &instance.data())
            .path("tmpdir", &instance.tmp())
            .arg("--auth-root-authentication-method=normal")
            .arg("--skip-test-db");
        let install = family::fixed(instance).fold(install, Launch::arg);
        Ok(vec![family::as_root(install)])
    }

    /// Not with settings that are fixed when the data folder is created.
    fn can_use_template(&self, instance: &Instance) -> bool {
        family::fixed(instance).next().is_none()
    }

    fn command(&self, instance: &Instance, first: bool) -> Launch {
        let launch = family::serve(Launch::new(&instance.installed.program).arg("--no-defaults"), instance);
        if first { family::with_init_file(launch, &instance.dir) } else { launch }
    }

    fn ping(&self, instance: &Instance, _pid: u32) -> Result<(), String> {
        wire::mysql(&family::socket(instance))
    }

    fn socket(&self, instance: &Instance) -> Option<PathBuf> {
        Some(family::socket(instance))
    }

    fn url(&self, instance: &Instance) -> String {
        format!("mariadb://root{}@127.0.0.1:{}/kurabe", instance.no_password(), instance.port)
    }
}
