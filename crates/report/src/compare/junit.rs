//! A gated comparison as `JUnit` XML, which CI servers show beside tests: a case for each result that the gate judges.

use super::gate::words;
use super::render::{change, direction, value};
use super::{Answer, Compared, Row};
use crate::messages::Language;
use kurabe_core::text::printable;
use kurabe_stats::Estimate;
use std::fmt::Write as _;

/// The comparison as `JUnit` XML. Results that are slower are failures. Results that are undecided or not judged are
/// skipped, because `JUnit` has no third outcome.
pub fn junit(compared: &Compared, experiment: &str) -> String {
    let (mut cases, mut tests, mut failures, mut skipped) = (String::new(), 0_u32, 0_u32, 0_u32);
    for row in &compared.rows {
        let Some(answer) = row.gate else { continue };
        tests += 1;
        let class = escaped(&format!("kurabe.{experiment}.{}", row.target));
        let _ = write!(cases, "    <testcase name=\"{}\" classname=\"{class}\"", escaped(&name(row)));
        let margin = compared.gate.as_ref().and_then(|gate| gate.decided.criteria.of(row));
        let margin = margin.unwrap_or_default().0 * 100.0;
        match answer {
            Answer::Holds => cases.push_str("/>\n"),
            Answer::DoesNotHold => {
                failures += 1;
                let message = escaped(&format!("{}, beyond {margin} %", change(row, Language::English)));
                let text = escaped(&interval(row));
                let failure = format!("<failure message=\"{message}\" type=\"slower\">{text}</failure>");
                let _ = writeln!(cases, ">\n      {failure}\n    </testcase>");
            }
            Answer::Undecided | Answer::NotTestable => {
                skipped += 1;
                let why =
                    format!("{}: {}; margin {margin} %", words(row, answer, &compared.labels), interval(row));
                let _ = writeln!(cases, ">\n      <skipped message=\"{}\"/>\n    </testcase>", escaped(&why));
            }
        }
    }
    let suite = escaped(&format!("kurabe {experiment}"));
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kurabe\" {counts}>\n  \
         <testsuite name=\"{suite}\" {counts}>\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

/// `read, payload 10 kB, layout blob: throughput on sqlite`.
fn name(row: &Row) -> String {
    let axes = row.shown.iter().map(|(axis, value)| format!(", {axis} {value}"));
    format!("{}{}: {} on {}", row.operation, axes.collect::<String>(), row.metric, row.target)
}

fn interval(row: &Row) -> String {
    let Some(Estimate { value: ratio, low, high }) = row.ratio else {
        return "the runs cannot be compared here".to_owned();
    };
    match low.zip(high) {
        Some((low, high)) => {
            let direction = direction(row, Language::English);
            let [first, second] = [row.first, row.second].map(|side| value(row, side));
            format!("{first} → {second}: second ÷ first is {ratio:.3} ({low:.3} to {high:.3}){direction}")
        }
        None => format!("second ÷ first is {ratio:.3}, without an interval"),
    }
}

/// A text for an element or an attribute, without the characters that XML 1.0 does not allow.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_characters_that_xml_forbids_are_escaped() {
        assert_eq!(escaped("a<b>&\"c\" 5 %"), "a&lt;b&gt;&amp;&quot;c&quot; 5 %");
        assert_eq!(escaped("\u{1b}[31m\n\0é"), r"\u{1b}[31m\n\u{0}é");
        assert_eq!(escaped("\u{ffff}"), "\u{fffd}");
    }
}
