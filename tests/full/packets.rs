//! Bytes and segments of a trial: the kernel's counters, compared with a packet capture.
//!
//! Datagrams of this test mark the beginning and the end of the trial in the capture. They are sent right before and
//! right after the counters are read, so that clocks do not matter.

mod capture;

use crate::network::run_alone;
use crate::servers::common::{SERVERS, has_program, tell};

use capture::{Capture, Traffic};
use kurabe_core::observation::{Endpoint, MonitorGuard, Observation, Observer, WireUse};
use kurabe_core::run::{Outcome, RunSpec, TrialRecord};
use kurabe_core::target::TargetUrl;
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::target::Target;
use kurabe_engine::{Conditions, NewRun};
use kurabe_experiments::registry;
use kurabe_observe::Monitor;
use kurabe_testbed::{Server, testing};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The maximum delay of an acknowledgement (`TCP_DELACK_MAX`): after it, all earlier packets are on the wire.
const PUT_OFF: Duration = Duration::from_millis(250);

/// Reads the counters between two datagrams.
const MARKS: [&str; 4] = ["before the begin", "after the begin", "before the end", "after the end"];

/// Sends a datagram that the capture records.
struct Marker {
    socket: UdpSocket,
    trial: AtomicU64,
}

impl Marker {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        Self { socket, trial: AtomicU64::new(0) }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    fn mark(&self, which: usize) {
        let trial = self.trial.load(std::sync::atomic::Ordering::Relaxed);
        self.socket.send(text(trial, which).as_bytes()).unwrap();
    }
}

fn text(trial: u64, which: usize) -> String {
    format!("trial {trial}: {}", MARKS[which])
}

/// The monitor of every run, with marks around its readings.
struct Marking {
    monitor: Monitor,
    marker: Arc<Marker>,
}

impl Observer for Marking {
    fn begin(&self, endpoint: &Endpoint, _: Option<u16>) -> Box<dyn MonitorGuard> {
        std::thread::sleep(PUT_OFF);
        self.marker.trial.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.marker.mark(0);
        let guard = self.monitor.begin(endpoint, None);
        self.marker.mark(1);
        Box::new(Marked { guard, marker: Arc::clone(&self.marker) })
    }
}

struct Marked {
    guard: Box<dyn MonitorGuard>,
    marker: Arc<Marker>,
}

impl MonitorGuard for Marked {
    fn end(self: Box<Self>) -> Observation {
        std::thread::sleep(PUT_OFF);
        self.marker.mark(2);
        let observation = self.guard.end();
        self.marker.mark(3);
        observation
    }
}

/// Successive trials of an experiment on a server, and the observed traffic of each.
fn trials(
    url: &str,
    experiment: &str,
    axes: &[(&str, &str)],
    requests: u64,
    marker: &Arc<Marker>,
) -> Vec<WireUse> {
    let driver = kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap();
    let facts = driver.describe().unwrap();
    let mut targets = [Target::new("it", driver, facts)];
    let experiment = registry::find(experiment).unwrap();
    let info = experiment.info;
    let operations = info.operation_names();
    let spec = RunSpec {
        axes: info.baseline(axes).unwrap().alone(),
        requests: operations.iter().map(|name| (name.clone(), requests)).collect(),
        operations,
        records: Some(300),
        ..RunSpec::new(info.name, ["it"])
    };
    let plan = Plan::new(experiment, &spec, &targets).unwrap();
    assert_eq!(plan.cells[0].record.unavailable, None, "{url}");
    let observer = Marking { monitor: Monitor::new(), marker: Arc::clone(marker) };
    let conditions = Conditions { observer: Some(&observer), ..Conditions::default() };
    let run = kurabe_engine::run(NewRun::new(plan), &mut targets, &conditions, &mut ()).unwrap();
    let seen = |trial: TrialRecord| match trial.outcome {
        Outcome::Measured(measured) => measured.observed.unwrap().wire.unwrap(),
        Outcome::Failed { reason, .. } => panic!("{url}: {reason}"),
    };
    run.unwrap().trials.into_iter().map(seen).collect()
}

/// The traffic in the capture between a trial's readings; `None` if a packet arrived during a reading and may or may
/// not be counted.
fn captured(capture: &Capture, trial: u64) -> Option<Traffic> {
    let between = |from, to| capture.between(&text(trial, from), &text(trial, to));
    let clear = between(0, 1).packets == 0 && between(2, 3).packets == 0;
    clear.then(|| between(1, 2))
}

fn compare(server: &Server, experiment: &str, axes: &[(&str, &str)], requests: u64) -> Option<()> {
    let marker = Arc::new(Marker::new());
    let running = capture::start(server.port(), marker.port())?;
    let seen = trials(server.url(), experiment, axes, requests, &marker);
    let last = text(marker.trial.load(std::sync::atomic::Ordering::Relaxed), 3);
    let capture = running.stop(&last);
    let mut compared = 0;
    for (trial, wire) in (1..).zip(&seen) {
        let Some(traffic) = captured(&capture, trial) else { continue };
        let what = format!("{} {experiment} {axes:?}, trial {trial}: {traffic:?} {wire:?}", server.url());
        assert_eq!((wire.sent_bytes, wire.received_bytes), (traffic.sent, traffic.received), "{what}");
        assert_eq!(
            (wire.segments_out, wire.segments_in),
            (traffic.segments_out, traffic.segments_in),
            "{what}"
        );
        assert_eq!(
            (wire.connections, wire.retransmits > 0),
            (traffic.connections, traffic.again > 0),
            "{what}"
        );
        assert!(traffic.sent > requests && traffic.received > requests, "{what}");
        compared += 1;
    }
    // Some drivers use further connections to monitor their server, whose packets may coincide with a reading.
    assert!(compared * 2 > seen.len(), "{compared} of {} trials could be compared", seen.len());
    Some(())
}

fn on_every_engine(compare: impl Fn(&Server) -> Option<()>) {
    if !has_program("tcpdump") {
        return;
    }
    for engine in SERVERS {
        let Some(server) = testing::server(engine) else { continue };
        if compare(&server).is_none() {
            tell("tcpdump may not capture here: that takes root, or CAP_NET_RAW");
            return;
        }
    }
}

#[test]
fn counts_of_small_requests_equal_packet_capture() {
    on_every_engine(|server| compare(server, "point-read", &[("clients", "3")], 300));
}

/// A packet that is captured on loopback may contain several segments, which only a real network card would split.
/// Therefore this has its own network namespace, where each packet is one segment of Ethernet's size.
#[test]
fn counts_of_multi_segment_messages_equal_packet_capture() {
    let test = "packets::counts_of_multi_segment_messages_equal_packet_capture";
    run_alone(test, "ip link set dev lo mtu 1500 gso_max_segs 1 up", || {
        let axes = [("payload", "300000"), ("clients", "1")];
        on_every_engine(|server| compare(server, "session", &axes, 30));
    });
}
