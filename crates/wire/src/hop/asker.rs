//! The asker's end: a generation whose server is held by another process.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use linetender_core::Limits as Sizes;
use tokio::io::AsyncWrite;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::carrier::{Carrier, Far, Input, Output};
use super::near::Tally;
use super::{ACKNOWLEDGED, GOES, HANDS, MOVE, THERE};
use crate::frame::Limits;
use crate::handshake::Hello;
use crate::lines::{Item, Lines};
use crate::redact::Redacted;
use crate::seam::{Event, Listener, Outbox, Outgoing, Seal};
use crate::seen::Seen;
use crate::stdio::platform::Stdin;
use crate::stdio::{Lifeline, writer};
use crate::tasks::{Owned, spawn_last};
use crate::{caught, test_hooks};

/// How often it is looked whether the owner still reads. What is not acknowledged from one look to the next is suspicious.
const LOOK: Duration = Duration::from_secs(3);

/// An owner that has said nothing for so long is asked whether it is there.
const QUIET: Duration = Duration::from_secs(6);

/// How long an owner that hands over may take: it answers what it has taken, and reads nothing meanwhile.
const HANDING: u32 = 15;

/// After the end, how long the last words of the owner may take: then it is not known what it had read.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The most that a last drain takes, as from a pipe.
const DRAINED: usize = 1024 * 1024;

/// The way to whoever owns a line.
pub trait Way: fmt::Debug + Send + Sync {
    /// Nothing of the line runs here now. Returns when it can be told where it runs next; waiting for that is no part of a server's
    /// start.
    fn ready(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }

    /// Where the line is. `hello` is who asks, as it would speak to the server.
    fn reach<'a>(&'a self, hello: &'a Hello) -> Pin<Box<dyn Future<Output = Found> + Send + 'a>>;
}

/// Where a line is.
pub enum Found {
    /// With an owner, which has taken the order.
    There(Reached),
    /// Whoever asks runs the server itself.
    Here {
        /// Its processes are killed when this is over.
        lifeline: Option<Arc<Lifeline>>,
        /// Why, if it was to be elsewhere.
        why: Option<String>,
    },
    /// Nowhere, as far as could be seen.
    Nowhere(Seen),
}

/// How an owner ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OwnerEnd {
    /// It is gone, or cannot be reached.
    Gone,
    /// It said that it goes.
    Left,
    /// It does not answer.
    Hangs,
}

/// An owner that was reached.
pub struct Reached {
    carrier: Carrier,
    tally: Option<Tally>,
    owner: Arc<dyn Owner>,
}

impl Reached {
    /// With an owner on this machine.
    #[cfg_attr(not(unix), expect(dead_code, reason = "nobody is near on such a system"))]
    pub(super) fn near(carrier: Carrier, tally: Option<Tally>, owner: Arc<dyn Owner>) -> Self {
        Self { carrier, tally, owner }
    }

    /// With an owner on another machine.
    pub fn far(
        input: Box<dyn Far>,
        output: Box<dyn AsyncWrite + Send + Sync + Unpin>,
        owner: Arc<dyn Owner>,
    ) -> Self {
        Self { carrier: (Input::Far(input), Output::Far(output)), tally: None, owner }
    }
}

/// The process at the other end.
pub trait Owner: Send + Sync {
    /// Whether it answers somebody who knocks anew.
    fn answers(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;
    /// Kills it: it hangs.
    fn kill(&self);
    /// Its number, if that is known.
    fn pid(&self) -> Option<i32>;
    /// What its end is called.
    fn ended(&self, how: OwnerEnd) -> Seen {
        match how {
            OwnerEnd::Gone => Seen::OwnerGone,
            OwnerEnd::Left => Seen::OwnerLeft,
            OwnerEnd::Hangs => Seen::OwnerHangs,
        }
    }
}

/// A generation whose server is held by another process. Dropping it lets go of it.
pub struct Hop {
    outbox: Outbox,
    orders: mpsc::Sender<Order>,
    drain: mpsc::Sender<oneshot::Sender<()>>,
    consumed: Arc<OnceLock<u64>>,
    owner: Option<i32>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Order {
    Kill,
    Close,
}

impl Hop {
    /// Begins to talk.
    pub fn launch(
        reached: Reached,
        sizes: Sizes,
        listener: Arc<dyn Listener>,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let Reached { carrier: (input, output), tally, owner } = reached;
        let number = owner.pid();
        let (outbox, frames, seal) = Outbox::new(sizes.queue.into());
        let (drain, drains) = mpsc::channel(1);
        let (orders, ordered) = mpsc::channel(4);
        let limits = Limits { length: sizes.message as usize, depth: sizes.depth.into() };
        let said = Arc::new(Said { tally, ..Said::default() });
        let accepted = Arc::<AtomicU64>::default();
        let watch = Watch {
            writer: Some(Owned::spawn(writer::write(
                output,
                frames,
                Arc::clone(&seal),
                Arc::clone(&accepted),
                None,
            ))),
            reader: Owned::spawn(read(input, limits, listener, drains, events.clone(), Arc::clone(&said))),
            owner,
            ordered,
            events,
            seal,
            accepted,
            said,
            outbox: outbox.clone(),
            consumed: Arc::default(),
        };
        let hop = Self { outbox, orders, drain, consumed: Arc::clone(&watch.consumed), owner: number };
        spawn_last(watch.supervised());
        hop
    }

