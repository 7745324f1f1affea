//! A generation that can be talked to: our own questions, cancellations, signs of life.

use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
use super::session_check::SessionCheck;
use crate::basics::kind::Kind;
use crate::book::{Entry, Ledger, Lost, NoSeat, Reply};
use crate::status::Why;

/// Length of a request besides its method and its params, at most.
const ENVELOPE: usize = 64;

/// A server that was started or reached, whatever became of its handshake. Only the handshake itself can be asked of it.
pub(crate) struct Link {
    pub(crate) generation: Generation,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) ear: Arc<Ear>,
    pub(crate) reach: Reach,
    /// Why it is not shared although it was to be.
    pub(crate) not_shared: Option<String>,
}

/// A server whose handshake is done: the only one that can be asked for more than that.
pub(crate) struct Live {
    link: Arc<Link>,
    pub(crate) greeting: Arc<Greeting>,
    /// Whether it was sent a ping, and whether it answered one.
    pings: [AtomicBool; 2],
    /// What it keeps in memory for agents, if it can keep anything.
    context: Option<Arc<ServerContext>>,
    /// Whether it still knows its session.
    pub(super) session: SessionCheck,
}

/// How far a generation has come with its server. Each user says which of these it is for.
#[derive(Clone, Default)]
pub(crate) enum Connection {
    /// There is no process or address yet.
    #[default]
    None,
    /// The handshake is under way. It takes no messages yet, but what it writes to stderr can be quoted.
    Starting(Arc<Link>),
    /// The handshake is done.
    Live(Arc<Live>),
    /// Its end has begun: it takes nothing more.
    Over(Arc<Link>),
}

impl Connection {
    /// The server, if it can be asked.
    pub(crate) const fn live(&self) -> Option<&Arc<Live>> {
        match self {
            Self::Live(live) => Some(live),
            Self::None | Self::Starting(_) | Self::Over(_) => None,
        }
    }

    /// The server, however far it has come: to be ended, or quoted.
    pub(crate) fn link(&self) -> Option<&Arc<Link>> {
        match self {
            Self::None => None,
            Self::Starting(link) | Self::Over(link) => Some(link),
            Self::Live(live) => Some(&live.link),
        }
    }

    /// Its end begins.
    pub(crate) fn ends(&mut self, why: Option<&Why>) {
        if let (Self::Live(live), Some(why)) = (&*self, why) {
            live.ends(why);
        }
        if let Some(link) = self.link() {
            *self = Self::Over(Arc::clone(link));
        }
    }
}

impl Link {
    /// A question of the handshake, which waits while the server does not read. `None` if the generation is over.
    // MCP 2025-11-25, "Initialization": nothing but pings before `initialize` is answered; and it cannot be cancelled.
    pub(super) async fn shake(self: &Arc<Self>, method: &str, params: &str) -> Option<Asking> {
        self.asking_when_room(method, Some(params), None).await
    }

    fn asking(
        self: &Arc<Self>,
        method: &str,
        params: Option<&str>,
        cancelled_in: Option<Era>,
    ) -> Result<Asking, NoSeat> {
        let record = Record::new(Safety::Protocol);
        let seat = self.ledger.register(None, record, |id| frame::request(id, method, params));
        seat.map(|(entry, answer)| Asking { link: Arc::clone(self), cancelled_in, entry, answer })
    }

    async fn asking_when_room(
        self: &Arc<Self>,
        method: &str,
        params: Option<&str>,
        cancelled_in: Option<Era>,
    ) -> Option<Asking> {
        let bytes = ENVELOPE + method.len() + params.map_or(0, str::len);
        loop {
            match self.asking(method, params, cancelled_in) {
                Ok(asking) => return Some(asking),
                Err(NoSeat::Full) if self.ledger.room_for(bytes).await => {}
                Err(NoSeat::Full | NoSeat::Sealed) => return None,
            }
        }
    }

