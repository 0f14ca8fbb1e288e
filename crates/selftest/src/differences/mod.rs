//! Comparisons with and without a known difference: the same server as two targets, one of which repeats some requests.
//!
//! The true difference is not the requested one but the added time. The same clock measures each added request and the
//! trial, so that a round's true ratio is the trial's time without all additions ÷ its time.

mod doubling;
mod ground;

use crate::{Engine, TestResult, start};
pub use ground::Plan;
use ground::{Ground, Tally};
use kurabe_core::units;
use kurabe_targets::{Reporter, with_server_affinity};
use kurabe_testbed::Server;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// The maximum share of comparisons without a difference that may be called different.
const WRONG: f64 = 0.05;
/// The minimum share of differences that must be found on a quiet machine.
const FOUND: f64 = 0.9;
/// The minimum share of intervals that contain the true value. Among a few hundred, chance explains up to 3 %.
const COVERED: f64 = 0.92;

/// Makes the comparisons on these engines until `cancel` is set.
pub fn test(plan: &Plan, engines: &[Engine], cancel: &AtomicBool, reporter: &dyn Reporter) -> TestResult {
    let mut tallies: Vec<(String, Tally, Tally)> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    let mut grounds: Vec<(Ground<'_>, Option<Server>)> = Vec::new();
    for engine in engines {
        let shown = format!("{}{}", engine.name, engine.settings);
        let server = if plan.separate {
            Ok(None)
        } else {
            with_server_affinity(plan.cpu_partition.as_ref(), || start(engine, reporter))
        };
        match server {
            Ok(server) => {
                grounds.push((Ground { engine, plan, cancel }, server));
                let name = |clients: &u64| match plan.clients.len() {
                    1 => shown.clone(),
                    _ => format!("{shown}, {clients} client{}", if *clients == 1 { "" } else { "s" }),
                };
                let row = |clients| (name(clients), Tally::default(), Tally::default());
                tallies.extend(plan.clients.iter().map(row));
            }
            Err(error) => left_out.push(format!("{shown}: {error}")),
        }
    }
    // With and without a difference in turn, engine by engine, so that the machine's noise affects all equally.
    'all: for number in 0..plan.comparisons {
        for (at, (ground, server)) in grounds.iter().enumerate() {
            for effect in [0.0, plan.effect] {
                // The comparisons are divided among the engines.
                if number % grounds.len() as u64 != at as u64 {
                    continue;
                }
                let compared = if plan.separate {
                    ground.compare_separate(effect, number, reporter)
                } else {
                    ground.compare(server.as_ref(), effect, number)
                };
                match compared {
                    Ok(found) => {
                        for (clients, tally) in &found {
                            let row = plan.clients.iter().position(|of| of == clients).unwrap_or(0);
                            let (_, without, with) = &mut tallies[at * plan.clients.len() + row];
                            if effect > 0.0 { with } else { without }.add(tally);
                        }
                    }
                    Err(_) if cancel.load(Ordering::SeqCst) => break 'all,
                    Err(error) => {
                        let why = format!("{}: {error}", ground.engine.name);
                        if !left_out.contains(&why) {
                            reporter.warning(&why);
                            left_out.push(why);
                        }
                    }
                }
            }
        }
        if plan.separate || (number + 1) % 10 == 0 {
            reporter.note(&format!("{} of {} pairs of comparisons", number + 1, plan.comparisons));
        }
    }
    for (_, server) in grounds {
        if let Some(Err(error)) = server.map(Server::stop) {
            reporter.warning(&error.to_string());
        }
    }
    let (mut none, mut some) = (Tally::default(), Tally::default());
    for (_, without, with) in &tallies {
        none.add(without);
        some.add(with);
    }
    TestResult { table: table(plan, &tallies, &none, &some, &left_out), passed: holds(&none, &some) }
}