    /// The way down.
    pub const fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Reads what is readable, and nothing after it but acknowledgements.
    pub async fn drain(&self) {
        let (done, drained) = oneshot::channel();
        if self.drain.send(done).await.is_ok() {
            let _ = drained.await;
        }
    }

    /// Ends it. An owner that hangs is killed, so that the next one can begin.
    pub fn kill(&self) {
        let _ = self.orders.try_send(Order::Kill);
    }

    /// Ends it politely.
    pub fn close(&self) {
        let _ = self.orders.try_send(Order::Close);
    }

    /// The process that holds the server.
    pub const fn owner(&self) -> Option<i32> {
        self.owner
    }

    /// How many of the bytes that were written the owner had acknowledged, once it can acknowledge no more.
    pub fn consumed(&self) -> Option<u64> {
        self.consumed.get().copied()
    }
}

/// What the owner said beside messages.
#[derive(Default)]
struct Said {
    acknowledged: AtomicU64,
    /// It takes nothing more, on purpose.
    hands: AtomicBool,
    /// It goes on purpose.
    goes: AtomicBool,
    moves: Mutex<Option<Redacted>>,
    moved: Notify,
    /// Whether anything came since this was last asked.
    heard: AtomicBool,
    tally: Option<Tally>,
}

impl Said {
    /// Up to where everything was read, as far as it has said.
    fn acknowledged(&self) -> u64 {
        let more = self.tally.as_ref().map_or(0, Tally::take);
        self.acknowledged.fetch_add(more, Ordering::AcqRel) + more
    }

    /// Takes a line that is no message; `false` if it is not the hop's either.
    fn take(&self, line: &Bytes) -> bool {
        let Some((kind, words)) = line.split_first() else { return false };
        let words = String::from_utf8_lossy(words);
        match *kind {
            ACKNOWLEDGED => {
                let Ok(bytes) = words.parse() else { return false };
                self.acknowledged.fetch_max(bytes, Ordering::AcqRel);
            }
            MOVE => {
                let why = Redacted::head(&words, 200);
                *self.moves.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                self.moved.notify_one();
            }
            HANDS => self.hands.store(true, Ordering::Release),
            GOES => self.goes.store(true, Ordering::Release),
            _ => return false,
        }
        true
    }
}

/// Reads to the end, whoever still listens: acknowledgements count until then.
async fn read(
    mut input: Input,
    limits: Limits,
    listener: Arc<dyn Listener>,
    mut drain: mpsc::Receiver<oneshot::Sender<()>>,
    events: mpsc::Sender<Event>,
    said: Arc<Said>,
) -> Input {
    use tokio::io::AsyncReadExt as _;
    let mut lines = Lines::new(limits);
    let (mut first, mut listens) = (true, true);
    loop {
        tokio::select! {
            biased;
            read = input.read_buf(lines.buffer()) => {
                test_hooks::point("reader");
                let bytes = read.unwrap_or(0);
                let messages = take(&mut lines, listens.then_some(&*listener), &said, bytes);
                // The server's first word, as far as anybody here can tell: an owner says its own at once.
                if messages && listens && std::mem::take(&mut first) {
                    let _ = events.send(Event::FirstByte).await;
                }
                if bytes == 0 {
                    break;
                }
            }
            Some(done) = drain.recv() => {
                let mut drained = 0;
                while drained < DRAINED
                    && let Ok(bytes @ 1..) = input.read_now(lines.buffer())
                {
                    take(&mut lines, Some(&*listener), &said, bytes);
                    drained += bytes;
                }
                listens = false;
                let _ = done.send(());
            }
        }
    }
    // Whoever wants a drain from now on gets one: there is nothing left.
    drain.close();
    while let Some(done) = drain.recv().await {
        let _ = done.send(());
    }
    input
}

/// Takes what has come; whether a message was among it.
fn take(lines: &mut Lines, listener: Option<&dyn Listener>, said: &Said, bytes: usize) -> bool {
    let mut messages = false;
    if bytes > 0 {
        said.heard.store(true, Ordering::Release);
        if let Some(listener) = listener {
            listener.heard();
        }
    }
    while let Some(item) = if bytes > 0 { lines.take() } else { lines.finish() } {
        match (&item, listener) {
            (Item::Noise(line), _) if said.take(line) => {}
            (_, Some(listener)) => {
                messages = true;
                listener.hear(item);
            }
            (_, None) => {}
        }
    }
    messages
}

impl Stdin for Output {
    /// The end of the stream says so to whoever reads.
    async fn broken(&self) {
        std::future::pending::<()>().await;
    }

