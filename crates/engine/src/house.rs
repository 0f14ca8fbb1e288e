//! A target's house: the part of its database that the run works in, opened, claimed and swept.

use crate::plan::Target;
use kurabe_core::Result;
use kurabe_core::collection::{Collection, Field, FieldType, NAMESPACE_PREFIX};
use kurabe_core::driver::{ConnectOptions, Namespace, Session};
use std::collections::HashSet;

/// A claimed namespace and a session beside it: what loads, clears and checks, apart from the clients. What the run made
/// there goes with it, as far as the server can still be reached.
pub struct House {
    /// Where collections are made and removed.
    pub namespace: Box<dyn Namespace>,
    /// Loads and checks.
    pub session: Box<dyn Session>,
    slot: usize,
    /// The data that has been loaded ([`Workload::data`](kurabe_core::experiment::Workload::data)).
    pub(crate) loaded: HashSet<String>,
    /// Trials made on this data so far.
    trials: u64,
}

impl House {
    /// Opens a target's namespace, claims it for the run, and removes what an earlier run that died left there.
    ///
    /// # Errors
    /// Where the target cannot be reached, or another run holds it.
    pub fn open(target: &Target, slot: usize, slots: usize, run: &str) -> Result<Self> {
        let mut namespace = target.driver.namespace()?;
        if target.claims {
            namespace.claim(run)?;
        }
        Self::within(namespace, target, slot, slots)
    }

    /// Opens a second house of a target whose first one has claimed the namespace.
    ///
    /// # Errors
    /// Where the target cannot be reached.
    pub(crate) fn second(target: &Target, slot: usize) -> Result<Self> {
        Self::within(target.driver.namespace()?, target, slot, usize::MAX)
    }

    fn within(namespace: Box<dyn Namespace>, target: &Target, slot: usize, slots: usize) -> Result<Self> {
        let session = target.driver.connect(&ConnectOptions::default())?;
        let mut house = Self { namespace, session, slot, loaded: HashSet::new(), trials: 0 };
        // Whether collections may be made here is better known now than after an hour.
        let probe = Collection::new(
            format!("{NAMESPACE_PREFIX}{slot}_probe"),
            vec![Field { name: "id", kind: FieldType::Int }],
            vec![0],
        );
        house.namespace.create(&probe)?;
        house.namespace.remove(&probe.name)?;
        // Other targets of this run may be the same server: their slots are theirs.
        let old = |of: Option<usize>| slots < usize::MAX && target.claims && of.is_none_or(|of| of >= slots);
        house.remove(|of| of == Some(slot) || old(of))?;
        Ok(house)
    }

    /// The number of the next trial on this data, from 1.
    pub(crate) fn next_trial(&mut self) -> u64 {
        self.trials += 1;
        self.trials
    }

    /// Opens the namespaces of all targets of a run on which anything is measured.
    ///
    /// # Errors
    /// As for [`House::open`]; the message begins with the target's name.
    pub fn open_all(targets: &[Target], run: &str) -> Result<Vec<Option<Self>>> {
        let open = |(slot, target): (usize, &Target)| {
            if target.refused.is_some() {
                return Ok(None);
            }
            Self::open(target, slot, targets.len(), run)
                .map(Some)
                .map_err(|error| error.context(&target.name))
        };
        targets.iter().enumerate().map(open).collect()
    }

    fn remove(&mut self, which: impl Fn(Option<usize>) -> bool) -> Result<usize> {
        let names = self.namespace.list()?;
        let mut kept = 0;
        for name in names {
            if which(slot_of(&name)) {
                self.namespace.remove(&name)?;
            } else {
                kept += 1;
            }
        }
        Ok(kept)
    }

    /// Removes everything that the run made here, and says whether that was possible.
    ///
    /// # Errors
    /// The server's error.
    pub fn clean_up(&mut self) -> Result<()> {
        self.loaded.clear();
        let slot = self.slot;
        if self.remove(|of| of == Some(slot))? == 0 { self.namespace.finish() } else { Ok(()) }
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // Best effort: what is left is removed by the next run that claims the namespace.
        let _ = self.clean_up();
    }
}

/// The slot in a collection's name: `kurabe_<slot>_…`.
fn slot_of(name: &str) -> Option<usize> {
    name.strip_prefix(NAMESPACE_PREFIX)?.split('_').next()?.parse().ok()
}
