//! The reaper by itself, as every system that has one runs it: its records, and what is left when it or its parent goes.
//!
//! Nothing here needs `/proc` or a command that only one system has. On a Mac this is the test to run:
//! `cargo test -p linetender-wire --no-default-features --test reaper`.

#![cfg(all(any(target_os = "linux", target_os = "macos"), not(linetender_portable)))]
#![allow(clippy::disallowed_methods, reason = "a test measures with a real clock")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt as _, FdMapping};
use linetender_wire::Exit;
use linetender_wire::stdio::control::{KILL, Record, TERM, VERSION};
use linetender_wire::stdio::reaper::SUBCOMMAND;
use rustix::process::{Pid, Signal};

/// Longer than anything here may take, on any machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that starts a child in its group, one in a group of its own, and one that its parent leaves behind; it names them.
/// The one between is gone at once: on macOS what it leaves behind, in a group of its own, is found in the reaper's session.
const FAMILY: &str =
    "sleep 600 & echo $!; set -m; sleep 600 & echo $!; (sleep 600 & echo $!); echo $$; exec sleep 600";

/// How many that are.
const MEMBERS: usize = 4;

/// A reaper below a shell that stands for the program that started it.
struct Started {
    parent: Child,
    control: UnixStream,
    says: BufReader<std::process::ChildStdout>,
}

fn start(script: &str) -> Started {
    let (control, theirs) = UnixStream::pair().unwrap();
    control.set_read_timeout(Some(PATIENCE)).unwrap();
    let reaper = env!("CARGO_BIN_EXE_linetender-reaper");
    let mut command = Command::new("/bin/sh");
    // The shell stays: something follows.
    command
        .arg("-c")
        .arg("\"$0\" \"$1\" $$ - /bin/bash -c \"$2\"; exit 0")
        .args([reaper, SUBCOMMAND, script]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.fd_mappings(vec![FdMapping { parent_fd: theirs.into(), child_fd: 3 }]).unwrap();
    let mut parent = command.spawn().unwrap();
    let says = BufReader::new(parent.stdout.take().unwrap());
    Started { parent, control, says }
}

impl Started {
    fn record(&mut self) -> Record {
        let mut bytes = [0; Record::SIZE];
        self.control.read_exact(&mut bytes).unwrap();
        Record::decode(bytes).unwrap()
    }

    /// The records until nothing of the tree is left.
    fn records(&mut self) -> Vec<Record> {
        let mut records = vec![self.record()];
        while records.last() != Some(&Record::Clear) {
            records.push(self.record());
        }
        records
    }

    fn members(&mut self) -> Vec<Pid> {
        let lines = self.says.by_ref().lines().take(MEMBERS);
        lines.map(|line| Pid::from_raw(line.unwrap().trim().parse().unwrap()).unwrap()).collect()
    }

    fn kill_parent(&mut self) {
        self.parent.kill().unwrap();
        self.parent.wait().unwrap();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.parent.kill();
        let _ = self.parent.wait();
    }
}

/// Waits until none of them is there.
fn all_die(members: &[Pid]) {
    let began = Instant::now();
    for member in members {
        while rustix::process::test_kill_process(*member).is_ok() {
            assert!(began.elapsed() < PATIENCE, "{member:?} of {members:?} lives");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn all_live(members: &[Pid]) {
    assert_eq!(members.len(), MEMBERS);
    for member in members {
        assert_eq!(rustix::process::test_kill_process(*member), Ok(()), "{member:?} of {members:?}");
    }
    let group = |member: usize| rustix::process::getpgid(Some(members[member])).unwrap();
    assert_eq!(group(0), group(3));
    assert!(group(1) != group(3) && group(2) != group(3), "two have left the group");
}

#[test]
fn a_status_is_told_once_and_before_the_end() {
    for _ in 0..20 {
        let mut reaper = start("exit 3");
        let records = reaper.records();
        assert!(matches!(records[1], Record::Spawned(_)), "{records:?}");
        assert_eq!(records[0], Record::Ready(VERSION));
        assert_eq!(records[2..], [Record::Exited(Exit::Status(3)), Record::Clear]);
    }
}

#[test]
fn a_program_that_is_not_there_is_told() {
    let mut reaper = start("exec /nowhere/to/be/found");
    assert!(reaper.records().contains(&Record::Exited(Exit::Status(127))));
}

#[test]
fn when_the_server_goes_its_whole_tree_goes() {
    let mut reaper = start(FAMILY);
    let members = reaper.members();
    all_live(&members);
    rustix::process::kill_process(members[3], Signal::KILL).unwrap();
    assert!(reaper.records().contains(&Record::Exited(Exit::Signal(9))));
    all_die(&members);
}

#[test]
fn an_order_to_kill_kills_the_whole_tree() {
    let mut reaper = start(FAMILY);
    let members = reaper.members();
    all_live(&members);
    reaper.control.write_all(&[KILL]).unwrap();
    assert!(reaper.records().contains(&Record::Exited(Exit::Signal(9))));
    all_die(&members);
}

#[test]
fn a_server_that_is_asked_to_go_may_do_so_by_itself() {
    let mut reaper = start("trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done");
    let mut line = String::new();
    reaper.says.read_line(&mut line).unwrap();
    reaper.control.write_all(&[TERM]).unwrap();
    assert!(reaper.records().contains(&Record::Exited(Exit::Status(7))));
}

/// The control socket stays open here: the parent's death alone is what is noticed.
#[test]
fn when_its_parent_is_killed_nothing_of_the_tree_is_left() {
    let mut started: Vec<_> = (0..10).map(|_| start(FAMILY)).collect();
    let members: Vec<_> = started.iter_mut().map(Started::members).collect();
    for members in &members {
        all_live(members);
    }
    started.iter_mut().for_each(Started::kill_parent);
    for members in &members {
        all_die(members);
    }
    for reaper in &mut started {
        assert!(reaper.records().contains(&Record::Exited(Exit::Signal(9))));
    }
}

/// The parent stays alive here: the end of the socket alone is what is noticed.
#[test]
fn when_nobody_listens_nothing_of_the_tree_is_left() {
    let mut reaper = start(FAMILY);
    let members = reaper.members();
    all_live(&members);
    reaper.control.shutdown(std::net::Shutdown::Both).unwrap();
    all_die(&members);
}

/// It forks until it is stopped, in groups of its own.
#[test]
fn one_that_starts_others_without_end_is_killed_all_the_same() {
    let mut reaper = start("set -m; echo up; while :; do sleep 600 & sleep 0.002; done");
    let mut line = String::new();
    reaper.says.read_line(&mut line).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    reaper.control.write_all(&[KILL]).unwrap();
    assert_eq!(reaper.records().last(), Some(&Record::Clear));
    // Whoever still had the server's output would keep this from ending.
    let mut rest = Vec::new();
    reaper.says.read_to_end(&mut rest).unwrap();
}
