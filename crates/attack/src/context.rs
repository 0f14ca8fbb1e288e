//! The context of attacks: the program, real servers, folders.

use crate::server::Server;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variables that would change a target's user or password.
const NOT_INHERITED: [&str; 11] = [
    "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGHOST", "PGPORT", "PGDATABASE", "MYSQL_PWD", "REDISCLI_AUTH",
    "VALKEYCLI_AUTH", "COUCHDB_USER", "COUCHDB_PASSWORD",
];

/// The context of attacks.
pub struct Context {
    /// The program under attack.
    pub program: PathBuf,
    /// The folder in which each attack creates its own.
    pub scratch: PathBuf,
    /// Servers for attacks that measure.
    pub servers: Vec<Server>,
    /// Servers for attacks that mostly wait.
    pub waiting: Vec<Server>,
}

impl Context {
    /// The server of an engine.
    ///
    /// # Errors
    /// If it is not installed.
    pub fn server(&self, engine: &str) -> Result<&Server, String> {
        find(&self.servers, engine)
    }

    /// The server of an engine for attacks that mostly wait; that of [`Context::server`] if there is no second.
    ///
    /// # Errors
    /// If it is not installed.
    pub fn waiting_server(&self, engine: &str) -> Result<&Server, String> {
        find(&self.waiting, engine).or_else(|_| find(&self.servers, engine))
    }

    /// The folders of one attack, removed on drop.
    ///
    /// # Errors
    /// If they cannot be created.
    pub fn place(&self) -> Result<Place, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.scratch.display());
        let folder = tempfile::Builder::new().prefix("a-").tempdir_in(&self.scratch).map_err(failed)?;
        for name in ["runs", "home", "tmp"] {
            std::fs::create_dir(folder.path().join(name)).map_err(failed)?;
        }
        // Throwaway servers may run as another user.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).map_err(failed)?;
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
        std::fs::set_permissions(folder.path().join("tmp"), open).map_err(failed)?;
        Ok(Place { program: self.program.clone(), folder })
    }
}

fn find<'a>(servers: &'a [Server], engine: &str) -> Result<&'a Server, String> {
    let server = servers.iter().find(|server| server.engine == engine);
    server.ok_or_else(|| format!("there is no {engine} server here"))
}

/// The words of a command line.
pub fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// The folders of one attack: runs, home, temporary files.
pub struct Place {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Place {
    /// The folder of runs.
    pub fn runs(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    /// The home directory of the program's user.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The folder for temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// The folder that contains the others.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The program with these arguments and these folders.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args);
        self.settle(&mut command);
        command
    }

    /// Sets the folders in a command's environment.
    pub fn settle(&self, command: &mut Command) {
        command.env("KURABE_RUNS", self.runs()).env("HOME", self.home());
        command.env("TMPDIR", self.temporary()).env("KURABE_TMP", self.temporary());
        if let Some(cache) = cache() {
            command.env("KURABE_CACHE", cache);
        }
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
    }
}

/// The cache of servers that the distribution lacks. It does not depend on the program's home.
fn cache() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("KURABE_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("kurabe")))
        .or_else(|| set("HOME").map(|folder| folder.join(".cache/kurabe")))
}
