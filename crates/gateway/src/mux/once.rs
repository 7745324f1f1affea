//! A request that stands by itself: what it would come to in a mux of its own, without one.

use std::borrow::Cow;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use linetender::session::{self, Alone, LARGE, Replied, Text};
use linetender::{Era, Kind};
use linetender_wire::frame::{Frame, Message, Passed};

use super::acts::Act;
use super::durable::{self, Asker};
use super::results::{self, Told};
use super::{State, modern_list};
use crate::ends::Ended;
use crate::gateway::Gateway;
use crate::kept::{KeptResults, Of};
use crate::listing::{Endpoint, View};
use crate::principal::Visitor;

/// An answer on its way, and the progress that comes before it. Dropping it takes the request back.
pub(crate) struct Answer {
    reply: Pin<Box<dyn Future<Output = Replied> + Send>>,
    progress: Option<session::Receiver<Passed>>,
    /// The answer, while progress that came before it is still to be told.
    replied: Option<Replied>,
}

/// What comes of a request that stands by itself.
#[derive(Debug)]
pub(crate) enum Part {
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
    pub(crate) async fn next(&mut self) -> Part {
        let Self { reply, progress, replied } = self;
        let replied = match (replied.take(), &mut *progress) {
            (Some(replied), _) => replied,
            (None, None) => reply.await,
            (None, Some(progress)) => tokio::select! {
                biased;
                Some(step) = progress.recv() => return Part::Progress(step.into_text()),
                replied = reply => replied,
            },
        };
        match progress.as_mut().and_then(session::Receiver::try_recv) {
            Some(step) => {
                self.replied = Some(replied);
                Part::Progress(step.into_text())
            }
            None => Part::Answer(replied),
        }
    }
}

impl Answer {
    /// Goes on with the request although nobody takes what comes of it now; the answer is counted meanwhile. Never ends.
    pub(crate) async fn go_on(&mut self, counted: impl Fn(Bytes) -> Bytes) -> Infallible {
        if self.replied.is_none() {
            let Replied { text, error } = (&mut self.reply).await;
            let text = counted(text.whole().into_text()).into();
            self.replied = Some(Replied { text, error });
        }
        std::future::pending().await
    }
}

/// Asks whoever is behind this endpoint. `None` if it needs an agent: because more than its answer may come of it.
pub(crate) fn ask(gateway: &Gateway, endpoint: &Endpoint, frame: &Frame, of: &Visitor) -> Option<Answer> {
    let sight = gateway.seen_by(&of.principal);
    let view = sight.view(endpoint)?;
    match (endpoint, &*view.routes) {
        (Endpoint::One(_), [route]) if sight.is_open(route) => {
            let line = gateway.line(route, &of.principal)?;
            let Alone { reply, progress } = session::ask(&line, frame, of.guest())?;
            Some(Answer::new(reply, progress))
        }
        _ => routed(gateway, view, frame, of),
    }
}

/// A list that is large, as a modern agent is told it. It is not copied: whoever asks again and again has it for a small request
/// each time.
fn large_list(view: &View, frame: &Frame) -> Option<Text> {
    let Message::Request { id, method, .. } = frame.message() else { return None };
    let kind = Kind::ALL.into_iter().find(|kind| kind.method() == method)?;
    let list = view.offer.list(kind);
    if list.len() < LARGE {
        return None;
    }
    let modern = modern_list(kind, view);
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{modern}"{}":"#, kind.member());
    Some(Text::Parts([head.into(), list.into_bytes(), Bytes::from_static(b"}}")]))
}

/// The same, no larger than it may be.
pub(super) fn cut(text: Text, kept: &KeptResults, of: Of<'_>) -> Text {
    if text.pieces().iter().map(Bytes::len).sum::<usize>() <= of.limit {
        return text;
    }
    let text = text.whole();
    match text.frame().map(Cow::into_owned) {
        Ok(frame) => kept.cut(frame, of).into(),
        Err(_) => text.into(),
    }
}

fn routed(gateway: &Gateway, view: &View, frame: &Frame, of: &Visitor) -> Option<Answer> {
    let Message::Request { method, .. } = frame.message() else { return None };
    if method == "subscriptions/listen" {
        return None;
    }
    if let Some((reply, ended)) = gateway.kept_results().read(frame, view, &of.principal, true) {
        gateway.ends().saw(frame, &of.principal, ended);
        let text = Passed::from(reply);
        let error = results::error_code(&text);
        return Some(Answer::new(std::future::ready(Replied { text: text.into(), error }), None));
    }
    if let Some(text) = large_list(view, frame) {
        view.wake();
        gateway.ends().saw(frame, &of.principal, Ended::Answered);
        return Some(Answer::new(std::future::ready(Replied { text, error: None }), None));
    }
    let tasks = gateway.tasks_of(of);
    let asker = Asker { gateway, view, visitor: of, tasks: &tasks, era: Era::Modern, is_full: false };
    if let Some(asked) = durable::ask(&asker, frame) {
        return Some(asked.answer);
    }
    match &*State::with(tasks.clone()).agent_said(frame, view) {
        [Act::End(text, ended)] => {
            view.wake();
            gateway.ends().saw(frame, &of.principal, *ended);
            let text = text.clone();
            let error = results::error_code(&text);
            Some(Answer::new(std::future::ready(Replied { text: text.into(), error }), None))
        }
        [Act::Ask { to, frame, .. }] => {
            let route = view.route(*to)?;
            let line = gateway.line(route, &of.principal)?;
            let Alone { reply, progress } = session::ask(&line, frame, of.guest())?;
            let (method, naming, from) = (Box::<str>::from(method), Arc::clone(&route.naming), *to);
            let limit = route.berth.entry.result_limit.map(|limit| (limit, gateway.kept_results().clone()));
            let principal = of.principal.clone();
            let named = async move {
                let Replied { text, error } = reply.await;
                let told = Told { method: &method, naming: &naming, from, tasks: &tasks };
                let text = told.named_text(text);
                let text = match limit {
                    Some((limit, kept)) => cut(text, &kept, Of { principal: &principal, berth: from, limit }),
                    None => text,
                };
                Replied { text, error }
            };
            Some(Answer::new(named, progress))
        }
        _ => None,
    }
}
