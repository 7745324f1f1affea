//! A gateway as a node of a fleet: what it tells the others, what they ask of it, and the lines that it shares with them.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_nats::{Client, Message};
use futures_util::StreamExt as _;
use linetender_core::lease::{Fence, Node, Standing, Terms};
use linetender_wire::caught;
use linetender_wire::frame::{Limits, Passed};
use linetender_wire::hop::{self, Way};
use linetender_wire::queue;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::chance;
use super::directory::Nats;
use super::line::{FleetLine, Surroundings};
use super::members::{self, Member, Members};
use super::orders::{self, Answer, NoAnswer, Order, SPEAKS, Wants};
use super::stream::{self, GiveUp, Place};
use crate::directory::Directory;
use crate::fleet::Fleet;
use crate::placement;

/// How many agents' places others may have here at once.
const SEATS: usize = 4096;

/// Streams to its front that wait to be taken.
const FRONTS: usize = 64;

/// The longest order.
const LONGEST: usize = 64 * 1024;

/// How often a node that goes looks whether its lines have moved.
const LOOK: Duration = Duration::from_millis(20);

/// Between two tries to be asked.
const AGAIN: Duration = Duration::from_secs(1);

/// One agent's ends of a line.
pub struct Seat {
    to: mpsc::Sender<Passed>,
    from: queue::Receiver<Passed>,
    limits: Limits,
}

impl Seat {
    /// With messages of at most so many bytes, nested so deep.
    pub const fn new(
        to: mpsc::Sender<Passed>,
        from: queue::Receiver<Passed>,
        length: usize,
        depth: usize,
    ) -> Self {
        Self { to, from, limits: Limits { length, depth } }
    }
}

/// What a node has its lines in.
pub trait House: Send + Sync + 'static {
    /// A seat on a line for another node.
    fn seat(&self, line: &str, from: &str) -> Option<Seat>;
    /// Ends the line's server when its calls have ended; what comes after it waits.
    fn recycle<'a>(&'a self, line: &'a str) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
    /// Whether nothing of the line runs here, nor is being started. Not of a line that the house does not know: something of it may
    /// be about to end.
    fn is_still(&self, line: &str) -> bool;
    /// Whether a process of the line runs here, or may: of one that was replaced by another of the same name, for instance.
    fn has_process(&self, line: &str) -> bool;
}

/// A node that is not there, or about to go.
#[derive(Clone, Copy, Debug)]
pub struct Gone;

/// A line, and where it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LineReport {
    /// Its name.
    pub line: String,
    /// The name of the node that owns it, or its number if nobody goes by that.
    pub owner: Option<String>,
    /// Whether that is this node.
    pub here: bool,
    /// Whether it is about to move away from here.
    pub moves: bool,
}

/// What this node knows of its fleet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Report {
    /// The fleet's name.
    pub fleet: String,
    /// This node's name.
    pub node: String,
    /// Whether NATS is connected.
    pub connected: bool,
    /// Nodes that are there, this one among them.
    pub members: Vec<Member>,
    /// Lines.
    pub lines: Vec<LineReport>,
}

/// A gateway that has joined. Dropped, it is gone for the others, and its leases run out.
pub struct Joined {
    inner: Arc<Inner>,
    /// Streams from other nodes to this one's front.
    fronts: tokio::sync::Mutex<mpsc::Receiver<NodeStream>>,
    _tasks: JoinSet<()>,
}

struct Inner {
    client: Client,
    of: Surroundings,
    node: Node,
    leases: Fleet,
    own: watch::Sender<Member>,
    members: watch::Receiver<Members>,
    /// Names of lines that this node is configured for.
    known: watch::Sender<Arc<[String]>>,
    house: watch::Sender<Option<Arc<dyn House>>>,
    fronts: mpsc::Sender<NodeStream>,
    directory: Arc<dyn Directory>,
    lines: Mutex<BTreeMap<String, Kept>>,
}

struct Kept {
    line: Arc<FleetLine>,
    _tends: JoinSet<()>,
}

