//! How a request or an agent comes in: straight to one server, or through a mux.

use std::sync::Arc;

use linetender::session::{Agent, Who};
use linetender_wire::frame::Frame;

use super::{Answer, ask, open};
use crate::gateway::{Gateway, Stay};
use crate::listing::{Berth, Endpoint};

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
    /// The endpoint leads nowhere.
    Nowhere,
    /// It would take a line of its own, and there are as many as there may be.
    Full,
}

impl Gateway {
    /// A request at an endpoint that stands by itself; `None` if it needs an agent.
    pub(crate) fn ask(&self, endpoint: &Endpoint, frame: &Frame, of: Who) -> Option<Answer> {
        ask(&self.seen(), endpoint, frame, of)
    }

    /// An agent at an endpoint, and how its requests travel.
    pub(crate) fn agent(&self, endpoint: &Endpoint, stay: Stay) -> Result<(Agent, Way), NoAgent> {
        let listing = self.seen();
        match endpoint {
            Endpoint::One(name) => {
                let berth = listing.berth(name).ok_or(NoAgent::Nowhere)?;
                if listing.is_open(berth) {
                    let agent = self.pipe(berth, stay).ok_or(NoAgent::Full)?;
                    Ok((agent, Way::Straight(Arc::clone(berth))))
                } else {
                    Ok((open(self.clone(), endpoint.clone(), stay), Way::Muxed))
                }
            }
            Endpoint::All => Ok((open(self.clone(), Endpoint::All, stay), Way::Muxed)),
        }
    }
}
