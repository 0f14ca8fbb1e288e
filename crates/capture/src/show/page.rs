//! What a capture shows, as a page: everything that the terminal has room for a part of, and how it went over time.

use super::facts::ns;
use super::terminal::steps;
use super::{Course, Shown, Statement, Unit};
use crate::file::Known;
use kurabe_core::text::printable;
use kurabe_core::units::count;
use maud::{Markup, html};
use std::fmt::Write as _;

/// The height of a chart, in its own units.
const HEIGHT: f64 = 100.0;

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

impl Shown {
    /// The page of a capture of this name, which loads nothing from elsewhere: its title, and what is below.
    pub fn page(&self, name: &str) -> (String, Markup) {
        let title = format!("{}: {}", printable(name), self.about.protocol);
        let facts = self.facts().into_iter().chain(self.unreadable()).chain(self.cut_short());
        let body = html! {
            ul { @for fact in facts { li { (fact) } } }
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
        };
        (title, body)
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
        let (title, body) = Shown { statements, course, ..Shown::default() }.page("a<i>");
        let page = body.into_string();
        assert_eq!(title, "a<i>: ");
        for part in [
            "&lt;b&gt;", "t39", "1,234", "25.0 %", "0,75.0 1,75.0 1,0.0 2,0.0", "at most 40.0", "at most 0.5",
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
