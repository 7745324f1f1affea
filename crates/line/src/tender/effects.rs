//! Doing what the core wants done: its effects, in its order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use linetender_core::{Effect, Event, Gate, Generation, LossReport, Settle, State, Walk};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::effort::Effort;
use super::keys::Credentials;
use super::lists::Lists;
use super::{Current, LineEvent, News, Published, Running, log};
use crate::book::Ledger;
use crate::generation::{Connection, Dial, Ear, Reach};
use crate::status::{Aside, Status};

impl Running {
    /// Does what the core wants done, until it wants nothing.
    pub(super) fn pump(&mut self) {
        loop {
            while let Some(effect) = self.machine.poll_effect() {
                self.run(effect);
                match (&mut self.walk, effect) {
                    (Some(walk), _) => {
                        let in_order = walk.done(effect);
                        debug_assert!(in_order.is_ok(), "{in_order:?}");
                    }
                    (None, Effect::Forget { generation }) => self.walk = Some(Walk::after(generation)),
                    (None, _) => {}
                }
            }
            match self.at_once.pop_front() {
                Some((generation, event)) => self.event(generation, event),
                None => break,
            }
        }
        self.end_kept();
    }

    fn run(&mut self, effect: Effect) {
        match effect {
            Effect::Notice(gate) => self.notice(gate),
            Effect::Dial { generation } => self.dial(generation),
            Effect::Probe { generation } => self.probe(generation),
            Effect::Seal { .. } => {
                let keeps = self.keeps_process();
                if let Some(current) = &mut self.current {
                    current.hands_over = keeps;
                    if keeps { current.ledger.hand_over() } else { current.ledger.seal() }
                }
            }
            Effect::Drain { generation } => self.drain(generation),
            Effect::Settle { settle, .. } => self.settle(settle),
            Effect::Kill { generation } => self.fell(generation, Reach::kill),
            Effect::LetGo { generation } => self.fell(generation, Reach::let_go),
            Effect::Close { generation } => self.fell(generation, Reach::close),
            Effect::Forget { .. } => {
                let Some(current) = self.current.take() else { return };
                // Its last words may have been read after its exit was seen.
                let odd = current.ear.odd().1.into_iter().next();
                Aside::heed(&mut self.aside, &self.tender.publish.borrow().status, odd);
                if current.broken {
                    current.ledger.settle_all(|_| LossReport::Nothing, None);
                }
            }
        }
    }

    fn notice(&mut self, gate: Gate) {
        let state = self.machine.state();
        if let (State::Ending(_), Some(current)) = (state, &self.current) {
            let odd = current.ear.odd().1.into_iter().next();
            Aside::heed(&mut self.aside, &self.tender.publish.borrow().status, odd);
        }
        let (generation, budget) = (self.machine.generation(), *self.machine.budget());
        let signs = self.current.as_ref().map(|current| Arc::clone(&current.ledger.signs));
        let mut status =
            Status::of(state, generation, budget, gate, self.tender.clock, signs, self.aside.as_ref());
        if let (State::Up(_) | State::Suspect(_), Gate::Hold { .. }) = (state, gate) {
            status.cause = status.cause.or_else(|| self.refused.clone());
        }
        if self.tender.publish.borrow().status.state != status.state {
            log::changed(&self.tender.server.name, state, &status, self.keys.is_some());
        }
        if let (State::Draining { .. }, Some(current)) = (state, &self.current) {
            current.ledger.draining.store(true, Ordering::Relaxed);
            self.nudge.notify_one();
        }
        if let (State::Ending(_), Some(current)) = (state, &mut self.current) {
            if let Some(why) = &status.cause {
                let _ = current.ledger.ended.set(Arc::clone(why));
            }
            current.connection.ends(status.cause.as_deref());
        }
        self.keys.iter().for_each(|keys| keys.stands(state.kind()));
        let connection = self.current.as_ref().map(|current| current.connection.clone()).unwrap_or_default();
        self.tender.publish.send_replace(Published { gate, connection, status: status.clone() });
        self.tender.states.send_replace(status.clone());
        let _ = self.tender.events.send(LineEvent::State(status));
    }

