//! Runs for other programs: a collector of OpenTelemetry, and readers of Parquet.

use crate::support::{Answer, Place, recorded_trials};
use bytes::Bytes;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::trace::v1::Span;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use prost::Message;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// What a collector received.
#[derive(Default)]
struct Received {
    spans: Vec<Span>,
    metrics: Vec<ExportMetricsServiceRequest>,
    resources: BTreeSet<String>,
    headers: Vec<String>,
}

/// A collector that accepts OTLP over HTTP, and refuses this many spans of each request.
struct Collector {
    url: String,
    received: Arc<Mutex<Received>>,
}

impl Collector {
    fn start(refuses: i64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Received::default()));
        let into = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let into = Arc::clone(&into);
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream);
                    while let Some((path, headers, body)) = request(&mut reader) {
                        let answer = accept(&mut into.lock().unwrap(), &path, &headers, &body, refuses);
                        let head = format!(
                            "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n",
                            answer.len()
                        );
                        let stream = reader.get_mut();
                        if stream.write_all(&[head.as_bytes(), &answer].concat()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { url, received }
    }
}

/// Path, head and body of the next request; `None` at the end of the connection.
fn request(reader: &mut impl BufRead) -> Option<(String, String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "))?.trim().parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    Some((path, lower, body))
}

fn accept(into: &mut Received, path: &str, headers: &str, body: &[u8], refuses: i64) -> Vec<u8> {
    assert!(headers.contains("content-type: application/x-protobuf"), "{headers}");
    into.headers.push(headers.to_owned());
    match path {
        "/v1/traces" => {
            for part in ExportTraceServiceRequest::decode(body).unwrap().resource_spans {
                let attributes = part.resource.unwrap().attributes;
                into.resources.insert(text(&attributes, "service.name"));
                into.resources.insert(text(&attributes, "kurabe.run"));
                into.spans.extend(part.scope_spans.into_iter().flat_map(|scope| scope.spans));
            }
            let partial =
                ExportTracePartialSuccess { rejected_spans: refuses, error_message: "full".to_owned() };
            let answer = ExportTraceServiceResponse { partial_success: (refuses > 0).then_some(partial) };
            answer.encode_to_vec()
        }
        "/v1/metrics" => {
            into.metrics.push(ExportMetricsServiceRequest::decode(body).unwrap());
            Vec::new()
        }
        other => panic!("{other}"),
    }
}

fn attribute(all: &[KeyValue], key: &str) -> Option<Any> {
    all.iter().find(|one| one.key == key)?.value.as_ref()?.value.clone()
}

fn text(all: &[KeyValue], key: &str) -> String {
    match attribute(all, key) {
        Some(Any::StringValue(text)) => text,
        other => panic!("{key}: {other:?}"),
    }
}

fn whole(all: &[KeyValue], key: &str) -> i64 {
    match attribute(all, key) {
        Some(Any::IntValue(number)) => number,
        other => panic!("{key}: {other:?}"),
    }
}

fn real(all: &[KeyValue], key: &str) -> f64 {
    match attribute(all, key) {
        Some(Any::DoubleValue(number)) => number,
        other => panic!("{key}: {other:?}"),
    }
}

const RUN: [&str; 12] = [
    "run", "kv", "sqlite:", "null:", "--clients", "1,2", "--rounds", "3", "--requests", "600", "--records",
    "100",
];

fn run(place: &Place, collector: &str, parent: &str) -> Answer {
    let mut command = place.command(&[&RUN[..], &["--otlp", collector]].concat());
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20sesame42").env("TRACEPARENT", parent);
    Answer::of(&command.output().unwrap())
}

