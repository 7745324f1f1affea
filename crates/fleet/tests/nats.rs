//! The directory on a real NATS cluster: three servers on this machine, which are killed, stopped and robbed.
//!
//! `tools/real-nats && cargo nextest run -p linetender-fleet --all-features --run-ignored ignored-only`

mod cluster;

use std::sync::Arc;
use std::time::Duration;

use cluster::Cluster;
use linetender_core::lease::{Entry, Held, Node, Standing, Terms};
use linetender_fleet::{Asked, Directory as _, Fleet, Nats, Options, Ownership};
use tokio::time::Instant;

/// Short enough for a test. A cluster whose leader is killed needs longer than this.
const SHORT: Terms = Terms {
    lease: Duration::from_secs(4),
    renew: Duration::from_secs(1),
    margin: Duration::from_secs(1),
    patience: Duration::from_millis(500),
    answer: Duration::from_secs(1),
    pause: Duration::from_millis(50),
};

const FREE: Entry = Entry { held: Held::Free, lease: Duration::from_secs(20), written: 7 };

async fn directory(servers: Vec<String>, node: &str, replicas: usize) -> Arc<Nats> {
    let options = Options {
        servers,
        fleet: "test".to_owned(),
        node: node.to_owned(),
        replicas,
        calls_kept: Duration::from_secs(600),
        nkey: None,
        roots: None,
        certificate: None,
    };
    Arc::new(Nats::connect(options).await.unwrap())
}

fn joined(number: u64, terms: Terms, directory: &Arc<Nats>) -> Fleet {
    Fleet::join(Node(number), terms, directory.clone(), Arc::new(linetender_fleet::now))
}

fn wants(owned: Ownership) -> Ownership {
    owned.tell(Asked::Want(true));
    owned
}

fn is_owner(node: &Ownership) -> bool {
    let standing = node.stand().borrow().standing;
    matches!(standing, Standing::Owner { fence, .. } if node.accepts(fence))
}