    fn cancel_in(&self, era: Era, id: u64) {
        if self.reach.hears_cancellations(era) {
            let params = format!(r#"{{"requestId":{id},"reason":"cancelled or timed out"}}"#);
            // If there is no room the server does not read, and would not read this either.
            let _ = self.ledger.tell(frame::notification("notifications/cancelled", Some(&params)));
        }
    }
}

impl Deref for Live {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

impl Live {
    pub(super) fn new(link: Arc<Link>, greeting: Greeting) -> Self {
        let context = link.reach.keeps_context().then(|| Arc::new(ServerContext::new()));
        Self {
            link,
            greeting: Arc::new(greeting),
            pings: Default::default(),
            context,
            session: SessionCheck::default(),
        }
    }

    /// Asks a question of our own.
    ///
    /// # Errors
    /// If the server does not read now, or the generation is over.
    pub(crate) fn ask(&self, method: &str, params: Option<&str>) -> Result<Asking, NoSeat> {
        self.link.asking(method, params, Some(self.era()))
    }

    /// The same, and waits while the server does not read. `None` if the generation is over.
    pub(crate) async fn ask_when_room(&self, method: &str, params: Option<&str>) -> Option<Asking> {
        self.link.asking_when_room(method, params, Some(self.era())).await
    }

    /// The server is to stop working on a request.
    pub(crate) fn cancel(&self, id: u64) {
        self.cancel_in(self.era(), id);
        self.reach.drop_exchange(id);
    }

    pub(crate) fn era(&self) -> Era {
        self.greeting.era
    }

    /// What it keeps in memory for agents, if it can keep anything.
    pub(crate) const fn context(&self) -> Option<&Arc<ServerContext>> {
        self.context.as_ref()
    }

    /// It is over.
    fn ends(&self, why: &Why) {
        if let Some(context) = &self.context {
            context.ends(why, &self.ledger.signs);
        }
    }

    /// The lists of which the server says that it tells when they change.
    pub(crate) fn tells_of(&self) -> impl Iterator<Item = Kind> {
        let result: serde_json::Value = serde_json::from_str(&self.greeting.result).unwrap_or_default();
        let tells = move |kind: &Kind| result["capabilities"][kind.capability()]["listChanged"] == true;
        Kind::ALL.into_iter().filter(tells)
    }

    /// A list that is asked for beside a ping if the ping before brought nothing, and none ever did.
    fn list_instead(&self) -> Option<&'static str> {
        let [sent, answered] = &self.pings;
        let again = sent.swap(true, Ordering::Relaxed);
        if self.era() == Era::Modern || !again || answered.load(Ordering::Relaxed) {
            return None;
        }
        let greeting = serde_json::from_str::<serde_json::Value>(&self.greeting.result).ok()?;
        let offers = |kind: &Kind| greeting["capabilities"].get(kind.capability()).is_some();
        Kind::ALL.into_iter().find(offers).map(Kind::method)
    }

    /// A sign of life: any correlated reply will do.
    pub(crate) async fn probe(&self, hello: &Hello) -> Probed {
        let answer = match self.era() {
            Era::Legacy => self.ask("ping", None),
            Era::Modern => {
                let params = serde_json::json!({ "_meta": hello.meta() }).to_string();
                self.ask("server/discover", Some(&params))
            }
        };
        // A server that does not even read is as silent as one that reads and does not answer.
        let Ok(answer) = answer else { return Probed::Silent };
        // MCP demands an answer to a ping. Some servers ignore what they do not know, and answer everything else.
        let list = self.list_instead().and_then(|method| self.ask(method, None).ok());
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
    /// In which era the server is told that nobody wants it. A question of the handshake cannot be taken back.
    cancelled_in: Option<Era>,
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
                if let Some(era) = self.cancelled_in {
                    self.link.cancel_in(era, self.entry.id);
                }
                self.link.reach.drop_exchange(self.entry.id);
            }
        }
    }
}
