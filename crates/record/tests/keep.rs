//! Runs are removed, annotated, exported and imported.

use crate::common::{end, header, resumption, trials};
use kurabe_core::ErrorKind;
use kurabe_core::origin::{GitCommit, Origin};
use kurabe_record::{Entry, Imported, NOTE_FILE, RunPath, Store, export, import, read};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn store() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("runs")).unwrap();
    (dir, store)
}

fn recorded(store: &Store, name: &str) -> RunPath {
    let mut writer = store.create(&header(name, 100)).unwrap();
    for trial in trials(3) {
        writer.trial(&trial).unwrap();
    }
    writer.resumed(&resumption(3)).unwrap();
    writer.end(&end(true)).unwrap();
    writer.path().clone()
}

fn names(store: &Store) -> Vec<String> {
    store.list().unwrap().iter().map(|entry| entry.path().name.clone()).collect()
}

#[test]
fn origin_of_a_run_is_recorded() {
    let (_dir, store) = store();
    let git = GitCommit { commit: "0123".into(), branch: Some("main".into()), dirty: true };
    let origin = Origin { suite: Some("gate".into()), labels: vec!["main".into()], git: Some(git) };
    let mut made = header("a", 100);
    made.origin = origin.clone();
    let path = store.create(&made).unwrap().path().clone();
    assert_eq!(read(&path).unwrap().run.header.origin, origin);
}

#[test]
fn removed_run_is_gone_and_others_stay() {
    let (_dir, store) = store();
    let (a, _) = (recorded(&store, "a"), recorded(&store, "b"));
    fs::write(a.folder.join("report.html"), "x").unwrap();
    store.remove(&a).unwrap();
    assert_eq!(names(&store), ["b"]);
    assert_eq!(fs::read_dir(store.dir()).unwrap().count(), 1, "nothing is left of it");
}

#[test]
fn run_that_is_being_written_or_lies_elsewhere_is_not_removed() {
    let (dir, store) = store();
    let writer = store.create(&header("a", 100)).unwrap();
    let error = store.remove(writer.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse);
    drop(writer);
    let other = Store::open(dir.path().join("other")).unwrap();
    let elsewhere = recorded(&other, "a");
    assert_eq!(store.remove(&elsewhere).unwrap_err().kind(), ErrorKind::Usage);
    let file = RunPath::at(&elsewhere.file).unwrap();
    assert_eq!(store.remove(&file).unwrap_err().kind(), ErrorKind::Usage);
    assert!(elsewhere.file.is_file() && names(&store) == ["a"]);
}

#[test]
fn note_is_replaced_and_removed_without_changing_the_run() {
    let (_dir, store) = store();
    let path = recorded(&store, "a");
    let before = fs::read(&path.file).unwrap();
    assert_eq!(path.note(), Ok(None));
    path.set_note("  first\nline ").unwrap();
    assert_eq!(path.note(), Ok(Some("first\nline".to_owned())));
    let files = || fs::read_dir(&path.folder).unwrap().count();
    let with_note = files();
    path.set_note("second").unwrap();
    assert_eq!(path.note(), Ok(Some("second".to_owned())));
    path.set_note("").unwrap();
    path.set_note("").unwrap();
    assert_eq!(path.note(), Ok(None));
    assert!(path.set_note(&"x".repeat(65 << 10)).is_err());
    assert_eq!(fs::read(&path.file).unwrap(), before);
    assert_eq!(files() + 1, with_note);
}

#[test]
fn exported_runs_are_imported_with_their_notes() {
    let (dir, store) = store();
    let (a, b) = (recorded(&store, "a"), recorded(&store, "b"));
    a.set_note("fast").unwrap();
    for name in ["runs.tar", "runs.tar.gz", "runs.tgz"] {
        let archive = dir.path().join(name);
        export(&[a.clone(), b.clone()], &archive).unwrap();
        let other = Store::open(dir.path().join(format!("of-{name}"))).unwrap();
        let imported = import(&other, &archive).unwrap();
        assert!(imported.len() == 2 && imported.iter().all(|run| !run.known), "{imported:?}");
        assert_eq!(fs::read(&imported[0].path.file).unwrap(), fs::read(&a.file).unwrap());
        assert_eq!(imported[0].path.note(), Ok(Some("fast".to_owned())));
        assert!(other.list().unwrap().iter().all(|entry| matches!(entry, Entry::Run(_))));
        // A second time nothing is added.
        assert!(import(&other, &archive).unwrap().iter().all(|run| run.known));
        assert_eq!(names(&other).len(), 2);
    }
    let sizes = ["runs.tar", "runs.tar.gz"].map(|name| fs::metadata(dir.path().join(name)).unwrap().len());
    assert!(sizes[1] < sizes[0], "{sizes:?}");
}

