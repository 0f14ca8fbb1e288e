//! `cargo xtask bench aa`: how often a run calls one of two identical targets faster. Each run starts two throwaway
//! servers of one kind, so that differences between instances count.

use super::pairs;
use super::run::{Kurabe, primary_results};
use crate::shell::{self, Outcome};

/// How often the comparison of two identical targets is repeated.
const REPEATS: u32 = 50;

/// The default run: two targets of one kind and few cells, so that it ends in minutes.
const AA: [&str; 11] = [
    "session", "sqlite:", "sqlite:", "--payload", "1k,10k", "--layout", "blob", "--compress", "none",
    "--budget", "6s",
];

/// Repeats the run: `aa [REPEATS] [EXPERIMENT TARGET TARGET OPTIONS …]`, as for `kurabe run`. A run is wrong if any
/// primary verdict calls one of the targets faster or slower. At most one in twenty may be wrong, with a margin for
/// chance.
pub fn run(args: &[String]) -> Outcome {
    if let Some(("--tools", rest)) = args.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return pairs::run(rest);
    }
    let given = args.first().map(|text| text.parse::<u32>());
    let repeats =
        given.transpose().map_err(|_| "the number of repeats is not a number".to_owned())?.unwrap_or(REPEATS);
    let own: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
    let arguments = if own.is_empty() { AA.to_vec() } else { own };
    let kurabe = Kurabe::build("aa")?;
    println!("kurabe run {}", arguments.join(" "));
    let (mut wrong, mut comparisons, mut wrong_comparisons) = (0, 0, 0);
    for repeat in 1..=repeats {
        let mut command = kurabe.command();
        shell::run(command.arg("run").args(&arguments).args(["--quiet", "--no-html"]), "kurabe run")?;
        let results = primary_results(&kurabe.report("json")?)?;
        let called = results.iter().filter(|called| **called).count();
        comparisons += results.len();
        wrong_comparisons += called;
        wrong += u32::from(called > 0);
        println!(
            "{repeat:3}: {} comparisons, {called} called different; {wrong} of {repeat} runs wrong",
            results.len()
        );
    }
    println!(
        "{wrong} of {repeats} runs, {wrong_comparisons} of {comparisons} comparisons called one of two equal targets faster"
    );
    let expected = 0.05 * f64::from(repeats);
    if f64::from(wrong) > expected + 2.0 * (0.95 * expected).sqrt() {
        Err("more than one run in twenty, beyond what chance adds".to_owned())
    } else {
        Ok(())
    }
}
