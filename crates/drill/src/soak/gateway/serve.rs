//! The gateway under test, as a process: `linetender serve`, and what can be seen of it from outside.

#![allow(clippy::disallowed_methods, reason = "a drill adopts no orphans")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use linetender_badserver::process::{self, descendants, lives};
use rustix::process::{Pid, Signal, kill_process};

use super::house::{House, MARK};

/// How long it may take to listen.
const START: Duration = Duration::from_secs(20);

/// How long it may take to end: its own drain, its servers' ends, and some.
const END: Duration = Duration::from_secs(30);

/// How often is looked.
const LOOK: Duration = Duration::from_millis(20);

/// A gateway that runs. Dropped, it is killed.
pub(super) struct Serve {
    child: Child,
    pub(super) address: SocketAddr,
    pub(super) log: PathBuf,
    mark: String,
}

/// What it has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Has {
    pub(super) processes: usize,
    pub(super) descriptors: usize,
    pub(super) sockets: usize,
    pub(super) kib: usize,
}

impl Serve {
    pub(super) async fn start(linetender: &Path, house: &House) -> Result<Self, String> {
        let text = |error: std::io::Error| format!("{}: {error}", linetender.display());
        let log = house.folder.join("log");
        let config = house.config(0).map_err(text)?;
        let mut child = Command::new(linetender)
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(config)
            .arg("--log")
            .arg(&log)
            .env("XDG_STATE_HOME", &house.folder)
            .env("XDG_RUNTIME_DIR", &house.folder)
            .stdin(Stdio::null())
            .spawn()
            .map_err(text)?;
        let listens = async {
            loop {
                if let Some(address) = address(&std::fs::read_to_string(&log).unwrap_or_default()) {
                    return address;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let mark = house.mark.clone();
        if let Ok(address) = tokio::time::timeout(START, listens).await {
            return Ok(Self { child, address, log, mark });
        }
        let _ = child.kill().and_then(|()| child.wait());
        Err("the gateway does not listen".to_owned())
    }

    /// Where it is administered.
    pub(super) fn admin(&self) -> Option<SocketAddr> {
        let log = std::fs::read_to_string(&self.log).ok()?;
        let (_, after) = log.lines().find(|line| line.contains("admin address"))?.split_once("http://")?;
        after.split(['/', ' ', '"']).next()?.parse().ok()
    }

    /// Has it read its config file again.
    pub(super) fn reload(&self) {
        if let Some(pid) = Pid::from_raw(self.pid()) {
            let _ = kill_process(pid, Signal::HUP);
        }
    }

    /// What each process of a server finds in its environment and in its arguments.
    pub(super) fn told(&self) -> Vec<String> {
        let read = |pid: i32, what: &str| std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
        let of = |pid| [read(pid, "environ"), read(pid, "cmdline")].concat();
        marked(&self.mark).into_iter().map(|pid| String::from_utf8_lossy(&of(pid)).into_owned()).collect()
    }

    /// Its number.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(0)
    }

    /// A look at it, from outside.
    pub(super) fn has(&self) -> Has {
        let pid = self.pid();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = resident.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
        let links: Vec<_> = std::fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .collect();
        let sockets = links.iter().filter(|link| link.to_string_lossy().starts_with("socket:")).count();
        Has {
            processes: descendants(&pid.to_string()).len(),
            descriptors: process::descriptors(&pid.to_string()),
            sockets,
            kib,
        }
    }

    /// The trees of each server that live now, by the process at their top, which is a reaper.
    pub(super) fn trees(&self) -> BTreeMap<String, Vec<i32>> {
        let mut trees: BTreeMap<String, Vec<i32>> = BTreeMap::new();
        for child in children(self.pid()) {
            // A reaper shows its environment to root alone; its server has the same.
            let below = || children(child).into_iter().find_map(|below| server_of(below, &self.mark));
            let server = server_of(child, &self.mark).or_else(below);
            if let Some(server) = server.filter(|_| lives(child)) {
                trees.entry(server).or_default().push(child);
            }
        }
        trees
    }

    /// The processes of a server below its reaper: the first is the one that was started.
    pub(super) fn processes_of(&self, server: &str) -> Vec<i32> {
        let roots = self.trees().remove(server).unwrap_or_default();
        roots
            .iter()
            .flat_map(|root| descendants(&root.to_string()))
            .filter(|pid| self.is_of(*pid, server))
            .collect()
    }

    /// Whether this process still is one of that server: numbers of processes are used again.
    pub(super) fn is_of(&self, pid: i32, server: &str) -> bool {
        lives(pid) && server_of(pid, &self.mark).is_some_and(|name| name == server)
    }

    /// Ends it as a service manager does.
    pub(super) async fn stop(mut self) -> Result<(), String> {
        if let Some(pid) = Pid::from_raw(self.pid()) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let ended = async {
            loop {
                if let Ok(Some(status)) = self.child.try_wait() {
                    return status;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let status =
            tokio::time::timeout(END, ended).await.map_err(|_| "the gateway does not end".to_owned())?;
        if !ExitStatus::success(&status) {
            return Err(format!("the gateway ended with {status}"));
        }
        let left = marked(&self.mark);
        if left.is_empty() { Ok(()) } else { Err(format!("{} processes outlived the gateway", left.len())) }
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address(log: &str) -> Option<SocketAddr> {
    log.split("http://").skip(1).find_map(|after| after.split("/mcp").next()?.parse().ok())
}

fn children(of: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let listed = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    listed
        .flat_map(|text| text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The server that a process belongs to, by what it finds in its environment.
fn server_of(pid: i32, mark: &str) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let wanted = format!("{MARK}={mark}/");
    let found =
        environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(wanted.as_bytes()))?;
    Some(String::from_utf8_lossy(found).into_owned())
}

/// Everything that a run has started and that still lives, whoever its parent is.
fn marked(mark: &str) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter(|pid| server_of(*pid, mark).is_some() && lives(*pid)).collect()
}
