//! Throwaway local database servers from installed programs.
//!
//! [`start`] runs a server in a temporary folder, on a free loopback port, with the engine's default settings. The
//! server and its folder are removed when the [`Server`] is dropped, and also if the tool ends by Ctrl-C or kill -9,
//! because a [`supervisor`] process watches it. [`available`] lists the engines that can be started.
//!
//! Environment: `KURABE_TMP`, the parent of the folders; `KURABE_SERVER_PATH`, the only folders to search for server
//! programs (to choose a version); `KURABE_CACHE`, where `cargo xtask setup` installs servers that the distribution
//! lacks.

mod affinity;
mod couchdb;
mod engine;
mod environment;
mod error;
mod firebird;
mod folder;
mod log;
mod mariadb;
mod memcached;
mod mongodb;
mod mysql;
mod mysql_family;
mod options;
mod os_user;
mod port;
mod postgres;
mod process;
mod programs;
mod redis;
mod registry;
mod root;
mod server;
pub mod supervisor;
mod tcp;
mod template;
pub mod testing;
mod tls;
mod wire;

pub use engine::{Installed, Missing};
pub use error::TestbedError;
pub use options::StartOptions;
pub use registry::{available, caches, engines};
pub use server::{Server, start, sweep};
