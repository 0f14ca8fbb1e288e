//! What a run's page shows of its trials: figures and charts of the last minutes, and a log.

use kurabe_core::observation::{HostUse, Observation, Sample};
use kurabe_core::run::{Measurement, Outcome, Run, TrialRecord};
use kurabe_core::sort;
use kurabe_core::stats_probe::WaitState;
use kurabe_core::units;
use kurabe_report::{Language, Message};
use maud::{Markup, html};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The most trials in the log of a page, the newest ones.
const LOG: usize = 40;
/// The columns of the log that have numbers.
const COLUMNS: [Result<Message, &str>; 8] = [
    Ok(Message::OpsPerSecond),
    Err("p50"),
    Err("p99"),
    Ok(Message::ClientCpus),
    Ok(Message::ServerCpus),
    Ok(Message::DiskBusy),
    Ok(Message::Network),
    Ok(Message::Sessions),
];
/// What is shown where nothing is known.
const NONE: &str = "–";

/// A chart of the last minutes: its place, its heading, how it is drawn, its unit, and the class and name of each series.
struct Chart {
    id: &'static str,
    caption: Message,
    kind: &'static str,
    unit: &'static str,
    series: &'static [(&'static str, &'static str)],
}

const CHARTS: [Chart; 6] = [
    // A line for each target and operation, which the script adds.
    Chart { id: "rates", caption: Message::LiveRates, kind: "lines", unit: "", series: &[] },
    Chart {
        id: "times",
        caption: Message::LiveTimes,
        kind: "log",
        unit: "us",
        series: &[("t0", "p50"), ("t1", "p99")],
    },
    Chart {
        id: "processors",
        caption: Message::LiveCpus,
        kind: "area",
        unit: "",
        series: &[("t0", "client"), ("t1", "servers"), ("t2", "other processes")],
    },
    Chart { id: "disk", caption: Message::LiveDisk, kind: "area", unit: "share", series: &[("t3", "")] },
    Chart {
        id: "network",
        caption: Message::LiveNetwork,
        kind: "area",
        unit: "bytes",
        series: &[("t5", "")],
    },
    Chart {
        id: "waits",
        caption: Message::LiveWaits,
        kind: "area",
        unit: "",
        series: &[
            ("t0", "running"),
            ("t6", "active"),
            ("t1", "lock"),
            ("t3", "log"),
            ("t4", "file"),
            ("t2", "other wait"),
        ],
    },
];

/// The wait states in the order of the chart's series.
const STATES: [WaitState; 6] = [
    WaitState::Running,
    WaitState::Active,
    WaitState::Lock,
    WaitState::Log,
    WaitState::File,
    WaitState::Other,
];

/// A trial as JSON: words and numbers for the log, and what the charts draw.
///
/// `course` has the use of resources and `sessions` the sessions by wait state: a time in seconds since the trial began,
/// and a value for each series.
pub(crate) fn json(run: &Run, record: &TrialRecord) -> Value {
    let cell = run.header.cells.get(record.cell);
    let target = cell.and_then(|cell| run.header.targets.get(cell.target)).map(|target| target.name.clone());
    let axes = cell.map(|cell| {
        let varies = |name: &str| run.header.spec.axes.get(name).is_none_or(|values| values.len() > 1);
        let shown = cell
            .axes
            .values()
            .iter()
            .filter(|(name, _)| varies(name))
            .map(|(name, value)| format!("{name} {value}"));
        let control = cell.aa_control.then(|| "A/A control".to_owned());
        shown.chain(control).collect::<Vec<_>>().join(", ")
    });
    let mut object = json!({
        "round": record.round + 1,
        "target": target,
        "axes": axes,
        "operation": record.operation,
        "rerun": record.rerun_reason,
    });
    match &record.outcome {
        Outcome::Measured(measured) => {
            let times = measured.open.as_ref().map_or(&measured.service, |open| &open.response);
            let quantiles = [0.5, 0.99].map(|q| times.quantile(q));
            object["rate"] = json!(measured.ops_per_second());
            object["shown"] = json!(shown(measured, quantiles));
            object["times"] = json!(quantiles.map(|ns| ns.map(|ns| ns as f64 / 1e3)));
            object["end"] = json!(record.at_ms as f64 / 1e3 + measured.elapsed_ns as f64 / 1e9);
            if let Some(observed) = &measured.observed {
                let cpus = run.header.machine.cpus;
                let course = observed.samples.iter().map(|sample| course(sample, cpus));
                object["course"] = json!(course.collect::<Vec<_>>());
                object["sessions"] = json!(sessions(observed));
            }
        }
        Outcome::Failed { reason, .. } => object["failed"] = json!(reason),
    }
    object
}

