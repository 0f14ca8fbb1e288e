//! Names of the client crates, each with the version that is built in: `mongodb crate 3.9.1`.

include!(concat!(env!("OUT_DIR"), "/clients.rs"));