impl Joined {
    /// Joins. The directory's options say which fleet, and what this node is called.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn join(directory: Nats, terms: Terms) -> Self {
        let (client, options) = (directory.client(), directory.options().clone());
        let node = Node(chance());
        let member = Member {
            name: options.node.clone(),
            node: node.0,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            leaving: false,
            owns: 0,
            shares: 0,
        };
        let (tell, members) = watch::channel(Members::default());
        let of = Surroundings {
            client: client.clone(),
            fleet: options.fleet.clone(),
            name: options.node,
            numbers: || u128::from(chance()) << 64 | u128::from(chance()),
        };
        let directory: Arc<dyn Directory> = Arc::new(directory);
        let (fronts, come) = mpsc::channel(FRONTS);
        let inner = Arc::new(Inner {
            leases: Fleet::join(node, terms, Arc::clone(&directory), Arc::new(crate::now)),
            directory,
            fronts,
            client: client.clone(),
            of,
            node,
            own: watch::Sender::new(member),
            members,
            known: watch::Sender::new(Arc::default()),
            house: watch::Sender::new(None),
            lines: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        let own = inner.own.subscribe();
        tasks.spawn(supervised("members", move || {
            members::keep(client.clone(), options.fleet.clone(), own.clone(), tell.clone())
        }));
        let weak = Arc::downgrade(&inner);
        tasks.spawn(supervised("orders", move || asked(Weak::clone(&weak))));
        tasks.spawn(counted(Arc::downgrade(&inner)));
        Self { inner, fronts: tokio::sync::Mutex::new(come), _tasks: tasks }
    }

    /// The way to a line: the same one each time.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn way(&self, name: &str) -> Arc<dyn Way> {
        self.inner.line(name)
    }

    /// From now on these lines are this node's too; others are let go of. `house` has them.
    pub fn shares(&self, names: impl IntoIterator<Item = String>, house: Arc<dyn House>) {
        self.inner.house.send_replace(Some(house));
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_unstable();
        let shares = placement::number(&names);
        self.inner.own.send_modify(|own| own.shares = shares);
        self.inner.known.send_replace(names.into());
    }

    /// A line of the house was replaced by another of the same name: whoever has a seat on the old one takes one on the new.
    pub fn replaced(&self, name: &str) {
        if let Some(line) = self.inner.known_line(name) {
            line.replaced();
        }
    }

    /// Whether there are other nodes that lines can move to.
    pub fn has_others(&self) -> bool {
        let own = self.inner.node.0;
        self.inner.members.borrow().values().any(|member| member.node != own && !member.leaving)
    }

