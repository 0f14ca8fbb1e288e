//! Processes and their threads, from `/proc` (`proc_pid_stat(5)` and related pages).

use kurabe_core::observation::{BUSIEST, ProcessUse, ThreadUse};
use kurabe_core::text::printable;
use kurabe_os::process::{self, Stat};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

/// A process with its start time, which distinguishes it from a later process with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pid {
    pub number: u32,
    pub began: u64,
}

impl Pid {
    /// The process of this number, if it exists.
    pub fn of(number: u32) -> Option<Self> {
        Stat::of(number).map(|stat| Self { number, began: stat.began })
    }

    pub fn lives(self) -> bool {
        Self::of(self.number) == Some(self)
    }
}

/// These processes and all their descendants.
pub(crate) fn process_tree(roots: &[Pid]) -> Vec<Pid> {
    let mut children: HashMap<u32, Vec<Pid>> = HashMap::new();
    for (number, stat) in process::all() {
        children.entry(stat.parent).or_default().push(Pid { number, began: stat.began });
    }
    let mut found = BTreeSet::new();
    let mut next: Vec<Pid> = roots.iter().copied().filter(|root| root.lives()).collect();
    while let Some(pid) = next.pop() {
        if found.insert(pid) {
            next.extend(children.remove(&pid.number).unwrap_or_default());
        }
    }
    found.into_iter().collect()
}

/// The entries of a directory that are numbers.
pub(crate) fn numbers(folder: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

#[derive(Clone, Debug, Default)]
struct Thread {
    name: String,
    cpu_ns: u64,
    queue_ns: u64,
    voluntary: u64,
    involuntary: u64,
    cpus: Vec<u32>,
}

/// The counters of several processes at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    name: String,
    /// By process and thread.
    threads: BTreeMap<(Pid, u32), Thread>,
    /// Ticks of each process including ended threads, and of its ended children.
    ticks: BTreeMap<Pid, (u64, u64)>,
    /// Whether the kernel counts run-queue time.
    queued: bool,
    /// Bytes read and written by each process.
    bytes: Option<BTreeMap<Pid, (u64, u64)>>,
    memory_bytes: u64,
}

impl Counters {
    /// Reads the counters of a process tree, which has the name of its root. CPU time of ended children counts if the
    /// tree contains all descendants.
    pub fn of(members: &[Pid], eldest: Option<Pid>, whole: bool) -> Self {
        let mut counters = Self { bytes: Some(BTreeMap::new()), ..Self::default() };
        for pid in members {
            let number = pid.number;
            let Some(stat) = Stat::of(number) else { continue };
            if Some(*pid) == eldest {
                counters.name = printable(&stat.name).into_owned();
            }
            counters.ticks.insert(*pid, (stat.ticks, if whole { stat.children_ticks } else { 0 }));
            let io = fs::read_to_string(format!("/proc/{number}/io")).ok();
            let io = io.and_then(|text| Some((value(&text, "read_bytes:")?, value(&text, "write_bytes:")?)));
            match (&mut counters.bytes, io) {
                (Some(bytes), Some(io)) => _ = bytes.insert(*pid, io),
                (bytes, _) => *bytes = None,
            }
            counters.memory_bytes += resident(number);
            for tid in numbers(&format!("/proc/{number}/task")) {
                if let Some(thread) = counters.thread(number, tid) {
                    counters.threads.insert((*pid, tid), thread);
                }
            }
        }
        counters
    }

