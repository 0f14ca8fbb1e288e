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
    place.run(&["selftest", "--differences", "0"]).exit_code(2);
}
