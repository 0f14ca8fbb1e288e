//! `--until conclusive`: rounds follow until every comparison is conclusive or a limit is reached, and results are
//! kept.

use crate::support::{Answer, Place, signal, trials};

/// Two targets that are one: they differ only by noise.
const EQUALS: [&str; 12] = [
    "run", "point-read", "null:", "null:", "--clients", "1", "--requests", "400", "--records", "100",
    "--rounds", "3",
];

fn rounds(report: &serde_json::Value) -> u64 {
    report["rounds"].as_u64().unwrap()
}

#[test]
fn run_ends_at_analysis_or_maximum_rounds_and_is_resumable() {
    let place = Place::new();
    // On any machine: no noise reaches a factor of two.
    let wide = ["--until", "conclusive", "--margin", "100%", "--max-rounds", "60"];
    place.run(&[&EQUALS[..], &wide].concat()).success();
    let report = place.run(&["report", "--format", "json"]).json();
    let made = rounds(&report);
    let analyses = [3, 5, 8, 12, 18, 27, 41, 60];
    assert!(analyses.contains(&made), "it ended after {made} rounds, at no analysis");
    let mut verdicts =
        report["verdicts"].as_array().unwrap().iter().filter(|verdict| verdict["primary"] == true);
    let conclusive = verdicts.all(|verdict| verdict["conclusive"] == true);
    assert!(conclusive || made == 60, "{report}");

    // Eight rounds are never conclusive within a hundredth of a percent.
    let narrow = ["--until", "conclusive", "--margin", "0.01%", "--max-rounds", "8"];
    let answer = place.run(&[&EQUALS[..], &narrow].concat()).success();
    let report = place.run(&["report", "--format", "json"]).json();
    if rounds(&report) == 8 {
        assert!(answer.err.contains("8 rounds, the allowed maximum"), "{answer:?}");
        let findings = report["findings"].as_array().unwrap();
        let tested = findings.iter().find(|finding| finding["kind"] == "tested").unwrap();
        assert_eq!(tested["analysed_after"], serde_json::json!([3, 5, 8]), "{report}");
    } else {
        // A difference may really exist: one of two connections is always the first.
        assert!(report["verdicts"][0]["result"] != "undecided", "{report}");
    }

    // More rounds may follow, because every analysis spends its own share.
    place.run(&["run", "--resume", "last", "--max-rounds", "18"]).success();
    let report = place.run(&["report", "--format", "json"]).json();
    assert!(matches!(rounds(&report), 3 | 5 | 8 | 12 | 18), "{report}");
}

#[test]
fn run_with_fixed_rounds_cannot_be_extended() {
    let place = Place::new();
    assert_eq!(place.run(&EQUALS).code, Some(0));
    let answer = place.run(&["run", "--resume", "last", "--max-rounds", "9"]).exit_code(2);
    assert!(answer.err.contains("fixed number of rounds"), "{answer:?}");
    assert!(answer.err.contains("--until conclusive"), "{answer:?}");
}

#[test]
fn run_stopped_between_analyses_shows_no_verdicts_and_resumes() {
    let place = Place::new();
    let until = ["--until", "conclusive", "--margin", "0.01%", "--max-rounds", "12"];
    // Fewer trials than those of the first analysis, which may be the last.
    let (child, file) =
        place.spawn_to_trial(&[&EQUALS[..10], &["--rounds", "2", "--duration", "60ms"], &until].concat(), 4);
    signal(&child, "-INT");
    let answer = Answer::at_end_of(child).exit_code(130);
    let kept = trials(&file);
    assert!(kept >= 4);
    let shown = place.run(&["report", "last"]);
    for text in [&answer.out, &shown.out] {
        assert!(text.contains("No verdicts yet: the next planned analysis is after "), "{text}");
        assert!(!text.contains("faster"), "{text}");
    }
    let report = place.run(&["report", "--format", "json"]).json();
    assert!(report["verdicts"].as_array().unwrap().is_empty(), "{report}");
    let next = report["next_analysis"].as_u64().unwrap();
    assert!([2, 3, 5, 8, 12].contains(&next), "{report}");
    place.run(&["run", "--resume", "last"]).success();
    assert!(trials(&file) >= kept);
    let report = place.run(&["report", "--format", "json"]).json();
    assert!(report["complete"] == true && [2, 3, 5, 8, 12].contains(&rounds(&report)), "{report}");
}
