//! A server somewhere else. Each request is an exchange of its own, which brings its own answer or its own failure;
//! what is left for the generation is the session, the server's own stream, and the end.

mod event_stream;
mod exchange;
mod replay;
mod replies;
mod session;
mod shared;
mod stream;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use linetender_core::{ClosePolicy, Limits as Sizes};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use super::headers::ParamHeaders;
use super::{Endpoint, KeySlot, Settings, Surroundings};
use crate::frame::{self, Frame, Message};
use crate::queue;
use crate::seam::{Carrier, Event, Listener, Outbox, Outgoing, Seal, Ticket, Work};
use crate::seen::Seen;
use crate::tasks::spawn_last;
use crate::{caught, test_hooks};
pub use session::Pings;
use shared::Shared;

/// How long a server may take to hear that the handshake is done. Nothing else is said to it before.
const INITIALIZED: Duration = Duration::from_secs(10);

/// How long an exchange may take that no caller waits for: a notification, an answer to the server's own request, or what
/// is left of a call that is over. Servers that never reply to these would collect connections of ours.
const UNATTENDED: Duration = Duration::from_secs(30);

/// How many notifications are under way at once, and how many more wait. Beyond that the oldest that waits is dropped: a
/// server that takes none for that long has no use for it.
const NOTICES: usize = 8;
const NOTICES_WAITING: usize = 256;

/// How many exchanges whose calls are over are carried on with at once. They are only worth a connection that can be kept.
const RESTS_CARRIED: usize = 32;

/// Exchanges that may wait to be taken over from those who carried them: they are over but for their last bytes.
const RESTS: usize = 256;

/// How messages travel to a server at an address and back.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Way {
    /// Streamable HTTP: each request is answered on its own exchange.
    #[default]
    Streamable,
    /// HTTP+SSE of 2024-11-05: every answer comes on one event stream, and requests go where that says.
    EventStream,
}

/// How to reach a server.
#[derive(Clone, Debug)]
pub struct Approach {
    /// Where it is.
    pub endpoint: Endpoint,
    /// Which transport it speaks, as far as is known.
    pub way: Way,
    /// What every request carries: credentials, most often.
    pub headers: HeaderMap,
    /// The credential that changes while the server is held. With it, a refusal of the key does not end the generation.
    pub key: Option<KeySlot>,
    /// Proxies and roots.
    pub around: Surroundings,
    /// How connections are made and kept.
    pub settings: Settings,
    /// The sizes.
    pub sizes: Sizes,
    /// The times of a polite end.
    pub close: ClosePolicy,
    /// Maximum time from a request's last byte to the refusal of its session. A request that was refused later may have
    /// been executed.
    pub refusal_within: Duration,
    /// True if a call, a notification or an answer that is redirected may be sent again to the new place. Everything else is.
    pub redirects_calls: bool,
    /// True if a notification or an answer that was refused for its key may be sent again with the next one. A call is sent
    /// again by the line.
    pub repeats_after_auth: bool,
    /// HTTP+SSE: how long a stream that was opened may take to name the URL for messages.
    pub endpoint_within: Duration,
    /// Keeps streams of many lines from coming back in step.
    pub seed: u64,
    /// What is known of how this server answers pings.
    pub pings: Pings,
}

/// An order to the generation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Order {
    /// Ends everything.
    Kill,
    /// Ends the session politely, and then everything.
    Close,
    /// Takes nothing more, and lets what is under way run on: each has its own answer coming.
    LetGo,
}

/// A generation over HTTP. Dropping it ends everything that is under way, but what callers carry themselves: that ends when
/// they are settled.
pub struct Remote {
    outbox: Outbox,
    orders: mpsc::Sender<Order>,
    shared: Arc<Shared>,
}

impl Remote {
    /// Connects to nothing yet: the first frame does.
    pub fn launch(approach: Approach, listener: Arc<dyn Listener>, events: mpsc::Sender<Event>) -> Self {
        let sizes = approach.sizes;
        let (outbox, frames, seal) = Outbox::new(sizes.queue.into());
        let (orders, ordered) = mpsc::channel(4);
        let close = approach.close.stdin;
        let (rest, rests) = mpsc::channel(RESTS);
        let shared = Arc::new(Shared::new(approach, listener, events, rest));
        let carrier: Arc<dyn Carrier> = Arc::<Shared>::clone(&shared);
        let outbox = outbox.carried(Arc::downgrade(&carrier));
        let mut keeper = Keeper {
            shared: Arc::clone(&shared),
            frames,
            seal,
            ordered,
            exchanges: JoinSet::new(),
            notices: 0,
            waiting: VecDeque::new(),
            carried: 0,
            rests,
            stream: None,
            pause: None,
            close,
        };
        spawn_last(async move { keeper.supervised().await });
        Self { outbox, orders, shared }
    }

