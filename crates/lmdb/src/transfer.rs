//! All rows of a collection in one transaction, which reads or adds them.

use crate::session::{LmdbSession, check_exists, set_key};
use crate::store::{after, explain};
use heed::PutFlags;
use kurabe_driver_common::packed::{self, Fields};
use kurabe_driver_common::prelude::*;
use std::ops::Bound;
use std::sync::Arc;

impl Bulk for LmdbSession {
    fn read_rows(
        &mut self,
        collection: &Arc<Collection>,
        fields: &[usize],
        fetch: Fetch,
        row: &mut RowSink<'_>,
    ) -> Result<Moved> {
        if fetch != Fetch::Whole {
            return Err(Error::unsupported("LMDB has no round trips in which several rows arrive"));
        }
        let (store, key) = (&self.store, &mut self.key);
        let txn = store.env.read_txn().map_err(explain)?;
        check_exists(store, &txn, &collection.name)?;
        set_key(key, &collection.name, std::iter::empty(), false)?;
        let end = after(key);
        let range = (Bound::Included(key.as_slice()), Bound::Excluded(end.as_slice()));
        let mut rows = 0;
        for found in store.rows.range(&txn, &range).map_err(explain)? {
            let mut all = Fields::of(found.map_err(explain)?.1);
            with_fields(fields.len(), |values| {
                for (value, field) in values.iter_mut().zip(fields) {
                    *value = all.at(*field);
                }
                row(values)
            })?;
            rows += 1;
        }
        Ok(Moved { rows, round_trips: None })
    }

    fn write_rows(&mut self, collection: &Arc<Collection>, rows: &mut dyn RowSource) -> Result<Moved> {
        let Self { store, key, row, .. } = self;
        let written = store.write(|txn| {
            check_exists(store, txn, &collection.name)?;
            let mut written = 0;
            while rows.next(&mut |values| {
                check_parameters("a row", collection.fields.len(), values.len())?;
                set_key(key, &collection.name, collection.key.iter().map(|at| values[*at]), true)?;
                row.clear();
                packed::pack(row, values.iter().copied());
                store.rows.put_with_flags(txn, PutFlags::NO_OVERWRITE, key, row).map_err(explain)?;
                written += 1;
                Ok(())
            })? {}
            Ok(written)
        })?;
        Ok(Moved { rows: written, round_trips: None })
    }

    without!(text, pages);
}
