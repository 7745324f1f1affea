//! The faults, written down. They are cards of a deck: a seed shuffles it, and when it is used up it is shuffled again, so that a run
//! that is long enough has all of them.

use crate::dice::Dice;

/// What is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Act {
    /// A gateway is killed.
    KillGateway,
    /// A gateway is stopped, and goes on.
    StopGateway,
    /// A gateway is told to end, and started again when it has.
    EndGateway,
    /// Packets between a gateway and all of NATS are dropped, both ways.
    CutGateway,
    /// Those that the gateway sends.
    CutGatewayOut,
    /// Those that it is sent.
    CutGatewayIn,
    /// A gateway is cut off from everything: agents, servers, NATS.
    IsolateGateway,
    /// The NATS server that leads is cut off from the other two, and gateways still reach it.
    CutLeader,
    /// A NATS server is cut off from everything.
    IsolateEngine,
    /// The NATS server that leads is killed.
    KillLeader,
    /// The NATS server that leads is stopped, and goes on.
    StopLeader,
    /// Two of three NATS servers are killed: nothing can be written.
    KillQuorum,
    /// A gateway's clock is stepped ahead by a day.
    ClockAhead,
    /// A gateway's clock is stepped back by a day.
    ClockBack,
    /// Processes of stateful servers are killed.
    KillServers,
}

/// How long it lasts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lasts {
    /// It is mended at once.
    Moment,
    /// Shorter than a lease.
    Short,
    /// Longer than a lease, and than anybody waits for one.
    Lease,
}

/// A card.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) name: &'static str,
    /// How many of it are in the deck.
    cards: usize,
    pub(super) act: Act,
    pub(super) lasts: Lasts,
    /// Whether lines of the gateway that it is done to have to be on another node soon.
    pub(super) takes_over: bool,
}

const fn row(name: &'static str, cards: usize, act: Act, lasts: Lasts, takes_over: bool) -> Fault {
    Fault { name, cards, act, lasts, takes_over }
}

/// The deck.
pub(super) const DECK: &[Fault] = &[
    row("gateway killed", 2, Act::KillGateway, Lasts::Lease, true),
    row("gateway killed, back at once", 1, Act::KillGateway, Lasts::Moment, true),
    row("gateway stopped for longer than a lease", 2, Act::StopGateway, Lasts::Lease, true),
    row("gateway told to end, started again", 1, Act::EndGateway, Lasts::Moment, true),
    row("gateway cut off from NATS", 1, Act::CutGateway, Lasts::Lease, true),
    row("gateway's packets to NATS dropped", 1, Act::CutGatewayOut, Lasts::Lease, true),
    row("NATS's packets to a gateway dropped", 1, Act::CutGatewayIn, Lasts::Lease, true),
    row("gateway cut off from everything", 1, Act::IsolateGateway, Lasts::Lease, true),
    row("gateway cut off from NATS for a short time", 1, Act::CutGateway, Lasts::Short, false),
    row("NATS leader cut off from the other two", 1, Act::CutLeader, Lasts::Lease, false),
    row("NATS server cut off from everything", 1, Act::IsolateEngine, Lasts::Lease, false),
    row("NATS leader killed", 2, Act::KillLeader, Lasts::Short, false),
    row("NATS leader stopped", 1, Act::StopLeader, Lasts::Short, false),
    row("two of three NATS servers killed", 1, Act::KillQuorum, Lasts::Lease, false),
    row("gateway's clock a day ahead", 1, Act::ClockAhead, Lasts::Short, false),
    row("gateway's clock a day back", 1, Act::ClockBack, Lasts::Short, false),
    row("three stateful servers killed", 2, Act::KillServers, Lasts::Moment, false),
];

/// A gateway that is replaced by the same, on purpose.
pub(super) const UPGRADE: Fault = row("gateway replaced", 0, Act::EndGateway, Lasts::Moment, true);

/// What is left of the deck.
pub(super) struct Deck {
    left: Vec<Fault>,
    all: Vec<Fault>,
}

impl Deck {
    /// Without steps of clocks, where nothing can step them; if asked for, only cards with this in their names.
    ///
    /// # Errors
    /// If no card is left.
    pub(super) fn new(clocks: bool, only: Option<&str>) -> Result<Self, String> {
        let playable = |fault: &&Fault| clocks || !matches!(fault.act, Act::ClockAhead | Act::ClockBack);
        let wanted = |fault: &&Fault| only.is_none_or(|only| fault.name.contains(only));
        let cards = DECK.iter().filter(playable).filter(wanted);
        let all: Vec<_> = cards.flat_map(|fault| std::iter::repeat_n(*fault, fault.cards)).collect();
        if all.is_empty() {
            let names: Vec<_> = DECK.iter().map(|fault| fault.name).collect();
            return Err(format!("no such fault; there are: {}", names.join(", ")));
        }
        Ok(Self { left: Vec::new(), all })
    }

    /// The next card.
    pub(super) fn draw(&mut self, dice: &mut Dice) -> Fault {
        if self.left.is_empty() {
            self.left.clone_from(&self.all);
        }
        let at = usize::try_from(dice.below(self.left.len() as u64)).unwrap_or(0);
        self.left.swap_remove(at)
    }
}

#[cfg(test)]
mod tests {
    use super::{Act, DECK, Deck};
    use crate::dice::Dice;

    fn drawn(seed: u64, clocks: bool) -> Vec<Act> {
        let (mut deck, mut dice) = (Deck::new(clocks, None).unwrap(), Dice::new(seed));
        let cards = DECK.iter().map(|fault| fault.cards).sum();
        (0..cards).map(|_| deck.draw(&mut dice).act).collect()
    }

    #[test]
    fn a_seed_shuffles_always_the_same_and_a_deck_has_every_fault() {
        assert_eq!(drawn(7, true), drawn(7, true));
        assert_ne!(drawn(7, true), drawn(8, true));
        assert!(DECK.iter().all(|fault| drawn(7, true).contains(&fault.act)));
    }

    #[test]
    fn where_no_clock_can_be_stepped_none_is() {
        assert!(!drawn(7, false).iter().any(|act| matches!(act, Act::ClockAhead | Act::ClockBack)));
    }
}
