//! Reads run files, as far as attacks need them.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// The run file in a folder of runs, if there is one.
pub fn find(runs: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(runs).ok()?.flatten();
    entries.map(|entry| entry.path().join("run.jsonl")).find(|file| file.exists())
}

/// A recorded trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    /// It has figures.
    Measured,
    /// It has none; the reason.
    Failed(String),
}

/// The trials of a run, in order, without other lines.
pub fn trials(runs: &Path) -> Vec<Trial> {
    let text = find(runs).and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    text.lines().filter_map(trial).collect()
}

fn trial(line: &str) -> Option<Trial> {
    let value = object(line)?;
    let outcome = &value.get("trial")?["outcome"];
    if let Some(failed) = outcome.get("failed") {
        return Some(Trial::Failed(failed["reason"].as_str().unwrap_or_default().to_owned()));
    }
    Some(Trial::Measured)
}

/// The trials that count although the program stood still for so many seconds in them, when `recorded` trials existed:
/// measured ones that lasted at least that long and were not replaced by a later one. At most two are interleaved.
/// Others may take as long on a busy machine.
pub fn stood_still(runs: &Path, seconds: u64, recorded: usize) -> Vec<usize> {
    let text = find(runs).and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    let trials: Vec<Value> =
        text.lines().filter_map(object).filter(|value| value.get("trial").is_some()).collect();
    let same = |a: &Value, b: &Value| {
        ["round", "cell", "operation"].iter().all(|name| a["trial"][name] == b["trial"][name])
    };
    let stood = |trial: &Value| {
        let elapsed = trial["trial"]["outcome"]["measured"]["elapsed_ns"].as_u64().unwrap_or(0);
        elapsed >= seconds * 1_000_000_000
    };
    let counts = |at: &usize| {
        let replaced = trials[at + 1..].iter().any(|later| same(later, &trials[*at]));
        let named = trials[*at].to_string().contains("\"disturbed\"");
        stood(&trials[*at]) && !replaced && !named
    };
    (recorded..trials.len().min(recorded + 2)).filter(counts).collect()
}

fn object(line: &str) -> Option<Value> {
    // A line may have a checksum around or after its object.
    serde_json::from_str(&line[line.find('{')?..=line.rfind('}')?]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lines: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("r")).unwrap();
        std::fs::write(folder.path().join("r/run.jsonl"), lines).unwrap();
        folder
    }

    #[test]
    fn trials_are_read_in_order_with_or_without_a_checksum() {
        let folder = run("{\"kurabe-run\":1}\n\
             {\"trial\":{\"outcome\":{\"measured\":{\"elapsed_ns\":5}}}}\n\
             crc 12 {\"trial\":{\"outcome\":{\"failed\":{\"reason\":\"why\"}}}} 34\n\
             {\"end\":{}}\n{\"trial\":{\"out");
        assert_eq!(trials(folder.path()), [Trial::Measured, Trial::Failed("why".to_owned())]);
    }

    #[test]
    fn long_trial_counts_as_stood_still_unless_replaced() {
        let line = |round: u32, seconds: u64| {
            format!(
                "{{\"trial\":{{\"round\":{round},\"cell\":0,\"operation\":\"read\",\"outcome\":{{\"measured\":{{\"elapsed_ns\":{}}}}}}}}}\n",
                seconds * 1_000_000_000
            )
        };
        let folder = run(&[line(0, 1), line(1, 4), line(1, 1), line(2, 5)].concat());
        assert_eq!(stood_still(folder.path(), 3, 0), [0; 0]);
        assert_eq!(stood_still(folder.path(), 3, 2), [3]);
        assert_eq!(stood_still(folder.path(), 3, 3), [3]);
    }
}
