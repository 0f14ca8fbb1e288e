//! What a run was asked to do: its spec, its rounds and blocks, and what they sample.

use crate::axis::AxisValue;
use crate::custom::CustomWorkload;
use crate::defaults::is_default;
use crate::durability::DurabilityClass;
use crate::fleet::FleetSpec;
use crate::load::Arrivals;
use crate::question::Question;
use crate::target::{SETUP, TargetUrl, UP, is_throwaway, without_passwords};
use crate::threads::ClientThreads;
use crate::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Duration;

/// What the user requested; enough to repeat the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// The experiment's name.
    pub experiment: String,
    /// The target URLs as given, without passwords.
    pub targets: Vec<String>,
    /// The values of every axis.
    pub axes: BTreeMap<String, Vec<AxisValue>>,
    /// The operations measured.
    pub operations: Vec<String>,
    /// Requests per trial by operation, over all clients.
    pub requests: BTreeMap<String, u64>,
    /// The time limit of a trial's measured phase, in nanoseconds; `None`: only `requests` end it.
    pub duration_ns: Option<u64>,
    /// Whether `duration_ns` was derived from the run's budget.
    pub budget_ns: Option<u64>,
    /// The number of rounds over all cells.
    pub rounds: u32,
    /// The seed of data, order and random inputs.
    pub seed: u64,
    /// Records in the store; `None`: the experiment's default.
    pub records: Option<u64>,
    /// The distribution of arrivals in an open loop; `None`: evenly, or a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// The limit for the 99th percentile of response times, in nanoseconds: results pass or fail, and a rate search meets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo_ns: Option<u64>,
    /// The time limit of connecting, and of each reply, in nanoseconds; `None`, and not written: 30 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ns: Option<u64>,
    /// The durability class that was set on every target; `None`, and not written: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<DurabilityClass>,
    /// Whether the run may fill the memory of servers that then evict values of others.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allow_eviction: bool,
    /// The cache in front of every target, without its password; `None`, and not written: no cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// The second server that `--remote` names, without its password; `None`, and not written: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// The schema and data that throwaway servers were given; `None`, and not written: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// The files with which single throwaway servers were loaded (`up:postgres?setup=FILE`), in the order of the targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target_setups: Vec<Setup>,
    /// The custom workload; `None`, and not written: a built-in experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomWorkload>,
    /// The rule for rounds after `rounds`; `None`, and not written: no more rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// The slice length in nanoseconds if trials are interleaved; `None`, and not written: separate trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// The number of restarts of throwaway servers, between blocks of rounds; 0, and not written: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restarts: u32,
    /// Whether each block has a round of continuous trials if the others are interleaved, and rounds that are added later
    /// are further blocks. `false`, and not written, in runs of earlier versions: only the first block has such a round.
    #[serde(default, skip_serializing_if = "is_default")]
    pub full_blocks: bool,
    /// The distance between rounds with A/A controls, in compared rounds; `None`, and not written: every round has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_distance: Option<u32>,
    /// The threads of a trial's clients; `None`, and not written: as [`ClientThreads::shared`] decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<ClientThreads>,
    /// The machines that run the clients; `None`, and not written: this program runs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetSpec>,
    /// What is compared; `None` in runs of earlier versions: targets and all axes, each at the others' first values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
}

