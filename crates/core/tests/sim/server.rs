//! A server process: what it reads, what it runs, what it answers, how it ends.

use std::collections::VecDeque;
use std::time::Duration;

use linetender_core::{Class, Extent};

use crate::rng::Rng;

/// One try of one call: what a JSON-RPC id stands for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Try {
    pub call: usize,
    pub number: u32,
}

/// What a generation's server will do.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// Never says a word.
    Mute,
    /// Ends before the handshake is done.
    StillBorn(Class),
    /// Serves; ends after so long, or after so many calls, or never, for this reason.
    Serves { ends_after: Option<Duration>, ends_on_call: usize, class: Class },
    /// Serves, then neither reads nor answers any more, for so long.
    Hangs { after: Duration, for_: Duration },
}

/// How the world treats its servers.
#[derive(Clone, Copy, Debug)]
pub enum Mood {
    Kind,
    Crashy,
    Flapping,
    Hanging,
    Forgetful,
    Misconfigured,
    Unauthorized,
    Busy,
    Mixed,
}

impl Mood {
    pub const ALL: [Self; 9] = [
        Self::Kind,
        Self::Crashy,
        Self::Flapping,
        Self::Hanging,
        Self::Forgetful,
        Self::Misconfigured,
        Self::Unauthorized,
        Self::Busy,
        Self::Mixed,
    ];

    pub fn fate(self, rng: &mut Rng) -> Fate {
        let ends_on_call = usize::try_from(1 + rng.below(20)).unwrap();
        let serves = |ends_after, class| Fate::Serves { ends_after: Some(ends_after), ends_on_call, class };
        match self {
            Self::Kind => Fate::Serves { ends_after: None, ends_on_call: usize::MAX, class: Class::Exit },
            Self::Crashy => serves(rng.millis(50, 20_000), rng.pick(&[Class::Exit, Class::Transport])),
            Self::Flapping => serves(rng.millis(1, 500), rng.pick(&[Class::Exit, Class::Protocol])),
            // A quarter of them for longer than it takes to replace one that was given up.
            Self::Hanging => {
                let most = if rng.percent(25) { 500_000 } else { 90_000 };
                Fate::Hangs { after: rng.millis(1, 20_000), for_: rng.millis(100, most) }
            }
            Self::Forgetful => serves(rng.millis(1, 5_000), Class::SessionLost),
            Self::Misconfigured if rng.percent(70) => Fate::StillBorn(Class::Config),
            Self::Unauthorized if rng.percent(70) => Fate::StillBorn(Class::Auth),
            Self::Busy if rng.percent(70) => Fate::StillBorn(Class::Overload),
            Self::Misconfigured | Self::Unauthorized | Self::Busy => {
                serves(rng.millis(1, 20_000), Class::Exit)
            }
            Self::Mixed => match rng.below(8) {
                0 => Fate::Mute,
                1 => {
                    Fate::StillBorn(rng.pick(&[Class::Handshake, Class::EraProbe, Class::Local, Class::Exit]))
                }
                _ => rng.pick(&Self::ALL[..8]).fate(rng),
            },
        }
    }
}

/// A generation's process and its two pipes.
#[derive(Debug)]
pub struct Server {
    pub fate: Fate,
    /// Whether it can run things and answer.
    pub alive: bool,
    /// Whether anybody reads its input: it, or a child that outlived it.
    pub read: bool,
    pub hung: bool,
    /// What its tool list says of tools that only their annotations make safe.
    pub declares_safe: bool,
    /// Frames given to the pipe, and how much of it was accepted and consumed.
    frames: Vec<(Try, Extent)>,
    pub accepted: u64,
    pub consumed: u64,
    pub ran: usize,
    /// Answers on their way to us.
    pub answers: VecDeque<Try>,
}

impl Server {
    pub fn new(fate: Fate, declares_safe: bool) -> Self {
        Self {
            fate,
            alive: true,
            read: true,
            hung: false,
            declares_safe,
            frames: Vec::new(),
            accepted: 0,
            consumed: 0,
            ran: 0,
            answers: VecDeque::new(),
        }
    }

    /// Where the next frame of this length would lie.
    pub fn append(&mut self, a_try: Try, len: u32) -> Extent {
        let start = self.frames.last().map_or(0, |(_, extent)| extent.end() + 1);
        let extent = Extent { start, len };
        self.frames.push((a_try, extent));
        extent
    }

    pub fn room(&self, capacity: u64) -> u64 {
        capacity.saturating_sub(self.accepted - self.consumed)
    }

    /// Reads some of what lies in the pipe, and says what that made it run. Complete JSON counts, newline or not.
    pub fn consume(&mut self, bytes: u64) -> Vec<Try> {
        self.consumed = (self.consumed + bytes).min(self.accepted);
        let mut run = Vec::new();
        while let Some((a_try, extent)) = self.frames.get(self.ran)
            && extent.end() <= self.consumed
        {
            run.push(*a_try);
            self.ran += 1;
        }
        run
    }
}
