//! Run files of others: what they name starts no program and opens no file and no connection, unless the user names it too.

use crate::page::{Page, TOKEN};
use crate::pipeline::crc32;
use crate::support::{Answer, Place, eventually};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

const BRIEF: [&str; 7] = ["--requests", "300", "--rounds", "3", "--records", "100", "--no-html"];

/// The text of a run file with another header, and with valid checksums.
fn forged(text: &str, change: &dyn Fn(&mut Value)) -> String {
    let (mut before, mut out) = (String::new(), String::new());
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("crc");
        if line.get("kurabe-run").is_some() {
            change(&mut line);
        }
        let object = line.to_string();
        let body = format!("{},\"crc\":\"", &object[..object.len() - 1]);
        let digits = format!("{:08x}", crc32(format!("{before}{body}").as_bytes()));
        let _ = writeln!(out, "{body}{digits}\"}}");
        before = digits;
    }
    out
}

/// Changes the header of a run.
type Change<'a> = Box<dyn Fn(&mut Value) + 'a>;

/// A program that leaves a file behind when it is started.
fn trap(place: &Place, name: &str, canary: &str) -> String {
    let path = place.file(name, format!("#!/bin/sh\ntouch {canary}\nexit 1\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn what_an_imported_run_names_starts_nothing_and_opens_nothing() {
    let place = Place::that_starts_servers();
    place.run(&[&["run", "point-read", "null:"], &BRIEF[..]].concat()).success();
    let text = fs::read_to_string(place.run_file()).unwrap();
    let canary = place.at("canary");
    for program in ["postgres", "initdb", "redis-server", "memcached", "rsh"] {
        trap(&place, program, &canary);
    }
    let home = place.home().display().to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let secret = place.file("secret", "postal codes\n");
    let target = |url: String| move |header: &mut Value| header["spec"]["targets"][0] = url.clone().into();
    let named: Vec<(&str, Change<'_>)> = vec![
        ("programs", Box::new(target(format!("up:postgres?programs={home}")))),
        ("folder", Box::new(target(format!("up:redis:{home}")))),
        ("setting", Box::new(target(format!("up:postgres?archive_command={canary}")))),
        ("stack", Box::new(target(format!("stack:php/pdo?db=up:postgres%3Fprograms={home}")))),
        ("file", Box::new(target(format!("sqlite:{home}/chosen.db")))),
        #[cfg(feature = "full")]
        ("folder-of-data", Box::new(target(format!("lmdb:{home}/chosen")))),
        ("server", Box::new(target(format!("redis://127.0.0.1:{port}")))),
        ("observer", Box::new(target(format!("memcached://127.0.0.1:{port}?observe=evil")))),
        (
            "cache",
            Box::new(|header| header["spec"]["cache"] = format!("up:memcached?programs={home}").into()),
        ),
        (
            "remote",
            Box::new(|header| header["spec"]["remote"] = format!("postgres://u@127.0.0.1:{port}/d").into()),
        ),
        (
            "setup",
            Box::new(|header| header["spec"]["setup"] = json!({ "from": "/dev/zero", "digest": "1-0" })),
        ),
        #[cfg(feature = "full")]
        ("fleet", Box::new(|header| header["spec"]["fleet"] = json!({ "url": "ssh:evil" }))),
        (
            "workload",
            Box::new(|header| {
                let file = json!({ "name": "/dev/zero", "text": "", "weight": 1 });
                header["spec"]["custom"] = json!({ "language": "capture", "files": [file], "define": {}, "init": false, "write": true });
            }),
        ),
        (
            "axis",
            Box::new(|header| {
                header["spec"]["experiment"] = "webapp".into();
                header["cells"][0]["axes"]["postal-codes"] = secret.clone().into();
            }),
        ),
    ];
    let page = Page::with(&place, &["--token", TOKEN]);
    for (name, change) in &named {
        let file = place.file(&format!("{name}.jsonl"), forged(&text, &**change));
        let imported = place.run(&["runs", "import", &file]).success();
        let run = imported.out.trim();
        for args in [["run", "--again", run], ["run", "--resume", run], ["run", "--again", &file]] {
            let mut command = place.command(&args);
            command.env("KURABE_RSH", format!("{home}/rsh"));
            let answer = Answer::of(&command.output().unwrap());
            assert_eq!(answer.code, Some(2), "{name} {args:?}: {answer:?}");
            assert!(
                answer.err.contains("not allowed here: ") && answer.err.contains("--trust"),
                "{name}: {answer:?}"
            );
        }
        let (status, said) = page.post(&format!("/runs/{run}/resume"), "");
        assert_eq!(status, 400, "{name}: {said}");
        assert!(said.contains("not allowed here: ") && said.contains("--allow-any-target"), "{name}: {said}");
    }
    assert!(!place.home().join("canary").exists(), "a program was started");
    assert!(!place.home().join("chosen.db").exists() && !place.home().join("chosen").exists());
    assert!(listener.accept().is_err(), "a connection was opened");
    assert!(!place.path().join(".jobs").read_dir().unwrap().any(|_| true), "the page started a run");
    page.end();
}

#[test]
fn imported_run_is_repeated_on_what_the_user_names_or_trusts() {
    let place = Place::new();
    place.run(&[&["run", "point-read", "null:"], &BRIEF[..]].concat()).success();
    let own = place.run_file();
    let text = fs::read_to_string(&own).unwrap();
    let file = place.at("chosen.db");
    let url = format!("sqlite:{file}");
    let change = |header: &mut Value| header["spec"]["targets"][0] = url.clone().into();
    let path = place.file("other.jsonl", forged(&text, &change));
    let imported = place.run(&["runs", "import", &path]).success();
    let run = imported.out.trim();
    place
        .run(&["run", "--again", run, "--no-html"])
        .exit_code(2)
        .err_has("not allowed here: the target sqlite:");
    assert!(!fs::exists(&file).unwrap());
    place.run(&["run", "--again", run, &url, "--no-html"]).success();
    assert!(fs::exists(&file).unwrap());
    place.run(&["run", "--again", run, "--trust", "--no-html"]).success();
    // What was made here names what its user did.
    place.run(&["run", "--again", own.parent().unwrap().to_str().unwrap(), "--no-html"]).success();
    // What names nothing needs no trust.
    let path = place.file("harmless.jsonl", forged(&text, &|_| {}));
    let harmless = place.run(&["runs", "import", &path]).success();
    place.run(&["run", "--again", &path, "--no-html"]).success();
    let page = Page::start(&place);
    assert_eq!(page.post(&format!("/runs/{}/resume", harmless.out.trim()), "").0, 303);
    assert_eq!(page.post(&format!("/runs/{run}/resume"), "").0, 400);
    page.end();
    let page = Page::with(&place, &["--token", TOKEN, "--allow-any-target"]);
    let (status, job) = page.post(&format!("/runs/{run}/resume"), "");
    assert_eq!(status, 303, "{job}");
    let shown = || Some(page.get(&job).1).filter(|shown| shown.contains(">ended</span>"));
    let shown = eventually(120, shown).expect("the run does not end");
    assert!(shown.contains("is complete"), "{shown}");
    page.end();
}
