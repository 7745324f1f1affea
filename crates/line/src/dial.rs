//! Making a generation: a turn at the dial gate, a process, a handshake.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use linetender_core::{Evidence, Generation, Record, Safety};
use linetender_wire::Seen;
use linetender_wire::frame::{self, Message, Outcome};
use linetender_wire::handshake::{Era, Greeting, Handshake, Hello, Next};
use linetender_wire::stdio::{self, Child, Launch, Listener, Reaper};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::clock::duration;
use crate::entry::Reply;
use crate::ledger::Ledger;
use crate::server::Server;

/// A generation that has a process.
pub(crate) struct Link {
    pub(crate) generation: Generation,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) child: Child,
    pub(crate) greeting: OnceLock<Greeting>,
}

/// What a dial tells its tender.
pub(crate) enum DialNews {
    /// It was its turn: the start time runs.
    Started,
    /// There is a process.
    Linked(Arc<Link>),
    /// The handshake is done.
    Greeted,
    /// It cannot be done.
    Failed(Seen),
}

/// What came of a question.
enum Heard {
    Reply(Result<Reply, oneshot::error::RecvError>),
    Silence,
}

/// What a dial needs.
pub(crate) struct Dial {
    pub(crate) generation: Generation,
    pub(crate) server: Arc<Server>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) gate: Arc<Semaphore>,
    pub(crate) remembered: Option<Era>,
    pub(crate) wire: mpsc::Sender<stdio::Event>,
    /// Whether the server is being asked a question that makes some old ones exit.
    pub(crate) probing: Arc<AtomicBool>,
}

impl Dial {
    /// Dials. Each piece of news goes to `tell` in order.
    pub(crate) async fn run<F: Future<Output = ()>>(self, mut tell: impl FnMut(DialNews) -> F) {
        // Waiting for a turn is neither start time nor failure. The permit is held until the handshake is done.
        let Ok(_turn) = self.gate.clone().acquire_owned().await else { return };
        tell(DialNews::Started).await;
        let listener = Arc::clone(&self.ledger) as Arc<dyn Listener>;
        let child = match self.launch().and_then(|launch| Child::launch(&launch, listener, self.wire.clone()))
        {
            Ok(child) => child,
            Err(seen) => return tell(DialNews::Failed(seen)).await,
        };
        self.ledger.open(child.outbox().clone());
        let ledger = Arc::clone(&self.ledger);
        let link = Arc::new(Link { generation: self.generation, ledger, child, greeting: OnceLock::new() });
        tell(DialNews::Linked(Arc::clone(&link))).await;
        match self.shake_hands(&link).await {
            Ok(greeting) => {
                if greeting.era == Era::Legacy {
                    link.ledger.tell(frame::notification("notifications/initialized", None));
                }
                let _ = link.greeting.set(greeting);
                tell(DialNews::Greeted).await;
            }
            // A connection that is gone tells why by itself.
            Err(None) => {}
            Err(Some(seen)) => tell(DialNews::Failed(seen)).await,
        }
    }

    fn launch(&self) -> Result<Launch, Seen> {
        let settings = self.server.policy.settings();
        let reaper = match &self.server.reaper {
            Some(reaper) => reaper.clone(),
            None => Reaper::Binary(this_program().map_err(|reason| Seen::NoProcess { reason })?),
        };
        Ok(Launch {
            program: self.server.program.clone(),
            reaper,
            close: settings.close,
            sizes: settings.limits,
        })
    }

