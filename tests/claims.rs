//! `kurabe claims`: claims of a user. Those that ship are answered in the full tier (`full/claims.rs`).

use crate::support::{Answer, Place, eventually, signal};
use serde_json::Value;

const SUITE: &str = "\
targets = ['sqlite:']
[collection.users]
rows = 100
key = 'id'
[collection.users.fields]
id = 'int'
visits = { type = 'int', value = 0 }
[transaction.find]
draw.id = { row = 'users' }
steps = [ { get = 'users', key = ':id', fields = ['visits'] } ]
";

/// Claims about that workload, with short trials.
const OWN: &str = "\
[fast]
claim = 'A user is found more than a hundred times a second'
suite = 'find.toml'
rounds = 2
duration = '100ms'
budget = '20s'
test = { at-least = 100 }

[slow]
claim = 'A user is found at most once a second'
suite = 'find.toml'
rounds = 2
duration = '100ms'
budget = '20s'
test = { at-most = 1 }

[later]
claim = 'A stack that does not exist is fast'
not-testable = 'it needs a stack that does not exist'
";

/// A folder with these claims and that workload.
fn own(place: &Place, claims: &str) -> String {
    place.file("find.toml", SUITE);
    place.file("ours.toml", claims)
}

fn ask(place: &Place, file: &str, more: &[&str]) -> Answer {
    place.run(&[&["claims", "-f", file][..], more].concat())
}

/// The answers by the claims' names.
fn answers(made: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let claims = made["claims"].as_array().unwrap();
    claims.iter().map(|claim| (text(&claim["id"]), text(&claim["answer"]))).collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(id, answer)| ((*id).to_owned(), (*answer).to_owned())).collect()
}

#[test]
fn claims_of_a_user_are_answered_on_table_page_and_json_and_recorded_as_runs() {
    let place = Place::new();
    let file = own(&place, OWN);
    let json = place.home().join("claims.json");
    let answer = ask(&place, &file, &["--export-json", json.to_str().unwrap()]).success();
    let made: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let expected = pairs(&[("fast", "holds"), ("slow", "does-not-hold"), ("later", "not-testable")]);
    assert_eq!(answers(&made), expected, "{made}");
    for part in [
        "fast",
        "does not hold",
        "it needs a stack",
        "Of 3 claims 1 holds, 1 does not hold, 1 is not testable",
    ] {
        assert!(answer.out.contains(part), "{part}: {answer:?}");
    }
    let page = std::fs::read_to_string(place.path().join("claims.html")).unwrap();
    assert_eq!(page.matches("<section class=\"card ").count(), 3);
    // Each run is an ordinary one, with a label.
    let run = made["claims"][0]["now"]["run"].as_str().unwrap();
    assert!(place.path().join(run).join("report.html").exists());
    let shown = place.run(&["report", run, "--format", "json"]).json();
    assert_eq!(shown["origin"]["labels"], serde_json::json!(["claim/fast"]), "{shown}");
    assert_eq!(shown["origin"]["suite"], "ours");
    // The same answers again, without a measurement.
    let runs = || std::fs::read_dir(place.path()).unwrap().count();
    let before = runs();
    let again = ask(&place, &file, &["--recorded", "--export-json", "-"]);
    assert_eq!((again.code, answers(&again.json())), (Some(0), expected), "{again:?}");
    assert_eq!(runs(), before);
}

#[test]
fn claim_that_held_and_does_not_any_more_is_exit_4() {
    let place = Place::new();
    let file = own(&place, OWN);
    assert_eq!(ask(&place, &file, &["fast"]).code, Some(0));
    // The workload gets slower than what is claimed; nothing else changes.
    place.file("find.toml", SUITE.replace("] } ]", "] }, { sleep = '50ms' } ]"));
    let answer = ask(&place, &file, &["fast", "--export-json", "-"]);
    let made = answer.json();
    // Other load on the machine leaves it undecided whether a rate is too low.
    if answers(&made) == pairs(&[("fast", "undecided")]) {
        assert!(answer.code == Some(0) && answer.out.contains("other processes used the CPU"), "{answer:?}");
    } else {
        assert_eq!(answers(&made), pairs(&[("fast", "does-not-hold")]));
        assert_eq!((answer.code, &made["claims"][0]["no_longer_holds"]), (Some(4), &true.into()), "{made}");
        assert!(made["claims"][0]["held"]["run"].is_string(), "{made}");
        // It has not held since: that is known, and no news.
        assert_eq!(ask(&place, &file, &["fast"]).code, Some(0));
    }
    // The file says that it held.
    std::fs::write(&file, OWN.replace("[slow]", "[slow]\nheld = true")).unwrap();
    for more in [&["slow"][..], &["slow", "--recorded"]] {
        let answer = ask(&place, &file, more).exit_code(4);
        let said = "slow does not hold any more: the claims file says that it held";
        assert!(answer.out.contains(said), "{answer:?}");
    }
}

