//! A target of the run: by what it is joined, and what is known of it.

use crate::messages::Language;
use crate::wording::promise;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::facts::Setting;
use kurabe_core::run::{PublishingClause, TargetRecord};
use kurabe_core::sort;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The identity of a target: its position in the run. Files have its name in the run in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetId {
    at: usize,
    name: Arc<str>,
}

impl TargetId {
    pub(crate) fn new(at: usize, name: &str) -> Self {
        Self { at, name: name.into() }
    }

    /// This target among those of another run, which has so many.
    pub(crate) fn after(&self, others: usize) -> Self {
        Self { at: others + self.at, name: self.name.clone() }
    }

    /// Its position among the targets of the run.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Its name in the run.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Serialize for TargetId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.name)
    }
}

/// What is known of a target of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetSummary {
    /// Its name in this run.
    pub name: String,
    /// Its URL, without the password.
    pub url: String,
    pub engine: String,
    /// The engine's version.
    pub version: String,
    /// The client library.
    pub client: String,
    pub transport: String,
    /// What an acknowledged write survives; `None` if unknown.
    pub durability: Option<DurabilityClass>,
    /// The same as a clause.
    pub durability_promise: String,
    /// The settings that decide the durability class.
    pub durability_settings: BTreeMap<String, String>,
    /// Other settings that affect results.
    pub settings: BTreeMap<String, String>,
    /// The licence clause that restricts publishing benchmark results, if there is one.
    pub publishing: Option<PublishingClause>,
    /// Other remarks for the reader.
    pub notes: Vec<String>,
}

impl TargetSummary {
    pub(crate) fn of(record: &TargetRecord) -> Self {
        let facts = &record.facts;
        Self {
            name: record.name.clone(),
            url: record.url.clone(),
            engine: facts.engine.clone(),
            version: facts.version.clone(),
            client: facts.client.clone(),
            transport: facts.transport.clone(),
            durability: facts.durability,
            durability_promise: promise(facts.durability, Language::English).to_owned(),
            durability_settings: settings(&facts.durability_settings),
            settings: settings(&facts.settings),
            publishing: record.publishing.clone(),
            notes: facts.notes.clone(),
        }
    }

    /// The engine of a target, and how many targets before it have the same one: by these, targets of two runs are matched.
    pub(crate) fn nth_of_engine(all: &[Self], at: usize) -> (&str, usize) {
        let engine = all[at].engine.as_str();
        (engine, all[..at].iter().filter(|target| target.engine == engine).count())
    }

    /// The value of a setting.
    pub(crate) fn setting(&self, name: &str) -> Option<&String> {
        self.durability_settings.get(name).or_else(|| self.settings.get(name))
    }

    /// The settings that decide its durability and that another target of its engine has otherwise, with their values.
    pub(crate) fn own_durability(&self, all: &[Self]) -> Vec<String> {
        let others = || all.iter().filter(|other| other.engine == self.engine);
        let own = self.durability_settings.iter().filter(|(name, value)| {
            others().any(|other| other.durability_settings.get(*name) != Some(value))
        });
        own.map(|(name, value)| format!("{name} {value}")).collect()
    }
}

/// Settings as a map; the last of equal names wins.
fn settings(list: &[Setting]) -> BTreeMap<String, String> {
    sort::btree_map(list.iter().map(|setting| (setting.name.clone(), setting.value.clone())))
}
