//! Progress of a run: a line redrawn in place on a terminal, plain lines elsewhere.

use crate::output::Output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kurabe_core::axis::{AxisInfo, AxisValue, Cell, NumberUnit};
use kurabe_core::observation::Sample;
use kurabe_core::run::{CellRecord, Outcome, TrialRecord};
use kurabe_core::units;
use kurabe_engine::Event;
use kurabe_observe::Live;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The interval for redrawing the rate.
const TICK: Duration = Duration::from_millis(200);
/// The interval of the rate among the events of `--log-format json`.
const EVENT: Duration = Duration::from_secs(1);
/// The interval of plain lines.
const LINE: Duration = Duration::from_secs(5);

/// Shows the events of the engine.
pub(crate) struct Progress {
    output: Output,
    axes: Vec<AxisInfo>,
    targets: Vec<String>,
    cells: Vec<CellRecord>,
    rounds: u32,
    bar: ProgressBar,
    ticker: Option<JoinHandle<()>>,
    over: Arc<AtomicBool>,
    last_line: Option<Instant>,
}

impl Progress {
    /// `completed` is the number of transactions completed in the current trial. `resources` samples what is used, for
    /// programs that follow the run; `None` if the clients are elsewhere.
    pub(crate) fn new(
        output: Output,
        axes: &[AxisInfo],
        targets: Vec<String>,
        cells: &[CellRecord],
        rounds: u32,
        completed: &Arc<AtomicU64>,
        mut resources: Option<Live>,
    ) -> Self {
        let live = output.live && !output.quiet && !output.json;
        let drawn = if live { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, drawn);
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len} {prefix} {wide_msg}") {
            bar.set_style(style);
        }
        let over = Arc::new(AtomicBool::new(false));
        let (shown, completed, ends) = (bar.clone(), Arc::clone(completed), Arc::clone(&over));
        let ticker = match (live, output.json) {
            (true, _) => Some(every(TICK, completed, ends, move |rate| {
                if let Some(rate) = rate {
                    shown.set_message(format!("{} ops/s", units::count(rate.round() as u64)));
                }
                shown.tick();
            })),
            (false, true) => Some(every(EVENT, completed, ends, move |rate| {
                if let Some(rate) = rate {
                    output.event(&json!({ "event": "rate", "ops_per_second": rate }));
                }
                if let Some(sample) = resources.as_mut().and_then(Live::sample) {
                    output.event(&resources_event(&sample));
                }
            })),
            (false, false) => None,
        };
        let (axes, cells) = (axes.to_vec(), cells.to_vec());
        Self { output, axes, targets, cells, rounds, bar, ticker, over, last_line: None }
    }

    pub(crate) fn show(&mut self, event: &Event<'_>) {
        if self.output.json {
            if let Some(event) = json(event, &self.axes, &self.targets, &self.cells) {
                self.output.event(&event);
            }
            return;
        }
        match event {
            Event::TrialBegins { round, cell, operation, ended, planned, left } => {
                let left = shown(*left);
                // Rounds may have been added.
                self.rounds = self.rounds.max(round + 1);
                let what = self.trial(cell, operation);
                let text = format!("round {} of {}{left}: {what}", round + 1, self.rounds);
                self.bar.set_length(*planned as u64);
                self.bar.set_position(*ended as u64);
                self.bar.set_prefix(text.clone());
                self.bar.set_message("");
                self.line(&format!("trial {} of {planned}, {text}", ended + 1));
            }
            Event::Loading { cell } => {
                self.bar.set_message(format!("loading data for {}", self.words(cell)));
            }
            Event::Restarting => self.bar.set_message("restarting the throwaway servers"),
            Event::TrialEnds { record } => self.ended(record),
            Event::AgentLost { why } => {
                self.bar.suspend(|| self.output.warning(&format!("{why}; its trial is repeated")));
            }
            Event::Replanned { plan, .. } => self.rounds = plan.rounds,
            _ => {}
        }
    }

    fn ended(&mut self, record: &TrialRecord) {
        if let Outcome::Failed { reason, .. } = &record.outcome {
            // Trials that are interleaved end together: the one that began last may be another.
            let what = self.trial(&self.cells[record.cell], &record.operation);
            let text = format!("failed: round {} of {}: {what}: {reason}", record.round + 1, self.rounds);
            self.bar.suspend(|| self.output.note(&text));
        }
    }

    /// What a trial measures, on which target.
    fn trial(&self, cell: &CellRecord, operation: &str) -> String {
        let text = format!("{} {operation} {}", self.targets[cell.target], self.words(cell));
        text.trim_end().to_owned()
    }

    fn words(&self, cell: &CellRecord) -> String {
        let text = words(&self.axes, &cell.axes);
        if cell.aa_control { format!("{text} (A/A control)").trim_start().to_owned() } else { text }
    }

    fn line(&mut self, text: &str) {
        if self.output.live || self.last_line.is_some_and(|last| last.elapsed() < LINE) {
            return;
        }
        self.last_line = Some(Instant::now());
        self.output.note(text);
    }

    /// Removes the progress line.
    pub(crate) fn finish(mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(ticker) = self.ticker.take() {
            let _ = ticker.join();
        }
        self.bar.finish_and_clear();
    }
}

