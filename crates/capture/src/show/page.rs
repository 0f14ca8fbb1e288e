//! What a capture shows, as a page: everything that the terminal has room for a part of, and how it went over time.

use super::terminal::steps;
use super::{Course, Shown, Statement, Unit, left_out};
use crate::file::Known;
use kurabe_core::text::printable;
use kurabe_core::units::{count, size, time};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::fmt::Write as _;
use std::time::Duration;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:75em;margin:2em auto;padding:0 1em;color-scheme:light dark}\
    table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}th,td{padding:.2em .8em;border-bottom:1px solid #8884;\
    text-align:left;vertical-align:top}.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}code{overflow-wrap:anywhere}\
    svg{display:block;width:100%;height:8em;color:#2a78d6}figure{margin:1em 0}.s{color:#b00}@media(prefers-color-scheme:dark){.s{color:#f88}}";

/// The height of a chart, in its own units.
const HEIGHT: f64 = 100.0;

fn ns(ns: u64) -> String {
    time(Duration::from_nanos(ns))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

impl Shown {
    /// The page of a capture of this name, which loads nothing from elsewhere.
    pub fn page(&self, name: &str) -> String {
        let title = format!("{}: {}", printable(name), self.about.protocol);
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    h1 { (title) }
                    ul { @for fact in self.facts() { li { (fact) } } }
                    @if let Some((unit, what)) = self.n_plus_one() {
                        p { strong.s { "N+1" } ": " (count(unit.calls)) " × " code { (printable(&what)) } }
                    }
                    @if self.about.known != Known::Requests {
                        (chart(&self.course, "requests each second", |at| at.requests as f64 / at.seconds.max(1) as f64))
                        (chart(&self.course, "requests under way", |at| at.busy_ns as f64 / 1e9 / at.seconds.max(1) as f64))
                    }
                    h2 { "Statements" }
                    (self.statements())
                    h2 { "Units of work" }
                    p { "Numbers are those of the statements; loops are folded." }
                    (self.units())
                }
            }
        };
        page.into_string()
    }

    fn facts(&self) -> Vec<String> {
        let connections = &self.connections;
        let rate = self.requests as f64 / (self.time_ns as f64 / 1e9).max(1e-9);
        let mut facts = vec![
            format!(
                "{} requests in {}: {rate:.0} each second, at most {}",
                count(self.requests),
                ns(self.time_ns),
                count(self.peak_per_second)
            ),
            format!(
                "{} connections, at most {} at once, {} of their time idle in a transaction",
                count(connections.opened),
                count(connections.most_open),
                percent(connections.idle_in_transaction)
            ),
        ];
        if self.about.known <= Known::Times {
            facts.push(format!("{:.2} requests under way on average", self.concurrency));
        }
        facts.push(match self.about.known {
            Known::All => format!(
                "{} errors, {} without an answer, {} pipelined, {} of bulk data",
                count(self.errors),
                count(self.unanswered),
                count(self.pipelined),
                size(self.data_bytes)
            ),
            Known::Errors => {
                format!("from a log, whose times are the server's: {} errors", count(self.errors))
            }
            Known::Times => "from a log: times are the server's, and answers are not known".to_owned(),
            Known::Requests => {
                "from a log: neither times nor answers are known, and shares are of calls".to_owned()
            }
        });
        facts.extend((self.cut > 0).then(|| left_out(self.cut, self.requests)));
        facts.extend(
            connections.unreadable.iter().map(|(why, times)| format!("{} not read: {why}", count(*times))),
        );
        if !self.ending.complete {
            facts.push("the recorder did not end in order: what it recorded last is missing".to_owned());
        }
        facts
    }

    fn statements(&self) -> Markup {
        let dash = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), ns);
        let row = |(place, one): (usize, &Statement)| {
            html! { tr {
                td.n { (place + 1) }
                td.n { (percent(one.share)) }
                @for number in [one.calls, one.rows, one.affected, one.errors] { td.n { (count(number)) } }
                td.n { (dash(one.p50_ns)) }
                td.n { (dash(one.p99_ns)) }
                td { code { (printable(&one.text)) } }
            } }
        };
        html! { table {
            thead { tr {
                @for name in ["#", "share", "calls", "rows", "changed", "errors", "p50", "p99"] { th.n { (name) } }
                th { "statement" }
            } }
            tbody { @for one in self.statements.iter().enumerate() { (row(one)) } }
        } }
    }

    fn units(&self) -> Markup {
        let row = |unit: &Unit| {
            html! { tr {
                td.n { (percent(unit.share)) }
                td.n { (count(unit.calls)) }
                td {
                    @if unit.n_plus_one { strong.s { "N+1 " } }
                    @if unit.transaction { "transaction: " }
                    (steps(&unit.steps))
                }
                td { @for (name, draw) in &unit.draws { (printable(name)) " " (printable(draw)) br; } }
            } }
        };
        html! {
            table {
                thead { tr { th.n { "share" } th.n { "calls" } th { "steps" } th { "draws of values" } } }
                tbody { @for unit in &self.units { (row(unit)) } }
            }
            @if self.units_not_listed > 0 { p { (count(self.units_not_listed)) " units of other kinds" } }
        }
    }
}

/// A line over time, with its largest value.
fn chart(course: &[Course], name: &str, of: impl Fn(&Course) -> f64) -> Markup {
    let values: Vec<f64> = course.iter().map(of).collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    let width = course.len().max(1);
    let mut points = String::new();
    for (at, value) in values.iter().enumerate() {
        let y = HEIGHT - HEIGHT * value / most.max(f64::MIN_POSITIVE);
        // Writing to a String cannot fail.
        let _ = write!(points, "{at},{y:.1} {},{y:.1} ", at + 1);
    }
    let seconds: u64 = course.iter().map(|at| at.seconds).sum();
    html! { figure {
        figcaption { (name) ", over " (count(seconds)) " s; at most " (format!("{most:.1}")) }
        svg viewBox=(format!("0 -2 {width} {}", HEIGHT + 4.0)) preserveAspectRatio="none" role="img" aria-label=(name) {
            polyline fill="none" stroke="currentColor" stroke-width="1.5" vector-effect="non-scaling-stroke" points=(points.trim_end());
        }
    } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_all_statements_and_texts_are_only_texts() {
        let statement = |text: &str| Statement {
            text: text.to_owned(),
            calls: 1_234,
            share: 0.25,
            ..Statement::default()
        };
        let statements = (0..40).map(|n| statement(&format!("SELECT '<b>' FROM t{n}"))).collect();
        let course = vec![
            Course { seconds: 1, requests: 10, busy_ns: 500_000_000 },
            Course { seconds: 1, requests: 40, busy_ns: 0 },
        ];
        let page = Shown { statements, course, ..Shown::default() }.page("a<i>");
        for part in [
            "a&lt;i&gt;", "t39", "1,234", "25.0 %", "0,75.0 1,75.0 1,0.0 2,0.0", "at most 40.0",
            "at most 0.5",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<b>") && !page.contains("<i>"));
    }

    #[test]
    fn loop_of_a_unit_is_shown_by_its_repetitions() {
        let part =
            |times, statement| super::super::Part { times, statement: Some(statement), repeats: Vec::new() };
        assert_eq!(steps(&[part([2, 9], 0)]), "2-9 × #1");
        assert_eq!(steps(&[part([1, 1], 1), part([20, 20], 0)]), "#2 + 20 × #1");
    }
}
