//! Throwaway local database servers from installed programs.
//!
//! [`start`] runs a server in a temporary folder, on a free loopback port, with the engine's default settings. The
//! server and its folder are removed when the [`Server`] is dropped, and also if the tool ends by Ctrl-C or kill -9,
//! because a [`supervisor`] process watches it. [`available`] lists the engines that can be started, [`installed_stack`]
//! the application stacks, which are started in the same way before a database. With the setting `mtu` some engines are
//! started on a host of their own: a network namespace behind a link with this MTU.
//!
//! Each server has a random password, so that other accounts of this machine cannot log in; docs/ARCHITECTURE.md names those
//! that cannot have one.
//!
//! Environment: `KURABE_TMP`, the parent of the folders; `KURABE_SERVER_PATH`, the only folders to search for server
//! programs (to choose a version); `KURABE_CACHE`, where `cargo xtask setup` installs servers that the distribution
//! lacks; `KURABE_COUNT_STARTS`, a file to which each start of a server appends a line.

mod affinity;
mod apache;
mod couchdb;
mod engine;
mod entries;
mod environment;
mod error;
mod folder;
mod host;
mod java;
mod link;
mod log;
mod mariadb;
mod memcached;
mod mod_php;
mod mongodb;
mod mysql;
mod mysql55;
mod mysql_family;
mod mysql_login;
mod node;
mod options;
mod os_user;
mod packages;
mod password;
mod perl;
mod php;
mod port;
mod postgres;
mod process;
mod programs;
mod python;
mod redis;
mod registry;
mod root;
mod server;
mod signals;
mod spec;
mod stack;
mod starting;
pub mod supervisor;
mod tcp;
mod template;
pub mod testing;
mod tls;
mod wire;

pub use engine::{Installed, Missing};
pub use error::TestbedError;
pub use options::StartOptions;
pub use registry::{
    available, caches, engines, has_own_host, installed, installed_stack, stacks, variants, without_login,
};
pub use server::Server;
pub use signals::{end_by_ignored, reset_interrupts_for_programs};
pub use spec::{Application, Database};
pub use stack::Variant;
pub use starting::{start, sweep};
pub use tls::{Signed, sign};
