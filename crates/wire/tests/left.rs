//! S55: what left a server's tree on purpose is the user's and lives on; all else is ended. Each process of the fixture says whose it
//! is, so the judge does not go by the product's rule.

#![allow(clippy::disallowed_methods, reason = "a test measures with a real clock")]
#![cfg(all(target_os = "linux", not(linetender_portable)))]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linetender_core::{ClosePolicy, Limits, Tree};
use linetender_wire::Item;
use linetender_wire::seam::{Event, Listener, Loss, Outgoing};
use linetender_wire::stdio::{Child, Env, Launch, Program, Reaper};
use rustix::process::{Pid, Signal};
use tokio::sync::mpsc;

/// Longer than anything here may take, on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Those that are started while the server lives, and how many processes each of them is.
const ALL: [(&str, usize); 7] = [
    ("daemon", 1),
    ("multiplexer", 2),
    ("nohup_setsid", 1),
    ("nohup", 1),
    ("holds_stdout", 1),
    ("session_child", 1),
    ("orphan", 1),
];

struct Deaf;

impl Listener for Deaf {
    fn hear(&self, _: Item) {}

    fn heard(&self) {}

    fn lost(&self, _: u64, _: Loss) {}

    fn gap(&self) {}
}

/// Whose a process is.
type Member = (String, Pid);

struct Server {
    child: Child,
    events: mpsc::Receiver<Event>,
    ledger: PathBuf,
    /// What was told of its processes.
    ended: Vec<i32>,
    spared: Vec<i32>,
}

