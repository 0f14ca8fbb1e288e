//! Answers of real servers with bytes flipped, truncated, duplicated, inserted or reordered, in every phase.
//!
//! Survived: as [`super::tarpit`]. If the change affects a value, the trial fails; if it affects bytes without meaning,
//! the run may succeed.

use crate::case::{Case, Outcome};
use crate::context::Context;
use crate::families::hostile::{deadline, judge, meet};
use crate::random::Random;
use crate::relay::hostile::How;
use crate::server::ENGINES;

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let case = |engine| {
        Case::single("fuzz", "bytes", engine, move |context, seed| attack(context, engine, seed)).waiting()
    };
    ENGINES.into_iter().map(case).collect()
}

fn attack(context: &Context, engine: &str, seed: u64) -> Result<Outcome, String> {
    let server = context.waiting_server(engine)?;
    let mut random = Random::new(seed);
    let (deadline, how) = (deadline(&mut random), How::Mutated(random.number()));
    Ok(judge(&meet(context, server, &mut random, deadline, how)?))
}
