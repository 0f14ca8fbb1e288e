//! What a capture shows, as text for a terminal.

use super::ns;
use super::{Shown, SpreadLoop, Unit, left_out};
use crate::file::Known;
use crate::units::{Node, What, flatten};
use kurabe_core::text::printable;
use kurabe_core::units::count;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Rows of each table on a terminal.
const ROWS: usize = 6;

impl Shown {
    /// The answer for a terminal: at most 25 lines of 80 columns.
    pub fn text(&self, name: &str) -> String {
        let mut out = format!("{}: ", printable(name));
        let is_log = self.about.known != Known::All;
        let cut = (self.cut > 0).then(|| left_out(self.cut, self.requests));
        for fact in self.facts().into_iter().chain(cut).chain(self.unreadable().take(2)) {
            let _ = writeln!(out, "{fact}");
        }
        let _ = writeln!(out, "\n  # share    calls     rows      p50      p99  statement");
        for (place, one) in self.statements.iter().take(ROWS).enumerate() {
            let dash = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), ns);
            let rows = one.rows.max(one.affected);
            let _ = writeln!(
                out,
                "{:>3} {:>3.0} % {:>8} {:>8} {:>8} {:>8}  {}",
                place + 1,
                100.0 * one.share,
                short(one.calls),
                if is_log && rows == 0 { "-".to_owned() } else { short(rows) },
                dash(one.p50_ns),
                dash(one.p99_ns),
                shortened(&with_table(&one.text, 33), 33),
            );
        }
        let left = self.statements.len().saturating_sub(ROWS);
        if left > 0 {
            let _ = writeln!(out, "    and {} more (--report json)", count(left as u64));
        }
        let _ = writeln!(out, "\n share    calls  unit of work (statements by #)");
        for (place, unit) in self.units.iter().take(ROWS - 1).enumerate() {
            let kind = if unit.transaction { "transaction: " } else { "" };
            let sign = if unit.n_plus_one { "N+1: " } else { "" };
            let steps = format!("{sign}{kind}{}", steps(&unit.steps));
            let _ = writeln!(
                out,
                " {:>3.0} % {:>8}  {}",
                100.0 * unit.share,
                short(unit.calls),
                shortened(&steps, 61)
            );
            // Of the first only, whose draws say most.
            if place == 0 && !unit.draws.is_empty() {
                let draws = unit.draws.iter().map(|(name, draw)| format!("{name} {draw}"));
                let draws = draws.collect::<Vec<_>>().join("; ");
                let _ = writeln!(out, "        draws: {}", shortened(&draws, 64));
            }
        }
        if let Some((calls, what)) = self.n_plus_one() {
            let _ = writeln!(out, "\nN+1: {calls} × {}", shortened(&what, 68));
        }
        if let Some(why) = self.cut_short() {
            let _ = writeln!(out, "{why}");
        }
        out.trim_end().to_owned()
    }

    /// How often the unit of work with the largest share of time that reads in a loop came, and its loop; or one that is spread over
    /// the connections of a pool.
    pub fn n_plus_one(&self) -> Option<(String, String)> {
        let text = |place: usize| self.statements.get(place).map_or("", |one| one.text.as_str());
        let unit = self.units.iter().find(|unit| unit.n_plus_one);
        let share = |one: &SpreadLoop| self.statements.get(one.statement).map_or(0.0, |one| one.share);
        // Of a loop that a pool spreads, units that are no transactions have parts.
        let has = |unit: &Unit, place: usize| !unit.transaction && flatten(&unit.steps).contains(&place);
        let spread = self
            .spread_loops
            .iter()
            .find(|one| unit.is_none_or(|unit| has(unit, one.statement) || share(one) >= unit.share));
        if let Some(one) = spread {
            let about = if one.is_estimated { "about " } else { "" };
            let calls = format!("{about}{}", short(one.calls));
            return Some((calls, format!("({} × {})", times(one.times), text(one.statement))));
        }
        let unit = unit?;
        let most = unit.steps.iter().skip(1).max_by_key(|node| node.most)?;
        let what = flatten(std::slice::from_ref(most)).first().map_or("", |place| text(*place));
        Some((short(unit.calls), format!("({} × {what})", times([most.least, most.most]))))
    }
}

