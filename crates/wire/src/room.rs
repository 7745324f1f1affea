//! Room for what a server has not finished saying.
//!
//! A message has a bound of its own, and many servers within it, or many exchanges with one, are still more than a machine has. So
//! whoever listens counts what is kept of them together; what is too much is read no further, and its call is told.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::seam::Listener;

/// What is shorter is not counted: nearly every message is.
const FREE: usize = 16 * 1024;

/// How long a message waits for room, while others go on, before it is given up; and how often it looks, at first.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// Bytes that are kept of one unfinished message. Dropped, they are not any more.
pub trait Room: Send + Sync {
    /// So many bytes more; none, if some of those that were counted before have come.
    ///
    /// # Errors
    /// If there is no room for them.
    fn grow(&mut self, bytes: usize) -> Result<(), NoRoom>;
}

/// There is no room for what a server says.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("larger than the memory that is left for it")]
pub struct NoRoom;

/// A message that has not all come, and what is counted of it.
pub(crate) struct Unfinished<'a> {
    listener: Option<&'a dyn Listener>,
    room: Option<Box<dyn Room>>,
    counted: usize,
    /// How many bytes there was no room for.
    lacks: Option<usize>,
    /// Told when what was counted has to go. Of most messages nothing is.
    wanted: Option<Arc<Notify>>,
}

impl<'a> Unfinished<'a> {
    pub(crate) fn new(listener: &'a dyn Listener) -> Self {
        Self { listener: Some(listener), ..Self::uncounted() }
    }

    /// One that nobody counts.
    pub(crate) fn uncounted() -> Self {
        Self { listener: None, room: None, counted: 0, lacks: None, wanted: None }
    }

    /// So many bytes of it are kept now.
    pub(crate) fn now(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if bytes <= FREE || bytes < self.counted {
            // It came to its end, or was given up; what is kept now is another.
            self.none();
        }
        if bytes <= FREE {
            return Ok(());
        }
        if let (None, Some(listener)) = (&self.room, self.listener) {
            self.room = listener.room(self.wanted.insert(Arc::default()));
        }
        let Some(room) = &mut self.room else { return Ok(()) };
        let grown = room.grow(bytes - self.counted);
        if grown.is_ok() {
            self.counted = bytes;
        }
        self.lacks = grown.is_err().then_some(bytes);
        grown
    }

    /// Nothing of it is kept any more.
    pub(crate) fn none(&mut self) {
        (self.room, self.wanted, self.counted, self.lacks) = (None, None, 0, None);
    }

    /// Waits, where there was no room, until there is; else until the room is wanted for somebody else. With an error, what is kept is to
    /// be given up. Meanwhile nothing should be read: whoever sends waits too.
    pub(crate) async fn settled(&mut self) -> Result<(), NoRoom> {
        let until = Instant::now() + PATIENCE;
        let mut pause = PAUSE;
        while let Some(lacks) = self.lacks {
            tokio::select! {
                no_room = self.wanted() => return Err(no_room),
                () = tokio::time::sleep(pause) => {}
            }
            if self.now(lacks).is_ok() {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(NoRoom);
            }
            pause = (pause * 2).min(PAUSE * 10);
        }
        Err(self.wanted().await)
    }

    async fn wanted(&self) -> NoRoom {
        match &self.wanted {
            Some(wanted) => wanted.notified().await,
            None => std::future::pending().await,
        }
        NoRoom
    }
}

#[cfg(test)]
mod tests {
    use super::{FREE, NoRoom, Room, Unfinished};
    use crate::lines::Item;
    use crate::seam::{Listener, Loss};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use tokio::sync::Notify;

    #[derive(Default)]
    struct Counts {
        used: Arc<AtomicUsize>,
        wanted: Mutex<Option<Arc<Notify>>>,
    }

    struct One(Arc<AtomicUsize>, usize);

    impl Room for One {
        fn grow(&mut self, bytes: usize) -> Result<(), NoRoom> {
            if self.0.load(Ordering::Relaxed) + bytes > 10 * FREE {
                return Err(NoRoom);
            }
            self.1 += bytes;
            self.0.fetch_add(bytes, Ordering::Relaxed);
            Ok(())
        }
    }

    impl Drop for One {
        fn drop(&mut self) {
            self.0.fetch_sub(self.1, Ordering::Relaxed);
        }
    }

    impl Listener for Counts {
        fn hear(&self, _: Item) {}
        fn heard(&self) {}
        fn lost(&self, _: u64, _: Loss) {}
        fn gap(&self) {}
        fn room(&self, wanted: &Arc<Notify>) -> Option<Box<dyn Room>> {
            *self.wanted.lock().unwrap() = Some(Arc::clone(wanted));
            Some(Box::new(One(Arc::clone(&self.used), 0)))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn x05_what_is_kept_of_a_message_is_counted_until_it_is_whole() {
        let counts = Counts::default();
        let used = || counts.used.load(Ordering::Relaxed);
        let mut one = Unfinished::new(&counts);
        one.now(FREE).unwrap();
        assert_eq!(used(), 0, "what is short is free");
        for bytes in [2 * FREE, 9 * FREE] {
            one.now(bytes).unwrap();
            assert_eq!(used(), bytes);
        }
        let mut other = Unfinished::new(&counts);
        assert_eq!(other.now(2 * FREE), Err(NoRoom));
        assert_eq!(other.settled().await, Err(NoRoom), "not for ever");
        one.now(3 * FREE).unwrap();
        assert_eq!(used(), 3 * FREE, "that is the next one");
        assert_eq!(other.settled().await, Ok(()), "there is room now");
        counts.wanted.lock().unwrap().take().unwrap().notify_one();
        assert_eq!(one.settled().await, Err(NoRoom), "it was the last that asked for room");
        one.none();
        assert_eq!(used(), 2 * FREE);
        drop(other);
        assert_eq!(used(), 0);
    }
}
