//! Reads the limits that apply to this process from its control group (cgroup) and the groups around it.
//! Supports versions 1 and 2, wherever they are mounted.

use std::path::{Path, PathBuf};

use crate::files::{number, read};

const ROOT: &str = "/sys/fs/cgroup";
/// Version 1 writes "no limit" as a number near 2^63, rounded to pages.
const NO_LIMIT_BYTES: u64 = 1 << 60;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// CPU time per second, in cores.
    pub(crate) cpus: Option<f64>,
    pub(crate) memory: Option<Share>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) limit_bytes: u64,
    pub(crate) left_bytes: u64,
}

pub(crate) fn limits() -> Limits {
    limits_of(Path::new(ROOT), &read("/proc/self/cgroup"))
}

/// Returns the smallest limit between this process's groups and the root.
fn limits_of(root: &Path, own: &str) -> Limits {
    let mut found = Limits::default();
    for folder in folders(root, own) {
        let cpus = quota(&read(folder.join("cpu.max"))).or_else(|| quota_v1(&folder));
        found.cpus = narrowest(found.cpus, cpus, |cpus| *cpus);
        let memory = memory(&folder);
        found.memory = narrowest(found.memory, memory, |share| share.left_bytes as f64);
    }
    found
}

fn narrowest<T: Copy>(one: Option<T>, other: Option<T>, size: impl Fn(&T) -> f64) -> Option<T> {
    let both = one.into_iter().chain(other);
    both.min_by(|one, other| size(one).total_cmp(&size(other)))
}

/// Returns the folders of the groups of a process and of all groups around them. In a container these folders may not be
/// visible; the root then has the limits.
fn folders(root: &Path, own: &str) -> Vec<PathBuf> {
    let mut folders = vec![root.to_path_buf()];
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let hierarchy = match controllers {
            "" => root.to_path_buf(),
            _ if controllers.split(',').any(|name| name == "cpu") => root.join("cpu"),
            _ if controllers.split(',').any(|name| name == "memory") => root.join("memory"),
            _ => continue,
        };
        let within = hierarchy.join(path.trim_start_matches('/'));
        let around = within.ancestors().take_while(|folder| folder.starts_with(&hierarchy));
        folders.extend(around.map(Path::to_path_buf));
    }
    folders
}

/// Parses `cpu.max` of version 2: the allowed number of cores, or `None` without a limit.
fn quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0.0).then(|| quota / period)
}

fn quota_v1(folder: &Path) -> Option<f64> {
    let of = |name: &str| number(folder.join(name));
    let (quota, period) = of("cpu.cfs_quota_us").zip(of("cpu.cfs_period_us"))?;
    (period > 0).then(|| quota as f64 / period as f64)
}

fn memory(folder: &Path) -> Option<Share> {
    let of = |name: &str| number(folder.join(name));
    let limit_bytes = of("memory.max").or_else(|| of("memory.limit_in_bytes"))?;
    let used_bytes = of("memory.current").or_else(|| of("memory.usage_in_bytes")).unwrap_or(0);
    let cached_bytes = cached_bytes(&read(folder.join("memory.stat")));
    let used_bytes = used_bytes.saturating_sub(cached_bytes);
    let left_bytes = limit_bytes.saturating_sub(used_bytes);
    (limit_bytes < NO_LIMIT_BYTES).then_some(Share { limit_bytes, left_bytes })
}

/// Returns the bytes of cached file pages. The group counts them as used, but the kernel frees them on demand.
fn cached_bytes(stat: &str) -> u64 {
    let of = |name: &str| {
        let value = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value?.trim().parse::<u64>().ok()
    };
    of("total_inactive_file").or_else(|| of("inactive_file")).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::folder_with;

    fn share(limit_bytes: u64, left_bytes: u64) -> Option<Share> {
        Some(Share { limit_bytes, left_bytes })
    }

    #[test]
    fn a_quota_is_a_number_of_cores() {
        assert_eq!((quota("200000 100000\n"), quota("max 100000\n")), (Some(2.0), None));
    }

    #[test]
    fn the_narrowest_limit_of_those_around_it_holds() {
        let v2 = folder_with(&[
            ("memory.max", "max\n"),
            ("a/memory.max", "1000\n"),
            ("a/memory.current", "700\n"),
            ("a/memory.stat", "anon 400\ninactive_file 300\n"),
            ("a/cpu.max", "400000 100000\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/cpu.max", "150000 100000\n"),
        ]);
        let got = limits_of(v2.path(), "0::/a/b\n");
        assert_eq!(got, Limits { cpus: Some(1.5), memory: share(1000, 600) });
    }

    #[test]
    fn the_older_version_is_read_too() {
        let v1 = folder_with(&[
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/box/memory.limit_in_bytes", "500\n"),
            ("memory/box/memory.usage_in_bytes", "100\n"),
            ("cpu/cpu.cfs_quota_us", "-1\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        let got = limits_of(v1.path(), "4:memory:/box\n1:cpu,cpuacct:/\n9:name=systemd:/\n");
        assert_eq!(got, Limits { cpus: None, memory: share(500, 400) });
    }

    #[test]
    fn a_container_sees_only_its_root() {
        let v2 = folder_with(&[("memory.max", "800\n"), ("memory.current", "100\n")]);
        let got = limits_of(v2.path(), "0::/not/seen/here\n");
        assert_eq!(got, Limits { cpus: None, memory: share(800, 700) });
        assert_eq!(limits_of(Path::new("/nowhere"), ""), Limits::default());
    }
}