/// The axis values of a cell in short form: `10 kB blob zstd`. Counts have their axis's name, and so have words that two axes have or that
/// say nothing alone.
pub(crate) fn words(axes: &[AxisInfo], cell: &Cell) -> String {
    let is_shared = |axis: &AxisInfo, value: &AxisValue| {
        let AxisValue::Word(of_axis) = value else { return false };
        let has_word = |other: &AxisInfo| other.kind.words.iter().any(|(word, _)| word == of_axis);
        axes.iter().any(|other| other.name != axis.name && has_word(other))
    };
    let word = |axis: &AxisInfo| {
        let value = cell.get(axis.name)?;
        let text = axis.show(value);
        let (kind, has_one) = (&axis.kind, axis.default.len() == 1);
        match kind.numbers.filter(|_| kind.words.is_empty()).map(|numbers| numbers.unit) {
            Some(NumberUnit::Size) => Some(text),
            // The only default value of an axis is omitted.
            _ if has_one && axis.default[0] == text => None,
            Some(NumberUnit::Count) => {
                let one = axis.name.strip_suffix('s').filter(|_| text == "1");
                Some(format!("{text} {}", one.unwrap_or(axis.name)))
            }
            _ if !kind.is_choice() => Some(format!("{} {text}", axis.name)),
            _ if has_one => Some(format!("{}={text}", axis.name)),
            _ if value.is_yes_or_no() || is_shared(axis, value) => Some(format!("{} {text}", axis.name)),
            _ => Some(text),
        }
    };
    axes.iter().filter_map(word).collect::<Vec<_>>().join(" ")
}

/// Gives `show` the rate of the current trial in this interval; `None` if nothing was completed in it.
fn every(
    interval: Duration,
    completed: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    mut show: impl FnMut(Option<f64>) + Send + 'static,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut last = (Instant::now(), 0);
        while !over.load(Ordering::Relaxed) {
            // The end of the run does not wait for a long interval.
            std::thread::sleep(TICK);
            if last.0.elapsed() < interval {
                continue;
            }
            let now = (Instant::now(), completed.load(Ordering::Relaxed));
            // A new trial starts from zero.
            show((now.1 > last.1).then(|| (now.1 - last.1) as f64 / (now.0 - last.0).as_secs_f64()));
            last = now;
        }
    })
}

/// The estimated time left, in whole seconds; nothing if it is over before the run is.
fn shown(left: Option<Duration>) -> String {
    let left = left.filter(|left| !left.is_zero()).map(|left| left.as_secs_f64().ceil() as u64);
    left.map_or_else(String::new, |left| format!(", {} left", units::time(Duration::from_secs(left))))
}

