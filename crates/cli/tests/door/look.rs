//! Ways to wait, and to look at processes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::agent::PATIENCE;

/// How long to wait before one looks again.
const GLANCE: Duration = Duration::from_millis(2);

/// What this finds, as soon as it finds it.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "in {PATIENCE:?} there was never {what}");
        std::thread::park_timeout(GLANCE);
    }
}

pub fn kill(signal: &str, pid: i32) {
    let done = Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(done.success(), "kill {signal} {pid}");
}

/// Whether it runs, or could: a zombie does not.
pub fn lives(pid: i32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(") ").next().unwrap().starts_with('Z'),
        Err(_) => false,
    }
}

pub fn parent(pid: i32) -> i32 {
    parent_of(pid).unwrap()
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
}

/// How much lies unread in the pipe to a process.
pub fn unread(pid: i32) -> u64 {
    let pipe = std::fs::File::open(format!("/proc/{pid}/fd/0")).unwrap();
    rustix::io::ioctl_fionread(&pipe).unwrap()
}

/// The most memory that a process has had, in KiB.
pub fn most_memory(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The words of every process that has this in its environment: wherever it went, it could not shake that off. A shim and its
/// reaper hide theirs from all but root, and are found above their server.
pub fn marked(mark: &str) -> Vec<(i32, Vec<String>)> {
    let texts = |path: PathBuf| -> std::io::Result<Vec<String>> {
        let bytes = std::fs::read(path)?;
        Ok(bytes.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned()).collect())
    };
    let words = |pid: i32| texts(format!("/proc/{pid}/cmdline").into()).unwrap_or_default();
    let environment = |pid: i32| texts(format!("/proc/{pid}/environ").into());
    let is_marked =
        |pid: &i32| environment(*pid).is_ok_and(|all| all.iter().any(|variable| variable == mark));
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<i32> = numbers.filter(|pid| is_marked(pid) && lives(*pid)).collect();
    let hides = |pid: i32| {
        let denied =
            environment(pid).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
        denied && words(pid).iter().any(|word| word.contains("linetender"))
    };
    for mut pid in found.clone() {
        while let Some(above) = parent_of(pid).filter(|above| hides(*above) && !found.contains(above)) {
            found.push(above);
            pid = above;
        }
    }
    found.into_iter().map(|pid| (pid, words(pid))).collect()
}

/// A folder of the test's own.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(format!("linetender-door-{}", unique()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A text that nothing else on this machine has.
pub fn unique() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Makes a file one that can be run.
pub fn allow(program: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
}
