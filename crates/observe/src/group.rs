//! A process's control group: its CPU limit, and the time for which it was throttled (`cgroups(7)`; versions 1 and
//! 2).

use crate::process::value;
use std::fs;
use std::path::{Path, PathBuf};

/// The lowest CPU limit of a process's control group and its ancestors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CpuLimit {
    pub cpus: f64,
    folder: PathBuf,
}

impl CpuLimit {
    /// The limit of a process, if it has one.
    pub fn of(pid: u32) -> Option<Self> {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        places(&groups, &mounts)
            .into_iter()
            .flat_map(|(mount, group)| ancestors(&mount, &group))
            .filter_map(|folder| Some(Self { cpus: limit(&folder)?, folder }))
            .min_by(|a, b| a.cpus.total_cmp(&b.cpus))
    }

    /// Time for which the group has been throttled so far, in nanoseconds.
    pub fn throttled_ns(&self) -> Option<u64> {
        let text = fs::read_to_string(self.folder.join("cpu.stat")).ok()?;
        value(&text, "throttled_time ").or_else(|| value(&text, "throttled_usec ").map(|us| us * 1_000))
    }
}

/// Paths of the process's CPU controllers: mount points, and its group below each.
fn places(groups: &str, mounts: &str) -> Vec<(PathBuf, PathBuf)> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let unified = number == "0" && controllers.is_empty();
        if !unified && !controllers.split(',').any(|name| name == "cpu") {
            continue;
        }
        for mount in mounts.lines() {
            let Some((left, right)) = mount.split_once(" - ") else { continue };
            let mut right = right.split(' ');
            let (kind, options) = (right.next().unwrap_or(""), right.nth(1).unwrap_or(""));
            let here = if unified {
                kind == "cgroup2"
            } else {
                kind == "cgroup" && options.split(',').any(|option| option == "cpu")
            };
            let mut left = left.split(' ').skip(3);
            if let (true, Some(root), Some(point)) = (here, left.next(), left.next()) {
                // In a container, the mount's root is the container's own group.
                let below = path.strip_prefix(root).unwrap_or(path);
                found.push((PathBuf::from(point), PathBuf::from(below.trim_start_matches('/'))));
                break;
            }
        }
    }
    found
}

fn ancestors(mount: &Path, group: &Path) -> Vec<PathBuf> {
    group.ancestors().map(|part| mount.join(part)).collect()
}

fn limit(folder: &Path) -> Option<f64> {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<f64>().ok();
    let (quota, period) = match fs::read_to_string(folder.join("cpu.max")) {
        Ok(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse().ok()?, period.parse().ok()?)
        }
        Err(_) => (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?),
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
30 25 0:26 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
32 25 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
";

    #[test]
    fn groups_of_both_versions_are_found() {
        let groups = "4:cpu,cpuacct:/db/one\n3:cpuset:/x\n0::/db\n";
        let found = places(groups, MOUNTS);
        let wanted = [("/sys/fs/cgroup/cpu", "db/one"), ("/sys/fs/cgroup/unified", "db")];
        assert_eq!(found, wanted.map(|(mount, group)| (PathBuf::from(mount), PathBuf::from(group))));
        assert_eq!(places("nonsense", "nonsense"), []);
    }

    #[test]
    fn lowest_limit_of_all_ancestors_applies() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("db/one");
        fs::create_dir_all(&inner).unwrap();
        fs::write(folder.path().join("db/cpu.max"), "50000 100000\n").unwrap();
        fs::write(inner.join("cpu.max"), "max 100000\n").unwrap();
        let limits: Vec<_> = ancestors(folder.path(), Path::new("db/one")).iter().map(|f| limit(f)).collect();
        assert_eq!(limits, [None, Some(0.5), None]);
        fs::remove_file(inner.join("cpu.max")).unwrap();
        fs::write(inner.join("cpu.cfs_quota_us"), "-1\n").unwrap();
        fs::write(inner.join("cpu.cfs_period_us"), "100000\n").unwrap();
        assert_eq!(limit(&inner), None);
        fs::write(inner.join("cpu.cfs_quota_us"), "25000\n").unwrap();
        assert_eq!(limit(&inner), Some(0.25));
        let known = CpuLimit { cpus: 0.25, folder: inner.clone() };
        fs::write(inner.join("cpu.stat"), "nr_periods 3\nnr_throttled 2\nthrottled_time 77\n").unwrap();
        assert_eq!(known.throttled_ns(), Some(77));
        fs::write(inner.join("cpu.stat"), "usage_usec 5\nthrottled_usec 8\n").unwrap();
        assert_eq!(known.throttled_ns(), Some(8_000));
    }
}
