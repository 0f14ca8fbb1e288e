//! What an engine's licence says of publishing its figures.

use crate::summary::TargetSummary;
use crate::words::Words;

/// One sentence for each target whose licence restricts publishing results; none for the others.
pub(crate) fn sentences(targets: &[TargetSummary], words: &Words) -> Vec<String> {
    targets
        .iter()
        .zip(&words.targets)
        .filter_map(|(target, name)| {
            let clause = target.publishing.as_ref()?;
            let version =
                if target.version.is_empty() { String::new() } else { format!(" {}", target.version) };
            Some(format!(
                "Publishing is restricted for {name}{version}: {} ({}; {}).",
                clause.says, clause.name, clause.source
            ))
        })
        .collect()
}
