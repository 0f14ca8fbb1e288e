//! Service times in the format of `HdrHistogram`'s percentile distributions: `.hgrm`, for its plotter and other tools
//! (<https://hdrhistogram.github.io/HdrHistogram/plotFiles.html>).
//!
//! Values are in milliseconds, over all rounds together. A run with several cells has several distributions, each
//! after a line with its name; the plotter reads one at a time.

use crate::cell::CellResult;
use crate::finding::Section;
use crate::summary::Summary;
use kurabe_stats::Histogram;
use std::fmt::Write as _;

/// The distributions of all cells with results.
pub fn render(summary: &Summary) -> String {
    let mut text = String::new();
    for sentence in summary.sentences(Section::Publishing) {
        let _ = writeln!(text, "#[{sentence}]");
    }
    for cell in &summary.cells {
        let Some(totals) = &cell.totals else { continue };
        let _ = writeln!(text, "#[{}, ms]", name(cell));
        distribution(&totals.service, &mut text);
    }
    text
}

fn name(cell: &CellResult) -> String {
    let axes = cell.axes.values().iter().map(|(axis, value)| format!(", {axis} {value}"));
    format!("{}, {}{}", cell.target, cell.operation, axes.collect::<String>())
}

fn distribution(histogram: &Histogram, text: &mut String) {
    let ms = |ns: f64| ns / 1e6;
    let _ = writeln!(
        text,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    for step in histogram.percentiles() {
        let _ = write!(text, "{:12.3} {:2.12} {:10}", ms(step.value as f64), step.quantile, step.count);
        let _ = if step.quantile < 1.0 {
            writeln!(text, " {:14.2}", 1.0 / (1.0 - step.quantile))
        } else {
            writeln!(text)
        };
    }
    let (mean, deviation) = (ms(histogram.mean().unwrap_or(0.0)), ms(histogram.deviation()));
    let (max, count) = (ms(histogram.max().unwrap_or(0) as f64), histogram.count());
    let _ = writeln!(
        text,
        "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]\n#[Max     = {max:12.3}, Total count    = \
         {count:12}]\n",
    );
}