#[test]
fn mistake_in_claims_file_is_exit_2_with_file_and_line() {
    let place = Place::new();
    for (from, to, part) in [
        ("at-most = 1 }", "at-moost = 1 }", "ours.toml: line 15: unknown key 'at-moost'"),
        ("duration = '100ms'", "duration = 'long'", "ours.toml: line 5: "),
        ("[slow]", "[slow", "ours.toml: line 9: "),
        ("'find.toml'", "'lost.toml'", "ours.toml: line 3: the suite"),
    ] {
        let file = own(&place, &OWN.replacen(from, to, 1));
        let answer = ask(&place, &file, &[]).exit_code(2);
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    let file = own(&place, OWN);
    for (words, part) in [
        (&["fasst"][..], "there is no claim 'fasst'; did you mean 'fast'"),
        (&["--budget", "long"], "'long' is not a time"),
        (&["--dry-run", "--recorded"], "measures nothing"),
    ] {
        let answer = ask(&place, &file, words).exit_code(2);
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    place.run(&["claims", "-f", "/nowhere/x.toml"]).exit_code(2);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "something was measured");
}

#[test]
fn dry_run_says_what_would_run_and_how_long_and_measures_nothing() {
    let place = Place::new();
    let file = own(&place, OWN);
    let answer = ask(&place, &file, &["--dry-run"]).success();
    for part in [
        "fast: A user is found",
        "until the claim is decided",
        "time limit: 20 s",
        "not testable here: it needs a stack",
        "3 claims: 2 runs, at most about 40 s; 1 not testable here",
    ] {
        assert!(answer.out.contains(part), "{part}: {answer:?}");
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    // Those that ship are planned too, wherever their servers are.
    place.run(&["claims", "--dry-run"]).success().out_has("38 claims: ");
}

#[test]
fn answers_so_far_are_on_disk_and_an_interrupt_keeps_them() {
    let place = Place::new();
    let long = "[long]\nclaim = 'A user is found often'\nsuite = 'find.toml'\nrounds = 900\nduration = '200ms'\nbudget = '10min'\n\
                max-rounds = 1000\ntest = { at-least = 100 }\n";
    // The order of the file is that of the answers.
    let file = own(&place, &OWN.replace("[slow]", &format!("{long}\n[slow]")));
    let json = place.at("claims.json");
    let child = place.spawn(&["claims", "-f", &file, "--export-json", &json]);
    // The second run has begun when there are two folders.
    let runs = || {
        let entries = std::fs::read_dir(place.path()).unwrap().flatten();
        entries.filter(|entry| entry.path().join("run.jsonl").exists()).count()
    };
    eventually(120, || (runs() == 2).then_some(())).expect("the second run begins");
    // A run that is killed now keeps them.
    let early: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!((answers(&early), &early["complete"]), (pairs(&[("fast", "holds")]), &Value::Bool(false)));
    assert!(place.path().join("claims.html").exists());
    signal(&child, "-INT");
    let answer = Answer::at_end_of(child).exit_code(130);
    let made: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(answers(&made), pairs(&[("fast", "holds"), ("long", "undecided")]), "{made}");
    assert_eq!(made["complete"], false);
    assert!(answer.out.contains("Stopped: the other claims were not answered"), "{answer:?}");
    assert!(place.path().join("claims.html").exists());
}

#[test]
fn claim_without_its_target_is_not_testable_and_others_are_answered() {
    let place = Place::new();
    let lost = "[lost]\nclaim = 'A user is found on a server that is gone'\nsuite = 'find.toml'\n\
                targets = ['postgres://nobody@127.0.0.1:1/lost']\ntest = { at-least = 1 }\n";
    let file = own(&place, &format!("{lost}\n{OWN}"));
    let answer = ask(&place, &file, &["lost", "fast", "--export-json", "-"]).success();
    let made = answer.json();
    assert_eq!(answers(&made), pairs(&[("lost", "not-testable"), ("fast", "holds")]), "{made}");
    assert!(made["claims"][0]["now"]["why"].as_str().unwrap().contains("127.0.0.1"), "{made}");
}

#[test]
fn dry_run_looks_for_each_engine_once() {
    let place = Place::new();
    let (folder, log) = (place.home().join("programs"), place.home().join("asked"));
    std::fs::create_dir(&folder).unwrap();
    // Whenever an engine is looked for, its program is asked for its version.
    let program = folder.join("memcached");
    let script = format!("#!/bin/sh\necho \"$@\" >> '{}'\necho memcached 1.6.18\n", log.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let output = place.command(&["claims", "--dry-run"]).env("PATH", path).output().unwrap();
    Answer::of(&output).success();
    assert_eq!(std::fs::read_to_string(log).unwrap(), "-V\n");
}
