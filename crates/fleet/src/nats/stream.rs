//! A stream of bytes between two nodes, as messages of NATS.
//!
//! NATS may lose messages, and says so to nobody. So each has a number, and a gap is the end of the stream. What NATS does say at once is
//! that nobody listens: then a message was not delivered, and whoever sent it knows from which byte on nothing arrived.
//!
//! | message | means |
//! |---|---|
//! | `D` number, bytes | the next bytes |
//! | `C` bytes, messages | so many were taken since the beginning: that much more may be sent |
//! | `F` number | nothing more comes, after so many |
//! | `P` | are you there? (a `C` is the answer) |
//! | `R` | given up |

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use async_nats::{Client, Message, StatusCode, Subject, Subscriber};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use futures_util::StreamExt as _;
use linetender_wire::hop::Far;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

/// The most bytes of one message: far below what NATS takes.
const CHUNK: usize = 64 * 1024;

/// What a message takes beside its piece, at most; and the least that is sent at once, whatever NATS says.
const HEAD: usize = 256;
const LEAST: usize = 256;

/// How much may be under way in one direction: few enough messages that NATS never drops any for want of room.
const BYTES: u64 = 1024 * 1024;
const MESSAGES: u64 = 256;

/// So much of that is taken before the other side is told.
const TOLD: u64 = 4;

/// What has been taken from NATS and waits for its reader.
const WAITING: usize = 256 * 1024;

/// How often it is looked whether the other side is there. Whoever has said something and heard nothing since asks at each look, others
/// after some; who has asked so often gives up.
const LOOK: Duration = Duration::from_secs(1);
const IDLE: u32 = 4;
const ASKED: u32 = 4;

/// How long NATS may take a message.
const TAKES: Duration = Duration::from_secs(5);

const DATA: u8 = b'D';
const CREDIT: u8 = b'C';
const FINISHED: u8 = b'F';
const THERE: u8 = b'P';
const RESET: u8 = b'R';

/// Under these words a stream's messages come.
const TO: &str = "d";
const ASKS: &str = "p";

/// How a stream ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    /// The other side said all that it had to say.
    Finished,
    /// Nobody listened any more: of what was sent, at most so many bytes arrived.
    Undelivered(u64),
    /// Something was lost, or nothing was heard.
    Broken,
}

/// One side's subject: where it is written to.
#[derive(Clone, Debug)]
pub(super) struct Place(String);

impl Place {
    /// A new one of this fleet's, which nobody can guess.
    pub(super) fn new(fleet: &str, number: u128) -> Self {
        Self(format!("linetender.{fleet}.stream.{number:032x}"))
    }

    /// The one that another node named, if that is one of this fleet's.
    pub(super) fn named(fleet: &str, name: &str) -> Option<Self> {
        let number = name.strip_prefix(&format!("linetender.{fleet}.stream."))?;
        (number.len() == 32 && number.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .then(|| Self(name.to_owned()))
    }

    pub(super) fn name(&self) -> &str {
        &self.0
    }

    fn subject(&self, word: &str) -> Subject {
        format!("{}.{word}", self.0).into()
    }

    /// Listens there: before anybody is told of it.
    pub(super) async fn listen(&self, client: &Client) -> io::Result<Subscriber> {
        client.subscribe(self.subject("*")).await.map_err(io::Error::other)
    }
}

/// What is read. Dropped, the stream is given up.
pub struct Input {
    bytes: DuplexStream,
    end: Arc<OnceLock<End>>,
}

/// What is written. Dropped, nothing more is said.
pub type Output = DuplexStream;

/// Gives a stream up from elsewhere.
#[derive(Clone, Default)]
pub(super) struct GiveUp(Arc<(Notify, Notify)>);

impl GiveUp {
    pub(super) fn now(&self) {
        self.0.0.notify_one();
    }

    async fn wanted(&self) {
        self.0.0.notified().await;
    }

