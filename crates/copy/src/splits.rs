//! Ranges of the key of a large table, which several sessions copy at a time.

use crate::engines::queries::expression_of;
use crate::plan::{Resume, TablePlan};
use crate::script::literal;
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
    let filter = table.filtered();
    let ends = |name: &str, kind: &Kind| {
        let end = |of| engine.dialect.read(kind, &format!("{of}({name})"));
        ["MIN", "MAX"].map(|of| format!("SELECT {} FROM {}{filter}", end(of), table.from))
    };
    let ends = match &table.resume {
        Resume::Hidden(name) => match expression_of(engine, "place_end", &literal(engine, &table.name)?) {
            Some(end) => ["SELECT 0".to_owned(), end],
            None => ends(name, &Kind::whole()),
        },
        Resume::Columns(columns) => {
            let first = columns.first().and_then(|at| table.columns.get(*at));
            let whole = |class: Class| class.is_whole() && class != Class::Bits;
            // A column of an engine whose columns hold values of any type is not split.
            match first.filter(|column| whole(column.kind.class) && !engine.is_loose) {
                Some(column) => ends(&source.quoted(&column.name), &column.kind),
                None => return Ok(Vec::new()),
            }
        }
        Resume::Restart => return Ok(Vec::new()),
    };
    if table.rows < (table.page.rows * PAGES_TO_SPLIT * jobs) as u64 {
        return Ok(Vec::new());
    }
    let mut end = |sql: &String| -> Result<Option<i128>> {
        Ok(source.value(sql)?.and_then(|text| text.parse::<i128>().ok()))
    };
    let (Some(first), Some(last)) = (end(&ends[0])?, end(&ends[1])?) else { return Ok(Vec::new()) };
    let parts = (jobs * RANGES) as i128;
    let width = (last - first) / parts + 1;
    let begins = (1..parts).map(|part| first + part * width);
    Ok(begins.take_while(|begin| *begin <= last).filter_map(|begin| begin.try_into().ok()).collect())
}
