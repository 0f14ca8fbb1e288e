//! The answer: its text and its file of statements.

use kurabe_advise::advice::{Advice, Gain, Moved, Other, SlowLoop, Why};
use kurabe_stats::Estimate;

fn gain(label: &str) -> Gain {
    Gain {
        label: label.to_owned(),
        sql: format!("{label};"),
        reason: "compared for equality".to_owned(),
        faster: Estimate { value: 2.3, low: Some(2.1), high: Some(2.5) },
        most: Some(Moved {
            statement: "SELECT id, name, state FROM item WHERE order_id = ?".to_owned(),
            before: 0.61,
            after: 0.07,
        }),
        writes: Some(Estimate { value: 1.04, low: Some(1.01), high: Some(1.07) }),
        index_bytes: 14_000_000,
        build_ns: 0,
        hit_ratio: Some(0.834),
        costs: None,
    }
}

fn advice(gains: Vec<Gain>) -> Advice {
    Advice {
        capture: "shop.capture".to_owned(),
        target: "up:postgres".to_owned(),
        requests: 3_960,
        replays: 240,
        unchanged: Some(1.03),
        gains,
        together: None,
        others: Vec::new(),
        loops: Vec::new(),
        ended: None,
        error: None,
    }
}

#[test]
fn file_of_statements_executes_nothing_that_names_and_literals_say() {
    let gain = Gain {
        label: "CREATE INDEX ON a\nDROP TABLE t; (b)".to_owned(),
        sql: "CREATE INDEX \"i\" ON \"a\" (\"b\");".to_owned(),
        reason: "c is always '\r\nDROP TABLE t;\u{85}DROP TABLE t;'".to_owned(),
        ..gain("")
    };
    let advice = Advice { capture: "x\nDROP TABLE t;".to_owned(), ..advice(vec![gain]) };
    let script = advice.script().unwrap();
    let executed: Vec<&str> =
        script.split(['\n', '\r']).filter(|line| !line.is_empty() && !line.starts_with("-- ")).collect();
    assert_eq!(executed, ["CREATE INDEX \"i\" ON \"a\" (\"b\");"], "{script}");
}

#[test]
fn answer_has_at_most_20_lines_whatever_was_tried() {
    let other = |n: usize| {
        let why =
            if n.is_multiple_of(2) { Why::Refused("ERROR: no".to_owned()) } else { Why::NotPromising(1.0) };
        Other { label: format!("CREATE INDEX ON t (c{n})"), sql: String::new(), why }
    };
    let mut others: Vec<Other> = (0..40).map(other).collect();
    let why = Why::WrongAnswer("1 of 9 answers differs".to_owned());
    others.push(Other { label: "jit = off".to_owned(), sql: String::new(), why });
    let gains = (0..4).map(|n| gain(&format!("CREATE INDEX ON item (order_id, c{n})"))).collect();
    let advice = Advice {
        together: Some(gain("all of these")),
        others,
        loops: vec![SlowLoop { statement: "SELECT 1".to_owned(), saves_at_most: 0.4 }],
        ended: Some("stopped by the user".to_owned()),
        ..advice(gains)
    };
    let text = advice.text(120);
    assert!(text.lines().count() <= 20, "{} lines\n{text}", text.lines().count());
    assert!(text.contains("2.3× (2.1–2.5)") && text.contains("61 % → 7 %"), "{text}");
    assert!(text.contains("hit ratio 83 %, writes take 1.04× (1.01–1.07)"), "{text}");
    assert!(text.contains("\nChanges an answer: jit = off: 1 of 9 answers differs\n"), "{text}");
    assert!(text.lines().next().unwrap().contains("up to 3.0 %"), "{text}");
}
