//! The memory and the number of processes and threads at one time.

use crate::process::{Pid, numbers, value};
use kurabe_core::observation::MemoryUsage;
use std::fs;

/// No such process.
const ESRCH: i32 = 3;

/// Adds up the memory of these processes. `smaps_rollup` divides each shared page among its processes, so that the
/// shared memory of a server with many processes is counted once (`proc_pid_smaps(5)`). Pages of files, mostly
/// programs and libraries, are left out: other processes share them, and the server's part would shrink whenever one
/// of those begins.
///
/// # Errors
/// A clause, if their memory cannot be read. Processes that end meanwhile are not counted.
pub(crate) fn of(members: &[Pid]) -> Result<MemoryUsage, String> {
    let mut sum = MemoryUsage::default();
    for pid in members {
        let number = pid.number;
        let text = match fs::read_to_string(format!("/proc/{number}/smaps_rollup")) {
            Ok(text) => text,
            // A zombie process has no memory either.
            Err(error) if !pid.lives() || error.raw_os_error() == Some(ESRCH) => continue,
            Err(error) => {
                return Err(format!("no permission to read the memory use of its processes ({error})"));
            }
        };
        let bytes = |name: &str| value(&text, name).map(|kilobytes| kilobytes * 1024);
        // A process that is just ending has no memory any more.
        let Some(all) = bytes("Pss:") else { continue };
        // Kernels before 5.4 do not distinguish pages of files.
        let memory = all.saturating_sub(bytes("Pss_File:").unwrap_or_default());
        sum.memory_bytes += memory;
        sum.private_bytes += bytes("Private_Dirty:").unwrap_or_default().min(memory);
        sum.processes += 1;
        sum.threads += numbers(&format!("/proc/{number}/task")).len() as u64;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocated_memory_and_process_count_are_measured() {
        let own = [Pid::of(std::process::id()).unwrap()];
        let before = of(&own).unwrap();
        let taken = std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = of(&own).unwrap();
        assert_eq!(after.processes, 1);
        assert!(after.threads >= 1 && after.private_bytes <= after.memory_bytes);
        for (now, then) in
            [(after.memory_bytes, before.memory_bytes), (after.private_bytes, before.private_bytes)]
        {
            // Other tests allocate and free memory meanwhile.
            assert!(now > then + (48 << 20), "{before:?} {after:?}");
        }
        drop(taken);
    }

    #[test]
    fn ended_process_has_no_memory() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let pid = Pid::of(child.id()).unwrap();
        assert_eq!(of(&[pid]).unwrap().processes, 1);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(of(&[pid]).unwrap(), MemoryUsage::default());
    }
}
