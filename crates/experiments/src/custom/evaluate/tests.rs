//! Values of expressions, and distributions of random values.

use super::super::expression::parse;
use super::super::random;
use super::Rng;
use super::*;
use proptest::prelude::*;

fn value(text: &str) -> Result<Datum> {
    drawn(text, 1)
}

fn drawn(text: &str, seed: u64) -> Result<Datum> {
    let expr = parse(text, &mut |name| match name {
        "scale" | "default_seed" => Ok(0),
        other => Err(Error::usage(format!("no {other}"))),
    })?;
    let values = |_| Datum::Int(10);
    Scope { values: &values, rng: &mut Rng::new(seed) }.value(&expr)
}

#[test]
fn right_side_of_greater_draws_first_as_in_pgbench() {
    for seed in 0..50 {
        for (greater, less) in [(">", "<"), (">=", "<=")] {
            let of = |operator| drawn(&format!("random(1, 3) {operator} random(1, 3)"), seed);
            assert_eq!(of(greater), of(less), "{seed}");
        }
    }
}

#[test]
fn expressions_have_the_values_of_pgbench() {
    use Datum::{Bool, Double, Int, Null};
    for (text, expected) in [
        ("1 + 2 * 3", Int(7)),
        ("(1 + 2) * 3 - 10 % 4", Int(7)),
        ("-5 / 2", Int(-2)),
        ("-:scale * 2", Int(-20)),
        ("5.0 / 2", Double(2.5)),
        ("1e3 + .5", Double(1000.5)),
        ("greatest(1, 5, 3)", Int(5)),
        ("least(1.5, 2)", Double(1.5)),
        ("abs(-17) + mod(54, 32)", Int(39)),
        ("int(5.4 + 3.8)", Int(9)),
        ("int(2.5)", Int(2)),
        ("double(5432)", Double(5432.0)),
        ("power(2.0, 10)", Double(1024.0)),
        ("case when 5 > 3 and not false then 1 else 2 end", Int(1)),
        ("case when null then 1 end", Null),
        ("null and false", Null),
        ("-9223372036854775808", Int(i64::MIN)),
        ("~5 + 1", Int(-7)),
        ("1 + ~ 1 + 1", Int(-2)),
        ("null or false", Null),
        ("1 <= 1 and 2 <> 3 and 2 != 3", Bool(true)),
        ("null is null and not (1 is null)", Bool(true)),
        ("(1 | 2) # 7 & 3", Int(0)),
        ("1 << 4 >> 1", Int(8)),
        ("~0", Int(-1)),
        ("1 isnull", Bool(false)),
        ("random(7, 7)", Int(7)),
    ] {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
}

#[test]
fn invalid_expression_is_rejected_with_reason() {
    for (text, part) in [
        ("", "is incomplete"),
        ("1 +", "is incomplete"),
        ("1 2", "unexpected '2'"),
        ("randon(1, 2)", "did you mean 'random'?"),
        ("random(1)", "takes 2 arguments, found 1"),
        ("random(5, 1)", "is empty"),
        ("random_zipfian(1, 10, 1)", "1.001"),
        ("random_gaussian(1, 10, 1)", "at least 2"),
        ("1 / 0", "division by zero"),
        ("9223372036854775807 + 1", "exceeds 64 bits"),
        ("99999999999999999999", "does not fit"),
        ("1 ? 2", "not part of an expression"),
        (":nothing", "no nothing"),
        ("(1", "expected ')'"),
        ("1 and 2", "neither true nor false"),
    ] {
        let error = value(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    assert!(value(&"(".repeat(100_000)).is_err());
    assert!(value(&"-".repeat(100_000)).is_err());
}

mod fuzz {
    use super::*;

    /// Words of expressions; a byte above 127 of the input stands for one.
    const WORDS: &[&str] = &[
        " ", "(", ")", ", ", "9223372036854775807", "-9223372036854775808", "0", "-1", "1e308", "2.5",
        ":scale", "random(", "hash(", "permute(", "power(", "case when ", " then ", " else ", " end",
        " and ", " or ", "not ", " is null", " << ", " >> ", " / ", " % ", " * ", "int(", "double(",
        "greatest(", "sqrt(", "mod(", "null", "random_zipfian(", "random_gaussian(", "abs(", "pi()",
    ];

    #[test]
    fn any_text_is_an_expression_or_an_error() {
        bolero::check!(name = "expressions").for_each(|input: &[u8]| {
            let spelled = |byte: &u8| match usize::from(*byte).checked_sub(128) {
                Some(number) => WORDS[number % WORDS.len()].to_owned(),
                None => char::from(*byte).to_string(),
            };
            let _ = value(&input.iter().map(spelled).collect::<String>());
        });
    }
}

proptest! {
    #[test]
    fn draws_stay_in_their_range(seed: u64, least in -1000i64..1000, width in 0i64..1000, s in 1.01f64..5.0) {
        let rng = &mut Rng::new(seed);
        let most = least + width;
        for draw in [
            random::uniform(rng, least, most),
            random::zipfian(rng, least, most, s),
            random::exponential(rng, least, most, s),
            random::gaussian(rng, least, most, s + 1.0),
        ] {
            prop_assert!((least..=most).contains(&draw.unwrap()));
        }
    }
}

#[test]
fn the_first_draws_of_a_seed_never_change() {
    let rng = &mut Rng::new(1);
    let mut lines = String::new();
    for _ in 0..8 {
        let draws = [
            random::uniform(rng, 1, 100_000),
            random::zipfian(rng, 1, 100_000, 1.1),
            random::exponential(rng, 1, 100_000, 5.0),
            random::gaussian(rng, 1, 100_000, 2.5),
        ];
        let draws: Vec<String> = draws.into_iter().map(|draw| draw.unwrap().to_string()).collect();
        lines += &(draws.join(" ") + "\n");
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/custom_draws_seed1.txt");
    if std::env::var_os("KURABE_GOLDEN").is_some_and(|what| what == "write") {
        std::fs::write(file, &lines).unwrap();
    }
    assert_eq!(lines, std::fs::read_to_string(file).unwrap());
}

#[test]
fn zipfian_draw_has_probability_of_its_rank() {
    let rng = &mut Rng::new(3);
    for exponent in [0.1, 0.5, 0.99, 1.0, 2.0] {
        let draw = if exponent > 1.0 { random::zipfian } else { random::zipfian_below_one };
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[draw(rng, 0, 9, exponent).unwrap() as usize] += 1;
        }
        let sum: f64 = (1..=10).map(|n| f64::from(n).powf(-exponent)).sum();
        for (rank, count) in (1..).zip(counts) {
            let expected = 100_000.0 * f64::from(rank).powf(-exponent) / sum;
            // Five standard deviations of a binomial count.
            let off = (f64::from(count) - expected).abs();
            assert!(off < 5.0 * expected.sqrt(), "exponent {exponent}, rank {rank}: {counts:?}");
        }
    }
    // The widest range.
    assert!(random::zipfian_below_one(rng, 1, i64::MAX, 0.99).unwrap() >= 1);
    assert_eq!(random::zipfian_below_one(rng, 7, 7, 0.99), Ok(7));
}
