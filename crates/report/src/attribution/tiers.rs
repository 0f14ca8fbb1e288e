//! Which of several tiers used the server side's CPU.

use super::bottleneck::Bottleneck;
use super::facts::Facts;
use crate::messages::Language;
use crate::wording::{listed, say};
use kurabe_core::observation::TierUse;

/// The share of the server side's CPU above which it counts as one tier's.
const MAX: f64 = 0.6;

/// The addition to the evidence, as a clause; empty for a single tier.
pub(super) fn clause(facts: &Facts, bottleneck: Bottleneck, language: Language) -> String {
    if facts.tiers.is_empty() {
        return String::new();
    }
    let tiers: Vec<String> = facts
        .tiers
        .iter()
        .map(|(name, cpu)| match cpu {
            Some(cpu) => format!("{name} {cpu:.2} CPUs"),
            None => say!(language, "{name} not observed", "{name} は観測なし"),
        })
        .collect();
    let full = if bottleneck == Bottleneck::ServerCpu { fullest(facts) } else { None };
    let full = full.map_or_else(String::new, |tier| {
        say!(language, "; the {tier} is the bottleneck", "。ボトルネックは {tier}")
    });
    let tiers = listed(&tiers, language);
    say!(language, "; behind the client, {tiers}{full}", "。クライアントの背後は {tiers}{full}")
}

/// The tier with most of the server side's CPU, if there is one and all were observed.
fn fullest(facts: &Facts) -> Option<&'static str> {
    let mut sums = [(TierUse::APPLICATION, 0.0), (TierUse::DATABASE, 0.0), (TierUse::REMOTE, 0.0)];
    for (name, cpu) in &facts.tiers {
        // Applications may be numbered.
        let kind = sums.iter().position(|(known, _)| known == name).unwrap_or(0);
        sums[kind].1 += (*cpu)?;
    }
    let whole: f64 = sums.iter().map(|(_, cpu)| cpu).sum();
    sums.into_iter().find(|(_, cpu)| *cpu >= MAX * whole).map(|(name, _)| name)
}
