//! Throwaway local database servers, from programs that are installed.
//!
//! [`start`] runs a server in a temporary folder, on a free port of the loopback, with the engine's own default
//! settings; it is gone with its folder when the [`Server`] is dropped, and also when the tool is ended by Ctrl-C or
//! kill -9, because a [`guard`] process looks after it. [`available`] says what can be started here.
//!
//! Environment: `KURABE_TMP`, where the folders are made; `KURABE_SERVER_PATH`, the only folders in which server
//! programs are looked for (to choose a version); `KURABE_CACHE`, where `cargo xtask setup` puts servers that the
//! distribution lacks.

mod account;
mod couchdb;
mod engine;
mod environment;
mod error;
mod folder;
pub mod guard;
mod log;
mod mariadb;
mod memcached;
mod mongodb;
mod mysql;
mod mysql_family;
mod options;
mod port;
mod postgres;
mod process;
mod programs;
mod redis;
mod registry;
mod server;
mod template;
pub mod testing;
mod tls;
mod wire;

pub use engine::{Installed, Missing};
pub use error::TestbedError;
pub use options::StartOptions;
pub use registry::{available, caches, engines};
pub use server::{Server, start, sweep};
