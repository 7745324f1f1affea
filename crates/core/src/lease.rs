//! Who owns a line among several processes: a lease in a directory that all of them reach.
//!
//! A line with a memory (a stdio server, a session) must live in one process of a fleet at a time. The directory holds one entry for
//! it, which changes only by compare-and-swap. Whoever holds the entry writes it anew every few seconds; whoever wants it waits until
//! it has stood still for longer than any holder acts on it.
//!
//! Two trees of one line never live at once, because
//!
//! - a holder counts its lease from *before* it sent what was acknowledged, and its processes are killed a while before the end of
//!   that, by something that does not depend on it (a reaper's timer); after that it never renews ([`Standing::Sealed`]);
//! - a successor takes what it has *itself* seen unchanged for longer than a lease, by its own clock, and only if it is still
//!   unchanged then. That the directory has nothing says nothing: it may have lost it, or thrown it away by a clock that was set.
//!   So an entry that is not there is first written as [`Held::Unclear`], and then waited for like any other.
//!
//! Nothing here depends on the time of day, on messages that arrive, or on their order: what is lost costs time, never the rule.
//! [`Lease`] is told what was seen and what time it is, and says what to ask next.

use core::time::Duration;

use crate::Instant;

/// A process of the fleet. No two are ever the same, also not one that was started again.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Node(pub u64);

/// The directory's number of a change. No two changes of a line ever have the same, also if the directory lost all it had in
/// between: one that begins anew has to begin where it never was.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Revision(pub u64);

/// One ownership, from its claim to its end. What is meant for one is refused by every other, also by another of the same node.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Fence {
    /// Whose.
    pub node: Node,
    /// Which of its claims.
    pub claim: u64,
}

/// What the directory holds of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Who has it.
    pub held: Held,
    /// How long whoever wrote it holds it: nodes should agree on that, and while they are told otherwise one by one they do not.
    pub lease: Duration,
    /// When that was written, by the writer's time of day, in milliseconds since 1970: for people, and for nothing else.
    pub written: u64,
}

/// Who has a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Held {
    /// This one; the number counts its renewals.
    By(Fence, u32),
    /// Nobody: its holder let go of it, and nothing of it runs.
    Free,
    /// Nobody knows: the directory had nothing.
    Unclear,
}

/// What time it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Now {
    /// By a clock that nobody sets and that goes on while the machine sleeps.
    pub boot: Instant,
    /// The time of day, in milliseconds since 1970: only to be shown.
    pub wall: u64,
}

/// How long things last.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Terms {
    /// A lease, from before it was asked for.
    pub lease: Duration,
    /// Between two renewals.
    pub renew: Duration,
    /// So long before the end of its lease a holder is sealed, and its processes are killed.
    pub margin: Duration,
    /// So much longer than a lease an entry must have stood still.
    pub patience: Duration,
    /// How long the directory may take to answer.
    pub answer: Duration,
    /// Between two asks where the last one led to nothing.
    pub pause: Duration,
}

impl Terms {
    /// So long an entry must have stood still: longer than its writer acts on it, also if that one has another lease than this node.
    fn stands_still(&self, entry: &Entry) -> Duration {
        self.lease.max(entry.lease) + self.patience
    }
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(20),
            renew: Duration::from_secs(5),
            margin: Duration::from_secs(4),
            patience: Duration::from_secs(2),
            answer: Duration::from_secs(3),
            pause: Duration::from_millis(250),
        }
    }
}

/// What is asked of the directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ask {
    /// What there is.
    Look,
    /// That this be there, if what is there has this revision; `None`: if nothing is there.
    Put {
        /// What has to be there.
        expected: Option<Revision>,
        /// What is to be there.
        entry: Entry,
    },
}

/// What the directory says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// This is there.
    Seen(Option<(Revision, Entry)>),
    /// It was put there.
    Put(Revision),
    /// Something else was there.
    Conflict,
}

/// Where a line is, for this node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Here, until then.
    Owner {
        /// What its calls must carry.
        fence: Fence,
        /// When its processes are killed unless this is told to their reapers anew.
        until: Instant,
    },
    /// It was here: nothing more runs, and what is left of it has to go ([`Lease::cleared`]).
    Sealed {
        /// What it was.
        fence: Fence,
    },
    /// With another.
    Elsewhere {
        /// What its calls must carry.
        fence: Fence,
    },
    /// Nobody has it, as far as is known.
    Nobody,
}

