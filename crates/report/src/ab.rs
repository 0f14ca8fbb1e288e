//! Output in the layout of ab, Apache's HTTP benchmarking tool: one block for each cell and operation.
//!
//! Names, order and columns are ab's. What was not measured is omitted: separate times of connecting and waiting, and
//! bytes of headers. Times have decimals, since databases answer in less than the whole milliseconds that ab prints.
//! Results are over all rounds together, as ab would print them for one long run. The mean of the rounds, which
//! other formats show, is an additional line.

use crate::cell::{CellResult, Status, Totals};
use crate::finding::Section;
use crate::summary::Summary;
use kurabe_core::target::TargetUrl;
use kurabe_stats::Estimate;
use std::fmt::Write as _;

/// The percentages that ab prints.
const PERCENTAGES: [u64; 9] = [50, 66, 75, 80, 90, 95, 98, 99, 100];

/// All cells with results, and the reasons of the others.
pub fn render(summary: &Summary) -> String {
    let mut text = format!("This is Kurabe {}, run {}, in the layout of ab\n", summary.kurabe, summary.run);
    for sentence in summary.sentences(Section::Publishing) {
        let _ = writeln!(text, "{sentence}");
    }
    for cell in &summary.cells {
        text.push_str("\n\n");
        block(summary, cell, &mut text);
    }
    text
}

fn block(summary: &Summary, cell: &CellResult, text: &mut String) {
    line(text, "Server Software", format!("{} {}", cell.engine, cell.version).trim_end());
    let url = summary.targets.get(cell.target_index).map(|target| target.url.as_str());
    match url.and_then(|url| TargetUrl::parse(url).ok()) {
        Some(TargetUrl { host: Some(host), port, .. }) => {
            line(text, "Server Hostname", &host);
            if let Some(port) = port {
                line(text, "Server Port", &port.to_string());
            }
        }
        _ => line(text, "Server Hostname", &cell.target),
    }
    text.push('\n');
    line(text, "Document Path", &format!("/{}/{}", summary.experiment, cell.operation));
    if let Some(bytes) = cell.stored_bytes {
        line(text, "Document Length", &format!("{bytes} bytes"));
    }
    let axes: Vec<String> =
        cell.axes.values().iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    line(text, "Axes", &axes.join(" "));
    text.push('\n');
    match (&cell.totals, cell.status) {
        (Some(totals), Status::Ok) => figures(totals, cell.ops_per_second, text),
        _ => {
            let _ = writeln!(text, "No results: {}", cell.reason.as_deref().unwrap_or("not measured"));
        }
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{:<24}{value}", format!("{name}:"));
}

fn figures(totals: &Totals, rate: Option<Estimate>, text: &mut String) {
    let seconds = totals.elapsed_ns as f64 / 1e9;
    let (completed, clients) = (totals.completed as f64, totals.clients as f64);
    let each = seconds * 1e3 / completed.max(1.0);
    let _ = write!(
        text,
        "Concurrency Level:      {}\n\
         Time taken for tests:   {seconds:.3} seconds\n\
         Complete requests:      {}\n\
         Failed requests:        {}\n\
         Requests per second:    {:.2} [#/sec] (mean)\n\
         Time per request:       {:.3} [ms] (mean)\n\
         Time per request:       {each:.3} [ms] (mean, across all concurrent requests)\n",
        totals.clients,
        totals.completed,
        totals.failed,
        totals.pooled(),
        each * clients,
    );
    if let Some(rate) = rate {
        let _ = writeln!(text, "Mean of the rounds:     {:.2} [#/sec]", rate.value);
    }
    let service = &totals.service;
    let (Some(mean), Some(min), Some(max)) = (service.mean(), service.min(), service.max()) else { return };
    let ms = |ns: u64| ns as f64 / 1e6;
    let median = ms(service.quantile(0.5).unwrap_or(min));
    let _ = write!(
        text,
        "\nConnection Times (ms)\n              min  mean[+/-sd] median   max\n\
         Total:   {:>8.3} {:>7.3} {:>6.3} {median:>7.3} {:>7.3}\n\
         \nPercentage of the requests served within a certain time (ms)\n",
        ms(min),
        mean / 1e6,
        service.deviation() / 1e6,
        ms(max),
    );
    for percentage in PERCENTAGES {
        let time = ms(service.quantile(percentage as f64 / 100.0).unwrap_or(max));
        let longest = if percentage == 100 { " (longest request)" } else { "" };
        let _ = writeln!(text, " {percentage:>3}% {time:>10.3}{longest}");
    }
}
