//! The answer as text, in at most 20 lines.

use crate::advice::{Advice, Gain, Other, SlowLoop, Why};
use kurabe_core::units::{count, counted, size, time};
use kurabe_stats::Estimate;
use std::time::Duration;

/// The narrowest columns of a statement and of a label.
const NARROW: usize = 24;
/// Lines of SQL that are shown.
const SQL: usize = 4;
/// Lines about what gained nothing.
const LINES: usize = 2;
/// Proposals that gained nothing and are named.
const NAMED: usize = 6;

/// A factor with its interval.
pub fn factor(estimate: Estimate) -> String {
    let digits = |value: f64| {
        if value >= 10.0 {
            format!("{value:.0}")
        } else if value >= 1.2 || value <= 0.8 {
            format!("{value:.1}")
        } else {
            format!("{value:.2}")
        }
    };
    match estimate.ends() {
        Some((low, high)) => format!("{}× ({}–{})", digits(estimate.value), digits(low), digits(high)),
        None => format!("{}×", digits(estimate.value)),
    }
}

/// The text, cut to so many characters.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The end of a statement, where its condition is, after its first word.
fn short(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let first = text.split(' ').next().unwrap_or_default();
    let room = width.saturating_sub(first.chars().count() + 3);
    let start = text.chars().count().saturating_sub(room);
    let end: String = text.chars().skip(start).collect();
    // It begins with a whole word.
    let end = end.split_once(' ').map_or(end.as_str(), |(_, rest)| rest);
    format!("{first} … {end}")
}

/// A share from 0 to 1.
pub fn share(share: f64) -> String {
    if share > 0.0 && share < 0.01 { "< 1 %".to_owned() } else { format!("{:.0} %", 100.0 * share) }
}

/// What a gain costs.
pub fn costs(gain: &Gain) -> String {
    let bytes = match gain.index_bytes {
        0 => None,
        bytes if bytes < 0 => Some(format!("saves {}", size(bytes.unsigned_abs()))),
        bytes => Some(size(bytes.unsigned_abs())),
    };
    let built = (gain.build_ns > 100_000_000)
        .then(|| format!("built in {}", time(Duration::from_nanos(gain.build_ns))));
    let writes = gain.writes.map(|writes| format!("writes take {}", factor(writes)));
    let hits = gain.hit_ratio.map(|ratio| format!("hit ratio {}", share(ratio)));
    let all: Vec<String> = [hits, writes, bytes, built, gain.costs.clone()].into_iter().flatten().collect();
    if all.is_empty() { "nothing that was seen".to_owned() } else { all.join(", ") }
}

pub(crate) fn text(advice: &Advice, width: usize) -> String {
    let within = match advice.unchanged {
        Some(band) => {
            format!("; the unchanged server differs from itself by up to {:.1} %", 100.0 * (band - 1.0))
        }
        None => String::new(),
    };
    let mut lines = vec![format!(
        "{} on {}: {}, {} replays, all answers compared{within}",
        advice.capture,
        advice.target,
        counted(advice.requests, "request"),
        count(advice.replays as u64)
    )];
    lines.push(String::new());
    if advice.gains.is_empty() {
        lines.push(format!(
            "Nothing that was tried is a gain: {}.",
            counted(advice.others.len() as u64, "proposal")
        ));
    } else {
        lines.extend(gains(advice, width));
        lines.push(String::new());
        let sql: Vec<String> =
            advice.gains.iter().flat_map(|gain| gain.sql.lines().map(str::to_owned)).collect();
        if sql.len() <= SQL {
            lines.extend(sql);
        } else {
            lines.push("-o advice.sql writes the statements".to_owned());
        }
    }
    lines.push(String::new());
    lines.extend(others(&advice.others, width));
    lines.extend(advice.loops.first().map(|one| of_loop(one, width)));
    if let Some(why) = &advice.ended {
        lines.push(format!(
            "Ended early: {}",
            cut(why.lines().next().unwrap_or_default(), width.saturating_sub(13))
        ));
    }
    lines.push("Nothing of yours was changed: all of it was done on throwaway servers.".to_owned());
    lines.join("\n")
}

/// The table of gains.
fn gains(advice: &Advice, width: usize) -> Vec<String> {
    let all: Vec<&Gain> = advice.gains.iter().chain(&advice.together).collect();
    let widest =
        |text: &dyn Fn(&Gain) -> String| all.iter().map(|gain| text(gain).chars().count()).max().unwrap_or(0);
    let label = widest(&|gain| gain.label.clone()).clamp(NARROW, (width / 3).max(NARROW));
    let faster = widest(&|gain| factor(gain.faster)).max("all requests".len());
    let statement = (width / 3).saturating_sub(16).max(NARROW);
    let most = |gain: &Gain| {
        gain.most.as_ref().map_or_else(String::new, |most| {
            format!("{}  {} → {}", short(&most.statement, statement), share(most.before), share(most.after))
        })
    };
    let moved = widest(&most).max("most of it, of the time before".len());
    let line = |a: &str, b: &str, c: &str, d: &str| {
        format!("{a:<label$}  {b:<faster$}  {c:<moved$}  {d}").trim_end().to_owned()
    };
    let row = |gain: &&Gain| line(&cut(&gain.label, label), &factor(gain.faster), &most(gain), &costs(gain));
    std::iter::once(line("", "all requests", "most of it, of the time before", "costs"))
        .chain(all.iter().map(row))
        .collect()
}

/// What gained nothing, and why: what changes an answer first, then a line a reason.
fn others(others: &[Other], width: usize) -> Vec<String> {
    let because = |what: &str, of: fn(&Why) -> Option<&String>| -> Vec<String> {
        let all = others.iter().filter_map(|one| Some((&one.label, of(&one.why)?)));
        all.map(|(label, why)| format!("{what}: {label}: {}", why.lines().next().unwrap_or_default()))
            .collect()
    };
    let mut lines =
        because("Changes an answer", |why| if let Why::WrongAnswer(why) = why { Some(why) } else { None });
    let mut list = |what: &str, is: &dyn Fn(&Why) -> bool| {
        let labels: Vec<&str> = others
            .iter()
            .filter(|one| is(&one.why))
            .map(|one| one.label.trim_start_matches("CREATE "))
            .collect();
        if !labels.is_empty() {
            let more = labels.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            lines.push(format!("{what}: {}{more}", labels[..labels.len().min(NAMED)].join("; ")));
        }
    };
    list("No gain that can be told from none", &|why| {
        matches!(why, Why::NotPromising(_) | Why::NotConfirmed(_))
    });
    list("Promising, and not confirmed", &|why| matches!(why, Why::Unconfirmed));
    list("Slower", &|why| matches!(why, Why::Slower(_)));
    list("Not tried, no time left (--budget)", &|why| matches!(why, Why::NoTime));
    lines.extend(because("Refused", |why| if let Why::Refused(why) = why { Some(why) } else { None }));
    let more = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    lines.extend((more > 0).then(|| format!("{more} more lines: --report json has all")));
    lines.into_iter().map(|line| cut(&line, width)).collect()
}

fn of_loop(one: &SlowLoop, width: usize) -> String {
    let room = width.saturating_sub(70).max(NARROW);
    format!(
        "N+1: {}: one statement in place of the loop saves at most {} of the time (an estimate)",
        short(&one.statement, room),
        share(one.saves_at_most)
    )
}
