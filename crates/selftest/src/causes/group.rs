//! Control groups that limit a server: to a part of a processor, or to a few disk writes per second.
//!
//! Only version 1 of control groups, where each controller can be used alone. If there is none, the cause is left out
//! with the reason.

use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// This part of one processor's time.
    Cpu(f64),
    /// So many writes per second to the disk with this device number.
    Writes(u64, u64),
}

impl Limit {
    fn controller(self) -> &'static str {
        match self {
            Self::Cpu(_) => "cpu",
            Self::Writes(..) => "blkio",
        }
    }

    fn setting(self) -> (&'static str, String) {
        match self {
            Self::Cpu(part) => ("cpu.cfs_quota_us", format!("{:.0}", part * 100_000.0)),
            Self::Writes(device, per_second) => {
                let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
                ("blkio.throttle.write_iops_device", format!("{major}:{minor} {per_second}"))
            }
        }
    }
}

/// A temporary control group; dropping it returns its processes to their earlier groups.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
    /// Processes with their earlier groups.
    moved: Vec<(u32, PathBuf)>,
}

impl Group {
    /// Limits these processes.
    ///
    /// # Errors
    /// Why this is impossible here, as a clause.
    pub(super) fn hold(processes: &[u32], limit: Limit) -> Result<Self, String> {
        let root = mount(limit.controller())?;
        let folder = root.join(format!("kurabe-truth-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|e| format!("a control group cannot be made here: {e}"))?;
        let mut group = Self { folder, moved: Vec::new() };
        let (name, value) = limit.setting();
        fs::write(group.folder.join(name), value).map_err(|e| format!("{name} cannot be set: {e}"))?;
        for pid in processes {
            let before = root.join(place(*pid, limit.controller()).unwrap_or_default());
            // A process that has ended meanwhile needs no limit.
            if fs::write(group.folder.join("cgroup.procs"), pid.to_string()).is_ok() {
                group.moved.push((*pid, before));
            }
        }
        if group.moved.is_empty() {
            Err("no process could be moved into a control group".to_owned())
        } else {
            Ok(group)
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let root = self.folder.parent().map(Path::to_owned).unwrap_or_default();
        for (pid, before) in &self.moved {
            let _ = fs::write(before.join("cgroup.procs"), pid.to_string());
        }
        // Processes that were started in the group meanwhile.
        for pid in fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default().lines() {
            let _ = fs::write(root.join("cgroup.procs"), pid);
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The mount point of a controller.
fn mount(controller: &str) -> Result<PathBuf, String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let found = mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let here =
            right.next() == Some("cgroup") && right.nth(1)?.split(',').any(|option| option == controller);
        here.then(|| left.split(' ').nth(4).map(PathBuf::from)).flatten()
    });
    found.ok_or_else(|| {
        format!("the controller '{controller}' of control groups version 1 is not mounted here")
    })
}

/// The group of a process, below the mount.
fn place(pid: u32, controller: &str) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let here = parts.next()?.split(',').any(|name| name == controller);
        here.then(|| parts.next().map(|path| PathBuf::from(path.trim_start_matches('/')))).flatten()
    })
}

/// The device number of a folder's disk.
pub(super) fn disk_of(folder: &Path) -> Result<u64, String> {
    let device = fs::metadata(folder)
        .map(|metadata| std::os::unix::fs::MetadataExt::dev(&metadata))
        .map_err(|e| format!("{} cannot be read: {e}", folder.display()))?;
    let link = format!("/sys/dev/block/{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let place = fs::canonicalize(&link).map_err(|_| format!("{} is on no disk", folder.display()))?;
    if !place.join("partition").exists() {
        return Ok(device);
    }
    let disk = place.parent().map(|disk| disk.join("dev")).and_then(|file| fs::read_to_string(file).ok());
    let numbers = disk.as_deref().and_then(|text| text.trim().split_once(':'));
    numbers
        .and_then(|(major, minor)| Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?)))
        .ok_or_else(|| format!("the disk of {} was not found", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        assert_eq!(Limit::Cpu(0.15).setting(), ("cpu.cfs_quota_us", "15000".to_owned()));
        let device = rustix::fs::makedev(254, 16);
        assert_eq!(
            Limit::Writes(device, 40).setting(),
            ("blkio.throttle.write_iops_device", "254:16 40".to_owned())
        );
    }

    #[test]
    fn folder_without_disk_is_reported() {
        let error = disk_of(Path::new("/proc")).unwrap_err();
        assert!(error.contains("is on no disk"), "{error}");
        assert!(disk_of(Path::new("/nowhere/at/all")).is_err());
    }
}
