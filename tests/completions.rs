//! Completions of shells, and man pages.

use crate::servers::common::has_program;
use crate::support::Place;
use std::process::Command;

/// What the program answers to a shell that completes the last of these words.
fn candidates(place: &Place, words: &[&str]) -> Vec<String> {
    let args: Vec<&str> = ["--", "kurabe"].into_iter().chain(words.iter().copied()).collect();
    let output = place.command(&args).env("KURABE_COMPLETE", "fish").output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    // A candidate and its description are separated by a tab.
    text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn commands_experiments_runs_and_targets_are_completed() {
    let place = Place::new();
    assert_eq!(candidates(&place, &["report", ""])[0], "last", "without any run");
    let run =
        ["run", "session", "null:", "--payload", "1k", "--requests", "10", "--rounds", "1", "--no-html"];
    assert_eq!(place.run(&run).code, Some(0));
    let names: Vec<String> = place.run(&["runs", "ls"]).out.lines().map(str::to_owned).collect();
    let name = names[0].split(' ').next().unwrap();
    for (words, wanted) in [
        (&["rep"][..], "report"),
        (&["run", "sess"], "session"),
        (&["run", "session", "--pay"], "--payload"),
        (&["run", "session", "up:post"], "up:postgres"),
        (&["run", "session", "sql"], "sqlite:"),
        (&["up", "app", "mem"], "memcached:"),
        (&["report", ""], name),
        (&["report", "la"], "last"),
        (&["report", &name[..6]], name),
        (&["compare", "last", &name[..6]], name),
        (&["run", "--again", &name[..6]], name),
        (&["run", "--resume", &name[..6]], name),
    ] {
        let found = candidates(&place, words);
        assert!(found.iter().any(|candidate| candidate == wanted), "{words:?}: {found:?}");
    }
    assert!(!candidates(&place, &["report", "zzz"]).iter().any(|candidate| candidate == name));
}

#[test]
fn script_of_bash_completes_names_of_runs() {
    let place = Place::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        place.run(&["completions", shell]).success().out_has("KURABE_COMPLETE");
    }
    place.run(&["completions", "tcsh"]).exit_code(2).err_has("bash");
    if !has_program("bash") {
        return;
    }
    // The program is in PATH, as a shell expects it.
    let path = place.home().join("bin");
    std::fs::create_dir(&path).unwrap();
    std::os::unix::fs::symlink(crate::support::KURABE, path.join("kurabe")).unwrap();
    let script = "eval \"$(kurabe completions bash)\"; COMP_WORDS=(kurabe report la); COMP_CWORD=2; COMP_TYPE=9; \
                  $(complete -p kurabe | sed 's/.*-F \\([^ ]*\\) .*/\\1/') kurabe la report; echo \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    place.configure(bash.args(["-c", script]));
    let output = bash.env("PATH", format!("{}:/usr/bin:/bin", path.display())).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "last", "{output:?}");
}

#[test]
fn man_pages_describe_every_command() {
    let place = Place::new();
    let folder = place.home().join("man/man1");
    place.run(&["man", folder.to_str().unwrap()]).success();
    for (page, part) in [
        ("kurabe.1", "kurabe\\-run(1)"),
        ("kurabe-up-app.1", "allow\\-get\\-writes"),
        ("kurabe-run-session.1", "payload"),
        ("kurabe-report.1", "leave\\-out"),
    ] {
        let text =
            std::fs::read_to_string(folder.join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(text.contains(".TH kurabe") && text.contains(part), "{page}: {text}");
    }
    let answer = place.run(&["man", "/proc/man"]);
    assert!(answer.code != Some(0) && answer.err.contains("cannot be written to /proc/man"), "{answer:?}");
}
