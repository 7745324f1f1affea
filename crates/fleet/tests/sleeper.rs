//! An owner that sleeps through its lease, and wakes: real processes, a real NATS, a book of what ran.
//!
//! `SLEEPS=100 cargo nextest run -p linetender-fleet --all-features --run-ignored ignored-only sleeps`

#![expect(clippy::disallowed_methods, reason = "a test owns its processes, and measures with a real clock")]

mod cluster;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cluster::Cluster;
use linetender_badserver::{AS_SERVER, Book};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

/// A lease and its patience are 4.5 s; on a busy machine, a node that has just woken has to find its NATS again first.
const TAKEN_OVER: Duration = Duration::from_secs(30);

struct Owner(Child);

impl Owner {
    fn start(nats: &str, number: usize, book: &Book) -> Self {
        // Beside the folder of tests.
        let test = std::env::current_exe().unwrap();
        let owner: PathBuf = test.parent().unwrap().with_file_name("examples").join("owner");
        let mut command = Command::new(owner);
        command.arg(nats).arg(number.to_string()).arg(book.path());
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Who ran what, in the order in which it was written: node and process.
fn ran(book: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(book).unwrap_or_default();
    let runs = text.lines().filter_map(|line| line.strip_prefix("run ")?.rsplit_once(' '));
    runs.map(|(nonce, pid)| (nonce.split('-').next().unwrap_or_default().to_owned(), pid.to_owned()))
        .collect()
}

/// The servers that live: those of one line, on all nodes.
fn servers(book: &Path) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let words = processes.filter_map(|process| {
        let text = std::fs::read(process.path().join("cmdline")).ok()?;
        Some((
            process.file_name().to_string_lossy().into_owned(),
            String::from_utf8_lossy(&text).into_owned(),
        ))
    });
    let is_server = |words: &str| words.split('\0').nth(1) == Some(AS_SERVER);
    words
        .filter(|(_, words)| is_server(words) && words.contains(&*book.to_string_lossy()))
        .map(|(pid, _)| pid)
        .collect()
}

async fn another_runs(book: &Path, than: &str) -> String {
    let until = Instant::now() + TAKEN_OVER;
    loop {
        if let Some((node, _)) = ran(book).last().filter(|(node, _)| node != than) {
            return node.clone();
        }
        assert!(Instant::now() < until, "nobody took over from {than}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tools/real-nats"]
async fn an_owner_that_sleeps_through_its_lease_runs_nothing_more() {
    let sleeps = std::env::var("SLEEPS").ok().and_then(|sleeps| sleeps.parse().ok()).unwrap_or(2);
    let cluster = Cluster::start(1).await;
    let book = Book::at(cluster.folder().join("book"));
    let owners: Vec<_> = (0..2).map(|number| Owner::start(&cluster.addresses()[0], number, &book)).collect();
    let mut owner = another_runs(book.path(), "nobody").await;
    let mut longest = Duration::ZERO;
    for sleep in 0..sleeps {
        let sleeper = &owners[owner.parse::<usize>().unwrap()];
        sleeper.signal(Signal::STOP);
        let stopped = Instant::now();
        let next = another_runs(book.path(), &owner).await;
        longest = longest.max(stopped.elapsed());
        let alive = servers(book.path());
        assert_eq!(alive.len(), 1, "of two nodes: {alive:?}");
        let before = ran(book.path()).len();
        sleeper.signal(Signal::CONT);
        // The other goes on, and the one that woke finds out.
        let until = Instant::now() + TAKEN_OVER;
        while ran(book.path()).len() < before + 200 {
            assert!(Instant::now() < until, "nobody runs anything");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Every process has one stretch of the book: nobody ran anything after another had begun.
        let mut stretches: Vec<_> = ran(book.path()).into_iter().map(|(_, pid)| pid).collect();
        stretches.dedup();
        let mut once = stretches.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), stretches.len(), "after {sleep} sleeps: {stretches:?}");
        owner = next;
    }
    println!("{sleeps} sleeps, {} calls, taken over after {longest:?} at the latest", ran(book.path()).len());
}
