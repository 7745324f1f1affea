//! A queue that is bounded by bytes as well as by messages: a few large messages weigh as much as many small ones.

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};

/// Room is given out in pieces of this many bytes, so that 32 bits are enough to count it.
const PIECE: usize = 1024;

/// Something that takes room.
pub trait Weigh {
    /// How many bytes.
    fn bytes(&self) -> usize;
}

/// Why something was not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotTaken {
    /// There is no room now.
    Full,
    /// Nobody takes anything out any more.
    Closed,
}

/// Puts things in.
#[derive(Debug)]
pub struct Sender<T> {
    queue: mpsc::Sender<T>,
    room: Arc<Semaphore>,
    pieces: u32,
}

/// Takes them out.
#[derive(Debug)]
pub struct Receiver<T> {
    queue: mpsc::Receiver<T>,
    room: Arc<Semaphore>,
    pieces: u32,
}

/// A queue for so many messages, and so many bytes. One message always fits, however large.
pub fn queue<T: Weigh>(messages: usize, bytes: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel(messages.max(1));
    let pieces = u32::try_from(bytes / PIECE).unwrap_or(u32::MAX).clamp(1, 1 << 28);
    let room = Arc::new(Semaphore::new(pieces as usize));
    (Sender { queue: sender, room: Arc::clone(&room), pieces }, Receiver { queue: receiver, room, pieces })
}

fn pieces_of(message: &impl Weigh, all: u32) -> u32 {
    pieces_of_bytes(message.bytes(), all)
}

fn pieces_of_bytes(bytes: usize, all: u32) -> u32 {
    u32::try_from(bytes / PIECE + 1).unwrap_or(u32::MAX).min(all)
}

impl<T: Weigh> Sender<T> {
    /// Puts it in if there is room now.
    ///
    /// # Errors
    /// If there is none, or nobody is at the other end.
    pub fn try_send(&self, message: T) -> Result<(), NotTaken> {
        let room = self.room.try_acquire_many(pieces_of(&message, self.pieces));
        let room = room.map_err(|_| NotTaken::Full)?;
        self.queue.try_send(message).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotTaken::Full,
            mpsc::error::TrySendError::Closed(_) => NotTaken::Closed,
        })?;
        room.forget();
        Ok(())
    }

    /// Returns when there is room for so many bytes. Another sender may take it first.
    ///
    /// # Errors
    /// If the receiver is gone.
    pub async fn room_for(&self, bytes: usize) -> Result<(), NotTaken> {
        let pieces = pieces_of_bytes(bytes, self.pieces);
        tokio::select! {
            biased;
            room = self.room.acquire_many(pieces) => drop(room),
            () = self.queue.closed() => return Err(NotTaken::Closed),
        }
        self.queue.reserve().await.map(drop).map_err(|_| NotTaken::Closed)
    }

    /// Puts it in when there is room.
    ///
    /// # Errors
    /// If the receiver is gone.
    pub async fn send(&self, message: T) -> Result<(), NotTaken> {
        let room = tokio::select! {
            biased;
            room = self.room.acquire_many(pieces_of(&message, self.pieces)) => room,
            () = self.queue.closed() => return Err(NotTaken::Closed),
        };
        let room = room.map_err(|_| NotTaken::Closed)?;
        self.queue.send(message).await.map_err(|_| NotTaken::Closed)?;
        room.forget();
        Ok(())
    }
}

impl<T> Sender<T> {
    /// Returns when nobody takes anything out any more.
    pub async fn closed(&self) {
        self.queue.closed().await;
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), room: Arc::clone(&self.room), pieces: self.pieces }
    }
}

impl<T: Weigh> Receiver<T> {
    /// Takes the next; `None` when nobody can put anything in any more.
    pub async fn recv(&mut self) -> Option<T> {
        let message = self.queue.recv().await?;
        self.give_back(&message);
        Some(message)
    }

    /// Takes the next if there is one.
    pub fn try_recv(&mut self) -> Option<T> {
        let message = self.queue.try_recv().ok()?;
        self.give_back(&message);
        Some(message)
    }

    fn give_back(&self, message: &T) {
        self.room.add_permits(pieces_of(message, self.pieces) as usize);
    }
}

impl Weigh for bytes::Bytes {
    fn bytes(&self) -> usize {
        self.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{NotTaken, queue};
    use bytes::Bytes;

    fn of(bytes: usize) -> Bytes {
        vec![0; bytes].into()
    }

    #[tokio::test]
    async fn bytes_fill_it_as_well_as_messages() {
        let (sender, mut receiver) = queue::<Bytes>(3, 10 * 1024);
        sender.try_send(of(9000)).unwrap();
        assert_eq!(sender.try_send(of(9000)), Err(NotTaken::Full));
        sender.try_send(of(10)).unwrap();
        assert_eq!(sender.try_send(of(10)), Err(NotTaken::Full), "ten pieces are taken");
        assert_eq!(receiver.recv().await.unwrap().len(), 9000);
        sender.try_send(of(10)).unwrap();
        sender.try_send(of(10)).unwrap();
        assert_eq!(sender.try_send(of(10)), Err(NotTaken::Full), "three messages are in it");
        while receiver.try_recv().is_some() {}
        // Larger than the whole queue: alone it fits.
        sender.send(of(1_000_000)).await.unwrap();
        assert_eq!(sender.try_send(of(1)), Err(NotTaken::Full));
        drop(receiver);
        assert_eq!(sender.send(of(1)).await, Err(NotTaken::Closed));
    }
}
