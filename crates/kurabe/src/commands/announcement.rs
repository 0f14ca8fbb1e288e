//! Prints the plan of a run before it starts.

use super::session::StopRule;
use crate::progress::words;
use kurabe_core::axis::AxisValue;
use kurabe_core::question::{Question, TARGETS};
use kurabe_core::run::{CellRecord, Replanned};
use kurabe_core::units;
use kurabe_engine::plan::Plan;
use kurabe_engine::plan::budget::{Fit, LATE};
use kurabe_engine::prepare::target::Target;
use kurabe_targets::{STACK, UP};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::time::Duration;

/// The question of a run, of what is available.
fn question(plan: &Plan) -> Question {
    let Question { compare, within } = plan.spec.question.clone().unwrap_or_default();
    let values = |name: &str| {
        let cells = plan.available().map(|(cell, _)| cell).filter(|cell| !cell.aa_control);
        let value = |cell: &CellRecord| match name {
            TARGETS => Some(AxisValue::Number(cell.target as u64)),
            axis => cell.axes.get(axis).cloned(),
        };
        cells.map(value).collect::<HashSet<_>>().len()
    };
    let varies = |names: Vec<String>| names.into_iter().filter(|name| values(name) > 1).collect();
    Question { compare: varies(compare), within: varies(within) }
}

/// An estimated time, without fractions of a second.
pub(super) fn about(time: Duration) -> String {
    let whole = Duration::from_secs(time.as_secs_f64().round() as u64);
    format!("about {}", units::time(if whole.is_zero() { time } else { whole }))
}

/// The plan: cells, rounds and time, and what is unavailable, with reasons.
pub(super) fn announcement(
    plan: &Plan,
    targets: &[Target],
    fit: Option<&Fit>,
    every_cell: bool,
    stop_rule: StopRule<'_>,
) -> String {
    let (spec, axes) = (&plan.spec, &plan.axes);
    let available = plan.available().filter(|(record, _)| !record.aa_control).count();
    let repeats = plan.available().count() - available;
    let repeats = if repeats == 1 { "an A/A control".to_owned() } else { format!("{repeats} A/A controls") };
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    let time = match (fit, spec.duration_ns) {
        (Some(fit), _) => about(fit.expected),
        (None, Some(duration)) => {
            let most = Duration::from_nanos(duration).mul_f64(1.2) * plan.trials_of(spec, spec.rounds) as u32;
            format!("at most {}", about(most))
        }
        (None, None) => "until all requests are done".to_owned(),
    };
    let further = spec.until.map_or_else(String::new, |until| {
        format!("; then more rounds, up to {}, {}", until.max_rounds, stop_rule.end(until.margin))
    });
    let mut text = format!(
        "{} on {}: {} combination{} and {repeats} × {} × {} rounds, {time}{further}",
        spec.experiment,
        names.join(", "),
        units::count(available as u64),
        if available == 1 { "" } else { "s" },
        spec.operations.join(", "),
        spec.rounds
    );
    if every_cell {
        let _ = write!(text, "\ncompares {}", question(plan).words());
        for (cell, _) in plan.available() {
            let repeat = match (cell.aa_control, cell.second_instance) {
                (false, _) => "",
                (true, true) => " (A/A control on a second server instance)",
                (true, false) => " (A/A control on the same server)",
            };
            let values = words(axes, &cell.axes);
            let values = if values.is_empty() { values } else { format!(" {values}") };
            let _ = write!(text, "\n  {}{values}{repeat}", targets[cell.target].name);
        }
    }
    for reason in unavailable(plan, targets) {
        let _ = write!(text, "\nnot available: {reason}");
    }
    text
}

/// The time to start a throwaway server, make its database and end it.
const START: Duration = Duration::from_secs(4);

/// The time that a run takes with the starts of its servers, before its targets are opened; `None` if its budget is not known.
pub(super) fn with_starts(budget: Option<Duration>, urls: &[String]) -> Option<Duration> {
    let is_started = |url: &&String| [UP, STACK].contains(&url.split(':').next().unwrap_or_default());
    Some(budget? + START * urls.iter().filter(is_started).count() as u32)
}

/// From this time on, a run starts only if the user wants it to.
const LONG: Duration = Duration::from_secs(3_600);