    /// Returns when the stream is over.
    pub(super) async fn over(&self) {
        self.0.1.notified().await;
    }
}

/// Begins a stream between two places, of which we listen at `own`.
pub(super) fn begin(
    client: Client,
    own: &Place,
    heard: Subscriber,
    other: &Place,
    give_up: GiveUp,
) -> (Input, Output) {
    // A message that NATS does not take would end the stream, and its calls' outcome would be unknown for no reason.
    let most = client.server_info().max_payload.saturating_sub(HEAD).clamp(LEAST, CHUNK);
    let (output, down) = tokio::io::duplex(most);
    let (up, bytes) = tokio::io::duplex(WAITING);
    let end = Arc::new(OnceLock::new());
    let pump = Pump {
        client,
        own: own.clone(),
        to: other.subject(TO),
        sent: Sent::default(),
        taken: Taken::default(),
        inbound: VecDeque::new(),
    };
    let told = Arc::clone(&end);
    #[expect(clippy::disallowed_methods, reason = "it ends with its two ends, or when nothing is heard")]
    tokio::spawn(async move {
        pump.run(heard, down, up, &give_up, &told).await;
        give_up.0.1.notify_one();
    });
    (Input { bytes, end }, output)
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_read(cx, buf)
    }
}

impl Far for Input {
    fn taken(&self, acknowledged: u64) -> Option<u64> {
        match self.end.get()? {
            End::Finished => Some(acknowledged),
            End::Undelivered(bytes) => Some(acknowledged.max(*bytes)),
            End::Broken => None,
        }
    }
}

/// What was sent.
#[derive(Default)]
struct Sent {
    messages: u64,
    bytes: u64,
    /// What the other side has taken of it.
    taken: (u64, u64),
    /// Of what it has not: each message's number, and at which byte it begins.
    open: VecDeque<(u64, u64)>,
    finished: bool,
}

impl Sent {
    fn may_more(&self) -> bool {
        !self.finished && self.bytes - self.taken.0 < BYTES && self.messages - self.taken.1 < MESSAGES
    }

    fn credited(&mut self, bytes: u64, messages: u64) {
        self.taken = (self.taken.0.max(bytes.min(self.bytes)), self.taken.1.max(messages.min(self.messages)));
        while self.open.front().is_some_and(|(number, _)| *number < self.taken.1) {
            self.open.pop_front();
        }
    }
}

/// What was taken from the other side.
#[derive(Default)]
struct Taken {
    /// So many messages, and bytes, have come.
    heard: (u64, u64),
    messages: u64,
    bytes: u64,
    told: (u64, u64),
    finished: bool,
}

/// What happened since the other side was heard.
#[derive(Default)]
struct Quiet {
    looks: u32,
    asked: u32,
    /// How much had been sent by then.
    sent: u64,
}

struct Pump {
    client: Client,
    own: Place,
    to: Subject,
    sent: Sent,
    taken: Taken,
    /// What came and is not taken yet: no more than the window.
    inbound: VecDeque<Bytes>,
}

impl Pump {
    /// Runs to the end. Whoever reads finds how it ended when it comes there.
    async fn run(
        mut self,
        mut heard: Subscriber,
        mut down: DuplexStream,
        mut up: DuplexStream,
        give_up: &GiveUp,
        told: &OnceLock<End>,
    ) {
        let mut look = interval_at(Instant::now() + LOOK, LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut quiet, mut unread) = (Quiet::default(), false);
        let mut space = BytesMut::new();
        let end = loop {
            if self.taken.finished && self.inbound.is_empty() && told.set(End::Finished).is_ok() {
                let _ = up.shutdown().await;
            }
            if self.sent.finished && (unread || told.get().is_some()) {
                return;
            }
            space.reserve(CHUNK);
            let step = tokio::select! {
                biased;
                message = heard.next() => {
                    quiet = Quiet { sent: self.sent.messages, ..Quiet::default() };
                    match message {
                        Some(message) => self.hear(message).await,
                        None => Err(End::Broken),
                    }
                }
                written = write(&mut up, &self.inbound), if !self.inbound.is_empty() => {
                    if let Ok(bytes) = written {
                        self.took(bytes).await
                    } else {
                        // Nobody reads here any more. What was written here before is still sent: its last words.
                        unread = true;
                        self.inbound.clear();
                        self.taken.bytes = self.taken.heard.1;
                        Ok(())
                    }
                }
                read = down.read_buf(&mut space), if self.sent.may_more() => match read {
                    Ok(1..) => self.send(space.split().freeze()).await,
                    _ => self.finish().await,
                },
                () = give_up.wanted() => Err(End::Broken),
                _ = look.tick() => {
                    quiet.looks += 1;
                    let asks = quiet.asked > 0 || quiet.looks >= IDLE || quiet.sent < self.sent.messages;
                    quiet.asked += u32::from(asks);
                    match (asks, quiet.asked) {
                        (false, _) => Ok(()),
                        (true, ..=ASKED) => self.say(&[THERE], ASKS).await,
                        (true, _) => Err(End::Broken),
                    }
                }
            };
            if let Err(end) = step {
                break end;
            }
        };
        let _ = told.set(end);
        drop((up, down));
        // Said to whoever may still listen.
        let _ = self.say(&[RESET], ASKS).await;
    }

