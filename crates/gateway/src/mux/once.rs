//! A request that stands by itself: what it would come to in a mux of its own, without one.

use std::pin::Pin;
use std::sync::Arc;

use linetender::session::{self, Replied};
use linetender_wire::frame::{Frame, Message};

use super::acts::Act;
use super::{State, results};
use crate::board::{Board, Door, View};
use crate::gateway::Who;

/// An answer on its way. Dropping it takes the request back.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Replied> + Send>>;

/// Asks whoever is behind this door. `None` if it needs an agent: because more than its answer may come of it.
pub(crate) fn ask(board: &Board, door: &Door, frame: &Frame, of: Who) -> Option<Answer> {
    let view = board.view(door)?;
    match (door, &*view.routes) {
        (Door::One(_), [route]) if board.is_open(&route.berth) => {
            Some(Box::pin(session::ask(&route.berth.line, frame, of.0)?))
        }
        _ => routed(view, frame, of),
    }
}

fn routed(view: &View, frame: &Frame, of: Who) -> Option<Answer> {
    let Message::Request { method, .. } = frame.message() else { return None };
    if method == "subscriptions/listen" {
        return None;
    }
    match &*State::default().agent_said(frame, view) {
        [Act::Tell(text)] => {
            view.wake();
            let text = text.clone();
            let error = results::error_code(&text);
            Some(Box::pin(std::future::ready(Replied { text: text.into(), error })))
        }
        [Act::Ask { to, frame, .. }] => {
            let route = view.route(*to)?;
            let answer = session::ask(&route.berth.line, frame, of.0)?;
            let (method, naming) = (Box::<str>::from(method), Arc::clone(&route.naming));
            Some(Box::pin(async move {
                let Replied { text, error } = answer.await;
                Replied { text: results::named_text(text, &method, &naming), error }
            }))
        }
        _ => None,
    }
}
