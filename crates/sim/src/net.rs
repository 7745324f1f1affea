//! A network in one thread: links that are slow, cut and mended, and connections that behave as TCP does.
//!
//! Nothing is lost on a connection that lives: what is sent across a cut link comes when that is mended, as TCP sends it
//! again; and a cut that lasts is found by what our sockets are watched for. A host that falls resets its connections.

mod cable;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use linetender_wire::http::network::{Connecting, Network, Socket};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::rng::Rng;
use crate::web::Web;
use cable::Cable;
pub(crate) use cable::End;

/// The one link of a world.
pub(crate) struct Net {
    sky: Mutex<Sky>,
    changed: Notify,
    cables: Mutex<Vec<Weak<Cable>>>,
    rng: Mutex<Rng>,
}

/// What the link is like now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sky {
    pub(crate) cut_since: Option<Instant>,
    /// How long a packet takes, in milliseconds.
    pub(crate) delay: (u64, u64),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Net {
    pub(crate) fn new(delay: (u64, u64), rng: Rng) -> Arc<Self> {
        Arc::new(Self {
            sky: Mutex::new(Sky { cut_since: None, delay }),
            changed: Notify::new(),
            cables: Mutex::default(),
            rng: Mutex::new(rng),
        })
    }

    pub(crate) fn sky(&self) -> Sky {
        *lock(&self.sky)
    }

    /// Cuts the link, or mends it.
    pub(crate) fn cut(&self, cut: bool) {
        lock(&self.sky).cut_since = cut.then(Instant::now);
        self.stir();
    }

    pub(crate) fn slow(&self, delay: (u64, u64)) {
        lock(&self.sky).delay = delay;
    }

    /// Every connection is reset, by a host that fell or something on the way.
    pub(crate) fn reset(&self) {
        self.cables().iter().for_each(|cable| cable.reset());
    }

    /// Everybody looks again.
    fn stir(&self) {
        self.changed.notify_waiters();
        self.cables().iter().for_each(|cable| cable.wake());
    }

    fn cables(&self) -> Vec<Arc<Cable>> {
        let mut cables = lock(&self.cables);
        cables.retain(|cable| cable.strong_count() > 0);
        cables.iter().filter_map(Weak::upgrade).collect()
    }

    /// How long the next packet takes.
    fn delay(&self) -> Duration {
        let (from, to) = self.sky().delay;
        lock(&self.rng).millis(from, to)
    }

    async fn mended(&self) {
        while self.sky().cut_since.is_some() {
            self.changed.notified().await;
        }
    }
}

/// The way from us to the one host of a world.
pub(crate) struct Road {
    pub(crate) net: Arc<Net>,
    pub(crate) web: Arc<Web>,
}

impl Road {
    async fn go(&self) -> io::Result<Box<dyn Socket>> {
        loop {
            self.net.mended().await;
            sleep(self.net.delay() * 2).await;
            if self.net.sky().cut_since.is_none() {
                break;
            }
        }
        if !self.web.listens() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (ours, theirs) = Cable::lay(&self.net);
        lock(&self.net.cables).push(ours.cable());
        self.web.accept(theirs);
        Ok(Box::new(ours))
    }
}

impl Network for Road {
    fn connect<'a>(&'a self, _: &'a str, _: u16) -> Connecting<'a> {
        Box::pin(self.go())
    }
}