/// The object of an event of the rounds; `None` for others.
fn json(event: &Event<'_>, axes: &[AxisInfo], targets: &[String], cells: &[CellRecord]) -> Option<Value> {
    let of_cell = |kind: &str, cell: &CellRecord| {
        let values = axes.iter().filter_map(|axis| Some((axis.name.to_owned(), cell.axes.get(axis.name)?)));
        let values: BTreeMap<_, _> = values.collect();
        let target = targets.get(cell.target);
        json!({ "event": kind, "target": target, "axes": values, "aa_control": cell.aa_control })
    };
    Some(match event {
        Event::Loading { cell } => of_cell("loading", cell),
        Event::Restarting => json!({ "event": "restarting" }),
        Event::TrialBegins { round, cell, operation, ended, planned, left } => {
            let mut object = of_cell("trial-begins", cell);
            object["operation"] = json!(operation);
            object["round"] = json!(round + 1);
            object["ended"] = json!(ended);
            object["planned"] = json!(planned);
            object["left_ms"] = json!(left.map(|left| left.as_millis() as u64));
            object
        }
        Event::TrialEnds { record } => {
            let mut object = of_cell("trial-ends", cells.get(record.cell)?);
            object["operation"] = json!(record.operation);
            object["round"] = json!(record.round + 1);
            object["rerun_reason"] = json!(record.rerun_reason);
            match &record.outcome {
                Outcome::Measured(measured) => {
                    object["outcome"] = json!("measured");
                    object["completed"] = json!(measured.completed);
                    object["elapsed_ns"] = json!(measured.elapsed_ns);
                    object["ops_per_second"] = json!(measured.ops_per_second());
                }
                Outcome::Failed { reason, .. } => {
                    object["outcome"] = json!("failed");
                    object["reason"] = json!(reason);
                }
            }
            object
        }
        Event::AgentLost { why } => json!({ "event": "agent-lost", "why": why }),
        Event::Replanned { plan, .. } => {
            json!({ "event": "replanned", "rounds": plan.rounds, "restarts": plan.restarts })
        }
        _ => return None,
    })
}

/// The object of a sample of what client, servers and machine use.
fn resources_event(sample: &Sample) -> Value {
    json!({
        "event": "resources",
        "client_cpu": sample.client_cpu,
        "server_cpu": sample.server_cpu,
        "host_cpu": sample.host_cpu,
        "disk_busy": sample.disk_busy,
        "disk_waits": sample.disk_waits,
        "network": sample.network,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::axis::AxisKind;

    #[test]
    fn word_that_two_axes_have_or_that_says_nothing_alone_stands_with_its_axis() {
        let bind = kurabe_experiments::registry::find("bind").unwrap().info.axes;
        let cell = |values: &[(&str, &str)]| {
            Cell::new(
                values.iter().map(|(axis, word)| ((*axis).to_owned(), AxisValue::Word((*word).to_owned()))),
            )
        };
        let both = cell(&[("bind", "per-request"), ("connection", "per-request")]);
        assert_eq!(words(bind, &both), "bind per-request connection per-request");
        assert!(words(bind, &cell(&[("bind", "literal")])).starts_with("literal"));
        let cached =
            AxisInfo::new("cached", "", AxisKind::choice(&[("no", ""), ("yes", "")]), &["no", "yes"]);
        assert_eq!(words(&[cached], &cell(&[("cached", "yes")])), "cached yes");
    }

    #[test]
    fn no_time_is_never_left() {
        for (left, expected) in [(0, ""), (1, ", 1 s left"), (90_000_000_000, ", 1 min 30 s left")] {
            assert_eq!(shown(Some(Duration::from_nanos(left))), expected);
        }
        assert_eq!(shown(None), "");
    }
}
