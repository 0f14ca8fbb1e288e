//! The search: few rounds for all proposals, more for the promising, the best on top of the best, and a confirmation on servers
//! that chose nothing.
//!
//! It knows neither servers nor clocks: [`Trials`] measures, so that a simulation can tell how often the whole of it errs.

use crate::decide::{Decided, Outcome, decide};
use kurabe_core::{Error, Result};
use kurabe_stats::{PairedRatio, mean};

/// The rounds of the first look at a proposal, and of the later ones.
const FEW: u32 = 2;
const MORE: u32 = 4;
/// Proposals that are looked at again, and those that are combined.
const AGAIN: usize = 6;
const COMBINED: usize = 4;
/// The smallest gain that is pursued, as a logarithm: 2 %.
const LEAST: f64 = 0.02;

/// Proposals that are made together, by their places.
pub type Set = Vec<usize>;

/// One replay of the traffic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lap {
    /// The mean time of the requests that count, in nanoseconds: those of the search are others than those of the confirmation.
    pub judged_ns: f64,
    /// The mean time of all requests, in nanoseconds.
    pub mean_ns: f64,
    /// The mean times of statements, in nanoseconds, as far as they were reported.
    pub statements: Vec<Option<f64>>,
    /// The share of the reads that a cache answered, from 0 to 1; `None` without one.
    pub hits: Option<f64>,
}

/// Why a set was not measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server refused it, it took too long, or the server failed.
    Refused(String),
    /// An answer was another one.
    Answer(String),
}

/// The replays of a round each; `None`: one that failed.
pub type Laps = Vec<Option<Lap>>;

/// What was measured, by round.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The unchanged server.
    pub base: Laps,
    /// A second instance of it.
    pub again: Laps,
    pub sets: Vec<Result<Laps, Fault>>,
}

impl Measured {
    /// The logarithm of how many times as fast these replays are as those of the unchanged server.
    fn gains(&self, laps: &[Option<Lap>]) -> Vec<f64> {
        gains(&self.base, laps)
    }
}

fn gains(base: &[Option<Lap>], laps: &[Option<Lap>]) -> Vec<f64> {
    let pairs = base.iter().zip(laps).filter_map(|(base, lap)| base.as_ref().zip(lap.as_ref()));
    pairs.map(|(base, lap)| (base.judged_ns / lap.judged_ns).ln()).collect()
}

/// What part of the search a measurement is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    All,
    Promising,
    Combined,
    Confirm,
}

/// Measures sets of proposals.
pub trait Trials {
    /// The rounds for which there is time, if so many sets are measured beside the unchanged server.
    fn rounds(&self, phase: Phase, sets: usize) -> u32;

    /// How many sets are measured beside each other.
    fn beside(&self) -> usize;

    /// Whether two proposals exclude each other.
    fn conflict(&self, one: usize, other: usize) -> bool;

    /// Measures sets on servers of their own, beside the unchanged server and a second instance of that.
    ///
    /// # Errors
    /// If the unchanged server cannot be measured, or the user stops it. What is wrong with a set is in its place.
    fn measure(&mut self, phase: Phase, sets: &[Set], rounds: u32) -> Result<Measured>;
}

/// How far a proposal came.
#[derive(Clone, Debug, PartialEq)]
pub enum ProposalState {
    /// There was no time for it.
    NotTried,
    Faulty(Fault),
    /// It was tried, and not chosen for the confirmation; the factor is that of the trial.
    Tried(f64),
    /// It was chosen for the confirmation.
    Chosen,
}

/// A set that was confirmed, or not.
#[derive(Clone, Debug)]
pub struct Confirmed {
    pub set: Set,
    /// Its place among the sets of the confirmation.
    pub place: usize,
    /// How many times as fast; the interval holds with those of the others.
    pub ratio: PairedRatio,
    pub outcome: Outcome,
    pub laps: Laps,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// Of each proposal.
    pub states: Vec<ProposalState>,
    /// The chosen proposals alone and, if there are several, together, as the last.
    pub confirmed: Vec<Confirmed>,
    /// The factor by which the unchanged server may differ from itself; `None` before the confirmation.
    pub band: Option<f64>,
    /// The replays of the unchanged server in the confirmation.
    pub base: Laps,
    /// Why it ended early.
    pub ended: Option<Error>,
}

/// Searches among so many proposals. What is known so far is returned in any case.
pub fn search(trials: &mut dyn Trials, proposals: usize) -> Found {
    let mut found = Found { states: vec![ProposalState::NotTried; proposals], ..Found::default() };
    found.ended = found.search(trials).err();
    found
}

impl Found {
    fn search(&mut self, trials: &mut dyn Trials) -> Result<()> {
        let all: Vec<usize> = (0..self.states.len()).collect();
        let mut promising = self.look(trials, Phase::All, &all, FEW)?;
        promising.truncate(AGAIN);
        if promising.len() > 1 {
            promising = self.look(trials, Phase::Promising, &promising, MORE)?;
        }
        promising.truncate(COMBINED);
        let chosen = combine(trials, &promising)?;
        if chosen.is_empty() {
            return Ok(());
        }
        self.confirm(trials, &chosen)
    }

