//! How estimates are written: as members of what they belong to, and as text.

use kurabe_stats::Estimate;
use serde::Serializer;
use serde::ser::SerializeMap;

/// Whether its ends are so far apart that they say nothing: by a factor of 100 or more.
pub(crate) fn is_vast(of: &Estimate) -> bool {
    const VAST: f64 = 100.0;
    of.ends().is_some_and(|(low, high)| high >= low * VAST)
}

/// Formats `12.1k – 12.6k`; a dash without an interval.
pub(crate) fn ends(of: Estimate, show: &dyn Fn(f64) -> String) -> String {
    of.ends().map_or_else(|| "–".to_owned(), |(low, high)| format!("{} – {}", show(low), show(high)))
}

/// Writes a rate with the members `mean`, `low` and `high`.
pub(crate) fn as_mean<S: Serializer>(
    rate: &(impl Into<Option<Estimate>> + Copy),
    to: S,
) -> Result<S::Ok, S::Error> {
    let rate = (*rate).into();
    if rate.is_none() { to.serialize_none() } else { members("mean", rate, to) }
}

/// Writes a ratio as the members `ratio`, `low` and `high` of what it belongs to.
pub(crate) fn as_ratio<S: Serializer>(
    ratio: &(impl Into<Option<Estimate>> + Copy),
    to: S,
) -> Result<S::Ok, S::Error> {
    members("ratio", (*ratio).into(), to)
}

fn members<S: Serializer>(name: &str, of: Option<Estimate>, to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(3))?;
    map.serialize_entry(name, &of.map(|of| of.value))?;
    map.serialize_entry("low", &of.and_then(|of| of.low))?;
    map.serialize_entry("high", &of.and_then(|of| of.high))?;
    map.end()
}