    fn dial(&mut self, generation: Generation) {
        let keys = self.keys.as_mut().map(Credentials::dialled);
        let (tell_wire, wire) = mpsc::channel(16);
        let ledger = Ledger::new(generation, self.tender.clock, Arc::clone(&self.nudge));
        let (ledger, wire, inherited) = match self.kept.take() {
            Some(kept) => (ledger.numbered_after(kept.last_id), kept.wire, Some(kept.process)),
            None => (ledger, wire, None),
        };
        let ledger = Arc::new(ledger);
        let (server, audience) = (&self.tender.server, Arc::clone(&self.tender.audience));
        let rooms = self.tender.rooms.clone();
        let wishes = Arc::clone(&self.tender.wishes);
        let ear = Arc::new(Ear::new(Arc::clone(&ledger), audience).of(server, rooms, wishes));
        if let Some(process) = &inherited {
            process.turn_to(Arc::clone(&ear));
        }
        let probing = Arc::new(AtomicBool::new(false));
        let dial = Dial {
            generation,
            server: Arc::clone(&self.tender.server),
            ear: Arc::clone(&ear),
            limit: self.tender.dial_limit.clone(),
            predecessors: self.tender.predecessors.clone(),
            remembered: self.remembered,
            known: self.tender.greetings.borrow().is_some(),
            seed: self.seed ^ generation.number(),
            wire: tell_wire,
            probing: Arc::clone(&probing),
            patient: self.patient,
            keys,
            kept: inherited.clone(),
        };
        let news = self.news.0.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(dial.run(move |step| {
            let news = news.clone();
            async move {
                let _ = news.send(News::Dial(generation, step)).await;
            }
        }));
        let lists = Lists::Quiet;
        self.current = Some(Current {
            generation,
            ledger,
            ear,
            connection: Connection::None,
            wire,
            wire_open: true,
            probing,
            effort: Effort::default(),
            lists,
            wanted: BTreeSet::new(),
            gap: None,
            read_until: None,
            unread: 0,
            stray: None,
            tasks,
            broken: false,
            inherited,
            hands_over: false,
        });
    }

    fn probe(&mut self, generation: Generation) {
        let hello = self.tender.server.hello.clone();
        let news = self.news.0.clone();
        let Some(current) = &mut self.current else { return };
        let Some(link) = current.connection.live().cloned() else { return };
        // The machine has a timer of its own for it. An answer that comes later than this is heard, but not waited for:
        // a busy server is probed again and again.
        let limit = 2 * self.machine.policy().probe.timeout;
        current.tasks.spawn(async move {
            if let Ok(probed) = tokio::time::timeout(limit, link.probe(&hello)).await {
                let _ = news.send(News::Probed(generation, probed)).await;
            }
        });
    }

    fn drain(&mut self, generation: Generation) {
        let news = self.news.0.clone();
        let Some(current) = &mut self.current else { return };
        match current.connection.link().cloned().filter(|_| !current.hands_over) {
            Some(link) => drop(current.tasks.spawn(async move {
                link.reach.drain().await;
                let _ = news.send(News::Drained(generation)).await;
            })),
            None => self.at_once.push_back((generation, Event::Drained)),
        }
    }

    fn settle(&self, settle: Settle) {
        let Some(current) = &self.current else { return };
        match settle {
            Settle::Own => {}
            Settle::Certain => current.ledger.settle_queued(),
            Settle::Residue => match current.connection.link() {
                Some(link) => current.ledger.settle_all(|call| link.reach.loss_of(call), None),
                None => current.ledger.settle_all(|_| LossReport::Nothing, None),
            },
            Settle::Unknown => current.ledger.settle_all(|_| LossReport::Nothing, None),
        }
    }

    fn fell(&mut self, generation: Generation, order: impl FnOnce(&Reach)) {
        let Some(current) = &mut self.current else {
            // A tender that panicked while it dialled: there is nothing to end.
            return self.at_once.push_back((generation, Event::Gone(None)));
        };
        if current.hands_over {
            self.keep_process();
            return self.at_once.push_back((generation, Event::Gone(None)));
        }
        if let Some(link) = current.connection.link() {
            order(&link.reach);
        } else {
            // It never had a process, or the dial had just made one: dropping the dial drops that too, and when the last
            // who could speak of it is gone, so is the tree.
            current.tasks.abort_all();
            current.inherited.iter().for_each(|process| process.kill());
        }
        if !current.wire_open {
            self.at_once.push_back((generation, Event::Gone(None)));
        }
    }
}