    async fn hear(&mut self, message: Message) -> Result<(), End> {
        if message.status == Some(StatusCode::NO_RESPONDERS) {
            let number = message.subject.rsplit('.').next().and_then(|word| word.parse().ok());
            let open =
                number.and_then(|number: u64| self.sent.open.iter().find(|(other, _)| *other == number));
            return Err(open.map_or(End::Broken, |(_, start)| End::Undelivered(*start)));
        }
        let mut payload = message.payload;
        if payload.is_empty() {
            return Err(End::Broken);
        }
        match payload.get_u8() {
            DATA if payload.len() >= 8 => {
                let (messages, bytes) = self.taken.heard;
                let beyond = bytes - self.taken.bytes > BYTES || self.inbound.len() as u64 > MESSAGES;
                if payload.get_u64() != messages || self.taken.finished || payload.is_empty() || beyond {
                    return Err(End::Broken);
                }
                self.taken.heard = (messages + 1, bytes + payload.len() as u64);
                self.inbound.push_back(payload);
            }
            CREDIT if payload.len() >= 16 => {
                let (bytes, messages) = (payload.get_u64(), payload.get_u64());
                self.sent.credited(bytes, messages);
            }
            FINISHED if payload.len() >= 8 => {
                if payload.get_u64() != self.taken.heard.0 {
                    return Err(End::Broken);
                }
                self.taken.finished = true;
            }
            THERE => self.credit().await?,
            _ => return Err(End::Broken),
        }
        Ok(())
    }

    /// So many bytes of what came were taken.
    async fn took(&mut self, mut bytes: usize) -> Result<(), End> {
        self.taken.bytes += bytes as u64;
        while let Some(first) = self.inbound.front_mut() {
            if first.len() > bytes {
                first.advance(bytes);
                break;
            }
            bytes -= first.len();
            self.inbound.pop_front();
            self.taken.messages += 1;
        }
        let (told_bytes, told_messages) = self.taken.told;
        if self.taken.bytes - told_bytes >= BYTES / TOLD
            || self.taken.messages - told_messages >= MESSAGES / TOLD
        {
            self.credit().await?;
        }
        Ok(())
    }

    async fn credit(&mut self) -> Result<(), End> {
        self.taken.told = (self.taken.bytes, self.taken.messages);
        let mut words = BytesMut::with_capacity(17);
        words.put_u8(CREDIT);
        words.put_u64(self.taken.bytes);
        words.put_u64(self.taken.messages);
        self.say(&words, ASKS).await
    }

    async fn send(&mut self, bytes: Bytes) -> Result<(), End> {
        let number = self.sent.messages;
        self.sent.open.push_back((number, self.sent.bytes));
        self.sent.messages += 1;
        self.sent.bytes += bytes.len() as u64;
        let mut words = BytesMut::with_capacity(9 + bytes.len());
        words.put_u8(DATA);
        words.put_u64(number);
        words.put(bytes);
        self.say(&words, &number.to_string()).await
    }

    async fn finish(&mut self) -> Result<(), End> {
        self.sent.finished = true;
        let mut words = BytesMut::with_capacity(9);
        words.put_u8(FINISHED);
        words.put_u64(self.sent.messages);
        self.say(&words, ASKS).await
    }

    /// Sends; that nobody listened comes back under this word.
    async fn say(&self, words: &[u8], about: &str) -> Result<(), End> {
        let reply = self.own.subject(about);
        let said = self.client.publish_with_reply(self.to.clone(), reply, Bytes::copy_from_slice(words));
        match timeout(TAKES, said).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(End::Broken),
        }
    }
}

async fn write(up: &mut DuplexStream, inbound: &VecDeque<Bytes>) -> io::Result<usize> {
    let slices: Vec<_> = inbound.iter().take(16).map(|bytes| io::IoSlice::new(bytes)).collect();
    up.write_vectored(&slices).await
}

#[cfg(test)]
mod tests;
