//! A generation that can be talked to: our own questions, cancellations, signs of life.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use linetender_core::{Delivery, Generation, Record, RecordStep, Safety};
use linetender_wire::Seen;
use linetender_wire::frame;
use linetender_wire::handshake::{Era, Greeting, Hello};
use linetender_wire::http::KeyRefused;
use tokio::sync::oneshot;

use super::context::ServerContext;
use super::ear::Ear;
use super::reach::Reach;
use crate::basics::kind::Kind;
use crate::book::{Entry, Ledger, Lost, Reply};
use crate::status::Why;

/// A generation that can be talked to.
pub(crate) struct Link {
    pub(crate) generation: Generation,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) ear: Arc<Ear>,
    pub(crate) reach: Reach,
    /// Why it is not shared although it was to be.
    pub(crate) not_shared: Option<String>,
    pub(crate) greeting: OnceLock<Greeting>,
    /// Whether it was sent a ping, and whether it answered one.
    pub(super) pings: [AtomicBool; 2],
    /// What it keeps in memory for agents, once that is known.
    pub(super) context: OnceLock<Option<Arc<ServerContext>>>,
}

impl Link {
    /// A question of our own. `None` if the generation is over.
    pub(crate) fn ask(self: &Arc<Self>, method: &str, params: Option<&str>) -> Option<Asking> {
        let record = Record::new(Safety::Protocol);
        let seat = self.ledger.register(None, record, |id| frame::request(id, method, params));
        seat.ok().map(|(entry, answer)| Asking { link: Arc::clone(self), entry, answer })
    }

    /// The server is to stop working on a request.
    pub(crate) fn cancel(&self, id: u64) {
        if self.reach.hears_cancellations(self.era()) {
            let params = format!(r#"{{"requestId":{id},"reason":"cancelled or timed out"}}"#);
            // If there is no room the server does not read, and would not read this either.
            self.ledger.tell(frame::notification("notifications/cancelled", Some(&params)));
        }
        self.reach.drop_exchange(id);
    }

    /// Its era, once the handshake is done.
    pub(crate) fn era(&self) -> Era {
        self.greeting.get().map_or(Era::Legacy, |greeting| greeting.era)
    }

    /// What it keeps in memory for agents, if it can keep anything. Known once the handshake is done.
    pub(crate) fn context(&self) -> Option<&Arc<ServerContext>> {
        let context = || self.reach.keeps_context().then(|| Arc::new(ServerContext::new()));
        self.context.get_or_init(context).as_ref()
    }

    /// It is over.
    pub(crate) fn ends(&self, why: &Why) {
        if let Some(Some(context)) = self.context.get() {
            context.ends(why, &self.ledger.signs);
        }
    }

    /// A list that is asked for beside a ping if the ping before brought nothing, and none ever did.
    fn list_instead(&self) -> Option<&'static str> {
        let [sent, answered] = &self.pings;
        let again = sent.swap(true, Ordering::Relaxed);
        if self.era() == Era::Modern || !again || answered.load(Ordering::Relaxed) {
            return None;
        }
        let greeting = serde_json::from_str::<serde_json::Value>(&self.greeting.get()?.result).ok()?;
        let offers = |kind: &Kind| greeting["capabilities"].get(kind.capability()).is_some();
        Kind::ALL.into_iter().find(offers).map(Kind::method)
    }

    /// A sign of life: any correlated reply will do.
    pub(crate) async fn probe(self: &Arc<Self>, hello: &Hello) -> Probed {
        let answer = match self.era() {
            Era::Legacy => self.ask("ping", None),
            Era::Modern => {
                let params = serde_json::json!({ "_meta": hello.meta() }).to_string();
                self.ask("server/discover", Some(&params))
            }
        };
        let Some(answer) = answer else { return Probed::Silent };
        // MCP demands an answer to a ping. Some servers ignore what they do not know, and answer everything else.
        let list = self.list_instead().and_then(|method| self.ask(method, None));
        let [_, pinged] = &self.pings;
        let answered = match list {
            None => {
                let answered = answer.await;
                pinged.store(true, Ordering::Relaxed);
                answered
            }
            Some(list) => tokio::select! {
                biased;
                answered = answer => {
                    pinged.store(true, Ordering::Relaxed);
                    answered
                }
                listed = list => listed,
            },
        };
        match answered {
            Ok(Reply::Answer(_) | Reply::Unusable(_)) => Probed::Alive,
            Ok(Reply::Lost(Lost { seen: Some(seen), .. })) if seen.is_local() => Probed::Unsent,
            Ok(Reply::Lost(Lost { refused: Some(refused), .. })) => Probed::KeyRefused(refused),
            Ok(Reply::Lost(Lost { seen: Some(seen), .. })) if matches!(*seen, Seen::WantsAuth { .. }) => {
                Probed::Unauthorized(seen)
            }
            // Somebody is there, and wants to be asked less often.
            Ok(Reply::Lost(Lost { seen: Some(seen), .. })) if matches!(*seen, Seen::Throttled { .. }) => {
                Probed::Unsent
            }
            Ok(Reply::Lost(Lost { seen: Some(seen), .. })) if matches!(*seen, Seen::Refused { .. }) => {
                Probed::Refused
            }
            Ok(Reply::Lost(_)) | Err(_) => Probed::Silent,
        }
    }
}

/// What came of asking a server for a sign of life.
pub(crate) enum Probed {
    Alive,
    Silent,
    /// Nobody listens at its address.
    Refused,
    /// It lives, and refused our key, of which there may be another.
    KeyRefused(Box<KeyRefused>),
    /// It lives, and refused our credentials, which are fixed.
    Unauthorized(Arc<Seen>),
    /// This machine could not ask, or was told to come back later. That says nothing about the server.
    Unsent,
}

/// A question of our own that was asked. Whoever drops it before its answer wants none: it is taken out, and cancelled.
pub(crate) struct Asking {
    link: Arc<Link>,
    entry: Arc<Entry>,
    answer: oneshot::Receiver<Reply>,
}

impl Future for Asking {
    type Output = Result<Reply, oneshot::error::RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer).poll(context)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Ok(record) = self.entry.withdraw(RecordStep::Cancel) {
            self.link.ledger.withdrawn(self.entry.id);
            if !matches!(record.delivery(), Some(Delivery::NotExecuted(_))) {
                self.link.cancel(self.entry.id);
            }
        }
    }
}
