//! A line of the fleet, as one node has it: run here as long as this node owns it, and otherwise reached at whoever does.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Client;
use linetender_core::lease::{Fence, Node, Standing};
use linetender_wire::Seen;
use linetender_wire::handshake::Hello;
use linetender_wire::hop::{self, Found, Owner, OwnerEnd, Reached, Way};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::node::{House, Seat};
use super::orders::{self, Answer, NoAnswer, Order, SPEAKS, Wants};
use super::stream::{self, GiveUp, Place};
use crate::ownership::{Asked, Ownership};

/// After an owner could not be reached: how soon it is tried again, if nothing is heard of another.
const AGAIN: Duration = Duration::from_millis(250);

/// How often it is looked whether what is to end has ended.
const LOOK: Duration = Duration::from_millis(20);

/// How long those who are handed over may wait for what they were owed.
const FAREWELL: Duration = Duration::from_secs(30);

/// How long the last words of an owner may take after another one is known.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What a line knows of its node.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) client: Client,
    pub(super) fleet: String,
    pub(super) name: String,
    pub(super) numbers: fn() -> u128,
}

/// The line.
pub(super) struct FleetLine {
    name: String,
    of: Surroundings,
    ownership: Ownership,
    /// Whether a process of it may run here.
    runs: AtomicBool,
    /// Whether it is to move: no process is started here any more.
    hands: AtomicBool,
    changed: Notify,
    /// Whether those from other nodes have seats on what is not there any more.
    replaced: Notify,
    /// Who has the processes.
    house: watch::Receiver<Option<Arc<dyn House>>>,
    /// What those from other nodes are told.
    seats: Mutex<watch::Sender<hop::Stand>>,
    /// The owner that was reached, until whoever dials takes it.
    reached: Mutex<Option<(Fence, Reached)>>,
}

