//! Detects that this process stood still during a trial: stopped by a signal, frozen, or paused with its machine.
//!
//! A thread sleeps for a fixed time, repeatedly. If it wakes up later than the scheduler explains, the process stood
//! still. The kernel counts how long a thread was runnable and waited for a processor
//! (`/proc/thread-self/schedstat`). That time is subtracted, so that a busy machine is not taken for one that stood
//! still. A stopped process does not wait for a processor.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The length of one sleep.
pub(crate) const TICK: Duration = Duration::from_millis(50);
/// Shorter delays are ordinary noise, left to the statistics.
const MIN: Duration = Duration::from_millis(100);
/// The shortest delay that counts if the kernel does not report waits for a processor.
const MIN_UNEXPLAINED: Duration = Duration::from_secs(1);

/// The part of a trial, as a divisor, below which a standstill is noise: it changes no rate and no 99th percentile.
const PART: u32 = 1_000;

/// Whether a standstill changes the result of a trial that took so long.
pub(crate) fn counts(stood_still: Duration, trial: Duration) -> bool {
    stood_still > trial / PART
}

/// Measures how long this process stands still.
pub(crate) struct Monitor {
    total_ns: Arc<AtomicU64>,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    /// Starts the monitor. If no thread can be started, it detects nothing.
    pub(crate) fn start() -> Self {
        let total_ns = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = channel();
        let total = Arc::clone(&total_ns);
        let thread = thread::Builder::new()
            .name("standstill".to_owned())
            .stack_size(64 * 1024)
            .spawn(move || watch(&total, &stopped));
        Self { total_ns, stop: Some(stop), thread: thread.ok() }
    }

    /// How long the process has stood still so far.
    pub(crate) fn so_far(&self) -> Duration {
        Duration::from_nanos(self.total_ns.load(Ordering::Relaxed))
    }

    /// Ends the monitor and returns how long the process stood still.
    pub(crate) fn end(mut self) -> Duration {
        self.join();
        self.so_far()
    }

    fn join(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.join();
    }
}

fn watch(total_ns: &AtomicU64, stopped: &Receiver<()>) {
    let mut sleeps = Sleeps::begin();
    loop {
        let ended = stopped.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout);
        total_ns.fetch_add(sleeps.stood_still().as_nanos() as u64, Ordering::Relaxed);
        if ended {
            return;
        }
    }
}

/// The sleeps of a thread, none longer than [`TICK`].
pub(crate) struct Sleeps {
    schedstat: Option<File>,
    waited: Option<Duration>,
    began: Instant,
}

impl Sleeps {
    /// Sleeps of this thread, from now on.
    pub(crate) fn begin() -> Self {
        let schedstat = File::open("/proc/thread-self/schedstat").ok();
        let waited = schedstat.as_ref().and_then(waited_for_processor);
        Self { schedstat, waited, began: Instant::now() }
    }

    /// How long this process stood still in the sleep that has just ended.
    pub(crate) fn stood_still(&mut self) -> Duration {
        let took = self.began.elapsed();
        let now = self.schedstat.as_ref().and_then(waited_for_processor);
        let explained = self.waited.zip(now).map(|(before, now)| now.saturating_sub(before));
        (self.waited, self.began) = (now, Instant::now());
        standstill(took, explained)
    }
}

/// The part of a sleep that neither its length nor waiting for a processor explains.
fn standstill(took: Duration, waited_for_processor: Option<Duration>) -> Duration {
    let late = took.saturating_sub(TICK).saturating_sub(waited_for_processor.unwrap_or_default());
    let least = if waited_for_processor.is_some() { MIN } else { MIN_UNEXPLAINED };
    if late >= least { late } else { Duration::ZERO }
}

/// The total time that this thread was runnable and waited for a processor
/// (`Documentation/scheduler/sched-stats.rst`).
fn waited_for_processor(schedstat: &File) -> Option<Duration> {
    let mut text = [0; 96];
    let length = schedstat.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn waits_for_a_processor_are_the_second_number_that_the_kernel_counts() {
        let waited = |text: &str| {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(text.as_bytes(), 0).unwrap();
            waited_for_processor(&file)
        };
        assert_eq!(
            ["81234 4567 12\n", "81234", "a b c"].map(waited),
            [Some(Duration::from_nanos(4_567)), None, None]
        );
    }

    /// In a process of its own: other tests would stand still too.
    #[test]
    fn process_that_was_stopped_stood_still_until_it_went_on() {
        const CHILD: &str = "KURABE_TEST_STANDSTILL";
        const NAME: &str = "trial::standstill::tests::process_that_was_stopped_stood_still_until_it_went_on";
        if std::env::var_os(CHILD).is_none() {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            let answer = child.args(["--exact", NAME]).env(CHILD, "1").output().unwrap();
            let said = String::from_utf8_lossy(&answer.stdout);
            assert!(answer.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let monitor = Monitor::start();
        let id = std::process::id();
        let stop = format!("kill -STOP {id}; sleep 0.4; kill -CONT {id}");
        // The monitor's thread may not have begun when it is stopped for the first time.
        for _ in 0..20 {
            assert!(std::process::Command::new("sh").args(["-c", &stop]).status().unwrap().success());
            thread::sleep(MS(100));
            if monitor.so_far() >= MS(200) {
                break;
            }
        }
        let so_far = monitor.so_far();
        assert!((MS(200)..MS(60_000)).contains(&so_far) && monitor.end() >= so_far, "{so_far:?}");
    }

    #[test]
    fn thread_that_slept_for_long_stood_still() {
        let mut sleeps = Sleeps::begin();
        std::thread::sleep(MS(300));
        let found = sleeps.stood_still();
        assert!((MS(200)..MS(60_000)).contains(&found), "{found:?}");
        assert!(sleeps.stood_still() < MS(200), "each sleep counts for itself");
    }

    #[test]
    fn only_a_delay_that_the_scheduler_does_not_explain_counts() {
        assert_eq!(standstill(MS(5_050), Some(MS(0))), MS(5_000));
        assert_eq!(standstill(MS(5_050), Some(MS(4_990))), MS(0));
        assert_eq!(standstill(MS(5_050), Some(MS(2_000))), MS(3_000));
        assert_eq!(standstill(MS(120), Some(MS(0))), MS(0));
        // Without the kernel's explanation, only a delay that no scheduler causes counts.
        assert_eq!(standstill(MS(600), None), MS(0));
        assert_eq!(standstill(MS(2_050), None), MS(2_000));
    }

    #[test]
    fn standstill_counts_by_its_part_of_the_trial() {
        assert!(!counts(MS(100), MS(130_000)));
        assert!(counts(MS(100), MS(10_000)));
        assert!(counts(MS(131), MS(130_000)));
        assert!(!counts(MS(0), MS(0)));
    }

    #[test]
    fn busy_machine_is_not_taken_for_a_standstill() {
        let until = Instant::now() + Duration::from_secs(1);
        let monitor = Monitor::start();
        let workers = 4 * thread::available_parallelism().map_or(4, usize::from);
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while Instant::now() < until {
                        std::hint::spin_loop();
                    }
                });
            }
        });
        assert_eq!(monitor.end(), Duration::ZERO);
    }
}
