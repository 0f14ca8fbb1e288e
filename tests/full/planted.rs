//! `kurabe selftest --differences`: planted differences are counted.

use crate::support::Place;

#[test]
fn planted_differences_are_counted() {
    let place = Place::new();
    let ways = [
        (&["--interleave=off"][..], "reads"),
        (&["--interleave=off", "--writes"], "writes"),
        (&["--clients", "3"], "reads of 3 clients"),
    ];
    for (of, what) in ways {
        let short = ["selftest", "sqlite", "--differences", "2", "--duration", "20ms"];
        let answer = place.run(&[&short, of].concat());
        assert!(answer.out.contains("| sqlite | "), "{answer:?}");
        assert!(answer.out.contains("of 2 planted differences of 5.0 %"), "{answer:?}");
        assert!(answer.out.contains("of 4 intervals contain the true value"), "{answer:?}");
        assert!(answer.out.contains(&format!("\n{what}: ")), "{answer:?}");
    }
    // An added read takes about as long as another one: what is counted as added is near to what was planted.
    let large = ["selftest", "sqlite", "--differences", "2", "--duration", "50ms", "--effect", "40%"];
    let answer = place.run(&large);
    let row = answer.out.lines().find(|line| line.starts_with("| all | ")).expect("a row of all");
    let truth =
        row.split('|').nth(5).and_then(|cell| cell.trim().strip_suffix(" %")).expect("a true difference");
    let truth: f64 = truth.parse().expect("a number");
    assert!((40.0..100.0).contains(&truth), "{answer:?}");
    place.run(&["selftest", "--differences", "0"]).exit_code(2);
}
