//! The settings that are tried, from one list with its sources.

use crate::change::{Change, Proposal};
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, Result};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    setting: Vec<Setting>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    /// The engine's name; `mysql` is that of MariaDB too.
    engine: String,
    name: String,
    value: String,
    reason: String,
    costs: Option<String>,
    /// Whether it changes what an acknowledged write survives.
    #[serde(default)]
    durability: bool,
    /// Where its manual says that; for those who read the list.
    #[serde(rename = "source")]
    _source: String,
}

/// The settings of an engine that the target's URL does not have already; of `durability`, those that change what a write survives.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) if the list is damaged.
pub fn settings(engine: &str, url: &TargetUrl, durability: bool) -> Result<Vec<Proposal>> {
    let list: List = toml::from_str(include_str!("settings.toml"))
        .map_err(|error| Error::new(ErrorKind::Internal, format!("the list of settings: {error}")))?;
    let is_tried = |one: &Setting| {
        one.engine == engine && one.durability == durability && url.option(&one.name) != Some(&one.value)
    };
    let proposal = |one: Setting| Proposal {
        change: Change::Setting { name: one.name, value: one.value },
        reason: one.reason,
        costs: one.costs,
    };
    Ok(list.setting.into_iter().filter(is_tried).map(proposal).collect())
}
