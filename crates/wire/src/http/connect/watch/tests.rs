//! In virtual time: what a peer acknowledges, and what a second connection to it meets, decides.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::super::network::{Quiet, Silence};
use super::{AWAY, Knock, watch};

/// What lies between us and the peer.
#[derive(Clone, Copy)]
enum Sky {
    Clear,
    /// The packets of this connection are dropped.
    Dropped,
    /// All packets are.
    Away,
    /// The packets of this connection are dropped, and a new one is refused.
    Gone,
}

struct Peer {
    sky: Mutex<(Sky, Instant)>,
    knocks: AtomicU32,
    /// The pauses between two tries double, as those of bytes do; a keepalive's do not.
    doubles: bool,
}

impl Peer {
    fn new(doubles: bool) -> Arc<Self> {
        Arc::new(Self { sky: Mutex::new((Sky::Clear, Instant::now())), knocks: AtomicU32::new(0), doubles })
    }

    fn turn(&self, sky: Sky) {
        *self.sky.lock().unwrap() = (sky, Instant::now());
    }

    fn sky(&self) -> (Sky, Duration) {
        let (sky, since) = *self.sky.lock().unwrap();
        (sky, since.elapsed())
    }

    fn knock(self: &Arc<Self>) -> impl Fn() -> Knock + use<> {
        let peer = Arc::clone(self);
        move || {
            peer.knocks.fetch_add(1, Ordering::Relaxed);
            let (sky, _) = peer.sky();
            Box::pin(async move {
                match sky {
                    Sky::Clear | Sky::Dropped => Ok(()),
                    Sky::Away => std::future::pending().await,
                    Sky::Gone => Err(io::ErrorKind::ConnectionRefused.into()),
                }
            })
        }
    }

    /// How long after this moment its connection is given up, if it is within ten minutes.
    async fn given_up(self: &Arc<Self>) -> Option<(Duration, String)> {
        let since = Instant::now();
        let looks: Arc<dyn Quiet> = Arc::<Self>::clone(self);
        let error = timeout(Duration::from_secs(600), watch(looks, self.knock())).await.ok()?;
        Some((since.elapsed(), error.to_string()))
    }
}

impl Quiet for Peer {
    fn is_quiet(&self) -> bool {
        true
    }

    fn silence(&self) -> Option<Silence> {
        let (sky, lasts) = self.sky();
        let passed = lasts.as_millis();
        Some(match sky {
            // It has no room, and says so whenever it is asked.
            Sky::Clear => Silence { lasts: Duration::from_secs(lasts.as_secs() % 9), owes: false, tries: 0 },
            _ if self.doubles => {
                let tries = (passed / 200 + 1).ilog2();
                Silence { lasts, owes: true, tries }
            }
            _ => {
                let tries = u32::try_from(passed.saturating_sub(10_000).div_ceil(3000)).unwrap_or(u32::MAX);
                Silence { lasts, owes: tries > 0, tries }
            }
        })
    }
}

/// One after the other.
async fn turns(peer: &Peer, turns: &[(u64, Sky)]) {
    for (after, sky) in turns {
        sleep(Duration::from_secs(*after)).await;
        peer.turn(*sky);
    }
    std::future::pending::<()>().await;
}

#[tokio::test(start_paused = true)]
async fn h31_a_peer_that_acknowledges_that_it_has_no_room_is_left_alone() {
    for doubles in [false, true] {
        let peer = Peer::new(doubles);
        assert_eq!(peer.given_up().await, None);
        assert_eq!(peer.knocks.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn h02a_one_connection_that_is_dropped_is_given_up_within_twenty_seconds() {
    for doubles in [false, true] {
        let peer = Peer::new(doubles);
        peer.turn(Sky::Dropped);
        let (after, words) = peer.given_up().await.expect("it is dropped");
        assert!((15..=20).contains(&after.as_secs()), "{after:?}");
        assert!(words.contains("acknowledged nothing for") && words.contains("succeeded"), "{words}");
    }
}

#[tokio::test(start_paused = true)]
async fn h41_a_network_that_comes_back_costs_nothing() {
    for doubles in [false, true] {
        for away in [5, 12, 25, 60, 110] {
            let peer = Peer::new(doubles);
            let plan = [(0, Sky::Away), (away, Sky::Clear)];
            let turns = turns(&peer, &plan);
            tokio::select! {
                () = turns => {}
                given_up = peer.given_up() => assert_eq!(given_up, None, "{away} s"),
            }
        }
    }
}

/// After a cut, TCP sends again only after a pause as long as the cut. Until then a new connection that succeeds proves nothing of it.
#[tokio::test(start_paused = true)]
async fn h41_what_was_under_way_has_its_turn_after_the_network_is_back() {
    let peer = Peer::new(true);
    // Away, then reachable by new connections, and the old one is heard when TCP tries it again.
    let turns = async {
        peer.turn(Sky::Away);
        sleep(Duration::from_secs(14)).await;
        peer.sky.lock().unwrap().0 = Sky::Dropped;
        sleep(Duration::from_secs(10)).await;
        peer.turn(Sky::Clear);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = turns => {}
        given_up = peer.given_up() => assert_eq!(given_up, None),
    }
}

#[tokio::test(start_paused = true)]
async fn h41_a_network_that_stays_away_ends_the_wait_after_two_minutes() {
    for doubles in [false, true] {
        let peer = Peer::new(doubles);
        peer.turn(Sky::Away);
        let (after, words) = peer.given_up().await.expect("every wait has an end");
        assert!(after >= AWAY && after <= AWAY + Duration::from_secs(2), "{after:?}");
        assert!(words.contains("nor was there an answer"), "{words}");
        let knocks = peer.knocks.load(Ordering::Relaxed);
        assert!((20..=40).contains(&knocks), "{knocks}");
    }
}

#[tokio::test(start_paused = true)]
async fn h41_a_peer_that_is_silent_and_whose_port_refuses_is_gone() {
    let peer = Peer::new(false);
    peer.turn(Sky::Gone);
    let (after, words) = peer.given_up().await.expect("nobody is there");
    assert!((10..=12).contains(&after.as_secs()), "{after:?}");
    assert!(words.contains("refused"), "{words}");
}
