//! What `/proc` says.

/// How much lies unread in the pipe to a process.
pub fn unread(pid: i32) -> u64 {
    let pipe = std::fs::File::open(format!("/proc/{pid}/fd/0")).ok();
    pipe.and_then(|pipe| rustix::io::ioctl_fionread(&pipe).ok()).unwrap_or(0)
}

/// Everything below a process, zombies included.
pub fn descendants(of: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten() {
        let listed = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in listed.split_ascii_whitespace() {
            found.extend(child.parse::<i32>());
            found.extend(descendants(child));
        }
    }
    found
}

/// Whether a process lives. A zombie does not; somebody else has to bury it.
pub fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// How many descriptors it has open. Those of a process that hides (`linetender` does) only root can list; how many there are the
/// kernel tells everybody (Linux 6.2 and later).
pub fn descriptors(of: &str) -> usize {
    let folder = format!("/proc/{of}/fd");
    let told = || std::fs::metadata(&folder).map_or(0, |about| usize::try_from(about.len()).unwrap_or(0));
    std::fs::read_dir(&folder).map_or_else(|_| told(), Iterator::count)
}

/// Whether it has this in its environment, as `NAME=value`: wherever it went, it could not shake that off.
pub fn carries(pid: i32, mark: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
}

/// Everything that carries this mark and lives, whoever its parent is.
pub fn marked(mark: &str) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter(|pid| carries(*pid, mark) && lives(*pid)).collect()
}

/// The parent of a process.
pub fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
}
