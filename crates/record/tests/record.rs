//! A run file returns what was recorded, in any state of the file.

use crate::common::{end, header, resumption, trials};
use kurabe_core::ErrorKind;
use kurabe_core::name::FileName;
use kurabe_core::run::{Outcome, PublishingClause, Replanned, Run, RunHeader, TrialRecord};
use kurabe_record::{Entry, Follower, RUN_FILE, RunPath, RunState, Store, read};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn store() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("runs")).unwrap();
    (dir, store)
}

/// Records a run of this many trials, with or without an end, and returns its path.
fn recorded(store: &Store, name: &str, began: u64, count: u32, ended: bool) -> RunPath {
    let mut writer = store.create(&header(name, began)).unwrap();
    for trial in trials(count) {
        writer.trial(&trial).unwrap();
    }
    if ended {
        writer.end(&end(true)).unwrap();
    }
    writer.path().clone()
}

/// A run directory with these bytes.
fn foreign(dir: &Path, bytes: &[u8]) -> RunPath {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join(RUN_FILE), bytes).unwrap();
    RunPath::in_folder(dir)
}

#[test]
fn licence_clause_is_kept_and_older_files_without_one_are_read() {
    let (_dir, store) = store();
    let mut header = header("a", 100);
    let text = |text: &str| text.to_owned();
    header.targets[0].publishing =
        Some(PublishingClause { name: text("Licence, 7"), says: text("may not"), source: text("https://x") });
    let writer = store.create(&header).unwrap();
    assert_eq!(read(writer.path()).unwrap().run.header, header);
    // A file that was written before this member existed.
    let older = recorded(&store, "b", 100, 1, true);
    assert!(!fs::read_to_string(&older.file).unwrap().contains("publishing"));
    assert_eq!(read(&older).unwrap().run.header.targets[0].publishing, None);
}

/// `tests/releases` has a run file with every member of the format, as each release writes it.
#[test]
fn run_files_of_releases_are_read() {
    let (dir, store) = store();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/releases");
    if std::env::var_os("KURABE_BLESS").is_some() {
        let written = recorded(&store, "a", 100, 4, true);
        fs::copy(written.file, folder.join("0.1.0.jsonl")).unwrap();
    }
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let run = read(&foreign(dir.path(), &fs::read(&file).unwrap())).unwrap().run;
        assert_eq!((run.trials.len(), run.end), (4, Some(end(true))), "{}", file.display());
        assert!(
            run.trials.iter().any(|trial| matches!(&trial.outcome, Outcome::Measured(_))),
            "{}",
            file.display()
        );
    }
}

#[test]
fn follower_reads_what_was_appended_once() {
    let (_dir, store) = store();
    let mut writer = store.create(&header("a", 100)).unwrap();
    let path = writer.path().clone();
    let all = trials(40);
    writer.trial(&all[0]).unwrap();
    let mut follower = Follower::open(&path).unwrap();
    assert!(follower.is_written() && follower.run().trials == all[..1]);
    let length = || fs::metadata(&path.file).unwrap().len();
    for (nth, trial) in all.iter().enumerate().skip(1) {
        writer.trial(trial).unwrap();
        for _ in 0..3 {
            follower.look().unwrap();
        }
        assert_eq!((follower.bytes(), follower.trials()), (length(), nth + 1));
        if nth % 7 == 0 {
            follower.forget();
            assert!(follower.run().trials.is_empty());
        } else {
            assert_eq!(follower.run().trials.last(), Some(trial));
        }
    }
    writer.end(&end(true)).unwrap();
    drop(writer);
    follower.look().unwrap();
    assert!(!follower.is_written() && follower.run().end.is_some() && follower.trials() == 40);
    // A line that is being written is read when it is complete; one that was changed is damage.
    let bytes = fs::read(&path.file).unwrap();
    let starts: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    let torn = foreign(&store.dir().join("torn"), &bytes[..starts[1] + 10]);
    let mut follower = Follower::open(&torn).unwrap();
    assert_eq!(follower.trials(), 1);
    fs::write(&torn.file, &bytes[..starts[2]]).unwrap();
    follower.look().unwrap();
    assert_eq!((follower.trials(), follower.bytes()), (2, starts[2] as u64));
    let mut changed = bytes[..starts[3]].to_vec();
    changed[starts[2] + 30] ^= 1;
    fs::write(&torn.file, changed).unwrap();
    assert_eq!(follower.look().unwrap_err().kind(), ErrorKind::Damaged);
}

