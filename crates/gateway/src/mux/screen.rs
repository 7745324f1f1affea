//! A server's filters, for an agent whose requests go straight to that server.
//!
//! Such an agent began while its server had no filters. A reload may add some, and neither its session nor a line of its
//! own may end for that: from then on its requests are checked here before they are handed on.

use std::sync::Arc;

use bytes::Bytes;
use linetender::Kind;
use linetender_wire::frame::{self, Frame, Message, Passed, sole, string};

use super::{State, acts};
use crate::durable;
use crate::ends::Ended;
use crate::failed::Failed;
use crate::listing::{Endpoint, Listing, View};
use crate::principal::Principal;

/// What becomes of a legacy agent's message.
#[derive(Debug)]
pub(crate) enum Screened {
    /// It ends here: with a filtered list, or with an error for something hidden.
    Ended(Passed, Ended),
    /// The server is handed this, in its own names.
    Handed(Frame),
    /// The server must not hear it, and nobody waits for an answer.
    Dropped,
}

/// Judges a legacy agent's message by its server's filters.
pub(crate) fn screened(frame: &Frame, view: &View) -> Screened {
    let (id, method, params) = match frame.message() {
        Message::Request { id, method, params } => (id, method, params),
        Message::Notification { method, .. }
            if !view.routes.iter().all(|route| acts::may_be_told(route, method)) =>
        {
            return Screened::Dropped;
        }
        Message::Notification { .. } | Message::Response { .. } => return Screened::Handed(frame.clone()),
    };
    if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.method() == method) {
        return Screened::Ended(State::default().listed(id, kind, view).into(), Ended::Answered);
    }
    match acts::routed(method, params, view) {
        // What would have to know of keys is not on the way of this session.
        Ok((route, own))
            if method == "tools/call"
                && route.berth.entry.durable.is_some()
                && !matches!(durable::key(&own), Ok(None)) =>
        {
            let cause =
                "this session is older than `durable` of its server: start a new session to call with a key";
            let refused = Failed::refused(-32600, cause, "now").of(Some(route.berth.name()));
            Screened::Ended(refused.reply(id, method, false).into(), Ended::Refused(refused.code()))
        }
        Ok((_, own)) if params.is_some_and(|params| *params != own) => {
            Screened::Handed(frame.with_params(&own))
        }
        Ok(_) => Screened::Handed(frame.clone()),
        Err(unroutable) => {
            let refused = unroutable.failed(method, view);
            Screened::Ended(refused.reply(id, method, false).into(), Ended::Refused(refused.code()))
        }
    }
}

/// Whether a legacy agent is not to hear this of its server: it is about a resource that is hidden since it was subscribed to.
pub(crate) fn is_hidden(frame: &Frame, view: &View) -> bool {
    let Message::Notification { method: "notifications/resources/updated", params } = frame.message() else {
        return false;
    };
    let uri = params.and_then(|params| string(sole(params, "uri").ok()??));
    uri.is_none_or(|uri| !view.routes.iter().any(|route| route.lets(Kind::Resources, &uri)))
}

/// What is seen at this endpoint, if a filter holds there.
pub(crate) fn filtered(listing: &Listing, endpoint: &Endpoint, of: &Principal) -> Option<Arc<View>> {
    let sight = listing.seen_by(of);
    // Whoever may not see the server any more sees nothing of it.
    let Some(view) = sight.view(endpoint) else { return Some(Arc::default()) };
    view.routes.iter().any(|route| !sight.is_open(route)).then(|| Arc::clone(view))
}

/// The notifications for a legacy agent whose lists changed because a filter did. Other changes its server reports.
pub(crate) fn filter_changes(before: &Listing, now: &Listing, at: &Endpoint, of: &Principal) -> Vec<Bytes> {
    let (was, is) = (before.seen_by(of), now.seen_by(of));
    let (Some(old), Some(new)) = (was.view(at), is.view(at)) else { return Vec::new() };
    if filtered(before, at, of).is_none() && filtered(now, at, of).is_none() {
        return Vec::new();
    }
    // A filtered list comes from the shared line, which may not have been started yet.
    new.wake();
    let mut names: Vec<_> = new.offer.changes_since(&old.offer).into_iter().map(Kind::notification).collect();
    names.dedup();
    names.into_iter().map(|name| frame::notification(name, None)).collect()
}
