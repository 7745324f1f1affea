use super::{Asked, Clock, Ownership};
use crate::{Fleet, Local};
use linetender_core::Instant;
use linetender_core::lease::{Lease, Node, Now, Standing, Terms};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// tokio's clock, which goes when everybody waits.
fn clock() -> Clock {
    let begun = tokio::time::Instant::now();
    Arc::new(move || {
        let nanos = u64::try_from(begun.elapsed().as_nanos()).unwrap();
        Now { boot: Instant::from_nanos(nanos + 1_000_000_000), wall: 0 }
    })
}

fn node(number: u64, directory: &Local, clock: &Clock) -> Ownership {
    let lease = Lease::new(Node(number), Terms::default());
    let node = Ownership::follow("files", lease, Arc::new(directory.clone()), Arc::clone(clock));
    node.tell(Asked::Want(true));
    node
}

async fn owns(node: &Ownership) -> Duration {
    let begun = tokio::time::Instant::now();
    let mut stand = node.stand();
    let owner = stand.wait_for(|stand| matches!(stand.standing, Standing::Owner { .. }));
    tokio::time::timeout(Duration::from_secs(120), owner).await.unwrap().unwrap();
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_line_that_nobody_knows_is_waited_for_and_then_kept() {
    let (directory, clock) = (Local::default(), clock());
    let one = node(1, &directory, &clock);
    let took = owns(&one).await;
    assert!((Duration::from_secs(22)..Duration::from_secs(24)).contains(&took), "{took:?}");
    let two = node(2, &directory, &clock);
    tokio::time::sleep(Duration::from_secs(300)).await;
    let Standing::Owner { fence, until } = one.stand().borrow().standing else { panic!("not kept") };
    assert!(until > clock().boot && one.accepts(fence));
    assert!(!two.accepts(fence), "it is the other's");
    assert_eq!(two.stand().borrow().standing, Standing::Elsewhere { fence });
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_is_followed_when_its_lease_must_be_over() {
    let (directory, clock) = (Local::default(), clock());
    let one = node(1, &directory, &clock);
    owns(&one).await;
    let two = node(2, &directory, &clock);
    tokio::time::sleep(Duration::from_secs(33)).await;
    drop(one);
    let took = owns(&two).await;
    // From the last sight of a change: at most a renewal before the end, at least what is left of a lease.
    assert!((Duration::from_secs(16)..Duration::from_secs(28)).contains(&took), "{took:?}");
}

/// Who hears of changes does not have to look for them.
#[tokio::test(start_paused = true)]
async fn a_node_of_a_fleet_is_told_that_a_line_is_free() {
    let (directory, clock) = (Local::default(), clock());
    let fleets: Vec<_> = (1..=2)
        .map(|number| {
            let directory = Arc::new(directory.clone());
            Fleet::join(Node(number), Terms::default(), directory, Arc::clone(&clock))
        })
        .collect();
    let one = fleets[0].minted("files");
    one.tell(Asked::Want(true));
    owns(&one).await;
    let two = fleets[1].line("files");
    two.tell(Asked::Want(true));
    tokio::time::sleep(Duration::from_secs(11)).await;
    one.tell(Asked::Want(false));
    one.tell(Asked::Cleared);
    let took = owns(&two).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_let_go_of_moves_as_soon_as_nothing_of_it_runs() {
    let (directory, clock) = (Local::default(), clock());
    let one = node(1, &directory, &clock);
    owns(&one).await;
    let two = node(2, &directory, &clock);
    tokio::time::sleep(Duration::from_secs(10)).await;
    one.tell(Asked::Want(false));
    let mut stand = one.stand();
    stand.wait_for(|stand| matches!(stand.standing, Standing::Sealed { .. })).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(
        !matches!(two.stand().borrow().standing, Standing::Owner { .. }),
        "something of it may still run"
    );
    one.tell(Asked::Cleared);
    let took = owns(&two).await;
    assert!(took <= Duration::from_secs(6), "{took:?}: no longer than until the next look");
}

#[tokio::test(start_paused = true)]
async fn a_panic_costs_the_line_for_as_long_as_a_lease_and_not_for_good() {
    let (directory, steady) = (Local::default(), clock());
    let breaks = Arc::new(AtomicBool::new(false));
    let (broken, goes) = (Arc::clone(&breaks), Arc::clone(&steady));
    let clock: Clock = Arc::new(move || {
        assert!(!broken.swap(false, Ordering::Relaxed), "the clock broke");
        goes()
    });
    let one = node(1, &directory, &clock);
    owns(&one).await;
    let Standing::Owner { fence: first, .. } = one.stand().borrow().standing else { panic!("not owned") };
    breaks.store(true, Ordering::Relaxed);
    one.stand().wait_for(|stand| !matches!(stand.standing, Standing::Owner { .. })).await.unwrap();
    let took = owns(&one).await;
    assert!((Duration::from_secs(22)..Duration::from_secs(26)).contains(&took), "{took:?}");
    let Standing::Owner { fence, .. } = one.stand().borrow().standing else { panic!("not owned") };
    assert!(fence.claim > first.claim, "{fence:?} was there before");
}