#[test]
fn run_is_found_by_its_exact_name_only() {
    let (_dir, store) = store();
    let path = recorded(&store, "abc", 100, 1, true);
    let found = |name: &str| store.named(&FileName::parse(name).unwrap());
    assert_eq!(found("abc"), Ok(path));
    fs::create_dir(store.dir().join("empty")).unwrap();
    for other in ["ab", "last", "empty"] {
        assert_eq!(found(other).unwrap_err().kind(), ErrorKind::NotFound, "{other}");
    }
}

#[test]
fn run_is_read_as_it_was_recorded() {
    let (_dir, store) = store();
    let path = recorded(&store, "a", 100, 5, true);
    let found = read(&path).unwrap();
    let wanted = Run { trials: trials(5), end: Some(end(true)), ..Run::new(header("a", 100)) };
    assert_eq!(found.run, wanted);
    assert_eq!(found.torn, None);
}

#[test]
fn a_run_is_readable_while_it_is_written() {
    let (_dir, store) = store();
    let mut writer = store.create(&header("a", 100)).unwrap();
    for (n, trial) in trials(3).iter().enumerate() {
        writer.trial(trial).unwrap();
        assert_eq!(read(writer.path()).unwrap().run.trials.len(), n + 1);
    }
}

#[test]
fn duplicate_run_name_gets_number_and_no_temporary_directory_remains() {
    let (_dir, store) = store();
    let first = store.create(&header("a", 100)).unwrap();
    let second = store.create(&header("a", 100)).unwrap();
    assert_eq!((first.name(), second.name()), ("a", "a-2"));
    assert_eq!(read(second.path()).unwrap().run.header.run, "a-2");
    assert_eq!(fs::read_dir(store.dir()).unwrap().count(), 2);
}

#[test]
fn concurrent_creators_never_share_a_run() {
    let (_dir, store) = store();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..8).for_each(|_| drop(store.create(&header("a", 100)).unwrap())));
        }
    });
    assert_eq!(store.list().unwrap().len(), 32);
    assert_eq!(fs::read_dir(store.dir()).unwrap().count(), 32);
}

#[test]
fn name_outside_of_directory_is_rejected() {
    let (_dir, store) = store();
    for name in ["", "..", "../a", "a/b", ".a", "-a", "a b", "a\0"] {
        assert_eq!(store.create(&header(name, 1)).unwrap_err().kind(), ErrorKind::Internal, "{name}");
    }
}

#[test]
fn truncated_file_keeps_all_complete_trials() {
    let (dir, store) = store();
    let path = recorded(&store, "a", 100, 3, true);
    let bytes = fs::read(&path.file).unwrap();
    let first = bytes.iter().position(|b| *b == b'\n').unwrap() + 1;
    // Everywhere about the ends of lines, and at every fifth byte elsewhere.
    let ends = |cut: usize| bytes[cut.saturating_sub(40)..bytes.len().min(cut + 40)].contains(&b'\n');
    for cut in (0..bytes.len()).filter(|cut| cut % 5 == 0 || ends(*cut)) {
        let path = foreign(&dir.path().join("cut"), &bytes[..cut]);
        let found = read(&path);
        if cut < first {
            let error = found.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged);
            assert!(error.to_string().contains("at line 1"), "{error}");
            continue;
        }
        let found = found.unwrap();
        let lines = bytes[first..cut].split(|b| *b == b'\n').count() - 1;
        assert_eq!(found.run.trials, trials(lines.min(3) as u32));
        let torn = bytes[cut - 1] != b'\n';
        assert_eq!(found.torn.is_some(), torn, "cut at {cut}");
    }
}

#[test]
fn resumed_run_continues_after_last_complete_line() {
    let (_dir, store) = store();
    let path = recorded(&store, "a", 100, 3, false);
    let bytes = fs::read(&path.file).unwrap();
    fs::write(&path.file, &bytes[..bytes.len() - 30]).unwrap();

    let mut resumed = store.resume(&path).unwrap();
    assert_eq!((resumed.run.trials.len(), resumed.torn.is_some()), (2, true));
    resumed.writer.resumed(&resumption(2)).unwrap();
    resumed.writer.trial(&trials(3)[2]).unwrap();
    resumed.writer.end(&end(false)).unwrap();
    drop(resumed);
    let mut resumed = store.resume(&path).unwrap();
    assert_eq!(resumed.run.end, Some(end(false)));
    resumed.writer.trial(&trials(4)[3]).unwrap();
    assert_eq!(read(&path).unwrap().run.end, None, "a resumed run has not ended");
    resumed.writer.end(&end(true)).unwrap();

    let found = read(&path).unwrap();
    assert_eq!((found.run.trials, found.run.end), (trials(4), Some(end(true))));
    assert_eq!(found.run.resumptions, [resumption(2)]);
}

