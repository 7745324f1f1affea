//! One world: a line, some nodes that want it, a directory, callers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use linetender_core::Instant;
use linetender_core::lease::{Answer, Ask, Entry, Fence, Held, Lease, Node, Now, Revision, Standing, Terms};

use crate::rng::Rng;

/// How long a world lasts, in its own milliseconds.
const LASTS: u64 = 600_000;

/// The last part of it is quiet: whoever wants the line must have it by then.
const QUIET: u64 = 120_000;

/// How often what happened.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) steps: u64,
    trees: u64,
    takeovers: u64,
    reaped: u64,
    moves: u64,
    calls: u64,
    refused: u64,
    lost_answers: u64,
    forgot: u64,
    slept: u64,
    panics: u64,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            steps,
            trees,
            takeovers,
            reaped,
            moves,
            calls,
            refused,
            lost_answers,
            forgot,
            slept,
            panics,
        } = other;
        self.steps += steps;
        self.trees += trees;
        self.takeovers += takeovers;
        self.reaped += reaped;
        self.moves += moves;
        self.calls += calls;
        self.refused += refused;
        self.lost_answers += lost_answers;
        self.forgot += forgot;
        self.slept += slept;
        self.panics += panics;
    }

    pub(crate) fn happened(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("trees", self.trees),
            ("takeovers", self.takeovers),
            ("trees killed by their reaper", self.reaped),
            ("moves", self.moves),
            ("calls", self.calls),
            ("calls with an old fence", self.refused),
            ("answers lost", self.lost_answers),
            ("entries forgotten", self.forgot),
            ("sleeps", self.slept),
            ("panics", self.panics),
        ]
    }
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Event {
    /// A node looks at its clock.
    Tick(usize, u64),
    /// An ask reaches the directory.
    Asked(usize, u64, u64),
    /// Its answer reaches the node.
    Answered(usize, u64, u64),
    /// The directory tells a node of a change.
    Told(usize, u64),
    /// What a sealed node had running is gone.
    Cleared(usize, u64),
    /// A call reaches a node.
    Called(usize, u64),
    /// Somebody has slept enough.
    Wakes,
    Trouble,
    Caller,
}

/// What runs for a node, and what its reaper knows.
#[derive(Clone, Copy, Debug)]
struct Tree {
    fence: Fence,
    until: Instant,
}

struct Member {
    /// Numbers its lives: what was meant for one that ended reaches nobody.
    life: u64,
    lease: Lease,
    tree: Option<Tree>,
    clearing: bool,
    /// Its clock: how far ahead, and how fast in parts of 100,000.
    ahead: u64,
    rate: u64,
    wall: u64,
    sleeps_until: u64,
    woke: u64,
    /// What arrived while it slept.
    waiting: Vec<Event>,
    /// When it looks at its clock next.
    ticks_at: Option<u64>,
}

