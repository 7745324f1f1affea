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
#[cfg(target_os = "linux")]
use linetender_wire::stdio::control::{CLOSE, INT};
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
    start_with(script, None)
}

/// The same, and how it is to be ended.
fn start_with(script: &str, ends: Option<&str>) -> Started {
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
    ends.map(|ends| command.env("LINETENDER_REAPER_ENDS", ends));
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

    /// The next line that the server writes.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        line
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

/// A folder of this test's own.
#[cfg(target_os = "linux")]
fn tempdir(name: &str) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("linetender-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
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
        // On Linux it is asked first, and given its time.
        let asked = |record: &Record| matches!(record, Record::Exited(Exit::Signal(9 | 15)));
        assert!(reaper.records().iter().any(asked));
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

/// Saves its work for so many seconds when it is asked to go, and when its stdin is closed.
#[cfg(target_os = "linux")]
fn saving(seconds: &str, file: &std::path::Path) -> String {
    format!(
        "save() {{ trap '' INT TERM; sleep {seconds}; echo \"$1\" >> '{0}'; exit 0; }}; trap 'save INT' INT; \
         trap 'save TERM' TERM; echo up; while :; do sleep 0.02; done",
        file.display()
    )
}

/// Agents send SIGINT, SIGTERM and SIGKILL within half a second.
#[cfg(target_os = "linux")]
#[test]
fn s57_a_save_is_finished_also_if_everybody_else_is_killed() {
    let dir = tempdir("saves");
    for (seconds, orders) in [("0.8", &[INT, TERM][..]), ("3.5", &[INT, TERM]), ("1.5", &[TERM])] {
        let file = dir.join(seconds);
        let mut reaper = start(&saving(seconds, &file));
        reaper.line();
        for order in orders {
            reaper.control.write_all(&[*order]).unwrap();
            std::thread::sleep(Duration::from_millis(100));
        }
        reaper.kill_parent();
        let records = reaper.records();
        assert!(records.contains(&Record::Closing), "{records:?}");
        assert!(records.contains(&Record::Exited(Exit::Status(0))), "{records:?}");
        let saved = std::fs::read_to_string(&file).unwrap();
        assert_eq!(saved.trim(), if orders[0] == INT { "INT" } else { "TERM" });
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn s57_one_that_does_not_go_is_killed_at_the_end_of_its_time() {
    for order in [INT, CLOSE] {
        let mut reaper = start("trap '' INT TERM; echo up; while :; do sleep 0.02; done");
        reaper.line();
        let began = Instant::now();
        reaper.control.write_all(&[order]).unwrap();
        assert!(reaper.records().contains(&Record::Exited(Exit::Signal(9))));
        let took = began.elapsed();
        assert!((Duration::from_secs(4)..Duration::from_secs(6)).contains(&took), "{took:?}");
    }
}

/// A server whose agent was answered from the cache, and left.
#[cfg(target_os = "linux")]
#[test]
fn s61_a_start_is_finished_whose_parent_is_killed() {
    let dir = tempdir("starts");
    // It may go on until three seconds after its beginning, or not at all.
    for (ends, is_finished) in [("all 100 100 100 3000", true), ("all 100 100 100 0", false)] {
        let file = dir.join(if is_finished { "finished" } else { "ended" });
        let script = format!("echo up; sleep 1; echo done > '{}'; exec sleep 600", file.display());
        let mut reaper = start_with(&script, Some(ends));
        reaper.line();
        reaper.kill_parent();
        assert!(reaper.records().contains(&Record::Exited(Exit::Signal(15))));
        assert_eq!(file.exists(), is_finished);
    }
    std::fs::remove_dir_all(dir).unwrap();
}