#[test]
fn a_run_that_gave_up_rounds_is_read_and_resumed_with_those_it_makes() {
    let (_dir, store) = store();
    let mut writer = store.create(&header("a", 100)).unwrap();
    let path = writer.path().clone();
    assert_eq!(read(&path).unwrap().run.header.spec.rounds, 2);
    writer.replanned(&Replanned { rounds: 1, restarts: 0 }).unwrap();
    assert_eq!(read(&path).unwrap().run.header.spec.rounds, 1);
    // Rounds are never added.
    writer.replanned(&Replanned { rounds: 2, restarts: 0 }).unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("2 rounds instead of 1"));
}

#[test]
fn a_run_that_is_being_written_is_not_resumed() {
    let (_dir, store) = store();
    let writer = store.create(&header("a", 100)).unwrap();
    let error = store.resume(writer.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse);
    assert!(error.to_string().contains("another process is writing"), "{error}");
    let path = writer.path().clone();
    drop(writer);
    store.resume(&path).unwrap();
}

#[test]
fn damaged_run_names_line_and_hides_no_other_run() {
    let (dir, store) = store();
    recorded(&store, "good", 100, 2, true);
    let cut = recorded(&store, "cut-off", 200, 2, false);
    let bad = recorded(&store, "bad", 300, 3, true);
    let text = fs::read_to_string(&bad.file).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[2] = "{\"trial\":";
    fs::write(&bad.file, lines.join("\n") + "\n").unwrap();
    let error = read(&bad).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    let message = error.to_string();
    assert!(message.contains("bad/run.jsonl") && message.contains("at line 3"), "{message}");
    assert!(message.contains("other runs are not affected"), "{message}");
    assert!(message.contains("the 2 lines before it are intact (1 trial)"), "{message}");
    // The message names what can still be used, and it can be.
    let copy = dir.path().join("copy.jsonl");
    fs::write(&copy, lines[..2].join("\n") + "\n").unwrap();
    assert_eq!(read(&RunPath::at(&copy).unwrap()).unwrap().run.trials, trials(1));

    for (name, bytes, why) in [
        ("empty", &b""[..], "the file is empty"),
        ("binary", &[0, 159, 146, 150, 10, 255, 0][..], "is not the header of a run"),
        ("no-newline", &[7; 100][..], "its first line is incomplete"),
        ("other", b"{\"a\":1}\n", "is not the header of a run"),
        ("no-checksum", b"{\"kurabe-run\":3,\"run\":\"x\"}\n", "its checksum does not match"),
    ] {
        let path = foreign(&store.dir().join(name), bytes);
        let error = read(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged);
        assert!(error.to_string().contains(why), "{error}");
    }
    let list = store.list().unwrap();
    let readable: Vec<(&str, RunState)> = list
        .iter()
        .filter_map(|entry| match entry {
            Entry::Run(run) => Some((run.path.name.as_str(), run.state)),
            Entry::Unreadable { .. } => None,
        })
        .collect();
    let wanted =
        [("bad", RunState::Complete), ("cut-off", RunState::Incomplete), ("good", RunState::Complete)];
    assert_eq!(readable, wanted);
    assert_eq!(list.len(), 8);
    assert_eq!(store.resume(&cut).unwrap().run.trials.len(), 2);
}

#[test]
fn a_run_is_running_while_it_has_a_writer() {
    let (_dir, store) = store();
    let state = |store: &Store| match &store.list().unwrap()[0] {
        Entry::Run(run) => run.state,
        Entry::Unreadable { error, .. } => panic!("{error}"),
    };
    let mut writer = store.create(&header("a", 100)).unwrap();
    assert_eq!(state(&store), RunState::Running);
    writer.end(&end(true)).unwrap();
    drop(writer);
    assert_eq!(state(&store), RunState::Complete);
}

