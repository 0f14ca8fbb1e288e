//! The interface of a server engine. Each engine is one file, listed in the registry.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::os_user::OsUser;
use crate::packages::how_to_install;
use crate::password::Password;
use crate::programs;
use crate::root::Root;
use crate::spec::Spec;
use crate::tls::TlsFiles;
use crate::{TestbedError, folder, host, wire};

/// The name of the data folder.
pub(crate) const DATA: &str = "data";

/// An installed server program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub program: PathBuf,
    /// Its version, as it reports it.
    pub version: String,
}

impl Installed {
    /// A program with the version that `read` finds in the first line of `command`'s output; an error for display if it
    /// cannot be run or is not `product`.
    pub(crate) fn identify(
        command: &mut Command,
        program: PathBuf,
        product: &str,
        read: impl FnOnce(&str) -> Option<String>,
    ) -> Result<Self, String> {
        match read(&programs::first_line(command)?) {
            Some(version) => Ok(Self { program, version }),
            None => Err(format!("{} is not {product}", program.display())),
        }
    }
}

/// What is missing, and how to install it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What was not found.
    pub what: String,
    engine: &'static str,
    /// How to install it where this system has no package of it.
    elsewhere: &'static str,
}

impl Missing {
    /// How to install it. The system's package manager is asked, which takes a third of a second on Debian.
    pub fn how(&self) -> String {
        how_to_install(self.engine, self.elsewhere)
    }
}

/// A server engine. All of it runs in the supervisor.
pub(crate) struct Engine {
    /// The name in `up:NAME`.
    pub name: &'static str,
    /// How to install its programs where this system has no package of it.
    pub how: &'static str,
    /// Finds the programs; otherwise returns what is missing.
    pub find: fn() -> Result<Installed, String>,
    /// Whether it refuses to run as root. Then it runs as an unprivileged user, who owns its folder.
    pub refuses_root: bool,
    /// Settings that only the testbed may set.
    pub reserved: &'static [&'static str],
    /// The settings for a durability class, by its name, if neither the defaults nor a session provide it; otherwise
    /// empty.
    pub durability: fn(&str) -> &'static [(&'static str, &'static str)],
    /// The settings with which its files are small, for tests.
    pub small: &'static [(&'static str, &'static str)],
    /// The settings with which it caches little of its data.
    pub small_cache: &'static [(&'static str, &'static str)],
    /// The limit of concurrent connections; `None` if no setting limits them.
    pub connections: Option<ConnectionLimit>,
    /// The settings for an LRU cache; `None` if it is not a cache.
    pub cache: Option<CacheSettings>,
    /// The settings that load what the server needs to read other servers' tables, as far as it is installed.
    pub links: fn() -> Vec<(String, String)>,
    /// Whether it can be started on a host of its own.
    pub own_host: bool,
    /// Rejects unsupported options, such as a password or TLS; returns what is wrong.
    pub check: fn(&Spec) -> Result<(), String>,
    /// Writes what the first start needs, and returns the programs that create the data folder, in order.
    pub prepare: fn(&Instance) -> Result<Vec<Launch>, TestbedError>,
    /// Whether the data folder is independent of this instance, so that a copy can be used for others.
    pub can_use_template: fn(&Instance) -> bool,
    /// Makes a data folder, which may be a copy, that of this instance alone: removes what two servers must not share, and
    /// returns programs to run.
    pub make_own: fn(&Instance) -> Result<Vec<Launch>, TestbedError>,
    /// Whether it has users with passwords. If not, every account of this machine may use it.
    pub has_users: fn(&Spec, &Installed) -> bool,
    /// The value of the setting `login`, if it has that.
    pub login: Option<&'static str>,
    /// Does what passwords need once the server answers, at the `first` start or a later one; returns what is wrong.
    pub protect: fn(&Instance, first: bool) -> Result<(), String>,
    /// The command of the server; `first` is true until it has answered once.
    pub command: fn(&Instance, first: bool) -> Launch,
    /// Checks that the server answers in its protocol; otherwise returns why not. `pid` is the server's.
    pub ping: fn(&Instance, pid: u32) -> Result<(), String>,
    /// Its Unix socket, if it has one.
    pub socket: fn(&Instance) -> Option<PathBuf>,
    /// Its URL for clients, with a random password, but not with a chosen one: see [`Instance::login`].
    pub url: fn(&Instance) -> String,
    /// The signal that stops it. Its data is deleted anyway, and saving it takes some servers seconds and disturbs
    /// later measurements. It must not leave anything outside its folder.
    pub stop_signal: Signal,
    /// Frees resources outside the folder that a killed server could not free.
    pub clean_up: fn(&Instance) -> Option<Launch>,
}

