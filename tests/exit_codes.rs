//! Each documented exit code, in its documented case.

use crate::support::{Answer, KURABE, Place};
use kurabe_testbed::testing;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

const SMALL: [&str; 9] =
    ["run", "point-read", "null:", "--records", "100", "--requests", "100", "--rounds", "1"];

#[test]
fn result_that_cannot_be_written_is_exit_5() {
    let place = Place::new();
    assert_eq!(place.run(&SMALL).code, Some(0));
    for format in ["json", "csv", "md"] {
        let mut command = place.command(&["report", "--format", format]);
        command.stdout(File::options().write(true).open("/dev/full").unwrap());
        Answer::of(&command.output().unwrap()).exit_code(5).err_has("cannot be written");
    }
    // A reader that closed the pipe is not an error.
    let mut child = place.spawn(&["report", "--format", "json"]);
    drop(child.stdout.take());
    assert_eq!(Answer::at_end_of(child).code, Some(0));
}

#[test]
fn unwritable_report_error_names_file_and_leaves_no_other_file() {
    let place = Place::new();
    assert_eq!(place.run(&SMALL).code, Some(0));
    let folder = place.home().join("a");
    std::fs::create_dir(&folder).unwrap();
    for (file, part) in [
        (place.home().join("b/x.html"), "no such folder"),
        (folder.clone(), "directory"),
        ("/proc/x.html".into(), "cannot be written to /proc/x.html"),
    ] {
        place.run(&["report", "-o", file.to_str().unwrap()]).exit_code(5).err_has(part);
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(place.home()).unwrap().count(), 1);
}

#[test]
fn unwritable_runs_folder_is_detected_before_start() {
    let place = Place::new();
    let file = place.file("file", "");
    let below = format!("{file}/runs");
    for folder in ["/proc/foo", &file, &below, "/dev/null"] {
        let args = ["run", "point-read", "up:memcached", "--requests", "10", "--runs-dir", folder];
        let answer = place.run(&args).exit_code(5).err_has(folder);
        assert!(!answer.err.contains("starting throwaway"), "{answer:?}");
    }
}

#[test]
fn address_that_is_in_use_is_exit_3() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    place.run(&["up", "app", "null:", "--listen", &taken]).exit_code(3);
}

#[test]
fn malformed_message_of_server_is_exit_3() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            // A message of 16 MB of zeros.
            let _ = client.read(&mut [0; 4096]);
            let head = [[0, 0, 0, 1], [0; 4], [0; 4], [0xdd, 7, 0, 0]].concat();
            let _ = client.write_all(&head).and_then(|()| client.write_all(&vec![0; 16 << 20]));
        }
    });
    let place = Place::new();
    place.run(&["doctor", &format!("mongodb://127.0.0.1:{port}/kurabe"), "--timeout=5s"]).exit_code(3);
}

#[test]
fn report_of_incomplete_run_says_so_in_every_format() {
    let place = Place::new();
    assert_eq!(place.run(&SMALL).code, Some(0));
    let file = place.run_file();
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    std::fs::write(&file, lines[..lines.len() - 1].join("\n") + "\n").unwrap();
    for format in ["json", "csv", "md", "hgrm"] {
        let answer = place.run(&["report", "--format", format]);
        assert!(answer.err.contains("is not complete"), "{format}: {answer:?}");
    }
}

#[test]
fn run_that_cannot_be_observed_is_refused_before_start() {
    let place = Place::new();
    // A mount namespace of its own, with an empty /proc.
    let hidden = |args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--map-root-user",
            "sh",
            "-c",
            "mount -t tmpfs none /proc && exec \"$0\" \"$@\"",
        ]);
        command.args(args);
        place.configure(&mut command);
        command
    };
    if !hidden(&["true"]).output().is_ok_and(|tried| tried.status.success()) {
        testing::skipped("no mount namespace can be made");
        return;
    }
    let args = [&[KURABE][..], &SMALL].concat();
    Answer::of(&hidden(&args).output().unwrap()).exit_code(5).err_has("cannot be observed").err_has("mount");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}
