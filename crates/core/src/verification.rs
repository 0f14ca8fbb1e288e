//! How a trial's replies and acknowledged writes were verified.

use crate::named::named;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// How one trial, or several together, were verified, including warm-up. Everything was correct: one mismatch fails
/// the trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Recorded", from = "Recorded")]
pub struct Verification {
    /// Replies that were compared with the expected ones.
    pub answers: u64,
    /// Writes that the server acknowledged.
    pub writes: u64,
    /// Distinct records that these writes added or changed; fewer than `writes` if a record was changed more than
    /// once.
    pub records: u64,
    /// Writes whose rows are included in the server's own row count after the trial.
    pub counted: u64,
    /// Written records that were read back after the trial and compared byte for byte with their last version.
    pub read_back: u64,
}

impl Verification {
    /// The strongest statement that holds for all of them.
    pub fn how(&self) -> Proof {
        match self {
            Self { writes: 0, answers: 0, .. } => Proof::Nothing,
            Self { writes: 0, .. } => Proof::Compared,
            all if all.read_back >= all.writes => Proof::ReadBackAll,
            all if all.read_back >= all.records => Proof::ReadBackLast,
            all if all.counted >= all.writes => Proof::Counted,
            Self { read_back: 1.., .. } => Proof::Sample,
            _ => Proof::Acknowledged,
        }
    }
}

impl AddAssign for Verification {
    fn add_assign(&mut self, other: Self) {
        self.answers += other.answers;
        self.writes += other.writes;
        self.records += other.records;
        self.counted += other.counted;
        self.read_back += other.read_back;
    }
}

named! {
    /// How a trial was verified, from the strongest proof of writes to none.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Proof {
        /// No writes; replies were compared with the expected ones.
        Compared => "compared",
        /// The record of each write was read back and compared byte for byte.
        ReadBackAll => "read-back-all",
        /// The last version of each written record was read back and compared; earlier versions were only acknowledged.
        ReadBackLast => "read-back-last",
        /// The server counted the rows of all writes.
        Counted => "counted",
        /// Some written records were read back and compared.
        Sample => "sample",
        /// The server acknowledged the writes; nothing else was checked.
        Acknowledged => "acknowledged",
        /// No writes, and the expected replies are not known.
        Nothing => "nothing",
    }
    /// Its name in files.
    pub fn name;
}

/// A verification in files: `how` follows from the numbers.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    how: Proof,
    answers: u64,
    writes: u64,
    records: u64,
    counted: u64,
    read_back: u64,
}

impl From<Verification> for Recorded {
    fn from(all: Verification) -> Self {
        let Verification { answers, writes, records, counted, read_back } = all;
        Self { how: all.how(), answers, writes, records, counted, read_back }
    }
}

impl From<Recorded> for Verification {
    fn from(recorded: Recorded) -> Self {
        let Recorded { how: _, answers, writes, records, counted, read_back } = recorded;
        Self { answers, writes, records, counted, read_back }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(answers: u64, writes: u64, records: u64, counted: u64, read_back: u64) -> Proof {
        Verification { answers, writes, records, counted, read_back }.how()
    }

    #[test]
    fn verification_level_follows_from_counts() {
        assert_eq!(how(0, 0, 0, 0, 0), Proof::Nothing);
        assert_eq!(how(9, 0, 0, 0, 0), Proof::Compared);
        assert_eq!(how(9, 5, 5, 5, 5), Proof::ReadBackAll);
        assert_eq!(how(0, 5, 3, 0, 3), Proof::ReadBackLast);
        assert_eq!(how(0, 5, 5, 5, 4), Proof::Counted);
        assert_eq!(how(0, 5, 5, 4, 4), Proof::Sample);
        assert_eq!(how(9, 5, 5, 4, 0), Proof::Acknowledged);
    }

    #[test]
    fn weakest_trial_decides_verification_of_sum() {
        let mut sum =
            Verification { writes: 5, records: 5, counted: 5, read_back: 5, ..Verification::default() };
        assert_eq!(sum.how(), Proof::ReadBackAll);
        sum += Verification { writes: 5, records: 5, counted: 5, ..Verification::default() };
        assert_eq!(sum.how(), Proof::Counted);
        sum += Verification { writes: 1, records: 1, ..Verification::default() };
        assert_eq!(sum.how(), Proof::Sample);
    }

    #[test]
    fn serialised_verification_contains_its_level() {
        let all = Verification { writes: 2, records: 2, read_back: 2, ..Verification::default() };
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(
            text,
            r#"{"how":"read-back-all","answers":0,"writes":2,"records":2,"counted":0,"read_back":2}"#
        );
        assert_eq!(serde_json::from_str::<Verification>(&text).unwrap(), all);
    }
}
