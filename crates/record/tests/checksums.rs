//! Every change of a run file is detected, and files of newer versions are not reported as damaged.

use crate::common::{end, header, resumption, trials};
use kurabe_core::ErrorKind;
use kurabe_core::run::{Outcome, Run, TrialRecord};
use kurabe_record::{RUN_FILE, Recorded, RunPath, Store, read};
use kurabe_stats::Rng;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Writes a run file without Kurabe's writer.
fn foreign(dir: &Path, bytes: &[u8]) -> RunPath {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join(RUN_FILE), bytes).unwrap();
    RunPath::in_folder(dir)
}

/// The bytes of a run that Kurabe recorded.
fn recorded(trials: &[TrialRecord], resumed: bool, ended: bool) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Store::open(dir.path()).unwrap().create(&header("a", 100)).unwrap();
    for (n, trial) in trials.iter().enumerate() {
        if resumed && n == trials.len() / 2 {
            writer.end(&end(false)).unwrap();
            writer.resumed(&resumption(n as u64)).unwrap();
        }
        writer.trial(trial).unwrap();
    }
    if ended {
        writer.end(&end(true)).unwrap();
    }
    fs::read(&writer.path().file).unwrap()
}

/// Distinct trials as runs make them.
fn random_trials(rng: &mut Rng) -> Vec<TrialRecord> {
    let mut trials = trials(1 + rng.below(5) as u32);
    for trial in &mut trials {
        trial.at_ms = rng.below(1_000_000);
        if let Outcome::Measured(measured) = &mut trial.outcome {
            measured.overhead_ns = rng.below(1 << 40);
            measured.verify_ns_per_op = rng.unit_f64() * 1e3;
            measured.service.record(1_000 + rng.below(1 << 30));
        }
    }
    trials
}

/// Random runs and their bytes, made once, because making them waits for the disk.
fn runs() -> &'static [Vec<u8>] {
    static RUNS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let mut rng = Rng::new(14);
        (0..12).map(|n| recorded(&random_trials(&mut rng), n % 2 == 0, n % 3 != 0)).collect()
    })
}

fn found(dir: &Path, bytes: &[u8]) -> kurabe_core::Result<Recorded> {
    read(&foreign(dir, bytes))
}

/// Returns what was accepted without an error, if so.
fn accepted_in_silence(dir: &Path, original: &[u8], changed: &[u8]) -> Option<Run> {
    if original == changed {
        return None;
    }
    match found(dir, changed) {
        Ok(Recorded { torn: None, run, .. }) => Some(run),
        Ok(Recorded { run, .. }) => {
            let all = found(dir, original).unwrap().run;
            assert!(all.trials.starts_with(&run.trials), "a torn line changed the lines before it");
            None
        }
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Unsupported), "{error}");
            assert!(error.to_string().contains(RUN_FILE), "{error}");
            None
        }
    }
}

/// CRC-32 bit by bit, from its definition.
fn crc_32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1)))
    })
}

/// A run file of these lines, with checksums as `docs/run-file.md` defines them.
fn closed(lines: &[Value]) -> Vec<u8> {
    let (mut file, mut before) = (Vec::new(), String::new());
    for (n, line) in (1..).zip(lines) {
        let mut line = line.clone();
        line["line"] = json!(n);
        line.as_object_mut().unwrap().remove("crc");
        let text = line.to_string();
        let content = format!("{},\"crc\":\"", &text[..text.len() - 1]);
        before = format!("{:08x}", crc_32((before + &content).as_bytes()));
        file.extend_from_slice(format!("{content}{before}\"}}\n").as_bytes());
    }
    file
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

#[test]
fn flipped_bit_in_any_byte_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    // A failed trial is short, so that the test can change each byte of the file.
    let failed = trials(4).remove(3);
    let original = recorded(&[failed.clone(), failed], true, true);
    let mut changed = original.clone();
    for byte in 0..original.len() {
        changed[byte] ^= 1 << (byte * 3 % 8);
        let accepted = accepted_in_silence(dir.path(), &original, &changed);
        assert!(accepted.is_none(), "bit {} of byte {byte}", byte * 3 % 8);
        changed[byte] = original[byte];
    }
}

