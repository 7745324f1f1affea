//! Calls with a key, to servers that keep outcomes: the same for a request that stands by itself and for one in an agent's mux.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use linetender::Era;
use linetender::session::{self, Alone, Replied};
use linetender_wire::frame::{self, Frame, Members, Message, Outcome, Passed};
use linetender_wire::{caught, queue};
use tokio::task::{AbortHandle, JoinSet};

use super::durable_tasks::{self, Task};
use super::once::{Answer, Part, cut};
use super::results::{self, Told};
use super::{acts, tasks};
use crate::budget::Owner;
use crate::durable::{self, Call, Cancel, Ending, Identity};
use crate::ends::Ended;
use crate::failed::{Failed, Full};
use crate::gateway::Gateway;
use crate::kept::Of;
use crate::listing::{Endpoint, Route, View};
use crate::principal::{Principal, Visitor};
use crate::tasks::OwnTasks;

const CANCELLED: &str = "notifications/cancelled";

/// What a session says of a request whose agent hung up and did not come back.
const UNREAD: &str = "notifications/linetender/unread";

/// A call that takes longer becomes a task, if its agent knows tasks.
const SOON: Duration = Duration::from_secs(1);

/// A call that is waited for, and how it can be taken back.
pub(super) struct Asked {
    pub(super) answer: Answer,
    pub(super) cancel: Option<Cancel>,
}

/// Whose a request is, and what it takes to answer it.
pub(super) struct Asker<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) view: &'a View,
    pub(super) visitor: &'a Visitor,
    pub(super) tasks: &'a OwnTasks,
    pub(super) era: Era,
    /// Whether it has as many requests open as it may.
    pub(super) is_full: bool,
}

/// A call with the key that came beside it, in a header, if its server wants to know.
pub(crate) fn with_key(
    gateway: &Gateway,
    endpoint: &Endpoint,
    of: &Principal,
    frame: &Frame,
    key: &str,
) -> Option<Frame> {
    let Message::Request { method: method @ "tools/call", params: Some(params), .. } = frame.message() else {
        return None;
    };
    let sight = gateway.seen_by(of);
    let view = sight.view(endpoint).filter(|view| view.has_durable)?;
    let (route, _) = acts::routed(method, Some(params), view).ok()?;
    route.berth.entry.durable?;
    Some(frame.with_params(&durable::with_key(params, key)))
}

/// Asks for a call with a key. `None` if the request is something else.
pub(super) fn ask(asker: &Asker<'_>, frame: &Frame) -> Option<Asked> {
    if !asker.view.has_durable {
        return None;
    }
    let Message::Request { id, method, params: Some(params) } = frame.message() else { return None };
    if let ("tasks/get" | "tasks/cancel" | "tasks/update", Era::Modern) = (method, asker.era) {
        return durable_tasks::ask(asker, frame, params);
    }
    if method != "tools/call" {
        return None;
    }
    let (route, own) = acts::routed(method, Some(params), asker.view).ok()?;
    route.berth.entry.durable?;
    let asked = match durable::key(&own) {
        Ok(None) => return None,
        Ok(Some(_)) if asker.is_full => Err(Failed::full(Full::Requests)),
        Ok(Some(key)) => asker.begin(route, &frame.with_params(&own), &key),
        Err(failed) => Err(failed),
    };
    Some(asked.unwrap_or_else(|failed| {
        let failed = failed.of(Some(route.berth.name()));
        asker.gateway.ends().saw(frame, &asker.visitor.principal, Ended::Refused(failed.code()));
        let replied = replied(failed.reply(id, method, asker.era == Era::Modern).into());
        Asked { answer: Answer::new(std::future::ready(replied), None), cancel: None }
    }))
}

/// An answer of our own.
pub(super) fn replied(text: Passed) -> Replied {
    let error = results::error_code(&text);
    Replied { text: text.into(), error }
}

