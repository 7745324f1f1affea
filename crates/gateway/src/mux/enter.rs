//! How a request or an agent comes in: straight to one server, or through a mux.

use std::sync::Arc;

use linetender::AgentContext;
use linetender::session::Agent;
use linetender_wire::frame::Frame;

use super::{Answer, ask, open};
use crate::gateway::Gateway;
use crate::listing::{Berth, Endpoint};
use crate::principal::Visitor;

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
    pub(crate) fn ask(&self, endpoint: &Endpoint, frame: &Frame, of: &Visitor) -> Option<Answer> {
        ask(self, endpoint, frame, of)
    }

    /// An agent at an endpoint, and how its requests travel.
    pub(crate) fn agent(&self, endpoint: &Endpoint, of: &Visitor) -> Result<(Agent, Way), NoAgent> {
        let sight = self.seen_by(&of.principal);
        match endpoint {
            Endpoint::One(name) => {
                let route = sight.route(name).ok_or(NoAgent::Nowhere)?;
                if sight.is_open(route) {
                    let agent = self.pipe(route, of, &AgentContext::default()).ok_or(NoAgent::Full)?;
                    Ok((agent, Way::Straight(Arc::clone(&route.berth))))
                } else {
                    Ok((open(self.clone(), endpoint.clone(), of.clone()), Way::Muxed))
                }
            }
            Endpoint::All => Ok((open(self.clone(), Endpoint::All, of.clone()), Way::Muxed)),
        }
    }
}
