//! What an acknowledged write survives.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// What an acknowledged write survives: the strongest of these promises that the settings keep. Ordered by what a power
/// failure takes: a later class loses no more to it than an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DurabilityClass {
    /// Nothing that could be counted on: it is gone with the server's process.
    Memory,
    /// The server's crash, but not the machine's: it was handed to the operating system before it was acknowledged.
    OsCache,
    /// The server's crash and the machine's, but for about the last second ([`ABOUT_A_SECOND`]) before either. Where it
    /// is handed to the operating system before it is acknowledged, the server's crash takes nothing; some engines
    /// keep it to themselves until they sync, and a note of [`ServerFacts`](crate::facts::ServerFacts) says so.
    PeriodicSync,
    /// The machine's crash: it was on stable storage before it was acknowledged.
    Synced,
    /// The loss of the machine: another one had it before it was acknowledged.
    Replicated,
}

/// What counts as "about a second" of [`DurabilityClass::PeriodicSync`]: an engine that may sync later than this makes no
/// promise in seconds.
pub const ABOUT_A_SECOND: Duration = Duration::from_secs(2);

impl DurabilityClass {
    /// All classes, the least first.
    pub const ALL: [Self; 5] =
        [Self::Memory, Self::OsCache, Self::PeriodicSync, Self::Synced, Self::Replicated];

    /// The class of a name.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) with the names that there are.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            let hint = crate::units::nearest(name, &names).map_or_else(
                || format!("there are: {}", names.join(", ")),
                |near| format!("did you mean '{near}'?"),
            );
            Error::usage(format!("'{name}' is no durability class")).hint(hint)
        })
    }

    /// The class as files and reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::OsCache => "os-cache",
            Self::PeriodicSync => "periodic-sync",
            Self::Synced => "synced",
            Self::Replicated => "replicated",
        }
    }

    /// What an acknowledged write may suffer, as a clause for a verdict.
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

impl fmt::Display for DurabilityClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_found_by_their_names_and_ordered_by_what_a_power_failure_takes() {
        for class in DurabilityClass::ALL {
            assert_eq!(DurabilityClass::parse(class.name()), Ok(class));
        }
        assert!(DurabilityClass::ALL.is_sorted());
        let error = DurabilityClass::parse("sinced").unwrap_err().to_string();
        assert!(error.contains("did you mean 'synced'?"), "{error}");
    }
}
