//! The settings that are tried, from one list with its sources.

use crate::change::Change;
use crate::proposal::Proposal;
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
        statements: Vec::new(),
        weight: 0,
        costs: one.costs,
    };
    Ok(list.setting.into_iter().filter(is_tried).map(proposal).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_that_changes_what_a_write_survives_is_tried_only_if_asked_for() {
        let url = TargetUrl::parse("up:postgres?jit=off&work_mem=1MB").unwrap();
        let names = |durability| -> Vec<String> {
            let all = settings("postgres", &url, durability).unwrap();
            all.iter().map(|one| one.change.label()).collect()
        };
        assert_eq!(names(true), ["synchronous_commit = off"]);
        let usual = names(false).join(" ");
        assert!(usual.contains("work_mem") && !usual.contains("synchronous_commit"), "{usual}");
        assert!(!usual.contains("jit"), "the unchanged server has it: {usual}");
        assert!(settings("mysql", &url, false).unwrap().len() > 2);
    }
}