#[test]
fn other_run_of_the_same_name_gets_a_number() {
    let (dir, store) = store();
    let other = Store::open(dir.path().join("other")).unwrap();
    recorded(&other, "a");
    let mut writer = store.create(&header("a", 200)).unwrap();
    writer.end(&end(true)).unwrap();
    for from in [writer.path().folder.clone(), writer.path().file.clone()] {
        let imported = import(&other, &from).unwrap();
        let [Imported { path, .. }] = imported.as_slice() else { panic!("{imported:?}") };
        assert_eq!(path.name, "a-2");
    }
    let mut all = names(&other);
    all.sort();
    assert_eq!(all, ["a", "a-2"]);
}

/// A tar archive with these files.
fn archive(path: &Path, files: &[(&str, &[u8])]) {
    let mut builder = tar::Builder::new(fs::File::create(path).unwrap());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        // `set_path` would refuse what an attacker writes.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.finish().unwrap();
}

#[test]
fn archive_replaces_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    fs::write(&file, b"SQLite format 3\0 and its pages").unwrap();
    let refused = kurabe_record::export(&[], &file).unwrap_err();
    assert!(refused.to_string().contains("is a database"), "{refused}");
    assert_eq!(fs::read(&file).unwrap(), b"SQLite format 3\0 and its pages");
    kurabe_record::export(&[], &folder.path().join("runs.tar")).unwrap();
}

#[test]
fn foreign_archive_changes_nothing_outside_and_imports_nothing() {
    let (dir, store) = store();
    let path = recorded(&store, "a");
    let whole = fs::read(&path.file).unwrap();
    let cut = &whole[..whole.len() / 2];
    let mut changed = whole.clone();
    let at = changed.len() / 2;
    changed[at] ^= 1;
    let file = dir.path().join("evil.tar");
    let other = Store::open(dir.path().join("other")).unwrap();
    for files in [
        vec![("../evil/run.jsonl", &whole[..])],
        vec![("/tmp/kurabe-evil/run.jsonl", &whole[..])],
        vec![("a/b/run.jsonl", &whole[..])],
        vec![("a/other.txt", &whole[..])],
        vec![(".hidden/run.jsonl", &whole[..])],
        vec![("a/note.txt", &b"x"[..])],
        vec![("a/run.jsonl", &changed[..])],
        vec![("a/run.jsonl", &whole[..]), ("b/run.jsonl", &b"{}"[..])],
        vec![],
    ] {
        archive(&file, &files);
        let error = import(&other, &file).unwrap_err();
        assert!(error.to_string().contains("evil.tar"), "{error}");
        assert_eq!(names(&other).len(), 0, "{files:?}");
        assert_eq!(fs::read_dir(other.dir()).unwrap().count(), 0, "{files:?}");
    }
    assert!(!dir.path().join("evil").exists() && !Path::new("/tmp/kurabe-evil").exists());
    // Neither an archive nor a run.
    for bytes in [&b"no archive"[..], b"", b"\x1f\x8bno", b"{}\n"] {
        fs::write(&file, bytes).unwrap();
        assert!(import(&other, &file).is_err());
    }
    // A link leads out of the folder that is unpacked to.
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for kind in [tar::EntryType::Symlink, tar::EntryType::Link] {
        for name in ["a", "a/run.jsonl", "a/note.txt"] {
            let mut builder = tar::Builder::new(fs::File::create(&file).unwrap());
            let mut link = tar::Header::new_gnu();
            link.set_entry_type(kind);
            link.set_size(0);
            builder.append_link(&mut link, name, &elsewhere).unwrap();
            let mut run = tar::Header::new_gnu();
            run.set_size(whole.len() as u64);
            run.set_mode(0o644);
            builder.append_data(&mut run, "a/run.jsonl", &whole[..]).unwrap();
            builder.finish().unwrap();
            drop(builder);
            assert!(import(&other, &file).is_err(), "{kind:?} {name}");
            assert_eq!(fs::read_dir(other.dir()).unwrap().count(), 0, "{kind:?} {name}");
        }
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    // A run that was cut off is a run.
    archive(&file, &[("a/run.jsonl", cut)]);
    assert!(read(&import(&other, &file).unwrap()[0].path).unwrap().torn.is_some());
    assert!(!fs::exists(other.dir().join("a").join(NOTE_FILE)).unwrap());
}
