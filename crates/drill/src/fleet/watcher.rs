//! Which server has processes on which node, from outside: a line never has trees on two nodes at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linetender_badserver::AS_SERVER;
use linetender_badserver::process::lives;
use tokio::task::JoinSet;

use super::house::MARK;
use super::net::{NODES, Place, node_name};
use super::notes::Notes;

/// How often is looked: two trees that overlap for longer are seen here, and shorter ones in the book if both wrote in it.
const LOOK: Duration = Duration::from_millis(20);

/// A look that comes so late is a sign that the machine is too busy to be measured on.
const LATE: Duration = Duration::from_millis(100);

/// A server's process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Tree {
    pub(super) pid: i32,
    pub(super) node: usize,
}

/// What was seen.
#[derive(Default)]
pub(super) struct Seen {
    /// What lives now, by server.
    pub(super) trees: BTreeMap<String, Vec<Tree>>,
    pub(super) looks: u64,
    /// Servers that were alive on two nodes, and in how many looks.
    pub(super) twice: BTreeMap<String, u64>,
    /// When a look came late, and how late: this machine stood still, or had others to serve.
    pub(super) stalls: Vec<(Duration, Duration)>,
}

impl Seen {
    /// How long the machine stood still between two moments.
    pub(super) fn stalled(&self, from: Duration, to: Duration) -> Duration {
        let within = |(at, late): &(Duration, Duration)| {
            to.min(*at).saturating_sub(from.max(at.saturating_sub(*late)))
        };
        self.stalls.iter().map(within).sum()
    }
}

/// Looks until it is dropped.
pub(super) struct Watcher {
    seen: Arc<Mutex<Seen>>,
    _task: JoinSet<()>,
}

impl Watcher {
    pub(super) fn start(notes: Arc<Notes>) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut task = JoinSet::new();
        let told = Arc::clone(&seen);
        task.spawn(async move {
            let (mut looker, mut last) = (Looker::new(), notes.now());
            loop {
                let trees = looker.look();
                {
                    let mut seen = told.lock().unwrap_or_else(PoisonError::into_inner);
                    note(&mut seen, trees, &notes);
                    let now = notes.now();
                    let late = now.saturating_sub(last).saturating_sub(LOOK);
                    seen.stalls.extend((late > LATE).then_some((now, late)));
                    last = now;
                }
                tokio::time::sleep(LOOK).await;
            }
        });
        Self { seen, _task: task }
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The servers that a node has, and their processes.
    pub(super) fn of(&self, node: usize) -> Vec<(String, i32)> {
        let seen = self.seen();
        let all = seen.trees.iter().flat_map(|(name, trees)| trees.iter().map(move |tree| (name, tree)));
        all.filter(|(_, tree)| tree.node == node).map(|(name, tree)| (name.clone(), tree.pid)).collect()
    }
}

fn note(seen: &mut Seen, trees: BTreeMap<String, Vec<Tree>>, notes: &Notes) {
    seen.looks += 1;
    for (name, trees) in &trees {
        // The list is not made in one moment: two count only if both are still there.
        let nodes: BTreeSet<_> = trees.iter().filter(|tree| lives(tree.pid)).map(|tree| tree.node).collect();
        if nodes.len() > 1 {
            let times = seen.twice.entry(name.clone()).or_default();
            *times += 1;
            if *times == 1 {
                let nodes: Vec<_> = nodes.iter().map(|node| node_name(*node).to_string()).collect();
                let pids: Vec<_> = trees.iter().map(|tree| tree.pid).collect();
                notes.finds(format!(
                    "{name} is alive on nodes {} at once ({:.1} s, processes {pids:?})",
                    nodes.join(" and "),
                    notes.now().as_secs_f64()
                ));
            }
        }
    }
    seen.trees = trees;
}

struct Looker {
    /// The nodes, by the numbers of their networks.
    nodes: HashMap<String, usize>,
    /// What is known of processes that lived at the last look.
    known: HashMap<i32, (String, usize)>,
}

impl Looker {
    fn new() -> Self {
        let number = |node| {
            let about = std::fs::metadata(format!("/run/netns/{}", Place::Gateway(node).name())).ok()?;
            Some((format!("net:[{}]", about.ino()), node))
        };
        Self { nodes: (0..NODES).filter_map(number).collect(), known: HashMap::new() }
    }

    fn look(&mut self) -> BTreeMap<String, Vec<Tree>> {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids: Vec<_> = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).collect();
        let mut known = HashMap::new();
        let mut trees: BTreeMap<String, Vec<Tree>> = BTreeMap::new();
        for pid in pids {
            let is = self.known.remove(&pid).or_else(|| self.server_of(pid));
            let Some((name, node)) = is.filter(|_| lives(pid)) else { continue };
            trees.entry(name.clone()).or_default().push(Tree { pid, node });
            known.insert(pid, (name, node));
        }
        self.known = known;
        trees
    }

    /// The server that a process is, and where.
    fn server_of(&self, pid: i32) -> Option<(String, usize)> {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        if words.split(|byte| *byte == 0).nth(1)? != AS_SERVER.as_bytes() {
            return None;
        }
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mark = format!("{MARK}=");
        let name =
            environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(mark.as_bytes()))?;
        let network = std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
        let node = self.nodes.get(network.to_str()?)?;
        Some((String::from_utf8_lossy(name).into_owned(), *node))
    }
}
