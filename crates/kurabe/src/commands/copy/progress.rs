//! Progress of a copy: a line redrawn in place on a terminal, a line per table elsewhere.

use super::report::many;
use crate::output::Output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kurabe_copy::event::{Event, Step};
use kurabe_copy::plan::Plan;
use kurabe_core::text::printable;
use kurabe_core::units;
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub(super) struct Progress {
    output: Output,
    pub(super) bar: ProgressBar,
    /// The rows of all tables.
    all: u64,
    /// The rows of each table that are copied, and those that are compared.
    rows: HashMap<String, [u64; 2]>,
    /// When the first rows were counted, and how many.
    began: Option<(Instant, u64)>,
}

impl Progress {
    pub(super) fn new(output: Output, plan: &Plan) -> Self {
        let live = output.live && !output.quiet;
        let drawn = if live { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let all = plan.tables.iter().map(|table| table.rows).sum();
        // Each row is copied, and compared.
        let bar = ProgressBar::with_draw_target(Some(2 * all), drawn);
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {percent} % {wide_msg}") {
            bar.set_style(style);
        }
        Self { output, bar, all, rows: HashMap::new(), began: None }
    }

    pub(super) fn show(&mut self, event: &Event<'_>) {
        match event {
            Event::Resumed => self.output.note("continuing an unfinished copy"),
            Event::Progress { table, step, rows } => {
                let of = self.rows.entry(table.name.clone()).or_default();
                match step {
                    Step::Copy => of[0] = *rows,
                    Step::Verify => *of = [table.rows, *rows],
                    Step::Index => *of = [table.rows; 2],
                }
                let sum = self.rows.values().flatten().sum::<u64>();
                self.bar.set_position(sum);
                let what = match step {
                    Step::Copy => "copying",
                    Step::Verify => "comparing",
                    Step::Index => "making indexes of",
                };
                let pace = pace(self.began.get_or_insert_with(|| (Instant::now(), sum)), sum, 2 * self.all);
                self.bar.set_message(format!("{what} {}{pace}", printable(&table.name)));
            }
            Event::Table(done) => {
                self.rows.insert(done.name.clone(), [done.rows + done.rejected; 2]);
                let rate = done.copied as f64 / done.copy.as_secs_f64().max(1e-9);
                let text = format!(
                    "{}: {}, copied in {} ({} rows/s), compared in {}, indexes in {}",
                    printable(&done.name),
                    many(done.rows as usize, "row"),
                    units::time(done.copy),
                    units::count(rate as u64),
                    units::time(done.verify),
                    units::time(done.index)
                );
                self.bar.suspend(|| self.output.note(&text));
            }
            Event::Done(_) => self.bar.finish_and_clear(),
        }
    }
}

/// Rows each second, and the time that is left.
fn pace((began, first): &(Instant, u64), now: u64, all: u64) -> String {
    let took = began.elapsed().as_secs_f64();
    let done = now.saturating_sub(*first);
    if done == 0 || took < 0.5 {
        return String::new();
    }
    let rate = done as f64 / took;
    let left = all.saturating_sub(now) as f64 / rate;
    let time = units::time(Duration::from_secs(left as u64));
    let left = if left < 1.0 { String::new() } else { format!(" · {time} left") };
    format!(" · {} rows/s{left}", units::count(rate as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_told_from_a_second_on() {
        let began = Instant::now().checked_sub(Duration::from_secs(2)).unwrap();
        let shown = |now| pace(&(began, 0), now, 100);
        assert!(shown(10).ends_with(" · 18 s left"), "{}", shown(10));
        assert!(shown(100).ends_with("rows/s"), "{}", shown(100));
    }
}
