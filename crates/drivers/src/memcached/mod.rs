//! memcached, through a native client of its meta protocol (`mg`, `ms`, `md`, `mn`; stable since version 1.6.10).
//! Source: <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>.
//!
//! A collection is a prefix of keys, and a row is one value. memcached finds a value only by its whole key; other
//! operations are unsupported.

mod address;
mod key;
mod memory;
mod metrics;
mod namespace;
mod protocol;
mod session;
mod value;

use crate::info::{Connections, DriverInfo, OptionInfo};
use crate::lease::Claim;
use crate::prelude::*;
use crate::ttl;
use crate::wire::{Peer, Place, Stream, tls, version};
use address::Address;
use kurabe_core::memory::LimitedServer;
use namespace::{Generations, MemcachedNamespace};
use protocol::Client;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The driver's entry in the registry.
pub static INFO: DriverInfo = DriverInfo {
    schemes: &["memcached"],
    engine: "memcached",
    about: "a cache: values by key, in the server's memory only",
    url: "memcached://[user:password@][host][:port] or memcached:///path/to.sock",
    options: &[
        OptionInfo::file("socket", "the server's Unix socket, instead of host and port"),
        ttl::OPTION,
        tls::OPTION,
        tls::CA,
        tls::CERT,
        tls::KEY,
    ],
    benchmark_clause: None,
    connections: Connections {
        authentication: &[
            ("a file of users (-Y), in the text protocol", ""),
            ("SASL (-S)", "refused: memcached then speaks its binary protocol only"),
        ],
        variables: &[(address::PASSWORD, "the user's password, where the URL has none")],
        tls: crate::info::TLS,
        servers: |url| Ok(vec![place(url)?.into()]),
        ..Connections::NONE
    },
    open,
};

const PORT: u16 = 11_211;

/// The oldest version with the meta protocol that this client uses.
const OLDEST: [u64; 3] = [1, 6, 10];

/// Settings that affect results.
const SHOWN: [&str; 7] =
    ["maxbytes", "item_size_max", "maxconns", "evictions", "num_threads", "slab_chunk_max", "cas_enabled"];

/// Bytes of an item besides the value: a header of 59 bytes (measured with 1.6.18, 64 bits), a key of at most 250
/// bytes, and a margin for the overhead of packing a row's fields.
const ITEM_HEADER: u64 = 59 + 250 + 64;

/// Where the server listens.
fn place(url: &TargetUrl) -> Result<Place> {
    match (url.option("socket"), &url.host, url.path.as_str()) {
        // As with the other engines, the host is ignored if there is a socket.
        (_, _, "") => Ok(Place::from_url(url, PORT)),
        (None, None, path) => Ok(Place::Unix(PathBuf::from("/").join(path))),
        _ => Err(Error::usage("memcached: has no databases; the URL ends after the port")
            .hint("write memcached://host:port, or memcached:///path/to.sock")),
    }
}

fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    let place = place(url)?;
    let ttl = ttl::from_url(url, session::LONGEST)?;
    let address = Arc::new(Address::new(url, place)?);
    Ok(Box::new(Memcached { address, ttl, generations: Arc::default(), version: OnceLock::new() }))
}

struct Memcached {
    address: Arc<Address>,
    /// Seconds until a row expires.
    ttl: Option<u32>,
    generations: Arc<Generations>,
    /// The server's version, once a connection has checked it.
    version: OnceLock<String>,
}

impl Memcached {
    fn client(&self, options: &ConnectOptions) -> Result<Client<Stream>> {
        let mut client = self.address.connect(options)?;
        if self.version.get().is_none() {
            // Only once: an application would not query this each time, and connecting is measured.
            let version = client.version().map_err(|e| self.address.explain(e))?;
            check_version(&version)?;
            let _ = self.version.set(version);
        }
        client.wire.ready();
        Ok(client)
    }
}

fn check_version(text: &str) -> Result<()> {
    if version(text) >= OLDEST {
        return Ok(());
    }
    Err(Error::unsupported(format!("memcached {text} is too old: its meta protocol is not the stable one"))
        .hint("use version 1.6.10 or newer"))
}

