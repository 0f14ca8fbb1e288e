//! CouchDB, and what speaks its HTTP API, through the crate `ureq` with keep-alive.
//! Source: <https://docs.couchdb.org/en/stable/api/index.html>.
//!
//! A collection is a database, a row is a document, the key is in its id (`id`), the other fields are its members
//! (`document`). A change names the revision that it replaces (`write`).
//!
//! Bytes are base64 within the document. An attachment would keep them as they are on the disk, but brings them in one
//! request with the other fields only as base64 or as a multipart body, and gives them back in one only so: a session that
//! is read with a second request for its attachment costs a round trip more and can change in between. What an attachment
//! saves is a third of the bytes, beside CouchDB's limit of 8 MB for a document.
//!
//! Rows by the first fields of the key are a range of `_all_docs`; rows by an index's fields are asked of `_find`, with an
//! index that `create` made, and put in the order of the key here: that of `_find` is the whole index's.
//!
//! Users are authenticated by HTTP's basic scheme, with every request: it needs no request of its own and does not expire, as a
//! cookie does after ten minutes, and it is what most clients of CouchDB do unless told otherwise.

mod config;
mod connection;
mod document;
mod errors;
mod facts;
mod http;
mod id;
mod namespace;
mod session;
mod table;
mod write;

use crate::info::{DriverInfo, OptionInfo};
use crate::ownership::Owned;
use crate::prelude::*;
use config::Config;
use facts::Kind;
use http::Client;
use namespace::CouchNamespace;
use session::CouchSession;
use std::sync::{Arc, OnceLock};

/// What the registry knows of it.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["couchdb", "couchdbs"],
    engine: "CouchDB",
    about: "documents over HTTP, each with its revision",
    url: "couchdb://[user[:password]@]host[:port][/prefix-of-databases]",
    options: &[
        OptionInfo::new("tls", "off (default of couchdb:), require, or verify (default of couchdbs:)"),
        OptionInfo::new("ca", "file of the authority for tls=verify, in place of Mozilla's list"),
    ],
    benchmark_clause: None,
    statements: None,
    open,
};

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    Ok(Box::new(CouchDb { config: Arc::new(Config::from_url(url)?), kind: OnceLock::new() }))
}

struct CouchDb {
    config: Arc<Config>,
    /// What the server is, once a first connection asked.
    kind: OnceLock<Kind>,
}

impl CouchDb {
    fn client(&self, options: &ConnectOptions) -> Result<Client> {
        let mut client = Client::new(&self.config, options);
        if self.kind.get().is_none() {
            // Once: an application would not ask each time, and connecting is itself measured.
            let kind = Kind::ask(&mut client)?;
            let _ = self.kind.set(kind);
        }
        Ok(client)
    }
}

impl Driver for CouchDb {
    fn describe(&self) -> Result<ServerFacts> {
        let mut client = Client::new(&self.config, &ConnectOptions::default());
        let kind = Kind::ask(&mut client)?;
        facts::describe(&mut client, &kind)
    }

    fn endpoint(&self) -> Endpoint {
        self.config.place.endpoint()
    }

    fn supports(&self, operation: &Operation) -> Support {
        Support::unless(session::unsupported(operation))
    }

    fn capabilities(&self) -> Capabilities {
        let pipelining = Support::no("HTTP's clients await each answer: its pipelining was given up");
        Capabilities::without_statements("CouchDB", pipelining)
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        Ok(Box::new(CouchSession::new(self.client(options)?)))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        Ok(Box::new(Owned(CouchNamespace::new(self.client(&ConnectOptions::default())?)?)))
    }
}
