//! The program's user interface: messages for invalid input, exit codes, and kills during a run.

use crate::recorded::short;
use crate::support::{Answer, Place, eventually, signal, trials};
use kurabe_record::RunPath;

/// A run that takes seconds, in many short trials: one cell in twenty rounds and the A/A control in three, two operations.
const LONG: [&str; 15] = [
    "run", "session", "sqlite:", "--payload", "1k", "--layout", "blob", "--compress", "none", "--operation",
    "write,read", "--duration", "40ms", "--rounds", "20",
];
/// The trials of [`LONG`].
const TRIALS: usize = 2 * (20 + 3);

#[test]
fn run_is_shown_reported_and_repeated() {
    let (place, answer) = short();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.out.contains("ops/s"), "{answer:?}");

    let report = place.run(&["report", "--format", "json"]).json();
    assert_eq!(report["experiment"], "session");
    let cells = report["cells"].as_array().unwrap();
    // Four cells and the A/A control, two operations.
    assert_eq!(cells.len(), 10);
    for cell in cells {
        assert_eq!(cell["status"], "ok");
        assert!(cell["ops_per_second"]["mean"].as_f64().unwrap() > 0.0);
        assert!(cell["verified"]["mismatches"] == 0);
    }
    assert!(report["noise_floor"].as_f64().is_some());
    let mut findings = report["findings"].as_array().unwrap().iter();
    let overhead = findings.find(|finding| finding["kind"] == "tool-overhead").unwrap();
    assert!(overhead["each"][0]["ns_per_op"].as_f64().unwrap() > 0.0);

    let csv = place.run(&["report", "--format", "csv"]).out;
    assert_eq!(csv.lines().count(), 11, "{csv}");
    assert!(place.run(&["report", "--format", "md"]).out.starts_with("# "));
    let page = place.run(&["report", "--format", "html"]).out;
    let page = std::fs::read_to_string(page.trim()).unwrap();
    assert!(page.contains("<svg") && !page.contains("http://"), "a page that needs a network");

    let overlaid = place.path().join("overlaid.html");
    place.run(&["report", "--published", "-o", overlaid.to_str().unwrap()]).success();
    let overlaid = std::fs::read_to_string(overlaid).unwrap();
    assert!(overlaid.contains("longblob") && !page.contains("longblob"), "the published figures are missing");

    place.run(&["run", "--again", "last"]).success();
    // The verdict of a run is a second line, which is indented.
    let listed = place.run(&["runs", "ls"]).out;
    let names: Vec<String> =
        listed.lines().filter(|line| !line.starts_with(' ')).map(str::to_owned).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let first = |line: &String| line.split(' ').next().unwrap().to_owned();
    place
        .run(&["compare", &first(&names[1]), &first(&names[0])])
        .success()
        .out_has("two separate runs cannot");
}

#[test]
fn ctrl_c_keeps_results_and_resume_completes_run() {
    let place = Place::new();
    let (child, file) = place.spawn_to_trial(&LONG, 5);
    place.go_on(5);
    signal(&child, "-INT");
    Answer::at_end_of(child)
        .exit_code(130)
        .err_has("kurabe run --resume")
        .out_has("No verdicts yet: the next planned analysis is after 20 rounds");
    let kept = trials(&file);
    assert!(kept >= 5);
    let before = std::fs::read_to_string(&file).unwrap();

    place.run(&["run", "--resume", "last"]).success();
    // What was recorded before is unchanged.
    assert_eq!(trials(&file), TRIALS);
    let after = std::fs::read_to_string(&file).unwrap();
    let kept_lines: Vec<&str> = before.lines().filter(|line| line.contains(",\"trial\":{")).collect();
    assert!(kept_lines.iter().all(|line| after.contains(line)));
    let run = kurabe_record::read(&RunPath::at(&file).unwrap()).unwrap().run;
    let [resumption] = run.resumptions.as_slice() else {
        panic!("it was resumed once: {:?}", run.resumptions)
    };
    assert_eq!(resumption.trials_before as usize, kept);
    assert_eq!((&resumption.machine, &resumption.targets), (&run.header.machine, &run.header.targets));
    let again = place.run(&["run", "--resume", "last"]);
    assert!(again.err.contains("complete"), "{again:?}");
}

