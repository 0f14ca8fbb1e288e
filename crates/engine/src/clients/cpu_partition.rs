//! Separate processors for clients and for servers on this machine.
//!
//! Client and server wake each other thousands of times per second, so that the scheduler's placement decides the
//! result: on one processor there are no remote wake-ups; on two, both run in parallel. The placement may change at
//! any time. Pinned apart, they always use different processors, like a client and a server on separate machines.

use kurabe_core::{Error, ErrorKind, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeMap;
use std::fs;

/// The processors of clients and servers, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuPartition {
    /// The clients' processors.
    pub clients: Vec<u32>,
    /// The servers' processors.
    pub servers: Vec<u32>,
}

impl CpuPartition {
    /// Divides the processors that this thread may use into halves; threads of one core stay together. `None` if
    /// there is only one processor.
    pub fn of_this_machine() -> Option<Self> {
        let allowed = allowed().ok()?;
        Self::share(allowed.into_iter().map(|cpu| (cpu, siblings(cpu))))
    }

    /// Gives the servers this many of the processors that this thread may use, and clients the others; `shared`: clients
    /// get all. Threads of one core stay together as far as the number allows.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) if there are too few processors.
    pub fn allot(count: usize, shared: bool) -> Result<Self> {
        Self::divide(allowed()?.into_iter().map(|cpu| (siblings(cpu), cpu)).collect(), count, shared)
    }

    /// `cpus`: each with the name of its core.
    fn divide(mut cpus: Vec<(String, u32)>, count: usize, shared: bool) -> Result<Self> {
        let machine = cpus.len();
        let needed = count + usize::from(!shared);
        if needed > machine {
            let [count, machine] = [count, machine].map(|number| kurabe_core::units::count(number as u64));
            let why = if shared {
                format!("the server would get {count} processors, and there are {machine}")
            } else {
                format!(
                    "the server would get {count} of {machine} processors, which leaves none for the client"
                )
            };
            let hint = "use a larger machine, or --cpu-placement shared";
            let error = Error::unsupported(why);
            return Err(if shared { error } else { error.hint(hint) });
        }
        cpus.sort_unstable();
        let servers = cpus.split_off(machine - count).into_iter().map(|(_, cpu)| cpu).collect::<Vec<_>>();
        let mut clients: Vec<u32> = cpus.into_iter().map(|(_, cpu)| cpu).collect();
        if shared {
            clients.extend(&servers);
        }
        Ok(Self { clients, servers })
    }

    /// `cpus`: each with the name of its core.
    fn share(cpus: impl Iterator<Item = (u32, String)>) -> Option<Self> {
        let mut cores: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (cpu, core) in cpus {
            cores.entry(core).or_default().push(cpu);
        }
        let mut cores: Vec<Vec<u32>> = cores.into_values().collect();
        if let [only] = &mut cores[..] {
            cores = std::mem::take(only).into_iter().map(|cpu| vec![cpu]).collect();
        }
        cores.sort_unstable();
        if cores.len() < 2 {
            return None;
        }
        let servers = cores.split_off(cores.len() / 2);
        Some(Self { clients: cores.concat(), servers: servers.concat() })
    }

    /// Runs `work` with the servers' CPU affinity. Threads and processes that it starts inherit the affinity.
    pub fn with_server_affinity<T>(&self, work: impl FnOnce() -> T) -> T {
        // Without permission to change the affinity, the scheduler decides.
        let before = allowed();
        let _ = pin_thread(&self.servers);
        let done = work();
        if let Ok(before) = before {
            let _ = pin_thread(&before);
        }
        done
    }
}

/// The name of a processor's core: its threads.
fn siblings(cpu: u32) -> String {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    fs::read_to_string(path).unwrap_or_else(|_| cpu.to_string())
}

/// The processors that this thread may use.
fn allowed() -> Result<Vec<u32>> {
    let set = sched_getaffinity(None).map_err(|error| affinity_error("read", error))?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}

/// The number of processors that this thread may use, at least 1.
pub(crate) fn usable() -> usize {
    allowed().map_or(1, |cpus| cpus.len().max(1))
}

/// Pins this thread, and those that it starts, to these processors. Does nothing if the list is empty.
pub(crate) fn pin_thread(cpus: &[u32]) -> Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu as usize);
    }
    sched_setaffinity(None, &set).map_err(|error| affinity_error("set", error))
}

/// Pins a thread, and those that it starts meanwhile, until this is dropped.
pub(crate) struct PinGuard {
    before: Vec<u32>,
}

impl PinGuard {
    /// Pins this thread to these processors.
    pub(crate) fn pin(cpus: &[u32]) -> Result<Self> {
        let before = allowed()?;
        pin_thread(cpus)?;
        Ok(Self { before })
    }
}

impl Drop for PinGuard {
    fn drop(&mut self) {
        // The processors were allowed before.
        let _ = pin_thread(&self.before);
    }
}

fn affinity_error(what: &str, error: rustix::io::Errno) -> Error {
    Error::of_cause(ErrorKind::Environment, format_args!("cannot {what} the CPU affinity of a thread"), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(cpus: &[(u32, &str)]) -> Option<(Vec<u32>, Vec<u32>)> {
        let cpu_partition = CpuPartition::share(cpus.iter().map(|(cpu, core)| (*cpu, (*core).to_owned())))?;
        Some((cpu_partition.clients, cpu_partition.servers))
    }

    #[test]
    fn clients_keep_a_processor_unless_they_share() {
        let four =
            || [(0, "a"), (1, "b"), (2, "a"), (3, "b")].map(|(cpu, core)| (core.to_owned(), cpu)).to_vec();
        let of = |count, shared| {
            CpuPartition::divide(four(), count, shared).map(|part| (part.clients, part.servers))
        };
        assert_eq!(of(2, false).unwrap(), (vec![0, 2], vec![1, 3]), "whole cores");
        assert_eq!(of(3, false).unwrap(), (vec![0], vec![2, 1, 3]));
        assert_eq!(of(3, true).unwrap(), (vec![0, 2, 1, 3], vec![2, 1, 3]));
        let error = of(4, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("leaves none for the client"), "{error}");
        assert!(of(4, true).is_ok() && of(5, true).is_err());
    }

    #[test]
    fn threads_of_one_core_are_on_one_side() {
        let four = [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")];
        assert_eq!(share(&four), Some((vec![0, 2], vec![1, 3])));
        let three = [(4, "4"), (6, "6"), (5, "5")];
        assert_eq!(share(&three), Some((vec![4], vec![5, 6])));
    }

    #[test]
    fn single_core_is_divided_and_single_processor_is_not() {
        assert_eq!(share(&[(0, "0-1"), (1, "0-1")]), Some((vec![0], vec![1])));
        assert_eq!(share(&[(3, "3")]), None);
        assert_eq!(share(&[]), None);
    }

    #[test]
    fn with_server_affinity_applies_to_started_threads_only() {
        let before = allowed().unwrap();
        let Some(cpu_partition) = CpuPartition::of_this_machine() else { return };
        let started =
            cpu_partition.with_server_affinity(|| std::thread::spawn(allowed)).join().unwrap().unwrap();
        assert_eq!(started, cpu_partition.servers);
        assert_eq!(allowed().unwrap(), before);
    }
}