/// One line's lease, as one node sees it.
#[derive(Clone, Debug)]
pub struct Lease {
    node: Node,
    terms: Terms,
    wanted: bool,
    /// Nobody but this node knows the line's name: what is not there was never there.
    minted: bool,
    state: State,
    /// How many claims were made.
    claims: u64,
    /// What was asked last, if it may still be answered.
    open: Option<Open>,
    /// How many asks there were.
    asks: u64,
    /// What is there is not known: something was asked and not answered, or found something else.
    unsure: bool,
    /// Nothing is asked before.
    not_before: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    number: u64,
    sent: Instant,
    ask: Ask,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Somebody has it, or nobody.
    Watching {
        /// What was seen last, and since when it is that.
        seen: Option<(Option<(Revision, Entry)>, Instant)>,
        looked: Instant,
        /// The last claim, and when it was sent: that it succeeded may be heard late.
        claimed: Option<(u64, Instant)>,
    },
    Held(Holding),
    /// Let go of, by choice or because it was too late; nothing is renewed any more.
    Sealed {
        holding: Holding,
        cleared: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Holding {
    claim: u64,
    revision: Revision,
    /// When the last of what is known to have arrived was sent.
    from: Instant,
    /// When the last renewal was sent.
    renewed: Instant,
    beat: u32,
    /// When each of the last renewals was sent, by its number: that it arrived may be heard late.
    sent: [Instant; REMEMBERED],
    /// The entry is another's, or gone: there is nothing to renew, or to let go of.
    lost: bool,
}

/// More renewals than are sent in a lease are never waited for.
const REMEMBERED: usize = 16;

impl Lease {
    /// Of a line that others may know.
    pub const fn new(node: Node, terms: Terms) -> Self {
        Self {
            node,
            terms,
            wanted: false,
            minted: false,
            state: State::UNKNOWN,
            claims: 0,
            open: None,
            asks: 0,
            unsure: false,
            not_before: Instant::ORIGIN,
        }
    }

    /// Of a line whose name this node has just made up: nobody can have had it.
    pub const fn minted(node: Node, terms: Terms) -> Self {
        Self { minted: true, ..Self::new(node, terms) }
    }

    /// Forgets all that was seen and asked for, but no claim: whoever follows the lease lost its way. What it had is waited for like
    /// any other's.
    pub const fn forget(&mut self) {
        self.state = State::UNKNOWN;
        self.minted = false;
        self.open = None;
        self.unsure = false;
    }

    /// Whether this node should have the line. One that should not, and does, is sealed.
    pub fn want(&mut self, wanted: bool) {
        self.wanted = wanted;
        if !wanted {
            self.seal();
        }
    }

    /// Lets go: nothing is renewed any more.
    pub fn seal(&mut self) {
        if let State::Held(holding) = self.state {
            self.state = State::Sealed { holding, cleared: false };
        }
    }

    /// Nothing of a sealed line runs any more: others may have it.
    pub fn cleared(&mut self) {
        match &mut self.state {
            State::Sealed { holding, .. } if holding.lost => self.state = State::UNKNOWN,
            State::Sealed { cleared, .. } => *cleared = true,
            State::Watching { .. } | State::Held(_) => {}
        }
    }

    /// Where the line is.
    pub fn standing(&mut self, now: Now) -> Standing {
        self.expire(now);
        let fence = |claim| Fence { node: self.node, claim };
        match &self.state {
            State::Held(holding) => {
                Standing::Owner { fence: fence(holding.claim), until: self.until(holding) }
            }
            State::Sealed { holding, .. } => Standing::Sealed { fence: fence(holding.claim) },
            State::Watching {
                seen: Some((Some((_, Entry { held: Held::By(fence, _), .. })), _)), ..
            } => Standing::Elsewhere { fence: *fence },
            State::Watching { .. } => Standing::Nobody,
        }
    }

    /// Whether what carries this fence may run here.
    pub fn accepts(&mut self, now: Now, fence: Fence) -> bool {
        matches!(self.standing(now), Standing::Owner { fence: ours, .. } if ours == fence)
    }

    /// When to [poll](Self::poll) again, at the latest, if nothing is heard until then. `None`: nothing is due.
    pub fn wake_at(&self) -> Option<Instant> {
        if let Some(open) = self.open {
            let answered = open.sent + self.terms.answer;
            return Some(match &self.state {
                State::Held(holding) => answered.min(self.until(holding)),
                State::Watching { .. } | State::Sealed { .. } => answered,
            });
        }
        if self.unsure {
            return Some(self.not_before);
        }
        match &self.state {
            State::Held(holding) if holding.lost => Some(self.until(holding)),
            State::Held(holding) => {
                Some((holding.renewed + self.terms.renew).max(self.not_before).min(self.until(holding)))
            }
            State::Watching { seen: None, .. } => Some(self.not_before),
            State::Watching { seen: Some((there, since)), looked, .. } if self.wanted => {
                let due = match there {
                    None | Some((_, Entry { held: Held::Free, .. })) => self.not_before,
                    Some((_, entry)) => (*looked + self.terms.renew).min(*since + self.stands_still(entry)),
                };
                Some(due.max(self.not_before))
            }
            State::Sealed { holding, cleared: true } if !holding.lost => Some(self.not_before),
            State::Watching { .. } | State::Sealed { .. } => None,
        }
    }

    /// What to ask now, if anything, and the number under which it is answered. At most one ask is open.
    pub fn poll(&mut self, now: Now) -> Option<(u64, Ask)> {
        self.expire(now);
        if let Some(open) = self.open {
            if now.boot.since(open.sent) < self.terms.answer {
                return None;
            }
            // Whether it arrived, or still will, nobody knows.
            self.open = None;
            self.unsure = true;
        }
        if now.boot < self.not_before {
            return None;
        }
        let ask = if self.unsure { Some(Ask::Look) } else { self.due(now) }?;
        self.asks += 1;
        self.not_before = now.boot + self.terms.pause;
        if let (State::Watching { looked, .. }, Ask::Look) = (&mut self.state, ask) {
            *looked = now.boot;
        }
        self.open = Some(Open { number: self.asks, sent: now.boot, ask });
        Some((self.asks, ask))
    }

    /// What is asked if all is as it seems.
    fn due(&mut self, now: Now) -> Option<Ask> {
        let (node, terms) = (self.node, self.terms);
        let renew = terms.renew;
        let entry = |held| Entry { held, lease: terms.lease, written: now.wall };
        match &mut self.state {
            State::Watching { seen: None, .. } => Some(Ask::Look),
            State::Watching { seen: Some((there, since)), looked, claimed } => {
                let expected = there.map(|(revision, _)| revision);
                let may = match there {
                    Some((_, Entry { held: Held::Free, .. })) => true,
                    Some((_, entry)) => now.boot.since(*since) >= terms.stands_still(entry),
                    None if self.minted => true,
                    // Others wait for it from now on, as this node does.
                    None if self.wanted => {
                        return Some(Ask::Put { expected: None, entry: entry(Held::Unclear) });
                    }
                    None => false,
                };
                if self.wanted && may {
                    self.claims += 1;
                    // From now on others may know of it.
                    self.minted = false;
                    *claimed = Some((self.claims, now.boot));
                    let fence = Fence { node, claim: self.claims };
                    return Some(Ask::Put { expected, entry: entry(Held::By(fence, 0)) });
                }
                (self.wanted && now.boot.since(*looked) >= renew).then_some(Ask::Look)
            }
            State::Held(holding) => {
                let due = !holding.lost && now.boot.since(holding.renewed) >= renew;
                due.then(|| {
                    holding.renewed = now.boot;
                    holding.beat += 1;
                    holding.sent[holding.beat as usize % REMEMBERED] = now.boot;
                    let fence = Fence { node, claim: holding.claim };
                    let expected = Some(holding.revision);
                    Ask::Put { expected, entry: entry(Held::By(fence, holding.beat)) }
                })
            }
            State::Sealed { holding, cleared } => {
                let expected = Some(holding.revision);
                (*cleared && !holding.lost).then(|| Ask::Put { expected, entry: entry(Held::Free) })
            }
        }
    }

    /// What the directory said to the ask of this number. What it says to any other comes too late to be believed.
    pub fn answered(&mut self, now: Now, number: u64, answer: Answer) {
        // What it says of a renewal counts only if it comes in time: the reapers knew nothing of it.
        self.expire(now);
        let Some(open) = self.open.take_if(|open| open.number == number) else { return };
        match answer {
            Answer::Seen(there) => {
                self.unsure = false;
                self.see(now, there);
            }
            Answer::Conflict => self.unsure = true,
            Answer::Put(revision) => {
                self.not_before = now.boot;
                self.put(now, open, revision);
            }
        }
    }

    /// The directory did not answer, and will not: whether it did what it was asked is not known.
    pub fn failed(&mut self, number: u64) {
        if self.open.take_if(|open| open.number == number).is_some() {
            self.unsure = true;
        }
    }

    fn put(&mut self, now: Now, open: Open, revision: Revision) {
        let Ask::Put { entry, .. } = open.ask else { return };
        match &mut self.state {
            State::Watching { .. } => self.see(now, Some((revision, entry))),
            State::Held(holding) | State::Sealed { holding, cleared: false } => {
                holding.heard_of(self.node, revision, &entry);
            }
            State::Sealed { .. } if entry.held == Held::Free => {
                self.state = State::Watching {
                    seen: Some((Some((revision, entry)), now.boot)),
                    looked: now.boot,
                    claimed: None,
                };
            }
            State::Sealed { holding, .. } => holding.heard_of(self.node, revision, &entry),
        }
    }

    /// The directory told of a change. News that are older than what is known come late, or the directory began anew: it is asked.
    pub fn told(&mut self, now: Now, there: Option<(Revision, Entry)>) {
        if let State::Watching { seen: Some((Some((known, _)), _)), .. } = &self.state
            && there.is_some_and(|(revision, _)| revision < *known)
        {
            self.unsure = true;
        } else {
            self.see(now, there);
        }
    }

    /// Changes may have been missed: what is there is asked again, if it is another's.
    pub fn missed(&mut self) {
        self.unsure |= matches!(self.state, State::Watching { .. });
    }

    /// What is there.
    pub fn see(&mut self, now: Now, there: Option<(Revision, Entry)>) {
        self.expire(now);
        match &mut self.state {
            State::Watching { seen, claimed, .. } => {
                if seen.is_none_or(|(before, _)| before != there) {
                    *seen = Some((there, now.boot));
                }
                if let Some((revision, Entry { held: Held::By(fence, beat), .. })) = there
                    && let Some((claim, sent)) = *claimed
                    && fence == (Fence { node: self.node, claim })
                    && beat == 0
                {
                    self.state = State::Held(Holding {
                        claim,
                        revision,
                        from: sent,
                        renewed: sent,
                        beat: 0,
                        sent: [sent; REMEMBERED],
                        lost: false,
                    });
                    self.expire(now);
                    if !self.wanted {
                        self.seal();
                    }
                }
            }
            State::Held(holding) => {
                if holding.saw(self.node, there) == Saw::Another {
                    self.state = State::Sealed { holding: *holding, cleared: false };
                }
            }
            State::Sealed { holding, cleared } => {
                // An old sight is believed too: at worst others wait for what this node could have let go of.
                let own = matches!(there, Some((_, Entry { held: Held::By(fence, _), .. }))
                    if fence == (Fence { node: self.node, claim: holding.claim }));
                holding.saw(self.node, there);
                holding.lost |= !own;
                if holding.lost && *cleared {
                    self.state = State::UNKNOWN;
                }
            }
        }
    }

    /// A holder whose time is over is sealed, whatever it may hear later.
    fn expire(&mut self, now: Now) {
        if let State::Held(holding) = &self.state
            && now.boot >= self.until(holding)
        {
            self.seal();
        }
    }

    fn until(&self, holding: &Holding) -> Instant {
        holding.from + self.terms.lease.saturating_sub(self.terms.margin)
    }

    fn stands_still(&self, entry: &Entry) -> Duration {
        self.terms.stands_still(entry)
    }
}

impl State {
    const UNKNOWN: Self = Self::Watching { seen: None, looked: Instant::ORIGIN, claimed: None };
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Saw {
    Own,
    Another,
    Nothing,
}

impl Holding {
    /// Something of ours is there: it counts from when it was sent.
    fn heard_of(&mut self, node: Node, revision: Revision, entry: &Entry) {
        if let Held::By(fence, beat) = entry.held
            && fence == (Fence { node, claim: self.claim })
            && u64::from(self.beat.saturating_sub(beat)) < REMEMBERED as u64
        {
            self.revision = self.revision.max(revision);
            self.from = self.from.max(self.sent[beat as usize % REMEMBERED]);
        }
    }

    fn saw(&mut self, node: Node, there: Option<(Revision, Entry)>) -> Saw {
        let ours = Fence { node, claim: self.claim };
        match there {
            Some((revision, entry)) if matches!(entry.held, Held::By(fence, _) if fence == ours) => {
                self.heard_of(node, revision, &entry);
                Saw::Own
            }
            // An old sight, from before the claim.
            Some((revision, _)) if revision < self.revision => Saw::Own,
            Some(_) => {
                self.lost = true;
                Saw::Another
            }
            // The directory lost it: there is nothing to renew, and until the end of the lease nobody else acts.
            None => {
                self.lost = true;
                Saw::Nothing
            }
        }
    }
}

#[cfg(test)]
mod tests;
