//! What the testbed must know about a kind of server; one implementation per file, listed in the registry.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::TestbedError;
use crate::account::Account;
use crate::options::Spec;
use crate::tls::TlsFiles;

/// A server program that was found on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The server's program.
    pub program: PathBuf,
    /// Its version, as it says itself.
    pub version: String,
}

/// What is not there, and how to get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Exactly what was looked for and not found.
    pub what: String,
    /// How to get it.
    pub how: String,
}

impl Missing {
    pub(crate) fn error(self, engine: &str) -> TestbedError {
        TestbedError::NotInstalled { engine: engine.to_owned(), missing: self.what, how: self.how }
    }
}

/// One kind of server. All of it runs in the guard.
pub(crate) trait Engine: Sync {
    /// The name in `up:NAME`.
    fn name(&self) -> &'static str;

    /// Looks for the programs.
    fn find(&self) -> Result<Installed, Missing>;

    /// Does it refuse to run as root? Then it is run as an unprivileged user who owns its folder.
    fn refuses_root(&self) -> bool;

    /// Settings that the testbed decides itself.
    fn reserved(&self) -> &'static [&'static str];

    /// The settings that a durability class takes, by the class's name, where the defaults do not make it and a session
    /// cannot. Empty where there are none.
    fn durability(&self, _class: &str) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// What limits the connections that it takes at once; `None` where nothing does that a start could change.
    fn connections(&self) -> Option<Room> {
        None
    }

    /// The settings with which it is a cache that has room for about so many values of so many bytes, and throws out what
    /// was not asked for longest; `None` where it is no cache.
    fn cache(&self, _values: u64, _bytes: u64) -> Option<Vec<(String, String)>> {
        None
    }

    /// Is there a password, TLS, whatever the spec asks for?
    fn check(&self, _spec: &Spec) -> Result<(), TestbedError> {
        Ok(())
    }

    /// Writes what the first start needs, and says which programs make the data folder, in this order.
    fn prepare(&self, site: &Site) -> Result<Vec<Launch>, TestbedError>;

    /// Does the data folder hold nothing of this start's own, so that a copy of it serves other starts?
    fn is_like_any_other(&self, site: &Site) -> bool;

    /// Takes out of a data folder what no two servers should share.
    fn make_unique(&self, _site: &Site) {}

    /// How the server is run; `first` is true until it has answered once.
    fn command(&self, site: &Site, first: bool) -> Launch;

    /// Does it answer, in its own protocol? An error is the reason to wait longer. `pid` is the server's.
    fn ping(&self, site: &Site, pid: u32) -> Result<(), String>;

    /// Its Unix socket, if it has one.
    fn socket(&self, site: &Site) -> Option<PathBuf>;

    /// Where clients find it. A password that was chosen is not in it; where there is none, it says so
    /// ([`Site::no_password`]) to clients that would look for one elsewhere.
    fn url(&self, site: &Site) -> String;

    /// The signal that ends it. Its data goes with it, so none is given time to save them: that takes some servers
    /// seconds, and the disk of a measurement that follows. It must leave nothing outside its folder, though.
    fn stop_signal(&self) -> Signal {
        Signal::KILL
    }

    /// What gives back to the system that a server which was killed could not give back itself, outside its folder.
    fn give_back(&self, _site: &Site) -> Option<Launch> {
        None
    }
}

/// A setting that limits connections.
pub(crate) struct Room {
    /// Its names, the one that is used first.
    pub names: &'static [&'static str],
    /// How many of them the engine takes for itself.
    pub own: u64,
    /// Its value as the engine ships.
    pub default: u64,
}

/// Where one server lives.
pub(crate) struct Site {
    pub spec: Spec,
    pub installed: Installed,
    /// The server's folder; everything it writes is in it.
    pub dir: PathBuf,
    /// Who runs the server, when it is not the current user.
    pub account: Option<Account>,
    pub port: u16,
    pub tls: Option<TlsFiles>,
}

impl Site {
    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// For the server's own temporary files, and home of its processes.
    pub fn tmp(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    pub fn log(&self) -> PathBuf {
        self.dir.join("server.log")
    }

    /// A program that belongs to the server's and lies beside it, like `initdb` beside `postgres`.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.installed.program.with_file_name(name)
    }

    /// What stands behind the user in the URL of a server without a password. Else clients take the one that the
    /// environment or a file of the user's has for other servers, and this one refuses it.
    pub fn no_password(&self) -> &'static str {
        if self.spec.password.is_none() { ":" } else { "" }
    }

    /// Writes a file that only the server's user can read: it may hold a password.
    pub fn write_secret(&self, name: &str, text: &str) -> Result<PathBuf, TestbedError> {
        let path = self.dir.join(name);
        crate::folder::write_private(&path, text.as_bytes(), self.account.as_ref())?;
        Ok(path)
    }
}

/// A program to run, as the server's user and in its folder.
pub(crate) struct Launch {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// What it reads from its standard input.
    pub input: &'static str,
}

impl Launch {
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), args: Vec::new(), input: "" }
    }

    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// `--name=path` as one argument, whatever bytes the path is made of.
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
