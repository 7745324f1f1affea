//! Requests that end here, before a line is chosen for them: whoever counts requests is told, as a line tells of its own.

use std::sync::Arc;

use linetender::{Here, Rig, Verdict, Witness};
use linetender_wire::frame::{Frame, Message};
use tokio::time::Instant;

use crate::principal::Principal;

/// How a request ends that no server is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ended {
    /// It is answered from what is known of the servers.
    Answered,
    /// It is not taken; the code of the error.
    Refused(i32),
}

/// Where they end. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends(Option<Arc<dyn Witness>>);

impl Ends {
    /// Whoever follows the lines of a rig sees what comes to none of them too.
    pub(crate) fn before(rig: &Rig) -> Self {
        Self(rig.at_the_door())
    }

    /// A message was not handed on. If it is a request, it has ended.
    pub(crate) fn saw(&self, asked: &Frame, principal: &Principal, ended: Ended) {
        let (Some(witness), Message::Request { method, params, .. }) = (&self.0, asked.message()) else {
            return;
        };
        let (verdict, code) = match ended {
            Ended::Answered => (Verdict::Answered, None),
            Ended::Refused(code) => (Verdict::NOT_SENT, Some(code.into())),
        };
        let principal = Some(Arc::clone(principal.name()));
        Here { method, params, principal, since: Instant::now() }.ended(&**witness, verdict, code);
    }
}