/// The time of a sample in seconds, client, servers and other processes in processors, the disk, and the network.
///
/// The kernel counts a machine's processor time in ticks. So a short sample may have more of it than there are processors.
fn course(sample: &Sample, cpus: u64) -> (f64, [f64; 3], Option<f64>, Option<u64>) {
    let server = sample.server_cpu.unwrap_or(0.0);
    let host = if cpus == 0 { sample.host_cpu } else { sample.host_cpu.min(cpus as f64) };
    let others = (host - sample.client_cpu - server).max(0.0);
    (sample.at_ms as f64 / 1e3, [sample.client_cpu, server, others], sample.disk_busy, sample.network)
}

/// The time of each point in seconds, and the mean sessions in each of [`STATES`].
fn sessions(observed: &Observation) -> Vec<(f64, [f64; 6])> {
    let points = observed.waits.iter().flat_map(|waits| &waits.course);
    points
        .map(|point| {
            let mean =
                |state| point.states.get(&state).copied().unwrap_or(0) as f64 / point.samples.max(1) as f64;
            (point.at_ms as f64 / 1e3, STATES.map(mean))
        })
        .collect()
}

/// The numbers of a trial, for [`COLUMNS`].
fn shown(measured: &Measurement, [p50, p99]: [Option<u64>; 2]) -> [String; 8] {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    let time = |ns: Option<u64>| or_none(ns.map(|ns| units::time(Duration::from_nanos(ns))));
    let observed = measured.observed.as_deref();
    let wall = |observed: &Observation| observed.wall_ns.max(1) as f64;
    let cpus = |cpu_ns: u64, observed: &Observation| format!("{:.2}", cpu_ns as f64 / wall(observed));
    [
        units::count(measured.ops_per_second().round() as u64),
        time(p50),
        time(p99),
        or_none(observed.map(|seen| cpus(seen.client.cpu_ns, seen))),
        or_none(observed.and_then(|seen| Some(cpus(seen.server_seen()?.cpu_ns, seen)))),
        or_none(observed.and_then(|seen| {
            // As in samples, the disks are those of the server's machine.
            let busy = disk_busy_ns(seen.server_host.as_ref().unwrap_or(&seen.host))?;
            Some(format!("{:.0} %", (busy as f64 / wall(seen) * 100.0).min(100.0)))
        })),
        or_none(observed.and_then(|seen| {
            let bytes = network_bytes(&seen.host)?;
            Some(format!("{}/s", units::size((bytes as f64 / wall(seen) * 1e9) as u64)))
        })),
        or_none(observed.and_then(waits)),
    ]
}

/// The busy time of the busiest disk; `None` if no disk did anything or none has counters.
fn disk_busy_ns(host: &HostUse) -> Option<u64> {
    host.disks.iter().map(|disk| disk.busy_ns).max()
}

/// The bytes of the busiest interface in its busier direction.
fn network_bytes(host: &HostUse) -> Option<u64> {
    host.interfaces.iter().map(|one| one.sent_bytes.max(one.received_bytes)).max()
}

