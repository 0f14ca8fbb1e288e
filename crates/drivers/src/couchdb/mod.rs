//! CouchDB and servers with its HTTP API, through a native client with keep-alive.
//! Source: <https://docs.couchdb.org/en/stable/api/index.html>.
//!
//! A collection is a database, a row is a document, the key is its id (`id`), and the other fields are its members
//! (`document`). A change names the revision that it replaces (`write`).
//!
//! Bytes are base64 within the document. An attachment would store raw bytes, but one request can write or read it
//! together with the other fields only as base64 or as a multipart body. A second request for the attachment would cost
//! another round trip, and the document could change in between. An attachment would save a third of the bytes, and is
//! not subject to CouchDB's limit of 8 MB for a document.
//!
//! A search by the first fields of the key is a range of `_all_docs`. A search by an index's fields uses `_find`, with
//! an index that `create` made. Its rows are sorted by key here: `_find` returns them in the order of the whole index.
//!
//! Every request contains HTTP basic authentication. Most CouchDB clients do this by default. It needs no extra request
//! and does not expire, while a cookie does after ten minutes.

mod config;
mod document;
mod errors;
mod facts;
mod http;
mod id;
mod namespace;
mod session;
mod table;
mod write;

use crate::info::{Connections, DriverInfo, OptionInfo};
use crate::ownership::Owned;
use crate::prelude::*;
use crate::wire::tls;
use config::Config;
use facts::Kind;
use http::Client;
use kurabe_core::driver::Pace;
use namespace::CouchNamespace;
use session::CouchSession;
use std::sync::{Arc, OnceLock};

/// The driver's entry in the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["couchdb", "couchdbs"],
    engine: "CouchDB",
    about: "documents over HTTP, each with its revision",
    url: "couchdb://[user[:password]@]host[:port][/prefix-of-databases]",
    options: &[
        OptionInfo::new("tls", "off (default of couchdb:), require, or verify (default of couchdbs:)"),
        tls::CA,
        tls::CERT,
        tls::KEY,
    ],
    benchmark_clause: None,
    connections: Connections {
        variables: &[("COUCHDB_USER, COUCHDB_PASSWORD", "user and password, where the URL has none")],
        authentication: &[("Basic", ""), ("cookie, JWT, proxy", "not used")],
        tls: crate::info::TLS,
        mode: config::tls,
        servers: |url| Ok(vec![config::place(url, &config::tls(url)?)?.into()]),
        ..Connections::NONE
    },
    open,
};

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    Ok(Box::new(CouchDb { config: Arc::new(Config::from_url(url)?), kind: OnceLock::new() }))
}

struct CouchDb {
    config: Arc<Config>,
    /// The kind of server, queried by the first connection.
    kind: OnceLock<Kind>,
}

impl CouchDb {
    fn client(&self, options: &ConnectOptions) -> Result<Client> {
        let mut client = Client::new(&self.config, options);
        if self.kind.get().is_none() {
            // Only once: an application would not query this each time, and connecting is measured.
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
        self.config.server.place.endpoint()
    }

    fn supports(&self, operation: &Operation) -> Support {
        Support::unless(session::unsupported(operation))
    }

    fn supports_transfer(&self, transfer: Transfer) -> Support {
        match transfer {
            Transfer::Read(Fetch::Rows(_)) => Support::Native,
            Transfer::Read(Fetch::Whole) => Support::no(session::ANSWERS_ARE_WHOLE),
            Transfer::Write => Support::no(
                "CouchDB stores many documents by _bulk_docs only, which is an insert of many rows; give --fetch a number",
            ),
        }
    }

    fn capabilities(&self) -> Capabilities {
        let pipelining = Support::no("HTTP clients do not use pipelining: they await each answer");
        let of_couchdb = Capabilities::without_statements("CouchDB", pipelining).sharing_threads();
        let pace = Pace { loaded_per_second: 20e3, scanned_per_second: None };
        Capabilities { pace, ..of_couchdb }
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        Ok(Box::new(CouchSession::new(self.client(options)?)))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        Ok(Owned::boxed(CouchNamespace::new(self.client(&ConnectOptions::default())?)?))
    }

    without!(compression, other_durability, statistics, limited_memory, links, dump_tool);
}