/// Whether the conditions for any machine hold. That differences are found needs a quiet one, and is only reported.
fn holds(none: &Tally, some: &Tally) -> bool {
    let (quiet, covered) = (none.quiet + some.quiet, none.covered_quiet + some.covered_quiet);
    // Among few comparisons a single wrong one proves nothing: 5 % plus two standard deviations.
    let all = none.judged() as f64;
    let chance = 2.0 * (WRONG * (1.0 - WRONG) * all).sqrt();
    none.all > 0
        && some.all > 0
        && none.called as f64 <= WRONG * all + chance
        && some.reversed == 0
        // An addition that other processes interrupt is measured as longer than its effect.
        && covered as f64 >= COVERED * quiet as f64 - 1.0
}

/// The results as Markdown.
fn table(
    plan: &Plan,
    tallies: &[(String, Tally, Tally)],
    none: &Tally,
    some: &Tally,
    left_out: &[String],
) -> String {
    let percent =
        |logarithm: f64, all: u64| format!("{:.1} %", (logarithm / all.max(1) as f64).exp_m1() * 100.0);
    let of = |part: u64, all: u64| format!("{part} of {all}");
    let mut text = String::from(
        "| engine | none planted: called different | interval holds 0 % | planted: found | true difference | interval holds it | measured minus true, mean | smallest \
         detectable | client full: no verdict | disturbed |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut row = |name: &str, without: &Tally, with: &Tally| {
        let all = without.all + with.all;
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {:+.2} % | {} | {} | {} |",
            of(without.called, without.judged()),
            of(without.covered, without.known),
            of(with.called - with.reversed, with.judged()),
            percent(with.truth, with.all),
            of(with.covered, with.known),
            (without.deviation + with.deviation) / all.max(1) as f64 * 100.0,
            percent(without.detectable + with.detectable, all),
            of(without.client_full + with.client_full, all),
            of(without.disturbed + with.disturbed, all),
        );
    };
    for (engine, without, with) in tallies.iter().filter(|(_, without, _)| without.all > 0) {
        row(engine, without, with);
    }
    row("all", none, some);
    for why in left_out {
        let _ = writeln!(text, "- left out: {why}");
    }
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
    let found = share(some.called - some.reversed, some.judged());
    if some.judged() > 0 && found < FOUND {
        let _ = writeln!(
            text,
            "- fewer than {:.0} % of the planted differences were found: the trials were too noisy for that",
            FOUND * 100.0,
        );
    }
    let what = if plan.writes { "writes" } else { "reads" };
    let clients: Vec<String> = plan.clients.iter().map(u64::to_string).collect();
    let clients =
        if clients == ["1"] { String::new() } else { format!(" of {} clients", clients.join(" and ")) };
    let each = if plan.separate {
        format!("two servers started for each comparison, a run of some {} each", units::time(plan.budget))
    } else {
        format!("{} rounds, trials of {}", plan.rounds, units::time(plan.time))
    };
    let what = plan.records.map_or_else(|| what.to_owned(), |records| format!("{what} of {records} records"));
    let _ = writeln!(
        text,
        "\n{what}{clients}: {} of {} without a difference called different, {} of {} planted differences of {:.1} % found, {} of {} \
         intervals contain the true value; {each} interleaved in slices of {}",
        none.called,
        none.judged(),
        some.called - some.reversed,
        some.judged(),
        plan.effect * 100.0,
        none.covered + some.covered,
        none.known + some.known,
        units::time(plan.slice),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violated_condition_fails_selftest() {
        let none =
            Tally { all: 200, called: 8, covered: 195, quiet: 200, covered_quiet: 195, ..Tally::default() };
        let some =
            Tally { all: 200, called: 190, covered: 191, quiet: 200, covered_quiet: 191, ..Tally::default() };
        assert!(holds(&none, &some));
        assert!(!holds(&Tally { called: 25, ..none }, &some));
        assert!(!holds(&none, &Tally { reversed: 1, ..some }));
        assert!(!holds(&none, &Tally { covered_quiet: 150, ..some }));
        assert!(!holds(&Tally::default(), &some));
        // Disturbed comparisons do not count for intervals.
        assert!(holds(&none, &Tally { quiet: 10, covered_quiet: 10, covered: 150, ..some }));
    }
}