/// The mean number of sessions in the two most frequent wait states: `lock 2.1, running 0.9`.
fn waits(observed: &Observation) -> Option<String> {
    let waits = observed.waits.as_ref().filter(|waits| waits.samples > 0)?;
    let mut sums: BTreeMap<WaitState, u64> = BTreeMap::new();
    for (state, count) in waits.course.iter().flat_map(|point| &point.states) {
        *sums.entry(*state).or_default() += count;
    }
    let mut sums: Vec<(WaitState, u64)> = sums.into_iter().collect();
    sort::by_key(&mut sums, |(_, count)| std::cmp::Reverse(*count));
    let words = sums
        .iter()
        .take(2)
        .map(|(state, count)| format!("{} {:.1}", state.word(), *count as f64 / waits.samples as f64));
    let text = words.collect::<Vec<_>>().join(", ");
    Some(if text.is_empty() { "idle".to_owned() } else { text })
}

/// The live part of a run's page: the newest trials.
pub(crate) fn panel(url: &str, running: bool, run: &Run, language: Language) -> Markup {
    let say = |message: Message| message.text(language);
    html! {
        section id="live" data-events=[running.then_some(url)] {
            @if running {
                (figures(language))
                (charts(run.header.machine.cpus, language))
                noscript { p class="soft" { (say(Message::Reload)) } }
            }
            @if running {
                h2 { (say(Message::Trials)) }
                (log(run, language))
            } @else {
                details { summary { (say(Message::TrialsNewest)) } (log(run, language)) }
            }
        }
    }
}

/// The live part of a job's page.
pub(crate) fn job_panel(url: &str, running: bool, language: Language) -> Markup {
    html! {
        section id="live" data-events=[running.then_some(url)] { @if running { (figures(language)) } }
    }
}

fn figures(language: Language) -> Markup {
    let say = |message: Message| message.text(language);
    let figures = [
        ("rate", say(Message::OpsPerSecond)),
        ("p99", "p99"),
        ("cpus", say(Message::CpusUsed)),
        ("busy", say(Message::DiskBusy)),
        ("traffic", say(Message::Network)),
        ("sessions", say(Message::SessionsAtWork)),
        ("done", say(Message::TrialCount)),
        ("left", say(Message::TimeLeft)),
    ];
    html! {
        div class="figures" aria-live="off" {
            @for (id, name) in figures { div { b id=(id) { (NONE) } span { (name) } } }
        }
        p id="doing" class="soft" role="status" {}
    }
}

/// The charts, which the script fills.
fn charts(cpus: u64, language: Language) -> Markup {
    html! {
        div class="panels" {
            @for Chart { id, caption, kind, unit, series } in CHARTS {
                // A share is of the whole, and processors are of all.
                @let least = match id { "disk" => Some(1), "processors" => Some(cpus), _ => None };
                @let caption = caption.text(language);
                figure {
                    figcaption { (caption) " " span class="soft" id={ (id) "-scale" } {} }
                    svg id=(id) class="strip" viewBox="0 0 600 120" preserveAspectRatio="none" role="img"
                        aria-label=(caption) data-kind=(kind) data-unit=(unit) data-least=[least] {
                        @for (class, name) in series {
                            @if kind == "area" {
                                polygon class={ "stack " (class) } points="" { title { (name) } }
                            } @else {
                                polyline class=(class) points="" { title { (name) } }
                            }
                        }
                    }
                    // The script writes when the points of the chart were measured.
                    div class="ticks" aria-hidden="true" {}
                    @if kind == "lines" {
                        ul class="legend" {}
                    }
                    @if series.len() > 1 {
                        ul class="legend" {
                            @for (class, name) in series { li { i class={ "swatch " (class) } {} (name) } }
                        }
                    }
                }
            }
        }
        p class="soft" { (Message::LiveLegend.text(language)) }
    }
}

