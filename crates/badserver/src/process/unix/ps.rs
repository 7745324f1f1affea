//! What `ps` says, for systems without `/proc`.

#![allow(clippy::disallowed_methods, reason = "a server that misbehaves adopts no orphans")]

use std::process::Command;

/// A process of the table.
struct Listed {
    pid: i32,
    parent: i32,
    is_zombie: bool,
}

/// Everybody's processes, with the environment behind the command.
const WITH_ENVIRONMENT: &str = if cfg!(target_os = "linux") { "axeww" } else { "-axEww" };

/// How much lies unread in the pipe to a process: nobody tells.
pub fn unread(_pid: i32) -> u64 {
    0
}

/// Everything below a process, zombies included.
pub fn descendants(of: &str) -> Vec<i32> {
    let this = i32::try_from(std::process::id()).unwrap_or(0);
    let Ok(root) = (if of == "self" { Ok(this) } else { of.parse() }) else { return Vec::new() };
    let (all, mut found, mut at) = (table(), vec![root], 0);
    while let Some(parent) = found.get(at).copied() {
        found.extend(all.iter().filter(|one| one.parent == parent && one.pid != parent).map(|one| one.pid));
        at += 1;
    }
    found.remove(0);
    found
}

/// Whether a process lives. A zombie does not; somebody else has to bury it.
pub fn lives(pid: i32) -> bool {
    table().iter().any(|one| one.pid == pid && !one.is_zombie)
}

/// How many descriptors it has open: of this process, as many as a folder of the system lists; of others, nobody tells.
pub fn descriptors(of: &str) -> usize {
    if of == "self" { std::fs::read_dir("/dev/fd").map_or(0, Iterator::count) } else { 0 }
}

/// Whether it has this in its environment, as `NAME=value`.
pub fn carries(pid: i32, mark: &str) -> bool {
    marked(mark).contains(&pid)
}

/// Everything that carries this mark and lives, whoever its parent is.
pub fn marked(mark: &str) -> Vec<i32> {
    let listed = said(&[WITH_ENVIRONMENT, "-o", "pid=,command="]);
    let carries = |line: &str| line.split_ascii_whitespace().skip(1).any(|word| word == mark);
    let pid = |line: &str| line.split_ascii_whitespace().next()?.parse().ok();
    listed.lines().filter(|line| carries(line)).filter_map(pid).collect()
}

/// The parent of a process.
pub fn parent(pid: i32) -> Option<i32> {
    table().into_iter().find(|one| one.pid == pid).map(|one| one.parent)
}

fn table() -> Vec<Listed> {
    let listed = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (pid, parent) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Listed { pid, parent, is_zombie: words.next()?.starts_with('Z') })
    };
    said(&["-axo", "pid=,ppid=,stat="]).lines().filter_map(listed).collect()
}

fn said(words: &[&str]) -> String {
    let said = Command::new("ps").args(words).output();
    said.map_or_else(|_| String::new(), |said| String::from_utf8_lossy(&said.stdout).into_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::proc;
    use super::*;

    #[test]
    fn it_says_what_proc_says() {
        let mut child =
            Command::new("sh").args(["-c", "sleep 60 & wait"]).env("MARK", "ps-test").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let words = pid.to_string();
        while proc::descendants(&words).is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(descendants(&words), proc::descendants(&words));
        assert!(descendants("self").contains(&pid));
        assert_eq!(parent(pid), proc::parent(pid));
        assert!(lives(pid) && carries(pid, "MARK=ps-test") && !carries(pid, "MARK=ps"));
        let mut found = marked("MARK=ps-test");
        found.sort_unstable();
        assert_eq!(found.len(), 2, "the shell and its sleep: {found:?}");
        for below in proc::descendants(&words) {
            super::super::kill(below);
        }
        child.kill().unwrap();
        while lives(pid) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!lives(pid));
    }
}
