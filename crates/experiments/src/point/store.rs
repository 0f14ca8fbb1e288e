//! The content and the number of rows.

use crate::content::{Content, Kind};
use crate::prelude::*;
use crate::rows::{RowData, Rows};

/// Default number of rows: that of sysbench's documentation and of pgbench's scale 1.
const RECORDS: u64 = 100_000;
/// Characters of a row's data.
pub(crate) const LENGTH: usize = 100;

/// The content of rows.
pub(crate) fn content(seed: u64) -> Content {
    Content::new(Kind::Text, seed, LENGTH)
}

impl RowData for Content {
    fn length(&self) -> usize {
        self.length()
    }

    fn write(&self, key: u64, version: u64, out: &mut Vec<u8>) {
        self.write(key, version, out);
    }

    fn check(&self, key: u64, version: u64, bytes: &[u8]) -> Result<()> {
        self.check(key, version, bytes)
    }
}

/// The rows of a target.
pub(super) type Store = Rows<Content>;

pub(super) fn store(name: &str, dataset: &Dataset) -> Arc<Store> {
    let name = format!("kurabe_{}_{name}", dataset.slot);
    Arc::new(Rows::new(name, content(dataset.seed), dataset.records.unwrap_or(RECORDS).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::LOADED;

    #[test]
    fn the_first_rows_of_a_seed_never_change() {
        let store = store("point", &Dataset { seed: 1, records: None, slot: 0 });
        let line = |(key, version)| {
            let mut data = Vec::new();
            store.data.write(key, version, &mut data);
            format!("{key} {version} {}", String::from_utf8(data).unwrap())
        };
        let lines = [(1, LOADED), (2, LOADED), (100_000, LOADED), (1, 1 << 32)].map(line).join("\n");
        assert_eq!(lines, include_str!("../../golden/point_rows_seed1.txt").trim_end_matches('\n'));
        assert_eq!(store.records, 100_000);
    }
}
