//! Servers, targets and tables for these tests.

pub(crate) use crate::common::once;
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{ConnectOptions, Driver, Session};
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, Result};
use std::sync::Arc;

pub const ENGINES: [&str; 3] = ["mysql", "mariadb", "postgres"];

/// The server's URL with one more option.
pub fn with(url: &str, option: &str) -> String {
    format!("{url}{}{option}", if url.contains('?') { '&' } else { '?' })
}

/// The URL with a password after its user.
pub fn with_password(url: &str, password: &str) -> String {
    url.replacen('@', &format!(":{password}@"), 1)
}

pub fn open(url: &str) -> Result<Box<dyn Driver>> {
    kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap())
}

pub fn connect(url: &str) -> Result<Box<dyn Session>> {
    open(url)?.connect(&ConnectOptions::default())
}

/// The error of opening a session.
pub fn refusal(url: &str) -> Error {
    match connect(url) {
        Ok(_) => panic!("{url} was accepted"),
        Err(error) => error,
    }
}

/// A table with a field of every type; the first is the key.
pub fn table(name: &str) -> Arc<Collection> {
    let fields = vec![
        Field { name: "id", kind: FieldType::Text { max: 72 } },
        Field { name: "body", kind: FieldType::LongBytes },
        Field { name: "note", kind: FieldType::LongText },
        Field { name: "tag", kind: FieldType::Bytes { max: 40 } },
        Field { name: "n", kind: FieldType::Int },
        Field { name: "at", kind: FieldType::Timestamp },
    ];
    Arc::new(Collection::new(name, fields, vec![0]))
}
