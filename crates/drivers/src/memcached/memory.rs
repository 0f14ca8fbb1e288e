//! The memory limit of memcached. It divides its memory into pages of 1 MB, each for values of about one size, and
//! seldom gives a page to another size: values are evicted while there is room for others.
//! Source: memcached's `doc/protocol.txt`, "Slab statistics".

use super::namespace::{CLAIM, MARKER};
use super::protocol::Client;
use crate::prelude::*;
use crate::reported::Reported;
use crate::wire::Stream;
use kurabe_core::memory::{MemoryProbe, StoreMemory};
use std::collections::BTreeMap;

/// Memory of a value besides its bytes. Determined by experiment (1.6.18): a header of 56 bytes and about 76 for key
/// and flags; keys may have 250.
const VALUE_OVERHEAD: u64 = 250;

pub(super) struct Probe(pub(super) Client<Stream>);

impl MemoryProbe for Probe {
    fn read(&mut self, value_bytes: u64) -> Result<Option<StoreMemory>> {
        let general = self.0.stats("stats")?;
        let settings = self.0.stats("stats settings")?;
        let slabs = self.0.stats("stats slabs")?;
        let Some(found) = memory(&general, &settings, &slabs, value_bytes) else { return Ok(None) };
        let mut own_keys = 0;
        for key in [MARKER, CLAIM.as_bytes()] {
            own_keys += u64::from(self.0.get_with_cas(key)?.is_some());
        }
        Ok(Some(StoreMemory { own_keys, ..found }))
    }
}

fn memory(
    general: &Reported,
    settings: &Reported,
    slabs: &Reported,
    value_bytes: u64,
) -> Option<StoreMemory> {
    let limit = general.number("limit_maxbytes").filter(|limit| *limit > 0)?;
    let used = general.number("bytes").unwrap_or(0).max(slabs.number("total_malloced").unwrap_or(0));
    let evicts = settings.text("evictions") != "off";
    let flag = if evicts { "evicts values" } else { "refuses the writes of all users (-M)" };
    Some(StoreMemory {
        limit,
        set_by: format!("-m {} (limit_maxbytes)", limit >> 20),
        free: limit.saturating_sub(used) + free_pages(general) + free_chunks(slabs, value_bytes),
        keys: general.number("curr_items").unwrap_or(0),
        own_keys: 0,
        evicted: general.number("evictions").unwrap_or(0),
        when_full: flag.to_owned(),
        value_overhead: VALUE_OVERHEAD,
    })
}

/// The memory of pages that values of some size had and that any size may have now.
fn free_pages(general: &Reported) -> u64 {
    // The least size of a page; memcached does not report it.
    const PAGE: u64 = 1 << 20;
    general.number("slab_global_page_pool").unwrap_or(0).saturating_mul(PAGE)
}

/// The memory of free chunks that values of this size may be put into.
fn free_chunks(slabs: &Reported, value_bytes: u64) -> u64 {
    let mut classes: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    for (name, text) in slabs.iter() {
        if let Some((class, what)) = name.split_once(':')
            && let (Ok(class), Ok(number)) = (class.parse(), text.trim().parse::<u64>())
        {
            match what {
                "chunk_size" => classes.entry(class).or_default()[0] = number,
                "free_chunks" | "free_chunks_end" => classes.entry(class).or_default()[1] += number,
                _ => {}
            }
        }
    }
    let (least, most) = (value_bytes, value_bytes.saturating_add(VALUE_OVERHEAD).saturating_mul(2));
    let fitting = classes.values().filter(|[size, _]| (least..=most).contains(size));
    fitting.map(|[size, free]| size * free).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_sizes_are_not_free() {
        let general = [
            ("limit_maxbytes", "67108864"),
            ("bytes", "1000"),
            ("curr_items", "9"),
            ("evictions", "2"),
            ("slab_global_page_pool", "3"),
        ];
        let slabs = [
            ("total_malloced", "67000000"),
            ("1:chunk_size", "96"),
            ("1:free_chunks", "1000"),
            ("5:chunk_size", "1184"),
            ("5:free_chunks", "10"),
            ("5:free_chunks_end", "1"),
        ];
        let read =
            |bytes| memory(&general[..].into(), &Reported::default(), &slabs[..].into(), bytes).unwrap();
        assert_eq!(read(1_000).free, 108_864 + 3 * 1_048_576 + 11 * 1_184);
        assert_eq!(read(100_000).free, 108_864 + 3 * 1_048_576);
        assert_eq!((read(1).keys, read(1).evicted), (9, 2));
    }
}
