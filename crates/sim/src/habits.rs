//! How a server and the machine below it behave in one world, until everything is repaired.

use crate::rng::Rng;

/// Which eras a server speaks, and what it does when it is asked in another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Speaks {
    Modern,
    Legacy(OnDiscover),
}

/// What old servers do when they are asked for their era.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum OnDiscover {
    Refuses,
    SaysNothing,
    Exits,
    AnswersNothing,
}

/// Habits. Rates are per cent of processes or per mille of calls; times are milliseconds.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "habits are independent of each other")]
pub(crate) struct Habits {
    pub(crate) speaks: Speaks,
    /// How much a pipe holds.
    pub(crate) pipe: usize,
    /// How late the reaper is, at most, and how late we are woken to read.
    pub(crate) busy: u64,
    pub(crate) late: u64,
    pub(crate) start: (u64, u64),
    pub(crate) work: (u64, u64),
    /// Does one thing at a time, and reads nothing meanwhile.
    pub(crate) single: bool,
    /// Runs a message that is whole before its line is.
    pub(crate) eager: bool,
    /// Per cent of reads that take only a part of what is there.
    pub(crate) nibbles: u64,
    pub(crate) crash: Crashes,
    /// Per mille of calls that are never answered.
    pub(crate) mute: u64,
    /// Per mille of answers that are odd.
    pub(crate) odd: u64,
    /// Per mille of calls that make it say something besides.
    pub(crate) chatty: u64,
    /// Per cent of processes that cannot be started.
    pub(crate) no_start: u64,
    /// Per cent of processes that hang before the handshake.
    pub(crate) hang: u64,
    /// Per cent of trees that take their time to die.
    pub(crate) stuck: u64,
    /// Per cent of processes with a grandchild on their pipes, which outlives them for a moment.
    pub(crate) survivor: u64,
    /// Whether it ever said that its lists changed.
    pub(crate) chats: bool,
    /// Ignores end of file and TERM.
    pub(crate) stubborn: bool,
    /// Uses a processor, whatever it does.
    pub(crate) works: bool,
    /// Never answers a question about its lists.
    pub(crate) hides_lists: bool,
}

/// Per mille of calls at which a server dies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Crashes {
    /// While it reads.
    pub(crate) reading: u64,
    /// After it read the call, before it ran it.
    pub(crate) before: u64,
    /// After it ran the call, before it answered.
    pub(crate) after: u64,
    /// In the middle of its answer.
    pub(crate) saying: u64,
    /// With its answer in the pipe.
    pub(crate) answered: u64,
}

impl Habits {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let on_discover =
            [OnDiscover::Refuses, OnDiscover::SaysNothing, OnDiscover::Exits, OnDiscover::AnswersNothing];
        let speaks = if rng.percent(50) { Speaks::Modern } else { Speaks::Legacy(rng.pick(&on_discover)) };
        let rate =
            |rng: &mut Rng, often: u64, most: u64| if rng.percent(often) { rng.range(1, most) } else { 0 };
        let chatty = rate(rng, 40, 50);
        Self {
            speaks,
            pipe: rng.pick(&[512, 4096, 65_536, 65_536]),
            busy: rng.pick(&[0, 0, 2, 8]),
            late: rng.pick(&[0, 2, 8, 60]),
            start: rng.pick(&[(1, 6), (5, 40), (400, 1000), (2000, 6000)]),
            work: rng.pick(&[(0, 3), (1, 20), (10, 200), (500, 3000)]),
            single: rng.percent(30),
            eager: rng.percent(30),
            nibbles: rng.pick(&[0, 10, 60]),
            crash: Crashes {
                reading: rate(rng, 40, 20),
                before: rate(rng, 40, 20),
                after: rate(rng, 40, 20),
                saying: rate(rng, 30, 15),
                answered: rate(rng, 40, 20),
            },
            mute: rate(rng, 25, 10),
            odd: rate(rng, 25, 30),
            chatty,
            chats: chatty > 0,
            no_start: rate(rng, 15, 40),
            hang: rate(rng, 10, 30),
            stuck: rate(rng, 15, 40),
            survivor: rate(rng, 30, 80),
            stubborn: rng.percent(15),
            works: false,
            hides_lists: false,
        }
    }

    /// A server that does nothing wrong.
    #[cfg(test)]
    pub(crate) fn good() -> Self {
        let mut habits = Self::new(&mut Rng::new(0));
        habits.heal();
        Self {
            speaks: Speaks::Legacy(OnDiscover::Refuses),
            pipe: 65_536,
            single: false,
            eager: false,
            ..habits
        }
    }

    /// The same server, as it was meant to be.
    pub(crate) fn heal(&mut self) {
        *self = Self {
            busy: 0,
            late: 0,
            start: (1, 20),
            work: (0, 5),
            crash: Crashes::default(),
            mute: 0,
            odd: 0,
            chatty: 0,
            no_start: 0,
            hang: 0,
            stuck: 0,
            survivor: 0,
            works: false,
            hides_lists: false,
            ..self.clone()
        };
    }
}