impl Asker<'_> {
    /// Begins a call, or waits for it with others.
    fn begin(&self, route: &Route, frame: &Frame, key: &str) -> Result<Asked, Failed> {
        let Self { gateway, visitor, era, .. } = *self;
        let (Message::Request { id, method, params: Some(params) }, Some(kept)) =
            (frame.message(), route.berth.entry.durable)
        else {
            return Err(Failed::nowhere());
        };
        let principal = &visitor.principal;
        let server: Arc<str> = route.berth.name().into();
        let identity = Identity::of(principal, &server, key, params)?;
        let line = gateway.line(route, principal).ok_or_else(|| Failed::full(Full::Lines))?;
        let too_large = || Failed::refused(-32600, "the message is larger than the server's limit", "never");
        let Alone { reply, progress } =
            session::ask_for(&line, frame, visitor.guest(), era).ok_or_else(too_large)?;
        let owner = Owner { principal: principal.number(), group: route.berth.number };
        let (bytes, since) = (frame.text().len(), linetender_fleet::now().wall);
        // The extension, "Task Creation": the server decides whether a call becomes a task, if its client knows tasks.
        let task =
            (era == Era::Modern && tasks::declares(params)).then(|| Task::begun(&identity, since, kept));
        let call = Call { identity, owner, server, kept, bytes, since };
        let waiting = gateway.durable().ask(call, reply)?;
        let (cancel, is_first) = (waiting.cancel(), waiting.is_first);
        let tells = Tells {
            id: id.into(),
            method: method.into(),
            frame: frame.clone(),
            gateway: gateway.clone(),
            visitor: visitor.clone(),
            tasks: self.tasks.clone(),
            route: route.clone(),
            era,
        };
        let reply = async move {
            let told = match task {
                None => waiting.ended().await,
                Some(task) => match waiting.ended_within(SOON).await {
                    Some(told) => told,
                    None => return tells.task(&task, is_first),
                },
            };
            tells.reply(told.ending, is_first && told.ran)
        };
        // Who joins hears nothing of what comes before the outcome.
        Ok(Asked { answer: Answer::new(reply, progress.filter(|_| is_first)), cancel: Some(cancel) })
    }
}

/// What it takes to tell somebody how a call ended.
struct Tells {
    id: Box<str>,
    method: Box<str>,
    frame: Frame,
    gateway: Gateway,
    visitor: Visitor,
    tasks: OwnTasks,
    route: Route,
    era: Era,
}

impl Tells {
    /// That it takes long, and is a task from now on.
    fn task(self, task: &Task, seen: bool) -> Replied {
        if !seen {
            self.gateway.ends().saw(&self.frame, &self.visitor.principal, Ended::Answered);
        }
        replied(frame::reply(&self.id, &task.told("task").to_string()).into())
    }

    /// The outcome in the names of whoever asked. `seen` says that the line has told of this request itself.
    fn reply(self, ending: Ending, seen: bool) -> Replied {
        let Self { id, method, frame, gateway, visitor, tasks, route, era } = self;
        let (text, ended) = match ending {
            Ending::Failed(failed) => {
                (failed.reply(&id, &method, era == Era::Modern).into(), Ended::Refused(failed.code()))
            }
            Ending::Answered(answer) => {
                let told =
                    Told { method: &method, naming: &route.naming, from: route.berth.number, tasks: &tasks };
                (Passed::Frame(told.named(&in_era(&answer, era).with_id(&id))), Ended::Answered)
            }
        };
        if !seen {
            gateway.ends().saw(&frame, &visitor.principal, ended);
        }
        let error = results::error_code(&text);
        let text = match route.berth.entry.result_limit {
            Some(limit) => {
                let of = Of { principal: &visitor.principal, berth: route.berth.number, limit };
                cut(text.into(), gateway.kept_results(), of)
            }
            None => text.into(),
        };
        Replied { text, error }
    }
}

