//! Durability classes: what an acknowledged write survives.

use crate::named::named;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::time::Duration;

named! {
    /// What an acknowledged write survives: the strongest guarantee of the server's settings. Ordered by the loss in
    /// a power failure: a later class loses no more than an earlier one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum DurabilityClass {
        /// Nothing: the write is lost when the server's process ends.
        Memory => "memory",
        /// A crash of the server, but not of the machine: the operating system had the write before it was
        /// acknowledged.
        OsCache => "os-cache",
        /// A crash of the server or the machine, except for about the last second ([`ABOUT_A_SECOND`]). If the
        /// operating system has the write before it is acknowledged, a crash of the server loses nothing. Some engines
        /// keep it in memory until they sync; a note of [`ServerFacts`](crate::facts::ServerFacts) says so.
        PeriodicSync => "periodic-sync",
        /// A crash of the machine: the write was on stable storage before it was acknowledged.
        Synced => "synced",
        /// The loss of the machine: another machine had the write before it was acknowledged.
        Replicated => "replicated",
    }
    /// Its name in files and reports.
    pub fn name;
}

/// The longest sync interval that [`DurabilityClass::PeriodicSync`] allows.
pub const ABOUT_A_SECOND: Duration = Duration::from_secs(2);

impl DurabilityClass {
    /// The class with this name.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) with the existing names.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            let hint = crate::units::suggestion(name, &names, "there are");
            Error::usage(format!("'{name}' is not a durability class")).hint(hint)
        })
    }

    /// What may happen to an acknowledged write, as a clause for a verdict.
    pub fn promise(self) -> &'static str {
        match self {
            Self::Memory => "an acknowledged write may be lost when the server stops",
            Self::OsCache => "an acknowledged write may be lost on power failure",
            Self::PeriodicSync => {
                "about a second of acknowledged writes may be lost in a crash or on power failure"
            }
            Self::Synced => "an acknowledged write survives power failure",
            Self::Replicated => "an acknowledged write survives the loss of the machine",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_names_and_are_ordered_by_loss_in_power_failure() {
        for class in DurabilityClass::ALL {
            assert_eq!(DurabilityClass::parse(class.name()), Ok(class));
        }
        assert!(DurabilityClass::ALL.is_sorted());
        let error = DurabilityClass::parse("sinced").unwrap_err().to_string();
        assert!(error.contains("did you mean 'synced'?"), "{error}");
    }
}
