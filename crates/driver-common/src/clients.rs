//! Names of the client crates, each with the version that is built in: `rusqlite crate 0.41.0`.

include!(concat!(env!("OUT_DIR"), "/clients.rs"));
