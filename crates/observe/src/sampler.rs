//! Samples quantities without a counter, in a separate thread.

use crate::host::{self, Devices};
use crate::process::{Pid, numbers, tick_ns};
use crate::wire::Wire;
use kurabe_core::observation::Sample;
use kurabe_os::process::Stat;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The interval before the first sample, short enough for short trials.
const FIRST: Duration = Duration::from_millis(10);
/// Each interval is longer than the last by this factor.
const LONGER: f64 = 1.1;
/// The longest interval.
const LONGEST: Duration = Duration::from_millis(150);
/// An interval is at least this many times as long as the CPU time of the previous sample.
pub(crate) const COST: u32 = 120;
/// The maximum number of recorded samples. If there are more, means of neighbours are recorded.
const KEPT: usize = 48;

/// The samples of a trial.
#[derive(Debug, Default)]
pub(crate) struct SampleSeries {
    pub samples: Vec<Sample>,
    /// The number of samples.
    pub taken: u64,
    /// Samples in which a thread was in uninterruptible sleep.
    pub disk: u64,
    /// Samples in which a thread was stopped.
    pub stopped: u64,
    /// CPU time that sampling took.
    pub cost_ns: u64,
    pub wire: Option<Wire>,
}

/// Samples until it is stopped.
pub(crate) struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<SampleSeries>,
}

impl Sampler {
    /// Begins to sample the threads of these processes; `apart` if they are a server's, not the client's.
    pub fn start(members: &[Pid], apart: bool, wire: Option<Wire>) -> Option<Self> {
        let members = members.iter().map(|pid| pid.number).collect();
        let (stop, stopped) = channel();
        let sampling = SampleLoop { members, apart, wire, seen: SampleSeries::default() };
        let thread =
            thread::Builder::new().name("sampler".to_owned()).spawn(move || sampling.until(&stopped)).ok()?;
        Some(Self { stop, thread })
    }

    /// Ends the sampling and returns the samples.
    pub fn end(self) -> SampleSeries {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

struct SampleLoop {
    /// The processes at the start of sampling.
    members: Vec<u32>,
    apart: bool,
    wire: Option<Wire>,
    seen: SampleSeries,
}

/// The counters from which a sample is made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    client_ns: u64,
    /// `None` if the database runs in the client's process.
    server_ns: Option<u64>,
    host_ns: u64,
    devices: Devices,
    /// Threads in uninterruptible sleep.
    disk_waits: u64,
    /// Stopped threads.
    stopped: u64,
}

impl Counters {
    /// Reads the counters of this process, of the machine, and of these processes; `apart` if they are a server's.
    pub fn now(members: &[u32], apart: bool) -> Self {
        let Processes { ticks, disk, stopped } = processes(members, apart);
        Self {
            client_ns: own_cpu(),
            server_ns: apart.then(|| ticks * tick_ns()),
            host_ns: host::busy_ns(),
            devices: Devices::now(),
            disk_waits: disk,
            stopped,
        }
    }

    /// What was used since then, with this time for the sample.
    pub fn since(&self, before: &Self, passed: Duration, at_ms: u64) -> Sample {
        let share =
            |now: u64, then: u64| now.saturating_sub(then) as f64 / (passed.as_nanos() as f64).max(1.0);
        Sample {
            at_ms,
            client_cpu: rounded(share(self.client_ns, before.client_ns)),
            server_cpu: self.server_ns.zip(before.server_ns).map(|(now, then)| rounded(share(now, then))),
            host_cpu: rounded(share(self.host_ns, before.host_ns)),
            disk_waits: self.disk_waits,
            // The kernel counts busy time in ticks, which may be more than has passed.
            disk_busy: self.devices.disk_busy_since(&before.devices).map(|ns| rounded(share(ns, 0)).min(1.0)),
            network: self.devices.network_since(&before.devices).map(|bytes| (share(bytes, 0) * 1e9) as u64),
        }
    }
}

impl SampleLoop {
    fn until(mut self, stop: &Receiver<()>) -> SampleSeries {
        let began = Instant::now();
        let mut before = (began, Counters::now(&self.members, self.apart));
        let mut cost = thread_cpu();
        let mut pause = FIRST.max(Duration::from_nanos(cost) * COST);
        while stop.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            self.sample(began, Instant::now(), &mut before);
            let now = thread_cpu();
            pause = pause.mul_f64(LONGER).min(LONGEST).max(Duration::from_nanos(now - cost) * COST);
            cost = now;
        }
        self.seen.cost_ns = thread_cpu();
        self.seen.wire = self.wire.take();
        self.seen
    }

    fn sample(&mut self, began: Instant, at: Instant, before: &mut (Instant, Counters)) {
        let now = Counters::now(&self.members, self.apart);
        let at_ms = at.duration_since(began).as_millis() as u64;
        let sample = now.since(&before.1, at.duration_since(before.0), at_ms);
        if let Some(wire) = &mut self.wire {
            wire.sample(sample.at_ms);
        }
        let seen = &mut self.seen;
        seen.taken += 1;
        seen.disk += u64::from(now.disk_waits > 0);
        seen.stopped += u64::from(now.stopped > 0);
        seen.samples.push(sample);
        if seen.samples.len() > KEPT {
            seen.samples = seen.samples.chunks(2).map(mean).collect();
        }
        *before = (at, now);
    }
}