#[test]
fn collector_receives_a_span_of_each_trial_with_its_figures() {
    let (place, collector) = (Place::new(), Collector::start(0));
    let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let answer = run(&place, &collector.url, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let after = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    assert!(answer.code == Some(0) && answer.err.contains("sent "), "{answer:?}");
    let (recorded, received) = (recorded_trials(&place.run_file()), collector.received.lock().unwrap());
    let name = std::fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().file_name();
    assert!(received.resources.contains("kurabe") && received.resources.contains(name.to_str().unwrap()));
    assert!(received.headers.iter().all(|head| head.contains("authorization: bearer sesame42")));

    let spans = &received.spans;
    let runs: Vec<&Span> = spans.iter().filter(|span| span.name == "run kv").collect();
    let [root] = runs[..] else { panic!("{runs:?}") };
    assert_eq!(root.parent_span_id, [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]);
    let rounds: Vec<&Span> = spans.iter().filter(|span| span.parent_span_id == root.span_id).collect();
    assert_eq!(rounds.len(), 3);
    assert_eq!(spans.len(), 1 + rounds.len() + recorded.len());
    let ids: BTreeSet<&[u8]> = spans.iter().map(|span| &*span.span_id).collect();
    assert_eq!(ids.len(), spans.len(), "identifiers are unique");
    for span in spans {
        assert_eq!(span.trace_id[..2], [0x0a, 0xf7]);
        let (from, to) = (span.start_time_unix_nano, span.end_time_unix_nano);
        assert!(from <= to && from >= root.start_time_unix_nano && to <= root.end_time_unix_nano, "{span:?}");
        // The run's clock begins with a whole second.
        assert!(from + 1_000_000_000 >= before && to <= after, "{from} to {to}, {before} to {after}");
    }
    for trial in &recorded {
        let round = trial["round"].as_i64().unwrap() + 1;
        let parent = rounds.iter().find(|span| whole(&span.attributes, "kurabe.round") == round).unwrap();
        let measured = &trial["outcome"]["measured"];
        let same = |span: &&Span| {
            span.parent_span_id == parent.span_id
                && span.name == trial["operation"].as_str().unwrap()
                && attribute(&span.attributes, "kurabe.measured_ns").is_some()
                && whole(&span.attributes, "kurabe.measured_ns") == measured["elapsed_ns"].as_i64().unwrap()
        };
        let span = spans.iter().find(same).unwrap_or_else(|| panic!("no span of {trial}"));
        assert_eq!(whole(&span.attributes, "kurabe.completed"), measured["completed"].as_i64().unwrap());
        assert!([1, 2].contains(&whole(&span.attributes, "kurabe.axis.clients")));
        assert!(["sqlite", "null"].contains(&text(&span.attributes, "kurabe.target").as_str()));
        let rate = measured["completed"].as_f64().unwrap() * 1e9 / measured["elapsed_ns"].as_f64().unwrap();
        assert!((real(&span.attributes, "kurabe.operations_per_second") / rate - 1.0).abs() < 1e-9);
    }

    // Metrics have a point for each continuous trial, with all of its operations: the rates of slices are no figures.
    let is_continuous = |trial: &&Value| trial["outcome"]["measured"]["slices"].as_u64().unwrap_or(0) == 0;
    let figures: Vec<&Value> = recorded.iter().filter(is_continuous).collect();
    assert!(!figures.is_empty() && figures.len() < recorded.len(), "the run has trials of both kinds");
    let all =
        received.metrics.iter().flat_map(|one| &one.resource_metrics).flat_map(|one| &one.scope_metrics);
    let metrics: BTreeMap<&str, &Data> = all
        .flat_map(|scope| &scope.metrics)
        .map(|one| (one.name.as_str(), one.data.as_ref().unwrap()))
        .collect();
    let Data::Gauge(throughput) = metrics["kurabe.trial.throughput"] else { panic!("{metrics:?}") };
    assert_eq!(throughput.data_points.len(), figures.len());
    assert!(
        throughput
            .data_points
            .iter()
            .all(|point| matches!(point.value, Some(Number::AsDouble(rate)) if rate > 0.0))
    );
    let Data::Histogram(durations) = metrics["kurabe.operation.duration"] else { panic!("{metrics:?}") };
    let counted: u64 = durations.data_points.iter().map(|point| point.count).sum();
    let completed: u64 =
        figures.iter().map(|trial| trial["outcome"]["measured"]["completed"].as_u64().unwrap()).sum();
    assert_eq!(counted, completed);
    for point in &durations.data_points {
        assert_eq!(point.count, point.bucket_counts.iter().sum::<u64>());
    }
    assert!(!std::fs::read_to_string(place.run_file()).unwrap().contains("sesame42"));
}

#[test]
fn run_is_kept_when_the_collector_fails_and_can_be_sent_later() {
    let place = Place::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let answer = run(&place, &format!("http://{closed}"), "nonsense")
        .success()
        .err_has("nothing was sent to")
        .err_has("kurabe runs push");
    assert!(!answer.err.contains("sesame42"), "{answer:?}");
    let collector = Collector::start(0);
    for _ in 0..2 {
        place.run(&["runs", "push", "last", "--otlp", &collector.url]).success().err_has("metrics of");
    }
    let received = collector.received.lock().unwrap();
    let roots: Vec<&Span> = received.spans.iter().filter(|span| span.parent_span_id.is_empty()).collect();
    assert!(roots.len() == 2 && roots[0] == roots[1], "the same run is the same trace: {roots:?}");
    let full = Collector::start(7);
    place.run(&["runs", "push", "last", "--otlp", &full.url]).exit_code(5).err_has("refused 7 spans: full");
    for (url, code) in [("localhost:4318", 2), ("ftp://a", 2)] {
        assert_eq!(place.run(&["run", "kv", "--otlp", url]).code, Some(code), "{url}");
    }
}

/// The rows of CSV text by column. No value of it is quoted.
fn csv(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines =
        text.lines().map(|line| line.trim_end().split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().unwrap();
    lines.map(|line| head.iter().cloned().zip(line).collect()).collect()
}

#[test]
fn parquet_file_has_the_rows_of_the_other_exports() {
    let place = Place::new();
    place.run(&[&RUN[..], &["--interleave=off"]].concat()).success();
    let written = place.run(&["report", "--format", "parquet"]).success();
    let file = written.out.trim();
    assert!(file.ends_with("windows.parquet"), "{file}");
    let bytes = std::fs::read(file).unwrap();
    let piped = place.command(&["report", "--format", "parquet", "-o", "-"]).output().unwrap();
    assert!(piped.stdout == bytes, "a pipe receives the same bytes");

    let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
    let rows: Vec<BTreeMap<String, Field>> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| {
            row.unwrap().get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect()
        })
        .collect();
    let text = place.run(&["report", "--format", "windows"]).out;
    let wanted = csv(&text);
    assert!(
        rows.len() == wanted.len() && rows.len() >= recorded_trials(&place.run_file()).len(),
        "{} rows",
        rows.len()
    );
    for (row, wanted) in rows.iter().zip(&wanted) {
        assert_eq!(row.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
        for (name, field) in row {
            let text = &wanted[name];
            match field {
                Field::Null => assert_eq!(text, "", "{name}"),
                Field::Str(value) => assert_eq!(value, text, "{name}"),
                Field::Long(value) => assert_eq!(value.to_string(), *text, "{name}"),
                Field::Bool(value) => assert_eq!(value.to_string(), *text, "{name}"),
                Field::Double(value) => {
                    let shown: f64 = text.parse().unwrap();
                    assert!((value - shown).abs() <= 1e-3, "{name}: {value} and {text}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        assert!(matches!(row["clients"], Field::Long(1 | 2)), "an axis of numbers is a column of numbers");
    }

    // The JSON report's mean of a cell is that of its trials. Parts of a trial with several clients end with the first
    // client, and its throughput with the last one.
    let report = place.report();
    let compared = |cell: &&Value| cell["aa_control"] == false && cell["axes"]["clients"] == 1;
    for cell in report["cells"].as_array().unwrap().iter().filter(compared) {
        let mut of_round: BTreeMap<i64, (i64, f64, f64)> = BTreeMap::new();
        for row in &rows {
            let same = matches!(&row["target"], Field::Str(name) if cell["target"] == name.as_str())
                && matches!(&row["operation"], Field::Str(name) if cell["operation"] == name.as_str())
                && matches!(row["clients"], Field::Long(n) if cell["axes"]["clients"] == n)
                && matches!(row["aa_control"], Field::Bool(false));
            let (
                Field::Long(round),
                Field::Long(start),
                Field::Double(from),
                Field::Double(to),
                Field::Double(rate),
            ) = (&row["round"], &row["trial_start_ms"], &row["from_s"], &row["to_s"], &row["ops_per_second"])
            else {
                panic!("{row:?}")
            };
            if same {
                // Of a trial that was repeated, the last one counts.
                let sum = of_round.entry(*round).or_default();
                let before = if sum.0 == *start { *sum } else { (*start, 0.0, 0.0) };
                *sum = (*start, before.1 + rate * (to - from), before.2 + (to - from));
            }
        }
        assert_eq!(of_round.len(), 3, "{cell}");
        let mean = of_round.values().map(|(_, count, time)| (count / time).ln()).sum::<f64>() / 3.0;
        let shown = cell["ops_per_second"]["mean"].as_f64().unwrap();
        assert!((mean.exp() / shown - 1.0).abs() < 0.02, "{} and {shown}", mean.exp());
    }
}
