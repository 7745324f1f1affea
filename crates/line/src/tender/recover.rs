//! When the tender's own code panics: the generation dies like by any other death, and the line goes on.
//!
//! The machine is a value without locks, so it is first told of the loss like of any other: it charges the budget, seals,
//! settles, kills and dials, each in its turn. If that panics too, nothing of the machine is believed any more: what is
//! left of the generation is taken down by hand, the line rests, and a new machine begins, numbered after the old one. The
//! rests double, so a tender that panics again and again does not spin.

use std::sync::Arc;
use std::time::Duration;

use linetender_core::{
    Class, Command, Gate, Generation, Leaf, LossReport, Machine, NextTry, Refusal, State, StateKind,
    Wake as MayWake, Walk,
};
use linetender_wire::{Panicked, Seen, caught, caught_now, seam};
use tokio::sync::mpsc;

use super::Published;
use super::{Current, Inbox, Running};
use crate::generation::Connection;
use crate::status::{Status, Waits, Why};

/// The first rest before a new machine, and how often it doubles.
const REST: Duration = Duration::from_secs(1);
const DOUBLINGS: u32 = 6;

/// What the tender is called in a cause.
const TENDER: Seen = Seen::Internal { task: "tender" };

/// Panics that come closer than this follow from each other, and after so many of them the machine is not believed.
const CLOSE: Duration = Duration::from_secs(10);
const STREAK: u32 = 3;

/// The tender's panics so far.
#[derive(Default)]
pub(super) struct Panics {
    last: Option<tokio::time::Instant>,
    streak: u32,
    /// How many machines were given up.
    restarts: u32,
}

impl Panics {
    /// One more. Whether the machine can still be believed.
    fn another(&mut self) -> bool {
        let now = tokio::time::Instant::now();
        let follows = self.last.replace(now).is_some_and(|last| now - last < CLOSE);
        self.streak = if follows { self.streak + 1 } else { 1 };
        self.streak <= STREAK
    }

    /// How long to rest before a new machine.
    fn rest(&mut self) -> Duration {
        let rest = REST * (1 << self.restarts.min(DOUBLINGS));
        self.restarts += 1;
        rest
    }
}

impl Running {
    /// A task that panicked has not done what the generation needs, and nobody will tell of it: that is a death.
    pub(super) fn task_panicked(&mut self) {
        if let Some(generation) = self.current.as_ref().map(|current| current.generation) {
            self.lost(generation, Seen::Internal { task: "connection task" });
        }
    }

    /// Works until the line is closed, whatever panics on the way.
    pub(super) async fn supervised(mut self: Box<Self>) {
        while caught(self.work()).await == Err(Panicked) {
            let generation = self.machine.generation();
            let plainly = caught_now(|| {
                // What it was doing may be half done.
                self.walk = None;
                self.at_once.clear();
                if let Some(current) = &mut self.current {
                    current.broken = true;
                    current.ledger.seal();
                }
                self.lost(generation, TENDER);
                self.pump();
            });
            if !self.panics.another() || plainly.is_err() {
                self.start_over(generation).await;
            }
        }
    }

    /// Gives the machine up for a new one.
    async fn start_over(&mut self, generation: Generation) {
        let rest = self.panics.rest();
        let until =
            self.tender.clock.now() + Duration::from_millis(u64::try_from(rest.as_millis()).unwrap_or(0));
        // What an operator said outlives a panic: what else the machine knew does not.
        let out_of_service = self.tender.states.borrow().is_out_of_service();
        let published = caught_now(|| self.publish_rest(generation, until));
        if let Some(current) = self.current.take() {
            let patience = self.tender.server.policy.settings().close.worst();
            // A tree that will not die is left to its reaper.
            let _ = tokio::time::timeout(patience, take_down(current)).await;
        }
        let closing = published.is_ok() && self.rest(rest).await == Rested::Closing;
        let now = self.tender.clock.now();
        self.seed = self.seed.wrapping_add(1);
        self.machine = Machine::new(self.tender.server.policy, self.seed, now)
            .numbered_after(generation)
            .as_answered_as(&self.machine);
        self.news = mpsc::channel(64);
        self.walk = Some(Walk::after(generation));
        self.at_once.clear();
        let _ = caught_now(|| {
            if closing {
                self.machine.handle_command(now, Command::Close);
            } else if out_of_service {
                self.machine.handle_command(now, Command::Park);
            } else if !self.tender.server.lazy {
                self.machine.handle_command(now, Command::Open);
            }
            self.pump();
        });
    }

    /// What callers are told meanwhile.
    fn publish_rest(&self, generation: Generation, until: linetender_core::Instant) {
        let next = NextTry::At(until);
        let gate = Gate::Refuse { why: Refusal::Waiting, next, wake: MayWake::Never };
        let why = Why {
            outside: None,
            text: TENDER.to_string(),
            stderr: None,
            leaves: vec![Leaf::Failed(Class::Transport)],
            planned: false,
            seen: "internal",
            exit: None,
            http: None,
        };
        let status = Status {
            signs: None,
            state: StateKind::Waiting,
            generation: generation.number(),
            cause: Some(Arc::new(why)),
            budget: 0,
            useful: 0,
            cost: None,
            gate,
            clock: self.tender.clock,
            waits: Waits::Nothing,
        };
        self.tender.publish.send_replace(Published {
            gate,
            connection: Connection::None,
            status: status.clone(),
        });
        self.tender.states.send_replace(status);
    }

    /// Waits. Whoever asks for something is answered by the published gate; whoever wants the line closed is heard.
    async fn rest(&mut self, time: Duration) -> Rested {
        let asked = async {
            loop {
                match self.tender.inbox.recv().await {
                    None | Some(Inbox::Command(Command::Close, _)) => return,
                    Some(_) => {}
                }
            }
        };
        match tokio::time::timeout(time, asked).await {
            Ok(()) => Rested::Closing,
            Err(_) => Rested::Enough,
        }
    }
}

/// Why a rest ended.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Rested {
    Enough,
    Closing,
}

/// Ends a generation by hand: its calls first, then its tree; returns when that is gone.
async fn take_down(mut current: Current) {
    let _ = caught_now(|| {
        current.ledger.seal();
        current.ledger.settle_queued();
        current.ledger.settle_all(|_| LossReport::Nothing, Some(&Arc::new(TENDER)));
    });
    current.tasks.abort_all();
    if let Some(link) = current.connection.link() {
        link.reach.kill();
    }
    while !matches!(current.wire.recv().await, None | Some(seam::Event::Gone)) {}
}

impl Running {
    /// The loop of a tender.
    async fn work(&mut self) {
        while !matches!(self.machine.state(), State::Closed) {
            let wake = self.wait().await;
            linetender_wire::test_hooks::point("tender");
            self.handle(wake);
        }
        // Nobody is there later who could.
        self.name_left(None);
    }
}
