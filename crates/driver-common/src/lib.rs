//! Shared code of Kurabe's drivers.
//!
//! [`ownership`]: which objects Kurabe may create and remove. [`sql`]: statements of SQL engines, generated from a
//! dialect. [`wire`]: connections with one reused buffer and deadlines, over TCP, Unix sockets and TLS. [`info`]: a
//! driver's entry in the registry.

#![allow(
    clippy::missing_errors_doc,
    reason = "errors are the server's or the connection's, unless a function says otherwise"
)]

pub mod account;
pub mod cancel;
pub mod charset;
pub mod clients;
pub mod contain;
pub mod datetime;
pub mod dump;
pub mod embedded;
pub mod environment;
pub mod info;
pub mod key;
pub mod lease;
mod options;
pub mod ownership;
pub mod packed;
pub mod prelude;
pub mod probe;
pub mod program;
pub mod reported;
pub mod slots;
pub mod sql;
pub mod ttl;
pub mod url;
pub mod watchdog;
pub mod wire;
