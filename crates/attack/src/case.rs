//! Cases of attacks, and their outcomes.

use crate::context::Context;

/// The outcome of a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The program behaved as required.
    Survived,
    /// It did not; what it did.
    Failed(String),
    /// The attack is impossible here; it does not count as a try.
    Skipped(String),
}

impl Outcome {
    /// Survived if there is no complaint.
    pub fn of(complaint: Option<String>) -> Self {
        complaint.map_or(Self::Survived, Self::Failed)
    }
}

/// An attack: makes this many tries with this seed.
pub type Attack = Box<dyn Fn(&Context, u64, usize) -> Vec<Outcome> + Send + Sync>;

/// One line of the table.
pub struct Case {
    pub family: &'static str,
    /// What is done.
    pub kind: String,
    pub target: String,
    /// The maximum number of tries of one call, which share a process.
    pub batch: usize,
    /// Whether its tries mostly wait, so that many run at once.
    pub waits: bool,
    /// Makes tries.
    pub attack: Attack,
}

impl Case {
    /// A case whose tries mostly do not wait.
    pub fn new(
        family: &'static str,
        kind: &str,
        target: &str,
        batch: usize,
        attack: impl Fn(&Context, u64, usize) -> Vec<Outcome> + Send + Sync + 'static,
    ) -> Self {
        let (kind, target) = (kind.to_owned(), target.to_owned());
        Self { family, kind, target, batch, waits: false, attack: Box::new(attack) }
    }

    /// A case whose tries are independent of each other. An error says why a try is impossible.
    pub fn single(
        family: &'static str,
        kind: &str,
        target: &str,
        attack: impl Fn(&Context, u64) -> Result<Outcome, String> + Send + Sync + 'static,
    ) -> Self {
        Self::new(family, kind, target, 1, move |context, seed, _| {
            vec![attack(context, seed).unwrap_or_else(Outcome::Skipped)]
        })
    }

    /// A [`Case::single`] of each of these kinds with its targets.
    pub fn of_each(
        family: &'static str,
        kinds: &[(&'static str, &[&'static str])],
        attack: fn(&Context, kind: &str, target: &str, seed: u64) -> Result<Outcome, String>,
    ) -> Vec<Self> {
        let pairs = kinds.iter().flat_map(|(kind, targets)| targets.iter().map(|target| (*kind, *target)));
        let case = |(kind, target)| {
            Self::single(family, kind, target, move |context, seed| attack(context, kind, target, seed))
        };
        pairs.map(case).collect()
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