    /// The way down.
    pub const fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Nobody waits for this request any more: its exchange ends, and that is all a modern server has to know.
    pub fn cancel(&self, id: u64) {
        self.shared.cancel(id);
    }

    /// Ends everything that is not carried by its caller.
    pub fn kill(&self) {
        // The queue has room for every order there is, or the keeper is gone.
        let _ = self.orders.try_send(Order::Kill);
    }

    /// Ends the session politely, and then everything.
    pub fn close(&self) {
        let _ = self.orders.try_send(Order::Close);
    }

    /// Takes nothing more, and lets what is under way run on.
    pub fn let_go(&self) {
        let _ = self.orders.try_send(Order::LetGo);
    }

    /// Makes new connections for what is sent from now on. What is under way stays where it is.
    pub fn reconnect(&self) {
        self.shared.pool.clear();
    }

    /// Which transport it speaks, as far as is known.
    pub fn way(&self) -> Way {
        self.shared.way()
    }

    /// Whether the event stream is open that all answers come on, where they do.
    pub fn is_attached(&self) -> bool {
        self.shared.is_attached()
    }

    /// True if there is a session that the server may have forgotten.
    pub fn has_session(&self) -> bool {
        self.shared.spoken().has_session()
    }

    /// Speaks this transport from now on. Only while no handshake has succeeded.
    pub fn turn_to(&self, way: Way) {
        self.shared.turn_to(way);
    }

    /// Which arguments of which tools a modern server wants to see in headers.
    pub fn mirror(&self, tools: HashMap<String, ParamHeaders>) {
        self.shared.mirror(tools);
    }
}

/// The one task that owns what is under way.
struct Keeper {
    shared: Arc<Shared>,
    frames: queue::Receiver<Outgoing>,
    seal: Arc<Seal>,
    ordered: mpsc::Receiver<Order>,
    exchanges: JoinSet<Done>,
    /// Notifications that are under way, and those that wait for one of these to end.
    notices: usize,
    waiting: VecDeque<Frame>,
    /// How many exchanges are carried on with whose calls are over.
    carried: usize,
    /// What is left of exchanges that others carried.
    rests: mpsc::Receiver<Work>,
    stream: Option<AbortHandle>,
    /// What has to be over before another frame is taken.
    pause: Option<Pause>,
    close: Duration,
}

/// What has to be over before another frame is taken; whoever does it tells.
enum Pause {
    /// The server is told that the handshake is done.
    Greeting(oneshot::Receiver<()>),
    /// The event stream is opened that all answers come on.
    Attaching(oneshot::Receiver<()>),
}

/// What the keeper woke up for.
enum News {
    Frame(Option<Outgoing>),
    Order(Option<Order>),
    Done(Done),
    Rest(Work),
}

/// What is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Done {
    /// A request's exchange, by its id if that is ours.
    Request(Option<u64>),
    /// A notification's, or that of an answer to the server's own request.
    Notice,
    /// What was left of an exchange whose call had ended.
    Rest,
    /// The server's own stream.
    Stream,
}

impl Keeper {
    /// Keeps the generation until it is told to end. If the keeper itself panics, that is the end: it is told, and the order
    /// that follows is obeyed.
    async fn supervised(&mut self) {
        if caught(self.keep()).await.is_err() {
            self.exchanges.abort_all();
            self.shared.lost(Seen::Internal { task: "keeper" }).await;
            self.ordered.recv().await;
            self.shared.tell(Event::Gone).await;
        }
    }

    async fn keep(&mut self) {
        let mut sealed = false;
        let last = loop {
            let news = tokio::select! {
                biased;
                order = self.ordered.recv() => News::Order(order),
                Some(done) = self.exchanges.join_next() => News::Done(done.unwrap_or(Done::Stream)),
                () = self.seal.wait(), if !sealed => {
                    sealed = true;
                    continue;
                }
                () = over(&mut self.pause), if self.pause.is_some() => {
                    if let Some(Pause::Greeting(_)) = self.pause.take() {
                        self.shared.greeted();
                    }
                    continue;
                }
                Some(rest) = self.rests.recv() => News::Rest(rest),
                frame = self.frames.recv(), if !sealed && self.pause.is_none() => News::Frame(frame),
            };
            test_hooks::point("http keeper");
            match news {
                News::Frame(Some(outgoing)) => self.begin(outgoing),
                News::Frame(None) => sealed = true,
                News::Order(order) => break order.unwrap_or(Order::Kill),
                News::Done(done) => self.done(done),
                News::Rest(rest) => self.carry(rest),
            }
        };
        self.finish(last).await;
    }

