//! What there is to say about a model: how much it has, and what it lacks.

use super::draws::REPEATS;
use super::writer::Writer;
use crate::show::Shown;
use kurabe_core::sort;
use kurabe_core::text::printable;
use kurabe_core::units::count;

impl Writer<'_> {
    /// What is not in the model, by share of time.
    pub(super) fn notes(&self, shown: &Shown) -> Vec<String> {
        let mut lost: Vec<(f64, String)> = Vec::new();
        let mut setup = 0.0;
        for (place, statement) in shown.statements.iter().enumerate() {
            if statement.setup {
                if statement.does.transaction.is_none() {
                    setup += statement.share;
                }
                continue;
            }
            if self.carried.contains(&place) || statement.calls == 0 {
                continue;
            }
            let why = statement
                .why_not
                .as_ref()
                .or(self.lost.get(&place))
                .unwrap_or(&"in none of the frequent kinds of transactions");
            let text: String = printable(&statement.text).chars().take(70).collect();
            lost.push((statement.share, format!("{text}: {why}")));
        }
        if setup > 0.0 {
            lost.push((
                setup,
                "what sets up a connection or a transaction, or asks about the server".to_owned(),
            ));
        }
        sort::by(&mut lost, |one, two| two.0.total_cmp(&one.0));
        let share: f64 = lost.iter().map(|(share, _)| share).sum();
        let of = shown.about.known.shares();
        let mut notes = vec![format!("It has {:.1} % of the recorded {of}.", 100.0 * (1.0 - share).max(0.0))];
        if self.writes && !self.made {
            notes.push(
                "It changes rows of these tables: run it on a copy, or on throwaway servers (--setup)."
                    .to_owned(),
            );
        }
        if self.made {
            notes.push(
                "Its tables are made for the run: columns that no statement names are missing in them."
                    .to_owned(),
            );
        }
        if self.is_translated() {
            notes.push(
                "Keys that are no numbers have numbers. Times to live and conditions of writes are left out."
                    .to_owned(),
            );
        }
        if self.adds {
            notes
                .push("Additions to a column write the value alone, as not every engine can add.".to_owned());
        }
        if self.longest_loop > REPEATS {
            notes.push(format!(
                "A loop repeats {REPEATS} times at most; the longest recorded loop has {} repetitions.",
                count(self.longest_loop)
            ));
        }
        let listed = lost.len().min(10);
        for (share, what) in lost.iter().take(listed) {
            notes.push(format!("Not in it, {:.1} % of the {of}: {what}", 100.0 * share));
        }
        if lost.len() > listed {
            let rest: f64 = lost.iter().skip(listed).map(|(share, _)| share).sum();
            notes.push(format!(
                "Not in it, {:.1} % of the {of}: {} other statements",
                100.0 * rest,
                lost.len() - listed
            ));
        }
        notes
    }
}