/// An answer as an agent of this era is to read it. It may have been given to one of the other.
// MCP 2026-07-28: `resultType` on every result.
pub(super) fn in_era(answer: &Frame, era: Era) -> Cow<'_, Frame> {
    let Message::Response { outcome: Some((Outcome::Result, result)), .. } = answer.message() else {
        return Cow::Borrowed(answer);
    };
    let rest = result.trim_start().strip_prefix('{');
    let (Era::Modern, Some(members), Some(rest)) = (era, Members::of(result), rest) else {
        return Cow::Borrowed(answer);
    };
    if members.get("resultType").is_some() {
        return Cow::Borrowed(answer);
    }
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    Cow::Owned(answer.with_outcome(&format!(r#"{{"resultType":"complete"{comma}{rest}"#)))
}

/// What an agent's mux is told of a request whose stream nobody reads; the params are those of a cancellation.
pub(crate) fn unread(params: &str) -> Bytes {
    frame::notification(UNREAD, Some(params))
}

fn parsed(text: &Bytes) -> Option<Frame> {
    frame::parse(text, frame::Limits { length: usize::MAX, depth: usize::MAX }).ok()
}

/// Calls that an agent in a mux waits for. Dropped, they are not waited for any more, and go on.
#[derive(Default)]
pub(super) struct Waits {
    tasks: JoinSet<(Box<str>, Option<Passed>)>,
    of: HashMap<Box<str>, (AbortHandle, Option<Cancel>)>,
}

impl Waits {
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    /// Waits for one more; progress is told as it comes.
    pub(super) fn add(&mut self, id: &str, asked: Asked, to_agent: queue::Sender<Passed>) {
        let (Asked { mut answer, cancel }, own) = (asked, Box::<str>::from(id));
        let wait = self.tasks.spawn(async move {
            let told = caught(async {
                loop {
                    match answer.next().await {
                        Part::Progress(step) => drop(to_agent.send(step.into()).await),
                        Part::Answer(Replied { text, .. }) => return text.whole(),
                    }
                }
            });
            (own, told.await.ok())
        });
        self.of.insert(id.into(), (wait, cancel));
    }

    /// The next answer. Never ends while there is nothing to wait for.
    pub(super) async fn next(&mut self, modern: bool) -> Passed {
        loop {
            match self.tasks.join_next().await {
                Some(Ok((id, told))) => {
                    // What was taken back is not answered.
                    if self.of.remove(&id).is_some() {
                        return told
                            .unwrap_or_else(|| Failed::broken().reply(&id, "tools/call", modern).into());
                    }
                }
                Some(Err(_)) => {}
                None => return std::future::pending().await,
            }
        }
    }

    /// The agent may take one back: then it is cancelled, for everybody. Or nobody has read its stream for so long that it is not waited for
    /// any more, and it goes on. What is left for others to hear.
    pub(super) fn heard(&mut self, frame: Frame) -> Option<Frame> {
        let Message::Notification { method, params } = frame.message() else { return Some(frame) };
        if !matches!(method, CANCELLED | UNREAD) {
            return Some(frame);
        }
        let Some((wait, cancel)) = acts::request_id(params).and_then(|id| self.of.remove(id)) else {
            // Of a call that does not outlive its agent both are the same.
            let same = method == CANCELLED;
            return if same { Some(frame) } else { parsed(&frame::notification(CANCELLED, params)) };
        };
        wait.abort();
        if let (CANCELLED, Some(cancel)) = (method, cancel) {
            cancel.now();
        }
        None
    }

    /// Waits for none of them any more: what is told instead.
    pub(super) fn cut(&mut self, modern: bool) -> Vec<Passed> {
        self.tasks.abort_all();
        self.of.drain().map(|(id, _)| Failed::cut().reply(&id, "tools/call", modern).into()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, UNREAD, Waits, parsed, unread};
    use crate::mux::once::Answer;
    use linetender_wire::frame::{self, Message};
    use linetender_wire::queue;

    #[tokio::test]
    async fn a_call_whose_stream_nobody_reads_is_let_go_and_others_are_cancelled() {
        let mut waits = Waits::default();
        let (to_agent, _from) = queue::queue(1, 100);
        let asked = || Asked { answer: Answer::new(std::future::pending(), None), cancel: None };
        waits.add("1", asked(), to_agent.clone());
        waits.add("2", asked(), to_agent);
        let said = |id: u32| parsed(&unread(&format!(r#"{{"requestId":{id}}}"#))).unwrap();
        assert!(matches!(said(1).message(), Message::Notification { method: UNREAD, .. }));
        assert!(waits.heard(said(1)).is_none());
        assert_eq!(waits.len(), 1);
        let other = waits.heard(said(3)).unwrap();
        let expected = frame::notification("notifications/cancelled", Some(r#"{"requestId":3}"#));
        assert_eq!(*other.text(), expected);
        assert_eq!(waits.heard(other.clone()), Some(other));
        let cancelled = frame::notification("notifications/cancelled", Some(r#"{"requestId":2}"#));
        assert!(waits.heard(parsed(&cancelled).unwrap()).is_none() && waits.len() == 0);
    }
}
