//! What is on the other side of the seam: a process, or a server somewhere else.

use std::collections::HashMap;

use linetender_core::LossReport;
use linetender_wire::Redacted;
use linetender_wire::handshake::Era;
use linetender_wire::hop::Hop;
use linetender_wire::http::headers::ParamHeaders;
use linetender_wire::http::{Remote, Way};
use linetender_wire::seam::Outbox;
use linetender_wire::stdio::platform::Work;

use super::relay::Process;
use crate::book::Entry;

/// How a generation is reached.
pub(crate) enum Reach {
    Process(Process),
    Remote(Remote),
    /// Another process of ours holds it.
    Hop(Hop),
}

impl Reach {
    /// The way down.
    pub(crate) fn outbox(&self) -> &Outbox {
        match self {
            Self::Process(child) => child.outbox(),
            Self::Hop(hop) => hop.outbox(),
            Self::Remote(remote) => remote.outbox(),
        }
    }

    /// Takes what is readable. Over HTTP each exchange does that by itself.
    pub(crate) async fn drain(&self) {
        match self {
            Self::Process(child) => child.drain().await,
            Self::Hop(hop) => hop.drain().await,
            Self::Remote(_) => {}
        }
    }

    /// Its handshake is over.
    pub(crate) fn up(&self) {
        if let Self::Process(child) = self {
            child.up();
        }
    }

    /// Ends it at once.
    pub(crate) fn kill(&self) {
        match self {
            Self::Process(child) => child.kill(),
            Self::Remote(remote) => remote.kill(),
            Self::Hop(hop) => hop.kill(),
        }
    }

    /// Ends it politely.
    pub(crate) fn close(&self) {
        match self {
            Self::Process(child) => child.close(),
            Self::Hop(hop) => hop.close(),
            Self::Remote(remote) => remote.close(),
        }
    }

    /// Ends it as far as new calls are concerned; what has an exchange of its own may still be answered.
    pub(crate) fn let_go(&self) {
        match self {
            Self::Process(child) => child.kill(),
            Self::Remote(remote) => remote.let_go(),
            Self::Hop(hop) => hop.kill(),
        }
    }

    /// After a sleep: makes new connections to a server that needs no more than that; whether it is one. A process is asked whether it
    /// still lives, and so is a server whose answers all come on one stream.
    pub(crate) fn reconnect(&self) -> bool {
        match self {
            Self::Remote(remote) if remote.way() == Way::Streamable => {
                remote.reconnect();
                true
            }
            Self::Process(_) | Self::Remote(_) | Self::Hop(_) => false,
        }
    }

    /// What the server's processes do, if they are ours.
    pub(crate) fn work(&self) -> Option<Work> {
        match self {
            Self::Process(child) => child.work(),
            Self::Remote(_) | Self::Hop(_) => None,
        }
    }

    /// Whether calls under way have exchanges of their own, which may outlive a session.
    pub(crate) const fn has_exchanges(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// True if it is a process or a session with an id. Anything else keeps nothing from one request to the next.
    pub(crate) fn keeps_context(&self) -> bool {
        match self {
            Self::Process(_) | Self::Hop(_) => true,
            Self::Remote(remote) => remote.has_session(),
        }
    }

    /// How messages travel to a server at an address.
    pub(crate) fn way(&self) -> Option<Way> {
        match self {
            Self::Process(_) | Self::Hop(_) => None,
            Self::Remote(remote) => Some(remote.way()),
        }
    }

    /// Whether the event stream is open that all answers come on.
    pub(crate) fn is_attached(&self) -> bool {
        matches!(self, Self::Remote(remote) if remote.is_attached())
    }

    /// Speaks this transport to a server at an address from now on.
    pub(crate) fn turn_to(&self, way: Way) {
        if let Self::Remote(remote) = self {
            remote.turn_to(way);
        }
    }

    /// Whether a server of this era has to be told that a request is cancelled.
    // MCP 2026-07-28, Streamable HTTP: closing the response stream is the cancellation. Everywhere else it is said.
    pub(crate) const fn hears_cancellations(&self, era: Era) -> bool {
        !matches!((self, era), (Self::Remote(_), Era::Modern))
    }

    /// Ends a request's own exchange, if it has one.
    pub(crate) fn drop_exchange(&self, id: u64) {
        if let Self::Remote(remote) = self {
            remote.cancel(id);
        }
    }

    /// What is known of a call that was lost with this server.
    pub(crate) fn loss_of(&self, call: &Entry) -> LossReport {
        match self {
            Self::Process(child) => match child.residue() {
                Some(residue) if call.is_unread_in(residue) => {
                    LossReport::Consumed { bytes: residue.consumed() }
                }
                _ => LossReport::Nothing,
            },
            Self::Hop(hop) => {
                hop.consumed().map_or(LossReport::Nothing, |bytes| LossReport::Consumed { bytes })
            }
            Self::Remote(_) => LossReport::Nothing,
        }
    }

    /// The last lines of its stderr.
    pub(crate) fn stderr(&self) -> Redacted {
        match self {
            Self::Process(child) => child.stderr(),
            Self::Remote(_) | Self::Hop(_) => Redacted::default(),
        }
    }

    /// The last lines of its stderr, if it has written any.
    pub(crate) fn last_words(&self) -> Option<Redacted> {
        Some(self.stderr()).filter(|stderr| !stderr.is_empty())
    }

    /// Its process, if that is ours.
    pub(crate) fn pid(&self) -> Option<i32> {
        match self {
            Self::Process(child) => child.pid(),
            Self::Remote(_) | Self::Hop(_) => None,
        }
    }

    /// The process that holds it for us, if one does.
    pub(crate) const fn keeper(&self) -> Option<i32> {
        match self {
            Self::Hop(hop) => hop.owner(),
            Self::Process(_) | Self::Remote(_) => None,
        }
    }

    /// Returns when its process is over, or may be; never, if that is not ours.
    pub(crate) async fn exited(&self) {
        match self {
            Self::Process(child) => child.exited().await,
            Self::Remote(_) | Self::Hop(_) => std::future::pending().await,
        }
    }

    /// Which arguments of which tools it wants to see in headers.
    pub(crate) fn mirror(&self, tools: HashMap<String, ParamHeaders>) {
        if let Self::Remote(remote) = self {
            remote.mirror(tools);
        }
    }
}