#[test]
fn duplicated_removed_or_swapped_line_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    for original in runs() {
        let all = lines(original);
        for a in 0..all.len() {
            let mut repeated = all.clone();
            repeated.insert(a, all[a]);
            let error = found(dir.path(), &repeated.concat()).unwrap_err().to_string();
            assert!(error.contains(&format!("line {}: its number is {}", a + 2, a + 1)), "{error}");
            if a + 1 < all.len() {
                let mut removed = all.clone();
                removed.remove(a);
                assert!(accepted_in_silence(dir.path(), original, &removed.concat()).is_none(), "{a}");
            }
            for b in 0..a {
                let mut swapped = all.clone();
                swapped.swap(a, b);
                assert!(accepted_in_silence(dir.path(), original, &swapped.concat()).is_none(), "{a} {b}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn random_changes_of_random_run_are_detected(
        run in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        bit in 0..8_u32,
        digit in prop::option::of(b'0'..=b'9'),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let original = run.get(runs());
        let mut changed = original.clone();
        if let Some(digit) = digit {
            let digits: Vec<usize> = (0..changed.len()).filter(|n| changed[*n].is_ascii_digit()).collect();
            changed[*place.get(&digits)] = digit;
        } else {
            changed[place.index(original.len())] ^= 1 << bit;
        }
        let accepted = accepted_in_silence(dir.path(), original, &changed);
        prop_assert!(accepted.is_none());
    }
}

mod fuzz {
    use super::*;

    /// A run in which bytes of the lines' content were changed, closed with the checksums of the changed lines. A change
    /// is three bytes: where, in two bytes and as a part of the whole, and the new one.
    fn changed(original: &[u8], changes: &[u8]) -> Vec<u8> {
        const BEHIND: usize = "xxxxxxxx\"}\n".len();
        let mut bytes = original.to_vec();
        for change in changes.chunks_exact(3) {
            let at = (usize::from(u16::from_be_bytes([change[0], change[1]])) * bytes.len()) >> 16;
            if bytes[at] != b'\n' && change[2] != b'\n' {
                bytes[at] = change[2];
            }
        }
        let mut before = String::new();
        let mut file = Vec::new();
        for line in lines(&bytes) {
            let content = &line[..line.len().saturating_sub(BEHIND)];
            before = format!("{:08x}", crc_32(&[before.as_bytes(), content].concat()));
            file.extend_from_slice(&[content, before.as_bytes(), b"\"}\n"].concat());
        }
        file
    }

    /// The file is the input itself, or a run with changes and checksums that fit: its number, then the changes.
    #[test]
    fn any_file_is_a_run_or_damage() {
        let dir = tempfile::tempdir().unwrap();
        bolero::check!(name = "run-file").for_each(|input: &[u8]| {
            let file = match input.split_first() {
                Some((number, changes)) if *number >= 128 => {
                    changed(&runs()[usize::from(*number) % runs().len()], changes)
                }
                _ => input.to_vec(),
            };
            if let Err(error) = found(dir.path(), &file) {
                assert!(matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Unsupported), "{error}");
            }
        });
    }
}

#[test]
fn line_of_other_run_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    for (first, second) in runs().iter().flat_map(|a| runs().iter().map(move |b| (lines(a), lines(b)))) {
        for from in 1..first.len().min(second.len()) {
            if first[..from] != second[..from] {
                let mixed = [&first[..from], &second[from..]].concat().concat();
                assert!(
                    accepted_in_silence(dir.path(), &first.concat(), &mixed).is_none(),
                    "from line {from}"
                );
            }
        }
    }
}

#[test]
fn independent_writer_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    for original in runs() {
        let values: Vec<Value> =
            lines(original).iter().map(|line| serde_json::from_slice(line).unwrap()).collect();
        let theirs = found(dir.path(), &closed(&values)).unwrap();
        let ours = found(dir.path(), original).unwrap();
        assert_eq!((theirs.run, theirs.torn), (ours.run, None));
    }
}

#[test]
fn newer_version_is_not_reported_as_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let original: Vec<Value> =
        lines(&runs()[1]).iter().map(|line| serde_json::from_slice(line).unwrap()).collect();
    let refused = |lines: &[Value]| {
        let error = found(dir.path(), &closed(lines)).unwrap_err();
        (error.kind(), error.to_string())
    };
    let with = |name: &str, value: Value| {
        let mut lines = original.clone();
        lines[0][name] = value;
        lines
    };
    let mut requires = with("requires", json!(["shards", "tides"]));
    requires[0]["kurabe"] = json!("0.9.0");
    let (kind, text) = refused(&requires);
    assert_eq!(kind, ErrorKind::Unsupported);
    assert!(text.contains("made by a newer version of kurabe 0.9.0 (needs: shards, tides)"), "{text}");
    let (kind, text) = refused(&with("kurabe-run", json!(4)));
    assert!(kind == ErrorKind::Unsupported && text.contains("(needs: format 4)"), "{text}");
    // A line of an unknown kind: valid in a newer minor version, invalid in ours.
    let mut later = with("minor", json!(7));
    later.push(json!({"line": 0, "weather": "fine"}));
    let (kind, text) = refused(&later);
    assert!(
        kind == ErrorKind::Unsupported && text.contains("needs: format 3.7; unknown field `weather`"),
        "{text}"
    );
    later[0]["minor"] = json!(0);
    assert_eq!(refused(&later).0, ErrorKind::Damaged);
    // Optional members are.
    assert!(found(dir.path(), &closed(&with("minor", json!(7)))).is_ok());
    assert!(found(dir.path(), &closed(&with("mood", json!("good")))).is_ok());
    // A format before.
    let (kind, text) = refused(&with("kurabe-run", json!(1)));
    assert_eq!(kind, ErrorKind::Unsupported);
    assert!(text.contains("an older version of kurabe 0.1.0 (format 1; this one reads format 3)"), "{text}");
}

#[test]
fn incomplete_last_line_is_torn_and_changed_last_line_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let original = recorded(&trials(3), false, false);
    let last = original.len() - lines(&original)[3].len();
    // The file was extended for the line, whose end was never written.
    let mut zeros = original.clone();
    let middle = last + (original.len() - last) / 2;
    zeros[middle..].fill(0);
    *zeros.last_mut().unwrap() = b'\n';
    let path = foreign(&dir.path().join("zeros"), &zeros);
    let torn = read(&path).unwrap();
    assert_eq!(torn.run.trials, trials(2));
    assert!(torn.torn.unwrap().contains("line 4"));
    let mut resumed = Store::open(dir.path()).unwrap().resume(&path).unwrap();
    resumed.writer.trial(&trials(3)[2]).unwrap();
    drop(resumed);
    assert_eq!(fs::read(&path.file).unwrap(), original);

    let mut text = String::from_utf8(original).unwrap();
    let at = text[last..].find("\"at_ms\":200").unwrap() + last;
    text.replace_range(at..at + 11, "\"at_ms\":300");
    let error = found(dir.path(), text.as_bytes()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.to_string().contains("line 4: its checksum does not match"), "{error}");
    assert!(error.to_string().contains("the 3 lines before it are intact (2 trials)"), "{error}");
}