#[test]
fn ctrl_c_stops_loading() {
    let place = Place::new();
    let database = place.at("large.db");
    let target = format!("sqlite:{database}");
    // Loading would take minutes.
    let child = place.spawn(&["run", "point-read", &target, "--records", "50m", "--requests", "10"]);
    // The database, or the log beside it, has a megabyte.
    let size = |suffix: &str| {
        let file = format!("{database}{suffix}");
        std::fs::metadata(file).map_or(0, |found| found.len())
    };
    eventually(120, || (size("") + size("-wal") + size("-journal") > 1_000_000).then_some(()))
        .expect("nothing is loaded");
    signal(&child, "-INT");
    let asked = std::time::Instant::now();
    let answer = Answer::at_end_of(child);
    assert!(asked.elapsed().as_secs() < 30, "it took {:?}", asked.elapsed());
    assert_eq!(answer.code, Some(130), "{answer:?}");
}

#[test]
fn kill_9_loses_no_recorded_trial() {
    let place = Place::new();
    let mut child = place.spawn(&LONG);
    let file = place.wait_for_trials(4);
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = trials(&file);
    assert!(kept >= 4);
    place.run(&["report", "last"]).success();
    // An incomplete last line, as a kill during a write leaves it, does not prevent this either.
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.push_str("{\"line\":9,\"trial\":{\"round\":0,\"ce");
    std::fs::write(&file, text).unwrap();
    place.run(&["run", "--resume", "last"]).success();
    assert_eq!(trials(&file), TRIALS);
}

#[test]
fn damaged_run_is_listed_and_hides_no_other() {
    let (place, _) = short();
    let damaged = place.path().join("20000101-000000-session");
    std::fs::create_dir(&damaged).unwrap();
    std::fs::write(damaged.join("run.jsonl"), b"\x00\xffnonsense\n").unwrap();
    let listed = place.run(&["runs", "ls"]);
    assert_eq!(listed.out.lines().filter(|line| !line.starts_with(' ')).count(), 2, "{listed:?}");
    assert!(listed.out.contains("damaged"), "{listed:?}");
    place.run(&["report", "20000101"]).exit_code(5).err_has("run.jsonl");
    assert_eq!(place.run(&["report", "last"]).code, Some(0));
}

#[test]
fn changed_number_is_detected_and_intact_lines_stay_usable() {
    let (place, _) = short();
    let file = place.run_file();
    let whole = place.run(&["doctor", "--runs"]).success();
    assert!(whole.out.contains("whole: complete, ") && whole.out.contains("1 run in "), "{whole:?}");

    let text = std::fs::read_to_string(&file).unwrap();
    let third: Vec<&str> = text.split_inclusive('\n').collect();
    let changed = third[2].replacen("\"completed\":", "\"completed\":1", 1);
    std::fs::write(&file, third[..2].concat() + &changed + &third[3..].concat()).unwrap();
    for command in [&["report", "last"][..], &["compare", "last", "last"], &["run", "--resume", "last"]] {
        let answer = place.run(command).exit_code(5);
        for part in
            ["damaged at line 3", "checksum", "the 2 lines before it are intact (1 trial)", "head -n 2"]
        {
            assert!(answer.err.contains(part), "'{part}' is not in: {answer:?}");
        }
    }
    place.run(&["doctor", "--runs"]).exit_code(5).out_has("damaged: ").out_has("line 3");
    // The spec is intact, and so are the earlier results.
    let copy = place.path().join("copy.jsonl");
    std::fs::write(&copy, third[..2].concat()).unwrap();
    place.run(&["report", copy.to_str().unwrap()]).success().out_has("not complete");
    let again = place.run(&["run", "--again", "last", "--no-html"]).success();
    assert!(again.err.contains("damaged at line 3"), "{again:?}");
    assert!(again.err.contains("a repetition needs only that"), "{again:?}");
}

