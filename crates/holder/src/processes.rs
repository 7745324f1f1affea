//! The processes of a local server, and how much memory they have.

use std::collections::{HashSet, VecDeque};
use std::fs;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most processes of one server that are looked at.
const MOST: usize = 256;

/// The most of a process's name that is told.
const NAME: usize = 64;

/// The processes of one server connection.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Tree {
    /// Server name.
    pub server: String,
    /// Number of the connection (generation).
    pub generation: u64,
    /// Resident memory of all of them, in bytes.
    pub memory_bytes: u64,
    /// The server itself first, then its descendants.
    pub processes: Vec<Process>,
    /// Whether there are more than are listed.
    #[serde(default)]
    pub more: bool,
}

/// A process.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// The number of the process that started it.
    pub parent: i32,
    /// Name of its program, as the system has it.
    pub name: String,
    /// Resident memory in bytes.
    pub memory_bytes: u64,
}

/// Resident memory of a process and of everything below it, in bytes.
pub fn memory(root: i32) -> u64 {
    tree((String::new(), 0, root)).memory_bytes
}

/// The processes of a server whose first one this is. What ends meanwhile is left out; where there is no `/proc`, everything.
// proc_pid_task_children(5), proc_pid_statm(5), proc_pid_stat(5).
pub(crate) fn tree((server, generation, root): (String, u64, i32)) -> Tree {
    let page = page_size();
    let (mut processes, mut seen) = (Vec::new(), HashSet::new());
    let mut queue = VecDeque::from([(root, 0)]);
    while let Some((pid, parent)) = queue.pop_front() {
        if processes.len() >= MOST || !seen.insert(pid) {
            continue;
        }
        let Some(name) = fs::read_to_string(format!("/proc/{pid}/comm")).ok() else { continue };
        let resident = fs::read_to_string(format!("/proc/{pid}/statm")).ok();
        let pages = resident.and_then(|statm| statm.split(' ').nth(1)?.parse::<u64>().ok()).unwrap_or(0);
        let name = name.trim_end().chars().take(NAME).collect();
        processes.push(Process { pid, parent, name, memory_bytes: pages * page });
        queue.extend(children(pid).into_iter().map(|child| (child, pid)));
    }
    let more = processes.len() >= MOST && !queue.is_empty();
    let memory_bytes = processes.iter().map(|process| process.memory_bytes).sum();
    Tree { server, generation, memory_bytes, processes, more }
}

#[cfg(unix)]
fn page_size() -> u64 {
    u64::try_from(rustix::param::page_size()).unwrap_or(4096)
}

/// Without `/proc` there is nothing to be multiplied.
#[cfg(not(unix))]
const fn page_size() -> u64 {
    0
}

/// The children of a process, of whichever thread.
fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists =
        threads.take(MOST).filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .take(MOST)
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

    use std::process::{Command, Stdio};

    use super::tree;

    #[test]
    fn a_shell_and_its_child_are_a_tree_with_memory() {
        let mut shell =
            Command::new("sh").args(["-c", "sleep 60 & echo; wait"]).stdout(Stdio::piped()).spawn().unwrap();
        // It writes once the child is there.
        std::io::Read::read(shell.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let tree = tree(("s".into(), 1, i32::try_from(shell.id()).unwrap()));
        for process in tree.processes.iter().rev() {
            let _ = Command::new("kill").arg(process.pid.to_string()).status();
        }
        shell.wait().unwrap();
        assert_eq!(tree.processes.len(), 2, "{tree:?}");
        assert_eq!(tree.processes[1].parent, tree.processes[0].pid);
        assert!(tree.memory_bytes > 100_000 && !tree.more, "{tree:?}");
    }
}