    /// Measures proposals alone. Returns those that are faster, the best first.
    fn look(
        &mut self,
        trials: &mut dyn Trials,
        phase: Phase,
        all: &[usize],
        rounds: u32,
    ) -> Result<Vec<usize>> {
        let mut faster: Vec<(f64, usize)> = Vec::new();
        for part in all.chunks(trials.beside().max(1)) {
            let rounds = trials.rounds(phase, part.len()).min(rounds);
            if rounds == 0 {
                // Those that were not looked at again are as good as they were.
                let known = part.iter().filter_map(|one| match self.states[*one] {
                    ProposalState::Tried(factor) => Some((factor.ln(), *one)),
                    _ => None,
                });
                faster.extend(known);
                continue;
            }
            let sets: Vec<Set> = part.iter().map(|one| vec![*one]).collect();
            let measured = trials.measure(phase, &sets, rounds)?;
            let least = LEAST.max(mean(&measured.gains(&measured.again)).unwrap_or(0.0).abs());
            for (one, laps) in part.iter().zip(&measured.sets) {
                self.states[*one] = match laps {
                    Err(fault) => ProposalState::Faulty(fault.clone()),
                    Ok(laps) => {
                        let gain = mean(&measured.gains(laps)).unwrap_or(0.0);
                        faster.extend((gain > least).then_some((gain, *one)));
                        ProposalState::Tried(gain.exp())
                    }
                };
            }
        }
        faster.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        Ok(faster.into_iter().map(|(_, one)| one).collect())
    }

    /// Measures what was chosen on servers that chose nothing.
    fn confirm(&mut self, trials: &mut dyn Trials, chosen: &[usize]) -> Result<()> {
        for one in chosen {
            self.states[*one] = ProposalState::Chosen;
        }
        let mut sets: Vec<Set> = chosen.iter().map(|one| vec![*one]).collect();
        if chosen.len() > 1 {
            sets.push(chosen.to_vec());
        }
        let rounds = trials.rounds(Phase::Confirm, sets.len());
        let measured = trials.measure(Phase::Confirm, &sets, rounds)?;
        let logs =
            |laps: &Result<Laps, Fault>| laps.as_ref().map(|laps| measured.gains(laps)).unwrap_or_default();
        let Decided { band, sets: decided } =
            decide(&measured.gains(&measured.again), &measured.sets.iter().map(logs).collect::<Vec<_>>());
        self.band = Some(band);
        for (place, ((set, decided), laps)) in sets.into_iter().zip(decided).zip(measured.sets).enumerate() {
            match (laps, decided, set.as_slice()) {
                (Ok(laps), Some((ratio, outcome)), _) => {
                    self.confirmed.push(Confirmed { set, place, ratio, outcome, laps });
                }
                (Err(fault), _, [one]) => self.states[*one] = ProposalState::Faulty(fault),
                _ => {}
            }
        }
        self.base = measured.base;
        Ok(())
    }
}

/// Adds to the best proposal those that are faster beside it.
fn combine(trials: &mut dyn Trials, promising: &[usize]) -> Result<Set> {
    let Some((best, rest)) = promising.split_first() else { return Ok(Vec::new()) };
    let (mut chosen, mut rest) = (vec![*best], rest.to_vec());
    loop {
        rest.retain(|one| chosen.iter().all(|known| !trials.conflict(*known, *one)));
        let rounds = trials.rounds(Phase::Combined, rest.len() + 1).min(MORE);
        if rest.is_empty() || rounds == 0 {
            return Ok(chosen);
        }
        let with = |one: &usize| [chosen.as_slice(), &[*one]].concat();
        let sets: Vec<Set> = std::iter::once(chosen.clone()).chain(rest.iter().map(with)).collect();
        let measured = trials.measure(Phase::Combined, &sets, rounds)?;
        let least = LEAST.max(mean(&measured.gains(&measured.again)).unwrap_or(0.0).abs());
        let Some((Ok(before), more)) = measured.sets.split_first() else { return Ok(chosen) };
        let gain = |laps: &Result<Laps, Fault>| {
            laps.as_ref().ok().and_then(|laps| mean(&gains(before, laps))).filter(|gain| *gain > least)
        };
        let faster: Vec<(usize, f64)> =
            rest.iter().zip(more).filter_map(|(one, laps)| Some((*one, gain(laps)?))).collect();
        let Some((best, _)) = faster.iter().max_by(|one, other| one.1.total_cmp(&other.1)) else {
            return Ok(chosen);
        };
        chosen.push(*best);
        rest = faster.iter().map(|(one, _)| *one).filter(|one| one != best).collect();
    }
}