/// The schema and data of throwaway servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The file, or `copy:` and the URL of a database without its password.
    pub from: String,
    /// A digest of the file, by which a repetition knows whether it is still the same; `None` for a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl Setup {
    /// What a user gave: a file, whose digest is made, or `copy:` and a URL.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) if the file cannot be read.
    pub fn of(given: &str) -> Result<Self> {
        let from = without_passwords(std::iter::once(given.to_owned())).concat();
        if given.starts_with("copy:") {
            return Ok(Self { from, digest: None });
        }
        let digest = File::open(given).and_then(|file| digest(BufReader::new(file))).map_err(|error| {
            Error::of_cause(ErrorKind::Usage, format_args!("--setup: {from} cannot be read"), error)
                .hint("name a file of SQL, a dump of pg_dump or mysqldump, or copy:URL")
        })?;
        Ok(Self { from: given.to_owned(), digest: Some(digest) })
    }

    /// The files that the URLs of targets name.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) if one cannot be read, or is no file.
    pub fn of_targets(urls: &[String]) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for text in urls {
            let url = TargetUrl::parse(text)?;
            let Some(file) = url.option(SETUP).filter(|_| url.scheme == UP) else { continue };
            if file.starts_with("copy:") {
                return Err(Error::usage(format!("{SETUP}= in a target takes a file of SQL, or a dump"))
                    .hint("--setup copy:URL copies a database into all throwaway servers"));
            }
            let setup = Self::of(file).map_err(|error| error.context(&url))?;
            if !all.contains(&setup) {
                all.push(setup);
            }
        }
        Ok(all)
    }

    /// Checks that a repetition would load the same.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) if the file has another content, or is gone.
    pub fn check(&self) -> Result<()> {
        if self.digest.is_some() && Self::of(&self.from)? != *self {
            return Err(Error::usage(format!(
                "{} has another content than when the run was made",
                self.from
            ))
            .hint("start a new run"));
        }
        Ok(())
    }
}

/// The length and 64 bits of FNV-1a, which tell other content by accident, not by design.
fn digest(mut content: impl BufRead) -> std::io::Result<String> {
    let (mut length, mut hash) = (0, 0xcbf2_9ce4_8422_2325_u64);
    loop {
        let part = content.fill_buf()?;
        if part.is_empty() {
            return Ok(format!("{length}-{hash:016x}"));
        }
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        hash = part.iter().fold(hash, mix);
        let read = part.len();
        length += read;
        content.consume(read);
    }
}

/// What a run samples, and so what its verdicts claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampled {
    /// These servers as they ran: the samples are rounds. Another start may be faster or slower.
    #[default]
    TheseServers,
    /// Any start of these servers: the samples are blocks of rounds, between which throwaway servers were restarted.
    AnyStart,
}

/// The smallest number of blocks that say something of any start.
pub const MIN_BLOCKS: u32 = 4;

/// The minimum time of a trial, unless the user sets another. A shorter trial does not warm up in a tenth of its
/// time, and counters with a resolution of 10 ms cannot show disturbances.
pub const MIN_TRIAL: Duration = Duration::from_millis(150);

/// The minimum number of rounds for interleaving: the first round consists of continuous trials, and an interval needs
/// two more.
pub const MIN_INTERLEAVED_ROUNDS: u32 = 3;

/// The approximate number of rounds with A/A controls in a run of many rounds.
const CONTROL_ROUNDS: u32 = 3;

/// The minimum number of compared rounds per block, if servers are restarted between blocks.
pub const MIN_BLOCK: u32 = 2;

/// The default margin: differences below 5 % do not matter.
pub const DEFAULT_MARGIN: f64 = 0.05;

/// When to stop adding rounds: when all comparisons are conclusive, or at a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// The margin: a comparison is also conclusive if its whole interval lies within this relative difference; 0.05
    /// is 5 %.
    pub margin: f64,
    /// The maximum number of rounds.
    pub max_rounds: u32,
    /// The time limit of the run in nanoseconds. No round is added that would exceed it.
    pub budget_ns: Option<u64>,
}