impl Engine {
    /// An engine with what each must have. It runs as any user, reserves and limits nothing, accepts all options,
    /// creates its data itself, has no socket, and may be killed.
    pub const fn new(
        name: &'static str,
        how: &'static str,
        find: fn() -> Result<Installed, String>,
        command: fn(&Instance, first: bool) -> Launch,
        ping: fn(&Instance, pid: u32) -> Result<(), String>,
        url: fn(&Instance) -> String,
    ) -> Self {
        Self {
            name,
            how,
            find,
            refuses_root: false,
            reserved: &[],
            durability: |_| &[],
            small: &[],
            small_cache: &[],
            connections: None,
            cache: None,
            links: Vec::new,
            own_host: false,
            check: |_| Ok(()),
            prepare: |_| Ok(Vec::new()),
            can_use_template: |_| false,
            make_own: |_| Ok(Vec::new()),
            has_users: |_, _| false,
            login: None,
            protect: |_, _| Ok(()),
            command,
            ping,
            socket: |_| None,
            url,
            stop_signal: Signal::KILL,
            clean_up: |_| None,
        }
    }

    /// Its installed program, or what is missing and how to install it.
    pub fn installed(&self) -> Result<Installed, Missing> {
        (self.find)().map_err(|what| Missing { what, engine: self.name, elsewhere: self.how })
    }
}

/// Makes the settings of a cache with memory for about this many values of this size.
pub(crate) type CacheSettings = fn(values: u64, bytes: u64) -> Vec<(String, String)>;

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
    /// The password of the server's user; `None`: it has no users.
    pub password: Option<Password>,
}

impl Instance {
    /// The text of the password, for the server's own files and statements.
    pub fn secret(&self) -> &str {
        self.password.as_ref().map_or("", Password::expose)
    }

    /// A user with its password, for a URL. Who chose a password knows it. Without users the password is empty, so that
    /// clients do not send one from the environment or a file.
    pub fn login(&self, user: &str) -> String {
        match (&self.password, &self.spec.password) {
            (None, _) => format!("{user}:"),
            (Some(_), Some(_)) => user.to_owned(),
            (Some(random), None) => format!("{user}:{}", random.expose()),
        }
    }

    /// The OS user who listens at the server's sockets.
    pub fn uid(&self) -> u32 {
        self.os_user.map_or_else(|| rustix::process::geteuid().as_raw(), |os_user| os_user.uid)
    }

    pub fn data(&self) -> PathBuf {
        self.dir.join(DATA)
    }

    /// The link to its own host; `None` on this host.
    pub fn link(&self) -> Option<host::Link> {
        self.spec.host_mtu.map(|mtu| host::Link::new(mtu, self.port))
    }

    /// The address at which it listens.
    pub fn address(&self) -> Ipv4Addr {
        self.link().map_or(Ipv4Addr::LOCALHOST, host::Link::server)
    }

    /// Checks that it accepts TCP connections.
    pub fn accepts(&self) -> Result<(), String> {
        self.link().map_or(Ok(()), host::Link::check)?;
        wire::tcp(SocketAddrV4::new(self.address(), self.port))
    }

    /// The folder for temporary files, and the home of its processes.
    pub fn tmp(&self) -> PathBuf {
        self.dir.join(folder::TMP)
    }

    /// The folder for sockets and the file of the server's process.
    pub fn run(&self) -> PathBuf {
        self.dir.join(folder::RUN)
    }

    pub fn log(&self) -> PathBuf {
        self.dir.join("server.log")
    }

    /// Writes a file that only the server's user can read, since it may contain a password.
    pub fn write_secret(&self, name: &str, text: &str) -> Result<PathBuf, TestbedError> {
        let path = self.dir.join(name);
        folder::write_private(&path, text.as_bytes(), self.os_user.as_ref())?;
        Ok(path)
    }
}

/// A program to run as the server's user, in its folder.
pub(crate) struct Launch {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Its standard input.
    pub input: &'static str,
    /// The link to the host that is made for it; `None`: it runs on this host.
    pub link: Option<host::Link>,
    /// Whether it looks for the name of its user.
    pub needs_name: bool,
}

impl Launch {
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), args: Vec::new(), input: "", link: None, needs_name: false }
    }

    /// The program of a root folder, with its own loader.
    pub fn in_root(root: &Root) -> Self {
        root.prefix().into_iter().fold(Self::new(&root.loader), Self::arg)
    }

    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub fn args<T: Into<OsString>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds `name=path` as one argument, for paths with any bytes.
    pub fn variable(self, name: &str, path: &Path) -> Self {
        let mut arg = OsString::from(format!("{name}="));
        arg.push(path);
        self.arg(arg)
    }

    /// Adds `--name=path` as one argument, for paths with any bytes.
    pub fn path(self, name: &str, path: &Path) -> Self {
        self.variable(&format!("--{name}"), path)
    }

    /// Adds the user's settings as long options.
    pub fn settings(self, instance: &Instance) -> Self {
        let option = |(key, value): &(String, String)| match value.as_str() {
            "" => format!("--{key}"),
            value => format!("--{key}={value}"),
        };
        self.args(instance.spec.settings.iter().map(option))
    }

    /// Runs it as a user who has a name.
    pub fn by_name(self) -> Self {
        Self { needs_name: true, ..self }
    }

    pub fn input(mut self, text: &'static str) -> Self {
        self.input = text;
        self
    }
}
