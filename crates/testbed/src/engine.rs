//! The interface of a server engine. Each engine is one file, listed in the registry.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::TestbedError;
use crate::options::Spec;
use crate::os_user::OsUser;
use crate::root::Root;
use crate::tls::TlsFiles;

/// An installed server program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The path of the program.
    pub program: PathBuf,
    /// Its version, as it reports it.
    pub version: String,
}

/// What is missing, and how to install it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What was not found.
    pub what: String,
    /// How to install it.
    pub how: String,
}

impl Missing {
    pub(crate) fn error(self, engine: &str) -> TestbedError {
        TestbedError::NotInstalled { engine: engine.to_owned(), missing: self.what, how: self.how }
    }
}

/// A server engine. All of it runs in the supervisor.
pub(crate) trait Engine: Sync {
    /// The name in `up:NAME`.
    fn name(&self) -> &'static str;

    /// Finds the programs.
    fn find(&self) -> Result<Installed, Missing>;

    /// Whether it refuses to run as root. Then it runs as an unprivileged user, who owns its folder.
    fn refuses_root(&self) -> bool;

    /// Settings that only the testbed may set.
    fn reserved(&self) -> &'static [&'static str];

    /// The settings for a durability class, by its name, if neither the defaults nor a session provide it; otherwise
    /// empty.
    fn durability(&self, _class: &str) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The limit of concurrent connections; `None` if no setting limits them.
    fn connections(&self) -> Option<ConnectionLimit> {
        None
    }

    /// The settings for an LRU cache with memory for about this many values of this size; `None` if it is not a cache.
    fn cache(&self, _values: u64, _bytes: u64) -> Option<Vec<(String, String)>> {
        None
    }

    /// Rejects unsupported options, such as a password or TLS.
    fn check(&self, _spec: &Spec) -> Result<(), TestbedError> {
        Ok(())
    }

    /// Writes what the first start needs, and returns the programs that create the data folder, in order.
    fn prepare(&self, instance: &Instance) -> Result<Vec<Launch>, TestbedError>;

    /// Whether the data folder is independent of this instance, so that a copy can be used for others.
    fn can_use_template(&self, instance: &Instance) -> bool;

    /// Removes data that two servers must not share from a data folder.
    fn make_unique(&self, _instance: &Instance) {}

    /// The command of the server; `first` is true until it has answered once.
    fn command(&self, instance: &Instance, first: bool) -> Launch;

    /// Checks that the server answers in its protocol; otherwise returns why not. `pid` is the server's.
    fn ping(&self, instance: &Instance, pid: u32) -> Result<(), String>;

    /// Its Unix socket, if it has one.
    fn socket(&self, instance: &Instance) -> Option<PathBuf>;

    /// Its URL for clients, without a chosen password. A server without a password has an empty one in the URL
    /// ([`Instance::no_password`]) if clients would look for one elsewhere.
    fn url(&self, instance: &Instance) -> String;

    /// The signal that stops it. Its data is deleted anyway, and saving it takes some servers seconds and disturbs
    /// later measurements. It must not leave anything outside its folder.
    fn stop_signal(&self) -> Signal {
        Signal::KILL
    }

    /// Frees resources outside the folder that a killed server could not free.
    fn clean_up(&self, _instance: &Instance) -> Option<Launch> {
        None
    }
}

/// A setting that limits connections.
pub(crate) struct ConnectionLimit {
    /// Its names; the first one is used.
    pub names: &'static [&'static str],
    /// The number of connections that the engine reserves.
    pub own: u64,
    /// Its default value.
    pub default: u64,
}

/// The instance directory of a server, with its settings.
pub(crate) struct Instance {
    pub spec: Spec,
    pub installed: Installed,
    /// The server's folder, which contains everything that it writes.
    pub dir: PathBuf,
    /// The OS user of the server, if not the current one.
    pub os_user: Option<OsUser>,
    pub port: u16,
    pub tls: Option<TlsFiles>,
}

impl Instance {
    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The folder for temporary files, and the home of its processes.
    pub fn tmp(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    pub fn log(&self) -> PathBuf {
        self.dir.join("server.log")
    }

    /// A program in the same folder as the server's, like `initdb` beside `postgres`.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.installed.program.with_file_name(name)
    }

    /// The text after the user in the URL of a server without a password. Otherwise clients would send a password from
    /// the environment or a file, and the server would refuse it.
    pub fn no_password(&self) -> &'static str {
        if self.spec.password.is_none() { ":" } else { "" }
    }

    /// Writes a file that only the server's user can read, since it may contain a password.
    pub fn write_secret(&self, name: &str, text: &str) -> Result<PathBuf, TestbedError> {
        let path = self.dir.join(name);
        crate::folder::write_private(&path, text.as_bytes(), self.os_user.as_ref())?;
        Ok(path)
    }
}

/// A program to run as the server's user, in its folder.
pub(crate) struct Launch {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Its standard input.
    pub input: &'static str,
}

impl Launch {
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), args: Vec::new(), input: "" }
    }

    /// The program of a root folder, with its own loader.
    pub fn in_root(root: &Root) -> Self {
        root.prefix().into_iter().fold(Self::new(&root.loader), Self::arg)
    }

    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds `--name=path` as one argument, for paths with any bytes.
    pub fn path(self, name: &str, path: &Path) -> Self {
        let mut arg = OsString::from(format!("--{name}="));
        arg.push(path);
        self.arg(arg)
    }

    pub fn input(mut self, text: &'static str) -> Self {
        self.input = text;
        self
    }
}
