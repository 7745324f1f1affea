//! A request that stands by itself: what it would come to in a mux of its own, without one.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use linetender::session::{self, Alone, Replied};
use linetender_wire::frame::{Frame, Message, Passed};

use super::acts::Act;
use super::{State, results};
use crate::board::{Board, Door, View};
use crate::gateway::Who;

/// An answer on its way, and the progress that comes before it. Dropping it takes the request back.
pub(crate) struct Answer {
    reply: Pin<Box<dyn Future<Output = Replied> + Send>>,
    progress: Option<session::Receiver<Passed>>,
    /// The answer, while progress that came before it is still to be told.
    replied: Option<Replied>,
}

/// What comes of a request that stands by itself.
#[derive(Debug)]
pub(crate) enum Said {
    Progress(Bytes),
    Answer(Replied),
}

impl Answer {
    pub(crate) fn new(
        reply: impl Future<Output = Replied> + Send + 'static,
        progress: Option<session::Receiver<Passed>>,
    ) -> Self {
        Self { reply: Box::pin(reply), progress, replied: None }
    }

    /// What comes next. The answer is the last of it.
    pub(crate) async fn next(&mut self) -> Said {
        let Self { reply, progress, replied } = self;
        let Some(progress) = progress else { return Said::Answer(reply.await) };
        let replied = if let Some(replied) = replied.take() {
            replied
        } else {
            tokio::select! {
                biased;
                Some(step) = progress.recv() => return Said::Progress(step.into_text()),
                replied = reply => replied,
            }
        };
        match progress.try_recv() {
            Some(step) => {
                self.replied = Some(replied);
                Said::Progress(step.into_text())
            }
            None => Said::Answer(replied),
        }
    }
}

/// Asks whoever is behind this door. `None` if it needs an agent: because more than its answer may come of it.
pub(crate) fn ask(board: &Board, door: &Door, frame: &Frame, of: Who) -> Option<Answer> {
    let view = board.view(door)?;
    match (door, &*view.routes) {
        (Door::One(_), [route]) if board.is_open(&route.berth) => {
            let Alone { reply, progress } = session::ask(&route.berth.line, frame, of.0)?;
            Some(Answer::new(reply, progress))
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
            Some(Answer::new(std::future::ready(Replied { text: text.into(), error }), None))
        }
        [Act::Ask { to, frame, .. }] => {
            let route = view.route(*to)?;
            let Alone { reply, progress } = session::ask(&route.berth.line, frame, of.0)?;
            let (method, naming) = (Box::<str>::from(method), Arc::clone(&route.naming));
            let named = async move {
                let Replied { text, error } = reply.await;
                Replied { text: results::named_text(text, &method, &naming), error }
            };
            Some(Answer::new(named, progress))
        }
        _ => None,
    }
}
