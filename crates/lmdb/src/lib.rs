//! LMDB, in this process, with the crate `heed`.
//!
//! The database is one file, with LMDB's lock file beside it. All rows are in the unnamed database. A row's key is the
//! collection's name, a colon, and the primary key in an order-preserving encoding. Each operation is a transaction.

mod namespace;
mod session;
mod store;
mod transfer;

use heed::EnvFlags;
use kurabe_core::units;
use kurabe_driver_common::clients;
use kurabe_driver_common::embedded::{Claim, Place, ProcessStatsProbe};
use kurabe_driver_common::info::{Connections, DriverInfo, OptionInfo};
use kurabe_driver_common::ownership::Owned;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::slots::Slots;
use namespace::LmdbNamespace;
use session::LmdbSession;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use store::Store;

/// The driver, for the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["lmdb"],
    engine: "LMDB",
    about: "embedded key-value store, in this process; needs no server",
    url: "lmdb:[path]",
    options: &[
        OptionInfo::new(
            "sync",
            "full (default), no-meta (MDB_NOMETASYNC), off (MDB_NOSYNC: a power failure may damage the file)",
        ),
        OptionInfo::new("map_size", "maximum size of the file (default 64g)"),
    ],
    benchmark_clause: None,
    connections: Connections::NONE,
    open,
};

/// Values of `sync=`. A commit does not sync: nothing, the meta page, all pages. Source: `lmdb.h`.
const SYNC: [(&str, EnvFlags); 3] =
    [("full", EnvFlags::empty()), ("no-meta", EnvFlags::NO_META_SYNC), ("off", EnvFlags::NO_SYNC)];

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    let size = units::parse_size(url.option("map_size").unwrap_or("64g"));
    let size = size.map_err(|error| error.context("lmdb: map_size="))?.next_multiple_of(1 << 16);
    let (place, store) = (Place::parse(url)?, Mutex::default());
    let (sync, named) = (url.choice("sync", &SYNC)?, url.option("sync").is_some());
    Ok(Box::new(Lmdb { place, sync, named, map_size: size as usize, store }))
}

/// The longest key of the library as it is compiled here (`MDB_MAXKEYSIZE`).
const MAX_KEY: usize = 511;

struct Lmdb {
    place: Place,
    sync: EnvFlags,
    /// Whether the target sets `sync=`.
    named: bool,
    map_size: usize,
    /// Opened at first use.
    store: Mutex<Option<Arc<Store>>>,
}

impl Lmdb {
    fn store(&self) -> Result<Arc<Store>> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = &*store {
            return Ok(Arc::clone(store));
        }
        self.place.check()?;
        self.place.create()?;
        let opened = Store::open(self.place.path(), self.sync, self.map_size);
        Ok(Arc::clone(store.insert(Arc::new(opened.map_err(|e| self.place.explain_open(e))?))))
    }

    fn class(&self) -> DurabilityClass {
        let synced = self.sync.is_empty() && !self.place.in_memory();
        if synced { DurabilityClass::Synced } else { DurabilityClass::OsCache }
    }
}

impl Driver for Lmdb {
    fn describe(&self) -> Result<ServerFacts> {
        // A file that is not there is created by what writes.
        self.place.check()?;
        let is_missing = !self.place.is_temporary() && !self.place.path().exists();
        let missing = is_missing.then(|| "there is no such file yet: a run creates it".to_owned());
        let most = if is_missing { MAX_KEY } else { self.store()?.env.max_key_size() };
        let longest = format!("a key has at most {most} bytes");
        let identity = std::fs::metadata(self.place.path()).ok().map(|about| ServerIdentity {
            server: format!("file {} on device {}", about.ino(), about.dev()),
            database: String::new(),
        });
        let sync = SYNC.iter().find(|(_, flags)| *flags == self.sync).map_or("", |(name, _)| name);
        Ok(ServerFacts {
            engine: INFO.engine.to_owned(),
            version: heed::lmdb_version().string.trim_start_matches("LMDB ").to_owned(),
            client: format!("{}, LMDB compiled in", clients::HEED),
            transport: "in process".to_owned(),
            durability: Some(self.class()),
            durability_settings: vec![Setting::new("sync", sync)],
            settings: vec![Setting::new("map_size", self.map_size.to_string())],
            identity,
            notes: [Some(longest), missing, self.place.note()].into_iter().flatten().collect(),
            ..ServerFacts::default()
        })
    }

    fn require_durability(&mut self, class: DurabilityClass) -> Result<()> {
        if !self.named {
            self.sync = if class == DurabilityClass::Synced { EnvFlags::empty() } else { EnvFlags::NO_SYNC };
            self.store = Mutex::default();
        }
        if self.class() == class {
            return Ok(());
        }
        let why = "LMDB syncs at each commit, or leaves syncing to the operating system";
        Err(Error::unsupported(format!("lmdb: durability class '{class}' is not available: {why}"))
            .hint("omit --durability or sync=, or use a file on a disk"))
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::InProcess
    }

    fn supports(&self, operation: &Operation) -> Support {
        Support::unless(session::unsupported(operation))
    }

    fn supports_transfer(&self, transfer: Transfer) -> Support {
        Support::unless(matches!(transfer, Transfer::Read(Fetch::Rows(_))).then_some(
            "LMDB is in process: it gives one row after the other, without round trips (--fetch whole)",
        ))
    }

    fn capabilities(&self) -> Capabilities {
        let pipelining = Support::no("LMDB is in process: there is no round trip to save");
        let is_temporary = self.place.is_temporary();
        Capabilities { is_temporary, ..Capabilities::without_statements("LMDB", pipelining) }
    }

    fn connect(&self, _: &ConnectOptions) -> Result<Box<dyn Session>> {
        let (store, slots, key, row) = (self.store()?, Slots::default(), Vec::new(), Vec::new());
        Ok(Box::new(LmdbSession { store, slots, key, row }))
    }

    fn stats_probe(&self, _: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        Ok(Box::new(ProcessStatsProbe))
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        let lock = self.place.lock_path();
        Ok(Owned::boxed(LmdbNamespace { store: self.store()?, lock, claim: Claim::default() }))
    }

    without!(compression, limited_memory, links, dump_tool);
}