#[test]
fn run_of_unknown_experiment_is_shown() {
    let (place, _) = short();
    let mut run = kurabe_record::read(&RunPath::at(&place.run_file()).unwrap()).unwrap().run;
    run.header.spec.experiment = "tides".to_owned();
    for name in ["tides", "again"] {
        run.header.run = name.to_owned();
        let mut writer = kurabe_record::Store::open(place.path()).unwrap().create(&run.header).unwrap();
        run.trials.iter().for_each(|trial| writer.trial(trial).unwrap());
        writer.end(run.end.as_ref().unwrap()).unwrap();
    }
    for command in
        [&["report", "tides"][..], &["report", "tides", "--format", "csv"], &["compare", "tides", "again"]]
    {
        let answer = place.run(command);
        assert!(answer.code == Some(0) && !answer.out.is_empty(), "{command:?}: {answer:?}");
        assert!(
            answer.err.contains("experiment 'tides' are shown without the question"),
            "{command:?}: {answer:?}"
        );
    }
    assert_eq!(place.run(&["run", "--again", "tides"]).code, Some(2));
}

#[test]
fn doctor_distinguishes_torn_and_foreign_from_damaged_runs() {
    let (place, _) = short();
    let file = place.run_file();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 5]).unwrap();
    let torn = place.run(&["doctor", "--runs"]).success();
    assert!(torn.out.contains("torn: ") && torn.out.contains("is incomplete"), "{torn:?}");
    let later = place.path().join("20990101-000000-later");
    std::fs::create_dir(&later).unwrap();
    std::fs::write(later.join("run.jsonl"), b"{\"kurabe-run\":4,\"kurabe\":\"9.1\"}\n").unwrap();
    let answer = place.run(&["doctor", "--runs"]).exit_code(5);
    assert!(answer.out.contains("made by a newer version of kurabe 9.1 (needs: format 4)"), "{answer:?}");
    assert!(answer.out.contains(": 1 of another version, 1 torn"), "{answer:?}");
    assert!(!answer.out.contains("damaged"), "{answer:?}");
}

#[test]
fn second_run_on_target_in_use_is_rejected() {
    let place = Place::new();
    let file = place.path().join("shared.db");
    let url = format!("sqlite:{}", file.display());
    let mut args = LONG.to_vec();
    args[2] = &url;
    // Until it is killed.
    *args.last_mut().unwrap() = "2000";
    let mut first = place.spawn(&args);
    place.wait_for_trials(2);
    let second = place.run(&["run", "session", &url, "--payload", "1k", "--requests", "10", "--rounds", "1"]);
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(second.err.contains("in use by run"), "{second:?}");
    assert_eq!(second.code, Some(3), "{second:?}");
    // The lease ended with its process.
    place.run(&["run", "session", &url, "--payload", "1k", "--requests", "10", "--rounds", "1"]).success();
}

#[test]
fn report_of_a_run_that_goes_on_says_so() {
    let place = Place::new();
    let args = ["run", "point-read", "null:", "--requests", "50", "--rounds", "3", "--no-html"];
    let (child, _) = place.spawn_to_trial(&args, 2);
    for format in ["text", "json"] {
        place.run(&["report", "last", "--format", format]).success().err_has("is still going on");
    }
    place.go_on(2);
    Answer::at_end_of(child).success();
    assert!(!place.run(&["report", "last"]).success().err.contains("going on"));
}

#[test]
fn pages_of_report_and_compare_are_written_where_the_answer_says() {
    let (place, _) = short();
    for (command, name) in
        [(&["report", "last"][..], "report.html"), (&["compare", "last", "last"], "compare.html")]
    {
        let page = place.at(name);
        let answer = place.run(&[command, &["--export-html", &page]].concat()).success();
        assert!([&answer.out, &answer.err].iter().any(|text| text.contains(&page)), "{answer:?}");
        assert!(std::fs::read_to_string(&page).unwrap().contains("<html"), "{page}");
    }
}