fn log(run: &Run, language: Language) -> Markup {
    let say = |message: Message| message.text(language);
    let text = |value: &Value| value.as_str().unwrap_or(NONE).to_owned();
    html! {
        div class="box" { table {
            thead { tr {
                th class="num" { (say(Message::Round)) } th { (say(Message::Target)) } th { (say(Message::Place)) } th { (say(Message::Operation)) }
                @for name in COLUMNS { th class="num" { (name.map_or_else(|name| name, say)) } }
            } }
            tbody id="log" {
                @for record in run.trials.iter().rev().take(LOG) {
                    @let trial = json(run, record);
                    tr {
                        td class="num" { (trial["round"]) } td { (text(&trial["target"])) } td { (text(&trial["axes"])) }
                        td { (text(&trial["operation"])) }
                        @if let Some(reason) = trial["failed"].as_str() {
                            td class="wrap failed" colspan=(COLUMNS.len()) { (reason) }
                        } @else {
                            @for shown in trial["shown"].as_array().into_iter().flatten() {
                                td class="num" { (text(shown)) }
                            }
                        }
                    }
                }
            }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::observation::{DiskUse, InterfaceUse, ProcessUse, ServerUse};
    use kurabe_core::stats_probe::{EngineWaits, WaitPoint};

    fn observation() -> Observation {
        let point = |at_ms, lock, running| WaitPoint {
            at_ms,
            samples: 2,
            states: [(WaitState::Lock, lock), (WaitState::Running, running), (WaitState::Log, 1)].into(),
            ..WaitPoint::default()
        };
        let course = vec![point(500, 8, 4), point(1_000, 6, 0)];
        Observation {
            wall_ns: 2_000_000_000,
            client: ProcessUse { cpu_ns: 1_000_000_000, ..ProcessUse::default() },
            server: ServerUse::Seen(Box::new(ProcessUse { cpu_ns: 3_000_000_000, ..ProcessUse::default() })),
            host: HostUse {
                disks: vec![
                    DiskUse { busy_ns: 500_000_000, ..DiskUse::default() },
                    DiskUse { busy_ns: 100, ..DiskUse::default() },
                ],
                interfaces: vec![InterfaceUse {
                    sent_bytes: 3_000_000,
                    received_bytes: 8_000_000,
                    ..InterfaceUse::default()
                }],
                ..HostUse::default()
            },
            waits: Some(EngineWaits { samples: 4, course, ..EngineWaits::default() }),
            samples: vec![Sample {
                at_ms: 700,
                client_cpu: 0.5,
                server_cpu: Some(1.0),
                host_cpu: 1.75,
                disk_busy: Some(0.75),
                network: Some(9_000),
                ..Sample::default()
            }],
            ..Observation::default()
        }
    }

    #[test]
    fn log_has_disk_network_and_sessions_beside_processors() {
        let measured = Measurement {
            completed: 3_000,
            elapsed_ns: 2_000_000_000,
            observed: Some(Box::new(observation())),
            ..Measurement::default()
        };
        let found = shown(&measured, [Some(1_000), None]);
        assert_eq!(found, ["1,500", "1 µs", "–", "0.50", "1.50", "25 %", "4 MB/s", "lock 3.5, running 1.0"]);
        let found = shown(&Measurement { observed: None, ..measured }, [None, None]);
        assert_eq!(found, ["1,500", "–", "–", "–", "–", "–", "–", "–"]);
    }

    #[test]
    fn charts_get_resources_and_sessions_over_time() {
        let seen = observation();
        assert_eq!(course(&seen.samples[0], 2), (0.7, [0.5, 1.0, 0.25], Some(0.75), Some(9_000)));
        let beyond = Sample { host_cpu: 9.0, ..seen.samples[0] };
        assert_eq!(course(&beyond, 2), (0.7, [0.5, 1.0, 0.5], Some(0.75), Some(9_000)));
        let points = sessions(&seen);
        assert_eq!(points.len(), 2);
        assert_eq!(points[0], (0.5, [2.0, 0.0, 4.0, 0.5, 0.0, 0.0]));
        assert_eq!(STATES.len(), CHARTS.last().unwrap().series.len());
        assert!(
            STATES.iter().zip(CHARTS.last().unwrap().series).all(|(state, (_, name))| state.word() == *name)
        );
    }
}