pub(crate) struct World {
    rng: Rng,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    members: Vec<Member>,
    asks: BTreeMap<u64, Ask>,
    answers: BTreeMap<u64, Answer>,
    told: BTreeMap<u64, Option<(Revision, Entry)>>,
    calls: BTreeMap<u64, Fence>,
    /// The directory.
    entry: Option<(Revision, Entry)>,
    sequence: u64,
    away_from: u64,
    away_until: u64,
    /// Whatever was there lately: what callers may believe.
    history: Vec<Fence>,
    started: BTreeSet<Fence>,
    lives: u64,
    /// Whether nodes have different leases.
    disagree: bool,
    seen: Seen,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed.wrapping_mul(7_919) + 1);
        for _ in 0..20 {
            rng.below(2);
        }
        let disagree = seed % 4 == 3;
        let mut world = Self {
            disagree,
            now: 0,
            events: BinaryHeap::new(),
            count: 0,
            members: Vec::new(),
            asks: BTreeMap::new(),
            answers: BTreeMap::new(),
            told: BTreeMap::new(),
            calls: BTreeMap::new(),
            entry: None,
            sequence: 0,
            away_from: 0,
            away_until: 0,
            history: Vec::new(),
            started: BTreeSet::new(),
            lives: 0,
            seen: Seen::default(),
            rng,
        };
        for _ in 0..2 + world.rng.below(3) {
            let member = world.born();
            world.members.push(member);
        }
        for at in 0..world.members.len() {
            let life = world.members[at].life;
            world.after(0, Event::Tick(at, life));
        }
        world.after(1_000, Event::Trouble);
        world.after(500, Event::Caller);
        world
    }

    fn born(&mut self) -> Member {
        self.lives += 1;
        let terms = self.terms();
        let mut lease = Lease::new(Node(self.lives), terms);
        lease.want(true);
        Member {
            life: self.lives,
            lease,
            tree: None,
            clearing: false,
            ahead: self.rng.below(10_000_000),
            // Two percent either way is more than any clock is wrong.
            rate: 98_000 + self.rng.below(4_000),
            wall: 1_700_000_000_000 + self.rng.below(10_000_000),
            sleeps_until: 0,
            woke: 0,
            waiting: Vec::new(),
            ticks_at: None,
        }
    }

    /// Everybody's; in some worlds nodes were told different ones.
    fn terms(&mut self) -> Terms {
        if !self.disagree {
            return Terms::default();
        }
        let lease: u64 = self.rng.pick(&[5_000, 20_000, 60_000]);
        let part = |parts: u64| Duration::from_millis(lease * parts / 20);
        let (renew, margin, patience, answer) = (part(5), part(4), part(2), part(3));
        Terms { lease: part(20), renew, margin, patience, answer, ..Terms::default() }
    }

    fn after(&mut self, millis: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((self.now + millis, self.count, event)));
    }

    fn is_quiet(&self) -> bool {
        self.now >= LASTS - QUIET
    }

    fn clock(&self, at: usize) -> Now {
        let member = &self.members[at];
        let millis = member.ahead + self.now * member.rate / 100_000;
        let boot = Instant::from_nanos(millis * 1_000_000);
        Now { boot, wall: member.wall + self.now }
    }

    /// How long a message takes; `None` if it is lost.
    fn travels(&mut self) -> Option<u64> {
        if self.is_quiet() {
            return Some(1 + self.rng.below(20));
        }
        match self.rng.below(100) {
            0..5 => None,
            5..10 => Some(1_000 + self.rng.below(30_000)),
            10..20 => Some(100 + self.rng.below(4_000)),
            _ => Some(self.rng.below(30)),
        }
    }

    pub(crate) fn run(mut self) -> Result<Seen, String> {
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at >= LASTS {
                break;
            }
            // Reapers act at their time, whatever else does.
            self.now = at;
            self.reap();
            self.seen.steps += 1;
            self.step(event)?;
            self.laws()?;
        }
        let owners = (0..self.members.len()).filter(|at| self.members[*at].tree.is_some()).count();
        if owners != 1 {
            let leases: Vec<_> = self.members.iter().map(|member| &member.lease).collect();
            return Err(format!("{owners} nodes have the line after two quiet minutes: {leases:#?}"));
        }
        Ok(self.seen)
    }

    fn step(&mut self, event: Event) -> Result<(), String> {
        let (Event::Tick(at, life)
        | Event::Answered(at, life, _)
        | Event::Told(at, life)
        | Event::Cleared(at, life)
        | Event::Called(at, life)) = event
        else {
            match event {
                Event::Asked(at, life, number) => self.asked(at, life, number),
                Event::Trouble => self.trouble(),
                Event::Caller => self.caller(),
                _ => {}
            }
            return Ok(());
        };
        // A call is addressed to a node, and the others to one life of it.
        if self.members[at].life != life && !matches!(event, Event::Called(..)) {
            return Ok(());
        }
        if self.members[at].sleeps_until > self.now {
            self.members[at].waiting.push(event);
            return Ok(());
        }
        self.handle(at, event)
    }

    fn handle(&mut self, at: usize, event: Event) -> Result<(), String> {
        let now = self.clock(at);
        match event {
            Event::Tick(..) if self.members[at].ticks_at.is_some_and(|ticks| ticks <= self.now) => {
                self.members[at].ticks_at = None;
            }
            Event::Answered(_, life, number) => {
                if let Some(answer) = self.answers.get(&number).copied() {
                    self.members[at].lease.answered(now, number % ASKS, answer);
                }
                debug_assert_eq!(self.members[at].life, life);
            }
            Event::Told(_, _) => {
                let told = self.told.values().next_back().copied().flatten();
                let old = if !self.is_quiet() && self.rng.percent(20) {
                    self.told.values().next().copied().flatten()
                } else {
                    told
                };
                self.members[at].lease.told(now, old);
            }
            Event::Cleared(..) => {
                let member = &mut self.members[at];
                member.tree = None;
                member.lease.cleared();
            }
            Event::Called(_, call) => {
                let fence = self.calls[&call];
                let accepts = self.members[at].lease.accepts(now, fence);
                match self.members[at].tree {
                    Some(tree) if accepts => {
                        self.seen.calls += 1;
                        if tree.fence != fence {
                            return Err(format!("a call for {fence:?} ran in {:?}", tree.fence));
                        }
                    }
                    _ => self.seen.refused += 1,
                }
            }
            _ => {}
        }
        self.act(at)
    }

    /// What a node does whenever it is awake: it asks, and sees to its tree.
    fn act(&mut self, at: usize) -> Result<(), String> {
        let now = self.clock(at);
        let life = self.members[at].life;
        if let Some((number, ask)) = self.members[at].lease.poll(now) {
            let number = life * ASKS + number;
            self.asks.insert(number, ask);
            if let Some(millis) = self.travels() {
                self.after(millis, Event::Asked(at, life, number));
            }
            if self.rng.percent(3) {
                let late = self.rng.below(20_000);
                self.after(late, Event::Asked(at, life, number));
            }
            // The worst moment: the answer is there when it wakes.
            // One that has just woken is likely to sleep again.
            let often = if self.members[at].woke + 50 > self.now { 40 } else { 4 };
            if !self.is_quiet() && self.rng.percent(often) {
                self.sleep(at);
                // And the worst luck: when it wakes, there is nobody to ask.
                if self.rng.percent(30) {
                    self.away_until = self.members[at].sleeps_until + self.rng.below(30_000);
                    self.away_from = self.now + 2_000;
                }
            }
        }
        match self.members[at].lease.standing(now) {
            Standing::Owner { fence, until } => {
                let member = &mut self.members[at];
                member.clearing = false;
                if let Some(tree) = &mut member.tree {
                    if tree.fence != fence {
                        return Err(format!("{fence:?} keeps the processes of {:?} alive", tree.fence));
                    }
                    tree.until = until;
                } else {
                    member.tree = Some(Tree { fence, until });
                    if !self.started.insert(fence) {
                        return Err(format!("{fence:?} began twice"));
                    }
                    self.seen.trees += 1;
                    self.seen.takeovers += u64::from(self.started.len() > 1);
                }
            }
            Standing::Sealed { .. } if !self.members[at].clearing => {
                self.members[at].clearing = true;
                let takes = if self.members[at].tree.is_some() { self.rng.below(6_000) } else { 0 };
                self.after(takes, Event::Cleared(at, life));
            }
            Standing::Sealed { .. } => {}
            Standing::Elsewhere { .. } | Standing::Nobody => self.members[at].clearing = false,
        }
        let wakes = self.members[at].lease.wake_at().map(|wakes| wakes.since(now.boot).as_millis());
        let wait = wakes.map_or(1_000, |millis| u64::try_from(millis).unwrap().min(1_000) + 1);
        let next = self.now + wait;
        if self.members[at].ticks_at.is_none_or(|ticks| next < ticks) {
            self.members[at].ticks_at = Some(next);
            self.after(next - self.now, Event::Tick(at, life));
        }
        Ok(())
    }

    fn asked(&mut self, at: usize, life: u64, number: u64) {
        if self.away_until > self.now && self.now >= self.away_from {
            return;
        }
        let answer = match self.asks[&number] {
            Ask::Look => Answer::Seen(self.entry),
            Ask::Put { expected, entry } if expected == self.entry.map(|(revision, _)| revision) => {
                self.sequence += 1;
                self.entry = Some((Revision(self.sequence), entry));
                if let Held::By(fence, _) = entry.held {
                    self.history.push(fence);
                }
                self.told.insert(self.count, self.entry);
                for at in 0..self.members.len() {
                    if let Some(millis) = self.travels() {
                        self.after(millis, Event::Told(at, self.members[at].life));
                    }
                }
                while self.told.len() > 8 {
                    self.told.pop_first();
                }
                Answer::Put(Revision(self.sequence))
            }
            Ask::Put { .. } => Answer::Conflict,
        };
        self.answers.entry(number).or_insert(answer);
        match self.travels() {
            Some(millis) => self.after(millis, Event::Answered(at, life, number)),
            None => self.seen.lost_answers += 1,
        }
    }

    fn caller(&mut self) {
        let next = self.rng.below(2_000);
        self.after(next, Event::Caller);
        let Some(fence) = self.history.last().copied() else { return };
        let old = self.rng.below(4);
        let fence = self.history.iter().rev().nth(usize::try_from(old).unwrap()).copied().unwrap_or(fence);
        let Some(at) = self.members.iter().position(|member| member.life == fence.node.0) else { return };
        let call = self.count;
        self.calls.insert(call, fence);
        if let Some(millis) = self.travels() {
            self.after(millis, Event::Called(at, call));
        }
    }

    fn trouble(&mut self) {
        let next = 1_000 + self.rng.below(20_000);
        self.after(next, Event::Trouble);
        if self.is_quiet() {
            for member in &mut self.members {
                member.lease.want(true);
            }
            return;
        }
        let at = usize::try_from(self.rng.below(self.members.len() as u64)).unwrap();
        match self.rng.below(9) {
            // It sleeps: everything that is meant for it waits, and its processes do not.
            0 | 1 => self.sleep(at),
            // It is killed, and another begins.
            2 => {
                self.members[at] = self.born();
                let life = self.members[at].life;
                self.after(0, Event::Tick(at, life));
            }
            // It is to let go of the line, and later to have it again.
            3 => {
                self.seen.moves += 1;
                self.members[at].lease.want(false);
                let other = (at + 1) % self.members.len();
                self.members[other].lease.want(true);
            }
            4 => self.members.iter_mut().for_each(|member| member.lease.want(true)),
            // The directory's clock is set: what it keeps for a while is gone. That nodes disagree on their leases as well is too much.
            5 if !self.disagree => {
                self.entry = None;
                self.seen.forgot += 1;
                // Or it lost everything, its numbers too: those that it gives now begin anywhere.
                if self.rng.percent(30) {
                    self.sequence = self.rng.below(1 << 50);
                }
            }
            6 => {
                self.away_from = self.now;
                self.away_until = self.now + self.rng.below(40_000);
            }
            // Its task panicked: what it knew is gone, and its processes are not.
            7 => {
                self.seen.panics += 1;
                self.members[at].lease.forget();
            }
            // A node's time of day is set.
            _ => {
                let hour = 3_600_000;
                self.members[at].wall = self.members[at].wall - hour + self.rng.below(2 * hour);
            }
        }
    }

    fn sleep(&mut self, at: usize) {
        // Often so that it wakes shortly before the end of its lease.
        let longest = self.rng.pick(&[12_000, 60_000]);
        let millis = 500 + self.rng.below(longest);
        self.seen.slept += 1;
        self.members[at].sleeps_until = self.now + millis;
        // What waited for it comes before it looks at its clock, or after.
        if self.rng.percent(50) {
            let life = self.members[at].life;
            self.after(millis, Event::Tick(at, life));
        }
        self.after(millis, Event::Wakes);
    }

    /// Kills what its deadline says.
    fn reap(&mut self) {
        for at in 0..self.members.len() {
            let now = self.clock(at);
            let member = &mut self.members[at];
            if member.tree.is_some_and(|tree| now.boot >= tree.until) {
                member.tree = None;
                self.seen.reaped += 1;
            }
            if member.sleeps_until != 0 && member.sleeps_until <= self.now {
                member.sleeps_until = 0;
                member.woke = self.now;
                for event in std::mem::take(&mut member.waiting) {
                    self.count += 1;
                    self.events.push(Reverse((self.now, self.count, event)));
                }
            }
        }
    }

    fn laws(&self) -> Result<(), String> {
        let alive: Vec<_> = self.members.iter().filter_map(|member| member.tree).collect();
        if alive.len() > 1 {
            return Err(format!("two trees live at {} ms: {alive:?}", self.now));
        }
        Ok(())
    }
}

/// Asks of one life have numbers below this.
const ASKS: u64 = 1 << 32;