impl Driver for Memcached {
    fn describe(&self) -> Result<ServerFacts> {
        let mut client = self.client(&ConnectOptions::default())?;
        let general = client.stats("stats")?;
        let settings = client.stats("stats settings")?;
        client.quit();
        let login = client.times.map(|times| times.login());
        let mut notes = vec![
            "a collection is cleared by listing all keys of the server (lru_crawler metadump); what is not listed stays \
             in memory until memcached reuses the space"
                .to_owned(),
        ];
        if settings.text("evictions") == "on" {
            notes.push(
                "memcached evicts values when its memory is full: a read that misses one fails its trial"
                    .to_owned(),
            );
        }
        notes.extend(self.ttl.map(ttl::note));
        Ok(ServerFacts {
            engine: INFO.engine.to_owned(),
            version: self.version.get().cloned().unwrap_or_default(),
            client: concat!("kurabe ", env!("CARGO_PKG_VERSION"), ", meta protocol").to_owned(),
            transport: client.wire.stream().transport(),
            durability: Some(DurabilityClass::Memory),
            settings: settings.pick(&SHOWN).into_iter().chain(login).collect(),
            limits: Limits {
                connections: settings.number("maxconns").map(|most| {
                    // It reserves one file, and five for each of its threads (`reserved_fds` in memcached.c).
                    let own = 1 + 5 * settings.number("num_threads").unwrap_or(4);
                    Limit::new(most.saturating_sub(own), format!("-c (maxconns), less {own} reserved"))
                }),
                // The count includes this connection.
                connections_in_use: general.number("curr_connections").map(|open| open.saturating_sub(1)),
                value_bytes: settings.number("item_size_max").map(|most| {
                    let set_by = format!("-I (item size), less {ITEM_HEADER} bytes for key and header");
                    Limit::new(most.saturating_sub(ITEM_HEADER), set_by)
                }),
                ..Limits::default()
            },
            identity: general.number("time").zip(general.number("uptime")).map(|(time, uptime)| {
                ServerIdentity {
                    server: format!(
                        "process {}, started {}",
                        general.text("pid"),
                        time.saturating_sub(uptime)
                    ),
                    database: String::new(),
                }
            }),
            notes,
            ..ServerFacts::default()
        })
    }

    fn endpoint(&self) -> Endpoint {
        self.address.place.endpoint()
    }

    fn supports(&self, operation: &Operation) -> Support {
        Support::unless(session::unsupported(operation))
    }

    fn supports_transfer(&self, transfer: Transfer) -> Support {
        Support::no(match transfer {
            Transfer::Read(_) => "memcached does not give the values that it holds, only the one of a key",
            Transfer::Write => "memcached stores one value by a request; give --fetch 1",
        })
    }

    fn capabilities(&self) -> Capabilities {
        let of_memcached = Capabilities::without_statements("memcached", Support::Native).sharing_threads();
        Capabilities { expiry: Support::Native, ..of_memcached }
    }

    fn connect(&self, options: &ConnectOptions) -> Result<Box<dyn Session>> {
        let client = self.client(options)?;
        Ok(Box::new(session::MemcachedSession::new(client, Arc::clone(&self.generations), self.ttl)))
    }

    fn stats_probe(&self, options: &ConnectOptions) -> Result<Box<dyn StatsProbe>> {
        Ok(Box::new(metrics::probe(self.client(options)?)))
    }

    fn limited_servers(&self, options: &ConnectOptions) -> Result<Vec<LimitedServer>> {
        Ok(vec![LimitedServer { role: "", probe: Box::new(memory::Probe(self.client(options)?)) }])
    }

    fn namespace(&self) -> Result<Box<dyn Namespace>> {
        let (address, generations) = (Arc::clone(&self.address), Arc::clone(&self.generations));
        let client = self.client(&ConnectOptions::default())?;
        Ok(Owned::boxed(MemcachedNamespace {
            client,
            address,
            generations,
            claim: Claim::default(),
            orphans: Vec::new(),
        }))
    }

    without!(compression, other_durability, links, dump_tool);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(url: &str) -> String {
        open(&TargetUrl::parse(url).unwrap()).err().map_or_else(String::new, |e| e.to_string())
    }

    #[test]
    fn url_names_a_host_or_a_socket() {
        for url in [
            "memcached:", "memcached://", "memcached://h:1", "memcached:///run/m.sock",
            "memcached:?socket=/m",
        ] {
            assert_eq!(error(url), "", "{url}");
        }
        assert!(error("memcached://h/db").contains("no databases"));
        assert_eq!(error("memcached://bob:hunter2@h"), "");
        for url in ["memcached://bob@h", "memcached://:hunter2@h", "memcached://b%20b:hunter2@h"] {
            let message = error(url);
            assert!(message.contains("user") && !message.contains("hunter2"), "{message}");
        }
        assert!(error("memcached:///run/m.sock?tls=require").contains("Unix socket"));
    }

    #[test]
    fn old_versions_are_refused() {
        for new in ["1.6.10", "1.6.18", "1.6.18_2_gab", "1.7", "2.0.0"] {
            assert!(check_version(new).is_ok(), "{new}");
        }
        for old in ["1.4.25", "1.6.9", "1.5", "", "nonsense"] {
            assert!(check_version(old).is_err(), "{old}");
        }
    }
}