    fn thread(&mut self, pid: u32, tid: u32) -> Option<Thread> {
        let folder = format!("/proc/{pid}/task/{tid}");
        let stat = Stat::of_thread(pid, tid)?;
        let status = fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
        let times = fs::read_to_string(format!("{folder}/schedstat")).unwrap_or_default();
        let mut times = times.split_ascii_whitespace().map_while(|word| word.parse::<u64>().ok());
        // In nanoseconds if the kernel has them, else in ticks.
        let (cpu_ns, queue_ns) = match (times.next(), times.next()) {
            (Some(cpu), Some(queue)) if cpu > 0 || stat.ticks == 0 => {
                self.queued = true;
                (cpu, queue)
            }
            _ => (stat.ticks * tick_ns(), 0),
        };
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        Some(Thread {
            name: printable(&stat.name).into_owned(),
            cpu_ns,
            queue_ns,
            voluntary: value(&status, "voluntary_ctxt_switches:").unwrap_or(0),
            involuntary: value(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0),
            cpus: cpu_list(list.unwrap_or("").trim()),
        })
    }

    /// The difference to the counters now.
    pub fn since(&self, before: &Self) -> ProcessUse {
        let none = Thread::default();
        let mut used: Vec<(ThreadUse, &Thread)> = Vec::with_capacity(self.threads.len());
        let (mut voluntary, mut involuntary) = (0, 0);
        for (key, now) in &self.threads {
            let then = before.threads.get(key).unwrap_or(&none);
            voluntary += now.voluntary.saturating_sub(then.voluntary);
            involuntary += now.involuntary.saturating_sub(then.involuntary);
            let thread = ThreadUse {
                name: now.name.clone(),
                cpu_ns: now.cpu_ns.saturating_sub(then.cpu_ns),
                queue_ns: now.queue_ns.saturating_sub(then.queue_ns),
            };
            used.push((thread, now));
        }
        used.sort_by_key(|(thread, _)| std::cmp::Reverse(thread.cpu_ns));
        let cpu_ns = self.cpu_since(before, used.iter().map(|(thread, _)| thread.cpu_ns).sum());
        // A nearly idle thread may have another affinity than the busy threads.
        let cpus: BTreeSet<u32> = used
            .iter()
            .enumerate()
            .filter(|(n, (thread, _))| *n == 0 || thread.cpu_ns * 100 >= cpu_ns)
            .flat_map(|(_, (_, thread))| thread.cpus.iter().copied())
            .collect();
        let bytes = self.bytes.as_ref().zip(before.bytes.as_ref()).map(|(now, then)| {
            let sum = |of: fn(&(u64, u64)) -> u64| -> u64 {
                now.iter().map(|(pid, n)| of(n).saturating_sub(then.get(pid).map_or(0, of))).sum()
            };
            (sum(|bytes| bytes.0), sum(|bytes| bytes.1))
        });
        ProcessUse {
            name: self.name.clone(),
            processes: self.ticks.len() as u64,
            threads: self.threads.len() as u64,
            cpu_ns,
            queue_ns: self.queued.then(|| used.iter().map(|(thread, _)| thread.queue_ns).sum()),
            voluntary_switches: voluntary,
            involuntary_switches: involuntary,
            read_bytes: bytes.map(|bytes| bytes.0),
            written_bytes: bytes.map(|bytes| bytes.1),
            memory_bytes: self.memory_bytes,
            cpus: cpus.into_iter().collect(),
            busiest: used.into_iter().take(BUSIEST).map(|(thread, _)| thread).collect(),
            ..ProcessUse::default()
        }
    }

    /// CPU time of all processes. The counters of living threads are exact. If threads ended meanwhile, the
    /// processes' own counters, which include them with a precision of one tick, are the minimum.
    fn cpu_since(&self, before: &Self, living: u64) -> u64 {
        let ended = before.threads.keys().any(|key| !self.threads.contains_key(key));
        let mut ticks = 0;
        let mut buried = false;
        for (pid, (own, children)) in &self.ticks {
            let then = before.ticks.get(pid).copied().unwrap_or_default();
            ticks += own.saturating_sub(then.0) + children.saturating_sub(then.1);
            buried |= *children > then.1;
        }
        // CPU time before the begin of children that were waited for is in both of the parent's counters.
        let gone: u64 =
            before.ticks.iter().filter(|(pid, _)| !self.ticks.contains_key(pid)).map(|(_, t)| t.0).sum();
        if ended || buried { living.max(ticks.saturating_sub(gone) * tick_ns()) } else { living }
    }
}

