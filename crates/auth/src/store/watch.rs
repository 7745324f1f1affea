//! Notices what other processes changed.
//!
//! One small file is read every 400 ms, whatever the number of servers: a login in one process is seen by all within half a
//! second. Notifications of the system would be quicker, and are lost on network file systems without a word.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use tokio::sync::watch::{self, Receiver, Sender};
use tokio::time::{MissedTickBehavior, interval};

use super::{Inner, files};
use crate::tasks;

const EVERY: Duration = Duration::from_millis(400);

/// What is watched, and who is told.
pub(super) struct Watched {
    changed: Sender<u64>,
    is_followed: AtomicBool,
    folder: PathBuf,
}

/// What there is to see of the folder.
#[derive(Eq, PartialEq)]
struct Sight {
    /// The file that every change replaces.
    announced: Option<Vec<u8>>,
    /// A process that was killed had no time to announce what it changed.
    folders: [Option<SystemTime>; 2],
}

impl Watched {
    pub(super) fn new(folder: &Path) -> Self {
        let (changed, _) = watch::channel(0);
        Self { changed, is_followed: AtomicBool::new(false), folder: folder.to_owned() }
    }
}

pub(super) fn follow(store: &Arc<Inner>) -> Receiver<u64> {
    let receiver = store.watched.changed.subscribe();
    if !store.watched.is_followed.swap(true, Ordering::AcqRel) {
        let seen = Sight::of(&store.watched.folder);
        tasks::spawn(look(Arc::downgrade(store), seen));
    }
    receiver
}

/// Until the store, or everybody who wants to know of it, is gone.
async fn look(store: Weak<Inner>, mut seen: Sight) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(store) = store.upgrade() else { return };
        let watched = &store.watched;
        let now = Sight::of(&watched.folder);
        if now != seen {
            seen = now;
            watched.changed.send_modify(|changes| *changes += 1);
        }
        if watched.changed.is_closed() {
            watched.is_followed.store(false, Ordering::Release);
            // Somebody may have come between the two lines above.
            if watched.changed.is_closed() || watched.is_followed.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }
}

impl Sight {
    fn of(folder: &Path) -> Self {
        let modified = |name: &str| fs::metadata(folder.join(name)).and_then(|about| about.modified()).ok();
        Self { announced: files::announced(folder), folders: [modified("credentials"), modified("servers")] }
    }
}