/// The expected time of a run that takes more than an hour.
pub(super) fn long(plan: &Plan, fit: Option<&Fit>) -> Option<Duration> {
    let spec = &plan.spec;
    let trials = plan.trials_of(spec, spec.rounds) as u32;
    let expected = fit.map(|fit| fit.expected);
    let expected = expected.or(spec.duration_ns.map(|ns| Duration::from_nanos(ns) * trials))?;
    (expected > LONG).then_some(expected)
}

/// What was left out to keep within the budget; `None` if nothing was.
pub(super) fn left_out(fit: &Fit, rounds: u32, budget: Duration) -> Option<String> {
    let mut parts: Vec<String> = fit
        .left_out
        .iter()
        .map(|(axis, values)| {
            let values: Vec<String> = values.iter().map(|value| axis.show(value)).collect();
            format!("{} {}", axis.name, values.join(", "))
        })
        .collect();
    if let Some(before) = fit.rounds_before {
        parts.push(format!("{} of {before} rounds", before - rounds));
    }
    if parts.is_empty() {
        return None;
    }
    let budget = units::time(budget);
    let all = fit.time_for_all.as_secs() + 1;
    Some(format!(
        "left out to keep trials long enough within {budget}: {} (--budget {all}s measures all)",
        parts.join("; "),
    ))
}

/// A warning if the run cannot keep within its budget.
pub(super) fn too_long(fit: &Fit, budget: Duration) -> Option<String> {
    (fit.expected > budget.mul_f64(LATE)).then(|| {
        format!(
            "the run will take {} instead of {}: each trial needs {}, besides loading and checking; \
             use fewer axis values or fewer --rounds",
            about(fit.expected),
            units::time(budget),
            units::time(fit.trial)
        )
    })
}

/// A note when rounds are given up.
pub(super) fn given_up(plan: Replanned, planned: u32, expected: Duration, announced: Duration) -> String {
    let restarts = if plan.restarts == 0 { " without a restart" } else { "" };
    format!(
        "judging by its first rounds, the run would take {} instead of {}: it makes {} of {planned} rounds{restarts} \
         (--budget {}s makes all)",
        about(expected),
        about(announced),
        plan.rounds,
        expected.as_secs() + 1
    )
}

/// A note after the first rounds if the run will take longer than was announced.
pub(super) fn longer_than_planned(expected: Duration, announced: Duration) -> Option<String> {
    (expected > announced.mul_f64(LATE)).then(|| {
        let [expected, announced] = [expected, announced].map(about);
        format!("judging by its first rounds, the run will take {expected} instead of {announced}")
    })
}

/// One line per reason, with the cells that it excludes.
pub(super) fn unavailable(plan: &Plan, targets: &[Target]) -> Vec<String> {
    let mut reasons: Vec<(usize, &str, Vec<String>)> = Vec::new();
    let records = plan.cells.iter().map(|cell| &cell.record).filter(|cell| !cell.aa_control);
    let refused = records.flat_map(|cell| {
        let name = words(&plan.axes, &cell.axes);
        let has_operations = !cell.unavailable_operations.is_empty();
        let whole =
            cell.unavailable.iter().filter(move |_| !has_operations).map(|reason| (reason, String::new()));
        let single =
            cell.unavailable_operations.iter().map(|(operation, why)| (why, format!("{operation} ")));
        let refused: Vec<_> = whole.chain(single).collect();
        refused.into_iter().map(move |(reason, what)| (cell, reason.as_str(), what + &name))
    });
    for (cell, reason, name) in refused {
        match reasons.iter_mut().find(|(target, known, _)| *target == cell.target && *known == reason) {
            Some((_, _, names)) => names.push(name),
            None => reasons.push((cell.target, reason, vec![name])),
        }
    }
    let line = |(target, reason, names): (usize, &str, Vec<String>)| {
        let shown = if names.len() > 4 {
            format!("{} and {} more", names[..3].join(", "), names.len() - 3)
        } else {
            names.join(", ")
        };
        format!("{}: {reason}", format!("{} {shown}", targets[target].name).trim_end())
    };
    reasons.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimated_time_has_no_fraction_of_a_second() {
        let times = [(57_730, "about 58 s"), (104_400, "about 1 min 44 s"), (300, "about 300 ms")];
        for (milliseconds, text) in times {
            assert_eq!(about(Duration::from_millis(milliseconds)), text);
        }
    }
}
