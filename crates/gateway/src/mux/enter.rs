//! How a request or an agent comes in: straight to one server, or through a mux.

use std::sync::Arc;

use linetender::session::Agent;
use linetender_wire::frame::Frame;

use super::{Answer, ask, open};
use crate::board::{Berth, Door};
use crate::gateway::{Gateway, Stay, Who};

/// How an agent's requests reach a server.
#[derive(Debug)]
pub(crate) enum Way {
    /// As they are: nothing of this server was hidden when the way was opened.
    Straight(Arc<Berth>),
    /// Through a [mux](super), which knows the filters.
    Muxed,
}

/// Why somebody cannot be an agent here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NoAgent {
    /// The door leads nowhere.
    Nowhere,
    /// It would take a line of its own, and there are as many as there may be.
    Full,
}

impl Gateway {
    /// A request at a door that stands by itself; `None` if it needs an agent.
    pub(crate) fn ask(&self, door: &Door, frame: &Frame, of: Who) -> Option<Answer> {
        ask(&self.seen(), door, frame, of)
    }

    /// An agent at a door, and how its requests travel.
    pub(crate) fn agent(&self, door: &Door, stay: Stay) -> Result<(Agent, Way), NoAgent> {
        let board = self.seen();
        match door {
            Door::One(name) => {
                let berth = board.berth(name).ok_or(NoAgent::Nowhere)?;
                if board.is_open(berth) {
                    let agent = self.pipe(berth, stay).ok_or(NoAgent::Full)?;
                    Ok((agent, Way::Straight(Arc::clone(berth))))
                } else {
                    Ok((open(self.clone(), door.clone(), stay), Way::Muxed))
                }
            }
            Door::All => Ok((open(self.clone(), Door::All, stay), Way::Muxed)),
        }
    }
}