/// What these processes do now, and if they are a server's, the processes that they started.
fn processes(members: &[u32], apart: bool) -> Processes {
    let mut found = Processes::default();
    let mut all: BTreeSet<u32> = members.iter().copied().collect();
    if apart {
        // A server may start a process for each connection.
        all.extend(members.iter().flat_map(|pid| children(*pid)));
    }
    let own = own_thread();
    for pid in all {
        let Some(stat) = Stat::of(pid) else { continue };
        found.ticks += stat.ticks + stat.children_ticks;
        // The file of a process with one thread has that thread's state. A server with a process for each connection has hundreds of
        // them, and listing their threads took two more files each.
        if stat.threads == 1 {
            found.count(stat.state);
            continue;
        }
        for tid in numbers(&format!("/proc/{pid}/task")).into_iter().filter(|tid| *tid != own) {
            let Some(stat) = Stat::of_thread(pid, tid) else { continue };
            found.count(stat.state);
        }
    }
    found
}

/// The processes at one sample.
#[derive(Default)]
struct Processes {
    /// CPU ticks of all together, with those of threads and children that have ended.
    ticks: u64,
    /// Threads in uninterruptible sleep.
    disk: u64,
    /// Stopped threads.
    stopped: u64,
}

impl Processes {
    /// Counts a thread in this state.
    fn count(&mut self, state: u8) {
        self.disk += u64::from(state == b'D');
        self.stopped += u64::from(state == b'T');
    }
}

/// The children that a process's first thread started: a server that starts a process for each connection has no other
/// thread. Empty if the kernel does not list them (`CONFIG_PROC_CHILDREN`).
fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
}

pub(crate) fn thread_cpu() -> u64 {
    nanos(clock_gettime(ClockId::ThreadCPUTime))
}

fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

fn own_cpu() -> u64 {
    nanos(clock_gettime(ClockId::ProcessCPUTime))
}

fn nanos(time: rustix::time::Timespec) -> u64 {
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Rounds to three decimals, which is more than a sample's precision.
fn rounded(share: f64) -> f64 {
    (share * 1e3).round() / 1e3
}

fn mean(pair: &[Sample]) -> Sample {
    let [a, b] = pair else { return pair.first().copied().unwrap_or_default() };
    let half = |of: fn(&Sample) -> f64| rounded(f64::midpoint(of(a), of(b)));
    Sample {
        at_ms: b.at_ms,
        client_cpu: half(|sample| sample.client_cpu),
        server_cpu: a.server_cpu.zip(b.server_cpu).map(|(a, b)| rounded(f64::midpoint(a, b))),
        host_cpu: half(|sample| sample.host_cpu),
        disk_waits: a.disk_waits.max(b.disk_waits),
        disk_busy: a.disk_busy.zip(b.disk_busy).map(|(a, b)| rounded(f64::midpoint(a, b))),
        network: a.network.zip(b.network).map(|(a, b)| a.midpoint(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn sampling_interval_grows_and_cost_is_bounded() {
        let own = Pid::of(std::process::id()).unwrap();
        let sampler = Sampler::start(&[own], false, None).unwrap();
        thread::sleep(Duration::from_millis(700));
        let seen = sampler.end();
        assert!(seen.taken >= 3, "{seen:?}");
        assert!(seen.taken <= 40, "{}", seen.taken);
        assert_eq!(seen.samples.len() as u64, seen.taken);
        assert!(seen.samples.is_sorted_by_key(|sample| sample.at_ms));
        // On a loaded machine the thread waits.
        assert!(seen.cost_ns < 70_000_000, "{}", seen.cost_ns);
    }

    #[test]
    fn processes_that_start_during_sampling_are_sampled() {
        // The child starts after the sampling began. When it has ended, one sample has all of its CPU time.
        let script = "read go; sh -c 'i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done'; :";
        let mut shell = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
        let sampler = Sampler::start(&[Pid::of(shell.id()).unwrap()], true, None).unwrap();
        drop(shell.stdin.take());
        shell.wait().unwrap();
        let seen = sampler.end();
        let used: Vec<f64> = seen.samples.iter().filter_map(|sample| sample.server_cpu).collect();
        assert!(used.iter().filter(|share| **share > 0.05).count() > 1, "{used:?}");
    }

    #[test]
    fn many_samples_are_merged_into_means_and_all_are_counted() {
        let mut sampling =
            SampleLoop { members: Vec::new(), apart: false, wire: None, seen: SampleSeries::default() };
        let began = Instant::now();
        let mut before = (began, Counters::default());
        for n in 1..=500 {
            sampling.sample(began, began + Duration::from_millis(n), &mut before);
        }
        assert_eq!(sampling.seen.taken, 500);
        assert!(sampling.seen.samples.len() <= KEPT && sampling.seen.samples.len() >= KEPT / 2 - 1);
        assert_eq!(sampling.seen.samples.last().unwrap().at_ms, 500);
    }
}
