//! The same logic over this machine's own processes. On Linux too an orphan goes to the first process unless somebody adopts it, so
//! what is stopped, forked and killed here is real; only what is told of forks and exits is left out.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};

use crate::seen::Exit;
use crate::stdio::control::{KILL, Record};
use crate::stdio::unix::asked::{exit_of, nap_for};
use crate::stdio::unix::descent::reaping::Done;
use crate::stdio::unix::descent::{
    Happened, Kernel, Lineage, Look, Process, Processes, Reaping, Start, Waited,
};

struct Real {
    server: Pid,
    /// How many moments go by before the order comes.
    moments: u32,
    told: Vec<Record>,
}

fn pids(text: &str) -> impl Iterator<Item = Pid> {
    text.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
}

/// The fields behind the name: state, parent, group, …
fn stat(pid: Pid) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    Some(stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

impl Processes for Real {
    fn children(&mut self, of: Pid) -> Vec<Pid> {
        let tasks =
            std::fs::read_dir(format!("/proc/{}/task", of.as_raw_nonzero())).into_iter().flatten().flatten();
        let listed =
            tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
        listed.flat_map(|children| pids(&children).collect::<Vec<_>>()).collect()
    }

    fn group(&mut self, group: Pid) -> Vec<Pid> {
        let group = group.as_raw_nonzero().to_string();
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let all = all.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        all.filter(|pid| stat(*pid).is_some_and(|stat| stat[2] == group)).collect()
    }

    fn look(&mut self, pid: Pid) -> Look {
        match stat(pid) {
            Some(stat) if !matches!(&*stat[0], "Z" | "X") => Look::Lives {
                start: Start { seconds: stat[19].parse().unwrap(), micros: 0 },
                parent: pids(&stat[1]).next(),
                group: pids(&stat[2]).next(),
            },
            _ => Look::Gone,
        }
    }

    fn lineage(&mut self, _: Pid) -> Option<Lineage> {
        None
    }

    fn watch(&mut self, pid: Pid) -> bool {
        self.look(pid) != Look::Gone
    }

    fn signal(&mut self, to: Process, signal: Signal) {
        if matches!(self.look(to.pid), Look::Lives { start, .. } if start == to.start) {
            let _ = rustix::process::kill_process(to.pid, signal);
        }
    }

    fn signal_group(&mut self, group: Pid, signal: Signal) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

impl Kernel for Real {
    /// Here the session is that of the test, and of everything else in it.
    fn session(&mut self) -> Vec<Process> {
        Vec::new()
    }

    fn orphans(&mut self) -> Vec<Pid> {
        Vec::new()
    }

    fn next(&mut self, _: Duration) -> Happened {
        nap_for(Duration::from_millis(20));
        match self.moments.checked_sub(1) {
            Some(left) => self.moments = left,
            None => return Happened::Order(KILL),
        }
        Happened::Nothing
    }

    fn nap(&mut self, time: Duration) {
        nap_for(time);
    }

    fn parent_lives(&mut self) -> bool {
        true
    }

    fn wait_for_server(&mut self) -> Waited {
        match rustix::process::waitpid(Some(self.server), WaitOptions::NOHANG) {
            Ok(Some((_, status))) => Waited::Status(exit_of(status)),
            Ok(None) => Waited::NotYet,
            Err(_) => Waited::NoChild,
        }
    }

    fn tell(&mut self, record: Record) -> bool {
        self.told.push(record);
        true
    }
}

/// A shell that leads a group (one that has job control without a terminal); its output is read to its end, which comes when nobody of its tree is left.
#[expect(clippy::disallowed_methods, reason = "a test adopts no orphans")]
fn shell(script: &str) -> (Child, Pid) {
    let mut command = Command::new("/bin/bash");
    command
        .arg("-c")
        .arg(script)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    let child = command.spawn().unwrap();
    let pid = Pid::from_child(&child);
    (child, pid)
}

fn reap(script: &str, moments: u32) -> Vec<Record> {
    let (mut child, server) = shell(script);
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(output.next().unwrap().unwrap(), "up");
    let mut reaping = Reaping::of(server, Real { server, moments, told: Vec::new() });
    assert_eq!(reaping.run(), Done::Clear);
    // Nothing of the tree holds the pipe any more: else this would wait for it.
    let (said, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || said.send(output.count()));
    heard.recv_timeout(Duration::from_secs(20)).expect("something of the tree is left");
    std::mem::take(&mut reaping.kernel.told)
}

#[test]
fn a_real_tree_is_killed_whatever_groups_it_is_in() {
    let killed = [Record::Exited(Exit::Signal(9)), Record::Clear];
    let script =
        "set -m; sleep 600 & (sleep 600 & sleep 600) & (sleep 600 & sleep 1) & echo up; exec sleep 600";
    // One loses its parent meanwhile, long after it was looked at first.
    for _ in 0..2 {
        assert_eq!(reap(script, 70), killed);
    }
}

#[test]
fn a_real_tree_that_grows_all_the_time_is_killed() {
    let killed = [Record::Exited(Exit::Signal(9)), Record::Clear];
    let script = "set -m; echo up; while :; do (sleep 600 & sleep 600) & sleep 0.005; done";
    for _ in 0..5 {
        assert_eq!(reap(script, 5), killed);
    }
}

#[test]
fn what_a_real_server_leaves_behind_goes_with_it() {
    let records = reap("set -m; sleep 600 & echo up; sleep 0.2; exit 3", 1000);
    assert_eq!(records, [Record::Exited(Exit::Status(3)), Record::Clear]);
}