impl FleetLine {
    pub(super) fn new(
        name: &str,
        of: Surroundings,
        ownership: Ownership,
        house: watch::Receiver<Option<Arc<dyn House>>>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            of,
            ownership,
            runs: AtomicBool::new(false),
            hands: AtomicBool::new(false),
            changed: Notify::new(),
            replaced: Notify::new(),
            house,
            seats: Mutex::new(watch::Sender::new(hop::Stand::Serves)),
            reached: Mutex::default(),
        }
    }

    pub(super) fn standing(&self) -> Standing {
        self.ownership.stand().borrow().standing
    }

    /// The server was replaced by another one, which has seats of its own.
    pub(super) fn replaced(&self) {
        self.replaced.notify_one();
    }

    pub(super) fn moves(&self) -> bool {
        self.hands.load(Ordering::SeqCst)
    }

    /// A seat for somebody on another node, if this is still owned under that fence.
    pub(super) fn seat(
        &self,
        house: &dyn House,
        fence: Fence,
        from: &str,
    ) -> Option<(Seat, watch::Receiver<hop::Stand>)> {
        // Taken before it is looked: whoever moves the line meanwhile tells this seat too, or is seen.
        let stand = self.seats.lock().unwrap_or_else(PoisonError::into_inner).subscribe();
        if self.moves() || !self.ownership.accepts(fence) {
            return None;
        }
        Some((house.seat(&self.name, from)?, stand))
    }

    /// Keeps the line where it should be: `here` says whether that is here.
    pub(super) async fn tend(&self, house: &dyn House, mut here: watch::Receiver<bool>) {
        let mut stand = self.ownership.stand();
        let mut farewells = JoinSet::new();
        loop {
            let standing = stand.borrow_and_update().standing;
            let wanted = *here.borrow_and_update();
            match standing {
                Standing::Owner { fence, .. } if !wanted => {
                    self.hand_over(house, fence).await;
                    continue;
                }
                Standing::Owner { .. } => {}
                Standing::Sealed { .. } => {
                    self.let_go(&mut farewells);
                    self.cleared(house).await;
                }
                Standing::Elsewhere { .. } | Standing::Nobody => {
                    self.ownership.order(Asked::Want(wanted)).await;
                }
            }
            tokio::select! {
                changed = stand.changed() => if changed.is_err() { return },
                changed = here.changed() => if changed.is_err() { return },
                Some(_) = farewells.join_next() => {}
                () = self.replaced.notified() => self.let_go(&mut farewells),
            }
        }
    }

    /// Ends it here, so that it can begin elsewhere. Until then the lease is kept.
    async fn hand_over(&self, house: &dyn House, fence: Fence) {
        tracing::info!(line = self.name, "moving the server to another gateway");
        self.hands.store(true, Ordering::SeqCst);
        let mut stand = self.ownership.stand();
        let owned = |standing| matches!(standing, Standing::Owner { fence: now, .. } if now == fence);
        if let Some(seats) = self.take_no_more() {
            // What others asked before is answered while the server runs. Later it would wait here for the next owner, which may be the
            // very one that waits for it.
            tokio::select! {
                _ = tokio::time::timeout(FAREWELL, seats.closed()) => {}
                _ = stand.wait_for(|stand| !owned(stand.standing)) => {}
            }
            seats.send_replace(hop::Stand::Leaves);
        }
        while matches!(self.standing(), Standing::Owner { fence: now, .. } if now == fence) {
            house.recycle(&self.name).await;
            if !self.runs(house) {
                break;
            }
            let _ = tokio::time::timeout(LOOK, self.changed.notified()).await;
        }
        self.ownership.order(Asked::Want(false)).await;
        let _ = stand.wait_for(|stand| !owned(stand.standing)).await.map(drop);
        self.cleared(house).await;
        self.hands.store(false, Ordering::SeqCst);
    }

    /// Those from other nodes take what they were owed, and ask the next owner for the rest.
    fn let_go(&self, farewells: &mut JoinSet<()>) {
        let Some(before) = self.take_no_more() else { return };
        farewells.spawn(async move {
            let _ = tokio::time::timeout(FAREWELL, before.closed()).await;
            before.send_replace(hop::Stand::Leaves);
        });
    }

    /// Nothing more is taken from those from other nodes, if there are any. They are gone when nobody hears what is told there.
    fn take_no_more(&self) -> Option<watch::Sender<hop::Stand>> {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *seats, watch::Sender::new(hop::Stand::Serves));
        drop(seats);
        if before.is_closed() {
            return None;
        }
        before.send_replace(hop::Stand::Hands);
        Some(before)
    }

    fn has_process(&self) -> bool {
        self.house.borrow().as_ref().is_some_and(|house| house.has_process(&self.name))
    }

    /// Whether a process of it may run here.
    fn runs(&self, house: &dyn House) -> bool {
        self.runs.load(Ordering::SeqCst) && !house.is_still(&self.name)
    }

    /// Says that it can be another's when nothing of it runs here. What runs is ended by its reapers at the latest.
    async fn cleared(&self, house: &dyn House) {
        while self.runs(house) {
            let _ = tokio::time::timeout(LOOK, self.changed.notified()).await;
        }
        self.ownership.order(Asked::Cleared).await;
    }

    fn stash(&self) -> MutexGuard<'_, Option<(Fence, Reached)>> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn elsewhere(&self, fence: Fence) -> Result<Reached, Seen> {
        let Surroundings { client, fleet, name, numbers } = &self.of;
        let refused = |reason: String| Seen::NodeRefused { reason };
        let own = Place::new(fleet, numbers());
        let heard = own.listen(client).await.map_err(|error| refused(error.to_string()))?;
        let wants = Wants::line(&self.name, fence, own.name());
        let order = Order { speaks: SPEAKS, from: name.clone(), wants };
        let to = orders::subject(fleet, fence.node);
        let other = match orders::ask(client, to, &order).await {
            Ok(Answer::Taken { stream }) => {
                Place::named(fleet, &stream).ok_or_else(|| refused("it named no stream".to_owned()))?
            }
            Ok(Answer::Elsewhere) => return Err(Seen::NodeLeft),
            Ok(Answer::Refused { why }) => return Err(refused(why)),
            Ok(Answer::Alive) => return Err(refused("it answered something else".to_owned())),
            Err(NoAnswer::Nobody) => return Err(Seen::NodeGone),
            Err(NoAnswer::Silence(why)) => {
                tracing::debug!(line = self.name, why, "the owner does not answer");
                return Err(Seen::NodeGone);
            }
        };
        let give_up = GiveUp::default();
        let (input, output) = stream::begin(client.clone(), &own, heard, &other, give_up.clone());
        let owner = FarOwner { of: self.of.clone(), node: fence.node, give_up: give_up.clone() };
        self.superseded(fence, give_up);
        Ok(Reached::far(Box::new(input), Box::new(output), Arc::new(owner)))
    }

    /// When another owner is known, this one is given up: nothing of what it was sent can run any more.
    fn superseded(&self, fence: Fence, give_up: GiveUp) {
        let mut stand = self.ownership.stand();
        let still =
            move |standing: Standing| matches!(standing, Standing::Elsewhere { fence: now } if now == fence);
        #[expect(clippy::disallowed_methods, reason = "it ends with the stream or the line")]
        tokio::spawn(async move {
            let other = async {
                // A line whose task is gone is nobody's.
                let _ = stand.wait_for(|stand| !still(stand.standing)).await.map(drop);
                tokio::time::sleep(LAST_WORDS).await;
            };
            tokio::select! {
                () = other => give_up.now(),
                () = give_up.over() => {}
            }
        });
    }
}