#[test]
fn run_is_found_by_name_prefix_or_path() {
    let (dir, store) = store();
    let name = |wanted: &str| store.find(wanted).map(|path| path.name).map_err(|error| error.to_string());
    assert!(name("last").unwrap_err().contains("contains no runs"));
    recorded(&store, "2026-01-01-session", 100, 1, true);
    recorded(&store, "2026-01-02-session", 200, 1, true);
    let newest = recorded(&store, "2026-02-01-session", 300, 1, true);
    foreign(&store.dir().join("2026-03-01-session"), b"");
    assert_eq!(name("last").unwrap(), "2026-02-01-session");
    assert_eq!(name("2026-01-01-session").unwrap(), "2026-01-01-session");
    assert_eq!(name("2026-02").unwrap(), "2026-02-01-session");
    assert!(name("2026-01").unwrap_err().contains("2 runs begin with it"));
    assert!(name("2026-01-01-sesion").unwrap_err().contains("did you mean '2026-01-01-session'?"));
    assert!(name("tomorrow").unwrap_err().contains("the newest is"));
    assert_eq!(name(newest.folder.to_str().unwrap()).unwrap(), "2026-02-01-session");
    assert_eq!(name(newest.file.to_str().unwrap()).unwrap(), "2026-02-01-session");
    assert!(name(dir.path().to_str().unwrap()).unwrap_err().contains("contains no run.jsonl"));
    // Each may have a password in any place.
    for wanted in ["postgres://u:pw@h/d", "host=h password=pw", "Server=h;Pwd=pw", "u:pw@h/d", "a pw", "a&pw"]
    {
        assert!(name(wanted).unwrap_err().starts_with("no run has such a name"), "{wanted}");
    }
    assert!(name("./nowhere").unwrap_err().contains("no run found at ./nowhere"));
    // One that began in the same second as another, and after it.
    recorded(&store, "2026-04-01-b", 400, 1, true);
    // The kernel's clock of files may tick every 10 ms.
    std::thread::sleep(std::time::Duration::from_millis(20));
    recorded(&store, "2026-04-01-a", 400, 1, true);
    assert_eq!(name("last").unwrap(), "2026-04-01-a");
}

#[test]
fn last_run_is_the_one_that_was_made_last_whatever_the_clock_said() {
    let (_dir, store) = store();
    let names = || store.list().unwrap().iter().map(|entry| entry.path().name.clone()).collect::<Vec<_>>();
    recorded(&store, "2026-01-01-a", 100, 1, true);
    recorded(&store, "2099-01-01-b", 4_000_000_000, 1, true);
    recorded(&store, "2026-01-02-c", 200, 1, true);
    recorded(&store, "1970-01-01-d", 1, 1, true);
    assert_eq!(names(), ["1970-01-01-d", "2026-01-02-c", "2099-01-01-b", "2026-01-01-a"]);
    assert_eq!(store.find("last").unwrap().name, "1970-01-01-d");
    // Without numbers, the times give the order.
    for name in names() {
        fs::remove_file(store.dir().join(name).join("order")).unwrap();
    }
    assert_eq!(store.find("last").unwrap().name, "2099-01-01-b");
}

#[test]
fn store_at_path_of_file_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("runs");
    fs::write(&file, "").unwrap();
    assert_eq!(Store::open(&file).unwrap_err().kind(), ErrorKind::Environment);
    assert!(Store::open(dir.path().join("not-yet")).unwrap().list().unwrap().is_empty());
}

#[test]
fn trial_of_unknown_cell_is_damage() {
    let (_dir, store) = store();
    let mut writer = store.create(&header("a", 100)).unwrap();
    writer.trial(&TrialRecord { cell: 99, ..trials(1)[0].clone() }).unwrap();
    let error = read(writer.path()).unwrap_err();
    assert!(error.to_string().contains("line 2: it names cell 99 of 3"), "{error}");
}

#[test]
fn earlier_runs_are_complete_and_made_under_the_same_conditions() {
    let (_dir, store) = store();
    let made = |name: &str, began: u64, change: fn(&mut RunHeader)| {
        let mut header = header(name, began);
        header.origin.suite = Some("nightly".to_owned());
        header.spec.seed = began;
        change(&mut header);
        let mut writer = store.create(&header).unwrap();
        if name != "stopped" {
            writer.end(&end(true)).unwrap();
        }
        header
    };
    made("oldest", 100, |_| ());
    made("older", 200, |_| ());
    made("stopped", 300, |_| ());
    made("other-suite", 310, |header| header.origin.suite = None);
    made("other-machine", 320, |header| header.machine.cpu = "another".to_owned());
    made("other-rounds", 330, |header| header.spec.rounds += 1);
    let first = made("first", 400, |_| ());
    made("between", 450, |_| ());
    let second = made("second", 500, |_| ());
    made("later", 600, |_| ());
    let names = |two: [&RunHeader; 2], most: usize| -> Vec<u64> {
        store.before(two, most).unwrap().iter().map(|run| run.header.began).collect()
    };
    assert_eq!(names([&first, &second], 10), [450, 200, 100]);
    assert_eq!(names([&second, &first], 2), [450, 200], "the newest, whichever run is named first");
    let other = made("other-targets", 700, |header| header.spec.targets.push("sqlite:".to_owned()));
    assert!(names([&first, &other], 10).is_empty(), "two runs under different conditions have no such runs");
}
