//! Wrong command lines: each is refused, before anything starts, with what to write.

use crate::support::Place;

/// The words, and what the answer must contain.
const WRONG: &[(&str, &[&str])] = &[
    // Commands.
    ("rnu session", &["no command 'rnu'", "'run'"]),
    ("session up:postgres", &["kurabe run session"]),
    ("help sesion", &["no command 'sesion'"]),
    ("postgres://me:secret@db/x", &["kurabe run session TARGET"]),
    ("rerun", &["kurabe run --again"]),
    ("resume", &["kurabe run --resume"]),
    ("gate", &["kurabe gate browse.sql"]),
    ("gate session up:postgres", &["a suite file or pgbench scripts"]),
    ("show", &["kurabe report"]),
    ("runs list", &["'ls'"]),
    ("--versoin", &["--version"]),
    // Experiments and suites.
    ("run sesion", &["did you mean 'session'?"]),
    ("run up:postgres", &["kurabe run session"]),
    ("run -f nofile.toml", &["nofile.toml cannot be read"]),
    // Targets.
    ("up up:postgres", &["write 'kurabe up postgres'"]),
    ("up postgrs", &["up:postgres"]),
    ("up postgres:", &["write 'kurabe up postgres'"]),
    ("run session up:postgres@16", &["where its programs are", "up:postgres@16:FOLDER"]),
    ("run session up:postgrs", &["did you mean up:postgres?"]),
    ("run session postgress://x/y", &["did you mean 'postgres:'?"]),
    ("run session postgres", &["a target is a URL such as"]),
    ("run session mysql://localhost/db?foo=1", &["no option 'foo'"]),
    ("run session postgres://127.0.0.1:1/x", &["nothing listens at 127.0.0.1:1"]),
    // Options.
    ("run session --interleave off", &["--interleave=off"]),
    ("run session --interleave 20ms", &["--interleave=20ms"]),
    ("run session --duration 500", &["500ms or 500s"]),
    ("run session --rate max --slo 10", &["10ms or 10s"]),
    ("run session --duration 500s", &["expected to take", " h", "--yes"]),
    ("run session --client 4", &["--clients"]),
    ("run session --clients 0", &["from 1 to"]),
    ("run session --payload 1x", &["write 1000, 4k"]),
    ("run session --layout bolb", &["did you mean 'blob'?"]),
    ("run session --operation reed", &["'read'"]),
    ("run session --rounds 0", &["from 1 to 10,000"]),
    ("run session --rounds many", &["write 1000"]),
    ("run session --durability sync", &["synced"]),
    ("run session --margin 5", &["add --until conclusive"]),
    ("run session --until done", &["conclusive"]),
    ("run session --requests 0", &["at least 1"]),
    ("run session --rate fast", &["a count, or max"]),
    ("run session --budget 0", &["from 1ns to a week"]),
    ("run session --threads x", &["per-client"]),
    ("run session --compare layuot", &["did you mean 'layout'?"]),
    ("run session --compare targets", &["compare one of: payload, layout"]),
    ("run session --cache up:redis", &["--cache"]),
    ("run session --arrivals poisson", &["--rate 5k"]),
    ("run connect --pool 0", &["from 1 to"]),
    ("report nosuch", &["no runs yet", "kurabe run"]),
    ("run --again", &["no runs yet"]),
    ("report last --format yaml", &["parquet"]),
    ("claims zz", &["there are: s1"]),
    ("compare a", &["<NEW>"]),
    ("copy sqlite:", &["<TARGET>"]),
];

#[test]
fn engine_that_is_not_installed_does_not_stop_the_others() {
    let folder = Place::new();
    // No program is there.
    let missing = format!("up:memcached?programs={}", folder.path().display());
    let args =
        ["run", "point-read", "sqlite:", &missing, "--records", "20", "--requests", "40", "--rounds", "1"];
    let answer = Place::new().run(&args);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.err.contains("left out: ") && answer.out.contains("SQLite"), "{answer:?}");
    // A gate needs both of its targets.
    let gate = Place::new().run(&[&args[..], &["--fail-on", "slower"]].concat());
    assert!(gate.code.is_some_and(|code| code != 0) && !gate.err.contains("left out"), "{gate:?}");
}

#[test]
fn wrong_command_line_is_refused_with_what_to_write() {
    let place = Place::new();
    for (line, parts) in WRONG {
        let words: Vec<&str> = line.split(' ').collect();
        let answer = place.run(&words);
        assert!(answer.code.is_some_and(|code| code != 0), "{line}: {answer:?}");
        for part in *parts {
            assert!(answer.err.contains(part), "{line}: '{part}' is not in: {}", answer.err);
        }
        assert!(!answer.err.contains("secret") && !answer.err.contains("trial 1"), "{line}: {answer:?}");
        // What it suggests is a command that the program understands.
        for suggested in answer.err.split('\'').filter_map(|part| part.strip_prefix("kurabe ")) {
            let words: Vec<&str> = suggested.split_whitespace().chain(["--help"]).collect();
            assert_eq!(place.run(&words).code, Some(0), "{line} suggests kurabe {suggested}");
        }
    }
}

#[test]
fn misspelt_or_misplaced_statement_is_refused_before_a_server_starts() {
    let place = Place::new();
    let file = place.home().join("a.sql");
    std::fs::write(&file, "SELEC 1;\n").unwrap();
    let file = file.to_str().unwrap();
    for (args, part) in [
        (&["run", "pgbench", "-f", file, "up:postgres"][..], "did you mean SELECT?"),
        (&["run", "-f", file, "up:postgres"], "kurabe run pgbench -f"),
        (&["run", "pgbench", file, "up:postgres"], "a script follows -f"),
        (&["run", "session", "null:", "--export-html", "x"], "kurabe report last --format html -o FILE"),
        (&["run", "SELEC 1", "up:postgres"], "kurabe run pgbench -f FILE.sql"),
    ] {
        let answer = place.run(args);
        assert!(answer.code == Some(2) && answer.err.contains(part), "{args:?}: {answer:?}");
        assert!(!answer.err.contains("starting throwaway"), "{args:?}: {answer:?}");
    }
}

#[test]
fn help_and_list_are_short_and_have_the_rest_on_request() {
    let place = Place::new();
    for (brief, all, part) in [
        (&["--help"][..], &["help", "--all"][..], "selftest"),
        (&["run", "session", "--help"], &["run", "session", "--help", "--all"], "--arrivals"),
        (&["list"], &["list", "--all"], "--layout"),
    ] {
        let (brief, all) = (place.run(brief), place.run(all));
        assert_eq!((brief.code, all.code), (Some(0), Some(0)), "{brief:?}");
        assert!(brief.out.lines().count() <= 30, "{}", brief.out);
        assert!(!brief.out.contains(part) && all.out.contains(part), "{part}: {}", brief.out);
    }
    for command in ["up", "wire", "capture"] {
        let answer = place.run(&[command, "--help"]);
        assert!(answer.code == Some(0) && answer.out.contains("Usage: kurabe"), "{answer:?}");
    }
}
