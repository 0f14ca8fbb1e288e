//! Ranges of the key of a large table, which several sessions copy at a time.

use crate::plan::{Resume, TablePlan};
use crate::sql::Side;
use crate::types::{Class, Kind};
use kurabe_core::Result;

/// A table is read in ranges of its key, for several sessions, if it has so many pages for each of them.
const PAGES_TO_SPLIT: usize = 4;
/// Ranges for each session, since keys are not spread evenly.
const RANGES: usize = 4;

/// The keys at which ranges of a large table begin, but for the first one; none if it is not split.
pub(crate) fn splits(source: &mut Side, table: &TablePlan, jobs: usize) -> Result<Vec<i64>> {
    let engine = source.engine;
    let (name, kind) = match &table.resume {
        Resume::Hidden(name) => ((*name).to_owned(), Kind::whole()),
        Resume::Columns(columns) => {
            let first = columns.first().and_then(|at| table.columns.get(*at));
            let whole = |class: Class| class.is_whole() && class != Class::Bits;
            // A column of an engine whose columns hold values of any type is not split.
            match first.filter(|column| whole(column.kind.class) && engine.read_key.is_none()) {
                Some(column) => (source.quoted(&column.name), column.kind.clone()),
                None => return Ok(Vec::new()),
            }
        }
        Resume::Restart => return Ok(Vec::new()),
    };
    if table.rows < (table.page.rows * PAGES_TO_SPLIT * jobs) as u64 {
        return Ok(Vec::new());
    }
    let filter = table.filtered();
    let mut end = |of: &str| -> Result<Option<i128>> {
        let end = engine.dialect.read(&kind, &format!("{of}({name})"));
        let value = source.value(&format!("SELECT {end} FROM {}{filter}", table.from))?;
        Ok(value.and_then(|text| text.parse::<i128>().ok()))
    };
    let (Some(first), Some(last)) = (end("MIN")?, end("MAX")?) else { return Ok(Vec::new()) };
    let parts = (jobs * RANGES) as i128;
    let width = (last - first) / parts + 1;
    let begins = (1..parts).map(|part| first + part * width);
    Ok(begins.take_while(|begin| *begin <= last).filter_map(|begin| begin.try_into().ok()).collect())
}
