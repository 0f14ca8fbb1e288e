//! MySQL, installed or from a root folder of its own in the cache (which `cargo xtask setup` makes where the
//! distribution has no MySQL).

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TestbedError;
use crate::engine::{Engine, Installed, Launch, Missing, Room, Site};
use crate::{mysql_family as family, programs, wire};

pub(crate) struct MySql;

/// A folder with a whole system's layout that holds a MySQL: run by its own dynamic loader with its own libraries, it
/// needs neither a change of root nor anything of the system around it.
struct Root {
    dir: PathBuf,
    loader: PathBuf,
    libraries: PathBuf,
}

impl Root {
    fn in_cache() -> Option<Self> {
        Self::at(&programs::cache()?.join("servers/mysql-sid"))
    }

    fn at(dir: &Path) -> Option<Self> {
        // Where the ABIs of the two architectures put their loader, and Debian its libraries.
        [
            ("lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu"),
            ("lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu"),
        ]
        .into_iter()
        .map(|(loader, libraries)| Self {
            dir: dir.to_owned(),
            loader: dir.join(loader),
            libraries: dir.join("usr/lib").join(libraries),
        })
        .find(|root| programs::is_program(&root.loader) && programs::is_program(&root.program()))
    }

    /// The root that a server program of ours lies in, to run it; nothing for a program of the system's.
    fn of(program: &Path) -> Option<Self> {
        Self::in_cache().filter(|root| root.program() == program)
    }

    fn program(&self) -> PathBuf {
        self.dir.join("usr/sbin/mysqld")
    }

    /// `loader --library-path LIBRARIES mysqld`, before mysqld's own arguments.
    fn prefix(&self) -> [OsString; 3] {
        ["--library-path".into(), self.libraries.clone().into(), self.program().into()]
    }
}

/// The server's program with the options that must come first: none from files, and where its own files are.
fn launch(program: &Path) -> Launch {
    let Some(root) = Root::of(program) else { return Launch::new(program).arg("--no-defaults") };
    let share = root.dir.join("usr/share/mysql");
    let launch = root.prefix().into_iter().fold(Launch::new(&root.loader), Launch::arg);
    launch
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
            "`cargo xtask setup` as root makes one in the cache on Debian, else install MySQL".to_owned();
        let mut what = "no program `mysqld` of MySQL's".to_owned();
        if let Some(program) = programs::find("mysqld", &programs::folders()) {
            match version(&mut Command::new(&program)) {
                Ok(Some(version)) => return Ok(Installed { program, version }),
                Ok(None) => what = format!("{what} ({} is MariaDB's)", program.display()),
                Err(why) => what = format!("{what} ({why})"),
            }
        }
        let Some(root) = Root::in_cache() else {
            return Err(Missing { what: what + ", none in the cache", how });
        };
        match version(Command::new(&root.loader).args(root.prefix())) {
            Ok(Some(version)) => Ok(Installed { program: root.program(), version }),
            Ok(None) => Err(Missing { what: format!("{} is not MySQL", root.program().display()), how }),
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

    fn connections(&self) -> Option<Room> {
        Some(Room { names: &["max_connections"], own: 0, default: 151 })
    }

    fn prepare(&self, site: &Site) -> Result<Vec<Launch>, TestbedError> {
        family::init_file(site)?;
        let initialize =
            launch(&site.installed.program).arg("--initialize-insecure").path("datadir", &site.data());
        Ok(vec![family::as_root(initialize)])
    }

    /// The settings that a data folder is made with, and that no start can change, make their own.
    fn is_like_any_other(&self, site: &Site) -> bool {
        let fixed =
            |key: &str| matches!(&*key.replace('-', "_"), "lower_case_table_names" | "innodb_page_size");
        !site.spec.settings.iter().any(|(key, _)| fixed(key))
    }

    /// A server makes an identity of its own when it finds none.
    fn make_unique(&self, site: &Site) {
        let _ = fs::remove_file(site.data().join("auto.cnf"));
    }

    fn command(&self, site: &Site, first: bool) -> Launch {
        // The second protocol would take a port, a well-known one and on all addresses.
        // Debian builds a folder for files in that need not exist; files are no business of a throwaway server.
        let launch = launch(&site.installed.program);
        let launch = family::serve(launch, site).arg("--mysqlx=OFF").arg("--secure-file-priv=NULL");
        if first { family::with_init_file(launch, &site.dir) } else { launch }
    }

    fn ping(&self, site: &Site, _pid: u32) -> Result<(), String> {
        wire::mysql(&family::socket(site))
    }

    fn socket(&self, site: &Site) -> Option<PathBuf> {
        Some(family::socket(site))
    }

    fn url(&self, site: &Site) -> String {
        format!("mysql://root{}@127.0.0.1:{}/kurabe", site.no_password(), site.port)
    }
}
