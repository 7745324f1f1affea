//! How much memory there is for us: a share of what the machine has, or of what our control group may have.

use std::path::Path;

/// The part of it that is ours.
const SHARE: u64 = 4;

/// Enough for a few large messages, however small the machine.
const LEAST: u64 = 128 * 1024 * 1024;

/// What is assumed where nothing says how much there is.
const UNKNOWN: u64 = 4 * 1024 * 1024 * 1024;

/// The memory of the gateway where no setting says another, in bytes.
pub(crate) fn of_this_machine() -> usize {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let group = std::fs::read_to_string("/proc/self/cgroup")
        .ok()
        .and_then(|text| of_groups(&text, Path::new("/sys/fs/cgroup")));
    let all = machine.unwrap_or(UNKNOWN).min(group.unwrap_or(u64::MAX));
    usize::try_from((all / SHARE).max(LEAST)).unwrap_or(usize::MAX)
}

/// The machine's memory.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The least that the groups of a process may have: of the one hierarchy, or of the older one that is for memory alone.
fn of_groups(cgroup: &str, root: &Path) -> Option<u64> {
    let group = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (of, path) = (parts.next()?, Path::new(parts.next()?.trim_start_matches('/')));
        match of {
            "" => allowed(root, path, "memory.max"),
            _ if of.split(',').any(|one| one == "memory") => {
                allowed(&root.join("memory"), path, "memory.limit_in_bytes")
            }
            _ => None,
        }
    };
    cgroup.lines().filter_map(group).min()
}

/// The least that a group, or one that it is in, may have.
fn allowed(root: &Path, group: &Path, file: &str) -> Option<u64> {
    let limit = |path: &Path| std::fs::read_to_string(root.join(path).join(file)).ok()?.trim().parse().ok();
    group.ancestors().filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::{LEAST, of_groups, of_this_machine, total};

    #[test]
    fn the_least_of_machine_and_groups_counts() {
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       24576 kB\n"), Some(24 * 1024 * 1024));
        assert_eq!(total("nothing"), None);
        let root = std::env::temp_dir().join(format!("linetender-groups-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/memory.max"), "1000\n").unwrap();
        std::fs::write(root.join("a/b/memory.max"), "max\n").unwrap();
        assert_eq!(of_groups("0::/a/b\n", &root), Some(1000));
        assert_eq!(of_groups("0::/c\n", &root), None);
        std::fs::create_dir_all(root.join("memory/x/y")).unwrap();
        std::fs::write(root.join("memory/x/y/memory.limit_in_bytes"), "900\n").unwrap();
        assert_eq!(of_groups("3:cpu,cpuacct:/x/y\n2:memory:/x/y\n0::/a\n", &root), Some(900));
        std::fs::remove_dir_all(root).unwrap();
        assert!(of_this_machine() as u64 >= LEAST);
    }
}