impl Way for FleetLine {
    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            let mut stand = self.ownership.stand();
            let mut refused = None;
            loop {
                // Whoever dials has ended what was before; another of the same name, which it replaced, may still have calls to finish.
                if self.has_process() {
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
                self.runs.store(false, Ordering::SeqCst);
                self.changed.notify_one();
                let standing = stand.borrow_and_update().standing;
                match standing {
                    Standing::Owner { .. } if !self.moves() => return,
                    // It is asked here, and not by whoever dials: that an owner is gone is no failure of the server.
                    Standing::Elsewhere { fence } => {
                        // One that is stopped answers nothing: it is not waited for when the line is another's, or ours.
                        let reached = tokio::select! {
                            reached = self.elsewhere(fence) => reached,
                            Ok(()) = stand.changed() => continue,
                        };
                        match reached {
                            Ok(reached) => {
                                *self.stash() = Some((fence, reached));
                                return;
                            }
                            Err(seen) => {
                                if refused.replace(seen.name()) != Some(seen.name()) {
                                    tracing::info!(line = self.name, why = %seen, "waiting for the gateway that runs the server");
                                }
                            }
                        }
                    }
                    Standing::Owner { .. } | Standing::Sealed { .. } | Standing::Nobody => {}
                }
                // A line whose task is gone is nobody's.
                if let Ok(Err(_)) = tokio::time::timeout(AGAIN, stand.changed()).await {
                    return std::future::pending().await;
                }
            }
        })
    }

    fn reach<'a>(&'a self, _hello: &'a Hello) -> Pin<Box<dyn Future<Output = Found> + Send + 'a>> {
        Box::pin(async {
            // Said before it is looked: whoever gives the line away meanwhile sees one of the two.
            self.runs.store(true, Ordering::SeqCst);
            let stand = self.ownership.stand().borrow().clone();
            if matches!(stand.standing, Standing::Owner { .. }) && !self.moves() && stand.lifeline.is_some() {
                return Found::Here { lifeline: stand.lifeline, why: None };
            }
            self.runs.store(false, Ordering::SeqCst);
            self.changed.notify_one();
            match (stand.standing, self.stash().take()) {
                (Standing::Elsewhere { fence }, Some((of, reached))) if fence == of => Found::There(reached),
                _ => Found::Nowhere(Seen::NodeLeft),
            }
        })
    }
}

impl fmt::Debug for FleetLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetLine").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The node that owns a line.
struct FarOwner {
    of: Surroundings,
    node: Node,
    give_up: GiveUp,
}

impl Owner for FarOwner {
    fn answers(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async {
            let order = Order { speaks: SPEAKS, from: self.of.name.clone(), wants: Wants::Alive };
            orders::ask(&self.of.client, orders::subject(&self.of.fleet, self.node), &order).await.is_ok()
        })
    }

    fn kill(&self) {
        self.give_up.now();
    }

    fn pid(&self) -> Option<i32> {
        None
    }

    fn ended(&self, how: OwnerEnd) -> Seen {
        match how {
            OwnerEnd::Left => Seen::NodeLeft,
            OwnerEnd::Gone | OwnerEnd::Hangs => Seen::NodeGone,
        }
    }
}