    async fn shake_hands(&self, link: &Link) -> Result<Greeting, Option<Seen>> {
        let mut handshake = Handshake::new(self.server.hello.clone(), self.server.eras, self.remembered);
        let mut next = handshake.ask();
        // A silent server may answer the first question after the second was asked.
        let mut earlier: Option<oneshot::Receiver<Reply>> = None;
        loop {
            let (method, params) = match next {
                Next::Done(greeting) => return Ok(greeting),
                Next::Failed(seen) => return Err(Some(seen)),
                Next::Ask { method, params } => (method, params),
            };
            self.probing.store(handshake.ended().is_some(), Ordering::Relaxed);
            let mut answer = link.ask(method, Some(&params)).ok_or(None)?;
            let heard = loop {
                tokio::select! {
                    reply = &mut answer => break Heard::Reply(reply),
                    reply = either(&mut earlier) => {
                        if let Ok(Reply::Answer(frame)) = &reply
                            && let Message::Response { outcome: Some((Outcome::Result, result)), .. } = frame.message()
                        {
                            return Ok(Greeting { era: Era::Modern, result: result.into() });
                        }
                        earlier = None;
                    }
                    () = self.silence(link), if handshake.ended().is_some() => break Heard::Silence,
                }
            };
            next = match heard {
                Heard::Silence => {
                    earlier = Some(answer);
                    handshake.silent().ok_or(None)?
                }
                Heard::Reply(Ok(Reply::Answer(frame))) => match frame.message() {
                    Message::Response { outcome: Some((Outcome::Result, result)), .. } => {
                        handshake.accepted(result)
                    }
                    Message::Response { outcome: Some((Outcome::Error, error)), .. } => {
                        handshake.refused(error)
                    }
                    _ => return Err(None),
                },
                // An answer of no use, an error without an id among them, is not a modern server's.
                Heard::Reply(Ok(Reply::Unusable(why))) => handshake.refused(&why),
                // The same, if there were two questions it could be about.
                Heard::Reply(Ok(Reply::Lost(_, Some(why)))) if !link.ledger.is_sealed() => {
                    handshake.refused(&why)
                }
                Heard::Reply(Ok(Reply::Lost(..)) | Err(_)) => return Err(None),
            };
        }
    }

    /// Ends when the server has been silent for long enough to count: it talks but does not answer, or it had half of its
    /// start time and said nothing at all (a package runner may be downloading).
    async fn silence(&self, link: &Link) {
        let policy = self.server.policy.settings().dial;
        let begun = link.ledger.vitals().heard_at;
        let mut waited = Duration::ZERO;
        loop {
            tokio::time::sleep(duration(policy.probe_wait)).await;
            waited += duration(policy.probe_wait);
            if link.ledger.vitals().heard_at > begun || waited * 2 >= duration(policy.start) {
                return;
            }
        }
    }
}

impl Link {
    /// A question of our own. `None` if the generation is over.
    pub(crate) fn ask(&self, method: &str, params: Option<&str>) -> Option<oneshot::Receiver<Reply>> {
        let record = Record::new(Safety::Protocol);
        let seat = self.ledger.register(None, record, |id| frame::request(id, method, params));
        seat.ok().map(|(_, answer)| answer)
    }

    /// Its era, once the handshake is done.
    pub(crate) fn era(&self) -> Era {
        self.greeting.get().map_or(Era::Legacy, |greeting| greeting.era)
    }

    /// A sign of life: any correlated reply will do.
    pub(crate) async fn probe(&self, hello: &Hello) -> bool {
        let answer = match self.era() {
            Era::Legacy => self.ask("ping", None),
            Era::Modern => {
                let params = serde_json::json!({ "_meta": hello.meta() }).to_string();
                self.ask("server/discover", Some(&params))
            }
        };
        match answer {
            Some(answer) => matches!(answer.await, Ok(Reply::Answer(_) | Reply::Unusable(_))),
            None => false,
        }
    }

    /// What a lost call's verdict can rest on.
    pub(crate) fn residue(&self) -> Evidence {
        match self.child.consumed() {
            Some(bytes) => Evidence::Consumed { bytes },
            None => Evidence::Nothing,
        }
    }
}

async fn either(earlier: &mut Option<oneshot::Receiver<Reply>>) -> Result<Reply, oneshot::error::RecvError> {
    match earlier {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    }
}

fn this_program() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("cannot find this program to run the reaper: {error}"))
}