    /// Lets all lines go to other nodes, if there are any, as far as that is done within `limit`. Whether all are gone.
    pub async fn leave(&self, limit: Duration) -> bool {
        self.inner.own.send_modify(|own| own.leaving = true);
        let until = Instant::now() + limit;
        while self.inner.owned() > 0 {
            if Instant::now() >= until {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
        true
    }

    /// Whether this node is about to go.
    pub fn is_leaving(&self) -> bool {
        self.inner.own.borrow().leaving
    }

    /// What is known of the fleet.
    pub fn report(&self) -> Report {
        let inner = &*self.inner;
        let members = Arc::clone(&inner.members.borrow());
        let name = |node: Node| match members.get(&node.0) {
            Some(member) => member.name.clone(),
            None => format!("{:016x}", node.0),
        };
        let lines = inner.lines();
        let lines = lines.iter().map(|(line, kept)| {
            let standing = kept.line.standing();
            let here = matches!(standing, Standing::Owner { .. });
            let owner = match standing {
                Standing::Owner { fence, .. } | Standing::Elsewhere { fence } => Some(name(fence.node)),
                Standing::Sealed { .. } | Standing::Nobody => None,
            };
            LineReport { line: line.clone(), owner, here, moves: kept.line.moves() }
        });
        Report {
            fleet: inner.of.fleet.clone(),
            node: inner.of.name.clone(),
            connected: inner.client.connection_state() == async_nats::connection::State::Connected,
            lines: lines.collect(),
            members: members.values().cloned().collect(),
        }
    }

    /// The next stream from another node to this one's front.
    pub async fn accept(&self) -> Option<NodeStream> {
        self.fronts.lock().await.recv().await
    }

    /// A stream to another node's front; `None` if it may be there, and does not answer.
    ///
    /// # Errors
    /// If it is not there, or lets nobody in.
    pub async fn front(&self, node: Node) -> Result<Option<NodeStream>, Gone> {
        let inner = &*self.inner;
        let own = Place::new(&inner.of.fleet, (inner.of.numbers)());
        let Ok(heard) = own.listen(&inner.client).await else { return Ok(None) };
        let wants = Wants::Front { stream: own.name().to_owned() };
        let order = Order { speaks: SPEAKS, from: inner.of.name.clone(), wants };
        match orders::ask(&inner.client, orders::subject(&inner.of.fleet, node), &order).await {
            Ok(Answer::Taken { stream }) => {
                let Some(other) = Place::named(&inner.of.fleet, &stream) else { return Ok(None) };
                let (input, output) =
                    stream::begin(inner.client.clone(), &own, heard, &other, GiveUp::default());
                Ok(Some(tokio::io::join(input, output)))
            }
            Ok(Answer::Elsewhere | Answer::Refused { .. } | Answer::Alive) | Err(NoAnswer::Nobody) => {
                Err(Gone)
            }
            Err(NoAnswer::Silence(_)) => Ok(None),
        }
    }

    /// The node that something should be on, but for these.
    pub fn place(&self, what: &str, but: &[Node]) -> Option<Node> {
        let members = Arc::clone(&self.inner.members.borrow());
        let there = members.values().filter(|member| !member.leaving && !but.contains(&Node(member.node)));
        let numbers: BTreeMap<&str, u64> = there.map(|member| (&*member.name, member.node)).collect();
        let name = placement::owner(what, numbers.keys().copied())?;
        numbers.get(name).map(|node| Node(*node))
    }

    /// The directory that all nodes reach.
    pub fn directory(&self) -> &Arc<dyn Directory> {
        &self.inner.directory
    }

    /// Whether a node is there.
    pub fn is_there(&self, node: Node) -> bool {
        self.inner.node == node || self.inner.members.borrow().contains_key(&node.0)
    }

    /// Whether a node is there, and has not said that it goes.
    pub fn stays(&self, node: Node) -> bool {
        self.inner.members.borrow().get(&node.0).is_some_and(|member| !member.leaving)
    }

    /// This node's number.
    pub fn node(&self) -> Node {
        self.inner.node
    }
}

impl Inner {
    fn lines(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(self: &Arc<Self>, name: &str) -> Arc<FleetLine> {
        let mut lines = self.lines();
        if let Some(kept) = lines.get(name) {
            return Arc::clone(&kept.line);
        }
        let line =
            Arc::new(FleetLine::new(name, self.of.clone(), self.leases.line(name), self.house.subscribe()));
        let mut tends = JoinSet::new();
        let (here, should) = watch::channel(false);
        tends.spawn(placed(
            name.to_owned(),
            (self.of.name.clone(), self.node),
            self.known.subscribe(),
            self.members.clone(),
            here,
        ));
        let (tended, mut house) = (Arc::clone(&line), self.house.subscribe());
        tends.spawn(async move {
            let Ok(house) = house.wait_for(Option::is_some).await.map(|house| house.clone()) else { return };
            if let Some(house) = house {
                supervised("line", || tended.tend(&*house, should.clone())).await;
            }
        });
        lines.insert(name.to_owned(), Kept { line: Arc::clone(&line), _tends: tends });
        line
    }

    fn known_line(&self, name: &str) -> Option<Arc<FleetLine>> {
        self.lines().get(name).map(|kept| Arc::clone(&kept.line))
    }

    fn owned(&self) -> usize {
        let owned =
            |kept: &&Kept| matches!(kept.line.standing(), Standing::Owner { .. } | Standing::Sealed { .. });
        self.lines().values().filter(owned).count()
    }

    /// What is said to an order; and the stream that begins with it.
    async fn answer(&self, order: Order) -> (Answer, Option<Begins>) {
        let refused = |why: &str| (Answer::Refused { why: why.to_owned() }, None);
        if order.speaks > SPEAKS {
            return refused("it is an older linetender, and does not understand the order");
        }
        let (stream, to) = match order.wants {
            Wants::Alive => return (Answer::Alive, None),
            // It is about to close.
            Wants::Front { .. } if self.own.borrow().leaving => return (Answer::Elsewhere, None),
            Wants::Front { stream } => (stream, To::Front(self.fronts.clone())),
            Wants::Line { line, node, claim, stream } => {
                let fence = Fence { node: Node(node), claim };
                let Some(house) = self.house.borrow().clone() else { return (Answer::Elsewhere, None) };
                let seat = self.known_line(&line).and_then(|line| line.seat(&*house, fence, &order.from));
                let Some((seat, stand)) = seat else { return (Answer::Elsewhere, None) };
                (stream, To::Line(seat, stand))
            }
        };
        let Some(other) = Place::named(&self.of.fleet, &stream) else {
            return refused("no stream was named");
        };
        let own = Place::new(&self.of.fleet, (self.of.numbers)());
        let Ok(heard) = own.listen(&self.client).await else { return refused("NATS is away") };
        let (input, output) = stream::begin(self.client.clone(), &own, heard, &other, GiveUp::default());
        let begins = Begins { to, stream: tokio::io::join(input, output) };
        (Answer::Taken { stream: own.name().to_owned() }, Some(begins))
    }
}

/// A stream from or to another node.
pub type NodeStream = tokio::io::Join<stream::Input, stream::Output>;

/// A stream, and what is at this end of it.
struct Begins {
    to: To,
    stream: NodeStream,
}

enum To {
    Line(Seat, watch::Receiver<hop::Stand>),
    Front(mpsc::Sender<NodeStream>),
}

impl Begins {
    async fn serve(self) {
        match self.to {
            To::Line(Seat { to, from, limits }, stand) => {
                // A stream that breaks is an asker that went.
                let _ = hop::serve_far(self.stream, limits, to, from, stand).await;
            }
            To::Front(front) => {
                // If nobody takes it, whoever asked sees its end.
                let _ = front.try_send(self.stream);
            }
        }
    }
}

/// Does this to its end. If it panics, that is told, and it begins anew: without it this node would be deaf, and nobody would know.
async fn supervised<F: Future<Output = ()>>(task: &'static str, mut work: impl FnMut() -> F) {
    while caught(work()).await.is_err() {
        tracing::error!(task, "internal error: a task of the fleet panicked; it is started again");
        tokio::time::sleep(AGAIN).await;
    }
}

/// Says whether a line should be on this node, as long as anybody wants to know.
async fn placed(
    line: String,
    (own, node): (String, Node),
    mut known: watch::Receiver<Arc<[String]>>,
    mut members: watch::Receiver<Members>,
    here: watch::Sender<bool>,
) {
    loop {
        let should = {
            let members = Arc::clone(&members.borrow_and_update());
            let is_known = known.borrow_and_update().binary_search(&line).is_ok();
            is_known && placement::owner(&line, members::places(&members, node.0)) == Some(&own)
        };
        here.send_if_modified(|before| std::mem::replace(before, should) != should);
        let told = tokio::select! {
            told = known.changed() => told,
            told = members.changed() => told,
        };
        if told.is_err() {
            return;
        }
    }
}

/// Takes orders for as long as the node is there.
async fn asked(inner: Weak<Inner>) {
    let mut seats = JoinSet::new();
    loop {
        let Some((client, subject)) =
            inner.upgrade().map(|inner| (inner.client.clone(), orders::subject(&inner.of.fleet, inner.node)))
        else {
            return;
        };
        let Ok(mut orders) = client.subscribe(subject).await else {
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        loop {
            tokio::select! {
                message = orders.next() => {
                    let (Some(message), Some(inner)) = (message, inner.upgrade()) else { break };
                    if seats.len() >= SEATS {
                        let full = Answer::Refused { why: "it serves as many others as it can".to_owned() };
                        say(&client, message, &full).await;
                        continue;
                    }
                    let client = client.clone();
                    seats.spawn(async move {
                        let (answer, begins) = match order(&message) {
                            Ok(order) => inner.answer(order).await,
                            Err(why) => (Answer::Refused { why }, None),
                        };
                        drop(inner);
                        say(&client, message, &answer).await;
                        if let Some(begins) = begins {
                            begins.serve().await;
                        }
                    });
                }
                Some(_) = seats.join_next() => {}
            }
        }
    }
}

fn order(message: &Message) -> Result<Order, String> {
    if message.payload.len() > LONGEST {
        return Err("the order is too long".to_owned());
    }
    serde_json::from_slice(&message.payload)
        .map_err(|error| format!("it does not understand the order: {error}"))
}

async fn say(client: &Client, message: Message, answer: &Answer) {
    if let (Some(reply), Ok(text)) = (message.reply, serde_json::to_vec(answer)) {
        let _ = tokio::time::timeout(AGAIN, client.publish(reply, text.into())).await;
    }
}

/// Tells the others how many lines are here.
async fn counted(inner: Weak<Inner>) {
    loop {
        let Some(inner) = inner.upgrade() else { return };
        let owns = inner.owned();
        inner.own.send_if_modified(|own| std::mem::replace(&mut own.owns, owns) != owns);
        drop(inner);
        tokio::time::sleep(AGAIN).await;
    }
}