impl Server {
    async fn start(name: &str, tree: Tree, what: &[&str], members: usize) -> Self {
        let ledger = std::env::temp_dir().join(format!("linetender-left-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&ledger);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/left/server.py");
        let argv = ["python3", script, ledger.to_str().unwrap()].into_iter().chain(what.iter().copied());
        let mut close = ClosePolicy::default();
        (close.stdin, close.term) = (Duration::from_millis(500), Duration::from_millis(500));
        (close.crash, close.tree) = (Duration::from_secs(2), tree);
        close.kill = Duration::from_millis(200);
        let launch = Launch {
            program: Program { argv: argv.map(Into::into).collect(), dir: None, env: Env::Ours },
            container: None,
            reaper: Reaper::Binary(PathBuf::from(env!("CARGO_BIN_EXE_linetender-reaper"))),
            lifeline: None,
            start: None,
            close,
            sizes: Limits::default(),
        };
        let (tell, events) = mpsc::channel(64);
        let child = Child::launch(&launch, Arc::new(Deaf), tell).unwrap();
        let server = Self { child, events, ledger, ended: Vec::new(), spared: Vec::new() };
        let began = Instant::now();
        while server.members().len() < members {
            assert!(began.elapsed() < PATIENCE, "{:?}", server.members());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        server
    }

    fn members(&self) -> Vec<Member> {
        let ledger = std::fs::read_to_string(&self.ledger).unwrap_or_default();
        let whole = ledger.lines().filter_map(|line| line.split_once(' '));
        whole.map(|(whose, pid)| (whose.to_owned(), Pid::from_raw(pid.parse().unwrap()).unwrap())).collect()
    }

    /// It answers something, and the reaper has looked since.
    async fn answers(&self) {
        tokio::time::sleep(Duration::from_millis(600)).await;
        self.child.outbox().send(Outgoing::text("\"a\"".to_owned().into(), None)).unwrap();
        tokio::time::sleep(Duration::from_millis(600)).await;
    }

    async fn pid(&self) -> Pid {
        while self.child.pid().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Pid::from_raw(self.child.pid().unwrap()).unwrap()
    }

    fn close(&self) {
        self.child.outbox().seal();
        self.child.close();
    }

    /// Waits for its end, and judges.
    async fn judged(mut self, spares: bool) {
        let all = async {
            loop {
                match self.events.recv().await.expect("a keeper") {
                    Event::Ended { pid, name } => {
                        assert!(name.starts_with("python"), "{name}");
                        self.ended.push(pid);
                    }
                    Event::Spared(left) => self.spared.push(left.pid),
                    Event::Gone => return,
                    _ => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, all).await.expect("an end in time");
        let members = self.members();
        // The user's go before anything is asserted.
        let lived: Vec<_> = members.iter().map(|(_, pid)| lives(*pid)).collect();
        for (_, pid) in members.iter().filter(|(_, pid)| lives(*pid)) {
            let _ = rustix::process::kill_process(*pid, Signal::KILL);
        }
        let _ = std::fs::remove_file(&self.ledger);
        for ((whose, pid), lived) in members.iter().zip(lived) {
            let is_spared = spares && whose == "user";
            assert_eq!(lived, is_spared, "{whose} {pid:?} of {members:?}");
            let number = pid.as_raw_nonzero().get();
            assert!(!is_spared || !self.ended.contains(&number), "{:?}", self.ended);
            assert!(is_spared || !self.spared.contains(&number), "{:?}", self.spared);
        }
        assert_eq!(self.spared.is_empty(), !spares, "what is spared is named");
    }
}

fn lives(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.rsplit(") ").next().unwrap().starts_with('Z'))
}

async fn all_of_them(name: &str, tree: Tree) -> Server {
    let (what, members): (Vec<_>, Vec<_>) = ALL.into_iter().unzip();
    let server = Server::start(name, tree, &what, members.iter().sum()).await;
    server.answers().await;
    server
}

#[tokio::test]
async fn s55_what_left_on_purpose_lives_on_when_the_server_is_closed() {
    let server = all_of_them("closed", Tree::Server).await;
    server.close();
    server.judged(true).await;
}

#[tokio::test]
async fn s55_and_when_it_crashes() {
    let server = all_of_them("crashed", Tree::Server).await;
    rustix::process::kill_process(server.pid().await, Signal::KILL).unwrap();
    server.child.kill();
    server.judged(true).await;
}

#[tokio::test]
async fn s55_and_when_it_is_killed() {
    let server = all_of_them("killed", Tree::Server).await;
    server.child.kill();
    server.judged(true).await;
}

#[tokio::test]
async fn s55_everything_goes_where_everything_is_the_servers() {
    let server = all_of_them("all", Tree::All).await;
    server.close();
    server.judged(false).await;
}

/// Before stdin is closed it is looked at once more, so what a tool started a moment ago counts too.
#[tokio::test]
async fn s55_what_left_right_before_the_end_lives_on() {
    for round in 0..5 {
        let server = Server::start(&format!("now-{round}"), Tree::Server, &["daemon"], 1).await;
        server.close();
        server.judged(true).await;
    }
}

/// A tool answers before what it started has left, and the server dies before the reaper's own interval of 2 s is over.
#[tokio::test]
async fn s55_what_leaves_a_moment_after_the_answer_lives_on_after_a_crash() {
    for round in 0..2 {
        let server = Server::start(&format!("lingers-{round}"), Tree::Server, &["lingering"], 0).await;
        let pid = server.pid().await;
        tokio::time::sleep(Duration::from_millis(2200)).await;
        server.child.outbox().send(Outgoing::text("\"a\"".to_owned().into(), None)).unwrap();
        let began = Instant::now();
        while server.members().is_empty() {
            assert!(began.elapsed() < PATIENCE, "it does not leave");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Longer than the longest time between two looks.
        tokio::time::sleep(Duration::from_secs(1)).await;
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
        server.child.kill();
        server.judged(true).await;
    }
}

/// A policy may want to hear of a stuck tree before the reaper's first report. It says nothing of the reaper.
#[tokio::test]
async fn s06_a_reaper_that_waits_for_what_is_left_is_not_killed_for_it() {
    let server = Server::start("stubborn", Tree::All, &["stubborn"], 1).await;
    let (_, stubborn) = server.members().remove(0);
    rustix::process::kill_process(server.pid().await, Signal::KILL).unwrap();
    server.child.kill();
    server.judged(false).await;
    assert!(!lives(stubborn));
}

/// What a server starts while it ends was never seen to leave.
#[tokio::test]
async fn s55_what_becomes_known_after_the_end_is_the_servers() {
    let server = Server::start("late", Tree::Server, &["daemon", "late"], 1).await;
    server.answers().await;
    server.close();
    server.judged(true).await;
}

/// A child is at work when the server crashes: it lets go of its lock, and nothing is started before that.
#[tokio::test]
async fn s06_a_child_at_work_may_clean_up_after_a_crash() {
    let mut server = Server::start("worker", Tree::Server, &["worker"], 1).await;
    let lock = PathBuf::from(format!("{}.lock", server.ledger.display()));
    assert!(lock.exists());
    let (_, worker) = server.members().remove(0);
    rustix::process::kill_process(server.pid().await, Signal::KILL).unwrap();
    server.child.kill();
    let mut named = Vec::new();
    loop {
        match tokio::time::timeout(PATIENCE, server.events.recv()).await.unwrap().unwrap() {
            Event::Ended { pid, .. } => named.push(pid),
            Event::Gone => break,
            _ => {}
        }
    }
    let _ = std::fs::remove_file(&server.ledger);
    assert!(!lock.exists(), "it was killed at its work");
    assert!(!lives(worker));
    assert_eq!(named, [worker.as_raw_nonzero().get()]);
}
