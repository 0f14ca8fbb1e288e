//! Files with data of the user's are readable by their owner only, whatever the umask allows.

use crate::support::{Answer, Place};
use kurabe_testbed::testing;
use std::fs::{metadata, read_dir, set_permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};
use std::path::Path;

/// Nothing is withheld from what a program asks for.
const ALL: &str = "umask 0";

fn mode(path: impl AsRef<Path>) -> u32 {
    metadata(path).unwrap().mode() & 0o777
}

fn chmod(path: impl AsRef<Path>, mode: u32) {
    set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// The files and folders in a folder, and itself, that others may use.
fn open_to_others(path: &Path) -> Vec<String> {
    let mut found: Vec<String> = if path.is_dir() {
        read_dir(path).unwrap().flat_map(|entry| open_to_others(&entry.unwrap().path())).collect()
    } else {
        Vec::new()
    };
    if mode(path) & 0o077 != 0 {
        found.push(path.display().to_string());
    }
    found
}

fn run_after(place: &Place, before: &str, args: &[&str]) -> Answer {
    Answer::of(&place.command_after(before, args).output().unwrap()).success()
}

#[test]
fn runs_are_private_and_what_is_exported_follows_the_umask() {
    let place = Place::new();
    let runs = place.at("data/runs");
    let at = |name: &str| place.at(name);
    let (json, archive) = (at("a.json"), at("runs.tar.gz"));
    let measured = ["run", "point-read", "sqlite:", "--requests", "20", "--records", "20", "--rounds", "1"];
    let run = [&["--runs-dir", &runs], &measured[..], &["--export-json", &json]].concat();
    run_after(&place, ALL, &run);
    run_after(&place, ALL, &["--runs-dir", &runs, "runs", "note", "last", "a note"]);
    run_after(&place, ALL, &["--runs-dir", &runs, "report", "last", "--format", "html"]);
    run_after(&place, ALL, &["--runs-dir", &runs, "runs", "export", "last", "-o", &archive]);
    run_after(&place, ALL, &["--runs-dir", &at("other"), "runs", "import", &archive]);
    for folder in [at("data"), at("other")] {
        assert_eq!(open_to_others(Path::new(&folder)), Vec::<String>::new());
    }
    assert_eq!((mode(&json), mode(&archive)), (0o666, 0o666));
    run_after(&place, "umask 077", &["--runs-dir", &runs, "report", "last", "--format", "json", "-o", &json]);
    assert_eq!(mode(&json), 0o600, "a report that exists is replaced");
}

#[test]
fn captures_and_what_is_made_of_them_are_private_and_older_ones_are_told_of() {
    let Some(server) = testing::server("memcached") else { return };
    let place = Place::new();
    let at = |name: &str| place.at(name);
    let (capture, page) = (at("a.capture"), at("a.html"));
    let script = "exec 3<>/dev/tcp/127.0.0.1/$KURABE_PORT; printf 'set k 0 0 1\\r\\nv\\r\\n' >&3; head -1 <&3 >/dev/null";
    run_after(&place, ALL, &["capture", server.url(), "-o", &capture, "--", "bash", "-c", script]);
    let shown = run_after(&place, ALL, &["capture", "show", &capture, "--export-html", &page]);
    assert!(!shown.err.contains("every account"), "{shown:?}");
    assert_eq!((mode(&capture), mode(&page)), (0o600, 0o600));
    // As earlier versions made them.
    chmod(&capture, 0o644);
    chmod(place.home(), 0o700);
    let told = |place: &Place| {
        place
            .run(&["capture", "show", &capture])
            .success()
            .err
            .contains("every account of this machine can read")
    };
    assert!(!told(&place), "the folder above lets nobody pass");
    for folder in place.home().ancestors().take(2) {
        chmod(folder, 0o711);
    }
    assert!(told(&place));
    // No link leads what is recorded elsewhere.
    let (link, theirs) = (at("link"), at("theirs"));
    symlink(&theirs, &link).unwrap();
    let answer = place.run(&["capture", server.url(), "-o", &link, "--", "true"]);
    assert!(answer.code != Some(0) && !Path::new(&theirs).exists(), "{answer:?}");
}

#[test]
fn rows_that_a_copy_refused_and_what_it_leaves_are_private() {
    let place = Place::new();
    let at = |name: &str| place.at(name);
    let database = |name: &str| format!("sqlite:{}", at(name));
    crate::copy::side(&database("from.db"))
        .run("CREATE TABLE notes (id INTEGER NOT NULL PRIMARY KEY, data TEXT)")
        .unwrap();
    let (rejected, left, page) = (at("rejected"), at("left.sql"), at("page.html"));
    let (from, to) = (database("from.db"), database("to.db"));
    let rest = ["--reject", &rejected, "--leftovers", &left, "--export-html", &page];
    run_after(&place, ALL, &[&["copy", &from, &to], &rest[..]].concat());
    assert_eq!((mode(&rejected), mode(&left), mode(&page)), (0o600, 0o600, 0o600));
    assert_eq!(mode(at("to.db")), 0o600, "the copy itself");
    // A link that another account made does not have another file written.
    let (link, theirs) = (at("link"), place.file("theirs", "theirs"));
    symlink(&theirs, &link).unwrap();
    let answer = place.run(&["copy", &from, &database("again.db"), "--reject", &link]);
    assert_ne!(answer.code, Some(0), "{answer:?}");
    place.run(&["copy", &from, &database("third.db"), "--leftovers", &link]).success();
    assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
    // Nor one to a file that is not there yet.
    let (link, missing) = (at("link.db"), at("missing.db"));
    symlink(&missing, &link).unwrap();
    place.run(&["copy", &from, &format!("sqlite:{link}")]).exit_code(2).err_has("a link to a file");
    assert!(!Path::new(&missing).exists());
}