/// Looks at everybody until one of them has the line, and never two.
async fn one_owns(nodes: &[Ownership], limit: Duration) -> usize {
    let until = Instant::now() + limit;
    loop {
        let owners: Vec<_> = (0..nodes.len()).filter(|at| is_owner(&nodes[*at])).collect();
        assert!(owners.len() <= 1, "two own it: {owners:?}");
        if let [owner] = owners[..] {
            return owner;
        }
        assert!(Instant::now() < until, "nobody owns it after {limit:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Nobody else owns it in this time.
async fn keeps(nodes: &[Ownership], owner: usize, time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        for (at, node) in nodes.iter().enumerate() {
            assert_eq!(is_owner(node), at == owner, "node {at}, while {owner} owns it");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tools/real-nats"]
async fn an_entry_is_replaced_only_by_whoever_has_seen_it() {
    let cluster = Cluster::start(1).await;
    let one = directory(cluster.addresses(), "one", 1).await;
    let two = directory(cluster.addresses(), "two", 1).await;
    assert_eq!(one.look("a line").await.unwrap(), None);
    let mut changes = two.watch().await.unwrap();
    let first = one.put("a line", None, FREE).await.unwrap().unwrap();
    assert_eq!(two.put("a line", None, FREE).await.unwrap(), None);
    let second = two.put("a line", Some(first), FREE).await.unwrap().unwrap();
    assert_eq!(one.put("a line", Some(first), FREE).await.unwrap(), None);
    assert_eq!(one.look("a line").await.unwrap(), Some((second, FREE)));
    for revision in [first, second] {
        let changed = changes.recv().await.unwrap();
        assert_eq!((changed.line.as_str(), changed.there), ("a line", Some((revision, FREE))));
    }
    // Of fifty who begin a call at once, one does.
    let begun = (0..50).map(|number| {
        let directory = if number % 2 == 0 { one.clone() } else { two.clone() };
        async move { directory.note("call", None, b"runs").await.unwrap() }
    });
    let mut all = tokio::task::JoinSet::new();
    begun.for_each(|begun| drop(all.spawn(begun)));
    let begun: Vec<_> = all.join_all().await.into_iter().flatten().collect();
    let [begun] = begun[..] else { panic!("{begun:?}") };
    assert_eq!(two.recall("call").await.unwrap(), Some((begun, b"runs".to_vec())));
    let done = one.note("call", Some(begun), b"done").await.unwrap().unwrap();
    assert_eq!(two.note("call", Some(begun), b"late").await.unwrap(), None);
    assert_eq!(two.recall("call").await.unwrap(), Some((done, b"done".to_vec())));
    assert_eq!(two.recall("another").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tools/real-nats"]
async fn an_entry_that_was_deleted_by_hand_is_waited_for() {
    let cluster = Cluster::start(1).await;
    let one = directory(cluster.addresses(), "one", 1).await;
    one.put("files", None, FREE).await.unwrap().unwrap();
    one.note("call", None, b"done").await.unwrap().unwrap();
    let somebody = async_nats::connect(cluster.addresses()).await.unwrap();
    let engine = async_nats::jetstream::new(somebody);
    // The names in hexadecimal.
    for (bucket, key) in [("lines", "x66696c6573"), ("calls", "x63616c6c")] {
        let bucket = engine.get_key_value(format!("linetender-test-{bucket}")).await.unwrap();
        bucket.delete(key).await.unwrap();
    }
    let (mark, entry) = one.look("files").await.unwrap().unwrap();
    assert_eq!(entry.held, Held::Unclear, "nobody knows whose it was");
    assert!(one.put("files", Some(mark), FREE).await.unwrap().is_some());
    assert_eq!(one.recall("call").await.unwrap(), None);
    assert!(one.note("call", None, b"runs").await.unwrap().is_some(), "its mark is in nobody's way");
    assert!(one.note("call", None, b"again").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tools/real-nats"]
async fn results_of_calls_leave_room_for_leases() {
    let cluster = Cluster::with_room(1, "24M").await;
    let one = directory(cluster.addresses(), "one", 1).await;
    let line = one.put("files", None, FREE).await.unwrap().unwrap();
    let result = vec![b'x'; 512 << 10];
    let mut noted = 0;
    while one.note(&format!("call {noted}"), None, &result).await.is_ok() {
        noted += 1;
        assert!(noted < 100, "more is kept than there is room for");
    }
    assert!(noted > 0, "not one result was kept");
    assert!(one.put("files", Some(line), FREE).await.unwrap().is_some(), "a lease is renewed all the same");
    assert!(one.put("another", None, FREE).await.unwrap().is_some(), "and a new one given");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tools/real-nats"]
async fn whoever_watches_a_cluster_that_lost_everything_is_told_that_it_sees_nothing() {
    let mut cluster = Cluster::start(1).await;
    let one = directory(cluster.addresses(), "one", 1).await;
    // However often: where a new bucket begins is chance, and one that begins higher was seen before too.
    for round in 0..3 {
        let line = format!("files {round}");
        let mut changes = one.watch().await.unwrap();
        one.put(&line, None, FREE).await.unwrap().unwrap();
        while changes.recv().await.unwrap().line != line {}
        cluster.kill(0);
        cluster.rob(0);
        cluster.restart(0).await;
        let two = directory(cluster.addresses(), "two", 1).await;
        let until = Instant::now() + Duration::from_secs(20);
        while two.put(&line, None, FREE).await.is_err() {
            assert!(Instant::now() < until, "the new one keeps nothing");
        }
        // Either it hears of the entry, or its watch ends and whoever asked asks again.
        let heard = async { while changes.recv().await.is_some_and(|changed| changed.line != line) {} };
        tokio::time::timeout(Duration::from_secs(20), heard).await.expect("it is blind");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tools/real-nats"]
async fn an_owner_that_is_gone_is_followed_and_one_that_lets_go_at_once() {
    let cluster = Cluster::start(1).await;
    let (mut nodes, mut fleets) = (Vec::new(), Vec::new());
    for number in 1..=3 {
        let directory = directory(cluster.addresses(), &number.to_string(), 1).await;
        let fleet = joined(number, SHORT, &directory);
        nodes.push(wants(fleet.line("files")));
        fleets.push(fleet);
    }
    let owner = one_owns(&nodes, Duration::from_secs(20)).await;
    keeps(&nodes, owner, Duration::from_secs(5)).await;
    // Gone without a word: nobody has it before its lease must be over.
    drop(nodes.remove(owner));
    let gone = Instant::now();
    let next = one_owns(&nodes, Duration::from_secs(20)).await;
    let took = gone.elapsed();
    assert!(took >= Duration::from_secs(3), "taken after {took:?}");
    // A move: others wait for nothing but the end of its processes.
    nodes[next].order(Asked::Want(false)).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(nodes.iter().all(|node| !is_owner(node)), "its processes may still run");
    nodes[next].order(Asked::Cleared).await;
    let let_go = Instant::now();
    let last = one_owns(&nodes, Duration::from_secs(20)).await;
    assert_ne!(last, next);
    assert!(let_go.elapsed() < Duration::from_secs(3), "moved after {:?}", let_go.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tools/real-nats"]
async fn an_owner_stays_while_the_leader_of_the_cluster_is_killed_and_another_is_stopped() {
    let mut cluster = Cluster::start(3).await;
    let (mut nodes, mut fleets) = (Vec::new(), Vec::new());
    for number in 1..=3 {
        let directory = directory(cluster.addresses(), &number.to_string(), 3).await;
        let fleet = joined(number, Terms::default(), &directory);
        // The name is new: nobody has to be waited for.
        nodes.push(wants(if number == 1 { fleet.minted("files") } else { fleet.line("files") }));
        fleets.push(fleet);
        if number == 1 {
            one_owns(&nodes, Duration::from_secs(20)).await;
        }
    }
    let leader = cluster.leader_of("KV_linetender-test-lines").await;
    cluster.kill(leader);
    keeps(&nodes, 0, Duration::from_secs(20)).await;
    cluster.restart(leader).await;
    let other = (leader + 1) % 3;
    cluster.stop(other, true);
    keeps(&nodes, 0, Duration::from_secs(14)).await;
    cluster.stop(other, false);
    keeps(&nodes, 0, Duration::from_secs(2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tools/real-nats"]
async fn a_cluster_that_lost_everything_gives_nothing_away_too_early() {
    let mut cluster = Cluster::start(1).await;
    let (mut nodes, mut fleets) = (Vec::new(), Vec::new());
    for number in 1..=2 {
        let directory = directory(cluster.addresses(), &number.to_string(), 1).await;
        let fleet = joined(number, SHORT, &directory);
        nodes.push(wants(fleet.line("files")));
        fleets.push(fleet);
    }
    let owner = one_owns(&nodes, Duration::from_secs(20)).await;
    let before = nodes[owner].stand().borrow().standing;
    cluster.kill(0);
    cluster.rob(0);
    cluster.restart(0).await;
    // It keeps what it has to the end of its lease, and then somebody begins anew.
    let mut stand = nodes[owner].stand();
    let sealed = stand.wait_for(|stand| matches!(stand.standing, Standing::Sealed { .. }));
    tokio::time::timeout(Duration::from_secs(5), sealed).await.unwrap().unwrap();
    nodes[owner].order(Asked::Cleared).await;
    let next = one_owns(&nodes, Duration::from_secs(20)).await;
    assert_ne!(nodes[next].stand().borrow().standing, before);
    keeps(&nodes, next, Duration::from_secs(5)).await;
}
