//! The memory limit of Redis and Valkey, and what they do when it is reached.
//! Source: <https://redis.io/docs/latest/develop/reference/eviction/>.

use super::connect::lines;
use super::namespace::CLAIM;
use super::protocol::Client;
use crate::ownership::MARKER;
use crate::prelude::*;
use crate::reported::Reported;
use crate::wire::Stream;
use kurabe_core::memory::{MemoryProbe, StoreMemory};

/// Memory of a value besides its bytes: key, entry and allocator. Determined by experiment (7.0): about 230 bytes with
/// a short key, of which keys may have 250.
const VALUE_OVERHEAD: u64 = 350;

pub(super) struct Probe(pub(super) Client<Stream>);

impl MemoryProbe for Probe {
    fn read(&mut self, _value_bytes: u64) -> Result<Option<StoreMemory>> {
        // Without sections, since old versions accept only one.
        match self.0.ask_text(&["INFO"]) {
            Ok(node) => {
                let Some(found) = memory(&lines(&node)) else { return Ok(None) };
                let own = self.0.ask_text(&["EXISTS", MARKER, CLAIM])?;
                Ok(Some(StoreMemory { own_keys: own.text().parse().unwrap_or(0), ..found }))
            }
            // Users without this permission cannot be told either.
            Err(error) if error.server_code().is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// `None` without a limit, or if the server does not report it.
fn memory(info: &Reported) -> Option<StoreMemory> {
    let limit = info.number("maxmemory").filter(|limit| *limit > 0)?;
    let policy = info.text("maxmemory_policy");
    // Buffers of replicas and of the log are not evicted for.
    let uncounted = info.number("mem_not_counted_for_evict").unwrap_or(0);
    let used = info.number("used_memory")?.saturating_sub(uncounted);
    Some(StoreMemory {
        limit,
        set_by: format!("maxmemory = {limit}"),
        free: limit.saturating_sub(used),
        keys: keys(info),
        own_keys: 0,
        evicted: info.number("evicted_keys").unwrap_or(0),
        when_full: match policy {
            "noeviction" => "refuses the writes of all users (maxmemory-policy = noeviction)".to_owned(),
            other => format!("evicts keys (maxmemory-policy = {other})"),
        },
        value_overhead: VALUE_OVERHEAD,
    })
}

/// The keys of all databases: `db0:keys=7,expires=0,avg_ttl=0`.
fn keys(info: &Reported) -> u64 {
    let databases = info.iter().filter(|(name, _)| {
        name.strip_prefix("db").is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
    });
    let of = |text: &str| text.strip_prefix("keys=")?.split(',').next()?.parse::<u64>().ok();
    databases.filter_map(|(_, text)| of(text)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_what_the_server_does_not_use_yet() {
        let full = [
            ("maxmemory", "1000"),
            ("maxmemory_policy", "allkeys-lru"),
            ("used_memory", "800"),
            ("mem_not_counted_for_evict", "100"),
            ("evicted_keys", "3"),
            ("db0", "keys=7,expires=0,avg_ttl=0"),
            ("db12", "keys=5,expires=0,avg_ttl=0"),
            ("dbs", "keys=9"),
        ];
        let found = memory(&full[..].into()).unwrap();
        assert_eq!((found.limit, found.free, found.keys, found.evicted), (1_000, 300, 12, 3));
        assert!(found.when_full.contains("allkeys-lru"), "{}", found.when_full);
        assert_eq!(memory(&[("maxmemory", "0"), ("used_memory", "8")][..].into()), None);
        assert_eq!(memory(&Reported::default()), None);
    }
}