    /// Only the owner's acknowledgements say what it has read.
    fn unread(&self) -> Option<Vec<u8>> {
        None
    }
}

/// The one task that knows whether the owner is there.
struct Watch {
    writer: Option<Owned<(Output, writer::WriteEnd)>>,
    reader: Owned<Input>,
    owner: Arc<dyn Owner>,
    ordered: mpsc::Receiver<Order>,
    events: mpsc::Sender<Event>,
    seal: Arc<Seal>,
    accepted: Arc<AtomicU64>,
    said: Arc<Said>,
    outbox: Outbox,
    consumed: Arc<OnceLock<u64>>,
}

impl Watch {
    /// If it panics itself, that is the generation's end, and what was read is not known.
    async fn supervised(self) {
        let events = self.events.clone();
        if caught(self.watch()).await.is_err() {
            let _ = events.send(Event::Lost(Seen::Internal { task: "hop" })).await;
        }
    }

    async fn watch(mut self) {
        let mut look = tokio::time::interval_at(Instant::now() + LOOK, LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut before, mut quiet, mut asked) = (None, Duration::ZERO, false);
        let (mut over, mut hangs, mut handing) = (false, false, 0);
        let order = loop {
            tokio::select! {
                biased;
                done = &mut self.reader, if !over => {
                    over = true;
                    // What it had not acknowledged by the end of its stream it never will. Only a reader that came to the end knows
                    // that: if it panicked, the owner may live, and still take what lies there.
                    if let Ok(input) = &done {
                        self.taken(input);
                    }
                    let seen = match done {
                        Err(_) => Seen::Internal { task: "reader" },
                        Ok(_) if hangs => self.owner.ended(OwnerEnd::Hangs),
                        Ok(_) if self.said.goes.load(Ordering::Acquire) => self.owner.ended(OwnerEnd::Left),
                        Ok(_) => self.owner.ended(OwnerEnd::Gone),
                    };
                    let _ = self.events.send(Event::Lost(seen)).await;
                }
                order = self.ordered.recv() => break order.unwrap_or(Order::Close),
                () = self.said.moved.notified(), if !over => {
                    let why = self.said.moves.lock().unwrap_or_else(PoisonError::into_inner).take();
                    let _ = self.events.send(Event::Moved(why.unwrap_or_default())).await;
                }
                _ = look.tick(), if !over => {
                    if hangs {
                        // It was killed, and is still not gone: what it had read is not known.
                        let _ = self.events.send(Event::Lost(self.owner.ended(OwnerEnd::Hangs))).await;
                        break self.ordered.recv().await.unwrap_or(Order::Close);
                    }
                    let heard = self.said.heard.swap(false, Ordering::AcqRel);
                    quiet = if heard { Duration::ZERO } else { quiet + LOOK };
                    if self.said.hands.load(Ordering::Acquire) && handing < HANDING {
                        handing += 1;
                        continue;
                    }
                    let owed = self.owed();
                    if owed.is_some() && (owed == before || asked) && !self.owner.answers().await {
                        // The end of the stream follows, and with it what it had read.
                        hangs = true;
                        self.owner.kill();
                        // It was asked for as long as from one look to the next: it has that long again to be gone.
                        look.reset();
                        continue;
                    }
                    before = self.owed();
                    asked = quiet >= QUIET && before.is_none();
                    if asked {
                        quiet = Duration::ZERO;
                        // If there is no room it is busy enough to be looked at.
                        let _ = self.outbox.send(Outgoing::text(Bytes::from_static(THERE.as_bytes()), None));
                    }
                }
            }
        };
        self.end(order, over, hangs).await;
    }

    /// The stream has ended: it may be known what the owner had taken.
    fn taken(&self, input: &Input) {
        if let Some(bytes) = input.taken(self.said.acknowledged()) {
            let _ = self.consumed.set(bytes);
        }
    }

    /// Up to where it has acknowledged, if that is not all.
    fn owed(&self) -> Option<u64> {
        let acknowledged = self.said.acknowledged();
        (self.accepted.load(Ordering::Acquire) > acknowledged).then_some(acknowledged)
    }

    /// It was told to go. What was acknowledged is known when the stream has ended, and not before.
    async fn end(mut self, order: Order, mut over: bool, hangs: bool) {
        self.seal.set();
        if !over && !hangs && order == Order::Kill && !self.owner.answers().await {
            self.owner.kill();
        }
        // Our end of the stream goes with the writer: an owner that lives sees that, and lets go too.
        if let Some(mut writer) = self.writer.take() {
            let _ = tokio::time::timeout(LAST_WORDS, &mut writer).await;
        }
        if !over && !hangs && self.owed().is_none() {
            // It has taken everything, and nothing more comes: there is nothing to learn from its end.
            over = true;
            let _ = self.consumed.set(self.said.acknowledged());
        }
        if !over && let Ok(Ok(input)) = tokio::time::timeout(LAST_WORDS, &mut self.reader).await {
            over = true;
            self.taken(&input);
        }
        if over {
            let _ = self.events.send(Event::NoReader).await;
        }
        let _ = self.events.send(Event::Gone).await;
    }
}
