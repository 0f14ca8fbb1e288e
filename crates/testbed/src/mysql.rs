//! MySQL, installed or from a root folder in the cache (created by `cargo xtask setup` if the distribution has no
//! MySQL).

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TestbedError;
use crate::engine::{Engine, Installed, Instance, Launch};
use crate::{mysql_family as family, programs};

pub(crate) static MYSQL: Engine = Engine {
    prepare,
    // The server creates a new UUID at the start.
    make_unique: |instance| drop(fs::remove_file(instance.data().join("auto.cnf"))),
    ..family::engine(
        "mysql",
        "on Debian run `cargo xtask setup` as root, which installs it in the cache; else install MySQL",
        find,
        command,
    )
};

/// A root folder with a MySQL installation. It is run with its own dynamic loader and libraries, without chroot and
/// independent of the system.
struct Root {
    dir: PathBuf,
    loader: PathBuf,
    libraries: PathBuf,
}

impl Root {
    fn in_cache() -> Option<Self> {
        let dir = programs::cache()?.join("servers/mysql-sid");
        // The dynamic loaders of two architectures, and Debian's library folders.
        [
            ("lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu"),
            ("lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu"),
        ]
        .into_iter()
        .map(|(loader, libraries)| Self {
            dir: dir.clone(),
            loader: dir.join(loader),
            libraries: dir.join("usr/lib").join(libraries),
        })
        .find(|root| programs::is_program(&root.loader) && programs::is_program(&root.program()))
    }

    fn program(&self) -> PathBuf {
        self.dir.join("usr/sbin/mysqld")
    }

    /// `loader --library-path LIBRARIES mysqld`, before mysqld's own arguments.
    fn prefix(&self) -> [OsString; 3] {
        ["--library-path".into(), self.libraries.clone().into(), self.program().into()]
    }
}

/// The server's program with its first options: no option files, and the location of its own files.
fn launch(program: &Path) -> Launch {
    // A program of the system is in no root folder.
    let Some(root) = Root::in_cache().filter(|root| root.program() == program) else {
        return Launch::new(program).arg("--no-defaults");
    };
    let share = root.dir.join("usr/share/mysql");
    Launch::new(&root.loader)
        .args(root.prefix())
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
    let root = Root::in_cache().ok_or_else(|| what + ", none in the cache")?;
    let mut command = Command::new(&root.loader);
    programs::installed(command.args(root.prefix()).arg("--version"), root.program(), "MySQL", version)
}

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    family::init_file(instance)?;
    let initialize = launch(&instance.installed.program)
        .arg("--initialize-insecure")
        .path("datadir", &instance.data())
        .args(family::fixed(instance));
    Ok(vec![family::as_root(initialize)])
}

fn command(instance: &Instance, first: bool) -> Launch {
    // The X protocol would listen on a well-known port on all addresses. Debian's default folder for files may
    // not exist; a throwaway server needs none.
    let launch = launch(&instance.installed.program);
    family::serve(launch, instance, first).arg("--mysqlx=OFF").arg("--secure-file-priv=NULL")
}