fn times([least, most]: [u64; 2]) -> String {
    if least == most { short(most) } else { format!("{}-{}", short(least), short(most)) }
}

/// The steps of a unit of work: `#2 + 20 × #1`.
pub fn steps(nodes: &[Node]) -> String {
    let one = |node: &Node| {
        let times = times([node.least, node.most]);
        match &node.what {
            What::Statement(place) if times == "1" => format!("#{}", place + 1),
            What::Statement(place) => format!("{times} × #{}", place + 1),
            What::Loop(body) => format!("{times} × ({})", steps(body)),
        }
    };
    nodes.iter().map(one).collect::<Vec<_>>().join(" + ")
}

/// A count in few characters.
fn short(number: u64) -> String {
    match number {
        0..100_000 => count(number),
        100_000..100_000_000 => format!("{}k", count(number / 1_000)),
        _ => format!("{}M", count(number / 1_000_000)),
    }
}

/// A statement with its table within this length, if it has one: that tells it from others more than its columns do.
fn with_table(text: &str, most: usize) -> Cow<'_, str> {
    let upper = text.to_ascii_uppercase();
    let words = [("INSERT INTO ", ""), ("UPDATE ", ""), ("DELETE FROM ", ""), ("SELECT ", " FROM ")];
    let found = words.iter().find_map(|(verb, word)| {
        let at = upper.strip_prefix(verb)?.find(word)?;
        Some((verb, word, verb.len() + at + word.len()))
    });
    let Some((verb, word, at)) = found else { return text.into() };
    let (before, rest) = text.split_at(at);
    let name = rest.find([' ', '(', ',']).unwrap_or(rest.len());
    let (name, after) = rest.split_at(name);
    let length = |text: &str| text.chars().count();
    if length(before) + length(name) < most {
        return text.into();
    }
    let before = if word.is_empty() { before.to_owned() } else { format!("{verb}…{word}") };
    let room = most.saturating_sub(length(&before) + 2);
    let cut = length(name).saturating_sub(room);
    let end: String = name.chars().skip(cut).collect();
    let sign = if cut > 0 { "…" } else { "" };
    format!("{before}{sign}{end}{after}").into()
}

fn shortened(text: &str, most: usize) -> String {
    let text = printable(text);
    if text.chars().count() <= most {
        return text.into_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loop_of_a_unit_is_shown_by_its_repetitions() {
        let node = |[least, most]: [u64; 2], place| Node { what: What::Statement(place), least, most };
        assert_eq!(steps(&[node([2, 9], 0)]), "2-9 × #1");
        assert_eq!(steps(&[node([1, 1], 1), node([20, 20], 0)]), "#2 + 20 × #1");
        let body = vec![node([1, 1], 0), node([3, 3], 1)];
        let repeated = Node { what: What::Loop(body), least: 5, most: 5 };
        assert_eq!(steps(std::slice::from_ref(&repeated)), "5 × (#1 + 3 × #2)");
        let json =
            r#"{"times":[5,5],"repeats":[{"times":[1,1],"statement":0},{"times":[3,3],"statement":1}]}"#;
        assert_eq!(serde_json::to_string(&repeated).unwrap(), json);
    }

    #[test]
    fn statement_that_is_shortened_has_its_table() {
        for (text, shown) in [
            ("SELECT * FROM item WHERE order_id = ? AND n = ?", "SELECT * FROM item WHERE order_i…"),
            ("SELECT a, b, c, d, e, f, g, h FROM item WHERE k = ?", "SELECT … FROM item WHERE k = ?"),
            ("INSERT INTO shop.customer_order_item_tax (a) VALUES (?)", "INSERT INTO …omer_order_item_tax…"),
            ("insert into \"shop\".\"customer_order_item_fee\"(a)", "insert into …mer_order_item_fee\"…"),
            ("UPDATE t SET a = ?, b = ?, c = ?, d = ?", "UPDATE t SET a = ?, b = ?, c = ?…"),
            ("find items {\"filter\": {\"_id\": ?}, \"limit\": ?}", "find items {\"filter\": {\"_id\": ?}…"),
        ] {
            assert_eq!(shortened(&with_table(text, 33), 33), shown);
        }
    }
}