impl RunSpec {
    /// One round of an experiment on these targets, ended by the number of requests, without any options. Use a
    /// struct update to add some. Axes have no values yet, and no operation is selected.
    pub fn new(experiment: impl Into<String>, targets: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            experiment: experiment.into(),
            targets: targets.into_iter().map(Into::into).collect(),
            rounds: 1,
            seed: 1,
            full_blocks: true,
            ..Self::default()
        }
    }

    /// The number of rounds of a block that are not compared: one of continuous trials, if the others are interleaved.
    fn uncompared(&self) -> u32 {
        u32::from(self.slice_ns.is_some())
    }

    /// Whether each trial of a round runs alone and without a pause. Such trials are the figures of their cells. If trials
    /// are interleaved, these are the first round of each block, and the others are compared.
    pub fn is_continuous(&self, round: u32) -> bool {
        let place = if self.full_blocks && self.restarts > 0 { round % self.block_length() } else { round };
        self.slice_ns.is_none() || place == 0
    }

    /// How many of the first `rounds` rounds are compared.
    fn compared_rounds(&self, rounds: u32) -> u32 {
        (0..rounds).filter(|round| !self.is_continuous(*round)).count() as u32
    }

    /// The distance between rounds with A/A controls for a run of so many rounds; `None`: every round has them. They check a run, and are
    /// in no interval. Where a run has more rounds than the check needs, its time is for what is compared.
    pub fn sparse_controls(&self) -> Option<u32> {
        Some(self.compared_rounds(self.rounds).div_ceil(CONTROL_ROUNDS)).filter(|distance| *distance > 1)
    }

    /// Whether A/A controls are measured in a round.
    pub fn has_controls(&self, round: u32) -> bool {
        self.control_distance.is_none_or(|distance| {
            !self.is_continuous(round) && self.compared_rounds(round).is_multiple_of(distance)
        })
    }

    /// The number of the first `rounds` rounds in which a cell is measured, or its A/A control.
    pub fn rounds_of(&self, is_control: bool, rounds: u32) -> u32 {
        match self.control_distance {
            Some(distance) if is_control => self.compared_rounds(rounds).div_ceil(distance),
            _ => rounds,
        }
    }

    /// Whether a target is a throwaway server, which Kurabe starts, restarts and removes.
    pub fn is_throwaway(&self, target: usize) -> bool {
        self.targets.get(target).is_some_and(|url| is_throwaway(url))
    }

    /// Whether all targets are: only then can verdicts be of any start.
    pub fn are_throwaway(&self) -> bool {
        self.targets.iter().all(|url| is_throwaway(url))
    }

    /// What its verdicts claim: see [`Sampled`].
    pub fn sampled(&self) -> Sampled {
        if self.blocks() >= MIN_BLOCKS && self.are_throwaway() {
            Sampled::AnyStart
        } else {
            Sampled::TheseServers
        }
    }

    /// The number of blocks: one more than there are restarts. Further rounds are further blocks.
    pub fn blocks(&self) -> u32 {
        self.restarts.saturating_add(1)
    }

    /// The number of rounds of a block.
    pub fn block_length(&self) -> u32 {
        (self.rounds / self.blocks()).max(1)
    }

    /// The block of a round, from 0. All blocks have the same number of compared rounds.
    pub fn block(&self, round: u32) -> u32 {
        if !self.full_blocks {
            let length = (self.rounds.saturating_sub(self.uncompared()) / self.blocks()).max(1);
            return (round.saturating_sub(self.uncompared()) / length).min(self.restarts);
        }
        let last = if self.restarts > 0 && self.until.is_some() { u32::MAX } else { self.restarts };
        (round / self.block_length()).min(last)
    }

    /// The smallest number of rounds, at least `least`, that can be divided into blocks of equal length.
    pub fn rounds_in_blocks(&self, least: u32) -> u32 {
        if self.restarts == 0 {
            return least;
        }
        let length = least.div_ceil(self.blocks()).max(MIN_BLOCK + self.uncompared());
        length.saturating_mul(self.blocks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(rounds: u32, restarts: u32, slice_ns: Option<u64>) -> RunSpec {
        RunSpec { rounds, slice_ns, restarts, ..RunSpec::new("x", ["null:"]) }
    }

    fn blocks(spec: &RunSpec) -> Vec<u32> {
        (0..spec.rounds).map(|round| spec.block(round)).collect()
    }

    #[test]
    fn blocks_have_equal_numbers_of_compared_rounds() {
        assert_eq!(blocks(&spec(4, 0, None)), [0, 0, 0, 0]);
        assert_eq!(blocks(&spec(6, 1, None)), [0, 0, 0, 1, 1, 1]);
        let interleaved = spec(6, 1, Some(1));
        assert_eq!(blocks(&interleaved), [0, 0, 0, 1, 1, 1]);
        let continuous = |spec: &RunSpec| -> Vec<u32> {
            (0..spec.rounds).filter(|round| spec.is_continuous(*round)).collect()
        };
        assert_eq!(continuous(&interleaved), [0, 3]);
        assert_eq!(continuous(&spec(6, 0, Some(1))), [0]);
        // As recorded by earlier versions.
        let earlier = RunSpec { full_blocks: false, ..spec(7, 2, Some(1)) };
        assert_eq!((blocks(&earlier), continuous(&earlier)), (vec![0, 0, 0, 1, 1, 2, 2], vec![0]));
    }

    #[test]
    fn further_rounds_are_further_blocks() {
        let until = Until { margin: 0.05, max_rounds: 100, budget_ns: None };
        let spec = RunSpec { until: Some(until), ..spec(12, 3, Some(1)) };
        assert_eq!([11, 12, 14, 15].map(|round| spec.block(round)), [3, 4, 4, 5]);
        assert!(spec.is_continuous(12) && !spec.is_continuous(13));
        assert_eq!(RunSpec { restarts: 0, ..spec }.block(99), 0);
    }

    #[test]
    fn controls_are_in_some_compared_rounds_of_many_and_in_every_round_of_few() {
        let sparse = |spec: RunSpec| RunSpec { control_distance: spec.sparse_controls(), ..spec };
        let controlled = |spec: &RunSpec| -> Vec<u32> {
            let rounds: Vec<u32> = (0..spec.rounds).filter(|round| spec.has_controls(*round)).collect();
            assert_eq!(rounds.len(), spec.rounds_of(true, spec.rounds) as usize);
            rounds
        };
        assert_eq!(controlled(&sparse(spec(12, 0, Some(1)))), [1, 5, 9]);
        assert_eq!(controlled(&sparse(spec(8, 0, Some(1)))), [1, 4, 7]);
        // Blocks of a continuous round and two others.
        assert_eq!(controlled(&sparse(spec(18, 5, Some(1)))), [1, 7, 13]);
        for all in [sparse(spec(4, 0, Some(1))), sparse(spec(30, 0, None)), spec(12, 0, Some(1))] {
            assert_eq!(controlled(&all), (0..all.rounds).collect::<Vec<_>>());
        }
        // Rounds that are given up later move no control.
        let fewer = RunSpec { rounds: 8, ..sparse(spec(12, 0, Some(1))) };
        assert_eq!(controlled(&fewer), [1, 5]);
    }

    #[test]
    fn rounds_are_rounded_to_full_blocks() {
        for slice_ns in [None, Some(1)] {
            for restarts in 1..6 {
                for least in 0..20 {
                    let mut spec = spec(1, restarts, slice_ns);
                    spec.rounds = spec.rounds_in_blocks(least);
                    let compared = (0..spec.rounds).filter(|r| slice_ns.is_none() || !spec.is_continuous(*r));
                    let found: Vec<u32> = compared.map(|round| spec.block(round)).collect();
                    let lengths: Vec<usize> = found.chunk_by(|a, b| a == b).map(<[u32]>::len).collect();
                    assert!(spec.rounds >= least && lengths.len() as u32 == restarts + 1, "{found:?}");
                    assert!(
                        lengths[0] >= 2 && lengths.iter().all(|length| *length == lengths[0]),
                        "{found:?}"
                    );
                    assert_eq!(spec.rounds_in_blocks(spec.rounds), spec.rounds);
                }
            }
        }
    }
}