    /// An exchange begins.
    fn begin(&mut self, outgoing: Outgoing) {
        let Ok((frame, ticket)) = outgoing.read(self.shared.limits.depth) else { return };
        let id = match frame.message() {
            Message::Request { id, .. } => frame::number(id),
            Message::Notification { .. } | Message::Response { .. } => None,
        };
        if self.shared.way() == Way::EventStream && !self.shared.is_attached() {
            return self.attach(frame, id, ticket);
        }
        let is_notice = !matches!(frame.message(), Message::Request { .. });
        if is_notice && !is_initialized(&frame) {
            return self.notice(frame);
        }
        let done = is_initialized(&frame);
        let exchange = exchange::run(Arc::clone(&self.shared), frame, id, ticket);
        if done {
            // Whatever is said next must not overtake this, nor the stream on which the server may ask something back.
            let (opened, open) = oneshot::channel();
            let shared = Arc::clone(&self.shared);
            self.pause = Some(Pause::Greeting(open));
            // On the heap: this task lasts as long as the generation, and keeps room for all that it ever held in place.
            let exchange = Box::pin(exchange);
            self.stream = Some(self.exchanges.spawn(async move {
                let _ = tokio::time::timeout(INITIALIZED, exchange).await;
                let learning = Box::pin(session::learn(&shared));
                let own = async {
                    match shared.way() {
                        Way::Streamable => stream::own(Arc::clone(&shared), opened).await,
                        // It is open already.
                        Way::EventStream => drop(opened.send(())),
                    }
                };
                let both = Box::pin(async { tokio::join!(learning, own) });
                if caught(both).await.is_err() {
                    shared.lost(Seen::Internal { task: "stream" }).await;
                }
                Done::Stream
            }));
            return;
        }
        let task = self.exchanges.spawn(async move {
            exchange.await;
            Done::Request(id)
        });
        if let Some(id) = id {
            self.shared.running(id, task);
        }
    }

    /// Opens the event stream that all answers come on, and then posts the frame that wanted it. Its end is the generation's.
    fn attach(&mut self, frame: Frame, id: Option<u64>, ticket: Option<Arc<dyn Ticket>>) {
        let (opened, open) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        self.pause = Some(Pause::Attaching(open));
        self.exchanges.spawn(async move {
            let attached = Box::pin(event_stream::attach(&shared, frame, id, ticket, opened));
            if caught(attached).await.is_err() {
                shared.lost(Seen::Internal { task: "stream" }).await;
            }
            Done::Stream
        });
    }

    /// A notification is sent now, or when one of those under way has ended.
    fn notice(&mut self, frame: Frame) {
        if self.waiting.len() >= NOTICES_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(frame);
        self.start_notices();
    }

    fn start_notices(&mut self) {
        while self.notices < NOTICES
            && let Some(frame) = self.waiting.pop_front()
        {
            self.notices += 1;
            let exchange = exchange::run(Arc::clone(&self.shared), frame, None, None);
            self.exchanges.spawn(async move {
                let _ = tokio::time::timeout(UNATTENDED, exchange).await;
                Done::Notice
            });
        }
    }

    /// Carries on with what a caller began.
    fn carry(&mut self, rest: Work) {
        if self.carried >= RESTS_CARRIED {
            return;
        }
        self.carried += 1;
        self.exchanges.spawn(async move {
            let _ = caught(tokio::time::timeout(UNATTENDED, rest)).await;
            Done::Rest
        });
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Request(id) => self.shared.done(id),
            Done::Notice => {
                self.notices -= 1;
                self.start_notices();
            }
            Done::Rest => self.carried -= 1,
            Done::Stream => {}
        }
    }

    async fn finish(&mut self, order: Order) {
        if let Some(stream) = self.stream.take() {
            stream.abort();
        }
        self.waiting.clear();
        match order {
            Order::LetGo => {
                self.shared.tell(Event::Gone).await;
                self.run_on().await;
            }
            Order::Close => {
                self.exchanges.shutdown().await;
                let _ = tokio::time::timeout(self.close, Box::pin(exchange::end_session(&self.shared))).await;
                self.shared.tell(Event::Gone).await;
            }
            Order::Kill => {
                self.exchanges.shutdown().await;
                self.shared.tell(Event::Gone).await;
            }
        }
    }

    /// Until the last exchange is over, or nobody holds the generation any more.
    async fn run_on(&mut self) {
        loop {
            tokio::select! {
                biased;
                done = self.exchanges.join_next() => match done {
                    Some(done) => {
                        let done = done.unwrap_or(Done::Stream);
                        self.done(done);
                    }
                    None => return,
                },
                Some(rest) = self.rests.recv() => self.carry(rest),
                order = self.ordered.recv() => match order {
                    Some(Order::LetGo | Order::Close) => {}
                    Some(Order::Kill) | None => return,
                },
            }
        }
    }
}

async fn over(pause: &mut Option<Pause>) {
    if let Some(Pause::Greeting(told) | Pause::Attaching(told)) = pause {
        // Whoever was to tell being gone is as good.
        let _ = told.await;
    }
}

fn is_initialized(frame: &Frame) -> bool {
    matches!(frame.message(), Message::Notification { method: "notifications/initialized", .. })
}
