//! The values of a client's variables, which it draws for each transaction.

use super::datum::Datum;
use super::declared::{Declared, Source, Step};
use super::evaluate::Scope;
use super::expression::Expr;
use super::rows::template;
use super::slot::Slot;
use super::variables::Constant;
use crate::content::{Content, Kind};
use crate::prelude::*;

pub(super) struct Drawn {
    client: Client,
    pub(super) rng: Rng,
    pub(super) slots: Vec<Slot>,
    contents: Vec<(usize, Content)>,
    scratch: Vec<u8>,
    /// The number of draws of each variable in sequence, by its slot.
    sequences: Vec<i64>,
}

/// The source of random texts, by length.
fn texts(declared: &Declared, seed: u64) -> Vec<(usize, Content)> {
    let mut contents: Vec<(usize, Content)> = Vec::new();
    for step in declared.programs.iter().flat_map(|program| &program.steps) {
        let Step::Set { source: Source::Text(lengths, _), .. } = step else { continue };
        for length in lengths {
            if !contents.iter().any(|(known, _)| known == length) {
                contents.push((*length, Content::new(Kind::Text, mix(seed, *length as u64), *length)));
            }
        }
    }
    contents
}

impl Drawn {
    /// The variables of a client with their first values.
    pub(super) fn new(declared: &Declared, client: Client, slots: Vec<Slot>) -> Self {
        let (rng, sequences) = (Rng::new(client.seed), vec![0; slots.len()]);
        Self { client, rng, slots, contents: texts(declared, client.seed), scratch: Vec::new(), sequences }
    }

    /// Sets a variable.
    pub(super) fn set(&mut self, slot: usize, source: &Source, place: &str) -> Result<()> {
        match source {
            Source::Expression(expr) => {
                let datum = self.value(expr, place)?;
                self.slots[slot].set(datum);
            }
            Source::List(values, sums) => {
                let pick = self.pick(values, sums);
                self.slots[slot].set_constant(pick.unwrap_or(&Constant::Null));
            }
            Source::Text(lengths, sums) => {
                // Of one length nothing is drawn, so that texts of a seed stay as they are.
                let length = if lengths.len() == 1 { lengths.first() } else { self.pick(lengths, sums) };
                let key = self.rng.next_u64();
                if let Some((_, content)) = self.contents.iter().find(|(known, _)| Some(known) == length) {
                    content.write(key, 0, &mut self.scratch);
                    self.slots[slot].set_value(Value::Bytes(&self.scratch))?;
                }
            }
            Source::Template(pattern) => {
                template(pattern, &mut self.rng, &mut self.scratch);
                self.slots[slot].set_value(Value::Bytes(&self.scratch))?;
            }
            Source::Sequence(first) => {
                let number = self.sequences[slot] * self.client.count as i64 + self.client.index as i64;
                self.sequences[slot] += 1;
                self.slots[slot].set(Datum::Int(first.wrapping_add(number)));
            }
        }
        Ok(())
    }

    /// One of these, by the sums of their weights; without any, all are equally likely.
    fn pick<'a, T>(&mut self, all: &'a [T], sums: &[u64]) -> Option<&'a T> {
        let draw = self.rng.below(sums.last().copied().unwrap_or(all.len() as u64));
        all.get(if sums.is_empty() { draw as usize } else { sums.partition_point(|sum| *sum <= draw) })
    }

    pub(super) fn value(&mut self, expr: &Expr, place: &str) -> Result<Datum> {
        let slots = &self.slots;
        let values = |slot: usize| slots.get(slot).map_or(Datum::Null, Slot::datum);
        Scope { values: &values, rng: &mut self.rng }.value(expr).map_err(|error| error.context(place))
    }
}
