//! Settings and state that a server reported, by name.

use kurabe_core::facts::{Limit, Setting};
use std::collections::BTreeMap;

/// Values by name, as the server prints them. Values that this version lacks or this user may not read are absent.
#[derive(Clone, Debug, Default)]
pub struct Reported(BTreeMap<String, String>);

impl Reported {
    /// Collects rows of a name and a value; names are converted to lower case.
    pub fn of(rows: Vec<Vec<String>>) -> Self {
        let pairs = rows.into_iter().filter_map(|row| <[String; 2]>::try_from(row).ok());
        pairs.map(|[name, value]| (name.to_ascii_lowercase(), value)).collect()
    }

    /// A value, if reported.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A value; empty if not reported.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// A value that is a whole number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.trim().parse().ok()
    }

    /// All values with their names, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A setting as a limit; `None` for 0.
    pub fn limit(&self, name: &str) -> Option<Limit> {
        self.number(name).filter(|most| *most > 0).map(|most| Limit::new(most, name))
    }

    /// The settings with these names that were reported, in this order.
    pub fn pick(&self, names: &[&str]) -> Vec<Setting> {
        names.iter().filter_map(|name| Some(Setting::new(*name, self.get(name)?))).collect()
    }

    /// Removes a value.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Adds values, replacing those with the same names.
    pub fn extend(&mut self, more: impl IntoIterator<Item = (String, String)>) {
        self.0.extend(more);
    }
}

impl FromIterator<(String, String)> for Reported {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(kurabe_core::sort::btree_map(pairs))
    }
}

#[cfg(any(test, feature = "testing"))]
impl From<&[(&str, &str)]> for Reported {
    fn from(pairs: &[(&str, &str)]) -> Self {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }
}

/// Names as an SQL list: `'a', 'b'`. They must not contain quotes.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a &'a str>) -> String {
    names.into_iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}
