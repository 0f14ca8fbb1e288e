//! What is attacked how, and what came of it.

use crate::context::Context;

/// What came of a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The program did as it must.
    Survived,
    /// It did not, and this is what it did.
    Failed(String),
    /// The attack could not be made here; it is not counted as a try.
    Skipped(String),
}

impl Outcome {
    /// Survived where there is no complaint.
    pub fn of(complaint: Option<String>) -> Self {
        complaint.map_or(Self::Survived, Self::Failed)
    }
}

/// The attack itself: with this seed, this many tries.
pub type Attack = Box<dyn Fn(&Context, u64, usize) -> Vec<Outcome> + Send + Sync>;

/// One line of the table.
pub struct Case {
    /// Its family.
    pub family: &'static str,
    /// What is done.
    pub kind: String,
    /// To which target.
    pub target: String,
    /// Tries that one call makes at most: those that share a process.
    pub batch: usize,
    /// Whether its tries mostly wait, so that many are made at once.
    pub waits: bool,
    /// Makes tries.
    pub attack: Attack,
}

impl Case {
    /// A case whose tries are independent of each other.
    pub fn single(
        family: &'static str,
        kind: impl Into<String>,
        target: impl Into<String>,
        attack: impl Fn(&Context, u64) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        Self {
            family,
            kind: kind.into(),
            target: target.into(),
            batch: 1,
            waits: false,
            attack: Box::new(move |context, seed, _| vec![attack(context, seed)]),
        }
    }

    /// The same, whose tries mostly wait.
    #[must_use]
    pub fn waiting(mut self) -> Self {
        self.waits = true;
        self
    }

    /// Its name: `liar/drop`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.family, self.kind)
    }
}