/// Nanoseconds of one clock tick, the unit of some of the kernel's counters.
pub(crate) fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// A number after a name at the beginning of a line.
pub(crate) fn value(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

fn resident(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = text.split_ascii_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// `0-2,5`.
pub(crate) fn cpu_list(text: &str) -> Vec<u32> {
    text.split(',')
        .filter_map(|part| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            Some(low.trim().parse().ok()?..=high.trim().parse::<u32>().ok()?.min(65_535))
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Pid {
        Pid::of(std::process::id()).unwrap()
    }

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(cpu_list("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(cpu_list(""), Vec::<u32>::new());
    }

    #[test]
    fn busy_thread_is_among_busiest_with_all_its_time() {
        let members = [own()];
        let before = Counters::of(&members, Some(own()), false);
        let worked = std::thread::Builder::new().name("worker".into()).spawn(|| {
            let began = std::time::Instant::now();
            while began.elapsed().as_millis() < 200 {
                std::hint::black_box(began);
            }
            // It must still exist when it is sampled.
            let after = Counters::of(&[own()], Some(own()), false);
            (after, rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime))
        });
        let (after, time) = worked.unwrap().join().unwrap();
        let used = after.since(&before);
        let thread = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        // Other tests run at the same time.
        let found = used.busiest.iter().find(|thread| thread.name == "worker").unwrap();
        assert!(found.cpu_ns >= thread / 2, "{} of {thread}: {used:?}", found.cpu_ns);
        assert!(used.cpu_ns >= found.cpu_ns && used.busiest.is_sorted_by(|a, b| a.cpu_ns >= b.cpu_ns));
        assert!(!used.cpus.is_empty() && used.memory_bytes > 0 && used.threads >= 2);
    }

    /// A shell with a child that works, ends, and is waited for once a line is sent.
    struct Parent {
        shell: std::process::Child,
        pid: Pid,
    }

    impl Parent {
        fn new() -> Self {
            let work = "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done) & read line; wait; read line";
            let mut command = std::process::Command::new("sh");
            let shell = command.args(["-c", work]).stdin(std::process::Stdio::piped()).spawn().unwrap();
            let pid = Pid::of(shell.id()).unwrap();
            Self { shell, pid }
        }

        fn until(what: impl Fn() -> bool) {
            let began = std::time::Instant::now();
            while !what() {
                assert!(began.elapsed().as_secs() < 60, "the state was not reached");
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }

        fn child_ends(&self) {
            let ended = |pid: &Pid| Stat::of(pid.number).is_some_and(|stat| stat.state == b'Z');
            Self::until(|| process_tree(&[self.pid]).iter().any(ended));
        }

        fn waits_for_it(&mut self) {
            use std::io::Write as _;
            self.shell.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
            Self::until(|| process_tree(&[self.pid]).len() == 1);
        }

        fn counters(&self, whole: bool) -> Counters {
            let members = if whole { process_tree(&[self.pid]) } else { vec![self.pid] };
            Counters::of(&members, Some(self.pid), whole)
        }
    }

    impl Drop for Parent {
        fn drop(&mut self) {
            drop(self.shell.stdin.take());
            let _ = self.shell.wait();
        }
    }

    #[test]
    fn cpu_time_of_child_counts_for_process_tree_since_first_reading() {
        let mut parent = Parent::new();
        Parent::until(|| process_tree(&[parent.pid]).len() == 2);
        let before = parent.counters(true);
        parent.child_ends();
        let (ended, alone) = (parent.counters(true), parent.counters(false));
        parent.waits_for_it();
        let worked = parent.counters(true).since(&before).cpu_ns;
        assert!(worked >= 10 * tick_ns(), "{worked}");
        // It had ended before: waiting for it is not work.
        assert!(parent.counters(true).since(&ended).cpu_ns <= worked / 4);
        assert!(parent.counters(false).since(&alone).cpu_ns <= worked / 4);
    }
}
